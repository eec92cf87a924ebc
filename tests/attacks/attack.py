"""What a case of the attack corpus is. The cases stand in one file an objective: read.py, write.py, execute.py, ...

A payload is a program: it prints ESCAPED when it has reached its aim. Run bare it must (the negative control: a payload that
does nothing proves nothing); run under a profile that grants imports but not the aim it must not, whatever else happens.

What a payload may use without defining it (see ground.py):

========== ==========================================================================================
SECRET     absolute path of a file that no rule exposes; its text is ``s3cret``, its name is ``key``
HIDDEN     the folder of that file; no rule exposes it either
WORK       a folder of the payload's own, relative; ``expose-rw=./work`` exposes it
SHOWN      another one, which ``expose-ro=./shown`` exposes; it holds a file ``page`` with the text ``shown``
PORT       a port of 127.0.0.1 and ::1, TCP and UDP, where somebody listens and no rule says so
OPEN       another one, which grants may name as ``{open}``
SOCKET     absolute path of a local stream socket where somebody listens
LETTERS    the same of a local datagram socket
ABSTRACT   as SOCKET with a name that is no path
VICTIM     the number of a process of the same user, with SECRET_TOKEN=s3cret in its environment
got(data)  prints ESCAPED if the secret is in data (str, bytes, or what has a str)
absent(w)  ends the payload: this interpreter lacks what it needs (a module that was not built); the case is skipped
========== ==========================================================================================
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

#: How a payload goes about it. The rows of docs/assessment.md.
KINDS = {
    "direct": "the function that everybody uses",
    "twin": "the same function of a lower module, or another name of it",
    "library": "a module of the standard library that does it for the caller",
    "spelling": "another way to write the same path, address or name",
    "descriptor": "descriptors: relative to one, through one, inherited ones",
    "link": "symbolic and hard links, mounts, what renames carry over a border",
    "metadata": "learns or changes what is known of a file, not its content",
    "race": "one thread changes what another has just had judged",
    "object": "objects that answer differently when they are asked again, subclasses, odd arguments",
    "native": "the C library or a foreign library does it, without a Python event",
    "state": "changes the state of the process or of the interpreter first",
    "walk": "reaches a function by walking from an innocent object to it",
    "flood": "exhausts what a guard needs",
    "text": "strings, bytes and code objects that become code",
}


@dataclass(frozen=True)
class Attack:
    """One payload of the corpus."""

    objective: str
    name: str
    code: str
    grants: str = ""
    """Profile lines beyond the import rule. Cases of the same grants share a process, see ``alone``."""
    before: tuple[int, int] = (4, 0)
    """The first Python on which the payload does not work any more."""
    since: tuple[int, int] = (3, 0)
    """The first Python on which it works."""
    kind: str = "direct"
    layer: Literal["python", "os"] = "python"
    """``python``: the Python layer holds it, and so every provider does. ``os``: only the kernel's boundary can, so that
    nothing is claimed under ``os-sandbox=subprocess``."""
    alone: bool = False
    """The payload is the program, in a process of its own: for what changes the process (its folder, its descriptors, its
    modules), ends it, leaves something behind, or may not be stopped by an exception."""
    imports: str = "*"
    """What python-import grants. Anything but ``*`` makes the case ``alone``."""
    plant: str = ""
    """Python code that prepares the place beforehand, unsandboxed: a link, a database. It knows what payloads know."""
    first: str = ""
    """Another program of an earlier start under the same profile (bare in the control), for what outlives a start. It makes the
    case ``alone``, and a payload that is not let start is held."""
    learns: bool = False
    """``first`` is a learning run, and what it learned is the profile of the payload."""
    gap: str = ""
    """Why it escapes nevertheless: a known gap, listed in docs/assessment.md. The case must fail as long as it is there."""

    def __post_init__(self) -> None:
        assert self.kind in KINDS, self.kind

    @property
    def shared(self) -> bool:
        """Does it run with others in one process?"""
        return not self.alone and not self.first and self.imports == "*"
