package landlock

import (
	"golang.org/x/sys/unix"

	"github.com/pysandboxes/pysandboxes/core/policy"
)

// writable is what a policy exposes for writing, by kind: each kind lets the filter pass calls that nobody else needs.
type writable struct {
	any    bool
	socket bool // a local socket, or a folder to bind one in
	device bool // a device, or the folder of the pseudo-terminals
}

func writableOf(pol *policy.Policy) writable {
	var w writable
	for _, e := range pol.Exposures() {
		if !e.Write {
			continue
		}
		w.any = true
		var st unix.Stat_t
		if unix.Stat(e.Source, &st) != nil {
			continue // made later: then it is a file or a folder
		}
		switch st.Mode & unix.S_IFMT {
		case unix.S_IFSOCK:
			w.socket = true
		case unix.S_IFCHR, unix.S_IFBLK:
			w.device = true
		case unix.S_IFDIR:
			var fs unix.Statfs_t
			if unix.Statfs(e.Source, &fs) == nil && fs.Type == unix.DEVPTS_SUPER_MAGIC {
				w.device = true
			} else {
				w.socket = true
			}
		}
	}
	return w
}
