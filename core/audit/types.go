package audit

// Category groups sensitive calls by what a grant opens.
type Category string

// The categories, as `python-api=` names them.
const (
	ProcessExec     Category = "process-exec"    // starts a program or a copy of this one
	ProcessControl  Category = "process-control" // signals, priorities, limits of processes
	Privileges      Category = "privileges"      // identities, namespaces, root folder
	Threads         Category = "threads"         // starts a thread
	Native          Category = "native"          // runs machine code or touches raw memory
	Introspection   Category = "introspection"   // frames, the heap, hooks
	DynamicCode     Category = "dynamic-code"    // turns text into code
	Deserialization Category = "deserialization" // builds objects that data names
)

// Categories lists them in the order of docs and templates.
var Categories = []Category{ProcessExec, ProcessControl, Privileges, Threads, Native, Introspection, DynamicCode, Deserialization}

// Target is a function that the guard stands before, in place where it is C, by a shim where it is Python: a module and a
// path inside it, dots for class attributes.
type Target struct{ Module, Attr string }

// Call is a sensitive function: one thing that `python-api=` can grant.
type Call struct {
	Name       string   // canonical name, as rules and messages say it
	Aliases    []string // other names of the same thing, C twins included
	Category   Category
	Event      string   // audit event that covers it, "" if none does
	Shim       []Target // functions to shim, where no event says enough
	Slot       bool     // the guard stands before it in a C type, where there is no function (bindings/guard/ctypes.h, cffi.c), or before an attribute (hook.c)
	With       Category // any grant of this category grants it too, where no rule speaks of it
	WithCalls  []string // a grant of one of these functions grants it too, where no rule speaks of it
	Outer      bool     // a grant carries to the inner events of the category
	StdlibFree bool     // not charged when the nearest Python frame is standard library
	Since      string   // first CPython that has it, "" before 3.11
	Until      string   // last CPython that has it, "" still there
	Why        string
}

// FileEvent is an audit event that carries paths. Spec says where they stand and what is needed of them: see FileEvents.
type FileEvent struct {
	Event string
	Spec  string
	Why   string
}

// FileShim is a path function whose event is missing or says too little.
type FileShim struct {
	Target
	Spec string
	Why  string
}

// NetEvent is an audit event of the socket module.
type NetEvent struct {
	Event string
	Op    string // connect, bind, listen, sendto, resolve, reverse
	Why   string
}
