"""Run Python under a deny-by-default policy kept in one readable file, ``.py-sandboxes``.

The whole surface: :func:`sandboxes` (context manager), :func:`run` (in place of ``asyncio.run``), :func:`sandbox`
(decorator), :class:`SandboxPoolExecutor`, :func:`guarded_eval`, :func:`is_in_sandbox`, :func:`sandbox_denials`,
:func:`denials`, and the exceptions.

Names are looked up on first use, so that ``import pysandboxes`` costs next to nothing.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ._context import is_in_sandbox as is_in_sandbox
    from ._context import run as run
    from ._context import sandboxes as sandboxes
    from ._evaluated import guarded_eval as guarded_eval
    from ._exceptions import ConfigSyntaxError as ConfigSyntaxError
    from ._exceptions import Denial as Denial
    from ._exceptions import EvalInterrupted as EvalInterrupted
    from ._exceptions import EvalSyntaxRejected as EvalSyntaxRejected
    from ._exceptions import RestrictedUnpicklingError as RestrictedUnpicklingError
    from ._exceptions import RuleApiPermissionError as RuleApiPermissionError
    from ._exceptions import RuleEvalPermissionError as RuleEvalPermissionError
    from ._exceptions import RuleFileNotFoundError as RuleFileNotFoundError
    from ._exceptions import RuleModuleNotFoundError as RuleModuleNotFoundError
    from ._exceptions import RulePermissionError as RulePermissionError
    from ._exceptions import RuleSocketConnectionRefusedError as RuleSocketConnectionRefusedError
    from ._exceptions import SandBoxBaseExceptionError as SandBoxBaseExceptionError
    from ._exceptions import SandboxContextWarning as SandboxContextWarning
    from ._exceptions import SandBoxError as SandBoxError
    from ._exceptions import SandBoxProtocolError as SandBoxProtocolError
    from ._exceptions import SandBoxTimeoutError as SandBoxTimeoutError
    from ._exceptions import denials as denials
    from ._exceptions import sandbox_denials as sandbox_denials
    from ._guard import __version__ as __version__
    from ._pool import SandboxPoolExecutor as SandboxPoolExecutor
    from ._sandbox import sandbox as sandbox

# Public name -> private module that defines it.
_HOMES = {
    "sandboxes": "_context",
    "run": "_context",
    "is_in_sandbox": "_context",
    "sandbox": "_sandbox",
    "Denial": "_exceptions",
    "denials": "_exceptions",
    "sandbox_denials": "_exceptions",
    "guarded_eval": "_evaluated",
    "SandboxContextWarning": "_exceptions",
    "SandBoxError": "_exceptions",
    "RuleFileNotFoundError": "_exceptions",
    "RulePermissionError": "_exceptions",
    "RuleSocketConnectionRefusedError": "_exceptions",
    "RuleModuleNotFoundError": "_exceptions",
    "RuleApiPermissionError": "_exceptions",
    "RuleEvalPermissionError": "_exceptions",
    "EvalSyntaxRejected": "_exceptions",
    "EvalInterrupted": "_exceptions",
    "RestrictedUnpicklingError": "_exceptions",
    "ConfigSyntaxError": "_exceptions",
    "SandBoxProtocolError": "_exceptions",
    "SandBoxBaseExceptionError": "_exceptions",
    "SandBoxTimeoutError": "_exceptions",
    "SandboxPoolExecutor": "_pool",
    "__version__": "_guard",
}

__all__ = (
    "ConfigSyntaxError",
    "Denial",
    "EvalInterrupted",
    "EvalSyntaxRejected",
    "RestrictedUnpicklingError",
    "RuleApiPermissionError",
    "RuleEvalPermissionError",
    "RuleFileNotFoundError",
    "RuleModuleNotFoundError",
    "RulePermissionError",
    "RuleSocketConnectionRefusedError",
    "SandBoxBaseExceptionError",
    "SandBoxError",
    "SandBoxProtocolError",
    "SandBoxTimeoutError",
    "SandboxContextWarning",
    "SandboxPoolExecutor",
    "__version__",
    "denials",
    "guarded_eval",
    "is_in_sandbox",
    "run",
    "sandbox",
    "sandbox_denials",
    "sandboxes",
)


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = __import__(f"{__name__}.{home}", fromlist=(name,))
    value: object = getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(set(globals()) | set(_HOMES))
