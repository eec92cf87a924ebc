"""Generators across the border: the body stays in the sandbox, each step is a call of its own.

The application holds a generator that asks the sandbox for the next value; the sandbox holds the real one under a
number. A step is answered by ``(True, value)`` for a value, ``(False, returned)`` for the end, and ``(None, None)`` when
it raised the very exception that was thrown in: that object is the application's.
"""

from __future__ import annotations

from _thread import allocate_lock
from posix import urandom

from ._exceptions import SandBoxError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
    from typing import Any

    Outcome = tuple[bool | None, Any]
    Step = Callable[[str, tuple[Any, ...]], Any]
    AsyncStep = Callable[[str, tuple[Any, ...]], Awaitable[Any]]

#: Generators that one sandbox holds open at a time.
MAX_OPEN = 10_000


class Table:
    """The generators of a sandboxed interpreter, by number."""

    def __init__(self) -> None:
        self._lock = allocate_lock()
        self._open: dict[int, Any] = {}
        # A number of an interpreter that has died must not mean another's generator in the next one.
        self._last = int.from_bytes(urandom(7), "little")

    def add(self, generator: Any) -> int:
        with self._lock:
            if len(self._open) >= MAX_OPEN:
                raise SandBoxError(f"{MAX_OPEN} generators are open in this sandbox: close those that are done with")
            self._last += 1
            self._open[self._last] = generator
            return self._last

    def step(self, number: int, method: str, argument: Any) -> Outcome:
        """One step of a sync generator; ``method`` is ``send`` or ``throw``."""
        generator = self._get(number)
        try:
            value = getattr(generator, method)(argument)
        except StopIteration as stop:
            self._open.pop(number, None)
            return False, stop.value
        except BaseException as exc:
            self._open.pop(number, None)
            if exc is argument:
                return None, None
            raise
        if number not in self._open:  # closed while it ran: whoever waited for this step was interrupted
            generator.close()
        return True, value

    async def astep(self, number: int, method: str, argument: Any) -> Outcome:
        """One step of an async generator; ``method`` is ``asend`` or ``athrow``."""
        generator = self._get(number)
        try:
            value = await getattr(generator, method)(argument)
        except StopAsyncIteration:
            self._open.pop(number, None)
            return False, None
        except BaseException as exc:
            self._open.pop(number, None)
            if exc is argument:
                return None, None
            raise
        if number not in self._open:
            await generator.aclose()
        return True, value

    def close(self, number: int) -> None:
        generator = self._open.pop(number, None)
        if generator is not None:
            try:
                generator.close()
            except ValueError:
                if not generator.gi_running:
                    raise

    async def aclose(self, number: int) -> None:
        generator = self._open.pop(number, None)
        if generator is not None:
            await generator.aclose()

    def operations(self) -> dict[str, Callable[..., Any]]:
        """What can be done with a generator, by the names that the other side uses."""
        return {
            "send": lambda number, value: self.step(number, "send", value),
            "throw": lambda number, value: self.step(number, "throw", value),
            "close": self.close,
            "drop": self.close,
            "asend": lambda number, value: self.astep(number, "asend", value),
            "athrow": lambda number, value: self.astep(number, "athrow", value),
            "aclose": self.aclose,
            "adrop": self.aclose,
        }

    def _get(self, number: int) -> Any:
        try:
            return self._open[number]
        except KeyError:
            raise SandBoxError("this generator is gone: the sandbox that held it was restarted or closed it") from None


def remote_generator(start: Callable[[], int], step: Step) -> Generator[Any, Any, Any]:
    """The application's side of a sync generator. ``start`` makes the real one, ``step`` calls an operation on it."""
    number = start()
    finished = False
    try:
        more, value = step("send", (number, None))
        while more:
            try:
                sent = yield value
            except GeneratorExit:
                raise
            except BaseException as exc:
                more, value = step("throw", (number, exc))
                if more is None:
                    raise
            else:
                more, value = step("send", (number, sent))
        finished = True
        return value
    except GeneratorExit:
        raise
    except BaseException:
        finished = True
        # An exception of the real one has ended it. One of ours (a signal's, in a step or between two) has not; who was
        # interrupted does not wait for long.
        try:
            step("drop", (number,))
        except Exception:  # what has happened already is told
            pass
        raise
    finally:
        if not finished:
            step("close", (number,))


async def remote_async_generator(start: Callable[[], Awaitable[int]], step: AsyncStep) -> AsyncGenerator[Any, Any]:
    """The application's side of an async generator."""
    number = await start()
    finished = False
    try:
        more, value = await step("asend", (number, None))
        while more:
            try:
                sent = yield value
            except GeneratorExit:
                raise
            except BaseException as exc:
                more, value = await step("athrow", (number, exc))
                if more is None:
                    raise
            else:
                more, value = await step("asend", (number, sent))
        finished = True
    except GeneratorExit:
        raise
    except BaseException:
        finished = True
        try:
            await step("adrop", (number,))
        except Exception:
            pass
        raise
    finally:
        if not finished:
            await step("aclose", (number,))
