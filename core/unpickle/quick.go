package unpickle

// The instructions that put values together, in the forms that make up most streams: a list that is no longer to be referred to, a
// dict whose keys are texts or small integers, a tuple of values. What is in any way else is left to the general functions of
// compound.go, which say what is wrong with it; nothing has been changed then. The same streams go through both in
// TestQuickIsTheSame.

// quick runs op on the stack st and returns its new height; or it does nothing.
func (m *machine) quick(op byte, st []word) (height int, ok bool) {
	fence := m.fence
	if m.general || m.trace != nil {
		return 0, false
	}
	switch op {
	case opTuple1, opTuple2, opTuple3:
		base := len(st) - 1 - int(op-opTuple1)
		if base < fence {
			return 0, false
		}
		return m.quickTuple(st, base)
	case opTuple:
		if len(m.marks) == 0 {
			return 0, false
		}
		if height, ok = m.quickTuple(st, fence); ok {
			m.unmark()
		}
		return height, ok
	case opReduce:
		if len(st)-2 < fence {
			return 0, false
		}
		return m.quickReduce(st)
	case opAppend:
		if len(st)-2 < fence {
			return 0, false
		}
		return m.quickAppend(st, len(st)-1)
	case opAppends:
		if fence-1 < m.outerFence() {
			return 0, false
		}
		if height, ok = m.quickAppend(st, fence); ok {
			m.unmark()
		}
		return height, ok
	case opSetItem:
		if len(st)-3 < fence {
			return 0, false
		}
		return m.quickSetItems(st, len(st)-2)
	case opSetItems:
		if fence-1 < m.outerFence() {
			return 0, false
		}
		if height, ok = m.quickSetItems(st, fence); ok {
			m.unmark()
		}
		return height, ok
	}
	return 0, false
}

// outerFence is the height of the mark around the innermost one; above every stack, where there is none at all.
func (m *machine) outerFence() int {
	switch n := len(m.marks); n {
	case 0:
		return m.lim.Stack + 1
	case 1:
		return 0
	default:
		return m.marks[n-2]
	}
}

// deepest is the depth of the deepest of items; ok is false where one is no plain value, or too deep for a container around it.
func (m *machine) deepest(items []word) (depth int, ok bool) {
	for _, w := range items {
		k := w.kind()
		if k <= lastScalar {
			continue
		}
		if k > lastValue || k == kindException {
			return 0, false
		}
		depth = max(depth, int(m.nodes[w.ref()].depth))
	}
	return depth, depth < m.lim.Depth
}

func (m *machine) quickTuple(st []word, base int) (height int, ok bool) {
	items := st[base:]
	depth, ok := m.deepest(items)
	if !ok || len(items) == 0 {
		return 0, false
	}
	w := m.newTuple(kindTuple, items)
	m.nodes[len(m.nodes)-1].depth = uint16(depth + 1)
	st[base] = w
	return base + 1, true
}

// quickReduce makes a value of a listed class from arguments of its grammar.
func (m *machine) quickReduce(st []word) (height int, ok bool) {
	base := len(st) - 2
	callee, args := st[base], st[base+1]
	if callee.kind() != kindClass || args.kind() != kindTuple {
		return 0, false
	}
	c, n := &classes[callee.ref()], m.nodes[args.ref()]
	if !c.leaf || int(n.depth) >= m.lim.Depth || !c.grammar(m, m.items[n.start:n.start+n.n]) {
		return 0, false
	}
	flags := uint8(0)
	if n.n == 2 && (c.kind == kindDateTime || c.kind == kindTime) {
		flags = flagAware
	}
	m.extra += extra[c.kind]
	m.work += making[c.kind]
	m.nodes = append(m.nodes, node{kind: c.kind, flags: flags, start: n.start, n: n.n, depth: n.depth + 1})
	st[base] = pack(c.kind, len(m.nodes)-1)
	return base + 1, true
}

func (m *machine) quickAppend(st []word, base int) (height int, ok bool) {
	w := st[base-1]
	if w.kind() != kindList {
		return 0, false
	}
	depth, ok := m.deepest(st[base:])
	n := &m.nodes[w.ref()]
	if !ok || n.flags&flagFrozen != 0 {
		return 0, false
	}
	n.n += uint32(len(st) - base)
	n.depth = max(n.depth, uint16(depth+1))
	return base, true
}

func (m *machine) quickSetItems(st []word, base int) (height int, ok bool) {
	w := st[base-1]
	items := st[base:]
	if w.kind() != kindDict || len(items)%2 != 0 {
		return 0, false
	}
	n := &m.nodes[w.ref()]
	if n.flags&flagFrozen != 0 {
		return 0, false
	}
	record := int(n.n)+len(items)/2 > unrecorded
	plain := true // keys that cost nothing
	for i := 0; i < len(items); i += 2 {
		k := items[i].kind()
		if items[i]&longScalar != 0 || k != kindStr && (k != kindInt || record) {
			plain = false
			break
		}
	}
	depth, ok := m.deepest(items)
	if !ok {
		return 0, false
	}
	if !plain {
		if _, f := m.countKeys(w, items, 2); f != known {
			return 0, false
		}
	}
	m.small(n, items)
	n.n += uint32(len(items) / 2)
	n.depth = max(n.depth, uint16(depth+1))
	return base, true
}

// small keeps the items of a dict that has no more.
func (m *machine) small(n *node, items []word) {
	if n.n == 0 && len(items) <= 2*smallDict {
		n.start = uint32(len(m.items))
		m.items = append(m.items, items...)
	}
}

func (m *machine) emptyTuple() word {
	m.nodes = append(m.nodes, node{kind: kindTuple, keys: 1, flags: flagRandom})
	return pack(kindTuple, len(m.nodes)-1)
}

// newTuple notes what a tuple holds, and what it is as a key.
func (m *machine) newTuple(k kind, items []word) word {
	// A sender aims numbers; beside them a text does not help, since it may be the same in all keys.
	size, hashed, flags := int64(1), true, flagRandom
	for _, w := range items {
		cost := int64(1)
		switch k := w.kind(); {
		case w&longScalar != 0:
			hashed = false
		case k == kindInt || k == kindFloat:
			flags = flagKnown
		case k <= kindBytes: // None, bool, str, bytes
		case k == kindTuple:
			n := &m.nodes[w.ref()]
			cost = int64(n.keys)
			if n.flags&flagKnown != 0 {
				flags = flagKnown
			}
			hashed = hashed && n.flags&(flagKnown|flagRandom) != 0
		default:
			hashed = false
		}
		size += cost
	}
	if !hashed {
		flags = 0
	}
	m.nodes = append(m.nodes, node{
		kind: k, flags: flags, start: uint32(len(m.items)), n: uint32(len(items)), keys: int32(min(size, maxSize)),
	})
	m.items = append(m.items, items...)
	return pack(k, len(m.nodes)-1)
}
