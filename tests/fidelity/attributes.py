"""Prints what a program can see of each function that it is told: one JSON line a function.

The functions come as `module:path.in.it`; one that is not there is passed over.
"""

from __future__ import annotations

import copy
import functools
import importlib
import inspect
import json
import operator
import os
import pickle
import re
import types
import weakref

SETS = [s for s in dir(os) if s.startswith("supports_")]


def seen(look):
    try:
        said = repr(look())
    except Exception as e:
        said = f"{type(e).__name__}: {e}"
    return re.sub(r"0x[0-9a-f]+", "0x", said)


def facts(module, path):
    holder = module
    *way, name = path.split(".")
    for part in way:
        holder = getattr(holder, part)
    f = getattr(holder, name)
    twin = importlib.import_module("posix" if module.__name__ == "os" else module.__name__)
    looks = {
        "__name__": lambda: f.__name__,
        "__qualname__": lambda: f.__qualname__,
        "__module__": lambda: f.__module__,
        "__doc__": lambda: f.__doc__,
        "__self__": lambda: f.__self__,
        "__text_signature__": lambda: f.__text_signature__,
        "signature": lambda: str(inspect.signature(f)),
        "type": lambda: type(f),
        "class": lambda: f.__class__,
        "isbuiltin": lambda: inspect.isbuiltin(f),
        "isroutine": lambda: inspect.isroutine(f),
        "isfunction": lambda: inspect.isfunction(f),
        "callable": lambda: callable(f),
        "builtin type": lambda: isinstance(f, types.BuiltinFunctionType),
        "repr": lambda: f,
        "dir": lambda: dir(f),
        "pickle": lambda: pickle.loads(pickle.dumps(f)) is f,
        "copy": lambda: (copy.copy(f) is f, copy.deepcopy(f) is f),
        "same": lambda: (
            f is getattr(holder, name),
            f == operator.attrgetter(name)(holder),
            hash(f) == hash(getattr(holder, name)),
        ),
        "twin": lambda: f is getattr(twin, name, f),
        "partial": lambda: functools.partial(f).func is f,
        "wrapped": lambda: functools.wraps(f)(lambda: 0).__name__,
        "weakref": lambda: weakref.ref(f)() is f,
        "sets": lambda: [s for s in SETS if f in getattr(os, s)],
        "code": lambda: f.__code__.co_argcount,
        "defaults": lambda: (f.__defaults__, f.__kwdefaults__),
        "annotations": lambda: f.__annotations__,
        "dict": lambda: vars(f),
        "in a class": lambda: type(type("C", (), {"f": f})().f).__name__,
        "compared": lambda: f < f,
        "set": lambda: setattr(f, "new_attribute", 1),
    }
    return {key: seen(look) for key, look in looks.items()}


def show(names):
    for name in names:
        module, _, path = name.partition(":")
        try:
            found = facts(importlib.import_module(module), path)
        except (ImportError, AttributeError):
            found = None
        print(json.dumps([name, found]), flush=True)
