"""A pool as the executor of a Dask worker: ``distributed.Worker(executor=SandboxPoolExecutor(...))``.

The worker does not hand over the function that a client submitted, but one of its own, which calls the node of the graph that
it is given and gathers figures and errors around it. That frame belongs to the worker and stays there. Only what the node calls
goes into the sandbox, so that the sandbox needs no Dask, and the frame's answer need not pass as a result.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    Invoke = Callable[[Callable[..., Any], tuple[Any, ...], dict[str, Any]], Any]

#: Where it is, by its name: ``_run_task_simple(node, data, time_delay)``, where ``node(data)`` performs the task.
MODULE, FRAME = "distributed.worker", "_run_task_simple"


def hands_over(function: object) -> bool:
    """Whether this is the frame. Another one, of a later Dask, goes into the sandbox as any function does."""
    worker = sys.modules.get(MODULE)
    return worker is not None and function is getattr(worker, FRAME, None)


def run(frame: Callable[..., Any], args: tuple[Any, ...], invoke: Invoke) -> Any:
    """Run the frame in this thread, and by ``invoke`` in the sandbox what its node calls."""
    node, *rest = args
    return frame(lambda data: evaluate(node, data, invoke), *rest)


def evaluate(node: Any, data: Mapping[Any, Any], invoke: Invoke) -> Any:
    """The value of a node of a graph, without a call in this process of anything that a client sent.

    Of the kinds below no more is used than their fields. Any other node goes into the sandbox as it is.
    """
    spec: Any = sys.modules["dask._task_spec"]

    def value(part: Any) -> Any:
        kind = type(part)
        if kind is spec.TaskRef:
            return data[part.key]
        if kind is spec.Alias:
            return data[part.target]
        if kind is spec.DataNode:
            return part.value
        if kind in (spec.List, spec.Tuple, spec.Set):
            return {spec.List: list, spec.Tuple: tuple, spec.Set: set}[kind]([value(item) for item in part.args])
        if kind is spec.Dict:
            flat = [value(item) for item in part.args]
            return dict(zip(flat[::2], flat[1::2], strict=True))
        if kind is spec.Task:
            args = tuple([value(item) for item in part.args])
            return invoke(part.func, args, {name: value(item) for name, item in part.kwargs.items()})
        if isinstance(part, spec.GraphNode):
            return invoke(part, ({key: data[key] for key in part.dependencies},), {})
        return part

    return value(node)
