package policy

import (
	"errors"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// globs are compiled ignore rules.
type globs struct {
	names map[string]int // basenames without a wildcard
	bases []baseGlob
	paths []pathGlob
}

type baseGlob struct {
	suffix string // the glob is `*` and this text; "" where it is more
	glob   string
	line   int
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
	g.paths = append(g.paths, pathGlob{parts, line})
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
	case glob[0] == '*' && !strings.ContainsAny(glob[1:], `*?[\`):
		g.bases = append(g.bases, baseGlob{suffix: glob[1:], glob: glob, line: line})
	default:
		g.bases = append(g.bases, baseGlob{glob: glob, line: line})
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

// fixed returns the path before the first wildcard of the path glob that line has just added, "" for other globs.
func (g *globs) fixed(line int) string {
	if len(g.paths) == 0 || g.paths[len(g.paths)-1].line != line {
		return ""
	}
	parts := g.paths[len(g.paths)-1].parts
	if i := slices.IndexFunc(parts, func(p string) bool { return strings.ContainsAny(p, `*?[\`) }); i >= 0 {
		parts = parts[:i]
	}
	if len(parts) == 0 {
		return ""
	}
	return "/" + strings.Join(parts, "/")
}

func (g *globs) empty() bool { return len(g.names) == 0 && len(g.bases) == 0 && len(g.paths) == 0 }

// match returns the rule that hides a canonical path or a folder above it, 0 if none does.
func (g *globs) match(p string) int {
	if len(g.names) > 0 || len(g.bases) > 0 {
		for rest := strings.TrimPrefix(p, "/"); rest != ""; {
			name, tail, _ := strings.Cut(rest, "/")
			if n := g.matchName(name); n > 0 {
				return n
			}
			rest = tail
		}
	}
	for _, pg := range g.paths {
		if matchTree(pg.parts, strings.TrimPrefix(p, "/")) {
			return pg.line
		}
	}
	return 0
}

func (g *globs) matchName(name string) int {
	if n := g.names[name]; n > 0 {
		return n
	}
	for i := range g.bases {
		b := &g.bases[i]
		if b.suffix != "" {
			if strings.HasSuffix(name, b.suffix) {
				return b.line
			}
			continue
		}
		if ok, _ := path.Match(b.glob, name); ok {
			return b.line
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
