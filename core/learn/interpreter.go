package learn

import "strings"

// ofInterpreter is the event of what the interpreter itself reads before a program runs, which nothing tells of.
const ofInterpreter = "interpreter"

// interpreterReads lists the variables by which an interpreter, and what it starts with, does something else
// (docs.python.org/3/using/cmdline.html; TZ is the C library's, for the module time). The locale is none of them: without it, text is
// UTF-8 (PEP 538, PEP 540).
var interpreterReads = []string{
	"PYTHONASYNCIODEBUG", "PYTHONBREAKPOINT", "PYTHONCASEOK", "PYTHONCOERCECLOCALE", "PYTHONDEVMODE", "PYTHONDONTWRITEBYTECODE",
	"PYTHONFAULTHANDLER", "PYTHONHASHSEED", "PYTHONHOME", "PYTHONINTMAXSTRDIGITS", "PYTHONIOENCODING", "PYTHONMALLOC",
	"PYTHONNODEBUGRANGES", "PYTHONNOUSERSITE", "PYTHONOPTIMIZE", "PYTHONPATH", "PYTHONPLATLIBDIR", "PYTHONPROFILEIMPORTTIME",
	"PYTHONPYCACHEPREFIX", "PYTHONSAFEPATH", "PYTHONTRACEMALLOC", "PYTHONUNBUFFERED", "PYTHONUSERBASE", "PYTHONUTF8",
	"PYTHONVERBOSE", "PYTHONWARNDEFAULTENCODING", "PYTHONWARNINGS", "TZ",
}

// Interpreter gives what an interpreter that is started with these arguments reads of the environment. A variable that is empty is
// as good as none to it.
func Interpreter(args []string, env map[string]string) []Observation {
	isolated := isolated(args)
	var out []Observation
	for _, name := range interpreterReads {
		if env[name] != "" && !(isolated && strings.HasPrefix(name, "PYTHON")) {
			out = append(out, Observation{Family: FamilyEnv, Op: "read", Subject: name, Event: ofInterpreter})
		}
	}
	return out
}

// isolated tells that -E or -I is among the interpreter's own options: PYTHON* variables are not read then.
func isolated(args []string) bool {
	for i := 0; i < len(args); i++ {
		option, ok := strings.CutPrefix(args[i], "-")
		if !ok || option == "" || option[0] == '-' && option != "-check-hash-based-pycs" {
			return false
		}
		switch at := strings.IndexAny(option, "-EIWXcm"); {
		case at < 0: // flags that change nothing here
		case strings.ContainsRune("EI", rune(option[at])):
			return true
		case strings.ContainsRune("cm", rune(option[at])): // the program
			return false
		case option[at] == '-' || at+1 == len(option):
			i++ // its value
		}
	}
	return false
}
