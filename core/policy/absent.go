package policy

import "path/filepath"

// Absent tells that writing a path is allowed only by a rule whose path was missing when the profile was read. A kernel that grants
// what exists at the start refuses it then; the decision says so, where the kernel's error would not.
func (p *Policy) Absent(path, op string) (Decision, bool) {
	var rule *Exposure
	for i := range p.files.exposures {
		e := &p.files.exposures[i]
		switch {
		case !e.Write || !beneath(path, e.Source) || e.File && e.Exists && path != e.Source:
		case e.Exists || e.Make:
			return Decision{}, false
		case rule == nil:
			rule = e
		}
	}
	if rule == nil {
		return Decision{}, false
	}
	d := p.refuse("file", op, path, phrase(path, Write), 0)
	d.why = "the line " + p.lineOf(rule) + " at " + rule.Pos.String() + " exposes it, but it was not there when the sandbox started, " +
		"and the kernel can grant only what is."
	d.Note = "Make it before the start, or expose its folder."
	line := ""
	switch folder := parent(rule.Source); {
	case p.holdsProfile(folder):
		base := p.dir
		if base == "" || !beneath(base, folder) {
			base = folder
		}
		d.Note = "Make it before the start, or let the program write into a folder of its own, which is made then."
		line = filepath.Join(base, ownFolder) + "/"
	case folder == "" || folder == "/" || folder == p.ctx.Home || shared[folder] || parent(folder) == "/":
		d.Note = "Make it before the start."
	default:
		line = folder
	}
	if text, ok := p.spell(line); ok && line != "" {
		d.Add = []string{"expose-rw=" + text}
	}
	return d, true
}

// lineOf is an exposure's line as a refusal of a path would propose it.
func (p *Policy) lineOf(e *Exposure) string {
	text, ok := p.spell(e.Source)
	if !ok {
		text = e.Source
	}
	return "expose-rw=" + text
}
