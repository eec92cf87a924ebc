package learn

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pysandboxes/pysandboxes/core/policy"
)

// never is what no run of this test does: no learned profile may allow any of it.
func never(p *project) map[string]func(*policy.Policy) policy.Decision {
	out := map[string]func(*policy.Policy) policy.Decision{}
	for _, path := range []string{
		"/etc/shadow", "/etc/ssh/ssh_host_rsa_key", "/root/.bashrc", "/home/other/x", "/var/log/syslog", "/proc/1/environ", "/proc/self/mem", "/sys/kernel/x", "/usr/bin/env", "/opt/x",
		p.home + "/.ssh/id_rsa", p.home + "/.aws/credentials", p.home + "/.bashrc", p.home + "/notes/x", p.tmp + "/other", p.outside + "/never/x", p.outside + "2/x", p.dir + "/.env", p.dir + "/never/x", p.dir + "/pool",
	} {
		out["read "+path] = func(c *policy.Policy) policy.Decision { return c.File(path, policy.Read, "open") }
	}
	for _, path := range []string{p.profile, p.dir + "/x.py", p.dir + "/never/y", "/etc/passwd", "/usr/lib/x", p.home + "/.profile", p.outside + "/x", "/dev/sda"} {
		out["write "+path] = func(c *policy.Policy) policy.Decision { return c.File(path, policy.Write, "open") }
	}
	for _, q := range []policy.NetQuestion{
		{Op: "connect", Proto: "tcp", Host: "169.254.169.254", Port: 80}, {Op: "connect", Proto: "tcp", Host: "10.0.0.1", Port: 443}, {Op: "connect", Proto: "udp", Host: "192.0.2.1", Port: 443},
		{Op: "connect", Proto: "tcp", Host: "192.0.2.1", Port: 22}, {Op: "connect", Proto: "tcp", Host: "203.0.113.9", Port: 443}, {Op: "bind", Proto: "tcp", Host: "0.0.0.0", Port: 443},
		{Op: "listen", Proto: "tcp", Host: "192.0.2.1", Port: 443}, {Op: "connect", Proto: "unix", Host: "/run/docker.sock"},
	} {
		out[fmt.Sprint(q)] = func(c *policy.Policy) policy.Decision { return c.Net(q) }
	}
	for _, module := range []string{"ctypes", "pickle", "socket2", "os2", "jso", "subprocess"} {
		out["import "+module] = func(c *policy.Policy) policy.Decision { return c.Import(module, "") }
	}
	for _, name := range []string{"os.execv", "ctypes.CDLL", "os.kill", "sys._getframe", "pickle.loads"} {
		out["call "+name] = func(c *policy.Policy) policy.Decision { return c.Call([]string{name}, "") }
	}
	for _, name := range []string{"AWS_SECRET_ACCESS_KEY", "LD_PRELOAD", "HOM"} {
		out["env "+name] = func(c *policy.Policy) policy.Decision { return c.Env(name) }
	}
	return out
}

// pool is what a run may do, each with the question that the learned profile has to allow.
func pool(p *project) map[Observation]func(*policy.Policy) policy.Decision {
	out := map[Observation]func(*policy.Policy) policy.Decision{}
	for i := range 12 {
		for _, folder := range []string{p.dir + "/pool/a", p.dir + "/pool/b/c", p.outside + "/pool", p.dir + "/out", p.home + "/pool/deep"} {
			path := p.file(fmt.Sprintf("%s/%d/f%d", folder, i%3, i))
			for _, isNative := range []bool{false, true} {
				r, w := read(path), wrote(path)
				r.Native, w.Native = isNative, isNative
				out[r] = func(c *policy.Policy) policy.Decision { return c.File(path, policy.Read, "open") }
				out[w] = func(c *policy.Policy) policy.Decision { return c.File(path, policy.Write, "open") }
			}
		}
		q := policy.NetQuestion{Op: "connect", Proto: []string{"tcp", "udp"}[i%2], Host: fmt.Sprintf("192.0.2.%d", i+1), Port: 443 + i}
		out[Observation{Family: FamilyNet, Op: q.Op, Proto: q.Proto, Host: q.Host, Port: q.Port, Native: i%3 == 0}] = func(c *policy.Policy) policy.Decision { return c.Net(q) }
	}
	for _, module := range []string{"json", "os", "socket", "email.mime", "numpy.linalg"} {
		out[Observation{Family: FamilyImport, Op: "import", Subject: module}] = func(c *policy.Policy) policy.Decision { return c.Import(module, "") }
	}
	for _, name := range []string{"os.system", "subprocess.run", "os.fork", "marshal.loads"} {
		out[Observation{Family: FamilyCall, Op: "call", Subject: name}] = func(c *policy.Policy) policy.Decision { return c.Call([]string{name}, "") }
	}
	for _, name := range []string{"HOME", "GREETING"} {
		out[Observation{Family: FamilyEnv, Op: "read", Subject: name}] = func(c *policy.Policy) policy.Decision { return c.Env(name) }
	}
	return out
}

// TestALearnedProfileIsWhatWasSeen: it allows whatever was observed, refuses the fixed list, and has nothing to add after a
// second run.
func TestALearnedProfileIsWhatWasSeen(t *testing.T) {
	for seed := range uint64(40) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			p := newProject(t)
			p.env["GREETING"] = "hi"
			p.resolver = names4test{"api.test": {netip.MustParseAddr("192.0.2.1")}}
			p.file(p.outside + "/unseen/x")
			p.file(p.dir + "/pool/unseen/x")
			all, random := pool(p), rand.New(rand.NewPCG(seed, 1))
			refused := never(p)
			require.GreaterOrEqual(t, len(refused), 50)
			var seen []Observation
			for o := range all {
				if random.IntN(4) == 0 {
					seen = append(seen, o)
				}
			}
			_, err := p.write(p.learn(p.options(), seen...))
			require.NoError(t, err)
			text, err := os.ReadFile(p.profile)
			require.NoError(t, err)
			o := p.options()
			o.Policy = p.compiled(string(text))
			for _, s := range seen {
				assert.True(t, all[s](o.Policy).Allow, "%+v is refused", s)
			}
			for what, ask := range refused {
				assert.False(t, ask(o.Policy).Allow, "%s is allowed", what)
			}
			changed, err := p.write(p.learn(o, seen...))
			require.NoError(t, err)
			assert.False(t, changed, "a second run adds nothing")
		})
	}
}
