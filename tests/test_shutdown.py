"""The end of an interpreter: whatever still runs then is held as before, and what is allowed still works.

Each moment runs ``deed`` when the program has ended its last line, or in a process or thread that is ending. It reads what is
exposed and what is not, and calls what no rule grants; it holds what it needs itself, since modules are being emptied.
Without a sandbox all three succeed: what a moment prints there, with the two refusals put in, is what it must print in one.
"""

from __future__ import annotations

import re
import sys
import textwrap

import pytest
from complete_mode import Place

pytestmark = pytest.mark.smoke

DEED = """\
import os, sys
SECRET = {secret!r}
def deed(what="deed", secret=SECRET, os=os, OSError=OSError, str=str):
    def read(path):
        fd = os.open(path, os.O_RDONLY)
        text = os.read(fd, 9)
        os.close(fd)
        return text.decode()
    said = [what]
    for act in (lambda: read("shown"), lambda: read(secret), lambda: os.stat(secret).st_size, lambda: os.system("exit 7")):
        try:
            said.append(str(act()))
        except OSError as error:
            said.append("errno " + str(error.errno))
    os.write(1, (" | ".join(said) + "\\n").encode())
class Dying:
    def __init__(self, what="deed"): self.what = what
    def __del__(self, deed=deed): deed(self.what)
"""
#: What deed says without a sandbox, and in one.
BARE, HELD = " | shown | s3cret | 6 | 1792", " | shown | errno 2 | errno 2 | errno 1"

INTERPRETERS = """
if sys.version_info < (3, 13):
    import _xxsubinterpreters as low
else:
    import _interpreters as low
one = low.create()
failed = low.run_string(one, {inner!r})
if failed: print(failed)
low.destroy(one)
"""

MOMENTS = {
    "a module's global": "kept = Dying()",
    "a global of another module": "import types\nsys.modules['m'] = types.ModuleType('m')\nsys.modules['m'].kept = Dying()",
    "a ring": "import gc\ngc.disable()\nkept = Dying()\nkept.me = kept",
    "an attribute of builtins": "import builtins\nbuiltins.kept = Dying()",
    "weakref.finalize": "import weakref\nkept = type('C', (), {})()\nweakref.finalize(kept, deed)",
    "atexit": "import atexit\natexit.register(deed)",
    "atexit after sys.exit": "import atexit\natexit.register(deed)\nsys.exit(3)",
    "atexit after an error": "import atexit\natexit.register(deed)\n1 / 0",
    "threading's own exit": "import threading\nthreading._register_atexit(deed)",
    "a thread that outlives the main one": """
        import threading
        def late():
            threading.main_thread().join()
            deed()
        threading.Thread(target=late).start()
    """,
    "an error in such a thread": """
        import threading
        threading.excepthook = lambda args: deed()
        def late():
            threading.main_thread().join()
            raise ValueError
        threading.Thread(target=late).start()
    """,
    "a thread's own state": """
        import threading
        local = threading.local()
        def work(): local.kept = Dying()
        one = threading.Thread(target=work); one.start(); one.join()
    """,
    "a daemon thread": """
        import threading
        begun = threading.Event()
        def work():
            while True:
                deed()
                begun.set()
        threading.Thread(target=work, daemon=True).start()
        begun.wait()
    """,
    "a hundred daemon threads": """
        import threading
        begun = threading.Semaphore(0)
        def work():
            while True:
                deed()
                begun.release()
        for _ in range(100): threading.Thread(target=work, daemon=True).start()
        for _ in range(100): begun.acquire()
    """,
    "a fork in a thread": """
        import threading
        def work():
            child = os.fork()
            deed("child" if not child else "parent")
            if not child: os._exit(0)
            os.waitpid(child, 0)
        one = threading.Thread(target=work); one.start(); one.join()
    """,
    "a fork in atexit": """
        import atexit
        def last():
            child = os.fork()
            deed("child" if not child else "parent")
            if child: os.waitpid(child, 0)
            else: os._exit(0)
        atexit.register(last)
    """,
    "os._exit": "import atexit\natexit.register(print, 'never')\nkept = Dying('never')\ndeed()\nos._exit(5)",
    "a generator": "def steps():\n    try: yield\n    finally: deed()\nkept = steps(); next(kept)",
    "a coroutine": """
        import types
        @types.coroutine
        def waits(): yield
        async def steps():
            try: await waits()
            finally: deed()
        kept = steps(); kept.send(None)
    """,
    "an asynchronous generator": """
        import asyncio
        async def steps():
            try: yield
            finally: deed()
        async def main():
            global kept
            kept = steps()
            await anext(kept)
        asyncio.run(main())
    """,
    "the flush of stdout": """
        class Out:
            def write(self, text): return len(text)
            def flush(self, deed=deed): deed()
        sys.stdout = Out()
    """,
    "sys.excepthook": "sys.excepthook = lambda *error: deed()\n1 / 0",
    "sys.unraisablehook": "import atexit\nsys.unraisablehook = lambda error: deed()\natexit.register(lambda: 1 / 0)",
    "a sub-interpreter's atexit": INTERPRETERS.replace("{inner!r}", "DEED + 'import atexit\\natexit.register(deed)'"),
    "a sub-interpreter's global": INTERPRETERS.replace("{inner!r}", "DEED + 'kept = Dying()'"),
}
#: fork of a process with threads: 3.12 and newer warn.
QUIET = ["-Wignore"]


def lines(text: str) -> list[str]:
    return sorted(set(text.splitlines()))


def run(place: Place, program: str, *options: str) -> None:
    secret = place.file("secret/key", "s3cret")
    place.file("shown", "shown")
    place.profile("""\
        python-import=*
        python-api=ALLOW:threads, ALLOW:native, ALLOW:dynamic-code, ALLOW:os.fork
        expose-ro=./shown
        expose-ro=./program.py
    """)
    head = DEED.format(secret=str(secret))
    place.file("program.py", f"{head}DEED = {head!r}\n{textwrap.dedent(program)}\n")
    bare = place.bare(*QUIET, *options, "program.py")
    done = place.run(*QUIET, *options, "program.py")
    assert BARE in bare.stdout, bare
    assert (done.returncode, lines(done.stdout)) == (bare.returncode, lines(bare.stdout.replace(BARE, HELD))), done.stderr
    for text in (done.stderr, bare.stderr):
        assert not re.search("Fatal Python error|SystemError|Segmentation", text), text


@pytest.mark.parametrize("provider", ["landlock", "subprocess"])
@pytest.mark.parametrize("moment", MOMENTS)
def test_held_to_the_end(moment: str, provider: str, place: Place) -> None:
    if moment == "a fork in atexit" and sys.version_info >= (3, 12):
        pytest.skip("CPython forks no more at its end")
    place.provider = provider
    run(place, MOMENTS[moment])


@pytest.mark.parametrize("option", ["-Xtracemalloc=9", "-Xfaulthandler", "-Xdev", "-Ximporttime"])
@pytest.mark.parametrize("moment", ["a module's global", "atexit", "a daemon thread", "a fork in a thread", "a generator"])
def test_with_what_watches_the_interpreter(moment: str, option: str, place: Place) -> None:
    run(place, MOMENTS[moment], option)


#: Each name is asked about, since an ignore rule exists. The handler ends what is under way, after as long as a question takes.
INTERRUPTED = """\
import random, signal, time
signal.signal(signal.SIGALRM, signal.default_int_handler)
interrupted, wrong = 0, set()
names = [(f"open/{n}{'.hid' * (n % 2)}", n % 2 == 0) for n in range(1500)]
def ask(name, allowed):
    try:
        with open(name) as file: right = allowed and file.read() == "seen"
    except FileNotFoundError: right = not allowed
    if not right: wrong.add(name)
def burst():  # a loop of its own: 3.13 lets a signal between two rounds by the handlers around them
    while names:
        signal.setitimer(signal.ITIMER_REAL, random.uniform(0.00002, 0.0004))
        ask(*names[-1])
        names.pop()
until = time.monotonic() + 30
while names and time.monotonic() < until:
    try:
        try:
            burst()
        except KeyboardInterrupt:
            interrupted += 1
        signal.setitimer(signal.ITIMER_REAL, 0)
    except KeyboardInterrupt:  # of a timer that was set just before the last one's came
        pass
print("wrong", len(wrong), "left", len(names), "interrupted", interrupted > 20)
"""


@pytest.mark.parametrize("provider", ["landlock", "subprocess"])
def test_an_interrupted_question_is_neither_lost_nor_mistaken(provider: str, place: Place) -> None:
    place.provider = provider
    for n in range(1500):
        place.file(f"open/{n}{'.hid' * (n % 2)}", "seen")
    place.profile("python-import=*\nexpose-ro=./open\nexpose-ro=./program.py\nignore=*.hid\nignore-best-effort=true\n")
    place.file("program.py", INTERRUPTED)
    done = place.run("program.py")
    assert done.stdout == "wrong 0 left 0 interrupted True\n", (done.stdout, done.stderr)
    assert "wrong 750 left 0" in place.bare("program.py").stdout, "without a sandbox the hidden ones are read"
