/* A process that names itself by its number. The kernel filter knows the first process of a sandbox by its number, and every
 * other only as 0: one that was forked and says os.getpid() would be refused what it may do to itself. */
#include "guard.h"

#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Which argument is the process: a place, or a keyword. */
static Py_ssize_t process_argument(const char *function, PyObject *const *args, Py_ssize_t n, PyObject *kwnames) {
    if (strcmp(function, "setpriority") != 0)
        return n >= 1 ? 0 : -1; /* sched_*(pid, ...), by place alone */
    Py_ssize_t which = n >= 1 ? 0 : -1, who = n >= 2 ? 1 : -1;
    for (Py_ssize_t k = 0; kwnames && k < PyTuple_GET_SIZE(kwnames); k++) {
        if (PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(kwnames, k), "which") == 0)
            which = n + k;
        if (PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(kwnames, k), "who") == 0)
            who = n + k;
    }
    bool process = which >= 0 && PyLong_CheckExact(args[which]) && PyLong_AsLong(args[which]) == PRIO_PROCESS;
    PyErr_Clear();
    return process ? who : -1;
}

/* Says 0 where the number is the caller's own. These calls mean a thread: a number the main one, 0 the calling one; so only
 * the main thread's are the same. */
PyObject *psb_own_number(PSB_CALL) {
    enum { MAX = 8 };
    PyObject *copy[MAX];
    Py_ssize_t total = n + (kwnames ? PyTuple_GET_SIZE(kwnames) : 0), at;
    if (!psb.enforce || total > MAX || (at = process_argument(door->name, args, n, kwnames)) < 0 || !PyLong_CheckExact(args[at]))
        return psb_call_original(original, args, n, kwnames);
    int overflow;
    long number = PyLong_AsLongAndOverflow(args[at], &overflow);
    if (overflow || number != (long)getpid() || syscall(SYS_gettid) != (long)getpid())
        return psb_call_original(original, args, n, kwnames);
    PyObject *zero = PyLong_FromLong(0);
    if (!zero)
        return NULL;
    memcpy(copy, args, sizeof *copy * (size_t)total);
    copy[at] = zero;
    PyObject *result = psb_call_original(original, copy, n, kwnames);
    Py_DECREF(zero);
    return result;
}
