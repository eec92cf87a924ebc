"""Threads that wake the loop, and a connection beside them."""

import asyncio
import json
import sys
import threading

PORTS = json.loads(sys.argv[1])


async def main() -> list[object]:
    loop = asyncio.get_running_loop()
    powers = await asyncio.gather(*(asyncio.to_thread(pow, 2, n) for n in range(20)))
    woken = asyncio.Event()
    thread = threading.Thread(target=loop.call_soon_threadsafe, args=(woken.set,))
    thread.start()
    await asyncio.wait_for(woken.wait(), 10)
    thread.join()
    future = asyncio.run_coroutine_threadsafe(asyncio.sleep(0, "from a thread"), loop)
    text = await asyncio.wrap_future(future)
    fetched = await asyncio.gather(*(fetch() for _ in range(20)))
    return [sum(powers), text, sorted(set(fetched))]


async def fetch() -> str:
    reader, writer = await asyncio.open_connection("127.0.0.1", PORTS["http"])
    writer.write(b"GET /hello HTTP/1.0\r\n\r\n")
    data = await reader.read()
    writer.close()
    await writer.wait_closed()
    return data.rpartition(b"\r\n\r\n")[2].decode()


print(asyncio.run(main()))
