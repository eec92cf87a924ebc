package unpickle

import (
	"bytes"
	"compress/zlib"
	"encoding/base64"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// sample is one line of testdata/corpus-*.txt.
type sample struct {
	name string
	data []byte
}

func corpus(t testing.TB) map[string][]sample {
	t.Helper()
	files, err := filepath.Glob("testdata/corpus-*.txt")
	require.NoError(t, err)
	require.Len(t, files, 3, "one for each of CPython 3.11, 3.12, 3.13")
	all := map[string][]sample{}
	for _, f := range files {
		text, err := os.ReadFile(f)
		require.NoError(t, err)
		for line := range strings.Lines(string(text)) {
			name, packed, ok := strings.Cut(strings.TrimSpace(line), "\t")
			require.True(t, ok, line)
			z, err := zlib.NewReader(base64.NewDecoder(base64.StdEncoding, strings.NewReader(packed)))
			require.NoError(t, err)
			data, err := io.ReadAll(z)
			require.NoError(t, err)
			all[f] = append(all[f], sample{name, bytes.Clone(data)})
		}
	}
	return all
}

// primitives are the lines that mode Primitives accepts too.
var primitives = map[string]bool{
	"none": true, "bools": true, "ints": true, "floats": true, "complex": true, "strs": true, "bytes": true, "lists": true,
	"tuples": true, "dicts": true, "sets": true, "frozensets": true, "shared": true,
}

func TestCorpus(t *testing.T) {
	for file, samples := range corpus(t) {
		for _, s := range samples {
			t.Run(filepath.Base(file)+"/"+s.name, func(t *testing.T) {
				dataOnly := Validate(s.data, DataOnly, true, Limits{})
				primitive := Validate(s.data, Primitives, true, Limits{})
				exception := ValidateException(s.data, Limits{})
				refused := strings.HasPrefix(s.name, "no-")
				ex := strings.HasPrefix(s.name, "ex-")
				if refused || ex {
					require.Error(t, dataOnly)
				} else {
					require.NoError(t, dataOnly)
				}
				if primitives[s.name] {
					require.NoError(t, primitive)
				} else {
					require.Error(t, primitive)
				}
				if ex && !strings.HasSuffix(s.name, "-no") {
					require.NoError(t, exception)
				} else {
					require.Error(t, exception)
				}
			})
		}
	}
}
