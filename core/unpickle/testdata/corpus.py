"""Write what this interpreter's pickler makes of each value: one line `name<TAB>base64 of zlib` to stdout.

    python3.11 corpus.py > corpus-3.11.txt     (likewise 3.12, 3.13; from the folder testdata)

Names that begin with `no-` are values that data-only refuses; `ex-` are exceptions, accepted as such where no `-no` ends the
name; the others are accepted.
"""

import base64
import collections as c
import datetime as dt
import decimal
import fractions
import ipaddress as ip
import pathlib
import pickle
import sys
import time
import uuid
import zlib
import zoneinfo

berlin = zoneinfo.ZoneInfo("Europe/Berlin")
utc = dt.UTC
shared = [1, 2]
shared_tuple = (1, ("a", b"b"))
counted = uuid.UUID(int=5)

VALUES = {
    "none": None,
    "bools": [True, False],
    "ints": [
        0,
        1,
        -1,
        255,
        256,
        65535,
        65536,
        -(2**31),
        2**31,
        2**63,
        -(2**63),
        2**64,
        10**40,
        -(10**40),
        1 << 2040,
        1 << 9000,
    ],
    "floats": [0.0, -0.0, 1.5, 1e300, float("inf"), float("-inf"), float("nan")],
    "complex": 1.5 + 2j,
    "strs": ["", "a", "é" * 200, "x" * 70000, "\udcff lone", "\U0001f600", "\ud83d\ude00"],
    "bytes": [b"", b"abc", b"\0" * 300, b"y" * 70000],
    "bytearray": [bytearray(), bytearray(b"abc")],
    "lists": [[], [1], [1, [2, [3]]], list(range(2500))],
    "tuples": [(), (1,), (1, 2), (1, 2, 3), (1, 2, 3, 4), tuple(range(1500))],
    "dicts": [{}, {1: 2}, {"a": {"b": {}}}, {i: str(i) for i in range(2500)}, {(1, "a"): 2, None: 3, 1.5: 4, b"k": 5}],
    "sets": [set(), {1}, {1, 2, "a"}, set(range(2500))],
    "frozensets": [frozenset(), frozenset([1, "a", frozenset([2])]), frozenset(range(1500))],
    "shared": [shared, shared, (shared_tuple, shared_tuple), {"k": shared}],
    "range": [range(0), range(1, 10, 2), range(10**30, 0, -1)],
    "slice": [slice(None), slice(1, 2), slice(1, None, -1), slice("a", "b")],
    "ellipsis": [..., {"k": ...}],
    "paths": [
        pathlib.PosixPath("/a/b"),
        pathlib.PurePosixPath("a"),
        pathlib.PosixPath(),
        pathlib.PureWindowsPath("c:\\a\\b"),
        pathlib.PosixPath("/a/b/c/d/e"),
    ],
    "dates": [dt.date(2020, 2, 29), dt.date.min, dt.date.max],
    "datetimes": [
        dt.datetime(2020, 1, 2, 3, 4, 5, 6),
        dt.datetime.max,
        dt.datetime(2020, 1, 2, fold=1),
        dt.datetime(2020, 1, 2, tzinfo=utc),
        dt.datetime(2020, 7, 2, tzinfo=berlin),
    ],
    "times": [
        dt.time(),
        dt.time(23, 59, 59, 999999, fold=1),
        dt.time(1, tzinfo=utc),
        dt.time(1, tzinfo=dt.timezone(-dt.timedelta(hours=5, minutes=30), "x")),
    ],
    "timedeltas": [dt.timedelta(), dt.timedelta.max, dt.timedelta.min, dt.timedelta(-1, 5, 7)],
    "timezones": [
        utc,
        dt.timezone(dt.timedelta(hours=23, minutes=59)),
        dt.timezone(-dt.timedelta(hours=23, minutes=59)),
        dt.timezone(dt.timedelta(0), "Zero"),
    ],
    "zones": [
        berlin,
        zoneinfo.ZoneInfo("UTC"),
        zoneinfo.ZoneInfo("Etc/GMT+5"),
        zoneinfo.ZoneInfo("America/Argentina/Buenos_Aires"),
        zoneinfo.ZoneInfo.no_cache("UTC"),
        berlin,
    ],
    "struct_times": [time.gmtime(0), time.localtime(0), time.struct_time(range(9))],
    "decimals": [
        decimal.Decimal(s)
        for s in (
            "0",
            "-0",
            "1.50",
            "1E+10",
            "0E-7",
            "-1.5E-20",
            "Infinity",
            "-Infinity",
            "NaN",
            "-NaN12",
            "sNaN",
            "9" * 500,
            "1E+999999999",
        )
    ],
    "fractions": [fractions.Fraction(1, 3), fractions.Fraction(-7, 2), fractions.Fraction(0), fractions.Fraction(10**40, 3)],
    "uuids": [
        counted,
        counted,
        uuid.UUID(int=2**128 - 1),
        uuid.UUID(int=0),
        uuid.UUID(int=2**40, is_safe=uuid.SafeUUID.safe),
        uuid.UUID(int=7, is_safe=uuid.SafeUUID.unsafe),
    ],
    "addresses": [
        ip.ip_address(s)
        for s in (
            "0.0.0.0",
            "1.2.3.4",
            "255.255.255.255",
            "::",
            "::1",
            "fe80::1%eth0",
            "::ffff:1.2.3.4",
            "2001:db8:1:2:3:4:5:6",
        )
    ],
    "networks": [ip.ip_network(s) for s in ("10.0.0.0/8", "0.0.0.0/0", "1.2.3.4", "fe80::/10", "::/0", "::1")],
    "interfaces": [ip.ip_interface(s) for s in ("10.0.0.1/8", "1.2.3.4", "fe80::1/10", "fe80::1%a/64")],
    "ordered": [c.OrderedDict(), c.OrderedDict(a=1), c.OrderedDict((i, i) for i in range(1200))],
    "counters": [c.Counter(), c.Counter("aab"), c.Counter({1: 2})],
    "deques": [c.deque(), c.deque([1, 2]), c.deque([1, 2, 3], 3), c.deque(maxlen=0), c.deque(range(1200))],
    "defaultdicts": [
        c.defaultdict(None),
        c.defaultdict(list, a=[1]),
        c.defaultdict(dict),
        c.defaultdict(int, {1: 2}),
        c.defaultdict(complex),
        c.defaultdict(set, {i: {i} for i in range(30)}),
    ],
    "keys": [
        {k: 1}
        for k in (
            fractions.Fraction(1, 3),
            decimal.Decimal("1.5"),
            uuid.UUID(int=9),
            dt.date(2020, 1, 1),
            dt.datetime(2020, 1, 1, tzinfo=utc),
            dt.timedelta(1),
            (1, (2, frozenset([3]))),
            1 + 2j,
            ip.ip_address("1.2.3.4"),
            pathlib.PosixPath("a"),
            ip.ip_network("10.0.0.0/8"),
            range(3),
            utc,
            berlin,
            time.gmtime(0),
            ...,
        )
    ],
    "many-keys": [
        {uuid.UUID(int=i * 977): i for i in range(300)},
        {dt.datetime(2020, 1, 1, 0, i // 60, i % 60, tzinfo=utc): i for i in range(300)},
        {decimal.Decimal(i) / 7: i for i in range(300)},
        {(i, -i): i for i in range(300)},
    ],
    "rows": {
        "rows": [
            {"id": i, "name": f"n{i}", "tags": ("a", "b"), "score": i / 3, "at": dt.datetime(2020, 1, 1)} for i in range(300)
        ]
    },
    "no-class": [int],
    "no-function": {"f": len},
    "no-object": {"rows": [1, 2, 3, type("C", (), {"__reduce__": lambda self: (pickle.Unpickler, ())})()]},
    "no-enum": [uuid.SafeUUID.safe],
    "no-exception": [ValueError("x")],
    "no-context": decimal.Context(),
    "no-method": [pathlib.PosixPath("x").unlink],
    "no-notimplemented": NotImplemented,
    "no-date-key-list": [c.UserDict(a=1)],
    "ex-value-no": ValueError("bad", 1, [2]),
    "ex-os-no": FileNotFoundError(2, "No such file", "/x"),
    "ex-key-no": KeyError("k"),
    "ex-unicode-no": UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid"),
    "ex-rich": Exception(("bad", 1, [2]), {"code": 7}),
    "ex-rich-nested-no": Exception((ValueError(1),), {}),
    "ex-rich-alone-no": Exception(("bad",)),
    "ex-rich-state-no": type("Exception", (Exception,), {"__reduce__": lambda self: (Exception, ((), {}), {"a": 1})})(),
    "ex-group-no": ExceptionGroup("g", [ValueError(1)]),
    "ex-exit-no": SystemExit(3),
    "ex-notes-no": ValueError("n"),
    "ex-nested-no": ValueError(ValueError(1)),
}
VALUES["ex-notes-no"].add_note("a note")
cycle: list = [1]
cycle.append(cycle)
VALUES["no-cycle-list"] = cycle
loop: dict = {}
loop["k"] = [loop]
VALUES["no-cycle-dict"] = loop
knot: list = []
turn = (knot, 1)
knot.append(turn)
VALUES["no-cycle-tuple"] = turn

if __name__ == "__main__":
    for name, value in VALUES.items():
        sys.stdout.write(f"{name}\t{base64.b64encode(zlib.compress(pickle.dumps(value, 5), 9)).decode()}\n")
