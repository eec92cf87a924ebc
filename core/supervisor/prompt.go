package supervisor

import (
	"slices"
	"strings"

	"github.com/pysandboxes/pysandboxes/core/daemon"
)

const (
	ipythonModule = "IPython"
	// ipythonMark has IPython show a marked prompt. Every sandboxed program may import the package. Python's own prompt is marked by
	// the guard (bindings/guard/prompt.c).
	ipythonMark = "--TerminalInteractiveShell.prompts_class=pysandboxes._ipython.Prompts"
)

// ipythonCommands have no prompt, and come first on IPython's command line.
var ipythonCommands = []string{"profile", "kernel", "locate", "history"}

// prompts tells whether a person sits at a prompt of the program from its start.
func prompts(args *Arguments) bool {
	ipython := args.Kind == TargetModule && args.Target == ipythonModule
	return isTerminal(0) && (typed(args) || ipython)
}

// typed tells whether the program is what comes in on stdin: from a terminal it is typed at python's own prompt, also after `-`.
func typed(args *Arguments) bool { return args.Kind == TargetNone || args.Kind == TargetStdin }

// ipython takes IPython for the prompt where it is installed and the profile lets it in and lets it run what is typed.
func ipython(plain *daemon.Plan, spec daemon.Spec) (*daemon.Plan, error) {
	files := spec.Interpreter.Module(ipythonModule, spec.Interpreter.Path)
	policy := plain.Policy()
	may := policy.Import(ipythonModule, "").Allow && policy.Eval("compile").Allow && policy.Eval("exec").Allow
	if len(files) == 0 || !plain.Learning() && !may {
		return plain, nil
	}
	spec.PythonArgs = append(slices.Clone(spec.PythonArgs), "-m", ipythonModule, ipythonMark)
	spec.Prompt = false // its prompt is a library's, which has call sites
	return daemon.Prepare(spec)
}

// marked is a command line of python that runs IPython, with the option that marks its prompt.
func marked(python []string) []string {
	at := 1 + slices.IndexFunc(python, func(word string) bool { return strings.HasSuffix(word, ipythonModule) })
	if at < len(python) && slices.Contains(ipythonCommands, python[at]) {
		return python
	}
	return slices.Insert(slices.Clone(python), at, ipythonMark)
}
