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

import pysandboxes

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
PAGES = [*DOCS.rglob("*.md"), *ROOT.glob("*.md"), *(ROOT / "samples").glob("*/README.md")]
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
@pytest.mark.parametrize("page", ["usage.md", "quick-start.md", "evaluated.md"])
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


def headings(page: Path) -> set[str]:
    """The anchors that a page's headings make."""
    found = re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in found}


def dead_links(page: Path) -> list[str]:
    dead = []
    for link in re.findall(r"\]\(([^)\s]+)\)", page.read_text()):
        if "://" in link:
            continue
        name, _, anchor = link.partition("#")
        target = page.parent / name if name else page
        if not target.exists() or (anchor and target.suffix == ".md" and anchor not in headings(target)):
            dead.append(link)
    return dead


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    assert dead_links(page) == []


def test_a_dead_link_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# A `b`: c\n[x](page.md#a-b-c) [y](gone.md) [z](#gone) [w](https://example.com/gone)\n")
    assert dead_links(page) == ["gone.md", "#gone"]


def test_the_usage_page_has_every_public_name() -> None:
    text = (DOCS / "usage.md").read_text()
    missing = [name for name in pysandboxes.__all__ if not re.search(rf"\b{name}\b", text)]
    assert missing == ["__version__"]


@pytest.mark.parametrize("skill", sorted((DOCS / "coding-agents").glob("*/SKILL.md")), ids=lambda path: path.parent.name)
def test_instructions_for_agents_name_what_there_is(skill: Path) -> None:
    text = skill.read_text()
    head, _, body = text.removeprefix("---\n").partition("\n---\n")
    fields = dict(line.split(": ", 1) for line in head.splitlines())
    assert fields["name"] == skill.parent.name
    assert 50 < len(fields["description"]) < 400
    assert re.search(r"\*\*Do not .* yourself", body, re.DOTALL), "the person decides"
    known = {option for path in ("_cli.py", "_pytest_plugin.py") for option in re.findall(r'"(--[a-z-]+)"', package(path))}
    for command in re.findall(r"pysandboxes (\w+) ", body):
        assert f'"{command}"' in package("_cli.py"), command
    for option in re.findall(r"(?:pysandboxes|pytest) [^\n`]*?(--[a-z-]+)", body):
        assert option in known, option


def package(name: str) -> str:
    return (ROOT / "pysandboxes" / name).read_text()
