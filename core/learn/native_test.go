package learn

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func native(o Observation) Observation {
	o.Native = true
	return o
}

func TestWhatNativeCodeDidIsMarked(t *testing.T) {
	p := newProject(t)
	a, b, c := p.file(p.dir+"/a/1"), p.file(p.dir+"/b/1"), p.file(p.dir+"/c/1")
	tool := p.file(p.outside + "/tool")
	asked := func(op, path, site string) Observation {
		return Observation{Family: FamilyFile, Op: op, Subject: path, Site: site}
	}
	for name, tc := range map[string]struct {
		see  []Observation
		want []string // rule and comment
	}{
		"native alone":                {[]Observation{native(read(a))}, []string{"expose-ro=./a  # seen in native code"}},
		"both, in either order":       {[]Observation{native(read(a)), asked("open", a, "app.py:1"), asked("open", b, "app.py:2"), native(read(b))}, []string{"expose-ro=./a  # app.py:1", "expose-ro=./b  # app.py:2"}},
		"another word for it":         {[]Observation{asked("os.listdir", p.dir+"/a", "app.py:1"), native(did("scandir", p.dir+"/a", false))}, []string{"expose-ro=./a  # app.py:1"}},
		"python only looked":          {[]Observation{asked("os.stat", a, "app.py:1"), native(read(a))}, []string{"expose-ro=./a  # app.py:1"}},
		"python read, native wrote":   {[]Observation{asked("open", a, "app.py:1"), native(wrote(a))}, []string{"expose-rw=./a  # app.py:1"}},
		"beside what python did":      {[]Observation{asked("open", a, "app.py:1"), native(wrote(c))}, []string{"expose-ro=./a  # app.py:1", "expose-rw=./c  # seen in native code"}},
		"a program, by python":        {[]Observation{asked("exec", tool, "app.py:1"), native(did("exec", tool, false))}, []string{"expose-ro=" + tool + "  # program that is run; app.py:1"}},
		"a program, by another":       {[]Observation{native(did("exec", tool, false))}, []string{"expose-ro=" + tool + "  # program that is run; seen in native code"}},
		"a compiled module's folder":  {[]Observation{native(wrote(p.dir + "/a/__pycache__/m.pyc.1"))}, nil},
		"passed by the import system": {[]Observation{native(did("scandir", p.outside, false))}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			r := New(p.options())
			r.Passed(p.outside, false)
			for _, o := range tc.see {
				r.Add(o)
			}
			var got []string
			for _, l := range r.Result().Lines {
				if line, _ := written(l); l.Line != "" {
					got = append(got, line)
				}
			}
			assert.ElementsMatch(t, tc.want, got)
		})
	}
}

func TestNativeConnections(t *testing.T) {
	p := newProject(t)
	p.resolver = names4test{"api.test": {netip.MustParseAddr("192.0.2.7")}, "two.test": {netip.MustParseAddr("192.0.2.7")}}
	socket := func(op, proto, host string, port int) Observation {
		return Observation{Family: FamilyNet, Op: op, Proto: proto, Host: host, Port: port}
	}
	look := func(host string, port int) Observation {
		return Observation{Family: FamilyNet, Op: "resolve", Host: host, Port: port}
	}
	api := "net=ALLOW|TCP|api.test|443|OUT"
	for name, tc := range map[string]struct {
		see  []Observation
		want []string
	}{
		"alone":                      {[]Observation{native(socket("connect", "tcp", "192.0.2.9", 80))}, []string{"net=ALLOW|TCP|192.0.2.9|80|OUT"}},
		"by a name that it asked":    {[]Observation{native(look("api.test", 0)), native(socket("connect", "tcp", "192.0.2.7", 443))}, []string{api}},
		"both":                       {[]Observation{look("api.test", 443), socket("connect", "tcp", "192.0.2.7", 443), native(socket("connect", "tcp", "192.0.2.7", 443))}, []string{api}},
		"which way to each address":  {[]Observation{look("api.test", 443), native(socket("connect", "udp", "192.0.2.8", 443)), socket("connect", "tcp", "192.0.2.7", 443)}, []string{api}},
		"the same in native code":    {[]Observation{native(look("api.test", 0)), native(socket("connect", "udp", "192.0.2.7", 443)), native(socket("connect", "udp", "192.0.2.7", 0)), native(socket("connect", "tcp", "192.0.2.7", 443))}, []string{api}},
		"datagrams of its own":       {[]Observation{native(socket("connect", "udp", "192.0.2.9", 8125))}, []string{"net=ALLOW|UDP|192.0.2.9|8125|OUT"}},
		"python by a name":           {[]Observation{socket("connect", "tcp", "db.test", 5432), native(socket("connect", "tcp", "192.0.2.9", 5432))}, []string{"net=ALLOW|TCP|db.test|5432|OUT"}},
		"the name service":           {[]Observation{native(socket("connect", "unix", "/run/systemd/userdb/io.systemd.Multiplexer", 0)), native(socket("connect", "unix", "/var/run/nscd/socket", 0))}, nil},
		"two names of one address":   {[]Observation{look("api.test", 443), look("two.test", 443), socket("connect", "tcp", "192.0.2.7", 443)}, []string{api, "net=ALLOW|TCP|two.test|443|OUT"}},
		"two names, two ports":       {[]Observation{look("api.test", 443), look("two.test", 80), socket("connect", "tcp", "192.0.2.7", 443), socket("connect", "tcp", "192.0.2.7", 80)}, []string{api, "net=ALLOW|TCP|two.test|80|OUT"}},
		"a name for no port":         {[]Observation{look("api.test", 443), look("two.test", 0), socket("connect", "tcp", "192.0.2.7", 443)}, []string{api, "net=ALLOW|TCP|two.test|443|OUT"}},
		"any port of every address":  {[]Observation{native(socket("bind", "udp", "0.0.0.0", 0))}, nil},
		"a server in native code":    {[]Observation{native(socket("bind", "tcp", "127.0.0.1", 8000)), native(socket("listen", "tcp", "127.0.0.1", 8000))}, []string{"net=ALLOW|TCP|127.0.0.1|8000|IN"}},
		"the loopback of two worlds": {[]Observation{socket("connect", "tcp", "127.0.0.1", 80), native(socket("connect", "tcp", "::1", 80))}, []string{"net=ALLOW|TCP|127.0.0.1|80|OUT", "net=ALLOW|TCP|::1|80|OUT"}},
	} {
		t.Run(name, func(t *testing.T) {
			rules, notes := lines(p.learn(p.options(), tc.see...))
			assert.ElementsMatch(t, tc.want, rules)
			assert.Empty(t, notes)
		})
	}
}

func TestProgramsThatNativeCodeStartsByItself(t *testing.T) {
	p := newProject(t)
	tool := native(did("exec", p.file(p.outside+"/tool"), false))
	_, notes := lines(p.learn(p.options(), tool))
	require.Len(t, notes, 1)
	assert.Contains(t, notes[0], "native code starts "+p.outside+"/tool")
	_, notes = lines(p.learn(p.options(), tool, Observation{Family: FamilyCall, Op: "call", Subject: "subprocess.run"}))
	assert.Empty(t, notes)
	o := p.options()
	o.Policy = p.compiled("python-api=ALLOW:process-exec\n")
	_, notes = lines(p.learn(o, tool))
	assert.Empty(t, notes)
}
