package transport

// The face for an asyncio event loop, on whose thread nothing may block:
//
//	socket, wake := c.FDs()     loop.add_reader on both
//	id := c.BeginAsync(payload)
//	c.Pump()                    when either is readable; when the socket is writable while WantWrite
//	id, ev, ok, err := c.Take() until not ok

// BeginAsync sends a call whose events are taken by Poll or Take. What the socket does not take at once waits for Pump.
func (c *Conn) BeginAsync(payload []byte) (uint64, error) { return c.begin(payload, true) }

// FDs are the socket and an eventfd that becomes readable when another thread has received something for an asynchronous call, and
// when the connection ends. Both stay the connection's own.
func (c *Conn) FDs() (socket, wake int) { return c.fd, c.wake }

// WantWrite reports whether Pump should also be called when the socket can be written to.
func (c *Conn) WantWrite() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.unsent()
}

// pumpRounds bounds what one Pump receives: the loop has other things to do.
const pumpRounds = 64

// Pump sends and receives what can be had without waiting. It leaves the socket to a thread that reads already, or that has
// just begun a call and is about to. ErrEnded: stop watching the socket. A *DeadError: stop watching both.
func (c *Conn) Pump() error {
	if c.forked() {
		return ErrForked
	}
	c.mu.Lock()
	defer c.unlock()
	if c.dead != nil {
		return c.dead
	}
	drain(c.wake)
	c.flush()
	if c.ended {
		return ErrEnded
	}
	if c.reading {
		return nil
	}
	if c.claimed {
		c.claimed = false
		return nil
	}
	c.reading = true
	c.users++
	c.resume()
	c.unlock()
	for range pumpRounds {
		if c.read(false, 0) != nil {
			break
		}
		c.mu.Lock()
		over := c.dead != nil || c.ended
		c.mu.Unlock()
		if over {
			break
		}
	}
	c.mu.Lock()
	c.reading = false
	c.release(1)
	c.handOn()
	switch {
	case c.dead != nil:
		return c.dead
	case c.ended:
		return ErrEnded
	}
	return nil
}

// Take returns the next event of any asynchronous call, in the order in which the calls got theirs. With an err and an id that call is over;
// with an err and no id the connection cannot be used. A dead connection gives each call its error once.
func (c *Conn) Take() (id uint64, e Event, ok bool, err error) {
	if c.forked() {
		return 0, Event{}, false, ErrForked
	}
	c.mu.Lock()
	for len(c.fresh) > 0 {
		id := c.fresh[0]
		k := c.calls[id]
		if k != nil && !k.dropped {
			e, ok := c.pop(k)
			if ok {
				if len(k.events) == 0 {
					c.fresh = c.fresh[1:]
				}
				c.mu.Unlock()
				e, err := c.checked(k, e)
				return id, e, err == nil, err
			}
			if c.dead != nil {
				delete(c.calls, id)
				c.fresh = c.fresh[1:]
				err := c.dead
				c.mu.Unlock()
				return id, Event{}, false, err
			}
		}
		c.fresh = c.fresh[1:]
	}
	c.mu.Unlock()
	return 0, Event{}, false, nil
}
