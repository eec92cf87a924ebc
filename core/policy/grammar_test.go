package policy

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pysandboxes/pysandboxes/core/profile"
)

// grammar holds every form of a profile with one line that is taken and one that is refused, and what the refusal says.
// Lines of one cell are divided by a newline.
var grammar = []struct{ form, taken, refused, says string }{
	// the line itself
	{"comment, whole line", "# anything = at all", "#\x01", "control character"},
	{"comment after a value", "expose-ro=/usr # why", "expose-ro= # why", "needs a value"},
	{"# inside of quotes", `expose-ro="/a # b"`, `expose-ro="/a # b`, "quote is not closed"},
	{"key=value", "python-import=json", "python-import json", "this is not a rule"},
	{"unknown key", "unenv=A", "unnev=A", "Did you mean unenv?"},
	{"quoted value", `expose-ro="/usr"`, `expose-ro="/usr" x`, "unexpected text after the closing quote"},
	{"UTF-8", "expose-ro=/ü", "expose-ro=/\xfc", "not valid UTF-8"},
	{"key of a guarded profile", "eval-call:calc=len", "eval-call:=len", "unknown key"},
	// includes
	{"include", `include "./absent"`, "include", "the path to include is missing"},
	{"include, bare name and ~", "include absent\ninclude ~/absent", "include=absent", "include takes a path"},
	{"include, missing is ignored", `include "/no/such/file"`, `include "/dev/null"`, "is a device"},
	{"include-platform", `include-platform=linux "absent"`, `include-platform=beos "absent"`, "unknown platform"},
	// substitution
	{"${VAR}", "env=A=${NOT_SET}", "expose-ro=${NOT_SET}", "the variable NOT_SET is not set"},
	{"${VAR:-default}", "expose-ro=${NOT_SET:-/usr}", "expose-ro=${NOT_SET:-/usr", "is not closed"},
	{"nested defaults", "expose-ro=${NOT_SET:-${NOR:-/usr}}", "expose-ro=${NOT_SET:-${NOR:-/usr}", "is not closed"},
	{"a default that names itself", "expose-ro=${NOT_SET:-${NOT_SET:-/usr}}", "expose-ro=${NOT_SET:-${NOT_SET}}", "NOT_SET is not set"},
	{"${PREFIX_*}", "env=APP_*=${APP_*}", "expose-ro=${APP_*}", "for env rules only"},
	// environment
	{"env=NAME=value", "env=A=b", "env=A", "needs a value"},
	{"env=NAME=${HOST}", "env=A=${HOME}", "env=A=${HOME", "is not closed"},
	{"env=*_KEY=${*_KEY}", "env=*_KEY=${*_KEY}", "env=*_K_*=${*_KEY}", "one * in the name"},
	{"a pattern takes one ${}", "env=X_*=${Y_*}", "env=X_*=1", "exactly one ${}"},
	{"a tie on two values", "env=A=1\nenv=A=1", "env=A=1\nenv=A=2", "different values"},
	{"unenv=NAME or pattern", "unenv=A\nunenv=*_TOKEN", "unenv=*_A_*", "one *"},
	// files
	{"expose-ro=SRC", "expose-ro=/usr", "expose-ro=", "needs a value"},
	{"expose-ro=SRC,DEST", "expose-ro=/usr,/srv/usr", "expose-ro=/usr,srv", "not a plain absolute path"},
	{"expose-rw=SRC", "expose-rw=./out", "expose-rw=~other/out", "another user"},
	{"expose-rw=SRC,DEST", "expose-rw=./out,/srv/out", "expose-rw=./out,/srv/out,/x", "a source and a destination at most"},
	{"ignore=basename", "ignore=*.key", "ignore=[", "cannot be used"},
	{"ignore=path glob", "ignore=./data/**/*.key", "ignore=/a/*/../b", ".. after a wildcard"},
	// network
	{"action in any case", "net=deny|TCP|1.2.3.4|80|OUT", "net=REFUSE|TCP|1.2.3.4|80|OUT", "unknown action"},
	{"PROTOCOL tcp udp icmp *", "net=ALLOW|tcp|1.2.3.4|1|OUT\nnet=ALLOW|UDP|1.2.3.4|1|OUT\nnet=ALLOW|Icmp|1.2.3.4|*|OUT\nnet=ALLOW|*|1.2.3.4|1|OUT", "net=ALLOW|SCTP|1.2.3.4|80|OUT", "unknown protocol"},
	{"NETWORK ip", "net=ALLOW|TCP|1.2.3.4|80|OUT\nnet=ALLOW|TCP|2001:db8::1|80|OUT", "net=ALLOW|TCP|1.2.3.4.5|80|OUT\nnet=ALLOW|TCP|1.2.3|80|OUT", "unusual spelling"},
	{"NETWORK cidr", "net=ALLOW|TCP|10.0.0.0/8|80|OUT", "net=ALLOW|TCP|10.0.0.1/8|80|OUT", "bits set behind its prefix"},
	{"NETWORK host name", "net=ALLOW|TCP|api.example.com|80|OUT", "net=ALLOW|TCP|api..example|80|OUT", "not an address"},
	{"NETWORK *.domain", "net=ALLOW|TCP|*.example.com|80|OUT", "net=ALLOW|TCP|*.example..com|80|OUT", "not the name of a domain"},
	{"NETWORK *", "net=ALLOW|TCP|*|80|OUT", "net=ALLOW|TCP||80|OUT", "not an address"},
	{"named sets", "net=ALLOW|TCP|@private|80|OUT\nnet=ALLOW|TCP|@loopback|80|*\nnet=ALLOW|TCP|@link-local|80|OUT\nnet=DENY|*|@metadata|*|*", "net=ALLOW|TCP|@localhost|80|OUT", "unknown set"},
	{"PORTS n, a-b, lists, *, 0", "net=ALLOW|TCP|1.2.3.4|80|OUT\nnet=ALLOW|TCP|1.2.3.4|8000-8010|OUT\nnet=ALLOW|TCP|1.2.3.4|80,443,1-2|OUT\nnet=ALLOW|TCP|1.2.3.4|*|OUT\nnet=ALLOW|TCP|127.0.0.1|0|IN", "net=ALLOW|TCP|1.2.3.4|80-|OUT", "not a port"},
	{"DIRECTION IN OUT *", "net=ALLOW|TCP|1.2.3.4|80|in\nnet=ALLOW|TCP|1.2.3.4|80|*", "net=ALLOW|TCP|1.2.3.4|80|BOTH", "unknown direction"},
	{"five fields", "net=ALLOW|TCP|1.2.3.4|80|OUT", "net=ALLOW|1.2.3.4|80|OUT", "five fields"},
	{"an ALLOW that cannot be looked up waits", "net=ALLOW|TCP|gone.example.com|80|OUT", "net=DENY|TCP|gone.example.com|80|OUT", "DENY would refuse nothing"},
	// imports
	{"python-import=a, b.c", "python-import=json, xml.etree", "python-import=json, xml..etree", "not the name of a module"},
	{"python-import=*", "python-import=*", "python-import=xml.*", "a star too many"},
	{"python-import=DENY:x", "python-import=*, deny:ctypes", "python-import=REFUSE:ctypes", "unknown action"},
	{"python-import, the empty set", "python-import=", "python-import=,.", "not the name of a module"},
	{"a module that this interpreter lacks", "python-import=no_such_module", "python-import=no such module", "not the name of a module"},
	// calls
	{"python-api=ALLOW:function", "python-api=ALLOW:os.system", "python-api=ALLOW:os.sistem", "Did you mean os.system?"},
	{"python-api=ALLOW:category", "python-api=allow:threads", "python-api=ALLOW:thread", "Did you mean threads?"},
	{"python-api=ALLOW:*", "python-api=ALLOW:*", "python-api=*", "needs an action"},
	{"python-api=DENY:target", "python-api=DENY:native, DENY:os.system", "python-api=DENY:", "no supported Python"},
	{"a function of another version", "python-api=ALLOW:spwd.getspnam", "python-api=ALLOW:spwd.getspnamm", "Did you mean spwd.getspnam?"},
	// strings
	{"eval-syntax", "eval-syntax=arith, compare", "eval-syntax=", "needs a value"},
	{"eval-call", "eval-call=len", "eval-cal=len", "Did you mean eval-call?"},
	{"eval-attribute", "eval-attribute=str-methods", "eval-attribute=", "needs a value"},
	{"eval-import", "eval-import=math", "eval-import=", "needs a value"},
	{"eval-magic", "eval-magic=__len__", "eval-magic=", "needs a value"},
	{"eval-namespace", "eval-namespace=closed", "eval-namespace=close", "Did you mean closed?"},
	{"eval-timeout", "eval-timeout=5s", "eval-timeout=5 parsecs", "is not a value"},
	{"eval-max-iterations", "eval-max-iterations=1_000", "eval-max-iterations=1__0", "is not a value"},
	{"eval-max-call-depth", "eval-max-call-depth=20", "eval-max-call-depth=-1", "is not a value"},
	{"eval-max-depth", "eval-max-depth=20", "eval-max-depth=x", "is not a value"},
	{"eval-max-nodes", "eval-max-nodes=5_000", "eval-max-nodes=5k", "is not a value"},
	{"eval-max-alloc", "eval-max-alloc=10MB", "eval-max-alloc=10XB", "is not a value"},
	{"eval-max-leaked-threads", "eval-max-leaked-threads=0", "eval-max-leaked-threads=", "is not a value"},
	// results
	{"remote-result-mode", "remote-result-mode=primitives", "remote-result-mode=object", "Did you mean objects?"},
	{"remote-result-guard", "remote-result-guard=TRUE", "remote-result-guard=on", "is not a value"},
	// switches
	{"py-sandbox", "py-sandbox=false", "py-sandbox=0", "is not a value"},
	{"os-sandbox", "os-sandbox=${OS_SANDBOX:-auto}", "os-sandbox=docker", "is not a value"},
	{"learn=FILE", "learn=./learned", "learn=true", "Name the file to learn into"},
	{"learn=false", "learn=false", "learn=", "needs a value"},
	{"ignore-best-effort", "ignore-best-effort=true", "ignore-best-effort=maybe", "is not a value"},
	{"port, of older profiles", "port=8080\nport=9", "prot=8080", "Did you mean port?"},
	{"a scalar stands once in a file", "limit-cpu=1s", "limit-cpu=1s\nlimit-cpu=1s", "limit-cpu is set twice"},
	// limits
	{"limit-memory", "limit-memory=512MB", "limit-memory=0", "nothing to run with"},
	{"limit-cpu", "limit-cpu=1.5s", "limit-cpu=0s", "nothing to run with"},
	{"limit-processes", "limit-processes=16", "limit-processes=1.5", "is not a value"},
	{"limit-open-files", "limit-open-files=256", "limit-open-files=many", "is not a value"},
	{"limit-result", "limit-result=1GB", "limit-result=9999999999999GB", "is not a value"},
	{"call-timeout", "call-timeout=250ms", "call-timeout=soon", "is not a value"},
	// providers
	{"provider.key of a fixed list", "qemu.cpus=2", "qemu.cpu=2", "Did you mean qemu.cpus?"},
	{"bwrap takes any key", "bwrap.hostname=x", "bwrap.=x", "unknown key"},
	{"a provider without keys", "unshare.net=slirp", "landlock.net=x", "unknown key"},
}

func TestGrammar(t *testing.T) {
	for _, g := range grammar {
		t.Run(g.form, func(t *testing.T) {
			w := newWorld(t)
			w.resolver["api.example.com"] = []string{"192.0.2.1"}
			w.resolver["example.com"] = []string{"192.0.2.2"}
			_, err := w.try(t, strings.Split(g.taken, "\n")...)
			require.NoError(t, err, g.taken)
			_, err = w.try(t, strings.Split(g.refused, "\n")...)
			require.Error(t, err, g.refused)
			assert.ErrorContains(t, err, g.says, g.refused)
			assert.ErrorContains(t, err, w.dir+"/.py-sandboxes:", "every error has its place")
		})
	}
}

// The table above speaks of every key, and what the table of keys shows as an example is taken.
func TestGrammarIsComplete(t *testing.T) {
	spoken := map[string]bool{}
	for _, g := range grammar {
		for _, line := range strings.Split(g.taken, "\n") {
			key, _, _ := strings.Cut(line, "=")
			spoken[strings.TrimSpace(key)] = true
		}
	}
	for _, k := range profile.Keys {
		assert.True(t, spoken[k.Name], "no row of the grammar takes %s", k.Name)
		assert.NotEmpty(t, k.Meaning, k.Name)
		if k.Example == "" {
			continue
		}
		w := newWorld(t)
		w.env["LANG"] = "C"
		w.resolver["api.example.com"] = []string{"192.0.2.1"}
		_, err := w.try(t, k.Example)
		assert.NoError(t, err, k.Example)
	}
}

func TestProviderKeys(t *testing.T) {
	wrong := map[profile.Kind]string{profile.Bool: "maybe", profile.Choice: "maybe", profile.Count: "many", profile.Size: "large", profile.Duration: "soon"}
	for _, k := range profile.ProviderKeys {
		taken, _, _ := strings.Cut(k.Grammar, " or ")
		_, err := newWorld(t).try(t, taken)
		assert.NoError(t, err, taken)
		value, checked := wrong[k.Kind]
		if !checked && k.EmptyOK {
			continue // the provider's program reads it
		}
		_, err = newWorld(t).try(t, k.Name+"="+value)
		assert.Error(t, err, "%s=%s", k.Name, value)
	}
}
