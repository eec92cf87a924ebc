package audit

// introspection: frames, the heap and hooks lead to objects that were not handed over. Libraries of the standard
// library look at frames for themselves (logging, warnings, namedtuple): that is not charged.
var introspectionCalls = []Call{
	{Name: "sys._getframe", Category: Introspection, Event: "sys._getframe", StdlibFree: true, Why: "locals and globals of every caller"},
	{Name: "inspect.currentframe", Category: Introspection, Shim: []Target{{"inspect", "currentframe"}}, Outer: true, StdlibFree: true, Why: "sys._getframe in the name of the standard library"},
	{Name: "inspect.stack", Category: Introspection, Shim: []Target{{"inspect", "stack"}}, Outer: true, StdlibFree: true, Why: "sys._getframe in the name of the standard library"},
	{Name: "logging.currentframe", Category: Introspection, Shim: []Target{{"logging", "currentframe"}}, Outer: true, StdlibFree: true, Why: "sys._getframe in the name of the standard library"},
	{Name: "sys._current_frames", Category: Introspection, Event: "sys._current_frames", Why: "frames of every thread"},
	{Name: "sys._current_exceptions", Category: Introspection, Event: "sys._current_exceptions", Why: "exceptions, and so frames, of every thread"},
	{Name: "gc.get_objects", Category: Introspection, Event: "gc.get_objects", Why: "every container object"},
	{Name: "gc.get_referrers", Category: Introspection, Event: "gc.get_referrers", Why: "who holds an object"},
	{Name: "gc.get_referents", Category: Introspection, Event: "gc.get_referents", Why: "what an object holds, closures and mapping proxies included"},
	{Name: "sys.settrace", Category: Introspection, Event: "sys.settrace", Why: "sees and changes every frame"},
	{Name: "sys.setprofile", Category: Introspection, Event: "sys.setprofile", Why: "sees every call"},
	{Name: "threading.settrace", Category: Introspection, Shim: []Target{{"threading", "settrace"}}, Why: "no event; the same for threads to come"},
	{Name: "threading.setprofile", Category: Introspection, Shim: []Target{{"threading", "setprofile"}}, Why: "no event; the same for threads to come"},
	{Name: "threading.settrace_all_threads", Category: Introspection, Shim: []Target{{"threading", "settrace_all_threads"}}, Outer: true, Since: "3.12", Why: "its event is that of settrace"},
	{Name: "threading.setprofile_all_threads", Category: Introspection, Shim: []Target{{"threading", "setprofile_all_threads"}}, Outer: true, Since: "3.12", Why: "its event is that of setprofile"},
	{Name: "sys.addaudithook", Category: Introspection, Event: "sys.addaudithook", Why: "sees every event, and can stall it"},
	{Name: "sys.monitoring.register_callback", Aliases: []string{"sys.monitoring.set_events", "sys.monitoring.use_tool_id"}, Category: Introspection,
		Event: "sys.monitoring.register_callback", Since: "3.12", Why: "sees every event of the interpreter; the other functions do nothing without a callback"},
	{Name: "pdb.Pdb", Aliases: []string{"pdb.set_trace", "builtins.breakpoint"}, Category: Introspection, Event: "pdb.Pdb", Why: "a debugger"},
}
