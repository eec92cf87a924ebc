//go:build pyext

/*
 * The path of a call: call_begin, call_next, call_cancel. Those of an event loop: loops.c.
 *
 * The calling thread itself reads the sandbox's socket, in Go, without the GIL. It comes back for an event, for the end of its time, or
 * at once for a signal, so that Ctrl-C interrupts a waiting call. What an event holds is copied once, from Go's memory into
 * the bytes object that Python gets (twice where it is small: then one trip to Go is saved, which costs more).
 */

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "_cgo_export.h"
#include "calls.h"
#include "module.h"
#include "process.h"

enum { HUGE = 4 << 20 }; /* bytes from which on memory is asked for in huge pages */

int psb_arguments(const char *name, Py_ssize_t given, Py_ssize_t least, Py_ssize_t most) {
    if (given >= least && given <= most) {
        return 1;
    }
    PyErr_Format(PyExc_TypeError, "%s takes %zd to %zd positional arguments, not %zd", name, least, most, given);
    return 0;
}

int psb_list(const char *name, const char *argument, PyObject *object) {
    if (PyList_CheckExact(object)) {
        return 1;
    }
    PyErr_Format(PyExc_TypeError, "%s: %s is not a list", name, argument);
    return 0;
}

int psb_number(PyObject *object, long long *out) {
    *out = PyLong_AsLongLong(object);
    return !(*out == -1 && PyErr_Occurred());
}

int psb_begun(PyObject *begun, long long handle, long long id) {
    PyObject *number = PyLong_FromLongLong(id);
    if (number != NULL && PyList_Append(begun, number) == 0) {
        Py_DECREF(number);
        return 1;
    }
    Py_XDECREF(number);
    char *fail = NULL;
    Py_BEGIN_ALLOW_THREADS
    psbCallCancel(handle, id, &fail); /* no memory for its number: nobody could ask for what comes of it */
    Py_END_ALLOW_THREADS
    free(fail);
    return 0;
}

PyObject *psb_call_begin(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t nargs) {
    PSB_REFUSE_FORKED("call_begin");
    long long handle, id = 0;
    Py_buffer payload;
    if (!psb_arguments("call_begin", nargs, 3, 3) || !psb_number(args[0], &handle) || !psb_list("call_begin", "begun", args[2])) {
        return NULL;
    }
    if (PyObject_GetBuffer(args[1], &payload, PyBUF_SIMPLE) < 0) {
        return NULL;
    }
    char *fail = NULL;
    Py_BEGIN_ALLOW_THREADS
    id = psbCallBegin(handle, payload.buf, payload.len, &fail);
    Py_END_ALLOW_THREADS
    PyBuffer_Release(&payload);
    return psb_raise(fail) || !psb_begun(args[2], handle, id) ? NULL : Py_NewRef(Py_None);
}

/* A bytes object with room for a part, or None. */
static PyObject *room(int64_t length) {
    return length < 0 ? Py_NewRef(Py_None) : PyBytes_FromStringAndSize(NULL, (Py_ssize_t)length);
}

static void *inside(PyObject *object) { return PyBytes_Check(object) ? PyBytes_AS_STRING(object) : NULL; }

/* Of a bytes object or bytearray that nobody else knows yet. */
static void *memory_of(PyObject *object) {
    return PyByteArray_Check(object) ? (void *)PyByteArray_AS_STRING(object) : (void *)PyBytes_AS_STRING(object);
}

/* Memory for a buffer: a bytes object, or a bytearray, that is not filled yet. */
static PyObject *buffer_room(int64_t size, int writable) {
    PyObject *made = writable ? PyByteArray_FromStringAndSize(NULL, (Py_ssize_t)size) : room(size);
    if (made != NULL && size >= HUGE) { /* the kernel clears 2 MB at a time rather than 4 KB: a third of the time of a large result */
        uintptr_t from = ((uintptr_t)memory_of(made) + 4095) & ~(uintptr_t)4095, to = (uintptr_t)memory_of(made) + (size_t)size;
        madvise((void *)from, (to - from) & ~(size_t)4095, MADV_HUGEPAGE);
    }
    return made;
}

/* Puts made at index of the list, which grows by None. Takes the reference; 0 or -1. */
static int put(PyObject *list, Py_ssize_t index, PyObject *made) {
    while (made != NULL && PyList_GET_SIZE(list) <= index) {
        if (PyList_Append(list, Py_None) < 0) {
            Py_CLEAR(made);
        }
    }
    return made == NULL ? -1 : PyList_SetItem(list, index, made);
}

/* Makes what is missing of a result's buffers, and has all of them filled. 0 or -1. */
static int settle_buffers(psb_event *event, PyObject *list) {
    for (Py_ssize_t i = 0; i < event->buffers; i++) {
        PyObject *made = i < PyList_GET_SIZE(list) ? PyList_GET_ITEM(list, i) : Py_None;
        if (made == Py_None) {
            int64_t size;
            int32_t writable;
            psbEventBuffer(event->ticket, i, &size, &writable);
            made = buffer_room(size, writable);
            if (put(list, i, made) < 0) {
                return -1;
            }
        }
        void *to = memory_of(made);
        Py_BEGIN_ALLOW_THREADS
        psbEventFill(event->ticket, i, to);
        Py_END_ALLOW_THREADS
    }
    return 0;
}

PyObject *psb_event_tuple(psb_event *event, PyObject *buffers, const long long *id) {
    PyObject *data = room(event->data_len);
    PyObject *rich = room(event->rich_len);
    PyObject *descriptor = room(event->descriptor_len);
    PyObject *text = NULL, *tuple = NULL;
    if (event->buffers > 0 && rich != NULL) {
        Py_SETREF(rich, buffers != NULL ? Py_NewRef(buffers) : PyList_New(0));
        if (rich != NULL && settle_buffers(event, rich) < 0) {
            Py_CLEAR(rich);
        }
    }
    if (data == NULL || rich == NULL || descriptor == NULL) {
        if (event->ticket) {
            psbEventTake(event->ticket, NULL, NULL, NULL); /* let Go forget it */
        }
        goto done;
    }
    if (event->ticket) {
        void *to_data = inside(data), *to_rich = inside(rich), *to_descriptor = inside(descriptor);
        Py_BEGIN_ALLOW_THREADS
        psbEventTake(event->ticket, to_data, to_rich, to_descriptor);
        Py_END_ALLOW_THREADS
    } else {
        const uint8_t *from = event->small;
        PyObject *parts[] = {data, rich, descriptor};
        const int64_t lengths[] = {event->data_len, event->rich_len, event->descriptor_len};
        for (int i = 0; i < 3; i++) {
            if (lengths[i] > 0) {
                memcpy(PyBytes_AS_STRING(parts[i]), from, (size_t)lengths[i]);
                from += lengths[i];
            }
        }
    }
    text = event->descriptor_len < 0
               ? Py_NewRef(Py_None)
               : PyUnicode_DecodeUTF8(PyBytes_AS_STRING(descriptor), PyBytes_GET_SIZE(descriptor), "replace");
    if (text != NULL && id != NULL) {
        tuple = Py_BuildValue("(LiOOO)", *id, (int)event->kind, data, rich, text);
    } else if (text != NULL) {
        tuple = Py_BuildValue("(iOOO)", (int)event->kind, data, rich, text);
    }
done:
    Py_XDECREF(data);
    Py_XDECREF(rich);
    Py_XDECREF(descriptor);
    Py_XDECREF(text);
    return tuple;
}

static int64_t now(void) {
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return (int64_t)at.tv_sec * 1000000000 + at.tv_nsec;
}

PyObject *psb_call_next(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t nargs) {
    PSB_REFUSE_FORKED("call_next");
    long long handle, id;
    int64_t wait = -1, deadline = 0;
    if (!psb_arguments("call_next", nargs, 2, 4) || !psb_number(args[0], &handle) || !psb_number(args[1], &id)) {
        return NULL;
    }
    PyObject *buffers = nargs == 4 ? args[3] : NULL, *own = NULL, *tuple = NULL;
    if (buffers != NULL && !PyList_CheckExact(buffers)) {
        PyErr_SetString(PyExc_TypeError, "call_next: buffers is not a list");
        return NULL;
    }
    if (nargs >= 3 && args[2] != Py_None) {
        double seconds = PyFloat_AsDouble(args[2]);
        if (seconds == -1.0 && PyErr_Occurred()) {
            return NULL;
        }
        if (isnan(seconds)) {
            PyErr_SetString(PyExc_ValueError, "call_next: wait is not a number of seconds");
            return NULL;
        }
        if (seconds >= 0 && seconds < 1e9) { /* less than none and more than thirty years: no limit */
            wait = (int64_t)(seconds * 1e9);
            deadline = now() + wait;
        }
    }
    if (buffers == NULL && (buffers = own = PyList_New(0)) == NULL) {
        return NULL;
    }
    psb_event event;
    for (;;) {
        char *fail = NULL;
        int status;
        /* The last object made is the one that is being filled, by this thread and before psbCallNext returns. The list keeps it. */
        PyObject *last = PyList_GET_SIZE(buffers) ? PyList_GET_ITEM(buffers, PyList_GET_SIZE(buffers) - 1) : NULL;
        void *into = last != NULL ? memory_of(last) : NULL;
        Py_ssize_t length = last != NULL ? Py_SIZE(last) : 0;
        Py_XINCREF(last);
        Py_BEGIN_ALLOW_THREADS
        status = psbCallNext(handle, id, wait, into, length, &event, &fail);
        Py_END_ALLOW_THREADS
        Py_XDECREF(last);
        if (psb_raise(fail)) {
            break;
        }
        if (status == PSB_EVENT) {
            tuple = psb_event_tuple(&event, buffers, NULL);
            break;
        }
        if (status == PSB_NOTHING) {
            tuple = Py_NewRef(Py_None);
            break;
        }
        if (status == PSB_ROOM) {
            if (put(buffers, (Py_ssize_t)event.index, buffer_room(event.data_len, event.writable)) < 0) {
                break;
            }
            continue;
        }
        if (PyErr_CheckSignals() < 0) {
            break;
        }
        if (wait >= 0 && (wait = deadline - now()) < 0) {
            wait = 0;
        }
    }
    Py_XDECREF(own);
    return tuple;
}

PyObject *psb_call_cancel(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t nargs) {
    PSB_REFUSE_FORKED("call_cancel");
    long long handle, id;
    if (!psb_arguments("call_cancel", nargs, 2, 2) || !psb_number(args[0], &handle) || !psb_number(args[1], &id)) {
        return NULL;
    }
    char *fail = NULL;
    Py_BEGIN_ALLOW_THREADS
    psbCallCancel(handle, id, &fail);
    Py_END_ALLOW_THREADS
    if (psb_raise(fail)) {
        return NULL;
    }
    Py_RETURN_NONE;
}
