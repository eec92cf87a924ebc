"""Rights that native code would take along or leave behind: set-user-ID bits, other processes' /proc, inherited descriptors."""

from __future__ import annotations

from attack import Attack
from by_system_call import native

#: Says whether a file of the payload's own lends its owner's rights now, or its group's.
MORE = """\
NUMBERS.update(dict(zip('fchdir mknod creat open chmod'.split(), (81, 133, 85, 2, 90) if platform.machine() == 'x86_64' else (50,))))
P = WORK + '/p'
def made(): open(P, 'w').write('#!/bin/sh\\n')
def lent(path=P): print('ESCAPED' if os.path.exists(path) and os.stat(path).st_mode & 0o6000 else 'no')
def old(name, *args):
    if name not in NUMBERS: absent('this machine never had the call')
    return call(name, *args)
"""


def lends(name: str, code: str, kind: str = "metadata", **more: object) -> Attack:
    return native(f"rights to lend, {name}", MORE + code, "write", kind, alone=True, **more)  # type: ignore[arg-type]


def looks(name: str, code: str, **more: object) -> Attack:
    """With all of /proc to read, which other processes are in."""
    return native(f"the process table, {name}", MORE + code, "read", "spelling", grants="\nexpose-ro=/proc", **more)  # type: ignore[arg-type]


def parent(code: str) -> str:
    """The supervisor, which runs as the same user; bare, the parent is the tests', which is another's where they are root."""
    return f"if os.stat(f'/proc/{{os.getppid()}}').st_uid != os.getuid(): absent('the parent is of another user')\n{code}"


CASES: list[Attack] = [
    lends("chmod", "made()\ncall('fchmodat', HERE, P, 0o4755)\nlent()"),
    lends("chmod of the group", "made()\ncall('fchmodat', HERE, P, 0o2755)\nlent()"),
    lends("chmod, the older call", "made()\nold('chmod', P, 0o4755)\nlent()"),
    lends("a descriptor", "made()\ncall('fchmod', opened(P), 0o6755)\nlent()", "descriptor"),
    lends("a younger call", "made()\nif call('fchmodat2', HERE, P, 0o4755, 0) == -38: absent('an older kernel')\nlent()"),
    lends("made by opening", "opened(P)\ncall('openat', HERE, P, 0o101, 0o4755)\nlent()"),
    lends("made by opening, the older call", "old('open', P, 0o101, 0o4755)\nlent()"),
    lends("made by creat", "old('creat', P, 0o4755)\nlent()"),
    lends(
        "made by a younger call",
        "if call('openat2', HERE, P, struct.pack('3Q', 0o101, 0o4755, 0), 24) == -38: absent('an older kernel')\nlent()",
    ),
    lends("made as a node", "call('mknodat', HERE, P, 0o104755, 0)\nlent()"),
    lends("made as a node, the older call", "old('mknod', P, 0o104755, 0)\nlent()"),
    lends(
        "without a name at first",
        "fd = call('openat', HERE, WORK, os.O_TMPFILE | 2, 0o4755)\n"
        "if fd == -95: absent('this file system has no nameless files')\n"
        "call('linkat', HERE, f'/proc/self/fd/{fd}', HERE, P, 0x400)\nlent()",
        "descriptor",
        grants="\nexpose-ro=/proc",
    ),
    looks("an environment", "content(opened(f'/proc/{VICTIM}/environ'))"),
    looks("through a root", "content(opened(f'/proc/{VICTIM}/root{SECRET}'))"),
    looks("through a working folder", "content(opened(f'/proc/{VICTIM}/cwd{SECRET}'))"),
    looks(
        "memory",
        """
where = [line.split('-')[0] for line in open(f'/proc/{VICTIM}/maps') if '[stack]' in line]
top = [line.split()[0].split('-') for line in open(f'/proc/{VICTIM}/maps') if '[stack]' in line][0]
fd = opened(f'/proc/{VICTIM}/mem')
size = int(top[1], 16) - int(top[0], 16)
if fd >= 0: got(os.pread(fd, size, int(top[0], 16)))
""",
    ),
    looks(
        "the supervisor's descriptors",
        parent(
            "for n in os.listdir(f'/proc/{os.getppid()}/fd'): print('ESCAPED' if os.readlink(f'/proc/{os.getppid()}/fd/{n}') else '')"
        ),
    ),
    looks("the supervisor's memory", parent("done(opened(f'/proc/{os.getppid()}/mem'))")),
    looks("the supervisor's root", parent("content(opened(f'/proc/{os.getppid()}/root{SECRET}'))")),
]
