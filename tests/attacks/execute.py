"""Start a program."""

from __future__ import annotations

from functools import partial

from attack import Attack

execute = partial(Attack, "execute")

CASES: list[Attack] = [
    execute(
        "os.system",
        """
        import os
        os.system('echo ESCAPED')
    """,
    ),
    execute(
        "os.popen",
        """
        import os
        print(os.popen('echo ESCAPED').read())
    """,
    ),
    execute(
        "os.execv",
        """
        import os
        os.execv('/bin/echo', ['echo', 'ESCAPED'])
    """,
        alone=True,
    ),
    execute(
        "os.execvp",
        """
        import os
        os.execvp('echo', ['echo', 'ESCAPED'])
    """,
        alone=True,
    ),
    execute(
        "os.spawnv",
        """
        import os
        os.spawnv(os.P_WAIT, '/bin/echo', ['echo', 'ESCAPED'])
    """,
    ),
    execute(
        "os.posix_spawn",
        """
        import os
        os.waitpid(os.posix_spawn('/bin/echo', ['echo', 'ESCAPED'], {}), 0)
    """,
    ),
    execute(
        "os.fork",
        """
        import os
        p = os.fork()
        if not p: print('ESCAPED', flush=True); os._exit(0)
        os.waitpid(p, 0)
    """,
        alone=True,
    ),
    execute(
        "os.forkpty",
        """
        import os
        p, f = os.forkpty()
        if not p: os._exit(0)
        print('ESCAPED')
    """,
        alone=True,
    ),
    execute(
        "pty.spawn",
        """
        import os
        import pty
        pty.spawn(['/bin/echo', 'ESCAPED'])
    """,
    ),
    execute(
        "os.execve",
        """
        import os
        os.execve('/bin/echo', ['echo', 'ESCAPED'], {})
    """,
        kind="direct",
        alone=True,
    ),
    execute(
        "os.execl",
        """
        import os
        os.execl('/bin/echo', 'echo', 'ESCAPED')
    """,
        kind="direct",
        alone=True,
    ),
    execute(
        "os.execle",
        """
        import os
        os.execle('/bin/echo', 'echo', 'ESCAPED', {})
    """,
        kind="direct",
        alone=True,
    ),
    execute(
        "os.execlp",
        """
        import os
        os.execlp('echo', 'echo', 'ESCAPED')
    """,
        kind="direct",
        alone=True,
    ),
    execute(
        "os.execlpe",
        """
        import os
        os.execlpe('echo', 'echo', 'ESCAPED', dict(PATH='/bin'))
    """,
        kind="direct",
        alone=True,
    ),
    execute(
        "os.execvpe",
        """
        import os
        os.execvpe('echo', ['echo', 'ESCAPED'], dict(PATH='/bin'))
    """,
        kind="direct",
        alone=True,
    ),
    execute(
        "os._execvpe",
        """
        import os
        os._execvpe('echo', ['echo', 'ESCAPED'], dict(PATH='/bin'))
    """,
        kind="twin",
        alone=True,
    ),
    execute(
        "os.execve of a descriptor",
        """
        import os
        os.execve(os.open('/bin/echo', os.O_RDONLY), ['echo', 'ESCAPED'], {})
    """,
        grants="expose-ro=/bin\nexpose-ro=/usr/bin",
        kind="direct",
        alone=True,
    ),
    execute(
        "os.execve of a memory file",
        """
        import os
        fd = os.memfd_create('x', 0)
        os.write(fd, open('/bin/echo', 'rb').read())
        os.execve(fd, ['echo', 'ESCAPED'], {})
    """,
        grants="expose-ro=/bin\nexpose-ro=/usr/bin",
        kind="direct",
        alone=True,
    ),
    execute(
        "posix.execv",
        """
        import posix
        posix.execv('/bin/echo', ['echo', 'ESCAPED'])
    """,
        kind="twin",
        alone=True,
    ),
    execute(
        "posix.execve",
        """
        import posix
        posix.execve('/bin/echo', ['echo', 'ESCAPED'], {})
    """,
        kind="twin",
        alone=True,
    ),
    execute(
        "posix.system",
        """
        import posix
        posix.system('echo ESCAPED')
    """,
        kind="twin",
    ),
    execute(
        "posix.fork",
        """
        import posix
        pid = posix.fork()
        print('ESCAPED' if pid else 'child', flush=True)
    """,
        kind="twin",
        alone=True,
    ),
    execute(
        "posix.forkpty",
        """
        import posix, os
        pid, fd = posix.forkpty()
        if not pid: os._exit(0)
        print('ESCAPED')
    """,
        kind="twin",
        alone=True,
    ),
    execute(
        "posix.posix_spawn",
        """
        import posix
        posix.waitpid(posix.posix_spawn('/bin/echo', ['echo', 'ESCAPED'], {}), 0)
    """,
        kind="twin",
        alone=True,
    ),
    execute(
        "os.posix_spawnp",
        """
        import os
        os.waitpid(os.posix_spawnp('echo', ['echo', 'ESCAPED'], {}), 0)
    """,
        kind="direct",
        alone=True,
    ),
    execute(
        "posix.posix_spawnp",
        """
        import posix
        posix.waitpid(posix.posix_spawnp('echo', ['echo', 'ESCAPED'], {}), 0)
    """,
        kind="twin",
        alone=True,
    ),
    execute(
        "os.posix_spawn with file actions",
        """
        import os
        r, w = os.pipe()
        os.waitpid(os.posix_spawn('/bin/echo', ['echo', 'ESCAPED'], {}, file_actions=[(os.POSIX_SPAWN_DUP2, w, 1)], setpgroup=0), 0)
        print(os.read(r, 99).decode())
    """,
        kind="direct",
        alone=True,
    ),
    execute(
        "os.spawnl",
        """
        import os
        os.spawnl(os.P_WAIT, '/bin/echo', 'echo', 'ESCAPED')
    """,
        kind="direct",
        alone=True,
    ),
    execute(
        "os.spawnle",
        """
        import os
        os.spawnle(os.P_WAIT, '/bin/echo', 'echo', 'ESCAPED', {})
    """,
        kind="direct",
        alone=True,
    ),
    execute(
        "os.spawnlp",
        """
        import os
        os.spawnlp(os.P_WAIT, 'echo', 'echo', 'ESCAPED')
    """,
        kind="direct",
        alone=True,
    ),
    execute(
        "os.spawnlpe",
        """
        import os
        os.spawnlpe(os.P_WAIT, 'echo', 'echo', 'ESCAPED', dict(PATH='/bin'))
    """,
        kind="direct",
        alone=True,
    ),
    execute(
        "os.spawnve",
        """
        import os
        os.spawnve(os.P_WAIT, '/bin/echo', ['echo', 'ESCAPED'], {})
    """,
        kind="direct",
        alone=True,
    ),
    execute(
        "os.spawnvp",
        """
        import os
        os.spawnvp(os.P_WAIT, 'echo', ['echo', 'ESCAPED'])
    """,
        kind="direct",
        alone=True,
    ),
    execute(
        "os.spawnvpe",
        """
        import os
        os.spawnvpe(os.P_WAIT, 'echo', ['echo', 'ESCAPED'], dict(PATH='/bin'))
    """,
        kind="direct",
        alone=True,
    ),
    execute(
        "os._spawnvef",
        """
        import os
        os._spawnvef(os.P_WAIT, '/bin/echo', ['echo', 'ESCAPED'], None, os.execv)
    """,
        kind="twin",
        alone=True,
    ),
    execute(
        "pty.fork",
        """
        import os, pty
        pid, fd = pty.fork()
        if not pid: os._exit(0)
        print('ESCAPED')
    """,
        kind="library",
        alone=True,
    ),
    execute(
        "pty.fork without forkpty",
        """
        import os, pty
        del os.forkpty
        pid, fd = pty.fork()
        if not pid: os._exit(0)
        print('ESCAPED')
    """,
        kind="twin",
        alone=True,
    ),
]
