"""Raw memory and foreign code, by ctypes and by other modules that hold memory.

Most payloads read the bytes of an object that lives elsewhere (``seen`` says whether they were), by a way that gives a program
any address: the guard's own memory is one.
"""

from __future__ import annotations

from functools import partial
from textwrap import dedent

from attack import Attack

native = partial(Attack, "native")

#: The bytes of MARK stand at AT.
MARKED = """\
import ctypes, _ctypes
from ctypes import *
MARK = bytes(b'a mark in memory' * 4)
AT = id(MARK) + bytes.__basicsize__ - 1
def seen(data): print('ESCAPED' if bytes(data)[:8] == MARK[:8] else 'no')
def number(n): return n.to_bytes(8, 'little')
"""


def memory(name: str, code: str, kind: str = "native", **more: object) -> Attack:
    return native(name, MARKED + dedent(code), kind=kind, **more)


def foreign(name: str, code: str, kind: str = "native") -> Attack:
    absent = "try:\n    import _cffi_backend as backend\nexcept ModuleNotFoundError:\n    absent('no cffi')\n"
    return memory(f"cffi, {name}", absent + dedent(code), kind)


CASES: list[Attack] = [
    native(
        "a library by a path hook",
        """
        import ctypes, sys, importlib
        sys.path_hooks.insert(0, ctypes.CDLL)
        try: importlib.machinery.PathFinder.find_spec('nothing_at_all', ['libc.so.6'])
        except (AttributeError, ImportError): pass
        try: importlib.import_module('nothing_at_all')
        except ImportError: pass
        sys.path.insert(0, 'libc.so.6')
        try: import nothing_at_all
        except (AttributeError, ImportError): pass
        print('ESCAPED' if isinstance(sys.path_importer_cache.get('libc.so.6'), ctypes.CDLL) else '')
    """,
        alone=True,
    ),
    native(
        "from_address",
        """
        import ctypes
        ctypes.c_int.from_address(id(1))
        print('ESCAPED')
    """,
    ),
    native(
        "cast",
        """
        import ctypes
        ctypes.cast(id(1), ctypes.c_void_p)
        print('ESCAPED')
    """,
    ),
    native(
        "dlopen by name",
        """
        import _ctypes
        _ctypes.dlopen('libc.so.6', 0)
        print('ESCAPED')
    """,
    ),
    native(
        "dlopen of the program",
        """
        import _ctypes
        _ctypes.dlopen(None, 0)
        print('ESCAPED')
    """,
    ),
    # ---- types that hold an address
    memory("memmove", "out = create_string_buffer(8)\nmemmove(out, AT, 8)\nseen(out.raw)", kind="direct"),
    memory("memset", "out = bytearray(8)\nmemset(AT, MARK[0], 1)\nprint('ESCAPED')", kind="direct"),
    memory("string_at", "seen(string_at(AT, 8))", kind="direct"),
    memory(
        "memmove by its address",
        "out = create_string_buffer(8)\nCFUNCTYPE(c_void_p, c_void_p, c_void_p, c_size_t)(_ctypes._memmove_addr)(addressof(out), AT, 8)\nseen(out.raw)",
    ),
    memory("another prototype of string_at", "seen(PYFUNCTYPE(py_object, c_void_p, c_int)(_ctypes._string_at_addr)(AT, 8))"),
    memory("the function below cast", "seen(ctypes._cast(AT, None, POINTER(c_ubyte))[:8])"),
    memory("the function below string_at", "seen(ctypes._string_at(AT, 8))"),
    memory("c_char_p of an address", "seen(c_char_p(AT).value)"),
    memory(
        "c_char_p written through memoryview",
        "p = c_char_p()\nmemoryview(p).cast('B')[:] = number(AT)\nseen(p.value)",
        kind="object",
    ),
    memory("c_char_p from_buffer", "seen(c_char_p.from_buffer(bytearray(number(AT))).value)"),
    memory("c_char_p from_buffer_copy", "seen(c_char_p.from_buffer_copy(number(AT)).value)"),
    memory("c_char_p unpickled", "seen(_ctypes._unpickle(c_char_p, ({}, number(AT))).value)"),
    memory("c_char_p by __setstate__", "p = c_char_p()\np.__setstate__({}, number(AT))\nseen(p.value)"),
    memory(
        "c_wchar_p",
        "wide = create_unicode_buffer('a mark')\nprint('ESCAPED' if c_wchar_p.from_buffer_copy(number(addressof(wide))).value == 'a mark' else 'no')",
    ),
    memory("py_object of an address", "seen(py_object.from_buffer_copy(number(id(MARK))).value)"),
    memory("array of c_char_p", "a = (c_char_p * 1).from_buffer_copy(number(AT))\nseen(a[0])"),
    memory("array of py_object", "a = (py_object * 1).from_buffer_copy(number(id(MARK)))\nseen(a[0])"),
    memory("class of _type_ z", "class P(ctypes._SimpleCData): _type_ = 'z'\nseen(P.from_buffer_copy(number(AT)).value)"),
    memory(
        "class by the metaclass",
        "P = type(c_int)('P', (ctypes._SimpleCData,), dict(_type_='z'))\nseen(P.from_buffer_copy(number(AT)).value)",
    ),
    memory("class of c_long that becomes z", "class P(c_long): _type_ = 'z'\nseen(P.from_buffer_copy(number(AT)).value)"),
    memory(
        "metaclass of one's own",
        "class M(type(c_int)): pass\nclass P(ctypes._SimpleCData, metaclass=M): _type_ = 'z'\nseen(P.from_buffer_copy(number(AT)).value)",
        kind="object",
    ),
    memory(
        "subclass with __new__",
        "class P(c_char_p):\n    def __new__(cls, *a): return ctypes._SimpleCData.__new__(cls)\np = P()\nmemoryview(p).cast('B')[:] = number(AT)\nseen(p.value)",
        kind="object",
    ),
    memory("type.__call__", "p = type.__call__(c_char_p)\nmemoryview(p).cast('B')[:] = number(AT)\nseen(p.value)", kind="twin"),
    memory(
        "call of the metaclass",
        "p = type(c_char_p).__call__(c_char_p)\nmemoryview(p).cast('B')[:] = number(AT)\nseen(p.value)",
        kind="twin",
    ),
    memory(
        "copy of a class's new",
        "import copyreg\np = copyreg.__newobj__(c_char_p)\nmemoryview(p).cast('B')[:] = number(AT)\nseen(p.value)",
        kind="library",
    ),
    # ---- structures and unions
    memory(
        "union of an integer and a pointer",
        "class U(Union): _fields_ = [('n', c_size_t), ('p', POINTER(c_ubyte))]\nu = U()\nu.n = AT\nseen(u.p[:8])",
        kind="direct",
    ),
    memory(
        "structure with a pointer",
        "class S(Structure): _fields_ = [('p', c_char_p)]\nseen(S.from_buffer_copy(number(AT)).p)",
        kind="direct",
    ),
    memory(
        "packed structure",
        "class S(Structure):\n    _pack_ = 1\n    _fields_ = [('b', c_ubyte), ('p', c_char_p)]\nseen(S.from_buffer_copy(b'x' + number(AT)).p)",
    ),
    memory(
        "bit field beyond the object",
        "class S(Structure): _fields_ = [('pad', c_ubyte * 4096), ('n', c_uint, 31)]\nS.n.__get__(c_int())\nprint('ESCAPED')",
        kind="object",
    ),
    memory(
        "field beyond the object",
        "base = c_int()\nclass S(Structure): _fields_ = [('pad', c_ubyte * abs(AT - addressof(base))), ('n', c_ubyte * 8)]\nS.n.__get__(base)\nprint('ESCAPED')",
        kind="object",
        alone=True,
    ),
    memory(
        "field written beyond the object",
        "class S(Structure): _fields_ = [('pad', c_ubyte * 8), ('n', c_ubyte)]\nS.n.__set__(c_int(), 0)\nprint('ESCAPED')",
        kind="object",
        alone=True,
    ),
    memory(
        "field of a union on an array",
        "class U(Union): _fields_ = [('p', c_char_p)]\nseen(U.p.__get__((c_ubyte * 8)(*number(AT))))",
        kind="object",
    ),
    memory(
        "field on a plain number",
        "class S(Structure): _fields_ = [('p', c_char_p)]\nseen(S.p.__get__(c_size_t(AT)))",
        kind="object",
    ),
    # ---- pointers
    memory(
        "pointer written through memoryview", "p = pointer(c_ubyte())\nmemoryview(p).cast('B')[:] = number(AT)\nseen(p[:8])"
    ),
    memory(
        "pointer beyond its target",
        "p = pointer(c_ubyte())\nseen(p[AT - addressof(p.contents):AT - addressof(p.contents) + 8])",
    ),
    memory("contents of a pointer", "p = POINTER(c_ubyte * 8).from_buffer_copy(number(AT))\nseen(p.contents)"),
    memory("pointer unpickled", "p = _ctypes._unpickle(POINTER(c_ubyte), ({}, number(AT)))\nseen(p[:8])"),
    memory("class of _Pointer", "class P(_ctypes._Pointer): _type_ = c_ubyte\nseen(P.from_buffer_copy(number(AT))[:8])"),
    memory(
        "pointer and array in one class",
        "class M(type(Array), type(_ctypes._Pointer)): pass\nclass A(Array, _ctypes._Pointer, metaclass=M): _type_ = c_ubyte; _length_ = 8\na = A(*number(AT))\nseen(_ctypes._Pointer.contents.__get__(a) and MARK)",
        kind="object",
    ),
    memory(
        "order of bases by a metaclass",
        "class M(type(Array)):\n    def mro(cls): return [cls, Array, _ctypes._Pointer, Array.__mro__[1], object]\nA = M('A', (Array,), dict(_type_=c_ubyte, _length_=8))\na = A(*number(AT))\nseen([_ctypes._Pointer.contents.__get__(a).value, *MARK[1:]])",
        kind="object",
    ),
    # ---- what an object is, changed afterwards
    memory("class of an object", "p = c_size_t(AT)\np.__class__ = c_char_p\nseen(p.value)", kind="object"),
    memory(
        "class by object's descriptor",
        "p = c_size_t(AT)\nobject.__dict__['__class__'].__set__(p, c_char_p)\nseen(p.value)",
        kind="object",
    ),
    memory("class of an array", "a = (c_size_t * 1)(AT)\na.__class__ = c_char_p * 1\nseen(a[0])", kind="object"),
    memory(
        "class of a longer array", "a = (c_ubyte * 8)()\na.__class__ = c_longdouble * 8\na[7]\nprint('ESCAPED')", kind="object"
    ),
    # ---- memory that was given back
    memory(
        "what keeps a buffer",
        "data = bytearray(64)\na = (c_ubyte * 64).from_buffer(data)\na._objects['ffffffff'].release()\ndata.extend(bytes(1 << 20))\nprint('ESCAPED')",
        kind="object",
        alone=True,
    ),
    memory(
        "resize under a memoryview",
        "a = (c_ubyte * 64)()\nm = memoryview(a)\nresize(a, 1 << 20)\nprint('ESCAPED')",
        kind="object",
        alone=True,
    ),
    memory(
        "smaller subclass as an item",
        "T = c_ubyte * 4096\nclass Small(T): _length_ = 1\na = (T * 1)()\na[0] = Small()\nprint('ESCAPED')",
        kind="object",
    ),
    memory(
        "one that says it is an item",
        "class M(type(Array)):\n    def __instancecheck__(cls, o): return True\nT = M('T', (Array,), dict(_type_=c_ubyte, _length_=4096))\na = (T * 1)()\na[0] = c_ubyte()\nprint('ESCAPED')",
        kind="object",
    ),
    memory(
        "a smaller number as an item",
        "class Liar(c_ubyte): __class__ = c_longdouble\na = (c_longdouble * 1)()\na[0] = Liar.from_buffer(bytearray(1))\nprint('ESCAPED')",
        kind="object",
    ),
    memory(
        "a smaller number in a slice",
        "class Liar(c_ubyte): __class__ = c_longdouble\na = (c_longdouble * 1)()\na[:] = [Liar.from_buffer(bytearray(1))]\nprint('ESCAPED')",
        kind="object",
    ),
    # ---- addresses that are called, libraries
    memory("function of an address", "CFUNCTYPE(c_int)(_ctypes._memset_addr)\nCFUNCTYPE(c_int)(AT)\nprint('ESCAPED')"),
    memory("callback", "CFUNCTYPE(c_int)(lambda: 1)\nprint('ESCAPED')"),
    memory(
        "function's address written",
        "f = CFUNCTYPE(c_size_t, c_size_t, c_int, c_size_t)(_ctypes._memset_addr)\nmemoryview(f).cast('B')[:] = number(_ctypes._memset_addr)\nout = create_string_buffer(8)\nf(addressof(out), 65, 1)\nprint('ESCAPED')",
        kind="object",
    ),
    memory(
        "__call__ of the base class",
        "out = create_string_buffer(8)\n_ctypes.CFuncPtr.__call__(memset, addressof(out), 65, 1)\nprint('ESCAPED')",
        kind="twin",
    ),
    memory(
        "pythonapi",
        "f = pythonapi.PyBytes_FromStringAndSize\nf.restype = py_object\nseen(f(c_size_t(AT), c_size_t(8)))",
        kind="direct",
    ),
    memory(
        "_FuncPtr of a name", "print('ESCAPED' if pythonapi._FuncPtr(('Py_IsInitialized', pythonapi))() else '')", kind="twin"
    ),
    memory("PyDLL", "print('ESCAPED' if PyDLL(None).Py_IsInitialized() else '')"),
    memory(
        "CDLL without __init__", "d = CDLL.__new__(CDLL)\nd._handle = _ctypes.dlopen(None, 0)\nprint('ESCAPED')", kind="twin"
    ),
    memory("symbol by a handle", "_ctypes.dlsym(pythonapi._handle, 'system')\nprint('ESCAPED')", kind="twin"),
    memory(
        "call_function",
        "print('ESCAPED' if _ctypes.call_function(_ctypes._memset_addr, (create_string_buffer(8), 65, 1)) else '')",
        kind="twin",
    ),
    memory("object at an address", "seen(_ctypes.PyObj_FromPtr(id(MARK)))", kind="twin"),
    memory("in_dll", "c_int.in_dll(pythonapi, 'Py_Version')\nprint('ESCAPED')"),
    memory(
        "multiprocessing clears what it is told",
        "from multiprocessing import sharedctypes\nimport ctypes\nclass T:\n    @staticmethod\n    def from_buffer(b): return c_ubyte()\nsharedctypes._new_value = lambda t: c_ubyte()\nkept = ctypes.addressof\nctypes.addressof = lambda o: AT\ntry: sharedctypes.RawValue(c_ubyte)\nfinally: ctypes.addressof = kept\nprint('ESCAPED' if MARK[0] == 0 else 'no')",
        kind="library",
        alone=True,
    ),
    memory(
        "_ctypes made anew",
        "import sys, importlib\nfor n in [m for m in sys.modules if 'ctypes' in m]: del sys.modules[n]\nimport _ctypes\nclass P(_ctypes._SimpleCData): _type_ = 'z'\nseen(P.from_buffer_copy(number(AT)).value)",
        kind="state",
        alone=True,
    ),
    native(
        "a loader that keeps _ctypes as it is made",
        """
        import sys, importlib.machinery, importlib.util
        for n in [m for m in sys.modules if 'ctypes' in m]: del sys.modules[n]
        made = []
        class Loader(importlib.machinery.ExtensionFileLoader):
            def exec_module(self, module):
                super().exec_module(module)
                class P(module._SimpleCData): _type_ = 'z'
                made.append(P)
        class Finder:
            @staticmethod
            def find_spec(name, path=None, target=None):
                spec = importlib.machinery.PathFinder.find_spec(name, path)
                if name == '_ctypes':
                    spec.loader = Loader(name, spec.origin)
                return spec
        sys.meta_path.insert(0, Finder)
        import _ctypes
        mark = bytes(b'a mark in memory')
        at = id(mark) + bytes.__basicsize__ - 1
        value = made[0].from_buffer_copy(at.to_bytes(8, 'little')).value
        print('ESCAPED' if value == mark else 'no')
    """,
        kind="state",
        alone=True,
    ),
    native(
        "a loader that is a C function",
        """
        import ctypes, importlib.machinery, operator, sys, types
        mark = bytes(b'a mark in memory')
        out = ctypes.create_string_buffer(8)
        class Module(types.ModuleType):
            peek = ctypes.memmove
        class Loader:
            create_module = staticmethod(lambda spec: Module(spec.name))
            exec_module = operator.methodcaller('peek', ctypes.addressof(out), id(mark) + bytes.__basicsize__ - 1, 8)
        class Finder:
            @staticmethod
            def find_spec(name, path=None, target=None):
                return importlib.machinery.ModuleSpec(name, Loader()) if name == 'peeked' else None
        sys.meta_path.append(Finder)
        import peeked
        print('ESCAPED' if out.raw == mark[:8] else 'no')
    """,
        kind="state",
    ),
    # ---- CPython's tests of itself: to have one is to have memory
    native(
        "the interpreter's own test module",
        """
        try:
            import _testcapi
        except ModuleNotFoundError:
            absent('no test modules')
        print('ESCAPED' if _testcapi.unicode_asucs4('x', 64, True) else 'no')
    """,
        before=(3, 13),
    ),
    *(
        native(
            f"the interpreter's own {name}",
            f"""
        try:
            import {name}
        except ModuleNotFoundError:
            absent('no test modules')
        print('ESCAPED')
    """,
            kind="twin",
        )
        for name in ("_testinternalcapi", "_testbuffer", "_xxtestfuzz", "_ctypes_test", "_testmultiphase")
    ),
    native(
        "the interpreter's own test module under another name",
        """
        import importlib.util, sys, sysconfig
        folder = next((p for p in sys.path if p.endswith('lib-dynload')), '')
        spec = importlib.util.spec_from_file_location('quiet._testcapi', folder + '/_testcapi' + sysconfig.get_config_var('EXT_SUFFIX'))
        try:
            module = importlib.util.module_from_spec(spec)
        except ImportError:
            absent('no test modules')
        print('ESCAPED' if module.getargs_i else 'no')
    """,
        kind="object",
    ),
    # ---- cffi
    foreign("ABI mode", "import cffi\nf = cffi.FFI()\nseen(f.buffer(f.cast('char *', AT), 8))", kind="direct"),
    foreign("an FFI of one's own", "f = backend.FFI()\nseen(f.buffer(f.cast('char *', AT), 8))", kind="twin"),
    foreign(
        "the functions below",
        "t = backend.new_pointer_type(backend.new_primitive_type('char'))\nseen(backend.buffer(backend.cast(t, AT), 8))",
        kind="twin",
    ),
    foreign("memmove", "out = bytearray(8)\nf = backend.FFI()\nf.memmove(out, f.cast('char *', AT), 8)\nseen(out)"),
    foreign("string", "f = backend.FFI()\nseen(f.string(f.cast('char *', AT)))"),
    foreign("unpack", "f = backend.FFI()\nseen(f.unpack(f.cast('char *', AT), 8))"),
    foreign("handle", "f = backend.FFI()\nprint('ESCAPED' if f.from_handle(f.new_handle(MARK)) is MARK else 'no')"),
    foreign(
        "beyond what is new",
        "f = backend.FFI()\np = f.new('char[8]')\np = p + 0\nprint('ESCAPED' if p[64] is not None else 'no')",
        kind="object",
    ),
    foreign(
        "method by the class", "f = backend.FFI()\nseen(backend.buffer(backend.FFI.cast(f, 'char *', AT), 8))", kind="twin"
    ),
    foreign(
        "code that says it is a package's",
        """
        import importlib.abc, importlib.util, sys
        place = next(p for p in sys.path if p.endswith('-packages')) + '/pycparser/own.py'
        class Loader(importlib.abc.SourceLoader):
            def get_filename(self, name): return place
            def get_data(self, path):
                if path != place: raise OSError
                return b'def peek(f, at): return bytes(f.buffer(f.cast("char *", at), 8))'
        spec = importlib.util.spec_from_loader('own', Loader())
        class Finder:
            @staticmethod
            def find_spec(name, path=None, target=None): return spec if name == 'own' else None
        sys.meta_path.append(Finder)
        import own
        seen(own.peek(backend.FFI(), AT))
    """,
        kind="object",
    ),
]
