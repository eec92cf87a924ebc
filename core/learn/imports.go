package learn

import (
	_ "embed" // the list of standard modules
	"strings"
	"sync"

	"github.com/pysandboxes/pysandboxes/core/policy"
)

// dangerousImports are modules whose reach goes past the rule that names them, each with its reason.
var dangerousImports = map[string]struct {
	risk Risk
	why  string
}{
	"ctypes":                     {High, "calls any C function: only the OS layer holds it"},
	"_ctypes":                    {High, "calls any C function: only the OS layer holds it"},
	"cffi":                       {High, "calls any C function: only the OS layer holds it"},
	"_cffi_backend":              {High, "calls any C function: only the OS layer holds it"},
	"_imp":                       {High, "loads modules past the import rules"},
	"imp":                        {High, "loads modules past the import rules"},
	"_testcapi":                  {High, "the interpreter's own test hooks"},
	"_testinternalcapi":          {High, "the interpreter's own test hooks"},
	"_xxsubinterpreters":         {High, "runs code in another interpreter"},
	"_interpreters":              {High, "runs code in another interpreter"},
	"subprocess":                 {High, "starts programs"},
	"_posixsubprocess":           {High, "starts programs"},
	"multiprocessing":            {High, "starts processes"},
	"pty":                        {High, "starts programs on a terminal"},
	"webbrowser":                 {High, "starts a browser"},
	"pip":                        {High, "installs and runs packages"},
	"ensurepip":                  {High, "installs packages"},
	"venv":                       {High, "makes environments, starts programs"},
	"posix":                      {Medium, "the system calls behind os"},
	"pickle":                     {High, "objects that are read may run code"},
	"_pickle":                    {High, "objects that are read may run code"},
	"shelve":                     {High, "objects that are read may run code"},
	"marshal":                    {High, "reads code objects"},
	"dill":                       {High, "objects that are read may run code"},
	"cloudpickle":                {High, "objects that are read may run code"},
	"joblib":                     {High, "objects that are read may run code, starts processes"},
	"code":                       {High, "runs code made from strings"},
	"codeop":                     {Medium, "compiles code from strings"},
	"runpy":                      {Medium, "runs modules and files by name"},
	"importlib":                  {Medium, "imports by names made at run time"},
	"pkgutil":                    {Medium, "imports by names made at run time"},
	"zipimport":                  {Medium, "imports from archives"},
	"gc":                         {Medium, "reaches every object"},
	"inspect":                    {Medium, "reaches other frames"},
	"_thread":                    {Medium, "threads without the checks of threading"},
	"signal":                     {Medium, "signals and their handlers"},
	"mmap":                       {Medium, "maps memory and files"},
	"fcntl":                      {Medium, "controls descriptors and devices"},
	"resource":                   {Medium, "changes limits"},
	"sqlite3":                    {Medium, "may load extensions"},
	"tkinter":                    {Medium, "Tcl can start programs"},
	"_tkinter":                   {Medium, "Tcl can start programs"},
	"distutils":                  {Medium, "starts compilers"},
	"setuptools":                 {Medium, "starts compilers"},
	"sitecustomize":              {Medium, "runs at every start"},
	"usercustomize":              {Medium, "runs at every start"},
	"antigravity":                {Medium, "starts a browser"},
	"builtins":                   {Medium, "the builtins themselves"},
	"_frozen_importlib":          {Medium, "the import system itself"},
	"_frozen_importlib_external": {Medium, "the import system itself"},
}

//go:embed stdlib_modules.txt
var stdlibList string

var stdlibModules = sync.OnceValue(func() map[string]bool {
	out := map[string]bool{}
	for _, line := range strings.Split(stdlibList, "\n") {
		if line != "" && !strings.HasPrefix(line, "#") {
			out[line] = true
		}
	}
	return out
})

// moduleName is what a rule may name. Python's identifiers know more letters, and a profile may hold them; learning
// asks for a person there, since such names are made to be mistaken for others. A name that begins with a digit is no
// identifier, and there are such modules: what mypyc compiles shares one that is named by a hash.
var moduleName = lazy(`^[A-Za-z0-9_]+(\.[A-Za-z0-9_]+)*$`)

// imports learns top-level names, in three groups: dangerous, standard library, and what was installed or is the
// program's own, with its distribution and version.
func (g *generaliser) imports(entries []entry) []Learned {
	var needed []entry
	var out []Learned
	for _, e := range entries {
		if g.o.Policy != nil {
			d := g.o.Policy.Import(e.Subject, "")
			if d.Allow {
				continue
			}
			if d.RuleText != "" {
				out = append(out, leftOut(FamilyImport, e, e.Subject+" is refused by "+d.Rule.String()))
				continue
			}
		}
		needed = append(needed, e)
	}
	var dists *distributions
	var dangerous, standard, external []Learned
	for _, e := range fold(needed, topLevel) {
		name := e.Subject
		if !moduleName.MatchString(name) {
			out = append(out, leftOut(FamilyImport, e, "the module "+name+" has a name that needs a person's eye"))
			continue
		}
		risk, comment := Low, "standard library"
		group := &standard
		if !stdlibModules()[name] {
			if dists == nil {
				dists = readDistributions(g.o.Runtime.Site)
			}
			group, comment = &external, dists.describe(e)
		}
		if grade, ok := dangerousImports[name]; ok && grade.risk > Low {
			group, risk, comment = &dangerous, grade.risk, join(grade.why, comment)
		}
		*group = append(*group, g.rule(e, "python-import="+name, risk, comment, expectation{
			key: "python-import", items: []string{name},
			allows: func(p *policy.Policy) bool { return p.Import(name, "").Allow },
		}))
	}
	var grouped []Learned
	for _, group := range [][]Learned{dangerous, standard, external, out} {
		grouped = append(grouped, byRisk(group)...)
	}
	return grouped
}

func topLevel(e entry) string {
	name, _, _ := strings.Cut(e.Subject, ".")
	return name
}
