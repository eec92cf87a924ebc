package unpickle

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// p is a stream of protocol 5 without frames.
func p(parts ...string) []byte { return []byte("\x80\x05" + strings.Join(parts, "") + ".") }

// text, lookup and long are instructions.
func text(s string) string           { return "\x8c" + string(rune(len(s))) + s }
func lookup(module, n string) string { return text(module) + text(n) + "\x93" }

func long(bits int) string {
	b := make([]byte, bits/8+1)
	b[bits/8] = 1
	return "\x8b" + string(binary.LittleEndian.AppendUint32(nil, uint32(len(b)))) + string(b)
}

func TestRefusals(t *testing.T) {
	tests := []struct {
		name   string
		data   []byte
		mode   Mode
		typ    string
		path   string
		add    string
		reason string
	}{
		{"class in a list in a dict", p("}(", text("rows"), "](K\x01K\x02K\x03", lookup("app.models", "User"), "eu"), DataOnly, "app.models.User", "result['rows'][3]", "remote-result-mode=objects", "does not let through"},
		{"after a batch", p("](", strings.Repeat("N", 5), "e(N", lookup("a", "B"), "e"), DataOnly, "a.B", "result[6]", "remote-result-mode=objects", ""},
		{"second value of a dict", p("}(", text("a"), "K\x01K\x07", lookup("a", "B"), "u"), DataOnly, "a.B", "result[7]", "", ""},
		{"single item", p("}", text("k"), "]", lookup("a", "B"), "as"), DataOnly, "a.B", "result['k'][0]", "", ""},
		{"in a tuple", p("]((K\x01", lookup("a", "B"), "te"), DataOnly, "a.B", "result[0][1]", "", ""},
		{"key that is a class", p("}(", lookup("a", "B"), "K\x01u"), DataOnly, "a.B", "result.keys()", "", ""},
		{"builtin class as data", p("]", lookup("builtins", "int"), "a"), DataOnly, "the class or function builtins.int", "result[0]", "remote-result-mode=objects", ""},
		{"builtin class alone", p(lookup("builtins", "range")), DataOnly, "the class or function builtins.range", "result", "", ""},
		{"class in a tuple", p(lookup("builtins", "int"), "\x85"), DataOnly, "the class or function builtins.int", "result[0]", "", ""},
		{"getattr of a path", p(lookup("builtins", "getattr"), lookup("pathlib", "PosixPath"), text("unlink"), "\x86R"), DataOnly, "a call of builtins.getattr", "result", "", "CPython does not dump"},
		{"getattr of another name", p(lookup("builtins", "getattr"), lookup("zoneinfo", "ZoneInfo"), text("__init__"), "\x86R"), DataOnly, "a call of builtins.getattr", "result", "", ""},
		{"getattr result as data", p(lookup("builtins", "getattr"), lookup("zoneinfo", "ZoneInfo"), text("_unpickle"), "\x86R"), DataOnly, "the class or function builtins.getattr", "result", "", ""},
		{"Fraction from text", p(lookup("fractions", "Fraction"), text("1e99999999"), "\x85R"), DataOnly, "a call of fractions.Fraction", "result", "", ""},
		{"Fraction over zero", p(lookup("fractions", "Fraction"), "K\x01K\x00\x86R"), DataOnly, "a call of fractions.Fraction", "result", "", ""},
		{"Fraction by BUILD", p(lookup("fractions", "Fraction"), "K\x01K\x02\x86R}", text("x"), "K\x01sb"), DataOnly, "a Fraction", "result", "", "with a state"},
		{"NEWOBJ of a Fraction", p(lookup("fractions", "Fraction"), ")\x81"), DataOnly, "the class or function fractions.Fraction", "result", "", ""},
		{"UUID out of range", p(lookup("uuid", "UUID"), ")\x81}", text("int"), long(128), "sb"), DataOnly, "a uuid.UUID", "result", "", ""},
		{"UUID with more state", p(lookup("uuid", "UUID"), ")\x81}(", text("int"), "K\x01", text("hex"), "K\x01ub"), DataOnly, "a uuid.UUID", "result", "", ""},
		{"UUID without state", p(lookup("uuid", "UUID"), ")\x81"), DataOnly, "an unfinished UUID", "result", "", ""},
		{"date of day 30 in February", p(lookup("datetime", "date"), "C\x04\x07\xe4\x02\x1e\x85R"), DataOnly, "a call of datetime.date", "result", "", ""},
		{"date of year 0", p(lookup("datetime", "date"), "C\x04\x00\x00\x02\x01\x85R"), DataOnly, "a call of datetime.date", "result", "", ""},
		{"time of 24 o'clock", p(lookup("datetime", "time"), "C\x06\x18\x00\x00\x00\x00\x00\x85R"), DataOnly, "a call of datetime.time", "result", "", ""},
		{"timezone of a day", p(lookup("datetime", "timezone"), lookup("datetime", "timedelta"), "K\x01K\x00K\x00\x87R\x85R"), DataOnly, "a call of datetime.timezone", "result", "", ""},
		{"range with step 0", p(lookup("builtins", "range"), "K\x01K\x01K\x00\x87R"), DataOnly, "a call of builtins.range", "result", "", ""},
		{"path of a list", p(lookup("pathlib", "PosixPath"), "]\x85R"), DataOnly, "a call of pathlib.PosixPath", "result", "", ""},
		{"hidden zone key", p(lookup("builtins", "getattr"), lookup("zoneinfo", "ZoneInfo"), text("_unpickle"), "\x86R", text("../etc/passwd"), "K\x01\x86R"), DataOnly, "", "", "", ""},
		{"network with host bits", p(lookup("ipaddress", "IPv4Network"), text("10.0.0.1/8"), "\x85R"), DataOnly, "a call of ipaddress.IPv4Network", "result", "", ""},
		{"defaultdict of a class of ours", p(lookup("collections", "defaultdict"), lookup("collections", "deque"), "\x85R"), DataOnly, "a call of collections.defaultdict", "result", "", ""},
		{"Decimal with underscores", p(lookup("decimal", "Decimal"), text("1_0"), "\x85R"), DataOnly, "a call of decimal.Decimal", "result", "", ""},
		{"list as a key", p("}(]K\x01u"), DataOnly, "a list", "result.keys()", "", "it has no hash"},
		{"list within a key", p("}(]\x85K\x01u"), DataOnly, "a tuple", "result.keys()", "", "it has no hash"},
		{"dict in a set", p("\x8f(}\x90"), DataOnly, "a dict", "result{…}", "", ""},
		{"cycle", p("]\x94h\x00a"), DataOnly, "part of a cycle", "result[0]", "", "cannot cross"},
		{"cycle through a dict", p("}\x94", text("k"), "]h\x00as"), DataOnly, "part of a cycle", "result", "", ""},
		{"change after a reference", p("](]\x94h\x00h\x00K\x01ae"), DataOnly, "part of a cycle", "", "", ""},
		{"bytearray in primitives", p("\x96\x00\x00\x00\x00\x00\x00\x00\x00"), Primitives, "a bytearray", "result", "remote-result-mode=data-only", ""},
		{"date in primitives", p("]", lookup("datetime", "date"), "C\x04\x07\xe4\x02\x01\x85Ra"), Primitives, "datetime.date", "result[0]", "remote-result-mode=data-only", ""},
		{"exception as data", p("]", lookup("builtins", "ValueError"), ")Ra"), DataOnly, "builtins.ValueError", "result[0]", "remote-result-mode=objects", ""},
		{"hostile name", p(lookup("a\x1b[31m", "b\n'c")), DataOnly, `a\x1b[31m.b\n\'c`, "result", "", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			err := Validate(tt.data, tt.mode, true, Limits{})
			require.Error(t, err)
			var refused *RefusedError
			if tt.typ == "" {
				return
			}
			require.ErrorAs(t, err, &refused)
			require.Equal(t, tt.typ, refused.Type)
			if tt.path != "" {
				require.Equal(t, tt.path, refused.Path)
			}
			if tt.add != "" {
				require.Equal(t, tt.add, refused.Add)
				require.True(t, strings.HasSuffix(err.Error(), tt.add), err)
			}
			require.Contains(t, refused.Reason, tt.reason)
		})
	}
}

func TestMalformed(t *testing.T) {
	tests := map[string][]byte{
		"empty":                      {},
		"protocol 0":                 []byte("I1\n."),
		"protocol 1":                 []byte("\x80\x01K\x01."),
		"protocol 6":                 []byte("\x80\x06K\x01."),
		"no STOP":                    []byte("\x80\x05N"),
		"nothing":                    p(),
		"two values":                 p("NN"),
		"bytes after STOP":           append(p("N"), 'x'),
		"mark left":                  p("N("),
		"cut text":                   []byte("\x80\x05\x8c\x09ab"),
		"cut int":                    []byte("\x80\x05J\x01"),
		"cut bytes":                  []byte("\x80\x05\x8e\xff\xff\xff\xff\xff\xff\xff\x7fab"),
		"bytes beyond 64 bits":       []byte("\x80\x05\x8e\xff\xff\xff\xff\xff\xff\xff\xffab."),
		"frame of 2^62":              []byte("\x80\x05\x95\x00\x00\x00\x00\x00\x00\x00\x40N."),
		"frame in a frame":           []byte("\x80\x05\x95\x0b\x00\x00\x00\x00\x00\x00\x00\x95\x00\x00\x00\x00\x00\x00\x00\x00N."),
		"text that is not UTF-8":     p("\x8c\x01\xff"),
		"text of half a surrogate":   p("\x8c\x02\xed\xa0"),
		"PROTO again":                p("\x80\x05N"),
		"unknown memo":               p("h\x00"),
		"memo of nothing":            p("\x94N"),
		"memo of a mark":             p("](\x94e"),
		"memo out of order":          p("Nq\x05"),
		"GLOBAL":                     p("cos\nsystem\n"),
		"INST":                       p("(ios\nsystem\n"),
		"OBJ":                        p("(o"),
		"DUP":                        p("N2\x86"),
		"EXT1":                       p("\x82\x01"),
		"PERSID":                     p("Pabc\n"),
		"BINPERSID":                  p("NQ"),
		"NEXT_BUFFER":                p("\x97"),
		"opcode 0xff":                p("\xff"),
		"STACK_GLOBAL of numbers":    p("K\x01K\x02\x93"),
		"STACK_GLOBAL below a mark":  p(text("os"), "(", text("system"), "\x93"),
		"APPEND to nothing":          p("Na"),
		"APPEND to a number":         p("K\x01Na"),
		"APPEND below a mark":        p("](Na"),
		"APPENDS without a mark":     p("]Ne"),
		"SETITEM to a list":          p("]NNs"),
		"SETITEMS of three":          p("}(NNNu"),
		"ADDITEMS to a list":         p("](N\x90"),
		"SETITEM to a Counter":       p(lookup("collections", "Counter"), "}\x85RNNs"),
		"TUPLE without a mark":       p("t"),
		"TUPLE2 of one":              p("N\x86"),
		"REDUCE with a number":       p(lookup("builtins", "range"), "K\x01R"),
		"REDUCE without a tuple":     p(lookup("builtins", "range"), "]R"),
		"LONG4 of a negative length": p("\x8b\xff\xff\xff\xff"),
	}
	for name, data := range tests {
		t.Run(name, func(t *testing.T) {
			for _, mode := range []Mode{Primitives, DataOnly, Objects} {
				err := Validate(data, mode, false, Limits{})
				require.Error(t, err, mode)
			}
		})
	}
	require.ErrorContains(t, Validate(p("N"), "everything", true, Limits{}), `no such mode "everything"`)
}

// Attacks on the time or memory of the parent end at a budget, fast.
func TestBudgets(t *testing.T) {
	dag := func(levels int) string {
		s := "N\x85\x94"
		for i := range levels {
			s += fmt.Sprintf("h%ch%c\x86\x94", i, i)
		}
		return s
	}
	tests := []struct {
		name   string
		data   []byte
		limits Limits
		want   string
	}{
		{"bytes", p("N"), Limits{Bytes: 3}, "4 bytes long"},
		{"instructions", p("(NNNNNNt"), Limits{Opcodes: 5}, "too many instructions"},
		{"stack", p("(" + strings.Repeat("N", 100) + "t"), Limits{Stack: 50}, "too wide"},
		{"memo", p("N\x94\x94\x94"), Limits{Memo: 2}, "too many memo entries"},
		{"lists", p("](" + strings.Repeat("]", 100) + "e"), Limits{Nodes: 50}, "too many containers"},
		{"sets", p("](" + strings.Repeat("\x8f", 20) + "e"), Limits{Nodes: 50}, "too many containers"},
		{"deques", p("](" + lookup("collections", "deque") + ")R\x94" + lookup("collections", "deque") + "\x94" + strings.Repeat("h\x01)R", 5) + "e"), Limits{Nodes: 50}, "too many containers"},
		{"depth of lists", p(strings.Repeat("]", 2000) + strings.Repeat("a", 1999)), Limits{}, "nested too deeply"},
		{"depth of tuples", p("N" + strings.Repeat("\x85", 300_000)), Limits{}, "nested too deeply"},
		{"depth of marks", p(strings.Repeat("(", 100_000)), Limits{}, "nested too deeply"},
		{"bits", p(long(1 << 21)), Limits{}, "an integer of 2097160 bits"},
		{"digits", p(lookup("decimal", "Decimal"), "X\x80\x1a\x06\x00", strings.Repeat("1", 400_000), "\x85R"), Limits{}, "a call of decimal.Decimal"},
		{"key that expands", p(dag(60), "K\x01}h\x3cK\x01s\x87"), Limits{}, "too long to hash"},
		{"chain as a key", p("}N" + strings.Repeat("\x85", 300_000) + "Ns"), Limits{}, "nested too deeply"},
		{"ints of one hash", p("\x8f(" + func() string {
			var b strings.Builder
			for i := range 20_000 { // multiples of 2^61-1, all of hash 0
				v := make([]byte, 12)
				hi, lo := mul(uint64(i+1), hashMod)
				binary.LittleEndian.PutUint64(v, lo)
				binary.LittleEndian.PutUint32(v[8:], uint32(hi))
				b.WriteString("\x8a\x0c" + string(v))
			}
			return b.String()
		}() + "\x90"), Limits{}, "too long to hash"},
		{"keys whose hash could be aimed", p("\x8f(" + lookup("builtins", "range") + "\x94K\x01K\x02K\x03\x87R" + func() string {
			var b strings.Builder
			for i := range 20_000 {
				b.WriteString("h\x00M" + string(binary.LittleEndian.AppendUint16(nil, uint16(i))) + "K\x01K\x01\x87R")
			}
			return b.String()
		}() + "\x90"), Limits{}, "too long to hash"},
		{"big fractions", p("](" + lookup("fractions", "Fraction") + "\x94" + long(60_000) + "\x94" + long(59_000) + "\x94\x86R" + strings.Repeat("h\x00h\x01h\x02\x86R", 4000) + "e"), Limits{HashWork: 1_000_000}, "fractions.Fraction"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			err := Validate(tt.data, DataOnly, true, tt.limits)
			require.ErrorContains(t, err, tt.want)
		})
	}
}

// A short limit-result leaves room for small containers.
func TestManySmallContainers(t *testing.T) {
	pairs := p("](" + strings.Repeat("K\x01K\x02\x86\x94", 160_000) + "e")
	require.NoError(t, Validate(pairs, DataOnly, true, Limits{Bytes: 1_000_000}))
	require.NoError(t, Validate(p("]("+strings.Repeat("]", 60_000)+"e"), DataOnly, true, Limits{Bytes: 70_000}))
	require.ErrorContains(t, Validate(p("]("+strings.Repeat("]", 300_000)+"e"), DataOnly, true, Limits{Bytes: 1_000_000}), "limit of 250000 of them")
}

func mul(a, b uint64) (hi, lo uint64) {
	hi, lo = 0, a*b
	const mask = 1<<32 - 1
	t := (a>>32)*(b&mask) + ((a&mask)*(b&mask))>>32
	w := t&mask + (a&mask)*(b>>32)
	return (a>>32)*(b>>32) + t>>32 + w>>32, lo
}

func TestObjects(t *testing.T) {
	object := p(lookup("app", "User"), ")\x81}(", text("name"), text("x"), text("tags"), "]ub")
	require.NoError(t, Validate(object, Objects, true, Limits{}))
	tests := []struct {
		name   string
		data   []byte
		path   string
		reason string
	}{
		{"os.system", p(lookup("os", "system"), text("id"), "\x85R"), "result", "runs programs"},
		{"posix.system", p(lookup("posix", "system"), text("id"), "\x85R"), "result", "runs programs"},
		{"eval", p(lookup("builtins", "eval"), text("1"), "\x85R"), "result", "runs code"},
		{"getattr", p(lookup("builtins", "getattr"), lookup("app", "User"), text("x"), "\x86R"), "result", "reaches any attribute"},
		{"dotted through a module", p(lookup("app.models", "os.system")), "result", "walks through os"},
		{"dotted dunder", p(lookup("app", "User.__init__.__globals__")), "result", "dunder"},
		{"submodule", p(lookup("multiprocessing.util", "_exithandler")), "result", "runs programs"},
		{"partial", p(lookup("functools", "partial")), "result", "calls what the stream chooses"},
		{"call of what the stream made", p(lookup("app", "f"), ")R)R"), "result", "itself made"},
		{"in an attribute", p(lookup("app", "User"), ")\x81}(", text("name"), text("x"), text("owner"), lookup("os", "system"), "ub"), "result.owner", "runs programs"},
		{"in an attribute in a list", p("}", text("rows"), "](K\x01", lookup("app", "User"), ")\x81}", text("owner"), lookup("os", "system"), "sbes"), "result['rows'][1].owner", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			err := Validate(tt.data, Objects, true, Limits{})
			var refused *RefusedError
			require.ErrorAs(t, err, &refused)
			require.Equal(t, tt.path, refused.Path)
			require.Contains(t, refused.Reason, tt.reason)
			require.Equal(t, "remote-result-guard=false", refused.Add)
			require.NoError(t, Validate(tt.data, Objects, false, Limits{}), "the guard alone refuses it")
			require.Error(t, Validate(tt.data, DataOnly, false, Limits{}), "the guard is nothing to data-only")
		})
	}
	// What the guard does not touch stays refused.
	require.Error(t, Validate(p("cos\nsystem\n"), Objects, false, Limits{}))
	cyclic := p(lookup("app", "Node"), ")\x81\x94}", text("self"), "h\x00sb")
	require.NoError(t, Validate(cyclic, Objects, true, Limits{}), "objects may refer to themselves")
}

func TestGadgetByDefiningModule(t *testing.T) {
	for _, tt := range [][2]string{{"posix", "system"}, {"nt", "system"}, {"_io", "open"}, {"subprocess", "Popen"}, {"importlib._bootstrap", "x"}} {
		_, refused := Gadget(tt[0], tt[1])
		require.True(t, refused, tt)
	}
	for _, tt := range [][2]string{{"app", "User"}, {"operation", "Run"}, {"builtins", "ValueError"}, {"__main__", "C"}, {"collections", "deque"}} {
		why, refused := Gadget(tt[0], tt[1])
		require.False(t, refused, "%v %s", tt, why)
	}
}

func TestErrorsAreOfTheTwoKinds(t *testing.T) {
	var refused *RefusedError
	var malformed *MalformedError
	require.True(t, errors.As(Validate(p(lookup("a", "b")), DataOnly, true, Limits{}), &refused))
	require.True(t, errors.As(Validate(p("h\x00"), DataOnly, true, Limits{}), &malformed))
	require.EqualError(t, malformed, "the result is not a valid pickle: a reference to memo entry 0 of 0 at byte 2")
}

// What a name led to is judged by where it is defined.
func TestDefinitions(t *testing.T) {
	object := [2]string{"builtins", "object"}
	class := func(module, name string, bases ...[2]string) Definition {
		return Definition{Module: module, Name: name, Class: true, Bases: append(bases, object)}
	}
	standard := func(module, name string, bases ...[2]string) Definition {
		d := class(module, name, bases...)
		d.Standard = true
		return d
	}
	allowed := []Definition{
		class("app", "User"),
		class("app", "Path", [2]string{"pathlib", "PosixPath"}, [2]string{"pathlib", "Path"}),
		class("app", "File", [2]string{"os", "PathLike"}),
		class("app", "Error", [2]string{"builtins", "Exception"}, [2]string{"builtins", "BaseException"}),
		standard("builtins", "ValueError"),
		standard("json.decoder", "JSONDecodeError", [2]string{"builtins", "Exception"}),
		standard("types", "SimpleNamespace"),
		{Module: "numpy._core.numeric", Name: "_frombuffer"},
		{Module: "pandas._libs.arrays", Name: "__pyx_unpickle_NDArrayBacked"},
	}
	for _, d := range allowed {
		why, refused := d.Refused()
		require.False(t, refused, "%v %s", d, why)
	}
	refused := map[string]Definition{
		"runs programs":                         {Module: "posix", Name: "system"},
		"is no class":                           {Module: "app", Name: "run"},
		"is a class of the standard library":    standard("logging", "FileHandler"),
		"makes classes":                         class("app", "Meta", [2]string{"builtins", "type"}),
		"derives from subprocess.Popen":         class("app", "Starts", [2]string{"subprocess", "Popen"}),
		"calls what the stream chooses":         class("functools", "partial"),
		"derives from functools.partial, which": class("app", "Partial", [2]string{"functools", "partial"}),
		"is no class: a result may call":        {Module: "types", Name: "SimpleNamespace"},
	}
	for why, d := range refused {
		got, no := d.Refused()
		require.True(t, no, why)
		require.Contains(t, got, why)
	}
}

func TestListedClassesAreCalledInTheirOwnForm(t *testing.T) {
	user := lookup("app", "User")
	for name, data := range map[string][]byte{
		"bytes of a number":       p(lookup("builtins", "bytes"), "J\xff\xff\xff\x7f\x85R"),
		"list of a range":         p(lookup("builtins", "list"), lookup("builtins", "range"), "K\x00J\xff\xff\xff\x7fK\x01\x87R\x85R"),
		"Fraction from text":      p(lookup("fractions", "Fraction"), text("1e99999999"), "\x85R"),
		"NEWOBJ of a Decimal":     p(lookup("decimal", "Decimal"), text("1e5"), "\x85\x81"),
		"ZoneInfo":                p(lookup("zoneinfo", "ZoneInfo"), text("UTC"), "\x85R"),
		"datetime in a free form": p(lookup("datetime", "datetime"), "M\xe7\x07K\x01K\x01\x87R"),
	} {
		require.ErrorContains(t, Validate(data, Objects, true, Limits{}), "in a form that CPython does not dump", name)
		require.NoError(t, Validate(data, Objects, false, Limits{}), name)
	}
	for name, data := range map[string][]byte{
		"defaultdict of a class":       p(lookup("collections", "defaultdict"), user, "\x85R"),
		"datetime in a zone of ours":   p(lookup("datetime", "datetime"), "C\x0a\x07\xe4\x02\x01\x00\x00\x00\x00\x00\x00", user, ")R\x86R"),
		"slice of objects":             p(lookup("builtins", "slice"), user, ")RNN\x87R"),
		"exception with an object":     p(lookup("builtins", "ValueError"), user, ")R\x85R"),
		"exception within another":     p(lookup("builtins", "ValueError"), lookup("builtins", "KeyError"), ")R\x85R"),
		"builder whose name is dunder": p(lookup("pandas._libs.arrays", "__pyx_unpickle_NDArrayBacked"), user, "\x85R"),
	} {
		require.NoError(t, Validate(data, Objects, true, Limits{}), name)
	}
}

func TestLocate(t *testing.T) {
	data := p("}(", text("a"), lookup("app", "User"), ")\x81", text("rows"), "](N", lookup("app", "User"), ")\x81}", text("owner"), lookup("app", "alias"), "sbeu")
	require.Equal(t, "result['rows'][1].owner", Locate(data, 0, "app", "alias"))
	require.Equal(t, "result['a']", Locate(data, 0, "app", "User"))
	require.Equal(t, "result…", Locate(data, 0, "app", "nothing"))
	require.Equal(t, "result…", Locate([]byte("\x80\x05"), 0, "app", "User"))
	require.Equal(t, "result[1]", Locate(p("](\x97", lookup("app", "User"), "e"), 1, "app", "User"))
}
