"""Errors of the C library, of tempfile and of the kernel that come of the rules: as bare, and the line."""

from __future__ import annotations

import grp
import json
import pwd

import pytest
from complete_mode import Place

pytestmark = pytest.mark.smoke

PROGRAM = """
import getpass, grp, json, os, pwd, shutil, sys, tempfile, pysandboxes
def said(function, *args):
    try: function(*args)
    except Exception as e:
        told = [[d.layer, d.subject, *d.add] for d in pysandboxes.denials(e)]
        return [type(e).__name__, str(e).partition(" in [")[0], getattr(e, "errno", None), told, getattr(e, "__notes__", [])]
    return ["fine"]
print(json.dumps([said(eval(text)) for text in sys.argv[1:]]))
"""
PROFILE = "python-import=*\npython-api=ALLOW:eval\n"


def ask(place: Place, *functions: str) -> list[list[object]]:
    done = place.run("-c", PROGRAM, *[f"lambda: {function}" for function in functions])
    assert done.returncode == 0, done.stderr
    result: list[list[object]] = json.loads(done.stdout)
    return result


@pytest.mark.parametrize("provider", ["landlock", "subprocess"])
def test_the_user_database(place: Place, provider: str) -> None:
    place.provider = provider
    calls = ["pwd.getpwuid(0)", "pwd.getpwnam('root')", "grp.getgrgid(0)", "grp.getgrnam('root')", "pwd.getpwuid('x')"]
    texts = ["'getpwuid(): uid not found: 0'", "\"getpwnam(): name not found: 'root'\""]
    texts += ["'getgrgid(): gid not found: 0'", "\"getgrnam(): name not found: 'root'\""]
    place.profile(PROFILE)
    *users, wrong = ask(place, *calls)
    files = ["/etc/passwd", "/etc/passwd", "/etc/group", "/etc/group"]
    assert [one[:2] for one in users] == [["KeyError", text] for text in texts]
    assert [one[3] for one in users] == [[["python", file, f"expose-ro={file}"]] for file in files]
    assert all(str(one[4][0]).endswith(f"expose-ro={file}") for one, file in zip(users, files, strict=True))  # type: ignore[index]
    assert wrong[0] == "TypeError" and wrong[3:] == [[], []]
    (name,) = ask(place, "getpass.getuser()")
    every = "print(len(pwd.getpwall()), len(grp.getgrall()), file=sys.stderr)"
    assert place.run("-c", PROGRAM, f"lambda: {every}").stderr.splitlines()[-1] == "0 0"
    assert name[0] in ("KeyError", "OSError") and "expose-ro=/etc/passwd" in str(name[3])
    place.profile(PROFILE + "expose-ro=/etc/passwd\nexpose-ro=/etc/group\n")
    assert ask(place, *calls[:4], "getpass.getuser()") == [["fine"]] * 5
    known = place.run("-c", PROGRAM, f"lambda: {every}").stderr.splitlines()[-1]
    assert known == f"{len(pwd.getpwall())} {len(grp.getgrall())}"
    (missing,) = ask(place, "pwd.getpwuid(987654)")
    assert missing[:2] == ["KeyError", "'getpwuid(): uid not found: 987654'"] and missing[3:] == [[], []]


def test_no_folder_for_temporary_files(place: Place) -> None:
    place.environment["TMPDIR"] = "/nowhere"  # the host's: not the program's
    text = "[Errno 2] No usable temporary directory found"
    profile = place.profile(PROFILE)
    own = ["expose-rw=/tmp"] if not str(place.folder).startswith("/tmp/") else ["expose-rw=./tmp/"]
    (error,) = ask(place, "tempfile.TemporaryFile()")
    assert error[:4] == ["FileNotFoundError", text, 2, [["python", "/tmp", *own]]]
    place.profile(PROFILE + f"env=TMPDIR={place.folder}/other/deep\n")
    (error,) = ask(place, "tempfile.mkdtemp()")
    assert error[3] == [["python", f"{place.folder}/other/deep", "expose-rw=./other/deep"]]
    profile.write_text(PROFILE + f"env=TMPDIR={place.folder}/tmp\nexpose-rw=./tmp/\n")
    assert ask(place, "tempfile.TemporaryFile()") == [["fine"]]


def test_what_a_rule_exposes_alone_is_not_removed(place: Place) -> None:
    place.provider = "landlock"
    place.file("one", "")
    profile = place.profile(PROFILE + "expose-rw=./work/\nexpose-rw=./one\n")
    calls = [
        "shutil.rmtree('work')",
        "os.rmdir('work')",
        "os.remove('one')",
        "os.unlink(b'./work/../one')",
        "os.rmdir('work', dir_fd=None)",
    ]
    found = ask(place, *calls, "os.mkdir('work/a') or os.rmdir('work/a')", "os.rmdir('work/none')")
    for error, name, line in zip(found, ["work", "work", "one", "one", "work"], [3, 3, 4, 4, 3], strict=False):
        assert error[0] == "PermissionError" and error[2:4] == [13, [["os", str(place.folder / name)]]]
        assert f"the line expose-rw=./{name}{'/' * (name == 'work')} at {profile}:{line} exposes it alone" in str(error[4])
    assert found[5:] == [["fine"], ["FileNotFoundError", "[Errno 2] No such file or directory: 'work/none'", 2, [], []]]
    place.provider = "subprocess"
    assert ask(place, *calls[:1]) == [["fine"]]


@pytest.mark.parametrize("provider", ["landlock", "subprocess"])
def test_a_file_that_was_not_there_at_the_start(place: Place, provider: str) -> None:
    place.provider = provider
    place.profile(PROFILE + "expose-rw=./out.json\nexpose-rw=./data/new\n")
    place.file("data/old")
    read, made, beneath = ask(place, "open('out.json')", "open('out.json', 'w')", "os.mkdir('data/new')")
    assert read[:3] == ["FileNotFoundError", "[Errno 2] No such file or directory: 'out.json'", 2]
    if provider == "subprocess":
        assert made == beneath == ["fine"]
        return
    for refused, file, line in ((made, "out.json", "expose-rw=./output/"), (beneath, "data/new", "expose-rw=./data")):
        kind, text, number, told, _ = refused
        assert (kind, number) == ("RulePermissionError", 13)
        assert told == [["python", str(place.folder / file), line]]
        assert f"expose-rw=./{file} at" in str(text) and "was not there when the sandbox started" in str(text)
