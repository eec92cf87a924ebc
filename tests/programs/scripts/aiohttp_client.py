import asyncio
import json
import sys

import aiohttp

URL = f"http://127.0.0.1:{json.loads(sys.argv[1])['http']}"


async def main() -> None:
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(10)) as session:

        async def get(path: str) -> str:
            async with session.get(URL + path) as answer:
                return await answer.text()

        print(await asyncio.gather(*(get("/hello") for _ in range(10))), len(await get("/large")))


asyncio.run(main())
