package unpickle

import (
	"encoding/base64"
	"encoding/json"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// pythons are the interpreters at hand of the versions that testdata is for.
func pythons(t testing.TB) []string {
	t.Helper()
	var found []string
	for _, v := range []string{"3.11", "3.12", "3.13"} {
		candidates := []string{"python" + v}
		if home, err := os.UserHomeDir(); err == nil {
			pyenv, _ := filepath.Glob(filepath.Join(home, ".pyenv/versions", v+".*", "bin/python"+v))
			candidates = append(pyenv, candidates...)
		}
		for _, c := range candidates {
			if exec.Command(c, "-c", "import sys; assert sys.version_info >= (3, 11)").Run() == nil {
				found = append(found, c)
				break
			}
		}
	}
	if len(found) == 0 {
		t.Skip("no CPython 3.11, 3.12 or 3.13 here")
	}
	return found
}

// ask runs a program with one JSON value on stdin and reads one from stdout.
func ask(t *testing.T, python, program string, in, out any) {
	t.Helper()
	text, err := json.Marshal(in)
	require.NoError(t, err)
	cmd := exec.Command(python, "-c", program)
	cmd.Stdin = strings.NewReader(string(text))
	cmd.Stderr = os.Stderr
	got, err := cmd.Output()
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(got, out))
}

// hashes prints pickle and hash of values whose hash the sender can compute.
const hashesProgram = `
import base64, json, pickle, random, sys
import datetime as dt, decimal, fractions, uuid, time
json.load(sys.stdin)
r = random.Random(5)
v = [0, 1, -1, -2, 255, 2**31, -2**31, 2**61 - 1, 2**61, -(2**61 - 1), 2**63, 2**64, -2**64, 10**40, -(10**400), True, False,
     0.0, -0.0, 1.5, -1.0, 1e300, 5e-324, 0.1, float("inf"), float("-inf"), 1 + 2j, -1j, complex(0.5, -0.25), 1e20,
     (), (1,), (1, 2, 3), (1, (2, (3.5,))), (-1, -1), frozenset(), frozenset([1]), frozenset(range(50)), frozenset([(1, 2), 3.5]),
     dt.timedelta(1, 2, 3), dt.timedelta(-1), dt.timezone.utc, dt.timezone(-dt.timedelta(hours=5)),
     dt.datetime(2020, 1, 2, 3, 4, 5, 6, dt.timezone.utc), dt.datetime(1, 1, 1, tzinfo=dt.timezone(dt.timedelta(hours=1))),
     dt.datetime(2024, 2, 29, 0, 0, tzinfo=dt.timezone(dt.timedelta(hours=9))), uuid.UUID(int=2**127 + 5), time.gmtime(12345),
     dt.datetime(9999, 12, 31, 23, 59, tzinfo=dt.timezone(-dt.timedelta(hours=9, microseconds=1)))]
v += [decimal.Decimal(s) for s in ("0", "-0", "1.5", "-1", "1E+10", "1E-7", "123456789012345678901234567890.123", "Infinity", "-Infinity", "1E+99999999")]
v += [fractions.Fraction(1, 3), fractions.Fraction(-7, 2), fractions.Fraction(1, 2**61 - 1), fractions.Fraction(10**50, 7)]
import ipaddress
v += [ipaddress.ip_network(s) for s in ("0.0.0.0/0", "10.0.0.0/8", "1.2.3.4/32", "10.128.0.0/9", "::/0", "fe80::/10", "2001:db8::/33", "::1/128")]
v += [ipaddress.ip_interface(s) for s in ("1.2.3.4/32", "10.1.2.3/9", "0.0.0.0/0", "2001:db8::5/33", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff/128")]
if sys.version_info >= (3, 12):  # before, the hash of None is its address
    v += [ipaddress.ip_address(s) for s in ("::1", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "2001:db8::5")]
for _ in range(300):
    v += [r.randrange(-2**r.randrange(1, 300), 2**r.randrange(1, 300)), r.uniform(-1, 1) * 10**r.randrange(-300, 300)]
    v.append((v[-1], v[-2]))
    v.append(frozenset([v[-2], v[-3], v[-1]]))
json.dump([[base64.b64encode(pickle.dumps(x, 5)).decode(), hash(x) & (2**64 - 1), repr(x)] for x in v], sys.stdout)
`

func TestHashesAreCPythons(t *testing.T) {
	for _, python := range pythons(t) {
		var rows [][3]json.RawMessage
		ask(t, python, hashesProgram, nil, &rows)
		require.Greater(t, len(rows), 1000)
		for _, row := range rows {
			var packed []byte
			var want uint64
			require.NoError(t, json.Unmarshal(row[0], &packed))
			require.NoError(t, json.Unmarshal(row[1], &want))
			m := machine{data: packed, mode: DataOnly, lim: Limits{}.withDefaults(), root: "result"}
			require.NoError(t, m.run())
			got, _, f := m.hash(m.stack[0])
			require.Equal(t, known, f, "%s", row[2])
			require.Equal(t, want, got, "%s %s", python, row[2])
		}
	}
}

// reloadProgram loads streams with an unpickler that knows no class beyond the table, and says of each what came of it: an error, or
// whether every value within is of a listed type and a second dump and load gives the same again.
const reloadProgram = `
import base64, collections as c, datetime as dt, decimal, fractions, io, ipaddress, json, pathlib, pickle, sys, time, uuid, zoneinfo
streams = json.load(sys.stdin)
PLAIN = {type(None), bool, int, float, complex, str, bytes, bytearray, range, slice, type(...), pathlib.PosixPath, pathlib.PurePosixPath,
    pathlib.PureWindowsPath, dt.date, dt.datetime, dt.time, dt.timedelta, dt.timezone, zoneinfo.ZoneInfo, time.struct_time, decimal.Decimal,
    fractions.Fraction, uuid.UUID, ipaddress.IPv4Address, ipaddress.IPv6Address, ipaddress.IPv4Network, ipaddress.IPv6Network,
    ipaddress.IPv4Interface, ipaddress.IPv6Interface}
MANY = {list, tuple, set, frozenset, c.deque}
MAPS = {dict, c.OrderedDict, c.Counter, c.defaultdict}
FACTORIES = {None, bool, int, float, complex, str, bytes, bytearray, list, tuple, dict, set, frozenset}

def listed(value, depth=0):
    t = type(value)
    if t in PLAIN:
        return True
    if depth > 900:
        return False
    if t in MANY:
        return all(listed(v, depth + 1) for v in value)
    if t in MAPS:
        if t is c.defaultdict and value.default_factory not in FACTORIES:
            return False
        return all(listed(k, depth + 1) and listed(v, depth + 1) for k, v in value.items())
    return False

def look(stream):
    try:
        value = pickle.loads(base64.b64decode(stream))
    except Exception as e:
        return "error: " + repr(e)
    if not listed(value):
        return "unlisted: " + repr(type(value))
    return "same" if canon(pickle.loads(pickle.dumps(value, 5))) == canon(value) else "changes"

def canon(v):
    t = type(v)
    if t in (set, frozenset):
        return [t.__name__, sorted(repr(canon(x)) for x in v)]
    if t in MANY:
        return [t.__name__, getattr(v, "maxlen", None), [canon(x) for x in v]]
    if t in MAPS:
        return [t.__name__, repr(getattr(v, "default_factory", None)), [[canon(k), canon(x)] for k, x in v.items()]]
    return [t.__name__, repr(v), getattr(v, "fold", 0)]

sys.setrecursionlimit(5000)
json.dump([look(s) for s in streams], sys.stdout)
`

// mutate changes a good stream a little: what an attacker's first tries look like.
func mutate(r *rand.Rand, data []byte, pool [][]byte) []byte {
	out := append([]byte(nil), data...)
	for range 1 + r.IntN(3) {
		if len(out) == 0 {
			return out
		}
		i := r.IntN(len(out))
		switch r.IntN(5) {
		case 0:
			out[i] = byte(r.IntN(256))
		case 1:
			out = append(out[:i], out[i+1:]...)
		case 2:
			out = append(out[:i], append([]byte{interesting[r.IntN(len(interesting))]}, out[i:]...)...)
		case 3: // a piece of another stream
			p := pool[r.IntN(len(pool))]
			a := r.IntN(len(p))
			b := min(len(p), a+1+r.IntN(24))
			out = append(out[:i], append(append([]byte(nil), p[a:b]...), out[i:]...)...)
		case 4:
			out[i] ^= 1 << r.IntN(8)
		}
	}
	return out
}

const interesting = "(.NRabsu}e)]th\x81\x85\x86\x87\x88\x89\x8f\x90\x91\x93\x94K\x00\x01\x02"

// What Validate accepts CPython must load, to values of the listed types alone. Frames are left out of the mutants: most changes would
// only break their length.
func TestAcceptedStreamsLoad(t *testing.T) {
	found := pythons(t)
	python := found[len(found)-1]
	r := rand.New(rand.NewPCG(1, 2))
	var pool [][]byte
	for file, samples := range corpus(t) {
		if !strings.Contains(file, "3.13") && len(found) == 3 {
			continue
		}
		for _, s := range samples {
			if len(s.data) < 4000 {
				pool = append(pool, withoutFrames(s.data))
			}
		}
	}
	rounds := 20_000
	if testing.Short() {
		rounds = 5_000
	}
	var accepted []string
	for range rounds {
		data := mutate(r, pool[r.IntN(len(pool))], pool)
		if Validate(data, DataOnly, true, Limits{}) == nil {
			accepted = append(accepted, base64.StdEncoding.EncodeToString(data))
		}
	}
	require.Greater(t, len(accepted), rounds/50, "a differential test that accepts nothing shows nothing")
	var verdicts []string
	ask(t, python, reloadProgram, accepted, &verdicts)
	refused := 0
	for i, v := range verdicts {
		data, _ := base64.StdEncoding.DecodeString(accepted[i])
		switch {
		case v == "same":
		case strings.Contains(v, "ZoneInfoNotFoundError"), strings.Contains(v, "_local"):
			refused++ // a key or a module that this machine does not have
		default:
			t.Errorf("accepted, but CPython: %s\n%q", v, data)
		}
	}
	t.Logf("%d of %d mutants accepted, %d of them not loadable here", len(accepted), rounds, refused)
}

// withoutFrames takes the FRAME instructions out of a stream that has at most one, at its beginning.
func withoutFrames(data []byte) []byte {
	if len(data) > 11 && data[2] == opFrame {
		return append(append([]byte(nil), data[:2]...), data[11:]...)
	}
	return data
}

func TestCorpusLoads(t *testing.T) {
	for _, python := range pythons(t) {
		version := python[strings.LastIndex(python, "3."):]
		var streams, names []string
		for _, s := range corpus(t)["testdata/corpus-"+version+".txt"] {
			if Validate(s.data, DataOnly, true, Limits{}) == nil {
				streams = append(streams, base64.StdEncoding.EncodeToString(s.data))
				names = append(names, s.name)
			}
		}
		require.NotEmpty(t, streams)
		var verdicts []string
		ask(t, python, reloadProgram, streams, &verdicts)
		for i, v := range verdicts {
			require.Equal(t, "same", v, names[i])
		}
	}
}
