package profile

import (
	"slices"
	"strings"
	"sync"

	"github.com/pysandboxes/pysandboxes/core/nearest"
)

// Kind is how the value of a key is read.
type Kind int

// The kinds of value.
const (
	Text     Kind = iota // free text
	Bool                 // true, false
	Choice               // one of Key.Choices
	Count                // a whole number, `_` between digits
	Size                 // a number with KB, MB, GB
	Duration             // a number with ms, s, m, h
	List                 // items between commas
	Fields               // fields between vertical bars
	Paths                // one or two paths between commas
	Env                  // NAME=value
)

// The families, which are the sections of the template and of the reference.
const (
	FamilyEnv      = "environment"
	FamilyFiles    = "files"
	FamilyNet      = "network"
	FamilyImports  = "imports"
	FamilyCalls    = "calls"
	FamilyStrings  = "strings"
	FamilyResults  = "results"
	FamilySwitches = "switches"
	FamilyLimits   = "limits"
	FamilyProvider = "provider"
)

// Key is one key of a profile.
type Key struct {
	Name    string
	Family  string
	Kind    Kind
	Choices []string // for Choice
	Scalar  bool     // the strongest origin wins; a repeat inside one file is an error
	EmptyOK bool     // an empty value means the empty list
	Named   bool     // `key:NAME` is a key of the profile NAME for guarded strings
	Grammar string   // the form, as the reference shows it
	Meaning string
	Risk    string // what granting it opens, "" for keys that grant nothing
	Example string // a typical line
}

// Keys is the one table of keys: the loader, the template and the reference page are made from it. Keys of providers
// stand in ProviderKeys.
var Keys = []Key{
	{Name: "env", Family: FamilyEnv, Kind: Env, Grammar: "env=NAME=value | env=NAME=${HOST} | env=PREFIX_*=${PREFIX_*}",
		Meaning: "sets a variable of the child, which starts with an empty environment; an exact name wins over a pattern, the longer pattern over a shorter one",
		Risk:    "The program can send away every value that it can read.", Example: "env=LANG=${LANG}"},
	{Name: "unenv", Family: FamilyEnv, Kind: Text, Grammar: "unenv=NAME | unenv=*_SUFFIX",
		Meaning: "takes a variable away, whatever env rules say", Example: "unenv=*_TOKEN"},

	{Name: "expose-ro", Family: FamilyFiles, Kind: Paths, Grammar: "expose-ro=SOURCE[,DEST]",
		Meaning: "makes a file, or a folder and all beneath it, readable; relative paths start at the folder of the profile",
		Risk:    "Whatever lies beneath can be read, and sent wherever the network rules allow.", Example: "expose-ro=./data"},
	{Name: "expose-rw", Family: FamilyFiles, Kind: Paths, Grammar: "expose-rw=SOURCE[,DEST]",
		Meaning: "the same, and it may be changed, created and deleted; a folder written with a slash at its end is made at the start where it is missing; the exact path of a socket makes it reachable",
		Risk:    "What other programs run or read from there is the sandboxed program's to choose.", Example: "expose-rw=./output"},
	{Name: "ignore", Family: FamilyFiles, Kind: Text, Grammar: "ignore=GLOB",
		Meaning: "hides what an exposure would show: a glob on a basename, or with a slash on a whole path (** crosses folders)", Example: "ignore=.env"},

	{Name: "net", Family: FamilyNet, Kind: Fields, Grammar: "net=ALLOW or DENY|PROTOCOL|NETWORK|PORTS|DIRECTION",
		Meaning: "PROTOCOL tcp, udp, icmp, *; NETWORK ip, cidr, host name, *.domain (the names below it), *, @private, @loopback, @link-local, @metadata; PORTS 443, 8000-8010, 80,443, *; DIRECTION IN, OUT, *. DENY first, then ALLOW, else refused. * does not hold the named sets",
		Risk:    "Everything that the program can read can leave through an open port.", Example: "net=ALLOW|TCP|api.example.com|443|OUT"},

	{Name: "python-import", Family: FamilyImports, Kind: List, EmptyOK: true, Grammar: "python-import=a, b.c | * | DENY:x",
		Meaning: "grants a module and its submodules to the program and its libraries; DENY wins",
		Risk:    "A module brings its functions; those that matter stay under the calls rules.", Example: "python-import=json, datetime"},

	{Name: "python-api", Family: FamilyCalls, Kind: List, Grammar: "python-api=ALLOW:TARGET | DENY:TARGET",
		Meaning: "TARGET is a function, a category or *; a rule for a function beats one for its category",
		Risk:    "process-exec and native end the Python layer for what they start: the OS layer alone holds it.", Example: "python-api=ALLOW:threads"},

	{Name: "eval-syntax", Family: FamilyStrings, Kind: List, Named: true, Grammar: "eval-syntax=GROUP or ast class, …",
		Meaning: "syntax that evaluated strings may use", Risk: "More syntax, more ways to reach what eval-call and eval-attribute open.", Example: "eval-syntax=arith, compare"},
	{Name: "eval-call", Family: FamilyStrings, Kind: List, Named: true, EmptyOK: true, Grammar: "eval-call=name, …",
		Meaning: "names that evaluated strings may call", Risk: "Each name is a function that the writer of the string may call with any argument.", Example: "eval-call=len, sum"},
	{Name: "eval-attribute", Family: FamilyStrings, Kind: List, Named: true, Grammar: "eval-attribute=name or GROUP, …",
		Meaning: "attributes that evaluated strings may read", Example: "eval-attribute=str-methods"},
	{Name: "eval-import", Family: FamilyStrings, Kind: List, Named: true, Grammar: "eval-import=module, …",
		Meaning: "modules that evaluated strings may import", Risk: "A module's functions come with it.", Example: "eval-import=math"},
	{Name: "eval-magic", Family: FamilyStrings, Kind: List, Named: true, Grammar: "eval-magic=__name__, …",
		Meaning: "dunder names that evaluated strings may read or define", Risk: "Most of them lead to the whole type hierarchy.", Example: "eval-magic=__len__"},
	{Name: "eval-namespace", Family: FamilyStrings, Kind: Choice, Choices: []string{"adaptive", "closed", "caller"}, Scalar: true, Named: true, Grammar: "eval-namespace=adaptive or closed or caller",
		Meaning: "which names of the caller evaluated strings see", Example: "eval-namespace=closed"},
	{Name: "eval-timeout", Family: FamilyStrings, Kind: Duration, Scalar: true, Named: true, Grammar: "eval-timeout=5s", Meaning: "longest time of one evaluation", Example: "eval-timeout=5s"},
	{Name: "eval-max-iterations", Family: FamilyStrings, Kind: Count, Scalar: true, Named: true, Grammar: "eval-max-iterations=1_000_000", Meaning: "loop and comprehension steps", Example: "eval-max-iterations=1_000_000"},
	{Name: "eval-max-call-depth", Family: FamilyStrings, Kind: Count, Scalar: true, Named: true, Grammar: "eval-max-call-depth=20", Meaning: "nested calls", Example: "eval-max-call-depth=20"},
	{Name: "eval-max-depth", Family: FamilyStrings, Kind: Count, Scalar: true, Named: true, Grammar: "eval-max-depth=20", Meaning: "nesting of the source", Example: "eval-max-depth=20"},
	{Name: "eval-max-nodes", Family: FamilyStrings, Kind: Count, Scalar: true, Named: true, Grammar: "eval-max-nodes=5_000", Meaning: "size of the source in syntax nodes", Example: "eval-max-nodes=5_000"},
	{Name: "eval-max-alloc", Family: FamilyStrings, Kind: Size, Scalar: true, Named: true, Grammar: "eval-max-alloc=10MB", Meaning: "memory that one evaluation may build", Example: "eval-max-alloc=10MB"},
	{Name: "eval-max-leaked-threads", Family: FamilyStrings, Kind: Count, Scalar: true, Named: true, Grammar: "eval-max-leaked-threads=4", Meaning: "evaluations that hang in a C call before further ones are refused", Example: "eval-max-leaked-threads=4"},

	{Name: "remote-result-mode", Family: FamilyResults, Kind: Choice, Choices: []string{"data-only", "primitives", "objects"}, Scalar: true, Grammar: "remote-result-mode=data-only or primitives or objects",
		Meaning: "what a call may return: plain values, the builtin ones alone, or objects of the application's classes",
		Risk:    "objects lets the sandbox choose which classes of the application are built.", Example: "remote-result-mode=data-only"},
	{Name: "remote-result-guard", Family: FamilyResults, Kind: Bool, Scalar: true, Grammar: "remote-result-guard=true or false",
		Meaning: "refuses known gadget classes in objects mode", Risk: "false lets a result name functions that run programs.", Example: "remote-result-guard=true"},

	{Name: "py-sandbox", Family: FamilySwitches, Kind: Bool, Scalar: true, Grammar: "py-sandbox=true or false", Meaning: "the Python layer",
		Risk: "false leaves the OS layer alone.", Example: "py-sandbox=true"},
	{Name: "os-sandbox", Family: FamilySwitches, Kind: Choice, Choices: Providers, Scalar: true, Grammar: "os-sandbox=auto or landlock, subprocess, none (later versions: unshare, bwrap, firejail, qemu)",
		Meaning: "the OS layer; auto takes the strongest that the machine offers and never falls to subprocess by itself",
		Risk:    "subprocess and none hold no native code.", Example: "os-sandbox=${OS_SANDBOX:-auto}"},
	{Name: "learn", Family: FamilySwitches, Kind: Text, Scalar: true, Grammar: "learn=FILE | learn=false",
		Meaning: "learns into a file; false locks this profile: learning, rules on the command line and rules passed in code are refused", Example: "learn=false"},
	{Name: "ignore-best-effort", Family: FamilySwitches, Kind: Bool, Scalar: true, Grammar: "ignore-best-effort=true or false",
		Meaning: "accepts ignore rules that the provider cannot hold", Risk: "Native code reads what such a rule hides.", Example: "ignore-best-effort=true"},
	{Name: "port", Family: FamilySwitches, Kind: Text, EmptyOK: true, Grammar: "port=N", Meaning: "of older profiles; no effect", Example: ""},

	{Name: "limit-memory", Family: FamilyLimits, Kind: Size, Scalar: true, Grammar: "limit-memory=512MB", Meaning: "memory", Example: "limit-memory=512MB"},
	{Name: "limit-cpu", Family: FamilyLimits, Kind: Duration, Scalar: true, Grammar: "limit-cpu=30s", Meaning: "processor time", Example: "limit-cpu=30s"},
	{Name: "limit-processes", Family: FamilyLimits, Kind: Count, Scalar: true, Grammar: "limit-processes=16", Meaning: "processes and threads", Example: "limit-processes=16"},
	{Name: "limit-open-files", Family: FamilyLimits, Kind: Count, Scalar: true, Grammar: "limit-open-files=256", Meaning: "open files", Example: "limit-open-files=256"},
	{Name: "limit-result", Family: FamilyLimits, Kind: Size, Scalar: true, Grammar: "limit-result=256MB", Meaning: "size of one result", Example: "limit-result=256MB"},
	{Name: "call-timeout", Family: FamilyLimits, Kind: Duration, Scalar: true, Grammar: "call-timeout=10s", Meaning: "longest time of a call; the child is killed and started again", Example: "call-timeout=10s"},
}

// names are all the keys, provider keys included, for suggestions: made when a key is mistyped.
var names = sync.OnceValue(func() []string {
	out := []string{"include", "include-platform"}
	for _, k := range Keys {
		out = append(out, k.Name)
	}
	for _, k := range ProviderKeys {
		out = append(out, k.Name)
	}
	return out
})

// byName finds a key without a walk over the table.
var byName = sync.OnceValue(func() map[string]Key {
	m := map[string]Key{}
	for _, k := range slices.Concat(Keys, ProviderKeys) {
		m[k.Name] = k
	}
	return m
})

// lookup finds the key of a word: a name of the table, `eval-…:NAME`, or `provider.key`.
func lookup(word string) (Key, bool) {
	if k, ok := byName()[word]; ok {
		return k, true
	}
	if base, name, ok := strings.Cut(word, ":"); ok && name != "" && !strings.Contains(name, ":") {
		if k, ok := byName()[base]; ok && k.Named {
			return k, true
		}
	}
	provider, option, ok := strings.Cut(word, ".")
	if ok && option != "" && slices.Contains(openProviders, provider) {
		return Key{Name: word, Family: FamilyProvider, Kind: Text, EmptyOK: true, Grammar: word + "=value"}, true
	}
	return Key{}, false
}

// FamilyOf returns the family of a key, "" for what is none.
func FamilyOf(word string) string {
	k, _ := lookup(word)
	return k.Family
}

// KindOf returns how the value of a key is read.
func KindOf(word string) Kind {
	k, _ := lookup(word)
	return k.Kind
}

// nearestKey suggests the key that a word most likely meant.
func nearestKey(word string) string {
	return nearest.Word(strings.ReplaceAll(word, "_", "-"), names())
}
