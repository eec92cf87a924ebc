package transport

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// bufferSize holds many small frames; greater ones that are not received straight into their result make it grow.
	bufferSize = 64 << 10
	// straight is how much of a part must be missing for the rest to be received without passing through the buffer.
	straight = 16 << 10
	// maxExcess is how many CANCELLED frames may come for calls whose end crossed the CANCEL on the way.
	maxExcess = 10_000
)

// inbox is what was received and is no whole frame yet.
type inbox struct {
	buf    []byte
	from   int // first byte not yet taken apart
	to     int // end of what was received
	limit  int // no more is received than up to here
	dec    *reader
	direct []byte // where the rest of a part goes, when it does not pass through buf
	skip   int    // bytes of a part that nobody wants
	part   frame  // the frame that direct or skip belong to; its data are not there
	owner  *call
	stray  []stray

	paused   bool    // a buffer was opened, and its call's thread makes the memory
	borrowed *Buffer // direct is memory of the thread that reads, in this buffer
}

// stray is output of no call, to be handed over once the lock is given back.
type stray struct {
	kind int
	data []byte
}

func newInbox() inbox {
	return inbox{buf: make([]byte, bufferSize), limit: bufferSize, dec: newReader()}
}

// read receives once, for at most left, and takes apart what came. With pending it also returns when the socket can be written to.
// The caller has the reader's role and not the lock. The error is EINTR, EAGAIN or nil.
func (c *Conn) read(pending bool, left time.Duration) error {
	bell := int(c.bell.Load())
	wait := left == slice && !pending
	var n int
	err := error(unix.EAGAIN)
	if wait {
		n, err = c.spin.receive(c.fd, c.in.space())
	}
	if wait = wait && bell <= 0; err == unix.EAGAIN && !wait {
		events := int16(unix.POLLIN)
		if pending {
			events |= unix.POLLOUT
		}
		if err := await(c.fd, events, bell, left); err != nil {
			return err
		}
	}
	if err == unix.EAGAIN {
		n, err = receive(c.fd, c.in.space(), wait)
	}
	if c.took(n, err); again(err) {
		return err
	}
	return nil
}

// took acts on what a receive gave. The caller has the reader's role and not the lock.
func (c *Conn) took(n int, err error) {
	switch {
	case again(err):
	case err != nil || n == 0: // ECONNRESET is an end like any other
		c.mu.Lock()
		c.end()
		c.unlock()
	default:
		c.received(n)
	}
}

// space is where the next bytes go.
func (in *inbox) space() []byte {
	switch {
	case len(in.direct) > 0:
		return in.direct
	case in.skip > 0:
		return in.buf[:min(in.skip, len(in.buf))]
	}
	return in.buf[in.to:in.limit]
}

// received takes n more bytes apart.
func (c *Conn) received(n int) {
	in := &c.in
	c.mu.Lock()
	switch {
	case len(in.direct) > 0:
		if in.direct = in.direct[n:]; len(in.direct) == 0 {
			c.partArrived()
		}
	case in.skip > 0:
		if in.skip -= n; in.skip == 0 {
			c.partArrived()
		}
	default:
		in.to += n
		c.frames()
	}
	strays := in.stray
	in.stray = nil
	c.unlock()
	for _, s := range strays {
		c.handStray(s)
	}
}

// frames takes every whole frame of the buffer.
func (c *Conn) frames() {
	in := &c.in
	for c.dead == nil && !in.paused {
		have := in.buf[in.from:in.to]
		if len(have) < 4 {
			break
		}
		size := int(binary.BigEndian.Uint32(have))
		if size < 1 || size > MaxFrame {
			c.protocol("a frame of %d bytes (at most %d)", size, MaxFrame)
			return
		}
		if missing := 4 + size - len(have); missing > 0 {
			if missing > straight && len(have) >= 4+headRoom && c.receiveStraight(have[4:], size) {
				return
			}
			break
		}
		f, err := in.dec.decode(have[4:4+size], false)
		if err != nil {
			if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
				err = errors.New("a frame that ends within a field")
			}
			c.protocol("%v", err)
			return
		}
		in.from += 4 + size
		c.dispatch(f)
	}
	if c.dead == nil { // else what is left need be no frame: its length was never looked at
		in.makeRoom()
	}
}

// makeRoom moves an unfinished frame, whose length is within bounds, to the front, and lets the buffer hold it whole. A buffer that
// had to grow a little stays so: a flood of such frames would throw one away for each.
func (in *inbox) makeRoom() {
	if in.from > 0 {
		in.to = copy(in.buf, in.buf[in.from:in.to])
		in.from = 0
	}
	in.limit = bufferSize
	if in.to >= 4 {
		in.limit = max(in.limit, 4+int(binary.BigEndian.Uint32(in.buf)))
	}
	if in.limit > len(in.buf) || in.to == 0 && len(in.buf) > 2*bufferSize {
		size := in.limit
		if in.to > 0 {
			size = max(size, 2*bufferSize)
		}
		in.buf = append(make([]byte, 0, size), in.buf[:in.to]...)[:size]
	}
}

// receiveStraight prepares for the rest of a RESULT's or CHUNK's bytes to be received where they belong. body is as much
// of the frame as there is.
func (c *Conn) receiveStraight(body []byte, size int) bool {
	in := &c.in
	f, err := in.dec.decode(body, true)
	if err != nil || f.kind != KindResult && f.kind != KindChunk && f.kind != KindFill && (!f.output() || f.id == 0) {
		return false // the whole frame will tell
	}
	if len(body)-len(f.data)+f.length != size {
		c.protocol("a frame whose lengths do not agree")
		return true
	}
	k := c.target(f)
	if k == nil {
		return true
	}
	rest := f.length - len(f.data)
	if f.output() {
		if k.dropped {
			in.skip = rest
		} else {
			whole := lend(f.length)
			in.direct = whole[copy(whole, f.data):]
			f.whole = whole
		}
	} else if f.kind == KindFill {
		if room := c.room(k, f.length); room != nil {
			in.direct = room[copy(room, f.data):]
		} else {
			in.skip = rest
		}
	} else if !c.whole(k) {
		return true
	} else if c.grow(k, f.length) {
		at := len(k.result)
		k.result = k.result[:at+f.length]
		copy(k.result[at:], f.data)
		in.direct = k.result[at+len(f.data):]
	} else {
		in.skip = rest
	}
	f.data = nil
	in.part, in.owner, in.from, in.to = f, k, 0, 0
	return true
}

// partArrived ends what receiveStraight began.
func (c *Conn) partArrived() {
	k, f := c.in.owner, c.in.part
	c.in.part, c.in.owner, c.in.direct, c.in.borrowed = frame{}, nil, nil, nil
	switch {
	case f.kind == KindResult:
		c.finish(k, Event{Kind: KindResult, Data: k.result, Buffers: k.buffers})
	case f.whole != nil:
		c.output(k, f.kind, f.whole)
	}
}

// dispatch gives a frame to its call.
func (c *Conn) dispatch(f frame) {
	switch {
	case f.kind == KindReady:
		c.sayReady(f)
		return
	case f.output() && f.id == 0:
		c.in.stray = append(c.in.stray, stray{f.kind, slices.Clone(f.data)})
		return
	}
	k := c.target(f)
	if k == nil {
		return
	}
	switch f.kind {
	case KindCancelled:
		c.finish(k, Event{Kind: f.kind})
	case KindException:
		c.finish(k, Event{Kind: f.kind, Descriptor: slices.Clone(f.data), Rich: slices.Clone(f.rich)})
	case KindBuffer:
		c.open(k, f)
	case KindFill:
		c.fill(k, f.data)
	case KindResult, KindChunk:
		if !c.whole(k) {
			return
		}
		if c.grow(k, len(f.data)) {
			k.result = append(k.result, f.data...)
		}
		if f.kind == KindResult {
			c.finish(k, Event{Kind: f.kind, Data: k.result, Buffers: k.buffers})
		}
	case KindStdout, KindStderr, KindLog:
		if !k.dropped {
			own := lend(len(f.data))
			copy(own, f.data)
			c.output(k, f.kind, own)
		}
	}
}

// target is the call that a frame belongs to; nil if there is none any more, or never was, which ends the connection.
func (c *Conn) target(f frame) *call {
	k := c.calls[f.id]
	switch {
	case c.ready == nil:
		c.protocol("a frame of kind %d before READY", f.kind)
	case f.id == 0 || f.id > c.last:
		c.protocol("a frame of kind %d for call %d, which was never made", f.kind, f.id)
	case k != nil && !k.finished:
		return k
	case f.kind == KindCancelled && c.excess < maxExcess:
		c.excess++ // the call's end and our CANCEL crossed
	default:
		c.protocol("a frame of kind %d for call %d, which has ended", f.kind, f.id)
	}
	return nil
}

// output queues what a call printed or logged.
func (c *Conn) output(k *call, kind int, data []byte) {
	if k.dropped {
		return // meanwhile
	}
	k.queued += cost(data)
	if k.queued > c.opts.Window+cost(nil)+MaxPart {
		c.protocol("%d bytes of output of call %d that nobody has taken, where %d are sent ahead", k.queued, k.id, c.opts.Window)
		return
	}
	c.push(k, Event{Kind: kind, Data: data})
}

// whole ends the connection where the pickle begins before its buffers are there.
func (c *Conn) whole(k *call) bool {
	if k.missing > 0 {
		c.protocol("a result of call %d before the end of its buffer", k.id)
	}
	return k.missing == 0
}

// grow makes room for n more bytes of a pickle; false if nobody wants them.
func (c *Conn) grow(k *call, n int) bool {
	if !c.charge(k, int64(n)) {
		return false
	}
	if free := cap(k.result) - len(k.result); free < n {
		k.result = slices.Grow(k.result, max(n, len(k.result)))
	}
	return true
}

// charge counts n more bytes of a result; false if nobody wants them.
func (c *Conn) charge(k *call, n int64) bool {
	k.size += n
	if k.size > c.opts.MaxResult && !k.tooBig {
		c.held -= k.held
		k.tooBig, k.result, k.buffers, k.held = true, nil, nil, 0
	}
	if k.tooBig && k.size > 4*c.opts.MaxResult+64<<20 {
		c.protocol("a result of more than %d bytes, where limit-result=%d", k.size, c.opts.MaxResult)
	}
	if k.tooBig || k.dropped {
		return false
	}
	c.held += n
	k.held += n
	if c.held > 4*c.opts.MaxResult {
		c.protocol("%d bytes of results at one time, where limit-result=%d", c.held, c.opts.MaxResult)
		return false
	}
	return true
}

// finish queues a call's last event.
func (c *Conn) finish(k *call, e Event) {
	c.sortNative()
	k.finished = true
	if k.loop != nil && !k.dropped {
		k.loop.pending--
	}
	if k.dropped {
		delete(c.calls, k.id)
		return
	}
	c.push(k, e)
}

// sayReady takes the child's first frame.
func (c *Conn) sayReady(f frame) {
	version := string(f.data)
	switch {
	case c.ready != nil || f.id != 0:
		c.protocol("READY a second time")
	case c.opts.Version != "" && version != c.opts.Version:
		c.fail(fmt.Errorf("the sandbox runs pysandboxes %q and this process %q: install the same version in both", clip(version), c.opts.Version))
	default:
		c.ready = &Ready{Version: version, Pid: f.pid, Python: string(f.rich)}
		c.wakeLater(&c.awaiting)
	}
}

// clip shortens a text of the child's for a message.
func clip(text string) string { return text[:min(len(text), 40)] }

// handStray passes output of no call on.
func (c *Conn) handStray(s stray) {
	if s.kind == KindLog {
		record, err := recordJSON(s.data)
		if err != nil {
			_ = c.broken("a log record: %v", err)
			return
		}
		s.data = record
	}
	if c.opts.Stray != nil {
		c.opts.Stray(s.kind, s.data)
	}
}
