package unpickle

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nlpodyssey/gopickle/pickle"
)

// FuzzValidate: no panic, no acceptance by a narrower mode of what a wider one refuses, and in mode Primitives gopickle's agreement.
func FuzzValidate(f *testing.F) {
	for _, samples := range corpus(f) {
		for _, s := range samples {
			if len(s.data) < 2000 {
				f.Add(s.data)
			}
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		limits := Limits{HashWork: 100_000}
		errs := [3]error{}
		for i, mode := range []Mode{Primitives, DataOnly, Objects} {
			errs[i] = Validate(data, mode, true, limits)
			if errs[i] != nil && strings.Contains(errs[i].Error(), "the validator failed") {
				t.Fatal(errs[i])
			}
		}
		if errs[0] == nil && errs[1] != nil || errs[1] == nil && errs[2] != nil {
			t.Fatalf("primitives: %v\ndata-only: %v\nobjects: %v", errs[0], errs[1], errs[2])
		}
		_ = ValidateException(data, limits)
		if errs[0] == nil {
			if _, err := gopickleLoads(data); err != nil && !gopickleFault(err) {
				t.Fatalf("gopickle refuses what mode Primitives accepts: %v", err)
			}
		}
	})
}

// gopickleLoads is gopickle's answer; its panics are errors.
func gopickleLoads(data []byte) (v any, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic: %v", r)
		}
	}()
	return pickle.Loads(string(data))
}

// gopickleFault reports errors of gopickle that are its own: keys that Go cannot hash or compare, an empty LONG1, complex.
func gopickleFault(err error) bool {
	for _, own := range []string{"panic: runtime error", "unhashable", "REDUCE requires a Callable"} {
		if strings.Contains(err.Error(), own) {
			return true
		}
	}
	return false
}

// The reasons in doc.go why gopickle's machine is not used.
func TestGopickle(t *testing.T) {
	_, err := gopickleLoads([]byte("\x80\x05\x95\xff\xff\xff\xff\xff\xff\xff\x3f"))
	require.ErrorContains(t, err, "makeslice", "FRAME allocates what it says")
	_, err = gopickleLoads([]byte("\x80\x05\x8a\x00."))
	require.ErrorContains(t, err, "index out of range", "an empty LONG1")
	_, err = gopickleLoads([]byte("\x80\x05\xff"))
	require.ErrorContains(t, err, "index out of range", "the opcode 0xff")
	require.NoError(t, Validate([]byte("\x80\x05\x8a\x00."), Primitives, true, Limits{}))

	for _, samples := range corpus(t) {
		for _, s := range samples {
			if primitives[s.name] && s.name != "complex" {
				v, err := gopickleLoads(s.data)
				if err == nil || !gopickleFault(err) {
					require.NoError(t, err, s.name)
				}
				if s.name != "none" && err == nil {
					require.NotNil(t, v, s.name)
				}
			}
		}
	}
}
