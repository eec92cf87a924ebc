"""For each guarded function: calls that a profile which allows it must leave as they are without a sandbox.

One expression a line, each evaluated in a folder of its own (see program.py, which also says what the names mean). They succeed, and fail by themselves: what is missing, exists, is no folder, is of a wrong type, is too much.
"""

# What every function with a path is asked: {0} is the function, {1} further arguments.
_PATHS = """
{0}('none'{1})
{0}(b'none'{1})
{0}(P('none'){1})
{0}(P(b'none'){1})
{0}(S('none'){1})
{0}(B(b'none'){1})
{0}(P(5){1})
{0}(Bad(){1})
{0}('f/x'{1})
{0}('none/x'{1})
{0}('loop/x'{1})
{0}('a\\0b'{1})
{0}('n' * 300{1})
{0}('\\udcff\\u20ac'{1})
{0}(''{1})
{0}(None{1})
{0}(1.5{1})
{0}([]{1})
{0}(-1{1})
{0}(10 ** 6{1})
{0}(2 ** 70{1})
{0}(True{1})
{0}(bytearray(b'none'){1})
{0}(memoryview(b'none'){1})
{0}()
{0}(*'abcdefghi')
{0}('f'{1}, nonsense=1)
{0}(path='none'{2})
"""

ROWS: dict[str, str] = {}


def _row(name: str, text: str = "", paths: tuple[str, str] | None = None) -> None:
    """A row; with ``paths`` what follows the path, by position and by keyword, also every way to write a path."""
    head = _PATHS.format(name, *paths) if paths else ""
    ROWS[name] = head + text


# ---- files: events ----

_row(
    "builtins.open",
    """
(lambda p: (os.write(p[1], b'x'), open(f'/dev/fd/{p[0]}', 'rb', 0).read(1)))(os.pipe())
open('f').read()
open(P('f'), 'rb').read()
open(b'f', encoding='ascii').read()
open('f', 'r', -1, 'latin-1', 'strict', None, True).read()
open(fd('f'), closefd=False).read()
open('new', 'x').name
open(P('new'), 'w').name
open(b'new', 'ab').name
open('f', 'x')
open('d')
open('d', 'w')
open('f', 'rw')
open('f', 'r', 0)
open('f', mode=None)
open('f', buffering='x')
open(file='f', mode='r').read()
open('f', opener=lambda p, flags: os.open('f', flags)).read()
open('none', opener=lambda p, flags: os.open('f', flags)).read()
open('f', opener=lambda p, flags: -1)
open('f', opener=lambda p, flags: 'x')
open('f', opener=5)
open('none', 'w', opener=lambda p, flags: os.open('f', os.O_RDONLY)).name
io.open is open
io.FileIO('f').readall()
io.FileIO('none')
io.FileIO('d')
io.FileIO(b'f').name
io.FileIO(P('f')).name
io.FileIO(P('none'))
io.FileIO('f', 'x')
io.FileIO('f', 'q')
io.FileIO(file='f', mode='r', closefd=True, opener=None).read()
io.FileIO(True).name
io.open_code(os.path.abspath('f')).read()
io.open_code('none')
io.open_code(P('f'))
io.open_code(5)
pathlib.Path('f').read_text()
pathlib.Path('none').read_bytes()
codecs.open('f', 'r', 'utf-8').read()
tempfile.TemporaryFile(dir='d').write(b'x')
""",
    paths=("", ""),
)
_row(
    "os.listdir",
    "sorted(os.listdir('.'))\nsorted(os.listdir(b'.'))\nsorted(os.listdir())\nsorted(os.listdir(None))\nsorted(os.listdir(fd('d')))\nos.listdir('f')\nsorted(os.listdir(path=P('.')))\n",
    paths=("", ""),
)
_row(
    "os.scandir",
    "sorted(e.name for e in os.scandir('.'))\nsorted(e.path for e in os.scandir(b'.'))\nsorted(e.path for e in os.scandir())\nsorted(e.path for e in os.scandir(fd('d')))\nos.scandir('f')\nsorted(map(repr, os.scandir(P('.'))))\nsorted(os.walk('.'))\n",
    paths=("", ""),
)
_row(
    "os.chdir",
    "os.chdir('d'), os.path.basename(os.getcwd())\nos.chdir(fd('d')), os.path.basename(os.getcwd())\nos.chdir('f')\nos.fchdir(fd('d')), os.listdir('.')\n",
    paths=("", ""),
)
_row(
    "os.mkdir",
    "os.mkdir('new'), mode('new')\nos.mkdir('new', 0o700), mode('new')\nos.mkdir('new', mode=I(0o711)), mode('new')\nos.mkdir('new', dir_fd=fd('d')), os.listdir('d')\nos.mkdir('d')\nos.mkdir('link')\nos.mkdir('new', 'x')\nos.mkdir('new', dir_fd=10**6)\nos.makedirs('d/x/y'), os.listdir('d')\nos.makedirs('d')\nos.makedirs('d', exist_ok=True)\npathlib.Path('d').mkdir()\n",
    paths=("", ""),
)
_row(
    "os.rmdir",
    "os.rmdir('d'), os.path.exists('d')\nos.rmdir('.')\nos.rmdir('f')\nos.rmdir('full')\nos.rmdir('x', dir_fd=fd('full')), os.listdir('full')\nos.rmdir('none', dir_fd=fd('d'))\n",
    paths=("", ""),
)
_row(
    "os.remove",
    "os.remove('f'), os.path.exists('f')\nos.unlink('link'), os.path.exists('f')\nos.remove('d')\nos.unlink('none')\nos.unlink(P('none'))\nos.unlink(b'none', dir_fd=fd('d'))\nos.remove('f', dir_fd=None)\npathlib.Path('none').unlink()\n",
    paths=("", ""),
)
_row(
    "os.rename",
    """
os.rename('f', 'g'), sorted(os.listdir())
os.rename(P('f'), b'g')
os.rename(P('f'), P('g')), os.path.exists('g')
os.rename(src='f', dst='g')
os.rename('none', 'g')
os.rename(P('none'), S('g'))
os.rename(b'none', b'g')
os.rename('f', 'd')
os.rename('d', 'f')
os.rename('d', 'd/x')
os.rename('f', 'none/x')
os.rename('f', 'g', src_dir_fd=fd('d'))
os.rename('x', 'g', src_dir_fd=fd('full'), dst_dir_fd=fd('d')), os.listdir('d')
os.rename('f', 5)
os.rename('f')
os.replace('f', 'g'), sorted(os.listdir())
os.replace('none', 'g')
os.replace('f', 'link'), os.path.islink('link')
shutil.move('f', 'd')
""",
)
_row(
    "os.link",
    "os.link('f', 'g'), os.stat('g').st_nlink\nos.link('f', 'd')\nos.link('none', 'g')\nos.link(P('none'), b'g')\nos.link('link', 'g', follow_symlinks=False), os.path.islink('g')\nos.link('d', 'g')\nos.link('f', 'g', src_dir_fd=fd('d'))\nos.link('f')\nos.link('f', 1.5)\nos.link(src='f', dst='g')\n",
)
_row(
    "os.symlink",
    "os.symlink('f', 'g'), os.readlink('g')\nos.symlink('none', 'g', True), os.readlink('g')\nos.symlink('f', 'd')\nos.symlink(P('f'), b'g')\nos.symlink('f', 'x', dir_fd=fd('d')), os.listdir('d')\nos.symlink('', 'g')\nos.symlink('f', '')\nos.symlink('f', 'none/g')\nos.symlink(5, 'g')\n",
)
_row(
    "os.truncate",
    "os.truncate('f', 2), open('f').read()\nos.truncate(fd('f', os.O_RDWR), 2), open('f').read()\nos.truncate('d', 2)\nos.truncate('f', -1)\nos.truncate('f', 'x')\nos.ftruncate(fd('f'), 1)\n",
    paths=(", 0", ", length=0"),
)
_row(
    "os.chmod",
    "os.chmod('f', 0o600), mode('f')\nos.chmod(fd('f'), 0o640), mode('f')\nos.chmod('link', 0o604), mode('f')\nos.chmod('link', 0o600, follow_symlinks=False)\nos.chmod('x', 0o700, dir_fd=fd('full')), mode('full/x')\nos.chmod('f', 'x')\nos.fchmod(fd('f'), 0o666), mode('f')\nos.chmod('f', I(0o666))\n",
    paths=(", 0o600", ", mode=0o600"),
)
_row(
    "os.chown",
    "os.chown('f', os.getuid(), os.getgid())\nos.chown('f', -1, -1)\nos.lchown('link', -1, -1)\nos.fchown(fd('f'), -1, -1)\nos.chown('f', 'x', 0)\nos.chown('f', -2, 0)\nos.chown('none', -1, -1, follow_symlinks=False)\n",
    paths=(", -1, -1", ", uid=-1, gid=-1"),
)
_row(
    "os.utime",
    "os.utime('f', (1, 2)), os.stat('f').st_mtime\nos.utime('f', ns=(1, 2)), os.stat('f').st_mtime_ns\nos.utime('link', (1, 2), follow_symlinks=False), os.lstat('link').st_mtime\nos.utime('f', (1, 2), ns=(1, 2))\nos.utime('f', 5)\nos.utime('f', (1,))\nos.utime(fd('f'), (3, 4)), os.stat('f').st_mtime\nos.utime('x', (1, 2), dir_fd=fd('full'))\n",
    paths=(", (1, 2)", ", times=None"),
)
_row(
    "os.setxattr",
    "os.setxattr('f', 'user.x', b'1'), os.getxattr('f', 'user.x')\nos.setxattr('f', b'user.x', b'1', os.XATTR_REPLACE)\nos.setxattr('f', 'nonsense', b'1')\nos.setxattr('f', 'user.x', 'text')\nos.setxattr('link', 'user.x', b'1', follow_symlinks=False)\n",
    paths=(", 'user.x', b'1'", ", attribute='user.x', value=b'1'"),
)
_row(
    "os.removexattr",
    "os.removexattr('f', 'user.x')\nos.removexattr(fd('f'), 'user.x')\nos.removexattr('f', 5)\n",
    paths=(", 'user.x'", ", attribute='user.x'"),
)
_row(
    "os.getxattr",
    "os.getxattr('f', 'user.x')\nos.getxattr(P('f'), P('user.x'))\nos.getxattr('link', 'user.x', follow_symlinks=False)\n",
    paths=(", 'user.x'", ", attribute='user.x'"),
)
_row(
    "os.listxattr",
    "os.listxattr('f')\nos.listxattr()\nos.listxattr(None)\nos.listxattr(fd('f'))\nos.listxattr('link', follow_symlinks=False)\n",
    paths=("", ""),
)
_row(
    "sqlite3.connect",
    "sqlite3.connect('a.db').execute('select 1').fetchall()\nsqlite3.connect(P('a.db')).execute('select 1').fetchall()\nsqlite3.connect(b'a.db').execute('select 1').fetchall()\nsqlite3.connect(':memory:').execute('select 1').fetchall()\nsqlite3.connect('').execute('select 1').fetchall()\nsqlite3.connect('file:a.db?mode=ro', uri=True)\nsqlite3.connect('file:a.db', uri=True).execute('select 1').fetchall()\nsqlite3.connect('d')\nsqlite3.connect('none/a.db')\nsqlite3.connect('a\\0b')\nsqlite3.connect(None)\nsqlite3.connect(5)\nsqlite3.connect()\nsqlite3.connect('a.db', nonsense=1)\nsqlite3.connect(database='a.db').total_changes\nsqlite3.connect('a.db', timeout='x')\nsqlite3.connect('a.db', factory=5)\nsqlite3.Connection('a.db').total_changes\nsqlite3.dbapi2.connect('a.db').isolation_level\n",
)

# ---- files: without an event ----

_row(
    "os.open",
    "os.read(os.open('f', os.O_RDONLY), 9)\nos.read(os.open(P('f'), 0), 9)\nos.read(os.open('x', 0, dir_fd=fd('full')), 9)\nos.close(os.open('new', os.O_CREAT | os.O_WRONLY, 0o640)), mode('new')\nos.open('f', os.O_CREAT | os.O_EXCL)\nos.open('d', os.O_WRONLY)\nos.open('link', os.O_NOFOLLOW)\nos.open('f', os.O_DIRECTORY)\nos.open('f', 'x')\nos.open('f', 2**40)\nos.open('f', I(0)) > 0\nos.open('f', 0, 0o777, dir_fd='x')\nos.open(path='f', flags=0, mode=0, dir_fd=None) > 0\nos.open('f')\nos.get_inheritable(os.open('f', 0))\n",
    paths=(", 0", ", flags=0"),
)
_row(
    "os.stat",
    "st(os.stat('f'))\nst(os.stat('link'))\nst(os.stat('link', follow_symlinks=False))\nst(os.stat('link', follow_symlinks=[]))\nstat.S_IFMT(os.stat('/proc/self/ns/uts').st_mode)\nstat.S_IFMT(os.stat(f'/proc/self/fd/{os.pipe()[0]}').st_mode)\nstat.S_IFMT(os.stat(f'/dev/fd/{socket.socket().fileno()}').st_mode)\nst(os.stat(fd('f')))\nst(os.stat('x', dir_fd=fd('full')))\nst(os.stat('f', dir_fd=I(fd('.'))))\nos.stat('dangling')\nos.stat('loop')\nos.stat('f', dir_fd=10**6)\nos.stat('f', dir_fd=2**70)\nos.stat('f', dir_fd='x')\nos.stat(0, dir_fd=fd('d'))\nos.stat(fd('f'), follow_symlinks=False)\nos.path.exists('dangling'), os.path.isfile('f'), os.path.isdir('d'), os.path.getsize('f')\nos.path.getsize('none')\nos.path.samefile('f', 'link')\npathlib.Path('none').stat()\npathlib.Path('f').exists()\n",
    paths=("", ""),
)
_row(
    "os.lstat",
    "st(os.lstat('link'))\nst(os.lstat('f', dir_fd=None))\nst(os.lstat('x', dir_fd=fd('full')))\nst(os.lstat('loop'))\nos.path.islink('link'), os.path.lexists('dangling'), os.path.ismount('d')\n",
    paths=("", ""),
)
_row(
    "os.access",
    "os.access('f', os.R_OK)\nos.access(P('f'), os.F_OK)\nos.access('none', os.F_OK)\nos.access('f', I(4))\nos.access('f', 'x')\nos.access('x', 4, dir_fd=fd('full'))\nos.access('f', 4, effective_ids=True)\nos.access('link', 4, follow_symlinks=False)\nos.access('f', 99)\n",
    paths=(", 4", ", mode=4"),
)
_row(
    "os.readlink",
    "os.readlink('link')\nos.readlink(b'link')\nos.readlink(P('link'))\nos.readlink(S('link'))\nos.readlink('f')\nos.readlink('d')\nos.readlink('link', dir_fd=fd('.'))\nos.readlink('loop')\npathlib.Path('link').readlink()\nos.path.realpath('link') == os.path.abspath('f')\nos.path.realpath('loop', strict=True)\n",
    paths=("", ""),
)
_row("os.statvfs", "os.statvfs('f').f_namemax\nos.statvfs(fd('f')).f_namemax\nos.fstatvfs(fd('f')).f_namemax\n", paths=("", ""))
_row(
    "os.pathconf",
    "os.pathconf('f', 'PC_NAME_MAX')\nos.pathconf(fd('f'), 'PC_NAME_MAX')\nos.pathconf('f', 'PC_NONSENSE')\nos.pathconf('f', 10**6)\nos.pathconf('f', None)\n",
    paths=(", 'PC_NAME_MAX'", ", name='PC_NAME_MAX'"),
)
_row(
    "os.mkfifo",
    "os.mkfifo('new'), mode('new')\nos.mkfifo('new', 0o600), mode('new')\nos.mkfifo('f')\nos.mkfifo('new', dir_fd=fd('d')), os.listdir('d')\nos.mkfifo('new', mode='x')\n",
    paths=("", ""),
)
_row(
    "os.mknod",
    "os.mknod('new'), mode('new')\nos.mknod('new', 0o600 | stat.S_IFIFO), mode('new')\nos.mknod('f')\nos.mknod('new', dir_fd=fd('d')), os.listdir('d')\nos.mknod('new', 0o600, 'x')\n",
    paths=("", ""),
)
_row(
    "readline.read_init_file",
    "readline.read_init_file('f')\nreadline.read_init_file('none')\nreadline.read_init_file(P('none'))\nreadline.read_init_file(5)\nreadline.read_init_file('f', 'f')\nreadline.read_init_file('a\\0b')\n",
)
_row(
    "readline.parse_and_bind",
    "readline.parse_and_bind('$include f')\nreadline.parse_and_bind('  $ INCLUDE none ')\nreadline.parse_and_bind('$include')\nreadline.parse_and_bind('$include ~')\nreadline.parse_and_bind('tab: complete')\nreadline.parse_and_bind('$if mode=vi')\nreadline.parse_and_bind('$include a\\0b')\nreadline.parse_and_bind('\\ud800')\nreadline.parse_and_bind(b'x')\nreadline.parse_and_bind(5)\nreadline.parse_and_bind()\n",
)
_row(
    "readline.read_history_file",
    "readline.read_history_file('f'), readline.get_history_item(1)\nreadline.read_history_file('none')\nreadline.read_history_file(b'f')\nreadline.read_history_file([])\nreadline.read_history_file(filename='f')\n",
)
_row(
    "readline.write_history_file",
    "readline.write_history_file('new'), os.path.exists('new')\nreadline.write_history_file('none/new')\nreadline.write_history_file(5)\nreadline.write_history_file(P('new'))\n",
)
_row(
    "readline.append_history_file",
    "readline.append_history_file(0, 'none')\nreadline.append_history_file(0, 'f'), open('f').read()\nreadline.append_history_file('x')\nreadline.append_history_file(0, 5)\n",
)
_row(
    "_ssl._test_decode_cert",
    "_ssl._test_decode_cert('f')\n_ssl._test_decode_cert('none')\n_ssl._test_decode_cert(P('f'))\n_ssl._test_decode_cert(5)\n_ssl._test_decode_cert('a\\0b')\n_ssl._test_decode_cert()\n",
)
_row("_dbm.open", "_dbm.open('new', 'c').keys()\n_dbm.open('none')\n_dbm.open('new', 'q')\n_dbm.open(5)\n")
_row("_gdbm.open", "_gdbm.open('new', 'c').keys()\n_gdbm.open('none')\n_gdbm.open('new', 'q')\n_gdbm.open(5)\n")
_row(
    "os.DirEntry",
    "entry('link').stat().st_size\nentry('link').stat(follow_symlinks=False).st_size\nentry('dangling').stat()\nentry('dangling').is_file(), entry('dangling').is_dir(), entry('dangling').is_symlink()\nentry('d').is_dir(), entry('d').is_file(), entry('link').is_file(follow_symlinks=False)\nentry('f').stat(1)\nentry('f').stat(nonsense=1)\nentry('f').is_dir(follow_symlinks='x')\nentry('loop').is_file()\nentry('loop').stat()\nos.fspath(entry('f')), entry('f').inode() == os.stat('f').st_ino\n",
)
_row(
    "ssl.SSLContext.load_cert_chain",
    "ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_cert_chain('none')\nssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_cert_chain(P('none'))\nssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_cert_chain('f')\nssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_cert_chain(certfile='f', keyfile='none')\nssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_cert_chain(5)\nssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_cert_chain(None)\nssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_cert_chain('f', 'f', 5)\nssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_cert_chain('f', nonsense=1)\n",
)
_row(
    "ssl.SSLContext.load_verify_locations",
    "ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations('none')\nssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations('f')\nssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(capath='d')\nssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(cadata='x')\nssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations()\nssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(5)\nssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(cafile=P('none'))\n",
)

# ---- network: loopback alone ----

_row(
    "socket.__new__",
    "socket.socket().family\nsocket.socket(socket.AF_INET6, socket.SOCK_DGRAM).type\nsocket.socket(socket.AF_UNIX).family\nsocket.socket(10**6)\nsocket.socket('x')\nsocket.socket(fileno=-1)\nsocket.socket(fileno=fd('f'))\nsocket.socket(fileno=10**6)\nsocket.socket(nonsense=1)\n[s.family for s in socket.socketpair()]\nsocket.fromfd(socket.socket().fileno(), socket.AF_INET, socket.SOCK_STREAM).family\n",
)
_row(
    "socket.connect",
    "socket.socket().connect(('127.0.0.1', CLOSED))\nsocket.socket().connect_ex(('127.0.0.1', CLOSED))\nsocket.socket().connect(('localhost', CLOSED))\nsocket.socket().connect(('127.0.0.1', 'x'))\nsocket.socket().connect(('127.0.0.1', 10**6))\nsocket.socket().connect(('127.0.0.1',))\nsocket.socket().connect('x')\nsocket.socket().connect(5)\nsocket.socket().connect()\nsocket.socket().connect((5, 5))\nsocket.socket().connect((b'127.0.0.1', CLOSED))\nsocket.socket().connect(('127.0.0.1', I(CLOSED)))\nsocket.socket().connect(('127.0.0.1\\0', CLOSED))\nsocket.socket().connect((b'127.0.0.1\\0x', CLOSED))\nsocket.socket().connect(('127.0.0.1', -1))\nsocket.socket().connect(('a' * 300, 5))\nsocket.socket(socket.AF_INET6).connect(('::1', CLOSED))\nsocket.socket(socket.AF_INET6).connect(('::1', CLOSED, 0, 0, 0))\nsocket.socket(socket.AF_UNIX).connect('none')\nsocket.socket(socket.AF_UNIX).connect(b'none')\nsocket.socket(socket.AF_UNIX).connect('f')\nsocket.socket(socket.AF_UNIX).connect('n' * 200)\nsocket.socket(socket.AF_UNIX).connect(5)\nsocket.create_connection(('127.0.0.1', CLOSED))\nsocket.create_connection(('127.0.0.1', CLOSED), all_errors=True)\n",
)
_row(
    "socket.bind",
    "socket.socket().bind(('127.0.0.1', 0))\nbound().bind(('127.0.0.1', 0))\nsocket.socket().bind(('127.0.0.1', 'x'))\nsocket.socket().bind(('127.0.0.1', -1))\nsocket.socket().bind(('127.0.0.1', 2**70))\nsocket.socket().bind('x')\nsocket.socket().bind(('127.0.0.1\\0', 0))\nsocket.socket().bind(bound().getsockname())\nsocket.socket(socket.AF_UNIX).bind('s'), stat.S_ISSOCK(os.stat('s').st_mode)\nsocket.socket(socket.AF_UNIX).bind('f')\nsocket.socket(socket.AF_UNIX).bind(b'none/s')\nsocket.socket(socket.AF_UNIX).bind(5)\nsocket.socket().bind()\n",
)
_row(
    "socket.listen",
    "bound().listen()\nbound().listen(0)\nbound().listen(-5)\nbound().listen('x')\nbound().listen(2**70)\nbound().listen(1, 2)\nsocket.socket(socket.AF_INET, socket.SOCK_DGRAM).listen()\nsocket.create_server(('127.0.0.1', 0)).family\n",
)
_row(
    "socket.sendto",
    "udp().sendto(b'x', ('127.0.0.1', CLOSED))\nudp().sendto(b'x', 0, ('127.0.0.1', CLOSED))\nudp().sendto(b'x', ('127.0.0.1', 'x'))\nudp().sendto('x', ('127.0.0.1', CLOSED))\nudp().sendto(b'x')\nudp().sendto()\nudp().sendto(b'x', 0, ('127.0.0.1', CLOSED), 0)\nudp().sendto(b'x', None)\nudp().sendto(b'x' * 70000, ('127.0.0.1', CLOSED))\nudp().sendto(b'x', 'x', ('127.0.0.1', CLOSED))\n",
)
_row(
    "socket.sendmsg",
    "udp().sendmsg([b'x'], [], 0, ('127.0.0.1', CLOSED))\nudp().sendmsg([b'x'])\nudp().sendmsg(5)\nudp().sendmsg(['x'])\nudp().sendmsg([b'x'], [], 0, 'x')\nsocket.socketpair()[0].sendmsg([b'x'], [])\n",
)
_row(
    "socket.getaddrinfo",
    "socket.getaddrinfo('127.0.0.1', 80)\nsocket.getaddrinfo('::1', 'http')\nsocket.getaddrinfo(None, 80)\nsocket.getaddrinfo('127.0.0.1', None)\nsocket.getaddrinfo(None, None)\nsocket.getaddrinfo('', 80)\nsocket.getaddrinfo(b'127.0.0.1', b'80')\nsocket.getaddrinfo('127.0.0.1', 'nonsense')\nsocket.getaddrinfo('127.0.0.1', 1.5)\nsocket.getaddrinfo(5, 80)\nsocket.getaddrinfo('a' * 70, 80)\nsocket.getaddrinfo('127.0.0.1\\0x', 80)\nsocket.getaddrinfo(b'127.0.0.1\\0', 80)\nsocket.getaddrinfo('a..b', 80)\nsocket.getaddrinfo('127.0.0.1', 80, family='x')\nsocket.getaddrinfo('localhost', 80, socket.AF_INET, socket.SOCK_STREAM)\nsocket.getaddrinfo(host='127.0.0.1', port=80, type=1, flags=socket.AI_NUMERICHOST)\nsocket.getaddrinfo('127.0.0.1')\n",
)
_row(
    "socket.gethostbyname",
    "socket.gethostbyname('127.0.0.1')\nsocket.gethostbyname('localhost')\nsocket.gethostbyname_ex('127.0.0.1')\nsocket.gethostbyname('')\nsocket.gethostbyname(5)\nsocket.gethostbyname(b'127.0.0.1')\nsocket.gethostbyname('a\\0b')\nsocket.gethostbyname(b'a\\0b')\nsocket.gethostbyname(bytearray(b'a\\0b'))\nsocket.gethostbyname_ex('a\\0b')\nsocket.gethostbyname_ex(S('a\\0b'))\nsocket.gethostbyname()\nsocket.gethostbyname_ex(None)\n",
)
_row(
    "socket.gethostbyaddr",
    "socket.gethostbyaddr('127.0.0.1')\nsocket.gethostbyaddr(5)\nsocket.gethostbyaddr('a' * 70)\nsocket.gethostbyaddr('a\\0b')\nsocket.gethostbyaddr()\n",
)
_row(
    "socket.getnameinfo",
    "socket.getnameinfo(('127.0.0.1', 80), socket.NI_NUMERICHOST | socket.NI_NUMERICSERV)\nsocket.getnameinfo(('127.0.0.1', 'x'), 0)\nsocket.getnameinfo('x', 0)\nsocket.getnameinfo(('127.0.0.1', 80))\nsocket.getnameinfo(('::1', 80, 2**40), 0)\n",
)
