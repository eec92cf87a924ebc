"""What an allowed call does differently in a sandbox, each with the reason: patterns of `provider expression`."""

KNOWN = {
    # a rule cannot name it, so nothing allows it
    "* socket.socket(10[*][*]6)": "a family that no rule can name is refused before the kernel is asked",
    "* socket.socket().connect(('a' [*] 300, 5))": "no rule can name a host of that length",
    "* socket.socket(socket.AF_UNIX).connect(*": "a local socket is reached by a rule for its very path, not by its folder",
    # objects that could answer twice
    "* socket.socket().connect(('127.0.0.1', I(CLOSED)))": "a port with an __index__ could be judged as another number",
    "* io.FileIO(P(*": "a path object could be one file to the judge and another to the call",
    "* io.open_code(P(*": "the same",
    # who errs first
    "* os.utime('n' [*] 300, (1, 2))": "the guard fails on the name first, and says which it was",
    "* os.utime('loop/x', (1, 2))": "the same",
    "* os.mk*('n' [*] 300)": "the same",
    "* os.mk*('loop/x')": "the same",
    "* os.execle('none', 'x')": "an environment that is none is met before an empty list; the call refuses both",
    "* _posixsubprocess.fork_exec([*][[]5[]] [*] 30)": "a private function with a wrong number of arguments: either TypeError",
    # the kernel boundary of landlock
    "landlock os.setpriority(99, *": "the kernel filter lets a process act on itself alone, and says so first",
    "landlock os.setpriority(os.PRIO_PROCESS, 2[*][*]22 + 1, *": "the same",
    "landlock os.sched_set*(2[*][*]22 + 1, *": "the same",
    "landlock resource.prlimit(2[*][*]22 + 1, *": "the same",
    "landlock os.chroot(*": "the kernel filter refuses it before it looks at the path",
    "landlock os.setns(*": "the kernel filter refuses it before it looks at the descriptor",
    "landlock os.unshare(0)": "the kernel filter refuses it whatever is unshared",
    "landlock time.clock_settime*(999, 0)": "the kernel filter refuses it before it looks at the clock",
}

#: Where a guarded function that is written in Python differs: an object of C stands in its place. Its code object, its globals
#: and its defaults would be the function without its guard.
ATTRIBUTES = {
    *("__self__", "__text_signature__", "type", "class", "isfunction", "isbuiltin", "builtin type", "dir", "code", "defaults"),
    *("annotations", "dict", "set", "compared", "copy"),
    "pty:spawn signature",  # a default is a function, which text cannot say
}
