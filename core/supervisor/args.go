package supervisor

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pysandboxes/pysandboxes/core/nearest"
	"github.com/pysandboxes/pysandboxes/core/profile"
)

// TargetKind says what is to run.
type TargetKind int

// The targets of a Python command line.
const (
	TargetNone    TargetKind = iota // nothing named: a REPL, or a program on stdin where that is no terminal
	TargetFile                      // a script, a folder or an archive with __main__.py
	TargetModule                    // -m
	TargetCommand                   // -c
	TargetStdin                     // -
)

// Arguments is a command line, taken apart.
type Arguments struct {
	Help    bool // --help
	Version bool // --version

	Learn     bool   // --learn
	LearnFile string // of --learn=FILE
	Config    string // --pysandboxes-config
	Rules     []profile.Override

	// Direct holds python's own -h, -V and their like: they run no program, and python answers them itself.
	Direct []string

	Python   []string // everything after argv[0] of python: its options, the target and the program's arguments
	Kind     TargetKind
	Target   string // file, module or command
	Isolated bool   // -I or -P: the script's folder and the working directory are not on sys.path
}

// UsageError is a command line that cannot be understood.
type UsageError struct {
	Message string
	Hint    string
}

func (e *UsageError) Error() string {
	if e.Hint == "" {
		return e.Message
	}
	return e.Message + "\n" + e.Hint
}

// own are the long options of python-sb.
var own = []string{"--learn", "--pysandboxes-config", "--help", "--version"}

// pythonLong are the long options of python (Python/initconfig.c). True: an argument follows.
var pythonLong = map[string]bool{
	"--check-hash-based-pycs": true,
	"--help-all":              false, "--help-env": false, "--help-xoptions": false,
}

// The short options of python (Python/getopt.c, 3.11 to 3.14).
const (
	shortFlags  = "bBdEiIOPqRsStuvx" // no argument
	shortValues = "WX"               // an argument in the same word or the next
	shortTarget = "cm"               // the argument is the target, and the options end
	shortDirect = "hV?"              // answered without running anything
)

const seeHelp = "python-sb --help lists the options."

// Parse takes a command line apart, argv[0] left out.
func Parse(argv []string) (*Arguments, error) {
	p := &parser{argv: argv, args: &Arguments{}}
	for p.next < len(argv) && !p.ended {
		if err := p.word(); err != nil {
			return nil, err
		}
	}
	p.args.Python = append(p.args.Python, argv[p.next:]...)
	return p.args, nil
}

type parser struct {
	argv  []string
	next  int
	ended bool
	args  *Arguments
}

// take gives the next word of the command line.
func (p *parser) take() (string, bool) {
	if p.next >= len(p.argv) {
		return "", false
	}
	p.next++
	return p.argv[p.next-1], true
}

func (p *parser) target(kind TargetKind, value string) {
	p.args.Kind, p.args.Target, p.ended = kind, value, true
}

func (p *parser) word() error {
	word, _ := p.take()
	switch {
	case word == "-":
		p.args.Python = append(p.args.Python, word)
		p.target(TargetStdin, "")
	case word == "--":
		// python takes the next word as its script, whatever it looks like.
		p.args.Python = append(p.args.Python, word)
		if script, found := p.take(); found {
			p.args.Python = append(p.args.Python, script)
			p.target(TargetFile, script)
		}
		p.ended = true
	case strings.HasPrefix(word, "--"):
		return p.long(word)
	case strings.HasPrefix(word, "-"):
		return p.short(word)
	default:
		p.args.Python = append(p.args.Python, word)
		p.target(TargetFile, word)
	}
	return nil
}

func (p *parser) long(word string) error {
	name, value, assigned := strings.Cut(word, "=")
	switch name {
	case "--help", "--version":
		if assigned {
			return &UsageError{name + " takes no value", seeHelp}
		}
		p.args.Help, p.args.Version, p.ended = name == "--help", name == "--version", true
		return nil
	case "--learn":
		if assigned && value == "" {
			return &UsageError{"--learn= names no file", "Write --learn=FILE, or --learn alone for the profile in use."}
		}
		p.args.Learn, p.args.LearnFile = true, value
		return nil
	case "--pysandboxes-config":
		if !assigned {
			value, _ = p.take()
		}
		if value == "" {
			return &UsageError{"--pysandboxes-config names no file", "Write --pysandboxes-config=FILE."}
		}
		p.args.Config = value
		return nil
	}
	if takes, known := pythonLong[name]; known && !assigned {
		if !takes {
			p.args.Direct, p.ended = []string{name}, true
			return nil
		}
		value, found := p.take()
		if !found {
			return &UsageError{"the option " + name + " needs a value", seeHelp}
		}
		p.args.Python = append(p.args.Python, name, value)
		return nil
	}
	key := strings.TrimPrefix(name, "--")
	if assigned && isKey(key) {
		p.args.Rules = append(p.args.Rules, profile.Override{Key: key, Value: value, Origin: profile.OriginCommandLine})
		return nil
	}
	return unknownLong(name, assigned)
}

func unknownLong(name string, assigned bool) error {
	key := strings.TrimPrefix(name, "--")
	if isKey(key) && !assigned {
		return &UsageError{"the rule " + name + " needs a value", "Write " + name + "=VALUE; the forms stand in a profile's comments and in the documentation."}
	}
	words := slices.Clone(own)
	for long := range pythonLong {
		words = append(words, long)
	}
	slices.Sort(words)
	for _, table := range [][]profile.Key{profile.Keys, profile.ProviderKeys} {
		for _, k := range table {
			words = append(words, "--"+k.Name)
		}
	}
	hint := seeHelp
	if near := nearest.Word(name, words); near != "" {
		hint = "Did you mean " + near + "? " + seeHelp
	}
	return &UsageError{"unknown option " + name, hint}
}

// isKey reports whether a word may be the key of a rule. Forms with a name or a provider in them are judged when the
// rules are loaded, which knows more.
func isKey(word string) bool {
	base, _, named := strings.Cut(word, ":")
	_, _, dotted := strings.Cut(word, ".")
	for _, k := range profile.Keys {
		if k.Name == word || (named && k.Name == base) {
			return true
		}
	}
	if dotted {
		return slices.ContainsFunc(profile.Providers, func(provider string) bool { return strings.HasPrefix(word, provider+".") })
	}
	return false
}

// short reads a cluster of short options, such as -Ic or -Xutf8.
func (p *parser) short(word string) error {
	for i := 1; i < len(word); i++ {
		c, rest := word[i], word[i+1:]
		switch {
		case strings.IndexByte(shortFlags, c) >= 0:
			if c == 'I' || c == 'P' {
				p.args.Isolated = true
			}
			continue
		case strings.IndexByte(shortDirect, c) >= 0:
			p.args.Direct, p.ended = []string{word}, true
			return nil
		case strings.IndexByte(shortValues, c) < 0 && strings.IndexByte(shortTarget, c) < 0:
			return &UsageError{fmt.Sprintf("unknown option -%c", c), seeHelp}
		}
		words := []string{word}
		if rest == "" {
			value, found := p.take()
			if !found {
				return &UsageError{fmt.Sprintf("the option -%c needs an argument", c), seeHelp}
			}
			rest, words = value, append(words, value)
		}
		p.args.Python = append(p.args.Python, words...)
		switch c {
		case 'c':
			p.target(TargetCommand, rest)
		case 'm':
			p.target(TargetModule, rest)
		}
		return nil
	}
	p.args.Python = append(p.args.Python, word)
	return nil
}
