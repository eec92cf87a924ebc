package unpickle

// table collects the hashes of one dict's or set's keys until the stream has ended.
type table struct {
	hashes  []uint64
	set     bool  // probes as a set does
	maxCost int64 // expanded size of its largest key: what one comparison may cost
	chosen  int64 // keys whose hash the sender could have aimed without its being known here
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
	record := int(m.node(w).n)+len(items)/step > unrecorded
	for i := 0; i < len(items); i += step {
		k := items[i].kind()
		if k == kindStr || k == kindBytes {
			if m.work += m.reading(items[i]); m.overworked() {
				return m.tooMuchHashing()
			}
			continue
		}
		h, cost, f := uint64(0), int64(1), known
		if k == kindInt && m.short(items[i]) {
			v, _, _ := m.integer(items[i])
			h = hashInt(v)
		} else {
			h, cost, f = m.hash(items[i])
		}
		switch f {
		case unhashable:
			return m.refuseAt(base+i, m.typeName(items[i]), "which is no key: it has no hash")
		case random:
			if m.overworked() {
				return m.tooMuchHashing()
			}
			continue
		}
		if m.overworked() {
			return m.tooMuchHashing()
		}
		if record {
			t := m.tableOf(w)
			t.maxCost = max(t.maxCost, cost)
			if f == known {
				t.hashes = append(t.hashes, h)
			} else {
				t.chosen++
			}
		}
	}
	return nil
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
		m.tables = append(m.tables, table{set: k == kindSet || k == kindFrozenSet})
		n.keys = int32(len(m.tables))
	}
	return &m.tables[n.keys-1]
}

// overworked reports whether the hash work is used up.
func (m *machine) overworked() bool {
	return m.work > m.lim.HashWork+earned*int64(len(m.data))
}

func (m *machine) tooMuchHashing() error {
	return m.over("a value whose dict keys or set members would take too long to hash and compare", m.lim.HashWork, "steps")
}

// replayTables puts the collected keys into tables as CPython would and counts what that costs.
func (m *machine) replayTables() error {
	var slots []uint64
	for i := range m.tables {
		t := &m.tables[i]
		m.work += t.chosen * t.chosen / 2
		if m.overworked() {
			return m.tooMuchHashing()
		}
		if len(t.hashes) > unrecorded {
			slots = m.replay(t, slots)
		}
		if m.overworked() {
			return m.tooMuchHashing()
		}
	}
	return nil
}

// replay inserts the hashes of one table. Slots hold a hash and are empty at 0: a hash of 0 is kept as its complement's
// neighbour, which changes nothing but how that one key compares. It returns the slots for use by the next table.
func (m *machine) replay(t *table, slots []uint64) []uint64 {
	if consecutive(t.hashes) {
		return slots
	}
	size := 8
	slots = emptied(slots, size)
	for n, h := range t.hashes {
		if t.set && n*5 >= (size-1)*3 || !t.set && n >= size*2/3 {
			size = grown(n, t.set)
			slots = emptied(slots, size)
			for _, old := range t.hashes[:n] {
				m.insert(slots, old, t)
			}
		}
		m.insert(slots, h, t)
		if m.overworked() {
			break
		}
	}
	return slots
}

// short reports whether an int is one of at most 32 bits: most keys are.
func (m *machine) short(w word) bool {
	op := m.data[w.ref()]
	return op == opBinInt1 || op == opBinInt2 || op == opBinInt
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

func emptied(slots []uint64, size int) []uint64 {
	if cap(slots) < size {
		return make([]uint64, size)
	}
	slots = slots[:size]
	clear(slots)
	return slots
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

// insert is the probe sequence of dictobject.c (find_empty_slot) or setobject.c (set_add_entry). Each occupied slot that is met
// costs a step; one with an equal hash costs a comparison of keys.
func (m *machine) insert(slots []uint64, h uint64, t *table) {
	if h == 0 {
		h = ^uint64(0) // no hash of CPython's has this value
	}
	mask := uint64(len(slots) - 1)
	i, perturb := h&mask, h
	for {
		run := 1
		if t.set && i+9 <= mask {
			run = 10
		}
		for j := range run {
			s := &slots[i+uint64(j)]
			if *s == 0 {
				*s = h
				return
			}
			m.work++
			if *s == h {
				m.work += t.maxCost
			}
		}
		if m.overworked() {
			return
		}
		perturb >>= 5
		i = (i*5 + 1 + perturb) & mask
	}
}
