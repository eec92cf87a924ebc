package border

import (
	"encoding/json"
	"errors"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// Text is a string of bytes that JSON carries as Python's os.fsdecode does (PEP 383): a byte 0x80-0xff that is no part of
// valid UTF-8 is written as the lone surrogate U+DC80-U+DCFF. encoding/json alone would put U+FFFD in its place, and a
// rule for that path would then name another file.
type Text string

// UnmarshalJSON reads a JSON string; lone surrogates U+DC80-U+DCFF become the byte that they stand for, other lone
// surrogates are an error, since no path has them.
func (t *Text) UnmarshalJSON(raw []byte) error {
	if string(raw) == "null" {
		return nil
	}
	if len(raw) < 2 || raw[0] != '"' || raw[len(raw)-1] != '"' {
		return errors.New("a string is wanted, not " + string(raw))
	}
	raw = raw[1 : len(raw)-1]
	out := make([]byte, 0, len(raw))
	for i := 0; i < len(raw); {
		if raw[i] != '\\' {
			out = append(out, raw[i])
			i++
			continue
		}
		char, next, err := escape(raw, i)
		if err != nil {
			return err
		}
		i = next
		switch {
		case char >= 0xdc80 && char <= 0xdcff:
			out = append(out, byte(char-0xdc00))
		case utf16.IsSurrogate(char):
			return errors.New(`a lone surrogate \u` + strconv.FormatInt(int64(char), 16) + " stands for no byte of a path")
		default:
			out = utf8.AppendRune(out, char)
		}
	}
	*t = Text(out)
	return nil
}

// escape reads the escape sequence at raw[i], where json has already checked its syntax, and joins surrogate pairs.
func escape(raw []byte, i int) (char rune, next int, err error) {
	const plain = `""\\//b` + "\b" + `f` + "\f" + `n` + "\n" + `r` + "\r" + `t` + "\t"
	if i+1 >= len(raw) {
		return 0, 0, errors.New("a string ends in the middle of an escape sequence")
	}
	if raw[i+1] != 'u' {
		for k := 0; k < len(plain); k += 2 {
			if plain[k] == raw[i+1] {
				return rune(plain[k+1]), i + 2, nil
			}
		}
		return 0, 0, errors.New("unknown escape sequence in a string")
	}
	first, ok := unit(raw, i)
	if !ok {
		return 0, 0, errors.New("a \\u escape sequence wants four hexadecimal digits")
	}
	if second, ok := unit(raw, i+6); ok && utf16.IsSurrogate(first) {
		if joined := utf16.DecodeRune(first, second); joined != utf8.RuneError {
			return joined, i + 12, nil
		}
	}
	return first, i + 6, nil
}

// unit reads `\uXXXX` at raw[i].
func unit(raw []byte, i int) (rune, bool) {
	if i+6 > len(raw) || raw[i] != '\\' || raw[i+1] != 'u' {
		return 0, false
	}
	n, err := strconv.ParseUint(string(raw[i+2:i+6]), 16, 16)
	return rune(n), err == nil
}

// MarshalJSON is the way back: pure ASCII, so that no NUL and no broken UTF-8 reaches the border.
func (t Text) MarshalJSON() ([]byte, error) {
	out := make([]byte, 0, len(t)+2)
	out = append(out, '"')
	for i := 0; i < len(t); {
		char, size := utf8.DecodeRuneInString(string(t[i:]))
		switch {
		case char == utf8.RuneError && size == 1:
			out = appendUnit(out, 0xdc00+rune(t[i]))
		case char == '"' || char == '\\':
			out = append(out, '\\', byte(char))
		case char >= 0x20 && char < 0x7f:
			out = append(out, byte(char))
		case char > 0xffff:
			high, low := utf16.EncodeRune(char)
			out = appendUnit(appendUnit(out, high), low)
		default:
			out = appendUnit(out, char)
		}
		i += size
	}
	return append(out, '"'), nil
}

func appendUnit(out []byte, char rune) []byte {
	const digits = "0123456789abcdef"
	return append(out, '\\', 'u', digits[char>>12&15], digits[char>>8&15], digits[char>>4&15], digits[char&15])
}

// JSON encodes v, which holds nothing that JSON lacks.
func JSON(v any) (string, error) {
	data, err := json.Marshal(v)
	return string(data), err
}
