"""Change the rules that hold now or from the next start on: the profile, what it includes, what a start reads."""

from __future__ import annotations

from functools import partial

from attack import Attack

mutate = partial(Attack, "mutate")

WIDER = "python-api=ALLOW:*\\n"
RW = "expose-rw=./work"
HOME = RW + "\nenv=HOME=${HOME}"

CASES: list[Attack] = [
    # ---- the profile that this run was started by
    *(
        mutate(f"the profile, {how}", code + "\nprint('ESCAPED')", grants=grants, kind=kind)
        for how, code, grants, kind in [
            ("appended to", f"open('.py-sandboxes', 'a').write('{WIDER}')", "", "direct"),
            ("opened for writing", "import os; os.open('.py-sandboxes', os.O_RDWR)", "", "twin"),
            ("cut to nothing", "import os; os.truncate('.py-sandboxes', os.stat('.py-sandboxes').st_size)", "", "direct"),
            ("its mode", "import os; os.chmod('.py-sandboxes', 0o600)", "", "metadata"),
            ("its times", "import os; os.utime('.py-sandboxes')", "", "metadata"),
            ("by pathlib", "import pathlib; pathlib.Path('.py-sandboxes').touch()", "", "library"),
            ("by the way of /proc/self/cwd", f"open('/proc/self/cwd/.py-sandboxes', 'a').write('{WIDER}')", "", "spelling"),
            ("by dots", f"open('payloads/.././.py-sandboxes', 'a').write('{WIDER}')", "", "spelling"),
            (
                "by a folder's descriptor",
                "import os; os.open('.py-sandboxes', os.O_RDWR, dir_fd=os.open('.', os.O_RDONLY))",
                "",
                "descriptor",
            ),
            (
                "from another folder",
                "import os\nos.chdir(WORK)\ntry: open('../../.py-sandboxes', 'a').close()\nfinally: os.chdir('../..')",
                RW,
                "state",
            ),
            (
                "through a link of the program's own",
                "import os; os.symlink(os.path.abspath('.py-sandboxes'), WORK + '/l'); open(WORK + '/l', 'a').close()",
                RW,
                "link",
            ),
            (
                "by a second name",
                "import os; os.link('.py-sandboxes', WORK + '/second'); open(WORK + '/second', 'a').close()",
                RW,
                "link",
            ),
            (
                "replaced by a file",
                "import os; open(WORK + '/new', 'w').write(''); os.replace(WORK + '/new', '.py-sandboxes')",
                RW,
                "direct",
            ),
            (
                "replaced by a copy",
                "import shutil; open(WORK + '/copy', 'w').write(''); shutil.copy(WORK + '/copy', '.py-sandboxes')",
                RW,
                "library",
            ),
            (
                "moved away",
                "import os; os.rename('.py-sandboxes', WORK + '/moved'); os.rename(WORK + '/moved', '.py-sandboxes')",
                RW,
                "direct",
            ),
            (
                "taken away",
                "import os; open('.py-sandboxes', 'a').close(); os.remove('.py-sandboxes'); open('.py-sandboxes', 'w').close()",
                "",
                "direct",
            ),
            ("read", "print(open('.py-sandboxes').read())", "", "direct"),
        ]
    ),
    # ---- what it includes, and what the next start reads besides
    *(
        mutate(
            f"planted: {what}",
            f"import os\npath = os.path.expanduser({path!r})\nos.makedirs(os.path.dirname(path) or '.', exist_ok=True)\n"
            f"with open(path, 'w') as f: f.write({text!r})\nprint('ESCAPED')\nos.remove(path)",
            grants=HOME,
        )
        for what, path, text in [
            ("an include beside the profile", ".local.py-sandboxes", "python-api=ALLOW:*\n"),
            ("the user's include", "~/.config/py-sandboxes/user-py-sandboxes.profile", "python-api=ALLOW:*\n"),
            ("a former profile", ".py-sandboxes.old", ""),
            ("the record of known profiles", "~/.local/state/pysandboxes/profiles/0", ""),
            ("the interpreter's cache", "~/.cache/pysandboxes/interpreter-0.json", "{}"),
            ("sitecustomize beside the script", "payloads/sitecustomize.py", "print(1)"),
            ("a module beside the script", "payloads/json.py", "print(1)"),
            ("compiled code beside the script", "payloads/__pycache__/x.cpython-311.pyc", ""),
            ("usercustomize", "~/.local/lib/python3/site-packages/usercustomize.py", "print(1)"),
            ("a .pth of the user's", "~/.local/lib/python3/site-packages/x.pth", "import os"),
            ("python's start-up file", "~/.pythonrc", "print(1)"),
            ("the shell's start-up file", "~/.bashrc", ""),
            ("a virtual environment's settings", "payloads/pyvenv.cfg", ""),
        ]
    ),
    # ---- variables that steer what a granted call starts
    *(
        mutate(
            f"{name} for a Python that is started",
            f"""
            import os, subprocess, sys
            open(WORK + '/sitecustomize.py', 'w').write("print(open(" + repr(SECRET) + ").read())")
            os.environ.update({env})
            done = subprocess.run([sys.executable, *{flags}, '-c', f'print(open({{SECRET!r}}).read())'], capture_output=True, text=True)
            got(done.stdout)
        """,
            grants=RW + "\npython-api=ALLOW:subprocess.run\nexpose-ro=/bin\nexpose-ro=/usr",
            kind="state",
            alone=True,
        )
        for name, env, flags in [
            ("PYTHONPATH", "PYTHONPATH=os.path.abspath(WORK)", []),
            ("OS_SANDBOX", "OS_SANDBOX='none', PYSANDBOXES_CONFIG='/dev/null'", []),
            ("PYSANDBOXES_BOOT", "PYSANDBOXES_BOOT='0:0:-1::', LD_PRELOAD=''", []),
            ("isolated flags", "PYTHONHOME=''", ["-I", "-S", "-E"]),
        ]
    ),
]
