"""What a program leaves behind for the next start: links in the place of what rules name."""

from __future__ import annotations

from functools import partial

from attack import Attack

mutate = partial(Attack, "mutate", kind="link", code="got(open(SECRET).read())")

#: Puts a link to the secret's folder in the place of what a rule names.
SWAP = """
import os, shutil
try: shutil.rmtree(WORK + '/sub')
except NotADirectoryError: os.remove(WORK + '/sub')
os.symlink(HIDDEN, WORK + '/sub')
"""
#: What the next start reads by the path of the rule.
THROUGH = "got(open(WORK + '/sub/key').read())"

CASES: list[Attack] = [
    # Paths of rules are resolved at each start: a link that the program leaves there is followed by the next one.
    mutate(
        "a folder that a rule exposes becomes a link",
        code=THROUGH,
        first=SWAP,
        plant="import os; os.mkdir(WORK + '/sub')",
        grants="expose-rw=./work\nexpose-ro=./work/payload_0/sub",
    ),
    mutate(
        "a folder that a rule exposes for writing becomes a link",
        code="open(WORK + '/sub/key', 'w').write('changed')\nprint('ESCAPED')",
        first=SWAP,
        plant="import os; os.mkdir(WORK + '/sub')",
        grants="expose-rw=./work\nexpose-rw=./work/payload_0/sub/",
    ),
    mutate(
        "a folder above what a rule exposes becomes a link",
        code=THROUGH,
        first=SWAP,
        plant="import os; os.mkdir(WORK + '/sub'); open(WORK + '/sub/key', 'w').write('mine')",
        grants="expose-rw=./work\nexpose-ro=./work/payload_0/sub/key",
    ),
    mutate(
        "a rule for a folder that was never there finds a link",
        code=THROUGH,
        first="import os; os.symlink(HIDDEN, WORK + '/sub')",
        grants="expose-rw=./work\nexpose-ro=./work/payload_0/sub",
    ),
    # The profile itself lies outside of what may be written, one of the links that lead to it does not.
    mutate(
        "the link by which an include is reached",
        first="""
        import os
        os.remove(WORK + '/current')
        os.mkdir(WORK + '/current')
        open(WORK + '/current/rules', 'w').write('expose-ro=../../../hidden')
    """,
        plant="import os; os.symlink(SHOWN and '../../shown/payload_0', WORK + '/current'); open(SHOWN + '/rules', 'w').write('')",
        grants='expose-rw=./work\ninclude "./work/payload_0/current/rules"',
    ),
    mutate(
        "the folder that keeps what is known of interpreters",
        code="""
        import os
        if os.stat('home').st_uid != os.getuid(): absent('the home is not ours')
        print('ESCAPED' if os.path.exists('home/.cache/pysandboxes/interpreter-0.json') else 'no')
    """,
        first="""
        import os
        if os.stat('home').st_uid != os.getuid(): absent('the home is not ours')
        os.makedirs('home/.cache/pysandboxes', exist_ok=True)
        open('home/.cache/pysandboxes/interpreter-0.json', 'w').write('{}')
    """,
        kind="state",
        grants="expose-rw=./home\nexpose-ro=./home",
    ),
]
