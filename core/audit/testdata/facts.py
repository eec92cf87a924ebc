"""Hold the tables of core/audit against the interpreter that runs this.

stdin: JSON {"shims": [[module, attr, since, until], ...], "events": {event: number of arguments that specs refer to}}.
stdout: one line a contradiction.
"""

import importlib
import json
import os
import sys
import tempfile

tables = json.load(sys.stdin)
version = sys.version_info[:2]
as_version = lambda s: tuple(map(int, s.split("."))) if s else None

for module, attr, since, until in tables["shims"]:
    since, until = as_version(since), as_version(until)
    if (since and version < since) or (until and version > until):
        continue
    try:
        holder = importlib.import_module(module)
    except ImportError:
        continue  # a module that this build lacks
    owner, _, name = attr.rpartition(".")
    for part in owner.split(".") if owner else ():
        holder = getattr(holder, part, None)
    old = getattr(holder, name, None)
    if old is None:
        print(f"{module}.{attr} does not exist")
        continue
    if (
        not callable(old)
        or not isinstance(getattr(old, "__name__", None), str)
        or not isinstance(getattr(old, "__qualname__", None), str)
    ):
        print(f"{module}.{attr} cannot be shimmed: {old!r}")
    if owner and name not in vars(holder):
        print(f"{module}.{attr} is inherited")
    try:
        setattr(holder, name, old)
    except TypeError as e:
        print(f"{module}.{attr} cannot be replaced: {e}")

import shutil
import signal

# What the ways below are written with.
USED = "ast ctypes _ctypes fcntl gc inspect marshal pickle pty resource socket sqlite3 subprocess threading types webbrowser"
globals().update((name, importlib.import_module(name)) for name in [*USED.split(), "_thread"])

ways = {
    "open": "open('a')",
    "os.listdir": "os.listdir('.')",
    "os.scandir": "os.scandir('.')",
    "os.chdir": "os.chdir('.')",
    "object.__setattr__": "setattr(ctypes.c_int(), '__class__', ctypes.c_uint)",
    "os.mkdir": "os.mkdir('n')",
    "os.rmdir": "os.rmdir('d')",
    "os.remove": "os.unlink('a')",
    "os.rename": "os.replace('a', 'b')",
    "os.link": "os.link('a', 'b')",
    "os.symlink": "os.symlink('a', 'b')",
    "os.truncate": "os.truncate('a', 0)",
    "fcntl.ioctl": "fcntl.ioctl(0, 0)",
    "fcntl.fcntl": "fcntl.fcntl(0, fcntl.F_GETFD)",
    "os.putenv": "os.putenv('a', 'b')",
    "os.chmod": "os.chmod('a', 0o600)",
    "os.chown": "os.chown('a', os.getuid(), os.getgid())",
    "os.utime": "os.utime('a')",
    "os.setxattr": "os.setxattr('a', 'user.x', b'1')",
    "os.removexattr": "os.removexattr('a', 'user.x')",
    "os.getxattr": "os.getxattr('a', 'user.x')",
    "os.listxattr": "os.listxattr('a')",
    "os.system": "os.system('true')",
    "os.exec": "os.execv('/bin/true', ['true'])",
    "os.posix_spawn": "os.posix_spawnp('true', ['true'], {})",
    "os.fork": "os.fork() or os._exit(0)",
    "os.forkpty": "os.forkpty()[0] or os._exit(0)",
    "pty.spawn": "pty.spawn('true')",
    "subprocess.Popen": "subprocess.run(['true'])",
    "webbrowser.open": "webbrowser.GenericBrowser('true').open('x')",
    "os.kill": "os.kill(os.getpid(), 0)",
    "os.killpg": "os.killpg(os.getpgrp(), 0)",
    "signal.pthread_kill": "signal.pthread_kill(threading.get_ident(), 0)",
    "resource.setrlimit": "resource.setrlimit(resource.RLIMIT_CORE, resource.getrlimit(resource.RLIMIT_CORE))",
    "resource.prlimit": "resource.prlimit(0, resource.RLIMIT_CORE)",
    "_thread.start_new_thread": "_thread.start_new_thread(len, ('',))",
    "_thread.start_joinable_thread": "_thread.start_joinable_thread(print)",
    "ctypes.dlopen": "ctypes.CDLL(None)",
    "ctypes.dlsym": "ctypes.CDLL(None).getpid",
    "ctypes.dlsym/handle": "_ctypes.dlsym(_ctypes.dlopen(None, 0), 'getpid')",
    "ctypes.call_function": "_ctypes.call_function(_ctypes.dlsym(_ctypes.dlopen(None, 0), 'getpid'), ())",
    "ctypes.cdata": "ctypes.c_int.from_address(ctypes.addressof(ctypes.c_int()))",
    "ctypes.string_at": "ctypes.string_at(id(1), 1)",
    "ctypes.wstring_at": "ctypes.wstring_at(ctypes.create_unicode_buffer('x'))",
    "ctypes.PyObj_FromPtr": "_ctypes.PyObj_FromPtr(id(1))",
    "sys._getframe": "inspect.currentframe()",
    "sys._current_frames": "sys._current_frames()",
    "sys._current_exceptions": "sys._current_exceptions()",
    "gc.get_objects": "gc.get_objects()",
    "gc.get_referrers": "gc.get_referrers(1)",
    "gc.get_referents": "gc.get_referents(1)",
    "sys.settrace": "sys.settrace(None)",
    "sys.setprofile": "sys.setprofile(None)",
    "sys.addaudithook": "sys.addaudithook(lambda *a: None)",
    "sys.monitoring.register_callback": "sys.monitoring.use_tool_id(1, 'x'), sys.monitoring.register_callback(1, 1, None)",
    "pdb.Pdb": "importlib.import_module('pdb').Pdb()",
    "code.__new__": "(lambda: 0).__code__.replace(co_name='x')",
    "function.__new__": "types.FunctionType((lambda: 0).__code__, {})",
    "exec": "exec('1')",
    "compile": "compile('1', 'x', 'eval')",
    "pickle.find_class": "pickle.loads(pickle.dumps(len))",
    "marshal.loads": "marshal.loads(marshal.dumps(1))",
    "marshal.load": "marshal.load(__import__('io').BytesIO(marshal.dumps(1)))",
    "socket.__new__": "socket.socket()",
    "socket.connect": "socket.socket().connect_ex(('127.0.0.1', 1))",
    "socket.bind": "socket.socket().bind(('127.0.0.1', 0))",
    "socket.sendto": "socket.socket(type=2).sendto(b'', ('127.0.0.1', 9))",
    "sqlite3.connect": "sqlite3.connect(':memory:')",
    "socket.sendmsg": "socket.socket(type=2).sendmsg([b''], [], 0, ('127.0.0.1', 9))",
    "socket.getaddrinfo": "socket.getaddrinfo('127.0.0.1', 1)",
    "socket.gethostbyname": "socket.gethostbyname('127.0.0.1')",
    "socket.gethostbyaddr": "socket.gethostbyaddr('127.0.0.1')",
    "socket.getnameinfo": "socket.getnameinfo(('127.0.0.1', 1), 3)",
}
# Events that this cannot raise: other platforms, optional builds, the machine's own name.
unseen = {
    "os.startfile",
    "sqlite3.enable_load_extension",
    "sqlite3.load_extension",
    "socket.sethostname",
    "cpython.PyInterpreterState_New",
}
since = {
    "sys.monitoring.register_callback": (3, 12),
    "_thread.start_new_thread": (3, 12),
    "_thread.start_joinable_thread": (3, 13),
}

watched, seen = None, {}


def hook(event, args):
    if event == watched:
        seen[event] = max(len(args), seen.get(event, 0))
        os.write(report, f"{len(args)}\n".encode())


sys.addaudithook(hook)
devnull = os.open(os.devnull, os.O_RDWR)
for event, needed in tables["events"].items():
    if event in unseen or version < since.get(event, (0, 0)):
        continue
    if event not in ways:
        print(f"no way to raise {event} is known here")
        continue
    receive, report = os.pipe()
    folder = tempfile.mkdtemp()
    pid = os.fork()
    if pid == 0:
        try:
            os.chdir(folder)
            open("a", "w").close()
            os.mkdir("d")
            for fd in 0, 1, 2:
                os.dup2(devnull, fd)
            code = compile(ways[event], "way", "eval")
            signal.alarm(20)
            watched = event
            eval(code)
        finally:
            os._exit(0)
    os.close(report)
    answer = b""
    while not answer.endswith(b"\n") and (piece := os.read(receive, 100)):
        answer += piece
    os.close(receive)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    shutil.rmtree(folder)
    if not answer:
        print(f"{event} is not raised by {ways[event]}")
    elif int(answer.split()[0]) < needed:
        print(f"{event} has {answer.split()[0].decode()} arguments, {needed} are referred to")
