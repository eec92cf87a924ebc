"""The engine's control plane (``_core``, generated from bindings/control) as a Python would like to call it.

The only module that knows names, JSON and error texts of ``_core``'s control functions. The path of a call does not pass
here: ``_call`` uses ``_core.call_*`` directly.
"""

from __future__ import annotations

from json import dumps, loads

from . import _core, _exceptions
from ._exceptions import SandBoxError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

#: Kinds of errors of the engine, which are names of exception classes.
_KINDS = ("ConfigSyntaxError", "SandBoxError", "SandBoxProtocolError", "SandBoxTimeoutError", "RestrictedUnpicklingError")


def error_from(exc: RuntimeError) -> SandBoxError:
    """The exception for an error of the engine: ``{"kind", "message", "file", "line", ...}`` as JSON.

    ``file`` and ``line`` become attributes ``filename`` and ``lineno``, where the error is about a line of a profile.
    """
    text = str(exc)
    try:
        fields = loads(text)
    except ValueError:
        fields = None
    if not isinstance(fields, dict):
        return SandBoxError(text)
    kind = fields.get("kind")
    made: SandBoxError = getattr(_exceptions, kind if kind in _KINDS else "SandBoxError")(str(fields.get("message", text)))
    for name, attribute in (("file", "filename"), ("line", "lineno"), ("stack", "stack")):
        if fields.get(name):
            setattr(made, attribute, fields[name])
    return made


def call(function: str, *args: Any) -> Any:
    """Call a control function; its error becomes one of ours."""
    try:
        return getattr(_core, f"control_{function}")(*args)
    except RuntimeError as exc:
        raise error_from(exc) from None


def ask(function: str, request: dict[str, Any]) -> Any:
    """Call a control function that takes and gives JSON."""
    return loads(call(function, dumps(request)))


class Sandbox:
    """One open sandbox of the engine. ``handle`` is the number that ``_core.call_*`` takes; it comes with a reference, ours."""

    def __init__(self, handle: int) -> None:
        self.handle = handle

    @classmethod
    def open(cls, spec: dict[str, Any]) -> Sandbox:
        return cls(call("Open", dumps(spec)))

    def __del__(self, _free: Callable[[int], None] = _core.DecRef) -> None:  # at the interpreter's end the module is empty
        handle = getattr(self, "handle", None)
        if handle is not None:
            _free(handle)

    def method(self, name: str, *args: Any) -> Any:
        return call(f"Sandbox_{name}", self.handle, *args)

    def another(self) -> Sandbox:
        """A sandbox under the same policy; nothing is read again."""
        return Sandbox(self.method("Another"))

    def ensure(self) -> int:
        """Number of the interpreter in force, which is started now if there is none. Changes with each restart."""
        generation: int = self.method("Ensure")
        return generation

    def pid(self) -> int:
        pid: int = self.method("Pid")
        return pid

    def provider(self) -> str:
        provider: str = self.method("Provider")
        return provider

    def stats(self) -> dict[str, Any]:
        stats: dict[str, Any] = loads(self.method("Stats"))
        return stats

    def notices(self) -> list[str]:
        """What a person should know about this sandbox: gaps of its provider, warnings of its profile."""
        notices: list[str] = loads(self.method("Notices"))
        return notices

    def learn_report(self) -> str:
        """The table of what was learned, "" where nothing was to be learned. Valid after ``stop``."""
        report: str = self.method("LearnReport")
        return report

    def kill(self, generation: int) -> None:
        """End the interpreter of that number at once, and return when it is gone; ``ensure`` starts the next."""
        self.method("Kill", generation)

    def reload(self, timeout: float) -> None:
        """Start a new interpreter under the profile read again; running calls may finish, for ``timeout`` seconds."""
        self.method("Reload", int(timeout * 1000))

    def stop(self, graceful: bool, timeout: float) -> None:
        """End the interpreter; with ``graceful`` running calls finish first, for at most ``timeout`` seconds."""
        self.method("Stop", graceful, int(timeout * 1000))
