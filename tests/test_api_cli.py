"""The pysandboxes command."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pysandboxes import _cli


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    status = _cli.main(arguments)
    captured = capsys.readouterr()
    return status, captured.out, captured.err


def test_doctor(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = run(capsys, "doctor")
    assert status == 0
    for provider in ("landlock", "subprocess"):
        assert provider in out
    report = json.loads(run(capsys, "--json", "doctor")[1])
    assert {provider["name"] for provider in report["providers"]} >= {"landlock", "subprocess", "none"}


def test_check(capsys: pytest.CaptureFixture[str], profile: Path, tmp_path: Path) -> None:
    status, out, _ = run(capsys, "check", str(profile))
    assert (status, "it loads" in out) == (0, True)
    bad = tmp_path / "bad"
    bad.write_text("net=ALLOW|tpc|x|1|OUT\n")
    status, _, err = run(capsys, "check", str(bad))
    assert status == 1
    assert f"{bad}:1" in err
    status, _, err = run(capsys, "check", str(tmp_path / "missing"))
    assert (status, "missing" in err) == (1, True)


@pytest.mark.parametrize(
    ("question", "allowed", "words"),
    [
        (["open", "/etc/passwd"], False, "expose-ro=/etc/passwd"),
        (["open", __file__], True, "expose-ro"),
        (["import", "json"], True, "python-import"),
        (["call", "os.system"], False, "python-api=ALLOW:os.system"),
        (["connect", "192.0.2.1:443"], False, "DENIED"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_explain(capsys: pytest.CaptureFixture[str], profile: Path, question: list[str], allowed: bool, words: str) -> None:
    status, out, err = run(capsys, "explain", str(profile), *question)
    assert status == (0 if allowed else 1), err
    assert words in out


def test_a_mistake_in_the_call(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in ([], ["nothing"], ["explain"]):
        with pytest.raises(SystemExit) as end:
            run(capsys, *arguments)
        assert end.value.code == 2


def test_an_error_of_the_engine_is_told_as_such(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    from pysandboxes import _core

    def fail(*_: Any) -> str:
        raise RuntimeError('{"kind":"ConfigSyntaxError","message":"p:3: no","file":"p","line":3}')

    monkeypatch.setattr(_core, "control_CheckProfile", fail)
    assert run(capsys, "check", "p") == (1, "", "pysandboxes: p:3: no\n")
