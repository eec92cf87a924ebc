package policy

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Random profiles of lines that touch each other, and questions around them. The seeds are fixed; a failure names its own.

var allowLines = []string{
	"expose-ro=./a", "expose-rw=./a/b", "expose-ro=./a/b/c.txt", "expose-rw=./d", "expose-ro=.", "expose-ro=./a/b/new",
	"net=ALLOW|TCP|10.0.0.0/8|*|OUT", "net=ALLOW|TCP|10.1.2.3|80,443|OUT", "net=ALLOW|*|*|53-443|*", "net=ALLOW|TCP|@loopback|*|*", "net=ALLOW|TCP|@private|80|OUT",
	"net=ALLOW|TCP|0.0.0.0/0|*|OUT", "net=ALLOW|TCP|api.example.com|443|OUT", "net=ALLOW|TCP|*.example.com|80|OUT", "net=ALLOW|UDP|::1|*|IN", "net=ALLOW|TCP|169.254.169.254|80|OUT",
	"python-import=json, xml", "python-import=xml.etree", "python-import=*", "python-import=os.path",
	"python-api=ALLOW:os.system", "python-api=ALLOW:process-exec", "python-api=ALLOW:*", "python-api=ALLOW:subprocess.Popen", "python-api=ALLOW:subprocess.run", "python-api=ALLOW:dynamic-code", "python-api=ALLOW:builtins.eval",
	"env=HOME=${HOME}", "env=A_*=${A_*}", "env=*_KEY=${*_KEY}",
}

var denyLines = []string{
	"ignore=*.txt", "ignore=b", "ignore=./a/**/c.txt", "ignore=./d",
	"net=DENY|*|@loopback|*|*", "net=DENY|TCP|10.1.0.0/16|80|OUT", "net=DENY|*|*|443|*", "net=DENY|*|@link-local|*|*", "net=DENY|TCP|api.example.com|*|OUT", "net=DENY|TCP|*.example.com|443|OUT", "net=DENY|*|*.api.example.com|*|*",
	"python-import=DENY:xml", "python-import=DENY:xml.etree.ElementTree", "python-import=DENY:*",
	"python-api=DENY:os.system", "python-api=DENY:process-exec", "python-api=DENY:*", "python-api=DENY:subprocess.run", "python-api=DENY:subprocess.Popen", "python-api=DENY:process-control", "python-api=DENY:builtins.eval",
	"unenv=A_*", "unenv=*_KEY", "unenv=HOME",
}

// verdicts asks everything and writes the answers down, a letter each.
func verdicts(w *world, p *Policy) string {
	var b strings.Builder
	say := func(d Decision) {
		if d.Allow {
			b.WriteByte('+')
		} else {
			b.WriteByte('-')
		}
	}
	for _, path := range []string{"", "a", "a/x", "a/b", "a/b/c.txt", "a/b/new/x", "a/e/c.txt", "d", "d/y.txt", "d/y", "elsewhere", ".py-sandboxes"} {
		for _, access := range []Access{Read, Write} {
			say(p.File(filepath.Join(w.dir, path), access, "open"))
		}
		say(p.File(filepath.Join(w.dir, path), Read, "os.stat"))
	}
	for _, host := range []string{"10.1.2.3", "10.9.9.9", "127.0.0.1", "0.0.0.0", "::1", "169.254.169.254", "192.0.2.1", "93.184.216.34", "::ffff:10.1.2.3", "fe80::1"} {
		for _, op := range []string{"connect", "bind", "sendto", "reverse"} {
			for _, port := range []int{0, 80, 443} {
				proto := "tcp"
				if op == "sendto" {
					proto = "udp"
				}
				say(p.Net(NetQuestion{op, proto, host, port}))
			}
		}
	}
	for _, host := range []string{"api.example.com", "other.example.com", "v1.api.example.com", "example.com", "localhost"} {
		say(p.Net(NetQuestion{"resolve", "tcp", host, 443}))
		say(p.Net(NetQuestion{"connect", "tcp", host, 443}))
	}
	for _, name := range []string{"json", "json.tool", "xml", "xml.etree", "xml.etree.ElementTree", "xml.dom", "os", "os.path", "ctypes"} {
		say(p.Import(name, ""))
	}
	for _, names := range []string{"os.system", "subprocess.run>subprocess.Popen", "subprocess.Popen", "subprocess.Popen.kill", "os.kill", "builtins.eval", "no.such"} {
		say(p.Call(strings.Split(names, ">"), ""))
	}
	say(p.Eval("eval"))
	say(p.Eval("exec"))
	for _, name := range []string{"HOME", "A_KEY", "A_B", "B_KEY", "PATH"} {
		say(p.Env(name))
	}
	return b.String()
}

func propertyWorld(t *testing.T) *world {
	w := newWorld(t)
	w.env = map[string]string{"HOME": "/h", "A_KEY": "1", "B_KEY": "2", "A_B": "3"}
	w.resolver["api.example.com"] = []string{"192.0.2.1"}
	w.file(t, "a/b/c.txt", "")
	w.file(t, "d/y.txt", "")
	return w
}

// some picks lines of a pool.
func some(r *rand.Rand, pool []string, atMost int) []string {
	var out []string
	for range r.IntN(atMost + 1) {
		out = append(out, pool[r.IntN(len(pool))])
	}
	return out
}

// properties runs a property on many random profiles.
func properties(t *testing.T, runs uint64, property func(r *rand.Rand, w *world, lines []string) error) {
	w := propertyWorld(t)
	for seed := range runs {
		r := rand.New(rand.NewPCG(seed, 1))
		lines := append(some(r, allowLines, 20), some(r, denyLines, 3)...)
		if err := property(r, w, lines); err != nil {
			t.Fatalf("seed %d: %v\nprofile:\n%s", seed, err, strings.Join(lines, "\n"))
		}
	}
}

func TestTheOrderOfLinesChangesNoVerdict(t *testing.T) {
	properties(t, 200, func(r *rand.Rand, w *world, lines []string) error {
		before := verdicts(w, w.policy(t, lines...))
		shuffled := slices.Clone(lines)
		r.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
		return same(before, verdicts(w, w.policy(t, shuffled...)), "after shuffling")
	})
}

func TestMoreDenyNeverAllowsAndMoreAllowNeverRefuses(t *testing.T) {
	allowed, asked := 0, 0
	properties(t, 40, func(_ *rand.Rand, w *world, lines []string) error {
		before := verdicts(w, w.policy(t, lines...))
		allowed += strings.Count(before, "+")
		asked += len(before)
		for _, c := range []struct {
			pool []string
			no   byte // a verdict that must not turn into the other
		}{{denyLines, '-'}, {allowLines, '+'}} {
			for _, line := range c.pool {
				after := verdicts(w, w.policy(t, append(slices.Clone(lines), line)...))
				for i := range before {
					if before[i] == c.no && after[i] != c.no {
						return fmt.Errorf("question %d was %c, and is %c with the line %s", i, before[i], after[i], line)
					}
				}
			}
		}
		return nil
	})
	require.Greater(t, allowed*10, asked*2, "too few allowed verdicts to prove anything: %d of %d", allowed, asked)
}

func TestAnIncludeIsEqualToItsLines(t *testing.T) {
	properties(t, 200, func(r *rand.Rand, w *world, lines []string) error {
		before := verdicts(w, w.policy(t, lines...))
		var main, included []string
		for _, line := range lines {
			if r.IntN(2) == 0 {
				main = append(main, line)
			} else {
				included = append(included, line)
			}
		}
		w.file(t, "included", strings.Join(included, "\n")+"\n")
		main = slices.Insert(main, r.IntN(len(main)+1), `include "./included"`)
		return same(before, verdicts(w, w.policy(t, main...)), "with an include")
	})
}

func same(a, b, when string) error {
	for i := range a {
		if a[i] != b[i] {
			return fmt.Errorf("question %d was %c, %s it is %c", i, a[i], when, b[i])
		}
	}
	return nil
}
