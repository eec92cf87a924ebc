package resolver

import (
	"context"
	"strings"
	"testing"

	"github.com/miekg/dns"
)

// Any bytes are a query. The answer is a message for the same question or none; what no rule allows reaches nobody.
func FuzzQuery(f *testing.F) {
	for name, kind := range map[string]uint16{"api.example.com": dns.TypeA, "x.example.com": dns.TypeAAAA, "evil.example.org": dns.TypeTXT,
		"localhost": dns.TypeA, "8.8.8.8.in-addr.arpa": dns.TypePTR, "db.corp.example": dns.TypeA, ".": dns.TypeANY} {
		m := query(name, kind)
		raw, _ := m.Pack()
		f.Add(raw, false)
		m.SetEdns0(1400, true)
		raw, _ = m.Pack()
		f.Add(raw, true)
	}
	f.Add([]byte("\x00\x01\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\xc0\x0c\x00\x01\x00\x01"), false) // a name that points to itself
	b := newBench(f, everyName...)
	f.Fuzz(func(t *testing.T, raw []byte, stream bool) {
		before := len(b.zone.queries())
		reply := b.Answer(context.Background(), raw, stream)
		for _, asked := range b.zone.queries()[before:] {
			name := strings.TrimSuffix(asked[4:], ".")
			if name != "db" && name != "db.corp.example" && !strings.HasSuffix(name, ".example.com") && !strings.HasSuffix(name, ".example.com.corp.example") {
				t.Fatalf("%q was asked for %q", asked, raw)
			}
		}
		if reply == nil {
			return
		}
		if len(reply) > ednsSize && !stream {
			t.Fatalf("%d bytes by UDP", len(reply))
		}
		var m dns.Msg
		if err := m.Unpack(reply); err != nil {
			t.Fatalf("an answer that cannot be read: %v", err)
		}
		if !m.Response || len(raw) < 2 || m.Id != uint16(raw[0])<<8|uint16(raw[1]) {
			t.Fatalf("not an answer to this query: %v", m)
		}
		b.mu.Lock()
		b.denied, b.notes = nil, nil
		b.mu.Unlock()
		b.zone.mu.Lock()
		b.zone.asked = nil
		b.zone.mu.Unlock()
	})
}
