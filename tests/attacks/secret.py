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
]
