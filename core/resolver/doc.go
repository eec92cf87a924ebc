// Package resolver answers a sandbox's DNS queries: addresses of the names that some rule allows, and nothing else.
//
//	r := resolver.New(resolver.Config{Live: live, System: resolver.ReadSystem(), Denied: record})
//	at, err := r.Listen()       // by UDP and TCP, where the broker leads the sandbox's look-ups to
//	reply := r.Answer(ctx, query, false)
//	r.Close()
//
// A name that no rule allows is answered at once, recorded, and goes nowhere: DNS is no way out. What is allowed is looked
// up by the host's own resolver over its own rules (/etc/hosts, nsswitch, its servers); only A and AAAA, and the addresses
// that a name gave become reachable by the rules of the name ([policy.Live]).
//
// Answers hold the real addresses, not some of a private range that stand for names: what the program logs, compares and
// passes on is what a bare one sees, the sandbox's own socket is connected to it where there is no namespace, and a
// decision by address costs no more for it (BenchmarkAnswer and policy.BenchmarkLive). The price is that names which share an
// address share what may be reached there.
//
// Every byte of a query is the sandbox's. Messages are read by github.com/miekg/dns in goroutines that recover, which is
// why its server is not used; memory, look-ups at a time and connections are bounded.
package resolver
