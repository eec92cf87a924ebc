package unpickle

// Buffer is a large bytes object or bytearray that came beside the stream (PEP 574).
type Buffer struct {
	Size     int64
	Writable bool // a bytearray
}

// nextBuffer pushes what the unpickler takes from its buffers: the object itself, no copy and no view of it.
func (m *machine) nextBuffer() error {
	if len(m.buffers) == 0 {
		return m.malformed("the instruction NEXT_BUFFER, without buffers")
	}
	k := kindBytes
	if m.buffers[0].Writable {
		if k = kindByteArray; m.mode == Primitives {
			return m.refuse("a bytearray", "")
		}
	}
	m.buffers = m.buffers[1:]
	m.stack = append(m.stack, pack(k, m.at)|longScalar)
	return nil
}

// readOnly accepts READONLY_BUFFER where it does nothing: on bytes that came as a buffer. Of a bytearray it would make a memoryview.
func (m *machine) readOnly() error {
	if len(m.stack) <= m.fence {
		return m.malformed("READONLY_BUFFER on nothing")
	}
	w := m.stack[len(m.stack)-1]
	if w.kind() != kindBytes || m.data[w.ref()] != opNextBuffer {
		return m.malformed("READONLY_BUFFER on %s", m.typeName(w))
	}
	return nil
}
