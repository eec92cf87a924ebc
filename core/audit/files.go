package audit

// FileEvents are the audit events that carry paths, with their arguments as CPython 3.11 to 3.13 raise them.
//
// A spec is words between blanks, one a path: what is needed, the argument, and `d` with the argument that holds its
// dir_fd. Needs: r read; w write of the name itself (its last link is not followed); W write of what the name leads
// to; s metadata; l metadata of the name itself. The spec "open" stands for (path, mode, flags),
// "ioctl" for (fd, request, argument), "environment" for (name, value), "database" for what sqlite3.connect takes.
var FileEvents = []FileEvent{
	{"open", "open", "open, io.open, os.open, FileIO, open_code; mode is None for os.open, the intent is in the flags"},
	{"os.listdir", "r0", "None means the working directory, a number a descriptor"},
	{"os.scandir", "r0", "as listdir; os.walk, glob and pathlib come here"},
	{"os.chdir", "s0", "relative paths mean other files afterwards"},
	{"os.mkdir", "w0d2", "(path, mode, dir_fd)"},
	{"os.rmdir", "w0d1", "(path, dir_fd)"},
	{"os.remove", "w0d1", "(path, dir_fd); unlink too"},
	{"os.rename", "w0d2 w1d3", "(src, dst, src_dir_fd, dst_dir_fd); replace too"},
	{"os.link", "w0d2 W0d2 w1d3", "(src, dst, src_dir_fd, dst_dir_fd); the source too: a second name would be writable; with a dir_fd a link is followed"},
	{"os.symlink", "w1d2", "(src, dst, dir_fd); where it points is judged when it is followed"},
	{"os.truncate", "W0", "(path, length); ftruncate gives a descriptor"},
	{"os.chmod", "W0d2", "(path, mode, dir_fd); lchmod and fchmod too"},
	{"os.chown", "W0d3", "(path, uid, gid, dir_fd); lchown and fchown too"},
	{"os.utime", "W0d3", "(path, times, ns, dir_fd)"},
	{"os.setxattr", "W0", "(path, attribute, value, flags)"},
	{"os.removexattr", "W0", "(path, attribute)"},
	{"os.getxattr", "s0", "(path, attribute)"},
	{"os.listxattr", "s0", "(path)"},
	{"fcntl.ioctl", "ioctl", "(fd, request, arg); flags and attributes of a file change through a descriptor that may only be read from"},
	{"os.putenv", "environment", "(name, value); variables that tell C libraries of this process what to open or to load: environment.c"},
	{"sqlite3.connect", "database", "(database); the C library opens it, and what SQL opens later (ATTACH, VACUUM INTO): sqlite.c judges each system call"},
}

// FileShims are the path functions without an event, or with one that says too little. In their specs r and l ask for
// metadata, o for the content, p for what flags say, n leaves it to the event and only makes it a str or bytes, b and g are what dbm.ndbm and dbm.gnu open, i readline's init files; `d=` names the keyword of dir_fd. os has its own names for what posix defines, so both are listed.
var FileShims = []FileShim{
	{Target{"posix", "open"}, "p0d=dir_fd", "its event leaves the dir_fd out"}, {Target{"os", "open"}, "p0d=dir_fd", "its event leaves the dir_fd out"},
	{Target{"posix", "stat"}, "r0d=dir_fd", "no event"}, {Target{"os", "stat"}, "r0d=dir_fd", "no event"},
	{Target{"posix", "lstat"}, "l0d=dir_fd", "no event"}, {Target{"os", "lstat"}, "l0d=dir_fd", "no event"},
	{Target{"posix", "access"}, "r0d=dir_fd", "no event"}, {Target{"os", "access"}, "r0d=dir_fd", "no event"},
	{Target{"posix", "readlink"}, "l0d=dir_fd", "no event"}, {Target{"os", "readlink"}, "l0d=dir_fd", "no event"},
	{Target{"posix", "statvfs"}, "r0", "no event"}, {Target{"os", "statvfs"}, "r0", "no event"},
	{Target{"posix", "pathconf"}, "r0", "no event"}, {Target{"os", "pathconf"}, "r0", "no event"},
	{Target{"posix", "mkfifo"}, "w0d=dir_fd", "no event"}, {Target{"os", "mkfifo"}, "w0d=dir_fd", "no event"},
	{Target{"posix", "mknod"}, "w0d=dir_fd", "no event"}, {Target{"os", "mknod"}, "w0d=dir_fd", "no event"},
	{Target{"readline", "read_init_file"}, "i0", "opened by the C library, which expands ~"},
	{Target{"readline", "parse_and_bind"}, "i0", "`$include FILE` is opened by the C library"},
	{Target{"readline", "read_history_file"}, "o0", "opened by the C library"},
	{Target{"readline", "write_history_file"}, "w0", "opened by the C library"},
	{Target{"readline", "append_history_file"}, "w1", "opened by the C library"},
	{Target{"_sqlite3", "connect"}, "n0", "its event may hold a path object"}, {Target{"sqlite3", "connect"}, "n0", "its event may hold a path object"},
	{Target{"_ssl", "_test_decode_cert"}, "o0", "no event; opened by OpenSSL"},
	{Target{"_dbm", "open"}, "b0", "opened by the C library, under other names"},
	{Target{"_gdbm", "open"}, "g0", "opened by the C library"},
}

// NetEvents are the events of the socket module. listen, accept and socketpair raise none.
var NetEvents = []NetEvent{
	{"socket.__new__", "", "(self, family, type, protocol): which sockets may exist"},
	{"socket.connect", "connect", "(self, address); connect_ex too; a name is looked up before the event"},
	{"socket.bind", "bind", "(self, address)"},
	{"socket.sendto", "sendto", "(self, address)"},
	{"socket.sendmsg", "sendto", "(self, address); None on a connected socket"},
	{"socket.getaddrinfo", "resolve", "(host, port, family, type, protocol)"},
	{"socket.gethostbyname", "resolve", "(name); gethostbyname_ex too"},
	{"socket.gethostbyaddr", "reverse", "(address or name)"},
	{"socket.getnameinfo", "reverse", "(address)"},
}
