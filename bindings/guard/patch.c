/* C functions are guarded in place: the function pointer in the function's definition is replaced, once for the process.
 *
 * A PyMethodDef is the one thing that every object of a C function shares: the module's attribute, references that were
 * taken before, CPython's saved copies, and the functions of a module that is made again or in a sub-interpreter all call
 * def->ml_meth. So there is no unguarded original left for a program to find, and the function itself stays what it is:
 * its type, identity, signature and pickle.
 *
 * The pointer carries no data, so each guarded function has a number of its own and one of the trampolines below that
 * know it. Written with the GIL and psb_lock held; read by calls, which see the old pointer or the new one.
 */
#include "guard.h"

#include <string.h>

enum { TUPLE, TUPLE_KW, FAST, FAST_KW, NONE, ONE, METHOD, CONVENTIONS };
#define SLOTS 256 /* guarded C functions: the registry's, and those of extensions that are loaded from a second file */
#define FEW 16    /* keyword arguments that need no allocation */

static struct {
    PyCFunction c;
    int convention;
    psb_door door;
} slots[SLOTS];
static int used;

typedef PyObject *(*with_class)(PyObject *, PyTypeObject *, PyObject *const *, size_t, PyObject *);

/* ---- from a door to the C function ---- */

static PyObject *tuple_of(PyObject *const *args, Py_ssize_t n) {
    PyObject *tuple = PyTuple_New(n);
    for (Py_ssize_t i = 0; tuple && i < n; i++)
        PyTuple_SET_ITEM(tuple, i, Py_NewRef(args[i]));
    return tuple;
}

static PyObject *by_tuple(const psb_original *o, PyObject *const *args, Py_ssize_t n, PyObject *kwnames) {
    if (args == o->given && kwnames == o->given_names && o->tuple)
        return o->convention == TUPLE ? o->c(o->self, o->tuple) : ((PyCFunctionWithKeywords)(void *)o->c)(o->self, o->tuple, o->dict);
    PyObject *tuple = tuple_of(args, n), *dict = tuple && kwnames ? PyDict_New() : NULL, *result = NULL;
    bool ok = tuple && (!kwnames || dict);
    for (Py_ssize_t k = 0; ok && kwnames && k < PyTuple_GET_SIZE(kwnames); k++)
        ok = PyDict_SetItem(dict, PyTuple_GET_ITEM(kwnames, k), args[n + k]) == 0;
    if (ok)
        result = o->convention == TUPLE ? o->c(o->self, tuple) : ((PyCFunctionWithKeywords)(void *)o->c)(o->self, tuple, dict);
    Py_XDECREF(tuple);
    Py_XDECREF(dict);
    return result;
}

PyObject *psb_call_original(const psb_original *o, PyObject *const *args, Py_ssize_t n, PyObject *kwnames) {
    if (o->function)
        return PyObject_Vectorcall(o->function, args, (size_t)n, kwnames);
    switch (o->convention) {
    case FAST:
        return ((_PyCFunctionFast)(void *)o->c)(o->self, args, n);
    case FAST_KW:
        return ((_PyCFunctionFastWithKeywords)(void *)o->c)(o->self, args, n, kwnames);
    case METHOD:
        return ((with_class)(void *)o->c)(o->self, o->cls, args, (size_t)n, kwnames);
    case NONE:
        return o->c(o->self, NULL);
    case ONE:
        return o->c(o->self, args[0]);
    default:
        return by_tuple(o, args, n, kwnames);
    }
}

/* ---- from a call to the door ---- */

static PyObject *enter(int i, PyObject *self, PyTypeObject *cls, PyObject *const *args, Py_ssize_t n, PyObject *kwnames, PyObject *tuple,
                       PyObject *dict) {
    psb_original original = {NULL, slots[i].convention, slots[i].c, self, cls, args, kwnames, tuple, dict};
#if PY_VERSION_HEX >= 0x030C0000 /* which bounds calls of C by their number, for frames without ours in between */
    if (Py_EnterRecursiveCall(" while calling a Python object"))
        return NULL;
#endif
    PyObject *result = psb_pass_door(&slots[i].door, &original, args, n, kwnames);
#if PY_VERSION_HEX >= 0x030C0000
    Py_LeaveRecursiveCall();
#endif
    return result;
}

static PyObject *enter_tuple(int i, PyObject *self, PyObject *tuple, PyObject *dict) {
    Py_ssize_t n = PyTuple_GET_SIZE(tuple), k = dict ? PyDict_GET_SIZE(dict) : 0, at = 0, pos = 0;
    PyObject *const *items = &PyTuple_GET_ITEM(tuple, 0);
    if (!k)
        return enter(i, self, NULL, items, n, NULL, tuple, dict);
    PyObject *few[FEW], **args = n + k <= FEW ? few : PyMem_New(PyObject *, n + k), *names = PyTuple_New(k), *key, *value, *result = NULL;
    if (args && names) {
        for (; at < n; at++)
            args[at] = Py_NewRef(items[at]); /* owned: what judges may run Python code, which may change the dict */
        for (; at < n + k && PyDict_Next(dict, &pos, &key, &value); at++) {
            PyTuple_SET_ITEM(names, at - n, Py_NewRef(key));
            args[at] = Py_NewRef(value);
        }
        result = enter(i, self, NULL, args, n, names, tuple, dict);
    } else {
        PyErr_NoMemory();
    }
    while (at)
        Py_DECREF(args[--at]);
    if (args != few)
        PyMem_Free(args);
    Py_XDECREF(names);
    return result;
}

#define TRAMPOLINE(i)                                                                                                                    \
    static PyObject *tuple_##i(PyObject *s, PyObject *a) { return enter_tuple(0x##i, s, a, NULL); }                                      \
    static PyObject *tuple_kw_##i(PyObject *s, PyObject *a, PyObject *k) { return enter_tuple(0x##i, s, a, k); }                         \
    static PyObject *fast_##i(PyObject *s, PyObject *const *a, Py_ssize_t n) { return enter(0x##i, s, NULL, a, n, NULL, NULL, NULL); }   \
    static PyObject *fast_kw_##i(PyObject *s, PyObject *const *a, Py_ssize_t n, PyObject *k) {                                           \
        return enter(0x##i, s, NULL, a, n, k, NULL, NULL);                                                                               \
    }                                                                                                                                    \
    static PyObject *none_##i(PyObject *s, PyObject *a) { return enter(0x##i, s, NULL, &a, 0, NULL, NULL, NULL); }                       \
    static PyObject *one_##i(PyObject *s, PyObject *a) { return enter(0x##i, s, NULL, &a, 1, NULL, NULL, NULL); }                        \
    static PyObject *method_##i(PyObject *s, PyTypeObject *c, PyObject *const *a, size_t n, PyObject *k) {                               \
        return enter(0x##i, s, c, a, (Py_ssize_t)n, k, NULL, NULL);                                                                      \
    }
#define SIXTEEN(X, h) X(h##0) X(h##1) X(h##2) X(h##3) X(h##4) X(h##5) X(h##6) X(h##7) X(h##8) X(h##9) X(h##a) X(h##b) X(h##c) X(h##d) X(h##e) X(h##f)
#define ALL(X)                                                                                                                           \
    SIXTEEN(X, 0) SIXTEEN(X, 1) SIXTEEN(X, 2) SIXTEEN(X, 3) SIXTEEN(X, 4) SIXTEEN(X, 5) SIXTEEN(X, 6) SIXTEEN(X, 7)                      \
    SIXTEEN(X, 8) SIXTEEN(X, 9) SIXTEEN(X, a) SIXTEEN(X, b) SIXTEEN(X, c) SIXTEEN(X, d) SIXTEEN(X, e) SIXTEEN(X, f)
ALL(TRAMPOLINE)

#define F(f) ((PyCFunction)(void *)(f))
#define ENTRY(i) {F(tuple_##i), F(tuple_kw_##i), F(fast_##i), F(fast_kw_##i), F(none_##i), F(one_##i), F(method_##i)},
static const PyCFunction trampolines[SLOTS][CONVENTIONS] = {ALL(ENTRY)};

static int convention_of(int flags) {
    switch (flags & ~(METH_CLASS | METH_STATIC | METH_COEXIST)) {
    case METH_VARARGS:
        return TUPLE;
    case METH_VARARGS | METH_KEYWORDS:
        return TUPLE_KW;
    case METH_FASTCALL:
        return FAST;
    case METH_FASTCALL | METH_KEYWORDS:
        return FAST_KW;
    case METH_NOARGS:
        return NONE;
    case METH_O:
        return ONE;
    case METH_METHOD | METH_FASTCALL | METH_KEYWORDS:
        return METHOD;
    }
    return -1;
}

int psb_patch(PyMethodDef *def, enum psb_door_kind kind, int call, const char *spec) {
    int convention = convention_of(def->ml_flags), rc = 0;
    psb_lock();
    bool known = false;
    for (int i = 0; i < used && !known && convention >= 0; i++)
        known = def->ml_meth == trampolines[i][convention];
    if (convention < 0 || used == SLOTS) {
        rc = -1;
    } else if (!known) {
        slots[used].c = def->ml_meth;
        slots[used].convention = convention;
        slots[used].door = (psb_door){kind, call, spec, def->ml_name};
        def->ml_meth = trampolines[used][convention];
        used++;
    }
    psb_unlock();
    if (rc < 0) /* with the lock given back: making the exception may run the collector */
        PyErr_Format(PyExc_RuntimeError, "pysandboxes: %.100s() cannot be guarded in this Python", def->ml_name);
    return rc;
}
