package audit

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func add(set map[string]bool, names []string) {
	for _, n := range names {
		set[n] = true
	}
}

// covered are the functions that the tables know, by every name.
func covered() map[string]bool {
	out := map[string]bool{}
	for _, c := range Calls {
		for _, n := range append([]string{c.Name}, c.Aliases...) {
			out[n] = true
			out[strings.Replace(n, "os.", "posix.", 1)] = true
			out[strings.Replace(n, "signal.", "_signal.", 1)] = true
		}
		for _, s := range c.Shim {
			out[s.Module+"."+s.Attr] = true
		}
	}
	for _, e := range NetEvents {
		add(out, byEvent[e.Event])
	}
	for _, c := range Calls {
		add(out, byEvent[c.Event])
	}
	for _, e := range FileEvents {
		add(out, byEvent[e.Event])
		out[strings.Replace(e.Event, "os.", "posix.", 1)] = true
	}
	for _, s := range FileShims {
		out[s.Module+"."+s.Attr] = true
	}
	return out
}

// byEvent are the C functions behind events that have another name.
var byEvent = map[string][]string{
	"open":                 {"_io.open", "_io.open_code", "builtins.open"},
	"socket.connect":       {"_socket.socket.connect", "_socket.socket.connect_ex"},
	"socket.bind":          {"_socket.socket.bind"},
	"socket.sendto":        {"_socket.socket.sendto"},
	"socket.sendmsg":       {"_socket.socket.sendmsg", "_socket.socket.sendmsg_afalg"},
	"socket.getaddrinfo":   {"_socket.getaddrinfo"},
	"socket.gethostbyname": {"_socket.gethostbyname", "_socket.gethostbyname_ex"},
	"socket.gethostbyaddr": {"_socket.gethostbyaddr"},
	"socket.getnameinfo":   {"_socket.getnameinfo"},
	"pickle.find_class":    {"_pickle.load", "_pickle.loads", "_pickle.Unpickler.load", "_pickle.Unpickler.find_class"},
}

// guardedMethods are those of C types, from the guard's own table.
func guardedMethods(t *testing.T) map[string]bool {
	text, err := os.ReadFile("../../bindings/guard/methods.c")
	require.NoError(t, err)
	out := map[string]bool{}
	for _, m := range regexp.MustCompile(`\{"(\w+)", "(\w+)", "(\w+)", METH_`).FindAllStringSubmatch(string(text), -1) {
		out[m[1]+"."+m[2]+"."+m[3]] = true
	}
	require.NotEmpty(t, out)
	return out
}

// looksSensitive tells by its name a function that may reach files, other processes, the network, memory or code.
var looksSensitive = regexp.MustCompile(`exec|fork|spawn|kill|syscall|ioctl|load|open|unlink|rename|chmod|chown|mount|file|path|` +
	`connect|bind|listen|sendto|sendmsg|resolve|addr|gethost|getname|pointer|ptr|dlsym|mmap|setuid|setgid|frame|hook|eval|compile|` +
	`import|pickle|extension|interp|settime|from_buffer|setstate__|create|decode_cert|settrace|native`).MatchString

// A CPython that adds a module in C, a function to one that is close to the system, or one anywhere whose name looks
// sensitive, fails here until someone has looked at it: it goes into a table, or into testdata/reviewed.txt with the others that
// need no rule. Methods of types count as functions do.
func TestEveryFunctionWasLookedAt(t *testing.T) {
	text, err := os.ReadFile("testdata/reviewed.txt")
	require.NoError(t, err)
	known, methods := covered(), guardedMethods(t)
	reviewed := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		line, _, _ = strings.Cut(line, "#")
		module, names, _ := strings.Cut(line, ":")
		for name := range strings.FieldsSeq(names) {
			full := strings.TrimSpace(module) + "." + name
			assert.False(t, known[full] || methods[full], "%s is in a table and in reviewed.txt", full)
			assert.False(t, reviewed[full], "%s stands twice", full)
			reviewed[full] = true
		}
	}
	used := map[string]bool{}
	for _, python := range interpreters() {
		out, err := exec.Command(python, "-I", "-W", "ignore", "testdata/functions.py").Output()
		require.NoError(t, err)
		require.Greater(t, bytes.Count(out, []byte("\n")), 1500, "functions.py finds too little in %s", python)
		for name := range strings.FieldsSeq(string(out)) {
			module, _, _ := strings.Cut(name, ".")
			last := name[strings.LastIndex(name, ".")+1:]
			switch {
			case known[name] || methods[name]:
			case reviewed[name]:
				used[name] = true
			case reviewed[module+".**"], reviewed[module+".*"] && !looksSensitive(last):
			default:
				assert.Fail(t, "not looked at", "%s of %s is in no table", name, filepath.Base(python))
			}
		}
	}
	if len(interpreters()) == 3 {
		for name := range reviewed {
			assert.True(t, used[name] || strings.HasSuffix(name, "*"), "%s is in reviewed.txt and in no Python", name)
		}
	}
}
