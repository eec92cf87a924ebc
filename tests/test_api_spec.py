"""What the engine is told: the profile that is found, rules from code, the interpreter's options."""

from __future__ import annotations

import os
import subprocess
import sys
import types
from pathlib import Path
from typing import Any

import pytest

from pysandboxes import ConfigSyntaxError, SandBoxError, _binary, _spec, sandboxes


def test_a_named_profile_is_used_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert _spec.find_profile("p", None) == (str(tmp_path / "p"), [str(tmp_path / "p")])
    monkeypatch.setenv("HOME", "/home/x")
    assert _spec.find_profile(Path("~/p"), None)[0] == "/home/x/p"


def test_the_package_comes_before_the_working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root, cwd = tmp_path / "package", tmp_path / "cwd"
    root.mkdir()
    cwd.mkdir()
    monkeypatch.chdir(cwd)
    module = types.ModuleType("made_up_package")
    module.__path__ = [str(root)]
    monkeypatch.setitem(sys.modules, "made_up_package", module)
    wanted = [str(root / ".py-sandboxes"), str(cwd / ".py-sandboxes")]
    assert _spec.find_profile(None, "made_up_package") == (None, wanted)
    (cwd / ".py-sandboxes").touch()
    assert _spec.find_profile(None, "made_up_package") == (wanted[1], wanted)
    (root / ".py-sandboxes").touch()
    assert _spec.find_profile(None, "made_up_package") == (wanted[0], wanted)
    assert _spec.find_profile(None, None) == (wanted[1], wanted[1:])


def test_rules_in_code_are_lines_of_a_profile() -> None:
    rules: Any = {
        "python_import": ["json", "re"],
        "py_sandbox": True,
        "call_timeout": 10,
        "qemu.use_kvm": False,
        "expose_ro": Path("/data"),
    }
    assert _spec.rules_of(rules) == [
        ["python-import", "json"],
        ["python-import", "re"],
        ["py-sandbox", "true"],
        ["call-timeout", "10"],
        ["qemu.use_kvm", "false"],
        ["expose-ro", "/data"],
    ]


@pytest.mark.parametrize(
    "value", [None, 1.5, {"a": 1}, [None], b"x", object()], ids=["None", "float", "dict", "list", "bytes", "object"]
)
def test_a_rule_that_is_no_text_is_refused(value: Any) -> None:
    with pytest.raises(ConfigSyntaxError, match=r"code: the rule env= is a \w+"):
        _spec.rules_of({"env": value})


@pytest.mark.parametrize("value", [5, True, ["./data", 5]], ids=repr)
@pytest.mark.parametrize("keyword", ["expose_ro", "python_import", "env", "net"])
def test_a_rule_that_is_words_is_no_number(keyword: str, value: Any) -> None:
    with pytest.raises(ConfigSyntaxError, match=rf"code: the rule {keyword}=(5|True) is no str; .* takes text"):
        _spec.rules_of({keyword: value})


def test_a_profile_is_a_file(tmp_path: Path) -> None:
    for use in (lambda: _spec.find_profile(tmp_path, None), lambda: _spec.learn_of(tmp_path)):
        with pytest.raises(ConfigSyntaxError, match=r"is a folder: name the file in it, such as /.*/\.py-sandboxes$"):
            use()


@pytest.mark.parametrize(
    ("keywords", "words"),
    [
        ({"sandboxes_config": 5}, r"sandboxes_config=5: the path of a file is wanted"),
        ({"learn": 5}, r"learn=5: True, or the path of the file to write is wanted"),
        ({"envs": {"A": 1}}, r"envs: 'A' is 1; names and values are str"),
        ({"python_args": "-v"}, r"python_args='-v': a list of str is wanted"),
        ({"python_args": [1]}, r"python_args=\[1\]: a list of str is wanted"),
    ],
    ids=repr,
)
def test_a_keyword_of_another_type(profile: Path, keywords: dict[str, Any], words: str) -> None:
    with pytest.raises(TypeError, match=words):
        sandboxes(**{"sandboxes_config": profile, **keywords}).__enter__()


@pytest.mark.parametrize("value", ["a\npython-import=*", "a\rb", "a\0b"])
def test_a_rule_is_one_line(value: str) -> None:
    with pytest.raises(ConfigSyntaxError, match="line break"):
        _spec.rules_of({"expose_ro": value})


def test_learning_can_be_forbidden(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    assert _spec.learn_of(None) is None
    assert _spec.learn_of(False) is None
    assert _spec.learn_of(True) is True
    assert _spec.learn_of("f") == str(tmp_path / "f")
    monkeypatch.setenv("PYSANDBOXES_LEARN", "never")
    assert _spec.learn_of(None) is None
    with pytest.raises(SandBoxError, match="PYSANDBOXES_LEARN=never"):
        _spec.learn_of("f")


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ([], []),
        (["-O"], ["-O"]),
        (["-OO", "-B"], ["-OO", "-B"]),
        (["-X", "utf8"], ["-X", "utf8"]),
        (["-X", "importtime"], []),
        (["-bb", "-s"], ["-s", "-bb"]),
        (["-W", "error::UserWarning"], ["-Werror::UserWarning"]),
    ],
    ids=repr,
)
def test_the_child_reads_python_as_the_application_does(given: list[str], told: list[str]) -> None:
    script = "from pysandboxes._spec import interpreter_flags; print(interpreter_flags())"
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    command = [sys.executable, *given, "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment, cwd="/")
    assert done.stdout.strip() == repr(told)


def test_the_main_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    main = types.ModuleType("__main__")
    monkeypatch.setitem(sys.modules, "__main__", main)
    assert _spec.main_module() == ("", "")
    main.__file__ = "<stdin>"
    assert _spec.main_module() == ("", "")
    file = tmp_path / "main.py"
    file.touch()
    main.__file__ = str(file)
    main.__package__ = None
    assert _spec.main_module() == (str(file), "")
    main.__spec__ = types.SimpleNamespace(origin=str(file))  # type: ignore[assignment]
    main.__package__ = "pkg"
    assert _spec.main_module() == (str(file), "pkg")


def test_the_boot_source_loads_nothing_but_the_package_given(tmp_path: Path) -> None:
    """A planted package in the working directory and on the path is not looked at."""
    (tmp_path / "pysandboxes").mkdir()
    (tmp_path / "pysandboxes" / "__init__.py").write_text("print('planted')")
    package = tmp_path / "real 'package'"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "_child.py").write_text("import sys\ndef main(): print('real', '' in sys.path)")
    done = subprocess.run(
        [sys.executable, "-c", _spec.boot_source(str(package))],
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
    )
    assert done.stdout == "real False\n"


def make_binary(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"\x7fELF...")
    path.chmod(0o755)
    return path


@pytest.fixture
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(sys, "path", [str(tmp_path / "site")])
    monkeypatch.setattr(sys, "executable", str(tmp_path / "bin" / "python"))
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "prefix"))
    (tmp_path / "site" / "python_sb-1.dist-info").mkdir(parents=True)
    return tmp_path


def test_the_binary_is_where_the_record_says(bare: Path) -> None:
    wanted = make_binary(bare / "elsewhere" / "python-sb")
    make_binary(bare / "bin" / "python-sb")
    record = bare / "site" / "python_sb-1.dist-info" / "RECORD"
    record.write_text("python_sb-1.dist-info/METADATA,,\n../elsewhere/python-sb,sha256=x,1\n")
    assert _binary.find() == str(wanted)


def test_else_beside_the_interpreter(bare: Path) -> None:
    assert make_binary(bare / "prefix" / "bin" / "python-sb") == Path(_binary.find())
    assert make_binary(bare / "bin" / "python-sb") == Path(_binary.find())


def test_a_script_of_that_name_is_not_the_binary(bare: Path) -> None:
    script = make_binary(bare / "bin" / "python-sb")
    script.write_text("#!/usr/bin/python3\n")
    with pytest.raises(FileNotFoundError, match=r"looked for\n.*bin/python-sb[\s\S]*pip install python-sb"):
        _binary.find()


@pytest.mark.parametrize("there", [{}, {"root": types.SimpleNamespace(level=10)}])
def test_logging_may_be_half_imported(monkeypatch: pytest.MonkeyPatch, there: dict[str, object]) -> None:
    """Another thread imports it, while this one opens a sandbox."""
    half = types.ModuleType("logging")
    vars(half).update(there)
    monkeypatch.setitem(sys.modules, "logging", half)
    assert [told for told in _spec.settings("/") if told[0] == "log-level"] == ([("log-level", "10")] if there else [])
