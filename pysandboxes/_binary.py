"""Where the ``python-sb`` program is: the static Go binary of the distribution of that name."""

# os.path: importing pathlib would cost more than all the rest of this package.
# ruff: noqa: PTH109, PTH118, PTH119, PTH120, PTH123, PTH208

from __future__ import annotations

import os
import sys

NAME = "python-sb"
_DIST_INFO = "python_sb-"


def find() -> str:
    """Path of the binary: what the distribution's RECORD lists, else beside the interpreter.

    Raises FileNotFoundError that lists where it was looked for.
    """
    looked = []
    for folder in dict.fromkeys(entry or os.getcwd() for entry in sys.path):
        for path in _recorded(folder):
            looked.append(path)
            if _runs(path):
                return path
    for folder in (os.path.dirname(sys.executable), os.path.join(sys.prefix, "bin")):
        path = os.path.join(folder, NAME)
        if path not in looked:
            looked.append(path)
            if _runs(path):
                return path
    places = "".join(f"\n    {path}" for path in looked)
    raise FileNotFoundError(
        f"the program {NAME} is not installed for {sys.executable}; looked for{places}\ninstall it: pip install {NAME}"
    )


def _recorded(folder: str) -> list[str]:
    """Paths that a RECORD of the distribution in a folder of sys.path gives for the binary."""
    try:
        names = [name for name in os.listdir(folder) if name.startswith(_DIST_INFO) and name.endswith(".dist-info")]
    except OSError:
        return []
    found = []
    for name in names:
        try:
            with open(os.path.join(folder, name, "RECORD"), encoding="utf-8") as record:
                rows = record.read().splitlines()
        except OSError:
            continue
        for row in rows:
            path = row.partition(",")[0].strip('"')
            if os.path.basename(path) == NAME:
                found.append(os.path.normpath(os.path.join(folder, path)))
    return found


def _runs(path: str) -> bool:
    """Whether ``path`` is a program of its own, not a script that leads back here."""
    if not os.access(path, os.X_OK):
        return False
    try:
        with open(path, "rb") as file:
            return file.read(4) == b"\x7fELF"
    except OSError:
        return False
