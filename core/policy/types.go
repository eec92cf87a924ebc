package policy

import (
	"net/netip"
	"time"

	"github.com/pysandboxes/pysandboxes/core/profile"
)

// Access is what is done to a file; both bits may be set.
type Access uint8

// The bits of Access. They are the bits of the boot data's `files` entries.
const (
	Read  Access = 1
	Write Access = 2
)

// Decision is the answer to a question.
type Decision struct {
	Allow    bool
	Family   string // env, file, net, import, call, eval
	Op       string // the event or operation that was asked about
	Subject  string // the path, name, function or address that was asked about
	Category string // category of a call, "" otherwise
	Rule     profile.Position
	RuleText string   // the deciding line as written, "" where the default decided
	Add      []string // lines that would allow it, narrowest first; each alone is enough (with Also)
	Also     []string // lines needed besides one of Add
	Note     string   // a sentence worth saying with the refusal
	profile  string   // the profile's path, for the message
	why      string   // in place of the sentence that no rule allows it
	phrase   string   // what was refused, for the message: "reading /etc/passwd"
}

// Runtime is what the interpreter needs to run: readable without a rule, never writable. Paths are canonical.
type Runtime struct {
	Read        []string // folders and files
	Stdlib      []string // folders of the standard library
	Site        []string // site-packages folders
	Executables []string // interpreter binaries
	Libs        []string // shared libraries that they map
}

// Resolver looks names up when a profile is compiled.
type Resolver interface {
	LookupIP(host string) ([]netip.Addr, error)
}

// Context is what a policy is compiled against.
type Context struct {
	Runtime       Runtime
	Target        []string            // single files that are readable: the script
	TargetModules []string            // the program's own module and its parents: importable
	Package       string              // folder of the pysandboxes package, readable
	Trusted       []Trusted           // what the sandbox must never write, besides the profile
	Resolver      Resolver            // nil: net.DefaultResolver
	Cwd, Home     string              // "" takes the profile's
	Learning      bool                // the child gets the host's whole environment
	Sleep         func(time.Duration) // waits between look-ups; nil: time.Sleep
}

// NetQuestion asks about one network operation.
type NetQuestion struct {
	Op    string // connect, bind, listen, sendto, resolve, reverse
	Proto string // tcp, udp, icmp, raw, unix
	Host  string // an address, a name for resolve, a path for unix
	Port  int
}

// Exposure is an expose rule with canonical paths.
type Exposure struct {
	Source, Dest string // Dest is "" or equal to Source where the path keeps its place
	Write        bool
	File         bool // Source is not a folder: the exact path only
	Exists       bool
	Make         bool // written with a slash at its end: a missing folder is made, empty, when the sandbox starts
	Pos          profile.Position
}

// Ignore is an ignore rule: a glob on a basename, or on a whole path where it holds a slash.
type Ignore struct {
	Glob  string
	Fixed string // canonical folder that a path glob is bound to; "" where it may match anywhere
	Pos   profile.Position
}

// Switches are the scalars that choose layers.
type Switches struct {
	PySandbox        bool
	OSSandbox        string // provider name; "auto" where nothing is said
	OSSandboxPos     profile.Position
	Learn            string // file to learn into, "" none
	Locked           bool   // learn=false
	ResultMode       string // data-only, primitives, objects
	ResultGuard      bool
	IgnoreBestEffort bool // ignore rules that the provider cannot hold are accepted
}

// Limits bound the child; zero means none.
type Limits struct {
	Memory      int64 // bytes
	CPU         time.Duration
	Processes   int
	OpenFiles   int
	CallTimeout time.Duration
	Result      int64 // bytes of one result, 256 MiB unless said otherwise
}

// Snapshot is what the guard may decide by itself; everything else is asked.
type Snapshot struct {
	Files       []FileEntry
	Ignore      bool // ignore rules exist
	Imports     []string
	ImportsDeny []string
	Calls       []string // registry names
	Eval        string   // refuse, allow, guard
}

// FileEntry is one allowed path of a snapshot.
type FileEntry struct {
	Path  string
	Bits  int // 1 read, 2 write
	Flags int // FlagExact, FlagRuntime
}

// Flags of a FileEntry.
const (
	FlagExact   = 1 // this path only, not what is beneath it
	FlagRuntime = 2 // runtime set: ignore rules do not apply
)
