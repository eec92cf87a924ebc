"""What fcntl does for the program itself is as it is bare; what reaches others is in the attack corpus."""

from __future__ import annotations

from pathlib import Path

import pytest
from complete_mode import Place

pytestmark = pytest.mark.smoke

PROGRAM = """
import errno, fcntl, os, signal, socket, struct
a, b = socket.socketpair()
said = []
signal.signal(signal.SIGIO, lambda *_: said.append('io'))
print(fcntl.fcntl(a, fcntl.F_SETOWN, os.getpid()), fcntl.fcntl(a, fcntl.F_GETOWN) == os.getpid())
fcntl.fcntl(a, fcntl.F_SETFL, fcntl.fcntl(a, fcntl.F_GETFL) | os.O_ASYNC | os.O_NONBLOCK)
b.send(b'x')
print(said, a.recv(9))
print(fcntl.fcntl(a, fcntl.F_SETOWN, 0), fcntl.fcntl(a, fcntl.F_SETOWN), fcntl.fcntl(a, fcntl.F_GETOWN))
print(fcntl.fcntl(a, fcntl.F_GETFD), fcntl.ioctl(a, 0x541B, struct.pack('i', 7)))
for arguments in ((9999, fcntl.F_SETOWN, os.getpid()), (a, 'x')):
    try: print(fcntl.fcntl(*arguments))
    except Exception as error: print(type(error).__name__, error)
one = socket.socket(socket.AF_UNIX)
one.bind('work/new')
one.listen()
os.rename('work/new', 'work/final')
print(os.listdir('work'))
"""


def test_own_descriptors_and_sockets(tmp_path: Path) -> None:
    outs = []
    for provider in (None, "landlock", "subprocess"):
        place = Place(tmp_path / str(provider), provider)
        place.file("program.py", PROGRAM)
        place.file("work/x").unlink()
        place.profile("python-import=*\nexpose-rw=./work\n")
        done = place.bare("program.py") if provider is None else place.run("program.py")
        assert done.returncode == 0, done.stderr
        outs.append(done.stdout)
    assert outs[0] == outs[1] == outs[2]


@pytest.mark.parametrize("rule", ["python-api=ALLOW:process-control", "python-api=ALLOW:fcntl.fcntl"])
def test_a_grant_lets_it(tmp_path: Path, rule: str) -> None:
    place = Place(tmp_path, "subprocess")
    place.file(
        "program.py",
        "import fcntl, os, socket\na, b = socket.socketpair()\nprint(fcntl.fcntl(a, fcntl.F_SETOWN, os.getppid()))",
    )
    place.profile("python-import=*\n")
    refused = place.run("program.py")
    assert "calling fcntl.fcntl (process-control) is refused" in refused.stderr
    place.profile(f"python-import=*\n{rule}\n")
    assert place.run("program.py").stdout == "0\n"
