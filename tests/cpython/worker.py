"""Runs one module of CPython's test suite and writes what became of each method, one JSON array a line.

    worker.py OUT MODULE [held] [+RESOURCE...] [PATTERN...]

`held` makes sure that this process is sandboxed: one refused function is tried before and after the tests. Lines are
``[id, outcome, words]``; a line ``[id, "started", ""]`` goes before each, so that a crash and a hang have a name.
"""

from __future__ import annotations

import fnmatch
import json
import os
import sys
import time
import unittest
from typing import Any

#: An outcome counts over those before it: subtests and clean-ups may still fail what has passed.
RANK = ["passed", "skipped", "expected failure", "unexpected success", "failed", "error"]
Line = tuple[str, str, str]


class Outcomes(unittest.TestResult):
    """Writes every outcome as it comes."""

    def __init__(self, out: Any) -> None:
        super().__init__()
        self.out = out
        self.worst: dict[str, str] = {}

    def write(self, test: Any, outcome: str, words: str = "") -> None:
        name = type(test).id(test)  # some tests have an attribute of that name
        if outcome in RANK:
            before = self.worst.get(name)
            if before is not None and RANK.index(before) >= RANK.index(outcome):
                return
            self.worst[name] = outcome
        self.out.write(json.dumps([name, outcome, words[-3000:]]) + "\n")
        self.out.flush()

    def startTest(self, test: Any) -> None:
        super().startTest(test)
        self.write(test, "started")

    def addSuccess(self, test: Any) -> None:
        self.write(test, "passed")

    def addSkip(self, test: Any, reason: str) -> None:
        self.write(test, "skipped", reason)

    def addFailure(self, test: Any, err: Any) -> None:
        self.write(test, "failed", self._exc_info_to_string(err, test))  # type: ignore[attr-defined]

    def addError(self, test: Any, err: Any) -> None:
        self.write(test, "error", self._exc_info_to_string(err, test))  # type: ignore[attr-defined]

    def addExpectedFailure(self, test: Any, err: Any) -> None:
        self.write(test, "expected failure")

    def addUnexpectedSuccess(self, test: Any) -> None:
        self.write(test, "unexpected success")

    def addSubTest(self, test: Any, subtest: Any, err: Any) -> None:
        if err is not None:
            (self.addFailure if issubclass(err[0], test.failureException) else self.addError)(test, err)


def chosen(suite: Any, patterns: list[str]) -> unittest.TestSuite:
    """The tests of a suite that one of the patterns names; `!` before a pattern leaves out, and wins."""
    out = unittest.TestSuite()
    for test in suite:
        if isinstance(test, unittest.BaseTestSuite):
            out.addTest(chosen(test, patterns))
            continue
        wanted = [p for p in patterns if not p.startswith("!")]
        if any(fnmatch.fnmatchcase(test.id(), p[1:]) for p in patterns if p.startswith("!")):
            continue
        if not wanted or any(fnmatch.fnmatchcase(test.id(), p) for p in wanted):
            out.addTest(test)
    return out


def live_denial() -> int:
    """The profile allows everything but this: it must be refused, by the rule and by nothing else. How often it was: 1."""
    from pysandboxes import _guard

    try:
        os.login_tty(-1)
    except _guard.RuleApiPermissionError:
        if _guard.active():
            return 1
    raise SystemExit("worker: this process is not held: os.login_tty was not refused")


def main() -> None:
    name, module, *patterns = sys.argv[1:]
    held = "held" in patterns
    resources = [p[1:] for p in patterns if p.startswith("+")]
    patterns = [p for p in patterns if p != "held" and not p.startswith("+")]
    # The kernel gives up on a core dump where its limit is 0; the suite crashes interpreters on purpose.
    import resource

    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    refused = live_denial() if held else 0
    from test import support

    support.use_resources = resources  # commonly none: no network but loopback, no gigabytes, no sound
    support.verbose = 0
    start = time.monotonic()
    with open(name, "w", encoding="utf-8", errors="backslashreplace") as out:  # noqa: PTH123
        result = Outcomes(out)
        try:
            writing, sys.dont_write_bytecode = sys.dont_write_bytecode, True  # the suite's folder is the interpreter's
            suite = unittest.defaultTestLoader.loadTestsFromName("test." + module)
            sys.dont_write_bytecode = writing
        except unittest.SkipTest as reason:
            out.write(json.dumps([module, "skipped", str(reason)]) + "\n")
        else:
            chosen(suite, patterns).run(result)
        judged = 0
        if held:
            refused += live_denial()
            from pysandboxes import _guard

            judged = _guard.judged()
            if not judged:
                raise SystemExit("worker: the guard judged nothing")
        out.write(json.dumps(["", "end", f"{judged} {refused} {time.monotonic() - start:.1f}"]) + "\n")


if __name__ == "__main__":
    main()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)  # what a test left behind (threads, processes) must not hold the run
