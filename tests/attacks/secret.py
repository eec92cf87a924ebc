"""Steal a secret from the environment, from memory, from another process."""

from __future__ import annotations

from functools import partial

from attack import Attack

secret = partial(Attack, "secret")

CASES: list[Attack] = [
    secret(
        "os.environ",
        """
        import os
        print('ESCAPED' if os.environ.get('SECRET_TOKEN') else 'no')
    """,
    ),
    secret(
        "os.environb",
        """
        import os
        print('ESCAPED' if os.environb.get(b'SECRET_TOKEN') else 'no')
    """,
    ),
    secret(
        "posix.environ",
        """
        import posix
        print('ESCAPED' if b'SECRET_TOKEN' in posix.environ else 'no')
    """,
    ),
    secret("proc environ", "print('ESCAPED' if 'SECRET_TOKEN' in open('/proc/self/environ').read() else 'no')"),
    secret(
        "proc pid environ",
        """
        import os
        print('ESCAPED' if 'SECRET_TOKEN' in open(f'/proc/{os.getpid()}/environ').read() else 'no')
    """,
    ),
    secret(
        "os.getenv",
        """
        import os
        got(os.getenv('SECRET_TOKEN'))
    """,
    ),
    secret(
        "every variable",
        """
        import os
        got(dict(os.environ))
    """,
    ),
    secret(
        "expandvars",
        """
        import os
        got(os.path.expandvars('$SECRET_TOKEN'))
    """,
        kind="library",
    ),
    secret("proc thread-self environ", "got(open('/proc/thread-self/environ').read())", kind="spelling"),
    secret(
        "proc task environ",
        """
        import os
        got(open(f'/proc/self/task/{os.getpid()}/environ').read())
    """,
        kind="spelling",
    ),
    secret("environment of another process", "got(open(f'/proc/{VICTIM}/environ', 'rb').read())"),
    secret(
        "environment of another process by dir_fd",
        """
        import os
        d = os.open('/proc', os.O_PATH)
        got(os.read(os.open(f'{VICTIM}/environ', os.O_RDONLY, dir_fd=d), 999))
    """,
        kind="descriptor",
    ),
    secret(
        "environment of another process by root",
        "got(open(f'/proc/self/root/proc/{VICTIM}/environ', 'rb').read())",
        kind="spelling",
    ),
    secret(
        "environment of another process through a link",
        """
        import os
        os.symlink(f'/proc/{VICTIM}/environ', WORK + '/l')
        got(open(WORK + '/l', 'rb').read())
    """,
        kind="link",
        grants="expose-rw=./work",
    ),
    secret(
        "command line of another process",
        "print('ESCAPED' if b'sleep' in open(f'/proc/{VICTIM}/cmdline', 'rb').read() else 'no')",
        kind="metadata",
    ),
    secret(
        "folder of another process",
        """
        import os
        os.readlink(f'/proc/{VICTIM}/cwd')
        print('ESCAPED')
    """,
        kind="metadata",
    ),
    secret(
        "descriptors of another process",
        """
        import os
        print('ESCAPED' if os.listdir(f'/proc/{VICTIM}/fd') else 'no')
    """,
        kind="metadata",
    ),
    secret("maps of another process", "print('ESCAPED' if open(f'/proc/{VICTIM}/maps').read() else 'no')", kind="metadata"),
    secret(
        "the list of processes",
        """
        import os
        print('ESCAPED' if str(VICTIM) in os.listdir('/proc') else 'no')
    """,
        kind="metadata",
    ),
    secret(
        "environment of the parent",
        """
        import os
        if os.stat(f'/proc/{os.getppid()}').st_uid != os.getuid(): absent('the parent is not ours')
        open(f'/proc/{os.getppid()}/environ', 'rb').read()
        print('ESCAPED')
    """,
    ),
    secret(
        "memory of the parent",
        """
        import os
        if os.stat(f'/proc/{os.getppid()}').st_uid != os.getuid(): absent('the parent is not ours')
        open(f'/proc/{os.getppid()}/mem', 'rb')
        print('ESCAPED')
    """,
    ),
    secret(
        "own memory, to write",
        """
        open('/proc/self/mem', 'r+b')
        print('ESCAPED')
    """,
    ),
    secret(
        "memory of another process",
        """
        open(f'/proc/{VICTIM}/mem', 'rb')
        print('ESCAPED')
    """,
    ),
]
