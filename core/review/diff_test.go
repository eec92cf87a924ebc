package review

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestDiff(t *testing.T) {
	for _, c := range []struct {
		before, after string
		want          string // effects and rules
		opens         bool
	}{
		{"", "", "", false},
		{"python-import=json\nexpose-ro=./data", "# moved\nexpose-ro={dir}/data # said otherwise\npython-import=json", "", false},
		{"python-import=json", "python-import=json, csv", "wider +python-import=csv", true},
		{"python-import=xml", "python-import=xml, xml.etree", "same +python-import=xml.etree", false},
		{"python-import=json, csv", "python-import=json", "narrower -python-import=csv", false},
		{"python-import=*", "python-import=*, DENY:ctypes", "narrower +python-import=DENY:ctypes", false},
		{"python-import=*, DENY:ctypes", "python-import=*", "wider -python-import=DENY:ctypes", true},
		{"python-import=json, DENY:ctypes", "python-import=json", "same -python-import=DENY:ctypes", false},
		{"expose-ro=./data", "expose-rw=./data", "wider +expose-rw={dir}/data same -expose-ro={dir}/data", true},
		{"expose-rw=./data", "expose-ro=./data", "narrower -expose-rw={dir}/data same +expose-ro={dir}/data", false},
		{"expose-ro=./data", "expose-ro=./data/deep", "narrower -expose-ro={dir}/data same +expose-ro={dir}/data/deep", false},
		{"expose-ro=./data\nignore=*.key", "expose-ro=./data", "wider -ignore=*.key", true},
		{"net=ALLOW|TCP|192.0.2.0/24|443|OUT", "net=ALLOW|TCP|192.0.2.1|443|OUT", "narrower -net=ALLOW|TCP|192.0.2.0/24|443|OUT same +net=ALLOW|TCP|192.0.2.1|443|OUT", false},
		{"net=ALLOW|TCP|*.example.com|443|OUT", "net=ALLOW|TCP|api.example.com|443|OUT", "wider +net=ALLOW|TCP|api.example.com|443|OUT narrower -net=ALLOW|TCP|*.example.com|443|OUT", true},
		{"net=ALLOW|TCP|api.example.com|443|OUT", "net=ALLOW|TCP|*.example.com|443|OUT", "wider +net=ALLOW|TCP|*.example.com|443|OUT narrower -net=ALLOW|TCP|api.example.com|443|OUT", true},
		{"net=ALLOW|TCP|192.0.2.1|443|OUT", "net=allow|tcp|192.0.2.1|443-443|out", "", false},
		{"net=ALLOW|TCP|*|443|OUT\nnet=DENY|*|192.0.2.1|*|*", "net=ALLOW|TCP|*|443|OUT", "wider -net=DENY|*|192.0.2.1|*|*", true},
		{"python-api=ALLOW:process-exec", "python-api=ALLOW:process-exec, ALLOW:os.system", "same +python-api=ALLOW:os.system", false},
		{"python-api=ALLOW:process-exec", "python-api=ALLOW:os.system", "narrower -python-api=ALLOW:process-exec same +python-api=ALLOW:os.system", false},
		{"env=A_B=${A_B}\nunenv=A_*", "env=A_B=${A_B}\nunenv=*", "narrower +unenv=* same -unenv=A_*", false},
		{"", "env=API_KEY=abcdefgh1234", "wider +env=API_KEY=…", true},
		// scalars, with their defaults
		{"", "os-sandbox=subprocess", "wider +os-sandbox=subprocess", true},
		{"os-sandbox=none", "", "narrower -os-sandbox=none", false},
		{"", "os-sandbox=landlock", "changed +os-sandbox=landlock", true},
		{"", "os-sandbox=auto\npy-sandbox=true", "", false},
		{"limit-memory=1GB", "limit-memory=1024MB", "same -limit-memory=1GB +limit-memory=1024MB", false},
		{"limit-cpu=10s", "limit-cpu=1m", "wider -limit-cpu=10s +limit-cpu=1m", true},
		{"limit-cpu=10s", "", "wider -limit-cpu=10s", true},
		{"", "limit-cpu=10s", "narrower +limit-cpu=10s", false},
		{"remote-result-mode=objects", "remote-result-mode=primitives", "narrower -remote-result-mode=objects +remote-result-mode=primitives", false},
		{"learn=false", "", "wider -learn=false", true},
		{"", "learn=x", "wider +learn=x", true},
		{"qemu.cpus=1", "qemu.cpus=2", "changed -qemu.cpus=1 +qemu.cpus=2", true},
	} {
		p := newPlace(t)
		before := p.subject(t, strings.Split(c.before, "\n")...)
		after := p.subject(t, strings.Split(c.after, "\n")...)
		changes := Diff(before, after)
		var got []string
		for _, x := range changes {
			got = append(got, x.Effect.String())
			if x.Old != "" {
				got = append(got, "-"+p.plain(x.Old))
			}
			if x.New != "" {
				got = append(got, "+"+p.plain(x.New))
			}
		}
		assert.Equal(t, c.want, strings.Join(got, " "), "%s\n->\n%s", c.before, c.after)
		assert.Equal(t, c.opens, Opens(changes), "%s\n->\n%s", c.before, c.after)
	}
}
