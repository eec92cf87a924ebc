"""OpenTelemetry: the span in which a call is made is the parent of what the sandbox makes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import telemetry_targets
from opentelemetry import baggage, context, trace
from opentelemetry.sdk.trace import TracerProvider

from pysandboxes import SandboxPoolExecutor, _telemetry, sandboxes

#: What OpenTelemetry's own modules do when they are loaded.
GRANTS = ("ALLOW:dynamic-code", "ALLOW:introspection", "ALLOW:threads")
pytestmark = pytest.mark.xdist_group("telemetry")
tracer = TracerProvider().get_tracer("application")


@pytest.fixture
def fresh(profile: Path) -> Iterator[Any]:
    """A sandbox that has not loaded OpenTelemetry."""
    with sandboxes(sandboxes_config=profile, python_api=GRANTS) as handle:
        yield handle


@pytest.fixture(scope="module")
def sandbox(profile: Path) -> Iterator[Any]:
    """A sandbox of all tests: loading OpenTelemetry takes its time."""
    with sandboxes(sandboxes_config=profile, python_api=GRANTS) as handle:
        yield handle


def checked(span: trace.Span, found: list[tuple[str, str, str]]) -> None:
    """That a span of the sandbox is a child of ``span``."""
    (number, parent, trace_id), (remote, _, _) = found
    here = span.get_span_context()
    assert (parent, trace_id, remote) == (f"{here.span_id:016x}", f"{here.trace_id:032x}", "remote")
    assert number != parent


@pytest.mark.smoke
def test_the_caller_s_span_is_the_parent(fresh: Any) -> None:
    """The first call loads OpenTelemetry in the sandbox, in the middle of the function."""
    assert telemetry_targets.loaded() == []
    for number in range(3):
        with tracer.start_as_current_span(f"number {number}") as span:
            checked(span, telemetry_targets.spans("sync"))
            with tracer.start_as_current_span("within") as inner:
                checked(inner, telemetry_targets.spans("sync"))


def test_without_a_span_there_is_no_parent(sandbox: Any) -> None:
    assert telemetry_targets.spans("sync")[0][1] == ""
    with tracer.start_as_current_span("one") as span:
        checked(span, telemetry_targets.spans("sync"))
    assert telemetry_targets.spans("sync")[0][1] == ""
    assert asyncio.run(telemetry_targets.aspans("async"))[0][1] == ""


def test_tasks_at_the_same_time(sandbox: Any) -> None:
    async def call(number: int) -> None:
        with tracer.start_as_current_span(f"number {number}") as span:
            checked(span, await telemetry_targets.aspans("async"))

    async def main() -> None:
        await asyncio.gather(*(call(number) for number in range(20)))

    with tracer.start_as_current_span("first") as span:
        checked(span, telemetry_targets.spans("sync"))
    asyncio.run(main())


def test_the_first_call_is_of_a_coroutine(fresh: Any) -> None:
    async def main() -> None:
        with tracer.start_as_current_span("first") as span:
            checked(span, await telemetry_targets.aspans("async"))

    asyncio.run(main())


def test_each_step_of_a_generator_has_the_span_of_its_step(sandbox: Any) -> None:
    steps = telemetry_targets.spans_by_steps("steps")
    for number in range(2):
        with tracer.start_as_current_span(f"step {number}") as span:
            checked(span, next(steps))


def test_trace_state_goes_along_and_baggage_does_not(sandbox: Any) -> None:
    state = trace.TraceState([("vendor", "value")])
    parent = trace.NonRecordingSpan(
        trace.SpanContext(7, 9, is_remote=False, trace_flags=trace.TraceFlags(1), trace_state=state)
    )
    token = context.attach(baggage.set_baggage("customer", "secret", trace.set_span_in_context(parent)))
    try:
        found = telemetry_targets.spans("sync")
        checked(parent, found)
        assert found[1][1] == "vendor=value"
        assert telemetry_targets.baggage() == {}
    finally:
        context.detach(token)


def test_a_task_of_a_pool_has_the_span_of_its_submitter(profile: Path) -> None:
    with SandboxPoolExecutor(2, sandboxes_config=profile, python_api=GRANTS) as pool:
        futures = []
        for number in range(6):
            with tracer.start_as_current_span(f"number {number}") as span:
                futures.append((span, pool.submit(telemetry_targets.spans, "task")))
        for span, future in futures:
            checked(span, future.result())


def test_an_opentelemetry_that_is_not_what_we_know_harms_no_call(fresh: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> Any:
        raise RuntimeError("half loaded")

    with tracer.start_as_current_span("one"):
        monkeypatch.setattr(trace, "get_current_span", broken)
        assert telemetry_targets.loaded() == []


def test_the_sandbox_imports_nothing_for_it(profile: Path) -> None:
    """A profile that knows nothing of OpenTelemetry has no refusal because the application is in a span."""
    with sandboxes(sandboxes_config=profile, python_import="DENY:opentelemetry") as handle, tracer.start_as_current_span("one"):
        assert telemetry_targets.loaded() == []
        with pytest.raises(ModuleNotFoundError, match="opentelemetry"):
            telemetry_targets.spans("sync")
        assert handle.stats()["denials"] == 1


def test_an_application_without_opentelemetry(run_program: Callable[..., Any]) -> None:
    done = run_program("""\
import os, sys
import telemetry_targets
from pysandboxes import sandboxes

if __name__ == "__main__":
    with sandboxes(sandboxes_config=os.environ["PROFILE"]):
        print(telemetry_targets.loaded(), [name for name in sys.modules if name.startswith("opentelemetry")])
""")
    assert done.stdout == "[] []\n", done


def test_nothing_is_told_of_no_span() -> None:
    assert _telemetry.current() is None
    with tracer.start_as_current_span("one") as span:
        here = span.get_span_context()
        assert _telemetry.current() == (here.trace_id, here.span_id, here.trace_flags, "")
