"""Keeps the machine as it is: what the suite does as root reaches the hostname, the clock, /dev and the interpreter.

Root runs everything in a mount and a UTS namespace of its own, where /dev is mounted read-only (devices can be used there, not
changed) and what is written to the interpreter's folders goes to memory and is gone afterwards; and without the capabilities
that reach the whole machine. Anyone else has no such reach. Bare and sandboxed runs start from the same place, so that
neither is the reason of a difference.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

MARK = "PSB_COMPAT_APART"
CAPABILITIES = "-sys_time,-sys_boot,-sys_module,-syslog,-wake_alarm"
SCRIPT = """
scratch=$(mktemp -d) && mount -t tmpfs tmpfs "$scratch" || exit 1
n=0
for folder in "$PREFIX" "$VENV"; do
    n=$((n + 1))
    mkdir "$scratch/$n" "$scratch/$n.work"
    mount -t overlay overlay -o "lowerdir=$folder,upperdir=$scratch/$n,workdir=$scratch/$n.work" "$folder" || exit 1
done
mount -o remount,bind,ro /dev || { mount --rbind /dev /dev && mount -o remount,bind,ro /dev; } || exit 1
"$@"
code=$?
umount -l "$scratch"
rmdir "$scratch"
exit $code
"""


def enter() -> None:
    """Starts this program again where it can harm nothing, if root runs it. A machine that grants no namespaces (a container)
    is not root's to change: the container holds the clock and the name."""
    if os.geteuid() != 0 or os.environ.pop(MARK, None):
        return
    environment = {**os.environ, MARK: "1", "PREFIX": os.path.realpath(sys.base_prefix), "VENV": os.path.realpath(sys.prefix)}
    if not shutil.which("unshare") or not shutil.which("setpriv"):
        raise SystemExit(
            "compat: as root this needs unshare and setpriv (util-linux), so that the suite cannot change the machine"
        )
    drop = ["setpriv", "--bounding-set", CAPABILITIES, "--inh-caps", CAPABILITIES]
    command = ["unshare", "--mount", "--uts", "--propagation", "private", "sh", "-c", SCRIPT, "sh", *drop]
    if subprocess.run([*command, "true"], env=environment, capture_output=True, check=False).returncode:
        print("compat: no namespaces here: what the suite does as root is held by this container alone", file=sys.stderr)
        return
    os.execvpe(command[0], [*command, sys.executable, *sys.argv], environment)
