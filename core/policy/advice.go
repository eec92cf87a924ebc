package policy

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/pysandboxes/pysandboxes/core/profile"
)

// ownFolder is the folder that a refusal proposes where no rule for the path in question could work.
const ownFolder = "output"

// removing are the operations that take a name out of its folder: a rule for the file alone does not let them.
var removing = map[string]bool{"remove": true, "unlink": true, "rename": true, "replace": true, "rmdir": true}

// shared are the folders for temporary files, whose names are others each time.
var shared = map[string]bool{"/tmp": true, "/var/tmp": true}

// making are the operations that make a folder.
var making = map[string]bool{"mkdir": true}

// adviseName mends the advice for a refused write that changes the names in a folder: the kernel can grant a path only
// if it is there when the sandbox starts, and making or removing a name is the folder's affair. The line to add is for
// the folder, unless it holds the profile: then a folder of its own is proposed.
func (p *Policy) adviseName(d *Decision, path, op string) {
	op = op[strings.LastIndexByte(op, '.')+1:]
	if op == "gettempdir" {
		p.adviseTemporary(d, path)
		return
	}
	_, err := os.Lstat(path)
	missing := errors.Is(err, fs.ErrNotExist)
	folder := parent(path)
	if folder == "" || !missing && !removing[op] || d.Note != "" {
		return
	}
	why := "It does not exist yet, and the kernel can grant only what exists when the sandbox starts."
	if removing[op] {
		why = "Names are made and removed in their folder, so a rule for the file alone does not do."
	}
	if making[op] {
		if text, ok := p.spell(path + "/"); ok {
			d.Add = []string{"expose-rw=" + text}
			d.Note = why + " With a slash at its end the rule has the folder made at the start."
		}
		return
	}
	if !p.holdsProfile(folder) {
		d.Note = why
		text, ok := p.spell(folder)
		switch {
		case ok && shared[folder]:
			d.Add = []string{"expose-rw=" + text}
			d.Note += " " + folder + " is for everybody's temporary files: a folder of the program's own, named by TMPDIR, gives away less."
		case ok && folder != p.ctx.Home && parent(folder) != "/" && folder != "/":
			d.Add = []string{"expose-rw=" + text}
		case missing:
			d.Note += " Make it before the start."
		}
		return
	}
	base := p.dir
	if base == "" || !beneath(base, folder) {
		base = folder
	}
	text, ok := p.spell(filepath.Join(base, ownFolder) + "/")
	if !ok {
		return
	}
	d.Note = why + " Its folder holds the profile, so it cannot be exposed for writing. "
	line := "expose-rw=" + text
	if removing[op] {
		d.Add = []string{line}
		d.Note += "Let the program use a folder of its own, such as " + ownFolder + "."
		return
	}
	d.Note += "Let the program write into a folder of its own, such as " + ownFolder + " (" + line + "), or make the file before the start."
}

// adviseTemporary mends the advice for a program that found no folder for temporary files; path is the first that it tried.
func (p *Policy) adviseTemporary(d *Decision, path string) {
	held := p.heldIn(path)
	if held == "" {
		d.Note = "It is where temporary files go: a folder of the program's own, named by TMPDIR, gives away less."
		return
	}
	base := p.dir
	if base == "" {
		base = path
	}
	own := filepath.Join(base, "tmp")
	if text, ok := p.spell(own + "/"); ok {
		d.Note = "It holds " + held + ", so it cannot be exposed for writing. Let temporary files go to a folder of the program's own."
		d.Add, d.Also = []string{"expose-rw=" + text}, []string{"env=TMPDIR=" + own}
	}
}

// Remove says why the kernel does not let a name be taken away that the rules expose for writing: they expose it alone, and not
// the folder that it stands in. Where that is not so, the decision allows it.
func (p *Policy) Remove(path, op string) Decision {
	if !clean(path) || path == "/" {
		return p.allow("file", op, path, 0)
	}
	at, above := p.files.find(path), p.files.find(parent(path))
	if at.rw == 0 || above.rw > 0 {
		return p.allow("file", op, path, at.rw)
	}
	d := p.refuse("file", op, path, "removing"+phrase(path, Read)[len("reading"):], at.rw)
	line := d.RuleText + " at " + d.Rule.String()
	d.Rule, d.RuleText = profile.Position{}, "" // it allows the path, so it is not what forbids this
	instead := "Let the program empty it and leave it"
	if op == "rmdir" {
		instead = "Let the program remove what is in it and leave it"
	}
	d.Note = "the line " + line + " exposes it alone, and names are made and removed in their folder, which no rule exposes for " +
		"writing. " + instead + ", or work in a folder beneath one that is exposed."
	return d
}

// adviseProcess mends the advice for the folder of a process: its number is another one at each start.
func (p *Policy) adviseProcess(d *Decision, rest, key string) {
	d.Note = "The number of a process is another one at each start, so no rule can name it. What a program reads of itself it opens " +
		"as /proc/self" + rest + ", for which the line is."
	if text, ok := p.spell("/proc/self" + rest); ok {
		d.Add = []string{key + text}
	}
}

// holdsProfile tells that a folder could not be exposed for writing: a profile lies in it or beneath it, or what else no sandbox may write.
func (p *Policy) holdsProfile(folder string) bool { return p.heldIn(folder) != "" }

// heldIn names that, "" where there is nothing.
func (p *Policy) heldIn(folder string) string {
	for _, g := range p.files.guarded {
		switch {
		case !beneath(g.path, folder):
		case g.what == "":
			return "the profile"
		default:
			return g.path + ", " + g.what
		}
	}
	return ""
}
