"""Build every wheel of a release into dist/, and prove that it is one: `make wheels`.

    python tools/wheels.py [--output FOLDER] [--pythons 3.11 3.12 3.13] [--arch aarch64]

Both distributions' wheels come from their sdists, so what is proved is what a user's `pip install` builds. Interpreters that
are not on this machine are named and left out; `--strict` makes that an error.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PYTHONS = ["3.11", "3.12", "3.13"]


def run(*command: str | Path, **env: str) -> str:
    done = subprocess.run(
        [str(part) for part in command], cwd=ROOT, env=dict(os.environ, **env), stdout=subprocess.PIPE, text=True
    )
    if done.returncode:
        raise SystemExit(f"wheels.py: {' '.join(map(str, command))} failed")
    return done.stdout


def interpreter(python: str) -> str | None:
    """An interpreter of that version: pyenv's, else what uv finds without downloading."""
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv", "versions")
    if found := sorted(pyenv.glob(f"{python}.*/bin/python{python}")):
        return str(found[-1])
    done = subprocess.run(
        ["uv", "python", "find", "--no-project", "--no-python-downloads", python], capture_output=True, text=True
    )
    return done.stdout.strip() if done.returncode == 0 else None


def check(wheel: Path) -> None:
    """No libpython, no link, the glibc floor that the name promises."""
    with zipfile.ZipFile(wheel) as archive:
        if links := [info.filename for info in archive.infolist() if (info.external_attr >> 16) & 0o170000 == 0o120000]:
            raise SystemExit(f"wheels.py: {wheel.name} holds links: {links}")
        with tempfile.TemporaryDirectory() as folder:
            for name in archive.namelist():
                if name.endswith((".so", "/python-sb")):
                    archive.extract(name, folder)
                    needed = run("readelf", "-d", Path(folder, name))
                    if "libpython" in needed:
                        raise SystemExit(f"wheels.py: {name} in {wheel.name} links libpython")
    report = run("uv", "run", "-q", "--no-project", "--with", "auditwheel", "auditwheel", "show", wheel)
    if "manylinux" not in report and "consistent with" in " ".join(report.split()):
        raise SystemExit(f"wheels.py: auditwheel does not call {wheel.name} a manylinux wheel:\n{report}")
    print(f"  {wheel.name}  {wheel.stat().st_size / 1e6:.1f} MB", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, default=ROOT / "dist")
    parser.add_argument("--pythons", nargs="+", default=PYTHONS)
    parser.add_argument("--arch", choices=["x86_64", "aarch64"], help="target (default: this machine)")
    parser.add_argument("--strict", action="store_true", help="fail where an interpreter is missing")
    options = parser.parse_args()
    output = options.output.resolve()
    env = {"PYSANDBOXES_ARCH": options.arch} if options.arch else {}
    for old in [*output.glob("pysandboxes-*"), *output.glob("python_sb-*")]:
        old.unlink()
    print(f"wheels.py: building into {output}", flush=True)
    for package in ("pysandboxes", "python-sb"):
        run("uv", "build", "-q", "--sdist", "--package", package, "--out-dir", output, **env)
    (engine,), (command,) = output.glob("pysandboxes-*.tar.gz"), output.glob("python_sb-*.tar.gz")
    built = 0
    for python in options.pythons:
        if (found := interpreter(python)) is None:
            print(f"wheels.py: no Python {python} on this machine; its wheel is left out", file=sys.stderr)
            if options.strict:
                raise SystemExit(1)
            continue
        run("uv", "build", "-q", "--wheel", "--python", found, "--out-dir", output, engine, **env)
        built += 1
    if not built:
        raise SystemExit(f"wheels.py: none of Python {', '.join(options.pythons)} is on this machine")
    run("uv", "build", "-q", "--wheel", "--out-dir", output, command, **env)
    for wheel in sorted(output.glob("*.whl")):
        check(wheel)


if __name__ == "__main__":
    main()
