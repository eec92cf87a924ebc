// Package audit is the table of what CPython tells and of what it keeps quiet about: sensitive calls with their
// categories, file events, network events, and the functions that need a shim because no event names them.
//
// It is data, reviewed row by row; every fact was read from CPython 3.11, 3.12 and 3.13. core/policy asks it for names
// and categories; `go generate` makes bindings/guard/registry.inc from it for the guard. It decides nothing.
package audit
