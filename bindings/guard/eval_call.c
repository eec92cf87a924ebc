/* Calls and attribute reads of evaluated code. What may be called is decided by the object, when it is called: what the code
 * defined itself, what eval-call names, and methods of plain values whose name eval-attribute grants. */
#include "eval.h"

#include <string.h>

/* A callable in the hands of C code (map, sorted(key=), a context's function): each call of it is judged like one in the code.
 * `name` is NULL where the callable is any object, else that of the builtin it stands for. */
typedef struct {
    PyObject_HEAD
    psb_meter *meter; /* owned */
    PyObject *f;
    const char *name; /* static or interned for ever */
    vectorcallfunc call;
} bound;

static PyObject *call_bound(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *kwnames) {
    bound *b = (bound *)self;
    psb_meter *m = b->meter;
    Py_ssize_t n = PyVectorcall_NARGS(nargsf);
    if (!b->f)
        return psb_eval_refuses("evaluated code has lost its budget"), NULL;
    if (!b->name)
        return psb_eval_call(m, b->f, args, n, kwnames);
    if (psb_meter_step(m) < 0)
        return NULL;
    return psb_eval_builtin(m, b->name, b->f, args, n, kwnames);
}

static int traverse(bound *b, visitproc visit, void *arg) {
    Py_VISIT((PyObject *)b->meter);
    Py_VISIT(b->f);
    return 0;
}

static int clear(bound *b) {
    Py_CLEAR(b->f);
    return 0;
}

static void dealloc(bound *b) {
    PyObject_GC_UnTrack(b);
    clear(b);
    Py_XDECREF((PyObject *)b->meter);
    PyObject_GC_Del(b);
}

static PyObject *repr(bound *b) { return b->f ? PyObject_Repr(b->f) : PyUnicode_FromString("<cleared>"); }

PyTypeObject psb_bound_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "pysandboxes.EvaluatedCallable",
    .tp_basicsize = sizeof(bound),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION | Py_TPFLAGS_HAVE_VECTORCALL,
    .tp_vectorcall_offset = offsetof(bound, call),
    .tp_call = PyVectorcall_Call,
    .tp_repr = (reprfunc)repr,
    .tp_traverse = (traverseproc)traverse,
    .tp_clear = (inquiry)clear,
    .tp_dealloc = (destructor)dealloc,
};

static PyObject *make(psb_meter *m, PyObject *f, const char *name) {
    bound *b = PyObject_GC_New(bound, &psb_bound_type);
    if (!b)
        return NULL;
    b->meter = (psb_meter *)Py_NewRef((PyObject *)m);
    b->f = Py_NewRef(f);
    b->name = name;
    b->call = call_bound;
    PyObject_GC_Track(b);
    return (PyObject *)b;
}

PyObject *psb_eval_bound_builtin(psb_meter *m, PyObject *f, const char *name) { return make(m, f, name); }

static bool is_function(PyObject *o) {
    return PyFunction_Check(o) || PyCFunction_Check(o) || PyMethod_Check(o) || Py_IS_TYPE(o, &PyMethodDescr_Type);
}

static bool own_function(psb_meter *m, PyObject *f) { return PyFunction_Check(f) && ((PyFunctionObject *)f)->func_builtins == m->builtins; }

PyObject *psb_eval_bind(psb_meter *m, PyObject *f) {
    if (!PyCallable_Check(f) || Py_TYPE(f) == &psb_bound_type || own_function(m, f))
        return Py_NewRef(f);
    return make(m, f, NULL);
}

static int granted(psb_meter *m, PyObject *f) {
    PyObject *key = PyLong_FromVoidPtr(f);
    int there = key ? PyDict_Contains(m->granted, key) : -1;
    Py_XDECREF(key);
    return there;
}

static bool plain_type(PyTypeObject *t) {
    return t == &PyUnicode_Type || t == &PyList_Type || t == &PyDict_Type || t == &PySet_Type || t == &PyFrozenSet_Type || t == &PyTuple_Type ||
           t == &PyLong_Type || t == &PyFloat_Type || t == &PyComplex_Type || t == &PyBool_Type || t == &PyBytes_Type || t == &PyByteArray_Type ||
           t == &PyRange_Type || t == &PyDictKeys_Type || t == &PyDictValues_Type || t == &PyDictItems_Type;
}

/* Is it a method of a builtin type's own making? self is what it is called on. */
static bool plain_self(PyObject *self) {
    if (PyType_Check(self))
        return plain_type((PyTypeObject *)self);
    return plain_type(Py_TYPE(self)) || PyUnicode_Check(self) || PyList_Check(self) || PyDict_Check(self) || PyAnySet_Check(self) ||
           PyTuple_Check(self) || PyLong_Check(self) || PyBytes_Check(self) || PyByteArray_Check(self);
}

/* operator.attrgetter and methodcaller read attributes by themselves. */
static int getter_names(psb_meter *m, PyObject *f, PyObject *const *args, Py_ssize_t n) {
    const char *type = PyType_Check(f) ? ((PyTypeObject *)f)->tp_name : "";
    bool reader = strcmp(type, "operator.attrgetter") == 0, caller = strcmp(type, "operator.methodcaller") == 0;
    for (Py_ssize_t i = 0; (reader || caller) && i < (caller && n > 1 ? 1 : n); i++) {
        PyObject *dot = PyUnicode_CheckExact(args[i]) ? PyUnicode_FromString(".") : NULL;
        PyObject *parts = dot ? PyUnicode_Split(args[i], dot, -1) : NULL;
        int rc = parts ? 0 : -1;
        for (Py_ssize_t p = 0; rc == 0 && p < PyList_GET_SIZE(parts); p++)
            rc = psb_meter_attribute(m, PyList_GET_ITEM(parts, p));
        Py_XDECREF(dot);
        Py_XDECREF(parts);
        if (rc < 0)
            return PyErr_Occurred() ? -1 : psb_eval_refuses("evaluated code may name attributes by exact str only");
    }
    if (caller && n && PyUnicode_Check(args[0]) && (PyUnicode_CompareWithASCIIString(args[0], "format") == 0 || PyUnicode_CompareWithASCIIString(args[0], "format_map") == 0))
        return psb_eval_refuses("evaluated code may not call format by methodcaller");
    return 0;
}

static int not_granted(PyObject *f) {
    if (!PyCFunction_Check(f) && !PyFunction_Check(f) && !PyType_Check(f))
        return psb_eval_refuses("evaluated code may not call this object: eval-call has to name it. A method is called where it is read: o.method(...)");
    PyObject *name = PyObject_GetAttrString(f, "__name__");
    PyErr_Clear();
    int rc = name && PyUnicode_Check(name) ? psb_meter_refuse("call", name, "eval-call") : psb_eval_refuses("evaluated code may not call this object");
    Py_XDECREF(name);
    return rc;
}

#define FEW 16

/* A function of the context may call what it is given (functools.reduce): functions that the source could not call itself go in as
 * ones that are judged. */
static PyObject *foreign(psb_meter *m, PyObject *f, PyObject *const *args, Py_ssize_t n, PyObject *kwnames) {
    Py_ssize_t all = n + (kwnames ? PyTuple_GET_SIZE(kwnames) : 0), functions = 0;
    for (Py_ssize_t i = 0; i < all; i++)
        functions += is_function(args[i]) && !own_function(m, args[i]);
    if (!functions)
        return PyObject_Vectorcall(f, args, (size_t)n, kwnames);
    if (all > FEW)
        return psb_eval_refuses("evaluated code may not give a function so many arguments"), NULL;
    PyObject *own[FEW], *result = NULL;
    Py_ssize_t made = 0;
    for (; made < all; made++)
        if (!(own[made] = is_function(args[made]) ? psb_eval_bind(m, args[made]) : Py_NewRef(args[made])))
            break;
    if (made == all)
        result = PyObject_Vectorcall(f, own, (size_t)n, kwnames);
    while (made)
        Py_DECREF(own[--made]);
    return result;
}

static PyObject *judged(psb_meter *m, PyObject *f, PyObject *const *args, Py_ssize_t n, PyObject *kwnames, bool attribute) {
    if (Py_TYPE(f) == &psb_bound_type || own_function(m, f))
        return PyObject_Vectorcall(f, args, (size_t)n, kwnames);
    if (PyCFunction_Check(f)) {
        PyObject *self = PyCFunction_GET_SELF(f);
        if (self && !PyModule_Check(self) && plain_self(self)) {
            const char *name = ((PyCFunctionObject *)f)->m_ml->ml_name;
            if (name[0] == '_' && name[1] == '_') { /* read by eval-magic; called as what it is */
                if (strcmp(name, "__format__") == 0)
                    return psb_eval_refuses("evaluated code may not call __format__; format() may"), NULL;
            }
            return psb_eval_method(m, self, name, f, args, n, kwnames, false);
        }
    } else if (Py_IS_TYPE(f, &PyMethodDescr_Type) && n) {
        PyMethodDescrObject *d = (PyMethodDescrObject *)f;
        if (PyObject_TypeCheck(args[0], d->d_common.d_type) && plain_self(args[0])) {
            PyObject *name = PyUnicode_FromString(d->d_method->ml_name);
            int rc = name ? psb_meter_attribute(m, name) : -1;
            Py_XDECREF(name);
            return rc < 0 ? NULL : psb_eval_method(m, args[0], d->d_method->ml_name, f, args + 1, n - 1, kwnames, true);
        }
    }
    int there = attribute ? 1 : granted(m, f);
    if (there < 0)
        return NULL;
    if (!there) {
        not_granted(f);
        return NULL;
    }
    if (getter_names(m, f, args, n) < 0)
        return NULL;
    if (PyType_Check(f)) {
        const char *name = ((PyTypeObject *)f)->tp_name;
        if (!(((PyTypeObject *)f)->tp_flags & Py_TPFLAGS_HEAPTYPE) && psb_eval_builtin_known(name))
            return psb_eval_builtin(m, name, f, args, n, kwnames);
        if (PyType_FastSubclass((PyTypeObject *)f, Py_TPFLAGS_TYPE_SUBCLASS))
            return psb_eval_refuses("evaluated code may not make classes"), NULL;
    }
    return psb_meter_charged(m, foreign(m, f, args, n, kwnames));
}

PyObject *psb_eval_call(psb_meter *m, PyObject *f, PyObject *const *args, Py_ssize_t n, PyObject *kwnames) {
    if (psb_meter_step(m) < 0)
        return NULL;
    if (m->depth >= m->depth_limit) {
        psb_meter_trip(m, "eval-max-call-depth");
        return NULL;
    }
    m->depth++;
    PyObject *result = judged(m, f, args, n, kwnames, false);
    m->depth--;
    return result;
}

/* o.name(...): the attribute's grant is the call's. */
PyObject *psb_eval_call_method(psb_meter *m, PyObject *o, PyObject *name, PyObject *const *args, Py_ssize_t n, PyObject *kwnames) {
    PyObject *f = psb_eval_read(m, o, name), *result = NULL;
    if (!f)
        return NULL;
    if (m->depth >= m->depth_limit) {
        psb_meter_trip(m, "eval-max-call-depth");
    } else {
        m->depth++;
        result = judged(m, f, args, n, kwnames, true);
        m->depth--;
    }
    Py_DECREF(f);
    return result;
}

PyObject *psb_eval_read(psb_meter *m, PyObject *o, PyObject *name) {
    if (psb_meter_step(m) < 0 || psb_meter_attribute(m, name) < 0)
        return NULL;
    PyObject *value = PyObject_GetAttr(o, name);
    /* str.format walks attributes wherever it is called, so it leaves here only as one that checks them */
    if (value && (PyCFunction_Check(value) || Py_IS_TYPE(value, &PyMethodDescr_Type))) {
        const char *n = PyCFunction_Check(value) ? ((PyCFunctionObject *)value)->m_ml->ml_name : ((PyMethodDescrObject *)value)->d_method->ml_name;
        if (strcmp(n, "format") == 0 || strcmp(n, "format_map") == 0)
            Py_SETREF(value, make(m, value, NULL));
    }
    return value;
}
