/* Statements that have the interpreter call dunder methods of an object: with, await, async for, yield from. Objects of the
 * source's own making may come, their methods are guarded; others where eval-magic grants the names. */
#include "eval.h"

#include <string.h>

static int protocol(psb_meter *m, PyObject *o, const char *first, const char *second) {
    if (psb_eval_own_class(m, (PyObject *)Py_TYPE(o)))
        return 0;
    const char *both[] = {first, second};
    for (int i = 0; i < 2 && both[i]; i++) {
        PyObject *name = PyUnicode_FromString(both[i]);
        int rc = name ? psb_meter_attribute(m, name) : -1;
        Py_XDECREF(name);
        if (rc < 0)
            return -1;
    }
    return 0;
}

/* What stands in the place of an object that such a statement is given. */
PyObject *psb_eval_protocol(psb_meter *m, PyObject *o, int kind) {
    const char *type = Py_TYPE(o)->tp_flags & Py_TPFLAGS_HEAPTYPE ? "" : Py_TYPE(o)->tp_name;
    int rc = psb_meter_step(m);
    switch (rc < 0 ? -1 : kind) {
    case PROTOCOL_WITH:
        rc = protocol(m, o, "__enter__", "__exit__");
        break;
    case PROTOCOL_ASYNC_WITH:
        rc = protocol(m, o, "__aenter__", "__aexit__");
        break;
    case PROTOCOL_AWAIT:
        if (!PyCoro_CheckExact(o) && strcmp(type, "async_generator_asend") != 0 && strcmp(type, "async_generator_athrow") != 0)
            rc = protocol(m, o, "__await__", NULL);
        break;
    case PROTOCOL_ASYNC_FOR:
        if (!PyAsyncGen_CheckExact(o))
            rc = protocol(m, o, "__aiter__", "__anext__");
        break;
    }
    return rc < 0 ? NULL : Py_NewRef(o);
}

/* Is it a generator of this evaluation, which has ticks in it? */
bool psb_eval_own_generator(psb_meter *m, PyObject *o) {
    PyObject *frame = PyGen_CheckExact(o) ? PyObject_GetAttrString(o, "gi_frame") : NULL, *builtins = NULL;
    if (frame && PyFrame_Check(frame))
        builtins = PyFrame_GetBuiltins((PyFrameObject *)frame);
    bool own = frame == Py_None || (builtins && builtins == m->builtins);
    PyErr_Clear();
    Py_XDECREF(builtins);
    Py_XDECREF(frame);
    return own;
}

/* yield from: what is sent and thrown reaches generators of the source only. */
PyObject *psb_eval_delegate(psb_meter *m, PyObject *o) {
    if (psb_meter_step(m) < 0)
        return NULL;
    return psb_eval_own_generator(m, o) ? Py_NewRef(o) : psb_steps(m, o, STEPS_LOOP);
}
