"""The pytest plugin: a profile learned from tests, one test at a time, and held while a suite runs.

Comes with the package (entry point ``pytest11``); ``-p no:pysandboxes`` leaves it out. It adds

- the fixture ``sandboxed``: a sandbox of the test's own, as ``with sandboxes() as handle`` gives it;
- the marker ``sandbox_learn``: the test gets that fixture without asking for it; ``sandbox_learn(False)``: never learn from
  this test, because what it hands to functions is not to be trusted;
- ``--sandbox-profile=FILE``: hold this profile. All tests share one sandbox a process, but for those with the fixture;
- ``--sandbox-learn=FILE``: allow everything in the tests with the fixture or the marker, and write what the file
  does not grant yet into it, with the test's id behind each rule. Workers of pytest-xdist write one after the other.

A failed test has the refusals behind its exception in a section of its report, each with the line that would allow it, where
the exception does not say them itself.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ._context import inside, sandboxes
from ._exceptions import SandBoxError, sandbox_denials
from ._spec import learn_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    from ._context import Handle

MARKER = "sandbox_learn"


class _Options:
    """What the command line asks for, and the sandbox that the tests share."""

    def __init__(self, config: pytest.Config) -> None:
        self.profile = self._file(config, "sandbox_profile")
        self.learn = self._file(config, "sandbox_learn")
        self.before = _rules(self.learn)
        self.shared: sandboxes | None = None
        if self.learn is not None:
            if inside():
                raise pytest.UsageError(
                    "--sandbox-learn: the suite itself is sandboxed; learn it whole: python-sb --learn -m pytest"
                )
            try:
                learn_of(self.learn)
            except SandBoxError as exc:
                raise pytest.UsageError(f"--sandbox-learn: {exc}") from None
        if self.profile is not None and not self.profile.is_file():
            raise pytest.UsageError(f"--sandbox-profile: there is no file {self.profile}")

    @staticmethod
    def _file(config: pytest.Config, name: str) -> Path | None:
        value = config.getoption(name)
        return Path(os.path.abspath(value)) if value else None  # noqa: PTH100 (links stay as they were named)

    def share(self) -> None:
        """Open what the tests share, before the first of them and its fixtures."""
        if self.profile is not None and self.shared is None and not inside():
            shared = sandboxes(sandboxes_config=self.profile)
            shared.__enter__()
            self.shared = shared

    def end(self) -> None:
        shared, self.shared = self.shared, None
        if shared is not None:
            shared.__exit__(None, None, None)


_OPTIONS = pytest.StashKey[_Options]()


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("sandbox", "pysandboxes")
    group.addoption("--sandbox-profile", metavar="FILE", help="hold this profile for the sandboxed functions that tests call")
    group.addoption(
        "--sandbox-learn",
        metavar="FILE",
        help=f"write what tests with the fixture sandboxed or the marker {MARKER} need; for trusted code and input alone",
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers", f"{MARKER}(learn=True): run in a sandbox of its own and learn from it; False: never learn from this test"
    )
    config.stash[_OPTIONS] = _Options(config)


def pytest_report_header(config: pytest.Config) -> list[str]:
    options = config.stash[_OPTIONS]
    lines = []
    if options.profile is not None:
        lines.append(f"sandbox: functions run under {options.profile}")
    if options.learn is not None:
        lines.append(
            f"sandbox: LEARNING into {options.learn}: everything is allowed and recorded. "
            "Never do this with code or input that you do not trust."
        )
    return lines


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        names = getattr(item, "fixturenames", None)
        if item.get_closest_marker(MARKER) is not None and names is not None and "sandboxed" not in names:
            names.insert(0, "sandboxed")


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    item.config.stash[_OPTIONS].share()


def pytest_unconfigure(config: pytest.Config) -> None:
    options = config.stash.get(_OPTIONS, None)
    if options is not None:
        options.end()


@pytest.fixture
def sandboxed(request: pytest.FixtureRequest) -> Iterator[Handle]:
    """A sandbox of this test's own; the functions of ``@sandbox`` that it calls run there.

    Under ``--sandbox-learn`` it learns. Else it runs under ``--sandbox-profile``, or the profile that ``sandboxes()`` finds.
    Gives the handle of ``with sandboxes()``. Raises what :class:`pysandboxes.sandboxes` does.
    """
    options = request.config.stash[_OPTIONS]
    marker = request.node.get_closest_marker(MARKER)
    learns = marker is None or (marker.args or (marker.kwargs.get("learn", True),))[0]
    scope = sandboxes(sandboxes_config=options.profile, learn=options.learn if learns else None)
    scope._learn_for = request.node.nodeid
    package = getattr(getattr(request, "module", None), "__package__", None)
    scope._package = package.partition(".")[0] if package and not inside() else None
    with scope as handle:
        yield handle


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.failed and call.excinfo is not None:
        told = report.longreprtext.replace("\nE  ", "\n")
        refused = [text for text in sandbox_denials(call.excinfo.value) if text.splitlines()[0] not in told]
        if refused:
            report.sections.append(("refused by the sandbox", "\n".join(refused)))
    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    options = config.stash[_OPTIONS]
    if options.learn is None:
        return
    after = _rules(options.learn)
    new = [line for rule, line in after.items() if rule not in options.before]
    terminalreporter.section("learned by the sandbox")
    for line in new:
        terminalreporter.write_line(line)
    count = f"{len(new)} new rule{'' if len(new) == 1 else 's'}" if new else "nothing new"
    terminalreporter.write_line(f"{count}; check this file: {options.learn}")


def _rules(path: Path | None) -> dict[str, str]:
    """The rules in the learned blocks of a profile, each with its line; empty where there is none."""
    try:
        text = path.read_text(encoding="utf-8", errors="surrogateescape") if path is not None else ""
    except OSError:
        return {}
    found, within = {}, False
    for line in map(str.strip, text.splitlines()):
        if line.startswith(("# <learning_", "# </learning_")):
            within = not line.startswith("# </")
        elif within and line and not line.startswith("#"):
            found[line.partition("  # ")[0]] = line
    return found
