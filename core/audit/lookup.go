package audit

import (
	"sync"

	"github.com/pysandboxes/pysandboxes/core/nearest"
)

// index finds a call's row by name or alias: made when a rule or a question names one, which a short program has none of.
var index = sync.OnceValue(func() map[string]int {
	m := make(map[string]int, 4*len(Calls))
	for i := range Calls {
		m[Calls[i].Name] = i
		for _, a := range Calls[i].Aliases {
			m[a] = i
		}
	}
	return m
})

// words are all names and categories, in a fixed order, for suggestions: made when a rule is mistyped.
var words = sync.OnceValue(func() []string {
	out := []string{"*"}
	for _, c := range Categories {
		out = append(out, string(c))
	}
	for i := range Calls {
		out = append(out, Calls[i].Name)
		out = append(out, Calls[i].Aliases...)
	}
	return out
})

// Lookup finds a call by its name or an alias.
func Lookup(name string) (Call, bool) {
	i, ok := index()[name]
	if !ok {
		return Call{}, false
	}
	return Calls[i], true
}

// Nearest returns the known call or category that name most likely meant, "" if none is near.
func Nearest(name string) string { return nearest.Word(name, words()) }
