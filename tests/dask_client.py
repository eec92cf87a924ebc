"""A Dask client: submits tasks to the scheduler whose address it is given, and prints what came of them as JSON."""

from __future__ import annotations

import json
import os
import sys
from typing import Any

import dask_targets
from dask import delayed
from distributed import Client

from pysandboxes import sandbox_denials


def failure(future: Any) -> list[Any]:
    exc = future.exception()
    return [type(exc).__name__, [base.__name__ for base in type(exc).__mro__], str(exc), sandbox_denials(exc)]


def play(client: Client, worker: str) -> dict[str, Any]:
    there: dict[str, Any] = {"workers": [worker], "pure": False}
    found: dict[str, Any] = {}
    found["where"] = client.submit(dask_targets.where, **there).result()
    found["map"] = client.gather(client.map(dask_targets.add, range(40), **there))
    chained = client.submit(dask_targets.add, client.submit(dask_targets.add, 1, **there), right=5, **there)
    found["chained"] = chained.result()
    add = delayed(dask_targets.add)
    graph = delayed(dask_targets.total)([add(1), add(2), 3], {"a": add(add(3, 4), 5), "b": 1})
    found["graph"] = client.compute(graph, workers=[worker]).result()
    found["many"] = sum(client.gather(client.compute([add(number) for number in range(100)], workers=[worker])))
    found["refused"] = failure(client.submit(dask_targets.read, "/etc/passwd", **there))
    nested = delayed(dask_targets.name_of)([delayed(dask_targets.read)("/etc/passwd")])
    found["refused within"] = failure(client.compute(nested, workers=[worker]))
    found["raised"] = failure(client.submit(dask_targets.fail, **there))
    found["lambda"] = failure(client.submit(lambda: os.getpid(), **there))
    if worker == "sandboxed":
        found["died"] = failure(client.submit(dask_targets.die, retries=0, **there))
        found["after"] = client.submit(dask_targets.where, **there).result()
    return found


if __name__ == "__main__":
    with Client(sys.argv[1]) as client:
        print(json.dumps({worker: play(client, worker) for worker in ("sandboxed", "bare")}))
