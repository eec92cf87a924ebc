/* o.name(...): the method is read before the arguments are evaluated, as the interpreter does, and called after. What was read from
 * what stands in between on the stack, in an object that nothing of the source can name. */
#include "eval.h"

#include <string.h>

typedef struct {
    PyObject_HEAD
    PyObject *of, *name, *f; /* owned */
    bool own;                /* f is what the type of `of` has under the name, unbound */
} looked;

#define SPARES 4
static looked *spare[SPARES]; /* what was given back last: calls seldom need more at a time. The GIL guards them. */
static int spares;

static int traverse(looked *l, visitproc visit, void *arg) {
    Py_VISIT(l->of);
    Py_VISIT(l->f);
    return 0;
}

static int clear(looked *l) {
    Py_CLEAR(l->of);
    Py_CLEAR(l->f);
    return 0;
}

static void dealloc(looked *l) {
    PyObject_GC_UnTrack(l);
    clear(l);
    Py_CLEAR(l->name);
    if (spares < SPARES)
        spare[spares++] = l;
    else
        PyObject_GC_Del(l);
}

PyTypeObject psb_looked_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "pysandboxes.EvaluatedMethod",
    .tp_basicsize = sizeof(looked),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .tp_traverse = (traverseproc)traverse,
    .tp_clear = (inquiry)clear,
    .tp_dealloc = (destructor)dealloc,
};

/* Texts, lists, dicts and sets have no attributes of their own: what their type has is what is called, and no bound method need be
 * made of it. NULL without an exception for all else. `format` walks attributes, and is read as ever. */
static PyObject *method_of(PyObject *o, PyObject *name) {
    if (!PyUnicode_CheckExact(o) && !PyList_CheckExact(o) && !PyDict_CheckExact(o) && !PyAnySet_CheckExact(o))
        return NULL;
    const char *text = PyUnicode_CheckExact(name) ? PyUnicode_AsUTF8(name) : NULL;
    if (!text || text[0] == '_' || strncmp(text, "format", 6) == 0)
        return NULL;
    PyObject *f = PyObject_GetAttr((PyObject *)Py_TYPE(o), name);
    if (f && Py_IS_TYPE(f, &PyMethodDescr_Type))
        return f;
    Py_XDECREF(f); /* dict.fromkeys; or there is none, which the read words */
    PyErr_Clear();
    return NULL;
}

PyObject *psb_eval_lookup(psb_meter *m, PyObject *o, PyObject *name) {
    if (psb_meter_step(m) < 0 || psb_meter_attribute(m, name) < 0)
        return NULL;
    PyObject *method = method_of(o, name), *f = method ? method : psb_eval_value(m, o, name);
    if (!f)
        return NULL;
    looked *l = spares ? spare[--spares] : NULL;
    l = l ? (looked *)PyObject_Init((PyObject *)l, &psb_looked_type) : PyObject_GC_New(looked, &psb_looked_type);
    if (!l) {
        Py_DECREF(f);
        return NULL;
    }
    l->of = Py_NewRef(o);
    l->name = Py_NewRef(name);
    l->f = f;
    l->own = method != NULL;
    PyObject_GC_Track(l);
    return (PyObject *)l;
}

#define FEW 8

static PyObject *call_method(psb_meter *m, looked *l, PyObject *const *args, Py_ssize_t n, PyObject *kwnames) {
    Py_ssize_t all = n + (kwnames ? PyTuple_GET_SIZE(kwnames) : 0);
    const char *name = ((PyMethodDescrObject *)l->f)->d_method->ml_name;
    PyObject *own[FEW + 1] = {l->of};
    if (all <= FEW) {
        if (all)
            memcpy(own + 1, args, (size_t)all * sizeof *own);
        return psb_eval_method(m, l->of, name, l->f, own + 1, n, kwnames, true);
    }
    PyObject *bound = PyObject_GetAttr(l->of, l->name);
    PyObject *result = bound ? psb_eval_method(m, l->of, name, bound, args, n, kwnames, false) : NULL;
    Py_XDECREF(bound);
    return result;
}

PyObject *psb_eval_call_looked(psb_meter *m, PyObject *o, PyObject *const *args, Py_ssize_t n, PyObject *kwnames) {
    looked *l = (looked *)o;
    if (!Py_IS_TYPE(o, &psb_looked_type) || !l->f)
        return psb_eval_refuses("evaluated code has lost its budget"), NULL;
    if (m->depth >= m->depth_limit) {
        psb_meter_trip(m, "eval-max-call-depth");
        return NULL;
    }
    m->depth++;
    PyObject *result = l->own ? call_method(m, l, args, n, kwnames) : psb_eval_judged(m, l->f, args, n, kwnames, l->of, l->name);
    m->depth--;
    return result;
}
