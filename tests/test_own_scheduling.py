"""Native code that names its own thread or process by number, as libraries do for their threads: it may, and nobody else's."""

from __future__ import annotations

import pytest
from complete_mode import Place

pytestmark = pytest.mark.smoke

# Each call with its own present values, and who it is for as its last word.
CODE = """
import ctypes, errno, os, struct, sys, threading
libc = ctypes.CDLL(None, use_errno=True)
NUMBERS = {'x86_64': (302, 203, 144, 142, 314, 141, 251), 'aarch64': (261, 122, 119, 118, 274, 140, 30)}[os.uname().machine]
PRLIMIT, AFFINITY, SCHEDULER, PARAM, ATTR, PRIORITY, IOPRIO = NUMBERS
nice = os.getpriority(os.PRIO_PROCESS, 0)
mask = ctypes.create_string_buffer(128)
zero = ctypes.create_string_buffer(48)
attr = ctypes.create_string_buffer(struct.pack('IIQiIQQQ', 48, 0, 0, nice, 0, 0, 0, 0))
limit = ctypes.create_string_buffer(16)
libc.syscall(PRLIMIT, 0, 7, None, limit)
libc.sched_getaffinity(0, 128, mask)
CALLS = {
    'limits': (PRLIMIT, 'who', 7, limit, None), 'core files': (PRLIMIT, 'who', 4, zero, None),
    'processors': (AFFINITY, 'who', 128, mask), 'policy': (SCHEDULER, 'who', 0, zero), 'parameters': (PARAM, 'who', zero),
    'attributes': (ATTR, 'who', attr, 0), 'priority': (PRIORITY, 0, 'who', nice), 'input': (IOPRIO, 1, 'who', 0),
}
def says(who):
    out = []
    for name, (number, *args) in CALLS.items():
        ctypes.set_errno(0)
        failed = libc.syscall(number, *[ctypes.c_long(who) if a == 'who' else a for a in args]) == -1
        out.append(errno.errorcode[ctypes.get_errno()] if failed else 'ok')
    return ' '.join(sorted(set(out))) + ' ' + str(len(out))
def in_thread(f):
    t = threading.Thread(target=f)
    t.start()
    t.join()
def in_child(f):
    sys.stdout.flush()
    if os.fork() == 0:
        f()
        sys.stdout.flush()
        os._exit(0)
    os.wait()
main = threading.get_native_id()
"""
OWN = """
in_thread(lambda: print('thread', says(threading.get_native_id())))
in_thread(lambda: print('its process', says(os.getpid())))
in_child(lambda: print('child', says(os.getpid())))
in_child(lambda: in_thread(lambda: print("child's thread", says(threading.get_native_id()), says(os.getpid()))))
"""
ANOTHERS = """
stay = threading.Event()
other = threading.Thread(target=stay.wait, daemon=True)
other.start()
print('sibling', says(other.native_id))
print('parent', says(os.getppid()))
in_child(lambda: print('parent of a child', says(os.getppid())))
print('nobody', says(-1))
stay.set()
"""
RULES = "python-import=*\npython-api=ALLOW:native\npython-api=ALLOW:threads\npython-api=ALLOW:os.fork"


def test_its_own_by_number(place: Place) -> None:
    place.provider = "landlock"
    place.profile(RULES)
    bare = place.bare("-c", CODE + OWN)
    assert bare.stdout == "thread ok 8\nits process ok 8\nchild ok 8\nchild's thread ok 8 ok 8\n", bare.stderr
    assert place.run("-c", CODE + OWN).stdout == bare.stdout


def test_no_other(place: Place) -> None:
    place.provider = "landlock"
    place.profile(RULES)
    bare = place.bare("-c", CODE + ANOTHERS)
    assert bare.stdout.startswith("sibling ok 8\nparent ok 8\nparent of a child ok 8\n"), bare.stdout + bare.stderr
    done = place.run("-c", CODE + ANOTHERS)
    assert done.stdout == "sibling EPERM 8\nparent EPERM 8\nparent of a child ok 8\nnobody EPERM 8\n", done.stdout + done.stderr
