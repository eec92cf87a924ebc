"""A loopback listener that accepts and closes; prints its port. A process of its own, so that it shares nobody's GIL."""

import socket

server = socket.create_server(("127.0.0.1", 0), backlog=512)
print(server.getsockname()[1], flush=True)
while True:
    try:
        server.accept()[0].close()
    except OSError:  # the client was faster and has reset it
        pass
