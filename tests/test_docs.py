"""The pages of docs/ that show programs and their output: each is played from top to bottom in a folder of its own.

A fenced block whose first line is ``# NAME`` is the file of that name; a ``console`` block is commands, each after ``$ ``, and
what they print.
"""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest
from complete_mode import BIN

DOCS = Path(__file__).resolve().parent.parent / "docs"
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
#: What pages call the folder that the test plays them in.
SHOWN = "/home/you/project"


def blocks(page: str) -> list[tuple[str, str]]:
    """The fenced blocks of a page: language and text."""
    return [(found[1], found[2]) for found in FENCE.finditer((DOCS / page).read_text())]


def commands(block: str) -> list[tuple[str, str]]:
    """The commands of a console block, each with what it prints."""
    return [
        (command, shown) for command, _, shown in (part.partition("\n") for part in re.split(r"^\$ ", block, flags=re.M)[1:])
    ]


def write(folder: Path, text: str) -> None:
    """Write the file that a block is; the name stays in it where that is a comment of its language."""
    head, _, rest = text.partition("\n")
    path = folder / head.removeprefix("# ")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(rest)


@pytest.mark.smoke
@pytest.mark.parametrize("page", ["usage.md", "quick-start.md"])
def test_a_page_is_what_happens(page: str, tmp_path: Path) -> None:
    home, project = tmp_path / "home", tmp_path / "project"
    home.mkdir()
    project.mkdir()
    kept = {name: value for name, value in os.environ.items() if name in ("TMPDIR", "LANG")}  # the default provider
    environment = {"HOME": str(home), "PATH": f"{BIN}:/usr/bin:/bin", **kept}
    played = 0
    for language, text in blocks(page):
        if text.startswith("# "):
            write(project, text)
        if language != "console":
            continue
        for command, shown in commands(text):
            done = subprocess.run(
                ["bash", "-c", command],
                cwd=project,
                env=environment,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=60,
            )
            printed = (done.stdout + done.stderr).replace(str(project.resolve()), SHOWN)
            assert printed.rstrip() == shown.rstrip(), f"docs/{page}: $ {command}"
            played += 1
    assert played


def test_a_block_that_is_no_file_is_not_written(tmp_path: Path) -> None:
    assert commands("$ a\nx\ny\n$ b\n") == [("a", "x\ny\n"), ("b", "")]
    write(tmp_path, "# deep/file.py\nx = 1\n")
    assert (tmp_path / "deep/file.py").read_text() == "x = 1\n"
