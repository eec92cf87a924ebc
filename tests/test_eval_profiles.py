"""The ready-made profiles of docs/evaluated-profiles.md: each accepts and refuses what stands beside it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pysandboxes import EvalInterrupted, guarded_eval

pytestmark = pytest.mark.smoke

PAGE = (Path(__file__).resolve().parent.parent / "docs" / "evaluated-profiles.md").read_text()
BLOCK = re.compile(r"^## (.+?)$.*?```text\n(.*?)```.*?```python\n(.*?)```", re.MULTILINE | re.DOTALL)
SECTIONS = [(title, *blocks) for title, *blocks in BLOCK.findall(PAGE)]


def rows(examples: str) -> dict[str, dict[str, object]]:
    space: dict[str, dict[str, object]] = {"accepts": {}, "refuses": {}}
    exec(examples, space)
    return space


CASES = [(title, verb, source) for title, _, text in SECTIONS for verb in ("accepts", "refuses") for source in rows(text)[verb]]


def test_each_section_is_read():
    assert len(SECTIONS) == len(re.findall("^## ", PAGE, re.MULTILINE)) >= 7


@pytest.mark.parametrize(("title", "verb", "source"), CASES)
def test_example(tmp_path, monkeypatch, title, verb, source):
    _, rules, text = next(section for section in SECTIONS if section[0] == title)
    space = rows(text)
    (tmp_path / ".py-sandboxes").write_text(rules)
    monkeypatch.chdir(tmp_path)
    profile = re.search("eval-[a-z-]+:([a-z]+)=", rules)[1]
    names = dict(space["names"])
    wanted = space[verb][source]
    if verb == "refuses":
        with pytest.raises((Exception, EvalInterrupted)) as caught:
            guarded_eval(source, profile=profile, names=names)
        assert str(wanted) in str(caught.value)
        return
    value = guarded_eval(source, profile=profile, names=names)
    if isinstance(wanted, dict) and value is None:
        value = {name: names[name] for name in wanted}
    assert value == wanted
