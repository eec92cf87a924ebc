"""Every way in which a pool may end, and the end of the program or a fork while there are tasks."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import threading
import time
import weakref
from collections.abc import Callable
from concurrent.futures import CancelledError, ThreadPoolExecutor, as_completed
from pathlib import Path

import api_targets
import pool_targets
import pytest
from complete_mode import Place

from pysandboxes import (
    SandBoxError,
    SandboxPoolExecutor,
    SandBoxProtocolError,
    sandboxes,
)

Pool = Callable[..., SandboxPoolExecutor]


def descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def test_shutdown(pool: Pool) -> None:
    executor = pool()
    futures = [executor.submit(pool_targets.add, number) for number in range(20)]
    executor.shutdown(wait=False)
    with pytest.raises(RuntimeError, match="cannot schedule new futures after shutdown"):
        executor.submit(pool_targets.add, 1)
    assert [future.result() for future in as_completed(futures)] and sum(future.result() for future in futures) == 210
    executor.shutdown()
    executor.shutdown()
    assert executor.stats() == []
    pool().shutdown()  # one that never had a task


def test_shutdown_that_cancels(pool: Pool, tmp_path: Path) -> None:
    executor = pool(1, expose_ro=tmp_path)
    first = executor.submit(pool_targets.wait_for, str(tmp_path / "go"))
    waiting = [executor.submit(pool_targets.add, number) for number in range(5)]
    while not first.running():
        pass
    assert first.cancel() is False
    assert waiting[0].cancel() is True
    executor.shutdown(wait=False, cancel_futures=True)
    for future in waiting:
        with pytest.raises(CancelledError):
            future.result()
    (tmp_path / "go").touch()
    assert first.result() == str(tmp_path / "go")


def test_a_forgotten_pool_ends(pool: Pool, profile: Path) -> None:
    executor = SandboxPoolExecutor(1, sandboxes_config=profile)
    future = executor.submit(pool_targets.pid)
    crew, gone = executor._crew, weakref.ref(executor)
    del executor
    gc.collect()
    assert gone() is None
    number = future.result()
    crew.join()
    with pytest.raises(ProcessLookupError):
        os.kill(number, 0)


def test_a_pool_without_tasks_starts_nothing(profile: Path) -> None:
    before = descriptors()
    with SandboxPoolExecutor(sandboxes_config=profile) as executor:
        assert executor.stats() == []
    assert descriptors() == before


def test_nothing_is_left_behind(profile: Path) -> None:
    """Warmed up first: what the engine opens once stays open."""
    with SandboxPoolExecutor(2, sandboxes_config=profile) as executor:
        executor.submit(pool_targets.add, 1).result()
    gc.collect()
    before, threads = descriptors(), threading.active_count()
    with SandboxPoolExecutor(2, sandboxes_config=profile, max_tasks_per_child=250) as executor:
        for _ in range(2):
            futures = [executor.submit(pool_targets.add, number) for number in range(500)]
            assert [future.result() for future in futures] == list(range(1, 501))
            held = weakref.ref(futures[0])
            del futures
        while executor._crew._idle < len(executor._crew.workers):
            pass
        gc.collect()
        assert held() is None
        within = descriptors()
        with pytest.raises(SandBoxProtocolError):
            executor.submit(pool_targets.die).result()
        list(executor.map(pool_targets.add, range(20)))
        while executor._crew._idle < len(executor._crew.workers):
            pass
        assert descriptors() <= within + 24 * (2 - 1)  # at most one sandbox more than then
    assert (descriptors(), threading.active_count()) == (before, threads)


def test_a_failed_task_is_in_no_cycle(pool: Pool) -> None:
    executor = pool(1)
    gc.disable()
    try:
        future = executor.submit(pool_targets.fail, "so")
        assert isinstance(future.exception(), ValueError)
        held = weakref.ref(future)
        del future
        while executor._crew._idle < len(executor._crew.workers):
            pass
        assert held() is None
    finally:
        gc.enable()


PROGRAM = """\
import os, sys, threading, time
sys.path.insert(0, {here!r})
import pool_targets
from pysandboxes import SandBoxError, SandboxPoolExecutor

def main():
{body}

if __name__ == "__main__":
    main()
"""


def program_of(body: str) -> str:
    lines = "\n".join("    " + line for line in body.strip("\n").splitlines())
    return PROGRAM.format(here=str(Path(__file__).parent), body=lines)


Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.mark.smoke
def test_the_end_of_the_program_waits_for_its_tasks(run_program: Run) -> None:
    done = run_program(
        program_of("""
pool = SandboxPoolExecutor(2, sandboxes_config=os.environ["PROFILE"])
for number in range(20):
    pool.submit(pool_targets.say, f"n{number}", 1)
print("main ends", flush=True)
""")
    )
    assert (done.returncode, sorted(done.stdout.splitlines())) == (0, sorted([*(f"n{n} 0" for n in range(20)), "main ends"])), (
        done
    )
    assert sorted(done.stderr.splitlines()) == sorted(f"n{n} 0" for n in range(20))


def test_nothing_is_submitted_while_the_program_ends(run_program: Run) -> None:
    done = run_program(
        program_of("""
pool = SandboxPoolExecutor(1, sandboxes_config=os.environ["PROFILE"])
def again(future):
    try:
        pool.submit(pool_targets.add, 1)
    except RuntimeError as exc:
        print(exc, flush=True)
import atexit
threading._register_atexit(lambda: time.sleep(0))
ended = threading.Event()
threading.Thread(target=lambda: (threading.main_thread().join(), again(None), ended.set())).start()
pool.submit(pool_targets.add, 1).result()
""")
    )
    assert (done.returncode, done.stdout) == (0, "cannot schedule new futures after interpreter shutdown\n"), done


def interrupted(process: subprocess.Popen[str]) -> tuple[str, str]:
    """Press Ctrl-C, and give what the program printed. Once does, but CPython sleeps over a signal that comes between its last
    look for one and its wait for a lock."""
    for _ in range(5):
        process.send_signal(signal.SIGINT)
        try:
            return process.communicate(timeout=15)
        except subprocess.TimeoutExpired:
            continue
    process.kill()
    raise AssertionError(process.communicate())


CTRL_C = {
    "a result": "pool.submit(pool_targets.began, mark, 600).result()",
    "shutdown": "pool.submit(pool_targets.began, mark, 600)\npool.shutdown()",
    "the end of the block": "pool.submit(pool_targets.began, mark, 600)",
    "an initializer": "pool.submit(pool_targets.add, 1).result()",
    "map": "list(pool.map(pool_targets.began, [mark] * 9, [600] * 9))",
}


@pytest.mark.parametrize("wait", CTRL_C)
def test_ctrl_c(wait: str, program: Callable[..., subprocess.Popen[str]], tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    body = CTRL_C[wait].replace("\n", "\n    ")
    lines = f"{{'initializer': pool_targets.initialise_for_ever, 'initargs': ({str(mark)!r},)}}"
    options = lines if wait == "an initializer" else "{}"
    process = program(
        program_of(f"""
mark = {str(mark)!r}
with SandboxPoolExecutor(2, sandboxes_config=os.environ["PROFILE"], expose_rw={str(tmp_path)!r}, **{options}) as pool:
    {body}
""")
    )
    while not mark.exists():
        assert process.poll() is None
    _, err = interrupted(process)
    assert process.returncode == -signal.SIGINT, err
    assert err.rstrip().endswith("KeyboardInterrupt"), err
    assert "Exception ignored" not in err


def test_ctrl_c_at_the_end_of_the_program(program: Callable[..., subprocess.Popen[str]], tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    process = program(
        program_of(f"""
pool = SandboxPoolExecutor(1, sandboxes_config=os.environ["PROFILE"], expose_rw={str(tmp_path)!r})
pool.submit(pool_targets.began, {str(mark)!r}, 600)
pool.submit(pool_targets.say, "never", 1)
""")
    )
    while not mark.exists():
        assert process.poll() is None
    out, err = interrupted(process)
    assert "never" not in out
    assert "KeyboardInterrupt" in err


def test_a_killed_application_leaves_no_sandbox(program: Callable[..., subprocess.Popen[str]], tmp_path: Path) -> None:
    process = program(
        program_of("""
pool = SandboxPoolExecutor(2, sandboxes_config=os.environ["PROFILE"])
print(*{pool.submit(pool_targets.pid).result() for _ in range(9)}, flush=True)
pool.submit(time.sleep, 600).result()
""")
    )
    assert process.stdout is not None
    pids = [int(number) for number in process.stdout.readline().split()]
    assert pids
    process.kill()
    process.communicate()
    deadline = time.monotonic() + 20
    while any(Path(f"/proc/{number}/exe").exists() for number in pids):
        assert time.monotonic() < deadline


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_fork_cannot_use_the_pool(run_program: Run) -> None:
    done = run_program(
        program_of("""
pool = SandboxPoolExecutor(1, sandboxes_config=os.environ["PROFILE"])
assert pool.submit(pool_targets.add, 1).result() == 2
pid = os.fork()
if not pid:
    try:
        pool.submit(pool_targets.add, 1)
    except SandBoxError as exc:
        print("refused:", exc, flush=True)
    print(pool, flush=True)
    pool.shutdown()
    with SandboxPoolExecutor(1, sandboxes_config=os.environ["PROFILE"]) if False else pool:
        pass
    sys.exit(5)
print("fork ended:", os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)
assert pool.submit(pool_targets.add, 1).result() == 2
pool.shutdown()
""")
    )
    assert done.returncode == 0, done
    lines = done.stdout.splitlines()
    assert lines[0].startswith("refused: this process was forked from the one that opened the sandbox")
    assert "forked" in lines[1]
    assert lines[2] == "fork ended: 5"


def test_functions_of_the_main_file(run_program: Run) -> None:
    done = run_program("""\
import os
from pysandboxes import SandboxPoolExecutor, is_in_sandbox, sandbox

def plain(value):
    return is_in_sandbox(), value

@sandbox
def marked(value):
    return is_in_sandbox(), value

if __name__ == "__main__":
    with SandboxPoolExecutor(1, sandboxes_config=os.environ["PROFILE"], expose_ro=os.environ["FOLDER"]) as pool:
        print(pool.submit(plain, 1).result(), pool.submit(marked, 2).result(), list(pool.map(plain, [3, 4], chunksize=2)))
""")
    assert done.stdout == "(True, 1) (True, 2) [(True, 3), (True, 4)]\n", done


def test_functions_of_a_main_module_without_a_file(run_program: Run) -> None:
    done = run_program(
        "",
        "-",
        stdin="""\
import os
from pysandboxes import SandboxPoolExecutor, is_in_sandbox

more = 1

class Adds:
    def __call__(self, value):
        return value + more

def plain(value):
    return is_in_sandbox(), value + more

def prepare(value):
    print("prepared", value)

with SandboxPoolExecutor(1, sandboxes_config=os.environ["PROFILE"], initializer=prepare, initargs=(7,)) as pool:
    print(pool.submit(plain, 1).result(), pool.submit(Adds(), 2).result(), list(pool.map(plain, [3, 4], chunksize=2)))
    more = 2
    print(list(pool.map(plain, [3, 4], chunksize=2)), pool.submit(plain, 1).result())
""",
    )
    assert done.stdout.splitlines() == [
        "prepared 7",
        "(True, 2) 3 [(True, 4), (True, 5)]",
        "[(True, 5), (True, 6)] (True, 3)",
    ], done


def test_the_main_file_s_pool_costs_the_profile_nothing(run_program: Run, tmp_path: Path) -> None:
    """Importing the class in the sandbox is free, as it is of the other names of the package, and loads no engine there."""
    narrow = tmp_path / "narrow"
    narrow.write_text(f"os-sandbox=${{OS_SANDBOX:-auto}}\nexpose-ro={tmp_path}\npython-import=os, sys\n")
    done = run_program(
        """\
import os
from pysandboxes import SandboxPoolExecutor

def plain(value):
    import sys
    return value, "pysandboxes._core" in sys.modules

if __name__ == "__main__":
    with SandboxPoolExecutor(1, sandboxes_config=os.environ["PROFILE"]) as pool:
        print(pool.submit(plain, 1).result())
""",
        profile=narrow,
    )
    assert done.stdout == "(1, False)\n", done


@pytest.mark.smoke
def test_under_python_sb_tasks_run_in_threads(place: Place) -> None:
    place.profile("python-import=*\npython-api=ALLOW:threads\nexpose-ro=./program.py\n")
    place.file(
        "program.py",
        """\
import os, sys
from pysandboxes import SandboxPoolExecutor, is_in_sandbox

def plain(value):
    return is_in_sandbox(), os.getpid() == PID, value

def prepare(value):
    print("prepared", value)

async def awaited(value):
    return 2 * value

if __name__ == "__main__":
    PID = os.getpid()
    with SandboxPoolExecutor(2, initializer=prepare, initargs=(7,)) as pool:
        print(pool.submit(plain, 1).result(), pool.submit(awaited, 2).result(), list(pool.map(plain, [3], chunksize=2)))
        print(type(pool.submit(open, "/etc/passwd").exception()).__name__, pool.stats(), "pysandboxes._core" in sys.modules)
""",
    )
    done = place.run("program.py")
    assert done.stdout.splitlines() == [
        "prepared 7",
        "(True, True, 1) 4 [(True, True, 3)]",
        "RuleFileNotFoundError [] False",
    ], done


def test_an_unguarded_main_file_is_told(run_program: Run, profile: Path, tmp_path: Path) -> None:
    done = run_program(f"""\
from pysandboxes import SandboxPoolExecutor

def plain(value):
    return value

with SandboxPoolExecutor(1, sandboxes_config={str(profile)!r}, expose_ro={str(tmp_path)!r}) as pool:
    print(pool.submit(plain, 1).result())
""")
    assert done.returncode == 1
    assert "guard what starts the program" in done.stderr, done


def test_beside_a_sandbox_of_its_own(pool: Pool, profile: Path) -> None:
    """A call by @sandbox goes to the block's sandbox, a task to the pool's."""
    executor = pool(1)
    with sandboxes(sandboxes_config=profile) as handle:
        inside = executor.submit(pool_targets.pid).result()
        assert api_targets.where()[1] == handle.pid != inside
    with pytest.raises(SandBoxError, match="no sandbox is running"):
        api_targets.add(1)
    assert executor.submit(pool_targets.pid).result() == inside


def test_the_control_is_an_executor_without_a_sandbox() -> None:
    """What the tests of the pool see refused is allowed by the standard library's."""
    with ThreadPoolExecutor(1) as executor:
        assert "root" in executor.submit(pool_targets.read, "/etc/passwd").result()
        assert executor.submit(pool_targets.inside).result() is False
