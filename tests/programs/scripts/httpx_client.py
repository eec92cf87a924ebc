import asyncio
import json
import sys

import httpx

URL = f"http://127.0.0.1:{json.loads(sys.argv[1])['http']}"


async def many() -> list[str]:
    async with httpx.AsyncClient(trust_env=False) as client:
        return [answer.text for answer in await asyncio.gather(*(client.get(URL + "/hello") for _ in range(10)))]


with httpx.Client(trust_env=False) as client:
    print(client.get(URL + "/hello").text, client.post(URL + "/echo", content=b"x" * 100_000).text == "x" * 100_000)
print(asyncio.run(many()))
