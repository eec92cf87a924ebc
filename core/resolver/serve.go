package resolver

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"sync/atomic"
	"time"
)

// ServePacket answers what comes by UDP until the resolver is closed, which closes c.
func (r *Resolver) ServePacket(c net.PacketConn) error {
	if !r.own(c.Close) {
		return c.Close()
	}
	go func() {
		defer r.serving.Done()
		var waiting atomic.Int32
		buf := make([]byte, streamSize)
		for {
			n, from, err := c.ReadFrom(buf)
			if err != nil {
				if r.over(err) {
					return
				}
				time.Sleep(10 * time.Millisecond) // what an earlier answer met, or no memory
				continue
			}
			r.packet(c, from, buf[:n], &waiting)
		}
	}()
	return nil
}

// packet answers one query, in a goroutine of its own where it has to wait for a look-up.
func (r *Resolver) packet(c net.PacketConn, from net.Addr, query []byte, waiting *atomic.Int32) {
	defer r.recovered()
	reply, later := r.begin(query, false)
	if later == nil {
		if reply != nil {
			_, _ = c.WriteTo(reply, from)
		}
		return
	}
	if waiting.Add(1) > maxWaiting {
		waiting.Add(-1)
		return // the client asks again
	}
	r.serving.Add(1)
	go func() {
		defer r.serving.Done()
		defer waiting.Add(-1)
		defer r.recovered()
		ctx, cancel := context.WithTimeout(r.ctx, lookupTime)
		defer cancel()
		if reply := later(ctx); reply != nil {
			_, _ = c.WriteTo(reply, from)
		}
	}()
}

// ServeStream answers what comes by TCP until the resolver is closed, which closes l and its connections.
func (r *Resolver) ServeStream(l net.Listener) error {
	if !r.own(l.Close) {
		return l.Close()
	}
	go func() {
		defer r.serving.Done()
		free := make(chan struct{}, maxStreams)
		for {
			free <- struct{}{} // a connection too many waits in the kernel
			c, err := l.Accept()
			if err != nil {
				<-free
				if r.over(err) {
					return
				}
				time.Sleep(10 * time.Millisecond) // no descriptor left
				continue
			}
			r.serving.Add(1)
			go func() {
				defer r.serving.Done()
				defer func() { <-free }()
				defer r.recovered()
				r.stream(c)
			}()
		}
	}()
	return nil
}

// stream answers one query after the other: two bytes of length, and the message (RFC 7766).
func (r *Resolver) stream(c net.Conn) {
	stop := context.AfterFunc(r.ctx, func() { c.Close() })
	defer stop()
	defer c.Close()
	var head [2]byte
	buf := make([]byte, streamSize)
	for {
		if c.SetDeadline(time.Now().Add(idleStreams)) != nil {
			return
		}
		if _, err := io.ReadFull(c, head[:]); err != nil {
			return
		}
		query := buf[:binary.BigEndian.Uint16(head[:])]
		if _, err := io.ReadFull(c, query); err != nil {
			return
		}
		ctx, cancel := context.WithTimeout(r.ctx, lookupTime)
		reply := r.Answer(ctx, query, true)
		cancel()
		if reply == nil {
			return
		}
		if _, err := c.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(reply))), reply...)); err != nil {
			return
		}
	}
}

// ServeSockets serves a bound datagram socket and a listening stream socket, given by their descriptors, which it takes
// over also where it fails. They may belong to another network namespace.
func (r *Resolver) ServeSockets(packet, stream int) error {
	udp, tcp := os.NewFile(uintptr(packet), "dns"), os.NewFile(uintptr(stream), "dns")
	defer udp.Close()
	defer tcp.Close()
	c, err := net.FilePacketConn(udp)
	if err != nil {
		return fmt.Errorf("serve names by UDP: %w", err)
	}
	l, err := net.FileListener(tcp)
	if err != nil {
		c.Close()
		return fmt.Errorf("serve names by TCP: %w", err)
	}
	return errors.Join(r.ServePacket(c), r.ServeStream(l))
}

// own has a service end with the resolver. It fails on one that is closed.
func (r *Resolver) own(end func() error) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return false
	}
	r.closers = append(r.closers, end)
	r.serving.Add(1)
	return true
}

func (r *Resolver) over(err error) bool {
	return r.ctx.Err() != nil || errors.Is(err, net.ErrClosed)
}

// Listen serves on ports of this machine's loopback that are the same for UDP and TCP: an address for IPv4 and, where
// there is one, for IPv6.
func (r *Resolver) Listen() ([]netip.AddrPort, error) {
	var at []netip.AddrPort
	var failed error
	for _, a := range []netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, 1}), netip.IPv6Loopback()} {
		where, err := r.listen(a)
		if err != nil {
			failed = errors.Join(failed, err)
			continue
		}
		at = append(at, where)
	}
	if len(at) == 0 {
		return nil, fmt.Errorf("the resolver has nowhere to listen: %w", failed)
	}
	return at, nil
}

// A port that is free for TCP may be taken for UDP.
const portTries = 16

func (r *Resolver) listen(a netip.Addr) (netip.AddrPort, error) {
	var last error
	for range portTries {
		l, err := net.ListenTCP("tcp", net.TCPAddrFromAddrPort(netip.AddrPortFrom(a, 0)))
		if err != nil {
			return netip.AddrPort{}, err
		}
		where := l.Addr().(*net.TCPAddr).AddrPort()
		c, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(where))
		if err != nil {
			l.Close()
			last = err
			continue
		}
		return where, errors.Join(r.ServeStream(l), r.ServePacket(c))
	}
	return netip.AddrPort{}, last
}
