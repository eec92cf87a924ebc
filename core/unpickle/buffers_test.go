package unpickle

import (
	"encoding/binary"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestBuffers(t *testing.T) {
	bytesBuffer, byteArray := Buffer{Size: 1 << 20}, Buffer{Size: 1 << 20, Writable: true}
	tests := map[string]struct {
		data    []byte
		buffers []Buffer
		want    string // part of the error in every mode; "" accepted
	}{
		"bytes":                     {p("\x97"), []Buffer{bytesBuffer}, ""},
		"read-only bytes":           {p("\x97\x98"), []Buffer{bytesBuffer}, ""},
		"two in a list":             {p("](\x97\x97e"), []Buffer{bytesBuffer, bytesBuffer}, ""},
		"one, referred to twice":    {p("](\x97\x94h\x00e"), []Buffer{bytesBuffer}, ""},
		"as a key":                  {p("}\x97Ns"), []Buffer{bytesBuffer}, ""},
		"none":                      {p("\x97"), nil, "NEXT_BUFFER, without buffers"},
		"one too few":               {p("\x97\x97\x86"), []Buffer{bytesBuffer}, "NEXT_BUFFER, without buffers"},
		"one too many":              {p("\x97"), []Buffer{bytesBuffer, bytesBuffer}, "1 buffers left"},
		"read-only bytearray":       {p("\x97\x98"), []Buffer{byteArray}, "bytearray"},
		"read-only bytes in-band":   {p("C\x01a\x98"), nil, "READONLY_BUFFER"},
		"read-only nothing":         {p("\x98"), nil, "READONLY_BUFFER"},
		"read-only below a mark":    {p("\x97(\x98"), []Buffer{bytesBuffer}, "READONLY_BUFFER"},
		"a bytearray as a key":      {p("}\x97Ns"), []Buffer{byteArray}, "bytearray"},
		"the bytes of a date":       {p(lookup("datetime", "date"), "\x97\x85R"), []Buffer{{Size: 4}}, "date"},
		"the name of a class":       {p("\x97", text("system"), "\x93"), []Buffer{bytesBuffer}, "no text"},
		"where a callable must be":  {p("\x97)R"), []Buffer{bytesBuffer}, "a call of bytes"},
		"where a container must be": {p("\x97Na"), []Buffer{bytesBuffer}, "APPEND"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			for _, mode := range []Mode{Primitives, DataOnly} {
				err := ValidateWith(test.data, test.buffers, mode, true, Limits{})
				if test.want == "" {
					require.NoError(t, err, mode)
				} else {
					require.ErrorContains(t, err, test.want, mode)
				}
			}
		})
	}
	require.NoError(t, ValidateWith(p("\x97"), []Buffer{byteArray}, DataOnly, true, Limits{}))
	require.ErrorContains(t, ValidateWith(p("](\x97e"), []Buffer{byteArray}, Primitives, true, Limits{}), "result[0]")
}

// Two equal texts are compared byte by byte each time that they meet as keys.
func TestEqualLongKeysAreWork(t *testing.T) {
	sets := "](" + strings.Repeat("\x8f(h\x00h\x01\x90", 100_000) + "e\x87"
	long := "X" + string(binary.LittleEndian.AppendUint32(nil, 1<<20)) + strings.Repeat("x", 1<<20)
	began := time.Now()
	inBand := p(long, "\x94", long, "\x94", sets)
	require.ErrorContains(t, Validate(inBand, DataOnly, true, Limits{}), "too long to hash")
	beside := p("\x97\x94\x97\x94", sets)
	require.ErrorContains(t, ValidateWith(beside, []Buffer{{Size: 1 << 20}, {Size: 1 << 20}}, DataOnly, true, Limits{}), "too long to hash")
	short := p(text("x"), "\x94", text("y"), "\x94", sets)
	require.NoError(t, Validate(short, DataOnly, true, Limits{}))
	require.Less(t, time.Since(began), 20*time.Second)
}
