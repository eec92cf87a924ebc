//go:build linux && (amd64 || arm64)

package broker_test

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/pysandboxes/pysandboxes/core/broker"
	"github.com/pysandboxes/pysandboxes/providers/seccomp"
)

func allow(open ...int) *ports {
	p := &ports{open: map[int]bool{}, paths: map[string]bool{}}
	for _, port := range open {
		p.open[port] = true
	}
	return p
}

func lines(text ...string) string { return strings.Join(text, "\n") }

func TestConnect(t *testing.T) {
	everyone(t)
	open, shut := listen(t), listen(t)
	s := perform(t, allow(open.port), nil, "connect", open.port, shut.port)
	o, c := fmt.Sprint(open.port), fmt.Sprint(shut.port)
	assert.Equal(t, lines(
		"blocking "+o+" ok", "at once "+o+" EINPROGRESS", "again "+o+" ok", "still nonblocking true",
		"blocking "+c+" ECONNREFUSED", "at once "+c+" ECONNREFUSED", "again "+c+" ECONNREFUSED", "still nonblocking true"), s.ends())
	assert.Empty(t, shut.count, "nothing arrived")
	s.mu.Lock()
	defer s.mu.Unlock()
	assert.Len(t, s.denials, 3)
}

const flips = 5000

// The address changes between being judged and being used, in the caller's memory: only the copy counts.
func TestAnAddressThatChanges(t *testing.T) {
	everyone(t)
	open, shut := listen(t), listen(t)
	s := perform(t, allow(open.port), nil, "flip", open.port, shut.port, flips)
	assert.Equal(t, "made true", s.ends())
	assert.Empty(t, shut.count, "nothing arrived")
}

// look is what a broker must not do: it looks at the address, and lets the call go on.
func look(listener, port int, over *atomic.Bool) {
	for {
		n, err := seccomp.Receive(listener)
		if err == unix.ENOENT && !over.Load() { // a signal took the call back
			continue
		}
		if err != nil {
			return
		}
		var raw [16]byte
		local := []unix.Iovec{{Base: &raw[0], Len: 16}}
		_, _ = unix.ProcessVMReadv(int(n.Thread), local, []unix.RemoteIovec{{Base: uintptr(n.Args[1]), Len: 16}}, 0)
		if int(raw[2])<<8|int(raw[3]) == port {
			_ = seccomp.Continue(listener, n.ID)
		} else {
			_ = seccomp.Refuse(listener, n.ID, unix.ECONNREFUSED)
		}
	}
}

func TestAnAddressThatChangesGetsPastALook(t *testing.T) {
	open, shut := listen(t), listen(t)
	var over atomic.Bool
	s := perform(t, nil, func(listener int) { go look(listener, open.port, &over) }, "flip", open.port, shut.port, flips)
	assert.Equal(t, "made true", s.ends())
	over.Store(true)
	assert.NotEmpty(t, shut.count)
}

// A family that the kernel takes for another one is judged as that one.
func TestFamiliesThatAreOthers(t *testing.T) {
	everyone(t)
	c, err := net.ListenPacket("udp4", "127.0.0.1:0")
	require.NoError(t, err)
	defer c.Close()
	s := perform(t, allow(), nil, "families", c.LocalAddr().(*net.UDPAddr).Port)
	assert.Equal(t, lines("sendto unspecified ECONNREFUSED", "connect unspecified ok", "bind unspecified EACCES", "connect any ECONNREFUSED",
		"connect mapped ECONNREFUSED", "IPv4 on IPv6 ECONNREFUSED", "short EINVAL"), s.ends())
	require.NoError(t, c.SetReadDeadline(time.Now()))
	_, _, err = c.ReadFrom(make([]byte, 9))
	assert.ErrorIs(t, err, os.ErrDeadlineExceeded)
}

func TestServe(t *testing.T) {
	everyone(t)
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	require.NoError(t, err)
	free := l.Addr().(*net.TCPAddr).Port
	l.Close()
	s := perform(t, allow(free), nil, "serve", free, 1)
	assert.Equal(t, lines("bind ok", "listen ok", "bind EACCES", "listen EACCES"), s.ends(), "listen would have bound by itself")
}

// Who is spoken to is heard, and nobody else.
func TestDatagrams(t *testing.T) {
	everyone(t)
	open, err := net.ListenPacket("udp4", "127.0.0.1:0")
	require.NoError(t, err)
	defer open.Close()
	stranger, err := net.ListenPacket("udp4", "127.0.0.1:0")
	require.NoError(t, err)
	defer stranger.Close()
	port := func(c net.PacketConn) int { return c.LocalAddr().(*net.UDPAddr).Port }
	s := perform(t, allow(port(open)), nil, "datagrams", port(stranger), port(open))
	buf := make([]byte, 9)
	n, from, err := open.ReadFrom(buf)
	require.NoError(t, err)
	assert.Equal(t, "ask", string(buf[:n]))
	_, _ = stranger.WriteTo([]byte("stranger"), from)
	_, _ = open.WriteTo([]byte("end"), from)
	assert.Equal(t, lines("sendto ECONNREFUSED", "sendto ok", "heard end"), s.ends())
}

func TestMessages(t *testing.T) {
	everyone(t)
	open, err := net.ListenPacket("udp4", "127.0.0.1:0")
	require.NoError(t, err)
	defer open.Close()
	s := perform(t, allow(open.LocalAddr().(*net.UDPAddr).Port), nil, "messages", open.LocalAddr().(*net.UDPAddr).Port, 1)
	assert.Equal(t, lines("sendmsg ok", "sendmsg ECONNREFUSED", "sendmmsg 1 true 6"), s.ends(), "what went before a refusal counts")
	for range 2 {
		buf := make([]byte, 9)
		n, _, err := open.ReadFrom(buf)
		require.NoError(t, err)
		assert.Equal(t, "pieces", string(buf[:n]))
	}
}

func TestDescriptorsPass(t *testing.T) {
	everyone(t)
	out := perform(t, allow(), nil, "pass").ends()
	assert.Contains(t, out, lines("sendmsg ok", "recvmsg ok", "1 through"))
	assert.Contains(t, out, "read 3145728")
}

// A caller that waits holds up nobody, and is refused by the kernel when the broker ends.
func TestACallThatWaits(t *testing.T) {
	everyone(t)
	silent, open := full(t), listen(t)
	waiting := perform(t, allow(silent), nil, "wait", silent)
	assert.Contains(t, perform(t, allow(open.port), nil, "connect", open.port).ends(), "ok")
	assert.Equal(t, "waited EINPROGRESS", perform(t, allow(silent), nil, "wait", silent, "timed").ends(), "SO_SNDTIMEO holds")
	waiting.broker.Stop()
	assert.Equal(t, "waited ENOSYS", waiting.ends())
}

// Signals that restart a call do not keep it from its end.
func TestACallThatIsInterrupted(t *testing.T) {
	everyone(t)
	silent := full(t)
	out := perform(t, allow(silent), nil, "interrupted", silent).ends()
	assert.Contains(t, []string{"waited EINPROGRESS", "waited EINTR"}, out, "SO_SNDTIMEO makes it EINTR, as bare")
}

func TestUnixSockets(t *testing.T) {
	everyone(t)
	dir, err := os.MkdirTemp("", "broker-unix-")
	require.NoError(t, err)
	defer os.RemoveAll(dir)
	open, shut, link := filepath.Join(dir, "open"), filepath.Join(dir, "shut"), filepath.Join(dir, "link")
	for _, path := range []string{open, shut} {
		l, err := net.Listen("unix", path)
		require.NoError(t, err)
		defer l.Close()
	}
	require.NoError(t, os.Symlink(shut, link))
	judge := allow()
	judge.paths[open], judge.paths[link] = true, true // a rule for the link is none for what it leads to
	s := perform(t, judge, nil, "unix", open, shut, link, filepath.Join(dir, "none"), "@name")
	assert.Equal(t, lines("connect ok", "connect ECONNREFUSED", "connect ECONNREFUSED", "connect ENOENT", "connect ECONNREFUSED"), s.ends())
}

func TestBrokenPipe(t *testing.T) {
	everyone(t)
	assert.Equal(t, "quiet EPIPE", perform(t, allow(), nil, "pipe").ends())
}

// Many at once, some of which never end; callers die while they wait, and nothing of them is left.
func TestManyAtOnce(t *testing.T) {
	everyone(t)
	open, silent := listen(t), full(t)
	before := descriptors(t)
	s := perform(t, allow(open.port, silent), nil, "many", open.port, silent)
	out := s.ends()
	assert.Equal(t, 200, strings.Count(out, "EINPROGRESS"))
	assert.Contains(t, out, "last ok", "those that wait hold up nobody")
	<-s.broker.Done()
	assert.Equal(t, before, descriptors(t))
}

// descriptors counts those of this process that are of sockets of the internet, or of processes.
func descriptors(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	count := 0
	for _, e := range entries {
		link, _ := os.Readlink("/proc/self/fd/" + e.Name())
		if strings.Contains(link, "pidfd") || strings.Contains(link, "seccomp") || strings.Contains(link, "eventfd") {
			count++
		}
	}
	return count
}

// A supervisor without a descriptor left refuses, with an error that is no network's.
func TestNoDescriptorLeft(t *testing.T) {
	everyone(t)
	open := listen(t)
	var limit unix.Rlimit
	require.NoError(t, unix.Getrlimit(unix.RLIMIT_NOFILE, &limit))
	defer unix.Setrlimit(unix.RLIMIT_NOFILE, &limit)
	s := perform(t, nil, func(listener int) {
		_, err := broker.Serve(broker.Config{Listener: listener, Judge: allow(open.port)})
		if err == nil {
			_ = unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 3, Max: limit.Max})
		}
	}, "connect", open.port)
	out := s.ends()
	require.NoError(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &limit))
	assert.Contains(t, out, fmt.Sprintf("blocking %d ENFILE", open.port))
	assert.NotContains(t, out, " ok")
}

func TestNoJudgeRefuses(t *testing.T) {
	open := listen(t)
	assert.NotContains(t, perform(t, nil, nil, "connect", open.port).ends(), " ok")
	assert.Empty(t, open.count)
}
