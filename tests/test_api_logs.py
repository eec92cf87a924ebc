"""Log records of a sandbox in the application's loggers: every field was chosen by the sandbox."""

from __future__ import annotations

import logging
import subprocess
import sys
from collections.abc import Iterator

import pytest

from pysandboxes import _logs


@pytest.fixture(autouse=True)
def loggers() -> Iterator[None]:
    """The loggers as they were: logging keeps each for ever."""
    before = dict(logging.root.manager.loggerDict)
    made = set(_logs._made)
    yield
    logging.root.manager.loggerDict.clear()
    logging.root.manager.loggerDict.update(before)
    _logs._made.clear()
    _logs._made.update(made)


def record(**fields: object) -> dict[str, object]:
    return {"name": "tool", "levelno": logging.ERROR, "msg": "hello", "created": 1e9, **fields}


def test_a_record_goes_to_the_logger_of_its_name(caplog: pytest.LogCaptureFixture) -> None:
    _logs.handle(record(name="a.tool"))
    assert [(r.name, r.message, r.created) for r in caplog.records] == [("a.tool", "hello", 1e9)]


def test_a_name_of_many_parts_makes_no_loggers(caplog: pytest.LogCaptureFixture) -> None:
    logging.getLogger("a.tool")
    before = len(logging.root.manager.loggerDict)
    for end in ("x", "y"):
        _logs.handle(record(name="a.tool." + ".".join([end] * 30_000)))
    assert len(logging.root.manager.loggerDict) == before
    assert [r.name for r in caplog.records] == ["a.tool." + ".".join([end] * 30_000) for end in "xy"]


def test_the_loggers_that_a_sandbox_makes_are_bounded(caplog: pytest.LogCaptureFixture) -> None:
    before = len(logging.root.manager.loggerDict)
    for number in range(_logs.MAX_LOGGERS + 50):
        _logs.handle(record(name=f"n{number}"))
    assert len(logging.root.manager.loggerDict) <= before + _logs.MAX_LOGGERS
    assert len(caplog.records) == _logs.MAX_LOGGERS + 50


@pytest.mark.parametrize("created", [-1e18, 1e300, 1 << 63, 10**17])
def test_a_time_that_no_clock_shows_is_left_out(created: float) -> None:
    shown: list[str] = []

    class Shows(logging.Handler):
        def emit(self, found: logging.LogRecord) -> None:
            shown.append(self.format(found))

    handler = Shows()
    handler.setFormatter(logging.Formatter("%(asctime)s %(message)s"))
    logger = logging.getLogger("timed")
    logger.addHandler(handler)
    try:
        _logs.handle(record(name="timed", created=created))
    finally:
        logger.removeHandler(handler)
    assert [text[-5:] for text in shown] == ["hello"]


WHILE_LOADING = """\
import sys
from pysandboxes._logs import Forwarder

sent = []
forwarder = Forwarder(sent.append, 20)
forwarder.watch()

def line(frame, event, arg):
    forwarder.install()  # as a call of another thread does, wherever the import has come to
    return line

def call(frame, event, arg):
    return line if frame.f_code.co_filename.endswith("logging/__init__.py") else None

sys.settrace(call)
import logging
sys.settrace(None)
print(len(logging.root.handlers), logging.root.level)
logging.getLogger("a").info("told")
print([record["msg"] for record in sent])
"""


def test_a_call_while_another_thread_loads_logging() -> None:
    done = subprocess.run([sys.executable, "-c", WHILE_LOADING], capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.stderr) == ("1 20\n['told']\n", "")
