"""The path of a call through `_core`, against a child that the test itself plays over a socketpair."""

from __future__ import annotations

import signal
import textwrap

import pytest
from binding import Run, extension, python  # noqa: F401  (fixtures)

# What each case starts with: a sandbox, and the child's end of its socket as an object that reads and writes frames.
CHILD = """
import pickle, select, socket, struct, time
CALL, CANCEL, READY, STDOUT, RESULT, EXCEPTION, CANCELLED, CHUNK = 1, 2, 10, 11, 14, 15, 16, 19
def bin_(data): return b"\\xc6" + struct.pack(">I", len(data)) + data
def text(s): return b"\\xdb" + struct.pack(">I", len(s.encode())) + s.encode()
def uint(n): return b"\\xcf" + struct.pack(">Q", n)
class Child:
    def __init__(self):
        ours, self.sock = socket.socketpair()
        self.sock.settimeout(20)
        self.handle = core.control_FaultConnect(ours.detach())
        self.send(uint(READY), uint(0), text("any version"), uint(os.getpid()), text("3"))
    def read(self, n):
        data = b""
        while len(data) < n:
            piece = self.sock.recv(n - len(data))
            assert piece, "the parent closed"
            data += piece
        return data
    def frame(self):
        body = self.read(struct.unpack(">I", self.read(4))[0])
        assert body[0] & 0xf0 == 0x90
        return body
    def send(self, *parts):
        body = bytes([0x90 | len(parts)]) + b"".join(parts)
        self.sock.sendall(struct.pack(">I", len(body)) + body)
    def result(self, id, value):
        data = pickle.dumps(value, 5)
        while len(data) > 1 << 20:
            self.send(uint(CHUNK), uint(id), bin_(data[:1 << 20]))
            data = data[1 << 20:]
        self.send(uint(RESULT), uint(id), bin_(data))
def begin(handle, payload):
    begun = []
    assert core.call_begin(handle, payload, begun) is None
    [id] = begun
    return id
def loop_send(handle, loop, payload, look):
    begun = []
    event = core.loop_send(handle, loop, payload, look, begun)
    assert begun == [event[0]]
    return event
child = Child()
handle = child.handle
def answered(id):
    kind, data, rich, descriptor = core.call_next(handle, id)
    assert (kind, rich, descriptor) == (RESULT, None, None), (kind, descriptor)
    return pickle.loads(data)
"""


@pytest.fixture
def call(python: Run) -> Run:  # noqa: F811
    return lambda code, **options: python(CHILD + textwrap.dedent(code), **options)


def test_results_of_every_size_arrive_whole(call: Run) -> None:
    call("""
        first = begin(handle, b"")
        number = first & (1 << 40) - 1
        for size in (0, 1, 100, 4090, 4096, 4097, 1 << 20, 5_000_000):
            id = begin(handle, b"payload")
            number += 1
            assert id & (1 << 40) - 1 == number and id >> 40 == 1
            threading.Thread(target=child.result, args=(number, bytes(size))).start()
            assert answered(id) == bytes(size)
        child.result(first & (1 << 40) - 1, [1, "two", {3: None}])
        assert answered(first) == [1, "two", {3: None}]
        assert "call" in fault(core.call_next, handle, first)["message"]  # its last event was taken
        assert child.frame().endswith(bytes(0)) and b"payload" in child.frame()
    """)


def test_output_arrives_before_the_result_and_empty_is_not_none(call: Run) -> None:
    call("""
        id = begin(handle, bytearray(b"any bytes-like object"))
        child.send(uint(STDOUT), uint(1), bin_(b"printed"))
        child.send(uint(STDOUT), uint(1), bin_(b""))
        child.result(1, None)
        assert core.call_next(handle, id) == (STDOUT, b"printed", None, None)
        event = core.call_next(handle, id)
        if event[0] == STDOUT:  # the transport may leave out what says nothing
            assert event == (STDOUT, b"", None, None)
            event = core.call_next(handle, id)
        assert event[0] == RESULT and pickle.loads(event[1]) is None
    """)


def test_waiting_ends_by_time_and_never_by_poll(call: Run) -> None:
    call("""
        id = begin(handle, b"x")
        began = time.monotonic()
        assert core.call_next(handle, id, 0.3) is None
        assert 0.3 <= time.monotonic() - began < 2
        assert core.call_next(handle, id, 0) is None
        for wrong, error in ((float("nan"), ValueError), ("1", TypeError)):
            try: core.call_next(handle, id, wrong)
            except error: continue
            raise AssertionError(wrong)
        child.result(1, "late")
        assert answered(id) == "late"
    """)


def test_ctrl_c_interrupts_a_waiting_call_at_once(call: Run) -> None:
    call("""
        id = begin(handle, b"x")
        child.frame()
        for wait in (None, 10.0):
            at = []
            def kill():
                at.append(time.monotonic()); os.kill(os.getpid(), signal.SIGINT)
            threading.Timer(0.2, kill).start()
            try: core.call_next(handle, id, wait)
            except KeyboardInterrupt: assert time.monotonic() - at[0] < 0.3
            else: raise AssertionError("no KeyboardInterrupt")
        core.call_cancel(handle, id)
        assert child.frame()[1] == CANCEL
        assert "call" in fault(core.call_next, handle, id)["message"]
        child.send(uint(CANCELLED), uint(1))
        id = begin(handle, b"y")
        child.result(2, "works")
        assert answered(id) == "works"
    """)


def test_a_signal_whose_handler_returns_does_not_end_the_wait(call: Run) -> None:
    call("""
        seen = []
        signal.signal(signal.SIGALRM, lambda *args: seen.append(1) or len(seen) == 20 and child.result(1, "after"))
        signal.setitimer(signal.ITIMER_REAL, 0.01, 0.01)
        id = begin(handle, b"x")
        assert answered(id) == "after"
        signal.setitimer(signal.ITIMER_REAL, 0)
        assert len(seen) >= 20
    """)


def test_other_threads_run_while_one_waits_and_each_gets_its_own(call: Run) -> None:
    call("""
        def child_loop():
            for _ in range(400):
                body = child.frame()
                payload = body[body.rindex(b"<") + 1:]
                child.result(int(payload[:-1]), payload.decode())
        peer = threading.Thread(target=child_loop); peer.start()
        lock, wrong = threading.Lock(), []
        def caller():
            for _ in range(50):
                with lock:  # the child has to be told the id that Begin will give
                    caller.next += 1
                    number = caller.next
                    id = begin(handle, b"<%d>" % number)
                if answered(id) != f"{number}>": wrong.append(number)
        caller.next = 0
        threads = [threading.Thread(target=caller) for _ in range(8)]
        for t in threads: t.start()
        for t in threads: t.join(30)
        peer.join(10)
        assert not wrong and not any(t.is_alive() for t in threads)
    """)


def test_an_event_loop_is_told_by_one_descriptor(call: Run) -> None:
    call("""
        loop, fd = core.loop_open(handle)
        id, kind, *_ = loop_send(handle, loop, b"x", False)
        events = []
        assert kind == -1 and select.select([fd], [], [], 5)[0]
        core.loop_take(handle, loop, events)  # READY
        assert not events and select.select([fd], [], [], 0)[0] == []
        child.result(1, "async")
        assert select.select([fd], [], [], 5)[0]
        assert core.loop_take(handle, loop, events) is None
        assert [(e[0], e[1], pickle.loads(e[2])) for e in events] == [(id, RESULT, "async")]
        assert select.select([fd], [], [], 0)[0] == []
        first, second = [loop_send(handle, loop, b"y", False)[0] for _ in range(2)]
        child.result(2, os.system)
        child.sock.close()
        while True:  # what came, then the end, whose reason takes a moment
            assert select.select([fd], [], [], 5)[0]
            try: core.loop_take(handle, loop, events)
            except RuntimeError as exc:
                assert json.loads(str(exc))["kind"] == "SandBoxProtocolError"
                break
        refused, over = events[1:]
        assert refused[:4] == (first, 0, None, None) and json.loads(refused[4])["kind"] == "RestrictedUnpicklingError"
        assert over[:4] == (second, 0, None, None) and json.loads(over[4])["kind"] == "SandBoxProtocolError"
        assert "no event loop" in fault(core.loop_take, handle, loop + 1, [])["message"]
        core.loop_close(handle, loop)
        assert "no event loop" in fault(core.loop_close, handle, loop)["message"]
    """)


def test_an_answer_that_comes_at_once_is_given_with_the_call(call: Run) -> None:
    call("""
        def answer():
            for number in range(1, 201):
                child.frame()
                child.result(number, number)
        peer = threading.Thread(target=answer); peer.start()
        loop, fd = core.loop_open(handle)
        for number in range(1, 201):
            events = [loop_send(handle, loop, b"x", True)]
            if events[0][1] == -1:
                events.clear()
                while not events:
                    assert select.select([fd], [], [], 5)[0]
                    core.loop_take(handle, loop, events)
            assert (events[0][0] & 0xff, pickle.loads(events[0][2])) == (number, number)
        peer.join()
    """)


def test_a_child_that_dies_or_lies_is_an_exception(call: Run) -> None:
    call("""
        id = begin(handle, b"x")
        child.sock.close()
        assert fault(core.call_next, handle, id)["kind"] == "SandBoxProtocolError"
        assert fault(begin, handle, b"y")["kind"] == "SandBoxProtocolError"
        liar = Child()
        id = begin(liar.handle, b"x")
        liar.sock.sendall(b"\\xff" * 100)
        assert "protocol" in fault(core.call_next, liar.handle, id)["message"]
    """)


def test_a_result_that_is_refused_names_what_it_held(call: Run) -> None:
    call("""
        id = begin(handle, b"x")
        child.result(1, [1, {"who": os.system}])
        found = fault(core.call_next, handle, id)
        assert found["kind"] == "RestrictedUnpicklingError" and "system" in found["message"], found
        id = begin(handle, b"x")
        child.result(2, "the next one works")
        assert answered(id) == "the next one works"
    """)


def test_results_do_not_leak(call: Run) -> None:
    call("""
        def rss(): return int(open("/proc/self/statm").read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
        def work(first, count):
            for n in range(first, first + count):
                id = begin(handle, b"x" * 1000)
                child.frame()
                child.result(n, bytes(100_000))
                answered(id)
        work(1, 300)
        before = rss()
        work(301, 2000)  # 200 MB pass
        assert rss() - before < 30e6, (before, rss())
    """)


def test_a_thread_that_waits_at_the_end_of_the_interpreter_does_no_harm(call: Run) -> None:
    done = call("""
        id = begin(handle, b"x")
        waits = threading.Event()
        def wait():
            waits.set()
            core.call_next(handle, id)
        threading.Thread(target=wait, daemon=True).start()
        waits.wait()
        print("end")
    """)
    assert done.stdout == "end\n"


def test_the_process_ends_by_the_signal_that_ends_python(call: Run) -> None:
    call(
        """
        id = begin(handle, b"x")
        threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGTERM)).start()
        core.call_next(handle, id)
        """,
        status=-signal.SIGTERM,
    )
