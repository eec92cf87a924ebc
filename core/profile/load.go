package profile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"
)

// Bounds of an include tree: a file that includes the next one twice, thirty deep, is not a profile.
const (
	maxDepth = 16
	maxFiles = 256
)

// node is one file of the include tree.
type node struct {
	rules    []Rule
	children []*node
}

// loader carries what the files of one Load share.
type loader struct {
	Options
	out   *Profile
	chain []frame // files being read, outermost first
	files int
}

// frame is a file being read: its path as written and its canonical one.
type frame struct{ path, real string }

// Load reads a profile and everything that it includes: all of it or nothing. A fault in a line is a *SyntaxError; a
// file that cannot be read is an error that wraps the file system's.
func Load(o Options) (*Profile, error) {
	l := &loader{Options: o, out: &Profile{Env: o.Env, Home: o.Home, Cwd: o.Cwd}}
	root := &node{}
	for _, ov := range o.Overrides {
		r, err := l.override(ov)
		if err != nil {
			return nil, err
		}
		root.rules = append(root.rules, r)
	}
	if err := repeated(root.rules); err != nil {
		return nil, err
	}
	if o.Path != "" {
		path := l.absolute(o.Path, o.Cwd)
		l.out.Path = path
		file, err := l.file(path, Position{})
		if err != nil {
			return nil, err
		}
		root.children = []*node{file}
	}
	rank := 0
	root.rank(&rank)
	l.out.Rules = root.flatten(nil)
	if err := l.lock(); err != nil {
		return nil, err
	}
	return l.out, nil
}

// rank orders the files for scalars: a file beats what it includes, a later include beats an earlier one.
func (n *node) rank(next *int) {
	for i := range n.rules {
		n.rules[i].rank = *next
		if n.rules[i].Origin == OriginCommandLine {
			n.rules[i].rank = *next + 1 // code comes before it
		}
	}
	*next += 2
	for _, c := range slices.Backward(n.children) {
		c.rank(next)
	}
}

func (n *node) flatten(rules []Rule) []Rule {
	rules = append(rules, n.rules...)
	for _, c := range n.children {
		rules = c.flatten(rules)
	}
	return rules
}

// lock sees to learn=false: a reviewed profile takes no rules from outside.
func (l *loader) lock() error {
	best := Rule{rank: -1}
	for _, r := range l.out.Rules {
		if r.Key == "learn" && r.Origin >= OriginFile && (best.rank < 0 || r.rank < best.rank) {
			best = r
		}
	}
	for i := range l.out.Rules { // given beside the file it locks too, whatever a stronger origin says
		r := &l.out.Rules[i]
		l.out.Locked = l.out.Locked || r.Key == "learn" && r.Origin < OriginFile && r.locks()
	}
	if best.rank < 0 || !best.locks() {
		return nil
	}
	if l.out.Locked = true; l.IgnoreOverridesLock || len(l.Overrides) == 0 {
		return nil
	}
	first := l.out.Rules[0]
	return best.fail(fmt.Sprintf("this line locks the profile, so %s, given by the %s, is refused", first.Source, first.Origin),
		"Write the rule into the profile, or remove learn=false after a review.")
}

// locks tells a `learn` rule that locks.
func (r *Rule) locks() bool {
	on, ok := ParseBool(r.Value)
	return ok && !on
}

// override reads a rule given beside the file. Its value has the grammar of a line, but no comments.
func (l *loader) override(ov Override) (Rule, error) {
	pos := Position{File: ov.Origin.String()}
	source := ov.Key + "=" + ov.Value
	if ov.Origin == OriginCommandLine {
		source = "--" + source
	}
	if err := checkLine(pos, source); err != nil {
		return Rule{}, err
	}
	lex := &lexer{pos: pos, line: source}
	if ov.Origin == OriginCommandLine {
		lex.off = len("--")
	}
	r, err := l.rule(lex, ov.Origin, 0)
	if err != nil {
		return Rule{}, err
	}
	return *r, nil
}

// file reads one file of the tree. at is the line that includes it.
func (l *loader) file(path string, at Position) (*node, error) {
	l.protect(path, at)
	data, err := read(path)
	if err != nil {
		return nil, located(at, err)
	}
	if l.files++; l.files > maxFiles {
		return nil, located(at, fmt.Errorf("more than %d files are included", maxFiles))
	}
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return nil, located(at, fmt.Errorf("the profile cannot be read: %w", err))
	}
	for i, f := range l.chain {
		if f.real == real {
			names := []string{}
			for _, g := range l.chain[i:] {
				names = append(names, g.path)
			}
			return nil, located(at, fmt.Errorf("the includes go round in a circle: %s -> %s", strings.Join(names, " -> "), path))
		}
	}
	if len(l.chain) >= maxDepth {
		return nil, located(at, fmt.Errorf("includes are nested more than %d deep", maxDepth))
	}
	l.chain = append(l.chain, frame{path, real})
	defer func() { l.chain = l.chain[:len(l.chain)-1] }()

	lines, serr := split(path, data, l.Skip)
	if serr != nil {
		return nil, serr
	}
	origin := OriginFile
	if len(l.chain) > 1 {
		origin = OriginInclude
	}
	n := &node{}
	for i, line := range lines {
		if slices.ContainsFunc(l.Skip, func(at Position) bool { return at.File == path && at.Line == i+1 }) {
			continue
		}
		if err := l.line(n, &lexer{pos: Position{File: path, Line: i + 1}, line: line, comments: true}, origin); err != nil {
			return nil, err
		}
	}
	return n, repeated(n.rules)
}

// located puts the including line before an error about the included file.
func located(at Position, err error) error {
	if at.IsZero() {
		return err
	}
	return fmt.Errorf("%s: include: %w", at, err)
}

// line reads one line: nothing, an include or a rule.
func (l *loader) line(n *node, lex *lexer, origin Origin) error {
	lex.skipBlanks()
	if lex.off == len(lex.line) || lex.line[lex.off] == '#' {
		return nil
	}
	start := lex.off
	word, _ := lex.key()
	if word == "include" || word == "include-platform" {
		child, err := l.include(lex, word, start)
		if err != nil || child == nil {
			return err
		}
		n.children = append(n.children, child)
		return nil
	}
	lex.off = start
	r, err := l.rule(lex, origin, len(l.chain)-1)
	if err != nil {
		return err
	}
	n.rules = append(n.rules, *r)
	return nil
}

// rule reads `key = value`.
func (l *loader) rule(lex *lexer, origin Origin, depth int) (*Rule, error) {
	word, from := lex.key()
	end := lex.off
	lex.skipBlanks()
	if lex.off >= len(lex.line) || lex.line[lex.off] != '=' || word == "" {
		hint := `A line is key=value, include "path" or a comment that starts with #.`
		if near := nearestKey(word); near != "" {
			hint = "Did you mean " + near + "=…? " + hint
		}
		return nil, lex.fail(from, max(end, from+1), "this is not a rule", hint)
	}
	key, ok := lookup(word)
	if !ok {
		return nil, lex.unknownKey(word, from, end)
	}
	lex.off++
	lex.skipBlanks()
	pos := lex.pos
	pos.Col = lex.col(from)
	r := &Rule{Key: word, Pos: pos, ValueCol: lex.col(lex.off), Origin: origin, Depth: depth, Source: lex.line}
	lex.sep, lex.afterEq = key.Kind.separator(), key.Kind == Env
	items, serr := lex.items()
	if serr != nil {
		return nil, serr
	}
	r.Comment = lex.comment
	if key.Kind == List || key.Kind == Fields {
		items = divide(items, lex.sep)
	}
	if key.Kind == Env {
		serr = r.fillEnv(items[0], l.Env)
	} else {
		serr = r.fill(items, lex.sep, l.Env)
	}
	if serr == nil {
		serr = l.check(key, r)
	}
	if serr != nil {
		return nil, serr
	}
	return r, nil
}

// check holds the value against the grammar of its key.
func (l *loader) check(key Key, r *Rule) *SyntaxError {
	if r.Key == "port" {
		l.out.Warnings = append(l.out.Warnings, Warning{r.Pos, "port= has no effect: there is no port any more; the line may go"})
		return nil
	}
	return key.check(r)
}

func (l *lexer) unknownKey(word string, from, end int) *SyntaxError {
	hint := "The keys are listed by `pysandboxes check --keys` and in docs/reference/profile.md."
	if near := nearestKey(word); near != "" {
		hint = "Did you mean " + near + "?"
	}
	return l.fail(from, end, "unknown key "+word, hint)
}

// repeated refuses a scalar that stands twice in one file: which one holds must not depend on the order.
func repeated(rules []Rule) error {
	first := map[string]int{}
	for i := range rules {
		r := &rules[i]
		key, ok := lookup(r.Key)
		if !ok || !key.Scalar {
			continue
		}
		j, seen := first[r.Key]
		if !seen {
			first[r.Key] = i
			continue
		}
		if r.Origin != rules[j].Origin {
			continue
		}
		return &SyntaxError{Pos: r.Pos, Line: r.Source, Width: utf8.RuneCountInString(r.Key),
			Message: fmt.Sprintf("%s is set twice, first at %s", r.Key, rules[j].Pos), Hint: "Keep one of the two lines."}
	}
	return nil
}

// platforms are the values of sys.platform.
var platforms = []string{"linux", "darwin", "win32", "cygwin", "aix", "android", "ios", "emscripten", "wasi", "freebsd"}

// include reads `include "path"` and `include-platform=NAME "path"`; nil where nothing is to be included.
func (l *loader) include(lex *lexer, word string, start int) (*node, error) {
	lex.skipBlanks()
	applies := true
	if lex.off < len(lex.line) && lex.line[lex.off] == '=' {
		if word == "include" {
			return nil, lex.fail(start, lex.off+1, "include takes a path, no =", `Write include "path".`)
		}
		lex.off++
		lex.skipBlanks()
		name, from := lex.key()
		if !slices.Contains(platforms, name) {
			return nil, lex.fail(from, lex.off, "unknown platform "+name, "Known are the values of sys.platform: "+strings.Join(platforms, ", ")+".")
		}
		applies = name == l.Platform
	} else if word == "include-platform" {
		return nil, lex.fail(start, lex.off, "include-platform needs a platform", `Write include-platform=linux "path".`)
	}
	lex.skipBlanks()
	r := &Rule{Key: word, Pos: lex.pos, ValueCol: lex.col(lex.off), Source: lex.line}
	r.Pos.Col = lex.col(start)
	items, serr := lex.items()
	if serr == nil && applies {
		serr = r.fill(items, 0, l.Env)
	}
	if serr != nil {
		return nil, serr
	}
	if len(items[0].pieces) == 0 {
		return nil, r.fail("the path to include is missing", `Write include "path".`)
	}
	if !applies {
		return nil, nil
	}
	path := r.Value
	if path == "" {
		return nil, r.fail("the path to include is empty", `Write include "path".`)
	}
	if (path == "~" || strings.HasPrefix(path, "~/")) && l.Home == "" {
		return nil, r.fail("~ cannot be expanded: the home folder is not known", "Write the whole path.")
	}
	path = l.absolute(path, filepath.Dir(lex.pos.File))
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		l.protect(path, r.Pos)
		if !strings.Contains(head, "\n"+strings.TrimSpace(r.Source)+"\n") {
			l.out.Missing = append(l.out.Missing, *r)
		}
		return nil, nil
	}
	return l.file(path, r.Pos)
}

// absolute expands `~` and makes a path absolute against base.
func (l *loader) absolute(path, base string) string {
	if path == "~" || strings.HasPrefix(path, "~/") {
		path = l.Home + path[1:]
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(base, path)
	}
	return filepath.Clean(path)
}

// protect notes a path that the sandbox must never write.
func (l *loader) protect(path string, at Position) {
	if !slices.Contains(l.out.Protected, path) {
		l.out.Protected = append(l.out.Protected, path)
		l.out.ProtectedAt = append(l.out.ProtectedAt, at)
	}
}
