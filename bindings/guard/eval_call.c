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

bool psb_eval_own_function(psb_meter *m, PyObject *f) { return PyFunction_Check(f) && ((PyFunctionObject *)f)->func_builtins == m->builtins; }

PyObject *psb_eval_judge(psb_meter *m, PyObject *f) { return make(m, f, NULL); }

/* A method of the source's function, or one whose every call is judged. */
static bool own_method(psb_meter *m, PyObject *f) {
    PyObject *function = PyMethod_Check(f) ? PyMethod_GET_FUNCTION(f) : NULL;
    return function && (psb_eval_own_function(m, function) || Py_TYPE(function) == &psb_bound_type);
}

PyObject *psb_eval_bind(psb_meter *m, PyObject *f) {
    if (!PyCallable_Check(f) || Py_TYPE(f) == &psb_bound_type || psb_eval_own_function(m, f) || own_method(m, f))
        return Py_NewRef(f);
    return make(m, f, NULL);
}

int psb_eval_grant(psb_meter *m, PyObject *o) {
    PyObject *key = PyLong_FromVoidPtr(o);
    int rc = key ? PyDict_SetItem(m->granted, key, o) : -1;
    Py_XDECREF(key);
    return rc;
}

int psb_eval_granted(psb_meter *m, PyObject *f) {
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
bool psb_eval_plain_self(PyObject *self) {
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

int psb_eval_not_granted(psb_meter *m, PyObject *f) {
    if (!m->learned && !PyCFunction_Check(f) && !PyFunction_Check(f) && !PyType_Check(f))
        return psb_eval_refuses("evaluated code may not call this object: eval-call has to name it. A method is called where it is read: o.method(...)");
    PyObject *name = PyObject_GetAttrString(f, "__name__");
    PyErr_Clear();
    if (!name && m->learned)
        name = PyUnicode_FromString(Py_TYPE(f)->tp_name); /* the names of the context say what it is called there */
    int rc = name && PyUnicode_Check(name) ? psb_meter_wants(m, "call", name, "eval-call", f) : psb_eval_refuses("evaluated code may not call this object");
    Py_XDECREF(name);
    return rc;
}

#define FEW 16

/* A function of the context may call what it is given (functools.reduce): functions that the source could not call itself go in as
 * ones that are judged. */
static PyObject *foreign(psb_meter *m, PyObject *f, PyObject *const *args, Py_ssize_t n, PyObject *kwnames) {
    Py_ssize_t all = n + (kwnames ? PyTuple_GET_SIZE(kwnames) : 0), functions = 0;
    for (Py_ssize_t i = 0; i < all; i++)
        functions += is_function(args[i]) && !psb_eval_own_function(m, args[i]);
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

/* @x.setter: what a property of the source's functions is asked for. */
static PyObject *property(psb_meter *m, PyObject *self, PyObject *f, PyObject *const *args, Py_ssize_t n, PyObject *kwnames) {
    PyObject *get = PyObject_GetAttrString(self, "fget"), *given = NULL, *result = NULL;
    bool own = get && (get == Py_None || psb_eval_own_function(m, get) || Py_TYPE(get) == &psb_bound_type);
    if (get && (!own || n != 1 || kwnames))
        psb_eval_refuses("evaluated code may change properties of its own only");
    else if (get && (given = psb_eval_bind(m, args[0])))
        result = PyObject_CallOneArg(f, given);
    Py_XDECREF(given);
    Py_XDECREF(get);
    return result;
}

/* An object of the source's class, which has __call__ from the source. */
static bool callable_object(psb_meter *m, PyObject *f) {
    PyObject *cls = (PyObject *)Py_TYPE(f), *name = NULL;
    if (!psb_eval_own_class(m, cls) || !(name = PyUnicode_FromString("__call__")))
        return false;
    bool own = psb_eval_chosen(cls, name);
    Py_DECREF(name);
    return own;
}

/* Does the grant of the name say what is called? Of the plain types it does, and of what the source cannot have chosen. */
static bool named(PyObject *o, PyObject *name) { return plain_type(Py_TYPE(o)) || !psb_eval_chosen(o, name); }

/* object.__init_subclass__, which does nothing; the class that super() gives it is still being made. */
static bool ends_init_subclass(PyObject *f) {
    if (strcmp(((PyCFunctionObject *)f)->m_ml->ml_name, "__init_subclass__") != 0)
        return false;
    PyObject *end = PyObject_GetAttrString((PyObject *)&PyBaseObject_Type, "__init_subclass__");
    bool is = end && PyCFunction_Check(end) && ((PyCFunctionObject *)end)->m_ml == ((PyCFunctionObject *)f)->m_ml;
    PyErr_Clear();
    Py_XDECREF(end);
    return is;
}

PyObject *psb_eval_judged(psb_meter *m, PyObject *f, PyObject *const *args, Py_ssize_t n, PyObject *kwnames, PyObject *of, PyObject *attribute) {
    if (Py_TYPE(f) == &psb_bound_type || psb_eval_own_function(m, f) || own_method(m, f))
        return PyObject_Vectorcall(f, args, (size_t)n, kwnames);
    if (psb_eval_own_class(m, f))
        return psb_meter_charge(m, 200) < 0 ? NULL : PyObject_Vectorcall(f, args, (size_t)n, kwnames);
    if (PyCFunction_Check(f)) {
        PyObject *self = PyCFunction_GET_SELF(f);
        if (self && !PyModule_Check(self) && psb_eval_plain_self(self)) {
            const char *name = ((PyCFunctionObject *)f)->m_ml->ml_name;
            if (name[0] == '_' && name[1] == '_') { /* read by eval-magic; called as what it is */
                if (strcmp(name, "__format__") == 0)
                    return psb_eval_refuses("evaluated code may not call __format__; format() may"), NULL;
                if (strcmp(name, "__new__") == 0)
                    return psb_eval_new(m, f, args, n, kwnames);
            }
            return psb_eval_method(m, self, name, f, args, n, kwnames, false);
        }
        if (self && PyType_Check(self) && ends_init_subclass(f))
            return PyObject_Vectorcall(f, args, (size_t)n, kwnames);
        if (self && PyType_Check(self) && strcmp(((PyCFunctionObject *)f)->m_ml->ml_name, "__new__") == 0)
            return psb_eval_new(m, f, args, n, kwnames);
        if (self && Py_IS_TYPE(self, &PyProperty_Type))
            return property(m, self, f, args, n, kwnames);
    } else if (Py_IS_TYPE(f, &PyMethodDescr_Type) && n) {
        PyMethodDescrObject *d = (PyMethodDescrObject *)f;
        if (PyObject_TypeCheck(args[0], d->d_common.d_type) && psb_eval_plain_self(args[0])) {
            PyObject *name = PyUnicode_FromString(d->d_method->ml_name);
            int rc = name ? psb_meter_attribute(m, name) : -1;
            Py_XDECREF(name);
            return rc < 0 ? NULL : psb_eval_method(m, args[0], d->d_method->ml_name, f, args + 1, n - 1, kwnames, true);
        }
    }
    if (psb_eval_is_wrapper(f))
        return psb_eval_wrapper(m, f, args, n, kwnames);
    if (callable_object(m, f))
        return PyObject_Vectorcall(f, args, (size_t)n, kwnames);
    int there = of && named(of, attribute) ? 1 : psb_eval_granted(m, f);
    if (there < 0)
        return NULL;
    if (!there && psb_eval_not_granted(m, f) < 0)
        return NULL;
    if (getter_names(m, f, args, n) < 0)
        return NULL;
    if (PyType_Check(f)) {
        const char *name = ((PyTypeObject *)f)->tp_name;
        if (psb_eval_builtin_type((PyTypeObject *)f))
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
    if (++m->depth > m->depth_most)
        m->depth_most = m->depth;
    PyObject *result = psb_eval_judged(m, f, args, n, kwnames, NULL, NULL);
    m->depth--;
    return result;
}

PyObject *psb_eval_read(psb_meter *m, PyObject *o, PyObject *name) {
    return psb_meter_step(m) < 0 || psb_meter_attribute(m, name) < 0 ? NULL : psb_eval_value(m, o, name);
}

PyObject *psb_eval_value(psb_meter *m, PyObject *o, PyObject *name) {
    PyObject *value = PyObject_GetAttr(o, name);
    if (value && PyModule_Check(value) && psb_eval_module(m, o, name, value) < 0)
        Py_CLEAR(value);
    /* str.format walks attributes wherever it is called, so it leaves here only as one that checks them */
    if (value && (PyCFunction_Check(value) || Py_IS_TYPE(value, &PyMethodDescr_Type))) {
        const char *n = PyCFunction_Check(value) ? ((PyCFunctionObject *)value)->m_ml->ml_name : ((PyMethodDescrObject *)value)->d_method->ml_name;
        if (strcmp(n, "format") == 0 || strcmp(n, "format_map") == 0)
            Py_SETREF(value, make(m, value, NULL));
    }
    return value;
}
