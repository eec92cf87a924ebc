"""ctypes: what is free without a grant of ``native`` and what is granted behave as bare, and a refusal names its function."""

from __future__ import annotations

import importlib.util
import sys

import pytest
from complete_mode import Place

pytestmark = pytest.mark.smoke

SHOW = """
import sys
def show(name, code, names):
    try:
        result = eval(code, names)
        text = ascii(result)
        print(name, text if ' at 0x' not in text else type(result).__mro__)
    except Exception as e:
        print(name, type(e).__mro__[0].__name__, [str(e)[:200], getattr(e, 'add', None)])
"""

PREPARED = """
import copy, ctypes, pickle, _ctypes
from ctypes import *
class Point(Structure): _fields_ = [('x', c_int), ('y', c_int)]
class Bits(BigEndianStructure): _fields_ = [('a', c_uint16, 3), ('b', c_uint16, 13)]
class Either(Union): _fields_ = [('n', c_int), ('f', c_float)]
class Node(Structure): pass
Node._fields_ = [('next', POINTER(Node)), ('name', c_char_p)]
class Mine(c_int): pass
PROTOTYPE = CFUNCTYPE(c_int, c_int)
data = bytearray(range(16))
number = c_int(7)
array = (c_int * 4)(1, 2, 3)
def assign(target, key, value):
    target[key] = value
    return list(target)
def set_value(target, value):
    target.value = value
    return target
"""

#: What can neither hold an address nor reach beyond its own memory.
FREE = [
    "number, Mine(3), c_bool(True), c_char(b'x'), c_wchar('x'), c_double(1.5), c_longdouble(2), c_ubyte(300)",
    "[t.__name__ for t in (Point, Either, Node, POINTER(Node), PROTOTYPE, c_char_p * 3, c_int * 3 * 2)]",
    "list(array), len(array), array[1:3], array[-1], [*reversed(array)]",
    "assign(array, 0, 9), assign(array, slice(1, 3), (5, 6)), assign(array, slice(None), [c_int(n) for n in range(4)])",
    "assign(array, slice(None, None, 2), bytes([8, 9])), assign(array, 9, 1)",
    "assign(array, slice(0, 2), 5)",
    "assign(array, slice(0, 2), [1])",
    "assign(array, 0, 'text')",
    "assign(array, 0, c_long(1))",
    "sizeof(Point), sizeof(Node), alignment(Node), sizeof(array), sizeof(c_void_p), Point.y.offset, Point.y.size, Bits.b.size",
    "create_string_buffer(b'text').raw, create_string_buffer(3).value, create_unicode_buffer('text').value",
    "(c_int * 4).from_buffer(data)[1], (c_int * 2).from_buffer(data, 8)[1], Mine.from_buffer(data)",
    "(c_char * 16).from_buffer(data).raw, memoryview(array).tolist(), memoryview(array).format, bytes(number)",
    "c_int.from_buffer(b'read-only')",
    "c_int.from_buffer(bytearray(3))",
    "c_int.from_buffer(data, -1)",
    "c_int.from_buffer(data, 'x')",
    "c_int.from_buffer(5)",
    "c_int.from_buffer()",
    "c_int.from_buffer_copy(b'abc')",
    "set_value(c_int(), 5), set_value(c_char(), b'y'), set_value(c_int(), 'x')",
    "pickle.loads(pickle.dumps(number)), copy.copy(number), list(copy.deepcopy(array))",
    "number._objects, number._b_base_, number._b_needsfree_, isinstance(number, _ctypes._SimpleCData), type(byref(number))",
    "addressof(number) != 0, get_errno(), set_errno(3), get_errno()",
    "ctypes._SimpleCData()",
    "Structure.x",
    "number.nothing",
    "c_uint16.__ctype_be__(258), bytes(c_uint16.__ctype_be__(258))",
]

#: What a grant of native allows.
GRANTED = [
    "Point(1, 2).y, Point(y=4).x, Point(1, 2, 3)",
    "Bits(5, 6).b, bytes(Bits(5, 6)), Either(n=0x3f800000).f",
    "Node(None, b'last').name, Node(pointer(Node(None, b'x')), b'y').next.contents.name, bool(POINTER(Node)())",
    "pointer(number)[0], pointer(number).contents, POINTER(c_int)(number).contents.value, pointer(array)[0][:]",
    "POINTER(c_int)()[0]",
    "c_char_p(b'text').value, c_wchar_p('text'), c_void_p(5).value, py_object(data).value is data, c_char_p(5.5)",
    "(c_char_p * 2)(b'a', b'b')[:], (c_int * 2 * 2)((1, 2), (3, 4))[1][:], (Point * 2)((1, 2), (3, 4))[1].y",
    "string_at(create_string_buffer(b'text')), wstring_at(create_unicode_buffer('text')), cast(array, POINTER(c_short))[2]",
    "[memmove(number, array, 4) == addressof(number), number.value], memset(number, 255, 4) and number",
    "PROTOTYPE(lambda n: n + 1)(4), PROTOTYPE(abs)(-4), PROTOTYPE(5)",
    "pythonapi.Py_IsInitialized(), CDLL(None).abs(-3)",
    "c_int.from_address(addressof(array)), c_int.in_dll(pythonapi, 'Py_Version').value > 0",
    "(c_int * 4).from_buffer(data)._objects.keys(), resize(c_int(), 64), resize(array, 1)",
    "pickle.dumps(c_char_p(b'x'))",
    "pickle.loads(pickle.dumps(Point(5, 6))).y, _ctypes._unpickle(Point, ({}, bytes(8))).x",
    "setattr(number, '__class__', c_uint), number, setattr(number, '__class__', int)",
    "Point.from_buffer(data).y, Point.from_buffer_copy(data, 4).x",
    "Point.x.__get__(None, Point), Point.x.__get__(number), Point.x.__get__(5)",
]

#: Function by function: what is refused, and the rule that a refusal offers.
REFUSED = {
    "Point()": "ctypes.Structure",
    "Bits()": "ctypes.Structure",
    "Point.from_buffer(data)": "ctypes.Structure",
    "Point.from_buffer_copy(data)": "ctypes.Structure",
    "Point.x.__get__(number)": "ctypes.Structure",
    "(Point * 2)()": "ctypes.Array",
    "(c_int * 2 * 2)()": "ctypes.Array",
    "Either()": "ctypes.Union",
    "pointer(number)": "ctypes.POINTER",
    "POINTER(Node)()": "ctypes.POINTER",
    "c_char_p(b'')": "ctypes.c_char_p",
    "(c_char_p * 2)()": "ctypes.c_char_p",
    "c_wchar_p('')": "ctypes.c_wchar_p",
    "c_void_p()": "ctypes.c_void_p",
    "py_object()": "ctypes.py_object",
    "PROTOTYPE(lambda n: n)": "ctypes.CFUNCTYPE",
    "PROTOTYPE(4096)": "ctypes.CFUNCTYPE",
    "PROTOTYPE(_ctypes._memmove_addr)(0)": "ctypes.memmove",
    "memmove(0, 0, 0)": "ctypes.memmove",
    "memset(0, 0, 0)": "ctypes.memset",
    "cast(0, c_void_p)": "ctypes.cast",
    "string_at(0)": "ctypes.string_at",
    "wstring_at(0)": "ctypes.wstring_at",
    "c_int.from_address(0)": "ctypes.from_address",
    "resize(number, 64)": "ctypes.resize",
    "(c_int * 4).from_buffer(data)._objects": "ctypes.keepalive",
    "setattr(number, '__class__', c_uint)": "ctypes.retype",
    "pythonapi.Py_IsInitialized": "ctypes.dlsym",
    "CDLL(None)": "ctypes.CDLL",
}


def program(cases: list[str]) -> str:
    return f"{SHOW}\nnames = {{}}\nexec({PREPARED!r}, names)\nfor n, code in enumerate({cases!r}): show(n, code, names)"


IMPORTS = "python-import=*\npython-api=ALLOW:dynamic-code, ALLOW:deserialization\n"


@pytest.mark.parametrize(
    ("cases", "grants"),
    [
        pytest.param(FREE, "", id="free without a grant"),
        pytest.param(FREE + GRANTED, "python-api=ALLOW:native\n", id="all granted, nothing held"),
        pytest.param(
            FREE + GRANTED, "python-api=ALLOW:native, DENY:cffi.FFI.verify, DENY:ctypes.wstring_at\n", id="held, and granted"
        ),
    ],
)
def test_what_is_allowed_is_as_bare(cases: list[str], grants: str, place: Place) -> None:
    place.provider = "subprocess"
    place.profile(IMPORTS + grants)
    shown = [c.replace("wstring_at(create_unicode_buffer('text'))", "1") if "wstring_at" in grants else c for c in cases]
    bare, held = place.bare("-c", program(shown)), place.run("-c", program(shown))
    assert held.stdout.splitlines() == bare.stdout.splitlines(), held.stderr
    assert len(bare.stdout.splitlines()) == len(cases)


def test_a_refusal_names_the_function(place: Place) -> None:
    place.provider = "subprocess"
    place.profile(IMPORTS)
    lines = place.run("-c", program(list(REFUSED))).stdout.splitlines()
    wanted = {n: f"python-api=ALLOW:{name}" for n, name in enumerate(REFUSED.values())}
    got = {
        n: next((w for w in (wanted[n],) if f"'{w}'" in line and "RuleApiPermissionError" in line), line)
        for n, line in enumerate(lines)
    }
    assert got == wanted


def test_a_library_that_is_granted_comes_with_its_types(place: Place) -> None:
    place.provider = "subprocess"
    place.profile(IMPORTS + "python-api=ALLOW:ctypes.CDLL, ALLOW:ctypes.dlsym\n")
    code = """
    from ctypes import *
    class Answer(Structure): _fields_ = [('quotient', c_int), ('rest', c_int)]
    libc = CDLL(None)
    libc.div.restype = Answer
    a = libc.div(17, 5)
    text = c_char_p(b'text')
    print(a.quotient, a.rest, libc.strlen(text), libc.abs(byref(c_int(3)) and -3), cast(text, c_void_p).value != 0)
    """
    done = place.run("-c", "\n".join(line[4:] for line in code.splitlines()))
    assert done.stdout == "3 2 4 3 True\n", done.stderr


def test_a_denial_of_one_function_holds_beside_a_grant_of_all(place: Place) -> None:
    place.provider = "subprocess"
    place.profile(IMPORTS + "python-api=ALLOW:native, DENY:ctypes.memset\n")
    done = place.run(
        "-c",
        "from ctypes import *\nn = c_int(5)\nmemmove(byref(n), byref(c_int(6)), 4)\nprint(n)\nmemset(byref(n), 0, 4)",
    )
    assert done.stdout == "c_int(6)\n"
    assert "RuleApiPermissionError" in done.stderr


def test_shared_memory_of_multiprocessing(place: Place) -> None:
    place.provider = "subprocess"
    place.profile("python-import=multiprocessing\nexpose-rw=/dev/shm\n")
    code = """
    from multiprocessing import RawArray, RawValue, Value, Array
    numbers, one = RawArray('d', 3), Value('i', 7, lock=False)
    numbers[1] = 1.5
    one.value += 1
    print(list(numbers), one.value, RawValue('c', b'x').value, list(Array('i', [1, 2], lock=False)), RawArray('c', 5).raw)
    """
    done = place.run("-c", "\n".join(line[4:] for line in code.splitlines()))
    assert done.stdout == "[0.0, 1.5, 0.0] 8 b'x' [1, 2] b'\\x00\\x00\\x00\\x00\\x00'\n", done.stderr


OWN_TESTS = """
import importlib, pkgutil, sys, unittest, warnings
warnings.simplefilter('ignore')
package = importlib.import_module(sys.argv[1])
suite = unittest.TestSuite()
for name in sorted(m.name for m in pkgutil.iter_modules(package.__path__) if m.name.startswith('test_')):
    if name not in ('test_loading', 'test_find', 'test_memfunctions'):  # programs, files, and what is denied
        suite.addTests(unittest.defaultTestLoader.loadTestsFromName(f'{package.__name__}.{name}'))
done = unittest.TextTestRunner(verbosity=0).run(suite)
print(done.testsRun, sorted(t.id() for t, _ in done.failures), sorted(str(t) for t, _ in done.errors))
"""


def test_the_interpreters_own_tests_of_ctypes(place: Place) -> None:
    package = "ctypes.test" if sys.version_info < (3, 12) else "test.test_ctypes"
    try:
        found = importlib.util.find_spec(package)
    except ImportError:
        found = None
    if not found:
        pytest.skip("this interpreter came without its tests")
    place.provider = "subprocess"
    place.file("own.py", OWN_TESTS)
    place.profile("python-import=*\npython-api=ALLOW:*, DENY:ctypes.wstring_at\n")
    bare, held = place.bare("own.py", package), place.run("own.py", package)
    assert bare.stdout == held.stdout, held.stderr
    assert int(bare.stdout.split()[0]) > 300
