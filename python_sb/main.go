// Command python-sb is `python` with a policy (core/supervisor). Started under the name pysandboxes-init it is the program
// that puts up the boundary of a sandbox and then becomes its interpreter (providers/initproc).
package main

import (
	"os"
	"path/filepath"
	"runtime"

	"github.com/pysandboxes/pysandboxes/core/supervisor"
	"github.com/pysandboxes/pysandboxes/providers/initproc"
	"github.com/pysandboxes/pysandboxes/providers/plan"
)

// The first thread stays the main goroutine's. One that gives up rights or descriptors for good ends with its goroutine, which this
// one, whose state /proc/self shows, cannot.
func init() { runtime.LockOSThread() }

func main() {
	if len(os.Args) > 0 && filepath.Base(os.Args[0]) == plan.Argv0 {
		initproc.Main()
	}
	// On other threads, which the runtime moves goroutines between: to wake one that is tied to its thread takes two switches more.
	go supervisor.Main()
	select {}
}
