//go:build linux && (amd64 || arm64)

package broker_test

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/pysandboxes/pysandboxes/core/broker"
	"github.com/pysandboxes/pysandboxes/core/policy"
	"github.com/pysandboxes/pysandboxes/providers/plan"
	"github.com/pysandboxes/pysandboxes/providers/seccomp"
)

// The sandbox of these tests is the test program itself, started with the name of an act: one thread of it is under the
// filter and acts, the others are free, as the threads of a program that changes memory under a call are.

const (
	actVariable  = "PYSANDBOXES_TEST_ACT"
	userVariable = "PYSANDBOXES_TEST_USER"
	nobody       = 65534
	controlFD    = 3
)

func TestMain(m *testing.M) {
	if name := os.Getenv(actVariable); name != "" {
		runtime.LockOSThread()
		if err := filtered(); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		acts[name](os.Args[1:])
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// filtered puts the filter on this thread; another hands the listener over.
func filtered() error {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	filter, err := seccomp.Filter(seccomp.Needs{
		Inet: true, UDP: true, UnixDatagram: true, Exec: true, Fork: true, Self: uint32(os.Getpid()),
		Ask: seccomp.AskConnect | seccomp.AskServe | seccomp.AskSend,
	})
	if err != nil {
		return err
	}
	listener, sent := make(chan int), make(chan error)
	go func() {
		runtime.LockOSThread()
		fd := <-listener
		err := plan.Send(controlFD, plan.Message{Kind: plan.Listener}, fd)
		unix.Close(fd)
		if err == nil {
			_, _, err = plan.Receive(controlFD)
		}
		sent <- err
	}()
	fd, err := seccomp.Install(filter, true)
	if err != nil {
		return err
	}
	listener <- fd
	return <-sent
}

// everyone runs the test again as an unprivileged user, where it runs as root.
func everyone(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 || os.Getenv(userVariable) != "" {
		return
	}
	name := strings.Split(t.Name(), "/")[0]
	t.Run("as nobody", func(t *testing.T) {
		dir, err := os.MkdirTemp("", "broker-test-")
		require.NoError(t, err)
		defer os.RemoveAll(dir)
		require.NoError(t, os.Chmod(dir, 0o755))
		self := filepath.Join(dir, "test")
		mine, err := os.Executable()
		require.NoError(t, err)
		data, err := os.ReadFile(mine)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(self, data, 0o755))
		c := exec.Command(self, "-test.run", "^"+name+"$", "-test.v")
		c.Dir, c.Env = "/", []string{userVariable + "=nobody", "TMPDIR=/tmp", "PATH=" + os.Getenv("PATH")}
		c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
		out, err := c.CombinedOutput()
		require.NoError(t, err, "%s", out)
		require.Contains(t, string(out), "PASS: "+name)
	})
}

// ports is a judge that allows the loopback's ports in it, and every unix socket in it.
type ports struct {
	mu    sync.Mutex
	open  map[int]bool
	paths map[string]bool
	asked []policy.NetQuestion
}

func (p *ports) Net(q policy.NetQuestion) policy.Decision {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked = append(p.asked, q)
	allow := p.open[q.Port]
	if q.Proto == "unix" {
		allow = p.paths[q.Host]
	}
	return policy.Decision{Allow: allow, Family: "net", Op: q.Op, Subject: fmt.Sprintf("%s %s:%d", q.Proto, q.Host, q.Port)}
}

// stage is a running act.
type stage struct {
	t       *testing.T
	command *exec.Cmd
	out     bytes.Buffer
	broker  *broker.Broker
	mu      sync.Mutex
	denials []string
}

// perform starts an act under a judge. serve takes the listener and returns; nil: a broker does.
func perform(t *testing.T, judge broker.Judge, serve func(listener int), act string, args ...any) *stage {
	t.Helper()
	s := &stage{t: t}
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	require.NoError(t, err)
	theirs := os.NewFile(uintptr(pair[1]), "control")
	self, err := os.Executable()
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	s.command = exec.CommandContext(ctx, self)
	for _, a := range args {
		s.command.Args = append(s.command.Args, fmt.Sprint(a))
	}
	s.command.Env = append(os.Environ(), actVariable+"="+act)
	s.command.ExtraFiles = []*os.File{theirs}
	s.command.Stdout, s.command.Stderr = &s.out, &s.out
	require.NoError(t, s.command.Start())
	theirs.Close()
	m, listener, err := plan.Receive(pair[0])
	require.NoError(t, err)
	require.Equal(t, plan.Listener, m.Kind)
	if serve != nil {
		serve(listener)
	} else {
		s.broker, err = broker.Serve(broker.Config{Listener: listener, Judge: judge, Program: s.command.Process.Pid,
			Denied: func(d broker.Denial) {
				s.mu.Lock()
				defer s.mu.Unlock()
				s.denials = append(s.denials, d.Op+" "+d.Subject)
			},
			Note: func(text string) { t.Log(text) },
		})
		require.NoError(t, err)
		t.Cleanup(s.broker.Stop)
	}
	require.NoError(t, plan.Send(pair[0], plan.Message{Kind: plan.Taken}))
	unix.Close(pair[0])
	return s
}

// ends waits for the act and gives what it printed.
func (s *stage) ends() string {
	s.t.Helper()
	err := s.command.Wait()
	require.NoError(s.t, err, "%s", s.out.String())
	return strings.TrimSpace(s.out.String())
}

// listening is a TCP listener on the loopback that counts its connections.
type listening struct {
	net.Listener
	port  int
	count chan struct{}
}

func listen(t *testing.T) *listening {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	require.NoError(t, err)
	a := &listening{l, l.Addr().(*net.TCPAddr).Port, make(chan struct{}, 1<<16)}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			a.count <- struct{}{}
			c.Close()
		}
	}()
	return a
}

// full is a listener that takes nobody: a connection to it is never made, as to a host that does not answer.
func full(t *testing.T) int {
	t.Helper()
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	require.NoError(t, err)
	t.Cleanup(func() { unix.Close(fd) })
	require.NoError(t, unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}))
	require.NoError(t, unix.Listen(fd, 0))
	name, err := unix.Getsockname(fd)
	require.NoError(t, err)
	at := name.(*unix.SockaddrInet4)
	for range 4 {
		c, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
		require.NoError(t, err)
		t.Cleanup(func() { unix.Close(c) })
		_ = unix.Connect(c, at)
	}
	return at.Port
}
