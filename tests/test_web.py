"""A FastAPI application under uvicorn that calls sandboxed functions from sync and async endpoints, under load."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

HERE = Path(__file__).resolve().parent
Program = Callable[..., subprocess.Popen[str]]
Run = Callable[..., subprocess.CompletedProcess[str]]
NUMBERED = ["/work/{}", "/awork/{}", "/double/{}", "/adouble/{}"]
REFUSED = ["/read?path=/etc/passwd", "/aread?path=/etc/shadow"]


@contextmanager
def application(program: Program, **env: str) -> Iterator[str]:
    process = program("", str(HERE / "web_app.py"), env=env)
    assert process.stdout is not None
    try:
        yield process.stdout.readline().strip()
        process.terminate()
        out, err = process.communicate(timeout=60)
        assert (out, err) == ("", ""), (out, err)
    finally:
        process.kill()
        process.wait()


def under_load(run_program: Run, port: str, clients: int, requests: int, paths: list[str]) -> dict[str, Any]:
    done = run_program("", str(HERE / "web_load.py"), port, str(clients), str(requests), *paths)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    assert len(found["answers"]) == requests
    return found


def check(path: str, answer: dict[str, Any]) -> None:
    """That an answer is the one of its own request, with what was printed and logged for it and nothing else."""
    if "read?" in path:
        name = path.rpartition("=")[2]
        (text,) = answer["detail"]
        assert text.startswith(f"The sandbox does not allow reading {name}, and trying again will not change that.")
        return
    kind, number = path.strip("/").split("/")
    assert answer["value"] == 2 * int(number)
    said = f"working on {number}\ntool: number {number}\n"
    assert answer.get("told") == {"work": said, "awork": f"awaiting\n{said}"}.get(kind), path


def test_under_load_each_request_has_its_own_answer_and_output(program: Program, run_program: Run) -> None:
    with application(program) as port:
        found = under_load(run_program, port, 24, 360, NUMBERED + REFUSED)
    assert found["status"] == {"200": 240, "403": 120}
    for path, answer in found["answers"]:
        check(path, answer)


def test_without_a_sandbox_nothing_is_refused(program: Program) -> None:
    """The control."""
    with application(program, BARE="1") as port:
        answer = httpx.get(f"http://127.0.0.1:{port}/read", params={"path": "/etc/passwd"})
        assert (answer.status_code, "root" in answer.json()["text"]) == (200, True)
        check("/awork/4", httpx.get(f"http://127.0.0.1:{port}/awork/4").json())
