"""What surrounds the application is broken in every way that machines are: a sandbox works as before, or says what is wrong."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
PROGRAM = """\
import os, sys
sys.path.insert(0, {here!r})
import fault_targets
from pysandboxes import sandboxes

if __name__ == "__main__":
    with sandboxes(sandboxes_config={profile!r}) as handle:
        assert fault_targets.pid() == handle.pid != os.getpid()
        assert fault_targets.answer(1 << 21) == b"x" * (1 << 21)
        fault_targets.say("gr\\u00fc\\u00df")
    print("ended well")
"""
#: How each is made, by a shell in a mount namespace of its own, before it becomes the program.
BROKEN = {
    "nothing": ":",
    "no /dev/shm": "mount -t tmpfs -o ro,size=4k none /dev/shm",
    "a read-only /var/tmp": "mount -t tmpfs -o ro,size=4k none /var/tmp",
    "a full cache folder": "mount -t tmpfs -o size=4k none $HOME; head -c 9000 /dev/zero >$HOME/full 2>/dev/null",
    "a cache folder that is read-only": "mount -t tmpfs -o ro none $HOME",
    "no TMPDIR": "export TMPDIR=/nowhere",
    "umask 077": "umask 077",
    "no HOME": "unset HOME",
    "an empty environment": 'set -- env -i "$@"',
    "LANG=C": "export LC_ALL=C LANG=C",
    "no UTF-8 mode": "export LC_ALL=C PYTHONUTF8=0 PYTHONCOERCECLOCALE=0",
    "a locale that is not there": "export LC_ALL=xx_XX.UTF-8",
    "standard input closed": "exec <&-",
    "standard output closed": "exec >&-",
    "standard error closed": "exec 2>&-",
    "no stack limit": "ulimit -s unlimited",
    "signals blocked": 'set -- env --block-signal "$@"',
    "SIGCHLD ignored": 'set -- env --ignore-signal=CHLD "$@"',
    "SIGPIPE at its default": 'set -- env --default-signal=PIPE "$@"',
}


def run(tmp_path: Path, profile: Path, how: str, *command: str) -> subprocess.CompletedProcess[str]:
    (tmp_path / "home").mkdir(exist_ok=True)
    (tmp_path / "program.py").write_text(PROGRAM.format(here=str(HERE), profile=str(profile)))
    return subprocess.run(
        ["unshare", "-m", "sh", "-c", how + '\nexec "$@"', "sh", *(command or (sys.executable, str(tmp_path / "program.py")))],
        capture_output=True, text=True, errors="replace", timeout=100, cwd=tmp_path,
        env={"PATH": os.environ["PATH"], "HOME": str(tmp_path / "home"), "OS_SANDBOX": os.environ.get("OS_SANDBOX", "auto")},
    )  # fmt: skip


def needs_a_namespace() -> None:
    if subprocess.run(["unshare", "-m", "true"], capture_output=True, check=False).returncode:
        pytest.skip("no mount namespace may be made here")


@pytest.mark.parametrize("what", BROKEN)
def test_it_works_all_the_same(what: str, tmp_path: Path, profile: Path) -> None:
    needs_a_namespace()
    done = run(tmp_path, profile, BROKEN[what])
    said = [line for line in done.stderr.splitlines() if "=subprocess " not in line and "setlocale" not in line]
    assert (done.returncode, said) == (0, []), done.stderr
    if what != "standard output closed":
        assert done.stdout.endswith("ended well\n")
        assert re.match(r"gr(ü|\\xfc|\\u00fc|\?|�|u)", done.stdout), done.stdout


def test_without_proc_it_says_so(tmp_path: Path, profile: Path) -> None:
    """The control is the case "nothing" above."""
    needs_a_namespace()
    done = run(tmp_path, profile, "mount -t tmpfs none /proc")
    assert done.returncode == 1
    assert re.search(r"SandBoxError: .*/proc/self/maps.*\nA sandbox needs /proc to be mounted$", done.stderr.strip()), (
        done.stderr
    )


def test_a_working_directory_that_was_removed(tmp_path: Path, profile: Path) -> None:
    needs_a_namespace()
    done = run(tmp_path, profile, "mkdir gone; cd gone; rmdir ../gone")
    assert done.returncode != 0
    last = done.stderr.strip().splitlines()[-1]
    assert re.match(r"(pysandboxes\.SandBoxError|FileNotFoundError): .*(working directory|No such file)", last), done.stderr


def test_no_descriptor_is_left_for_a_start(run_program: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    """Every number of free descriptors too few is an error that says so, nothing stays open, and the next start works."""
    done = run_program(
        """\
        import os, re, resource, sys, time
        sys.path.insert(0, os.environ["HERE"])
        import fault_targets
        from pysandboxes import SandBoxError, sandboxes

        def start():
            with sandboxes(sandboxes_config=os.environ["PROFILE"]):
                return fault_targets.pid()

        def descriptors():
            return os.listdir("/proc/self/fd")

        if __name__ == "__main__":
            start()
            before, failed = descriptors(), 0
            soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
            for free in (0, 1, 2, 3, 5, 8, 11, 14, 17, 20, 24, 60):
                resource.setrlimit(resource.RLIMIT_NOFILE, (max(map(int, before)) + 1 + free, hard))
                try:
                    assert start() != os.getpid()
                except (SandBoxError, OSError) as exc:
                    failed += 1
                    assert re.search("too many open files", str(exc), re.IGNORECASE), exc
                resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
                end = time.monotonic() + 10  # the thread that answers a sandbox closes what is its own a moment after the end
                while len(descriptors()) > len(before) + 1:
                    assert time.monotonic() < end, (free, before, descriptors())
            assert failed >= 4
            assert start() != os.getpid()
            try: os.waitpid(-1, os.WNOHANG)
            except ChildProcessError: print("nothing left")
    """,
        env={"HERE": str(HERE)},
    )
    assert (done.stdout, done.returncode) == ("nothing left\n", 0), done.stderr


def test_the_limit_of_open_files_stays_the_application_s(run_program: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    """A Go runtime raises it; it is for the application to choose, and its children inherit it."""
    done = run_program(
        """\
        import os, resource, subprocess, sys
        sys.path.insert(0, os.environ["HERE"])
        import fault_targets
        from pysandboxes import sandboxes
        if __name__ == "__main__":
            resource.setrlimit(resource.RLIMIT_NOFILE, (300, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
            with sandboxes(sandboxes_config=os.environ["PROFILE"]):
                assert fault_targets.pid()
                print(resource.getrlimit(resource.RLIMIT_NOFILE)[0], flush=True)
                subprocess.run(["sh", "-c", "ulimit -Sn"])
    """,
        env={"HERE": str(Path(__file__).resolve().parent)},
    )
    assert (done.returncode, done.stdout) == (0, "300\n300\n"), done.stderr
