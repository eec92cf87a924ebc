package wire

import (
	"bytes"
	"fmt"

	"github.com/vmihailenco/msgpack/v5"
)

// The bits and flags of a [File].
const (
	BitRead  = 1
	BitWrite = 2

	FlagExact   = 1 // the path alone, nothing below it
	FlagRuntime = 2 // part of the interpreter's own runtime: ignore rules do not apply
	FlagMade    = 4 // a folder that this very start made, so that the program that makes it has not been surprised yet
)

// The modes of a [Boot].
const (
	ModeComplete = "complete"
	ModePartial  = "partial"
)

// File is one path that the guard may allow by itself. Path is canonical and absolute and may hold any byte but NUL.
type File struct {
	Path  string
	Bits  int
	Flags int
}

// Boot is what a sandboxed interpreter is born with: a read-only copy of what is allowed. All else is asked.
type Boot struct {
	Mode        string // ModeComplete or ModePartial
	Learn       bool   // everything is allowed, and reported
	Py          bool   // false: py-sandbox=false, the hook lets all pass
	Resolve     bool   // true: no kernel holder of files, the guard resolves links itself
	Files       []File
	Ignore      bool // ignore rules exist
	NoInet      bool // the kernel refuses internet sockets, since no net rule exists
	Signals     bool // the kernel lets no signal out of the sandbox
	Imports     []string
	ImportsDeny []string
	Calls       []string
	Eval        string   // "refuse", "allow" or "guard"
	Evals       []byte   // the guarded profiles, as control.EvalProfiles gives them; nil: none
	Stdlib      []string // folders
	Site        []string // folders
	Target      []string // module names
	Package     string   // folder
	Extra       []byte   // opaque; may be nil
}

// bootKeys is how many entries Encode writes.
const bootKeys = 20

// Encode gives the boot data as the guard reads it, with this build's protocol and product version.
func (b *Boot) Encode() ([]byte, error) {
	if b.Mode != ModeComplete && b.Mode != ModePartial {
		return nil, fmt.Errorf("boot data: mode %q is neither %q nor %q", b.Mode, ModeComplete, ModePartial)
	}
	var buf bytes.Buffer
	buf.Grow(4096)
	w := &writer{enc: msgpack.NewEncoder(&buf)}
	w.mapLen(bootKeys)
	w.key("v").int(Protocol)
	w.key("version").str(Version)
	w.key("mode").str(b.Mode)
	w.key("learn").bool(b.Learn)
	w.key("py").bool(b.Py)
	w.key("resolve").bool(b.Resolve)
	w.key("files").arrayLen(len(b.Files))
	for _, f := range b.Files {
		w.arrayLen(3)
		w.bin(f.Path).int(int64(f.Bits)).int(int64(f.Flags))
	}
	w.key("ignore").bool(b.Ignore)
	w.key("inet").bool(!b.NoInet)
	w.key("signals").bool(b.Signals)
	w.key("imports").strs(b.Imports)
	w.key("imports_deny").strs(b.ImportsDeny)
	w.key("calls").strs(b.Calls)
	w.key("eval").str(b.Eval)
	w.key("evals").bin(string(b.Evals))
	w.key("stdlib").bins(b.Stdlib)
	w.key("site").bins(b.Site)
	w.key("target").strs(b.Target)
	w.key("package").bin(b.Package)
	w.key("extra").bin(string(b.Extra))
	if w.err != nil {
		return nil, fmt.Errorf("boot data: %w", w.err)
	}
	return buf.Bytes(), nil
}
