"""OpenTelemetry across the border: the span in which a call is made is the parent of those that the sandbox makes for it.

Both sides act only once their program has loaded OpenTelemetry; neither imports anything for it. Only the numbers of the span
and its trace state go into the sandbox: baggage may hold what is not for the code there. Nothing comes back.
"""

from __future__ import annotations

import sys
from contextvars import ContextVar

from ._watch import Watch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    #: Numbers of the trace and of the span in it, flags, and the trace state as its header has it.
    Span = tuple[int, int, int, str]

TRACE = "opentelemetry.trace"

_span: ContextVar[Span | None] = ContextVar("pysandboxes_span", default=None)


def current() -> Span | None:
    """The application's span of this context; None where there is none."""
    trace: Any = sys.modules.get(TRACE)
    try:
        span = trace.get_current_span().get_span_context()
        if not span.is_valid:
            return None
        return int(span.trace_id), int(span.span_id), int(span.trace_flags), span.trace_state.to_header()
    except Exception:  # it is being loaded just now, or is not what we know: no reason for a call to fail
        return None


def enter(span: Span) -> None:
    """Let the spans of this context be children of ``span``, now or as soon as the program loads OpenTelemetry."""
    _span.set(span)
    if TRACE in sys.modules:
        _attach()
    elif _watch not in sys.meta_path:
        _watch.begin()


def _attach() -> None:
    """Only what OpenTelemetry has loaded itself is used, so that nothing is charged to the profile."""
    span = _span.get()
    if span is None:
        return
    trace: Any = sys.modules[TRACE]
    context: Any = sys.modules["opentelemetry.context"]
    trace_id, span_id, flags, state = span
    try:
        remote = trace.SpanContext(
            trace_id,
            span_id,
            is_remote=True,
            trace_flags=trace.TraceFlags(flags),
            trace_state=trace.TraceState.from_header([state]),
        )
        context.attach(trace.set_span_in_context(trace.NonRecordingSpan(remote)))
    except Exception:
        return


def _loaded() -> None:
    _watch.end()
    _attach()


_watch = Watch(TRACE, _loaded)
