"""What the standard library does by itself stays free: its own imports, and its templates, whatever shape they take."""

from __future__ import annotations

import pytest
from complete_mode import Place

pytestmark = pytest.mark.smoke

TEMPLATES = """
    import collections, dataclasses, typing
    from dataclasses import dataclass, field

    @dataclass(order=True, unsafe_hash=True, slots=True)
    class Everything:
        x: int
        y: str = "a"
        z: list[int] = field(default_factory=list, hash=False)
        v: dataclasses.InitVar[int] = 3
        c: typing.ClassVar[int] = 3
        k: int = field(kw_only=True, default=5, repr=False)
        i: int = field(init=False, default=1)
        j: tuple[int, ...] = field(init=False, default_factory=tuple)
        def __post_init__(self, v: int) -> None:
            self.i = v

    @dataclass(frozen=True)
    class Frozen:
        größe: int
        z: list[int] = field(default_factory=list)

    @dataclass
    class Named:
        self: int
        other: int = 2
        type: int = 3

    @dataclass(frozen=True, order=True)
    class Empty: pass

    Made = dataclasses.make_dataclass("Made", [("a", int), "b", ("c", int, field(default=3))])
    Pair = collections.namedtuple("Pair", "x y", defaults=[1])
    class Typed(typing.NamedTuple):
        a: int
        hash: int = 3

    e = Everything(1, v=7)
    print(e, e == Everything(1, v=7), e < Everything(2), len({e, Everything(1, v=7)}), Frozen(1), Named(1), Empty() == Empty())
    print(Made(1, 2), Pair(1), Typed(4))
    try:
        Frozen(1).größe = 2
    except dataclasses.FrozenInstanceError as error:
        print(error)
"""


def test_templates_of_every_shape(place: Place) -> None:
    place.file("app.py", TEMPLATES)
    place.profile("python-import=collections\npython-import=dataclasses\npython-import=typing\n")
    bare, held = place.bare("app.py"), place.run("app.py")
    assert (held.stdout, held.stderr, held.returncode) == (bare.stdout, bare.stderr, 0)


@pytest.mark.parametrize(
    "options",
    [(), ("-O",), ("-OO",), ("-X", "frozen_modules=off"), ("-X", "no_debug_ranges"), ("-B", "-X", "dev")],
    ids=" ".join,
)
def test_the_library_imports_itself(place: Place, options: tuple[str, ...]) -> None:
    """From .pyc files of each level, and frozen or not: what was loaded is found to be the file's."""
    place.profile("python-import=asyncio\npython-import=decimal\n")
    done = place.run(*options, "-c", "import asyncio, decimal; print(asyncio.run(asyncio.sleep(0, 7)), decimal.Decimal(1))")
    assert (done.stdout, done.returncode) == ("7 1\n", 0), done.stderr


def test_constants_of_every_kind_are_compared(place: Place) -> None:
    """email.message has a set of pairs among its constants: as the file has it, it is the library's; otherwise it is not."""
    place.profile("python-import=urllib, email\npython-api=ALLOW:dynamic-code\n")
    code = """
        import email, urllib.request
        path = email.__file__.replace("__init__", "message")
        text = open(path).read()
        assert "('text', 'plain')" in text
        for source in (text, text.replace("('text', 'plain')", "('text', 'plane')")):
            try:
                exec(compile(source, path, "exec"), {"__name__": "email.message", "__package__": "email"})
                print("the library's")
            except ImportError as error:
                print(type(error).__name__, error.name)
    """
    place.file("app.py", code)
    held = place.run("app.py")
    assert held.stdout == "the library's\nRuleModuleNotFoundError binascii\n", held.stderr


def test_the_library_imports_itself_when_it_is_called(place: Place) -> None:
    """Functions of modules whose own code has gone: their part of the file is found."""
    place.profile("python-import=gettext\npython-import=decimal\npython-import=importlib\n")
    code = """
        import decimal, gettext, importlib
        print(gettext.dngettext("domain", "one", "many", 2), importlib.import_module("decimal") is decimal)
        print(gettext.NullTranslations().gettext("a"), gettext.find("x"))
    """
    place.file("app.py", code)
    bare, held = place.bare("app.py"), place.run("app.py")
    assert (held.stdout, held.stderr, held.returncode) == (bare.stdout, bare.stderr, 0)


def test_a_library_that_can_be_written_is_the_programs(place: Place) -> None:
    """Where the profile lets the program write the standard library, its imports are charged like the program's."""
    folder = place.bare("-c", "import os; print(os.path.dirname(os.__file__))").stdout.splitlines()[-1]
    place.provider = "subprocess"
    place.profile(f"python-import=asyncio\nexpose-rw={folder}\n")
    done = place.run("-c", "import asyncio")
    assert "RuleModuleNotFoundError" in done.stderr


def test_the_library_imports_itself_in_another_interpreter(place: Place) -> None:
    """One that a grant made: its frozen modules are other objects than the first one's."""
    modules = ("_xxsubinterpreters", "_interpreters")
    place.profile(
        "python-import=gettext\npython-api=ALLOW:native\npython-api=ALLOW:dynamic-code\n"
        + "".join(f"python-import={name}\n" for name in modules)
    )
    place.file(
        "app.py",
        """
        try: import _xxsubinterpreters as interpreters
        except ImportError: import _interpreters as interpreters
        one = interpreters.create()
        interpreters.run_string(one, "import gettext; print('there', flush=True)")
        interpreters.destroy(one)
        import gettext
        print("here")
        """,
    )
    done = place.run("app.py")
    assert (done.stdout, done.returncode) == ("there\nhere\n", 0), done.stderr
