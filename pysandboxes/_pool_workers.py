"""The workers of a pool: threads, each with a sandbox of its own, and the queue that they share.

A thread waits in its call as any calling thread does, so that a pool has no thread besides, and no process in between. The
queue is first come, first served. The threads hold the crew and not the executor, which may so be forgotten by its user.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections import deque
from time import monotonic

from . import _context, _dask
from ._callee import Callee
from ._exceptions import SandBoxError, SandBoxProtocolError
from ._pool_tasks import Chunk, Initializer, Work, broken, directly, unstarted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from ._live import Live

#: Times that an interpreter is started which dies while it starts, or in its initializer.
STARTS = 3
#: Seconds that tasks under way have after Ctrl-C.
MOMENT = 1.0


class Crew:
    """The workers and the queue. ``lock`` guards all of it; it may be taken again, since a finalizer takes it as well."""

    def __init__(self, size: int, limit: int | None, init: tuple[Callee, tuple[Any, ...]] | None, graceful: bool) -> None:
        self.size = size
        self.limit = limit
        self.workers: set[Worker] = set()
        self.forked = False
        self.hurried = False
        self.worked = False
        self._init = None if init is None else Initializer(*init)
        self._graceful = graceful
        self._queue: deque[Work] = deque()
        self._idle = 0
        self._number = 0
        self._closing = False
        self._broken: BaseException | None = None
        self._model: Live | None = None
        self._initialised = False
        self._initialising = threading.Lock()
        self.lock = threading.Condition(threading.RLock())
        _crews.add(self)

    def prepare(self, **options: Any) -> None:
        """Read the profile. The model, which is never started, stands for the policy of every sandbox of the pool."""
        if _context.inside():
            from ._main_module import loading

            if loading():
                raise SandBoxError(_context.UNGUARDED_MAIN)
            return
        from . import _live  # the engine, which a sandboxed interpreter does not load

        spec = {**_live.specification(learn=None, **options), "learn_if_missing": False}
        self._model = _live.open_native(spec, self._init, self._graceful)

    def open(self) -> Live | None:
        """A sandbox that has not been started, None where tasks run in this process itself."""
        model = self._model
        return None if model is None or model.direct else model.another()

    def initialise_here(self) -> None:
        """Run the initializer in this process, once."""
        with self._initialising:
            if not self._initialised and self._init is not None:
                self._init.run()
            self._initialised = True

    # ---- the queue --------------------------------------------------------------------------------------------------

    def add(self, work: Work) -> None:
        if self.forked:
            from ._live import FORKED

            raise SandBoxError(FORKED)
        with self.lock:
            if self._broken is not None:
                raise broken(self._broken)
            if self._closing or _exiting:
                raise RuntimeError(f"cannot schedule new futures after {'interpreter ' if _exiting else ''}shutdown")
            self._queue.append(work)
            if len(self._queue) > self._idle and len(self.workers) < self.size:
                self._hire()
            self.lock.notify()

    def _hire(self) -> None:
        self._number += 1
        worker = Worker(self, f"SandboxPoolExecutor-{id(self):x}_{self._number}")
        self.workers.add(worker)
        try:
            worker.thread.start()
        except BaseException:
            self.workers.discard(worker)
            if not self.workers:
                self._queue.pop()
                raise

    def rest(self, worker: Worker) -> None:
        """A worker is about to tell a result. Who hears of it may submit the next task at once, which is for this worker."""
        with self.lock:
            worker.rests = True
            self._idle += 1

    def next(self, worker: Worker) -> Work | None:
        """The task that has waited longest, once there is one; None: there will be no more."""
        with self.lock:
            self._idle += not worker.rests
            worker.rests = False
            try:
                while not self._queue:
                    if self._closing or self._broken is not None:
                        return None
                    self.lock.wait()
                return self._queue.popleft()
            finally:
                self._idle -= 1

    def more(self) -> bool:
        """Whether there may be further tasks."""
        with self.lock:
            return bool(self._queue) or not (self._closing or self._broken is not None)

    def stays(self, worker: Worker, work: Work, exc: BaseException) -> bool:
        """What becomes of a task whose sandbox cannot be started, and whether its worker goes on.

        Other workers take it over, if there are any. Else it fails: alone, where a sandbox of this pool has been started before
        (there are no descriptors, no memory just now), and with all that wait where none ever has.
        """
        with self.lock:
            if len(self.workers) > 1 and not self.hurried:
                self.workers.discard(worker)
                self._queue.appendleft(work)
                self.lock.notify()
                return False
            lasting = not (self.worked or self.hurried)
            failed = [work]
            if lasting:
                self._broken = exc
                failed += self._queue
                self._queue.clear()
                self.lock.notify_all()
        for one in failed:
            one.fail(broken(exc) if lasting else unstarted(exc))
        return not lasting

    def leave(self, worker: Worker) -> None:
        """A worker has ended."""
        with self.lock:
            self.workers.discard(worker)
            self._idle -= worker.rests
            worker.rests = False
            self.lock.notify_all()
        self._close_model()

    # ---- its end ----------------------------------------------------------------------------------------------------

    def close(self, cancel: bool = False) -> None:
        """No more tasks; with ``cancel`` those that wait are cancelled."""
        if self.forked:
            return
        waiting: list[Work] = []
        with self.lock:
            self._closing = True
            if cancel:
                waiting = list(self._queue)
                self._queue.clear()
            self.lock.notify_all()
        for work in waiting:
            work.future.cancel()
            work.future.set_running_or_notify_cancel()
        self._close_model()

    def _close_model(self) -> None:
        """Let go of what no worker needs any longer, once that is so."""
        with self.lock:
            needed = self.workers or self._queue or not (self._closing or self._broken is not None)
            model, self._model = (self._model, None) if not needed else (None, self._model)
        if model is not None:
            model.close()

    def join(self) -> None:
        """Wait for the last worker."""
        while not self.forked and (threads := [worker.thread for worker in list(self.workers)]):
            for thread in threads:
                thread.join()

    def hurry(self) -> None:
        """Somebody pressed Ctrl-C: cancel what waits, and give what is under way a moment."""
        if self.forked:
            return
        with self.lock:
            self.hurried = True
        self.close(cancel=True)
        deadline = monotonic() + MOMENT
        try:
            for worker in list(self.workers):
                worker.thread.join(max(0.0, deadline - monotonic()))
        finally:  # also where Ctrl-C comes again
            for worker in list(self.workers):
                worker.cut_short()

    # ---- what can be seen -------------------------------------------------------------------------------------------

    def state(self) -> str:
        if self.forked:
            return "forked"
        if self._broken is not None:
            return "broken"
        return "closed" if self._closing else "open"

    def stats(self) -> list[dict[str, Any]]:
        found = []
        for live in [worker.live for worker in list(self.workers)]:
            try:
                if live is not None:
                    found.append(live.stats())
            except SandBoxError:  # closed meanwhile
                continue
        return [stats for stats in found if stats.get("pid")]


class Worker:
    """One thread and its sandbox, which is replaced when its interpreter has died or has done its share of tasks.

    A new one is opened then, rather than the old one restarted: how often tasks have killed their interpreters says nothing
    about whether the next can be started.
    """

    def __init__(self, crew: Crew, name: str) -> None:
        self.crew = crew
        self.live: Live | None = None
        self.done = 0
        self.rests = False  # it counts as idle already
        self.thread = threading.Thread(target=self.run, name=name)

    def run(self) -> None:
        crew = self.crew
        work: Work | None = None
        try:
            while (work := crew.next(self)) is not None:
                if not work.begin():
                    continue
                try:
                    self.start()
                except BaseException as exc:
                    self.let_go()
                    if not crew.stays(self, work, exc):
                        return
                else:
                    crew.worked = True
                    self.perform(work)
                work = None  # an idle worker holds nobody's arguments and results
                self.renew()
        finally:
            self.let_go()
            crew.leave(self)

    def start(self) -> None:
        """Have an interpreter that is up and initialised."""
        crew = self.crew
        if self.live is None:
            live = crew.open()
            if live is None:
                crew.initialise_here()
                return
            with crew.lock:
                self.live = live
                if crew.hurried:
                    from ._live import CLOSED

                    raise SandBoxError(CLOSED)
        for left in reversed(range(STARTS)):
            try:
                self.live.start()
                return
            except SandBoxProtocolError:
                if not left:
                    raise

    def perform(self, work: Work) -> None:
        """Do a task. The frames of an exception hold no future, which would hold the exception."""
        self.done += 1
        future = work.future
        try:
            value = work.context.run(self.call, work.function, work.args, work.kwargs)
        except BaseException as exc:
            self.crew.rest(self)
            future.set_exception(exc)
            del work, future
        else:
            self.crew.rest(self)
            future.set_result(value)

    def call(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if type(function) is Chunk:
            return self.call_chunk(Callee(function.function), args[0])
        if _dask.hands_over(function):
            return _dask.run(function, args, self.invoke)
        return self.invoke(function, args, kwargs)

    def invoke(self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        callee = Callee(function)
        if self.live is None:
            return directly(callee, args, kwargs)
        return self.live.call(*callee.task(self.live, args, kwargs))

    def call_chunk(self, callee: Callee, rows: list[tuple[Any, ...]]) -> Any:
        if self.live is None:
            return [directly(callee, row, {}) for row in rows]
        return self.live.call(*callee.chunk(self.live, rows))

    def renew(self) -> None:
        """Where the interpreter is gone or has done its share, start the next before anybody waits for it."""
        crew, live = self.crew, self.live
        if live is None or (live.alive and not (crew.limit and self.done >= crew.limit)):
            return
        self.let_go()
        if crew.more():
            try:
                self.start()
            except Exception:
                self.let_go()  # the next task tries again, and tells

    def cut_short(self) -> None:
        """End the sandbox under a task, a start or an initializer, from another thread."""
        live = self.live
        if live is not None:
            try:
                live.native.stop(False, 0.0)
            except SandBoxError:
                return

    def let_go(self) -> None:
        with self.crew.lock:
            live, self.live = self.live, None
        self.done = 0
        if live is not None:
            try:
                live.close()
            except SandBoxError:
                return


# ---- the process ends, or is forked -------------------------------------------------------------------------------------

_crews: weakref.WeakSet[Crew] = weakref.WeakSet()
_exiting = False


def _at_exit() -> None:
    """The interpreter ends: it waits for all tasks, as it does for those of the standard library's executors."""
    global _exiting
    _exiting = True
    crews = [crew for crew in _crews if not crew.forked]
    try:
        for crew in crews:
            crew.close()
        for crew in crews:
            crew.join()
    except KeyboardInterrupt:
        for crew in crews:
            crew.hurry()
        raise


def _after_fork() -> None:
    for crew in _crews:
        crew.forked = True
        for worker in crew.workers:
            if worker.live is not None:
                worker.live.forked = True


# Before threads are joined at the end, where atexit's own functions come too late; concurrent.futures does the same.
threading._register_atexit(_at_exit)  # type: ignore[attr-defined]
os.register_at_fork(after_in_child=_after_fork)
