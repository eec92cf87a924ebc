"""What the module of a sandboxed function may not do while the sandbox imports it is what the caller is told of."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

Run = Callable[..., subprocess.CompletedProcess[str]]

TOOL = """
import json
import csv
open("/etc/hostname").close()
from pysandboxes import sandbox

@sandbox
def write(value): return json.dumps(value)
"""
MISSING = """
from pysandboxes import is_in_sandbox
if is_in_sandbox(): import no_such_module
"""
APP = """
import os
from pysandboxes import sandbox_denials, sandboxes
import tool

if __name__ == "__main__":
    with sandboxes(sandboxes_config=os.environ["PROFILE"]):
        try:
            print(tool.write([1]))
        except BaseException as error:
            print(type(error).__name__, sandbox_denials(error)[-1].splitlines()[-1].strip(), len(sandbox_denials(error)))
"""


@pytest.mark.smoke
@pytest.mark.parametrize("exposed", ["./tool.py", "."])
def test_each_line_that_is_missing_is_named_in_its_turn(tmp_path: Path, run_program: Run, exposed: str) -> None:
    (tmp_path / "tool.py").write_text(TOOL)
    profile = tmp_path / ".py-sandboxes"
    lines = ["os-sandbox=${OS_SANDBOX:-auto}", f"expose-ro={exposed}"]
    told = []
    for _ in range(4):
        profile.write_text("\n".join(lines) + "\n")
        done = run_program(APP, profile=profile)
        assert done.returncode == 0, done.stderr
        told.append(done.stdout.strip())
        lines.append(done.stdout.split()[1] if done.stdout.startswith("Rule") else "")
    assert told == [
        "RuleModuleNotFoundError python-import=json 1",
        "RuleModuleNotFoundError python-import=csv 1",
        "RuleFileNotFoundError expose-ro=/etc/hostname 1",
        "[1]",
    ]


def test_a_module_that_may_not_be_read_is_named_itself(tmp_path: Path, run_program: Run) -> None:
    (tmp_path / "tool.py").write_text(TOOL)
    profile = tmp_path / ".py-sandboxes"
    profile.write_text("os-sandbox=${OS_SANDBOX:-auto}\npython-import=*\n")
    done = run_program(APP, profile=profile)
    assert done.stdout.startswith("RuleModuleNotFoundError expose-ro="), done.stdout + done.stderr


def test_what_is_not_there_is_no_refusal(tmp_path: Path, run_program: Run) -> None:
    (tmp_path / "tool.py").write_text(TOOL.replace("import csv", MISSING))
    profile = tmp_path / ".py-sandboxes"
    profile.write_text("os-sandbox=${OS_SANDBOX:-auto}\npython-import=*\nexpose-ro=./tool.py\n")
    done = run_program(APP.replace("sandbox_denials(error)[-1].splitlines()[-1].strip()", "error"), profile=profile)
    assert done.stdout.strip() == "ModuleNotFoundError No module named 'no_such_module' 0", done.stderr
