package learn

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// visible makes any text fit for a comment or a terminal: one line, and nothing that moves a cursor, hides, or reads
// as something else. Control characters, line separators, bidirectional marks and bytes that are no UTF-8 become
// backslash escapes; a backslash is doubled, so that what is shown is unambiguous.
func visible(s string) string {
	if plain(s) {
		return s
	}
	var out strings.Builder
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && size <= 1:
			fmt.Fprintf(&out, `\x%02x`, s[i])
		case r == '\\':
			out.WriteString(`\\`)
		case r == '\n':
			out.WriteString(`\n`)
		case r == '\r':
			out.WriteString(`\r`)
		case r == '\t':
			out.WriteString(`\t`)
		case r < 0x20 || r == 0x7f:
			fmt.Fprintf(&out, `\x%02x`, r)
		case !showable(r):
			fmt.Fprintf(&out, `\u{%x}`, r)
		default:
			out.WriteRune(r)
		}
		i += size
	}
	return out.String()
}

// plain says that visible would change nothing.
func plain(s string) bool {
	if !utf8.ValidString(s) {
		return false
	}
	for _, r := range s {
		if r == '\\' || !showable(r) {
			return false
		}
	}
	return true
}

// showable leaves out control and format characters (which include the bidirectional ones), separators other than
// the plain space, and what Unicode has not assigned.
func showable(r rune) bool { return r == ' ' || unicode.IsGraphic(r) && !unicode.IsSpace(r) }

// shorten cuts a long text in its middle, so that both ends stay to be read.
func shorten(s string, width int) string {
	runes := []rune(s)
	if width < 5 || len(runes) <= width {
		return s
	}
	head := (width - 1) / 2
	tail := width - 1 - head
	return string(runes[:head]) + "…" + string(runes[len(runes)-tail:])
}
