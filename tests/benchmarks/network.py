"""What network rules cost: native code's connections, a download, remote calls, and a start, in both modes of the broker.

The peer that is measured too is sandlock, which judges connections in a supervisor as well.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator
from contextlib import ExitStack

from inside import Worker
from measure import How, Measure, Result, interleave, judge
from place import HERE, CommandError, Place

MODES = ("unwalled", "walled")
SANDLOCK = "sandlock"

#: operation of network_worker.py -> (its name here, operations a turn, goal in each mode, why)
OPERATIONS: dict[str, tuple[str, int, dict[str, float | None], str]] = {
    "connect_close": (
        "native connect+close",
        200,
        {"unwalled": 2.5, "walled": 4.0},
        "each connection is judged by the supervisor; a libc call, so that the Python layer takes no part",
    ),
    "download": (
        "100 MB by HTTP",
        1,
        {"unwalled": 1.11, "walled": 1.11},
        "what is connected is the kernel's alone: 0.9 of bare",
    ),
    "unary": ("gRPC unary call", 200, {"unwalled": None, "walled": None}, "small messages on a connection that stands"),
}
PASS, START = "python -c pass", "start with net rules"


def measure(operation: str, side: str) -> Measure:
    name, _, goals, why = OPERATIONS[operation]
    return Measure(f"{name}, {side}", side, "bare", How.RATIO, goals.get(side), why)


def start(side: str) -> Measure:
    return Measure(f"{START}, {side}", side, PASS, How.RATIO, None, "python-sb -c pass where the broker has something to judge")


def run(place: Place) -> Iterator[Result]:
    grpc = importlib.util.find_spec("grpc") is not None
    peer = importlib.util.find_spec(SANDLOCK) is not None
    with ExitStack() as stack:
        ports = []
        for server in ("listener.py", "bytes_server.py", *(["grpc_server.py"] if grpc else [])):
            process = stack.enter_context(place.start(place.bare(str(HERE / server))))
            stack.callback(process.kill)
            assert process.stdout is not None
            ports.append(process.stdout.readline().strip())
        rules = "".join(f"net=ALLOW|TCP|127.0.0.1|{port}|OUT\n" for port in ports)
        grants = "python-api=ALLOW:native, ALLOW:threads, ALLOW:sys._getframe, ALLOW:dynamic-code\n"
        with place.profile.open("a") as profile:
            profile.write(grants + rules)
        arguments = [str(HERE / "network_worker.py"), "5" if place.quick else "100", *ports]
        workers: dict[str, Worker] = {"bare": stack.enter_context(Worker(place, place.bare(*arguments)))}
        broken: dict[str, str] = {}
        for mode in MODES:
            try:
                command = place.sandboxed(*arguments, provider="landlock")
                workers[mode] = stack.enter_context(Worker(place, command, PYSANDBOXES_NETWORK=mode))
            except CommandError as error:
                broken[mode] = str(error)
        if peer:
            try:
                command = place.bare(str(HERE / "sandlocked.py"), ",".join(ports), *place.bare(*arguments))
                workers[SANDLOCK] = stack.enter_context(Worker(place, command))
            except CommandError as error:
                broken[SANDLOCK] = str(error)
        for operation in OPERATIONS:
            if operation == "unary" and not grpc:
                yield Result(measure(operation, MODES[0]), note="grpcio is not installed")
                continue
            yield from _one(place, operation, workers, broken)
        if not peer:
            yield Result(measure("connect_close", SANDLOCK), note="sandlock is not installed (make bench does that)")
    yield from _starts(place)


def _one(place: Place, operation: str, workers: dict[str, Worker], broken: dict[str, str]) -> Iterator[Result]:
    def turn(worker: Worker) -> Callable[[], list[float]]:
        count = OPERATIONS[operation][1]
        return lambda: worker.turn(operation, place.count(count) if count > 1 else 1)

    try:
        rounds = interleave({side: turn(worker) for side, worker in workers.items()}, place.rounds)
    except CommandError as error:
        yield Result(measure(operation, MODES[0]), note=str(error), failed=True)
        return
    for side in workers:
        if side != "bare":
            yield judge(measure(operation, side), rounds)
    for side, note in broken.items():
        # What the peer cannot do on this machine is no failure of the run.
        yield Result(measure(operation, side), note=note, failed=side != SANDLOCK)


def _starts(place: Place) -> Iterator[Result]:
    def turn(command: list[str], **environment: str) -> Callable[[], list[float]]:
        return lambda: [place.time(command, **environment) for _ in range(place.count(3))]

    turns = {PASS: turn(place.bare("-c", "pass"))}
    for mode in MODES:
        turns[mode] = turn(place.sandboxed("-c", "pass", provider="landlock"), PYSANDBOXES_NETWORK=mode)
    if importlib.util.find_spec(SANDLOCK) is not None:
        turns[SANDLOCK] = turn(place.bare(str(HERE / "sandlocked.py"), "9", *place.bare("-c", "pass")))
    try:
        rounds = interleave(turns, place.rounds)
    except CommandError as error:
        yield Result(start(MODES[0]), note=str(error), failed=True)
        return
    for side in turns:
        if side != PASS:
            yield judge(start(side), rounds)
