"""Native code that makes the system calls itself: what the kernel's boundary has to hold with no Python layer before it.

The profile grants ``native`` and a folder to write in, so that nothing is refused for want of anything writable. Bare, each call does
what its name says; a call that this machine's kernel has not, or gives to root alone, is skipped.
"""

from __future__ import annotations

from attack import Attack

GRANTS = "python-api=ALLOW:native\nexpose-rw=./work\nexpose-ro=./shown"

#: ``call`` makes a call by its name: the number, or -errno. Strings are paths; what is a number is one.
CALLS = """\
import ctypes, os, platform, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
NUMBERS = dict(zip(
    'openat fchmod fchmodat fchown fchownat utimensat setxattr lsetxattr fsetxattr ioctl truncate renameat2 linkat symlinkat unlinkat mknodat mkdirat '
    'connect socket socketpair shmget semget msgget mq_open ptrace process_vm_readv kcmp prlimit64 setpriority sched_setaffinity ioprio_set '
    'sched_setscheduler kill tgkill rt_sigqueueinfo unshare add_key keyctl io_uring_setup bpf perf_event_open userfaultfd name_to_handle_at '
    'memfd_create execveat pidfd_open pidfd_send_signal pidfd_getfd process_madvise openat2 fchmodat2 clone3 open_tree fsopen fcntl '
    'fanotify_init swapon mount_setattr landlock_create_ruleset personality'.split(),
    (257, 91, 268, 93, 260, 280, 188, 189, 190, 16, 76, 316, 265, 266, 263, 259, 258,
     42, 41, 53, 29, 64, 68, 240, 101, 310, 312, 302, 141, 203, 251,
     144, 62, 234, 129, 272, 248, 250, 425, 321, 298, 323, 303,
     319, 322, 434, 424, 438, 440, 437, 452, 435, 428, 430, 72,
     300, 167, 442, 444, 135) if platform.machine() == 'x86_64' else
    (56, 52, 53, 55, 54, 88, 5, 6, 7, 29, 45, 276, 37, 36, 35, 33, 34,
     203, 198, 199, 194, 190, 186, 180, 117, 270, 272, 261, 140, 122, 30,
     119, 129, 131, 138, 97, 217, 219, 425, 280, 241, 282, 264,
     279, 281, 434, 424, 438, 440, 437, 452, 435, 428, 430, 25,
     262, 224, 442, 444, 92)))
HERE, NOFOLLOW, EMPTY = -100, 0x100, 0x1000
def call(name, *args):
    args = [os.fsencode(a) if isinstance(a, str) else a for a in args]
    ctypes.set_errno(0)
    result = libc.syscall(NUMBERS[name], *(ctypes.c_long(a) if isinstance(a, int) else a for a in args))
    return -ctypes.get_errno() if result == -1 else result
def done(result, *lacking):
    if -result in (38, 95, *lacking): absent(f'not to be had here: {os.strerror(-result)}')
    if result >= 0: print('ESCAPED')
def content(fd):
    if fd >= 0: got(os.read(fd, 99))
PAGE, TIMES = SHOWN + '/page', struct.pack('4q', 1, 2, 3, 4)
def opened(path, flags=0): return call('openat', HERE, path, flags, 0)
"""


def native(name: str, code: str, objective: str, kind: str = "native", *, grants: str = "", **more: object) -> Attack:
    return Attack(objective, f"{name}, by a system call", CALLS + code, grants=GRANTS + grants, kind=kind, layer="os", **more)  # type: ignore[arg-type]


def reads(name: str, code: str, **more: object) -> Attack:
    return native(name, code, "read", **more)  # type: ignore[arg-type]


def changes(name: str, code: str, **more: object) -> Attack:
    return native(name, code, "write", **more)  # type: ignore[arg-type]


def reaches(name: str, code: str, **more: object) -> Attack:
    return native(name, code, "exfiltrate", **more)  # type: ignore[arg-type]


def acts(name: str, code: str, **more: object) -> Attack:
    return native(name, code, "other processes", **more)  # type: ignore[arg-type]


#: A second thread points a link in and out of the exposed folder.
FLIP = """
import threading
link = WORK + '/flip'
open(WORK + '/own', 'w').close()
os.symlink('own', link)
def flip():
    for n in range(3000):
        os.symlink(SECRET if n % 2 else 'own', WORK + '/next')
        os.rename(WORK + '/next', link)
t = threading.Thread(target=flip)
t.start()
while t.is_alive(): {call}
t.join()
"""

#: Runs a program that says ESCAPED, from a file that is nowhere.
MEMORY = """
import shutil
fd = call('memfd_create', 'x', 0)
os.write(fd, open('/bin/echo', 'rb').read())
argv = (ctypes.c_char_p * 3)(b'echo', b'ESCAPED', None)
"""

CASES: list[Attack] = [
    # ---- content
    reads("open", "content(opened(SECRET))"),
    reads("openat2", "content(call('openat2', HERE, SECRET, struct.pack('3Q', 0, 0, 0), 24))"),
    reads(
        "O_PATH and the folder's descriptor",
        "content(call('openat', opened(HIDDEN, 0o10000000), 'key', 0, 0))",
        kind="descriptor",
    ),
    reads("O_PATH, opened again", "content(opened(f'/proc/self/fd/{opened(SECRET, 0o10000000)}'))", kind="descriptor"),
    reads("through another's root", "content(opened(f'/proc/{VICTIM}/root{SECRET}'))", kind="spelling"),
    reads("through one's own root", "content(opened('/proc/self/root' + SECRET))", kind="spelling"),
    reads("another's environment", "content(opened(f'/proc/{VICTIM}/environ'))", kind="spelling"),
    reads("a link", "os.symlink(SECRET, WORK + '/l')\ncontent(opened(WORK + '/l'))", kind="link"),
    reads("a hard link", "call('linkat', HERE, SECRET, HERE, WORK + '/l', 0)\ncontent(opened(WORK + '/l'))", kind="link"),
    reads(
        "a hard link of a descriptor",
        "fd = opened(SECRET, 0o10000000)\ncall('linkat', HERE, f'/proc/self/fd/{fd}', HERE, WORK + '/l', 0x400)\ncontent(opened(WORK + '/l'))",
        kind="link",
    ),
    reads(
        "a hard link by an empty path",
        "if call('linkat', opened(SECRET, 0o10000000), '', HERE, WORK + '/e', EMPTY) == -2: absent('root alone may')\n"
        "content(opened(WORK + '/e'))",
        kind="link",
    ),
    reads(
        "where another stands",
        "where = ctypes.create_string_buffer(99)\nn = libc.readlink(f'/proc/{VICTIM}/cwd'.encode(), where, 99)\n"
        "if n > 0: print('ESCAPED')",
        kind="metadata",
    ),
    reads(
        "its folder moved",
        "call('renameat2', HERE, HIDDEN, HERE, WORK + '/moved', 0)\ncontent(opened(WORK + '/moved/key'))",
        kind="link",
        alone=True,
    ),
    reads(
        "exchanged names",
        "open(WORK + '/own', 'w').close()\ncall('renameat2', HERE, SECRET, HERE, WORK + '/own', 2)\ncontent(opened(WORK + '/own'))",
        kind="link",
    ),
    reads(
        "a race of links",
        FLIP.format(call="content(opened(link))"),
        grants="\npython-api=ALLOW:threads",
        kind="race",
        alone=True,
    ),
    reads(
        "a file handle",
        "h = ctypes.create_string_buffer(struct.pack('Ii', 128, 0), 136)\ndone(call('name_to_handle_at', HERE, SECRET, h, ctypes.byref(ctypes.c_int()), 0), 1)",
    ),
    # ---- change of content and names
    changes("open to write", "fd = opened(PAGE, 1)\nif fd >= 0: os.write(fd, b'changed')"),
    changes("open to read, emptied", "opened(PAGE, 0o1000)"),
    changes("truncate", "call('truncate', PAGE, 1)"),
    changes("rename", "call('renameat2', HERE, PAGE, HERE, WORK + '/page', 0)"),
    changes("a new name of it", "call('linkat', HERE, PAGE, HERE, SHOWN + '/new', 0)"),
    changes("remove", "call('unlinkat', HERE, PAGE, 0)"),
    changes("a link", "call('symlinkat', 'x', HERE, SHOWN + '/new')"),
    changes("a folder", "call('mkdirat', HERE, SHOWN + '/new', 0o700)"),
    changes("a pipe", "call('mknodat', HERE, SHOWN + '/new', 0o10600, 0)"),
    changes(
        "a socket",
        "s = call('socket', 1, 1, 0)\na = struct.pack('H', 1) + os.fsencode(SHOWN) + b'/new\\0'\nlibc.bind(s, a, len(a))",
    ),
    changes("emptied by creat", "libc.creat(os.fsencode(PAGE), 0o600)", kind="twin"),
    # with a rule for the network the supervisor makes the file of a socket
    *(
        changes(
            f"a socket that the supervisor makes, {name}",
            f"{before}s = call('socket', 1, 1, 0)\na = struct.pack('H', 1) + os.fsencode({path}) + b'/new\\0'\nlibc.bind(s, a, len(a))",
            kind=kind,
            grants="\nnet=ALLOW|TCP|127.0.0.1|{open}|OUT",
        )
        for name, before, path, kind in [
            ("by its path", "", "SHOWN", "native"),
            ("through its root", "", "'/proc/self/root' + os.path.abspath(SHOWN)", "spelling"),
            ("through a link", "os.symlink(os.path.abspath(SHOWN), WORK + '/s')\n", "WORK + '/s'", "link"),
            ("through a descriptor", "fd = opened(SHOWN, 0o10000000)\n", "f'/proc/self/fd/{fd}'", "descriptor"),
        ]
    ),
    # ---- mode, owner, times, attributes
    changes("chmod", "call('fchmodat', HERE, PAGE, 0o606)", kind="metadata"),
    changes("chmod of what is hidden", "call('fchmodat', HERE, SECRET, 0o606)", kind="metadata"),
    changes("fchmodat2", "done(call('fchmodat2', HERE, PAGE, 0o606, 0))", kind="metadata"),
    changes("fchmod of what may be read", "call('fchmod', opened(PAGE), 0o606)", kind="metadata"),
    changes("chmod by O_PATH", "done(call('fchmodat2', opened(SECRET, 0o10000000), '', 0o606, EMPTY))", kind="metadata"),
    changes("chmod by the folder", "call('fchmodat', opened(HIDDEN, 0o10000000), 'key', 0o606)", kind="metadata"),
    changes("chmod beneath one's own folder", "call('fchmodat', opened(WORK), '../../' + PAGE, 0o606)", kind="metadata"),
    changes("chmod through a link", "os.symlink(SECRET, WORK + '/l')\ncall('fchmodat', HERE, WORK + '/l', 0o606)", kind="link"),
    changes(
        "chmod through a folder's link",
        "os.symlink(HIDDEN, WORK + '/l')\ncall('fchmodat', HERE, WORK + '/l/key', 0o606)",
        kind="link",
    ),
    changes(
        "chmod through a descriptor's name", "call('fchmodat', HERE, f'/proc/self/fd/{opened(PAGE)}', 0o606)", kind="descriptor"
    ),
    changes("chmod through one's own root", "call('fchmodat', HERE, '/proc/self/root' + SECRET, 0o606)", kind="spelling"),
    changes(
        "chmod through the parent",
        "if call('fchmodat', HERE, f'/proc/{os.getppid()}/root{SECRET}', 0o606) == -13: absent('the parent is of another user')",
        kind="spelling",
    ),
    changes(
        "chmod in a race of links",
        FLIP.format(call="call('fchmodat', HERE, link, 0o606)"),
        grants="\npython-api=ALLOW:threads",
        kind="race",
        alone=True,
    ),
    changes(
        "chmod of a path that changes",
        """
import threading, time
until = time.monotonic() + 0.7
inside, outside = os.fsencode(os.path.abspath(WORK) + '/own'), os.fsencode(SECRET)
open(inside, 'w').close()
path = ctypes.create_string_buffer(max(inside, outside, key=len), 4096)
def flip():
    while time.monotonic() < until: path.value = inside; path.value = outside
t = threading.Thread(target=flip)
t.start()
while t.is_alive(): call('fchmodat', HERE, path, 0o606)
t.join()
""",
        grants="\npython-api=ALLOW:threads",
        kind="race",
        alone=True,
    ),
    changes(
        "chmod of a descriptor that changes",
        """
import threading, time
until = time.monotonic() + 0.7
own, theirs = os.open(WORK + '/own', os.O_CREAT | os.O_RDWR), opened(PAGE)
fd = os.dup(own)
def flip():
    while time.monotonic() < until: libc.dup2(own, fd); libc.dup2(theirs, fd)
t = threading.Thread(target=flip)
t.start()
while t.is_alive(): call('fchmod', fd, 0o606)
t.join()
""",
        grants="\npython-api=ALLOW:threads",
        kind="race",
        alone=True,
    ),
    changes("chown", "call('fchownat', HERE, PAGE, -1, os.getgid(), 0)", kind="metadata"),
    changes("chown of a descriptor", "call('fchown', opened(PAGE), -1, os.getgid())", kind="metadata"),
    changes(
        "chown by an empty path", "call('fchownat', opened(SECRET, 0o10000000), '', -1, os.getgid(), EMPTY)", kind="metadata"
    ),
    changes("times", "call('utimensat', HERE, PAGE, TIMES, 0)", kind="metadata"),
    changes("times, now", "call('utimensat', HERE, PAGE, 0, 0)", kind="metadata"),
    changes("times of a descriptor", "call('utimensat', opened(PAGE), 0, TIMES, 0)", kind="metadata"),
    changes("times of a folder", "call('utimensat', HERE, HIDDEN, TIMES, NOFOLLOW)", kind="metadata"),
    changes("an attribute", "done(call('setxattr', PAGE, 'user.x', b'v', 1, 0), 13)", kind="metadata"),
    changes("an attribute, not following", "done(call('lsetxattr', SECRET, 'user.x', b'v', 1, 0), 13)", kind="metadata"),
    changes("an attribute of a descriptor", "done(call('fsetxattr', opened(PAGE), 'user.x', b'v', 1, 0), 13)", kind="metadata"),
    changes(
        "the attributes of chattr",
        "fd, flags = opened(PAGE), ctypes.c_int()\n"
        "if call('ioctl', fd, 0x80086601, ctypes.byref(flags)) < 0: absent('this file system has none')\n"
        "flags.value ^= 0x40\ndone(call('ioctl', fd, 0x40086602, ctypes.byref(flags)), 25)",
        kind="metadata",
    ),
    # ---- local sockets
    *(
        reaches(
            f"a local socket, {name}",
            f"{before}\ns = call('socket', 1, 1, 0)\na = struct.pack('H', 1) + {address}\ndone(call('connect', s, a, len(a)))",
            kind=kind,
        )
        for name, before, address, kind in [
            ("its path", "", "os.fsencode(SOCKET) + b'\\0'", "native"),
            ("a relative path", "", "os.fsencode(os.path.relpath(SOCKET)) + b'\\0'", "spelling"),
            ("through a link", "os.symlink(SOCKET, WORK + '/l')", "os.fsencode(WORK) + b'/l\\0'", "link"),
            (
                "through a hard link",
                "call('linkat', HERE, SOCKET, HERE, WORK + '/l', 0)",
                "os.fsencode(WORK) + b'/l\\0'",
                "link",
            ),
            (
                "through a descriptor",
                "fd = opened(SOCKET, 0o10000000)",
                "f'/proc/self/fd/{fd}'.encode() + b'\\0'",
                "descriptor",
            ),
            ("an abstract name", "", "os.fsencode(ABSTRACT)", "native"),
        ]
    ),
    *(
        reaches(f"a socket of {name}", f"done(call('socket', {args}), {', '.join(map(str, lacking))})")
        for name, args, lacking in [
            ("the internet", "2, 1, 0", [97]),
            ("the internet, by datagrams", "10, 2, 0", [97]),
            ("the kernel's cryptography", "38, 5, 0", [97]),
            ("virtual machines", "40, 1, 0", [97, 19]),
            ("the kernel's routes", "16, 3, 0", [97, 93]),
            ("packets", "17, 3, 768", [97, 1]),
            ("raw datagrams", "2, 3, 1", [97, 1]),
            ("several paths", "2, 1, 262", [97, 92, 93]),
        ]
    ),
    # ---- what other processes share
    *(
        acts(name, f"done({code}, {', '.join(map(str, lacking))})", **({"kind": "twin"} if name.startswith("POSIX") else {}))
        for name, code, lacking in [
            ("System V memory", "call('shmget', 0, 4096, 0o1600)", []),
            ("System V semaphores", "call('semget', 0, 1, 0o1600)", [28]),
            ("System V messages", "call('msgget', 0, 0o1600)", [28]),
            (
                "POSIX messages",
                "[call('mq_open', f'psb{os.getpid()}', 0o102, 0o600, 0), libc.mq_unlink(b'/psb%d' % os.getpid())][0]",
                [13, 2],
            ),
            ("the user's keys", "call('add_key', b'user\\0', b'psb\\0', b'x', 1, -4)", [1, 13, 122]),
            ("tracing another", "call('ptrace', 0x4206, VICTIM, 0, 0)", [1]),
            ("another's limits", "call('prlimit64', VICTIM, 7, 0, ctypes.create_string_buffer(16))", [1]),
            ("another's priority", "call('setpriority', 0, VICTIM, 19)", [1]),
            ("another's processors", "call('sched_setaffinity', VICTIM, 8, struct.pack('Q', 1))", [1, 22]),
            ("another's policy", "call('sched_setscheduler', VICTIM, 3, struct.pack('i', 0))", [1]),
            ("another's disk priority", "call('ioprio_set', 1, VICTIM, 2 << 13 | 7)", [1]),
            ("the user's disk priority", "call('ioprio_set', 3, os.getuid(), 2 << 13 | 7)", [1]),
            ("a descriptor of another's", "call('pidfd_getfd', call('pidfd_open', VICTIM, 0), 0, 0)", [1]),
            ("what another has in common", "call('kcmp', os.getpid(), VICTIM, 0, 0, 0)", [1]),
            ("another's network by its descriptor", "call('ioctl', call('pidfd_open', VICTIM, 0), 0xff04, 0)", [1, 22, 25]),
            ("a signal", "call('kill', VICTIM, 0)", []),
            ("a signal for a thread", "call('tgkill', VICTIM, VICTIM, 0)", []),
            ("a signal by a descriptor", "call('pidfd_send_signal', call('pidfd_open', VICTIM, 0), 0, 0, 0)", []),
        ]
    ),
    acts(
        "a signal by a descriptor's owner",
        "import socket, time\na, b = socket.socketpair()\ncall('fcntl', a.fileno(), 8, VICTIM)\ncall('fcntl', a.fileno(), 10, 9)\n"
        "call('fcntl', a.fileno(), 4, 0o20000)\nb.send(b'x')\ntime.sleep(0.2)",
        kind="descriptor",
        alone=True,
    ),
    acts(
        "another's memory",
        """
one = ctypes.c_char()
local = struct.pack('2Q', ctypes.addressof(one), 1)
with open('/proc/self/maps' if False else '/dev/null') as f: pass
where = 0
for line in open(f'/proc/{VICTIM}/maps') if os.access(f'/proc/{VICTIM}/maps', os.R_OK) else ():
    where = where or int(line.split('-')[0], 16)
done(call('process_vm_readv', VICTIM, local, 1, struct.pack('2Q', where or 4096, 1), 1, 0), 1)
""",
    ),
    # ---- the kernel's own ways
    *(
        native(name, f"done({code}, {', '.join(map(str, lacking))})", "boundary", alone=True)
        for name, code, lacking in [
            ("a user namespace", "call('unshare', 0x10000000)", [1, 22]),
            ("io_uring", "call('io_uring_setup', 1, ctypes.create_string_buffer(120))", [1]),
            ("perf events", "call('perf_event_open', struct.pack('2I15Q', 1, 128, *[0] * 15), 0, -1, -1, 0)", [1, 2, 13, 22]),
            ("page faults", "call('userfaultfd', 1)", [1]),
            ("bpf", "call('bpf', 0, struct.pack('4I', 2, 4, 4, 1) + bytes(112), 128)", [1]),
            ("watching a file system", "call('fanotify_init', 0x200, 0)", [1]),
            ("a tree of mounts", "call('open_tree', HERE, HIDDEN, 1)", [1]),
            ("a file system", "call('fsopen', 'tmpfs', 0)", [1]),
            ("another personality", "call('personality', 0x0400000)", []),
        ]
    ),
    # ---- programs
    native(
        "memory that is a program",
        MEMORY + "call('execveat', fd, '', argv, (ctypes.c_char_p * 1)(None), EMPTY)",
        "execute",
        alone=True,
    ),
    native(
        "memory that is a program, by the name of its descriptor",
        MEMORY + "libc.execv(f'/proc/self/fd/{fd}'.encode(), argv)",
        "execute",
        kind="descriptor",
        alone=True,
    ),
    native(
        "a program",
        "call('execveat', HERE, '/bin/echo', (ctypes.c_char_p * 3)(b'echo', b'ESCAPED', None), (ctypes.c_char_p * 1)(None), 0)",
        "execute",
        alone=True,
    ),
    native(
        "the linker, with a program",
        "import glob\nlinker = (glob.glob('/lib64/ld-linux*') + glob.glob('/lib/ld-linux*'))[0]\n"
        "libc.execv(linker.encode(), (ctypes.c_char_p * 4)(linker.encode(), b'/bin/echo', b'ESCAPED', None))",
        "execute",
        kind="twin",
        alone=True,
    ),
    native(
        "a second process", "pid = libc.fork()\nif pid == 0: os._exit(0)\nif pid > 0: print('ESCAPED')", "execute", alone=True
    ),
    native(
        "clone3",
        "r = call('clone3', struct.pack('8Q', 0, 0, 0, 0, 17, 0, 0, 0), 64)\nif r == 0: os._exit(0)\ndone(r)",
        "execute",
        kind="twin",
        alone=True,
    ),
]
