"""Functions whose spans the tests of telemetry look at. OpenTelemetry is loaded when one of them is called, and not before."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pysandboxes import sandbox


def _spans(name: str) -> list[tuple[str, str, str]]:
    """Make a span; it, its parent and its trace."""
    from opentelemetry.sdk.trace import TracerProvider

    tracer = TracerProvider().get_tracer("sandboxed")
    with tracer.start_as_current_span(name) as span:
        found: Any = span
        parent = found.parent
        context = span.get_span_context()
        return [
            (f"{context.span_id:016x}", f"{parent.span_id:016x}" if parent else "", f"{context.trace_id:032x}"),
            ("remote" if parent and parent.is_remote else "", parent.trace_state.to_header() if parent else "", name),
        ]


@sandbox
def spans(name: str) -> list[tuple[str, str, str]]:
    return _spans(name)


@sandbox
async def aspans(name: str) -> list[tuple[str, str, str]]:
    import asyncio

    await asyncio.sleep(0)
    return _spans(name)


@sandbox
def spans_by_steps(name: str) -> Iterator[list[tuple[str, str, str]]]:
    yield _spans(name)
    yield _spans(name)


@sandbox
def baggage() -> dict[str, object]:
    from opentelemetry.baggage import get_all

    return dict(get_all())


@sandbox
def loaded() -> list[str]:
    import sys

    return sorted(name for name in sys.modules if name.startswith("opentelemetry"))
