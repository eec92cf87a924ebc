package daemon

import (
	"path/filepath"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/pysandboxes/pysandboxes/core/policy"
	"github.com/pysandboxes/pysandboxes/core/wire"
)

// maxBound bounds how many unix sockets of its own a sandbox may be remembered for. One more is not remembered, so that
// connecting to it needs a rule.
const maxBound = 4096

// boundSockets are the paths at which processes of this sandbox made unix sockets: what is inside may talk to itself
// (multiprocessing's forkserver and managers do), though a socket of the host's needs a rule of its exact path.
//
// No socket of the host's may come to stand at such a path: the guard asks before a socket gets another name as if it were
// connected to, and a folder that takes the place of the one in which the socket was made is another folder.
type boundSockets struct {
	mu    sync.Mutex
	paths map[string]folderID
}

// folderID tells folders apart, whatever their names.
type folderID struct{ device, inode uint64 }

func folderOf(path string) (folderID, bool) {
	var st unix.Stat_t
	if err := unix.Lstat(filepath.Dir(path), &st); err != nil {
		return folderID{}, false
	}
	return folderID{uint64(st.Dev), st.Ino}, true // Dev is of another type on other machines
}

// ownSocket decides the two questions that a rule for the folder answers: making a socket in it, and reaching one that was
// made so.
func (j *judge) ownSocket(q wire.Question) bool {
	if !strings.HasPrefix(q.Host, "/") {
		return false // abstract names reach out of the sandbox
	}
	j.bound.mu.Lock()
	defer j.bound.mu.Unlock()
	switch q.NetOp {
	case "bind":
		if !j.policy.File(q.Host, policy.Write, "socket.bind").Allow {
			return false
		}
		if j.bound.paths == nil {
			j.bound.paths = make(map[string]folderID)
		}
		if folder, known := folderOf(q.Host); known && len(j.bound.paths) < maxBound {
			j.bound.paths[q.Host] = folder
		}
		return true
	case "connect", "sendto":
		made, bound := j.bound.paths[q.Host]
		now, known := folderOf(q.Host)
		return bound && known && now == made
	}
	return false
}
