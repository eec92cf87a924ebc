"""Processes of the sandbox's own making: they work where they are granted, and the policy holds in them."""

from __future__ import annotations

import re

import pytest
from complete_mode import Place

pytestmark = pytest.mark.smoke
LOOPS = 200
GRANTED = (
    "python-import=*\npython-api=ALLOW:process-exec\npython-api=ALLOW:process-control\npython-api=ALLOW:threads\nexpose-rw=/dev/shm\n"
    + ("expose-rw=./tmp\nenv=TMPDIR=./tmp\nexpose-ro=./program.py\nexpose-ro=./inner.py\nexpose-ro=/bin/sh\n")
)
# What a child must be refused: the read that the parent was never granted.
PROBE = """
def probe():
    try:
        open('/etc/shadow')
    except FileNotFoundError as e:
        return type(e).__name__
    return 'READ'
"""


def check(place: Place, code: str) -> None:
    """Runs code, which prints what probe() said in its processes: each must be refused, and no warning be new."""
    (place.folder / "tmp").mkdir()
    place.profile(GRANTED)
    script = place.file("program.py", PROBE + code)
    done = place.run("-W", "default", script, timeout=110)
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.split() == ["RuleFileNotFoundError"], done.stdout
    assert "Warning" not in done.stderr, done.stderr[-3000:]


def test_fork(place: Place) -> None:
    code = f"""
import os
seen = set()
for _ in range({LOOPS}):
    r, w = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.write(w, probe().encode())
        os._exit(0)
    os.close(w)
    seen.add(os.read(r, 100).decode())
    os.close(r)
    assert os.waitpid(pid, 0)[1] == 0
print(*seen)
"""
    check(place, code)


def test_fork_of_a_fork(place: Place) -> None:
    code = """
import os
r, w = os.pipe()
if os.fork() == 0:
    if os.fork() == 0:
        os.write(w, probe().encode())
    os._exit(0)
print(os.read(r, 100).decode())
"""
    check(place, code)


def test_subprocess_run(place: Place) -> None:
    place.file("inner.py", PROBE + "print(probe())")
    code = f"""
import subprocess, sys
seen = set()
for _ in range({LOOPS}):
    seen.add(subprocess.run([sys.executable, 'inner.py'], capture_output=True, text=True, check=True).stdout.strip())
print(*seen)
"""
    check(place, code)


STARTS = {
    "execv": "os.execv(sys.executable, argv)",
    "execve": "os.execve(path=sys.executable, argv=argv, env=env)",
    "execlp": "os.execlp(sys.executable, *argv)",
    "execvpe": "os.execvpe(sys.executable, argv, env)",
    "spawnv": "sys.exit(os.spawnv(os.P_WAIT, sys.executable, argv))",
    "spawnvpe": "sys.exit(os.spawnvpe(os.P_WAIT, sys.executable, argv, env))",
    "posix_spawn": "sys.exit(os.waitpid(os.posix_spawn(sys.executable, argv, env), 0)[1])",
    "posix_spawnp": "sys.exit(os.waitpid(os.posix_spawnp(sys.executable, argv, env, file_actions=[(2, 1, 1)]), 0)[1])",
}


@pytest.mark.parametrize("start", STARTS)
def test_the_guard_is_handed_on(place: Place, start: str) -> None:
    """...and the program sees the environment that it was given; an attempt that fails leaves nothing behind."""
    place.file(
        "inner.py",
        PROBE + "import os\nassert os.environ['GIVEN'] == 'x' and 'PYSANDBOXES_BOOT' not in os.environ\nprint(probe())",
    )
    code = f"""
import os, sys
argv, env = [sys.executable, 'inner.py'], {{'GIVEN': 'x', b'PATH': b'/bin'}}
os.environ['GIVEN'] = 'x'
for f in (os.execv, os.execve, os.posix_spawn):
    try: f('/none', ['x'], *[env][:f is not os.execv])
    except FileNotFoundError: pass
assert os.system('test -z "$LD_PRELOAD$PYSANDBOXES_BOOT"') == 0
for bad in ({{'A=B': 'c'}}, {{'a': 'b\\0'}}, 5):
    try: os.execve('/none', ['x'], bad)
    except (ValueError, TypeError) as e: pass
    else: sys.exit('ran')
{STARTS[start]}
"""
    check(place, code)


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_multiprocessing(place: Place, method: str) -> None:
    code = f"""
import multiprocessing, time
def work(queue):
    queue.put(probe())
if __name__ == '__main__':
    context = multiprocessing.get_context({method!r})
    seen = set()
    queue = context.SimpleQueue()
    for _ in range({LOOPS}):
        process = context.Process(target=work, args=(queue,))
        process.start()
        seen.add(queue.get())
        process.join()
        assert process.exitcode == 0
    lasting = context.Process(target=time.sleep, args=(60,))
    lasting.start()
    lasting.terminate()
    lasting.join()
    assert lasting.exitcode == -15
    print(*seen)
"""
    check(place, code)


def test_without_a_grant_nothing_starts(place: Place) -> None:
    place.profile("python-import=*\n")
    code = """
import os, subprocess, multiprocessing
refused = []
for attempt in (os.fork, lambda: subprocess.run(['true']), lambda: os.posix_spawn('/bin/true', ['true'], {}),
                lambda: os.execv('/bin/true', ['true']), lambda: os.popen('true'), lambda: multiprocessing.Process().start()):
    try:
        attempt()
    except PermissionError as e:
        refused.append(type(e).__name__)
    else:
        refused.append('RAN')
print(*refused)
"""
    done = place.run("-c", code)
    assert done.stdout.split() == ["RuleApiPermissionError"] * 6, done.stdout + done.stderr


CLOSES_ALL = """
import os, subprocess, sys
def tried(f, *args):
    try:
        return f(*args)
    except OSError as e:
        return type(e).__name__, e.errno
class Number:
    def __init__(self, n): self.n = n
    def __index__(self): return self.n
def close_each():
    for fd in range(3, 1500):
        tried(os.close, fd)
        tried(os.close, Number(fd))
def put_over():
    spare = os.open("/dev/null", os.O_RDONLY)
    for fd in range(3, 1020):
        if fd != spare:
            tried(os.dup2, spare, fd)
            tried(lambda: os.dup2(spare, fd2=Number(fd), inheritable=False))
def close_range(low, high):
    return lambda: os.closerange(low, high)
for tidy in (close_range(3, 65536), close_range(Number(3), 2**31 - 1), close_each, put_over, close_range(5000, 3)):
    print(tidy())
    print(tried(open, "/etc/passwd"), open("open/file").read())
print(tried(os.close, 99999), tried(os.close, -1), tried(os.dup2, 99999, 5), tried(os.dup2, 1, -1))
print(os.dup2(1, 77), os.close(77), tried(os.close, 77))
for wrong in (
    (os.close,), (os.close, "x"), (os.closerange, 1), (os.closerange, "x", 5),
    (os.dup2, 1), (os.close, 2**70), (os.closerange, 2**70, 5),
):
    try: print(wrong[0](*wrong[1:]))
    except Exception as e: print(type(e).__name__, e)
"""


@pytest.mark.parametrize("provider", ["landlock", "subprocess"])
def test_a_program_that_closes_all_descriptors_goes_on(provider: str, place: Place) -> None:
    place.provider = provider
    place.file("open/file", "seen")
    place.file("program.py", CLOSES_ALL)
    place.profile("python-import=*\nexpose-ro=./open\n")
    done, bare = place.run("program.py"), place.bare("program.py")
    refused = ["None", "('RuleFileNotFoundError', 2) seen"] * 5
    assert done.stdout.splitlines()[:10] == refused, done.stderr
    assert done.stdout.splitlines()[10:] == bare.stdout.splitlines()[10:]
    assert "TextIOWrapper" in bare.stdout


def test_a_program_that_no_rule_exposes_is_named(place: Place) -> None:
    place.provider = "landlock"
    place.profile("python-import=subprocess\npython-api=ALLOW:subprocess.run\nexpose-ro=/bin/sh\n")
    code = "import subprocess; print(subprocess.run('true; sort </dev/null; sort </dev/null', shell=True).returncode)"
    done = place.run("-c", code)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "126"
    # A shell tries every folder of its PATH that has one, and /bin may be /usr/bin.
    told = re.search(r"refused to native code, [24] times: .*\n.*\n +(expose-ro=/(?:usr/)?bin/sort)\n", done.stderr)
    assert told, done.stderr
    done = place.run(f"--{told[1]}", "-c", code)
    assert (done.stdout.strip(), done.stderr) == ("0", "")


def test_the_folder_of_the_process_under_its_number(place: Place) -> None:
    place.provider = "landlock"
    place.profile("python-import=os\nexpose-ro=/proc/self/statm\n")
    code = (
        "import os\n"
        "for number in (os.getpid(), 1):\n"
        "    try: print(open(f'/proc/{number}/statm').read().count(' '))\n"
        "    except OSError as e: print(type(e).__name__)"
    )
    done = place.run("-c", code)
    assert (done.returncode, done.stdout.split()) == (0, ["6", "RuleFileNotFoundError"]), done.stderr
