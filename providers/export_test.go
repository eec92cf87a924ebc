package providers

// WithoutCookie has the kernel tell no number of a network namespace, as before Linux 5.14, until the function that it returns
// is called.
func WithoutCookie() (restore func()) {
	was := networkCookie
	networkCookie = func() uint64 { return 0 }
	return func() { networkCookie = was }
}
