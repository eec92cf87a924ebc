/* What a container is written out. `a = [a, a]`, fifty times, is small, and its repr, its comparison and its hash are not: C walks
 * it as a tree, with nothing in between that could be stopped. So plain containers are walked here first, within a bound. */
#include "eval.h"

#include <string.h>

#if PY_VERSION_HEX >= 0x030D0000 /* an internal header has it since then */
PyAPI_FUNC(int) _PySet_NextEntry(PyObject *set, Py_ssize_t *pos, PyObject **key, Py_hash_t *hash);
#endif

#define MOST_NODES 1000000
#define MOST_DEEP 100

typedef struct {
    int64_t nodes;
    double bytes;
} walk;

static bool within(walk *w, PyObject *o, int depth);
static bool item(walk *w, PyObject *o, int depth);

/* A view of a dict; its declaration is internal since 3.13. */
typedef struct {
    PyObject_HEAD
    PyObject *dict;
} view;

/* `list[int]`, `int | str`: hash() follows them without end. The second has no name in the headers. */
static bool alias(PyObject *o) {
    return Py_IS_TYPE(o, &Py_GenericAliasType) || (!(Py_TYPE(o)->tp_flags & Py_TPFLAGS_HEAPTYPE) && strcmp(Py_TYPE(o)->tp_name, "types.UnionType") == 0);
}

/* Views, slices, aliases and exceptions are written and compared by what they hold. Borrowed from the object. */
PyObject *psb_eval_held(PyObject *o) {
    if (alias(o)) {
        PyObject *args = PyObject_GetAttrString(o, "__args__");
        PyErr_Clear();
        Py_XDECREF(args);
        return args && PyTuple_Check(args) ? args : NULL;
    }
    if (Py_IS_TYPE(o, &PyDictKeys_Type) || Py_IS_TYPE(o, &PyDictValues_Type) || Py_IS_TYPE(o, &PyDictItems_Type))
        return ((view *)o)->dict;
    if (PyExceptionInstance_Check(o))
        return ((PyBaseExceptionObject *)o)->args;
    return o;
}

static bool container(PyObject *o) {
    return PyList_Check(o) || PyTuple_Check(o) || PyDict_Check(o) || PyAnySet_Check(o) || PySlice_Check(o) || psb_eval_held(o) != o;
}

static bool item(walk *w, PyObject *o, int depth) {
    if (PyLong_CheckExact(o))
        return true;
    if (!psb_eval_scalar(o) && container(o))
        return within(w, o, depth + 1);
    if (PyUnicode_Check(o))
        w->bytes += 4 * (double)PyUnicode_GET_LENGTH(o);
    else if (PyBytes_Check(o))
        w->bytes += 4 * (double)PyBytes_GET_SIZE(o);
    return true;
}

static bool within(walk *w, PyObject *o, int depth) {
    if (depth > MOST_DEEP || !(o = psb_eval_held(o)))
        return false;
    if (PySlice_Check(o)) {
        PySliceObject *slice = (PySliceObject *)o;
        return ++w->nodes <= MOST_NODES && item(w, slice->start, depth) && item(w, slice->stop, depth) && item(w, slice->step, depth);
    }
    PyObject *key, *value;
    Py_hash_t hash;
    Py_ssize_t pos = 0, n = PyDict_Check(o) ? PyDict_GET_SIZE(o) : PyAnySet_Check(o) ? PySet_GET_SIZE(o) : PySequence_Fast_GET_SIZE(o);
    if ((w->nodes += n + 1) > MOST_NODES)
        return false;
    if (PyDict_Check(o)) {
        while (PyDict_Next(o, &pos, &key, &value))
            if (!item(w, key, depth) || !item(w, value, depth))
                return false;
    } else if (PyAnySet_Check(o)) {
        while (_PySet_NextEntry(o, &pos, &key, &hash))
            if (!item(w, key, depth))
                return false;
    } else {
        for (Py_ssize_t i = 0; i < n; i++)
            if (!item(w, PySequence_Fast_GET_ITEM(o, i), depth))
                return false;
    }
    return true;
}

int psb_eval_whole_all(psb_meter *m, PyObject *const *args, Py_ssize_t n, bool written) {
    for (Py_ssize_t i = 0; i < n; i++)
        if (psb_eval_whole(m, args[i], written) < 0)
            return -1;
    return 0;
}

int psb_eval_whole(psb_meter *m, PyObject *o, bool written) {
    if (psb_eval_scalar(o) || !container(o))
        return 0;
    walk w = {0, 0};
    if (!within(&w, o, 0))
        return psb_meter_trip(m, "it used a container that is nested more than 100 deep or, written out, has more than a million parts");
    if (w.nodes > 1000)
        m->countdown = 1; /* look at the clock now */
    if (psb_meter_step(m) < 0)
        return -1;
    return written ? psb_meter_charge(m, w.bytes + 8 * (double)w.nodes) : 0;
}
