"""A server that is reached from outside. It ends after the request for /end."""

import json
import sys

import uvicorn

PORT = json.loads(sys.argv[1])["own"]


async def application(scope, receive, send):  # type: ignore[no-untyped-def]
    if scope["type"] != "http":
        return
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/plain")]})
    await send({"type": "http.response.body", "body": b"served " + scope["path"].encode()})
    if scope["path"] == "/end":
        server.should_exit = True


server = uvicorn.Server(uvicorn.Config(application, host="127.0.0.1", port=PORT, log_level="error", lifespan="off"))
server.run()
print("ended")
