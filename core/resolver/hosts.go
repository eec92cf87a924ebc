package resolver

import (
	"net/netip"
	"os"
	"strings"

	"github.com/pysandboxes/pysandboxes/core/policy"
)

const hostsFile = "/etc/hosts"

// GiveListed makes the addresses reachable that /etc/hosts has for names below the domains of rules: the C library in a
// sandbox reads that file itself, and asks nobody.
func GiveListed(l *policy.Live) {
	if len(l.Policy().DomainRules()) == 0 {
		return
	}
	text, err := os.ReadFile(hostsFile)
	if err != nil {
		return // nor can the sandbox read it
	}
	giveListed(l, string(text))
}

func giveListed(l *policy.Live, text string) {
	addrs := map[string][]netip.Addr{}
	var order []string
	for line := range strings.Lines(text) {
		line, _, _ = strings.Cut(line, "#")
		fields := strings.Fields(line)
		if len(fields) < 2 {
			continue
		}
		a, err := netip.ParseAddr(fields[0])
		if err != nil {
			continue
		}
		for _, name := range fields[1:] {
			name = canonical(name)
			if l.Policy().BelowDomain(name) == "" || !l.Policy().LookUp(name).Allow {
				continue
			}
			if addrs[name] == nil {
				order = append(order, name)
			}
			addrs[name] = append(addrs[name], a)
		}
	}
	for _, name := range order {
		l.Given(name, addrs[name])
	}
}
