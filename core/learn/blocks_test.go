package learn

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestInsertAddsOnlyInsideItsBlock(t *testing.T) {
	text := "# mine\nenv=A=1\n# <learning_guard_envs>\nenv=OLD=${OLD}\n# </learning_guard_envs>\n\n# <learning_guard_files>\n# </learning_guard_files>\ntail  \t# kept"
	d, err := parseDocument("p", text)
	require.NoError(t, err)
	got := d.insert(map[string][]string{"learning_guard_envs": {"env=B=${B}"}, "learning_guard_files": {"expose-ro=./a", "expose-ro=./b"}})
	assert.Equal(t, "# mine\nenv=A=1\n# <learning_guard_envs>\nenv=OLD=${OLD}\nenv=B=${B}\n# </learning_guard_envs>\n\n"+
		"# <learning_guard_files>\nexpose-ro=./a\nexpose-ro=./b\n# </learning_guard_files>\ntail  \t# kept", got)
	assert.Equal(t, text, d.insert(nil), "nothing to add leaves the text as it is")
}

func TestInsertKeepsLineEndsAndAppendsMissingBlocks(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"crlf":              {"# <learning_guard_api>\r\n# </learning_guard_api>\r\n", "# <learning_guard_api>\r\nX\r\n# </learning_guard_api>\r\n"},
		"crlf in one block": {"a\n# <learning_guard_api>\r\n# </learning_guard_api>", "a\n# <learning_guard_api>\r\nX\r\n# </learning_guard_api>"},
		"empty":             {"", "\n# <learning_guard_api>\nX\n# </learning_guard_api>\n"},
		"no block":          {"env=A=1\r\n", "env=A=1\r\n\r\n# <learning_guard_api>\r\nX\r\n# </learning_guard_api>\r\n"},
		"no last line end":  {"env=A=1", "env=A=1\n\n# <learning_guard_api>\nX\n# </learning_guard_api>\n"},
		"other spacing":     {"  #<learning_guard_api>  \n#</learning_guard_api>\n", "  #<learning_guard_api>  \nX\n#</learning_guard_api>\n"},
		"byte order mark":   {"\ufeff# <learning_guard_api>\n# </learning_guard_api>\n", "\ufeff# <learning_guard_api>\nX\n# </learning_guard_api>\n"},
	} {
		t.Run(name, func(t *testing.T) {
			d, err := parseDocument("p", c.text)
			require.NoError(t, err)
			assert.Equal(t, c.want, d.insert(map[string][]string{"learning_guard_api": {"X"}}))
		})
	}
}

func TestDamagedMarkersAreErrorsThatNameTheLine(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		line int
		want string
	}{
		"never ends":      {"x\n# <learning_guard_envs>\ny\n", 2, "never ends"},
		"never begins":    {"# </learning_guard_envs>\n", 1, "does not begin"},
		"twice":           {"# <learning_guard_envs>\n# </learning_guard_envs>\n# <learning_guard_envs>\n# </learning_guard_envs>\n", 3, "second time"},
		"nested":          {"# <learning_guard_envs>\n# <learning_guard_files>\n# </learning_guard_files>\n# </learning_guard_envs>\n", 2, "begins inside"},
		"crossed":         {"# <learning_guard_envs>\n# </learning_guard_files>\n", 2, "still open"},
		"unknown":         {"# <learning_guard_env>\n# </learning_guard_env>\n", 1, "no learned block named learning_guard_env"},
		"bracket missing": {"# <learning_guard_envs\n# </learning_guard_envs>\n", 1, "damaged"},
		"text behind":     {"# <learning_guard_envs> mine\n", 1, "damaged"},
		"form feed in it": {"# <learning_guard_envs>\f\n", 1, "damaged"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := parseDocument("prof", c.text)
			var blockErr *BlockError
			require.ErrorAs(t, err, &blockErr)
			assert.Equal(t, c.line, blockErr.Line)
			assert.Contains(t, err.Error(), c.want)
			assert.Contains(t, err.Error(), "prof:")
			assert.NotContains(t, err.Error(), "\f")
		})
	}
}

func TestProseAboutABlockIsNoMarker(t *testing.T) {
	d, err := parseDocument("p", "# what <learning_guard_envs> means\nenv=A=# <learning_guard_envs>\n")
	require.NoError(t, err)
	assert.Empty(t, d.spans)
}

func TestVisibleIsOneHarmlessLine(t *testing.T) {
	for in, want := range map[string]string{
		"plain":         "plain",
		"größe ok":      "größe ok",
		"a\nb\r\tc":     `a\nb\r\tc`,
		"\x1b[31mred":   `\x1b[31mred`,
		"\xff\xfe":      `\xff\xfe`,
		"a\u202eb":      `a\u{202e}b`,
		"a\u2028b":      `a\u{2028}b`,
		`c:\x`:          `c:\\x`,
		"a\u00a0b\x00c": `a\u{a0}b\x00c`,
	} {
		assert.Equal(t, want, visible(in))
	}
	assert.Equal(t, "ab…yz", shorten("abcdefuvwxyz", 5))
	assert.Equal(t, "abc", shorten("abc", 5))
}

// FuzzInsert: whatever the profile holds, learning keeps every byte of it, in order, and what it wrote is found
// again in its block.
func FuzzInsert(f *testing.F) {
	f.Add("# <learning_guard_envs>\r\n# </learning_guard_envs>", "env=A=${A}")
	f.Add("env=A=1", "x")
	f.Add("# <learning_guard_envs>\n# <learning_guard_envs>\n", "x")
	f.Add("\ufeff\n\r\n\r", "x")
	f.Fuzz(func(t *testing.T, text, line string) {
		line = visible(line)
		if markerBroken.MatchString(line) {
			line = "#"
		}
		d, err := parseDocument("p", text)
		if err != nil {
			return
		}
		once := d.insert(map[string][]string{"learning_guard_envs": {line}})
		again, err := parseDocument("p", once)
		require.NoError(t, err)
		inside := again.inBlock("learning_guard_envs")
		require.NotEmpty(t, inside)
		assert.Equal(t, line, inside[len(inside)-1])
		if s, ok := d.spans["learning_guard_envs"]; ok {
			head := strings.Join(d.lines[:s.close], "")
			tail := strings.Join(d.lines[s.close:], "")
			assert.True(t, strings.HasPrefix(once, head) && strings.HasSuffix(once, tail))
			assert.Equal(t, head+line+endOf(d.lines[s.open], "\n")+tail, once)
			return
		}
		assert.True(t, strings.HasPrefix(once, text))
	})
}
