package policy

import (
	"errors"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// globs are compiled ignore rules, indexed so that a question does not walk over all of them.
type globs struct {
	names    map[string]int        // basenames without a wildcard
	suffixes map[string]int        // basenames that are `*` and a text, by that text
	lengths  []int                 // of the suffixes that occur
	bases    []baseGlob            // other globs on basenames
	paths    map[string][]pathGlob // by the folder that they are bound to
	bound    string                // that folder of the path glob that was added last, with its line
	boundBy  int
}

type baseGlob struct {
	glob string
	line int
}

type pathGlob struct {
	parts []string // between slashes; `**` is any number of parts
	line  int
}

const maxStars = 4 // `**` of one glob; no path needs more

var errStars = errors.New("more than four ** in one glob")

// add compiles a glob. One without a slash is for basenames, wherever they stand; one with a slash for whole paths, from
// base where it is relative, from anywhere where it begins with `**/`.
func (g *globs) add(glob, base string, line int) error {
	trimmed := strings.TrimRight(glob, "/")
	if trimmed == "" {
		return errors.New("the glob names nothing")
	}
	for _, p := range strings.Split(trimmed, "/") {
		if _, err := path.Match(p, ""); err != nil {
			return err
		}
	}
	if !strings.Contains(trimmed, "/") {
		g.addBase(trimmed, line)
		return nil
	}
	if strings.HasPrefix(trimmed, "**/") {
		trimmed = "/" + trimmed
	} else if !strings.HasPrefix(trimmed, "/") {
		trimmed = filepath.Clean(base) + "/" + trimmed
	}
	parts, err := anchor(trimmed)
	if err != nil {
		return err
	}
	if len(parts) == 2 && parts[0] == "**" && parts[1] != "**" {
		g.addBase(parts[1], line) // any name at any depth: a basename in other words
		return nil
	}
	if g.paths == nil {
		g.paths = map[string][]pathGlob{}
	}
	g.bound, g.boundBy = fixedPart(parts), line
	g.paths[g.bound] = append(g.paths[g.bound], pathGlob{parts, line})
	return nil
}

func (g *globs) addBase(glob string, line int) {
	switch {
	case !strings.ContainsAny(glob, `*?[\`):
		if g.names == nil {
			g.names = map[string]int{}
		}
		if g.names[glob] == 0 {
			g.names[glob] = line
		}
	case glob[0] == '*' && len(glob) > 1 && !strings.ContainsAny(glob[1:], `*?[\`):
		if g.suffixes == nil {
			g.suffixes = map[string]int{}
		}
		suffix := glob[1:]
		if !slices.Contains(g.lengths, len(suffix)) {
			g.lengths = append(g.lengths, len(suffix))
		}
		if g.suffixes[suffix] == 0 {
			g.suffixes[suffix] = line
		}
	default:
		g.bases = append(g.bases, baseGlob{glob, line})
	}
}

// anchor divides an absolute glob into its parts; the ones before the first wildcard are made canonical, since
// decisions are on canonical paths.
func anchor(glob string) ([]string, error) {
	parts := strings.Split(strings.TrimPrefix(glob, "/"), "/")
	fixed := 0
	for fixed < len(parts) && !strings.ContainsAny(parts[fixed], `*?[\`) {
		fixed++
	}
	real, err := canonical("/" + strings.Join(parts[:fixed], "/"))
	if err != nil {
		return nil, err
	}
	var out []string
	if real.path != "/" {
		out = strings.Split(real.path[1:], "/")
	}
	stars := 0
	for _, p := range parts[fixed:] {
		if p == "" || p == "." || p == "**" && len(out) > 0 && out[len(out)-1] == "**" {
			continue
		}
		if p == ".." {
			return nil, errors.New(".. after a wildcard")
		}
		if p == "**" {
			stars++
		}
		out = append(out, p)
	}
	if stars > maxStars {
		return nil, errStars
	}
	return out, nil
}

// fixedPart is the path before the first wildcard of a glob.
func fixedPart(parts []string) string {
	if i := slices.IndexFunc(parts, func(p string) bool { return strings.ContainsAny(p, `*?[\`) }); i >= 0 {
		parts = parts[:i]
	}
	return "/" + strings.Join(parts, "/")
}

// fixed returns the folder that the path glob of a line is bound to, "" for other globs and for those bound to none.
func (g *globs) fixed(line int) string {
	if g.boundBy != line || g.bound == "/" {
		return ""
	}
	return g.bound
}

func (g *globs) empty() bool {
	return len(g.names) == 0 && len(g.suffixes) == 0 && len(g.bases) == 0 && len(g.paths) == 0
}

// match returns the rule that hides a canonical path or a folder above it, 0 if none does.
func (g *globs) match(p string) int {
	if len(g.names) > 0 || len(g.suffixes) > 0 || len(g.bases) > 0 {
		for rest := strings.TrimPrefix(p, "/"); rest != ""; {
			name, tail, _ := strings.Cut(rest, "/")
			if n := g.matchName(name); n > 0 {
				return n
			}
			rest = tail
		}
	}
	return g.matchPath(p)
}

// matchPath is match by the globs on whole paths alone.
func (g *globs) matchPath(p string) int {
	if len(g.paths) == 0 {
		return 0
	}
	for at := p; at != ""; at = parent(at) {
		for _, pg := range g.paths[at] {
			if matchTree(pg.parts, strings.TrimPrefix(p, "/")) {
				return pg.line
			}
		}
	}
	return 0
}

// maxMoved bounds how much of a folder is looked at before it gets another name.
const maxMoved = 20_000

// moves tells of a folder that holds what a glob on paths hides: the rule and the hidden path, 0 where there is none. Basenames
// stay hidden wherever their folder goes. A folder with more in it than is looked at counts as holding it.
func (g *globs) moves(folder string) (line int, hidden string) {
	near := 0
	for bound, pgs := range g.paths {
		if len(pgs) > 0 && (beneath(bound, folder) || beneath(folder, bound)) {
			near = pgs[0].line
		}
	}
	if near == 0 {
		return 0, ""
	}
	seen := 0
	_ = filepath.WalkDir(folder, func(path string, _ fs.DirEntry, err error) error {
		if seen++; seen > maxMoved {
			line, hidden = near, path
			return fs.SkipAll
		}
		if n := g.matchPath(path); n > 0 {
			line, hidden = n, path
			return fs.SkipAll
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) { // what cannot be listed could hold it
			line, hidden = near, path
			return fs.SkipAll
		}
		return nil
	})
	return line, hidden
}

func (g *globs) matchName(name string) int {
	if n := g.names[name]; n > 0 {
		return n
	}
	for _, l := range g.lengths {
		if l <= len(name) {
			if n := g.suffixes[name[len(name)-l:]]; n > 0 {
				return n
			}
		}
	}
	for i := range g.bases {
		if ok, _ := path.Match(g.bases[i].glob, name); ok {
			return g.bases[i].line
		}
	}
	return 0
}

// matchTree tells that the parts match a path or a folder above it. A `**` takes as few names as it can and one more
// each time that what follows does not fit; only the last one ever has to, so that the time grows with the product of the
// lengths, whatever path a program asks about.
func matchTree(parts []string, p string) bool {
	rest, at := p, 0
	retry, retryAt := "", -1 // behind the last `**`
	for at < len(parts) {
		if rest == "" {
			return false
		}
		if parts[at] == "**" {
			at++
			retry, retryAt = rest, at
			continue
		}
		name, tail, _ := strings.Cut(rest, "/")
		if ok, _ := path.Match(parts[at], name); ok {
			rest = tail
			at++
			continue
		}
		if retryAt < 0 {
			return false
		}
		_, retry, _ = strings.Cut(retry, "/")
		rest, at = retry, retryAt
	}
	return true
}
