package profile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Name is the file that Find looks for.
const Name = ".py-sandboxes"

// Find says which profile a run uses: the one that the caller names, else `.py-sandboxes` at the root of the package
// that starts the sandbox, else the one in the current folder. searched lists the places in order. An empty path with
// no error means that none was found; a named one that is missing is an error. A dangling link counts as found, so that
// loading fails instead of a new profile being learned.
func Find(named, packageRoot, cwd string) (path string, searched []string, err error) {
	absolute := func(p string) string {
		if !filepath.IsAbs(p) {
			p = filepath.Join(cwd, p)
		}
		return filepath.Clean(p)
	}
	if named != "" {
		path = absolute(named)
		if _, err := os.Lstat(path); err != nil {
			return "", []string{path}, fmt.Errorf("the profile that was named cannot be used: %w", err)
		}
		return path, []string{path}, nil
	}
	for _, dir := range []string{packageRoot, cwd} {
		if dir == "" {
			continue
		}
		path := filepath.Join(absolute(dir), Name)
		if len(searched) > 0 && searched[len(searched)-1] == path {
			continue
		}
		searched = append(searched, path)
		switch _, err := os.Lstat(path); {
		case err == nil:
			return path, searched, nil
		case !errors.Is(err, fs.ErrNotExist):
			return "", searched, fmt.Errorf("looking for a profile: %w", err)
		}
	}
	return "", searched, nil
}
