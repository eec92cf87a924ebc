package unpickle

import (
	"slices"
	"strings"
)

// Definition is what a name of a stream led to in the application, in mode Objects: where that is defined, which is not always
// where the stream looked (what is json.decoder.os.system there is system of the module posix here).
type Definition struct {
	Module   string      `json:"module"`   // __module__
	Name     string      `json:"name"`     // __qualname__
	Class    bool        `json:"class"`    // a class; else a function, or anything else
	Standard bool        `json:"standard"` // the module is of the standard library
	Bases    [][2]string `json:"bases"`    // of a class: module and name of each that it derives from
}

// names is one row of a table that lets something through: a module and names in it, space separated.
type names struct{ module, names string }

// standardClasses are the classes of the standard library that mode Objects lets through beside those of the table of
// classes: they keep what they are given. Everything else of the standard library is refused while the guard is on,
// since the names of what opens, starts, connects or compiles when it is made are many and grow with each version.
var standardClasses = []names{
	{"argparse", "Namespace"},
	{"array", "array"},
	{"builtins", "object NotImplementedType"},
	{"collections", "ChainMap UserDict UserList UserString"},
	{"datetime", "tzinfo"},
	{"decimal", "DecimalTuple"},
	{"difflib", "Match"},
	{"email.headerregistry", "Address Group"},
	{"http", "HTTPMethod HTTPStatus"},
	{"http.cookies", "BaseCookie Morsel SimpleCookie"},
	{"_io", "BytesIO StringIO"},
	{"statistics", "LinearRegression NormalDist"},
	{"string", "Template"},
	{"textwrap", "TextWrapper"},
	{"tokenize", "TokenInfo"},
	{"types", "SimpleNamespace"},
	{"urllib.parse", "DefragResult DefragResultBytes ParseResult ParseResultBytes SplitResult SplitResultBytes"},
	{"uuid", "SafeUUID"},
	{"xml.etree.ElementTree", "Element"},
}

// builders are the functions that a stream may call while the guard is on: by them libraries rebuild values of theirs. They make a
// value of what they are given and do nothing else.
var builders = []names{
	{"array", "_array_reconstructor"},
	{"numpy.core.multiarray", "_reconstruct scalar"}, // NumPy 1
	{"numpy.core.numeric", "_frombuffer"},
	{"numpy._core.multiarray", "_reconstruct scalar"}, // NumPy 2
	{"numpy._core.numeric", "_frombuffer"},
	{"numpy.ma.core", "_mareconstruct"},
	{"pandas._libs.arrays", "__pyx_unpickle_NDArrayBacked"},
	{"pandas._libs.internals", "_unpickle_block"},
	{"pandas.core.indexes.base", "_new_Index"},
	{"pandas.core.indexes.datetimes", "_new_DatetimeIndex"},
	{"pandas.core.indexes.period", "_new_PeriodIndex"},
	{"pandas._libs.tslibs.nattype", "_nat_unpickle"},
	{"pandas._libs.tslibs.timedeltas", "_timedelta_unpickle"},
	{"pandas._libs.tslibs.timestamps", "_unpickle_timestamp"},
}

// harmlessBases are classes of refused modules that a class may derive from: they do nothing when one that derives is made.
var harmlessBases = []names{
	{"builtins", "property type"}, // of a metaclass, which is refused as such
	{"_thread", "_local"},
	{"os", "PathLike"},
	{"pathlib", "Path"},
	{"pathlib._local", "Path"},
}

func listed(table []names, module, name string) bool {
	for _, row := range table {
		if row.module == module && slices.Contains(strings.Fields(row.names), name) {
			return true
		}
	}
	return false
}

// Refused reports whether a guarded result of mode Objects may not use what is defined so, and why.
func (d Definition) Refused() (why string, refused bool) {
	if i, ok := classIndex[d.Module+"\x00"+d.Name]; ok && classes[i].kind == kindException {
		return "", false
	}
	if listed(standardClasses, d.Module, d.Name) && d.Class || listed(builders, d.Module, d.Name) && !d.Class {
		return "", false
	}
	if why, refused := Gadget(d.Module, d.Name); refused {
		return why, true
	}
	switch {
	case !d.Class:
		return "is no class: a result may call those functions alone by which known libraries rebuild their values", true
	case d.Standard && !d.error():
		return "is a class of the standard library that is not known to be a plain value", true
	}
	for _, base := range d.Bases {
		if base == [2]string{"builtins", "type"} {
			return "makes classes", true
		}
		if listed(harmlessBases, base[0], base[1]) || listed(standardClasses, base[0], base[1]) {
			continue
		}
		if why, refused := Gadget(base[0], base[1]); refused {
			return "derives from " + base[0] + "." + base[1] + ", which " + why, true
		}
	}
	return "", false
}

// error reports whether the class is an exception. Those keep what they are given.
func (d Definition) error() bool {
	return slices.Contains(d.Bases, [2]string{"builtins", "Exception"})
}

// Listed reports whether a name is in the table of classes: the standard library's, which every application may load.
func Listed(module, name string) bool {
	_, ok := classIndex[module+"\x00"+name]
	return ok
}

// Locate is the place within the value of data at which module and name are looked up first: result['rows'][3].owner.
func Locate(data []byte, buffers int, module, name string) string {
	m := machine{
		data: data, buffers: make([]Buffer, buffers), mode: Objects, root: "result", lim: Limits{}.withDefaults(),
		trace: &trace{offset: -1, index: pushed, module: module, name: name},
	}
	if m.run() != nil || !m.trace.found || m.stack[0] != m.trace.word {
		return m.root + "…"
	}
	return m.root + m.trace.shown()
}
