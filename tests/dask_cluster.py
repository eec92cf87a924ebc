"""A Dask scheduler on loopback with two workers, one with a pool of sandboxes: ``dask_cluster.py PROFILE``.

Prints the scheduler's address and ends when its standard input does.
"""

from __future__ import annotations

import asyncio
import os
import sys
from typing import Any

from distributed import Scheduler, Worker

from pysandboxes import SandboxPoolExecutor


async def serve(executor: Any) -> None:
    options: dict[str, Any] = {"host": "127.0.0.1", "nthreads": 2, "dashboard": False, "local_directory": os.getcwd()}  # noqa: PTH109
    async with (
        Scheduler(host="127.0.0.1", port=0, dashboard=False) as scheduler,
        Worker(scheduler.address, name="bare", **options),
        Worker(scheduler.address, name="sandboxed", executor=executor, **options),
    ):
        print(scheduler.address, flush=True)
        await asyncio.to_thread(sys.stdin.read)


if __name__ == "__main__":
    with SandboxPoolExecutor(2, sandboxes_config=sys.argv[1]) as pool:
        asyncio.run(serve(pool))
