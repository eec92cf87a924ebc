"""Every attack of the corpus: it works bare, and it does not under the policy."""

from __future__ import annotations

import socket
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from cases import CASES as ALL
from cases import Attack
from complete_mode import Place

pytestmark = pytest.mark.smoke
CASES = [attack for attack in ALL if sys.version_info < attack.before]


@pytest.fixture(scope="session")
def listener() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


@pytest.fixture
def aim(place: Place) -> Path:
    (place.folder / "work").mkdir()
    place.environment["SECRET_TOKEN"] = "s3cret"
    return place.file("secret/key", "s3cret")


def payload(attack: Attack, aim: Path, port: int) -> str:
    return attack.code.format(secret=str(aim), port=port)


def ids(attack: Attack) -> str:
    return f"{attack.objective}: {attack.name}"


@pytest.mark.parametrize("attack", CASES, ids=ids)
def test_negative_control(attack: Attack, place: Place, aim: Path, listener: int) -> None:
    done = place.bare("-c", payload(attack, aim, listener), timeout=20)
    assert "ESCAPED" in done.stdout, done.stderr


@pytest.mark.parametrize("provider", ["landlock", "subprocess"])
@pytest.mark.parametrize("attack", CASES, ids=ids)
def test_refused(attack: Attack, provider: str, place: Place, aim: Path, listener: int) -> None:
    place.provider = provider
    place.profile(f"python-import=*\nunenv=SECRET_TOKEN\n{attack.grants}\n")
    done = place.run("-c", payload(attack, aim, listener), timeout=20)
    assert "ESCAPED" not in done.stdout, done.stderr
    assert aim.read_text() == "s3cret", "the attack changed what it was to read"
    assert done.returncode < 125, f"the sandbox did not start: {done.stderr}"
