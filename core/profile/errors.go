package profile

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// SyntaxError is a fault in a profile, a command-line rule or a rule passed in code.
type SyntaxError struct {
	Pos     Position
	Line    string // the source line, "" where there is none
	Width   int    // characters to underline from Pos.Col, at least 1
	Message string // what is wrong
	Hint    string // how to mend it, "" where the message says it
}

// maxShown bounds the part of a source line that is printed; longer lines are cut around the caret.
const maxShown = 160

// Error is "file:line:col: message", the source line, a caret under the fault and the hint.
func (e *SyntaxError) Error() string {
	var b strings.Builder
	b.WriteString(e.Pos.String())
	if e.Pos.Line > 0 && e.Pos.Col > 0 {
		b.WriteString(":" + strconv.Itoa(e.Pos.Col))
	}
	b.WriteString(": " + e.Message)
	if e.Line != "" {
		line, col := window(printable(e.Line), e.Pos.Col)
		b.WriteString("\n    " + line)
		if col > 0 {
			width := max(1, min(e.Width, utf8.RuneCountInString(line)-col+1))
			b.WriteString("\n    " + strings.Repeat(" ", col-1) + strings.Repeat("^", width))
		}
	}
	if e.Hint != "" {
		b.WriteString("\n  " + e.Hint)
	}
	return b.String()
}

// printable replaces what would move the caret or the terminal: every such character becomes one visible one, so that
// columns keep their meaning.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\t':
			return ' '
		case r < ' ' || (r >= 0x7f && r < 0xa0) || hidden(r):
			return utf8.RuneError
		}
		return r
	}, validEach(s))
}

// window cuts a long line to maxShown characters around col and returns the column within the cut.
func window(s string, col int) (string, int) {
	r := []rune(s)
	if len(r) <= maxShown {
		return s, col
	}
	from := max(0, min(col-1-maxShown/2, len(r)-maxShown))
	return string(r[from : from+maxShown]), col - from
}

// validEach replaces each invalid byte by one replacement character (strings.ToValidUTF8 folds runs into one).
func validEach(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	return string([]rune(s))
}

// hidden tells characters that a reader cannot see or that reorder what he sees (bidirectional controls, line and
// paragraph separators, byte order marks): a rule must read as it acts.
func hidden(r rune) bool {
	switch {
	case r == 0x200b, r == 0x200e, r == 0x200f, r == 0x2028, r == 0x2029, r == 0xfeff, r == 0x061c:
		return true
	case r >= 0x202a && r <= 0x202e, r >= 0x2060 && r <= 0x2069, r >= 0xe0000 && r <= 0xe007f:
		return true
	}
	return false
}
