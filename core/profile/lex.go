package profile

import (
	"strings"
	"unicode/utf8"
)

// A value is read in two steps. The lexer (this file) divides the line into items of literal text and `${}`
// expressions; expand.go puts the host's variables in. Separators are recognised in the first step only, so that what
// a variable holds can never become a second field.

// piece is literal text, or a variable where name is set.
type piece struct {
	text        string
	name        string  // variable, possibly a pattern with one `*`
	fallback    []piece // after `:-`
	hasFallback bool
	col         int // column of the `$`
}

// item is a part of a value between separators.
type item struct {
	pieces []piece
	col    int
}

// lexer reads one line. off counts bytes, columns are counted in characters when an error or an item needs one.
type lexer struct {
	pos      Position // file and line
	line     string
	off      int
	sep      byte // separator of the items, 0 for none
	afterEq  bool // a quote may open after the first `=` of the value
	comments bool // ` #` ends the value
	depth    int  // nesting of `${}`
	comment  string
}

const (
	maxNesting = 32
	maxItems   = 4096
)

func (l *lexer) col(off int) int { return utf8.RuneCountInString(l.line[:off]) + 1 }

// fail makes an error that underlines line[from:to].
func (l *lexer) fail(from, to int, message, hint string) *SyntaxError {
	p := l.pos
	p.Col = l.col(from)
	return &SyntaxError{Pos: p, Line: l.line, Width: max(1, utf8.RuneCountInString(l.line[from:max(from, to)])), Message: message, Hint: hint}
}

func (l *lexer) skipBlanks() {
	for l.off < len(l.line) && (l.line[l.off] == ' ' || l.line[l.off] == '\t') {
		l.off++
	}
}

// keyByte tells the characters of a key: letters, digits and -_.:
func keyByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_' || c == '.' || c == ':'
}

// key reads the word before `=`.
func (l *lexer) key() (word string, from int) {
	from = l.off
	for l.off < len(l.line) && keyByte(l.line[l.off]) {
		l.off++
	}
	return l.line[from:l.off], from
}

// items reads the rest of the line as a value.
func (l *lexer) items() ([]item, *SyntaxError) {
	var out []item
	for {
		l.skipBlanks()
		it := item{col: l.col(l.off)}
		more, err := l.item(&it)
		if err != nil {
			return nil, err
		}
		out = append(out, it)
		if !more {
			return out, nil
		}
		if len(out) >= maxItems {
			return nil, l.fail(l.off, l.off, "too many items in one line", "Divide the list into several lines of the same key.")
		}
	}
}

// item reads up to a separator, a comment or the end; more tells that a separator was there. A quote opens at the start
// of an item only (and after the first `=` of an env rule): an apostrophe inside a word is an apostrophe.
func (l *lexer) item(it *item) (more bool, _ *SyntaxError) {
	start, quoted, equals := true, false, false
	var text strings.Builder
	flush := func() {
		if text.Len() > 0 {
			it.pieces = append(it.pieces, piece{text: text.String()})
			text.Reset()
		}
	}
	trim := func() {
		s := text.String()
		if t := strings.TrimRight(s, " \t"); len(t) != len(s) {
			text.Reset()
			text.WriteString(t)
		}
	}
	for l.off < len(l.line) {
		c := l.line[l.off]
		switch {
		case l.sep != 0 && c == l.sep:
			trim()
			flush()
			l.off++
			return true, nil
		case l.comments && c == '#' && (l.off == 0 || l.line[l.off-1] == ' ' || l.line[l.off-1] == '\t'):
			trim()
			flush()
			l.comment = strings.TrimSpace(l.line[l.off+1:])
			l.off = len(l.line)
			return false, nil
		case quoted && c != ' ' && c != '\t':
			return false, l.fail(l.off, l.off+1, "unexpected text after the closing quote", "Quote the whole item, or put a separator or a blank and # here.")
		case quoted:
			l.off++
		case (c == '"' || c == '\'') && start:
			flush()
			if err := l.quoted(it, c); err != nil {
				return false, err
			}
			quoted, start = true, false
		case c == '$' && strings.HasPrefix(l.line[l.off:], "${"):
			flush()
			p, err := l.variable()
			if err != nil {
				return false, err
			}
			it.pieces = append(it.pieces, p)
			start = false
		case start && (c == ' ' || c == '\t'):
			l.off++
		default:
			text.WriteByte(c)
			l.off++
			start = l.afterEq && c == '=' && !equals
			equals = equals || c == '='
		}
	}
	trim()
	flush()
	return false, nil
}

// quoted reads a quoted text. Single quotes take everything as it stands; double quotes know escapes and `${}`.
func (l *lexer) quoted(it *item, quote byte) *SyntaxError {
	open := l.off
	l.off++
	var text strings.Builder
	flush := func() {
		it.pieces = append(it.pieces, piece{text: text.String()})
		text.Reset()
	}
	for l.off < len(l.line) {
		c := l.line[l.off]
		switch {
		case c == quote:
			l.off++
			flush()
			return nil
		case quote == '"' && c == '\\':
			b, err := l.escape()
			if err != nil {
				return err
			}
			text.WriteByte(b)
		case quote == '"' && c == '$' && strings.HasPrefix(l.line[l.off:], "${"):
			flush()
			p, err := l.variable()
			if err != nil {
				return err
			}
			it.pieces = append(it.pieces, p)
		default:
			text.WriteByte(c)
			l.off++
		}
	}
	return l.fail(open, len(l.line), "the quote is not closed", "Close it with "+string(quote)+" on the same line.")
}

// escapes are the escapes of double quotes beside \xNN. This is the only escaping rule of the format.
var escapes = map[byte]byte{'\\': '\\', '"': '"', '$': '$', 'n': '\n', 'r': '\r', 't': '\t'}

// escape reads a backslash and what follows it.
func (l *lexer) escape() (byte, *SyntaxError) {
	from := l.off
	rest := l.line[from+1:]
	if rest != "" {
		if b, ok := escapes[rest[0]]; ok {
			l.off += 2
			return b, nil
		}
	}
	if len(rest) >= 3 && rest[0] == 'x' && hex(rest[1]) >= 0 && hex(rest[2]) >= 0 {
		b := byte(hex(rest[1])<<4 | hex(rest[2]))
		if b == 0 {
			return 0, l.fail(from, from+4, "a NUL byte cannot be part of a value", "")
		}
		l.off += 4
		return b, nil
	}
	_, size := utf8.DecodeRuneInString(rest)
	return 0, l.fail(from, from+1+size, "unknown escape", `Double quotes know \\ \" \$ \n \r \t and \xNN; single quotes take text as it stands.`)
}

func hex(c byte) int {
	switch {
	case c >= '0' && c <= '9':
		return int(c - '0')
	case c >= 'a' && c <= 'f':
		return int(c-'a') + 10
	case c >= 'A' && c <= 'F':
		return int(c-'A') + 10
	}
	return -1
}

// variable reads `${NAME}` or `${NAME:-default}`; defaults nest.
func (l *lexer) variable() (piece, *SyntaxError) {
	from := l.off
	if l.depth++; l.depth > maxNesting {
		return piece{}, l.fail(from, from+2, "${} is nested too deep", "")
	}
	defer func() { l.depth-- }()
	l.off += 2
	name := l.off
	for l.off < len(l.line) && nameByte(l.line[l.off]) {
		l.off++
	}
	p := piece{name: l.line[name:l.off], col: l.col(from)}
	switch {
	case p.name == "":
		return piece{}, l.fail(from, l.off, "${ needs the name of a variable", "Write ${NAME} or ${NAME:-default}; a literal ${ is \"\\${\" in double quotes.")
	case strings.HasPrefix(l.line[l.off:], "}"):
		l.off++
		return p, nil
	case strings.HasPrefix(l.line[l.off:], ":-"):
		l.off += 2
		p.hasFallback = true
		var err *SyntaxError
		p.fallback, err = l.fallback(from)
		return p, err
	case l.off >= len(l.line):
		return piece{}, l.fail(from, len(l.line), "${ is not closed", "Close it with } on the same line.")
	}
	return piece{}, l.fail(l.off, l.off+1, "unexpected text in ${}", "Write ${NAME} or ${NAME:-default}.")
}

// fallback reads the text after `:-` up to its closing brace.
func (l *lexer) fallback(open int) ([]piece, *SyntaxError) {
	var out []piece
	from := l.off
	flush := func() {
		if l.off > from {
			out = append(out, piece{text: l.line[from:l.off]})
		}
	}
	for l.off < len(l.line) {
		switch {
		case l.line[l.off] == '}':
			flush()
			l.off++
			return out, nil
		case strings.HasPrefix(l.line[l.off:], "${"):
			flush()
			p, err := l.variable()
			if err != nil {
				return nil, err
			}
			out = append(out, p)
			from = l.off
		default:
			l.off++
		}
	}
	return nil, l.fail(open, len(l.line), "${ is not closed", "Close it with } on the same line.")
}

// nameByte tells the characters of a variable's name in `${}`: all but blanks, control characters and what has a
// meaning of its own here. `*` makes a pattern, which only env rules accept.
func nameByte(c byte) bool {
	return c > ' ' && c != 0x7f && !strings.ContainsRune(`{}$"'\:=,|`, rune(c))
}

// divide splits items at separators that stood inside quotes: a whole list or a whole net rule may be quoted. Paths are
// not divided so, a quoted comma belongs to the path.
func divide(items []item, sep byte) []item {
	var out []item
	for _, it := range items {
		part := item{col: it.col}
		for _, p := range it.pieces {
			if p.name != "" {
				part.pieces = append(part.pieces, p)
				continue
			}
			texts := strings.Split(p.text, string(sep))
			for i, t := range texts {
				if i > 0 {
					out = append(out, part)
					part = item{col: it.col}
				}
				if len(texts) > 1 {
					t = strings.Trim(t, " \t")
				}
				part.pieces = append(part.pieces, piece{text: t})
			}
		}
		out = append(out, part)
	}
	return out
}
