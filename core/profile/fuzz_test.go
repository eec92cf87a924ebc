package profile

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// FuzzSubstitution: what a variable holds never becomes a second field, a second line or another variable.
func FuzzSubstitution(f *testing.F) {
	for _, s := range []string{"${A}", "${A:-b}", "${NO:-${A}}", "x${A}y,${A}", `"${A}\n"`, "'${A}'", "${A:-${A:-${A}}}", "${", "${A_*}", "$A", "${A:-}", "${A:-a,b|c}"} {
		f.Add(s, "value")
	}
	f.Add("${A},b", "a,b|c # d\n${A}")
	f.Fuzz(func(t *testing.T, text, value string) {
		load := func(key, value string, env map[string]string) (*Profile, error) {
			return Load(Options{Overrides: []Override{{key, value, OriginCode}}, Env: env, Platform: "linux"})
		}
		for _, key := range []string{"expose-ro", "python-import", "net", "unenv"} {
			plain, errPlain := load(key, text, map[string]string{"A": "x"})
			p, err := load(key, text, map[string]string{"A": value})
			if err != nil {
				require.Nil(t, p)
				require.NotEmpty(t, err.Error())
				continue
			}
			if errPlain != nil { // an empty value takes a default that x does not
				continue
			}
			if value != "" {
				require.Len(t, p.Rules[0].Items, len(plain.Rules[0].Items), "%s=%q with %q", key, text, value)
			}
			require.Len(t, p.Rules, 1)
		}
		if p, err := load("env", "N="+text, map[string]string{"A": value}); err == nil {
			require.Len(t, p.Rules, 1)
			require.LessOrEqual(t, len(p.Rules[0].Env), 1)
			if value != "" && len(value) > 8 && !strings.Contains(text, value) {
				require.NotContains(t, p.Rules[0].Value, value, "a value of the host is not kept")
			}
		}
	})
}

// FuzzIncludes: whatever three files say of each other, loading ends, whole or not at all, and every rule knows its file.
func FuzzIncludes(f *testing.F) {
	f.Add(`include "b"`, `include "c"`, `include "a"`)
	f.Add("include b\ninclude b\nenv=A=1", "include-platform=linux './c'\nlimit-cpu=1s", "include ~/a")
	f.Add("include ../x/b", "include ${A:-c}", "include \"\xff\"")
	f.Add("include .", "include /", "include /dev/stdin")
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, a, b, c string) {
		for name, text := range map[string]string{"a": a, "b": b, "c": c} {
			require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
		}
		p, err := Load(Options{Path: filepath.Join(dir, "a"), Home: dir, Cwd: dir, Platform: "linux", Env: map[string]string{}})
		if err != nil {
			require.Nil(t, p)
			require.NotEmpty(t, err.Error())
			return
		}
		require.Contains(t, p.Protected, filepath.Join(dir, "a"))
		require.Len(t, p.ProtectedAt, len(p.Protected))
		for _, r := range p.Rules {
			require.Contains(t, p.Protected, r.Pos.File)
			require.Equal(t, r.Origin == OriginInclude, r.Depth > 0)
		}
	})
}
