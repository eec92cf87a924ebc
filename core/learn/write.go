package learn

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/pysandboxes/pysandboxes/core/profile"
	"golang.org/x/sys/unix"
)

// WriteOptions says how to write.
type WriteOptions struct {
	Env       map[string]string // the host environment, to read the profile back; nil: the process's own
	Home, Cwd string
	Wait      time.Duration // how long to wait for another run that writes; 0: 10 s
}

// maxProfile bounds the profile that is read; a larger one is not a profile.
const maxProfile = 16 << 20

// Write adds what was learned to the profile at path: only inside its learned blocks, only what the profile does not
// say already, under a dated comment. All other bytes stay as they are. A profile that is not there is made from
// profile.Template. The new text is read back by the profile's own parser before it takes the old one's place, by
// fsync and rename; the old text is kept beside it as `.old`. Two runs that write at once take turns.
//
// changed is false, and nothing was touched, if there was nothing to add. A *BlockError says that the markers of the
// learned blocks are damaged; then too, nothing was touched.
func Write(path string, r Result, o WriteOptions) (changed bool, err error) {
	target, err := followLinks(absolute(path, o.Cwd))
	if err != nil {
		return false, err
	}
	lock, err := acquire(target, o.Wait)
	if err != nil {
		return false, err
	}
	defer lock.release()

	old, info, err := readProfile(target)
	if err != nil {
		return false, err
	}
	text := string(old)
	if info == nil {
		text = profile.Template()
	}
	doc, err := parseDocument(path, text)
	if err != nil {
		return false, err
	}
	additions, err := fresh(doc, target, text, r, o)
	if err != nil {
		return false, err
	}
	if len(additions) == 0 && info != nil {
		return false, nil
	}
	next := doc.insert(additions)
	if err := replace(target, []byte(next), old, info, o); err != nil {
		return false, err
	}
	return true, nil
}

// Ready tells whether [Write] can write the profile at path, by what it needs of the place: its folder takes a lock and
// with it new files, and a profile that is there is one, with its learned blocks whole. Nothing stays behind.
func Ready(path, cwd string) error {
	target, err := followLinks(absolute(path, cwd))
	if err != nil {
		return err
	}
	lock, err := acquire(target, 0)
	if err != nil {
		return err
	}
	defer lock.release()
	text, info, err := readProfile(target)
	if err != nil || info == nil {
		return err
	}
	_, err = parseDocument(path, string(text))
	return err
}

// fresh lists, per block, the lines that the profile does not have yet, under the date.
func fresh(doc *document, target, text string, r Result, o WriteOptions) (map[string][]string, error) {
	have := map[string]bool{}
	for _, line := range doc.lines {
		line = strings.TrimSpace(line)
		have[line] = true
		have[withoutComment(line)] = true
	}
	at := r.At
	if at.IsZero() {
		at = time.Now()
	}
	out := map[string][]string{}
	for _, l := range r.Lines {
		tag := tagOf(l.Family)
		if tag == "" {
			return nil, fmt.Errorf("learning into %s: there is no block for the family %q", target, l.Family)
		}
		line, same := written(l)
		if have[same] || have[line] || l.Family == FamilyResult && setsScalar(doc, l.Line) {
			continue
		}
		have[same] = true
		if out[tag] == nil {
			out[tag] = []string{"# learned " + at.Format(time.DateOnly)}
		}
		out[tag] = append(out[tag], line)
	}
	return out, nil
}

// written is a learned line as it stands in the profile, and the part of it that makes it the same as another.
func written(l Learned) (line, same string) {
	if l.Line == "" {
		comment := "# " + visible(l.Comment)
		return comment, comment
	}
	note := join(visible(l.Comment), visible(l.Site))
	if l.Risk == High {
		note = join("HIGH RISK", note)
	}
	if note == "" {
		return l.Line, l.Line
	}
	return l.Line + "  # " + note, l.Line
}

// withoutComment cuts the comment that learning itself puts behind a rule.
func withoutComment(line string) string {
	rule, _, _ := strings.Cut(line, "  # ")
	return strings.TrimSpace(rule)
}

// setsScalar says that the profile sets the key of line somewhere: a second line would be an error.
func setsScalar(doc *document, line string) bool {
	key, _, _ := strings.Cut(line, "=")
	for _, have := range doc.lines {
		if k, _, ok := strings.Cut(have, "="); ok && strings.TrimSpace(k) == key {
			return true
		}
	}
	return false
}

// followLinks returns what path leads to, so that a profile kept elsewhere and linked stays a link.
func followLinks(path string) (string, error) {
	real, err := filepath.EvalSymlinks(path)
	if err == nil {
		return real, nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("learning into %s: %w", path, err)
	}
	if _, err := os.Lstat(path); err == nil {
		return "", fmt.Errorf("learning into %s: it is a link to nothing; remove it or make what it leads to", path)
	}
	folder, err := filepath.EvalSymlinks(filepath.Dir(path))
	if err != nil {
		return "", fmt.Errorf("learning into %s: its folder cannot be used: %w\nMake the folder first, or name another file: --learn=FILE", path, err)
	}
	return filepath.Join(folder, filepath.Base(path)), nil
}

// readProfile returns nil as info where there is no file.
func readProfile(path string) ([]byte, fs.FileInfo, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("learning into %s: %w", path, err)
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, nil, fmt.Errorf("learning into %s: %w", path, err)
	case !info.Mode().IsRegular():
		return nil, nil, fmt.Errorf("learning into %s: it is not a regular file", path)
	case info.Mode().Perm()&0o222 == 0: // it could be replaced all the same, but somebody did not want that
		return nil, nil, fmt.Errorf("learning into %s: it is read-only\nLet it be written (chmod u+w), or name another file: --learn=FILE", path)
	case info.Size() > maxProfile:
		return nil, nil, fmt.Errorf("learning into %s: it has %d bytes, more than a profile may have", path, info.Size())
	}
	var buf bytes.Buffer
	if _, err := io.Copy(&buf, io.LimitReader(f, maxProfile+1)); err != nil {
		return nil, nil, fmt.Errorf("learning into %s: %w", path, err)
	}
	return buf.Bytes(), info, nil
}

// replace puts text in the place of the old one: a new file beside it, read back, synced, renamed.
func replace(target string, text, old []byte, info fs.FileInfo, o WriteOptions) error {
	next, err := beside(target, text, info)
	if err != nil {
		return err
	}
	defer os.Remove(next) // gone already where it was renamed
	if _, err := profile.Load(profile.Options{Path: next, Env: hostEnv(o), Platform: "linux", Home: o.Home, Cwd: o.Cwd}); err != nil {
		message := strings.ReplaceAll(err.Error(), next, target)
		return fmt.Errorf("learning into %s: the profile with the learned rules would not load, so it stays as it was: %s", target, message)
	}
	if info != nil {
		kept, err := beside(target, old, info)
		if err != nil {
			return err
		}
		defer os.Remove(kept)
		if err := os.Rename(kept, target+".old"); err != nil {
			return fmt.Errorf("learning into %s: keeping the old text: %w", target, err)
		}
	}
	if err := os.Rename(next, target); err != nil {
		return fmt.Errorf("learning into %s: %w", target, err)
	}
	return syncFolder(filepath.Dir(target))
}

// beside writes a file with a name of its own in the folder of target, with target's mode and owner.
func beside(target string, text []byte, like fs.FileInfo) (name string, err error) {
	f, err := os.CreateTemp(filepath.Dir(target), filepath.Base(target)+".*.new")
	if err != nil {
		return "", fmt.Errorf("learning into %s: %w", target, err)
	}
	defer func() {
		if closed := f.Close(); err == nil {
			err = closed
		}
		if err != nil {
			os.Remove(f.Name())
			err = fmt.Errorf("learning into %s: %w", target, err)
		}
	}()
	mode := fs.FileMode(0o644)
	if like != nil {
		mode = like.Mode().Perm()
		if st, ok := like.Sys().(*syscall.Stat_t); ok {
			_ = f.Chown(int(st.Uid), int(st.Gid)) // only root can; the text matters more
		}
	}
	if err := f.Chmod(mode); err != nil {
		return "", err
	}
	if _, err := f.Write(text); err != nil {
		return "", err
	}
	return f.Name(), f.Sync()
}

func syncFolder(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("syncing %s: %w", path, err)
	}
	defer f.Close()
	if err := f.Sync(); err != nil && !errors.Is(err, unix.EINVAL) {
		return fmt.Errorf("syncing %s: %w", path, err)
	}
	return nil
}

func hostEnv(o WriteOptions) map[string]string {
	if o.Env != nil {
		return o.Env
	}
	env := map[string]string{}
	for _, pair := range os.Environ() {
		if name, value, ok := strings.Cut(pair, "="); ok {
			env[name] = value
		}
	}
	return env
}
