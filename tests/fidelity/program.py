"""Evaluates every row in a folder of its own, calls in a process of their own, and prints what came of it as JSON lines.

program.py rows.py | call_rows.py | attributes [PATTERN...]
"""

# ruff: noqa: F401  (the rows use what is imported)
from __future__ import annotations

import _imp
import _posixsubprocess
import _ssl
import _thread
import ast
import asyncio
import builtins
import codecs
import collections
import concurrent.futures
import copy
import fcntl
import fnmatch
import gc
import importlib
import importlib.machinery
import inspect
import io
import json
import logging
import marshal
import multiprocessing
import multiprocessing.popen_fork
import multiprocessing.resource_tracker
import os
import pathlib
import pickle
import pty
import re
import resource
import runpy
import select
import shutil
import signal
import site
import socket
import sqlite3
import ssl
import stat
import subprocess
import sys
import syslog
import tempfile
import termios
import threading
import time
import types
import warnings
import webbrowser

from call_rows import CALL_ROWS
from rows import ROWS

# What a build or a version may lack: a row of it is passed over, in both runs.
LACKING = "_dbm _gdbm dbm shelve readline spwd _ctypes ctypes _tkinter tkinter _xxsubinterpreters _interpreters pdb"
for _name in LACKING.split():
    try:
        globals()[_name] = importlib.import_module(_name)
    except ImportError:
        pass

TRUE = "/bin/true"


class P:
    """A path-like object."""

    def __init__(self, path):
        self.path = path

    def __fspath__(self):
        return self.path

    def __repr__(self):
        return f"P({self.path!r})"


class Bad:
    """A path-like object that fails."""

    def __fspath__(self):
        raise LookupError("no path")

    def __repr__(self):
        return "Bad()"


class I:  # noqa: E742
    """What has an __index__."""

    def __init__(self, n):
        self.n = n

    def __index__(self):
        return self.n

    def __repr__(self):
        return f"I({self.n})"


class S(str):
    """A str of a class of its own."""


class B(bytes):
    """The same of bytes."""


class Example:
    """Something to pickle."""

    def __init__(self, value):
        self.value = value

    def __repr__(self):
        return f"Example({self.value!r})"


def fd(path, flags=os.O_RDONLY):
    return os.open(path, flags)


def mode(path):
    return oct(os.lstat(path).st_mode)


def st(result):
    """Of a stat result what two runs share."""
    return type(result).__name__, len(result), oct(result.st_mode), stat.S_ISDIR(result.st_mode) or result.st_size


def entry(name):
    return next(e for e in os.scandir() if e.name == name)


def waited(pid):
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def bound():
    s = socket.socket()
    s.bind(("127.0.0.1", 0))
    return s


def udp():
    return socket.socket(socket.AF_INET, socket.SOCK_DGRAM)


_closed = bound()  # bound, never listening: nobody answers there, and nobody else gets it
CLOSED = _closed.getsockname()[1]


def sleeping():
    return subprocess.Popen(["sleep", "20"])


def killed(process):
    process.kill()
    return process.wait()


def ended(process):
    process.terminate()
    return process.wait()


async def shell(command):
    return await (await asyncio.create_subprocess_shell(command)).wait()


async def program(*args):
    return await (await asyncio.create_subprocess_exec(*args)).wait()


def joined(method, *args):
    process = multiprocessing.get_context(method).Process(target=int, args=args)
    process.start()
    process.join()
    return process.exitcode


def joined_thread(function, *args):
    done = threading.Event()
    _thread.start_new_thread(lambda: (function(*args), done.set()), ())
    return done.wait(20)


def spec(name, path):
    loader = importlib.machinery.ExtensionFileLoader(name, path)
    return importlib.machinery.ModuleSpec(name, loader, origin=path)


def events(setter):
    seen = []
    setter(lambda frame, event, arg: seen.append(event))
    Example(5)
    setter(None)
    return seen[:2]


def heard(event, *args):
    seen = []
    sys.addaudithook(lambda e, a: seen.append((e, a)) if e == event else None)
    sys.audit(event, *args)
    return seen


def plain(text):
    """Without what differs between any two runs."""
    text = text.replace(os.getcwd(), "CWD").replace(str(CLOSED), "CLOSED")
    text = re.sub(r"0x[0-9a-f]+", "0x", text)
    text = re.sub(r"\bst_([amc]time|ino|dev)=\d+", r"st_\1=", text)
    text = re.sub(r"0\.0[45]\d+", "0.05", text)  # what was left of a time limit
    text = re.sub(r"[^\s'\"(]*/bin/python[0-9.]*", "PYTHON", text)
    text = re.sub(r"\b(fd|pid|laddr|raddr|thread)=(\d+|\(.*?\))", r"\1=", text)
    return re.sub(r"(?<=')/tmp/[^']*|tmp[a-z0-9_]{8}", "TMP", text)


def what(e, depth=0):
    """All that a program can see of an exception."""
    facts = [type(e).__module__, type(e).__qualname__, repr(e), str(e), getattr(e, "__notes__", None)]
    facts += [repr(getattr(e, a, "-")) for a in ("errno", "strerror", "filename", "filename2", "name", "path", "returncode")]
    facts += [[what(c, depth + 1) for c in (e.__cause__, e.__context__) if c is not None and depth < 3]]
    return facts


def evaluate(expression):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            value = eval(expression)
            volatile = type(value).__name__ == "statvfs_result"  # what is free changes under us
            facts = ["value", type(value).__name__, "" if volatile else repr(value)]
        except BaseException as e:
            facts = ["raised", what(e)]
    own = [w for w in caught if "leak" not in str(w.message) and w.category is not ResourceWarning]
    return json.loads(plain(json.dumps([facts, [(w.category.__name__, str(w.message)) for w in own]])))


def prepare(folder):
    os.mkdir(folder)
    os.chdir(folder)
    pathlib.Path("f").write_text("hello")
    os.mkdir("d")
    os.mkdir("full")
    pathlib.Path("full/x").write_text("in")
    pathlib.Path("prog.py").write_text("x = 5\n")
    for target, name in ("f", "link"), ("none", "dangling"), ("loop", "loop"):
        os.symlink(target, name)
    sys.path.insert(0, os.getcwd())


def child(report, folder, expressions):
    """Evaluates expressions one after the other, each in a folder of its own, and reports each as a line."""
    os.setpgid(0, 0)
    signal.alarm(60)
    own = os.open(folder + ".std", os.O_RDWR | os.O_CREAT)  # rows change what 1 is: /dev/null would be the whole machine's
    for n in 0, 1, 2:
        os.dup2(own, n)
    for n, expression in enumerate(expressions):
        prepare(f"{folder}.{n}")
        me, said = os.getpid(), evaluate(expression)
        if os.getpid() != me:  # a copy that the expression made
            return
        os.write(report, (json.dumps(said) + "\n").encode())


def row(folder, expressions):
    """What the expressions of a child said. One that ended the child is told by how it did, and another child goes on."""
    receive, report = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            child(report, folder, expressions)
        finally:
            os._exit(0)
    os.close(report)
    said = b""
    while piece := os.read(receive, 65536):
        said += piece
    os.close(receive)
    status = os.waitpid(pid, 0)[1]
    try:
        os.killpg(pid, signal.SIGKILL)  # what it started
    except OSError:
        pass
    results = [json.loads(line) for line in said.splitlines()]
    if len(results) < len(expressions):
        results.append(f"ended with {status}")
        if rest := expressions[len(results) :]:
            results += row(folder + "+", rest)
    return results


def main():
    part, *patterns = sys.argv[1:]
    if part == "attributes":
        from attributes import show

        return show(patterns)
    number = 0
    together = part == "rows.py"  # calls change the process
    for name, text in (ROWS if together else CALL_ROWS).items():
        if patterns and not any(fnmatch.fnmatchcase(name, p) for p in patterns):
            continue
        expressions = [e for e in text.split("\n") if e.strip()]
        try:
            lookup(name)
        except (AttributeError, KeyError):
            results = ["not here"] * len(expressions)
        else:
            groups = [expressions] if together else [[e] for e in expressions]
            results = []
            for group in groups:
                number += 1
                results += row(os.path.abspath(f"work/{number}"), group)
        for expression, result in zip(expressions, results, strict=True):
            print(json.dumps([name, expression, result]), flush=True)
    return None


def lookup(name):
    """Raises where the function is not there. Names of events, and of C types of no module, count as there."""
    head, *rest = name.split(".")
    if head in ("code", "function") or name.endswith(
        ("find_class", "__new__", "_restore", "from_address", "dlopen", "listen", "CFuncPtr", "keepalive", "retype")
    ):
        return
    thing = globals()[head]
    for part in rest if head != "socket" or rest[0] in vars(socket) else []:
        thing = getattr(thing, part)


if __name__ == "__main__":
    main()
