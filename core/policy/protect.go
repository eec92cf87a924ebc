package policy

import (
	"fmt"
	"path/filepath"
	"slices"

	"github.com/pysandboxes/pysandboxes/core/profile"
)

// guardedPath is a path that the sandbox must never write, and the line that names it.
type guardedPath struct {
	path string
	at   profile.Position // the include; zero for the profile itself
}

// protect notes the profile and its includes, by each path that leads to them: the link and what it points to.
func (c *compiler) protect() error {
	c.files.protected = map[string]bool{}
	for i, path := range c.profile.Protected {
		dir, err := canonical(filepath.Dir(path))
		if err != nil {
			return fmt.Errorf("the profile cannot be protected: %w", err)
		}
		target, err := canonical(path)
		if err != nil {
			return fmt.Errorf("the profile cannot be protected: %w", err)
		}
		for _, p := range []string{filepath.Join(dir.path, filepath.Base(path)), target.path} {
			if !c.files.protected[p] {
				c.files.protected[p] = true
				c.files.guarded = append(c.files.guarded, guardedPath{p, c.profile.ProtectedAt[i]})
			}
		}
	}
	return nil
}

// Protected returns the canonical paths that the sandbox must never write, existing or not.
func (p *Policy) Protected() []string {
	out := make([]string, 0, len(p.files.guarded))
	for _, g := range p.files.guarded {
		out = append(out, g.path)
	}
	slices.Sort(out)
	return out
}

// CheckProtected is for providers without a mount namespace: there a protected path beneath a writable exposure could
// be replaced by the code that it is to hold, so such a profile does not start.
func (p *Policy) CheckProtected() error {
	for _, g := range p.files.guarded {
		for _, e := range p.files.exposures {
			if !e.Write || !beneath(g.path, e.Source) {
				continue
			}
			what := "the profile " + g.path
			if !g.at.IsZero() {
				what = g.path + ", which " + g.at.String() + " includes,"
			}
			line := "expose-rw=" + e.Source
			return fmt.Errorf("%s lies beneath %s at %s: the program could rewrite its own rules. "+
				"Either expose a folder that does not hold it (expose-rw=%s),\nor move it out and name it: --pysandboxes-config=/elsewhere/%s",
				what, line, e.Pos, filepath.Join(e.Source, "output"), filepath.Base(g.path))
		}
	}
	return nil
}
