package daemon

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/vmihailenco/msgpack/v5"
	"golang.org/x/sys/unix"

	"github.com/pysandboxes/pysandboxes/core/wire"
	"github.com/pysandboxes/pysandboxes/providers/initproc"
	"github.com/pysandboxes/pysandboxes/providers/plan"
)

// The test binary plays all three parts: the supervisor is the test; started under init's name it is init; started as
// `fake SCENARIO` it is a sandboxed interpreter whose guard does what the scenario says.
func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == plan.Argv0 {
		initproc.Main()
	}
	if len(os.Args) > 2 && os.Args[1] == "fake" {
		play(os.Args[2], os.Args[3:])
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// guard is the fake's end of things.
type guard struct {
	announce, call int
	socket         *os.File
	seq            uint64
}

func newGuard() *guard {
	fields := strings.Split(os.Getenv("PYSANDBOXES_BOOT"), ":")
	number := func(i int) int {
		n, err := strconv.Atoi(fields[i])
		must(err)
		return n
	}
	return &guard{announce: number(1), call: number(2)}
}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "fake child:", err)
		os.Exit(99)
	}
}

// open announces a new question socket.
func (g *guard) open() {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	must(err)
	g.announceFD("A", fds[1])
	unix.Close(fds[1])
	g.socket = os.NewFile(uintptr(fds[0]), "questions")
}

func (g *guard) announceFD(text string, fds ...int) {
	var rights []byte
	if len(fds) > 0 {
		rights = unix.UnixRights(fds...)
	}
	must(unix.Sendmsg(g.announce, []byte(text), rights, nil, 0))
}

func (g *guard) send(q wire.Question) {
	data, err := q.Encode()
	must(err)
	_, err = g.socket.Write(data)
	must(err)
}

// ask gives the answer; the end of the socket is an error.
func (g *guard) ask(q wire.Question) (wire.Answer, error) {
	g.seq++
	q.Seq = g.seq
	g.send(q)
	buf := make([]byte, wire.MaxMessage)
	n, err := g.socket.Read(buf)
	if err != nil {
		return wire.Answer{}, err
	}
	return wire.DecodeAnswer(buf[:n])
}

func (g *guard) hello() {
	g.open()
	a, err := g.ask(wire.Question{Op: wire.OpHello, Pid: os.Getpid(), Version: wire.Version, Python: "3.11.7"})
	must(err)
	if !a.Allow {
		fmt.Println("hello refused:", a.Message)
	}
}

func file(path string) wire.Question {
	return wire.Question{Op: wire.OpFile, Path: path, Event: "open"}
}

func (g *guard) report(q wire.Question) {
	a, err := g.ask(q)
	switch {
	case err == io.EOF:
		fmt.Println("closed")
	case err != nil:
		fmt.Println("error:", err)
	default:
		fmt.Printf("%s allow=%v exc=%d errno=%d %s\n", q.Op, a.Allow, a.Exc, a.Errno, strings.ReplaceAll(a.Message, "\n", "|"))
	}
}

// frame writes one frame of the call channel.
func (g *guard) frame(fields ...any) {
	body, err := msgpack.Marshal(fields)
	must(err)
	head := []byte{byte(len(body) >> 24), byte(len(body) >> 16), byte(len(body) >> 8), byte(len(body))}
	_, err = unix.Write(g.call, append(head, body...))
	must(err)
}

func play(scenario string, args []string) {
	g := newGuard()
	switch scenario {
	case "asks":
		g.hello()
		for _, path := range args {
			g.report(file(path))
		}
		g.report(wire.Question{Op: wire.OpFile, Path: args[0], Write: true, Event: "open"})
		g.report(wire.Question{Op: wire.OpImport, Name: "json"})
		g.report(wire.Question{Op: wire.OpCall, Names: []string{"os.system"}, Event: "os.system"})
		g.report(wire.Question{Op: wire.OpNet, NetOp: "connect", Proto: "tcp", Host: "127.0.0.1", Port: 9})
		g.report(wire.Question{Op: wire.OpEval, Kind: "eval"})
		os.Exit(7)
	case "environment":
		g.hello()
		fmt.Println(os.Getenv("GIVEN"), os.Getenv("HIDDEN") == "")
	case "two processes":
		g.hello()
		other := *g
		other.hello()
		g.report(file("/a"))
		other.report(file("/b"))
		must(g.socket.Close())
		other.report(file("/c"))
	case "other version":
		g.open()
		a, err := g.ask(wire.Question{Op: wire.OpHello, Pid: 1, Version: "9.9", Python: "3.11"})
		must(err)
		fmt.Fprintln(os.Stderr, a.Message)
		os.Exit(125)
	case "silent":
		_, _ = io.Copy(io.Discard, os.Stdin)
	case "ends early":
		os.Exit(3)
	case "dies early":
		_ = unix.Kill(os.Getpid(), unix.SIGKILL)
	case "guard fails":
		os.Exit(guardFailed)
	case "question before hello":
		g.open()
		g.report(file("/a"))
		g.hello()
		g.report(file("/a"))
	case "garbage":
		g.hello()
		_, err := g.socket.Write([]byte(args[0]))
		must(err)
		_, err = g.socket.Read(make([]byte, 16))
		fmt.Println("after garbage:", err)
		g.hello()
		g.report(file("/a"))
	case "hello twice":
		g.hello()
		g.report(wire.Question{Op: wire.OpHello, Pid: 1, Version: wire.Version})
	case "strange announcements":
		r, w, err := os.Pipe()
		must(err)
		stream, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
		must(err)
		g.announceFD("A", int(r.Fd()))
		g.announceFD("A", stream[0])
		g.announceFD("B", stream[0])
		g.announceFD("A", stream[0], stream[1], int(w.Fd()))
		g.announceFD("A")
		g.announceFD("AA", stream[0])
		g.hello()
		g.report(file("/a"))
	case "learns and dies":
		g.hello()
		g.send(wire.Question{Op: wire.OpLearnEnv, Name: "API_URL", Site: "a.py:1"})
		g.send(wire.Question{Op: wire.OpLearn, Family: wire.OpImport, Name: "json", Site: "a.py:2"})
		for i := range 200 {
			g.send(wire.Question{Op: wire.OpLearn, Family: wire.OpCall, Names: []string{"os.system"}, Site: fmt.Sprint("a.py:", i)})
		}
		g.send(wire.Question{Op: wire.OpLearn, Family: wire.OpFile, Path: args[0], Event: "open", Site: "a.py:3"})
		_ = unix.Kill(os.Getpid(), unix.SIGKILL)
	case "reads no answer":
		g.hello()
		fmt.Println("flooding")
		q := file("/a")
		q.Seq = 1
		data, err := q.Encode()
		must(err)
		for range 200 {
			if _, err := g.socket.Write(data); err != nil {
				break
			}
		}
		_, _ = io.Copy(io.Discard, os.Stdin)
	case "waits":
		g.hello()
		fmt.Println("waiting")
		_, _ = io.Copy(io.Discard, os.Stdin)
	case "ignores SIGTERM":
		signal.Ignore(syscall.SIGTERM)
		g.hello()
		fmt.Println("waiting")
		_, _ = io.Copy(io.Discard, os.Stdin)
	case "serves":
		// ready for calls, ends at the first frame that comes or when told to die
		g.hello()
		g.frame(10, 0, wire.Version, os.Getpid(), "3.11.7")
		_, _ = unix.Read(g.call, make([]byte, 64))
	case "never stops":
		signal.Ignore(syscall.SIGTERM)
		g.hello()
		g.frame(10, 0, wire.Version, os.Getpid(), "3.11.7")
		_, _ = io.Copy(io.Discard, os.NewFile(uintptr(g.call), "call"))
	case "hostile on the call channel": // ready, then what the argument says, and on as if nothing were
		signal.Ignore(syscall.SIGTERM)
		g.hello()
		g.frame(10, 0, wire.Version, os.Getpid(), "3.11.7")
		switch args[0] {
		case "garbage":
			_, _ = unix.Write(g.call, []byte("GET / HTTP/1.1\r\n\r\n"))
		case "ready twice":
			g.frame(10, 0, wire.Version, os.Getpid(), "3.11.7")
		case "an answer to no question":
			g.frame(14, 1<<30, []byte("\x80\x05N.")) // the test may have made call 1 by now
		case "closes":
			unix.Close(g.call)
		case "passes descriptors":
			for range 1000 {
				if unix.Sendmsg(g.call, []byte{0}, unix.UnixRights(0, 1, 2), nil, 0) != nil {
					break
				}
			}
		}
		_, _ = io.Copy(io.Discard, os.Stdin)
	case "many sockets":
		g.hello()
		for range 10_000 {
			fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
			must(err)
			g.announceFD("A", fds[1])
			unix.Close(fds[1])
			if fds[0] > 900 { // its own table is full before the supervisor's
				for fd := 100; fd <= fds[0]; fd++ {
					unix.Close(fd)
				}
			}
		}
		g.report(file("/a"))
		fmt.Println("waiting")
		_, _ = io.Copy(io.Discard, os.Stdin)
	case "floods":
		g.hello()
		for i := range 20_000 {
			g.send(wire.Question{Op: wire.OpNote, Level: "error", Text: strings.Repeat("x", 10_000)})
			if i%10 == 0 {
				_, err := g.ask(file(fmt.Sprintf("/%d/%s", i, strings.Repeat("y", 3000))))
				must(err)
			}
		}
		g.report(file("/a"))
	case "never ready":
		g.hello()
		_, _ = bufio.NewReader(os.NewFile(uintptr(g.call), "call")).ReadByte()
	default:
		must(fmt.Errorf("no scenario %q", scenario))
	}
}
