package review

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Lines that touch each other, and questions around them. The seeds are fixed; a failure names its own.
var pool = []string{
	"expose-ro=./data", "expose-rw=./data/deep", "expose-rw=./out", "expose-ro=./data/deep", "expose-ro=.", "expose-ro=./data/a.key", "expose-ro=/usr/lib/python3.11/json",
	"ignore=*.key", "ignore=deep", "ignore=./out/**/x", "ignore=./nowhere/*",
	"net=ALLOW|TCP|10.0.0.0/8|*|OUT", "net=ALLOW|TCP|10.1.2.3|80,443|OUT", "net=ALLOW|*|*|53-443|*", "net=ALLOW|TCP|@loopback|*|*", "net=ALLOW|TCP|@private|80|OUT",
	"net=ALLOW|TCP|0.0.0.0/0|*|OUT", "net=ALLOW|TCP|api.example.com|443|OUT", "net=ALLOW|TCP|*.example.com|443|OUT", "net=ALLOW|TCP|*.org|*|OUT", "net=ALLOW|TCP|127.0.0.1|80|*", "net=ALLOW|TCP|192.0.2.1|443|OUT", "net=ALLOW|TCP|169.254.169.254|80|OUT", "net=ALLOW|TCP|@link-local|*|OUT",
	"net=DENY|*|@loopback|*|*", "net=DENY|TCP|10.1.0.0/16|80|OUT", "net=DENY|*|@link-local|*|*", "net=DENY|*|*|443|*", "net=DENY|TCP|api.example.com|*|OUT", "net=DENY|*|*.example.com|*|*", "net=DENY|TCP|*.example.org|443|OUT", "net=DENY|*|@metadata|*|*",
	"python-import=json, xml", "python-import=xml.etree", "python-import=*", "python-import=os.path, json.tool", "python-import=DENY:xml", "python-import=DENY:xml.etree.ElementTree", "python-import=DENY:*", "python-import=DENY:csv",
	"python-api=ALLOW:os.system", "python-api=ALLOW:process-exec", "python-api=ALLOW:*", "python-api=ALLOW:subprocess.run", "python-api=ALLOW:dynamic-code", "python-api=ALLOW:builtins.eval", "python-api=ALLOW:threads",
	"python-api=DENY:os.system", "python-api=DENY:process-exec", "python-api=DENY:*", "python-api=DENY:process-control", "python-api=DENY:builtins.exec", "python-api=DENY:threads",
	"env=HOME=${HOME}", "env=A_*=${A_*}", "env=*_KEY=${*_KEY}", "unenv=A_*", "unenv=*_KEY", "unenv=HOME",
}

// asked are questions of every family.
var asked = func() []string {
	var out []string
	for _, path := range []string{"", "/data", "/data/x", "/data/a.key", "/data/deep", "/data/deep/y", "/out", "/out/b/x", "/out/z", "/other", "/nowhere/q"} {
		out = append(out, "open {dir}"+path, "write {dir}"+path, "stat {dir}"+path)
	}
	out = append(out, "open /usr/lib/python3.11/json", "write /usr/lib/python3.11/json")
	for _, host := range []string{"10.1.2.3", "10.9.9.9", "127.0.0.1", "0.0.0.0", "[::1]", "169.254.169.254", "169.254.1.1", "192.0.2.1", "93.184.216.34"} {
		for _, port := range []string{"0", "80", "443", "9000"} {
			out = append(out, "connect "+host+":"+port, "bind "+host+":"+port, "udp "+host+":"+port)
		}
	}
	for _, name := range []string{"json", "json.tool", "xml", "xml.dom", "xml.etree", "xml.etree.ElementTree", "os", "os.path", "csv", "ctypes"} {
		out = append(out, "import "+name)
	}
	for _, name := range []string{"os.system", "os.popen", "subprocess.run", "subprocess.Popen", "subprocess.Popen.send_signal", "os.kill", "_thread.start_new_thread", "marshal.loads"} {
		out = append(out, "call "+name)
	}
	for _, name := range []string{"HOME", "A_KEY", "A_B", "B_KEY", "PATH"} {
		out = append(out, "env "+name)
	}
	return append(out, "eval", "code", "compile", "resolve api.example.com", "resolve other.example.com", "resolve www.example.org", "connect other.example.com:443", "connect api.example.com:443", "connect www.example.org:443")
}()

func (p *place) verdicts(t *testing.T, s Subject) []bool {
	t.Helper()
	var out []bool
	for _, q := range asked {
		v, err := Explain(s, landlock, []string{strings.ReplaceAll(q, "{dir}", p.dir)})
		require.NoError(t, err, q)
		out = append(out, v.Allow)
	}
	return out
}

func randomLines(r *rand.Rand) []string {
	var out []string
	for range r.IntN(12) {
		out = append(out, pool[r.IntN(len(pool))])
	}
	return out
}

func propertyPlace(t *testing.T) *place {
	p := newPlace(t)
	p.env = map[string]string{"HOME": "/h", "A_KEY": "1", "B_KEY": "2", "A_B": "3"}
	return p
}

// A rule that is said to have no effect, or to be said already, may go: no verdict changes.
func TestWhatLintCallsUselessIsUseless(t *testing.T) {
	p := propertyPlace(t)
	found := 0
	for seed := range uint64(150) {
		r := rand.New(rand.NewPCG(seed, 2))
		lines := randomLines(r)
		s := p.subject(t, lines...)
		before := p.verdicts(t, s)
		for _, f := range Lint(s) {
			line := lines[f.Pos.Line-1]
			if f.Kind != KindShadowed && f.Kind != KindDuplicate && f.Kind != KindNever || strings.Contains(line, ",") && !strings.HasPrefix(line, "net") {
				continue // of a list, one item is meant
			}
			found++
			less := append(append([]string{}, lines[:f.Pos.Line-1]...), lines[f.Pos.Line:]...)
			for i, allow := range p.verdicts(t, p.subject(t, less...)) {
				if f.Kind == KindShadowed && (strings.HasPrefix(asked[i], "resolve") || strings.HasPrefix(asked[i], "stat")) {
					continue // a name that may not be reached may be looked up; the folders above what is hidden may be looked at
				}
				if allow != before[i] {
					t.Fatalf("seed %d: without line %d, %s: %s, %q is no longer %v\n%s", seed, f.Pos.Line, f.Line, f.Message, asked[i], before[i], strings.Join(lines, "\n"))
				}
			}
		}
	}
	require.Greater(t, found, 50)
}

// Where no change is said to open anything, nothing is allowed that was not; where all are said to be the same, nothing
// changes at all.
func TestDiffMissesNothing(t *testing.T) {
	p := propertyPlace(t)
	quiet, opened := 0, 0
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 3))
		lines := randomLines(r)
		changed := append([]string{}, lines...)
		for range 1 + r.IntN(2) {
			if len(changed) > 0 && r.IntN(2) == 0 {
				at := r.IntN(len(changed))
				changed = append(changed[:at], changed[at+1:]...)
			} else {
				changed = append(changed, pool[r.IntN(len(pool))])
			}
		}
		before, after := p.subject(t, lines...), p.subject(t, changed...)
		changes := Diff(before, after)
		opens, same := Opens(changes), true
		for _, c := range changes {
			same = same && c.Effect == Same
		}
		was, is := p.verdicts(t, before), p.verdicts(t, after)
		for i := range was {
			about := fmt.Sprintf("seed %d: %q was %v, is %v; diff says %+v\n%s\n->\n%s", seed, asked[i], was[i], is[i], changes, strings.Join(lines, "\n"), strings.Join(changed, "\n"))
			require.False(t, is[i] && !was[i] && !opens, about)
			require.False(t, is[i] != was[i] && same, about)
		}
		if opens {
			opened++
		} else {
			quiet++
		}
	}
	require.Greater(t, quiet, 40)
	require.Greater(t, opened, 40)
}
