package resolver

import (
	"context"
	"net/netip"
	"strings"
	"time"

	"github.com/miekg/dns"

	"github.com/pysandboxes/pysandboxes/core/policy"
)

// treatment is what a type of question comes to, for a name that may be looked up.
type treatment struct {
	how what
	why string
}

type what int

const (
	refused what = iota // and recorded: the type carries text of the one who answers, or of many kinds at once
	address
	pointer
	empty // there is nothing of that type: clients ask as a matter of course and go on without
)

// types are the types with a treatment of their own; all others are refused.
var types = map[uint16]treatment{
	dns.TypeA:      {address, ""},
	dns.TypeAAAA:   {address, ""},
	dns.TypePTR:    {pointer, "the name of an address that was given"},
	dns.TypeCNAME:  {empty, "followed on the way to an address; a type of its own it is for tools"},
	dns.TypeHTTPS:  {empty, "browsers, curl and Apple's resolver ask beside each address; parameters are free text"},
	dns.TypeSVCB:   {empty, "the same"},
	dns.TypeSOA:    {empty, "resolvers look for the zone's border"},
	dns.TypeNS:     {empty, "the same"},
	dns.TypeDS:     {empty, "validating clients; the answers are not signed"},
	dns.TypeDNSKEY: {empty, "the same"},
}

const (
	plainSize  = 512  // of a message by UDP without EDNS0 (RFC 1035)
	ednsSize   = 1232 // what we take and the most we send by UDP (DNS flag day 2020)
	streamSize = 65535
	soaTime    = 5 // seconds that "there is none" holds
)

// Answer gives the answer to one query, nil where there is none to give. stream: it came by TCP.
func (r *Resolver) Answer(ctx context.Context, query []byte, stream bool) []byte {
	reply, later := r.begin(query, stream)
	if later != nil {
		return later(ctx)
	}
	return reply
}

// begin answers what needs no look-up. For what does it returns the rest of the work, which may wait.
func (r *Resolver) begin(query []byte, stream bool) (reply []byte, later func(context.Context) []byte) {
	var m dns.Msg
	if len(query) < 12 || query[2]&0x80 != 0 {
		return nil, nil // no query: an answer to an answer would go round for ever
	}
	if err := m.Unpack(query); err != nil {
		return bare(query, dns.RcodeFormatError), nil
	}
	x := exchange{Resolver: r, query: &m, stream: stream}
	switch {
	case m.Opcode != dns.OpcodeQuery:
		return bare(query, dns.RcodeNotImplemented), nil
	case len(m.Question) != 1 || m.Question[0].Qtype == 0 || m.Question[0].Qclass == 0: // cut off behind the name
		return bare(query, dns.RcodeFormatError), nil
	case m.IsEdns0() != nil && m.IsEdns0().Version() != 0:
		return x.reply(dns.RcodeBadVers), nil
	case m.Question[0].Qclass != dns.ClassINET:
		return x.reply(dns.RcodeRefused), nil
	}
	return x.begin()
}

// bare is an answer to what cannot be read whole: its header and nothing else.
func bare(query []byte, rcode int) []byte {
	return []byte{query[0], query[1], 0x80 | query[2]&0x79, byte(rcode), 0, 0, 0, 0, 0, 0, 0, 0}
}

// exchange is one query on its way to its answer.
type exchange struct {
	*Resolver
	query  *dns.Msg
	stream bool
	full   string // the name asked for
	name   string // the name that it is judged by
}

func (x *exchange) begin() (reply []byte, later func(context.Context) []byte) {
	q := x.query.Question[0]
	x.full = canonical(q.Name)
	kind := types[q.Qtype]
	if kind.how == pointer || strings.HasSuffix(x.full, ".arpa") {
		return x.pointer(), nil
	}
	var d policy.Decision
	if x.name, d = x.judged(x.full); !d.Allow {
		x.denied(d)
		return x.none(dns.RcodeNameError), nil
	}
	switch kind.how {
	case empty:
		return x.none(dns.RcodeSuccess), nil
	case refused:
		x.denied(x.Live.Policy().RefuseLookUp(x.name, "only addresses are looked up for a sandbox, and this asked for "+typeName(q.Qtype)+": such answers carry any text, both ways."))
		return x.reply(dns.RcodeRefused), nil
	}
	six := q.Qtype == dns.TypeAAAA
	if f, ok := x.cache.peek(key{x.full, six}); ok && len(f.addrs) > 0 {
		return x.addresses(six, x.given(x.name, f)), nil
	}
	if !x.affordable(x.name) {
		return x.reply(dns.RcodeRefused), nil
	}
	return nil, func(ctx context.Context) []byte {
		f := x.lookUp(ctx, x.full, x.name, six)
		if f.missing {
			f.missing = x.lookUp(ctx, x.full, x.name, !six).missing
		}
		return x.addresses(six, f)
	}
}

// addresses answers with what was found. missing: there is no such name, whatever the family.
func (x *exchange) addresses(six bool, f found) []byte {
	switch {
	case f.failed:
		return x.reply(dns.RcodeServerFailure)
	case f.missing:
		return x.none(dns.RcodeNameError)
	case len(f.addrs) == 0:
		return x.none(dns.RcodeSuccess)
	}
	ttl := uint32(max(1, min(keepFound, f.until.Sub(x.now()))/time.Second))
	head := dns.RR_Header{Name: x.query.Question[0].Name, Rrtype: x.query.Question[0].Qtype, Class: dns.ClassINET, Ttl: ttl}
	var answers []dns.RR
	for _, a := range f.addrs {
		if six {
			answers = append(answers, &dns.AAAA{Hdr: head, AAAA: a.AsSlice()})
		} else {
			answers = append(answers, &dns.A{Hdr: head, A: a.AsSlice()})
		}
	}
	return x.reply(dns.RcodeSuccess, answers...)
}

// pointer answers for the address in the question's name: with a name that gave it.
func (x *exchange) pointer() []byte {
	a, ok := reversed(x.full)
	if !ok {
		return x.none(dns.RcodeNameError)
	}
	if d := x.Live.Net(policy.NetQuestion{Op: "reverse", Host: a.String()}); !d.Allow {
		x.denied(d)
		return x.none(dns.RcodeNameError)
	}
	name := x.Live.NameOf(a)
	switch {
	case name == "":
		return x.none(dns.RcodeNameError)
	case types[x.query.Question[0].Qtype].how != pointer:
		return x.none(dns.RcodeSuccess)
	}
	head := dns.RR_Header{Name: x.query.Question[0].Name, Rrtype: dns.TypePTR, Class: dns.ClassINET, Ttl: uint32(keepFound / time.Second)}
	return x.reply(dns.RcodeSuccess, &dns.PTR{Hdr: head, Ptr: name + "."})
}

// none is an answer that holds nothing. The SOA record has clients believe it and ask nobody else (RFC 2308).
func (x *exchange) none(rcode int) []byte {
	return x.pack(rcode, nil, &dns.SOA{
		Hdr: dns.RR_Header{Name: ".", Rrtype: dns.TypeSOA, Class: dns.ClassINET, Ttl: soaTime},
		Ns:  "sandbox.invalid.", Mbox: "sandbox.invalid.", Serial: 1, Refresh: soaTime, Retry: soaTime, Expire: soaTime, Minttl: soaTime,
	})
}

func (x *exchange) reply(rcode int, answers ...dns.RR) []byte { return x.pack(rcode, answers, nil) }

func (x *exchange) pack(rcode int, answers []dns.RR, soa *dns.SOA) []byte {
	m := new(dns.Msg)
	m.SetReply(x.query)
	m.RecursionAvailable, m.Compress, m.Answer = true, true, answers
	if soa != nil {
		m.Ns = []dns.RR{soa}
	}
	m.Rcode = rcode
	size := plainSize
	if o := x.query.IsEdns0(); o != nil {
		m.SetEdns0(ednsSize, false)
		size = min(max(int(o.UDPSize()), plainSize), ednsSize)
	}
	if x.stream {
		size = streamSize
	}
	m.Truncate(size)
	data, err := m.Pack()
	if err != nil {
		return nil
	}
	return data
}

func typeName(t uint16) string {
	if name, ok := dns.TypeToString[t]; ok {
		return name
	}
	return dns.Type(t).String()
}

// reversed reads the address out of a name of in-addr.arpa or ip6.arpa.
func reversed(name string) (netip.Addr, bool) {
	if rest, found := strings.CutSuffix(name, ".in-addr.arpa"); found {
		parts := strings.Split(rest, ".")
		if len(parts) != 4 {
			return netip.Addr{}, false
		}
		a, err := netip.ParseAddr(strings.Join([]string{parts[3], parts[2], parts[1], parts[0]}, "."))
		return a, err == nil && a.Is4()
	}
	rest, found := strings.CutSuffix(name, ".ip6.arpa")
	if !found || len(rest) != 63 {
		return netip.Addr{}, false
	}
	var text strings.Builder // the digits stand one by one, the last first
	for i := 62; i >= 0; i -= 2 {
		text.WriteByte(rest[i])
		if i%8 == 0 && i > 0 {
			text.WriteByte(':')
		}
	}
	a, err := netip.ParseAddr(text.String())
	return a, err == nil && a.Is6()
}
