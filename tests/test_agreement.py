"""Explaining and enforcing agree: for random profiles and questions, ``explain`` says what a sandboxed child meets.

Each profile is made of lines that touch each other. One child under python-sb tries all the questions of its profile; the
engine is asked the same. The child's verdict is by the exception: one of ours means refused, any other outcome (a missing file,
a refused connection) means that the sandbox let it pass.
"""

from __future__ import annotations

import json
import os
import random
import socket
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from complete_mode import Place

from pysandboxes._native import ask

PROFILES = 34
QUESTIONS = 40  # of one profile
LEAST = 1000  # of all
ALLOWED = 0.4

#: What the asking program itself needs, in every profile.
BASE = """\
os-sandbox={provider}
ignore-best-effort=true
python-import=sys, os, socket, gc, marshal, threading, subprocess, resource, signal
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
import gc, marshal, os, resource, signal, socket, subprocess, sys, threading

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
    print(question, verdict, sep="\t", flush=True)
"""


@pytest.fixture(scope="module")
def ports() -> Iterator[dict[str, int]]:
    """A port that listens and one that does not."""
    with socket.create_server(("127.0.0.1", 0), backlog=1024) as server, socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        yield {"open": server.getsockname()[1], "closed": unused.getsockname()[1]}


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


def one_profile(folder: Path, seed: int, provider: str, ports: dict[str, int]) -> tuple[str, list[tuple[str, bool, str]]]:
    """The profile of a seed, and for each question what the engine says and what the child met."""
    chance = random.Random(seed)
    furnish(folder)
    place = Place(folder, environment={"X_A": "1", "X_B": "2", "Y_B": "3"})
    lines = []
    for lines_of_family in LINES.values():
        refusing = [line for line in lines_of_family if "DENY" in line or line.startswith("ignore")]
        allowing = [line for line in lines_of_family if line not in refusing]
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
    met = dict(line.split("\t") for line in child.stdout.splitlines())
    assert list(met) == questions, f"seed {seed}: the asking program ended early\n{text}\n{child.stderr}"
    return text, [(question, said[question], met[question]) for question in questions]


@pytest.mark.parametrize("provider", ["landlock", "subprocess"])
def test_explain_says_what_a_child_meets(tmp_path: Path, ports: dict[str, int], provider: str) -> None:
    first = {"landlock": 0, "subprocess": 1000}[provider]
    number = int(os.environ.get("PYSANDBOXES_AGREEMENT", PROFILES)) // 2  # more of them, by hand

    def run(seed: int) -> tuple[int, str, list[tuple[str, bool, str]]]:
        folder = tmp_path.resolve() / str(seed)
        folder.mkdir()
        return seed, *one_profile(folder, seed, provider, ports)

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        results = list(pool.map(run, range(first, first + number)))
    differ, allowed, asked = [], 0, 0
    for seed, text, answers in results:
        for question, said, met in answers:
            asked += 1
            allowed += said
            if said == met.startswith("allowed"):
                continue
            verdict = "allowed" if said else "refused"
            differ.append(f"seed {seed}: {question}: explain says {verdict}, the child met {met}\n{text}")
    assert not differ, f"{len(differ)} of {asked} differ:\n" + "\n".join(differ)
    assert asked >= LEAST // 2
    assert allowed >= ALLOWED * asked, f"too few allowed verdicts to prove anything: {allowed} of {asked}"
    print(json.dumps({"provider": provider, "asked": asked, "allowed": allowed}))
