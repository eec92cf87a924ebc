"""Starts worker.py, bare or under python-sb, and reads what it wrote. See __main__.py."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from compare import Module, Outcome

BIN = Path(sys.executable).parent
WORKER = Path(__file__).resolve().parent / "worker.py"

#: Everything, but for one function that no test needs. The profile itself may not be written, so that it stands beside
#: the folder where the tests work.
PROFILE = """\
env=*=${*}
expose-ro=/
expose-rw=/dev
expose-rw=/dev/ptmx
expose-rw=/dev/pts
expose-rw=/proc
expose-rw=./tmp
python-import=*
python-api=ALLOW:*
python-api=DENY:os.login_tty
net=ALLOW|*|*|*|*
net=ALLOW|*|0.0.0.0|*|*
net=ALLOW|*|::|*|*
net=ALLOW|*|@private|*|*
net=ALLOW|*|@loopback|*|*
net=ALLOW|*|@link-local|*|*
net=ALLOW|*|@metadata|*|*
"""


def profile(folder: Path) -> None:
    (folder / "tmp").mkdir()
    (folder / "everything.py-sandboxes").write_text(PROFILE)


def environment(place: Path, folder: Path) -> dict[str, str]:
    """The home is not where the tests may write: python-sb keeps its cache there, which no program may change."""
    home = folder / "home"
    home.mkdir(exist_ok=True)
    return {"HOME": str(home), "TMPDIR": str(place), "PATH": os.environ["PATH"], "LANG": "C.UTF-8"}


def run(module: Module, provider: str | None, folder: Path) -> Outcome:
    """Runs a module under a provider, or bare. Never longer than its limit; what it left of its session is ended."""
    place = Path(tempfile.mkdtemp(dir=folder / "tmp", prefix="run"))
    out = place / "outcomes"
    work = place / "work"
    work.mkdir()
    command = [str(BIN / "python")]
    if provider:
        config = f"--pysandboxes-config={folder / 'everything.py-sandboxes'}"
        command = [str(BIN / "python-sb"), config, f"--os-sandbox={provider}"]
    worker = shutil.copy(WORKER, work)  # its folder is first on sys.path, and tests write modules there
    command += [worker, str(out), module.name, *(["held"] if provider else []), *module.patterns]
    trouble = ""
    with (place / "words").open("wb") as words:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=words,
            stderr=words,
            cwd=work,
            env=environment(place, folder),
            start_new_session=True,
        )
        try:
            code = process.wait(module.limit)
            trouble = f"ended with {code}" if code else ""
        except subprocess.TimeoutExpired:
            trouble = f"not done after {module.limit:.0f} s"
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        process.wait()
    return read(out, trouble, (place / "words").read_text(errors="backslashreplace"))


def read(out: Path, trouble: str, words: str) -> Outcome:
    """A test that was started and has no outcome is the one that hung or crashed."""
    result = Outcome()
    ended = False
    for line in out.read_text(errors="backslashreplace").splitlines() if out.exists() else ():
        try:
            name, outcome, said = json.loads(line)
        except ValueError:  # cut by the end of the process
            continue
        if outcome == "end":
            ended = True
            result.judged, result.refused = map(int, said.split()[:2])
            result.seconds = float(said.split()[2])
        else:
            result.outcomes[name] = "did not end" if outcome == "started" else outcome
            result.words[name] = said
    if trouble or not ended:
        result.trouble = f"{trouble or 'stopped'}: {words.strip()[-600:]}"
    return result
