"""The samples and what README.md says of them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PARTIAL = ROOT / "samples" / "partial"


def partial_section() -> str:
    """README.md from the sample's mark to the next heading."""
    return (ROOT / "README.md").read_text().split("<!-- sample: samples/partial -->")[1].split("\n## ")[0]


def indented(after: str) -> str:
    """The indented block that follows a paragraph of the section."""
    found = re.search(rf"^{re.escape(after)}\n\n((?:    .*\n|\n)+)", partial_section(), re.MULTILINE)
    assert found is not None, f"README.md has no block after {after!r}"
    return textwrap.dedent(found[1]).strip()


@pytest.mark.smoke
def test_quick_demo_shows_what_it_promises() -> None:
    environment = dict(os.environ, NO_COLOR="1")
    done = subprocess.run(
        [sys.executable, ROOT / "samples/quick-demo/demo.py"], capture_output=True, text=True, timeout=110, env=environment
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "\x1b" not in done.stdout


def test_quick_demo_fails_where_a_step_does_not_hold() -> None:
    command = [sys.executable, ROOT / "samples/quick-demo/demo.py", "--python-sb", sys.executable]  # no sandbox at all
    done = subprocess.run(command, capture_output=True, text=True, timeout=110)
    assert done.returncode == 1
    assert "FAILED" in done.stdout


def test_readme_shows_the_partial_sample_as_it_is() -> None:
    code = re.search(r"```python\n# tools\.py\n(.*?)\n\n\n# app\.py\n(.*?)```", partial_section(), re.DOTALL)
    assert code is not None
    assert code[1] + "\n" == (PARTIAL / "tools.py").read_text()
    assert code[2] == (PARTIAL / "app.py").read_text()
    assert indented("with the profile") == (PARTIAL / ".py-sandboxes").read_text().strip()


@pytest.mark.smoke
def test_readme_shows_the_real_output_of_the_partial_sample() -> None:
    done = subprocess.run([sys.executable, "app.py"], cwd=PARTIAL, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert done.stdout.replace(str(ROOT), "/home/you/pysandboxes").strip() == indented("prints")
