"""What a learning run writes is enough: the same program runs under it, with the same output, the first time."""

from __future__ import annotations

import re

import pytest
from complete_mode import Place, last_line

pytestmark = pytest.mark.smoke

LISTINGS = {
    "listdir": "import os; print(sorted(os.listdir('data')))",
    "scandir": "import os; print(sorted(e.name for e in os.scandir('data')))",
    "walk": "import os; print([sorted(f) for _, _, f in os.walk('data')])",
    "Path.iterdir": "from pathlib import Path; print(sorted(map(str, Path('data').iterdir())))",
    "Path.glob": "from pathlib import Path; print(sorted(map(str, Path('data').glob('*.txt'))))",
    "Path.rglob": "from pathlib import Path; print(sorted(map(str, Path('data').rglob('*.txt'))))",
    "glob of a folder": "import glob; print(sorted(glob.glob('data/*')))",
    "exists, then read": "import os; print(os.path.exists('data/a.txt'), open('data/a.txt').read())",
    "stat, then listing": "import os; os.stat('data'); print(sorted(os.listdir('data')))",
    "working directory": "import glob, os; os.chdir('data'); print(sorted(glob.glob('*.txt')))",
}
PROGRAMS = {
    "subprocess": "import subprocess; print(subprocess.run(['/bin/echo', 'done'], capture_output=True, text=True))",
    "a program on PATH": "import subprocess; print(subprocess.check_output(['echo', 'done']))",
    "a shell": "import os; print(os.popen('echo done').read())",
    "os.system": "import os; print(os.system('exit 3'))",
    "semaphores": "import multiprocessing; lock = multiprocessing.Lock(); print(lock.acquire(), lock.release())",
}


@pytest.mark.parametrize("code", [*LISTINGS.values(), *PROGRAMS.values()], ids=[*LISTINGS, *PROGRAMS])
def test_learned_then_enforced(place: Place, code: str) -> None:
    place.file("data/a.txt", "a")
    place.file("data/deep/b.txt", "b")
    place.environment["OS_SANDBOX"] = "landlock"
    bare = place.bare("-c", code)
    assert bare.returncode == 0, bare.stderr
    learned = place.run("--learn", "-c", code)
    assert (learned.returncode, learned.stdout) == (0, bare.stdout), learned.stderr
    enforced = place.run("-c", code)
    assert (enforced.returncode, enforced.stdout) == (0, bare.stdout), enforced.stderr


NEEDS = {
    "subprocess": r"expose-ro=/(usr/)?bin/echo",
    "os.system": r"expose-ro=/(usr/)?bin/(sh|dash|bash)",
    "semaphores": r"expose-rw=/dev/shm",
}


@pytest.mark.parametrize("name", NEEDS)
def test_a_file_that_a_granted_call_needs_is_named(place: Place, name: str) -> None:
    place.profile("python-import=*\npython-api=ALLOW:*\n")
    done = place.run("-c", PROGRAMS[name])
    assert done.returncode == 1, done.stdout
    assert re.fullmatch(NEEDS[name], last_line(done.stderr)), done.stderr


def test_another_file_is_whole_by_itself(place: Place) -> None:
    place.environment["OS_SANDBOX"] = "landlock"
    place.file("data/a.txt", "a")
    place.profile("python-import=json\nexpose-ro=./data\n")
    code = "import json; print(open('data/a.txt').read())"
    done = place.run("--learn=candidate", "--python-import=os", "-c", code)
    assert done.returncode == 0, done.stderr
    text = (place.folder / "candidate").read_text()
    assert "\npython-import=json" in text
    assert "\nexpose-ro=./data" in text
    done = place.run("--pysandboxes-config=candidate", "-c", code)
    assert (done.returncode, done.stdout) == (0, "a\n"), done.stderr
    again = place.run("--learn=candidate", "-c", code)
    assert "nothing new was learned" in again.stderr


def test_modules_that_do_not_exist_are_not_written(place: Place) -> None:
    place.file("late.py")
    code = (
        "import sys\n"
        "for name in ('no_such_module', 'nowhere.deep', 'json.no_such_part', 'late'):\n"
        "    sys.path.remove('')\n"
        "    try: __import__(name)\n"
        "    except ModuleNotFoundError: pass\n"
        "    sys.path.insert(0, '')\n"
        "import late"
    )
    done = place.run("--learn", "-c", code)
    assert done.returncode == 0, done.stderr
    names = set(re.findall(r"^python-import=\w+", (place.folder / ".py-sandboxes").read_text(), re.MULTILINE))
    assert names == {"python-import=sys", "python-import=json", "python-import=late"}


def exposed(place: Place) -> set[str]:
    """The rules for files that were learned."""
    return set(re.findall(r"^expose-r[ow]=\S+", (place.folder / ".py-sandboxes").read_text(), re.MULTILINE))


def test_the_folder_of_the_process(place: Place) -> None:
    place.environment["OS_SANDBOX"] = "landlock"
    code = "import os; print(open('/proc/self/status').readline(), open(f'/proc/{os.getpid()}/statm').read().count(' '))"
    done = place.run("--learn", "-c", code)
    assert done.returncode == 0, done.stderr
    assert exposed(place) == {"expose-ro=/proc/self/status", "expose-ro=/proc/self/statm"}
    done = place.run("-c", code)
    assert done.returncode == 0, done.stderr


def test_a_module_beside_the_profile_opens_itself_alone(place: Place) -> None:
    place.environment["OS_SANDBOX"] = "landlock"
    place.file("m.py", "x = 1")
    place.file("pkg/__init__.py")
    place.file("pkg/sub.py", "y = 2")
    place.file("secret.txt")
    code = "import m, pkg.sub; print(m.x, pkg.sub.y)"
    done = place.run("--learn", "-c", code)
    assert done.returncode == 0, done.stderr
    assert exposed(place) == {"expose-ro=./m.py", "expose-ro=./pkg"}
    done = place.run("-c", code)
    assert (done.returncode, done.stdout) == (0, "1 2\n"), done.stderr


def test_what_the_interpreter_reads_of_the_environment(place: Place) -> None:
    place.environment.update(OS_SANDBOX="landlock", PYTHONPATH="lib", PYTHONHASHSEED="7", TZ="Asia/Tokyo")
    place.file("lib/mine.py", "x = 1")
    code = "import mine, time; print(mine.x, hash('a'), time.localtime(0).tm_hour)"
    bare = place.bare("-c", code)
    done = place.run("--learn", "-c", code)
    assert done.stdout == bare.stdout, done.stderr
    text = (place.folder / ".py-sandboxes").read_text()
    for name in ("PYTHONPATH", "PYTHONHASHSEED", "TZ"):
        assert re.search(rf"^env={name}=.*read by the interpreter itself$", text, re.MULTILINE), text
    enforced = place.run("-c", code)
    assert (enforced.returncode, enforced.stdout) == (0, bare.stdout), enforced.stderr
    assert "nothing new was learned" in place.run("--learn", "-c", code).stderr


ENFORCED = {
    "kinds of strings on one line": "eval('1'); exec('x = 2'); print(eval(compile('x', 'f', 'eval')))",
    "a terminal of its own": """
        import os, pty
        process, terminal = pty.fork()
        if not process:
            os.execvp('echo', ['echo', 'hi'])
        print(os.read(terminal, 10))
        os.waitpid(process, 0)
        """,
    "a folder in a folder that is never exposed": """
        import pathlib
        path = pathlib.Path.home() / '.config' / 'app'
        path.mkdir(parents=True, exist_ok=True)
        (path / 'a').write_text('a')
        print((path / 'a').read_text())
        """,
}


@pytest.mark.parametrize("name", ENFORCED)
def test_the_same_output_under_what_was_learned(place: Place, name: str) -> None:
    place.environment["OS_SANDBOX"] = "landlock"
    place.file("program.py", ENFORCED[name])
    bare = place.bare("program.py")
    assert bare.returncode == 0, bare.stderr
    learned = place.run("--learn", "program.py")
    assert learned.stdout == bare.stdout, learned.stderr
    enforced = place.run("program.py")
    assert (enforced.returncode, enforced.stdout) == (0, bare.stdout), enforced.stderr
    assert "nothing new was learned" in place.run("--learn", "program.py").stderr
