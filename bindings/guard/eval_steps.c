/* An iterator that counts what is taken from it. Whatever walks an iterable for evaluated code walks one of these: loops,
 * comprehensions, and the builtins that take an iterable, which would else run in C without end. */
#include "eval.h"

typedef struct {
    PyObject_HEAD
    psb_meter *meter; /* owned */
    PyObject *it;
    int mode;
    bool flat; /* an iterator of the interpreter's that calls no other */
} steps;

static PyObject *next(steps *s) {
    psb_meter *m = s->meter;
    if (!s->it || psb_meter_tick(m) < 0 || (s->mode == STEPS_KEEP && psb_meter_charge(m, 40) < 0))
        return NULL;
    if (s->flat && s->mode == STEPS_LOOP)
        return Py_TYPE(s->it)->tp_iternext(s->it);
    if (!s->flat && Py_EnterRecursiveCall(" in an evaluated iterator")) /* map of map of map ... */
        return NULL;
    PyObject *item = Py_TYPE(s->it)->tp_iternext(s->it);
    if (!s->flat)
        Py_LeaveRecursiveCall();
    if (item && s->mode == STEPS_SUM && (PyList_Check(item) || PyTuple_Check(item)) &&
        psb_meter_charge(m, 8.0 * (double)PySequence_Fast_GET_SIZE(item)) < 0)
        Py_CLEAR(item);
    if (item && s->mode != STEPS_LOOP && psb_eval_whole(m, item, false) < 0) /* C compares and hashes it */
        Py_CLEAR(item);
    if (item && s->mode == STEPS_HAND && psb_eval_is_function(item))
        Py_SETREF(item, psb_eval_bind(m, item));
    return item;
}

static int traverse(steps *s, visitproc visit, void *arg) {
    Py_VISIT((PyObject *)s->meter);
    Py_VISIT(s->it);
    return 0;
}

static int clear(steps *s) {
    Py_CLEAR(s->it); /* next() knows; the meter stays until the end */
    return 0;
}

static void dealloc(steps *s) {
    PyObject_GC_UnTrack(s);
    Py_TRASHCAN_BEGIN(s, dealloc)
    clear(s);
    Py_XDECREF((PyObject *)s->meter);
    PyObject_GC_Del(s);
    Py_TRASHCAN_END
}

PyTypeObject psb_steps_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "pysandboxes.EvaluatedIterator",
    .tp_basicsize = sizeof(steps),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .tp_iter = PyObject_SelfIter,
    .tp_iternext = (iternextfunc)next,
    .tp_traverse = (traverseproc)traverse,
    .tp_clear = (inquiry)clear,
    .tp_dealloc = (destructor)dealloc,
};

PyObject *psb_steps(psb_meter *m, PyObject *iterable, int mode) {
    PyObject *it = PyObject_GetIter(iterable);
    steps *s = it ? PyObject_GC_New(steps, &psb_steps_type) : NULL;
    if (!s) {
        Py_XDECREF(it);
        return NULL;
    }
    s->meter = (psb_meter *)Py_NewRef((PyObject *)m);
    s->it = it;
    s->mode = mode;
    s->flat = Py_IS_TYPE(it, &PyListIter_Type) || Py_IS_TYPE(it, &PyTupleIter_Type) || Py_IS_TYPE(it, &PyRangeIter_Type) ||
              Py_IS_TYPE(it, &PyUnicodeIter_Type) || Py_IS_TYPE(it, &PyDictIterKey_Type) || Py_IS_TYPE(it, &PyDictIterItem_Type);
    PyObject_GC_Track(s);
    return (PyObject *)s;
}
