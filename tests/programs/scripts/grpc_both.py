"""A server and its client in one sandbox."""

import json
import sys
from concurrent.futures import ThreadPoolExecutor

import grpc

PORT = json.loads(sys.argv[1])["own"]
echo = grpc.unary_unary_rpc_method_handler(lambda request, context: request)
server = grpc.server(ThreadPoolExecutor(4), options=[("grpc.so_reuseport", 0)])
server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler("echo.Echo", {"Say": echo})])
print(server.add_insecure_port(f"127.0.0.1:{PORT}") == PORT)
server.start()
with grpc.insecure_channel(f"127.0.0.1:{PORT}") as channel:
    call = channel.unary_unary("/echo.Echo/Say")
    print([future.result(10).decode() for future in [call.future(b"hello %d" % n) for n in range(20)]])
server.stop(None).wait()
