"""Who evaluates a string in evaluating.py: plain Python, guarded_eval, and the libraries that people take for it."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from typing import Any

from pysandboxes import guarded_eval

Names = dict[str, Any]
Run = Callable[[Names], Any]
#: Builtins that the texts call; `guarded_eval` has them by its profile.
CALLED = {function.__name__: function for function in (abs, len, max, range, round, sorted)}


class Evaluator:
    """Statements give what they assign to ``answer``, an expression gives its value."""

    has_statements = True

    def evaluate(self, text: str, statements: bool, names: Names) -> Any:
        """Of a text that may be new."""
        raise NotImplementedError

    def kept(self, text: str, statements: bool) -> Run:
        """For evaluating a text over and over, with whatever may be kept of it."""
        return lambda names: self.evaluate(text, statements, names)


class Plain(Evaluator):
    def evaluate(self, text: str, statements: bool, names: Names) -> Any:
        space = dict(names)
        if not statements:
            return eval(text, space)
        exec(text, space)
        return space["answer"]

    def kept(self, text: str, statements: bool) -> Run:
        code = compile(text, "<plain>", "exec" if statements else "eval")

        def run(names: Names) -> Any:
            space = dict(names)
            value = eval(code, space)
            return space["answer"] if statements else value

        return run


class Guarded(Evaluator):
    def evaluate(self, text: str, statements: bool, names: Names) -> Any:
        if not statements:
            return guarded_eval(text, profile="line", names=names)
        space = dict(names)
        guarded_eval(text, profile="snippet", names=space)
        return space["answer"]


class SimpleEval(Evaluator):
    has_statements = False

    def __init__(self) -> None:
        from simpleeval import EvalWithCompoundTypes

        self.evaluator = EvalWithCompoundTypes(functions=CALLED)

    def evaluate(self, text: str, statements: bool, names: Names) -> Any:
        self.evaluator.names = names
        return self.evaluator.eval(text)

    def kept(self, text: str, statements: bool) -> Run:
        tree = self.evaluator.parse(text)

        def run(names: Names) -> Any:
            self.evaluator.names = names
            return self.evaluator.eval(text, previously_parsed=tree)

        return run


class AstEval(Evaluator):
    def __init__(self) -> None:
        from asteval import Interpreter

        self.interpreter = Interpreter(use_numpy=False)

    def evaluate(self, text: str, statements: bool, names: Names) -> Any:
        return self._run(text, statements, names)

    def kept(self, text: str, statements: bool) -> Run:
        tree = self.interpreter.parse(text)
        return lambda names: self._run(tree, statements, names)

    def _run(self, what: Any, statements: bool, names: Names) -> Any:
        self.interpreter.symtable.update(names)
        value = self.interpreter(what, raise_errors=True)
        return self.interpreter.symtable["answer"] if statements else value


class Restricted(Evaluator):
    """With the guards that its documentation names: attributes by safer_getattr, items and iterators as they are."""

    def __init__(self) -> None:
        from RestrictedPython import compile_restricted, safe_builtins
        from RestrictedPython.Eval import default_guarded_getitem, default_guarded_getiter
        from RestrictedPython.Guards import full_write_guard, guarded_iter_unpack_sequence, safer_getattr

        self.compile = compile_restricted
        self.guards: Names = {
            "__builtins__": {**safe_builtins, **CALLED},
            "_getattr_": safer_getattr,
            "_getitem_": default_guarded_getitem,
            "_getiter_": default_guarded_getiter,
            "_iter_unpack_sequence_": guarded_iter_unpack_sequence,
            "_write_": full_write_guard,
            "_inplacevar_": lambda operator, left, right: left + right if operator == "+=" else left - right,
        }

    def evaluate(self, text: str, statements: bool, names: Names) -> Any:
        return self.kept(text, statements)(names)

    def kept(self, text: str, statements: bool) -> Run:
        code = self.compile(text, "<restricted>", "exec" if statements else "eval")

        def run(names: Names) -> Any:
            space = {**self.guards, **names}
            value = eval(code, space)
            return space["answer"] if statements else value

        return run


class Smolagents(Evaluator):
    """Its local executor, as an agent has it. It takes texts only, so that nothing is kept."""

    def __init__(self) -> None:
        from smolagents.local_python_executor import LocalPythonExecutor

        self.executor = LocalPythonExecutor([])
        self.executor.send_tools({})

    def evaluate(self, text: str, statements: bool, names: Names) -> Any:
        self.executor.send_variables(names)
        value = self.executor(text).output
        return self.executor.state["answer"] if statements else value


#: By the names of their modules.
LIBRARIES: dict[str, Callable[[], Evaluator]] = {
    "simpleeval": SimpleEval,
    "asteval": AstEval,
    "RestrictedPython": Restricted,
    "smolagents": Smolagents,
}


def installed() -> dict[str, Evaluator]:
    return {name: make() for name, make in LIBRARIES.items() if importlib.util.find_spec(name) is not None}
