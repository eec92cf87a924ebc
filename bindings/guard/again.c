/* Calls that no signal interrupts in a bare interpreter, and that the supervisor makes for a sandboxed one.
 *
 * A signal that comes before the supervisor has taken the call ends it with EINTR and nothing done (seccomp_unotify(2)); that
 * is no outcome that a program knows of chmod. CPython has run the handlers of signals by then, and an exception of theirs is
 * the outcome. Where no kernel layer puts calls to a supervisor nothing of this happens, and the loop runs once.
 */
#include "guard.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>

/* Is the exception that is set a plain EINTR of the call, not one that a handler raised (which has run Python code)? Then it is
 * cleared, and the call may be made again. */
static bool interrupted(void) {
    if (!PyErr_ExceptionMatches(PyExc_InterruptedError))
        return false;
    PyObject *type, *error, *tb;
    PyErr_Fetch(&type, &error, &tb);
    PyErr_NormalizeException(&type, &error, &tb);
    if (!error || !Py_IS_TYPE(error, (PyTypeObject *)PyExc_InterruptedError) || tb) {
        PyErr_Restore(type, error, tb);
        return false;
    }
    Py_DECREF(type);
    Py_DECREF(error);
    return true;
}

PyObject *psb_call_again(PSB_CALL) {
    (void)door;
    for (;;) {
        PyObject *result = psb_call_original(original, args, n, kwnames);
        if (result || psb.resolve || !interrupted())
            return result;
    }
}

/* ---- socket.connect ---- */

/* tcpi_segs_out of linux/tcp.h's struct tcp_info, which the C library's lacks: 0 where no segment was ever sent. */
enum { SEGMENTS_OUT = 136, TCP_INFO_SIZE = 140 };
#define TRIES 8 /* of a socket that does not tell whether anything was attempted; so many signals in a row are no accident */

/* Has nothing been attempted on this socket? One that was connected and has been reset since has no peer either: a stream of
 * the internet tells by its state and by what it sent. Where the supervisor is asked about these calls they can be interrupted. */
static bool untouched(int fd, int tries) {
    struct sockaddr_storage peer;
    socklen_t length;
    int rc;
    do {
        length = sizeof peer;
        rc = getpeername(fd, (struct sockaddr *)&peer, &length);
    } while (rc < 0 && errno == EINTR);
    if (rc == 0 || errno != ENOTCONN)
        return false;
    char info[TCP_INFO_SIZE];
    do {
        length = sizeof info;
        rc = getsockopt(fd, IPPROTO_TCP, TCP_INFO, info, &length);
    } while (rc < 0 && errno == EINTR);
    if (rc < 0)
        return tries < TRIES; /* of another kind: a datagram socket that is connected to port 0 has no peer either */
    uint32_t sent;
    memcpy(&sent, info + SEGMENTS_OUT, sizeof sent);
    return length == sizeof info && info[0] == TCP_CLOSE && sent == 0;
}

/* CPython takes an interrupted connect for one that goes on by itself, waits until the socket can be written to, which one
 * that nobody connects always can, and reports a connection that never was. So a success is confirmed. */
PyObject *psb_connect_again(PyCFunction original, PyObject *self, PyObject *address) {
    for (int tries = 0;; tries++) {
        PyObject *result = original(self, address);
        if (psb.resolve || (!result && !interrupted()))
            return result;
        long code = result && PyLong_Check(result) ? PyLong_AsLong(result) : 0; /* connect_ex gives a number */
        if (code != 0 && code != EINTR)
            return result;
        if (result && code == 0) {
            PyObject *number = PyObject_CallMethod(self, "fileno", NULL);
            int fd = number ? (int)PyLong_AsLong(number) : -1;
            Py_XDECREF(number);
            PyErr_Clear();
            if (fd < 0 || !untouched(fd, tries))
                return result;
        }
        Py_XDECREF(result);
    }
}
