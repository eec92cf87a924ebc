"""What the supervisor keeps of calls that wait: of a thousand messages that one call sends, the one whose turn it is."""

from __future__ import annotations

import subprocess
from pathlib import Path

from complete_mode import Place

THREADS = 48
#: A queue is full, and threads send a thousand messages of a thousand pieces each, all but the first with 20 KiB beside them.
PROGRAM = f"""\
import ctypes, os, socket, struct, sys, threading
libc = ctypes.CDLL(None, use_errno=True)
a, b = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
a.setblocking(False)
try:
    while True: a.send(bytes(65536))
except BlockingIOError: pass
a.setblocking(True)
data, beside = ctypes.create_string_buffer(8), ctypes.create_string_buffer(20 << 10)
pieces = ctypes.create_string_buffer(struct.pack('QQ', ctypes.addressof(data), 1) * 1024)
def message(*control): return struct.pack('8Q', 0, 0, ctypes.addressof(pieces), 1024, *control, 0, 0)
many = message(0, 0) + message(ctypes.addressof(beside), 20 << 10) * 1023
many = ctypes.create_string_buffer(many, len(many))
for _ in range({THREADS}):
    threading.Thread(target=libc.sendmmsg, args=(a.fileno(), many, 1024, 0), daemon=True).start()
address = struct.pack('H', 1) + b'nobody\\0'
print(libc.connect(libc.socket(1, 1, 0), address, len(address)), flush=True)  # the supervisor serves this behind them
sys.stdin.read()
os._exit(0)
"""


def peak(pid: int) -> int:
    """The most memory that a process has had, in MiB."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) >> 10 for line in lines if line.startswith("VmHWM"))


def test_messages_that_wait_are_the_programs_memory(place: Place) -> None:
    (place.folder / "own").mkdir()
    place.provider = "landlock"
    place.profile("python-import=*\npython-api=ALLOW:native\npython-api=ALLOW:threads\nexpose-rw=./own\n")
    place.file("program.py", PROGRAM)
    pipe = subprocess.PIPE
    command = place.command("program.py")
    with subprocess.Popen(
        command, stdin=pipe, stdout=pipe, stderr=pipe, text=True, cwd=place.folder, env=place.environ()
    ) as one:
        assert one.stdin is not None and one.stdout is not None and one.stderr is not None
        assert one.stdout.readline().strip(), one.stderr.read()
        used = peak(one.pid)
        one.stdin.close()
        one.wait(20)
    assert used < 200, f"the supervisor took {used} MiB"
