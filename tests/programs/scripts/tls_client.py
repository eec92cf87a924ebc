import json
import socket
import ssl
import sys

PORTS = json.loads(sys.argv[1])
context = ssl.create_default_context(cafile=PORTS["certificate"])
with (
    socket.create_connection(("127.0.0.1", PORTS["tls"]), 10) as plain,
    context.wrap_socket(plain, server_hostname="localhost") as secured,
):
    secured.sendall(b"hello")
    print(secured.version() in ("TLSv1.2", "TLSv1.3"), secured.recv(100).decode())
try:
    with socket.create_connection(("127.0.0.1", PORTS["tls"]), 10) as plain:
        context.wrap_socket(plain, server_hostname="elsewhere")
except ssl.SSLCertVerificationError as error:
    print(error.verify_code)
