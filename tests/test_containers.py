"""What holds in a container, and what is said of what does not.

Docker's default seccomp profile with all capabilities dropped, a root that cannot be written, no /proc, older profiles that
know fewer calls: ``providers/internal/contained`` stands in for the engine.
"""

from __future__ import annotations

import os
import socket
import subprocess
from pathlib import Path

import pytest
from complete_mode import Place

#: Prints what native code and Python get, a line each.
PROGRAM = """
import asyncio, ctypes, json, os, threading
libc = ctypes.CDLL(None, use_errno=True)

def tries(name, call):
    ctypes.set_errno(0)
    print(name, "ok" if call() >= 0 else os.strerror(ctypes.get_errno()))

tries("read outside", lambda: libc.open(b"/etc/passwd", 0))
tries("write outside", lambda: libc.open(HIDDEN.encode(), 1))
tries("chmod outside", lambda: libc.chmod(HIDDEN.encode(), 0o777))
tries("socket", lambda: libc.socket(2, 1, 0))
tries("vsock", lambda: libc.socket(40, 1, 0))
tries("fork", lambda: libc.fork())
tries("exec", lambda: libc.execv(b"/bin/true", (ctypes.c_char_p * 2)(b"true", None)))
tries("ptrace", lambda: libc.ptrace(16, 1, 0, 0))
tries("kill", lambda: libc.kill(os.getppid(), 0))
with open("work/note", "w") as f: f.write("x")
tries("chmod inside", lambda: libc.chmod(b"work/note", 0o640))
t = threading.Thread(target=lambda: asyncio.run(asyncio.sleep(0)))
t.start(); t.join()
print("python", json.loads("[1]"), open("work/note").read(), libc.prctl(21, 0, 0, 0, 0))
"""
HELD = """\
read outside Permission denied
write outside Permission denied
chmod outside Permission denied
socket Permission denied
vsock Permission denied
fork Operation not permitted
exec Permission denied
ptrace Operation not permitted
kill Operation not permitted
chmod inside {chmod}
python [1] x 2
"""
PROFILE = "expose-rw=./work\npython-import=*\npython-api=ALLOW:native\npython-api=ALLOW:threads\n"


def run(place: Place, contained: Path, flags: str, *command: str | Path) -> subprocess.CompletedProcess[str]:
    return place._run([str(contained), *flags.split(), "--", *map(str, command)], 60, {})


def prepare(place: Place) -> tuple[str, ...]:
    place.provider = "landlock"
    place.profile(PROFILE)
    hidden = place.file("hidden/key", "s3cret")
    hidden.chmod(0o666)
    place.file("work/.keep").parent.chmod(0o777)
    place.file("program.py", f"HIDDEN = {str(hidden)!r}\n{PROGRAM}")
    return tuple(place.command("program.py"))


def needs_root(flags: str) -> None:
    if os.geteuid() != 0 and ("-read-only" in flags or "-no-" in flags):
        pytest.skip("only root can change what is mounted")


@pytest.mark.parametrize(
    ("flags", "chmod", "said"),
    [
        ("", "ok", ""),
        ("-docker -drop", "ok", ""),
        ("-docker -drop -read-only", "ok", ""),
        ("-docker -drop -no-sys", "ok", ""),
        ("-docker -drop -no-proc -no-sys", "Permission denied", "there is no /proc here"),
        ("-docker -drop -without clone3,pidfd_getfd,faccessat2,close_range", "ok", ""),
        ("-docker -drop -without openat2", "Permission denied", "openat2 is not permitted here"),
        ("-docker -drop -without process_vm_readv", "Permission denied", "process_vm_readv is not permitted here"),
    ],
)
def test_the_boundary_holds(place: Place, contained: Path, flags: str, chmod: str, said: str) -> None:
    needs_root(flags)
    command = prepare(place)
    place.run("-c", "pass")  # what is known of the interpreter is kept: finding it out needs /proc
    done = run(place, contained, flags, *command)
    assert done.stdout == HELD.format(chmod=chmod), done.stderr
    start = [
        line for line in done.stderr.splitlines() if line.startswith("python-sb:") and "refused to native code" not in line
    ]
    assert (said in done.stderr) if said else (start == []), done.stderr
    if chmod == "ok":
        assert "expose-rw=./hidden/key" in done.stderr, "a refusal of native code is told at the end"
    assert (place.folder / "hidden/key").stat().st_mode & 0o777 == 0o666


def test_an_unknown_interpreter_needs_proc(place: Place, contained: Path, tmp_path: Path) -> None:
    needs_root("-no-proc")
    place.environment["XDG_CACHE_HOME"] = str(tmp_path)
    done = run(place, contained, "-docker -drop -no-proc", *prepare(place))
    assert (done.stdout, done.returncode) == ("", 125)
    assert "A sandbox needs /proc to be mounted" in done.stderr


def test_without_a_sandbox_the_container_holds_none_of_it(place: Place, contained: Path) -> None:
    """The negative control: what the tests above see refused is not refused by the container."""
    prepare(place)
    code = (place.folder / "program.py").read_text().replace('tries("exec"', '0 and tries("exec"').replace("libc.fork()", "0")
    place.file("bare.py", code)
    done = run(place, contained, "-docker -drop", place.bin / "python", "bare.py")
    for line in ("read outside ok", "write outside ok", "chmod outside ok", "socket ok", "kill ok"):
        assert line in done.stdout, done.stdout + done.stderr


@pytest.mark.unprivileged
def test_the_boundary_holds_for_a_user(unprivileged: Place, contained: Path) -> None:
    command = prepare(unprivileged)
    for path in (unprivileged.folder / "hidden/key", unprivileged.folder / "work"):
        os.chown(path, unprivileged.user or -1, -1)
    done = run(unprivileged, contained, "-docker -drop", *command)
    assert done.stdout == HELD.format(chmod="ok"), done.stderr


@pytest.mark.parametrize(
    ("without", "said"),
    [
        ("landlock_create_ruleset", "this kernel has no Landlock"),
        ("landlock_add_rule", "landlock"),
        ("landlock_restrict_self", "landlock: restrict"),
        ("seccomp", "seccomp user notification is not available"),
        ("capset", "drop capabilities"),
    ],
)
@pytest.mark.parametrize("provider", ["landlock", "auto"])
def test_a_boundary_that_cannot_stand_does_not_start(
    place: Place, contained: Path, without: str, said: str, provider: str
) -> None:
    prepare(place)
    place.provider = provider
    done = run(place, contained, f"-docker -drop -without {without}", *place.command("-c", "print('ran')"))
    assert done.stdout == ""
    assert done.returncode == 125
    assert said in done.stderr


def test_an_application_has_sandboxes_in_a_container(place: Place, contained: Path) -> None:
    prepare(place)
    place.file(
        "tools.py",
        """
        import ctypes
        from pysandboxes import sandbox
        @sandbox
        def secret(path): return ctypes.CDLL(None).open(path.encode(), 0)
        @sandbox
        def add(a, b): return a + b
        """,
    )
    place.file(
        "application.py",
        f"""
        import tools
        from pysandboxes import sandboxes
        if __name__ == "__main__":
            with sandboxes():
                print(tools.add(1, 2), tools.secret({str(place.folder / "hidden/key")!r}))
        """,
    )
    place.profile(PROFILE + "expose-ro=./tools.py\nexpose-ro=./application.py\nos-sandbox=landlock\n")
    done = run(place, contained, "-docker -drop", place.bin / "python", "application.py")
    assert done.stdout == "3 -1\n", done.stderr


def test_the_doctor_says_what_a_container_lacks(place: Place, contained: Path) -> None:
    needs_root("-no-proc")
    for flags, lines in {
        "-docker -drop": [
            "no   pidfd_getfd",
            "no   namespaces",
            "pidfd_getfd is not permitted here: the supervisor makes",
            "limits: partial",
        ],
        "-docker -drop -no-proc": ["there is no /proc here"],
        "-docker -drop -without landlock_create_ruleset": ["no   landlock", "landlock: not usable"],
    }.items():
        done = run(place, contained, flags, place.bin / "pysandboxes", "doctor")
        for line in lines:
            assert line in done.stdout, (flags, done.stdout, done.stderr)


#: A client and a server in one sandbox, by TCP and by a path: what each ends with is what it ends with bare.
SOCKETS = """
import asyncio, multiprocessing.connection as mc, os, socket, sys, threading
def tries(name, function):
    try: print(name, function())
    except Exception as e: print(name, type(e).__name__, e.errno)
server = socket.create_server(("127.0.0.1", 0))
server.listen(5)
where = server.getsockname()
def serve():
    while True:
        one, _ = server.accept()
        one.sendall(one.recv(9))
        one.close()
threading.Thread(target=serve, daemon=True).start()
c = socket.create_connection(where)
c.sendall(b"hello")
print(c.recv(9), c.recv(9))
tries("connected", lambda: c.connect(where))
tries("closed port", lambda: socket.create_connection(("127.0.0.1", CLOSED)))
tries("no rule", lambda: socket.create_connection(("127.0.0.1", PORT)))
with socket.socket() as found: found.bind(("127.0.0.1", 0)); free = found.getsockname()
with socket.create_server(free): print("a port that was given back")
late = socket.socket()
late.bind(("127.0.0.1", 0))
tries("retried", lambda: late.connect(("127.0.0.1", CLOSED)))
tries("retried", lambda: late.connect(where))
async def main():
    async def echo(r, w):
        w.write(await r.read(9))
        w.close()
    s = await asyncio.start_server(echo, "127.0.0.1", 0)
    for _ in range(30):
        r, w = await asyncio.open_connection(*s.sockets[0].getsockname())
        w.write(b"x")
        assert await r.read() == b"x"
        w.close()
asyncio.run(main())
path = os.path.abspath("work/socket")
with mc.Listener(path) as listener:
    client = mc.Client(path)
    other = listener.accept()
    client.send_bytes(b"by a path")
    print(other.recv_bytes().decode())
    client.close()
    tries("end", lambda: other.poll(5))
local = socket.socket(socket.AF_UNIX)
tries("outside", lambda: local.connect(OUTSIDE))
for _ in range(700): socket.socket().close()
print(socket.getaddrinfo("127.0.0.1", 80)[0][4])
"""


@pytest.mark.parametrize("flags", ["", "-docker -drop"])
def test_sockets_work_by_rule(place: Place, contained: Path, flags: str) -> None:
    """In the second the supervisor may not take a sandbox's descriptors, and makes its sockets instead."""
    prepare(place)
    with (
        socket.create_server(("127.0.0.1", 0)) as forbidden,
        socket.socket(socket.AF_UNIX) as outside,
        socket.socket() as closed,
    ):
        closed.bind(("127.0.0.1", 0))
        outside.bind(str(place.folder / "work/outside"))
        outside.listen()
        ports = (forbidden.getsockname()[1], closed.getsockname()[1])
        known = f"PORT, CLOSED, OUTSIDE = {(*ports, str(place.folder / 'work/outside'))}\n"
        place.file("program.py", known + SOCKETS)
        place.profile(
            f"expose-rw=./work\npython-import=*\npython-api=ALLOW:threads\nnet=DENY|TCP|127.0.0.1|{forbidden.getsockname()[1]}|OUT\n"
            "net=ALLOW|TCP|127.0.0.1|*|*\n"
        )
        done = run(place, contained, flags, *place.command("program.py"))
        forbidden.setblocking(False)
        with pytest.raises(BlockingIOError):
            forbidden.accept()
    assert done.stdout.splitlines() == [
        "b'hello' b''",
        "connected OSError 106",
        "closed port ConnectionRefusedError 111",
        "no rule RuleSocketConnectionRefusedError 111",
        "a port that was given back",
        "retried ConnectionRefusedError 111",
        "retried None",
        "by a path",
        "end True",
        "outside RuleSocketConnectionRefusedError 111",
        "('127.0.0.1', 80)",
    ], done.stdout + done.stderr


def test_what_a_container_keeps_from_network_rules_is_said(place: Place, contained: Path) -> None:
    prepare(place)
    place.profile("python-import=*\nnet=ALLOW|UDP|127.0.0.1|53|OUT\n")
    code = "import socket\ntry: socket.socket(type=socket.SOCK_DGRAM)\nexcept OSError as e: print(e.errno)"
    done = run(place, contained, "-docker -drop", *place.command("-c", code))
    assert done.stdout == "13\n"
    assert "pidfd_getfd is not permitted here" in done.stderr
    bare = place.run("-c", code)
    assert (bare.stdout, bare.stderr) == ("", "")
