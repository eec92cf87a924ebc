"""Read a file by a C library that opens it: OpenSSL and readline."""

from __future__ import annotations

from functools import partial

from attack import Attack

read = partial(Attack, "read")

#: readline says what it cannot make sense of: `said()` is that.
READLINE = """
try:
    import readline
except ModuleNotFoundError:
    absent('no readline')
import os
if 'libedit' in (readline.__doc__ or ''):
    absent('libedit includes nothing')
fd = os.open(WORK + '/said', os.O_RDWR | os.O_CREAT, 0o600)
os.dup2(fd, 2)
os.environ['HOME'] = HIDDEN
def said(): return os.pread(fd, 1000, 0)
"""


def by_readline(name: str, code: str, **more: object) -> Attack:
    return read(f"readline, {name}", f"{READLINE}{code}\ngot(said())\n", alone=True, **more)


CASES: list[Attack] = [
    read(
        "load_verify_locations",
        """
        import ssl
        c = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        try: c.load_verify_locations(SECRET)
        except ssl.SSLError: print('ESCAPED')
    """,
        kind="library",
    ),
    read(
        "load_verify_locations of a folder",
        """
        import ssl
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(capath=HIDDEN)
        print('ESCAPED')
    """,
        kind="library",
    ),
    read(
        "load_dh_params",
        """
        import ssl
        c = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        try: c.load_dh_params(SECRET)
        except ssl.SSLError: print('ESCAPED')
    """,
        kind="library",
    ),
    by_readline("an included file", "readline.parse_and_bind('$include ' + SECRET)", kind="library"),
    by_readline("an included file, spelt oddly", "readline.parse_and_bind(' $\\tInClude\\t ' + SECRET)", kind="spelling"),
    by_readline("an included file of the home", "readline.parse_and_bind('$include ~/key')", kind="spelling"),
    by_readline("an init file of the home", "readline.read_init_file('~/key')", kind="spelling"),
    by_readline("an init file of the home, as bytes", "readline.read_init_file(b'~/key')", kind="spelling"),
    by_readline(
        "a home in the middle",
        "readline.parse_and_bind('$include ' + WORK + '/x ~/key')",
        kind="spelling",
        plant="""
        import os
        os.makedirs(WORK + '/x ' + HIDDEN)
        os.symlink(SECRET, WORK + '/x ' + HIDDEN + '/key')
    """,
    ),
    by_readline(
        "an init file that includes",
        """
with open(WORK + '/rc', 'w') as f:
    f.write(f'$include {SECRET}\\n')
readline.read_init_file(WORK + '/rc')
""",
        kind="library",
        layer="os",
    ),
]
