//go:build linux && (amd64 || arm64)

package initproc

import (
	"fmt"
	"slices"

	"golang.org/x/sys/unix"
)

// dropCapabilities leaves at most the kept ones, in every set of this thread. The bounding set goes first: dropping
// from it needs a capability that the other step takes away. Who may not change the bounding set has no
// capability that no_new_privs would let come back.
func dropCapabilities(kept []int) error {
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil && err != unix.EINVAL {
		return fmt.Errorf("ambient capabilities: %w", err)
	}
	for c := 0; ; c++ {
		if slices.Contains(kept, c) {
			continue
		}
		err := unix.Prctl(unix.PR_CAPBSET_DROP, uintptr(c), 0, 0, 0)
		if err == unix.EINVAL || err == unix.EPERM {
			break // past the last one of this kernel, or not ours to drop
		}
		if err != nil {
			return fmt.Errorf("bounding set, capability %d: %w", c, err)
		}
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var have, want [2]unix.CapUserData
	if err := unix.Capget(&header, &have[0]); err != nil {
		return fmt.Errorf("capabilities: %w", err)
	}
	for _, c := range kept {
		bit := uint32(1) << (c % 32)
		want[c/32].Permitted |= have[c/32].Permitted & bit
		want[c/32].Effective |= have[c/32].Effective & bit
	}
	if err := unix.Capset(&header, &want[0]); err != nil {
		return fmt.Errorf("drop capabilities: %w", err)
	}
	return nil
}
