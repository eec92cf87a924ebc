"""What lies beneath an exposed folder and is not for the program: native code that goes for it, past the mounts that hold it.

``ignore=`` hides a file of the payload's own folder, and an include of the profile lies in one that may be written.
"""

from __future__ import annotations

from attack import Attack
from by_system_call import native

#: A second folder's worth of what the calls below need, besides those of by_system_call.
MORE = """\
NUMBERS.update(dict(zip('umount2 setns fchdir sendfile copy_file_range mount chroot'.split(),
    (166, 308, 81, 40, 326, 165, 161) if platform.machine() == 'x86_64' else (39, 268, 50, 71, 285, 40, 51))))
HID, RULES = WORK + '/d/x.hid', WORK + '/d/rules'
def shown(path): content(opened(path))
"""
PLANT = "import os\nos.mkdir(WORK + '/d')\nopen(WORK + '/d/x.hid', 'w').write('s3cret')\nopen(WORK + '/d/beside', 'w').write('mine')\n"
#: The content of the include, which grants nothing.
RULES = "# rules of a person\n"


def hidden(name: str, code: str, kind: str = "native", **more: object) -> Attack:
    """Reads what ``ignore=*.hid`` hides."""
    return native(f"hidden, {name}", MORE + code, "read", kind, grants="\nignore=*.hid", plant=PLANT, **more)  # type: ignore[arg-type]


def placed(name: str, code: str, kind: str = "link", **more: object) -> Attack:
    """Reads what a rule hides by its whole path."""
    grants = "\nignore=./work/payload_0/d/x.hid"
    return native(f"hidden by its path, {name}", MORE + code, "read", kind, grants=grants, plant=PLANT, alone=True, **more)  # type: ignore[arg-type]


def rules(name: str, code: str, kind: str = "native", first: str = "", **more: object) -> Attack:
    """Changes an include of the profile."""
    looks = f"\nif not os.path.exists(RULES) or open(RULES).read() != {RULES!r}: print('ESCAPED')"
    return native(
        *(f"an include, {name}", MORE + code + looks, "write", kind),
        grants='\ninclude "./work/payload_0/d/rules"',
        plant=PLANT + f"open(WORK + '/d/rules', 'w').write({RULES!r})",
        alone=True,
        **more,  # type: ignore[arg-type]
    )


CASES: list[Attack] = [
    hidden("opened", "shown(HID)"),
    hidden("relative to its folder", "content(call('openat', opened(WORK + '/d'), 'x.hid', 0, 0))", "descriptor"),
    hidden("from its folder", "os.chdir(WORK + '/d')\nshown('x.hid')", "spelling", alone=True),
    hidden("through a link", "os.symlink('d/x.hid', WORK + '/l')\nshown(WORK + '/l')", "link"),
    hidden("by another name", "call('linkat', HERE, HID, HERE, WORK + '/l', 0)\nshown(WORK + '/l')", "link"),
    hidden(
        "by another name of a descriptor",
        "fd = opened(HID, 0o10000000)\ncall('linkat', HERE, f'/proc/self/fd/{fd}', HERE, WORK + '/l', 0x400)\nshown(WORK + '/l')",
        "link",
    ),
    hidden("renamed", "call('renameat2', HERE, HID, HERE, WORK + '/m', 0)\nshown(WORK + '/m')", "link", alone=True),
    hidden(
        "exchanged with another",
        "call('renameat2', HERE, HID, HERE, WORK + '/d/beside', 2)\nshown(WORK + '/d/beside')",
        "link",
        alone=True,
    ),
    hidden(
        "its folder moved",
        "call('renameat2', HERE, WORK + '/d', HERE, WORK + '/e', 0)\nshown(WORK + '/e/x.hid')",
        "link",
        alone=True,
    ),
    hidden(
        "through the parent's root",
        "if os.stat(f'/proc/{os.getppid()}').st_uid != os.getuid(): absent('the parent is of another user')\n"
        "shown(f'/proc/{os.getppid()}/root' + os.path.abspath(HID))",
        "spelling",
    ),
    hidden("through another's root", "shown(f'/proc/{VICTIM}/root' + os.path.abspath(HID))", "spelling"),
    hidden(
        "copied by the kernel",
        "fd, to = opened(HID), call('openat', HERE, WORK + '/c', 0o102, 0o600)\n"
        "call('copy_file_range', fd, 0, to, 0, 99, 0)\ncall('sendfile', to, fd, 0, 99)\nshown(WORK + '/c')",
    ),
    hidden(
        "what hides it taken off",
        "call('umount2', HID, 2)\nshown(HID)",
        "link",
    ),
    hidden(
        "in a copy of the tree of mounts",
        "call('unshare', 0x10020000)\nt = call('open_tree', HERE, WORK + '/d', 0x80001)\n"
        "content(call('openat', t if t >= 0 else opened(WORK + '/d'), 'x.hid', 0, 0))",
        "link",
        alone=True,
    ),
    hidden(
        "in the parent's namespace",
        "path = os.path.abspath(HID)\ncall('setns', call('pidfd_open', os.getppid(), 0), 0x20000)\nshown(path)",
        "state",
        alone=True,
    ),
    placed("its folder renamed", "call('renameat2', HERE, WORK + '/d', HERE, WORK + '/e', 0)\nshown(WORK + '/e/x.hid')"),
    placed(
        "its folder renamed, for the next start",
        "shown(WORK + '/e/x.hid')",
        first="import ctypes, os\nctypes.CDLL(None).rename(os.fsencode(WORK + '/d'), os.fsencode(WORK + '/e'))",
    ),
    placed(
        "a folder above renamed, for the next start",
        "shown('work/other/d/x.hid')",
        first="import ctypes, os\nctypes.CDLL(None).rename(os.fsencode(WORK), b'work/other')\nos.makedirs(WORK, exist_ok=True)",
    ),
    rules("opened to write", "fd = opened(RULES, 1)\nif fd >= 0: os.write(fd, b'x')"),
    rules("emptied", "call('truncate', RULES, 0)"),
    rules("emptied by opening", "opened(RULES, 0o1000)"),
    rules("removed", "call('unlinkat', HERE, RULES, 0)", "link"),
    rules("another in its place", "call('renameat2', HERE, WORK + '/d/beside', HERE, RULES, 0)", "link"),
    rules("exchanged", "call('renameat2', HERE, WORK + '/d/beside', HERE, RULES, 2)", "link"),
    rules("its folder exchanged", "os.mkdir(WORK + '/e')\ncall('renameat2', HERE, WORK + '/d', HERE, WORK + '/e', 2)", "link"),
    rules(
        "its folder moved away",
        "call('renameat2', HERE, WORK + '/d', HERE, WORK + '/e', 0)",
        "link",
    ),
    rules(
        "the folder above moved away",
        "call('renameat2', HERE, WORK, HERE, 'work/other', 0)",
        "link",
    ),
    rules(
        "written by another name",
        "call('linkat', HERE, RULES, HERE, WORK + '/l', 0)\nfd = opened(WORK + '/l', 1)\nif fd >= 0: os.write(fd, b'x')",
        "link",
    ),
    rules(
        "opened again to write",
        "fd = opened(f'/proc/self/fd/{opened(RULES)}', 1)\nif fd >= 0: os.write(fd, b'x')",
        "descriptor",
    ),
    rules(
        "made writable",
        "call('mount', 0, RULES, 0, 0x1020, 0)\ncall('mount_setattr', HERE, RULES, 0, struct.pack('4Q', 0, 1, 0, 0), 32)\n"
        "fd = opened(RULES, 1)\nif fd >= 0: os.write(fd, b'x')",
        "state",
    ),
]
