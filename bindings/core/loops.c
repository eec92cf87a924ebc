//go:build pyext

/*
 * Calls of an event loop: loop_send and loop_take, on the loop's thread.
 *
 * Go is entered without the GIL, once for each event. Nothing here waits, but for the moment in which loop_send looks for an answer that
 * comes at once; a signal that arrives then is CPython's to see after the return.
 */

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "_cgo_export.h"
#include "calls.h"
#include "module.h"
#include "process.h"

enum { NOTHING = -1, FAILED = 0 }; /* kinds of events that no frame has */

PyObject *psb_loop_open(PyObject *Py_UNUSED(module), PyObject *object) {
    PSB_REFUSE_FORKED("loop_open");
    long long handle, loop;
    if (!psb_number(object, &handle)) {
        return NULL;
    }
    char *fail = NULL;
    int fd = -1;
    Py_BEGIN_ALLOW_THREADS
    loop = psbLoopOpen(handle, &fd, &fail);
    Py_END_ALLOW_THREADS
    return psb_raise(fail) ? NULL : Py_BuildValue("(Li)", loop, fd);
}

PyObject *psb_loop_close(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t nargs) {
    PSB_REFUSE_FORKED("loop_close");
    long long handle, loop;
    if (!psb_arguments("loop_close", nargs, 2, 2) || !psb_number(args[0], &handle) || !psb_number(args[1], &loop)) {
        return NULL;
    }
    char *fail = NULL;
    Py_BEGIN_ALLOW_THREADS
    psbLoopClose(handle, loop, &fail);
    Py_END_ALLOW_THREADS
    if (psb_raise(fail)) {
        return NULL;
    }
    Py_RETURN_NONE;
}

/* The failure of one call as an event of it. Frees fail. */
static PyObject *failed_tuple(long long id, char *fail) {
    PyObject *text = PyUnicode_DecodeUTF8(fail, (Py_ssize_t)strlen(fail), "replace"), *tuple = NULL;
    free(fail);
    if (text != NULL) {
        tuple = Py_BuildValue("(LiOOO)", id, FAILED, Py_None, Py_None, text);
        Py_DECREF(text);
    }
    return tuple;
}

PyObject *psb_loop_send(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t nargs) {
    PSB_REFUSE_FORKED("loop_send");
    long long handle, loop, id = 0;
    int look;
    Py_buffer payload;
    if (!psb_arguments("loop_send", nargs, 5, 5) || !psb_number(args[0], &handle) || !psb_number(args[1], &loop) ||
        !psb_list("loop_send", "begun", args[4])) {
        return NULL;
    }
    if ((look = PyObject_IsTrue(args[3])) < 0 || PyObject_GetBuffer(args[2], &payload, PyBUF_SIMPLE) < 0) {
        return NULL;
    }
    psb_event event;
    char *fail = NULL;
    int status;
    Py_BEGIN_ALLOW_THREADS
    status = psbLoopSend(handle, loop, payload.buf, payload.len, look, &id, &event, &fail);
    Py_END_ALLOW_THREADS
    PyBuffer_Release(&payload);
    if (id != 0 && !psb_begun(args[4], handle, id)) {
        if (fail == NULL && status == PSB_EVENT && event.ticket) {
            psbEventTake(event.ticket, NULL, NULL, NULL);
        }
        free(fail);
        return NULL;
    }
    if (fail != NULL && id != 0) {
        return failed_tuple(id, fail);
    }
    if (psb_raise(fail)) {
        return NULL;
    }
    return status == PSB_EVENT ? psb_event_tuple(&event, NULL, &id) : Py_BuildValue("(LiOOO)", id, NOTHING, Py_None, Py_None, Py_None);
}

/* Appends the event of a call, or what stands for one that there is no memory for. Takes the reference to tuple; 0 or -1. */
static int append(PyObject *list, long long id, PyObject *tuple) {
    if (tuple == NULL && PyErr_ExceptionMatches(PyExc_MemoryError)) { /* of a large result: that call's own failure */
        PyErr_Clear();
        tuple = Py_BuildValue("(LiOOO)", id, FAILED, Py_None, Py_None, Py_None);
    }
    int done = tuple == NULL ? -1 : PyList_Append(list, tuple);
    Py_XDECREF(tuple);
    return done;
}

PyObject *psb_loop_take(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t nargs) {
    PSB_REFUSE_FORKED("loop_take");
    long long handle, loop;
    if (!psb_arguments("loop_take", nargs, 3, 3) || !psb_number(args[0], &handle) || !psb_number(args[1], &loop)) {
        return NULL;
    }
    PyObject *list = args[2];
    if (!psb_list("loop_take", "events", list)) {
        return NULL;
    }
    for (int pump = 1;; pump = 0) {
        psb_event event;
        char *fail = NULL;
        int status;
        long long id = 0;
        Py_BEGIN_ALLOW_THREADS
        status = psbLoopTake(handle, loop, pump, &id, &event, &fail);
        Py_END_ALLOW_THREADS
        PyObject *tuple;
        if (fail != NULL && id != 0) {
            tuple = failed_tuple(id, fail);
        } else if (psb_raise(fail)) {
            return NULL;
        } else if (status == PSB_EVENT) {
            tuple = psb_event_tuple(&event, NULL, &id);
        } else {
            break;
        }
        if (append(list, id, tuple) < 0) {
            return NULL;
        }
    }
    Py_RETURN_NONE;
}
