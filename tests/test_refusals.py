"""A refusal says what was refused, and ends with the exact line that would allow it; added, that line allows it."""

from __future__ import annotations

import re
import socket

import pytest
from complete_mode import Place, last_line

pytestmark = pytest.mark.smoke


def refused(place: Place, code: str, error: str) -> str:
    """Runs code, which must end by the named exception; the line to add."""
    done = place.run("-c", code)
    assert done.returncode == 1, done.stderr
    assert error in done.stderr
    return last_line(done.stderr)


def test_reading_a_file(place: Place) -> None:
    place.profile("")
    code = "open('/etc/passwd')"
    assert refused(place, code, "pysandboxes.RuleFileNotFoundError") == "expose-ro=/etc/passwd"
    place.profile("expose-ro=/etc/passwd")
    assert place.run("-c", code).returncode == 0


def test_the_refusal_is_the_builtin_with_its_fields(place: Place) -> None:
    place.profile("")
    code = """
try:
    open('/etc/passwd')
except FileNotFoundError as e:
    print(e.errno, e.strerror, e.filename, type(e).__mro__[1].__name__)
"""
    assert place.run("-c", code).stdout.split("\n")[0] == "2 No such file or directory /etc/passwd FileNotFoundError"


def test_access_answers(place: Place) -> None:
    """As for what is not there."""
    code = "import os; print([os.access('/etc/passwd', m) for m in (0, os.R_OK)], os.access('/etc/none', 0))"
    place.profile("python-import=os")
    done = place.run("-c", code)
    assert done.stdout == "[False, False] False\n", done.stderr
    place.profile("python-import=os\nexpose-ro=/etc/passwd")
    assert place.run("-c", code).stdout == "[True, True] False\n"


def test_an_abstract_socket_is_called_so(place: Place) -> None:
    place.profile("python-import=socket")
    done = place.run("-c", "import socket; socket.socket(socket.AF_UNIX).connect('\\0psb')")
    assert done.stderr.endswith("DENIED unix connect to @psb OUT: abstract sockets cannot be granted.\n")


def test_a_copy_may_set_its_own_priority(place: Place) -> None:
    """The kernel filter knows the first process alone by its number."""
    place.provider = "landlock"
    place.profile("python-import=os\npython-api=ALLOW:os.fork\npython-api=ALLOW:os.setpriority")
    code = """
import os
if os.fork() == 0:
    os.setpriority(os.PRIO_PROCESS, os.getpid(), os.getpriority(os.PRIO_PROCESS, 0))
    os.setpriority(os.PRIO_PROCESS, 1, 0)
print(os.waitstatus_to_exitcode(os.wait()[1]))
"""
    done = place.run("-c", code)
    assert done.stdout == "1\n", done.stderr
    assert "line 5" in done.stderr and "PermissionError" in done.stderr


def test_writing_what_is_read_only(place: Place) -> None:
    data = place.file("data/x", "old")
    place.profile("expose-ro=./data")
    assert place.run("-c", "print(open('data/x').read())").stdout == "old\n"
    assert refused(place, "open('data/x', 'w')", "pysandboxes.RulePermissionError").startswith("expose-rw=")
    assert data.read_text() == "old"
    place.profile("expose-rw=./data")
    assert place.run("-c", "open('data/x', 'w').write('new')").returncode == 0
    assert data.read_text() == "new"


def test_a_link_that_leads_out_of_what_is_exposed(place: Place) -> None:
    inside, outside = place.file("data/inside", "in"), place.file("outside/x", "out")
    for name, target in {"out": outside, "folder": outside.parent, "in": inside}.items():
        (place.folder / "data" / name).symlink_to(target)
    (place.folder / "data" / "round").symlink_to("round")
    place.profile("python-import=os, io\nexpose-rw=./data")
    for code in (
        "open('data/out')",
        "os.open('data/out', 0)",
        "open('data/folder/x')",
        "os.open('out', 0, dir_fd=os.open('data', 0))",
        "io.FileIO('data/out')",
        "open(b'data/out')",
        "open('data/folder/../data/folder/x')",
    ):
        line = refused(place, f"import os, io; {code}", "pysandboxes.RuleFileNotFoundError")
        assert line == "expose-ro=./outside/x", code
    for code in ("os.listdir('data/folder')", "os.scandir('data/folder')", "os.listdir('data/folder/')"):
        assert refused(place, f"import os; {code}", "pysandboxes.RuleFileNotFoundError") == "expose-ro=./outside"
    done = place.run("-c", "open('data/out')")
    assert f"{place.folder}/data/out leads there by a link" in done.stderr
    assert refused(place, "open('data/out', 'w')", "FileNotFoundError").startswith("expose-rw=")
    assert outside.read_text() == "out"
    # What leads to what is allowed is as ever, and so are links that lead nowhere and round in a circle.
    code = """
        import os
        print(open('data/in').read(), os.readlink('data/out').endswith('outside/x'), os.path.lexists('data/out'))
        os.unlink('data/out'); os.symlink('inside', 'data/out'); print(open('data/out').read())
        for path in ('data/round', 'data/none', 'data/inside/x'):
            try: open(path)
            except OSError as e: print(type(e).__module__, type(e).__name__, e.errno, e.filename)
        """
    program = place.file("data/program.py", code)
    link = place.folder / "data" / "out"
    printed = []
    for run in (place.run, place.bare):
        printed.append(run(program).stdout)
        link.unlink()
        link.symlink_to(outside)
    assert printed[0] == printed[1] != ""
    place.profile("python-import=os\nexpose-rw=./data\nexpose-ro=./outside/x\nexpose-ro=./outside")
    assert place.run("-c", "print(open('data/out').read(), open('data/folder/x').read())").stdout == "out out\n"


def test_importing(place: Place) -> None:
    place.profile("")
    assert refused(place, "import json", "pysandboxes.RuleModuleNotFoundError") == "python-import=json"
    place.profile("python-import=json")
    done = place.run("-c", "import json; print(json.dumps([1]))")
    assert done.stdout == "[1]\n", done.stderr


def test_importing_what_is_loaded_already(place: Place) -> None:
    place.profile("")
    assert refused(place, "import os", "pysandboxes.RuleModuleNotFoundError") == "python-import=os"


def test_a_missing_module_stays_missing(place: Place) -> None:
    place.profile("python-import=*")
    done = place.run("-c", "import no_such_module_here")
    assert done.returncode == 1
    assert last_line(done.stderr) == "ModuleNotFoundError: No module named 'no_such_module_here'"


def test_a_call_names_the_function_before_its_category(place: Place) -> None:
    place.profile("python-import=*")
    done = place.run("-c", "import os; os.system('id')")
    assert "pysandboxes.RuleApiPermissionError" in done.stderr
    assert done.stderr.index("os.system") < done.stderr.index("process-exec")
    assert last_line(done.stderr) == "python-api=ALLOW:os.system"
    place.profile("python-import=*\npython-api=ALLOW:os.system\nexpose-ro=/bin\nexpose-ro=/usr/bin\nenv=PATH=/usr/bin:/bin")
    done = place.run("-c", "import os; os.system('echo done')")
    assert done.stdout == "done\n", done.stderr


def test_connecting(place: Place) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        code = f"import socket; socket.create_connection(('127.0.0.1', {port}), 5).close(); print('connected')"
        place.profile("python-import=socket")
        done = place.run("-c", code)
        assert done.returncode == 1
        for word in ("DENIED", "tcp", "127.0.0.1", str(port), "OUT"):
            assert word in done.stderr
        line = last_line(done.stderr)
        assert re.fullmatch(rf"net=ALLOW\|tcp\|127\.0\.0\.1\|{port}\|OUT", line, re.I)
        place.profile(f"python-import=socket\n{line}")
        done = place.run("-c", code)
        assert done.stdout == "connected\n", done.stderr


def test_a_string_to_evaluate(place: Place) -> None:
    place.profile("")
    assert refused(place, "eval('1 + 1')", "pysandboxes.RuleEvalPermissionError") == "python-api=ALLOW:builtins.eval"
    for line in ("python-api=ALLOW:builtins.eval", "python-api=ALLOW:dynamic-code"):
        place.profile(line)
        done = place.run("-c", "print(eval('1 + 1'))")
        assert done.stdout == "2\n", done.stderr


def test_the_environment_is_empty_but_for_its_rules(place: Place) -> None:
    place.environment["SECRET_TOKEN"] = "s3cret"
    place.environment["GREETING"] = "hello"
    place.profile("python-import=os\nenv=GREETING=${GREETING}")
    done = place.run("-c", "import os; print(os.environ.get('SECRET_TOKEN'), os.environ['GREETING'])")
    assert done.stdout == "None hello\n", done.stderr
    done = place.run(
        "-c", "print(__import__('os').environ.get('LD_PRELOAD'), sorted(k for k in __import__('os').environ if 'SANDBOX' in k))"
    )
    assert done.stdout == "None []\n"


@pytest.mark.parametrize(("source", "narrow"), [("neighbour.py", "neighbour.py"), ("neighbour/__init__.py", "neighbour")])
def test_a_neighbour_of_the_script_names_itself_then_its_folder(place: Place, source: str, narrow: str) -> None:
    place.file("lib/" + source, "value = 7")
    script = place.file("lib/script.py", "import neighbour; print(neighbour.value)")
    place.profile("python-import=neighbour")
    done = place.run(script)
    assert "RuleModuleNotFoundError" in done.stderr
    assert "(wider: expose-ro=./lib)" in done.stderr
    assert last_line(done.stderr) == "expose-ro=./lib/" + narrow
    for line in ("expose-ro=./lib/" + narrow, "expose-ro=./lib"):
        place.profile("python-import=neighbour\n" + line)
        assert place.run(script).stdout == "7\n"


def test_a_deny_rule_is_named_by_its_place(place: Place) -> None:
    path = place.profile("python-import=*\npython-import=DENY:json\n")
    done = place.run("-c", "import json")
    assert f"{path.name}:2" in done.stderr


@pytest.mark.parametrize(
    ("profile", "words"),
    [
        ("expose-rw", [":1", "expose-rw"]),
        ("exposero=/tmp", [":1", "expose-ro"]),
        ("python-import=json\npython-api=ALLOW:os.sytem", [":2", "os.system"]),
        ("net=ALLOW|tpc|127.0.0.1|80|OUT", [":1", "tcp"]),
        ("env=A=${UNCLOSED", [":1"]),
        ("os-sandbox=subproces", [":1", "subprocess"]),
    ],
)
def test_a_profile_that_does_not_parse(place: Place, profile: str, words: list[str]) -> None:
    place.profile(profile)
    done = place.run("-c", "print('ran')")
    assert done.returncode == 2, done.stderr
    assert done.stdout == ""
    assert "^" in done.stderr
    assert "Traceback" not in done.stderr
    for word in words:
        assert word.lower() in done.stderr.lower()


def test_a_warning_is_said_once(place: Place) -> None:
    place.profile("port=5\n")
    done = place.run("-c", "print('ran')")
    assert done.stdout == "ran\n"
    assert done.stderr.count("port=") == 1, done.stderr


@pytest.mark.parametrize("provider", ["landlock", "subprocess"])
def test_an_ignore_rule_takes_away_what_it_names_alone(place: Place, provider: str) -> None:
    place.provider = provider
    place.file("app/main.py", "import beside; print(beside.X)")
    place.file("app/beside.py", "X = 1")
    rules = "python-import=beside\nexpose-ro=./app\nignore-best-effort=true\n"
    place.profile(rules + "ignore=.env\n")
    done = place.run("app/main.py")
    assert done.stdout == "1\n", done.stderr
    place.profile(rules + "ignore=beside.py\n")
    assert "ModuleNotFoundError: No module named 'beside'" in place.run("app/main.py").stderr


@pytest.mark.parametrize("change", ["os.fchmod(fd, 0o640)", "os.utime(fd)", "os.fchown(fd, -1, -1)"])
def test_changing_a_file_through_what_may_only_read_it(place: Place, change: str) -> None:
    place.file("data/x")
    code = f"import os\nfd = os.open('data/x', os.O_RDONLY)\n{change}"
    place.profile("python-import=os\nexpose-ro=./data\n")
    assert refused(place, code, "pysandboxes.RulePermissionError") == "expose-rw=./data/x"
    place.profile("python-import=os\nexpose-rw=./data\n")
    assert place.run("-c", code).stderr == ""


def test_what_has_no_name_may_be_changed(place: Place) -> None:
    place.profile("python-import=os\nexpose-rw=./data/\n")
    code = """
import os
r, w = os.pipe()
os.fchmod(w, 0o600)
fd = os.open('data/x', os.O_CREAT | os.O_RDWR)
os.remove('data/x')
os.fchmod(fd, 0o600)
os.utime(fd)
"""
    assert place.run("-c", code).stderr == ""


def test_a_device_may_be_written_to_and_no_more(place: Place) -> None:
    place.profile("python-import=os\n")
    code = "import os\nopen('/dev/null', 'w').write('x')\nos.utime('/dev/null')"
    assert refused(place, code, "pysandboxes.RulePermissionError") == "expose-rw=/dev/null"
