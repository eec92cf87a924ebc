package unpickle

import "strings"

// stackGlobal resolves module and name, which lie on the stack as text, by the table of classes.
func (m *machine) stackGlobal() error {
	items, base, err := m.operands(2, 0)
	if err != nil {
		return err
	}
	if items[0].kind() != kindStr || items[1].kind() != kindStr {
		return m.malformed("a class whose name is no text")
	}
	module, name := m.text(items[0]), m.text(items[1])
	if len(module) > maxName || len(name) > maxName {
		return m.malformed("a class whose name is %d bytes long", max(len(module), len(name)))
	}
	var buf [64]byte
	key := append(append(append(buf[:0], module...), 0), name...)
	i, listed := classIndex[string(key)]
	m.stack = m.stack[:base]
	switch {
	case listed && classes[i].kind == kindException && m.mode != Objects && !(m.exceptions && classes[i].name == "Exception"),
		listed && m.mode == Primitives && !classes[i].primitive,
		!listed && m.mode != Objects:
		return m.refuse(shownName(module, name), "")
	case listed && classes[i].kind == kindEllipsis:
		m.stack = append(m.stack, pack(kindEllipsis, m.at))
	case listed:
		m.stack = append(m.stack, pack(kindClass, i))
	default:
		i, known := m.globalIndex[string(key)]
		if !known {
			if err := m.checkGlobal(string(module), string(name)); err != nil {
				return err
			}
			if m.globalIndex == nil {
				m.globalIndex = map[string]int{}
			}
			i = len(m.globals)
			m.globals = append(m.globals, global{string(module), string(name)})
			m.globalIndex[string(key)] = i
		}
		m.trace.lookedUp(m, string(module), string(name))
		m.stack = append(m.stack, pack(kindGlobal, i))
	}
	return nil
}

// maxName is how long the name of a module or of a class may be.
const maxName = 512

// shownName is a dotted name for a message: the sender chose it.
func shownName(module, name []byte) string {
	q := quote([]byte(string(module) + "." + string(name)))
	return strings.Trim(q, "'")
}

// reduce runs REDUCE: a call of a listed class with arguments of its grammar.
func (m *machine) reduce() error {
	items, base, err := m.operands(2, 0)
	if err != nil {
		return err
	}
	callee, args := items[0], items[1]
	if k := args.kind(); k != kindTuple && k != kindSpecialTup {
		return m.malformed("a call with %s for arguments", m.typeName(args))
	}
	if callee.kind() == kindClass {
		c := &classes[callee.ref()]
		if c.grammar != nil && c.grammar(m, m.args(args)) {
			return m.made(c, base, args)
		}
		if m.mode != Objects {
			return m.refuseAt(base, "a call of "+c.module+"."+c.name, "in a form that CPython does not dump")
		}
		if err := m.offGrammar(c, base, args); err != nil {
			return err
		}
	}
	if callee.kind() == kindZoneMaker && m.zoneArgs(m.args(args)) {
		m.leaf(kindZone, base, args)
		return nil
	}
	return m.object(callee, base, args)
}

// made replaces a call by what it gives.
func (m *machine) made(c *class, base int, args word) error {
	switch c.kind {
	case kindZoneMaker:
		m.stack = append(m.stack[:base], pack(kindZoneMaker, int(m.stack[base].ref())))
		return nil
	case kindOrderedDict, kindDefaultDict, kindDeque:
		w := m.newNode(c.kind)
		m.extra += extra[c.kind]
		m.trace.became(w, m.stack[base], args)
		m.stack = append(m.stack[:base], w)
		return nil
	}
	w := m.leaf(c.kind, base, args)
	if c.kind == kindDateTime || c.kind == kindTime {
		if m.node(args).n == 2 {
			m.node(w).flags |= flagAware
		}
	}
	depth := int(m.node(args).depth)
	return m.deepen(w, depth)
}

// leaf pushes a value that is known by its arguments.
func (m *machine) leaf(k kind, base int, args word) word {
	w := m.newNode(k)
	m.extra += extra[k]
	m.work += making[k]
	m.trace.became(w, m.stack[base], args)
	n, a := m.node(w), m.node(args)
	n.start, n.n = a.start, a.n
	m.stack = append(m.stack[:base], w)
	return w
}

// object is a call in mode Objects whose result is not known: of a class or function that passed checkGlobal.
func (m *machine) object(callee word, base int, args word) error {
	if m.mode != Objects {
		return m.malformed("a call of %s", m.typeName(callee))
	}
	if k := callee.kind(); m.guard && k != kindClass && k != kindGlobal {
		return m.refuseGadget(base, "a call of "+m.typeName(callee), "which the stream itself made")
	}
	depth, err := m.contained(m.args(args), base)
	if err != nil {
		return err
	}
	w := m.newNode(kindObject)
	m.extra += extra[kindObject]
	m.trace.became(w, callee, args)
	m.stack = append(m.stack[:base], w)
	return m.deepen(w, depth)
}

// newObj runs NEWOBJ (cls.__new__(cls, *args)): a UUID, or in mode Objects any class. With n 3 it is NEWOBJ_EX, which has keyword
// arguments on top.
func (m *machine) newObj(n int) error {
	items, base, err := m.operands(n, 0)
	if err != nil {
		return err
	}
	callee, args := items[0], items[1]
	if k := args.kind(); k != kindTuple && k != kindSpecialTup {
		return m.malformed("NEWOBJ with %s for arguments", m.typeName(args))
	}
	if n == 2 && callee.kind() == kindClass && classes[callee.ref()].kind == kindUUID && m.node(args).n == 0 {
		shell := m.newNode(kindUUIDShell)
		m.node(shell).start = uint32(len(m.memo))
		m.stack = append(m.stack[:base], shell)
		return nil
	}
	if m.mode != Objects {
		return m.refuseAt(base, m.typeName(callee), "made in a form that CPython does not dump")
	}
	if k := callee.kind(); k != kindClass && k != kindGlobal {
		return m.malformed("NEWOBJ of %s", m.typeName(callee))
	}
	if callee.kind() == kindClass {
		if err := m.offGrammar(&classes[callee.ref()], base, args); err != nil {
			return err
		}
	}
	return m.object(callee, base, args)
}

// offGrammar judges, in mode Objects, a listed class that is called in a form that is not its own. Such calls cost or reach what the
// grammars keep out (a Fraction of "1e99999999", bytes of 2^40), so the guard refuses them, but for what may hold objects of the application:
// a defaultdict by its factory, a time by its tzinfo, a slice, an exception.
func (m *machine) offGrammar(c *class, base int, args word) error {
	if err := m.checkGlobal(c.module, c.name); err != nil || !m.guard {
		return err
	}
	a := m.args(args)
	switch c.kind {
	case kindException:
		return nil
	case kindSlice:
		if len(a) == 3 {
			return nil
		}
	case kindDefaultDict:
		if len(a) == 1 && a[0].kind() == kindGlobal {
			return nil
		}
	case kindDateTime, kindTime:
		if len(a) == 2 && a[1].kind() == kindObject {
			whole := a[:1]
			if c.grammar(m, whole) {
				return nil
			}
		}
	}
	return m.refuseGadget(base, "a call of "+c.module+"."+c.name, "in a form that CPython does not dump")
}

// build runs BUILD: the state of a UUID, or in mode Objects that of an object.
func (m *machine) build() error {
	items, base, err := m.operands(2, 0)
	if err != nil {
		return err
	}
	target, state := items[0], items[1]
	if target.kind() == kindUUIDShell {
		number, ok := m.uuidState(state)
		if !ok && m.trace != nil {
			number = pack(kindInt, 0)
		} else if !ok {
			return m.refuseAt(base, "a uuid.UUID", "in a form that CPython does not dump")
		}
		// What lies between its two instructions is looked through, which a stream may make long.
		if m.work += int64(len(m.memo)) - int64(m.node(target).start); m.overworked() {
			return m.over("UUIDs that would take too long to build", m.lim.HashWork, "steps")
		}
		m.finishUUID(base, number)
		return nil
	}
	if m.mode != Objects {
		return m.refuseAt(base, m.typeName(target), "with a state")
	}
	switch k := target.kind(); {
	case k == kindObject, k == kindException:
	case m.trace != nil: // refused already; what it would do to the value is all the same
		m.stack = m.stack[:base+1]
		return nil
	default:
		return m.refuseAt(base, m.typeName(target), "with a state")
	}
	depth, err := m.contained(items[1:], base+1)
	if err != nil {
		return err
	}
	m.trace.state(target, state)
	m.stack = m.stack[:base+1]
	return m.deepen(target, depth)
}

// finishUUID turns the shell at base into a value, on the stack and where the memo has it since NEWOBJ.
func (m *machine) finishUUID(base int, number word) {
	shell := m.stack[base]
	done := pack(kindUUID, int(shell.ref()))
	m.trace.became(done, shell)
	n := m.node(shell)
	for i := int(n.start); i < len(m.memo); i++ {
		if m.memo[i] == shell {
			m.memo[i] = done
		}
	}
	m.work += making[kindUUID]
	n.kind, n.start, n.n = kindUUID, uint32(len(m.items)), 1
	m.items = append(m.items, number)
	m.stack = append(m.stack[:base], done)
}
