/* The guard's own descriptors, to a program that closes or replaces whatever is open (a daemon, a fork that tidies up).
 *
 * For it they are not open: close() fails with EBADF as it would, closerange() leaves them out, and dup2() onto one finds the
 * number taken. Without that the program would lose its way to the supervisor, and everything would be refused. It is no
 * hold: what else is done with these descriptors is judged by what the kernel finds at the other end (ask.c).
 */
#include "guard.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

static PyObject *bad_descriptor(void) {
    errno = EBADF;
    return PyErr_SetFromErrno(PyExc_OSError);
}

/* An argument as an exact int, a new reference: __index__ answers once. NULL without an exception where it is no int. */
static PyObject *exact(PyObject *o) {
    if (PyLong_CheckExact(o) || !PyIndex_Check(o))
        return Py_NewRef(o);
    return PyNumber_Index(o);
}

static int own(PyObject *o) {
    int overflow = 0;
    long fd = PyLong_Check(o) ? PyLong_AsLongAndOverflow(o, &overflow) : -1;
    return !overflow && fd >= 0 && fd <= INT_MAX && psb_own_fd((int)fd);
}

/* posix.close(fd), posix.dup2(fd, fd2, inheritable=True): the last of the first two, by place or by name. */
PyObject *psb_close(PSB_CALL) {
    bool two = strcmp(door->name, "dup2") == 0;
    PyObject *copy[4];
    Py_ssize_t total = n + (kwnames ? PyTuple_GET_SIZE(kwnames) : 0), at = n > two ? two : -1;
    for (Py_ssize_t k = 0; at < 0 && kwnames && k < PyTuple_GET_SIZE(kwnames); k++)
        if (PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(kwnames, k), two ? "fd2" : "fd") == 0)
            at = n + k;
    if (at < 0 || total > 4) /* the original says so in its own words */
        return psb_call_original(original, args, n, kwnames);
    if (PyLong_CheckExact(args[at]))
        return own(args[at]) ? bad_descriptor() : psb_call_original(original, args, n, kwnames);
    memcpy(copy, args, sizeof *copy * (size_t)total);
    PyObject *fd = exact(args[at]), *result = NULL;
    copy[at] = fd;
    if (fd)
        result = own(fd) ? bad_descriptor() : psb_call_original(original, copy, n, kwnames);
    Py_XDECREF(fd);
    return result;
}

/* The first of the guard's descriptors in [from, to), or -1. */
static int next_own(long from, long to) {
    int found = -1;
    const int all[] = {psb.boot_fd, psb.announce_fd, psb.call_fd, psb_question_fd()};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (psb_own_fd(all[i]) && all[i] >= from && all[i] < to && (found < 0 || all[i] < found))
            found = all[i];
    return found;
}

/* posix.closerange(fd_low, fd_high, /), piece by piece around the guard's. */
PyObject *psb_closerange(PSB_CALL) {
    (void)door;
    PyObject *low = n == 2 ? exact(args[0]) : NULL, *high = low ? exact(args[1]) : NULL, *result = NULL;
    if (!high) {
        Py_XDECREF(low);
        return PyErr_Occurred() ? NULL : psb_call_original(original, args, n, kwnames);
    }
    int overflow[2] = {0};
    long from = PyLong_Check(low) ? PyLong_AsLongAndOverflow(low, &overflow[0]) : -1;
    long to = PyLong_Check(high) ? PyLong_AsLongAndOverflow(high, &overflow[1]) : -1;
    bool odd = overflow[0] || overflow[1] || !PyLong_Check(low) || !PyLong_Check(high) || from > INT_MAX || to > INT_MAX;
    for (int fd; !odd && (fd = next_own(from, to)) >= 0; from = fd + 1L) {
        PyObject *piece[2] = {PyLong_FromLong(from), PyLong_FromLong(fd)};
        Py_XSETREF(result, piece[0] && piece[1] ? psb_call_original(original, piece, 2, kwnames) : NULL);
        Py_XDECREF(piece[0]);
        Py_XDECREF(piece[1]);
        if (!result)
            goto done;
    }
    PyObject *rest[2] = {odd ? Py_NewRef(low) : PyLong_FromLong(from), Py_NewRef(high)};
    Py_XSETREF(result, rest[0] ? psb_call_original(original, rest, 2, kwnames) : NULL);
    Py_XDECREF(rest[0]);
    Py_DECREF(rest[1]);
done:
    Py_DECREF(low);
    Py_DECREF(high);
    return result;
}
