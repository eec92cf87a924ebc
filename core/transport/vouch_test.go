package transport

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pysandboxes/pysandboxes/core/wire"
)

// told is what the application reads of a descriptor with these denials.
func told(t *testing.T, o Options, denials any) []map[string]any {
	t.Helper()
	c, p := connect(t, o)
	id, _ := c.Begin(nil)
	p.receive()
	p.send(KindException, id, encode(t, map[string]any{"denials": denials})[5:], nil)
	e, err := last(c, id)
	require.NoError(t, err)
	var got struct {
		Denials []map[string]any `json:"denials"`
	}
	require.NoError(t, json.Unmarshal(e.Descriptor, &got))
	return got.Denials
}

func vouching(made ...wire.Denial) Options {
	return Options{Vouch: func(layer, family, op, subject string) (wire.Denial, bool) {
		for _, d := range made {
			if d.Layer == layer && d.Family == family && d.Op == op && d.Subject == subject {
				return d, true
			}
		}
		return wire.Denial{}, false
	}}
}

func TestADenialHasTheWordsOfThisSide(t *testing.T) {
	made := wire.Denial{Layer: "python", Family: "file", Op: "open", Subject: "/a", Rule: "p:1", Add: []string{"expose-ro=/a"}, Message: "why"}
	said := map[string]any{"layer": "python", "family": "file", "op": "open", "subject": "/a", "site": "app.py:3",
		"rule": "", "add": []string{"expose-rw=/"}, "message": "Add:\n    expose-rw=/", "category": "x"}
	got := told(t, vouching(made), []any{said})
	require.Equal(t, []map[string]any{{"layer": "python", "family": "file", "op": "open", "subject": "/a", "site": "app.py:3",
		"rule": "p:1", "add": []any{"expose-ro=/a"}, "message": "why", "category": ""}}, got)
}

func TestADenialThatThisSideDidNotMakeHasNoLineToAdd(t *testing.T) {
	for name, change := range map[string]map[string]any{
		"subject": {"subject": "/"}, "family": {"family": "net"}, "op": {"op": "remove"}, "layer": {"layer": "os"},
		"a number": {"subject": 1}, "a list": {"subject": []string{"/a"}},
	} {
		t.Run(name, func(t *testing.T) {
			said := map[string]any{"layer": "python", "family": "file", "op": "open", "subject": "/a", "rule": "p:1",
				"add": []string{"expose-rw=/"}, "message": "Add:\n    expose-rw=/"}
			for k, v := range change {
				said[k] = v
			}
			made := wire.Denial{Layer: "python", Family: "file", Op: "open", Subject: "/a", Add: []string{"expose-ro=/a"}, Message: "why"}
			for _, o := range []Options{vouching(made), {}} {
				got := told(t, o, []any{said})
				require.Len(t, got, 1)
				require.Empty(t, got[0]["add"])
				require.Empty(t, got[0]["rule"])
				require.NotContains(t, got[0]["message"], "expose")
				require.Contains(t, got[0]["message"], "no record")
			}
		})
	}
}

func TestDenialsOfNoUse(t *testing.T) {
	got := told(t, Options{}, []any{1, "text", nil, []any{map[string]any{"add": []string{"expose-rw=/"}}}, map[string]any{}})
	require.Len(t, got, 5)
	for _, d := range got {
		require.Empty(t, d["add"])
	}
}

// The child chooses how often it names a refusal, this side how long its account of it is.
func TestDenialsAreBounded(t *testing.T) {
	long := wire.Denial{Layer: "python", Message: strings.Repeat("x", 12<<10)}
	said := make([]any, 5000)
	for i := range said {
		said[i] = map[string]any{"layer": "python"}
	}
	require.LessOrEqual(t, len(told(t, vouching(long), said)), 256)
	said = said[:1000]
	require.Len(t, told(t, vouching(wire.Denial{Layer: "python"}), said), 256)
}
