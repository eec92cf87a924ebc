"""The prompt: ``python-sb`` without a target and ``ipython-sb``, on a terminal, as a person uses them."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator

import pexpect
import pytest
from complete_mode import Place

pytestmark = pytest.mark.smoke

MARK = "\N{WARNING SIGN} "
PS1, PS2 = re.escape(f"{MARK}>>> "), re.escape(f"{MARK}... ")
PROFILE = "os-sandbox=${OS_SANDBOX:-auto}\npython-import=sys, os, helpful\nenv=TERM=dumb\nexpose-ro=.\n"
#: What IPython needs for itself.
IPYTHON = """\
os-sandbox=${OS_SANDBOX:-auto}
python-import=*
python-api=ALLOW:dynamic-code, ALLOW:threads, ALLOW:sys._getframe, ALLOW:pickle.find_class
python-api=ALLOW:ctypes.CFuncPtr, ALLOW:ctypes.dlsym
env=HOME=${HOME}
env=TERM=xterm
env=LANG=C.UTF-8
env=PROMPT_TOOLKIT_NO_CPR=1
env=PROMPT_TOOLKIT_COLOR_DEPTH=DEPTH_1_BIT
expose-rw=./home/.ipython/
expose-rw=./home/.cache/jedi/
"""

Start = Callable[..., pexpect.spawn]


@pytest.fixture
def start(place: Place) -> Iterator[Start]:
    """Starts a command of the environment on a terminal of its own."""
    children: list[pexpect.spawn] = []

    def spawn(command: str, *arguments: str) -> pexpect.spawn:
        child = pexpect.spawn(
            str(place.bin / command),
            list(arguments),
            cwd=str(place.folder),
            env={**place.environ(), "LANG": "C.UTF-8", "TERM": "xterm", "XDG_STATE_HOME": str(place.folder / "state")},
            encoding="utf-8",
            timeout=40,
            dimensions=(50, 400),
            echo=False,
        )
        child.delaybeforesend = None
        children.append(child)
        return child

    yield spawn
    for child in children:
        child.close(force=True)


def ask(child: pexpect.spawn, line: str, prompt: str = PS1) -> str:
    """Types a line at the prompt; gives what it showed before the next one."""
    child.send(line + "\r")
    child.expect(prompt)
    return str(child.before)


@pytest.fixture
def prompt(place: Place, start: Start) -> pexpect.spawn:
    """Python's own prompt. No IPython: the profile does not let it in."""
    place.profile(PROFILE)
    child = start("python-sb")
    child.expect(PS1)
    return child


def test_the_banner_names_the_file_and_the_prompt_is_marked(place: Place, prompt: pexpect.spawn) -> None:
    assert f"are limited by {place.folder}/.py-sandboxes" in prompt.before
    assert 'Type "help"' in prompt.before
    prompt.send("for i in range(2):\r")
    prompt.expect(PS2)
    prompt.send("    print('number', i)\r")
    prompt.expect(PS2)
    assert re.findall("^number .", ask(prompt, ""), re.MULTILINE) == ["number 0", "number 1"]
    assert "RuleFileNotFoundError" in ask(prompt, "open('/etc/passwd')")
    assert "expose-ro=/etc/passwd" in prompt.before
    assert "ZeroDivisionError" in ask(prompt, "1/0")
    ask(prompt, "import sys; sys.ps1 = 'mine> '", "mine> ")
    prompt.send("raise SystemExit(3)\r")
    prompt.expect(pexpect.EOF)
    prompt.close()
    assert prompt.exitstatus == 3


def test_help(prompt: pexpect.spawn) -> None:
    """bare Python starts a pager; here is none to be started."""
    assert "Return the number of items in a container." in ask(prompt, "help(len)")
    prompt.send("help()\r")
    prompt.expect("help> ")
    prompt.send("str.upper\r")
    prompt.expect("Return a copy of the string converted to uppercase.")
    prompt.expect("help> ")
    assert "Traceback" not in ask(prompt, "q")


def test_help_pages_where_a_pager_may_be_started(place: Place, start: Start) -> None:
    place.profile(PROFILE + "python-import=pydoc\npython-api=ALLOW:process-exec\n")
    child = start("python-sb")
    child.expect(PS1)
    assert "False" in ask(child, "import pydoc; pydoc.pager is pydoc.plainpager")


@pytest.mark.parametrize("terminal", ["dumb", "xterm"])  # 3.13 has a prompt of its own for the second
def test_completion(place: Place, start: Start, terminal: str) -> None:
    place.profile(PROFILE.replace("dumb", terminal))
    child = start("python-sb")
    child.expect(PS1)
    child.send("import os\r")
    child.send("os.getcw\t\r")
    child.expect("<built-in function getcwd>")
    child.send("raise SystemExit(0)\r")
    child.expect(pexpect.EOF)


@pytest.mark.parametrize("granted", [False, True])
def test_completion_evaluates_names_alone(place: Place, start: Start, granted: bool) -> None:
    """Else what a module plants in the completer would run strings at the next key."""
    place.file(
        "helpful.py",
        """
        import rlcompleter
        class Match:
            def group(self, *numbers):
                return "ran.append(1) or ran", ""
        class Fake:
            def match(self, pattern, text):
                return Match()
        rlcompleter.re = Fake()
        """,
    )
    grant = "python-api=ALLOW:dynamic-code\n" if granted else ""
    place.profile(PROFILE + "python-import=rlcompleter\n" + grant)
    child = start("python-sb")
    child.expect(PS1)
    ask(child, "import helpful")
    ask(child, "ran = []; word = 'how of' + 'ten'")
    child.send("ran.x\t\x15")
    child.send("(word, bool(ran))\r")
    child.expect(re.escape(f"('how often', {granted})"))


def test_history(prompt: pexpect.spawn) -> None:
    assert "84" in ask(prompt, "42 * 2")
    prompt.send("\x1b[A")  # the key of the line before
    assert "84" in ask(prompt, "")


def test_a_pipe_has_pythons_own_prompt(place: Place) -> None:
    place.profile(PROFILE)
    options = ("-i", "-q")
    boxed, bare = (run(*options, input="1+1\nimport sys; sys.ps1\n") for run in (place.run, place.bare))
    assert (boxed.stdout, boxed.stderr.rstrip()) == (bare.stdout, bare.stderr.rstrip())


# ---- IPython ---------------------------------------------------------------------------------------------------------

IN = re.escape(f"{MARK}In [")


@pytest.fixture(params=["python-sb", "ipython-sb", "ipython3-sb"])
def ipython(request: pytest.FixtureRequest, place: Place, start: Start) -> pexpect.spawn:
    place.profile(IPYTHON)
    child = start(request.param)
    child.expect(IN)
    assert "are limited by" in child.before
    assert "IPython" in child.before
    return child


def says(child: pexpect.spawn, line: str, text: str) -> None:
    """Types a line at a prompt that is drawn again at every key; waits for what it shows."""
    child.send(line + "\r")
    child.expect(re.escape(text))


def test_ipython(ipython: pexpect.spawn) -> None:
    says(ipython, "40 + 2", "42")
    says(ipython, "len?", "Return the number of items in a container.")
    says(ipython, "open('/etc/passwd')", "expose-ro=/etc/passwd")
    says(ipython, "!echo started", "RuleApiPermissionError")
    says(ipython, "import os; 6 * 7 + 1", "43")
    ipython.send("os.getlogi")
    ipython.expect("getlogi")
    ipython.send("\t")
    ipython.expect("n")  # what is new is drawn
    says(ipython, "", "<function posix.getlogin()>")
    says(ipython, "_1 + 2", "44")
    ipython.send("exit\r")
    ipython.expect(pexpect.EOF)
    ipython.close()
    assert ipython.exitstatus == 0


def test_ipython_s_other_commands_have_no_prompt(place: Place, start: Start) -> None:
    place.profile(IPYTHON)
    child = start("ipython-sb", "-c", "print(6 * 7)")
    child.expect("42\r")
    child.expect(pexpect.EOF)
    child = start("ipython-sb", "locate")
    child.expect(re.escape(str(place.folder / "home/.ipython")))
    child.expect(pexpect.EOF)


def test_python3_sb(place: Place, start: Start) -> None:
    place.profile(PROFILE)
    child = start("python3-sb")
    child.expect(PS1)
    assert str(tuple(sys.version_info[:2])) in ask(child, "import sys; print(sys.version_info[:2])")
