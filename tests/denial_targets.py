"""Ways in which programs and the libraries they use meet a refusal and raise something else. Imported by both sides.

Each case is a function that raises; what it was refused is in its name's row of ``REFUSED``.
"""

# The open() that programs write; importing pathlib would be charged to the profile.
# ruff: noqa: PTH123

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

from pysandboxes import RuleFileNotFoundError, denials, sandbox, sandbox_denials

HIDDEN = "/etc/shadow"
#: Nothing listens there, and no rule of the tests allows it.
HOST, PORT = "127.0.0.1", 9
URL = f"http://{HOST}:{PORT}/"
#: No rule of the tests hands it on.
VARIABLE = "PYSANDBOXES_TEST_NOT_THERE"
FILE, NET = HIDDEN, f"{HOST}:{PORT}"


def read() -> None:
    open(HIDDEN).close()


def cause() -> None:
    try:
        read()
    except OSError as exc:
        raise ValueError("cause") from exc


def context() -> None:
    try:
        read()
    except OSError:
        raise ValueError("context")  # noqa: B904


def suppressed() -> None:
    try:
        read()
    except OSError:
        raise ValueError("suppressed") from None


def group() -> None:
    errors: list[Exception] = []
    for attempt in (read, context):
        try:
            attempt()
        except Exception as exc:
            errors.append(exc)
    raise ExceptionGroup("outer", [ValueError(1), ExceptionGroup("inner", errors)])


def noted() -> None:
    try:
        read()
    except OSError as exc:
        exc.add_note("a note")
        raise


def text_in_a_note() -> None:
    error = ValueError("noted")
    try:
        read()
    except OSError as exc:
        error.add_note(f"because of {exc}")
    raise error


def kept_in_a_list() -> None:
    errors = []
    try:
        read()
    except OSError as exc:
        errors.append(exc)
    error = ValueError("kept")
    error.errors = errors  # type: ignore[attr-defined]
    raise error


def pickled() -> None:
    import pickle

    try:
        read()
    except OSError as exc:
        data = pickle.dumps(exc)
    raise pickle.loads(data)


def copied() -> None:
    import copy

    try:
        read()
    except OSError as exc:
        error = copy.copy(exc)
    raise error


def another_thread() -> None:
    import threading

    caught: list[BaseException] = []

    def work() -> None:
        try:
            read()
        except OSError as exc:
            caught.append(exc)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    raise caught[0]


def executor() -> None:
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(1) as pool:
        pool.submit(cause).result()


class RetryError(Exception):
    """As tenacity has it: the last attempt, a future, among the arguments."""


def retry_with_a_future() -> None:
    from concurrent.futures import Future

    attempt: Future[None] = Future()
    try:
        read()
    except OSError as exc:
        attempt.set_exception(exc)
    raise RetryError(attempt)


def retry_and_join_texts() -> None:
    texts = []
    for _ in range(3):
        try:
            read()
        except OSError as exc:
            texts.append(str(exc))
    raise ValueError(f"gave up: {', '.join(texts)}")


def retry_and_drop() -> None:
    for _ in range(3):
        try:
            read()
        except OSError:
            continue
    raise ValueError("gave up")


def urllib_error() -> None:
    from urllib.request import urlopen

    urlopen(URL, timeout=5)


def http_client() -> None:
    from http.client import HTTPConnection

    HTTPConnection(HOST, PORT, timeout=5).request("GET", "/")


def httpx_error() -> None:
    import httpx

    httpx.get(URL, timeout=5, trust_env=False)


def httpx_async() -> None:
    import asyncio

    import httpx

    async def get() -> None:
        async with httpx.AsyncClient(trust_env=False) as client:
            await client.get(URL, timeout=5)

    asyncio.run(get())


def requests_error() -> None:
    import requests

    session = requests.Session()
    session.trust_env = False
    session.get(URL, timeout=5)


def requests_with_retries() -> None:
    import requests
    from requests.adapters import HTTPAdapter
    from urllib3 import Retry

    session = requests.Session()
    session.trust_env = False
    session.mount("http://", HTTPAdapter(max_retries=Retry(2, backoff_factor=0)))
    session.get(URL, timeout=5)


def aiohttp_error() -> None:
    import asyncio

    import aiohttp

    async def get() -> None:
        async with aiohttp.ClientSession() as session:
            await session.get(URL)

    asyncio.run(get())


def sqlalchemy_error() -> None:
    from sqlalchemy import create_engine

    create_engine(f"sqlite:///{HIDDEN}").connect()


def missing_variable() -> None:
    import os

    os.environ[VARIABLE]


def asyncio_addresses() -> None:
    import asyncio
    import socket

    async def connect() -> None:
        loop = asyncio.get_running_loop()

        async def two(*_: Any, **__: Any) -> list[Any]:
            return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (HOST, port)) for port in (PORT, PORT + 2)]

        loop.getaddrinfo = two  # type: ignore[method-assign]
        await loop.create_connection(asyncio.Protocol, "a.test", PORT)

    asyncio.run(connect())


def task_group() -> None:
    import asyncio

    async def one() -> None:
        cause()

    async def all_of_them() -> None:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(one())
            tasks.create_task(one())

    asyncio.run(all_of_them())


#: Name of the class that arrives, and what was refused. `whole`: a whole program finds it, too, not just a call's caller.
CASES: dict[Callable[[], None], tuple[str, str, bool]] = {
    read: ("RuleFileNotFoundError", FILE, True),
    cause: ("ValueError", FILE, True),
    context: ("ValueError", FILE, True),
    suppressed: ("ValueError", FILE, True),
    group: ("ExceptionGroup", FILE, True),
    noted: ("RuleFileNotFoundError", FILE, True),
    text_in_a_note: ("ValueError", FILE, True),
    kept_in_a_list: ("ValueError", FILE, True),
    pickled: ("RuleFileNotFoundError", FILE, True),
    copied: ("RuleFileNotFoundError", FILE, True),
    another_thread: ("RuleFileNotFoundError", FILE, True),
    executor: ("ValueError", FILE, True),
    retry_with_a_future: ("RetryError", FILE, True),
    retry_and_join_texts: ("ValueError", FILE, True),
    retry_and_drop: ("ValueError", FILE, False),
    urllib_error: ("URLError", NET, True),
    http_client: ("RuleSocketConnectionRefusedError", NET, True),
    httpx_error: ("ConnectError", NET, True),
    httpx_async: ("ConnectError", NET, True),
    requests_error: ("ConnectionError", NET, True),
    requests_with_retries: ("ConnectionError", NET, True),
    aiohttp_error: ("ClientConnectorError", NET, True),
    sqlalchemy_error: ("OperationalError", FILE, True),
    missing_variable: ("KeyError", VARIABLE, True),
    asyncio_addresses: ("OSError", NET, True),
    task_group: ("ExceptionGroup", FILE, True),
}
BY_NAME = {case.__name__: case for case in CASES}


BOTH = threading.Barrier(2)


@sandbox
def refused_beside_another(path: str) -> None:
    """Is refused a path while another call is refused another one, and fails for a third reason."""
    BOTH.wait(10)
    for _ in range(20):
        try:
            open(path).close()
        except OSError:
            pass
    BOTH.wait(10)
    raise ValueError(path)


@sandbox
async def refused_in_a_task(path: str) -> None:
    import asyncio

    for _ in range(20):
        try:
            open(path).close()
        except OSError:
            await asyncio.sleep(0)
    raise ValueError(path)


@sandbox
def refused_in_a_copied_context(path: str) -> None:
    import contextvars

    def work() -> None:
        try:
            open(path).close()
        except OSError:
            return

    thread = threading.Thread(target=contextvars.copy_context().run, args=(work,))
    thread.start()
    thread.join()
    raise ValueError(path)


@sandbox
def refused_in_a_thread(path: str) -> None:
    caught = []

    def work() -> None:
        try:
            open(path).close()
        except OSError:
            caught.append(True)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    raise ValueError(len(caught))


@sandbox
def steps(path: str) -> Iterator[int]:
    try:
        open(path).close()
    except OSError:
        yield 1
    raise ValueError("second step")


@sandbox
def refused_often(times: int) -> tuple[int, int, int]:
    """How many KiB the process grew by the second half of so many refusals, how many are kept, and how many are not."""
    import resource

    from pysandboxes import _guard

    sizes = []
    for _ in range(2):
        for number in range(times // 2):
            try:
                open(f"/etc/shadow/{number}").close()
            except OSError:
                pass
        sizes.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
    record = _guard.enter()
    return sizes[1] - sizes[0], len(_guard.denials()), record.dropped


@sandbox
def refused_often_and_fail(times: int) -> None:
    for number in range(times):
        try:
            open(f"/etc/shadow/{number}").close()
        except OSError:
            pass
    raise ValueError(times)


@sandbox
def claim(denial: dict[str, Any], text: str, add: list[str]) -> None:
    """A hostile child: raise a refusal that nobody made, in words of its own."""
    error = RuleFileNotFoundError(2, "No such file or directory", "/etc/hosts")
    error.denials = [denial]
    error.text, error.add, error.rule = text, add, "/home/user/.py-sandboxes:1"
    raise error


@sandbox
def provoke(name: str) -> None:
    """Raise within a call."""
    BY_NAME[name]()


@sandbox
def look(name: str) -> tuple[str, list[str], list[str]]:
    """Raise and catch it where it was raised: the class, the texts of the refusals, and their subjects."""
    try:
        BY_NAME[name]()
    except Exception as exc:
        return type(exc).__name__, sandbox_denials(exc), [denial.subject for denial in denials(exc)]
    raise AssertionError("nothing was raised")
