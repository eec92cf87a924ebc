package unpickle

import "strings"

// gadget is one row of what mode Objects refuses while its guard is on: a module and, where only some of it is dangerous, the names.
type gadget struct {
	module string
	names  string // space separated; empty: the whole module and what is beneath it
	why    string
}

// gadgets are modules that *define* what runs code, programs, files or connections. A stream that reaches one under another name (a
// re-export) is caught by Gadget, which the unpickler asks with the __module__ of what it found.
var gadgets = []gadget{
	{"builtins", "eval exec compile __import__ getattr setattr delattr open input breakpoint globals locals vars dir help print memoryview map filter type super property classmethod staticmethod exit quit copyright credits license", "runs code or reaches any attribute"},
	{"__builtin__", "", "Python 2's name of builtins"},
	{"os", "", "runs programs, changes files"},
	{"posix", "", "runs programs, changes files"},
	{"nt", "", "runs programs, changes files"},
	{"posixpath", "expandvars expanduser realpath", "reads the environment and links"},
	{"sys", "", "reaches into the interpreter"},
	{"_imp", "", "loads code"},
	{"imp", "", "loads code"},
	{"importlib", "", "loads code"},
	{"_frozen_importlib", "", "loads code"},
	{"_frozen_importlib_external", "", "loads code"},
	{"runpy", "", "runs code"},
	{"pkgutil", "", "loads code"},
	{"zipimport", "", "loads code"},
	{"code", "", "runs code"},
	{"codeop", "", "compiles code"},
	{"marshal", "", "loads code"},
	{"types", "FunctionType LambdaType CodeType MethodType ModuleType", "makes functions of code"},
	{"pickle", "", "loads another stream unchecked"},
	{"_pickle", "", "loads another stream unchecked"},
	{"cPickle", "", "loads another stream unchecked"},
	{"copyreg", "add_extension remove_extension clear_extension_cache pickle constructor", "changes how pickles load"},
	{"shelve", "", "loads another stream unchecked"},
	{"dill", "", "loads code"},
	{"_dill", "", "loads code"},
	{"cloudpickle", "", "loads code"},
	{"joblib", "", "loads another stream unchecked"},
	{"jsonpickle", "", "loads any class"},
	{"yaml", "", "loads any class"},
	{"torch", "load", "loads another stream unchecked"},
	{"torch.serialization", "", "loads another stream unchecked"},
	{"torch.hub", "", "loads code"},
	{"numpy.testing", "", "runs code"},
	{"numpy.f2py", "", "runs programs"},
	{"numpy.distutils", "", "runs programs"},
	{"subprocess", "", "runs programs"},
	{"_posixsubprocess", "", "runs programs"},
	{"_winapi", "", "runs programs"},
	{"multiprocessing", "", "runs programs"},
	{"concurrent.futures", "", "runs code"},
	{"asyncio", "", "runs programs, connects"},
	{"commands", "", "runs programs"},
	{"popen2", "", "runs programs"},
	{"pty", "", "runs programs"},
	{"platform", "", "runs programs"},
	{"webbrowser", "", "runs programs"},
	{"antigravity", "", "runs programs"},
	{"distutils", "", "runs programs"},
	{"setuptools", "", "runs programs"},
	{"pip", "", "runs programs"},
	{"ensurepip", "", "runs programs"},
	{"venv", "", "runs programs"},
	{"idlelib", "", "runs code"},
	{"lib2to3", "", "loads code"},
	{"test", "", "runs code"},
	{"unittest", "", "imports and patches by name"},
	{"doctest", "", "runs code"},
	{"pdb", "", "runs code"},
	{"bdb", "", "runs code"},
	{"cmd", "", "runs code"},
	{"trace", "", "runs code"},
	{"timeit", "", "runs code"},
	{"profile", "", "runs code"},
	{"cProfile", "", "runs code"},
	{"pydoc", "", "imports by name"},
	{"logging.config", "", "imports by name"},
	{"xml.sax", "", "imports by name"},
	{"inspect", "", "reaches into frames"},
	{"gc", "", "reaches any object"},
	{"operator", "attrgetter itemgetter methodcaller", "reaches any attribute"},
	{"_operator", "attrgetter itemgetter methodcaller", "reaches any attribute"},
	{"functools", "partial partialmethod reduce singledispatch cached_property", "calls what the stream chooses"},
	{"_functools", "partial reduce", "calls what the stream chooses"},
	{"itertools", "starmap accumulate filterfalse takewhile dropwhile groupby", "calls what the stream chooses"},
	{"atexit", "", "runs code later"},
	{"signal", "", "runs code later"},
	{"_signal", "", "runs code later"},
	{"threading", "", "runs code"},
	{"_thread", "", "runs code"},
	{"sched", "", "runs code later"},
	{"weakref", "finalize", "runs code later"},
	{"ctypes", "", "reaches memory"},
	{"_ctypes", "", "reaches memory"},
	{"cffi", "", "reaches memory"},
	{"mmap", "", "reaches memory"},
	{"shutil", "", "changes files"},
	{"pathlib", "Path WindowsPath", "reaches files"},
	{"tempfile", "", "makes files"},
	{"fileinput", "", "opens files"},
	{"linecache", "", "opens files"},
	{"io", "open open_code FileIO", "opens files"},
	{"_io", "open open_code FileIO", "opens files"},
	{"_pyio", "", "opens files"},
	{"codecs", "open", "opens files"},
	{"gzip", "open GzipFile", "opens files"},
	{"bz2", "open BZ2File", "opens files"},
	{"lzma", "open LZMAFile", "opens files"},
	{"tarfile", "", "opens files"},
	{"zipfile", "", "opens files"},
	{"dbm", "", "opens files"},
	{"sqlite3", "", "opens files"},
	{"glob", "", "lists files"},
	{"socket", "", "connects"},
	{"_socket", "", "connects"},
	{"ssl", "", "connects"},
	{"socketserver", "", "connects"},
	{"urllib.request", "", "connects"},
	{"http.client", "", "connects"},
	{"http.server", "", "connects"},
	{"ftplib", "", "connects"},
	{"smtplib", "", "connects"},
	{"imaplib", "", "connects"},
	{"poplib", "", "connects"},
	{"nntplib", "", "connects"},
	{"telnetlib", "", "connects"},
	{"xmlrpc", "", "connects"},
	{"requests", "", "connects"},
	{"httpx", "", "connects"},
	{"aiohttp", "", "connects"},
	{"pysandboxes", "", "reaches the sandbox itself"},
}

// Gadget reports whether mode Objects refuses what module defines under name, and why. The unpickler asks it twice: for the
// names that the stream wrote, and for the __module__ and __qualname__ of the object that they led to.
func Gadget(module, name string) (why string, refused bool) {
	first, _, _ := strings.Cut(name, ".")
	for _, g := range gadgets {
		if module != g.module && !(g.names == "" && strings.HasPrefix(module, g.module+".")) {
			continue
		}
		if g.names == "" {
			return g.why, true
		}
		for _, n := range strings.Fields(g.names) {
			if n == first {
				return g.why, true
			}
		}
	}
	for _, part := range strings.Split(name, ".") {
		if strings.HasPrefix(part, "__") && part != "__main__" {
			return "reaches into the interpreter by a dunder name", true
		}
	}
	// A dotted name may walk through a module that the named one imported: app.models, "os.system".
	parts := strings.Split(name, ".")
	for i, part := range parts[:len(parts)-1] {
		if why, refused := Gadget(part, parts[i+1]); refused {
			return "walks through " + part + ", which " + why, true
		}
	}
	return "", false
}

// checkGlobal is the gadget table's answer for a name of the stream.
func (m *machine) checkGlobal(module, name string) error {
	if !m.guard || listed(builders, module, name) {
		return nil
	}
	why, refused := Gadget(module, name)
	if !refused {
		return nil
	}
	return m.refuseGadget(pushed, "the class or function "+shownName([]byte(module), []byte(name)), "which "+why)
}
