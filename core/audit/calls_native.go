package audit

// library: who may call the functions of a library has memory anyway.
var library = []string{"ctypes.CDLL", "ctypes.dlsym"}

// native: machine code and raw memory. `import ctypes` opens the program itself (dlopen(None)), so that event is free
// where the standard library raises it; a library is opened through CDLL's constructor, which is shimmed once ctypes
// stands and is never free.
//
// ctypes' types forge pointers without any event (a Union of an integer and a pointer), so the guard stands before the types
// themselves: an instance of one that can hold an address, a field, a pointer that is followed and a function that is called
// are asked for. Numbers, arrays of numbers and classes are free.
var nativeCalls = []Call{
	{Name: "ctypes.CDLL", Aliases: []string{"ctypes.PyDLL", "ctypes.WinDLL", "ctypes.OleDLL", "ctypes.cdll.LoadLibrary", "ctypes.LibraryLoader"}, Category: Native,
		Shim: []Target{{"ctypes", "CDLL.__init__"}}, Outer: true, Why: "loads a library and runs its constructors"},
	{Name: "ctypes.dlopen", Aliases: []string{"_ctypes.dlopen", "_ctypes.LoadLibrary"}, Category: Native, Event: "ctypes.dlopen", Why: "the C function behind CDLL"},
	{Name: "ctypes.dlsym", Aliases: []string{"ctypes.pythonapi"}, Category: Native, Event: "ctypes.dlsym", Why: "a function of a library, ready to be called"},
	{Name: "_ctypes.dlsym", Category: Native, Event: "ctypes.dlsym/handle", Why: "the same by handle"},
	{Name: "_ctypes.call_function", Aliases: []string{"_ctypes.call_cdeclfunction"}, Category: Native, Event: "ctypes.call_function", Why: "calls an address"},
	{Name: "ctypes.CFUNCTYPE", Aliases: []string{"ctypes.PYFUNCTYPE"}, Category: Native, Slot: true, WithCalls: library, Why: "a function of an address, or a callback; the class is free"},
	{Name: "ctypes.CFuncPtr", Aliases: []string{"_ctypes.CFuncPtr", "ctypes._CFuncPtr", "ctypes.CDLL._FuncPtr"}, Category: Native, Slot: true, WithCalls: library, Why: "calls what an address leads to"},
	{Name: "ctypes.cast", Category: Native, Shim: []Target{{"ctypes", "cast"}}, Slot: true, WithCalls: library, Why: "no event; an integer becomes a pointer"},
	{Name: "ctypes.memmove", Category: Native, Slot: true, WithCalls: library, Why: "no event; reads and writes any address"},
	{Name: "ctypes.memset", Category: Native, Slot: true, WithCalls: library, Why: "no event; writes any address"},
	{Name: "ctypes.from_address", Aliases: []string{"ctypes.in_dll"}, Category: Native, Event: "ctypes.cdata", WithCalls: library, Why: "memory at an address, read and write"},
	{Name: "ctypes.string_at", Category: Native, Event: "ctypes.string_at", Slot: true, WithCalls: library, Why: "reads memory at an address"},
	{Name: "ctypes.wstring_at", Category: Native, Event: "ctypes.wstring_at", Slot: true, WithCalls: library, Why: "reads memory at an address"},
	{Name: "ctypes.Structure", Aliases: []string{"_ctypes.Structure", "ctypes.BigEndianStructure", "ctypes.LittleEndianStructure"}, Category: Native, Slot: true,
		WithCalls: library, Why: "no event; instances and fields: a field's descriptor takes any object and reads beyond it. The class is free"},
	{Name: "ctypes.Union", Aliases: []string{"_ctypes.Union", "ctypes.BigEndianUnion", "ctypes.LittleEndianUnion"}, Category: Native, Slot: true,
		WithCalls: library, Why: "no event; instances and fields: an integer becomes a pointer. The class is free"},
	{Name: "ctypes.POINTER", Aliases: []string{"ctypes.pointer", "ctypes._Pointer", "_ctypes._Pointer"}, Category: Native, Slot: true, WithCalls: library,
		Why: "no event; instances, items and contents: its bytes can be written like any others. The class is free"},
	{Name: "ctypes.c_char_p", Category: Native, Slot: true, WithCalls: library, Why: "no event; its value is read from an address"},
	{Name: "ctypes.c_wchar_p", Category: Native, Slot: true, WithCalls: library, Why: "no event; its value is read from an address"},
	{Name: "ctypes.c_void_p", Category: Native, Slot: true, WithCalls: library, Why: "no event; an address, to be made a pointer"},
	{Name: "ctypes.py_object", Category: Native, Slot: true, WithCalls: library, Why: "no event; its value is an object at an address"},
	{Name: "ctypes.Array", Aliases: []string{"_ctypes.Array"}, Category: Native, Slot: true, WithCalls: library,
		Why: "no event; arrays of anything but numbers, and classes with a metaclass of the program's own"},
	{Name: "ctypes.resize", Aliases: []string{"_ctypes.resize"}, Category: Native, Shim: []Target{{"_ctypes", "resize"}}, WithCalls: library, Why: "no event; frees memory that a memoryview may still show"},
	{Name: "ctypes.keepalive", Aliases: []string{"_ctypes._CData._objects"}, Category: Native, Slot: true, WithCalls: library, Why: "no event; what is released there is still read and written"},
	{Name: "ctypes.retype", Aliases: []string{"_ctypes._CData.__class__", "_ctypes._CData.__bases__"}, Category: Native, Event: "object.__setattr__", WithCalls: library,
		Why: "an object of ctypes, or a class, becomes another: a number a pointer"},
	{Name: "_ctypes.PyObj_FromPtr", Category: Native, Event: "ctypes.PyObj_FromPtr", Why: "an object at an address"},
	{Name: "_ctypes.dlclose", Category: Native, Shim: []Target{{"_ctypes", "dlclose"}}, Why: "no event; takes code away under its users"},
	{Name: "_ctypes.Py_INCREF", Category: Native, Shim: []Target{{"_ctypes", "Py_INCREF"}}, Why: "no event; breaks reference counts"},
	{Name: "_ctypes.Py_DECREF", Category: Native, Shim: []Target{{"_ctypes", "Py_DECREF"}}, Why: "no event; frees what is in use"},
	{Name: "cffi.FFI.dlopen", Aliases: []string{"cffi.api.FFI.dlopen"}, Category: Native, Shim: []Target{{"cffi.api", "FFI.dlopen"}}, Outer: true, Why: "no event"},
	{Name: "cffi.FFI.verify", Aliases: []string{"cffi.api.FFI.verify"}, Category: Native, Shim: []Target{{"cffi.api", "FFI.verify"}}, Why: "no event; compiles and loads C"},
	{Name: "cffi.FFI.cast", Aliases: []string{"cffi.FFI", "cffi.FFI.new", "cffi.FFI.buffer", "cffi.FFI.memmove", "cffi.FFI.from_buffer", "cffi.FFI.string",
		"cffi.FFI.unpack", "cffi.FFI.addressof", "cffi.FFI.callback", "cffi.FFI.from_handle", "cffi.FFI.new_handle", "_cffi_backend.FFI", "_cffi_backend.Lib"}, Category: Native,
		Shim: []Target{{"_cffi_backend", "cast"}, {"_cffi_backend", "newp"}, {"_cffi_backend", "from_buffer"}, {"_cffi_backend", "memmove"},
			{"_cffi_backend", "string"}, {"_cffi_backend", "unpack"}, {"_cffi_backend", "rawaddressof"}, {"_cffi_backend", "callback"},
			{"_cffi_backend", "from_handle"}, {"_cffi_backend", "newp_handle"}, {"_cffi_backend", "gcp"}},
		Slot: true, WithCalls: []string{"cffi.FFI.dlopen"}, Why: "no event; raw memory and a compiled package's functions. Free to the package's own code, and to the parts that its text names"},
	{Name: "_cffi_backend.load_library", Category: Native, Shim: []Target{{"_cffi_backend", "load_library"}}, Why: "no event"},
	{Name: "_tkinter.create", Aliases: []string{"tkinter.Tk", "tkinter.Tcl"}, Category: Native, Shim: []Target{{"_tkinter", "create"}},
		Why: "no event; an interpreter of Tcl, whose commands start programs and open files"},
	{Name: "_imp.create_dynamic", Category: Native, Shim: []Target{{"_imp", "create_dynamic"}}, StdlibFree: true, Why: "loads an extension from a path; the import system does it for granted imports"},
	{Name: "_imp.exec_dynamic", Category: Native, Shim: []Target{{"_imp", "exec_dynamic"}}, StdlibFree: true, Why: "runs an extension's code again, on a dict of the caller's"},
	{Name: "_imp.exec_builtin", Category: Native, Shim: []Target{{"_imp", "exec_builtin"}}, StdlibFree: true, Why: "the same for a builtin module"},
	{Name: "sqlite3.Connection.enable_load_extension", Category: Native, Event: "sqlite3.enable_load_extension", Why: "SQL may load libraries afterwards"},
	{Name: "sqlite3.Connection.load_extension", Category: Native, Event: "sqlite3.load_extension", Why: "loads a library"},
	{Name: "_xxsubinterpreters.create", Category: Native, Shim: []Target{{"_xxsubinterpreters", "create"}}, Until: "3.12", Why: "a fresh interpreter: its objects are not those of the program, its threads are"},
	{Name: "_interpreters.create", Aliases: []string{"concurrent.interpreters.create", "interpreters.create"}, Category: Native, Shim: []Target{{"_interpreters", "create"}}, Since: "3.13", Why: "a fresh interpreter: its objects are not those of the program, its threads are"},
	{Name: "_testcapi", Aliases: []string{"_testinternalcapi", "_testlimitedcapi", "_testbuffer", "_testclinic", "_testclinic_limited",
		"_testexternalinspection", "_testmultiphase", "_testsinglephase", "_testimportmultiple", "_ctypes_test", "_xxtestfuzz"},
		Category: Native, Slot: true, Why: "CPython's tests of itself, raw memory among them: the import asks for it (bindings/guard/native_import.c)"},
	{Name: "_testcapi.run_in_subinterp", Category: Native, Event: "cpython.PyInterpreterState_New", Why: "a fresh interpreter, by whatever way"},
}
