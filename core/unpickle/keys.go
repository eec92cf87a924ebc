package unpickle

// table collects one dict's or set's keys until the stream has ended.
type table struct {
	keys    []word
	set     bool  // probes as a set does
	maxCost int64 // expanded size of its largest key: what one comparison may cost
	chosen  int64 // keys whose hash the sender could have aimed without its being known here

	chosenCost int64 // of the largest of those
}

const (
	// unrecorded is the size up to which a container's keys are not worth collecting.
	unrecorded = 16
	// earned is the hash work that each byte of the stream allows without touching the budget.
	earned = 2
	// readAStep is how many bytes of a text are read in the time of a step.
	readAStep = 64
)

// addKeys looks at every step-th of items as keys of the container w. base is where items begin on the stack.
func (m *machine) addKeys(w word, items []word, step, base int) error {
	if m.trace != nil {
		return nil
	}
	switch i, f := m.countKeys(w, items, step); {
	case m.overworked():
		return m.tooMuchHashing()
	case f == unhashable:
		return m.refuseAt(base+i, m.typeName(items[i]), "which is no key: it has no hash")
	}
	return nil
}

// countKeys charges what hashing the keys costs, and collects those that the sender could have aimed. Where it stops at one it
// returns its index, and unhashable or, when the work is used up, chosen.
func (m *machine) countKeys(w word, items []word, step int) (at int, f fate) {
	var t *table // where there are so many that they are worth collecting
	if int(m.nodes[w.ref()].n)+len(items)/step > unrecorded {
		t = m.tableOf(w)
	}
	for i := 0; i < len(items); i += step {
		key := items[i]
		cost, f := int64(1), known
		switch k := key.kind(); {
		case k == kindStr || k == kindBytes:
			if key&longScalar == 0 {
				continue
			}
			m.work += m.reading(key)
			f = random
		case k == kindInt && key&longScalar == 0:
			if t != nil {
				t.keys = append(t.keys, key)
			}
			continue
		case k == kindTuple && m.nodes[key.ref()].flags&(flagKnown|flagRandom) != 0:
			n := &m.nodes[key.ref()]
			cost = int64(n.keys)
			m.work += min(cost, m.workLimit()+1)
			if n.flags&flagRandom != 0 {
				f = random
			}
		default:
			_, cost, f = m.hash(key)
		}
		if f == unhashable {
			return i, unhashable
		}
		if m.overworked() {
			return i, chosen
		}
		if f == random || t == nil {
			continue
		}
		if f == known {
			t.keys = append(t.keys, key)
			t.maxCost = max(t.maxCost, cost)
		} else {
			t.chosen++
			t.chosenCost = max(t.chosenCost, cost)
		}
	}
	return 0, known
}

// reading is the work of hashing a text, or of comparing it with an equal one: nothing worth counting where it is short.
func (m *machine) reading(w word) int64 {
	switch op := m.data[w.ref()]; op {
	case opShortBinUnicode, opShortBinBytes:
		return 0
	case opNextBuffer:
		return m.largest / readAStep
	default:
		return int64(len(m.text(w))) / readAStep
	}
}

func (m *machine) tableOf(w word) *table {
	n := m.node(w)
	if n.keys == 0 {
		k := w.kind()
		if len(m.tables) == cap(m.tables) {
			m.tables = append(m.tables, table{})
		} else {
			m.tables = m.tables[:len(m.tables)+1]
		}
		n.keys = int32(len(m.tables))
		t := &m.tables[n.keys-1]
		*t = table{keys: t.keys[:0], set: k == kindSet || k == kindFrozenSet, maxCost: 1} // the memory of a former one
	}
	return &m.tables[n.keys-1]
}

// workLimit is how many steps of hash work the stream may cost.
func (m *machine) workLimit() int64 { return m.lim.HashWork + earned*int64(len(m.data)) }

// overworked reports whether the hash work is used up.
func (m *machine) overworked() bool { return m.work > m.workLimit() }

func (m *machine) tooMuchHashing() error {
	return m.over("a value whose dict keys or set members would take too long to hash and compare", m.lim.HashWork, "steps")
}

// replayTables counts what the collected keys cost. A table whose keys may all collide without harm is charged as if they did; the
// others are put into tables as CPython would.
func (m *machine) replayTables() error {
	for i := range m.tables {
		t := &m.tables[i]
		n := float64(len(t.keys))
		aimed := float64(t.chosen) * float64(t.chosen) / 2 * float64(t.chosenCost)
		m.work += int64(min(aimed, float64(m.workLimit()+1)))
		if worst := n * n * float64(t.maxCost); worst < float64(m.workLimit()/2-m.work) {
			m.work += int64(worst)
		} else if len(t.keys) > unrecorded {
			m.replay(t)
		}
		if m.overworked() {
			return m.tooMuchHashing()
		}
	}
	if m.overworked() {
		return m.over("a value that would take too long to make", m.lim.HashWork, "steps")
	}
	return nil
}

// replay inserts the keys of one table.
func (m *machine) replay(t *table) {
	hashes := m.hashes[:0]
	for _, key := range t.keys {
		h := uint64(0)
		if key.kind() == kindInt {
			if v, raw, ok := m.integer(key); ok {
				h = hashInt(v)
			} else {
				h = hashBig(raw)
			}
		} else {
			var f fate
			if h, _, f = m.hash(key); f != known {
				continue // NaN alone: its hash is its address
			}
		}
		hashes = append(hashes, h)
	}
	m.hashes = hashes
	if consecutive(hashes) {
		return
	}
	size := 8
	slots := m.emptied(size)
	for n, full := 0, room(size, t.set); n < len(hashes) && !m.overworked(); {
		n += m.insertAll(slots, hashes[n:min(full, len(hashes))], t)
		if n < len(hashes) {
			size = grown(n, t.set)
			full = room(size, t.set)
			slots = m.emptied(size)
			m.insertAll(slots, hashes[:n], t)
		}
	}
}

// room is how many keys a table takes before it grows.
func room(size int, set bool) int {
	if set {
		return ((size-1)*3 + 4) / 5
	}
	return size * 2 / 3
}

// consecutive reports whether the hashes grow, and each is so small that it has a slot of its own at once: a table with n keys
// has at least n*3/2 slots. Row numbers are such keys.
func consecutive(hashes []uint64) bool {
	for i, h := range hashes {
		if h > uint64(i)*3/2 || i > 0 && h <= hashes[i-1] {
			return false
		}
	}
	return true
}

// emptied are that many slots, each empty: 0.
func (m *machine) emptied(size int) []uint8 {
	if cap(m.slots) < size {
		m.slots = make([]uint8, size)
	}
	m.slots = m.slots[:size]
	clear(m.slots)
	return m.slots
}

// grown is the next size of a table with n keys: dictobject.c's GROWTH_RATE, setobject.c's set_add_entry.
func grown(n int, set bool) int {
	want := n * 3
	if set {
		if want = n * 4; n > 50000 {
			want = n * 2
		}
		want++ // "smallest power of two greater than"
	}
	size := 8
	for size < want {
		size <<= 1
	}
	return size
}

// insertAll puts hashes into slots in their order. Of a hash a slot keeps seven bits, and 0 where it is empty.
func (m *machine) insertAll(slots []uint8, hashes []uint64, t *table) int {
	mask := uint64(len(slots) - 1)
	for _, h := range hashes {
		mark := uint8(h*0x9e3779b97f4a7c15>>56) | 1
		if i := h & mask; slots[i] == 0 {
			slots[i] = mark
		} else if m.insert(slots, h, mark, t); m.overworked() {
			break
		}
	}
	return len(hashes)
}

// insert is the probe sequence of dictobject.c (find_empty_slot) or setobject.c (set_add_entry). Each occupied slot that is met
// costs a step; one with an equal hash costs a comparison of keys, and so does one that only has the same mark.
func (m *machine) insert(slots []uint8, h uint64, mark uint8, t *table) {
	mask := uint64(len(slots) - 1)
	i := h & mask
	for perturb := h; !m.overworked(); {
		probes := slots[i : i+1]
		if t.set && i+linearProbes <= mask {
			probes = slots[i : i+linearProbes+1]
		}
		for j, s := range probes {
			if s == 0 {
				probes[j] = mark
				return
			}
			m.work++
			if s == mark {
				m.work += t.maxCost
			}
		}
		perturb >>= 5
		i = (i*5 + 1 + perturb) & mask
	}
}

// linearProbes is LINEAR_PROBES of setobject.c.
const linearProbes = 9
