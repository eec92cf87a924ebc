package policy

// unix decides on a path socket. A socket is reached by a rule for its very path only, never because its folder is
// exposed (tmux, X11, ssh-agent and D-Bus would be a way to run programs); making one is writing a file.
func (p *Policy) unix(n NetQuestion) Decision {
	switch {
	case n.Op == "socket": // of datagrams; streams need no rule to exist
		n.Host = "of datagrams"
		d := p.refuseNet(n, 0, "A program has local datagram sockets where a socket, or a folder in which it may bind its own, is exposed for writing.")
		d.Add = []string{"expose-rw=./sockets/"}
		return d
	case n.Host == "" || n.Host[0] == 0 || n.Host[0] == '@': // the guard writes the NUL as @; its paths are absolute
		return p.refuseNet(n, 0, "abstract sockets cannot be granted.")
	case !clean(n.Host):
		return p.refuseNet(n, 0, "the path is not canonical, so no rule can decide on it.")
	}
	if netOps[n.Op].dir == dirIn {
		if d := p.File(n.Host, Write, n.Op); d.Allow {
			d.Family = "net"
			return d
		}
	}
	if line := p.files.hidden.match(n.Host); line > 0 {
		return p.refuseNet(n, line, "")
	}
	if e := p.files.entries[n.Host]; e.rw > 0 {
		return p.allow("net", n.Op, n.Host, e.rw)
	}
	d := p.refuseNet(n, 0, "A socket needs a rule for its very path; exposing its folder is not enough.")
	d.Add = nil
	if text, ok := p.spell(n.Host); ok {
		d.Add = []string{"expose-rw=" + text}
	}
	return d
}
