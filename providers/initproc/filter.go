//go:build linux && (amd64 || arm64)

package initproc

import (
	"errors"
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
	return serve(func() (int, error) { return seccomp.Install(filter, true) })
}

// serve has the filter put on this thread, and waits until the supervisor serves its listener.
func serve(install func() (int, error)) error {
	listener := make(chan int)
	sent := make(chan error, 1)
	started := make(chan struct{})
	go handOver(listener, sent, started)
	<-started
	fd, err := install()
	listener <- fd
	if err != nil {
		return err
	}
	return <-sent
}

// observe puts the filter of a learning run on this thread. A user without privileges may do that only for a program that gains
// none, which a sandbox does not let it do either.
func observe() error {
	filter, err := seccomp.ObserveFilter()
	if err != nil {
		return err
	}
	return serve(func() (int, error) {
		fd, err := seccomp.Install(filter, true)
		if !errors.Is(err, unix.EACCES) {
			return fd, err
		}
		if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
			return -1, fmt.Errorf("no_new_privs: %w", err)
		}
		return seccomp.Install(filter, true)
	})
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
