"""Use up what the guard needs at the moment of a question: what cannot be judged must be refused."""

from __future__ import annotations

from functools import partial

from attack import Attack

exhaust = partial(Attack, kind="flood", alone=True)

#: No descriptor is left in the block, and some are again after it.
NO_DESCRIPTORS = """
import contextlib, os
@contextlib.contextmanager
def no_descriptors(left=0):
    held = []
    try:
        while True: held.append(os.open(SHOWN + '/page', os.O_RDONLY))
    except OSError: pass
    for _ in range(left): os.close(held.pop())
    try: yield
    finally:
        for fd in held: os.close(fd)
"""
#: A link that is there already: making one is refused.
LINK = "import os\nos.symlink(HIDDEN, WORK + '/out')\nos.symlink(SECRET, WORK + '/name')"
#: So that there are few to use up.
FEW = "import resource\nresource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))\n"
LIMIT = "expose-rw=./work\nexpose-ro=./shown\npython-api=ALLOW:resource.setrlimit"

#: Functions that need no descriptor of their own, so that they work without any.
WITHOUT = {
    "stat": ("look", "print('ESCAPED' if os.stat(WORK + '/name').st_size == 6 else 'no')"),
    "access": ("look", "print('ESCAPED' if os.access(WORK + '/out/key', os.R_OK) else 'no')"),
    "rename": ("read", "os.rename(WORK + '/out/key', WORK + '/mine')"),
    "remove": ("write", "os.remove(WORK + '/out/key')"),
    "truncate": ("write", "os.truncate(WORK + '/name', 0)"),
    "chmod": ("write", "os.chmod(WORK + '/name', 0o777)"),
    "utime": ("write", "os.utime(WORK + '/name', (1, 1))"),
    "mkdir": ("write", "os.mkdir(WORK + '/out/new')"),
    "mkfifo": ("write", "os.mkfifo(WORK + '/out/new')"),
    "link": ("read", "os.link(WORK + '/out/key', WORK + '/mine')"),
}

CASES: list[Attack] = [
    *(
        exhaust(
            objective,
            f"{name} over a link, without a descriptor left",
            f"{NO_DESCRIPTORS}{FEW}with no_descriptors():\n    {code}\n"
            + ("got(open(WORK + '/mine').read())" if objective == "read" else ""),
            grants=LIMIT,
            plant=LINK,
        )
        for name, (objective, code) in WITHOUT.items()
    ),
    *(
        exhaust(
            "read",
            f"open with {left} descriptors left",
            f"{NO_DESCRIPTORS}{FEW}with no_descriptors({left}):\n    text = os.read(os.open(SECRET, os.O_RDONLY), 9)\ngot(text)",
            grants=LIMIT,
        )
        for left in (1, 2, 3)
    ),
    exhaust(
        "read",
        "a fork whose child has no descriptor for a socket of its own",
        f"""{NO_DESCRIPTORS}{FEW}
with no_descriptors(1):
    child = os.fork()
    if not child:
        try: text = os.read(os.open(SECRET, os.O_RDONLY), 9)
        except OSError: os._exit(1)
        os._exit(7 if text == b's3cret' else 1)
    status = os.waitpid(child, 0)[1]
print('ESCAPED' if os.waitstatus_to_exitcode(status) == 7 else 'no')
""",
        grants=LIMIT + ", ALLOW:os.fork",
    ),
    *(
        exhaust(
            objective,
            f"{name} over a link, in a folder deeper than a path can be",
            f"""
            import os
            out = os.path.abspath(WORK + '/out')
            os.chdir(WORK)
            for _ in range(25):
                os.mkdir('d' * 200); os.chdir('d' * 200)
            os.rename(out, 'out')
            {code}
        """,
            grants="expose-rw=./work",
            plant=LINK,
        )
        for name, objective, code in [
            ("open", "read", "got(open('out/key').read())"),
            ("chmod", "write", "os.chmod('out/key', 0o777)"),
            ("stat", "look", "print('ESCAPED' if os.stat('out/key').st_size == 6 else 'no')"),
        ]
    ),
    exhaust(
        "execute",
        "without a descriptor left",
        f"{NO_DESCRIPTORS}{FEW}with no_descriptors():\n    status = os.system('exit 7')\nprint('ESCAPED' if status == 7 << 8 else 'no')",
        grants=LIMIT,
    ),
    exhaust(
        "text",
        "without a descriptor left",
        f"{NO_DESCRIPTORS}{FEW}with no_descriptors():\n    exec(\"print('ESC' + 'APED')\")",
        grants=LIMIT,
    ),
    exhaust(
        "read",
        "without memory for a question",
        """
        import os, resource
        path, pages = WORK + '/name', int(open('/proc/self/statm').read().split()[0])
        def tries():
            for _ in range(50):
                try:
                    fd = os.open(path, os.O_RDONLY)
                    text = os.read(fd, 9); os.close(fd)
                    return text
                except (OSError, MemoryError): pass
        for more in (0, 1, 2, 8, 32, 64, 256, 1024):  # at some of these an allocation of the guard's fails first
            resource.setrlimit(resource.RLIMIT_AS, ((pages + more) * 4096, resource.RLIM_INFINITY))
            held = []
            try:
                while True: held.append(bytearray(4000))
            except MemoryError: pass
            text = tries()
            del held
            if text: break
        resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY,) * 2)
        got(text or b'')
    """,
        grants=LIMIT + "\nexpose-ro=/proc",
        plant=LINK,
    ),
    exhaust(
        "read",
        "with as many threads as there may be, each at a question",
        """
        import os, threading
        found, go = [], threading.Event()
        def tries():
            go.wait()
            for _ in range(20):
                try: fd = os.open(SECRET, os.O_RDONLY)
                except OSError: continue
                found.append(os.read(fd, 9)); os.close(fd)
        threads = []
        threading.stack_size(65536)
        for _ in range(300):
            try: threads.append(threading.Thread(target=tries)); threads[-1].start()
            except RuntimeError: threads.pop(); break
        go.set()
        for one in threads: one.join()
        got(found)
    """,
        grants="python-api=ALLOW:threads",
    ),
]
