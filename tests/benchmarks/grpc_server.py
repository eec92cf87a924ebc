"""A gRPC server that gives back what it gets. Prints its port; a process of its own."""

import threading
from concurrent.futures import ThreadPoolExecutor

import grpc

echo = grpc.unary_unary_rpc_method_handler(lambda request, context: request)
server = grpc.server(ThreadPoolExecutor(2))
server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler("echo.Echo", {"Say": echo})])
port = server.add_insecure_port("127.0.0.1:0")
server.start()
print(port, flush=True)
threading.Event().wait()
