"""Log records across the border: made in the sandbox, handled by the application's loggers of the same name.

A record crosses as plain values; its message is formatted, and its exception made text, in the sandbox. Both sides act
only once the program itself has loaded ``logging``: the sandbox imports nothing for it.
"""

from __future__ import annotations

import sys
from _thread import allocate_lock

from ._watch import Watch

TYPE_CHECKING = False
if TYPE_CHECKING:
    import logging
    from collections.abc import Callable
    from typing import Any

MAX_TEXT = 64 * 1024
#: ``logging`` keeps each logger for ever, and a place for each of the dotted names above it. The sandbox chooses the names:
#: one that is longer, or new when so many are there, goes to the logger above it that the application has.
MAX_NAME = 200
MAX_LOGGERS = 1000
#: The first and the last second that ``time.localtime`` and datetime know everywhere.
TIMES = (0, 253402300799)
#: Fields of a record that cross, and the type each must have in the application.
FIELDS: dict[str, type | tuple[type, ...]] = {
    "name": str,
    "levelno": int,
    "levelname": str,
    "msg": str,
    "pathname": str,
    "lineno": int,
    "funcName": str,
    "created": (int, float),
    "threadName": str,
    "exc_text": str,
}


class Forwarder:
    """Sends the records of the root logger of a sandboxed interpreter; ``level`` is the application's root level."""

    def __init__(self, send: Callable[[dict[str, Any]], None], level: int) -> None:
        self._send = send
        self._level = level
        self._installed = False
        self._claim = allocate_lock()  # taken by the one thread that installs
        self._watch = Watch("logging", self.install)

    def watch(self) -> None:
        """Install as soon as the program loads ``logging``, so that no record of its first lines is missed."""
        self._watch.begin()

    def install(self) -> None:
        """Add the handler, once the program has loaded ``logging``."""
        if self._installed:
            return
        logging = sys.modules.get("logging")
        if logging is None or not hasattr(logging, "Handler") or not hasattr(logging, "root"):
            return
        if getattr(getattr(logging, "__spec__", None), "_initializing", False) or not self._claim.acquire(False):
            return  # another thread is still loading it, or is at this very place
        self._installed = True
        self._watch.end()
        forwarder = self

        class SandboxHandler(logging.Handler):  # type: ignore[misc,name-defined]
            """Hands the records of this interpreter to the application."""

            def emit(self, record: logging.LogRecord) -> None:  # type: ignore[name-defined]
                try:
                    forwarder.forward(record)
                except Exception:
                    self.handleError(record)

        logging.root.addHandler(SandboxHandler())
        logging.root.setLevel(self._level)

    def forward(self, record: logging.LogRecord) -> None:
        fields: dict[str, Any] = {name: getattr(record, name, None) for name in FIELDS}
        fields["msg"] = record.getMessage()[:MAX_TEXT]
        if record.exc_info and not record.exc_text:
            formatter = sys.modules["logging"].Formatter()
            fields["exc_text"] = formatter.formatException(record.exc_info)[:MAX_TEXT]
        self._send({name: value for name, value in fields.items() if value is not None})


def handle(fields: dict[str, Any]) -> None:
    """Give a record that came from a sandbox to the application's logger of its name.

    Fields of a wrong type are left out; file names are marked as the sandbox's, so that nobody opens them.
    """
    import logging

    known: dict[str, Any] = {
        name: value
        for name, value in fields.items()
        if name in FIELDS and isinstance(value, FIELDS[name]) and not isinstance(value, bool)
    }
    known.setdefault("name", "pysandboxes")
    known.setdefault("levelno", logging.WARNING)
    known.setdefault("msg", "")
    known["levelname"] = logging.getLevelName(known["levelno"])
    path = known.get("pathname", "")
    known["pathname"] = f"<sandbox:{path}>"
    known["filename"] = path.rpartition("/")[2]
    known["module"] = known["filename"].removesuffix(".py")
    known["args"] = None
    known["processName"] = "sandbox"
    if not TIMES[0] <= known.get("created", 0) <= TIMES[1]:
        del known["created"]
    logger = logger_for(known["name"])
    if logger.isEnabledFor(known["levelno"]):
        logger.handle(logging.makeLogRecord(known))


#: Names of loggers that were made here, because a sandbox used them first.
_made: set[str] = set()


def logger_for(name: str) -> logging.Logger:
    """The application's logger of a name that the sandbox chose, within the bounds above."""
    import logging

    present = logging.root.manager.loggerDict
    if name not in present:
        if len(name) <= MAX_NAME and len(_made) < MAX_LOGGERS:
            _made.add(name)
        else:
            name = name[:MAX_NAME]
            while name and not isinstance(present.get(name), logging.Logger):
                name = name.rpartition(".")[0]
    return logging.getLogger(name)
