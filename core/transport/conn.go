package transport

import (
	"bytes"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/pysandboxes/pysandboxes/core/unpickle"
)

// Options say what a connection lets through. Zero fields take the defaults named here.
type Options struct {
	Mode       unpickle.Mode               // of results; default DataOnly
	Guard      bool                        // the gadget table of mode Objects
	MaxResult  int64                       // bytes of one result; default 256 MiB
	ResultRule string                      // the line that sets it and its place, for its error
	Window     int64                       // output that one call may have unread (window.go); the child's half knows the default, 1 MiB
	Who        string                      // the child in words, for errors; default "the sandbox"
	Version    string                      // the product version that READY must name; "" accepts any
	Grace      time.Duration               // how long calls wait after end of file for Fail to give the reason; default 1 s
	Native     *Native                     // the sandbox's descriptors 1 and 2; nil: they are not ours
	Stray      func(kind int, data []byte) // output of no call (STDOUT, STDERR; LOG as JSON), on the reading thread; must not block

	// Vouch gives the refusal that a child tells of in the words in which it was made on this side; false: there was none. Without
	// it no refusal is vouched for.
	Vouch vouchFunc

	// Bound names the limit of the profile that an exception of this class and message comes from, or may come from; "" none. It is
	// added to the descriptor as the field "limit", which no child can send.
	Bound boundFunc
}

// slice is the longest time in one system call: a signal that came just before it began is seen after this.
const slice = 200 * time.Millisecond

// Conn is one connection. Its methods may be called by any number of threads.
type Conn struct {
	fd   int // socket
	pid  int
	opts Options
	done chan struct{}

	mu        sync.Mutex
	last      uint64           // the newest id
	calls     map[uint64]*call // with events to come or to be taken
	reading   bool             // the reader's role is held
	leader    *waiter          // by whom, if by a thread that waits
	claimed   bool             // a call was just begun by a thread that will read: Pump lets it, once
	followers []*waiter
	wakes     []*waiter // to be woken when the lock is given back
	loops     []*Loop
	pumping   *Loop  // by which loop the reader's role is held, if by one
	out       []byte // what the socket did not take yet
	uploads   []*upload
	stopping  bool // STOP follows the last of them
	enc       *writer
	ready     *Ready
	awaiting  waiter // of Ready
	stopped   bool   // STOP was sent, or is about to be
	dead      error  // *DeadError
	ended     bool   // end of file
	deaf      bool   // the other side takes nothing more; what it has sent is still to be read
	gone      error  // how the process ended, where that is known and the socket has not been read to its end
	closed    bool
	users     int   // threads that may be in a system call on fd
	held      int64 // bytes of results not finished, of all calls
	excess    int   // CANCELLED frames of calls that had ended

	bell       atomic.Int32  // eventfd that a reading thread watches too, 0 before there was native output
	nativeBuf  []byte        // what sortNative reads into
	nativeSeen bool          // there was native output
	nativeRoom chan struct{} // has an element when native output was taken

	in   inbox // belongs to whoever holds the reader's role
	spin spinner
}

// Ready is what the child says of itself when it can take calls.
type Ready struct {
	Version string
	Pid     int
	Python  string
}

// New takes over fd, the parent's end of a stream socketpair.
func New(fd int, o Options) (*Conn, error) {
	if o.Mode == "" {
		o.Mode = unpickle.DataOnly
	}
	if o.MaxResult <= 0 {
		o.MaxResult = 256 << 20
	}
	if o.Window <= 0 {
		o.Window = defaultWindow
	}
	if o.Grace <= 0 {
		o.Grace = time.Second
	}
	if err := unix.SetNonblock(fd, false); err != nil {
		return nil, fmt.Errorf("transport: the call socket: %w", err)
	}
	tv := unix.NsecToTimeval(int64(slice))
	if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &tv); err != nil {
		return nil, fmt.Errorf("transport: the call socket: %w", err)
	}
	c := &Conn{
		fd: fd, pid: unix.Getpid(), opts: o, done: make(chan struct{}), nativeRoom: make(chan struct{}, 1),
		calls: map[uint64]*call{}, enc: newWriter(), in: newInbox(),
	}
	if o.Native != nil {
		o.Native.conn.Store(c)
	}
	return c, nil
}

// Begin sends a call whose events the calling thread will take with Next. payload is not kept.
func (c *Conn) Begin(payload []byte) (uint64, error) { return c.begin(payload, nil) }

func (c *Conn) begin(payload []byte, loop *Loop) (uint64, error) {
	if c.forked() {
		return 0, ErrForked
	}
	c.mu.Lock()
	defer c.unlock()
	if c.dead != nil {
		return 0, c.dead
	}
	switch {
	case c.stopped:
		return 0, &DeadError{Err: ErrStopping}
	case c.deaf, c.ended:
		return 0, &DeadError{Err: errHungUp}
	}
	if c.nativeSeen { // else it is not worth two system calls
		c.sortNative()
	}
	c.last++
	id := c.last
	k := &call{id: id, loop: loop}
	c.calls[id] = k
	if loop != nil {
		loop.pending++
	} else if !c.reading {
		c.claimed = true // before the write: an event loop would wake for nothing
	}
	if len(payload) > MaxPart {
		c.uploads = append(c.uploads, &upload{id: id, rest: bytes.Clone(payload)})
		c.flush()
	} else {
		c.frame(KindCall, id, payload)
	}
	if c.deaf { // nobody has got it, and it can be made again elsewhere
		c.drop(k)
		delete(c.calls, id)
		return 0, &DeadError{Err: errHungUp}
	}
	return id, nil
}

// Cancel gives a call up: the child is told, and whatever it still sends for the id is dropped. Next does not know the id any more.
func (c *Conn) Cancel(id uint64) error {
	if c.forked() {
		return ErrForked
	}
	c.mu.Lock()
	defer c.unlock()
	k := c.calls[id]
	if k == nil || k.dropped {
		return ErrNoCall
	}
	c.cancel(k)
	return nil
}

func (c *Conn) cancel(k *call) {
	c.drop(k)
	if k.finished || c.dead != nil {
		delete(c.calls, k.id)
		return
	}
	switch c.withdraw(k.id) {
	case notBegun:
		delete(c.calls, k.id)
	case notUploading:
		c.frame(KindCancel, k.id, nil)
	}
}

// drop forgets what a call has received.
func (c *Conn) drop(k *call) {
	if k.loop != nil && !k.finished {
		k.loop.pending--
	}
	c.held -= k.held
	k.dropped, k.events, k.queued, k.result, k.buffers, k.held = true, nil, 0, nil, nil, 0
	if c.in.paused { // for memory that will not come
		c.ringAll()
		c.handOn()
	}
	c.claimed = false
	c.wakeLater(&k.waiter)
}

// Stop asks the child to finish its running calls and to exit. The calls go on; there can be no new ones.
func (c *Conn) Stop() error {
	if c.forked() {
		return ErrForked
	}
	c.mu.Lock()
	defer c.unlock()
	if c.dead != nil {
		return c.dead
	}
	switch {
	case c.stopped:
	case len(c.uploads) > 0:
		c.stopping = true // the calls that are being sent are running calls
	default:
		c.frame(KindStop, 0, nil)
	}
	c.stopped = true
	return nil
}

// Gone ends the connection because its process has ended, once all is read that the process had sent: a reply that was on its way is
// still given out. Where a process that it left behind holds the socket open, that lasts for the grace at most.
func (c *Conn) Gone(reason error) {
	if c.forked() {
		return
	}
	c.mu.Lock()
	if c.gone = reason; c.ended {
		c.fail(reason)
	}
	c.handOn() // where somebody reads, it comes to the end, or gives the role back
	c.unlock()
	timer := time.NewTimer(c.opts.Grace)
	defer timer.Stop()
	select {
	case <-c.done:
	case <-timer.C:
		c.Fail(reason)
	}
}

// lastRounds bounds what readAll receives: more than any socket holds.
const lastRounds = 256

// readAll takes the reader's role for what lies in the socket. The lock is held, but not while it reads.
func (c *Conn) readAll() {
	c.reading = true
	c.users++
	c.resume()
	for range lastRounds {
		c.unlock()
		n, err := receive(c.fd, c.in.space(), false)
		c.took(n, err)
		c.mu.Lock()
		if errors.Is(err, unix.EAGAIN) || c.dead != nil || c.ended {
			break
		}
	}
	c.reading = false
	c.release(1)
}

// Fail ends the connection for a reason: how the child died. The first reason stands.
func (c *Conn) Fail(reason error) {
	c.mu.Lock()
	defer c.unlock()
	c.fail(reason)
}

func (c *Conn) fail(reason error) {
	if c.dead != nil {
		return
	}
	if reason == nil {
		reason = errors.New("the sandbox process ended")
	}
	c.sortNative() // last words
	c.dead = &DeadError{Err: reason}
	c.out, c.uploads = nil, nil
	if !c.closed {
		_ = unix.Shutdown(c.fd, unix.SHUT_RDWR)
	}
	for _, k := range c.calls {
		if k.dropped {
			delete(c.calls, k.id)
			continue
		}
		c.wakeLater(&k.waiter)
		c.announce(k)
	}
	c.wakeLater(&c.awaiting)
	c.ringAll()
	if c.opts.Native != nil {
		c.opts.Native.conn.CompareAndSwap(c, nil)
	}
	close(c.done)
}

// Done is closed when the connection is over; Err says why.
func (c *Conn) Done() <-chan struct{} { return c.done }

// Err is nil while the connection lives, then a *DeadError.
func (c *Conn) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.dead
}

// Close ends the connection and closes its descriptors as soon as no thread uses them.
func (c *Conn) Close() {
	if c.forked() {
		return // the descriptors are the parent's business
	}
	c.mu.Lock()
	defer c.unlock()
	c.fail(ErrClosed)
	if !c.closed {
		c.closed = true
		c.armAll() // before another file can get the socket's number
		c.release(0)
	}
}

// release takes n users away and closes the descriptors after the last one.
func (c *Conn) release(n int) {
	c.users -= n
	if c.closed && c.users == 0 && c.fd >= 0 {
		_ = unix.Close(c.fd)
		c.fd = -1
		if bell := c.bell.Swap(0); bell > 0 {
			_ = unix.Close(int(bell))
		}
	}
}

// forked reports whether this process is a copy of the one that made the connection.
func (c *Conn) forked() bool { return unix.Getpid() != c.pid }

// frame sends one frame, or queues what the socket does not take. The lock is held.
func (c *Conn) frame(kind int, id uint64, body []byte) {
	length := len(body)
	if kind == KindCancel || kind == KindStop {
		length = -1
	}
	head, err := c.enc.head(kind, id, length)
	if err != nil { // a bytes.Buffer takes everything
		c.fail(fmt.Errorf("transport: encoding a frame: %w", err))
		return
	}
	c.put(head, body)
}

// put sends a frame whose head is encoded, or queues what the socket does not take.
func (c *Conn) put(head, body []byte) {
	if c.closed || c.deaf {
		return
	}
	sent, err := 0, error(nil)
	if len(c.out) == 0 {
		if len(body) < 4096 {
			head = append(head, body...)
			body = nil
			sent, err = send(c.fd, head)
		} else {
			sent, err = send2(c.fd, head, body)
		}
		if err != nil && !again(err) {
			c.hangUp()
			return
		}
	}
	if sent < len(head) {
		c.out = append(c.out, head[sent:]...)
		sent = len(head)
	}
	c.out = append(c.out, body[sent-len(head):]...)
}

// flush sends what is queued. The lock is held.
func (c *Conn) flush() {
	sent := 0
	for sent < len(c.out) && !c.closed {
		n, err := send(c.fd, c.out[sent:])
		sent += n
		if err != nil {
			if !again(err) {
				c.hangUp()
				return
			}
			break
		}
	}
	if c.out = c.out[sent:]; len(c.out) > 0 {
		return
	}
	c.out = nil // with the bytes before its start
	if len(c.uploads) > 0 && !c.closed && !c.ended {
		c.sendUpload() // one part while the lock is held: others want to send, too
	}
}

// unsent reports whether flush has something to do when the socket takes more.
func (c *Conn) unsent() bool { return len(c.out) > 0 || len(c.uploads) > 0 }

// again reports whether a send or receive just has to be tried later.
func again(err error) bool {
	return errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EINTR)
}

// end notes that the other side is gone; the reason is Fail's, or after a grace none. The lock is held.
func (c *Conn) end() {
	if c.ended || c.dead != nil {
		return
	}
	c.ended = true
	c.out = nil
	if c.gone != nil {
		c.fail(c.gone)
		return
	}
	time.AfterFunc(c.opts.Grace, func() { c.Fail(errHungUp) })
}

// hangUp notes that the other side takes nothing more. Its last answers may lie in the socket, and are read as ever. The lock is held.
func (c *Conn) hangUp() {
	if c.deaf || c.dead != nil {
		return
	}
	c.deaf = true
	c.out, c.uploads = nil, nil
	time.AfterFunc(c.opts.Grace, func() { c.Fail(errHungUp) })
}

// protocol ends the connection because of what the child did. The lock is held.
func (c *Conn) protocol(format string, args ...any) {
	c.fail(&ProtocolError{Who: c.opts.Who, What: fmt.Sprintf(format, args...)})
}
