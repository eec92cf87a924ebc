package unpickle

import "encoding/binary"

// compound runs an instruction that takes values off the stack. It returns where the next instruction begins.
func (m *machine) compound(op byte, pos int) (int, error) {
	switch op {
	case opAppend:
		return pos, m.extend(1)
	case opAppends:
		return pos, m.extend(0)
	case opSetItem:
		return pos, m.setItems(2)
	case opSetItems:
		return pos, m.setItems(0)
	case opAddItems:
		return pos, m.addItems()
	case opFrozenSet:
		return pos, m.frozenSet()
	case opTuple1:
		return pos, m.tuple(1)
	case opTuple2:
		return pos, m.tuple(2)
	case opTuple3:
		return pos, m.tuple(3)
	case opTuple:
		return pos, m.tuple(0)
	case opBinPut, opLongBinPut:
		return m.put(op, pos)
	case opStackGlobal:
		return pos, m.stackGlobal()
	case opReduce:
		return pos, m.reduce()
	case opNewObj:
		return pos, m.newObj(2)
	case opNewObjEx:
		return pos, m.newObj(3)
	case opBuild:
		return pos, m.build()
	case opPop, opPopMark:
		return pos, m.pop(op)
	case opNextBuffer:
		return pos, m.nextBuffer()
	case opReadOnlyBuffer:
		return pos, m.readOnly()
	}
	if why, known := refusedOpcodes[op]; known {
		return 0, m.malformed("the instruction %s", why)
	}
	return 0, m.malformed("the unknown instruction 0x%02x", op)
}

// operands finds the last n values of the stack, or with n 0 those above the innermost mark, which it takes away. base is
// where they begin. There must be `below` more values beneath them.
func (m *machine) operands(n, below int) (items []word, base int, err error) {
	if n == 0 {
		if len(m.marks) == 0 {
			return nil, 0, m.malformed("no mark")
		}
		base = m.fence
		m.unmark()
	} else {
		base = len(m.stack) - n
	}
	if base-below < m.fence {
		return nil, 0, m.malformed("too few values on the stack")
	}
	return m.stack[base:], base, nil
}

// unmark takes the innermost mark away.
func (m *machine) unmark() {
	m.marks = m.marks[:len(m.marks)-1]
	m.fence = 0
	if n := len(m.marks); n > 0 {
		m.fence = m.marks[n-1]
	}
}

// contained checks that items, which begin at base of the stack, may be part of a value, and returns the deepest's depth.
func (m *machine) contained(items []word, base int) (depth int, err error) {
	for i, w := range items {
		k := w.kind()
		if k <= lastScalar {
			continue
		}
		if k <= lastValue && (k != kindException || m.mode == Objects) {
			if d := int(m.nodes[w.ref()].depth); d > depth {
				depth = d
			}
			continue
		}
		if m.mode != Objects {
			return 0, m.refuseAt(base+i, m.typeName(w), "")
		}
	}
	return depth, nil
}

// deepen notes that the container w holds something of that depth.
func (m *machine) deepen(w word, depth int) error {
	if depth >= m.lim.Depth {
		return m.over("nested too deeply", int64(m.lim.Depth), "levels")
	}
	if n := m.node(w); int(n.depth) <= depth {
		n.depth = uint16(depth + 1)
	}
	return nil
}

// target checks that the container beneath the items may still grow. base is where the items begin.
func (m *machine) target(base int, wanted string, kinds ...kind) (word, error) {
	w := m.stack[base-1]
	for _, k := range kinds {
		if w.kind() != k {
			continue
		}
		if m.node(w).flags&flagFrozen != 0 && m.mode != Objects {
			return 0, m.refuseAt(base-1, "part of a cycle", "which cannot cross")
		}
		return w, nil
	}
	if m.mode == Objects && w.kind() == kindObject {
		return w, nil
	}
	return 0, m.malformed("%s on %s", wanted, m.typeName(w))
}

func (m *machine) extend(n int) error {
	items, base, err := m.operands(n, 1)
	if err != nil {
		return err
	}
	w, err := m.target(base, "APPEND", kindList, kindDeque)
	if err != nil {
		return err
	}
	depth, err := m.contained(items, base)
	if err != nil {
		return err
	}
	m.trace.taken(m, items, w, position(int(m.node(w).n)))
	m.node(w).n += uint32(len(items))
	m.stack = m.stack[:base]
	return m.deepen(w, depth)
}

func (m *machine) setItems(n int) error {
	items, base, err := m.operands(n, 1)
	if err != nil {
		return err
	}
	if len(items)%2 != 0 {
		return m.malformed("a key without a value")
	}
	w, err := m.target(base, "SETITEM", kindDict, kindOrderedDict, kindDefaultDict)
	if err != nil {
		return err
	}
	depth, err := m.contained(items, base)
	if err != nil {
		return err
	}
	if err := m.addKeys(w, items, 2, base); err != nil {
		return err
	}
	m.trace.taken(m, items, w, m.entry(items))
	d := m.node(w)
	m.small(d, items)
	d.n += uint32(len(items) / 2)
	m.stack = m.stack[:base]
	return m.deepen(w, depth)
}

func (m *machine) addItems() error {
	items, base, err := m.operands(0, 1)
	if err != nil {
		return err
	}
	w, err := m.target(base, "ADDITEMS", kindSet)
	if err != nil {
		return err
	}
	depth, err := m.contained(items, base)
	if err != nil {
		return err
	}
	if err := m.addKeys(w, items, 1, base); err != nil {
		return err
	}
	m.trace.taken(m, items, w, member)
	m.node(w).n += uint32(len(items))
	m.stack = m.stack[:base]
	return m.deepen(w, depth)
}

func (m *machine) frozenSet() error {
	items, base, err := m.operands(0, 0)
	if err != nil {
		return err
	}
	depth, err := m.contained(items, base)
	if err != nil {
		return err
	}
	w := m.newNode(kindFrozenSet)
	m.extra += extra[kindFrozenSet]
	if err := m.addKeys(w, items, 1, base); err != nil {
		return err
	}
	m.trace.taken(m, items, w, member)
	m.keep(w, items)
	m.stack = append(m.stack[:base], w)
	return m.deepen(w, depth)
}

// tuple makes a tuple of the last n values, or with n 0 of those above the mark. One that holds a class is no value of its own:
// only the constructor of a listed type may take it.
func (m *machine) tuple(n int) error {
	items, base, err := m.operands(n, 0)
	if err != nil {
		return err
	}
	k, depth := kindTuple, 0
	for _, w := range items {
		switch {
		case w.kind() > lastValue || w.kind() == kindException:
			k = kindSpecialTup
		case w.kind() > lastScalar:
			depth = max(depth, int(m.node(w).depth))
		}
	}
	if k == kindSpecialTup && m.mode != Objects && !m.takesClass(base) {
		_, err := m.contained(items, base)
		return err
	}
	w := m.newTuple(k, items)
	m.trace.taken(m, items, w, position(0))
	m.stack = append(m.stack[:base], w)
	return m.deepen(w, depth)
}

// takesClass reports whether the value beneath base is a callable that takes a class: getattr and defaultdict.
func (m *machine) takesClass(base int) bool {
	if base <= m.fence {
		return false
	}
	w := m.stack[base-1]
	if w.kind() != kindClass {
		return false
	}
	c := &classes[w.ref()]
	return c.kind == kindDefaultDict || c.kind == kindZoneMaker
}

// keep copies items, which live on the stack, to where the node w finds them.
func (m *machine) keep(w word, items []word) {
	n := m.node(w)
	n.start, n.n = uint32(len(m.items)), uint32(len(items))
	m.items = append(m.items, items...)
}

// put is memoize with the slot written out, as protocols 2 and 3 have it. CPython's pickler fills the slots in order.
func (m *machine) put(op byte, pos int) (int, error) {
	size := 1
	if op == opLongBinPut {
		size = 4
	}
	if pos+size > len(m.data) {
		return 0, m.truncated()
	}
	slot := uint32(m.data[pos])
	if size == 4 {
		slot = binary.LittleEndian.Uint32(m.data[pos:])
	}
	if int64(slot) != int64(len(m.memo)) {
		return 0, m.malformed("memo slot %d where %d is next", slot, len(m.memo))
	}
	if len(m.stack) <= m.fence {
		return 0, m.malformed("nothing to memoize")
	}
	m.memo = append(m.memo, m.stack[len(m.stack)-1])
	return pos + size, nil
}

// pop runs POP and POP_MARK, which CPython's pickler writes for a tuple or a frozenset that contains itself.
func (m *machine) pop(op byte) error {
	if m.mode != Objects {
		return m.refuseAt(pushed, "part of a cycle", "which cannot cross")
	}
	n := 1
	if op == opPopMark {
		n = 0
	}
	_, base, err := m.operands(n, 0)
	if err != nil {
		return err
	}
	m.stack = m.stack[:base]
	return nil
}
