"""Every way of native code past the network boundary: it works bare, it does not in a sandbox, and what a rule allows does."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import pytest
from complete_mode import NOBODY
from running import ABSENT, Course, Run, compiled
from ways import BY_NAME, WAYS, Way

MODES = ("walled", "unwalled")
WHO = ("own", "nobody", "far")
"""Who runs it, with listeners on this machine's loopback; ``far``: own, with listeners elsewhere."""

pytestmark = pytest.mark.skipif(not shutil.which("cc"), reason="there is no C compiler")


@pytest.fixture(scope="session")
def build() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="psb-ways-") as folder:
        Path(folder).chmod(0o755)
        compiled(Path(folder))
        yield Path(folder)


@pytest.fixture(scope="session")
def courses(build: Path) -> dict[tuple[str | None, str], Course]:
    return {}


@pytest.fixture
def course(courses: dict[tuple[str | None, str], Course], build: Path, request: pytest.FixtureRequest) -> Course:
    """By the parameter (mode or None, who)."""
    mode, who = request.param
    user, bin, far = None, None, who == "far"
    if far and os.geteuid() != 0:
        pytest.skip("only root makes a network for the listeners")
    if who == "nobody":
        if os.geteuid() != 0:
            pytest.skip("the tests' own user has no rights already")
        if (bin := request.getfixturevalue("public_bin")) is None:
            pytest.skip("no interpreter of this version can be run by another user")
        user = NOBODY
    return courses.setdefault((mode, who), Course(mode, build, bin, user, far))


def batch(way: Way) -> list[str]:
    """The ways that share a process with this one."""
    return [way.name] if way.alone else [other.name for other in WAYS if not other.alone and other.grants == way.grants]


def went(course: Course, way: Way) -> Run:
    return course.run(batch(way), way.grants)


def through(run: Run, way: Way) -> bool:
    """Did it reach its aim?"""
    return run.arrived(way.name, "shut") > 0 if way.aim == "out" else run.results.get(way.name) == 0


def worker(mode: str | None, who: str) -> pytest.MarkDecorator:
    """Those that share a process are one worker's."""
    return pytest.mark.xdist_group(f"network {mode} {who}")


def over(modes: tuple[str | None, ...], ways: list[Way]) -> pytest.MarkDecorator:
    """One test for each of modes, users and ways."""
    return pytest.mark.parametrize(
        ("course", "way"),
        [
            pytest.param((mode, who), way, id=f"{mode or 'bare'}-{who}-{way.name}", marks=worker(mode, who))
            for mode, who in product(modes, WHO)
            if (mode, who) != ("unwalled", "far")  # where they are makes no difference there
            for way in ways
        ],
        indirect=["course"],
    )


@over((None,), WAYS)
def test_negative_control(course: Course, way: Way) -> None:
    run = went(course, way)
    if run.results.get(way.name) == ABSENT:
        pytest.skip("this machine lacks what it needs")
    if not through(run, way) and (course.user is not None or course.far):  # own has to
        pytest.skip(
            f"not possible as {'far' if course.far else 'nobody'}, even bare: {os.strerror(run.results.get(way.name, 0))}"
        )
    assert through(run, way), f"it does not work bare: {run.of(way.name)}"


@over(MODES, WAYS)
def test_it_is_held(course: Course, way: Way, request: pytest.FixtureRequest) -> None:
    if reason := way.gaps.get(course.mode or ""):
        request.applymarker(pytest.mark.xfail(reason=reason, strict=True))
    run = went(course, way)
    assert "<victim>" in str(run.heard["shut"]), "the listeners hear"
    assert run.status < 125, f"the sandbox did not start: {run.errors}"
    if not way.alone:
        assert run.ended and way.name in run.results, f"it was not reached, or did not end: {run.of(way.name)}"
    assert not through(run, way), f"it went through: {run.of(way.name)}"
    assert "FALSE" not in run.said.get(way.name, ""), f"connections that never were: {run.of(way.name)}"
    assert run.silent() == 0, f"somebody connected to a listener that no rule names, and said nothing: {run.heard['shut']}"


TWINS = [BY_NAME[name] for name in dict.fromkeys(way.twin or way.name for way in WAYS)]


@over((None, *MODES), TWINS)
def test_what_a_rule_allows_works(course: Course, way: Way) -> None:
    same = [other.name for other in TWINS if other.grants == way.grants]
    run = course.run(same, way.grants, twins=True)
    assert run.results.get(way.name) == 0, run.of(way.name)
    if way.aim == "out":
        assert run.arrived(way.name, "open") > 0, f"nothing arrived: {run.of(way.name)}"
    assert "FALSE" not in run.said.get(way.name, ""), run.of(way.name)


def test_names_are_unique_and_enough() -> None:
    assert [name for name, count in Counter(way.name for way in WAYS).items() if count > 1] == []
    assert len(WAYS) >= 60


MEANINGS = [
    *("means_names", "means_options", "means_refused", "means_mistakes", "means_stream", "means_copies", "means_epoll"),
    "means_netlink",
    *(
        "means_happy_eyeballs",
        "means_hole",
        "means_hole_interrupted",
        "means_datagrams",
        "means_datagrams_v6",
        "means_datagram_to_nobody",
        "means_datagram_sizes",
        "means_datagram_sizes_v6",
    ),
]


@pytest.mark.parametrize(
    ("course", "name"),
    [
        pytest.param((mode, who), name, id=f"{mode}-{who}-{name}", marks=worker(mode, who))
        for mode, who in product(MODES, WHO)
        if (mode, who) != ("unwalled", "far")
        for name in MEANINGS
    ],
    indirect=["course"],
)
def test_calls_mean_what_they_mean_bare(course: Course, courses: dict[tuple[str | None, str], Course], name: str) -> None:
    who = "far" if course.far else "own"
    bare = courses.setdefault((None, who), Course(None, course.build, far=course.far)).run(MEANINGS, "", twins=True)
    assert bare.results[name] == 0 and bare.said[name].strip(), bare.of(name)
    run = course.run(MEANINGS, "", twins=True)
    assert run.said.get(name) == bare.said[name], run.of(name)
