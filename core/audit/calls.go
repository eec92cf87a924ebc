package audit

import "slices"

// Calls is the registry of sensitive calls. A row's place is its number in the guard's table. Facts are CPython 3.11 to
// 3.13; a name that one version lacks is simply not met there.
var Calls = slices.Concat(execCalls, processCalls, privilegeCalls, threadCalls, nativeCalls, introspectionCalls, codeCalls, dataCalls)

// posix names a function of the os module and its C twin.
func posix(name string) []Target { return []Target{{"posix", name}, {"os", name}} }

// twin is the name of the C twin, as an alias.
func twin(name string) []string { return []string{"posix." + name} }
