"""The pytest plugin: what tests teach, whose name stands behind a rule, and what holds while a suite runs."""

from __future__ import annotations

import re
import subprocess

import pytest
from complete_mode import Place

pytestmark = pytest.mark.smoke

TOOLS = """\
    import os
    from pysandboxes import sandbox

    @sandbox
    def read(path):
        with open(path) as file:
            return file.read()

    @sandbox
    def hidden(path):
        try:
            return read(path)
        except OSError:
            pass
        raise ValueError("there is no such thing")

    @sandbox
    def variable(name):
        return os.environ.get(name)

    @sandbox
    def inside():
        from pysandboxes import is_in_sandbox
        return is_in_sandbox()
    """

PROFILE = "python-import=tools, os, pysandboxes\nexpose-ro=./tools.py\nexpose-ro=./data/a.txt\n"


@pytest.fixture
def suite(place: Place) -> Place:
    place.file("tools.py", TOOLS)
    place.file("data/a.txt", "a")
    place.file("other/b.txt", "b")
    place.file("pytest.ini", "[pytest]\npythonpath = .\n")
    return place


def run(place: Place, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Pytest in the folder of a place, in a process of its own."""
    return place.bare("-m", "pytest", "-p", "no:cacheprovider", *arguments)


def learned(place: Place, name: str = "learned") -> dict[str, str]:
    """The rules of a profile with their comments."""
    lines = (place.folder / name).read_text().splitlines()
    pairs = (line.partition("  # ") for line in lines if " for test_" in line)
    return {rule: comment for rule, _, comment in pairs}


TESTS = """\
    import pytest, tools

    def test_fixture(sandboxed):
        assert sandboxed.pid > 0
        assert tools.read("data/a.txt") == "a"

    @pytest.mark.sandbox_learn
    def test_marked():
        assert tools.variable("SHOWN") == "yes"

    @pytest.mark.sandbox_learn(False)
    def test_hostile(sandboxed):
        with pytest.raises(FileNotFoundError):
            tools.read("other/b.txt")
    """


def test_learned_by_test_then_held(suite: Place) -> None:
    suite.file("test_it.py", TESTS)
    suite.profile(PROFILE)
    suite.environment["SHOWN"] = "yes"
    done = run(suite, "--sandbox-learn=learned", "-v")
    assert done.returncode == 0, done.stdout
    assert f"LEARNING into {suite.folder}/learned: everything is allowed and recorded" in done.stdout
    rules = learned(suite)
    assert re.fullmatch(r"tools\.py:\d+ for test_it\.py::test_marked", rules["env=SHOWN=${SHOWN}"]), rules
    assert not any("other" in rule for rule in rules), "a test that is not to be trusted teaches nothing"
    assert "test_it.py::test_fixture" in rules["expose-ro=./data"], "another file is whole by itself"
    new = int(re.search(r"(\d+) new rules?; check this file: ", done.stdout)[1])  # type: ignore[index]
    assert new == len([*rules]) >= 1
    assert "env=SHOWN=${SHOWN}  # tools.py" in done.stdout

    again = run(suite, "--sandbox-learn=learned")
    assert "nothing new; check this file" in again.stdout
    assert learned(suite) == rules

    held = run(suite, "-v", "--sandbox-profile=learned")
    assert held.returncode == 0, held.stdout


def test_a_new_profile_is_learned_from_nothing(suite: Place) -> None:
    suite.file("test_it.py", TESTS.replace("test_hostile(sandboxed)", "hostile(sandboxed)"))
    suite.environment["SHOWN"] = "yes"
    done = run(suite, "--sandbox-learn=.py-sandboxes")
    assert done.returncode == 0, done.stdout
    assert "test_it.py::test_fixture" in learned(suite, ".py-sandboxes")["expose-ro=./data"]
    held = run(suite)
    assert held.returncode == 0, held.stdout


@pytest.mark.parametrize("function", ["read", "hidden"])
def test_a_failure_says_once_what_was_refused(suite: Place, function: str) -> None:
    suite.file("test_it.py", f'import tools\ndef test_other(sandboxed):\n    tools.{function}("other/b.txt")\n')
    suite.profile(PROFILE)
    done = run(suite)
    assert done.returncode == 1
    assert re.search(r"^(E )? +expose-ro=\./other/b\.txt$", done.stdout, re.MULTILINE), done.stdout
    assert ("refused by the sandbox" in done.stdout) is (function == "hidden")


SHARED = """\
    import pytest, tools

    @pytest.fixture(scope="module")
    def early():
        return tools.inside()

    def test_first(early):
        assert early and tools.inside()

    def test_refused():
        with pytest.raises(FileNotFoundError):
            tools.read("other/b.txt")

    def test_own(sandboxed):
        assert tools.inside()
    """


@pytest.mark.parametrize("workers", [(), ("-n2",)], ids=["one process", "xdist"])
def test_a_profile_is_held_while_a_suite_runs(suite: Place, workers: tuple[str, ...]) -> None:
    suite.file("test_it.py", SHARED)
    (suite.folder / "held").write_text(PROFILE)
    done = run(suite, "--sandbox-profile=held", *workers)
    assert done.returncode == 0, done.stdout
    bare = run(suite)
    assert "no sandbox is running here" in bare.stdout, "without the option there is none"


def test_workers_lose_nothing_of_each_other(suite: Place) -> None:
    names = [f"N{number}" for number in range(12)]
    suite.environment.update(dict.fromkeys(names, "yes"))
    suite.file(
        "test_it.py",
        f"""\
        import pytest, tools
        @pytest.mark.sandbox_learn
        @pytest.mark.parametrize("name", {names})
        def test_variable(name):
            assert tools.variable(name) == "yes"
        """,
    )
    suite.profile(PROFILE)
    done = run(suite, "--sandbox-learn=learned", "-n2")
    assert done.returncode == 0, done.stdout
    rules = learned(suite)
    for name in names:
        assert rules[f"env={name}=${{{name}}}"].endswith(f"for test_it.py::test_variable[{name}]")
    assert f"{len(rules)} new rules" in done.stdout, done.stdout


MISTAKES = {
    "missing": (("--sandbox-profile=gone",), "--sandbox-profile: there is no file "),
    "folder": (("--sandbox-learn=data",), "is a folder"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_are_told_before_any_test(suite: Place, name: str) -> None:
    arguments, words = MISTAKES[name]
    suite.file("test_it.py", "def test_it():\n    pass\n")
    done = run(suite, *arguments)
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert words in done.stderr and "Traceback" not in done.stderr, done.stderr


def test_learning_may_be_forbidden(suite: Place) -> None:
    suite.file("test_it.py", "def test_it():\n    pass\n")
    suite.environment["PYSANDBOXES_LEARN"] = "never"
    done = run(suite, "--sandbox-learn=learned")
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert "PYSANDBOXES_LEARN=never is set" in done.stderr
    assert not (suite.folder / "learned").exists()


def test_it_can_be_left_out_and_costs_nothing_unasked(suite: Place) -> None:
    suite.file("test_it.py", 'import sys\ndef test_it():\n    assert "pysandboxes._live" not in sys.modules\n')
    assert run(suite).returncode == 0
    assert run(suite, "-p", "no:pysandboxes").returncode == 0
    done = run(suite, "-p", "no:pysandboxes", "--sandbox-learn=x")
    assert "unrecognized arguments" in done.stderr
