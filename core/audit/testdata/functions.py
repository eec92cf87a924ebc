"""Print every function of the C modules that touch processes, files, memory or code: one `module.name` a line."""

import importlib
import types

for module in (
    "posix",
    "_signal",
    "resource",
    "_thread",
    "gc",
    "_imp",
    "_ctypes",
    "marshal",
    "_posixsubprocess",
    "sys",
    "_posixshmem",
    "_multiprocessing",
    "fcntl",
    "readline",
    "_interpreters",
    "_xxsubinterpreters",
    "faulthandler",
    "syslog",
):
    try:
        m = importlib.import_module(module)
    except ImportError:
        continue
    for name, value in vars(m).items():
        if isinstance(value, types.BuiltinFunctionType) and not name.startswith("__"):
            print(f"{module}.{name}")
