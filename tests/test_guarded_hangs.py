"""Guarded strings that hang in one call of C: what ends them, what is said, and that the application's own alarm stays."""

from __future__ import annotations

import re
import threading
import time

import pytest
from complete_mode import Place

from pysandboxes import EvalInterrupted, RuleEvalPermissionError, guarded_eval

pytestmark = pytest.mark.smoke

RULES = """
eval-syntax=arith, import, assign, loop, exception, Pass
eval-import=re
eval-call=hang
eval-attribute=match
eval-timeout=0.2s
eval-max-leaked-threads=2
"""
REGEX = "import re\nx = re.match('(a+)+$', 'a' * 40 + 'b')"


@pytest.fixture
def profile(tmp_path, monkeypatch):
    (tmp_path / ".py-sandboxes").write_text(RULES)
    monkeypatch.chdir(tmp_path)


ALARM = "signal.getsignal(signal.SIGALRM) is signal.SIG_DFL, signal.getitimer(signal.ITIMER_REAL)[0] > 0"
OWN = {
    "nothing": "",
    "a handler": "signal.signal(signal.SIGALRM, lambda *_: None)",
    "a timer": "signal.setitimer(signal.ITIMER_REAL, 1000)",
}


def printed(place: Place, code: str) -> str:
    """By a process of its own: pytest's has an alarm already."""
    place.profile(RULES)
    done = place.bare("-c", "import signal, threading\nfrom pysandboxes import guarded_eval, EvalInterrupted\n" + code)
    assert done.returncode == 0, done.stderr
    return done.stdout


SWALLOWS = "import re\nwhile 1:\n  try:\n    x = re.match('(a+)+$', 'a' * 40 + 'b')\n  except: pass"


@pytest.mark.parametrize("source", [REGEX, SWALLOWS])
def test_a_regex_on_the_main_thread(place: Place, source: str) -> None:
    """It would take hours; and it may catch what it likes."""
    code = (
        f"try: guarded_eval({source!r}, names={{}})\n"
        "except EvalInterrupted as e: print('eval-timeout' in str(e))\n"
        f"print({ALARM}, guarded_eval('1 + 1'))"
    )
    assert printed(place, code) == "True\nTrue False 2\n"


@pytest.mark.parametrize("own", OWN)
def test_what_the_application_has_stays(place: Place, own: str) -> None:
    code = f"{OWN[own]}\nprint({ALARM})\nguarded_eval('hang(1)', names={{'hang': lambda x: x + 1}})\nprint({ALARM})"
    before, after = printed(place, code).splitlines()
    assert before == after


def test_not_on_other_threads(place: Place) -> None:
    code = (
        "def f(): print(guarded_eval('hang(1)', names={'hang': lambda x: x + 1}))\n"
        "t = threading.Thread(target=f)\nt.start(); t.join()"
    )
    assert printed(place, code) == "2\n"


def test_those_that_hang_are_counted(profile):
    """Each in a thread of its own, in a function of the context that waits; as many as the rule says, and no more begin."""
    go = threading.Event()

    def evaluate() -> None:
        with pytest.raises(EvalInterrupted):
            guarded_eval("hang(1) + 1", names={"hang": lambda _: go.wait(60)})

    def until(refused: bool) -> str:
        end = time.monotonic() + 30
        while time.monotonic() < end:
            try:
                guarded_eval("1 + 1")
            except RuleEvalPermissionError as error:
                if refused:
                    return str(error)
            else:
                if not refused:
                    return ""
            go.wait(0.05)
        raise AssertionError("it did not come to that")

    threads = [threading.Thread(target=evaluate) for _ in range(2)]
    try:
        for thread in threads:
            thread.start()
        text = until(refused=True)
        assert re.search("2 evaluated strings hang past their eval-timeout .* eval-max-leaked-threads=2", text), text
    finally:
        go.set()
        for thread in threads:
            thread.join()
    until(refused=False)


def test_in_a_sandbox_call_timeout_ends_it(place: Place) -> None:
    place.file(
        "application.py",
        "from pysandboxes import sandboxes\nfrom tools import tried\n"
        "if __name__ == '__main__':\n    with sandboxes():\n        try: tried()\n"
        "        except Exception as e: print(type(e).__name__)\n",
    )
    tools = f"from pysandboxes import sandbox, guarded_eval\n@sandbox\ndef tried():\n    guarded_eval({REGEX!r}, names={{}})\n"
    place.file("tools.py", tools)
    place.profile(RULES + "python-import=*\nexpose-ro=./tools.py\ncall-timeout=1s\n")
    done = place._run([str(place.bin / "python"), "application.py"], 60, {})
    assert "imeout" in done.stdout, done.stdout + done.stderr
