package profile

import "strconv"

// Position says where a rule stands. Line and Col count from 1; Col counts characters. Line 0 means that the rule did
// not come from a file: File is then "command line" or "code".
type Position struct {
	File string
	Line int
	Col  int
}

// String is "file:line", or the origin's name where there is no line.
func (p Position) String() string {
	if p.Line == 0 {
		return p.File
	}
	return p.File + ":" + strconv.Itoa(p.Line)
}

// IsZero reports whether the position names nothing (a default decided, not a rule).
func (p Position) IsZero() bool { return p == Position{} }

// Origin is where a rule comes from, strongest first.
type Origin int

// The origins. A scalar of a stronger origin hides that of a weaker one; lists unite.
const (
	OriginCode        Origin = iota // keyword arguments of sandboxes() and run()
	OriginCommandLine               // --key=value before the target
	OriginFile                      // the profile itself
	OriginInclude                   // a file that the profile includes
)

// String names the origin as messages do.
func (o Origin) String() string {
	switch o {
	case OriginCode:
		return "code"
	case OriginCommandLine:
		return "command line"
	case OriginFile:
		return "profile"
	case OriginInclude:
		return "include"
	}
	return "origin " + strconv.Itoa(int(o))
}

// Override is a rule given beside the file, as `--key=value` or as a keyword argument.
type Override struct {
	Key, Value string
	Origin     Origin // OriginCommandLine or OriginCode
}

// Rule is one line of a profile after quotes and substitution.
type Rule struct {
	Key string
	// Value is the whole value, unquoted and substituted. For `env` it is the value as written, so that no secret of
	// the host is kept where messages are made; Env holds the outcome.
	Value string
	// Items are the parts of Value between the separators of the key (commas for lists and paths, vertical bars for
	// `net`), unquoted, substituted and trimmed. Only separators written in the line itself, outside quotes and `${}`,
	// divide: a variable of the host cannot add a field.
	Items []string
	// Env is what an `env` rule sets. Empty where the host variable is unset and has no default.
	Env      []Variable
	Pos      Position
	ValueCol int // column of the first character of the value
	Origin   Origin
	Depth    int    // include depth, 0 in the profile itself
	Source   string // the line as written
	Comment  string // what stands behind ` #` in the line; learning writes there who asked for the rule
	rank     int    // lower wins for scalars
}

// Rank orders rules that cannot both hold: the lower one wins. Code, command line, file, later include, earlier include.
func (r *Rule) Rank() int { return r.rank }

// Variable is an environment variable of the child.
type Variable struct{ Name, Value string }

// Options says what to load and against which host.
type Options struct {
	Path      string     // "" means no file: overrides only
	Overrides []Override // stronger than the file
	// Env is the host environment, what `${}` reads.
	Env       map[string]string
	Platform  string // what include-platform compares with, as Python's sys.platform
	Home, Cwd string
	// IgnoreOverridesLock lets overrides pass a profile locked by learn=false; only tools that explain a profile set it.
	IgnoreOverridesLock bool
	// Skip leaves lines out, by file and line: tools that report every mistake of a profile, not only the first, take out
	// the line of each and load again. What is loaded so is never enforced.
	Skip []Position
}

// Warning is something that a person should know but that does not stop the load.
type Warning struct {
	Pos  Position
	Text string
}

// Profile is a loaded profile. It is not changed after Load.
type Profile struct {
	Path  string // absolute, "" where there is no file
	Rules []Rule // overrides first, then the file, then its includes in order
	// Protected are the paths that the sandbox must never write: the profile and everything that it includes, existing
	// or not, absolute. ProtectedAt tells, for each, the line that names it (the zero Position for the profile itself).
	Protected   []string
	ProtectedAt []Position
	// Missing are the includes that lead to no file, without those that every new profile has.
	Missing   []Rule
	Warnings  []Warning
	Locked    bool              // learn=false
	Env       map[string]string // the host environment it was loaded against
	Home, Cwd string            // as given in Options
}

// Scalar returns the rule that decides a scalar key: code, command line, file, later include, earlier include.
func (p *Profile) Scalar(key string) (Rule, bool) {
	best := -1
	for i := range p.Rules {
		if p.Rules[i].Key == key && (best < 0 || p.Rules[i].rank < p.Rules[best].rank) {
			best = i
		}
	}
	if best < 0 {
		return Rule{}, false
	}
	return p.Rules[best], true
}
