"""Raw memory and foreign code through what ctypes charges."""

from __future__ import annotations

from functools import partial

from attack import Attack

native = partial(Attack, "native")

CASES: list[Attack] = [
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
]
