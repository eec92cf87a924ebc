package audit

// native: machine code and raw memory. `import ctypes` opens the program itself (dlopen(None)), so that event is free
// where the standard library raises it; a library is opened through CDLL's constructor, which is shimmed once ctypes
// stands and is never free.
//
// ctypes' types can forge pointers without any event (a Union of an integer and a pointer): whoever may import _ctypes
// has raw memory. Docs grade the import so, and the OS layer holds what follows.
var nativeCalls = []Call{
	{Name: "ctypes.CDLL", Aliases: []string{"ctypes.PyDLL", "ctypes.WinDLL", "ctypes.OleDLL", "ctypes.cdll.LoadLibrary", "ctypes.LibraryLoader"}, Category: Native,
		Shim: []Target{{"ctypes", "CDLL.__init__"}}, Outer: true, Why: "loads a library and runs its constructors"},
	{Name: "ctypes.dlopen", Aliases: []string{"_ctypes.dlopen", "_ctypes.LoadLibrary"}, Category: Native, Event: "ctypes.dlopen", Why: "the C function behind CDLL"},
	{Name: "ctypes.dlsym", Aliases: []string{"ctypes.pythonapi"}, Category: Native, Event: "ctypes.dlsym", Why: "a function of a library, ready to be called"},
	{Name: "_ctypes.dlsym", Category: Native, Event: "ctypes.dlsym/handle", Why: "the same by handle"},
	{Name: "_ctypes.call_function", Aliases: []string{"_ctypes.call_cdeclfunction"}, Category: Native, Event: "ctypes.call_function", Why: "calls an address"},
	{Name: "ctypes.CFUNCTYPE", Category: Native, Shim: []Target{{"ctypes", "CFUNCTYPE"}}, Why: "no event; makes an address callable"},
	{Name: "ctypes.PYFUNCTYPE", Category: Native, Shim: []Target{{"ctypes", "PYFUNCTYPE"}}, Why: "no event; makes an address callable"},
	{Name: "ctypes.cast", Category: Native, Shim: []Target{{"ctypes", "cast"}}, Why: "no event; an integer becomes a pointer"},
	{Name: "ctypes.from_address", Aliases: []string{"ctypes.in_dll"}, Category: Native, Event: "ctypes.cdata", Why: "memory at an address, read and write"},
	{Name: "ctypes.string_at", Category: Native, Event: "ctypes.string_at", Why: "reads memory at an address"},
	{Name: "ctypes.wstring_at", Category: Native, Event: "ctypes.wstring_at", Why: "reads memory at an address"},
	{Name: "_ctypes.PyObj_FromPtr", Category: Native, Event: "ctypes.PyObj_FromPtr", Why: "an object at an address"},
	{Name: "_ctypes._unpickle", Category: Native, Shim: []Target{{"_ctypes", "_unpickle"}}, Why: "no event; pointers from bytes"},
	{Name: "_ctypes.dlclose", Category: Native, Shim: []Target{{"_ctypes", "dlclose"}}, Why: "no event; takes code away under its users"},
	{Name: "_ctypes.Py_INCREF", Category: Native, Shim: []Target{{"_ctypes", "Py_INCREF"}}, Why: "no event; breaks reference counts"},
	{Name: "_ctypes.Py_DECREF", Category: Native, Shim: []Target{{"_ctypes", "Py_DECREF"}}, Why: "no event; frees what is in use"},
	{Name: "cffi.FFI.dlopen", Aliases: []string{"cffi.api.FFI.dlopen", "cffi.FFI"}, Category: Native, Shim: []Target{{"cffi.api", "FFI.dlopen"}}, Outer: true, Why: "no event"},
	{Name: "cffi.FFI.verify", Aliases: []string{"cffi.api.FFI.verify"}, Category: Native, Shim: []Target{{"cffi.api", "FFI.verify"}}, Why: "no event; compiles and loads C"},
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
	{Name: "_testcapi.run_in_subinterp", Category: Native, Event: "cpython.PyInterpreterState_New", Why: "a fresh interpreter, by whatever way"},
}
