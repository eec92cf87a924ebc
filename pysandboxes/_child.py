"""Start of a sandboxed interpreter in partial mode, from ``python ... -c BOOT`` to the serving loop.

Everything of ours that the child will ever need is imported here, before ``_guard.arm()``: from then on imports, files
and calls are the program's, and are charged to its profile.
"""

from __future__ import annotations

import sys

from . import _context, _guard, _main_module, _sandbox
from ._logs import Forwarder
from ._serve import Server
from ._streams import Output, encode, outlet
from ._wire import LOG, STDERR, STDOUT, unpack_settings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn

#: Ready for the program's own ``from pysandboxes import ...``.
PRELOADED = (_context, _sandbox, _guard.RestrictedUnpicklingError)


def main() -> NoReturn:
    """Set this interpreter up as the application described it, arm the guard, serve, end."""
    expected = _guard.package()
    found = __file__.rpartition("/")[0]
    if found != expected:
        _die(f"the package was loaded from {found}, but the application's is {expected}")
    settings = unpack_settings(_guard.extra())
    sys.path[:] = settings.get("path", sys.path)
    sys.argv[:] = settings.get("argv", [""])
    sys.stdout = Output(STDOUT)
    sys.stderr = Output(STDERR)
    (main_path,) = settings.get("main", [""])
    (main_package,) = settings.get("main-package", [""])
    (level,) = settings.get("log-level", ["30"])
    forwarder = Forwarder(_send_record, int(level))
    forwarder.watch()
    server = Server(forwarder)
    _main_module.install(main_path, main_package)
    _guard.arm(main_package)
    server.run()
    sys.stdout.flush()
    sys.stderr.flush()
    sys.exit(0)


def _send_record(fields: dict[str, Any]) -> None:
    """Hand over a log record: to the caller of the call it belongs to, else as text on stderr."""
    target = outlet.get()
    with target.lock:
        if target.id:
            _guard.send(LOG, target.id, _guard.pack(fields))
        else:
            text = f"{fields['levelname']}:{fields['name']}:{fields['msg']}\n{fields.get('exc_text', '')}"
            target.send(STDERR, encode(text.rstrip("\n") + "\n"))


def _die(why: str) -> NoReturn:
    stream = sys.__stderr__
    if stream is not None:
        stream.write(f"pysandboxes: this sandboxed interpreter does not start: {why}\n")
        stream.flush()
    sys.exit(125)
