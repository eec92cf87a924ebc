package broker

import (
	"net"
	"net/netip"

	"golang.org/x/sys/unix"
)

// inlet is a port at which a walled sandbox takes datagrams from outside.
type inlet struct {
	conn    *net.UDPConn
	inside  netip.Addr // to which they are sent
	process int
	inode   uint64 // of the program's socket
	// peers have sent something, and may be answered. The relay's lock guards them.
	peers map[netip.AddrPort]bool
}

const (
	maxInlets = 64
	maxPeers  = 4096
)

// letIn opens a port of the host's for a socket that is bound inside.
func (r *relay) letIn(at netip.AddrPort, family, process int, inode uint64) unix.Errno {
	network := "udp4"
	if family == unix.AF_INET6 && (at.Addr().IsUnspecified() || !at.Addr().Is4In6()) {
		network = "udp" // by the address: an unspecified one is of both families
	}
	conn, err := net.ListenUDP(network, net.UDPAddrFromAddrPort(at))
	if err != nil {
		return listenErrno(err)
	}
	in := &inlet{conn: conn, inside: at.Addr().Unmap(), process: process, inode: inode, peers: map[netip.AddrPort]bool{}}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed || len(r.inlets) >= maxInlets || r.inlets[at.Port()] != nil {
		conn.Close()
		return unix.EADDRINUSE
	}
	r.inlets[at.Port()] = in
	r.running.Add(1)
	go r.letting(at.Port(), in)
	return 0
}

func listenErrno(err error) unix.Errno {
	for _, e := range []unix.Errno{unix.EADDRINUSE, unix.EACCES, unix.EADDRNOTAVAIL, unix.EMFILE} {
		if isErrno(err, e) {
			return e
		}
	}
	return unix.EADDRNOTAVAIL
}

// letting sends what comes from outside into the sandbox.
func (r *relay) letting(port uint16, in *inlet) {
	defer r.running.Done()
	defer func() {
		_ = recover()
		r.shut(port, in)
	}()
	buf := make([]byte, maxPacket)
	for {
		n, from, err := in.conn.ReadFromUDPAddrPort(buf)
		if err != nil {
			if isErrno(err, unix.ECONNREFUSED) {
				continue
			}
			return
		}
		from = netip.AddrPortFrom(from.Addr().Unmap().WithZone(""), from.Port())
		to := in.inside
		if to.IsUnspecified() || to.Is4() != from.Addr().Is4() {
			var ok bool
			if to, ok = r.door.ownOf(from.Addr()); !ok {
				continue
			}
		}
		r.mu.Lock()
		if len(in.peers) >= maxPeers {
			clear(in.peers)
		}
		in.peers[from] = true
		r.mu.Unlock()
		_ = r.door.send(to, datagram(flow{from, netip.AddrPortFrom(to, port)}, buf[:n]))
	}
}

// shut closes an inlet.
func (r *relay) shut(port uint16, in *inlet) {
	in.conn.Close()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.inlets[port] == in {
		delete(r.inlets, port)
	}
}

// throughInlet sends a datagram from the port that the sandbox takes some at. It reports whether there is one.
func (r *relay) throughInlet(p packet) bool {
	r.mu.Lock()
	in := r.inlets[p.from.Port()]
	known := in != nil && in.peers[p.to]
	r.mu.Unlock()
	if in == nil {
		return false
	}
	if !known && !r.allows(p.to) {
		_ = r.door.send(p.from.Addr(), unreachable(p.flow, unreachablePort, p.whole))
		return true
	}
	_, _ = in.conn.WriteToUDPAddrPort(p.payload, p.to)
	return true
}

// sweep shuts the inlets whose socket the program has closed.
func (r *relay) sweep(open func(process int) map[uint64]bool) {
	r.mu.Lock()
	gone := map[uint16]*inlet{}
	for port, in := range r.inlets {
		gone[port] = in
	}
	r.mu.Unlock()
	for port, in := range gone {
		if !open(in.process)[in.inode] {
			r.shut(port, in)
		}
	}
}

// any tells that there are inlets.
func (r *relay) any() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.inlets) > 0
}
