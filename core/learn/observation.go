package learn

import "time"

// The families of observations. Each is written to its own block.
const (
	FamilyEnv    = "env"
	FamilyFile   = "file"
	FamilyNet    = "net"
	FamilyImport = "import"
	FamilyCall   = "call"
	FamilyEval   = "eval"
	FamilyResult = "result"
)

// Observation is one thing that the program did, as the guard (or the kernel's observer) reported it.
type Observation struct {
	Family string
	Op     string // what was done: "open", "connect", "import", "eval" ...
	// Subject is the path (canonical, absolute), the variable, the module, the function or the type. Unused for net.
	Subject   string
	Write     bool   // file: written, created, or removed
	Host      string // net: an address, or for Op "resolve" a name; for Proto "unix" a path
	Proto     string // net: tcp, udp, icmp, raw, unix
	Port      int
	Direction string // net: IN or OUT; derived from Op if empty
	Event     string // the audit event
	Category  string // call: the category of the function
	Site      string // file:line of the first caller outside the standard library, or ""
	Native    bool   // seen by the observer of native code, which sees what Python does as well
	Process   int    // import: who asked; 0 where that makes no difference
	Dist      string // import: the distribution, if known
	Version   string // import: the distribution's version
}

// key is what makes two observations the same: all but who asked.
func (o Observation) key() Observation {
	o.Site, o.Dist, o.Version, o.Native, o.Process = "", "", "", false, 0
	return o
}

// Risk grades a learned rule by what it opens to code that turns hostile.
type Risk int

// The grades, from what is granted every day to what ends a layer of the sandbox.
const (
	Low Risk = iota
	Medium
	High
)

// String is the word that the table shows.
func (r Risk) String() string {
	switch r {
	case High:
		return "high"
	case Medium:
		return "medium"
	}
	return "low"
}

// Learned is one line for the profile, or (with Line empty) something that could not be written as a rule and the
// comment that says why.
type Learned struct {
	Family  string
	Line    string // a whole rule, "key=value", quoted as the profile needs it; "" for a comment alone
	Comment string // one line, without "#"
	Count   int    // how often it was observed
	Site    string // first call site, file:line, or ""
	Risk    Risk
}

// Result is what a learning run adds to a profile, in the order of the profile's sections.
type Result struct {
	Lines []Learned
	At    time.Time // when; dates the comment in the profile
}

// Rules counts the rules; comments alone are not counted.
func (r Result) Rules() int {
	n := 0
	for _, l := range r.Lines {
		if l.Line != "" {
			n++
		}
	}
	return n
}
