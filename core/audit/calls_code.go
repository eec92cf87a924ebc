package audit

// dynamic-code: text becomes code. The events `compile` and `exec` belong to the eval layer: the guard asks about them
// by kind, and the policy by these names.
var codeCalls = []Call{
	{Name: "builtins.eval", Aliases: []string{"eval"}, Category: DynamicCode, Event: "exec", Why: "runs an expression"},
	{Name: "builtins.exec", Aliases: []string{"exec", "code.interact", "code.InteractiveInterpreter", "code.InteractiveInterpreter.runcode", "code.InteractiveInterpreter.runsource",
		"code.InteractiveConsole"}, Category: DynamicCode, Event: "exec", Why: "runs statements"},
	{Name: "builtins.compile", Aliases: []string{"compile", "codeop.compile_command", "codeop.Compile", "codeop.CommandCompiler"}, Category: DynamicCode, Event: "compile", Why: "makes code"},
	{Name: "code.__new__", Aliases: []string{"types.CodeType", "types.CodeType.replace"}, Category: DynamicCode, Event: "code.__new__", StdlibFree: true, Why: "code from bytes: unchecked, it can crash or forge objects"},
	{Name: "function.__new__", Aliases: []string{"types.FunctionType"}, Category: DynamicCode, Event: "function.__new__", StdlibFree: true, Why: "code with globals of the caller's choice"},
	{Name: "function.__code__", Aliases: []string{"types.FunctionType.__code__"}, Category: DynamicCode, Slot: true, StdlibFree: true, Why: "a function gets other code, with the globals it has"},
	{Name: "_imp._fix_co_filename", Category: DynamicCode, Shim: []Target{{"_imp", "_fix_co_filename"}}, StdlibFree: true, Why: "no event; code that passes for a file of the standard library"},
	{Name: "runpy.run_path", Category: DynamicCode, Shim: []Target{{"runpy", "run_path"}}, Outer: true, StdlibFree: true, Why: "runs a file; multiprocessing loads the main file so"},
	{Name: "runpy.run_module", Category: DynamicCode, Shim: []Target{{"runpy", "run_module"}}, Outer: true, StdlibFree: true, Why: "runs a module that data names"},
	{Name: "site.addsitedir", Category: DynamicCode, Shim: []Target{{"site", "addsitedir"}}, StdlibFree: true, Why: "runs the lines of .pth files"},
	{Name: "site.addpackage", Category: DynamicCode, Shim: []Target{{"site", "addpackage"}}, StdlibFree: true, Why: "runs the lines of a .pth file"},
	{Name: "site.main", Category: DynamicCode, Shim: []Target{{"site", "main"}}, StdlibFree: true, Why: "runs the lines of .pth files"},
}

// deserialization: data names what is built.
var dataCalls = []Call{
	{Name: "pickle.find_class", Aliases: []string{"pickle.loads", "pickle.load", "pickle.Unpickler", "_pickle.loads", "_pickle.load", "_pickle.Unpickler", "pickle._loads", "pickle._load", "pickle._Unpickler"},
		Category: Deserialization, Event: "pickle.find_class", Shim: []Target{{"pickle", "_Unpickler.load"}, {"pickle", "_loads"}, {"pickle", "_load"}},
		Why: "a pickle names any function and calls it; plain values raise no event. The unpickler written in Python looks names up in its own frame, so it is shimmed"},
	{Name: "marshal.loads", Category: Deserialization, Event: "marshal.loads", Why: "code objects from bytes; the import system reads .pyc files so"},
	{Name: "marshal.load", Category: Deserialization, Event: "marshal.load", Why: "code objects from a file"},
	{Name: "_imp.get_frozen_object", Category: Deserialization, Shim: []Target{{"_imp", "get_frozen_object"}}, StdlibFree: true, Why: "no event; code objects from bytes"},
	{Name: "_imp.init_frozen", Category: Deserialization, Shim: []Target{{"_imp", "init_frozen"}}, Why: "no event; runs a frozen module that no import rule has seen"},
	{Name: "shelve.open", Aliases: []string{"shelve.Shelf", "shelve.DbfilenameShelf"}, Category: Deserialization, Shim: []Target{{"shelve", "open"}}, Outer: true, Why: "a file of pickles"},
	{Name: "dbm.open", Category: Deserialization, Shim: []Target{{"dbm", "open"}}, StdlibFree: true, Why: "opens its files in C"},
}
