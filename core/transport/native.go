package transport

import (
	"errors"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Native is what a sandbox writes to its descriptors 1 and 2 without Python's streams: native code, and Python code that
// belongs to no call. While exactly one call runs it is taken for that call's and comes as output of it, in front of the result
// that it was written before; else it goes to the application's own streams. A sandbox keeps it over the lives of its interpreter.
type Native struct {
	conn  atomic.Pointer[Conn]
	pipes [2]nativePipe
	once  sync.Once
	ended sync.WaitGroup
}

type nativePipe struct {
	kind  int
	read  *os.File
	raw   syscall.RawConn
	write *os.File // the sandbox's end

	mu      sync.Mutex
	backlog []byte // nobody's call's, read by another thread than the one that copies
}

// NewNative makes the pipes and copies what nobody's call printed to the two writers. A writer that fails loses what is
// written to it: a sandbox must not block on the application's closed streams.
func NewNative(stdout, stderr io.Writer) (*Native, error) {
	n := &Native{}
	for i := range n.pipes {
		p := &n.pipes[i]
		var err error
		if p.read, p.write, err = os.Pipe(); err == nil {
			p.raw, err = p.read.SyscallConn()
		}
		if err != nil {
			n.discard()
			return nil, err
		}
		p.kind = KindStdout + i
	}
	for i, to := range []io.Writer{stdout, stderr} {
		n.ended.Add(1)
		go n.copy(&n.pipes[i], to)
	}
	return n, nil
}

// Files are the sandbox's ends. They stay open until CloseWrite.
func (n *Native) Files() (stdout, stderr *os.File) { return n.pipes[0].write, n.pipes[1].write }

// CloseWrite closes our copies of the sandbox's ends: the copying ends with the last other copy. Twice is no error.
func (n *Native) CloseWrite() {
	n.once.Do(func() {
		for i := range n.pipes {
			_ = n.pipes[i].write.Close()
		}
	})
}

// Wait blocks until all was copied.
func (n *Native) Wait() { n.ended.Wait() }

// discard closes what was opened.
func (n *Native) discard() {
	for i := range n.pipes {
		for _, f := range []*os.File{n.pipes[i].read, n.pipes[i].write} {
			if f != nil {
				_ = f.Close()
			}
		}
	}
}

// nativeChunk is what is read at a time: what a pipe holds.
const nativeChunk = 64 << 10

// copy hands on what comes, until the last writer has closed the pipe.
func (n *Native) copy(p *nativePipe, to io.Writer) {
	defer n.ended.Done()
	defer p.read.Close()
	defer func() { _ = recover() }() // losing output is better than ending the application
	buf := make([]byte, nativeChunk)
	for {
		if p.wait() != nil {
			return
		}
		rest, full, err := n.take(p, buf)
		if earlier := p.earlier(); earlier != nil {
			rest = append(earlier, rest...)
		}
		switch {
		case full != nil:
			select {
			case <-full.nativeRoom:
			case <-full.done:
			}
		case len(rest) > 0 && to != nil:
			if _, e := to.Write(rest); e != nil {
				to = nil
			}
		case errors.Is(err, io.EOF):
			return
		}
	}
}

// wait blocks until there is something to hand on, or the end. It holds nothing that take needs.
func (p *nativePipe) wait() error {
	return p.raw.Read(func(fd uintptr) bool {
		p.mu.Lock() // what setAside reads is in the pipe or in the backlog
		defer p.mu.Unlock()
		if p.backlog != nil {
			return true
		}
		for {
			k, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0)
			if err != unix.EINTR {
				return k > 0 || err != nil
			}
		}
	})
}

// take reads once. What is the only running call's is queued there; else it is returned. full: that call's queue has no room.
func (n *Native) take(p *nativePipe, buf []byte) (rest []byte, full *Conn, err error) {
	c := n.conn.Load()
	if c == nil || c.forked() {
		k, err := p.receive(buf)
		return buf[:k], nil, err
	}
	c.mu.Lock()
	defer c.unlock()
	one := c.only()
	if one != nil && one.native > c.opts.Window {
		return nil, c, nil
	}
	k, err := p.receive(buf)
	c.nativeSeen = c.nativeSeen || k > 0
	if k > 0 && one != nil {
		c.bring(one, p.kind, buf[:k])
		return nil, nil, err
	}
	return buf[:k], nil, err
}

// earlier takes the backlog.
func (p *nativePipe) earlier() []byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	b := p.backlog
	p.backlog = nil
	return b
}

// setAside keeps what lies in the pipe for the application's own stream: it is no call's, and a moment later it would be taken for
// one's. What is no more than was read so is woken for by the pipe itself, which had become readable.
func (p *nativePipe) setAside(buf []byte) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.backlog) > nativeChunk {
		return 0 // the rest waits in the pipe
	}
	k, _ := p.receive(buf)
	p.backlog = append(p.backlog, buf[:k]...)
	return k
}

// receive reads what is there; 0 bytes and no error where nothing is.
func (p *nativePipe) receive(buf []byte) (n int, err error) {
	e := p.raw.Control(func(fd uintptr) {
		for {
			// Raw: it never blocks, and every call makes one to see that there is nothing.
			k, _, errno := syscall.RawSyscall(unix.SYS_READ, fd, uintptr(unsafe.Pointer(unsafe.SliceData(buf))), uintptr(len(buf)))
			switch {
			case errno == unix.EINTR:
				continue
			case errno == unix.EAGAIN:
			case errno != 0 || k == 0:
				err = io.EOF
			default:
				n = int(k)
			}
			return
		}
	})
	if e != nil {
		return 0, io.EOF // closed
	}
	return n, err
}

// only is the one call that runs in the child, nil if there is none or there are more. The lock is held.
func (c *Conn) only() *call {
	var one *call
	if c.dead != nil {
		return nil
	}
	for _, k := range c.calls {
		if k.finished {
			continue
		}
		if one != nil {
			return nil
		}
		one = k
	}
	if one != nil && one.dropped {
		return nil // it runs on, and nobody listens
	}
	return one
}

// bring queues native output for a call. The lock is held.
func (c *Conn) bring(k *call, kind int, data []byte) {
	own := lend(len(data))
	copy(own, data)
	k.native += cost(data)
	c.push(k, Event{Kind: kind, Data: own, native: true})
	if c.leader == &k.waiter {
		c.ringBell() // the thread is at the socket, where this does not arrive
	}
}

// ringBell has the thread that reads look up. The first time it is in a receive that only the end of its slice ends; from then on
// it waits for both.
func (c *Conn) ringBell() {
	bell := int(c.bell.Load())
	if bell <= 0 {
		fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
		if err != nil {
			return // later, then
		}
		bell = fd
		c.bell.Store(int32(fd))
	}
	ring(bell)
}

// nativeRounds bounds what is read then: the sandbox's other threads may write on.
const nativeRounds = 4

// sortNative gives what lies in the pipes to whom it belongs, when that is about to change: a call begins or ends. The lock is held.
func (c *Conn) sortNative() {
	n := c.opts.Native
	if n == nil {
		return
	}
	if c.nativeBuf == nil {
		c.nativeBuf = make([]byte, nativeChunk)
	}
	one := c.only()
	for i := range n.pipes {
		for range nativeRounds {
			var got int
			if one == nil {
				got = n.pipes[i].setAside(c.nativeBuf)
			} else if got, _ = n.pipes[i].receive(c.nativeBuf); got > 0 {
				c.bring(one, n.pipes[i].kind, c.nativeBuf[:got])
			}
			if got == 0 {
				break
			}
			c.nativeSeen = true
		}
	}
}
