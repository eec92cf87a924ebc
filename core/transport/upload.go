package transport

// upload is a call with a large payload that is still being sent. Its parts are framed one at a time, when the socket has taken all
// that was queued before, so that small calls get in between, and several large ones take turns.
type upload struct {
	id    uint64
	rest  []byte
	begun bool // the child has got a part
}

// sendUpload sends the next part of the upload whose turn it is.
func (c *Conn) sendUpload() {
	u := c.uploads[0]
	c.uploads = c.uploads[1:]
	if len(u.rest) > MaxPart {
		u.begun = true
		part := u.rest[:MaxPart]
		u.rest = u.rest[MaxPart:]
		c.uploads = append(c.uploads, u)
		c.frame(KindPiece, u.id, part)
		return
	}
	c.frame(KindCall, u.id, u.rest)
	c.lastUpload()
}

// lastUpload sends the STOP that waited for the uploads, if there is one.
func (c *Conn) lastUpload() {
	if len(c.uploads) == 0 && c.stopping {
		c.stopping = false
		c.frame(KindStop, 0, nil)
	}
}

// What withdraw found.
const (
	notUploading = iota // the child has the call
	notBegun            // the child has never heard of it
	cutOff              // the child has got a part, and is told that there is no more
)

// withdraw ends the upload of a call that is given up.
func (c *Conn) withdraw(id uint64) int {
	for i, u := range c.uploads {
		if u.id != id {
			continue
		}
		c.uploads = append(c.uploads[:i:i], c.uploads[i+1:]...)
		found := notBegun
		if u.begun { // what the child has is ended by a CALL that is cancelled before it can run
			found = cutOff
			c.frame(KindCancel, id, nil)
			c.frame(KindCall, id, nil)
		}
		c.lastUpload()
		return found
	}
	return notUploading
}
