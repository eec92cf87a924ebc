//go:build linux

package seccomp

import "golang.org/x/sys/unix"

// auditArch is AUDIT_ARCH_AARCH64 (linux/audit.h): the only calling convention the filter lets in.
const auditArch = 0xc00000b7

// foreignABI is zero: this architecture has no second ABI under the same audit number.
const foreignABI = 0

// machineAllowed are the calls that only this architecture has.
var machineAllowed = []Group{}

// machineRefused are the calls that only this architecture has.
var machineRefused = []Group{}

// machineObserved are the older calls that a learning run looks at.
var machineObserved = []Rule{watch(unix.SYS_RENAMEAT, "renameat")}
