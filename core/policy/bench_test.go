package policy

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pysandboxes/pysandboxes/core/profile"
)

// large compiles a profile with n rules a family.
func large(b *testing.B, n int) *Policy {
	b.Helper()
	o := profile.Options{Platform: "linux", Home: "/home/u", Cwd: "/srv"}
	for i := range n {
		for key, value := range map[string]string{
			"expose-ro":     fmt.Sprintf("/srv/no/such/folder/%d", i),
			"net":           fmt.Sprintf("ALLOW|TCP|198.51.%d.%d|%d|OUT", i/250, i%250, 1000+i),
			"python-import": fmt.Sprintf("module%d", i),
			"ignore":        fmt.Sprintf([]string{"name%d.key", "*.key%d", "/srv/no/such/%d/*.log", "**/x%d"}[i%4], i),
		} {
			o.Overrides = append(o.Overrides, profile.Override{Key: key, Value: value, Origin: profile.OriginCode})
		}
	}
	p, err := profile.Load(o)
	if err != nil {
		b.Fatal(err)
	}
	pol, _, err := Compile(p, Context{})
	if err != nil {
		b.Fatal(err)
	}
	return pol
}

func BenchmarkDecisions(b *testing.B) {
	for _, n := range []int{10, 10_000} {
		pol := large(b, n)
		last := n - 1
		path := fmt.Sprintf("/srv/no/such/folder/%d/deep/er/file.txt", last)
		module := fmt.Sprintf("module%d.sub", last)
		q := NetQuestion{"connect", "tcp", fmt.Sprintf("198.51.%d.%d", last/250, last%250), 1000 + last}
		for name, decide := range map[string]func() Decision{
			"file":    func() Decision { return pol.File(path, Read, "open") },
			"import":  func() Decision { return pol.Import(module, "") },
			"net":     func() Decision { return pol.Net(q) },
			"refusal": func() Decision { return pol.File("/etc/passwd", Read, "open") },
			"call":    func() Decision { return pol.Call([]string{"os.system"}, "os.system") },
		} {
			b.Run(fmt.Sprintf("%s/%d", name, n), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					decide()
				}
			})
		}
	}
}

// Decisions that allow are the common ones: they allocate nothing.
func TestAllowingDoesNotAllocate(t *testing.T) {
	pol := newWorld(t).policy(t, "expose-ro=/srv", "net=ALLOW|TCP|192.0.2.1|80|OUT", "python-import=json", "python-api=ALLOW:threads", "ignore=*.key")
	names := []string{"_thread.start_new_thread"}
	for name, decide := range map[string]func() Decision{
		"file":   func() Decision { return pol.File("/srv/a/b/c", Read, "open") },
		"import": func() Decision { return pol.Import("json.decoder", "") },
		"net":    func() Decision { return pol.Net(NetQuestion{"connect", "tcp", "192.0.2.1", 80}) },
		"call":   func() Decision { return pol.Call(names, "") },
	} {
		if !decide().Allow {
			t.Fatal(name, "is refused")
		}
		if n := testing.AllocsPerRun(100, func() { decide() }); n != 0 {
			t.Errorf("%s allocates %v times", name, n)
		}
	}
}

// The whole of a start's part in this package: load and compile 10 000 lines.
func BenchmarkLoadAndCompile(b *testing.B) {
	var text strings.Builder
	for i := range 2500 {
		fmt.Fprintf(&text, "expose-ro=/srv/no/such/folder/%d\nnet=ALLOW|TCP|198.51.%d.%d|443|OUT\npython-import=module%d\nenv=NAME_%d=${HOST:-x}\n", i, i/250, i%250, i, i)
	}
	path := filepath.Join(b.TempDir(), profile.Name)
	if err := os.WriteFile(path, []byte(text.String()), 0o600); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		p, err := profile.Load(profile.Options{Path: path, Platform: "linux", Home: "/home/u", Cwd: "/srv"})
		if err != nil {
			b.Fatal(err)
		}
		if _, _, err := Compile(p, Context{}); err != nil {
			b.Fatal(err)
		}
	}
}
