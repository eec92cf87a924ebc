package policy

// Serves tells that some rule lets the sandbox be reached from outside.
func (p *Policy) Serves() bool {
	x := &p.net.allow
	for _, rules := range x.named {
		if inward(rules) {
			return true
		}
	}
	for _, rules := range x.prefixes { // those of names are among them
		if inward(rules) {
			return true
		}
	}
	return inward(x.any)
}

func inward(rules []*netRule) bool {
	for _, r := range rules {
		if r.dirs&dirIn != 0 {
			return true
		}
	}
	return false
}
