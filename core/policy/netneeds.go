package policy

// LooksUpNames tells that some rule allows names to be looked up.
func (p *Policy) LooksUpNames() bool {
	return len(p.net.allow.any) > 0 || len(p.net.allow.names) > 0 || len(p.net.allow.domains) > 0
}

// UDPNeeded tells that datagram sockets of the internet have to exist: a rule allows UDP, or names are looked up.
func (p *Policy) UDPNeeded() bool {
	if p.LooksUpNames() {
		return true
	}
	for _, rules := range p.net.allow.named {
		if anyUDP(rules) {
			return true
		}
	}
	for _, rules := range p.net.allow.prefixes {
		if anyUDP(rules) {
			return true
		}
	}
	return false
}

func anyUDP(rules []*netRule) bool {
	for _, r := range rules {
		if r.protos&protoUDP != 0 {
			return true
		}
	}
	return false
}
