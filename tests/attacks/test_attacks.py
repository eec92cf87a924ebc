"""Every attack of the corpus: it works bare, and it does not under the policy."""

from __future__ import annotations

import os
import sys
from collections import Counter
from pathlib import Path

import by_system_call
import bytecode
import caches
import callers
import channel
import disarm
import disarm_modules
import disarm_state
import execute
import execute_by_library
import execute_by_subprocess
import execute_indirect
import exfiltrate
import exfiltrate_by_library
import exfiltrate_local
import exhaust
import imports
import imports_by_library
import library_files
import look
import look_hidden
import mutate
import native
import next_start
import own_files
import poison
import pytest
import read
import read_by_c_library
import read_by_library
import read_by_link
import read_by_path
import rights
import secret
import signals
import sql
import strings
import strings_by_import
import strings_by_pickle
import templates
import twofaced
import write
import write_by_library
import write_metadata
import write_names
from assessment import PAGE, page
from attack import Attack
from complete_mode import NOBODY
from ground import Ground

FILES = [
    read,
    read_by_path,
    read_by_link,
    read_by_library,
    read_by_c_library,
    library_files,
    look,
    look_hidden,
    write,
    write_names,
    write_metadata,
    write_by_library,
    sql,
    exfiltrate,
    exfiltrate_by_library,
    exfiltrate_local,
    secret,
    signals,
    by_system_call,
    own_files,
    rights,
    execute,
    execute_by_subprocess,
    execute_by_library,
    execute_indirect,
    imports,
    imports_by_library,
    strings,
    strings_by_import,
    strings_by_pickle,
    bytecode,
    callers,
    templates,
    native,
    disarm,
    disarm_modules,
    disarm_state,
    mutate,
    next_start,
    channel,
    poison,
    twofaced,
    exhaust,
    caches,
]
ALL: list[Attack] = [attack for file in FILES for attack in file.CASES]
CASES = [attack for attack in ALL if attack.since <= sys.version_info < attack.before]


def ids(attack: Attack) -> str:
    return f"{attack.objective}: {attack.name}"


def together(attack: Attack) -> pytest.MarkDecorator:
    """Cases that share a process are one worker's, or each worker would run it."""
    return pytest.mark.xdist_group(f"{attack.objective} {attack.grants}" if attack.shared else ids(attack))


every = pytest.mark.parametrize("attack", [pytest.param(a, id=ids(a), marks=together(a)) for a in CASES])


@pytest.fixture(scope="session")
def ours() -> Ground:
    return Ground()


@pytest.fixture(scope="session")
def nobodys(public_bin: Path | None) -> Ground:
    if os.geteuid() != 0:
        pytest.skip("the tests' own user has no rights already")
    if public_bin is None:
        pytest.skip("no interpreter of this version can be run by another user")
    return Ground(public_bin, NOBODY)


def works(ground: Ground, attack: Attack) -> None:
    result = ground.result(attack, None, CASES)
    if "ABSENT" in result.out:
        pytest.skip(result.out.strip())
    assert result.escaped, f"the attack does not work bare: {result}"


def holds(ground: Ground, attack: Attack, provider: str) -> None:
    result = ground.result(attack, provider, CASES)
    refused = attack.first and ("lies beneath" in result.process or "goes over the link" in result.process)
    if attack.objective in ("disarm", "channel"):  # a guard that crashes has not held
        assert result.status >= 0, f"it ended by a signal: {result}"
    if not refused:
        assert result.status < 125, f"the sandbox did not start: {result}"
        assert result.begun and result.ended, f"it was not reached, or ended its process: {result}"
    assert not result.escaped, f"escaped: {result}"
    if attack.objective == "exfiltrate" and "net=" not in attack.grants:
        assert result.arrived == []


def expected(attack: Attack, request: pytest.FixtureRequest) -> None:
    if attack.gap:
        request.applymarker(pytest.mark.xfail(reason=attack.gap, strict=True))


@pytest.mark.smoke
@every
def test_negative_control(attack: Attack, ours: Ground) -> None:
    works(ours, attack)


@pytest.mark.smoke
@every
def test_landlock_holds(attack: Attack, ours: Ground, request: pytest.FixtureRequest) -> None:
    expected(attack, request)
    holds(ours, attack, "landlock")


@pytest.mark.smoke
@every
def test_python_layer_holds(attack: Attack, ours: Ground, request: pytest.FixtureRequest) -> None:
    if attack.layer == "os":
        pytest.skip("only the OS layer can hold it")
    expected(attack, request)
    holds(ours, attack, "subprocess")


@pytest.mark.unprivileged
@every
def test_landlock_holds_without_privilege(attack: Attack, nobodys: Ground, request: pytest.FixtureRequest) -> None:
    works(nobodys, attack)
    expected(attack, request)
    holds(nobodys, attack, "landlock")


def test_names_are_unique() -> None:
    assert [name for name, count in Counter(map(ids, ALL)).items() if count > 1] == []


def test_the_assessment_is_current() -> None:
    assert PAGE.read_text() == page(ALL), "make gen writes it"
