package learn

import (
	"fmt"
	"strings"
)

// A block is the part of a profile that learning may add to, between `# <tag>` and `# </tag>`.
type block struct {
	tag      string
	families []string
}

// blocks lists every learned block, in the order in which a profile has them.
var blocks = []block{
	{"learning_guard_envs", []string{FamilyEnv}},
	{"learning_guard_files", []string{FamilyFile}},
	{"learning_guard_socket", []string{FamilyNet}},
	{"learning_guard_import", []string{FamilyImport}},
	{"learning_guard_api", []string{FamilyCall}},
	{"learning_guard_eval", []string{FamilyEval}},
	{"learning_remote_result", []string{FamilyResult}},
}

// tagOf returns the tag of the block that a family is written to, or "" for an unknown family.
func tagOf(family string) string {
	for _, b := range blocks {
		for _, f := range b.families {
			if f == family {
				return b.tag
			}
		}
	}
	return ""
}

func knownTag(tag string) bool {
	for _, b := range blocks {
		if b.tag == tag {
			return true
		}
	}
	return false
}

// BlockError says that the markers of a profile's learned blocks are damaged. Nothing is written then: between
// damaged markers learning cannot tell its own lines from a person's.
type BlockError struct {
	File    string
	Line    int // of the marker at fault, from 1
	Text    string
	Message string
	Hint    string
}

// Error has three parts: what, where with the line as it stands, and how to mend it.
func (e *BlockError) Error() string {
	return fmt.Sprintf("%s:%d: %s\n    %s\n  %s", e.File, e.Line, e.Message, visible(e.Text), e.Hint)
}

// document is the text of a profile, cut into lines that keep their own ends, with the learned blocks found.
type document struct {
	lines []string
	spans map[string]span
}

// span is where a block stands: indexes into document.lines of its two markers.
type span struct{ open, close int }

var (
	marker       = lazy(`^[ \t]*#[ \t]*<(/?)(learning_[a-z_]+)>[ \t]*$`)
	markerBroken = lazy(`^[ \t]*#[ \t]*</?[ \t]*learning_`)
)

// parseDocument finds the learned blocks of a profile. It reads nothing but the markers: whether the rules are
// right is the profile parser's concern. A marker that is doubled, unknown, broken, crossed or without its partner
// is a *BlockError.
func parseDocument(file, text string) (*document, error) {
	d := &document{lines: splitLines(text), spans: map[string]span{}}
	open, at := "", 0
	fail := func(line int, message, hint string) error {
		return &BlockError{File: file, Line: line + 1, Text: trimEnd(d.lines[line]), Message: message, Hint: hint}
	}
	for i, raw := range d.lines {
		line := trimEnd(raw)
		if i == 0 {
			line = strings.TrimPrefix(line, "\ufeff")
		}
		m := marker.FindStringSubmatch(line)
		if m == nil {
			if markerBroken.MatchString(line) {
				return nil, fail(i, "this marker of a learned block is damaged", "write it as "+example(line)+" or take it out")
			}
			continue
		}
		tag, closing := m[2], m[1] == "/"
		switch {
		case !knownTag(tag):
			return nil, fail(i, "there is no learned block named "+tag, "the blocks are "+strings.Join(tags(), ", "))
		case !closing && open != "":
			return nil, fail(i, fmt.Sprintf("this block begins inside %s, which began at line %d", open, at+1), "put `# </"+open+">` before it")
		case !closing && has(d.spans, tag):
			return nil, fail(i, fmt.Sprintf("the block %s begins a second time, first at line %d", tag, d.spans[tag].open+1), "join the two blocks into one")
		case !closing:
			open, at = tag, i
		case open == "":
			return nil, fail(i, "the block "+tag+" ends here but does not begin", "put `# <"+tag+">` before it or take this line out")
		case open != tag:
			return nil, fail(i, fmt.Sprintf("the block %s ends here while %s, from line %d, is still open", tag, open, at+1), "put `# </"+open+">` before it")
		default:
			d.spans[tag] = span{open: at, close: i}
			open = ""
		}
	}
	if open != "" {
		return nil, fail(at, "the block "+open+" begins here and never ends", "put `# </"+open+">` after its last line")
	}
	return d, nil
}

// insert returns the text with lines added at the end of their blocks; a block that the profile lacks is added at
// its end. Every byte of the old text is in the new one, in its order. Each addition is one line without its end.
func (d *document) insert(additions map[string][]string) string {
	before := map[int]string{} // index of a closing marker -> what comes before it
	var missing strings.Builder
	end := d.lineEnd()
	for _, b := range blocks {
		lines := additions[b.tag]
		if len(lines) == 0 {
			continue
		}
		if s, ok := d.spans[b.tag]; ok {
			before[s.close] = joinLines(lines, endOf(d.lines[s.open], end))
			continue
		}
		missing.WriteString(end + "# <" + b.tag + ">" + end + joinLines(lines, end) + "# </" + b.tag + ">" + end)
	}
	var out strings.Builder
	for i, line := range d.lines {
		out.WriteString(before[i])
		out.WriteString(line)
	}
	if missing.Len() > 0 {
		if n := len(d.lines); n > 0 && endOf(d.lines[n-1], "") == "" {
			out.WriteString(end)
		}
		out.WriteString(missing.String())
	}
	return out.String()
}

// inBlock returns the lines of a block, without their ends.
func (d *document) inBlock(tag string) []string {
	s, ok := d.spans[tag]
	if !ok {
		return nil
	}
	var out []string
	for _, line := range d.lines[s.open+1 : s.close] {
		out = append(out, trimEnd(line))
	}
	return out
}

// lineEnd is how the profile ends its lines: as its first line does.
func (d *document) lineEnd() string {
	if len(d.lines) == 0 {
		return "\n"
	}
	return endOf(d.lines[0], "\n")
}

func splitLines(text string) []string {
	lines := strings.SplitAfter(text, "\n")
	if n := len(lines); lines[n-1] == "" {
		lines = lines[:n-1]
	}
	return lines
}

func joinLines(lines []string, end string) string { return strings.Join(lines, end) + end }

func endOf(line, none string) string {
	switch {
	case strings.HasSuffix(line, "\r\n"):
		return "\r\n"
	case strings.HasSuffix(line, "\n"):
		return "\n"
	}
	return none
}

func trimEnd(line string) string { return strings.TrimSuffix(strings.TrimSuffix(line, "\n"), "\r") }

func tags() []string {
	var out []string
	for _, b := range blocks {
		out = append(out, b.tag)
	}
	return out
}

// example is the marker that a damaged line most likely meant.
func example(line string) string {
	slash := ""
	if strings.Contains(line, "</") {
		slash = "/"
	}
	for _, b := range blocks {
		if strings.Contains(line, b.tag) {
			return "`# <" + slash + b.tag + ">`"
		}
	}
	return "`# <" + slash + blocks[0].tag + ">`"
}

func has[K comparable, V any](m map[K]V, k K) bool { _, ok := m[k]; return ok }
