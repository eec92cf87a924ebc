package transport

// Output comes as fast as a sandbox can print, and is taken as fast as the application's own streams are. In between it lies in
// this process, whoever reads the socket: so of each call the child may send only as much ahead as the window holds, and waits
// for TAKEN frames then, as a program waits for a slow terminal. A child that does not wait is hostile.

// defaultWindow is what a call may have unread, with cost counted: the child's half (bindings/guard/channel_window.c) has the same.
const defaultWindow = 1 << 20

// eventCost is what an event takes beside its bytes; a million empty ones would be no small thing.
const eventCost = 128

// cost is what an event of output counts.
func cost(data []byte) int64 { return int64(len(data)) + eventCost }

// credit gives the child room for as much output of a call as was just taken, a quarter of a window at a time.
func (c *Conn) credit(k *call, n int64) {
	k.queued -= n
	if k.taken += n; k.taken < c.opts.Window/4 || k.finished || c.dead != nil {
		return
	}
	head, err := c.enc.taken(k.id, k.taken)
	if err != nil { // a bytes.Buffer takes everything
		c.fail(err)
		return
	}
	k.taken = 0
	c.put(head, nil)
}
