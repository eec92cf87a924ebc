/* match statements. The interpreter's own instructions read attributes that a class names (__match_args__), so a pattern is
 * matched here instead: pysandboxes/_eval_match.py writes it down as nested tuples of constants. */
#include "eval.h"

enum { ANY, CAPTURE, VALUE, SINGLE, OR, SEQUENCE, MAPPING, CLASS };

#define MOST 64 /* names that one case can bind */

typedef struct {
    psb_meter *m;
    PyObject *const *values; /* what the pattern names: values, classes, keys */
    Py_ssize_t n;
    PyObject *bound[MOST];
} matching;

static int match(matching *w, PyObject *pattern, PyObject *o);

static long number(PyObject *pattern, Py_ssize_t i) {
    PyObject *o = i < PyTuple_GET_SIZE(pattern) ? PyTuple_GET_ITEM(pattern, i) : NULL;
    return o && PyLong_CheckExact(o) ? PyLong_AsLong(o) : -2;
}

static PyObject *parts(PyObject *pattern, Py_ssize_t i) {
    PyObject *o = i < PyTuple_GET_SIZE(pattern) ? PyTuple_GET_ITEM(pattern, i) : NULL;
    if (o && PyTuple_CheckExact(o))
        return o;
    PyErr_SetString(PyExc_SystemError, "pysandboxes: a pattern was written wrongly");
    return NULL;
}

static PyObject *value(matching *w, long i) {
    if (i >= 0 && i < w->n)
        return w->values[i];
    PyErr_SetString(PyExc_SystemError, "pysandboxes: a pattern was written wrongly");
    return NULL;
}

static int bind(matching *w, long i, PyObject *o) { /* steals o */
    if (i < 0 || i >= MOST) {
        Py_XDECREF(o);
        return o ? psb_eval_refuses("evaluated code may not bind so many names by a pattern") : -1;
    }
    Py_XSETREF(w->bound[i], o);
    return o ? 1 : -1;
}

static int equal(matching *w, PyObject *a, PyObject *b) {
    if (psb_eval_whole(w->m, a, false) < 0 || psb_eval_whole(w->m, b, false) < 0)
        return -1;
    PyObject *result = PyObject_RichCompare(a, b, Py_EQ);
    int truth = result ? PyObject_IsTrue(result) : -1;
    Py_XDECREF(result);
    return truth;
}

static int sequence(matching *w, PyObject *pattern, PyObject *o) {
    PyObject *subs = parts(pattern, 1);
    long star = number(pattern, 2), name = number(pattern, 3);
    if (!subs)
        return -1;
    if (!(Py_TYPE(o)->tp_flags & Py_TPFLAGS_SEQUENCE))
        return 0;
    Py_ssize_t wanted = PyTuple_GET_SIZE(subs), n = PyObject_Size(o);
    if (n < 0)
        return -1;
    if (star < 0 ? n != wanted : n < wanted)
        return 0;
    Py_ssize_t after = star < 0 ? 0 : wanted - star, rest = n - wanted;
    for (Py_ssize_t i = 0; i < wanted; i++) {
        PyObject *item = PySequence_GetItem(o, star < 0 || i < star ? i : n - after + (i - star));
        int rc = item ? match(w, PyTuple_GET_ITEM(subs, i), item) : -1;
        Py_XDECREF(item);
        if (rc != 1)
            return rc;
    }
    if (star < 0 || name < 0)
        return 1;
    if (psb_meter_charge(w->m, 56 + 8 * (double)rest) < 0)
        return -1;
    PyObject *middle = PyList_New(0);
    for (Py_ssize_t i = 0; middle && i < rest; i++) {
        PyObject *item = PySequence_GetItem(o, star + i);
        if (!item || PyList_Append(middle, item) < 0)
            Py_CLEAR(middle);
        Py_XDECREF(item);
    }
    return bind(w, name, middle);
}

static int mapping(matching *w, PyObject *pattern, PyObject *o) {
    PyObject *keys = parts(pattern, 1), *subs = keys ? parts(pattern, 2) : NULL;
    long name = number(pattern, 3);
    if (!subs)
        return -1;
    if (!(Py_TYPE(o)->tp_flags & Py_TPFLAGS_MAPPING))
        return 0;
    if (!PyDict_Check(o)) /* its get() would be called with nobody asking */
        return psb_eval_refuses("evaluated code may match a mapping by keys where it is a dict only");
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(keys); i++) {
        PyObject *key = value(w, PyLong_AsLong(PyTuple_GET_ITEM(keys, i))), *item = NULL;
        if (!key || psb_eval_whole(w->m, key, false) < 0)
            return -1;
        item = PyDict_GetItemWithError(o, key);
        if (!item)
            return PyErr_Occurred() ? -1 : 0;
        Py_INCREF(item);
        int rc = match(w, PyTuple_GET_ITEM(subs, i), item);
        Py_DECREF(item);
        if (rc != 1)
            return rc;
    }
    if (name < 0)
        return 1;
    if (psb_meter_charge(w->m, 64 + 64 * (double)PyDict_GET_SIZE(o)) < 0)
        return -1;
    PyObject *rest = PyDict_New();
    if (rest && PyDict_Update(rest, o) < 0)
        Py_CLEAR(rest);
    for (Py_ssize_t i = 0; rest && i < PyTuple_GET_SIZE(keys); i++) {
        PyObject *key = value(w, PyLong_AsLong(PyTuple_GET_ITEM(keys, i)));
        if (!key || PyDict_DelItem(rest, key) < 0)
            Py_CLEAR(rest);
    }
    return bind(w, name, rest);
}

static int attribute(matching *w, PyObject *o, PyObject *name, PyObject *pattern) {
    PyObject *read = psb_eval_read(w->m, o, name);
    if (!read) {
        if (!PyErr_ExceptionMatches(PyExc_AttributeError))
            return -1;
        PyErr_Clear();
        return 0;
    }
    int rc = match(w, pattern, read);
    Py_DECREF(read);
    return rc;
}

static int class(matching *w, PyObject *pattern, PyObject *o) {
    PyObject *cls = value(w, number(pattern, 1)), *by_place = cls ? parts(pattern, 2) : NULL, *names = by_place ? parts(pattern, 3) : NULL;
    PyObject *by_name = names ? parts(pattern, 4) : NULL;
    if (!by_name)
        return -1;
    if (!PyType_Check(cls)) {
#if PY_VERSION_HEX >= 0x030C0000
        PyErr_SetString(PyExc_TypeError, "called match pattern must be a class");
#else
        PyErr_SetString(PyExc_TypeError, "called match pattern must be a type");
#endif
        return -1;
    }
    int rc = PyObject_IsInstance(o, cls);
    Py_ssize_t n = PyTuple_GET_SIZE(by_place), most = 1;
    if (rc != 1)
        return rc;
    if (n) {
        PyObject *args = PyObject_GetAttrString(cls, "__match_args__");
        if (!args && !PyErr_ExceptionMatches(PyExc_AttributeError))
            return -1;
        PyErr_Clear();
        bool itself = !args && (((PyTypeObject *)cls)->tp_flags & (1UL << 22)); /* _Py_TPFLAGS_MATCH_SELF */
        if (args && !PyTuple_CheckExact(args)) {
            PyErr_Format(PyExc_TypeError, "%s.__match_args__ must be a tuple (got %s)", ((PyTypeObject *)cls)->tp_name, Py_TYPE(args)->tp_name);
            Py_DECREF(args);
            return -1;
        }
        most = args ? PyTuple_GET_SIZE(args) : itself;
        if (n > most) {
            PyErr_Format(PyExc_TypeError, "%s() accepts %zd positional sub-pattern%s (%zd given)", ((PyTypeObject *)cls)->tp_name, most,
                         most == 1 ? "" : "s", n);
            rc = -1;
        }
        for (Py_ssize_t i = 0; rc == 1 && i < n; i++) {
            PyObject *sub = PyTuple_GET_ITEM(by_place, i);
            if (args && !PyUnicode_CheckExact(PyTuple_GET_ITEM(args, i))) {
                PyErr_Format(PyExc_TypeError, "__match_args__ elements must be strings (got %s)", Py_TYPE(PyTuple_GET_ITEM(args, i))->tp_name);
                rc = -1;
            } else {
                rc = args ? attribute(w, o, PyTuple_GET_ITEM(args, i), sub) : match(w, sub, o);
            }
        }
        Py_XDECREF(args);
    }
    for (Py_ssize_t i = 0; rc == 1 && i < PyTuple_GET_SIZE(names) && i < PyTuple_GET_SIZE(by_name); i++)
        rc = attribute(w, o, PyTuple_GET_ITEM(names, i), PyTuple_GET_ITEM(by_name, i));
    return rc;
}

/* 1: it matches; 0: not; -1 with an exception */
static int match(matching *w, PyObject *pattern, PyObject *o) {
    PyObject *sub;
    int rc;
    if (psb_meter_step(w->m) < 0)
        return -1;
    switch (PyTuple_CheckExact(pattern) ? number(pattern, 0) : -1) {
    case ANY:
        return 1;
    case CAPTURE:
        sub = PyTuple_GET_ITEM(pattern, 2);
        rc = sub == Py_None ? 1 : match(w, sub, o);
        return rc == 1 ? bind(w, number(pattern, 1), Py_NewRef(o)) : rc;
    case VALUE:
        sub = value(w, number(pattern, 1));
        return sub ? equal(w, o, sub) : -1;
    case SINGLE:
        rc = (int)number(pattern, 1);
        return o == (rc == 0 ? Py_False : rc == 1 ? Py_True : Py_None);
    case OR:
        if (!(sub = parts(pattern, 1)))
            return -1;
        for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(sub); i++)
            if ((rc = match(w, PyTuple_GET_ITEM(sub, i), o)) != 0)
                return rc;
        return 0;
    case SEQUENCE:
        return sequence(w, pattern, o);
    case MAPPING:
        return mapping(w, pattern, o);
    case CLASS:
        return class(w, pattern, o);
    }
    PyErr_SetString(PyExc_SystemError, "pysandboxes: a pattern was written wrongly");
    return -1;
}

/* match(subject, pattern, number of names, *values): False, or a tuple of True and what the names are bound to. */
PyObject *psb_eval_match(psb_meter *m, PyObject *const *a, Py_ssize_t n) {
    matching w = {.m = m, .values = a + 3, .n = n - 3};
    long count = PyLong_Check(a[2]) ? PyLong_AsLong(a[2]) : -1;
    if (count < 0 || count > MOST)
        return psb_eval_refuses("evaluated code may not bind so many names by a pattern"), NULL;
    int rc = match(&w, a[1], a[0]);
    PyObject *result = rc == 1 ? PyTuple_New(count + 1) : rc == 0 ? Py_NewRef(Py_False) : NULL;
    if (rc == 1 && result) {
        PyTuple_SET_ITEM(result, 0, Py_NewRef(Py_True));
        for (long i = 0; i < count; i++)
            PyTuple_SET_ITEM(result, i + 1, Py_NewRef(w.bound[i] ? w.bound[i] : Py_None));
    }
    for (int i = 0; i < MOST; i++)
        Py_XDECREF(w.bound[i]);
    return result;
}
