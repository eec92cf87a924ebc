package learn

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// wholesale lists folders that are never exposed as a whole, whatever was seen in them: single files are listed
// instead. `~` stands for the home folder.
var wholesale = []string{
	"/", ownProcess, "/bin", "/boot", "/dev", "/etc", "/home", "/lib", "/lib64", "/media", "/mnt", "/opt", "/proc", "/root", "/run",
	"/sbin", "/srv", "/sys", "/tmp", "/usr", "/usr/bin", "/usr/lib", "/usr/local", "/usr/sbin", "/usr/share", "/var",
	"/var/lib", "/var/log", "/var/run", "/var/tmp", "/Users",
	"~", "~/.aws", "~/.azure", "~/.cache", "~/.config", "~/.config/gcloud", "~/.docker", "~/.gnupg", "~/.kube", "~/.local",
	"~/.local/bin", "~/.local/share", "~/.mozilla", "~/.password-store", "~/.ssh", "~/.config/google-chrome",
}

// secretFile matches names of files and folders that hold secrets or the history of a project: the reason why a
// folder that holds one unobserved is not exposed as a whole.
var secretFile = lazy(`(?i)^(\.env(\..*)?|\.git|\.hg|\.svn|\.ssh|\.aws|\.azure|\.gnupg|\.kube|\.docker|\.netrc|\.pgpass|\.npmrc|\.pypirc|\.git-credentials|` +
	`\.password-store|\.vault-token|id_(rsa|dsa|ecdsa|ed25519)(\.pub)?|.*\.(pem|key|p12|pfx|jks|keystore|kdbx|ovpn)|(.*[._-])?(secrets?|credentials?|passwords?|passwd|tokens?)([._-].*)?|shadow|` +
	`\..*_history|cookies(\.sqlite)?|login\.keychain.*)$`)

// codeFolder matches folders whose files are run: writing there outlives the sandbox.
var codeFolder = lazy(`/(bin|sbin|site-packages|dist-packages|node_modules|\.git|\.venv|venv|hooks|autostart|\.ssh|cron[^/]*|systemd|init\.d|profile\.d)(/|$)`)

// startFile matches files that are run at a login or at the next start of a program.
var startFile = lazy(`/(\.(bashrc|bash_profile|profile|zshrc|zprofile|zshenv|vimrc|gitconfig|pythonrc\.py|inputrc)|authorized_keys|.*\.(py|pth|sh|so|service|desktop)|sitecustomize\.py)$`)

// holds says that path is folder or lies beneath it. Both are clean and absolute.
func holds(folder, path string) bool {
	return folder == path || folder == "/" || strings.HasPrefix(path, folder+"/")
}

func dirOf(path string) string { return filepath.Dir(filepath.Clean(path)) }

// places knows the folders that generalisation treats with care.
type places struct {
	home      string
	tmp       string
	venv      string // the active virtual environment, "" for none
	profile   string // the profile's folder
	never     map[string]bool
	protected []string // profiles and what they include
}

func newPlaces(o Options) places {
	p := places{home: canonicalFolder(o.Home), tmp: canonicalFolder(o.TmpDir), venv: canonicalFolder(o.Env["VIRTUAL_ENV"]), profile: canonicalFolder(profileDir(o)), never: map[string]bool{}}
	for _, w := range wholesale {
		if rest, ok := strings.CutPrefix(w, "~"); ok {
			if p.home == "" {
				continue
			}
			w = p.home + rest
		}
		p.never[w] = true
	}
	if p.tmp != "" {
		p.never[p.tmp] = true
	}
	if o.ProfilePath != "" {
		p.protected = append(p.protected, filepath.Join(p.profile, filepath.Base(o.ProfilePath)))
	}
	if o.Policy != nil {
		for _, path := range o.Policy.Protected() {
			p.protected = append(p.protected, filepath.Join(canonicalFolder(dirOf(path)), filepath.Base(path)))
		}
	}
	return p
}

// venvForm names the virtual environment for whoever has one active, and this one for who has none: without it the profile would
// not load there.
func (p places) venvForm() string { return "${VIRTUAL_ENV:-" + p.venv + "}" }

// canonicalFolder resolves links; a folder that is not there keeps its text. "/" as a home means none.
func canonicalFolder(path string) string {
	if path == "" || !filepath.IsAbs(path) || filepath.Clean(path) == "/" {
		return ""
	}
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	return filepath.Clean(path)
}

// wholesale says that folder is one of those that are never exposed as a whole, or holds one.
func (p places) wholesale(folder string) bool {
	if p.never[folder] {
		return true
	}
	// the homes of other users, and the folders of the system that vary by machine
	parent := filepath.Dir(folder)
	if parent == "/home" || parent == "/Users" || parent == "/" && folder != p.profile && !p.ordinary(folder) {
		return true
	}
	return p.home != "" && holds(folder, p.home)
}

// ordinary folders of the root are those that a person made, such as /data or /app.
func (p places) ordinary(folder string) bool {
	return !strings.HasPrefix(filepath.Base(folder), ".") && !strings.HasPrefix(folder, "/lib")
}

// protects names a profile that would become writable if folder did, or "".
func (p places) protects(folder string) string {
	for _, path := range p.protected {
		if holds(folder, path) {
			return path
		}
	}
	return ""
}

// maxEntries bounds how much of a folder is looked at; a larger one counts as holding something unobserved.
const maxEntries = 4096

// unobservedRisk names entries of folder that hold secrets and that the program did not touch, at most three.
func unobservedRisk(folder string, touched func(path string) bool) []string {
	var out []string
	for _, name := range entriesOf(folder) {
		path := filepath.Join(folder, name)
		if secretFile.MatchString(name) && !touched(path) {
			if out = append(out, name); len(out) == 3 {
				break
			}
		}
	}
	return out
}

func entriesOf(folder string) []string {
	f, err := os.Open(folder)
	if err != nil {
		return nil
	}
	defer f.Close()
	names, _ := f.Readdirnames(maxEntries)
	slices.Sort(names)
	return names
}

func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}
