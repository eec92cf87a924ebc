"""The audit events of CPython's documentation, 3.11 to 3.13 (Doc/library/audit_events.rst), and some that it leaves out."""

DOCUMENTED = """
_thread.start_new_thread _thread.start_joinable_thread array.__new__ builtins.breakpoint builtins.id builtins.input
builtins.input/result code.__new__ compile cpython.PyInterpreterState_Clear cpython.PyInterpreterState_New
cpython._PySys_ClearAuditHooks cpython.run_command cpython.run_file cpython.run_interactivehook cpython.run_module
cpython.run_startup cpython.run_stdin ctypes.addressof ctypes.call_function ctypes.cdata ctypes.cdata/buffer
ctypes.create_string_buffer ctypes.create_unicode_buffer ctypes.dlopen ctypes.dlsym ctypes.dlsym/handle ctypes.get_errno
ctypes.get_last_error ctypes.set_errno ctypes.set_exception ctypes.set_last_error ctypes.string_at ctypes.wstring_at
ctypes.PyObj_FromPtr ensurepip.bootstrap exec fcntl.fcntl fcntl.flock fcntl.ioctl fcntl.lockf ftplib.connect
ftplib.sendcmd function.__new__ gc.get_objects gc.get_referents gc.get_referrers glob.glob glob.glob/2
http.client.connect http.client.send imaplib.open imaplib.send import marshal.dumps marshal.load marshal.loads
mmap.__new__ msvcrt.get_osfhandle nntplib.connect object.__delattr__ object.__getattr__ object.__setattr__ open
os.add_dll_directory os.chdir os.chflags os.chmod os.chown os.exec os.fork os.forkpty os.fwalk os.getxattr os.kill
os.killpg os.link os.listdir os.listxattr os.lockf os.mkdir os.posix_spawn os.putenv os.remove os.removexattr os.rename
os.rmdir os.scandir os.setxattr os.spawn os.startfile os.startfile/2 os.symlink os.system os.truncate os.unsetenv
os.utime os.walk pathlib.Path.glob pathlib.Path.rglob pdb.Pdb pickle.find_class poplib.connect poplib.putline pty.spawn
resource.prlimit resource.setrlimit setopencodehook shutil.chown shutil.copyfile shutil.copymode shutil.copystat
shutil.copytree shutil.make_archive shutil.move shutil.rmtree shutil.unpack_archive signal.pthread_kill smtplib.connect
smtplib.send socket.__new__ socket.bind socket.connect socket.getaddrinfo socket.gethostbyaddr socket.gethostbyname
socket.gethostname socket.getnameinfo socket.getservbyname socket.getservbyport socket.sendmsg socket.sendto
socket.sethostname sqlite3.connect sqlite3.connect/handle sqlite3.enable_load_extension sqlite3.load_extension
subprocess.Popen sys._current_exceptions sys._current_frames sys._getframe sys._getframemodulename sys.addaudithook
sys.excepthook sys.monitoring.register_callback sys.set_asyncgen_hooks_finalizer sys.set_asyncgen_hooks_firstiter
sys.setprofile sys.settrace sys.unraisablehook syslog.closelog syslog.openlog syslog.setlogmask syslog.syslog
telnetlib.Telnet.open telnetlib.Telnet.write tempfile.mkdtemp tempfile.mkstemp time.sleep urllib.Request webbrowser.open
""".split()  # noqa: SIM905
