"""``pysandboxes report``: the page holds every rule, nothing that acts or loads, and replaces nothing but a page."""

from __future__ import annotations

import json
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path

import pytest

from pysandboxes import _cli, _page

pytestmark = pytest.mark.smoke

PROFILE = """\
os-sandbox=subprocess
env=API_KEY=${API_KEY}  # HIGH RISK; app.py:2
expose-rw=./data  # <script>alert(1)</script>
net=ALLOW|TCP|*.example.com|443|OUT
net=DENY|*|@metadata|*|OUT
python-import=json, DENY:ctypes
python-api=ALLOW:process-exec
"""
HOSTILE = ("<img src=x onerror=alert(1)>.pem", "\u202egnp.pem", "\udcff.pem", "a'b\"&lt;.pem")


class Page(HTMLParser):
    """What a browser would build: elements with their attributes, and the text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.open: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in ("meta", "link", "input", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open[-1:] != ["style"]:
            self.words.append(data)

    @property
    def text(self) -> str:
        return "".join(self.words)

    def having(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "data").mkdir()
    for name in HOSTILE:
        (tmp_path / "data" / name).write_text("k")
    (tmp_path / ".py-sandboxes").write_text(PROFILE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("API_KEY", "value-of-the-key")
    return tmp_path


def made(*arguments: str) -> Page:
    assert _cli.main(["report", "-o", "page.html", *arguments]) == 0
    return Page(Path("page.html").read_text())


def test_every_rule_is_there_with_its_grade_and_what_it_opens(here: Path) -> None:
    page = made()
    for text in (
        "env=API_KEY=${API_KEY}",
        "net=DENY|*|@metadata|*|OUT",
        "python-import=DENY:ctypes",
        ".py-sandboxes:7",
        "set here",
        "app.py:2",
    ):
        assert text in page.text, text
    assert "4 files in 1 folder" in page.text
    assert "looks like a secret" in page.text and "takes away" in page.text
    assert "value-of-the-key" not in page.text
    assert "Compared" not in page.text
    anchors = {a["href"] for a in page.having("a")}
    identities = {attributes["id"] for _, attributes in page.elements if "id" in attributes}
    assert {f"#{identity}" for identity in identities} >= anchors, "each link leads somewhere"
    assert not page.open


def test_nothing_in_it_acts_or_loads(here: Path) -> None:
    page = made()
    tags = {tag for tag, _ in page.elements}
    assert not tags & {"script", "img", "iframe", "object", "embed", "form", "svg", "base"}
    for tag, attributes in page.elements:
        for name, value in attributes.items():
            assert not name.startswith("on"), (tag, name)
            assert name not in ("src", "style"), (tag, name)
            if name == "href":
                assert value == "data:," or (value or "").startswith("#"), value
    policy = next(meta["content"] for meta in page.having("meta") if meta.get("http-equiv") == "Content-Security-Policy")
    assert policy and policy.startswith("default-src 'none'; style-src 'sha256-")
    assert "url(" not in _page.STYLE and "@import" not in _page.STYLE
    assert "<script>alert(1)</script>" in page.text, "a comment is text"
    assert "<img src=x onerror=alert(1)>.pem" in page.text
    assert "\\u202egnp.pem" in page.text and "\\udcff.pem" in page.text, "what is not drawn as it stands is spelled out"
    assert "a'b\"&lt;.pem" in page.text


def test_a_former_version_is_compared_with(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copy(".py-sandboxes", ".py-sandboxes.old")
    with Path(".py-sandboxes").open("a") as profile:
        profile.write("expose-ro=/etc/hostname\n")
    page = made()
    assert "More is allowed than before." in page.text
    assert [cell.get("class") for cell in page.having("span")].count("wider") == 1
    Path("strict").write_text("os-sandbox=subprocess\n")
    assert "More is allowed" in made("--before", "strict").text
    Path(".py-sandboxes.old").write_text("nonsense\n")
    assert "Not compared: " in made().text, "the page is there though the former version is broken"
    assert _cli.main(["report", "--before", "missing"]) == 2
    assert "missing" in capsys.readouterr().err


def test_a_profile_that_would_not_start_says_so(here: Path) -> None:
    Path(".py-sandboxes").write_text("os-sandbox=qemu\n")
    page = made()
    assert "It would not start:" in page.text
    assert [span["class"] for span in page.having("span")].count("error") == 1


def test_only_a_page_is_replaced(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, text in ((".py-sandboxes", PROFILE), ("app.py", "print()\n"), ("empty", "")):
        Path(name).write_text(text)
        assert _cli.main(["report", "-o", name]) == 2
        assert f"{name} is there and is no page of ours" in capsys.readouterr().err
        assert Path(name).read_text() == text
    assert _cli.main(["report", "-o", "gone/page.html"]) == 2
    assert "gone/page.html cannot be written" in capsys.readouterr().err
    made()
    Path("link.html").symlink_to("page.html")
    assert _cli.main(["report", "-o", "link.html"]) == 0
    assert Path("link.html").is_symlink()
    assert sorted(p.name for p in here.iterdir() if "html" in p.name) == ["link.html", "page.html"], (
        "nothing is left beside them"
    )


def test_without_a_file_it_goes_to_stdout_and_as_json(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert _cli.main(["report"]) == 0
    assert capsys.readouterr().out.startswith(_page.MARK)
    assert _cli.main(["report", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert [family["name"] for family in answer["families"]][:2] == ["environment", "files"]
    assert _cli.main(["report", "gone"]) == 2
    assert "gone" in capsys.readouterr().err


def test_a_browser_runs_nothing_and_hides_by_grade(here: Path) -> None:
    """Chromium draws the page: its own policy blocks nothing of it, and a filter hides rows by style alone."""
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("there is no Chromium here")
    made()
    heights = {}
    whole = Path("page.html").read_text()
    for shown in ("all", "only-high"):
        Path("shown.html").write_text(whole.replace(" checked>", ">").replace(f'id="{shown}"', f'id="{shown}" checked'))
        command = [
            chromium,
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            f"--user-data-dir={here}/chromium",
            "--enable-logging=stderr",
        ]
        done = subprocess.run(
            [*command, f"--print-to-pdf={shown}.pdf", f"file://{here}/shown.html"], capture_output=True, text=True, timeout=60
        )
        assert Path(f"{shown}.pdf").exists(), done.stderr
        assert "Content Security Policy" not in done.stderr, done.stderr
        heights[shown] = Path(f"{shown}.pdf").stat().st_size
    assert heights["only-high"] < heights["all"]
