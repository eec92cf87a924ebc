package daemon

import (
	"sync"

	"github.com/pysandboxes/pysandboxes/core/wire"
)

// maxDenials is how many different refusals are kept; the oldest go first.
const maxDenials = 1024

// Denied is a refusal and how often it came.
type Denied struct {
	wire.Denial
	Count int `json:"count"`
}

// denials keeps what was refused, each subject once.
type denials struct {
	mu    sync.Mutex
	seen  map[denialKey]*Denied
	order []denialKey
	total int
}

type denialKey struct{ layer, family, op, subject string }

func (d *denials) add(one wire.Denial) {
	one = one.Sent() // as the child will tell of it
	key := denialKey{one.Layer, one.Family, one.Op, one.Subject}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.total++
	if have := d.seen[key]; have != nil {
		have.Count++
		return
	}
	if d.seen == nil {
		d.seen = make(map[denialKey]*Denied)
	}
	if len(d.order) >= maxDenials {
		delete(d.seen, d.order[0])
		d.order = d.order[1:]
	}
	d.seen[key] = &Denied{Denial: one, Count: 1}
	d.order = append(d.order, key)
}

// vouch gives the refusal of this layer, family, operation and subject in the words in which it was made here.
func (d *denials) vouch(layer, family, op, subject string) (wire.Denial, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if have := d.seen[denialKey{layer, family, op, subject}]; have != nil {
		return have.Denial, true
	}
	return wire.Denial{}, false
}

// list gives the refusals in the order in which they first came.
func (d *denials) list() []Denied {
	d.mu.Lock()
	defer d.mu.Unlock()
	out := make([]Denied, 0, len(d.order))
	for _, key := range d.order {
		out = append(out, *d.seen[key])
	}
	return out
}

// counts gives how many refusals there were in all.
func (d *denials) counts() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.total
}
