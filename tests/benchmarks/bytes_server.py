"""A loopback server of bytes: a line with a number comes, so many bytes go. Prints its port; a process of its own."""

import socket
import threading

PIECE = memoryview(bytes(1 << 20))


def serve(one: socket.socket) -> None:
    with one, one.makefile("rb") as lines:
        left = int(lines.readline() or 0)
        while left > 0:
            left -= one.send(PIECE[:left])


server = socket.create_server(("127.0.0.1", 0))
print(server.getsockname()[1], flush=True)
while True:
    threading.Thread(target=serve, args=(server.accept()[0],), daemon=True).start()
