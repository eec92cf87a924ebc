"""Show what pysandboxes does, on quick_demo.py: run it bare, learn its rules, enforce them, then let it turn evil.

    python demo.py [--keep] [--python-sb PROGRAM]

Everything happens in a temporary folder and on this machine's loopback. Every step checks what it shows; the exit status is 1
if one of them does not hold.
"""

from __future__ import annotations

import argparse
import difflib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

HERE = Path(__file__).resolve().parent
PAGE = json.dumps({"station": "Roof", "degrees": 20}).encode()
COLOR = sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
REFUSALS = {  # attempt -> the class of the refusal, and what its text must name
    "read the keys in ~/.ssh": ("RuleFileNotFoundError", "expose-ro="),
    "send the token to another server": ("RuleSocketConnectionRefusedError", "DENIED"),
    "run a program": ("RuleApiPermissionError", "os.system"),
}


def paint(code: str, text: str) -> str:
    return f"\x1b[{code}m{text}\x1b[0m" if COLOR else text


def title(number: int, text: str) -> None:
    print(f"\n{paint('1;36', f'{number}. {text}')}")


def say(text: str) -> None:
    print(f"   {text}")


def command(words: list[str]) -> None:
    print(paint("1", "   $ " + " ".join(words)))


def show(text: str) -> None:
    for line in text.rstrip("\n").splitlines():
        word = line.split()[:1]
        color = {"WORKED": "31", "REFUSED": "32"}.get(word[0] if word else "", "")
        print(f"   {paint('2', '|')} {paint(color, line) if color else line}")


class Failed(Exception):
    """A step did not show what it promises."""


def check(holds: bool, text: str, detail: str = "") -> None:
    if not holds:
        raise Failed(f"{text}\n{detail}" if detail else text)
    say(paint("32", "ok ") + text)


class Server(ThreadingHTTPServer):
    """Two pages on loopback: the weather, and the place that secrets are sent to."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.received: list[bytes] = []
        threading.Thread(target=self.serve_forever, name="page server", daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/"


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(PAGE)))
        self.end_headers()
        self.wfile.write(PAGE)

    def do_POST(self) -> None:
        self.server.received.append(self.rfile.read(int(self.headers.get("Content-Length") or 0)))
        self.send_response(204)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        pass


@contextmanager
def folders(keep: bool) -> Iterator[tuple[Path, Path]]:
    """The program's folder and a home with a key in it, both temporary."""
    root = Path(tempfile.mkdtemp(prefix="quick-demo-"))
    try:
        project, home = root / "project", root / "home"
        project.mkdir()
        shutil.copy(HERE / "quick_demo.py", project)
        shutil.copytree(HERE / "data", project / "data")
        (home / ".ssh").mkdir(parents=True)
        (home / ".ssh" / "id_ed25519").write_text(
            "-----BEGIN OPENSSH PRIVATE KEY-----\nnot a real one\n-----END OPENSSH PRIVATE KEY-----\n"
        )
        yield project, home
    finally:
        if keep:
            say(f"kept in {root}")
        else:
            shutil.rmtree(root, ignore_errors=True)


def learned_rules(profile: Path) -> list[str]:
    """The rules between the marks that learning writes."""
    rules, inside = [], False
    for line in profile.read_text().splitlines():
        if line.startswith(("# <learning_", "# </learning_")):
            inside = not line.startswith("# </")
        elif inside and line and not line.startswith("#"):
            rules.append(line)
    return rules


class Demo:
    def __init__(self, program: str, project: Path, home: Path, pages: Server, sink: Server) -> None:
        self.program, self.project, self.home, self.pages, self.sink = program, project, home, pages, sink
        keep = ("PATH", "LANG", "LC_ALL", "TERM", "TMPDIR", "LD_LIBRARY_PATH")
        self.env = {name: os.environ[name] for name in keep if name in os.environ}
        self.env |= {"HOME": str(home), "DEMO_TOKEN": "s3cret-t0ken", "NO_PROXY": "127.0.0.1"}
        self.good = ["quick_demo.py", "--url", pages.url]
        self.evil = [*self.good, "--evil", "--sink", sink.url, "--home", str(home)]

    def run(self, *words: str, quiet: bool = False) -> subprocess.CompletedProcess[str]:
        shown = ["python" if word == sys.executable else "python-sb" if word == self.program else word for word in words]
        command([word.replace(str(self.home), "$HOME") for word in shown])
        done = subprocess.run(
            words, cwd=self.project, env=self.env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120
        )
        if not quiet:
            show(done.stdout)
        return done

    def bare(self) -> str:
        title(1, "The program, without a sandbox")
        done = self.run(sys.executable, *self.good)
        check(
            done.returncode == 0 and "page " in done.stdout, "it fetches a page, reads a folder, reads a variable", done.stderr
        )
        return done.stdout

    def learn(self) -> None:
        title(2, "Learn what it does")
        done = self.run(self.program, "--learn=.py-sandboxes", *self.good)
        profile = self.project / ".py-sandboxes"
        check(
            done.returncode == 0 and profile.exists(),
            "the run went through, and a profile was written",
            done.stdout + done.stderr,
        )
        say("what it learned, for you to review:")
        rules = learned_rules(profile)
        for rule in rules:
            text, _, note = rule.partition("  # ")
            print(f"   {paint('2', '|')} {text:<38}{paint('2', ' # ' + note) if note else ''}".rstrip())
        for key in ("env=DEMO_TOKEN=${DEMO_TOKEN}", "expose-ro=./data", "net=ALLOW|TCP|127.0.0.1|", "python-import="):
            check(any(rule.startswith(key) for rule in rules), f"there is a rule {key}...", "\n".join(rules) + done.stderr)

    def enforce(self, bare: str) -> None:
        title(3, "Enforce it")
        done = self.run(self.program, *self.good)
        difference = "\n".join(
            difflib.unified_diff(bare.splitlines(), done.stdout.splitlines(), "bare", "sandboxed", lineterm="")
        )
        check(done.returncode == 0 and not difference, "the output is the same as without a sandbox", difference + done.stderr)

    def evil_bare(self) -> None:
        title(4, "It turns evil, without a sandbox (in a made-up home, to a server of this demo)")
        done = self.run(sys.executable, *self.evil)
        check("3 of 3 worked" in done.stdout, "all three attempts work", done.stderr)
        check(self.sink.received == [b"s3cret-t0ken"], "the secret arrived at the other server")
        self.sink.received.clear()

    def evil_refused(self) -> None:
        title(5, "The same under the learned profile")
        done = self.run(self.program, *self.evil)
        attempts = done.stdout.split("\nevil: ")
        for attempt, (kind, word) in REFUSALS.items():
            text = next((part for part in attempts if part.startswith(attempt)), "")
            check(kind in text and word in text, f"{attempt}: refused by {kind}", done.stdout + done.stderr)
        check("0 of 3 worked" in done.stdout, "nothing worked", done.stderr)
        check(not self.sink.received, "nothing arrived at the other server")


def find_program(named: str | None) -> str:
    beside = shutil.which("python-sb", path=str(Path(sys.executable).parent))
    found = named or beside or shutil.which("python-sb")
    if found is None:
        raise SystemExit("demo.py: the command python-sb is not installed; `make demo` at the root of the checkout sets it up")
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description="Show what pysandboxes does, step by step.")
    parser.add_argument("--keep", action="store_true", help="keep the temporary folder with the learned profile")
    parser.add_argument("--python-sb", metavar="PROGRAM", help="the command to show (default: the one beside this Python)")
    options = parser.parse_args()
    program = find_program(options.python_sb)
    pages, sink = Server(), Server()
    with folders(options.keep) as (project, home):
        demo = Demo(program, project, home, pages, sink)
        try:
            bare = demo.bare()
            demo.learn()
            demo.enforce(bare)
            demo.evil_bare()
            demo.evil_refused()
        except Failed as failed:
            print(paint("31", f"   FAILED: {failed}"))
            return 1
    print(f"\n{paint('1;32', 'The program did its work; what it should not do was refused, each time with the rule to add.')}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
