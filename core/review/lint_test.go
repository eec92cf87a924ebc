package review

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/pysandboxes/pysandboxes/core/profile"
)

func TestLint(t *testing.T) {
	for _, c := range []struct{ lines, want string }{ // findings as line:grade[kind] rule
		{"", ""},
		// shadowed
		{"python-import=json\npython-import=DENY:json", "1:error[shadowed] python-import=json"},
		{"python-import=xml.etree, DENY:xml", "1:error[shadowed] python-import=xml.etree"},
		{"python-import=json, DENY:*", "1:error[shadowed] python-import=json"},
		{"python-api=ALLOW:os.system\npython-api=DENY:posix.system", "1:error[shadowed] python-api=ALLOW:os.system"},
		{"python-api=ALLOW:threads, DENY:threads", "1:error[shadowed] python-api=ALLOW:threads"},
		{"net=ALLOW|TCP|127.0.0.1|80|OUT\nnet=DENY|*|@loopback|*|*", "1:error[shadowed] net=ALLOW|TCP|127.0.0.1|80|OUT"},
		{"net=ALLOW|TCP|10.1.0.0/16|80|OUT\nnet=DENY|*|10.0.0.0/8|1-100|OUT", "1:error[shadowed] net=ALLOW|TCP|10.1.0.0/16|80|OUT"},
		{"env=A_B=1\nunenv=A_*", "1:error[shadowed] env=A_B=1"},
		{"expose-ro=./data\nignore=data", "1:error[shadowed] expose-ro={dir}/data"},
		// a DENY of less takes nothing away from the rule as a whole
		{"python-import=xml, DENY:xml.dom", ""},
		{"python-api=DENY:process-exec, ALLOW:os.system", ""},
		{"net=ALLOW|TCP|api.example.com|80,443|OUT\nnet=DENY|*|192.0.2.1|80|OUT", ""},
		{"expose-ro=./data\nignore=*.key", ""},
		// duplicate
		{"python-import=json, csv\npython-import=json", "2:warning[duplicate] python-import=json"},
		{"python-import=xml\npython-import=xml.etree", "2:warning[duplicate] python-import=xml.etree"},
		{"python-api=ALLOW:threads\npython-api=ALLOW:_thread.start_new_thread", "2:warning[duplicate] python-api=ALLOW:_thread.start_new_thread"},
		{"net=ALLOW|TCP|api.example.com|443|OUT\nnet=allow|tcp|API.example.com.|443|out", "2:warning[duplicate] net=ALLOW|TCP|api.example.com|443|OUT"},
		{"net=ALLOW|TCP|192.0.2.0/24|1-99|OUT\nnet=ALLOW|TCP|192.0.2.7|80|OUT", "2:warning[duplicate] net=ALLOW|TCP|192.0.2.7|80|OUT"},
		{"net=ALLOW|TCP|192.0.2.7|80|OUT\nnet=ALLOW|UDP|192.0.2.7|80|OUT", ""},
		{"net=ALLOW|TCP|*.example.com|443|OUT\nnet=ALLOW|TCP|*.a.example.com|443|OUT", "2:warning[duplicate] net=ALLOW|TCP|*.a.example.com|443|OUT"},
		{"net=ALLOW|TCP|*.example.com|443|OUT\nnet=ALLOW|TCP|api.example.com|443|OUT", ""}, // its address is known at once, and it costs no budget
		{"net=ALLOW|TCP|*.example.com|443|OUT\nnet=ALLOW|TCP|api.example.com|80|OUT", ""},
		{"net=ALLOW|TCP|api.example.com|443|OUT\nnet=DENY|*|*.example.com|*|*", "1:error[shadowed] net=ALLOW|TCP|api.example.com|443|OUT"},
		{"expose-ro=./data\nexpose-ro={dir}/data", "2:warning[duplicate] expose-ro={dir}/data"},
		{"expose-ro=./data\nexpose-ro=./data/deep", "2:warning[duplicate] expose-ro={dir}/data/deep"},
		{"expose-ro=./data\nexpose-rw=./data/deep", ""},
		{"expose-ro=/usr/lib/python3.11/json", "1:note[duplicate] expose-ro=/usr/lib/python3.11/json"},
		{"ignore=a\nexpose-ro=./data\nignore=a", "3:warning[duplicate] ignore=a"},
		{"env=A=1\nenv=A=1", "2:warning[duplicate] env=A=1"},
		// never matching
		{"expose-ro=./data\nignore=./out/*.key", "2:warning[never] ignore=./out/*.key"},
		{"ignore=./data/x", "1:warning[never] ignore=./data/x"},
		{"unenv=FOO", "1:note[never] unenv=FOO"},
		{"env=FOO_*=${FOO_*}\nunenv=*_TOKEN", ""},
		{"python-import=json, DENY:xml", "1:note[never] python-import=DENY:xml"},
		{"python-api=DENY:os.system", "1:note[never] python-api=DENY:os.system"},
		{"net=DENY|TCP|192.0.2.1|80|OUT", "1:note[never] net=DENY|TCP|192.0.2.1|80|OUT"},
		{"net=DENY|*|@metadata|*|*\nnet=DENY|*|@private|*|OUT", ""},
		{"env=A=$HOME/x", "1:warning[never] env=A=$HOME/x"},
		{"env=A=${HOME}/$USER", "1:warning[never] env=A=${HOME}/$USER"},
		{"env=A='$HOME'", ""},
		{"env=A=${LANG}", ""},
		{"env=A=a$", ""},
		{"env=A=$5", ""},
		{"include \"./nothing\"", "1:warning[never] include \"./nothing\""},
		{"include \"./.local.py-sandboxes\"", ""}, // every new profile has it
		// over-wide
		{"expose-ro=/", "1:warning[over-wide] expose-ro=/"},
		{"expose-rw=~", "1:warning[over-wide] expose-rw={dir}/home"},
		{"python-import=*", "1:warning[over-wide] python-import=*"},
		{"python-api=ALLOW:*", "1:warning[over-wide] python-api=ALLOW:*"},
		{"python-api=ALLOW:native", "1:warning[over-wide] python-api=ALLOW:native"},
		{"python-api=ALLOW:threads", ""},
		{"net=ALLOW|TCP|*|443|OUT", "1:warning[over-wide] net=ALLOW|TCP|*|443|OUT"},
		{"net=ALLOW|TCP|*.com|443|OUT", "1:warning[over-wide] net=ALLOW|TCP|*.com|443|OUT"},
		{"net=ALLOW|TCP|*.example.com|443|OUT", ""},
		{"net=ALLOW|TCP|@private|443|OUT", "1:warning[over-wide] net=ALLOW|TCP|@private|443|OUT"},
		{"net=ALLOW|TCP|169.254.169.254|80|OUT", "1:warning[over-wide] net=ALLOW|TCP|169.254.169.254|80|OUT"},
		{"net=ALLOW|TCP|32.0.0.0/3|443|OUT", "1:warning[over-wide] net=ALLOW|TCP|32.0.0.0/3|443|OUT"},
		{"env=*=${*}", "1:warning[over-wide] env=*=${*}"},
		// secret-looking
		{"env=API_KEY=abcdefgh1234", "1:error[secret] env=API_KEY=…"},
		{"env=DB=postgres://me:hunter2@db/x", "1:error[secret] env=DB=…"},
		{"env=X=${X:-sk-abcdefghijklmnopqrst}", "1:error[secret] env=X=…"},
		{"env=API_KEY=${API_KEY}\nenv=MODE=production-mode", ""},
		{"expose-ro=~/.ssh", "1:warning[over-wide] expose-ro={dir}/home/.ssh"},
		{"expose-ro=./data/.env", "1:warning[secret] expose-ro={dir}/data/.env"},
		// layers taken away
		{"py-sandbox=false", "1:warning[weak] py-sandbox=false"},
		{"os-sandbox=subprocess", "1:warning[weak] os-sandbox=subprocess"},
		{"learn=./learned", "1:error[weak] learn=./learned"},
		{"learn=false", ""},
		{"ignore-best-effort=true", "1:note[weak] ignore-best-effort=true"},
	} {
		p := newPlace(t)
		var got []string
		for _, f := range Lint(p.subject(t, strings.Split(c.lines, "\n")...)) {
			got = append(got, fmt.Sprintf("%d:%s[%s] %s", f.Pos.Line, f.Grade, f.Kind, p.plain(f.Line)))
			assert.NotEmpty(t, f.Message)
		}
		assert.Equal(t, c.want, strings.Join(got, "\n"), "profile:\n%s", c.lines)
	}
}

func TestLintOfSecretsDoesNotRepeatThem(t *testing.T) {
	p := newPlace(t)
	for _, f := range Lint(p.subject(t, "env=API_KEY=abcdefgh1234", "env=API_KEY=abcdefgh1234", "unenv=API_*")) {
		assert.NotContains(t, f.Line+f.Message+f.Hint, "abcdefgh")
	}
}

func TestTheTemplateIsClean(t *testing.T) {
	p := newPlace(t)
	assert.Empty(t, Lint(p.subject(t, profile.Template())))
}

func TestScalarsOfIncludesAreHiddenByTheFile(t *testing.T) {
	p := newPlace(t)
	p.subject(t, "limit-cpu=1s")
	write(t, p.dir+"/inc", "limit-cpu=2s\n")
	found := Lint(p.subject(t, "limit-cpu=3s", `include "./inc"`))
	if assert.Len(t, found, 1) {
		assert.Equal(t, Note, found[0].Grade)
		assert.Contains(t, found[0].Message, "limit-cpu=3s")
	}
}
