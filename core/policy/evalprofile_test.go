package policy

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestEvalProfiles(t *testing.T) {
	assert.Empty(t, newWorld(t).policy(t, "python-import=json").EvalProfiles())
	got := newWorld(t).policy(t,
		"eval-syntax=arith, Compare", "eval-syntax=arith, DENY:BinOp", "eval-call=len, to_*, DENY:to_file", "eval-timeout=250ms",
		"eval-attribute:rows=str-methods, name", "eval-namespace:rows=closed", "eval-max-alloc:rows=2MB", "eval-magic:rows=__len__", "eval-import:rows=math").EvalProfiles()
	require.Len(t, got, 2)
	plain := newEvalProfile()
	plain.Timeout = 0.25
	plain.Syntax = EvalSet{[]string{"BinOp", "Compare", "UnaryOp"}, []string{"BinOp"}}
	plain.Call = EvalSet{[]string{"len", "to_*"}, []string{"to_file"}}
	plain.Attribute, plain.Import, plain.Magic = EvalSet{[]string{}, []string{}}, EvalSet{[]string{}, []string{}}, EvalSet{[]string{}, []string{}}
	assert.Equal(t, *plain, got[""])
	rows := got["rows"]
	assert.Equal(t, EvalSet{[]string{"name", "str-methods"}, []string{}}, rows.Attribute)
	assert.Empty(t, rows.Syntax.Allow, "a named profile inherits nothing")
	assert.Equal(t, 5.0, rows.Timeout)
	assert.Equal(t, "closed", rows.Namespace)
	assert.Equal(t, int64(2<<20), rows.MaxAlloc)
}

func TestEvalWords(t *testing.T) {
	for _, c := range []struct{ line, says string }{
		{"eval-syntax=arit", "Did you mean arith?"},
		{"eval-syntax:calc=ListCmp", "Did you mean ListComp?"},
		{"eval-syntax=*", "Patterns are not for eval-syntax"},
		{"eval-call=a.b", "not a name"},
		{"eval-call=a*b*", "not a name"},
		{"eval-attribute=str-method", "Did you mean str-methods?"},
		{"eval-attribute=__class__", "eval-magic=__class__"},
		{"eval-import=a..b", "not the name of a module"},
		{"eval-magic=len", "not a dunder name"},
	} {
		_, err := newWorld(t).try(t, c.line)
		require.Error(t, err, c.line)
		assert.Contains(t, err.Error(), c.says, c.line)
	}
	for _, g := range evalGroups {
		assert.Equal(t, g.nodes, evalNodes(g.name))
		for _, n := range g.nodes {
			if n != g.name { // comprehension is both, and the group wins
				assert.Equal(t, []string{n}, evalNodes(n))
			}
		}
	}
}
