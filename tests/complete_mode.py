"""Running a program under ``python-sb``, and bare, as a user would: the tests' one way to do so."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import textwrap
from dataclasses import dataclass, field
from pathlib import Path

BIN = Path(sys.executable).parent
NOBODY = 65534


@dataclass
class Place:
    """A folder with a profile, where programs run sandboxed and bare.

    ``provider`` is what ``--os-sandbox=`` says; ``None`` leaves the profile's own choice. ``bin`` holds python and
    python-sb. ``user`` is whom the programs run as; ``None`` is the tests' own.
    """

    folder: Path
    provider: str | None = None
    environment: dict[str, str] = field(default_factory=dict)
    bin: Path = BIN
    user: int | None = None

    def profile(self, text: str) -> Path:
        path = self.folder / ".py-sandboxes"
        path.write_text(textwrap.dedent(text))
        return path

    def file(self, name: str, text: str = "") -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text))
        return path

    def environ(self) -> dict[str, str]:
        home = self.folder / "home"
        home.mkdir(exist_ok=True)
        if self.user is not None:
            os.chown(home, self.user, self.user)
        kept = {k: v for k, v in os.environ.items() if k in ("PATH", "LANG", "TMPDIR", "XDG_CACHE_HOME")}
        return {"HOME": str(home), **kept, **self.environment}

    def command(self, *args: str | Path) -> list[str]:
        provider = [f"--os-sandbox={self.provider}"] if self.provider else []
        return [str(self.bin / "python-sb"), *provider, *map(str, args)]

    def run(self, *args: str | Path, timeout: float = 60, **kwargs: object) -> subprocess.CompletedProcess[str]:
        """Runs ``python-sb args`` here."""
        return self._run(self.command(*args), timeout, kwargs)

    def bare(self, *args: str | Path, timeout: float = 60, **kwargs: object) -> subprocess.CompletedProcess[str]:
        """Runs the same interpreter on ``args`` without a sandbox."""
        return self._run([str(self.bin / "python"), *map(str, args)], timeout, kwargs)

    def doctor(self, *before: str | Path) -> str:
        """What ``pysandboxes doctor`` says here, run by another program where one stands before it."""
        code = (
            "import sys; from pysandboxes._cli import main; sys.exit(main(['doctor']))"  # no environment need have the script
        )
        done = self._run([*map(str, before), str(self.bin / "python"), "-c", code], 60, {})
        assert done.returncode == 0, done.stderr
        return done.stdout

    def _run(self, command: list[str], timeout: float, kwargs: dict[str, object]) -> subprocess.CompletedProcess[str]:
        options: dict[str, object] = {"stdin": subprocess.DEVNULL, "cwd": self.folder, "env": self.environ()}
        if "input" in kwargs:
            del options["stdin"]
        if self.user is not None:
            options.update(user=self.user, group=self.user, extra_groups=[])
        return subprocess.run(  # type: ignore[call-overload,no-any-return]
            command, capture_output=True, text=True, timeout=timeout, **{**options, **kwargs}
        )


def public_environment(folder: Path) -> Path | None:
    """Makes an environment in folder that every user can run: its bin, or None where no interpreter of this minor
    version is for everyone (one below a private home is not)."""
    for candidate in (
        sys.executable,
        f"/usr/bin/python3.{sys.version_info.minor}",
        f"/usr/local/bin/python3.{sys.version_info.minor}",
    ):
        real = Path(candidate).resolve()
        if real.exists() and all(p.stat().st_mode & 0o001 for p in (real, *real.parents)):
            break
    else:
        return None
    subprocess.run([real, "-m", "venv", "--without-pip", folder], check=True)
    package = Path(__file__).resolve().parent.parent / "pysandboxes"
    site = folder / "lib" / f"python3.{sys.version_info.minor}" / "site-packages"
    shutil.copytree(package, site / "pysandboxes", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(BIN / "python-sb", folder / "bin" / "python-sb")
    return folder / "bin"


def last_line(text: str) -> str:
    """The last line that is not blank."""
    return [line for line in text.splitlines() if line.strip()][-1].strip()
