"""Ctrl-C at each place of ours where a call comes by and Python looks for signals: the sandbox forgets that call, and goes on.

Under load a signal comes to the rare ones too: between the call that was sent and the variable that was to know of it.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent

CALLS = {
    "a call": "interrupted_targets.pid()",
    "a large result": "interrupted_targets.give(300_000)",
    "a call that prints": "interrupted_targets.say()",
    "a call that fails": "fails()",
    "an awaited call": "awaited(interrupted_targets.pid_async)",
    "an awaited call that waits": "awaited(interrupted_targets.sleep_async, 0.001)",
    "a generator": "list(interrupted_targets.two())",
    "an async generator": "awaited(consume)",
}

PRELUDE = """\
import asyncio, dis, functools, os, sys, threading, time, traceback
sys.path.insert(0, {here!r})
import pysandboxes, interrupted_targets
from pysandboxes import sandboxes

if sys.version_info >= (3, 12):  # whose tracing of instructions misses frames
    TOOL, INSTRUCTION = sys.monitoring.DEBUGGER_ID, sys.monitoring.events.INSTRUCTION
    sys.monitoring.use_tool_id(TOOL, "test")
@functools.cache
def looks(code):
    \"\"\"Where the interpreter looks for signals: as a function begins or goes on, after a call. Also as a loop goes on, but
    that jump stands in no `try` of Python's, whatever encloses it; so it is left out.\"\"\"
    found = set()
    guarded = dis._parse_exception_table(code)
    handler = lambda at: next((g.target for g in guarded if g.start <= at < g.end), None)
    call = None
    for step in dis.get_instructions(code):
        # a signal after a call is raised by the call: at what follows it stands for that where the same handler holds both
        if step.opname == "RESUME" or (call is not None and handler(call) == handler(step.offset)):
            found.add(step.offset)
        call = step.offset if step.opname in ("CALL", "CALL_KW", "CALL_FUNCTION_EX") else None
    return found

OURS = os.path.dirname(pysandboxes.__file__)

class Interrupt:
    \"\"\"KeyboardInterrupt at the n-th place of ours that this thread comes to.\"\"\"
    def __init__(self, at):
        self.left = at
    def begin(self):
        if sys.version_info < (3, 12):
            sys.settrace(self.trace)
        else:
            sys.monitoring.register_callback(TOOL, INSTRUCTION, self.see)
            sys.monitoring.set_events(TOOL, INSTRUCTION)
    def end(self):
        if sys.version_info < (3, 12):
            sys.settrace(None)
        else:
            sys.monitoring.set_events(TOOL, 0)
    def trace(self, frame, event, arg):
        if event == "call":
            if not frame.f_code.co_filename.startswith(OURS):
                return None
            frame.f_trace_opcodes = True
        elif event == "opcode":
            self.count(frame.f_code, frame.f_lasti)
        return self.trace
    def see(self, code, offset):
        if not code.co_filename.startswith(OURS):
            return sys.monitoring.DISABLE
        if threading.get_ident() == threading.main_thread().ident:
            self.count(code, offset)
    def count(self, code, offset):
        if offset not in looks(code):
            return
        self.left -= 1
        if self.left == 0:
            self.end()
            raise KeyboardInterrupt
"""

A_CALL = """
def awaited(function, *args):
    return loop.run_until_complete(function(*args))

async def consume():
    async for _ in interrupted_targets.two_async():
        pass

def fails():
    try:
        interrupted_targets.fail()
    except ValueError:
        pass

def call():
    {call}

with sandboxes(sandboxes_config=os.environ["PROFILE"]) as handle:
    loop = asyncio.new_event_loop()
    first = interrupted_targets.pid()
    call()
    at = interrupted = 0
    while True:
        at += 1
        where = ""
        interrupt = Interrupt(at)
        try:
            interrupt.begin()
            call()
        except KeyboardInterrupt as exc:
            interrupted += 1
            where = [(f.f_code.co_name, n, f.f_lasti) for f, n in traceback.walk_tb(exc.__traceback__)][1:-1]
        finally:
            interrupt.end()
        if tasks := asyncio.all_tasks(loop):  # as asyncio.run does
            for task in tasks:
                task.cancel()
            loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
        loop.run_until_complete(loop.shutdown_asyncgens())
        assert handle.stats()["pending"] == 0, where
        assert interrupted_targets.pid() == first == handle.pid, where
        if interrupt.left > 0:
            break
        end = time.monotonic() + 20
        while interrupted_targets.left():
            assert time.monotonic() < end, where
    loop.close()
print(interrupted)
"""


A_BLOCK = """
from pysandboxes import _context, _live

def block():
    with sandboxes(sandboxes_config=os.environ["PROFILE"]):
        assert interrupted_targets.pid() != os.getpid()

def children():
    found = []
    for task in os.listdir("/proc/self/task"):
        try:
            found += open(f"/proc/self/task/{task}/children").read().split()
        except FileNotFoundError:  # the thread has ended meanwhile
            pass
    return found

block()
at = interrupted = 0
while True:
    at += 7
    where = ""
    interrupt = Interrupt(at)
    try:
        interrupt.begin()
        block()
    except KeyboardInterrupt as exc:
        interrupted += 1
        where = [(f.f_code.co_name, n) for f, n in traceback.walk_tb(exc.__traceback__)][1:-1]
    finally:
        interrupt.end()
    _live._close_all()  # where the very `with` was interrupted, nothing of it is called: what Python does at its end
    assert _context.opened == [], where
    end = time.monotonic() + 20
    while children():
        assert time.monotonic() < end, where
    if interrupt.left > 0:
        break
print(interrupted)
"""


@pytest.mark.parametrize("call", CALLS)
def test_at_each_place(call: str, program: Callable[..., subprocess.Popen[str]]) -> None:
    process = program(PRELUDE.format(here=str(HERE)) + A_CALL.format(call=CALLS[call]))
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    assert int(out.split()[-1]) > 10


def test_a_block(program: Callable[..., subprocess.Popen[str]]) -> None:
    process = program(PRELUDE.format(here=str(HERE)) + A_BLOCK)
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    assert int(out.split()[-1]) > 10


HELD = """
import asyncio, os, signal, sys, threading, time
sys.path.insert(0, {here!r})
import interrupted_targets
from pysandboxes import sandboxes

def steps():
    for _ in interrupted_targets.hold():
        threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()

async def steps_async():
    async for _ in interrupted_targets.hold_async():
        asyncio.get_running_loop().call_later(0.2, asyncio.current_task().cancel)

with sandboxes(sandboxes_config=os.environ["PROFILE"], graceful_shutdown=False):
    began = time.monotonic()
    try:
        {steps}
    except (KeyboardInterrupt, asyncio.CancelledError) as exc:
        print(type(exc).__name__, time.monotonic() - began < 10)
"""


@pytest.mark.parametrize(
    ("steps", "raised"), [("steps()", "KeyboardInterrupt"), ("asyncio.run(steps_async())", "CancelledError")]
)
def test_a_generator_that_cannot_be_closed(steps: str, raised: str, program: Callable[..., subprocess.Popen[str]]) -> None:
    """Its sandbox does not come to it; who was interrupted goes on all the same."""
    process = program(HELD.format(here=str(HERE), steps=steps))
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (0, f"{raised} True\n"), err
