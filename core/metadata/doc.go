// Package metadata carries out the calls by which a sandboxed process changes what a file is rather than what it holds:
// its mode, owner, times and extended attributes. Landlock judges none of them, so the filter puts them to the
// supervisor, and the supervisor does them itself where the policy lets the file be written.
//
// Nothing that the process can still change is relied on. Paths and values are copied out of its memory once; the path is
// opened (O_PATH, as the process would see it), what was opened is asked for its name, the policy decides on that name,
// and the call is made on the very descriptor. A link that is put in the way meanwhile changes nothing.
//
// It needs /proc. What cannot be found out is refused.
package metadata
