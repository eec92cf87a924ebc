package profile

import "strings"

// Block is a part of the profile that learning writes; all else belongs to people.
type Block struct {
	Family string // family of the section that holds it
	Tag    string // between `# <tag>` and `# </tag>`
}

// Blocks are the learned blocks in the order of the template.
var Blocks = []Block{
	{FamilyEnv, "learning_guard_envs"},
	{FamilyFiles, "learning_guard_files"},
	{FamilyNet, "learning_guard_socket"},
	{FamilyImports, "learning_guard_import"},
	{FamilyCalls, "learning_guard_api"},
	{FamilyStrings, "learning_guard_eval"},
	{FamilyResults, "learning_remote_result"},
}

// section is one part of the template: a sentence, its live lines, its commented examples.
type section struct {
	family string
	title  string
	text   []string
	live   []string // lines that hold in a new profile
	try    []string // commented out
}

// sections are the text of a new profile. Grammar and risk come from Keys.
var sections = []section{
	{FamilySwitches, "Layers", []string{"Python layer and OS layer. auto takes the strongest OS layer that this machine offers."},
		[]string{"os-sandbox=${OS_SANDBOX:-auto}"},
		[]string{"py-sandbox=true", "learn=false    # locks this file after a review"}},
	{FamilyEnv, "Environment", []string{"The program starts with an empty environment."}, nil,
		[]string{"env=LANG=${LANG:-C.UTF-8}", "env=OPENAI_*=${OPENAI_*}", "unenv=*_TOKEN"}},
	{FamilyFiles, "Files", []string{"Everything else is absent, but for the interpreter's own runtime and the script."}, nil,
		[]string{"expose-ro=./data", "expose-rw=./output", "ignore=.env"}},
	{FamilyNet, "Network", []string{"DENY first, then ALLOW, else refused. * does not hold @private, @loopback, @link-local, @metadata."},
		[]string{"net=DENY|*|@metadata|*|OUT"},
		[]string{"net=ALLOW|TCP|api.example.com|443|OUT", "net=ALLOW|TCP|*.example.com|443|OUT    # the names below example.com", "net=ALLOW|TCP|@loopback|8000-8010|*", "net=DENY|*|@private|*|OUT"}},
	{FamilyImports, "Imports", []string{"What the program and its libraries may import; the standard library's own imports are not charged."}, nil,
		[]string{"python-import=json, datetime", "python-import=*, DENY:ctypes"}},
	{FamilyCalls, "Calls", []string{"Functions that matter, one by one or by category: process-exec, process-control, privileges, threads,",
		"native, introspection, dynamic-code, deserialization. threads is common (httpx, anyio)."}, nil,
		[]string{"python-api=ALLOW:threads", "python-api=ALLOW:subprocess.run", "python-api=DENY:os.system"}},
	{FamilyStrings, "Evaluated strings", []string{"Strings given to eval, exec and compile. With no eval-* line and no python-api=ALLOW:dynamic-code they are refused."}, nil,
		[]string{"eval-syntax=arith, compare", "eval-call=len, sum"}},
	{FamilyResults, "Results", []string{"What a sandboxed function may return to the application."}, nil,
		[]string{"remote-result-mode=data-only"}},
	{FamilyLimits, "Limits", []string{"Held by the OS layer."}, nil,
		[]string{"limit-memory=512MB", "limit-cpu=30s", "call-timeout=10s"}},
	{FamilyProvider, "Provider", []string{"provider.key=value is handed to that provider only."}, nil,
		[]string{"qemu.memory=512MB", "bwrap.unshare-net=yes"}},
}

const head = `# Profile of pysandboxes: what this program may do. Everything else is refused.
#
# One rule a line, key=value. "#" starts a comment; values with commas, # or blanks at the ends go in quotes.
# ${VAR} and ${VAR:-default} read the environment that starts the sandbox. A DENY wins wherever it stands.
# Check this file with:  pysandboxes check .py-sandboxes
# Lines between <learning_...> marks are written by learning; everything else is yours and is never touched.

include "./.local.py-sandboxes"
include "~/.config/py-sandboxes/user-py-sandboxes.profile"
include "/etc/py-sandboxes/global-py-sandboxes.profile"
`

// Template returns the text of a new profile: a section a family with its grammar, typical lines commented out, the
// risk in a sentence, and the empty learned blocks.
func Template() string {
	var b strings.Builder
	b.WriteString(head)
	for _, s := range sections {
		b.WriteString("\n# ---- " + s.title + " " + strings.Repeat("-", 100-len(s.title)) + "\n")
		for _, t := range s.text {
			b.WriteString("# " + t + "\n")
		}
		risk := ""
		for _, k := range Keys {
			if k.Family != s.family || k.Name == "port" {
				continue
			}
			b.WriteString("#   " + k.Grammar + "\n")
			if risk == "" {
				risk = k.Risk
			}
		}
		if risk != "" {
			b.WriteString("# Risk: " + risk + "\n")
		}
		for _, t := range s.try {
			b.WriteString("#" + t + "\n")
		}
		for _, t := range s.live {
			b.WriteString(t + "\n")
		}
		for _, block := range Blocks {
			if block.Family == s.family {
				b.WriteString("# <" + block.Tag + ">\n# </" + block.Tag + ">\n")
			}
		}
	}
	return b.String()
}
