// Package reference makes the pages of docs/reference from the tables that the engine itself reads: the keys of a
// profile from core/profile, functions and categories from core/audit. Nothing is typed twice.
//
// It only reads tables of this module and writes the files that the generator names.
package reference

//go:generate go run ./gen ../../docs/reference

// Pages are the files of docs/reference and what makes them.
var Pages = map[string]func() string{
	"profile.md": Profile,
	"calls.md":   Calls,
}
