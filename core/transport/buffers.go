package transport

import "github.com/pysandboxes/pysandboxes/core/unpickle"

// minBuffer is the least size of a buffer: what bounds their number.
const minBuffer = 16 << 10

// maxBuffer is above every limit-result=; sizes beyond it would be no sizes.
const maxBuffer = 1 << 40

// Buffer is a large bytes object or bytearray of a result, which comes beside the pickle and is never copied where that can be helped.
//
// The thread that waits for the call and reads for itself gets a KindBuffer event, makes the object, and gives its memory to NextInto, which
// receives into it. That memory is used by nobody else, and only while NextInto runs. In all other cases (another thread
// read, an event loop waits) the bytes are kept in parts until CopyTo is called.
type Buffer struct {
	Size     int64
	Writable bool // a bytearray
	Straight bool // received into the caller's memory: there is nothing to copy

	got   int64  // received so far
	into  []byte // the waiting thread's memory, while it is in NextInto
	parts []part
}

// part is what was received of a buffer beside the caller's memory.
type part struct {
	at   int64
	data []byte
}

// CopyTo copies what was kept to where it belongs and forgets it; dst has Size bytes. To be called once the RESULT is there.
func (b *Buffer) CopyTo(dst []byte) {
	for _, p := range b.parts {
		copy(dst[p.at:], p.data)
	}
	b.parts = nil
}

// open begins a buffer of a result.
func (c *Conn) open(k *call, f frame) {
	switch {
	case k.missing > 0:
		c.protocol("a buffer of call %d within a buffer", k.id)
		return
	case f.size < minBuffer || f.size > maxBuffer:
		c.protocol("a buffer of %d bytes", f.size)
		return
	}
	k.missing = int64(f.size)
	if !c.charge(k, k.missing) {
		return
	}
	b := &Buffer{Size: k.missing, Writable: f.writable}
	k.buffers = append(k.buffers, b)
	if c.leader == &k.waiter && k.straight {
		b.Straight = true
		c.push(k, Event{Kind: KindBuffer, Buffers: []*Buffer{b}, Index: len(k.buffers) - 1})
		c.in.paused = true // what follows belongs into the memory that the leader now fetches
	}
}

// fill takes bytes of the open buffer that passed through the inbox.
func (c *Conn) fill(k *call, data []byte) {
	b := c.filling(k, len(data))
	if b == nil {
		return
	}
	if b.into != nil {
		copy(b.into[b.got:], data)
	} else {
		b.keep(append([]byte(nil), data...))
	}
	b.got += int64(len(data))
}

// filling is the open buffer, for n bytes that have come; nil if nobody wants them.
func (c *Conn) filling(k *call, n int) *Buffer {
	if int64(n) > k.missing {
		c.protocol("%d bytes for a buffer of call %d that lacks %d", n, k.id, k.missing)
		return nil
	}
	if n < minBuffer && int64(n) < k.missing {
		c.protocol("%d bytes for a buffer of call %d, which is neither %d nor the rest", n, k.id, minBuffer)
		return nil
	}
	k.missing -= int64(n)
	if k.tooBig || k.dropped {
		return nil
	}
	return k.buffers[len(k.buffers)-1]
}

func (b *Buffer) keep(data []byte) { b.parts = append(b.parts, part{b.got, data}) }

// room is where n bytes of the open buffer are received, or nil if nobody wants them. The waiting thread's own memory is only for itself.
func (c *Conn) room(k *call, n int) []byte {
	b := c.filling(k, n)
	if b == nil {
		return nil
	}
	var room []byte
	if b.into != nil && c.leader == &k.waiter {
		room = b.into[b.got : b.got+int64(n)]
		c.in.borrowed = b
	} else {
		room = make([]byte, n)
		b.keep(room)
	}
	b.got += int64(n)
	return room
}

// giveBack takes the reader's hands off the waiting thread's memory, which is about to leave: the rest of the part comes into our own.
func (c *Conn) giveBack() {
	in := &c.in
	if in.borrowed == nil {
		return
	}
	rest := make([]byte, len(in.direct))
	in.borrowed.parts = append(in.borrowed.parts, part{in.borrowed.got - int64(len(rest)), rest})
	in.direct, in.borrowed = rest, nil
}

// resume takes apart what waited for the memory of a buffer. The lock and the reader's role are held.
func (c *Conn) resume() {
	if c.in.paused {
		c.in.paused = false
		c.frames()
	}
}

// besides are the buffers of a result as the validator wants them.
func besides(buffers []*Buffer) []unpickle.Buffer {
	if len(buffers) == 0 {
		return nil
	}
	out := make([]unpickle.Buffer, len(buffers))
	for i, b := range buffers {
		out[i] = unpickle.Buffer{Size: b.Size, Writable: b.Writable}
	}
	return out
}
