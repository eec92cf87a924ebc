// Package plan is what the supervisor and init say to each other: the plan (supervisor to init, once, in a sealed
// memfd) and a few messages over a socket pair. Both ends are of one build; a plan of another version is refused.
//
// It knows paths and numbers only, nothing of profiles: what a policy means was decided before.
package plan

import (
	"errors"
	"fmt"
	"os"

	"github.com/vmihailenco/msgpack/v5"
	"golang.org/x/sys/unix"

	"github.com/pysandboxes/pysandboxes/providers/seccomp"
)

// Version of the plan and the messages.
const Version = 1

// Argv0 is the name under which the static binary plays init.
const Argv0 = "pysandboxes-init"

// Descriptors that init finds open, besides the standard streams. The last three are the program's and stay open
// over its exec; Call may be absent.
const (
	FDControl  = 3
	FDPlan     = 4
	FDBoot     = 5
	FDAnnounce = 6
	FDCall     = 7
)

// Plan is all that init has to do.
type Plan struct {
	Version int
	Parent  int // process number of the supervisor, 0 where it cannot be seen
	Path    string
	Argv    []string
	Env     []string
	Keep    []int // descriptors, besides 0 to 2, that the program inherits
	Limits  Limits
	// Boundary is nil where the provider has none.
	Boundary *Boundary
	// Observe: a learning run, whose calls the supervisor looks at and lets go on. Never with a boundary.
	Observe bool
}

// Limits are resource limits of the process; zero is none.
type Limits struct {
	CPUSeconds uint64
	OpenFiles  uint64
	Processes  uint64
	Data       uint64 // bytes, the measured need of the interpreter included
}

// Boundary is the kernel's part.
type Boundary struct {
	// ABI is the Landlock that the plan was made for; init uses no more of it. 0: what the kernel has.
	ABI    int
	Rules  []Rule
	Filter seccomp.Needs // Self and the kernel's gaps are filled in by init
	// KeepCaps are the capabilities that stay, where there are any to keep.
	KeepCaps []int
	// Network is nil where the child shares the supervisor's.
	Network *Network
	// Mounts is nil where the child shares the supervisor's.
	Mounts *Mounts
	// Outside is a path that no rule reaches: init proves that it cannot be opened. Empty where the rules
	// reach everything.
	Outside string
	// OutsideWrite: the proof opens Outside for writing (reading it is allowed).
	OutsideWrite bool
}

// Access is what a rule grants beneath its path.
type Access uint8

const (
	// Read reads files and lists directories.
	Read Access = 1 << iota
	// Write changes files, and makes, removes and moves entries.
	Write
	// Execute runs files.
	Execute
	// Device operates the device (ioctl), where the path is one.
	Device
)

// Rule grants access to a path and what is beneath it.
type Rule struct {
	Path   string
	Access Access
	// Optional: a path that is missing is skipped; else it stops the start.
	Optional bool
}

// Seal writes the plan to a memfd that nobody can change afterwards.
func (p *Plan) Seal() (*os.File, error) {
	data, err := msgpack.Marshal(p)
	if err != nil {
		return nil, fmt.Errorf("plan: encode: %w", err)
	}
	fd, err := unix.MemfdCreate("pysandboxes-plan", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, fmt.Errorf("plan: memfd: %w", err)
	}
	f := os.NewFile(uintptr(fd), "plan")
	if _, err := f.Write(data); err != nil {
		f.Close()
		return nil, fmt.Errorf("plan: write: %w", err)
	}
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, seals); err != nil {
		f.Close()
		return nil, fmt.Errorf("plan: seal: %w", err)
	}
	return f, nil
}

// ErrNone: the descriptor is not a sealed memfd, so init was not started by a supervisor.
var ErrNone = errors.New("plan: no plan was passed")

// seals make the plan unchangeable.
const seals = unix.F_SEAL_SEAL | unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_WRITE

// Open reads the plan from its memfd.
func Open(fd int) (*Plan, error) {
	if have, err := unix.FcntlInt(uintptr(fd), unix.F_GET_SEALS, 0); err != nil || have&seals != seals {
		return nil, ErrNone
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return nil, fmt.Errorf("plan: %w", err)
	}
	data := make([]byte, st.Size)
	for n := 0; n < len(data); {
		k, err := unix.Pread(fd, data[n:], int64(n))
		if err == unix.EINTR {
			continue
		}
		if err != nil || k == 0 {
			return nil, fmt.Errorf("plan: read %d of %d bytes: %w", n, len(data), err)
		}
		n += k
	}
	var p Plan
	if err := msgpack.Unmarshal(data, &p); err != nil {
		return nil, fmt.Errorf("plan: decode: %w", err)
	}
	if p.Version != Version {
		return nil, fmt.Errorf("plan: version %d, this init knows %d: the parts of the installation do not match, install it again", p.Version, Version)
	}
	return &p, nil
}
