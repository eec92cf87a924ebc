// Package unpickle decides whether a pickle that a sandboxed process sent may be loaded by its parent.
//
//	if err := unpickle.Validate(data, unpickle.DataOnly, true, unpickle.Limits{}); err != nil {
//		return err // *RefusedError: type, path inside the value, line to add; *MalformedError: not a pickle
//	}
//
// The child chose every byte. Validate trusts none of them, executes nothing, imports nothing, and allocates no more
// than a fixed multiple of the stream. A stream that passes is one that CPython's own unpickler rebuilds to a value of
// the listed types, with no code of the stream's choosing run on the way: each type has the fixed opcode and argument
// grammar that CPython 3.11 to 3.13 dumps at protocol 5 (testdata holds what the three dump). There is no
// general REDUCE, NEWOBJ, BUILD or getattr in the modes DataOnly and Primitives.
//
// # What is refused although pickle would load it
//
// The text opcodes of protocols 0 and 1 (GLOBAL, INST and OBJ among them), extension codes, persistent ids, DUP, POP, memo
// slots out of order, a container that changes after something else refers to it (that is how every cycle is built), values
// that the constructors would accept but that CPython's pickler never writes (a date of day 255, a Fraction from a string), and
// whatever passes a budget of Limits.
//
// # Buffers
//
// Large bytes and bytearrays may come beside the stream (ValidateWith): the unpickler is given the very objects, so NEXT_BUFFER
// pushes bytes or a bytearray and nothing else, each once, all of them. Their content is data, whatever it is.
//
// # Keys
//
// A dict or a set hashes its keys while it is loaded. CPython's hash of numbers, and of what is made of them (tuples, frozensets,
// UUIDs, networks, IPv6 addresses), can be computed by the sender, so the table that CPython would build is replayed with those hashes,
// and the probes are counted, where a dict has so many keys that it could matter. The hash of a text is keyed with a secret,
// but a sender who writes the same text in every key need not know it: in its place stands a hash with a secret of this process.
// Keys of other types whose hash can be chosen (ranges, moments in a zone) are counted as if all of them collided. The size of a
// key is its expanded size: a tuple that is reached twice counts twice. What Python's own code makes, hashes and compares counts more.
//
// # ZoneInfo
//
// A zoneinfo.ZoneInfo is dumped as getattr(ZoneInfo, "_unpickle")(key, from_cache). That one form is accepted, literally:
// getattr with any other operand is refused, and so is _unpickle with anything but a relative key of the time zone
// database's alphabet. Loading it reads the parent's own time zone files.
//
// # Why this is not a gopickle.Unpickler
//
// nlpodyssey/gopickle's machine executes as it reads and is meant for trusted files: FRAME and every counted string
// allocate what the stream says before a byte is read (an 11-byte stream asks for 2^62 bytes), an empty LONG1 and the
// opcode 0xff index out of range, DUP and memo references share Go values without any bound on expansion. So this
// package has its own machine over packed words and takes from gopickle the protocol ceiling and, in the tests, a second
// opinion: what Validate accepts in mode Primitives gopickle must load too. TestGopickle keeps these facts true.
package unpickle
