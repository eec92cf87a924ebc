"""An end for a guarded string that hangs in one call of C which looks for signals, as a regex does: on the main thread alone.

The signal is SIGALRM. Where the application has a handler for it or a timer, nothing is set: then that call is not interrupted.
"""

from __future__ import annotations

import signal
import threading

from ._guard import EvalInterrupted, active

#: Seconds after the time of an evaluation: what looks at the clock by itself shall be the first to say so.
LATE = 0.05
#: Seconds between two more signals, for what caught the first one.
AGAIN = 0.05

_running = False


def _ring(_number: int, _frame: object) -> None:
    if _running:
        raise EvalInterrupted("the evaluated code was stopped: it passed eval-timeout. A larger value would let it go on.")


def set_for(seconds: float) -> bool:
    """Sets the alarm if that is possible; then :func:`end` has to follow."""
    global _running
    if (
        active()
        or threading.current_thread() is not threading.main_thread()
        or signal.getsignal(signal.SIGALRM) is not signal.SIG_DFL
        or signal.getitimer(signal.ITIMER_REAL)[0]
    ):
        return False
    try:
        signal.signal(signal.SIGALRM, _ring)
    except ValueError:  # a sub-interpreter has no signals
        return False
    _running = True
    signal.setitimer(signal.ITIMER_REAL, seconds + LATE, AGAIN)
    return True


def end() -> None:
    """Takes the alarm away. A signal that has come meanwhile does nothing."""
    global _running
    _running = False
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
