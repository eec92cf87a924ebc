package learn

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// sections are the headings of the table, in its order.
var sections = []struct{ family, title string }{
	{FamilyEnv, "environment"},
	{FamilyFile, "files"},
	{FamilyNet, "network"},
	{FamilyImport, "imports"},
	{FamilyCall, "calls"},
	{FamilyEval, "evaluated strings"},
	{FamilyResult, "results"},
}

// marks and colours of the grades.
var grades = map[Risk]struct{ mark, color string }{
	Low:    {"  ", ""},
	Medium: {"* ", "\x1b[33m"},
	High:   {"! ", "\x1b[31m"},
}

const (
	bold  = "\x1b[1m"
	dim   = "\x1b[2m"
	reset = "\x1b[0m"
)

// minimum widths: a table in a narrower terminal wraps.
const (
	minWidth = 60
	maxRule  = 48
)

// Table shows what was learned to a person: family, rule, how often, first call site, graded by risk. width is the
// terminal's in columns, 0 for unlimited; color only where the output is a terminal. Nothing of what was observed can
// move the cursor or hide.
func Table(r Result, color bool, width int) string {
	if len(r.Lines) == 0 {
		return "nothing new was learned\n"
	}
	paint := func(code, text string) string {
		if !color || code == "" {
			return text
		}
		return code + text + reset
	}
	if width > 0 {
		width = max(width, minWidth)
	}
	ruleWidth := 4
	for _, l := range r.Lines {
		ruleWidth = max(ruleWidth, min(columns(visible(l.Line)), maxRule))
	}
	var out strings.Builder
	for _, s := range sections {
		first := true
		for _, l := range r.Lines {
			if l.Family != s.family {
				continue
			}
			if first {
				out.WriteString(paint(bold, s.title) + "\n")
				first = false
			}
			out.WriteString(row(l, ruleWidth, width, paint))
		}
	}
	high, medium := 0, 0
	for _, l := range r.Lines {
		switch {
		case l.Line == "":
		case l.Risk == High:
			high++
		case l.Risk == Medium:
			medium++
		}
	}
	if high+medium > 0 {
		out.WriteString("\n" + paint(grades[High].color, fmt.Sprintf("! %d high", high)) + ", " +
			paint(grades[Medium].color, fmt.Sprintf("* %d medium", medium)) + " risk: look at these first\n")
	}
	return out.String()
}

func row(l Learned, ruleWidth, width int, paint func(code, text string) string) string {
	grade := grades[l.Risk]
	if l.Line == "" {
		return "  " + paint(dim, "- "+fit(visible(l.Comment), width-4)) + "\n"
	}
	rule := visible(l.Line)
	if width > 0 {
		rule = shorten(rule, max(ruleWidth, width-30))
	}
	line := "  " + paint(grade.color, grade.mark) + rule + strings.Repeat(" ", max(0, ruleWidth-columns(rule)))
	tail := fmt.Sprintf("  %*s  %s", 5, times(l.Count), visible(l.Site))
	if why := visible(l.Comment); why != "" {
		tail = strings.TrimRight(tail, " ") + "  " + why
	}
	used := 4 + max(ruleWidth, columns(rule))
	return line + paint(dim, fit(tail, width-used)) + "\n"
}

// fit cuts text at a width; a width below 1 is no limit.
func fit(text string, width int) string {
	if width < 1 || columns(text) <= width {
		return text
	}
	return string([]rune(text)[:width-1]) + "…"
}

func times(n int) string { return strconv.Itoa(n) + "x" }

func columns(s string) int { return utf8.RuneCountInString(s) }
