"""A server outside: the channel is made by native code."""

import json
import sys

import grpc

with grpc.insecure_channel(f"127.0.0.1:{json.loads(sys.argv[1])['grpc']}") as channel:
    call = channel.unary_unary("/echo.Echo/Say")
    print([call(b"hello %d" % n, timeout=10).decode() for n in range(3)])
    print(len(call(b"x" * 1_000_000, timeout=10)))
