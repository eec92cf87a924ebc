"""Looks names up by c-ares: ares.py FAMILY NAME... prints a line for each name, as lookup.c does."""

import socket
import sys
import threading

import pycares

families = {"4": socket.AF_INET, "6": socket.AF_INET6, "0": socket.AF_UNSPEC}
channel = pycares.Channel(timeout=3, tries=2)
for name in sys.argv[2:]:
    done = threading.Event()

    def tell(result, error, name=name, done=done):
        if error is not None:
            words = {
                pycares.errno.ARES_ENOTFOUND: "no name",
                pycares.errno.ARES_ENODATA: "no data",
                pycares.errno.ARES_ESERVFAIL: "failed",
                pycares.errno.ARES_EREFUSED: "refused",
            }
            print(f"{name}: {words.get(error, pycares.errno.strerror(error))}")
        else:
            raw = [node.addr[0] for node in result.nodes]
            found = sorted({a.decode() if isinstance(a, bytes) else a for a in raw})
            print(f"{name}:", f"{len(found)} addresses" if len(found) > 8 else " ".join(found))
        done.set()

    channel.getaddrinfo(name, None, family=families[sys.argv[1]], type=socket.SOCK_STREAM, callback=tell)
    if not done.wait(20):
        print(f"{name}: no answer")
