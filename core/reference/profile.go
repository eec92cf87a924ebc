package reference

import (
	"fmt"
	"strings"

	"github.com/pysandboxes/pysandboxes/core/profile"
)

// made is the head of each page, for those who would edit it.
const made = "<!-- Made by `make gen` from the engine's own tables; edit those. -->\n\n"

// grammar is what holds for every line. Keys have their own tables.
const grammar = `A profile is a text of lines, UTF-8, one rule a line: ` + "`key=value`" + `. It loads whole or not at all; an error names
file, line and what to write instead.

| form | meaning |
| --- | --- |
| ` + "`# text`" + ` | a comment, on a line of its own or after a value and a blank |
| ` + "`key=value # why`" + ` | blanks around ` + "`=`" + ` and at the ends do not count |
| ` + "`key=\"a, b # c\"`" + ` | double quotes keep commas, ` + "`#`" + ` and blanks; they know ` + "`\\\\ \\\" \\$ \\n \\r \\t \\xNN`" + ` and ` + "`${}`" + ` |
| ` + "`key='a, $b'`" + ` | single quotes take everything as it stands |
| ` + "`${NAME}`, `${NAME:-default}`" + ` | a variable of the environment that starts the sandbox; defaults nest. Unset without a default: an ` + "`env`" + ` rule sets nothing, every other rule is an error |
| ` + "`${PREFIX_*}`" + ` | in ` + "`env`" + ` rules only: each variable that fits |
| ` + "`include \"path\"`" + ` | reads another profile: relative to this file, ` + "`~`" + ` expands, a missing one is ignored, a circle is an error |
| ` + "`include-platform=linux \"path\"`" + ` | the same, where ` + "`sys.platform`" + ` is that value |

The order of lines decides nothing: a DENY wins wherever it stands, lists unite. Of a scalar the strongest line holds: code and
command line, then the file, then its includes (a later one before an earlier one); twice in one file is an error.
` + "`pysandboxes check FILE`" + ` finds mistakes, ` + "`pysandboxes explain FILE \"open /etc/passwd\"`" + ` says which line decides.
`

// scalarNote marks keys of which one line holds.
const scalarNote = " One line holds."

// Profile is docs/reference/profile.md.
func Profile() string {
	var b strings.Builder
	b.WriteString("# Reference: the profile\n\n" + made + grammar)
	family := ""
	for _, k := range profile.Keys {
		if k.Family != family {
			family = k.Family
			fmt.Fprintf(&b, "\n## %s\n\n| key | meaning | risk | example |\n| --- | --- | --- | --- |\n", title(family))
		}
		row(&b, k)
	}
	b.WriteString("\n## Provider keys\n\nHanded to that provider only. `bwrap.KEY=value` takes any further key of bubblewrap; landlock, subprocess and none have none.\n\n" +
		"| key | meaning | risk |\n| --- | --- | --- |\n")
	for _, k := range profile.ProviderKeys {
		fmt.Fprintf(&b, "| %s | %s | %s |\n", code(k.Grammar), cell(k.Meaning), cell(k.Risk))
	}
	b.WriteString("\n## Learned blocks\n\nLearning writes between these marks and nowhere else:\n\n")
	for _, block := range profile.Blocks {
		fmt.Fprintf(&b, "- `# <%s>` … `# </%s>`: %s\n", block.Tag, block.Tag, block.Family)
	}
	return b.String()
}

func row(b *strings.Builder, k profile.Key) {
	meaning := sentence(k.Meaning)
	if k.Scalar {
		meaning += scalarNote
	}
	example := ""
	if k.Example != "" {
		example = code(k.Example)
	}
	fmt.Fprintf(b, "| %s | %s | %s | %s |\n", code(k.Grammar), cell(meaning), cell(k.Risk), example)
}

func title(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

func sentence(s string) string {
	if strings.HasSuffix(s, ".") {
		return s
	}
	return s + "."
}

// cell keeps a text from ending its cell.
func cell(s string) string {
	return strings.NewReplacer("|", `\|`, "\n", " ", "*", `\*`, "<", "&lt;").Replace(s)
}

// code is a text as it is typed. In a table the bar needs its escape even there.
func code(s string) string { return "`" + strings.ReplaceAll(s, "|", `\|`) + "`" }
