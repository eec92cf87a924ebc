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

// LocalUDP tells that some rule lets datagrams be sent to the host's own loopback addresses.
func (p *Policy) LocalUDP() bool {
	x := &p.net.allow
	for _, rules := range [][]*netRule{x.named[loopback], x.named[unspecified]} {
		if outwardUDP(rules) {
			return true
		}
	}
	for prefix, rules := range x.prefixes {
		if class := setOfPrefix(prefix); (class == loopback || class == unspecified) && outwardUDP(rules) {
			return true
		}
	}
	return outwardUDP(x.names["localhost"])
}

func outwardUDP(rules []*netRule) bool {
	for _, r := range rules {
		if r.protos&protoUDP != 0 && r.dirs&dirOut != 0 {
			return true
		}
	}
	return false
}
