"""The servers that the programs talk to, outside of any sandbox, on ports of 127.0.0.1. Each gives its port."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import socketserver
import ssl
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from complete_mode import NOBODY

PAGES = {"/hello": b"hello from outside", "/large": b"0123456789" * 100_000}


class Pages(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self.answer(PAGES.get(self.path, b""))

    def do_POST(self) -> None:
        self.answer(self.rfile.read(int(self.headers["Content-Length"])))

    def answer(self, body: bytes) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


class Echo(socketserver.BaseRequestHandler):
    def handle(self) -> None:
        with contextlib.suppress(OSError):  # a client that does not like the certificate goes
            self.request.sendall(b"you said " + self.request.recv(100))


class SecureServer(socketserver.ThreadingTCPServer):
    daemon_threads = True

    def __init__(self, certificate: Path, key: Path) -> None:
        super().__init__(("127.0.0.1", 0), Echo)
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(certificate, key)

    def get_request(self) -> tuple[ssl.SSLSocket, object]:
        plain, address = super().get_request()
        return self.context.wrap_socket(plain, server_side=True, do_handshake_on_connect=False), address


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128


@contextlib.contextmanager
def served(server: socketserver.BaseServer) -> Iterator[int]:
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield server.server_address[1]  # type: ignore[misc]
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def http() -> contextlib.AbstractContextManager[int]:
    return served(Server(("127.0.0.1", 0), Pages))


@contextlib.contextmanager
def tls(certificate: Path) -> Iterator[int]:
    key = certificate.with_suffix(".key")
    subject = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"]
    made = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"]
    subprocess.run([*made, *subject, "-keyout", key, "-out", certificate], check=True, capture_output=True)
    with served(SecureServer(certificate, key)) as port:
        yield port


def free_port() -> int:
    """A port that nobody has now; outside of those that the kernel hands out."""
    import random

    for _ in range(100):
        with socket.socket() as one, contextlib.suppress(OSError):
            one.bind(("127.0.0.1", port := random.randrange(20000, 30000)))
            return port
    raise AssertionError("no port is free")


def answers(port: int, process: subprocess.Popen[str], limit: float = 30) -> None:
    """Waits until somebody listens."""
    until = time.monotonic() + limit
    while True:
        with socket.socket() as one:
            if one.connect_ex(("127.0.0.1", port)) == 0:
                return
        if process.poll() is not None or time.monotonic() > until:
            raise RuntimeError(f"{process.args} does not listen: {process.stderr.read() if process.stderr else ''}")
        time.sleep(0.02)


@contextlib.contextmanager
def process(command: list[str], port: int, **options: object) -> Iterator[int]:
    with tempfile.TemporaryFile("w+") as errors:
        started = subprocess.Popen(  # type: ignore[call-overload]
            command, stdin=subprocess.DEVNULL, stdout=errors, stderr=errors, text=True, start_new_session=True, **options
        )
        try:
            answers(port, started)
            yield port
        finally:
            started.terminate()
            try:
                started.wait(10)
            except subprocess.TimeoutExpired:
                started.kill()
                started.wait()


ECHO = """\
import sys, threading
from concurrent.futures import ThreadPoolExecutor
import grpc
echo = grpc.unary_unary_rpc_method_handler(lambda request, context: request)
server = grpc.server(ThreadPoolExecutor(4))
server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler("echo.Echo", {"Say": echo})])
assert server.add_insecure_port("127.0.0.1:" + sys.argv[1])
server.start()
threading.Event().wait()
"""


def grpc() -> contextlib.AbstractContextManager[int]:
    port = free_port()
    return process([sys.executable, "-c", ECHO, str(port)], port)


def redis() -> contextlib.AbstractContextManager[int] | None:
    """None where there is no Redis here."""
    if (program := shutil.which("redis-server")) is None:
        return None
    port = free_port()
    quiet = ["--save", "", "--appendonly", "no", "--protected-mode", "no", "--dir", "/tmp"]
    return process([program, "--port", str(port), "--bind", "127.0.0.1", *quiet], port)


def postgres_folder() -> Path | None:
    """Where the newest PostgreSQL's own commands are: Debian keeps them off PATH."""
    places = [path.parent for path in Path("/usr/lib/postgresql").glob("*/bin/initdb")]
    if places:
        return max(places, key=lambda path: int(path.parent.name))
    found = shutil.which("initdb")
    return Path(found).resolve().parent if found else None


@contextlib.contextmanager
def postgres(commands: Path) -> Iterator[int]:
    """A server of its own, as a user without rights: it does not run as root."""
    who = {"user": NOBODY, "group": NOBODY, "extra_groups": []} if os.geteuid() == 0 else {}
    with tempfile.TemporaryDirectory(prefix="psb-postgres-") as name:
        folder, port = Path(name), free_port()
        if who:
            os.chown(folder, NOBODY, NOBODY)
        make = [commands / "initdb", "-D", folder / "data", "-U", "tester", "-A", "trust", "-N", "--no-locale", "-E", "UTF8"]
        subprocess.run(make, check=True, capture_output=True, cwd=folder, **who)  # type: ignore[call-overload]
        settings = {
            "listen_addresses": "127.0.0.1",
            "unix_socket_directories": "",
            "fsync": "off",
            "shared_buffers": "16MB",
            "dynamic_shared_memory_type": "mmap",
        }
        options = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        command = [str(commands / "postgres"), "-D", str(folder / "data"), "-p", str(port), *options]
        with process(command, port, cwd=folder, **who):
            yield port
