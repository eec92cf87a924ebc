"""Load on the web application: ``web_load.py PORT CLIENTS REQUESTS PATH...``; prints what came as JSON.

Each client asks for one path after the other, on a connection of its own; every number is asked for once.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from itertools import count
from typing import Any

import httpx


async def client(base: str, paths: list[str], numbers: Any, limit: int, found: dict[str, Any]) -> None:
    async with httpx.AsyncClient(base_url=base, timeout=60) as session:
        while (number := next(numbers)) < limit:
            path = paths[number % len(paths)].format(number)
            answer = await session.get(path)
            found["status"][answer.status_code] = found["status"].get(answer.status_code, 0) + 1
            found["answers"].append((path, answer.json()))


async def main(port: str, clients: str, requests: str, *paths: str) -> None:
    found: dict[str, Any] = {"status": {}, "answers": []}
    numbers = count()
    began = time.perf_counter()
    async with asyncio.TaskGroup() as group:
        for _ in range(int(clients)):
            group.create_task(client(f"http://127.0.0.1:{port}", list(paths), numbers, int(requests), found))
    found["seconds"] = time.perf_counter() - began
    print(json.dumps(found))


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
