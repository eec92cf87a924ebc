package profile

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// expand puts the variables into pieces. missing names the first variable that is unset and has no default.
// As in a shell, `:-` also stands in for a variable that is set but empty.
func expand(pieces []piece, env map[string]string) (text string, missing *piece) {
	var b strings.Builder
	for i := range pieces {
		p := &pieces[i]
		if p.name == "" {
			b.WriteString(p.text)
			continue
		}
		value, set := env[p.name]
		switch {
		case p.hasFallback && value == "":
			t, m := expand(p.fallback, env)
			if m != nil {
				return "", m
			}
			b.WriteString(t)
		case set:
			b.WriteString(value)
		default:
			return "", p
		}
	}
	return b.String(), nil
}

// pattern returns the first `${PREFIX_*}` of pieces, defaults included, nil if there is none.
func pattern(pieces []piece) *piece {
	for i := range pieces {
		if strings.Contains(pieces[i].name, "*") {
			return &pieces[i]
		}
		if p := pattern(pieces[i].fallback); p != nil {
			return p
		}
	}
	return nil
}

// at makes the error for a piece of a rule.
func (r *Rule) at(p *piece, message, hint string) *SyntaxError {
	pos := r.Pos
	pos.Col = p.col
	return &SyntaxError{Pos: pos, Line: r.Source, Width: utf8.RuneCountInString(p.name) + 3, Message: message, Hint: hint}
}

// fail makes an error that underlines the rule's value.
func (r *Rule) fail(message, hint string) *SyntaxError {
	pos := r.Pos
	pos.Col = r.ValueCol
	width := utf8.RuneCountInString(strings.TrimRight(r.Source, " \t")) - r.ValueCol + 1
	return &SyntaxError{Pos: pos, Line: r.Source, Width: max(1, width), Message: message, Hint: hint}
}

// Fail makes an error about the value of a rule, for the packages that know what values mean.
func (r *Rule) Fail(message, hint string) error { return r.fail(message, hint) }

// fill sets Value and Items from the items of a rule that is not an env rule.
func (r *Rule) fill(items []item, sep byte, env map[string]string) *SyntaxError {
	for _, it := range items {
		if p := pattern(it.pieces); p != nil {
			return r.at(p, "a pattern in ${} is for env rules only", "Name one variable: ${NAME} or ${NAME:-default}.")
		}
		text, missing := expand(it.pieces, env)
		if missing != nil {
			return r.at(missing, "the variable "+missing.name+" is not set", "Set it, or give a default: ${"+missing.name+":-default}.")
		}
		if strings.ContainsRune(text, 0) {
			return r.fail("a NUL byte cannot be part of a value", "")
		}
		r.Items = append(r.Items, text)
	}
	if sep == 0 {
		r.Value = strings.Join(r.Items, "")
		return nil
	}
	r.Value = strings.Join(r.Items, string(sep))
	return nil
}

// envHint is said with each wrong env rule.
const envHint = "Write env=NAME=value, env=NAME=${NAME} or env=*_SUFFIX=${*_SUFFIX}."

// fillEnv sets Value and Env of an env rule.
func (r *Rule) fillEnv(it item, env map[string]string) *SyntaxError {
	r.Value = strings.TrimRight(string([]rune(r.Source)[r.ValueCol-1:]), " \t")
	if len(it.pieces) == 0 || it.pieces[0].name != "" {
		return r.fail("an env rule begins with the name of a variable", envHint)
	}
	name, first, found := strings.Cut(it.pieces[0].text, "=")
	name = strings.TrimRight(name, " \t")
	switch {
	case !found:
		return r.fail("an env rule needs a value", "Write env="+name+"=${"+name+"} to hand the host's value on, or env="+name+"=value.")
	case name == "":
		return r.fail("the name of the variable is empty", envHint)
	case strings.Count(name, "*") > 1:
		return r.fail("one * in the name of a variable at most", envHint)
	}
	r.Items = []string{name}
	rest := slices.Clone(it.pieces[1:])
	if first != "" {
		rest = append([]piece{{text: first}}, rest...)
	}
	rest = slices.DeleteFunc(rest, func(p piece) bool { return p.name == "" && p.text == "" })
	if strings.Contains(name, "*") {
		return r.fillPattern(name, rest, env)
	}
	if p := pattern(rest); p != nil {
		return r.at(p, "a pattern in ${} needs a pattern as the name", envHint)
	}
	value, missing := expand(rest, env)
	if missing != nil {
		return nil // stays absent
	}
	if strings.ContainsRune(value, 0) {
		return r.fail("a NUL byte cannot be part of a value", "")
	}
	r.Env = []Variable{{name, value}}
	return nil
}

// fillPattern hands on every variable of the host that the right pattern matches; what the star stood for goes into
// the name.
func (r *Rule) fillPattern(name string, value []piece, env map[string]string) *SyntaxError {
	if len(value) != 1 || value[0].name == "" || value[0].hasFallback || strings.Count(value[0].name, "*") != 1 {
		return r.fail("a pattern needs exactly one ${} with one * as its value", envHint)
	}
	for host, v := range env {
		if middle, ok := star(value[0].name, host); ok {
			r.Env = append(r.Env, Variable{strings.Replace(name, "*", middle, 1), v})
		}
	}
	slices.SortFunc(r.Env, func(a, b Variable) int { return strings.Compare(a.Name, b.Name) })
	return nil
}

// star matches a pattern with one `*` and returns what the star stood for.
func star(pattern, name string) (string, bool) {
	prefix, suffix, _ := strings.Cut(pattern, "*")
	if len(name) < len(prefix)+len(suffix) || !strings.HasPrefix(name, prefix) || !strings.HasSuffix(name, suffix) {
		return "", false
	}
	return name[len(prefix) : len(name)-len(suffix)], true
}

// MatchName matches the name of a variable with a pattern that holds one `*` at most.
func MatchName(pattern, name string) bool {
	if !strings.Contains(pattern, "*") {
		return pattern == name
	}
	_, ok := star(pattern, name)
	return ok
}
