"""Make a learning run write rules that are wider than what happened."""

from __future__ import annotations

from functools import partial

from attack import Attack

#: Reads the secret in the next start, by the rules that the learning run wrote.
poison = partial(Attack, "poison", kind="text", learns=True, code="got(open(SECRET).read())")
#: Imports in the next start what the learning run never did.
imports = partial(poison, imports="sys", code="import colorsys\nprint('ESCAPED')")

CASES: list[Attack] = [
    # A name of the program's becomes text of the profile: what if it holds a second line, a separator, a variable?
    poison(
        "a file whose name is a rule", first="open(WORK + '/x\\nexpose-ro=..hidden', 'w')\nprint(open(SHOWN + '/page').read())"
    ),
    poison(
        "a folder whose name is two",
        first="""
        import os
        os.makedirs(WORK + '/a,' + os.sep + HIDDEN)
        open(WORK + '/a,' + os.sep + HIDDEN + '/x', 'w').close()
        open(WORK + '/a,' + os.sep + HIDDEN + '/x').read()
    """,
    ),
    poison(
        "a folder whose name is a variable",
        first="""
        import os
        os.environ['OUT'] = HIDDEN
        os.makedirs(WORK + '/${OUT:-' + HIDDEN + '}')
        open(WORK + '/${OUT:-' + HIDDEN + '}/x', 'w').close()
    """,
    ),
    poison("a folder whose name is home", first="import os; os.makedirs(WORK + '/~'); open(WORK + '/~/x', 'w').close()"),
    poison(
        "a call site whose file is a rule",
        first="""
        exec(compile("open(SHOWN + '/page').read()", "x\\nexpose-ro=./hidden\\n# ", 'exec'))
        exec(compile("__import__('colorsys')", "x\\rexpose-ro=./hidden\\r", 'exec'))
        exec(compile("__import__('os').stat(SHOWN)", "x\\u2028expose-ro=./hidden\\x85expose-ro=./hidden", 'exec'))
    """,
    ),
    poison(
        "a variable whose name is a rule",
        first="""
        import os
        for name in ('A\\ninclude "./rules"', 'A}\\ninclude "./rules"'):
            os.environ[name] = '1'
            os.environ[name], os.getenv(name)
        open('rules', 'w').write('expose-ro=./hidden')
    """,
    ),
    # What a rule names is looked at when the run has ended: by then it may be another thing than what was touched.
    poison(
        "a folder that becomes a link after it was read",
        kind="link",
        first="""
        import os, shutil
        os.mkdir(WORK + '/d')
        open(WORK + '/d/x', 'w').close()
        open(WORK + '/d/x').read()
        shutil.rmtree(WORK + '/d')
        os.symlink(HIDDEN, WORK + '/d')
    """,
    ),
    poison(
        "a folder that was made becomes a link",
        kind="link",
        first="import os; os.mkdir(WORK + '/d'); os.rmdir(WORK + '/d'); os.symlink(HIDDEN, WORK + '/d')",
    ),
    poison(
        "a file that becomes a link to a folder",
        kind="link",
        first="import os; open(WORK + '/f', 'w').close(); os.remove(WORK + '/f'); os.symlink(HIDDEN, WORK + '/f')",
    ),
    poison(
        "a folder that becomes a link to its parent",
        kind="link",
        first="import os; os.mkdir(WORK + '/d'); os.listdir(WORK + '/d'); os.rmdir(WORK + '/d'); os.symlink('../..', WORK + '/d')",
    ),
    # A module may have any name, once it is in sys.modules.
    *(
        imports(f"a module that is called {name!r}", first=f"import sys; sys.modules[{name!r}] = sys; __import__({name!r})")
        for name in (
            "*",
            "sys, *",
            "sys\npython-import=*",
            "colorsys ",
            "sys,colorsys",
            "${X:-colorsys}",
            "sys # x\rpython-import=*",
        )
    ),
]
