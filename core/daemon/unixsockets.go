package daemon

import (
	"strings"
	"sync"

	"github.com/pysandboxes/pysandboxes/core/policy"
	"github.com/pysandboxes/pysandboxes/core/wire"
)

// maxBound bounds how many unix sockets of its own a sandbox may be remembered for. One more is not remembered, so that
// connecting to it needs a rule.
const maxBound = 4096

// boundSockets are the paths at which processes of this sandbox made unix sockets: what is inside may talk to itself
// (multiprocessing's forkserver and managers do), though a socket of the host's needs a rule of its exact path.
type boundSockets struct {
	mu    sync.Mutex
	paths map[string]bool
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
			j.bound.paths = make(map[string]bool)
		}
		if len(j.bound.paths) < maxBound {
			j.bound.paths[q.Host] = true
		}
		return true
	case "connect", "sendto":
		return j.bound.paths[q.Host]
	}
	return false
}
