package unpickle

import (
	"encoding/json"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// loadsProgram prints for each name its pickle and the best time in seconds in which this CPython loads it.
const loadsProgram = `
import base64, datetime, json, pickle, sys, timeit
V = {
    "rows": [{"id": i, "name": f"n{i}", "tags": ["a", "b"], "score": i / 3, "ok": True, "none": None} for i in range(20000)],
    "ints": list(range(300000)),
    "strings": [f"string {i}" for i in range(100000)],
    "floats": [i / 7 for i in range(200000)],
    "int-keys": {i * 7: i for i in range(100000)},
    "tuple-keys": {(i, -i): i for i in range(50000)},
    "dates": [datetime.datetime(2020, 1, 1 + i % 28) for i in range(30000)],
    "int-set": set(range(100000)),
    "date-rows": [(datetime.date(2020, 1, 1 + i % 28), i) for i in range(30000)],
    "nested-lists": [[[i, i + 1], [str(i)]] for i in range(40000)],
    "words": [f"w{i % 500}" for i in range(200000)],
    "bytes-1MB": b"x" * 1_000_000,
    "bytes-16MB": b"x" * 16_000_000,
    "bytes-100MB": b"x" * 100_000_000,
    "long-text": "text " * 2_000_000,
}
out = {}
for name, value in V.items():
    data = pickle.dumps(value, 5)
    out[name] = [base64.b64encode(data).decode(), min(timeit.repeat(lambda: pickle.loads(data), number=1, repeat=15))]
json.dump(out, sys.stdout)
`

// BenchmarkValidate reports its best time as a part of that of CPython's pickle.loads ("x/loads").
func BenchmarkValidate(b *testing.B) {
	text, err := exec.Command(pythons(b)[0], "-c", loadsProgram).Output()
	require.NoError(b, err)
	var rows map[string][2]json.RawMessage
	require.NoError(b, json.Unmarshal(text, &rows))
	for name, row := range rows {
		var data []byte
		var loads float64
		require.NoError(b, json.Unmarshal(row[0], &data))
		require.NoError(b, json.Unmarshal(row[1], &loads))
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			best := time.Hour
			for b.Loop() {
				start := time.Now()
				if err := Validate(data, DataOnly, true, Limits{}); err != nil {
					b.Fatal(err)
				}
				best = min(best, time.Since(start))
			}
			b.ReportMetric(best.Seconds()/loads, "x/loads")
			b.ReportMetric(best.Seconds()*1e6, "best-us")
			b.ReportMetric(loads*1e6, "loads-us")
		})
	}
}
