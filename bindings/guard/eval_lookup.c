/* o.name(...): the method is read before the arguments are evaluated, as the interpreter does, and called after. What was read from
 * what stands in between on the stack, in an object that nothing of the source can name. */
#include "eval.h"

typedef struct {
    PyObject_HEAD
    PyObject *of, *name, *f; /* owned */
} looked;

static looked *spare; /* the last one that was given back: calls seldom need a second. The GIL guards it. */

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
    if (spare)
        PyObject_GC_Del(l);
    else
        spare = l;
}

PyTypeObject psb_looked_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "pysandboxes.EvaluatedMethod",
    .tp_basicsize = sizeof(looked),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .tp_traverse = (traverseproc)traverse,
    .tp_clear = (inquiry)clear,
    .tp_dealloc = (destructor)dealloc,
};

PyObject *psb_eval_lookup(psb_meter *m, PyObject *o, PyObject *name) {
    PyObject *f = psb_eval_read(m, o, name);
    if (!f)
        return NULL;
    looked *l = spare;
    spare = NULL;
    l = l ? (looked *)PyObject_Init((PyObject *)l, &psb_looked_type) : PyObject_GC_New(looked, &psb_looked_type);
    if (!l) {
        Py_DECREF(f);
        return NULL;
    }
    l->of = Py_NewRef(o);
    l->name = Py_NewRef(name);
    l->f = f;
    PyObject_GC_Track(l);
    return (PyObject *)l;
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
    PyObject *result = psb_eval_judged(m, l->f, args, n, kwnames, l->of, l->name);
    m->depth--;
    return result;
}
