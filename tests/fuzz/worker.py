# ruff: noqa: PTH101, PTH103, PTH116, PTH120, PTH123, PTH208, PTH211
"""One run of the fuzzer, in its folder: calls everything with the zoo's values and prints what became of each.

``worker.py GROUP SEED SECONDS CASES SECRET EVENTS``; runs under python-sb and bare. A line of the output is JSON: case, what
was called, kind (value, error, refused), text.
"""

from __future__ import annotations

import contextlib
import faulthandler
import gc
import importlib
import io
import json
import os
import random
import re
import shutil
import stat
import sys
import time
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import zoo

SECRET = "s3cret" * 137
Call = tuple[str, Callable[..., Any], tuple[str, ...]]


def file_functions() -> list[Call]:
    """What takes paths, with the names of its arguments; a * stands before those that can only be given by keyword."""
    rows = [
        "os.stat path *dir_fd *follow_symlinks",
        "os.lstat path *dir_fd",
        "os.access path mode *dir_fd *effective_ids *follow_symlinks",
        "os.readlink path *dir_fd",
        "os.statvfs path",
        "os.pathconf path name",
        "os.mkfifo path mode *dir_fd",
        "os.mknod path mode device *dir_fd",
        "os.open path flags mode *dir_fd",
        "os.listdir path",
        "os.scandir path",
        "os.chdir path",
        "os.mkdir path mode *dir_fd",
        "os.rmdir path *dir_fd",
        "os.remove path *dir_fd",
        "os.rename src dst *src_dir_fd *dst_dir_fd",
        "os.replace src dst *src_dir_fd *dst_dir_fd",
        "os.link src dst *src_dir_fd *dst_dir_fd *follow_symlinks",
        "os.symlink src dst target_is_directory *dir_fd",
        "os.truncate path length",
        "os.chmod path mode *dir_fd *follow_symlinks",
        "os.utime path times *ns *dir_fd *follow_symlinks",
        "os.setxattr path attribute value flags *follow_symlinks",
        "os.getxattr path attribute *follow_symlinks",
        "os.removexattr path attribute *follow_symlinks",
        "os.listxattr path *follow_symlinks",
        "io.open file mode buffering encoding errors newline closefd opener",
        "io.FileIO file mode closefd opener",
        "io.open_code path",
        "os.path.exists path",
        "os.path.isdir s",
        "os.path.realpath path",
        "builtins.__import__ name globals locals fromlist level",
        "importlib.import_module name package",
        "sqlite3.connect database timeout *uri",
    ]
    found = []
    for row in rows:
        name, *names = row.split()
        module, _, attribute = name.rpartition(".")
        try:
            found.append((name, getattr(importlib.import_module(module), attribute), tuple(names)))
        except (ImportError, AttributeError):
            continue
    try:
        import ssl

        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        found.append(("ssl.load_verify_locations", context.load_verify_locations, ("cafile", "capath", "cadata")))
        found.append(("ssl.load_cert_chain", context.load_cert_chain, ("certfile", "keyfile", "password")))
    except ImportError:
        pass
    return found


def sensitive_functions(targets: list[list[str]]) -> list[Call]:
    """What no rule grants: each is to be refused whatever it is called with, or to say that it cannot be called so."""
    found: list[Call] = []
    for module, attribute in targets:
        try:
            one: Any = importlib.import_module(module)
            for part in attribute.split("."):
                one = getattr(one, part)
        except (ImportError, AttributeError):
            continue
        found.append((f"{module}.{attribute}", one, ("a", "b", "*c", "*args")))
    return found


def arguments(r: random.Random, names: tuple[str, ...]) -> tuple[list[object], dict[str, object]]:
    """Mostly the right number, by place or keyword; sometimes a wrong one."""
    if r.random() < 0.05:
        return [zoo.value(r) for _ in range(r.choice([0, 7, 20]))], {}
    if r.random() < 0.08:  # what one is asked makes another one something else
        name = r.choice(["__index__", "__fspath__"])
        late, other = zoo.later(name)
        by_name = {n.lstrip("*"): late if n.endswith("dir_fd") else other for n in names if r.random() < 0.8}
        return [], by_name
    args: list[object] = []
    kwargs: dict[str, object] = {}
    if zoo.CALL is os.pathconf:  # no descriptor is a null pointer to CPython, and glibc reads it
        return [zoo.path(r), *([zoo.value(r)] if r.random() < 0.9 else [])], {}
    for at, name in enumerate(names):
        if at and r.random() < 0.5:
            continue
        value: object = zoo.path(r) if at == 0 and r.random() < 0.4 else zoo.value(r)
        if name == "opener" and callable(value):
            continue
        if name.startswith("*") or len(args) < at or r.random() < 0.2:
            kwargs[name.lstrip("*")] = value
        else:
            args.append(value)
    if r.random() < 0.03:
        kwargs["wrong"] = 1
    return args, kwargs


def tree() -> None:
    """The worker's folder as each case finds it."""
    for folder in (zoo.ROOT, zoo.ROOT + "/work", zoo.ROOT + "/work/d"):
        with contextlib.suppress(OSError):
            os.chmod(folder, 0o755)
    os.chdir(zoo.ROOT)
    shutil.rmtree("work", ignore_errors=True)
    os.makedirs("work/d")
    os.chdir("work")
    with open("f", "w") as file:
        file.write("in the open")
    for target, name in (
        ("f", "link"),
        ("none", "dangling"),
        ("loop", "loop"),
        (zoo.SECRET, "out"),
        (os.path.dirname(zoo.SECRET), "outdir"),
    ):
        os.symlink(target, name)


def keep_secret(present: bool) -> None:
    """Without a sandbox a case may have changed the secret."""
    folder = os.path.dirname(zoo.SECRET)
    if not present:
        return
    with contextlib.suppress(OSError):
        if (
            os.stat(zoo.SECRET).st_size == len(SECRET)
            and os.listdir(folder) == ["key"]
            and os.stat(zoo.SECRET).st_mode == 0o100600
        ):
            return
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder, exist_ok=True)
    with open(zoo.SECRET, "w") as file:
        file.write(SECRET)
    os.chmod(zoo.SECRET, 0o600)


def told(value: object) -> str:
    if isinstance(value, os.stat_result):
        return f"stat {value.st_mode:o} {value.st_size}"
    if isinstance(value, os.statvfs_result):
        return f"statvfs {value.f_namemax}"
    if isinstance(value, io.IOBase):
        try:
            content = value.read() if value.readable() and stat.S_ISREG(os.fstat(value.fileno()).st_mode) else ""
            value.close()
        except (OSError, ValueError) as error:
            content = type(error).__name__
        return f"file {content!r}"
    if hasattr(value, "close") and hasattr(value, "__next__"):
        value = sorted(entry.name for entry in value)
    if type(value) is list:
        value = sorted(map(repr, value))
    try:
        text = repr(value)
    except BaseException as error:
        text = f"no repr: {type(error).__name__}"
    return re.sub(r"0x[0-9a-f]+", "0x", text.replace(os.path.dirname(zoo.ROOT), "@"))[:300]


def outcome(function: Callable[..., Any], args: list[object], kwargs: dict[str, object]) -> tuple[str, str]:
    given = tuple(args)
    try:
        value = function(*given, **kwargs)
        if type(value) is int and getattr(function, "__name__", "") == "open":
            try:
                value = ("descriptor", os.read(value, 99) if stat.S_ISREG(os.fstat(value).st_mode) else b"")
            except OSError as error:
                value = ("descriptor", error.errno)
        return "value", told(value)
    except BaseException as error:
        kind = "refused" if hasattr(type(error), "text") and type(error).__module__ == "pysandboxes" else "error"
        if isinstance(error, SystemError) and "exception set" in str(error):
            kind = "broken"
        name = type(error).__name__
        text = told(str(error)) if type(error).__str__ in (BaseException.__str__, OSError.__str__) else ""
        if kind == "error" and (
            "in a sandbox" in text or "__sandbox_denials__" in getattr(error, "__dict__", {})
        ):  # sqlite3's own
            kind = "refused"
        error.__traceback__ = None
        return kind, f"{name} {getattr(error, 'errno', '')} {text}"


def main(group: str, seed: int, seconds: float, cases: int, secret: str, facts: str) -> None:
    saved = [os.dup2(fd, 500 + fd) for fd in range(3)]  # a case may close what it is given by number
    sys.stdout = say = open(saved[1], "w", closefd=False)  # noqa: SIM115
    faulthandler.enable(saved[2])
    faulthandler.dump_traceback_later(seconds + 20, exit=True, file=saved[2])
    warnings.simplefilter("ignore")
    with open(facts) as file:
        known = json.load(file)
    zoo.ROOT, zoo.SECRET = os.path.dirname(os.path.dirname(secret)) + "/root", secret
    bare = known["bare"]
    tree()
    functions = file_functions() if group == "paths" else sensitive_functions(known["targets"]) if group == "calls" else []
    events = known["events"]
    end = time.monotonic() + seconds
    listed = {int(name) for name in os.listdir("/proc/self/fd")}
    descriptors = {fd for fd in listed if os.path.lexists(f"/proc/self/fd/{fd}")} | {saved[0]}  # not the list's own
    for case in range(cases):
        if time.monotonic() > end:
            break
        r = random.Random(seed * 1_000_003 + case)
        if group == "events":
            name = r.choice(events)
            zoo.CALL = partial(sys.audit, name)
            args, kwargs = [zoo.value(r) for _ in range(r.choice([0, 1, 1, 2, 2, 3, 4, 5, 6]))], {}
            function: Callable[..., Any] = partial(sys.audit, name)
        else:
            name, function, names = r.choice(functions)
            zoo.CALL = function
            args, kwargs = arguments(r, names)
        if r.random() < 0.1:
            gc.set_threshold(r.choice([1, 2, 3, 5]))
        say.write(json.dumps([case, name]) + "\n")
        say.flush()  # what was under way when the process died
        zoo.HELD[:] = args
        kind, text = outcome(function, args, kwargs)
        gc.set_threshold(700)
        zoo.HELD.clear()
        del args, kwargs
        say.write(json.dumps([case, name, kind, text]) + "\n")
        if group == "paths":
            gc.collect(0)
            tree()
            if bare:
                keep_secret(known["present"])
                with contextlib.suppress(OSError):
                    os.ftruncate(saved[0], 0)
                os.fchmod(saved[0], 0o644)  # standard input is the program's without a sandbox, and is not exposed in one
            for fd in range(3, 64):  # what the case left open
                if fd not in descriptors:
                    with contextlib.suppress(OSError):
                        os.close(fd)
            for fd in range(3):
                os.dup2(saved[fd], fd)
    say.write('"end"\n')
    say.flush()
    os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), int(sys.argv[4]), sys.argv[5], sys.argv[6])
