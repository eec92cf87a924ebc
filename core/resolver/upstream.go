package resolver

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"strings"
	"time"
)

// Upstream looks names up for the sandbox.
type Upstream interface {
	// LookupNetIP is that of net.Resolver. network is ip4 or ip6; host ends with a dot where no search domain belongs.
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}

// host is the machine's own resolver: /etc/hosts, nsswitch, its servers, as this process sees them.
type host struct{}

func (host) LookupNetIP(ctx context.Context, network, name string) ([]netip.Addr, error) {
	return net.DefaultResolver.LookupNetIP(ctx, network, name)
}

// How long answers are kept and may be kept. The host's resolver does not tell; changes are seen within half a minute.
const (
	keepFound   = 30 * time.Second
	keepMissing = 5 * time.Second
	keepFailed  = time.Second
)

func ask(ctx context.Context, u Upstream, name string, six bool) found {
	network := "ip4"
	if six {
		network = "ip6"
	}
	addrs, err := u.LookupNetIP(ctx, network, name+".")
	var f found
	for _, a := range addrs {
		if six && a.Is4In6() {
			continue // the C library's resolver invents them; they are no AAAA records
		}
		if a = a.Unmap(); a.Is6() == six {
			f.addrs = append(f.addrs, a)
		}
	}
	var dns *net.DNSError
	switch {
	case err == nil:
		f.missing = len(f.addrs) == 0
	case errors.As(err, &dns) && dns.IsNotFound && !dns.IsTimeout:
		f.missing, f.addrs = true, nil
	default:
		f.failed, f.addrs = true, nil
	}
	return f
}

// System is what the resolv.conf of a machine says to clients.
type System struct {
	Servers []netip.AddrPort
	Search  []string
}

// String says for people who is asked for names, and whether a sandbox can ask them as well.
func (s System) String() string {
	var servers, scoped []string
	for _, at := range s.Servers {
		servers = append(servers, at.Addr().String())
		if at.Addr().IsLinkLocalUnicast() {
			scoped = append(scoped, at.Addr().String())
		}
	}
	text := "looked up by /etc/hosts and " + strings.Join(servers, ", ")
	if len(s.Search) > 0 {
		text += " (search domains " + strings.Join(s.Search, ", ") + ")"
	}
	if len(scoped) > 0 {
		text += "; programs in a sandbox cannot ask " + strings.Join(scoped, ", ") + ", which belongs to an interface"
	}
	return text
}

// Inside are the servers' addresses as far as they can exist in a network of a sandbox's own, the one on this machine where
// none does: not one that belongs to an interface.
func (s System) Inside() []netip.Addr {
	var out []netip.Addr
	for _, at := range s.Servers {
		a := at.Addr()
		if a.Zone() == "" && !a.IsMulticast() && !a.IsUnspecified() && !a.IsLinkLocalUnicast() {
			out = append(out, a.Unmap())
		}
	}
	if len(out) == 0 {
		out = []netip.Addr{loopback}
	}
	return out
}

var loopback = netip.AddrFrom4([4]byte{127, 0, 0, 1})

// The machine's, which is the sandbox's too.
const resolvConf = "/etc/resolv.conf"

// ReadSystem reads /etc/resolv.conf as the C library does (resolv.conf(5)): three servers at most, without any the one on
// this machine; search domains, without any the domain of the machine's name.
func ReadSystem() System {
	text, _ := os.ReadFile(resolvConf)
	name, _ := os.Hostname()
	return parseSystem(string(text), name)
}

func parseSystem(text, hostname string) System {
	var s System
	said := false
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) < 2 || line[0] == '#' || line[0] == ';' {
			continue
		}
		switch fields[0] {
		case "nameserver":
			if a, err := netip.ParseAddr(fields[1]); err == nil && len(s.Servers) < 3 {
				s.Servers = append(s.Servers, netip.AddrPortFrom(a, 53))
			}
		case "domain":
			s.Search, said = fields[1:2], true
		case "search":
			s.Search, said = fields[1:], true
		}
	}
	if len(s.Servers) == 0 {
		s.Servers = []netip.AddrPort{netip.AddrPortFrom(loopback, 53)}
	}
	if _, domain, found := strings.Cut(hostname, "."); !said && found {
		s.Search = []string{domain}
	}
	s.Search = searchDomains(s.Search)
	return s
}
