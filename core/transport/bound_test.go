package transport

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAnExceptionNamesTheLimitThatItComesFrom(t *testing.T) {
	bound := func(module, qualname, message string) string {
		if module == "builtins" && qualname == "MemoryError" && message == "" {
			return `limit-memory=64MB, "p":1`
		}
		return ""
	}
	descriptor := map[string]any{
		"message": "", "module": "builtins", "qualname": "MemoryError",
		"cause": map[string]any{"module": "builtins", "qualname": "ValueError", "message": "",
			"context": map[string]any{"module": "builtins", "qualname": "MemoryError", "message": ""}},
	}
	limits := func(o Options) []any {
		c, p := connect(t, o)
		id, _ := c.Begin(nil)
		p.receive()
		p.send(KindException, id, encode(t, descriptor)[5:], nil)
		e, err := last(c, id)
		require.NoError(t, err)
		var got map[string]any
		require.NoError(t, json.Unmarshal(e.Descriptor, &got), "%s", e.Descriptor)
		cause := got["cause"].(map[string]any)
		return []any{got["limit"], cause["limit"], cause["context"].(map[string]any)["limit"]}
	}
	line := `limit-memory=64MB, "p":1`
	require.Equal(t, []any{line, nil, line}, limits(Options{Bound: bound}))
	require.Equal(t, []any{nil, nil, nil}, limits(Options{}))
}

func TestAChildCannotNameALimit(t *testing.T) {
	c, p := connect(t, Options{})
	id, _ := c.Begin(nil)
	p.receive()
	p.send(KindException, id, encode(t, map[string]any{"message": "x", "limit": "limit-memory=1TB"})[5:], nil)
	_, err := last(c, id)
	require.ErrorContains(t, err, `the unknown field "limit"`)
}
