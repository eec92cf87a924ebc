"""What the engine is told when a sandbox is opened: profile, rules, environment, and how to start the interpreter."""

# os.path: importing pathlib would cost more than all the rest of this package.
# ruff: noqa: PTH100, PTH109, PTH111, PTH112, PTH113, PTH118, PTH120

from __future__ import annotations

import os
import sys
from binascii import b2a_base64

from ._exceptions import ConfigSyntaxError, SandBoxError
from ._wire import pack_settings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from ._context import Rule

PROFILE = ".py-sandboxes"
#: The name under which a sandbox imports the application's main file (``_main_module``).
MAIN_MODULE = "__mp_main__"
PACKAGE = os.path.dirname(os.path.abspath(__file__))

# Flag of sys.flags -> the interpreter's option for it (those that change what a program's code means).
_FLAGS = (
    ("dont_write_bytecode", "-B"),
    ("no_user_site", "-s"),
    ("no_site", "-S"),
    ("safe_path", "-P"),
    ("isolated", "-I"),
    ("ignore_environment", "-E"),
)
#: Keys whose value is a path, a name or a whole rule: a number there is a slip, not a file called 5.
_WORDS = frozenset(
    ("env", "unenv", "expose-ro", "expose-rw", "ignore", "net", "python-import", "python-api", "os-sandbox", "include")
)
#: Main modules that only show a prompt: what is defined there is in no file.
_PROMPTS = frozenset({"asyncio.__main__", "code", "_pyrepl.__main__"})
#: -X options of the application that are about its own process alone.
_OWN_X_OPTIONS = frozenset({"importtime", "showrefcount", "tracemalloc", "perf", "presite", "pycache_prefix"})


def build(
    *,
    profile: str | os.PathLike[str] | None,
    rules: Mapping[str, Rule],
    envs: Mapping[str, str] | None,
    python_args: Sequence[str] | None,
    learn: bool | str | os.PathLike[str] | None,
    package: str | None,
    binary: str,
    learn_for: str = "",
) -> dict[str, Any]:
    """The specification that ``control.Open`` takes (bindings/control). ``learn_for``: for whom, in comments."""
    path, searched = find_profile(profile, package)
    if path is not None and learn_of(learn) is None and not os.path.lexists(path):
        raise ConfigSyntaxError(
            f"the profile {path} does not exist; write it, or learn it on code that you trust: sandboxes(learn={path!r})"
        )
    cwd = os.getcwd()
    main_path, _ = main_module()
    return {
        "profile": path,
        "searched": searched,
        "rules": rules_of(rules),
        "env": dict(os.environ) if envs is None else _environment(envs),
        "interpreter": sys.executable,
        "python_args": [*interpreter_flags(), *_texts(python_args or (), "python_args"), "-c", boot_source(PACKAGE)],
        "cwd": cwd,
        "learn": learn_of(learn),
        "learn_for": learn_for,
        "extra": b2a_base64(pack_settings(settings(cwd)), newline=False).decode(),
        "package": PACKAGE,
        "binary": binary,
        "target": [main_path] if main_path else [],
        "target_modules": [MAIN_MODULE],
    }


def find_profile(named: str | os.PathLike[str] | None, package: str | None) -> tuple[str | None, list[str]]:
    """The profile to use, or None, and where it was looked for.

    A named profile is used as it is; the engine says so when it is missing. Else the root of the package that opens the
    sandbox comes before the working directory.
    """
    if named is not None:
        path = _path_of(named, "sandboxes_config")
        if os.path.isdir(path):
            raise ConfigSyntaxError(_folder("profile", path))
        return path, [path]
    searched = []
    root = package_root(package)
    if root:
        searched.append(os.path.join(root, PROFILE))
    default = os.path.join(os.getcwd(), PROFILE)
    if default not in searched:
        searched.append(default)
    for path in searched:
        if os.path.lexists(path):
            return path, searched
    return None, searched


def package_root(package: str | None) -> str | None:
    """Folder of a loaded top-level package."""
    module = sys.modules.get(package) if package else None
    folders = list(getattr(module, "__path__", ()))
    return os.path.abspath(folders[0]) if folders else None


def rules_of(rules: Mapping[str, Rule]) -> list[list[str]]:
    """Keyword arguments as lines of a profile: ``python_import=["a", "b"]`` is two lines ``python-import=``."""
    lines = []
    for keyword, value in rules.items():
        head, dot, tail = keyword.partition(".")
        key = head.replace("_", "-") + dot + tail  # a provider's own keys (qemu.use_kvm) keep their spelling
        for item in value if isinstance(value, (list, tuple, set, frozenset)) else (value,):
            if isinstance(item, int) and key in _WORDS:
                raise ConfigSyntaxError(f"code: the rule {keyword}={item!r} is no str; {key}= takes text")
            if isinstance(item, bool):
                text = "true" if item else "false"
            elif isinstance(item, (str, int)):
                text = str(item)
            elif isinstance(item, os.PathLike):
                text = os.fsdecode(item)
            else:
                raise ConfigSyntaxError(
                    f"code: the rule {keyword}= is a {type(item).__name__}; a rule's value is a str, an int, a bool, "
                    "or a list of them"
                )
            if "\n" in text or "\r" in text or "\0" in text:
                raise ConfigSyntaxError(f"code: the rule {keyword}={text!r} holds a line break or a NUL: give a list of rules")
            lines.append([key, text])
    return lines


def learn_of(learn: bool | str | os.PathLike[str] | None) -> bool | str | None:
    """``learn`` as the engine takes it: None (as the profile says), True, or the file to write."""
    if learn is None or learn is False:
        return None
    if os.environ.get("PYSANDBOXES_LEARN") == "never":
        raise SandBoxError("learning is forbidden here: PYSANDBOXES_LEARN=never is set; run without learn=")
    if learn is True:
        return True
    path = _path_of(learn, "learn")
    if os.path.isdir(path):
        raise ConfigSyntaxError(_folder("file to learn into", path))
    return path


def _folder(what: str, path: str) -> str:
    return f"the {what}, {path}, is a folder: name the file in it, such as {os.path.join(path, PROFILE)}"


def _path_of(value: Any, keyword: str) -> str:
    """An absolute path, of a keyword argument that names a file."""
    if not isinstance(value, (str, os.PathLike)):
        wanted = "the path of a file" if keyword != "learn" else "True, or the path of the file to write"
        raise TypeError(f"{keyword}={value!r}: {wanted} is wanted")
    return os.path.abspath(os.path.expanduser(os.fsdecode(value)))


def _texts(values: Any, keyword: str) -> list[str]:
    """A keyword argument that is a list of str, and not one str, which would be a list of letters."""
    if isinstance(values, (str, bytes)) or not all(isinstance(value, str) for value in values):
        raise TypeError(f"{keyword}={values!r}: a list of str is wanted")
    return list(values)


def _environment(envs: Mapping[Any, Any]) -> dict[str, str]:
    for name, value in envs.items():
        if not isinstance(name, str) or not isinstance(value, str):
            raise TypeError(f"envs: {name!r} is {value!r}; names and values are str, as in os.environ")
    return dict(envs)


def boot_source(package: str) -> str:
    """The program text of a child: loads this package from ``package`` and nowhere else, then serves.

    The package is loaded from its folder by name, not searched for: a ``pysandboxes`` in the working directory or on
    the path is never looked at.
    """
    return (
        "import sys\n"
        "from _frozen_importlib import module_from_spec\n"
        "from _frozen_importlib_external import spec_from_file_location\n"
        f"folder = {package!r}\n"
        "spec = spec_from_file_location('pysandboxes', folder + '/__init__.py', submodule_search_locations=[folder])\n"
        "sys.modules['pysandboxes'] = package = module_from_spec(spec)\n"
        "if '' in sys.path: sys.path.remove('')\n"
        "spec.loader.exec_module(package)\n"
        "from pysandboxes._child import main\n"
        "main()\n"
    )


def interpreter_flags() -> list[str]:
    """Options that give the sandboxed interpreter the application's meaning of the language."""
    options = []
    if sys.flags.optimize:
        options.append("-" + "O" * sys.flags.optimize)
    options += [option for name, option in _FLAGS if getattr(sys.flags, name, 0)]
    if sys.flags.bytes_warning:
        options.append("-" + "b" * sys.flags.bytes_warning)
    implied = {"error::BytesWarning", "default::BytesWarning"} if sys.flags.bytes_warning else set()
    options += [f"-W{option}" for option in sys.warnoptions if option not in implied]
    for name, value in sys._xoptions.items():
        if name not in _OWN_X_OPTIONS:
            options += ["-X", name if value is True else f"{name}={value}"]
    return options


def settings(cwd: str) -> list[tuple[str, str]]:
    """What the child's Python is told (``_child``): the application's path, arguments and main file."""
    path, package = main_module()
    told = [("path", os.path.abspath(os.path.join(cwd, entry))) for entry in map(str, sys.path)]
    told += [("argv", str(argument)) for argument in sys.argv]
    told += [("main", path), ("main-package", package)]
    # A thread may be importing it just now: then it is there, and not all of it.
    root = getattr(sys.modules.get("logging"), "root", None)
    if root is not None:
        told.append(("log-level", str(root.level)))
    return told


def main_module() -> tuple[str, str]:
    """File of the application's main module ("" where there is none) and the package it belongs to."""
    main = sys.modules.get("__main__")
    spec = getattr(main, "__spec__", None)
    file = getattr(spec, "origin", None) if spec is not None else getattr(main, "__file__", None)
    if not isinstance(file, str) or not os.path.isfile(file) or (spec is not None and getattr(spec, "name", None) in _PROMPTS):
        return "", ""
    package = getattr(main, "__package__", None)
    return os.path.abspath(file), package if isinstance(package, str) else ""
