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

	// Of native code, which no answer to a question tells of: the newest, until the guard asks for them.
	native      []wire.Denial
	nativeFirst uint64 // the number of the first of them; they count from 1
}

// maxNative bounds those. What the program asks too late for is still in the log and in the application's list.
const maxNative = 256

// addNative is add for what was refused to native code.
func (d *denials) addNative(one wire.Denial) (first bool) {
	first = d.add(one)
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.nativeFirst == 0 {
		d.nativeFirst = 1
	}
	if len(d.native) == maxNative {
		d.native = append(d.native[:0], d.native[1:]...)
		d.nativeFirst++
	}
	d.native = append(d.native, one.Sent())
	return first
}

// nativeAfter gives the first refusal of native code after a number, and its number; 0: there is none.
func (d *denials) nativeAfter(number uint64) (wire.Denial, uint64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	next := max(number+1, d.nativeFirst)
	if d.nativeFirst == 0 || next-d.nativeFirst >= uint64(len(d.native)) {
		return wire.Denial{}, 0
	}
	return d.native[next-d.nativeFirst], next
}

// natives gives the refusals of native code, each subject once.
func (d *denials) natives() []Denied {
	var out []Denied
	for _, one := range d.list() {
		if one.Layer != "python" {
			out = append(out, one)
		}
	}
	return out
}

type denialKey struct{ layer, family, op, subject string }

// add records a refusal and tells whether it is the first of its kind.
func (d *denials) add(one wire.Denial) (first bool) {
	one = one.Sent() // as the child will tell of it
	key := denialKey{one.Layer, one.Family, one.Op, one.Subject}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.total++
	if have := d.seen[key]; have != nil {
		have.Count++
		return false
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
	return true
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
