package unpickle

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// judge is a CPython that loads what was accepted (testdata/judge.py).
type judge struct {
	mu  sync.Mutex
	to  io.WriteCloser
	out *bufio.Reader
}

func startJudge(t testing.TB, python string) *judge {
	t.Helper()
	cmd := exec.Command(python, "testdata/judge.py")
	cmd.Stderr = os.Stderr
	to, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	names := map[string][][2]string{"p": {}, "d": {}, "x": {}}
	for _, c := range classes {
		pair := [2]string{c.module, c.name}
		if c.kind != kindException || c.name == "Exception" {
			names["x"] = append(names["x"], pair)
		}
		if c.kind != kindException {
			names["d"] = append(names["d"], pair)
		}
		if c.primitive {
			names["p"] = append(names["p"], pair)
		}
	}
	table, err := json.Marshal(names)
	require.NoError(t, err)
	_, err = to.Write(append(table, '\n'))
	require.NoError(t, err)
	return &judge{to: to, out: bufio.NewReader(out)}
}

// verdict is "ok", "excused" where this machine lacks what the stream needs, or what is wrong.
func (j *judge) verdict(t testing.TB, mode byte, data []byte) string {
	t.Helper()
	j.mu.Lock()
	defer j.mu.Unlock()
	head := append(binary.BigEndian.AppendUint32(nil, uint32(len(data))), mode)
	_, err := j.to.Write(append(head, data...))
	require.NoError(t, err, "CPython has died")
	line, err := j.out.ReadString('\n')
	require.NoError(t, err, "CPython has died of %q", data)
	line = strings.TrimSpace(line)
	if strings.HasPrefix(line, "it does not load") {
		for _, missing := range []string{"ZoneInfoNotFoundError", "No module named 'pathlib._local'"} {
			if strings.Contains(line, missing) {
				return "excused"
			}
		}
	}
	return line
}

// agreed validates a stream in every way, and has what is accepted loaded. It returns how many modes accepted, and were excused.
func (j *judge) agreed(t testing.TB, data []byte) (accepted, excused int) {
	t.Helper()
	limits := Limits{HashWork: 100_000}
	for mode, err := range map[byte]error{
		'p': Validate(data, Primitives, true, limits),
		'd': Validate(data, DataOnly, true, limits),
		'x': ValidateException(data, limits),
	} {
		if err != nil {
			require.NotContains(t, err.Error(), "the validator failed", "%q", data)
			continue
		}
		accepted++
		switch v := j.verdict(t, mode, data); v {
		case "ok":
		case "excused":
			excused++
		default:
			t.Fatalf("accepted (%c), but %s\n%q", mode, v, data)
		}
	}
	return accepted, excused
}

// FuzzAgreement: what is accepted, CPython loads, to values of the mode's types alone, with no other look-up and nothing run on the way.
// The first byte chooses between the bytes as they are and a stream that they are the choices for.
func FuzzAgreement(f *testing.F) {
	found := pythons(f)
	for _, samples := range corpus(f) {
		for _, s := range samples {
			if len(s.data) < 1000 {
				f.Add(append([]byte{0}, withoutFrames(s.data)...))
			}
		}
	}
	r := rand.New(rand.NewPCG(3, 4))
	for range 200 {
		choices := make([]byte, 1+r.IntN(60))
		for i := range choices {
			choices[i] = byte(r.IntN(256))
		}
		choices[0] |= 1
		f.Add(choices)
	}
	var j *judge
	var once sync.Once
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) == 0 {
			return
		}
		stream := data[1:]
		if data[0]&1 != 0 {
			stream = generate(stream)
		}
		once.Do(func() { j = startJudge(t, found[os.Getpid()%len(found)]) })
		j.agreed(t, stream)
	})
}

// The same without a fuzzer: a fixed run on every Python, that has to accept enough to mean something.
func TestAgreement(t *testing.T) {
	rounds := 20_000
	if testing.Short() {
		rounds = 3_000
	}
	for _, python := range pythons(t) {
		j := startJudge(t, python)
		r := rand.New(rand.NewPCG(5, 6))
		accepted, excused := 0, 0
		for range rounds {
			choices := make([]byte, 1+r.IntN(80))
			for i := range choices {
				choices[i] = byte(r.IntN(256))
			}
			a, e := j.agreed(t, generate(choices))
			accepted, excused = accepted+a, excused+e
		}
		require.Greater(t, accepted, rounds/10, "a differential test that accepts nothing shows nothing")
		t.Logf("%s: %d streams, %d acceptances, %d of them of what this machine does not have", python, rounds, accepted, excused)
		require.NoError(t, j.to.Close())
	}
}

// What the quick functions accept and refuse is what the general ones do, with the same words and at the same cost.
func TestQuickIsTheSame(t *testing.T) {
	validate := func(data []byte, mode Mode, general bool) (string, int64, int) {
		m := machine{data: data, mode: mode, guard: true, root: "result", lim: Limits{HashWork: 100_000}.withDefaults(), general: general}
		if err := m.validate(); err != nil {
			return err.Error(), 0, 0
		}
		depth := 0
		for _, n := range m.nodes {
			depth += int(n.depth)
		}
		return "", m.work, depth
	}
	r := rand.New(rand.NewPCG(7, 8))
	accepted := 0
	same := func(data []byte) {
		for _, mode := range []Mode{Primitives, DataOnly, Objects} {
			err, work, depth := validate(data, mode, false)
			wantErr, wantWork, wantDepth := validate(data, mode, true)
			require.Equal(t, wantErr, err, "%s %q", mode, data)
			require.Equal(t, wantWork, work, "%s %q", mode, data)
			require.Equal(t, wantDepth, depth, "%s %q", mode, data)
			if err == "" {
				accepted++
			}
		}
	}
	for _, samples := range corpus(t) {
		for _, s := range samples {
			same(s.data)
		}
	}
	rounds := 20_000
	if testing.Short() {
		rounds = 5_000
	}
	for range rounds {
		choices := make([]byte, 1+r.IntN(80))
		for i := range choices {
			choices[i] = byte(r.IntN(256))
		}
		data := generate(choices)
		same(data)
		same(mutate(r, data, [][]byte{data}))
	}
	require.Greater(t, accepted, rounds/2)
}

// The judge finds what it is there for.
func TestJudge(t *testing.T) {
	found := pythons(t)
	j := startJudge(t, found[0])
	defer j.to.Close()
	date := p(lookup("datetime", "date"), "C\x04\x07\xe4\x02\x01\x85R")
	bad := []struct {
		mode byte
		data []byte
		want string
	}{
		{'d', p("]\x94h\x01a"), "it does not load"},
		{'d', p("N"), "ok"},
		{'d', date, "ok"},
		{'p', date, "it looks up ('datetime', 'date')"},
		{'d', p(lookup("posix", "getpid"), ")R"), "it looks up ('posix', 'getpid')"},
		{'d', p(lookup("builtins", "int")), "it holds <class 'type'>"},
		{'d', p(lookup("builtins", "bytes"), lookup("builtins", "bytearray"), text("/"), text("utf-8"), "\x86R\x85R"), "ok"},
		{'d', p("]\x94h\x00a"), "it holds itself"},
		{'d', p(lookup("builtins", "getattr"), lookup("pathlib", "PosixPath"), text("read_bytes"), "\x86R", lookup("pathlib", "PosixPath"), text("/dev/null"), "\x85R\x85R"), "it does open"},
		{'x', p(lookup("builtins", "Exception"), ")R}", text("a"), "Nsb"), "no plain exception"},
		{'x', date, "no plain exception"},
	}
	for _, tt := range bad {
		require.Contains(t, j.verdict(t, tt.mode, tt.data), tt.want, "%c %q", tt.mode, tt.data)
	}
}
