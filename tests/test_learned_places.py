"""What a learning run makes of names that come and go: temporary files, folders that the program makes, ports that the
system chooses, and of what a program leaves behind. Each profile has to do for a second run on a clean folder."""

from __future__ import annotations

import os
import pty
import select
import shutil
from pathlib import Path

import pytest
from complete_mode import Place, last_line

pytestmark = pytest.mark.smoke

TEMPORARY = {
    "a file": "with tempfile.NamedTemporaryFile('w') as f: print(f.write('x'))",
    "a file that stays": "print(os.path.exists(tempfile.NamedTemporaryFile(delete=False).name))",
    "a folder": "with tempfile.TemporaryDirectory() as d: print(open(d + '/a', 'w').write('x'), len(os.listdir(d)))",
    "a folder in a folder": "d = tempfile.mkdtemp(); os.makedirs(d + '/a/b'); shutil.rmtree(d); print(os.path.exists(d))",
    "the folder's name": "print(bool(tempfile.gettempdir()))",
}
SERVERS = {
    "tcp": (
        "s = socket.create_server(('127.0.0.1', 0)); c = socket.create_connection(s.getsockname()); "
        "a, _ = s.accept(); a.send(b'x'); print(c.recv(1))"
    ),
    "udp": (
        "s = socket.socket(type=socket.SOCK_DGRAM); s.bind(('127.0.0.1', 0)); "
        "c = socket.socket(type=socket.SOCK_DGRAM); c.sendto(b'x', s.getsockname()); print(s.recv(1))"
    ),
    "asyncio": (
        "import asyncio\n"
        "async def main():\n"
        "    s = await asyncio.start_server(lambda r, w: w.write(b'x'), '127.0.0.1', 0)\n"
        "    r, w = await asyncio.open_connection(*s.sockets[0].getsockname())\n"
        "    print(await r.readexactly(1))\n"
        "    w.close(); s.close()\n"
        "asyncio.run(main())\n"
    ),
}
BY_NAME = {
    "a server on localhost": (
        "import http.server, threading, urllib.request\n"
        "class Answer(http.server.BaseHTTPRequestHandler):\n"
        "    def do_GET(self): self.send_response(204); self.end_headers()\n"
        "    def log_message(self, *args): pass\n"
        "server = http.server.HTTPServer(('localhost', 0), Answer)\n"
        "threading.Thread(target=server.handle_request, daemon=True).start()\n"
        "print(urllib.request.urlopen(f'http://localhost:{server.server_port}/').status)\n"
    ),
    "a server on every address": (
        "import socket; s = socket.create_server(('', 0)); "
        "c = socket.create_connection(('127.0.0.1', s.getsockname()[1])); print(c.getpeername()[0])"
    ),
    "connect by a name": (
        "import socket; s = socket.create_server(('localhost', 0)); "
        "c = socket.socket(); c.connect(('localhost', s.getsockname()[1])); print(c.getpeername()[0])"
    ),
}
OWN_SOCKETS = {
    "a listener": (
        "import threading\n"
        "from multiprocessing.connection import Client, Listener\n"
        "listener = Listener()\n"
        "threading.Thread(target=lambda: listener.accept().send(1), daemon=True).start()\n"
        "print(Client(listener.address).recv())\n"
    ),
    "a manager": (
        "import multiprocessing\nwith multiprocessing.Manager() as m:\n    d = m.dict()\n    d[1] = 2\n    print(dict(d))\n"
    ),
    "a pool": (
        "import concurrent.futures\n"
        "with concurrent.futures.ProcessPoolExecutor(2) as p:\n    print(list(p.map(abs, [1, -2])))\n"
    ),
}
FOLDERS = {
    "makedirs": "os.makedirs('out', exist_ok=True)",
    "nested": "os.makedirs('out/a/b', exist_ok=True)",
    "os.mkdir": "\nos.mkdir('out')",
    "pathlib": "pathlib.Path('out').mkdir(exist_ok=True)",
    "looked for first": "\nif not os.path.exists('out'): os.mkdir('out')",
}


@pytest.fixture
def held(place: Place, tmp_path_factory: pytest.TempPathFactory) -> Place:
    """A place whose temporary folder is elsewhere, under the kernel's boundary."""
    place.environment.update(OS_SANDBOX="landlock", TMPDIR=str(tmp_path_factory.mktemp("scratch")))
    return place


def twice(place: Place, code: str) -> str:
    """Learns from the code and runs it again without what it made; the profile."""
    learned = place.run("--learn", "-c", code)
    assert learned.returncode == 0, learned.stderr
    shutil.rmtree(place.folder / "out", ignore_errors=True)
    enforced = place.run("-c", code)
    assert (enforced.returncode, enforced.stdout, enforced.stderr) == (0, learned.stdout, ""), enforced.stderr
    return (place.folder / ".py-sandboxes").read_text()


@pytest.mark.parametrize("name", TEMPORARY)
def test_temporary_names(held: Place, name: str) -> None:
    text = twice(held, "import os, shutil, tempfile\n" + TEMPORARY[name])
    assert "\nexpose-rw=${TMPDIR:-/tmp}  # the shared temporary folder" in text
    assert "/tmp" not in text.split("# <learning_guard_files>")[1].split("expose-rw=${TMPDIR:-/tmp}")[0]


def test_a_temporary_folder_that_holds_the_profile(held: Place) -> None:
    held.environment["TMPDIR"] = str(held.folder.parent)
    code = "import tempfile; print(tempfile.NamedTemporaryFile().write(b'x'))"
    learned = held.run("--learn", "-c", code)
    assert "expose-rw=./tmp/ and env=TMPDIR=./tmp" in learned.stderr
    assert "${TMPDIR:-/tmp}" not in learned.stderr, "a random name never comes again"
    done = held.run("--expose-rw=./tmp/", "--env=TMPDIR=./tmp", "-c", code)
    assert (done.returncode, done.stdout) == (0, "1\n"), done.stderr


@pytest.mark.parametrize("name", FOLDERS)
def test_a_folder_that_the_program_makes(held: Place, name: str) -> None:
    code = f"import os, pathlib; {FOLDERS[name]}\nopen('out/a.txt', 'w').write('x'); print(sorted(os.listdir('out')))"
    text = twice(held, code)
    assert "\nexpose-rw=./out/  #" in text
    assert (held.folder / "out/a.txt").read_text() == "x"


def test_a_rule_without_the_slash_makes_nothing(held: Place) -> None:
    held.profile("expose-rw=./out\n")
    done = held.run("-c", "pass")
    assert not (held.folder / "out").exists()
    assert done.stderr.count("does not exist") == 1
    assert "end the rule with a slash" in done.stderr


@pytest.mark.parametrize(
    ("code", "advice", "says"),
    [
        ("open('new.txt', 'w')", "expose-rw=./new.txt", "(expose-rw=./output/), or make the file before the start"),
        ("open('data/new.txt', 'w')", "expose-rw=./data", "the kernel can grant only what exists"),
        ("import os; os.remove('data/a')", "expose-rw=./data", "in their folder"),
        ("import os; os.rename('data/a', 'data/b')", "expose-rw=./data", "in their folder"),
        ("import os; os.makedirs('out', exist_ok=True)", "expose-rw=./out/", "made at the start"),
    ],
)
def test_the_advice_for_names_that_come_and_go_works(held: Place, code: str, advice: str, says: str) -> None:
    held.file("data/a", "x")
    held.profile("python-import=os\n")
    refused = held.run("-c", code)
    assert refused.returncode == 1
    assert last_line(refused.stderr) == advice
    assert says in refused.stderr
    if advice.endswith(".txt"):
        held.file(advice.removeprefix("expose-rw=./"))
    assert held.run("--" + advice, "-c", code).returncode == 0


@pytest.mark.parametrize("name", SERVERS)
def test_a_server_on_a_port_that_the_system_chooses(held: Place, name: str) -> None:
    text = twice(held, "import socket; " + SERVERS[name] if name != "asyncio" else SERVERS[name])
    assert "|127.0.0.1|0|IN" in text
    assert "|127.0.0.1|32768-60999|OUT" in text
    done = held.run("--python-import=socket", "-c", "import socket; socket.create_connection(('127.0.0.1', 9))")
    assert "DENIED tcp connect to 127.0.0.1:9 OUT" in done.stderr, "a port that nobody would be given"


@pytest.mark.parametrize("code", BY_NAME.values(), ids=BY_NAME)
def test_servers_and_connections_by_a_name(held: Place, code: str) -> None:
    text = twice(held, code)
    assert "|0|IN" in text
    assert "|32768-60999|OUT" in text


@pytest.mark.parametrize("code", OWN_SOCKETS.values(), ids=OWN_SOCKETS)
def test_unix_sockets_of_the_programs_own(held: Place, code: str) -> None:
    text = twice(held, code)
    assert "listener-" not in text, "a socket's random name never comes again"


def test_an_address_of_the_program_is_reached_under_no_wider_rule(held: Place) -> None:
    held.profile("python-import=socket\nnet=ALLOW|TCP|127.0.0.1|0|IN\n")
    code = "import socket; s = socket.create_server(('127.0.0.1', 0)); socket.create_connection(s.getsockname())"
    assert "DENIED tcp connect to 127.0.0.1:" in held.run("-c", code).stderr


def test_a_start_with_net_rules_is_silent(held: Place) -> None:
    held.profile("net=ALLOW|TCP|127.0.0.1|80|OUT\n")
    assert held.run("-c", "pass").stderr == ""


@pytest.mark.parametrize("file", ["/no/such/folder/x", "/proc/x", "/"])
def test_a_learning_run_that_could_not_be_written_does_not_start(place: Place, file: str) -> None:
    done = place.run(f"--learn={file}", "-c", "print('ran')")
    assert (done.returncode, done.stdout) == (2, "")
    assert file in done.stderr


def test_what_the_prompt_does_is_not_learned(held: Place) -> None:
    held.file("data/a.txt", "a")
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(held.folder)
        os.execve(held.command()[0], held.command("--learn", "-"), {**held.environ(), "TERM": "dumb"})
    seen = b""

    def until(word: bytes) -> None:
        nonlocal seen
        while word not in seen:
            assert select.select([terminal], [], [], 60)[0], seen
            seen += os.read(terminal, 4096)
        seen = b""

    until(b">>> ")
    os.write(terminal, b"len(open('data/a.txt').read())\n")
    until(b"1\r\n")
    os.write(terminal, b"exit()\n")
    until(b"check this file")
    try:
        while os.read(terminal, 4096):
            pass
    except OSError:
        pass  # the end of the terminal
    assert os.waitpid(pid, 0)[1] == 0
    os.close(terminal)
    rules = [line for line in (held.folder / ".py-sandboxes").read_text().splitlines() if line.startswith(("env=", "expose-"))]
    assert [rule.split("  #")[0] for rule in rules] == ["expose-ro=./data"]


def test_nothing_outlives_the_program(held: Place) -> None:
    held.profile(
        "python-import=subprocess\npython-api=ALLOW:process-exec\nexpose-ro=/usr/bin\nexpose-ro=/bin\nenv=PATH=/usr/bin:/bin\n"
    )
    code = (
        "import subprocess\n"
        "print(subprocess.Popen(['sleep', '600']).pid)\n"
        "print(subprocess.Popen(['sleep', '600'], start_new_session=True).pid)\n"
        "raise SystemExit(5)"
    )
    done = held.run("-c", code)  # returns when the last holder of the output is gone
    assert done.returncode == 5, done.stderr
    for pid in done.stdout.split():
        assert not Path("/proc", pid).exists()


LINKS = {
    "a link to a file": "print(open('link').read(), os.readlink('link'), os.path.realpath('link')[-1])",
    "a link alone": "print(os.readlink('link'), os.lstat('link').st_size)",
    "a link in a folder of its own": "print(os.readlink('links/one'), open('links/one').read())",
    "a link to a folder": "print(os.readlink('folder'), open('folder/x').read(), os.listdir('folder'))",
    "a link over a link": "print(open('twice').read(), os.readlink('twice'), os.readlink('link'))",
}


@pytest.mark.parametrize("name", LINKS)
def test_a_link_is_seen_as_one(place: Place, name: str) -> None:
    """The name that a rule says may be looked at as the link that it is; and the line that a refusal names does it."""
    place.file("data/x", "text")
    (place.folder / "links").mkdir()
    for link, target in {"link": "data/x", "links/one": "../data/x", "folder": "data", "twice": "link"}.items():
        (place.folder / link).symlink_to(target)
    code = f"import os; {LINKS[name]}"
    bare = place.bare("-c", code)
    assert bare.returncode == 0, bare.stderr
    assert place.run("--learn", "-c", code).stdout == bare.stdout
    done = place.run("-c", code)
    assert (done.returncode, done.stdout) == (0, bare.stdout), done.stderr
    before = (place.folder / ".py-sandboxes").read_text()
    place.run("--learn", "-c", code)
    assert (place.folder / ".py-sandboxes").read_text() == before
    place.profile("python-import=os")
    for _ in range(6):
        done = place.run("-c", code)
        if done.returncode == 0:
            break
        place.profile((place.folder / ".py-sandboxes").read_text() + "\n" + last_line(done.stderr))
    assert (done.returncode, done.stdout) == (0, bare.stdout), done.stderr
