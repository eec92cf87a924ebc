package profile

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Quote returns s so that it reads back exactly as one item of a value: as it stands where that is enough, else in
// double quotes with escapes. Whatever s holds, the result is one line of printable text. A NUL byte has no form in a
// profile: ok is false.
func Quote(s string) (quoted string, ok bool) {
	if strings.ContainsRune(s, 0) {
		return "", false
	}
	if plain(s) {
		return s, true
	}
	var b strings.Builder
	b.WriteByte('"')
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == '"' || r == '\\' || r == '$':
			b.WriteString("\\" + string(r))
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\r':
			b.WriteString(`\r`)
		case r == '\t':
			b.WriteString(`\t`)
		case r == utf8.RuneError && size == 1, r < ' ', r >= 0x7f && r < 0xa0, hidden(r):
			for _, c := range []byte(s[i : i+size]) {
				fmt.Fprintf(&b, `\x%02x`, c)
			}
		default:
			b.WriteString(s[i : i+size])
		}
		i += size
	}
	b.WriteByte('"')
	return b.String(), true
}

// plain tells a text that needs no quotes.
func plain(s string) bool {
	if s == "" || strings.Trim(s, " \t") != s || strings.ContainsAny(s, `"'#,|`) || strings.Contains(s, "${") || !utf8.ValidString(s) {
		return false
	}
	return !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r >= 0x7f && r < 0xa0 || hidden(r) })
}
