package policy

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/pysandboxes/pysandboxes/core/profile"
)

// Trusted is something that later starts rely on as they do on the profile.
type Trusted struct {
	Path string
	What string // "where answers of interpreters are kept"
	Made bool   // a folder that starts make where it is missing
}

// guardedPath is a path that the sandbox must never write, and the line that names it.
type guardedPath struct {
	path string
	at   profile.Position // the include; zero for the profile itself
	what string           // of a Trusted; "" for the profile and its includes
	made bool             // of a Trusted
}

// protect notes the profile and its includes, and what is trusted besides, by each path that leads to them: every link on
// the way, and what it points to.
func (c *compiler) protect() error {
	c.files.protected = map[string]bool{}
	guard := func(path string, at profile.Position, t Trusted) error {
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
				c.files.guarded = append(c.files.guarded, guardedPath{p, at, t.What, t.Made})
			}
		}
		return nil
	}
	for i, path := range c.profile.Protected {
		if err := guard(path, c.profile.ProtectedAt[i], Trusted{}); err != nil {
			return err
		}
	}
	for _, t := range c.ctx.Trusted {
		if err := guard(t.Path, profile.Position{}, t); err != nil {
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

// CheckProtected is for where no mount namespace is to be had: there a protected path beneath a writable exposure could
// be replaced by the code that it is to hold, so such a profile does not start.
func (p *Policy) CheckProtected() error {
	for _, b := range p.breaches() {
		return b.fail("")
	}
	return p.checkRoutes()
}

// breach is a protected path that a writable exposure reaches.
type breach struct {
	path guardedPath
	by   Exposure
}

func (p *Policy) breaches() []breach {
	var out []breach
	for _, g := range p.files.guarded {
		if e := p.writableOver(g.path); e != nil {
			out = append(out, breach{g, *e})
		}
	}
	return out
}

// writableOver is the first writable exposure that a path lies beneath, nil where there is none.
func (p *Policy) writableOver(path string) *Exposure {
	for i, e := range p.files.exposures {
		if e.Write && beneath(path, e.Source) {
			return &p.files.exposures[i]
		}
	}
	return nil
}

func (b breach) fail(why string) error {
	g, e := b.path, b.by
	line := "expose-rw=" + e.Source
	if g.what != "" {
		return fmt.Errorf("%s, %s, lies beneath %s at %s: the program could change what later starts trust. "+
			"Expose a folder that does not hold it%s", g.path, g.what, line, e.Pos, why)
	}
	what := "the profile " + g.path
	if !g.at.IsZero() {
		what = g.path + ", which " + g.at.String() + " includes,"
	}
	return fmt.Errorf("%s lies beneath %s at %s: the program could rewrite its own rules. "+
		"Either expose a folder that does not hold it (expose-rw=%s),\nor move it out and name it: --pysandboxes-config=/elsewhere/%s%s",
		what, line, e.Pos, filepath.Join(e.Source, "output"), filepath.Base(g.path), why)
}

// Held is what a mount namespace has to hold of a policy: files and folders that stay as they are beneath writable exposures.
type Held struct {
	ReadOnly []string // protected paths
	Pinned   []string // the folders above them that could be renamed, each before what lies beneath it
}

// HoldProtected is CheckProtected for where there is a mount namespace. What can be mounted on is held there; a path
// where nothing stands yet, or a link, cannot be, and is an error still.
func (p *Policy) HoldProtected() (Held, error) {
	var h Held
	for _, b := range p.breaches() {
		path := b.path.path
		switch st, err := os.Lstat(path); {
		case b.path.what != "" && !b.path.made:
			// The guard and init: around them lies an environment that later starts run, outside of any sandbox too.
			return Held{}, b.fail("")
		case err != nil && b.path.made && errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return Held{}, b.fail(fmt.Sprintf(",\nor make it, an empty file will do: what is there is made read only for the program (%s is not there)", path))
		case !st.Mode().IsRegular() && !st.IsDir():
			return Held{}, b.fail(fmt.Sprintf(",\nor put a file there: only that can be made read only for the program (%s is a link, or something else)", path))
		}
		h.ReadOnly = append(h.ReadOnly, path)
	}
	h.Pinned = p.pins(h.ReadOnly)
	return h, p.checkRoutes()
}

// pins are the folders above the paths that the program could rename.
func (p *Policy) pins(paths []string) []string {
	var out []string
	for _, path := range paths {
		for at := parent(path); at != "" && at != "/"; at = parent(at) {
			if p.writableOver(parent(at)) != nil && !slices.Contains(out, at) {
				out = append(out, at)
			}
		}
	}
	slices.Sort(out) // a folder is a prefix of what lies beneath it
	return out
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

// ToMake lists the trusted folders that are missing beneath writable exposures: the program would make them, and they have to be
// there to be held.
func (p *Policy) ToMake() []string {
	var out []string
	for _, b := range p.breaches() {
		if _, err := os.Lstat(b.path.path); b.path.made && errors.Is(err, fs.ErrNotExist) {
			out = append(out, b.path.path)
		}
	}
	return out
}
