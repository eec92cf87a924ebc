"""The pysandboxes command: answers, exit status, colour, and its texts as snapshots.

A snapshot is what a person reads. ``PYSANDBOXES_SNAPSHOTS=write`` makes them again; look at the difference before a commit.
"""

from __future__ import annotations

import json
import os
import pty
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from pysandboxes import _cli

SNAPSHOTS = Path(__file__).parent / "snapshots"

#: A profile with something to find in each family.
DOUBTFUL = """\
os-sandbox=subprocess
env=API_KEY=correct-horse-battery
env=LANG=${LANG:-C}
unenv=*_TOKEN
expose-ro=./data
expose-ro=./data/deep
ignore=./elsewhere/*.key
net=ALLOW|TCP|*|443|OUT
net=ALLOW|TCP|127.0.0.1|8000|OUT
net=DENY|*|@loopback|*|*
python-import=json, xml.etree, DENY:xml
python-api=ALLOW:process-exec, ALLOW:os.system
limit-open-files=256
"""

SOUND = """\
os-sandbox=subprocess
env=LANG=${LANG:-C}
expose-ro=./data
net=ALLOW|TCP|127.0.0.1|8000|OUT
python-import=json
python-api=ALLOW:threads
limit-open-files=1_000
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with the two profiles."""
    (tmp_path / "data" / "deep").mkdir(parents=True)
    (tmp_path / "x").touch()
    (tmp_path / "doubtful").write_text(DOUBTFUL)
    (tmp_path / "sound").write_text(SOUND)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LANG", "C")
    monkeypatch.delenv("NO_COLOR", raising=False)
    return tmp_path


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    status = _cli.main(arguments)
    captured = capsys.readouterr()
    return status, captured.out, captured.err


def snapshot(name: str, text: str, folder: Path) -> None:
    """Holds text against the file of that name; the folder of the test and what varies by machine are named."""
    text = text.replace(str(folder.resolve()), "{here}").replace(str(folder), "{here}")
    path = SNAPSHOTS / f"{name}.txt"
    if os.environ.get("PYSANDBOXES_SNAPSHOTS") == "write":
        path.write_text(text)
    assert text == path.read_text(), f"{path.name}: PYSANDBOXES_SNAPSHOTS=write makes it again"


# check


def test_check_of_a_sound_profile(capsys: pytest.CaptureFixture[str], here: Path) -> None:
    status, out, err = run(capsys, "check", "sound")
    assert (status, err) == (0, "")
    snapshot("check-sound", out, here)


def test_check_of_a_doubtful_profile(capsys: pytest.CaptureFixture[str], here: Path) -> None:
    status, out, err = run(capsys, "check", "doubtful")
    assert (status, err) == (1, "")
    assert "correct-horse" not in out, "reports are passed on: they hold no secret"
    snapshot("check-doubtful", out, here)


def test_warnings_count_where_one_is_strict(capsys: pytest.CaptureFixture[str], here: Path) -> None:
    (here / "wide").write_text("python-import=*\n")
    assert run(capsys, "check", "wide")[0] == 0
    assert run(capsys, "check", "--strict", "wide")[0] == 1


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("key", "# ok\npyton-import=json\n"),
        ("field", "net=ALLOW|tpc|x|1|OUT\n"),
        ("quote", 'expose-ro="./data\n'),
        ("variable", "expose-ro=${NO_SUCH_VARIABLE}/x\n"),
        ("function", "python-api=ALLOW:os.sistem\n"),
        ("often", "pyton-import=json\nexpose-ro=./data\nnet=ALLOW|tpc|x|1|OUT\nenv=A=${B\npython-api=ALLOW:os.sistem\n\x07\n"),
        ("twice", "limit-cpu=1s\nexpose-ro=./data\nlimit-cpu=2s\n"),
    ],
    ids=lambda value: value if value.isalpha() else "",
)
def test_a_profile_that_does_not_load(capsys: pytest.CaptureFixture[str], here: Path, name: str, text: str) -> None:
    (here / "broken").write_text(text)
    for command in (("check", "broken"), ("explain", "broken", "eval"), ("diff", "sound", "broken")):
        status, out, err = run(capsys, *command)
        assert (status, out) == (2, "")
    snapshot(f"broken-{name}", err, here)


def test_a_failure_as_json(capsys: pytest.CaptureFixture[str], here: Path) -> None:
    (here / "broken").write_text("# ok\npyton-import=json\n")
    status, out, err = run(capsys, "check", "broken", "--json")
    assert (status, err) == (2, "")
    error = json.loads(out)["error"]
    assert (error["kind"], error["filename"], error["lineno"]) == ("ConfigSyntaxError", str(here / "broken"), 2)


def test_a_file_that_is_no_profile(capsys: pytest.CaptureFixture[str], here: Path) -> None:
    (here / "broken").write_text("no rule\n" * 1000)
    status, _, err = run(capsys, "check", "broken")
    assert status == 2
    assert err.count("this is not a rule") == 20
    assert "There are more mistakes" in err


def test_a_profile_that_is_missing(capsys: pytest.CaptureFixture[str], here: Path) -> None:
    status, _, err = run(capsys, "check", "no-such-profile")
    assert (status, "no-such-profile" in err) == (2, True)


def test_keys_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = run(capsys, "check", "--keys")
    assert status == 0
    assert "expose-ro=SOURCE[,DEST]" in out
    assert {key["name"] for key in json.loads(run(capsys, "check", "--keys", "--json")[1])} >= {"net", "qemu.memory"}


# explain


@pytest.mark.parametrize(
    ("name", "question", "allowed"),
    [
        ("open-refused", "open /etc/passwd", False),
        ("open", "open data/a.csv", True),
        ("write", "write ./x", False),
        ("connect", "connect 127.0.0.1:8000", False),
        ("udp", "udp 10.0.0.1:53", False),
        ("import", "import json", True),
        ("import-refused", "import xml.etree", False),
        ("call", "call os.system", True),
        ("call-refused", "call ctypes.CDLL", False),
        ("env", "env LANG", True),
        ("eval", "eval", False),
    ],
)
def test_explain(capsys: pytest.CaptureFixture[str], here: Path, name: str, question: str, allowed: bool) -> None:
    status, out, err = run(capsys, "explain", "doubtful", question)
    assert status == (0 if allowed else 1), err
    assert run(capsys, "explain", "doubtful", *question.split())[1] == out, "words are as good as one text"
    snapshot(f"explain-{name}", out, here)


def test_explain_alone_is_the_policy_in_force(capsys: pytest.CaptureFixture[str], here: Path) -> None:
    status, out, _ = run(capsys, "explain", "doubtful")
    assert status == 0
    policy, runtime = out.split("readable without a rule", 1)
    assert "/dev/null" in runtime
    assert str(Path(os.__file__).parent) in runtime
    snapshot("explain-alone", policy, here)


def test_what_is_no_question(capsys: pytest.CaptureFixture[str], here: Path) -> None:
    status, out, err = run(capsys, "explain", "sound", "opne /x")
    assert (status, out) == (2, "")
    assert "Did you mean open?" in err


# diff


def test_diff(capsys: pytest.CaptureFixture[str], here: Path) -> None:
    status, out, _ = run(capsys, "diff", "sound", "doubtful")
    assert status == 1
    assert "correct-horse" not in out
    snapshot("diff", out, here)
    assert run(capsys, "diff", "sound", "sound")[:2] == (0, "The two profiles say the same.\n")


def test_diff_that_only_takes_away(capsys: pytest.CaptureFixture[str], here: Path) -> None:
    (here / "less").write_text(SOUND.replace("python-import=json\n", ""))
    status, out, _ = run(capsys, "diff", "sound", "less")
    assert status == 0
    assert "Nothing more is allowed" in out


# doctor


def test_doctor(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = run(capsys, "doctor")
    report: dict[str, Any] = json.loads(run(capsys, "--json", "doctor")[1])
    usable = {provider["name"] for provider in report["providers"] if provider["usable"]}
    assert status == (0 if usable - {"none", "subprocess"} else 1)
    assert {provider["name"] for provider in report["providers"]} >= {"landlock", "subprocess", "none"}
    assert report["interpreter"]["executable"] == sys.executable
    assert report["interpreter"]["problem"] == ""
    assert {feature["name"] for feature in report["features"]} >= {"landlock", "namespaces"}
    for text in ("landlock", "kernel features", sys.executable):
        assert text in out


# the command as such


@pytest.mark.parametrize(
    "command",
    [("check", "sound"), ("explain", "sound", "eval"), ("explain", "sound"), ("diff", "sound", "doubtful"), ("doctor",)],
)
def test_json_before_and_after_the_command(capsys: pytest.CaptureFixture[str], here: Path, command: tuple[str, ...]) -> None:
    status, out, _ = run(capsys, "--json", *command)
    assert run(capsys, *command, "--json")[:2] == (status, out)
    assert isinstance(json.loads(out), dict)
    assert run(capsys, *command)[0] == status


def test_a_mistake_in_the_call(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in ([], ["nothing"], ["diff", "one"]):
        with pytest.raises(SystemExit) as end:
            run(capsys, *arguments)
        assert end.value.code == 2


def test_explain_takes_the_profile_in_place(capsys: pytest.CaptureFixture[str], here: Path) -> None:
    shutil.copy(here / "sound", here / ".py-sandboxes")
    status, out, err = run(capsys, "explain")
    assert status == 0, err
    assert out == run(capsys, "explain", ".py-sandboxes")[1]


@pytest.mark.parametrize("question", [["open /etc/passwd"], ["open", "/etc/passwd"], ["eval"], ["connect", "127.0.0.1:9"]])
def test_explain_takes_a_question_about_the_profile_in_place(
    capsys: pytest.CaptureFixture[str], here: Path, question: list[str]
) -> None:
    shutil.copy(here / "sound", here / ".py-sandboxes")
    status, out, err = run(capsys, "explain", *question)
    assert (status, out) == run(capsys, "explain", ".py-sandboxes", *question)[:2], err
    (here / question[0].split("/")[0]).touch()  # a file of that name is a profile
    assert run(capsys, "explain", question[0].split("/")[0])[1] != out


def test_an_error_of_the_engine_is_told_as_such(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    from pysandboxes import _core

    def fail(*_: Any) -> str:
        raise RuntimeError('{"kind":"ConfigSyntaxError","message":"p:3: no","file":"p","line":3}')

    monkeypatch.setattr(_core, "control_CheckProfile", fail)
    assert run(capsys, "check", "p") == (2, "", "pysandboxes: p:3: no\n")


def on_a_terminal(folder: Path, environment: dict[str, str]) -> str:
    """What ``pysandboxes check`` writes to a terminal."""
    main, side = pty.openpty()
    command = [sys.executable, "-m", "pysandboxes._cli", "check", "doubtful"]
    process = subprocess.Popen(
        command, cwd=folder, stdin=side, stdout=side, stderr=side, env={**os.environ, "TERM": "xterm", **environment}
    )
    os.close(side)
    written = b""
    try:
        while piece := os.read(main, 65536):
            written += piece
    except OSError:  # the other side is closed: Linux says EIO
        pass
    os.close(main)
    assert process.wait(60) == 1, written
    return written.decode()


def test_colour_is_for_terminals(capsys: pytest.CaptureFixture[str], here: Path) -> None:
    coloured = on_a_terminal(here, {"NO_COLOR": ""})
    assert "\033[" in coloured
    for environment in ({"NO_COLOR": "1"}, {"NO_COLOR": "", "TERM": "dumb"}):
        assert "\033" not in on_a_terminal(here, environment)
    piped = run(capsys, "check", "doubtful")[1]
    assert "\033" not in piped
    assert re.sub(r"\033\[[0-9;]*m", "", coloured).replace("\r\n", "\n") == piped


def test_a_reader_that_leaves_is_no_error(here: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "pysandboxes._cli", "explain", "sound"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=here
    )
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    assert process.stderr.read() == b""
    assert process.wait(60) == 0


def test_paths_that_are_no_text(capsys: pytest.CaptureFixture[str], here: Path) -> None:
    odd = os.fsdecode(b"caf\xe9")
    (here / odd).write_text("python-import=json\n")
    status, out, _ = run(capsys, "check", odd)
    assert status == 0
    assert "\\udce9" in out


def test_by_the_interpreter(tmp_path: Path) -> None:
    """`python -m pysandboxes` is the command, where no script of it is on PATH."""
    (tmp_path / ".py-sandboxes").write_text("python-import=json\n")
    done = subprocess.run([sys.executable, "-m", "pysandboxes", "check"], cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, ""), done
    usage = subprocess.run([sys.executable, "-m", "pysandboxes", "no-such"], cwd=tmp_path, capture_output=True, text=True)
    assert usage.returncode == 2
    assert usage.stderr.startswith("usage: pysandboxes"), usage.stderr
