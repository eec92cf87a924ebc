package broker

import (
	"path"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/pysandboxes/pysandboxes/core/policy"
)

// A rule for a socket names its path. Where the sandbox may write the folder that it lies in, it could put another socket of the
// host's there: then it is judged by the name that its server has given it, which the kernel keeps.

// mayMove tells that the sandbox may put something in the place of a file.
func (b *Broker) mayMove(file string) bool {
	return b.config.Files != nil && b.config.Files.File(path.Dir(file), policy.Write, "rename").Allow
}

// decideByName decides on the socket that is bound to a file, of which a rule names the path and d is what it says.
func (b *Broker) decideByName(op, where string, file unix.Stat_t, d policy.Decision) (policy.NetQuestion, policy.Decision) {
	q := unixQuestion(op, where)
	names := b.namesAt(file)
	for _, name := range names {
		if !named(name, where) { // the list has half of a file's number: of several that it may be, each counts
			q = unixQuestion(op, name)
			return q, b.decide(q)
		}
	}
	if len(names) == 0 {
		b.noteOnce("moved", "a unix socket in a folder that the sandbox may write is reached where the kernel tells who made it (unix_diag, in one network); "+where+" is not")
		d.Allow = false
	}
	return q, d
}

// named tells that a server has given its socket that path. Of a relative name its end is known.
func named(name, where string) bool {
	if !path.IsAbs(name) {
		return strings.HasSuffix(where, "/"+path.Clean(name))
	}
	return path.Clean(name) == where
}

// namesAt lists the names of the sockets that are bound to a file, in the supervisor's network and in the sandbox's.
func (b *Broker) namesAt(file unix.Stat_t) []string {
	var names []string
	for _, lists := range []func(unix.Stat_t) (map[string]string, error){b.socketsAt, socketsHere} {
		bound, err := lists(file)
		if err != nil {
			continue
		}
		for _, name := range bound {
			names = append(names, name)
		}
	}
	return names
}
