package landlock

import (
	"golang.org/x/sys/unix"

	"github.com/pysandboxes/pysandboxes/core/policy"
)

// keptCapabilities are what root keeps, under Landlock: files of other owners stay as readable and writable as they
// are to a bare interpreter run by root, within the exposed paths. Everything else goes. For other users nothing
// is there to keep.
func keptCapabilities(pol *policy.Policy) []int {
	kept := []int{unix.CAP_DAC_OVERRIDE, unix.CAP_DAC_READ_SEARCH, unix.CAP_FOWNER, unix.CAP_CHOWN, unix.CAP_FSETID}
	if pol.NetNeeded() {
		kept = append(kept, unix.CAP_NET_BIND_SERVICE) // ports below 1024
	}
	return kept
}
