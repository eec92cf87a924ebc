"""Starts a program again and again, kills each start by SIGKILL at a moment of its own, and tells what was left of it.

    python warden.py FOLDER MOMENTS PROGRAM [ARGUMENT ...]

It is the parent of all that the program leaves behind (a subreaper), and FOLDER all that the program may write to: its home,
its temporary folder. MOMENTS is `WORD:MILLISECONDS,...`: so long after the program has printed that word; the empty word is
the start. Prints a line for each moment with something left, then `done N`.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

PR_SET_CHILD_SUBREAPER = 36
#: Seconds that processes have to end.
PATIENCE = float(os.environ.get("WARDEN_PATIENCE", "20"))


def children() -> dict[int, str]:
    """Numbers and command lines of the processes that this one is the parent of, the ended ones collected."""
    while True:
        try:
            pid, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return {}
        if not pid:
            break
    found = {}
    for task in Path("/proc/self/task").iterdir():
        for pid in (task / "children").read_text().split():
            try:
                found[int(pid)] = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
            except OSError:
                continue
    return found


def state(folder: Path) -> set[str]:
    """What there is that outlives a process: files, and sockets with a name."""
    shared = [entry.name for entry in Path("/dev/shm").iterdir() if "psb" in entry.name or "pysandboxes" in entry.name]
    sockets = [line for line in Path("/proc/net/unix").read_text().splitlines() if "pysandboxes" in line]
    return {str(path) for path in folder.rglob("*")} | set(shared) | set(sockets)


def main() -> None:
    folder, moments, command = Path(sys.argv[1]), sys.argv[2], sys.argv[3:]
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    env = {
        **os.environ,
        "HOME": str(folder),
        "TMPDIR": str(folder),
        "XDG_CACHE_HOME": str(folder),
        "XDG_STATE_HOME": str(folder),
    }
    known: set[str] | None = None
    done = 0
    for moment in moments.split(","):
        word, milliseconds = moment.split(":")
        process = subprocess.Popen(command, env=env, stdout=subprocess.PIPE, start_new_session=True)
        assert process.stdout is not None
        if word:
            for line in process.stdout:
                if line.split() == [word.encode()]:
                    break
            else:
                print(f"{moment}: the program ended with {process.wait()}")
                continue
        time.sleep(int(milliseconds) / 1000)
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()
        deadline = time.monotonic() + PATIENCE
        while (left := children()) and time.monotonic() < deadline:
            time.sleep(0.01)
        if left:
            print(f"{moment}: processes {list(left.values())}")
            for pid in left:  # our own children, so the number is still theirs
                os.kill(pid, signal.SIGKILL)
        now = state(folder)
        if known is None:
            known = now  # caches that the first start made
        elif now - known:
            print(f"{moment}: {sorted(now - known)}")
        done += 1
    print("done", done)


if __name__ == "__main__":
    main()
