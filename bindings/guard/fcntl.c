/* fcntl and ioctl: what they do beyond the file or terminal that a descriptor was opened for. */
#include "guard.h"

#include <fcntl.h>
#include <unistd.h>

/* Who a descriptor's signals go to, and what types into a terminal as if its user did (linux/sockios.h, asm-generic/ioctls.h). */
static int driving_ioctl(unsigned long request) {
    static const unsigned long driving[] = {0x8901 /* FIOSETOWN */, 0x8902 /* SIOCSPGRP */, 0x5412 /* TIOCSTI */, 0x541c /* TIOCLINUX */};
    for (size_t i = 0; i < sizeof driving / sizeof *driving; i++)
        if (request == driving[i])
            return psb_call_check(psb_call_id("fcntl.ioctl", 11), "fcntl.ioctl");
    return 0;
}

/* fcntl.fcntl (fd, command, argument): a descriptor's owner is sent a signal of the program's choice as soon as there is
 * something to read. A process may own its own. */
bool psb_fcntl_event(PyObject *args) {
    PyObject *command = PyTuple_GET_SIZE(args) >= 2 ? PyTuple_GET_ITEM(args, 1) : NULL;
    long what = command && PyLong_Check(command) ? PyLong_AsLong(command) : -1;
    PyErr_Clear();
    if (what != F_SETOWN && what != F_SETOWN_EX)
        return false;
    PyObject *owner = PyTuple_GET_SIZE(args) >= 3 ? PyTuple_GET_ITEM(args, 2) : Py_None;
    if (what == F_SETOWN_EX || !PyLong_CheckExact(owner))
        return owner != Py_None || what == F_SETOWN_EX;
    unsigned long id = PyLong_AsUnsignedLongMask(owner);
    return id != 0 && id != (unsigned long)getpid();
}

/* fcntl.ioctl: requests that change what a descriptor leads to, though it may only be read from (linux/fs.h, fscrypt.h). */
int psb_ioctl_event(PyObject *args) {
    static const unsigned long changing[] = {
        0x40086602, 0x40046602, /* FS_IOC_SETFLAGS and its form of 32 bits */
        0x401c5820,             /* FS_IOC_FSSETXATTR */
        0x40087602, 0x40047602, /* FS_IOC_SETVERSION and its form of 32 bits */
        0x41009432,             /* FS_IOC_SETFSLABEL */
        0x800c6613,             /* FS_IOC_SET_ENCRYPTION_POLICY */
        0x40806685,             /* FS_IOC_ENABLE_VERITY */
    };
    if (PyTuple_GET_SIZE(args) < 2 || !PyLong_Check(PyTuple_GET_ITEM(args, 0)) || !PyLong_Check(PyTuple_GET_ITEM(args, 1)))
        return 0;
    unsigned long request = PyLong_AsUnsignedLongMask(PyTuple_GET_ITEM(args, 1)) & 0xffffffff;
    for (size_t i = 0; i < sizeof changing / sizeof *changing; i++)
        if (request == changing[i])
            return psb_file_by_descriptor(PyTuple_GET_ITEM(args, 0), "fcntl.ioctl");
    return driving_ioctl(request);
}
