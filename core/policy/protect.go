package policy

import (
	"fmt"
	"path/filepath"
	"slices"

	"github.com/pysandboxes/pysandboxes/core/profile"
)

// Trusted is something that later starts rely on as they do on the profile.
type Trusted struct {
	Path string
	What string // "where answers of interpreters are kept"
}

// guardedPath is a path that the sandbox must never write, and the line that names it.
type guardedPath struct {
	path string
	at   profile.Position // the include; zero for the profile itself
	what string           // of a Trusted; "" for the profile and its includes
}

// protect notes the profile and its includes, and what is trusted besides, by each path that leads to them: every link on
// the way, and what it points to.
func (c *compiler) protect() error {
	c.files.protected = map[string]bool{}
	guard := func(path string, at profile.Position, what string) error {
		dir, err := canonical(filepath.Dir(path))
		if err != nil {
			return fmt.Errorf("the profile cannot be protected: %w", err)
		}
		target, err := canonical(path)
		if err != nil {
			return fmt.Errorf("the profile cannot be protected: %w", err)
		}
		for _, p := range append([]string{filepath.Join(dir.path, filepath.Base(path)), target.path}, linksTo(path)...) {
			if !c.files.protected[p] {
				c.files.protected[p] = true
				c.files.guarded = append(c.files.guarded, guardedPath{p, at, what})
			}
		}
		return nil
	}
	for i, path := range c.profile.Protected {
		if err := guard(path, c.profile.ProtectedAt[i], ""); err != nil {
			return err
		}
	}
	for _, t := range c.ctx.Trusted {
		if err := guard(t.Path, profile.Position{}, t.What); err != nil {
			return err
		}
	}
	return nil
}

// route is the way of an exposure over links.
type route struct {
	links []string // where they stand, canonical
	leads string
	at    profile.Position
	key   string
	path  string // as written
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
			line := "expose-rw=" + e.Source
			if g.what != "" {
				return fmt.Errorf("%s, %s, lies beneath %s at %s: the program could change what later starts trust. "+
					"Expose a folder that does not hold it", g.path, g.what, line, e.Pos)
			}
			what := "the profile " + g.path
			if !g.at.IsZero() {
				what = g.path + ", which " + g.at.String() + " includes,"
			}
			return fmt.Errorf("%s lies beneath %s at %s: the program could rewrite its own rules. "+
				"Either expose a folder that does not hold it (expose-rw=%s),\nor move it out and name it: --pysandboxes-config=/elsewhere/%s",
				what, line, e.Pos, filepath.Join(e.Source, "output"), filepath.Base(g.path))
		}
	}
	return p.checkRoutes()
}

// checkRoutes refuses an exposure whose path goes over a link that the program can change, unless all that it leads to is the
// program's already: at the next start it would expose what the program has chosen.
func (p *Policy) checkRoutes() error {
	for _, r := range p.files.routes {
		for _, link := range r.links {
			for _, e := range p.files.exposures {
				if !e.Write || !beneath(link, e.Source) || beneath(r.leads, e.Source) {
					continue
				}
				return fmt.Errorf("%s=%s at %s goes over the link %s, which expose-rw=%s at %s lets the program change: "+
					"each start would expose what it leads to then, now %q. If a person made the link, name in the rule what it leads to; "+
					"else remove it",
					r.key, r.path, r.at, link, e.Source, e.Pos, r.leads)
			}
		}
	}
	return nil
}

// CheckMoved is for a start after another one: what the program could since have replaced by a link does not mean any more
// what it meant when the profile was read.
func (p *Policy) CheckMoved() error {
	for _, e := range p.files.exposures {
		changeable := slices.ContainsFunc(p.files.exposures, func(w Exposure) bool {
			return w.Write && w.Source != e.Source && beneath(e.Source, w.Source)
		})
		if !changeable {
			continue
		}
		if now, err := canonical(e.Source); err != nil || now.path != e.Source {
			return fmt.Errorf("%s: a link stands at %s, or on the way to it, since the profile was read. Remove it, or read the profile again",
				e.Pos, e.Source)
		}
	}
	return nil
}
