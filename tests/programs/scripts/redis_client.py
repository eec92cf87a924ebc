import asyncio
import json
import sys

import redis
import redis.asyncio

PORT = json.loads(sys.argv[1])["redis"]
with redis.Redis("127.0.0.1", PORT, socket_timeout=10) as client:
    client.set("key", "value")
    with client.pipeline() as pipeline:
        for n in range(100):
            pipeline.incr(f"count-{sys.argv[2:]}", n)
        print(client.get("key"), len(pipeline.execute()))


async def main() -> None:
    async with redis.asyncio.Redis(host="127.0.0.1", port=PORT, socket_timeout=10) as client:
        print(await client.ping(), await asyncio.gather(*(client.get("key") for _ in range(10))))


asyncio.run(main())
