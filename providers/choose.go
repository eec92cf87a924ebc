package providers

import (
	"fmt"
	"strings"

	"github.com/pysandboxes/pysandboxes/core/nearest"
	"github.com/pysandboxes/pysandboxes/providers/landlock"
	"github.com/pysandboxes/pysandboxes/providers/none"
	"github.com/pysandboxes/pysandboxes/providers/subprocess"
)

// known are the providers, the one that auto prefers first. Only those with a kernel boundary are auto's.
var known = []struct {
	Provider
	auto bool
}{
	{landlock.Provider{}, true},
	{subprocess.Provider{}, false},
	{none.Provider{}, false},
}

// Names lists what os-sandbox= accepts.
func Names() []string {
	names := []string{"auto"}
	for _, k := range known {
		names = append(names, k.Name())
	}
	return names
}

// Reports probes every provider, for the doctor.
func Reports() []Report {
	var all []Report
	for _, k := range known {
		all = append(all, k.Probe())
	}
	return all
}

// Choose finds the provider that os-sandbox= names. auto never falls to a provider without a kernel boundary by
// itself. The notices are to be shown at the start: what a provider that the user named does not hold at all.
func Choose(name string) (Provider, []string, error) {
	if name == "" || name == "auto" {
		return automatic()
	}
	for _, k := range known {
		if k.Name() != name {
			continue
		}
		r := k.Probe()
		if !r.Usable {
			return nil, nil, fmt.Errorf("os-sandbox=%s does not work here: %s. %s", name, r.Why, r.How)
		}
		if !k.Holds().Files {
			return k.Provider, r.Gaps, nil
		}
		return k.Provider, nil, nil
	}
	hint := ""
	if n := nearest.Word(name, Names()); n != "" {
		hint = fmt.Sprintf("; did you mean %s?", n)
	}
	return nil, nil, fmt.Errorf("os-sandbox=%s: there is no such provider (%s)%s", name, strings.Join(Names(), ", "), hint)
}

func automatic() (Provider, []string, error) {
	var missing []string
	for _, k := range known {
		if !k.auto {
			continue
		}
		r := k.Probe()
		if r.Usable {
			return k.Provider, nil, nil
		}
		missing = append(missing, fmt.Sprintf("%s: %s. %s", r.Name, r.Why, r.How))
	}
	return nil, nil, fmt.Errorf("no provider with a kernel boundary works here:\n  %s\nTo run with the Python layer alone, which native code can step around, add:\n    os-sandbox=subprocess", strings.Join(missing, "\n  "))
}
