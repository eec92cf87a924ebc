package unpickle

// class is one row: a name that a stream may look up, the kind that calling it gives, and the grammar of its arguments.
type class struct {
	module, name string
	kind         kind
	primitive    bool // also in mode Primitives
	grammar      func(m *machine, args []word) bool
	leaf         bool // a call gives a value that is known by its arguments, whatever the mode
}

// classes is everything that a stream of the modes Primitives and DataOnly can look up, as CPython 3.11, 3.12 and 3.13 dump it at
// protocol 5. A new type is one row here, one kind, and one line of testdata/corpus.py.
var classes []class

// listedClasses is that table; a function, since its grammars refer to classes.
func listedClasses() []class {
	return []class{
		{"builtins", "complex", kindComplex, true, (*machine).complexArgs, false},
		{"builtins", "range", kindRange, false, (*machine).rangeArgs, false},
		{"builtins", "slice", kindSlice, false, (*machine).sliceArgs, false},
		{"builtins", "Ellipsis", kindEllipsis, false, nil, false}, // the value itself: never called
		{"pathlib", "PosixPath", kindPath, false, (*machine).pathArgs, false},
		{"pathlib", "PurePosixPath", kindPath, false, (*machine).pathArgs, false},
		{"pathlib", "PureWindowsPath", kindPath, false, (*machine).pathArgs, false},
		{"pathlib._local", "PosixPath", kindPath, false, (*machine).pathArgs, false}, // 3.13
		{"pathlib._local", "PurePosixPath", kindPath, false, (*machine).pathArgs, false},
		{"pathlib._local", "PureWindowsPath", kindPath, false, (*machine).pathArgs, false},
		{"datetime", "date", kindDate, false, (*machine).dateArgs, false},
		{"datetime", "datetime", kindDateTime, false, (*machine).dateTimeArgs, false},
		{"datetime", "time", kindTime, false, (*machine).timeArgs, false},
		{"datetime", "timedelta", kindTimedelta, false, (*machine).timedeltaArgs, false},
		{"datetime", "timezone", kindTimezone, false, (*machine).timezoneArgs, false},
		{"builtins", "getattr", kindZoneMaker, false, (*machine).zoneMakerArgs, false}, // of ZoneInfo, "_unpickle" alone
		{"zoneinfo", "ZoneInfo", kindZone, false, nil, false},                          // only getattr's operand
		{"time", "struct_time", kindStructTime, false, (*machine).structTimeArgs, false},
		{"decimal", "Decimal", kindDecimal, false, (*machine).decimalArgs, false},
		{"fractions", "Fraction", kindFraction, false, (*machine).fractionArgs, false},
		{"uuid", "UUID", kindUUID, false, nil, false}, // by NEWOBJ and BUILD
		{"ipaddress", "IPv4Address", kindAddress, false, (*machine).ipv4AddressArgs, false},
		{"ipaddress", "IPv6Address", kindAddress, false, (*machine).ipv6AddressArgs, false},
		{"ipaddress", "IPv4Network", kindNetwork, false, (*machine).ipv4NetworkArgs, false},
		{"ipaddress", "IPv6Network", kindNetwork, false, (*machine).ipv6NetworkArgs, false},
		{"ipaddress", "IPv4Interface", kindInterface, false, (*machine).ipv4InterfaceArgs, false},
		{"ipaddress", "IPv6Interface", kindInterface, false, (*machine).ipv6InterfaceArgs, false},
		{"collections", "OrderedDict", kindOrderedDict, false, (*machine).noArgs, false},
		{"collections", "Counter", kindCounter, false, (*machine).counterArgs, false},
		{"collections", "deque", kindDeque, false, (*machine).dequeArgs, false},
		{"collections", "defaultdict", kindDefaultDict, false, (*machine).defaultDictArgs, false},
		// Only as the factory of a defaultdict:
		{"builtins", "bool", kindClass, false, nil, false},
		{"builtins", "int", kindClass, false, nil, false},
		{"builtins", "float", kindClass, false, nil, false},
		{"builtins", "str", kindClass, false, nil, false},
		{"builtins", "bytes", kindClass, false, nil, false},
		{"builtins", "bytearray", kindClass, false, nil, false},
		{"builtins", "list", kindClass, false, nil, false},
		{"builtins", "tuple", kindClass, false, nil, false},
		{"builtins", "dict", kindClass, false, nil, false},
		{"builtins", "set", kindClass, false, nil, false},
		{"builtins", "frozenset", kindClass, false, nil, false},
	}
}

// exceptionClasses are the builtin exceptions that mode Objects lets through: their constructors keep their arguments and do nothing
// else. BaseExceptions that are no Exception would end the caller's program.
var exceptionClasses = []string{
	"ArithmeticError", "AssertionError", "AttributeError", "BlockingIOError", "BrokenPipeError", "BufferError", "ChildProcessError",
	"ConnectionAbortedError", "ConnectionError", "ConnectionRefusedError", "ConnectionResetError", "EOFError", "Exception",
	"FileExistsError", "FileNotFoundError", "FloatingPointError", "ImportError", "IndentationError", "IndexError",
	"InterruptedError", "IsADirectoryError", "KeyError", "LookupError", "MemoryError", "ModuleNotFoundError", "NameError",
	"NotADirectoryError", "NotImplementedError", "OSError", "OverflowError", "PermissionError", "ProcessLookupError",
	"RecursionError", "ReferenceError", "RuntimeError", "StopAsyncIteration", "StopIteration", "SyntaxError", "SystemError",
	"TabError", "TimeoutError", "TypeError", "UnboundLocalError", "UnicodeDecodeError", "UnicodeEncodeError", "UnicodeError",
	"UnicodeTranslateError", "ValueError", "ZeroDivisionError",
}

// classIndex finds rows by module, NUL, name.
var classIndex map[string]int

func init() {
	classes = listedClasses()
	for _, name := range exceptionClasses {
		classes = append(classes, class{"builtins", name, kindException, false, (*machine).exceptionArgs, false})
	}
	classIndex = make(map[string]int, len(classes))
	for i := range classes {
		c := &classes[i]
		switch c.kind {
		case kindZoneMaker, kindOrderedDict, kindDefaultDict, kindDeque, kindException:
		default:
			c.leaf = c.grammar != nil
		}
		classIndex[c.module+"\x00"+c.name] = i
	}
}

// global is what a stream of mode Objects looks up beyond the table.
type global struct{ module, name string }

// typeName names a value as a person would look it up.
func (m *machine) typeName(w word) string {
	switch k := w.kind(); k {
	case kindClass, kindZoneMaker:
		c := classes[w.ref()]
		return "the class or function " + c.module + "." + c.name
	case kindGlobal:
		g := m.globals[w.ref()]
		return "the class or function " + g.module + "." + g.name
	case kindSpecialTup:
		for _, item := range m.args(w) {
			if item.kind() > lastValue {
				return m.typeName(item)
			}
		}
		return "a class"
	default:
		return kindNames[k]
	}
}

var kindNames = map[kind]string{
	kindNone: "None", kindBool: "a bool", kindInt: "an int", kindFloat: "a float", kindStr: "a str", kindBytes: "bytes",
	kindEllipsis: "Ellipsis", kindByteArray: "a bytearray", kindTuple: "a tuple", kindList: "a list", kindDict: "a dict",
	kindSet: "a set", kindFrozenSet: "a frozenset", kindOrderedDict: "an OrderedDict", kindDefaultDict: "a defaultdict",
	kindCounter: "a Counter", kindDeque: "a deque", kindComplex: "a complex", kindRange: "a range", kindSlice: "a slice",
	kindPath: "a path", kindDate: "a date", kindDateTime: "a datetime", kindTime: "a time", kindTimedelta: "a timedelta",
	kindTimezone: "a timezone", kindZone: "a ZoneInfo", kindStructTime: "a struct_time", kindDecimal: "a Decimal",
	kindFraction: "a Fraction", kindUUID: "a UUID", kindAddress: "an IP address", kindNetwork: "an IP network",
	kindInterface: "an IP interface", kindException: "an exception", kindObject: "an object of the application",
	kindUUIDShell: "an unfinished UUID",
}
