"""Signal a process outside of the sandbox, or type into a terminal."""

from __future__ import annotations

from attack import Attack

#: Says whether the victim has ended; it is a child of the tests, so that it stays as a zombie.
ENDED = """
import time
until = time.monotonic() + 5
while time.monotonic() < until:
    if open(f'/proc/{VICTIM}/stat').read().rpartition(')')[2].split()[0] == 'Z':
        print('ESCAPED')
        break
    time.sleep(0.01)
"""


def signals(name: str, code: str, kind: str = "direct") -> Attack:
    return Attack("signal", name, "import fcntl, os, signal, socket, struct\n" + code + ENDED, kind=kind, alone=True)


#: A descriptor that is readable at once sends its owner the signal that the program chose.
READABLE = """
a, b = socket.socketpair()
{own}
fcntl.fcntl(a, 10, signal.SIGKILL)  # F_SETSIG
fcntl.fcntl(a, fcntl.F_SETFL, os.O_ASYNC)
b.send(b'x')
"""

STARTS = "python-api=ALLOW:process-exec\nexpose-ro=/usr/bin/true"
POPEN = "p = subprocess.Popen.__new__(subprocess.Popen)\np.returncode = None\np.poll = lambda: None\n"

CASES: list[Attack] = [
    signals("os.kill", "os.kill(VICTIM, signal.SIGKILL)"),
    signals("os.killpg", "os.killpg(VICTIM, signal.SIGKILL)"),
    signals("pidfd_send_signal", "signal.pidfd_send_signal(os.pidfd_open(VICTIM), signal.SIGKILL)", "twin"),
    # No function of process control, and no event that names a process.
    *(
        signals(f"the owner of a descriptor, {name}", READABLE.format(own=own), kind)
        for name, own, kind in [
            ("F_SETOWN", "fcntl.fcntl(a, fcntl.F_SETOWN, VICTIM)", "descriptor"),
            ("F_SETOWN of a group", "fcntl.fcntl(a, fcntl.F_SETOWN, -VICTIM & 0xffffffff)", "descriptor"),
            ("F_SETOWN_EX", "fcntl.fcntl(a, 15, struct.pack('ii', 1, VICTIM))", "descriptor"),
            ("FIOSETOWN", "fcntl.ioctl(a, 0x8901, struct.pack('i', VICTIM))", "descriptor"),
            ("SIOCSPGRP", "fcntl.ioctl(a, 0x8902, struct.pack('i', VICTIM))", "descriptor"),
            (
                "an index that changes",
                "class N:\n    said = iter([os.getpid()])\n    def __index__(self): return next(self.said, VICTIM)\n"
                "n = N(); n.__index__()\nfcntl.fcntl(a, fcntl.F_SETOWN, n)",
                "object",
            ),
        ]
    ),
    # Who may start programs may end them, and no others.
    *(
        Attack("signal", name, f"import os, signal, subprocess\n{code}" + ENDED, kind="object", grants=STARTS, alone=True)
        for name, code in [
            ("a hand-made Popen", f"{POPEN}p.pid = VICTIM\np.kill()"),
            (
                "a Popen with another number",
                "p = subprocess.Popen(['true'])\np.poll = lambda: None\np.pid = VICTIM\np.send_signal(9)",
            ),
            ("a group", f"{POPEN}p.pid = -VICTIM\np.kill()"),
            (
                "a process of multiprocessing",
                "import multiprocessing\np = multiprocessing.Process()\np.start()\np._popen.pid = VICTIM\np.kill()",
            ),
        ]
    ),
    Attack(
        "signal",
        "typing into a terminal",
        """
        import fcntl, os, termios
        main, terminal = os.openpty()
        try: fcntl.ioctl(terminal, termios.TIOCSTI, b'\\n')
        except OSError as error: absent(f'nobody may here: {error}')
        print('ESCAPED' if os.read(terminal, 9) == b'\\n' else 'no')
    """,
        grants="expose-rw=/dev/ptmx\nexpose-rw=/dev/pts",
        alone=True,
    ),
]
