package policy

import (
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
)

// Bounds of what a start looks through, and of what it hides, for ignore rules beneath exposed folders.
const (
	maxLooked = 200_000
	maxHidden = 5_000
)

// Concealed is what ignore rules hide beneath exposed folders, as it stands now.
type Concealed struct {
	Paths  []string // files, and folders with all that is in them
	Pinned []string // folders that keep their name, since a rule names what it hides by the whole path
}

// Conceal looks beneath the exposed folders. What the interpreter itself needs is not hidden, nor is a folder that holds it.
func (p *Policy) Conceal() (Concealed, error) {
	var c Concealed
	looked, named := 0, []string(nil)
	seen := map[string]bool{}
	for _, e := range p.files.exposures {
		if e.File || !e.Exists || seen[e.Source] || !p.mayHide(e.Source) {
			continue
		}
		seen[e.Source] = true
		err := filepath.WalkDir(e.Source, func(path string, entry fs.DirEntry, err error) error {
			switch looked++; {
			case looked > maxLooked:
				return fmt.Errorf("there are more than %d files and folders beneath the exposed ones to look through", maxLooked)
			case err != nil:
				return nil // gone, or not to be listed by this user, and so not by the program
			case path != e.Source && seen[path]:
				return fs.SkipDir // another exposure, looked through already
			case entry.Type()&fs.ModeSymlink != 0 || p.files.hidden.match(path) == 0 || p.files.find(path).runtime:
				return nil
			case entry.IsDir() && p.holdsRuntime(path):
				return nil // what is in it, one by one
			}
			c.Paths = append(c.Paths, path)
			if p.files.hidden.matchPath(path) > 0 {
				named = append(named, path)
			}
			if len(c.Paths) > maxHidden {
				return fmt.Errorf("they hide more than %d files one by one: name folders", maxHidden)
			}
			if entry.IsDir() {
				return fs.SkipDir
			}
			return nil
		})
		if err != nil {
			return Concealed{}, err
		}
	}
	slices.Sort(c.Paths)
	c.Paths = slices.Compact(c.Paths)
	c.Pinned = p.pins(named)
	return c, nil
}

// Concealable tells of the first ignore rule that may name something beneath an exposed folder, and of that folder.
func (p *Policy) Concealable() (Ignore, Exposure, bool) {
	for _, ig := range p.files.ignores {
		for _, e := range p.files.exposures {
			if !e.File && e.Exists && ig.mayHideIn(e.Source) {
				return ig, e, true
			}
		}
	}
	return Ignore{}, Exposure{}, false
}

// HidesAll tells that an exposure itself is hidden, so that nothing of it is exposed.
func (p *Policy) HidesAll(e Exposure) bool {
	return p.files.hidden.match(e.Source) > 0 && !p.files.find(e.Source).runtime
}

func (p *Policy) mayHide(folder string) bool {
	return slices.ContainsFunc(p.files.ignores, func(ig Ignore) bool { return ig.mayHideIn(folder) })
}

// mayHideIn errs on the side of yes: a basename can stand anywhere; a whole path where its fixed beginning and the folder lie in one line.
func (ig Ignore) mayHideIn(folder string) bool {
	return ig.Fixed == "" || beneath(ig.Fixed, folder) || beneath(folder, ig.Fixed)
}

// holdsRuntime tells that something of the interpreter's lies beneath a folder.
func (p *Policy) holdsRuntime(folder string) bool {
	for path, e := range p.files.entries {
		if e.runtime && !e.device && strings.HasPrefix(path, folder+"/") {
			return true
		}
	}
	return false
}
