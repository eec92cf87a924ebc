package supervisor

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pysandboxes/pysandboxes/core/profile"
)

func rule(key, value string) profile.Override {
	return profile.Override{Key: key, Value: value, Origin: profile.OriginCommandLine}
}

func words(list ...string) []string { return list }

func TestParse(t *testing.T) {
	for name, tc := range map[string]struct {
		argv []string
		want Arguments
	}{
		"nothing":                {nil, Arguments{}},
		"script":                 {words("a.py", "-c", "--learn"), Arguments{Python: words("a.py", "-c", "--learn"), Kind: TargetFile, Target: "a.py"}},
		"module":                 {words("-m", "http.server", "--help"), Arguments{Python: words("-m", "http.server", "--help"), Kind: TargetModule, Target: "http.server"}},
		"module in one word":     {words("-mjson.tool", "-"), Arguments{Python: words("-mjson.tool", "-"), Kind: TargetModule, Target: "json.tool"}},
		"command":                {words("-c", "pass", "-m"), Arguments{Python: words("-c", "pass", "-m"), Kind: TargetCommand, Target: "pass"}},
		"command in a cluster":   {words("-Ic", "pass"), Arguments{Python: words("-Ic", "pass"), Kind: TargetCommand, Target: "pass", Isolated: true}},
		"command that is empty":  {words("-c", "", "x"), Arguments{Python: words("-c", "", "x"), Kind: TargetCommand}},
		"command like an option": {words("-c", "--learn"), Arguments{Python: words("-c", "--learn"), Kind: TargetCommand, Target: "--learn"}},
		"stdin":                  {words("-i", "-", "x"), Arguments{Python: words("-i", "-", "x"), Kind: TargetStdin}},
		"two dashes":             {words("-O", "--", "-x.py", "y"), Arguments{Python: words("-O", "--", "-x.py", "y"), Kind: TargetFile, Target: "-x.py"}},
		"two dashes and nothing": {words("--"), Arguments{Python: words("--")}},
		"values":                 {words("-X", "utf8", "-Wignore", "-Xdev", "-bb", "x"), Arguments{Python: words("-X", "utf8", "-Wignore", "-Xdev", "-bb", "x"), Kind: TargetFile, Target: "x"}},
		"value that is a dash":   {words("-W", "-", "x"), Arguments{Python: words("-W", "-", "x"), Kind: TargetFile, Target: "x"}},
		"value after a cluster":  {words("-uW", "error", "x"), Arguments{Python: words("-uW", "error", "x"), Kind: TargetFile, Target: "x"}},
		"long of python":         {words("--check-hash-based-pycs", "never", "x"), Arguments{Python: words("--check-hash-based-pycs", "never", "x"), Kind: TargetFile, Target: "x"}},
		"safe path":              {words("-P", "x"), Arguments{Python: words("-P", "x"), Kind: TargetFile, Target: "x", Isolated: true}},
		"own options and rules between python's": {
			words("--learn", "-u", "--python-import=json, re", "--pysandboxes-config", "p", "--os-sandbox=none", "--env=A=b=c", "x", "--env=D=e"),
			Arguments{Learn: true, Config: "p", Python: words("-u", "x", "--env=D=e"), Kind: TargetFile, Target: "x",
				Rules: []profile.Override{rule("python-import", "json, re"), rule("os-sandbox", "none"), rule("env", "A=b=c")}}},
		"files in one word":   {words("--learn=f", "--pysandboxes-config=p"), Arguments{Learn: true, LearnFile: "f", Config: "p"}},
		"empty value":         {words("--python-import="), Arguments{Rules: []profile.Override{rule("python-import", "")}}},
		"provider's key":      {words("--qemu.memory=1GB"), Arguments{Rules: []profile.Override{rule("qemu.memory", "1GB")}}},
		"named eval profile":  {words("--eval-syntax:calc=arith"), Arguments{Rules: []profile.Override{rule("eval-syntax:calc", "arith")}}},
		"help":                {words("--help", "x"), Arguments{Help: true, Python: words("x")}},
		"version":             {words("-u", "--version"), Arguments{Version: true, Python: words("-u")}},
		"python's version":    {words("-VV"), Arguments{Direct: words("-VV")}},
		"python's help":       {words("-Eh", "x"), Arguments{Direct: words("-Eh"), Python: words("x")}},
		"python's other help": {words("--help-env"), Arguments{Direct: words("--help-env")}},
		"help of the program": {words("x", "--help", "-V"), Arguments{Python: words("x", "--help", "-V"), Kind: TargetFile, Target: "x"}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Parse(tc.argv)
			require.NoError(t, err)
			assert.Equal(t, tc.want, *got)
		})
	}
}

func TestParseSaysWhatIsWrong(t *testing.T) {
	for _, tc := range []struct {
		argv []string
		says string
	}{
		{words("--lern"), "unknown option --lern\nDid you mean --learn?"},
		{words("--pysandbox-config=x"), "Did you mean --pysandboxes-config?"},
		{words("--python-imports=json"), "Did you mean --python-import?"},
		{words("--qwertyuiop"), "unknown option --qwertyuiop\npython-sb --help"},
		{words("--python-import", "json"), "the rule --python-import needs a value\nWrite --python-import=VALUE"},
		{words("--learn="), "names no file"},
		{words("--pysandboxes-config"), "--pysandboxes-config names no file"},
		{words("--pysandboxes-config="), "--pysandboxes-config names no file"},
		{words("--help=x"), "--help takes no value"},
		{words("-c"), "the option -c needs an argument"},
		{words("-Xutf8", "-m"), "the option -m needs an argument"},
		{words("-Z"), "unknown option -Z"},
		{words("-IZ"), "unknown option -Z"},
		{words("--check-hash-based-pycs"), "needs a value"},
		{words("--check-hash-based-pycs=never"), "unknown option --check-hash-based-pycs"},
	} {
		_, err := Parse(tc.argv)
		var usage *UsageError
		require.ErrorAs(t, err, &usage, "%q", tc.argv)
		assert.ErrorContains(t, err, tc.says)
	}
}

// FuzzParse: any command line is understood or refused, and what python gets is the end of what was given, or its options.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{"", "a.py", "-Ic\x00pass", "--learn\x00-X\x00dev\x00x", "--python-import=a\x00-m\x00m", "--\x00-", "-\x00", "-W", "--=", "--env=A=b\x00-V"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, line string) {
		argv := strings.Split(line, "\x00")
		got, err := Parse(argv)
		if err != nil {
			return
		}
		rest := 0 // python's words are the given ones in the given order
		for _, word := range got.Python {
			for rest < len(argv) && argv[rest] != word {
				rest++
			}
			require.Less(t, rest, len(argv), "%q is not of %q", word, argv)
			rest++
		}
	})
}
