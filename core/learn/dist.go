package learn

import (
	"bufio"
	"os"
	"path/filepath"
	"strings"
)

// distributions says which installed distribution a top-level module came from. It reads the RECORD files of the
// site-packages folders (PEP 376, PEP 627): what an installer wrote, used for comments only.
type distributions struct{ of map[string]string }

// maxRecord bounds what is read of one RECORD.
const maxRecord = 8 << 20

func readDistributions(site []string) *distributions {
	d := &distributions{of: map[string]string{}}
	for _, folder := range site {
		infos, _ := filepath.Glob(filepath.Join(escapeGlob(folder), "*.dist-info"))
		for _, info := range infos {
			base := strings.TrimSuffix(filepath.Base(info), ".dist-info")
			name, version, ok := strings.Cut(base, "-")
			if !ok {
				continue
			}
			for _, module := range recordModules(filepath.Join(info, "RECORD")) {
				if _, known := d.of[module]; !known {
					d.of[module] = name + " " + version
				}
			}
		}
	}
	return d
}

// recordModules lists the top-level modules that a RECORD names.
func recordModules(path string) []string {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() || info.Size() > maxRecord {
		return nil
	}
	f, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer f.Close()
	seen := map[string]bool{}
	var out []string
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		file, _, _ := strings.Cut(lines.Text(), ",")
		first, _, nested := strings.Cut(file, "/")
		if !nested {
			// a module of one file: six.py, _cffi_backend.cpython-311-x86_64-linux-gnu.so
			stem, _, dotted := strings.Cut(first, ".")
			if !dotted || !strings.HasSuffix(first, ".py") && !strings.HasSuffix(first, ".so") {
				continue
			}
			first = stem
		}
		if moduleName.MatchString(first) && !strings.Contains(first, ".") && first != "__pycache__" && !seen[first] {
			seen[first] = true
			out = append(out, first)
		}
	}
	return out
}

// describe is the comment for a module outside the standard library.
func (d *distributions) describe(e entry) string {
	switch {
	case e.Dist != "":
		return strings.TrimSpace(e.Dist + " " + e.Version)
	case d.of[e.Subject] != "":
		return d.of[e.Subject]
	}
	return "the program's own, or not installed by a package"
}

func escapeGlob(s string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(s)
}
