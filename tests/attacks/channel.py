"""Attack the descriptors that the guard and the supervisor talk over."""

from __future__ import annotations

from functools import partial

from attack import Attack

channel = partial(Attack, "channel", kind="descriptor", alone=True)

#: The guard's descriptors, as far as a program can tell them from its own.
FIND = """
import os, socket, stat
def sockets():
    found = []
    for fd in range(3, 1100):
        try:
            if stat.S_ISSOCK(os.fstat(fd).st_mode): found.append(fd)
        except OSError: pass
    return found
def memory():
    found = []
    for fd in range(3, 1100):
        try:
            if stat.S_ISREG(os.fstat(fd).st_mode) and os.fstat(fd).st_nlink == 0: found.append(fd)
        except OSError: pass
    return found
def copy(fd): return socket.socket(fileno=os.dup(fd))
def put(new, fd):
    import fcntl
    try: socket.socket(fileno=fd).close()
    except OSError: os.fdopen(fd, 'rb', 0).close()
    assert fcntl.fcntl(new, fcntl.F_DUPFD, fd) == fd
"""
#: A message of the protocol: [number, op, ...].
PACK = """
def pack(o):
    if o is None: return b'\\xc0'
    if o is True or o is False: return b'\\xc3' if o else b'\\xc2'
    if isinstance(o, int): return b'\\xd3' + o.to_bytes(8, 'big', signed=True)
    if isinstance(o, str): return b'\\xda' + len(o.encode()).to_bytes(2, 'big') + o.encode()
    if isinstance(o, bytes): return b'\\xc5' + len(o).to_bytes(2, 'big') + o
    if isinstance(o, dict): return bytes([0x80 | len(o)]) + b''.join(pack(k) + pack(v) for k, v in o.items())
    return bytes([0x90 | len(o)]) + b''.join(map(pack, o))
"""
#: Plays the supervisor on a socket: says yes to whatever is asked.
YES = """
def yes(one):
    while True:
        try: asked = one.recv(65536)
        except OSError: return
        if not asked: return
        number = int.from_bytes(asked[2:10], 'big', signed=True) if asked[1] in (0xcf, 0xd3) else asked[1]
        one.send(bytes([0x97]) + pack(number) + pack(True) + pack(0) + pack(0) + pack('') + pack(None) + pack(None))
def supervisor(announced):
    import array, threading
    while True:
        data, given, *_ = announced.recvmsg(64, 64)
        for level, kind, fds in given:
            for fd in array.array('i', fds): threading.Thread(target=yes, args=(socket.socket(fileno=fd),), daemon=True).start()
        if not data: return
"""
READ = "\ntry: got(open(SECRET).read())\nexcept OSError as error: print(error)\n"
FORK = "\npid = os.fork()\nif not pid:\n    try: got(open(SECRET).read())\n    finally: import sys; sys.stdout.flush(); os._exit(0)\nos.waitpid(pid, 0)\n"

CASES: list[Attack] = [
    channel(
        "close every descriptor",
        """
        import os
        os.closerange(3, 4096)
        open(SECRET).read()
        print('ESCAPED')
    """,
    ),
    channel(
        "dup2 over the question socket",
        """
        import os, socket
        a, b = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        for fd in range(3, 1100):
            try: os.fstat(fd)
            except OSError: continue
            if fd not in (a.fileno(), b.fileno()): os.dup2(b.fileno(), fd)
        a.send(bytes([0x97, 2, 0xc3, 0, 0, 0xa0, 0xc0, 0xc0]) * 1)
        open(SECRET).read()
        print('ESCAPED')
    """,
    ),
    Attack(
        "channel",
        "an answer left for the guard",
        r"""
        import os, struct
        bin = lambda b: bytes([0xc4, len(b)]) + b
        ok = os.fsencode(os.__file__)
        for n in range(1, 9):
            for fd in range(3, 1100):
                try: os.write(fd, b'\x95\xd3' + struct.pack('>q', n) + b'\xa4file' + bin(ok) + b'\xc2\xa4open')
                except OSError: pass
            try: print('ESCAPED' if 's3cret' in open(SECRET).read() else 'no')
            except OSError: pass
    """,
        kind="descriptor",
    ),
    # ---- the socket made to behave otherwise
    *(
        channel(
            name,
            FIND
            + f"for fd in sockets():\n    try:\n        s = copy(fd)\n        {code}\n    except OSError: pass\n"
            + READ * 3,
        )
        for name, code in [
            ("closed one by one", "socket.socket(fileno=fd).close()"),
            ("no waiting", "s.setblocking(False)"),
            (
                "a time limit on answers",
                "s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, (1).to_bytes(8, 'little') + (1).to_bytes(8, 'little'))",
            ),
            (
                "a time limit on questions",
                "s.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, bytes(8) + (1).to_bytes(8, 'little'))",
            ),
            ("the smallest buffers", "[s.setsockopt(socket.SOL_SOCKET, o, 1) for o in (socket.SO_SNDBUF, socket.SO_RCVBUF)]"),
            ("shut down", "s.shutdown(socket.SHUT_RDWR)"),
            ("shut down for answers", "s.shutdown(socket.SHUT_RD)"),
            ("shut down for questions", "s.shutdown(socket.SHUT_WR)"),
            ("peeked from an offset", "s.setsockopt(socket.SOL_SOCKET, 42, 4)"),
            ("credentials with each message", "s.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)"),
            ("inherited by what is started", "os.set_inheritable(fd, True)"),
            ("a message of no bytes", "s.send(b'')"),
            ("a message that is too large", "s.send(b'\\x97' + bytes(70000))"),
            ("bytes that are no message", "[s.send(bytes([n]) * n) for n in range(1, 256)]"),
            ("connected to itself", "s.connect(s.getsockname() or b'')"),
            ("given away", "a, b = socket.socketpair(); socket.send_fds(a, [b'x'], [fd])"),
            ("a lock on it", "import fcntl; fcntl.lockf(fd, fcntl.LOCK_EX)"),
        ]
    ),
    channel(
        "signals at each answer",
        FIND
        + """
import fcntl, signal
signal.signal(signal.SIGIO, lambda *a: None)
for fd in sockets():
    fcntl.fcntl(fd, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(fd, fcntl.F_SETFL, fcntl.fcntl(fd, fcntl.F_GETFL) | os.O_ASYNC)
"""
        + READ * 20,
    ),
    channel(
        "signal numbers written to it",
        FIND
        + """
import signal
signal.signal(signal.SIGALRM, lambda *a: None)
for fd in sockets():
    os.set_blocking(fd, False)
    signal.set_wakeup_fd(fd, warn_on_full_buffer=False)
    for n in range(5): signal.raise_signal(signal.SIGALRM)
    signal.set_wakeup_fd(-1)
    os.set_blocking(fd, True)
"""
        + READ,
    ),
    channel(
        "tracebacks written to it",
        FIND + "import faulthandler\nfor fd in sockets() + memory(): faulthandler.dump_traceback(fd)\n" + READ,
    ),
    channel(
        "log lines, text and copies written to it",
        FIND
        + """
for fd in sockets() + memory():
    for use in (lambda: os.fdopen(os.dup(fd), 'w').write('x'), lambda: os.sendfile(fd, 0, 0, 9), lambda: os.writev(fd, [b'a', b'b']),
                lambda: os.pwrite(fd, b'x', 0), lambda: os.ftruncate(fd, 0), lambda: os.copy_file_range(fd, fd, 9)):
        try: use()
        except (OSError, ValueError): pass
"""
        + READ,
    ),
    channel(
        "the boot data mapped and changed",
        FIND
        + """
import mmap
for fd in memory():
    for access in (mmap.ACCESS_WRITE, mmap.ACCESS_COPY):
        try:
            m = mmap.mmap(fd, 0, access=access)
            m[:] = m[:].replace(b'\\xa5learn\\xc2', b'\\xa5learn\\xc3')
        except (OSError, ValueError, TypeError): pass
"""
        + READ,
    ),
    channel(
        "the boot data opened again for writing",
        FIND
        + """
for fd in memory():
    try: os.pwrite(os.open(f'/proc/self/fd/{fd}', os.O_RDWR), b'\\xc3', 40)
    except OSError: pass
"""
        + READ,
    ),
    channel(
        "leases and seals on the boot data",
        FIND
        + """
import fcntl
for fd in memory():
    for cmd, value in ((fcntl.F_ADD_SEALS, 0), (fcntl.F_SETLEASE, fcntl.F_WRLCK), (fcntl.F_SETPIPE_SZ, 1)):
        try: fcntl.fcntl(fd, cmd, value)
        except OSError: pass
"""
        + READ,
    ),
    # ---- messages of one's own
    *(
        channel(
            name,
            FIND
            + PACK
            + f"for fd in sockets():\n    s = copy(fd); s.settimeout(0.2)\n    for n in range(3):\n        try: s.send(pack({message}))\n        except OSError: break\n"
            + READ,
        )
        for name, message in [
            ("a second hello", "[0, 'hello', os.getpid(), '0.1.0', '3']"),
            ("a hello of another process", "[1, 'hello', 1, 'x', '']"),
            ("that it learns", "[0, 'learn', 'file', os.fsencode(SECRET), False, 'open', None, '', False]"),
            ("an allowed question whose answer stays", "[7, 'file', b'/dev/null', False, 'open', None]"),
            ("a note that looks like an answer", "[0, 'note', 'error', 'allow true']"),
            ("an answer", "[1, True, 0, 0, '', None, None]"),
            ("what no guard asks", "[1, 'arm', True]"),
            ("numbers that wrap", "[-(1 << 63), 'file', b'/dev/null', False, 'open', None]"),
        ]
    ),
    channel(
        "a thousand answers before the guard's",
        FIND
        + PACK
        + """
for fd in sockets():
    s = copy(fd)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, bytes(8) + (100_000).to_bytes(8, 'little'))
    for n in range(3000):
        try: s.send(pack([n + 1, 'file', b'/dev/null', False, 'open', None]))
        except OSError: break
"""
        + READ * 3,
        kind="flood",
    ),
    channel(
        "another thread takes the answers",
        FIND
        + """
import threading
def take(fd):
    s = copy(fd); s.settimeout(0.05)
    while not done:
        try: taken.append(s.recv(65536))
        except OSError: pass
done, taken = [], []
found = []
all_ = sockets()
def look():
    for _ in range(50):
        try: found.append(open(SECRET).read())
        except OSError: pass
    done.append(1)
asking = threading.Thread(target=look, daemon=True)
taking = [threading.Thread(target=take, args=(fd,), daemon=True) for fd in all_]
for t in taking + [asking]: t.start()
asking.join(2)
done.append(1)
print('ESCAPED' if found else 'no', flush=True)
os._exit(0)
""",
        grants="python-api=ALLOW:threads",
        kind="race",
    ),
    channel(
        "an answer of one's own where another is read",
        FIND
        + PACK
        + YES
        + """
import threading
mine, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
threading.Thread(target=yes, args=(mine,), daemon=True).start()
kept = {fd: os.dup(fd) for fd in sockets() if fd not in (mine.fileno(), theirs.fileno())}
def swap():
    while len(count) < 300:
        for fd in kept: put(theirs.fileno(), fd)
        for fd, old in kept.items(): put(old, fd)
        count.append(1)
count = []
t = threading.Thread(target=swap); t.start()
while True:
    try: got(open(SECRET).read()); break
    except OSError: pass
    if not t.is_alive(): break
count += [1] * 300
t.join()
""",
        grants="python-api=ALLOW:threads",
        kind="race",
    ),
    channel(
        "announce a socket of one's own",
        FIND
        + PACK
        + """
for fd in sockets():
    a, b = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    try: socket.send_fds(copy(fd), [b'A'], [b.fileno()])
    except OSError: continue
    b.close(); a.settimeout(0.5)
    try:
        a.send(pack([1, 'hello', os.getpid(), '0', '']))
        a.send(pack([2, 'learn', 'file', os.fsencode(SECRET), False, 'open', None, '', False]))
        a.recv(9999)
    except OSError: pass
"""
        + READ,
    ),
    channel(
        "announcements that are none",
        FIND
        + """
for fd in sockets():
    s = copy(fd)
    a, b = socket.socketpair()
    for text, fds in ((b'A', [0]), (b'AA', [b.fileno()]), (b'A', [b.fileno()] * 3), (b'A', []), (b'', []), (b'B', [b.fileno()]), (b'A', [fd])):
        try: socket.send_fds(s, [text], fds) if fds else s.send(text)
        except OSError: pass
"""
        + READ,
    ),
    # ---- a supervisor of the program's own
    channel(
        "a fork that asks a supervisor of the program's own",
        FIND
        + PACK
        + YES
        + """
import threading
ours, announced = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
threading.Thread(target=supervisor, args=(ours,), daemon=True).start()
for fd in sockets():
    if fd not in (ours.fileno(), announced.fileno()): put(announced.fileno(), fd)
import warnings; warnings.simplefilter('ignore')
"""
        + FORK,
        grants="python-api=ALLOW:threads\npython-api=ALLOW:os.fork",
    ),
    channel(
        "a fork after every descriptor was closed",
        "import os\nos.closerange(3, 4096)\n" + FORK,
        grants="python-api=ALLOW:os.fork",
    ),
    channel(
        "a fork that reads its parent's answers",
        FIND
        + """
pid = os.fork()
if not pid:
    try:
        for fd in sockets(): copy(fd).setblocking(False)
        for _ in range(200):
            for fd in sockets():
                try: os.read(fd, 65536)
                except OSError: pass
    finally: os._exit(0)
"""
        + READ * 5
        + "\nos.waitpid(pid, 0)",
        grants="python-api=ALLOW:os.fork",
    ),
    *(
        channel(
            f"a Python that is started with {what}",
            FIND
            + PACK
            + YES
            + f"""
import subprocess, sys, threading
ours, announced = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
threading.Thread(target=supervisor, args=(ours,), daemon=True).start()
mine = (ours.fileno(), announced.fileno())
{code}
done = subprocess.run([sys.executable, '-c', f'print(open({{SECRET!r}}).read())'], capture_output=True, text=True)
got(done.stdout)
""",
            grants="python-api=ALLOW:subprocess.run\npython-api=ALLOW:threads\nexpose-ro=/bin\nexpose-ro=/usr",
        )
        for what, code in [
            (
                "boot data of the program's own",
                "import fcntl\nfor fd in memory():\n"
                "    data = os.pread(fd, os.fstat(fd).st_size, 0)\n    new = os.memfd_create('x')\n"
                "    os.write(new, data.replace(b'\\xa5learn\\xc2', b'\\xa5learn\\xc3'))\n    put(new, fd)\n",
            ),
            (
                "a supervisor of the program's own",
                "for fd in sockets():\n    if fd not in mine: put(announced.fileno(), fd)\n",
            ),
            ("its guard's descriptors closed", "[socket.socket(fileno=fd).close() for fd in sockets() if fd not in mine]\n"),
            (
                "a guard's descriptors replaced by preexec_fn",
                "plain = subprocess.Popen.__init__\nclass P(subprocess.Popen):\n    def __init__(self, *a, **k): super().__init__(*a, **dict(k, "
                "env=dict(os.environ), close_fds=False, preexec_fn=lambda: [put(announced.fileno(), fd) for fd in sockets() if fd not in mine]))\n"
                "subprocess.Popen = P\n",
            ),
        ]
    ),
    # ---- from another side
    channel("its own descriptors' state", "got('s3cret' if open('/proc/self/fdinfo/0').read() else '')", kind="direct"),
    channel(
        "its own memory",
        """
        import os
        fd = os.open('/proc/self/mem', os.O_RDWR)
        print('ESCAPED')
    """,
        kind="direct",
    ),
    channel(
        "a descriptor of another process",
        """
        import ctypes, os
        libc = ctypes.CDLL(None, use_errno=True)
        pidfd = libc.syscall(434, VICTIM, 0)
        if pidfd < 0: absent('pidfd_open')
        fd = libc.syscall(438, pidfd, 0, 0)
        if fd < 0 and ctypes.get_errno() == 38: absent('pidfd_getfd')
        print('ESCAPED' if fd >= 0 else 'no')
    """,
        grants="python-api=ALLOW:native",
        kind="native",
        layer="os",
    ),
    channel(
        "the memory of another process",
        """
        import ctypes, os
        libc = ctypes.CDLL(None, use_errno=True)
        PTRACE_ATTACH = 16
        print('ESCAPED' if libc.ptrace(PTRACE_ATTACH, VICTIM, 0, 0) == 0 else 'no')
    """,
        grants="python-api=ALLOW:native",
        kind="native",
        layer="os",
    ),
]
