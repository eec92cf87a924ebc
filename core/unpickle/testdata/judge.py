"""The second opinion on accepted streams: a throw-away CPython that loads them and says what came of it.

The first line of stdin is JSON: the names that each mode may look up, as [module, name]. Then each stream has four bytes of
length (big endian), a byte that names its mode (p, d, x for an exception) and its bytes. The answer to each is a line: `ok`, or
what is wrong with having accepted it.
"""

import collections as c
import datetime as dt
import decimal
import fractions
import io
import ipaddress
import json
import pathlib
import pickle
import pickletools
import resource
import sys
import time
import uuid
import zoneinfo

PRIMITIVES = {type(None), bool, int, float, complex, str, bytes}
PLAIN = PRIMITIVES | {
    bytearray, range, slice, type(...), pathlib.PosixPath, pathlib.PurePosixPath, pathlib.PureWindowsPath, dt.date, dt.datetime,
    dt.time, dt.timedelta, dt.timezone, zoneinfo.ZoneInfo, time.struct_time, decimal.Decimal, fractions.Fraction, uuid.UUID,
    ipaddress.IPv4Address, ipaddress.IPv6Address, ipaddress.IPv4Network, ipaddress.IPv6Network, ipaddress.IPv4Interface,
    ipaddress.IPv6Interface,
}  # fmt: skip
MANY = {list, tuple, set, frozenset}
FACTORIES = {None, bool, int, float, complex, str, bytes, bytearray, list, tuple, dict, set, frozenset}
#: Seconds of CPU that no accepted stream may take, nodes up to which a value is looked into, levels that it may have.
SLOW, LARGE, DEEP = 2.0, 100_000, 1001

names = {mode: {tuple(pair) for pair in pairs} for mode, pairs in json.loads(sys.stdin.buffer.readline()).items()}
seen = []


def hook(event, arguments):
    if watching:
        seen.append((event, arguments[:2] if event == "pickle.find_class" else repr(arguments)[:200]))


watching = False
sys.addaudithook(hook)
sys.setrecursionlimit(5000)
resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
zoneinfo.ZoneInfo("UTC")
for key in ("No/Where", "Nowhere"):  # what the search for a missing zone imports
    try:
        zoneinfo.ZoneInfo(key)
    except zoneinfo.ZoneInfoNotFoundError:
        pass


class Unlisted(Exception):
    """A type that the mode has not; or more nodes than are worth looking at."""


def canon(value, scalars, depth=0, count=None):
    """The value as lists and texts, in which everything shows that could differ."""
    count = count if count is not None else [0]
    count[0] += 1
    if depth > DEEP:
        raise Unlisted("itself, or is nested too deeply")
    if count[0] > LARGE:
        raise OverflowError
    kind = type(value)
    if kind in scalars:
        if kind is int:
            return ["int", hex(value)]
        return [kind.__name__, repr(value), getattr(value, "fold", 0), repr(getattr(value, "tzinfo", None))]
    if kind in MANY or (scalars is PLAIN and kind is c.deque):
        parts = [canon(part, scalars, depth + 1, count) for part in value]
        if kind in (set, frozenset):
            parts = sorted(parts, key=repr)
        return [kind.__name__, getattr(value, "maxlen", None), parts]
    if kind is dict or (scalars is PLAIN and kind in (c.OrderedDict, c.Counter, c.defaultdict)):
        factory = getattr(value, "default_factory", None)
        if factory not in FACTORIES:
            raise Unlisted(f"a factory {factory!r}")
        parts = [[canon(key, scalars, depth + 1, count), canon(part, scalars, depth + 1, count)] for key, part in value.items()]
        return [kind.__name__, repr(factory), parts]
    raise Unlisted(repr(kind))


def judge(mode, stream):
    global watching
    seen.clear()
    start = time.process_time()
    watching = True
    try:
        value = pickle.loads(stream)
    except Exception as error:
        return f"it does not load: {type(error).__name__}: {error}"
    finally:
        watching = False
    if time.process_time() - start > SLOW:
        return "it takes long to load"
    zones = False
    for event, arguments in seen:
        if event == "pickle.find_class":
            if arguments not in names[mode]:
                return f"it looks up {arguments}"
            zones = zones or arguments[0] == "zoneinfo"
        elif not (zones and event in ("open", "import", "os.listdir", "object.__getattr__")):
            return f"it does {event} {arguments}"
    try:
        pickletools.dis(stream, io.StringIO())
    except ValueError as error:
        return f"pickletools: {error}"
    scalars = PRIMITIVES if mode == "p" else PLAIN
    try:
        if mode == "x":
            if not isinstance(value, Exception) or value.__dict__ or type(value).__module__ != "builtins":
                return f"no plain exception: {type(value)!r}"
            value = value.args
        told = canon(value, scalars)
        again = pickle.loads(pickle.dumps(value, 5))
        if canon(again, scalars) != told:
            return "it changes when it is dumped and loaded again"
    except OverflowError:
        return "ok"
    except Unlisted as error:
        return f"it holds {error}"
    return "ok"


while header := sys.stdin.buffer.read(5):
    stream = sys.stdin.buffer.read(int.from_bytes(header[:4], "big"))
    sys.stdout.write(judge(chr(header[4]), stream).encode("unicode_escape").decode() + "\n")
    sys.stdout.flush()
