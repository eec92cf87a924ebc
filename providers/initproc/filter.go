//go:build linux && (amd64 || arm64)

package initproc

import (
	"fmt"
	"os"
	"runtime"

	"golang.org/x/sys/unix"

	"github.com/pysandboxes/pysandboxes/providers/plan"
	"github.com/pysandboxes/pysandboxes/providers/seccomp"
)

// filterCalls puts the filter on this thread and, where a call is put to the supervisor, hands the listener to the supervisor and
// waits until it is served.
func filterCalls(n seccomp.Needs, abi int) error {
	n.Self = uint32(os.Getpid()) // the exec keeps it
	n.NoSignalScope = abi < 6
	n.NoTruncate = abi < 3
	n.NoDeviceScope = abi < 5
	filter, err := seccomp.Filter(n)
	if err != nil {
		return err
	}
	if !seccomp.Notifies(n) {
		_, err := seccomp.Install(filter, false)
		return err
	}
	listener := make(chan int)
	sent := make(chan error, 1)
	started := make(chan struct{})
	go handOver(listener, sent, started)
	<-started
	fd, err := seccomp.Install(filter, true)
	listener <- fd
	if err != nil {
		return err
	}
	return <-sent
}

// handOver runs on a thread outside the filter: a filter that puts sendmsg to the supervisor would stop the very
// message that brings the supervisor in.
func handOver(listener <-chan int, sent chan<- error, started chan<- struct{}) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer func() {
		if v := recover(); v != nil {
			sent <- fmt.Errorf("init: hand the listener over: %v", v)
		}
	}()
	close(started)
	fd := <-listener
	if fd < 0 {
		return
	}
	sent <- giveListener(fd)
}

func giveListener(fd int) error {
	if err := plan.Send(plan.FDControl, plan.Message{Kind: plan.Listener}, fd); err != nil {
		return err
	}
	if err := unix.Close(fd); err != nil { // ours: the supervisor's is the one that counts
		return fmt.Errorf("close the listener: %w", err)
	}
	m, extra, err := plan.Receive(plan.FDControl)
	if err != nil {
		return fmt.Errorf("the supervisor took no listener: %w", err)
	}
	if m.Kind != plan.Taken || extra >= 0 {
		return fmt.Errorf("the supervisor answered %q to the listener", m.Kind)
	}
	return nil
}
