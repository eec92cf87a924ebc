import asyncio
import json
import sys

import asyncpg

PORT = json.loads(sys.argv[1])["postgres"]


async def main() -> None:
    where = {"host": "127.0.0.1", "port": PORT, "database": "postgres", "user": "tester", "ssl": False, "timeout": 10}
    async with asyncpg.create_pool(min_size=2, max_size=4, passfile="/dev/null", **where) as pool:
        print(await asyncio.gather(*(pool.fetchval("SELECT $1::int * 2", n) for n in range(20))))


asyncio.run(main())
