"""``python -m pysandboxes.python_sb``, ``python3-sb`` and ``ipython-sb``: hand over to the ``python-sb`` program.

:func:`main` is importable, so that a package can ship a sandboxed command of its own.
"""

from __future__ import annotations

import os
import sys

from . import _binary

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import NoReturn

#: Exit status where the program cannot be run, as a shell's.
NOT_FOUND = 127


def main(argv: Sequence[str] | None = None) -> NoReturn:
    """Become ``python-sb`` with these arguments (``sys.argv[1:]`` by default). Does not return.

    The program finds the interpreter beside itself, so it runs this very one.
    """
    arguments = list(sys.argv[1:] if argv is None else argv)
    try:
        binary = _binary.find()
    except FileNotFoundError as exc:
        print(f"python-sb: {exc}", file=sys.stderr)
        sys.exit(NOT_FOUND)
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()
    os.execv(binary, [binary, *arguments])


def ipython_main() -> NoReturn:
    """IPython's command line inside the sandbox: own options first, the rest is IPython's."""
    from importlib.util import find_spec

    if find_spec("IPython") is None:
        name = os.path.basename(sys.argv[0]) or "ipython-sb"  # noqa: PTH119
        print(f"{name}: IPython is not installed for {sys.executable}; install it: pip install ipython", file=sys.stderr)
        sys.exit(1)
    arguments = sys.argv[1:]
    own = [argument for argument in arguments if _is_ours(argument)]
    rest = [argument for argument in arguments if not _is_ours(argument)]
    main([*own, "-m", "IPython", *rest])


# Options of python-sb that IPython has none of by the same name.
_OURS = ("--learn", "--pysandboxes-config", "--os-sandbox", "--py-sandbox", "--version")
_RULES = ("env", "unenv", "expose-ro", "expose-rw", "ignore", "net", "python-import", "python-api", "learn")


def _is_ours(argument: str) -> bool:
    name = argument.partition("=")[0]
    return name in _OURS[:4] or (name.startswith("--") and "=" in argument and name[2:] in _RULES)


if __name__ == "__main__":
    main()
