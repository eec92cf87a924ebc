"""What the serving code of a sandbox may do without a rule belongs to what the application sent, not to that code."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import serving_targets

from pysandboxes import RuleApiPermissionError, sandboxes

pytestmark = pytest.mark.smoke

HERE = Path(__file__).resolve().parent
IMPORTS = "marshal,pickle,sys,collections,functools,typing,pysandboxes"


@pytest.fixture
def narrow(tmp_path: Path) -> Path:
    file = tmp_path / "narrow.py-sandboxes"
    file.write_text(f"os-sandbox=${{OS_SANDBOX:-auto}}\nexpose-ro={HERE}\n")
    return file


@pytest.mark.parametrize("way", serving_targets.WAYS)
def test_a_module_that_no_call_names_needs_a_rule(narrow: Path, way: str) -> None:
    with sandboxes(sandboxes_config=narrow, python_import=IMPORTS):
        loaded, raised = serving_targets.go(way)
        assert not loaded, raised
    with sandboxes(sandboxes_config=narrow, python_import="*"):
        loaded, raised = serving_targets.go(way)
        assert loaded, "the control: by this way the module is had where a rule allows it"


def test_a_module_that_an_argument_names_needs_none(narrow: Path) -> None:
    import graphlib

    with sandboxes(sandboxes_config=narrow, python_import=IMPORTS):
        assert serving_targets.found(graphlib.TopologicalSorter()) == ("TopologicalSorter", True)
        assert serving_targets.found(graphlib.CycleError("x")) == ("CycleError", True)


def test_a_payload_is_the_guards_own(narrow: Path) -> None:
    with sandboxes(sandboxes_config=narrow, python_import="*"), pytest.raises(TypeError, match="the application sent"):
        serving_targets.forged_payload()


def test_unpickling_and_bytecode_need_their_rule_in_the_serving_code(narrow: Path) -> None:
    with (
        sandboxes(sandboxes_config=narrow, python_import=IMPORTS),
        pytest.raises(RuleApiPermissionError, match=r"marshal\.loads"),
    ):
        serving_targets.code_of_a_task()
    with sandboxes(sandboxes_config=narrow, python_import=IMPORTS, python_api="ALLOW:marshal.loads"):
        assert serving_targets.code_of_a_task() == 7


@pytest.mark.skipif(sys.version_info < (3, 12), reason="classes of Python have no buffers")
def test_a_buffer_that_leaves_the_list_while_it_is_asked_for_lives_on(narrow: Path) -> None:
    with sandboxes(sandboxes_config=narrow, python_import=IMPORTS):
        assert serving_targets.fleeting() == b"fleeting" * 8192
        assert serving_targets.order() == ["released", "gone"]
