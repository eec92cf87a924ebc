"""Explaining and enforcing agree: for random profiles and questions, ``explain`` says what a sandboxed child meets.

Each profile is made of lines that touch each other. One child under python-sb tries all the questions of its profile; the
engine is asked the same. The child's verdict is by the exception: one of ours means refused, any other outcome (a missing file,
a refused connection) means that the sandbox let it pass.

Under ``landlock`` the child asks the kernel and the broker, too, by calls of the C library that no Python layer sees. Where
they say something else than the engine, DIFFERENCES has the reason, or the test fails.
"""

from __future__ import annotations

import json
import os
import random
import socket
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest
from complete_mode import Place

from pysandboxes._native import ask

PROFILES = 52
QUESTIONS = 40  # of one profile
LEAST = 2000  # of all
ALLOWED = 0.4

#: What the asking program itself needs, in every profile.
BASE = """\
os-sandbox={provider}
ignore-best-effort=true
python-import=sys, os, socket, gc, marshal, threading, subprocess, resource, signal, ctypes, errno, struct
python-api=ALLOW:native
expose-ro=/bin/sh
expose-ro=/bin/true
"""

LINES = {
    "files": [
        "expose-ro=./a",
        "expose-rw=./a/b",
        "expose-ro=./a/one.txt",
        "expose-rw=./w",
        "expose-ro=./link",
        "expose-ro=./a/b/c",
        "expose-rw=./w/new.txt",
        "ignore=*.key",
        "ignore=./a/**/secret",
        "ignore=hidden",
    ],
    "net": [
        "net=ALLOW|TCP|127.0.0.1|{open}|OUT",
        "net=ALLOW|TCP|@loopback|*|OUT",
        "net=ALLOW|UDP|@loopback|*|OUT",
        "net=ALLOW|TCP|127.0.0.0/8|{closed}|*",
        "net=ALLOW|TCP|127.0.0.1|0|IN",
        "net=ALLOW|*|::1|*|*",
        "net=ALLOW|TCP|localhost|*|OUT",
        "net=ALLOW|TCP|*.localhost|1|OUT",  # no question has its port: what a look-up gave is reachable by it
        "net=DENY|*|@loopback|{closed}|*",
        "net=DENY|UDP|127.0.0.1|*|*",
        "net=DENY|TCP|127.0.0.2|*|OUT",
    ],
    "env": [
        "env=HOME=${{HOME}}",
        "env=SET=here",
        "env=X_*=${{X_*}}",
        "env=*_B=${{*_B}}",
        "unenv=X_B",
        "unenv=*_A",
        "unenv=HOME",
    ],
    "imports": [
        "python-import=*",
        "python-import=json, csv",
        "python-import=xml",
        "python-import=xml.etree, colorsys",
        "python-import=html.parser, fractions",
        "python-import=queue, bisect, calendar",
        "python-import=DENY:xml.dom",
        "python-import=DENY:json",
        "python-import=DENY:html",
        "python-import=DENY:colorsys, DENY:bisect",
    ],
    "calls": [
        "python-api=ALLOW:*",
        "python-api=ALLOW:introspection",
        "python-api=ALLOW:process-exec",
        "python-api=ALLOW:sys._getframe, ALLOW:os.system",
        "python-api=ALLOW:gc.get_objects, ALLOW:os.kill, ALLOW:threads",
        "python-api=ALLOW:dynamic-code",
        "python-api=ALLOW:builtins.eval, ALLOW:marshal.loads",
        "python-api=ALLOW:process-control",
        "python-api=ALLOW:deserialization",
        "python-api=DENY:sys._getframe",
        "python-api=DENY:process-exec",
        "python-api=DENY:introspection",
        "python-api=DENY:builtins.exec, DENY:os.nice",
        "python-api=DENY:process-control",
    ],
}

#: Questions of each family. ``{dir}`` stands for the folder, ``{open}`` and ``{closed}`` for ports of this machine.
ASKED = {
    "files": [
        f"{verb} {{dir}}/{path}"
        for verb in ("open", "write", "list")
        for path in (
            "a",
            "a/one.txt",
            "a/two.txt",
            "a/my.key",
            "a/b/c/d.txt",
            "a/b/secret",
            "a/b/absent",
            "hidden/x.txt",
            "w/new.txt",
            "w/other.txt",
            "w/hidden",
            "link/one.txt",
            "outside.txt",
            ".py-sandboxes",
        )
    ]
    + ["open /etc/passwd", "open /dev/null", "write /dev/null", "open /dev/zero", "write /dev/zero", "list /etc"],
    "net": [
        *(f"connect {host}:{port}" for host in ("127.0.0.1", "127.0.0.2", "[::1]") for port in ("{open}", "{closed}")),
        *(f"udp {host}:{port}" for host in ("127.0.0.1", "127.0.0.3", "[::1]") for port in ("{open}", "{closed}")),
        *(f"bind {host}:0" for host in ("127.0.0.1", "127.0.0.2", "[::1]")),
        "resolve localhost",
        "resolve app.localhost",
        "resolve app.example.invalid",
        "resolve 127.0.0.1",
    ],
    "env": [f"env {name}" for name in ("HOME", "SET", "X_A", "X_B", "Y_B", "PATH")],
    "imports": [
        *(f"import {name}" for name in ("json", "json.decoder", "csv", "xml", "xml.dom", "xml.dom.minidom", "xml.etree")),
        *(f"import {name}" for name in ("xml.etree.ElementTree", "colorsys", "html", "html.parser", "fractions", "queue")),
        *(f"import {name}" for name in ("bisect", "calendar", "uuid")),
    ],
    "calls": [
        *(f"call {name}" for name in ("os.system", "os.fork", "subprocess.run", "subprocess.Popen", "os.kill", "os.nice")),
        *(
            f"call {name}"
            for name in ("sys._getframe", "gc.get_objects", "gc.get_referrers", "marshal.loads", "resource.setrlimit")
        ),
        *(f"call {name}" for name in ("_thread.start_new_thread", "sys.settrace")),
        *("eval", "exec", "compile"),
    ],
}

ASKER = r"""
import ctypes, errno, gc, marshal, os, resource, signal, socket, struct, subprocess, sys, threading

def connect(where, kind=socket.SOCK_STREAM):
    host, port = where.rsplit(":", 1)
    family = socket.AF_INET6 if host[0] == "[" else socket.AF_INET
    with socket.socket(family, kind) as made:
        made.settimeout(5)
        if kind == socket.SOCK_DGRAM:
            made.sendto(b"x", (host.strip("[]"), int(port)))
        else:
            made.connect((host.strip("[]"), int(port)))

def bind(where):
    host, port = where.rsplit(":", 1)
    with socket.socket(socket.AF_INET6 if host[0] == "[" else socket.AF_INET) as made:
        made.bind((host.strip("[]"), int(port)))

def fork():
    if (pid := os.fork()) == 0:
        os._exit(0)
    os.waitpid(pid, 0)

def popen():
    with subprocess.Popen(["/bin/true"]):
        pass

MADE = (lambda: None).__code__

class SandBoxError(Exception):
    pass  # a variable that was not handed on raises nothing of ours by itself

def env(name):
    if name not in os.environ:
        raise SandBoxError(name + " is not set")

CALLS = {
    "os.system": lambda: os.system("true"),
    "os.fork": fork,
    "subprocess.run": lambda: subprocess.run(["/bin/true"]),
    "subprocess.Popen": popen,
    "os.kill": lambda: os.kill(os.getpid(), 0),
    "os.nice": lambda: os.nice(0),
    "sys._getframe": lambda: sys._getframe(),
    "gc.get_objects": lambda: gc.get_objects(),
    "gc.get_referrers": lambda: gc.get_referrers(os),
    "marshal.loads": lambda: marshal.loads(b"N"),
    "resource.setrlimit": lambda: resource.setrlimit(resource.RLIMIT_CORE, resource.getrlimit(resource.RLIMIT_CORE)),
    "_thread.start_new_thread": lambda: threading.Thread(target=int).start(),
    "sys.settrace": lambda: sys.settrace(None),
}
ASK = {
    "open": lambda path: os.close(os.open(path, os.O_RDONLY)),
    "write": lambda path: os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW)),
    "list": os.listdir,
    "connect": connect,
    "udp": lambda where: connect(where, socket.SOCK_DGRAM),
    "bind": bind,
    "env": env,
    "resolve": lambda host: socket.getaddrinfo(host, 80),
    "import": __import__,
    "call": lambda name: CALLS[name](),
    "eval": lambda _: eval("1"),
    "exec": lambda _: exec("1"),
    "code": lambda _: exec(MADE),
    "compile": lambda _: compile("1", "asked", "eval"),
}

libc = ctypes.CDLL(None, use_errno=True)

def address(where):
    host, port = where.rsplit(":", 1)
    if host[0] == "[":
        six = socket.inet_pton(socket.AF_INET6, host[1:-1])
        return socket.AF_INET6, struct.pack("=H", socket.AF_INET6) + struct.pack("!HI16sI", int(port), 0, six, 0)
    return socket.AF_INET, struct.pack("=H", socket.AF_INET) + struct.pack("!H4s8x", int(port), socket.inet_aton(host))

def by_socket(kind, act):
    def ask(where):
        family, name = address(where)
        fd = libc.socket(family, kind | socket.SOCK_CLOEXEC, 0)
        done = fd if fd < 0 else act(fd, name, len(name))
        error = ctypes.get_errno()
        if fd >= 0:
            libc.close(fd)
        ctypes.set_errno(error)
        return done
    return ask

def by_open(flags):
    def ask(path):
        fd = libc.open(os.fsencode(path), flags | os.O_CLOEXEC, 0o600)
        return fd if fd < 0 else libc.close(fd)
    return ask

NATIVE = {
    "open": by_open(os.O_RDONLY),
    "write": by_open(os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW),
    "list": by_open(os.O_RDONLY | os.O_DIRECTORY),
    "connect": by_socket(socket.SOCK_STREAM, libc.connect),
    "udp": by_socket(socket.SOCK_DGRAM, lambda fd, name, size: libc.sendto(fd, b"x", 1, 0, name, size)),
    "bind": by_socket(socket.SOCK_STREAM, libc.bind),
}

def kernel(word, argument):
    if word not in NATIVE:
        return "not asked"
    ctypes.set_errno(0)
    if NATIVE[word](argument) >= 0:
        return "allowed"
    return {errno.EACCES: "refused", errno.EPERM: "refused", errno.ECONNREFUSED: "refused"}.get(ctypes.get_errno(), "unclear")

for question in sys.stdin.read().splitlines():
    word, _, argument = question.partition(" ")
    verdict = "allowed"
    try:
        ASK[word](argument)
    except BaseException as error:
        if any(base.__name__ == "SandBoxError" for base in type(error).__mro__):
            verdict = f"refused, {type(error).__name__}: {str(error).splitlines()[0]}"
        else:
            verdict = "allowed, " + type(error).__name__
    print(question, verdict, kernel(word, argument), sep="\t", flush=True)
"""


@pytest.fixture(scope="module")
def ports() -> Iterator[dict[str, int]]:
    """A port that listens, on all addresses that are asked for, and one that does not."""
    for _ in range(50):
        with ExitStack() as stack:
            server = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=4096))
            port = server.getsockname()[1]
            try:
                stack.enter_context(socket.create_server(("127.0.0.2", port), backlog=4096))
                with suppress(OSError):  # no IPv6 here
                    six = stack.enter_context(socket.socket(socket.AF_INET6))
                    six.bind(("::1", port))
                    six.listen(4096)
            except OSError:
                continue
            unused = stack.enter_context(socket.socket())
            unused.bind(("127.0.0.1", 0))
            yield {"open": port, "closed": unused.getsockname()[1]}
            return
    raise AssertionError("no port is free on every loopback address")


def furnish(folder: Path) -> None:
    for name in (
        "a/one.txt",
        "a/two.txt",
        "a/my.key",
        "a/b/c/d.txt",
        "a/b/secret",
        "hidden/x.txt",
        "w/other.txt",
        "outside.txt",
    ):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("x")
    (folder / "link").symlink_to("a")


def explained(profile: Path, question: str, place: Place) -> bool:
    answer = ask(
        "Explain",
        {
            "profile": str(profile),
            "question": [question],
            "env": place.environ(),
            "cwd": str(place.folder),
            "interpreter": sys.executable,
            "package": str(Path(sys.modules["pysandboxes"].__file__ or "").parent),
        },
    )
    return bool(answer["allow"])


@dataclass(frozen=True)
class Answer:
    question: str
    said: bool
    """by the engine"""
    met: str
    """by the child, in Python"""
    kernel: str
    """``allowed``, ``refused``; ``unclear`` (there is no such file, no such address), ``not asked``"""


def one_profile(folder: Path, seed: int, provider: str, mode: str, ports: dict[str, int]) -> tuple[str, list[Answer]]:
    """The profile of a seed, and what was answered to each question."""
    chance = random.Random(seed)
    furnish(folder)
    place = Place(folder, environment={"X_A": "1", "X_B": "2", "Y_B": "3", "PYSANDBOXES_NETWORK": mode})
    lines = []
    for lines_of_family in LINES.values():
        refusing = [line for line in lines_of_family if "DENY" in line or line.startswith("ignore")]
        allowing = [line for line in lines_of_family if line not in refusing]
        if provider != "landlock":
            allowing = [line for line in allowing if "|*." not in line]  # a start with it is refused there
        lines += chance.sample(allowing, chance.randint(2, len(allowing)))
        lines += chance.sample(refusing, chance.randint(0, len(refusing) // 2))
    chance.shuffle(lines)
    text = BASE.format(provider=provider) + "".join(line.format(**ports) + "\n" for line in lines)
    profile = place.profile(text)
    pool = [question.format(dir=folder, **ports) for questions in ASKED.values() for question in questions]
    questions = chance.sample(pool, QUESTIONS)
    # Settings of a process last: what changes the asker comes at its end.
    questions.sort(key=lambda q: q.startswith("call "))
    said = {question: explained(profile, question, place) for question in questions}
    child = place.run(place.file("asker.py", ASKER), input="\n".join(questions))
    met = {question: rest for question, *rest in (line.split("\t") for line in child.stdout.splitlines())}
    assert list(met) == questions, f"seed {seed}: the asking program ended early\n{text}\n{child.stderr}"
    return text, [Answer(question, said[question], *met[question]) for question in questions]


def excused(answer: Answer, who: str, verdict: str, mode: str, text: str) -> str:
    """The reason why the kernel or Python may say something else than the engine; "" where there is none."""
    word, _, argument = answer.question.partition(" ")
    for (asked, by, in_mode, said), holds, reason in DIFFERENCES:
        if word in asked.split() and who in by.split() and in_mode in ("", mode) and said == verdict and holds(argument, text):
            return reason
    return ""


def ignored(path: str, text: str) -> bool:
    return "\nignore=" in text


def not_there_yet(path: str, text: str) -> bool:
    return path.endswith("/w/new.txt") and "expose-rw=./w/new.txt\n" in text and "expose-rw=./w\n" not in text


def of_localhost(where: str, text: str) -> bool:
    return where.startswith("[::1]") and "net=ALLOW|TCP|localhost|*|OUT\n" in text


def of_loopback(where: str, text: str) -> bool:
    return where.startswith(("127.", "[::1]"))


#: (questions, who says it, mode or "", what), when, and why. Each row is reviewed.
DIFFERENCES: list[tuple[tuple[str, str, str, str], Callable[[str, str], bool], str]] = [
    (
        ("list", "kernel", "", "allowed"),
        ignored,
        "an empty folder stands in the place of one that is hidden: root may list it",
    ),
    (
        ("write", "python kernel", "", "refused"),
        not_there_yet,
        "Landlock has no rule for a file that is not there: it is made in its folder",
    ),
    (
        ("connect", "python kernel", "", "allowed"),
        of_localhost,
        "an address that an allowed name has given in this run is allowed from then on; explain knows those of the start",
    ),
    (
        ("bind udp", "kernel", "walled", "allowed"),
        of_loopback,
        "a walled sandbox's loopback is its own: nobody outside is reached there, nor reaches it",
    ),
]


PARTS = {"landlock": (0, 10_000), "subprocess": (20_000, 30_000)}  # the first seed of each


@pytest.mark.parametrize(("provider", "first"), [(provider, first) for provider, parts in PARTS.items() for first in parts])
def test_explain_says_what_a_child_meets(tmp_path: Path, ports: dict[str, int], provider: str, first: int) -> None:
    number = int(os.environ.get("PYSANDBOXES_AGREEMENT", PROFILES)) // 4  # more of them, by hand

    def run(seed: int) -> tuple[int, str, str, list[Answer]]:
        folder = tmp_path.resolve() / str(seed)
        folder.mkdir()
        mode = ("walled", "unwalled")[seed % 2]
        return seed, mode, *one_profile(folder, seed, provider, mode, ports)

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        results = list(pool.map(run, range(first, first + number)))
    differ, allowed, asked, native, reasons = [], 0, 0, 0, Counter()
    for seed, mode, text, answers in results:
        for answer in answers:
            asked += 1
            allowed += answer.said
            expected = "allowed" if answer.said else "refused"
            verdicts = {"python": answer.met.partition(",")[0]}
            # A connection that nobody takes fails as one that no rule allows does.
            unclear = answer.question.startswith("connect ") and answer.question.endswith(f":{ports['closed']}")
            if provider == "landlock" and answer.kernel in ("allowed", "refused") and not unclear:
                verdicts["kernel"] = answer.kernel
                native += 1
            for who, verdict in verdicts.items():
                if verdict == expected:
                    continue
                if reason := excused(answer, who, verdict, mode, text):
                    reasons[reason] += 1
                else:
                    met = f" ({answer.met})" if who == "python" else ""
                    differ.append(f"seed {seed}, {mode}: {answer.question}: explain: {expected}, {who}: {verdict}{met}\n{text}")
    assert not differ, f"{len(differ)} of {asked} differ:\n" + "\n".join(differ)
    assert asked >= LEAST // 4
    assert allowed >= ALLOWED * asked, f"too few allowed verdicts to prove anything: {allowed} of {asked}"
    assert native or provider != "landlock"
    print(json.dumps({"provider": provider, "asked": asked, "allowed": allowed, "native": native, "excused": reasons}))
