//go:build linux && (amd64 || arm64)

package initproc

import (
	"errors"
	"fmt"
	"os"
	"runtime"

	"golang.org/x/sys/unix"

	"github.com/pysandboxes/pysandboxes/providers/plan"
)

// ExitFailed is init's exit status when it does not get as far as the program.
const ExitFailed = 125

// Main is the whole of init. It never returns: the process becomes the program, or ends.
func Main() {
	runtime.LockOSThread()
	err := guarded()
	failed := plan.Message{Kind: plan.Failed, Text: err.Error()}
	if stage := (*stageError)(nil); errors.As(err, &stage) {
		failed.Stage = stage.stage
	}
	if e := plan.Send(plan.FDControl, failed); e != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", plan.Argv0, err)
	}
	os.Exit(ExitFailed)
}

// guarded turns a fault of ours into a failed start that says so.
func guarded() (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("init: %v", v)
		}
	}()
	return run()
}

// run returns only with an error.
func run() error {
	p, err := plan.Open(plan.FDPlan)
	if err != nil {
		if errors.Is(err, plan.ErrNone) {
			return errors.New("this program is started by pysandboxes, not by hand")
		}
		return err
	}
	if err := endWithParent(p.Parent); err != nil {
		return err
	}
	if err := inheritOnly(p.Keep); err != nil {
		return err
	}
	if err := noCore(); err != nil {
		return err
	}
	var notes []string
	if b := p.Boundary; b != nil {
		if notes, err = confine(b); err != nil {
			return err
		}
	}
	if p.Observe {
		if err := observe(); err != nil {
			notes = append(notes, "what native code does is not seen in this run: "+err.Error())
		}
	}
	// Changes of credentials can disarm the signal.
	if err := endWithParent(p.Parent); err != nil {
		return err
	}
	// Last: this program's own runtime has threads and maps far more than an interpreter.
	if err := limit(p.Limits); err != nil {
		return err
	}
	if err := plan.Send(plan.FDControl, plan.Message{Kind: plan.Ready, Notes: notes}); err != nil {
		return err
	}
	return become(p)
}

// confine puts up the boundary, from the outside in, and proves it.
func confine(b *plan.Boundary) (notes []string, err error) {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return nil, fmt.Errorf("no_new_privs: %w", err)
	}
	if b.Network != nil {
		if notes, err = setUpNetwork(b.Network); err != nil {
			return nil, err
		}
	}
	if b.Mounts != nil {
		if err := setUpMounts(b.Mounts); err != nil {
			return nil, err
		}
	}
	if err := dropCapabilities(b.KeepCaps); err != nil {
		return nil, err
	}
	abi, err := restrictFiles(b)
	if err != nil {
		return nil, err
	}
	if err := filterCalls(b.Filter, abi); err != nil {
		return nil, err
	}
	return append(notes, degraded(b)...), prove(b)
}

// become execs the program. The control socket closes by itself, which tells the supervisor.
func become(p *plan.Plan) error {
	for {
		err := unix.Exec(p.Path, p.Argv, p.Env)
		if err != unix.EINTR {
			return fmt.Errorf("run %s: %w", p.Path, err)
		}
	}
}
