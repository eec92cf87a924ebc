"""What `pysandboxes doctor` says of a machine is what a start there comes to: for root, for a user, in a container."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from complete_mode import Place

RULES = "python-import=*\nexpose-ro=.\nignore=.env\nignore-best-effort=true\nnet=ALLOW|TCP|127.0.0.1|9|OUT\nos-sandbox=auto\n"

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="mounting needs root")


def examine(place: Place, *before: str | Path) -> tuple[str, str]:
    """The doctor's report, and the log of a start that could use all that there is."""
    place.profile(RULES)
    place.file(".env", "s3cret")
    place.environment["PYSANDBOXES_DEBUG"] = "1"
    place.run("-c", "pass")  # what is known of the interpreter is kept
    report = place.doctor(*before)
    started = place._run([*map(str, before), *place.command("-c", "print('ran')")], 60, {})
    assert started.stdout == "ran\n", started.stderr
    return report, started.stderr


def line(report: str, begin: str) -> str:
    found = [one for one in report.splitlines() if one.strip().startswith(begin)]
    assert len(found) == 1, report
    return found[0].strip()


def agree(report: str, log: str) -> None:
    boundary = re.search(r'msg="sandbox started".*boundary="([^"]*)"', log)
    assert boundary, log
    assert "takes landlock, the strongest that works here" in line(report, "providers (")
    provider, *words = re.split("[:;] ", boundary[1])
    assert provider == "landlock"
    network = line(report, "network rules: ").removeprefix("network rules: ")
    namespaces = "yes  namespaces" in report
    how = network.split(" (")[0]
    assert network.startswith(("walled (the default)", "unwalled (the default)")), network
    assert words[0] == f"network {how}, the default", boundary[1]
    assert ("walled can be had as well" in network) == namespaces, network
    assert line(report, "files: ").startswith("files: what ignore= hides" if namespaces else "files: whole folders alone")
    assert (len(words) == 2) == namespaces, boundary[1]
    if not namespaces:
        assert "what ignore= hides is held by the Python layer only, since" in log


def test_of_this_machine(place: Place) -> None:
    agree(*examine(place))


@pytest.mark.unprivileged
def test_of_a_user(unprivileged: Place) -> None:
    agree(*examine(unprivileged))


@pytest.mark.parametrize("flags", ["-docker -drop", pytest.param("-docker -drop -read-only", marks=needs_root)])
def test_of_a_container(place: Place, contained: Path, flags: str) -> None:
    report, log = examine(place, contained, *flags.split(), "--")
    agree(report, log)
    assert "no   namespaces" in report, "Docker's profile permits none without CAP_SYS_ADMIN"


def test_where_namespaces_alone_are_refused(place: Place, contained: Path) -> None:
    """As on a machine whose administrator has switched them off for users; all else is there."""
    off = 'echo 0 >/proc/sys/user/max_user_namespaces && exec "$@"'
    before = ["unshare", "--user", "--map-root-user", "sh", "-c", off, "sh"]
    if not shutil.which("unshare") or subprocess.run([*before, "true"], capture_output=True).returncode:
        pytest.skip("no user namespace can be made here in which there are no more")
    report, log = examine(place, *before, contained, "-drop", "--")
    agree(report, log)
    assert "no   namespaces" in report and "yes  pidfd_getfd" in report, report
    assert "walled cannot be had: no namespaces can be made here" in report


@pytest.mark.parametrize("choice", ["walled", "unwalled"])
def test_of_a_choice(place: Place, choice: str) -> None:
    place.environment["PYSANDBOXES_NETWORK"] = choice
    report, log = examine(place)
    assert line(report, "network rules: ").startswith(f"network rules: {choice} (PYSANDBOXES_NETWORK={choice})")
    assert f"network {choice}, as was asked for" in log
