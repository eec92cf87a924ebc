package review

import (
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/pysandboxes/pysandboxes/core/audit"
	"github.com/pysandboxes/pysandboxes/core/nearest"
	"github.com/pysandboxes/pysandboxes/core/policy"
)

// Question is one form of question: its word, what follows, how the policy is asked, and what would refuse it.
type Question struct {
	Word, Argument string
	Example        string
	ask            func(s Subject, argument string) (policy.Decision, error)
	refuse         func(s Subject, d policy.Decision, argument string) string // a line that would refuse what is allowed
}

// Questions is the table of them.
var Questions = []Question{
	{"open", "PATH", "open /etc/passwd", file(policy.Read, "open"), hide},
	{"read", "PATH", "read ./data/a.csv", file(policy.Read, "open"), hide},
	{"write", "PATH", "write ./x", file(policy.Write, "open"), hide},
	{"list", "PATH", "list ./data", file(policy.Read, "os.listdir"), hide},
	{"stat", "PATH", "stat /etc", file(policy.Read, "os.stat"), hide},
	{"connect", "HOST:PORT", "connect api.example.com:443", network("connect", "tcp"), denyNet},
	{"udp", "HOST:PORT", "udp 10.0.0.1:53", network("sendto", "udp"), denyNet},
	{"sendto", "HOST:PORT", "sendto 10.0.0.1:53", network("sendto", "udp"), denyNet},
	{"bind", "HOST:PORT", "bind 127.0.0.1:8000", network("bind", "tcp"), denyNet},
	{"listen", "HOST:PORT", "listen 127.0.0.1:8000", network("listen", "tcp"), denyNet},
	{"resolve", "HOST", "resolve api.example.com", func(s Subject, host string) (policy.Decision, error) {
		return s.Policy.Net(policy.NetQuestion{Op: "resolve", Proto: "tcp", Host: host}), nil
	}, nil},
	{"unix", "PATH", "unix /run/x.sock", func(s Subject, path string) (policy.Decision, error) {
		return s.Policy.Net(policy.NetQuestion{Op: "connect", Proto: "unix", Host: canonical(s, path)}), nil
	}, nil},
	{"import", "NAME", "import json", func(s Subject, name string) (policy.Decision, error) {
		return s.Policy.Import(name, ""), nil
	}, func(_ Subject, _ policy.Decision, name string) string { return "python-import=DENY:" + name }},
	{"call", "FUNCTION", "call os.system", call, func(_ Subject, _ policy.Decision, name string) string {
		return "python-api=DENY:" + canonicalCall(name)
	}},
	{"env", "NAME", "env HOME", variable, func(_ Subject, _ policy.Decision, name string) string { return "unenv=" + name }},
	{"eval", "", "eval", evaluation("eval"), denyEval},
	{"exec", "", "exec", evaluation("eval"), denyEval}, // of a string, which one event stands for with eval
	{"code", "", "code", evaluation("exec"), denyEval}, // a code object run by exec or eval
	{"compile", "", "compile", evaluation("compile"), denyEval},
}

// Forms are the questions as a reader writes them.
func Forms() []string {
	var out []string
	for _, q := range Questions {
		out = append(out, strings.TrimSpace(q.Word+" "+q.Argument))
	}
	return out
}

// parse reads a question; words may be given as one text or one by one, a path may hold blanks.
func parse(words []string) (Question, string, error) {
	text := strings.TrimSpace(strings.Join(words, " "))
	word, argument, _ := strings.Cut(text, " ")
	argument = strings.TrimSpace(argument)
	var names []string
	for _, q := range Questions {
		names = append(names, q.Word)
		if !strings.EqualFold(q.Word, word) {
			continue
		}
		switch {
		case q.Argument != "" && argument == "":
			return q, "", fmt.Errorf("the question %q needs %s, as in %q", q.Word, q.Argument, q.Example)
		case q.Argument == "" && argument != "":
			return q, "", fmt.Errorf("the question %q stands alone; %q is too much", q.Word, argument)
		case strings.ContainsRune(argument, 0):
			return q, "", fmt.Errorf("a NUL byte is part of no question")
		}
		return q, argument, nil
	}
	hint := ""
	if near := nearest.Word(word, names); near != "" {
		hint = fmt.Sprintf(" Did you mean %s?", near)
	}
	return Question{}, "", fmt.Errorf("%q is no question.%s There are: %s", word, hint, strings.Join(Forms(), ", "))
}

func file(access policy.Access, op string) func(Subject, string) (policy.Decision, error) {
	return func(s Subject, path string) (policy.Decision, error) {
		return s.Policy.File(canonical(s, path), access, op), nil
	}
}

// canonical resolves a path as enforcement does: `~`, the working directory, links; what does not exist keeps its name
// in its folder.
func canonical(s Subject, path string) string {
	if policy.OfAsker(path) {
		return filepath.Clean(path)
	}
	if path == "~" || strings.HasPrefix(path, "~/") {
		path = s.Profile.Home + path[1:]
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(s.Profile.Cwd, path)
	}
	path = filepath.Clean(path)
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	if path == "/" {
		return path
	}
	return filepath.Join(canonical(s, filepath.Dir(path)), filepath.Base(path))
}

// network asks about an address, or about a name as a program would: by looking it up first.
func network(op, proto string) func(Subject, string) (policy.Decision, error) {
	return func(s Subject, argument string) (policy.Decision, error) {
		host, port, err := net.SplitHostPort(argument)
		if err != nil {
			return policy.Decision{}, fmt.Errorf("%q is not HOST:PORT (an IPv6 address stands in brackets)", argument)
		}
		number, err := strconv.ParseUint(port, 10, 16)
		if err != nil {
			return policy.Decision{}, fmt.Errorf("%q is not a port from 0 to 65535", port)
		}
		q := policy.NetQuestion{Op: op, Proto: proto, Host: host, Port: int(number)}
		if address, ok := policy.Address(host); ok { // in any spelling that connect() takes for one
			q.Host = address.String()
		}
		if host == "" || q.Host != host || net.ParseIP(host) != nil {
			return s.Policy.Net(q), nil
		}
		lookup := s.Policy.Net(policy.NetQuestion{Op: "resolve", Proto: proto, Host: host, Port: int(number)})
		if !lookup.Allow {
			return lookup, nil
		}
		addresses := s.Policy.Pinned(host)
		if len(addresses) == 0 {
			d := s.Policy.PublicName(q)
			if d.Allow {
				d.Note = s.Policy.NoAddress(host)
			}
			return d, nil
		}
		var d policy.Decision
		for _, a := range addresses {
			q.Host = a.String()
			if d = s.Policy.Net(q); !d.Allow {
				break
			}
		}
		return d, nil
	}
}

func call(s Subject, name string) (policy.Decision, error) {
	if _, known := audit.Lookup(name); !known && isCategory(name) {
		return policy.Decision{}, fmt.Errorf("%s is a category; ask about a function of it", name)
	} else if near := audit.Nearest(name); !known && near != "" {
		return policy.Decision{}, fmt.Errorf("%s is not a sensitive function: no rule is needed to call it. Did you mean %s?", name, near)
	} else if !known {
		return policy.Decision{Allow: true, Family: "call", Op: "call", Subject: name,
			Note: "It is no sensitive function; what it opens, connects to or calls itself is judged there."}, nil
	}
	return s.Policy.Call([]string{name}, ""), nil
}

// variable asks about a variable. What a rule hands on may not be there to be handed on.
func variable(s Subject, name string) (policy.Decision, error) {
	d := s.Policy.Env(name)
	has := func(entry string) bool { return strings.HasPrefix(entry, name+"=") }
	if d.Allow && !slices.ContainsFunc(s.Policy.Environ(), has) {
		d.Note = "The rule hands it on, but what it reads is not set here: the program starts without " + name + "."
	}
	return d, nil
}

func evaluation(kind string) func(Subject, string) (policy.Decision, error) {
	return func(s Subject, _ string) (policy.Decision, error) { return s.Policy.Eval(kind), nil }
}

func denyEval(_ Subject, d policy.Decision, _ string) string {
	return "python-api=DENY:builtins." + d.Op
}

func hide(s Subject, _ policy.Decision, path string) string {
	return "ignore=" + quoted(canonical(s, path))
}

func denyNet(_ Subject, d policy.Decision, argument string) string {
	_, port, _ := net.SplitHostPort(argument)
	proto, dir := "TCP", "OUT"
	switch d.Op {
	case "sendto":
		proto = "UDP"
	case "bind", "listen":
		dir = "IN"
	}
	return "net=DENY|" + proto + "|" + d.Subject + "|" + port + "|" + dir
}
