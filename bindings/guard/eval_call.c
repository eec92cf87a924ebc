/* Calls and attribute reads of evaluated code. What may be called is decided by the object, when it is called: what the code
 * defined itself, what eval-call names, and methods of plain values whose name eval-attribute grants. */
#include "eval.h"

#include <string.h>

#if PY_VERSION_HEX >= 0x030D0000 /* an internal header has it since then */
PyAPI_FUNC(int) _PySet_NextEntry(PyObject *set, Py_ssize_t *pos, PyObject **key, Py_hash_t *hash);
#endif

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

/* Equal to the function that it stands for: as a key of a dict it finds what that finds. */
static PyObject *compare(PyObject *self, PyObject *other, int op) {
    PyObject *a = ((bound *)self)->f, *b = Py_TYPE(other) == &psb_bound_type ? ((bound *)other)->f : other;
    if (!a || !b || (op != Py_EQ && op != Py_NE))
        Py_RETURN_NOTIMPLEMENTED;
    return PyObject_RichCompare(a, b, op);
}

static Py_hash_t hash(bound *b) { return b->f ? PyObject_Hash(b->f) : 0; }

static PyObject *repr(bound *b) { return b->f ? PyObject_Repr(b->f) : PyUnicode_FromString("<cleared>"); }

PyTypeObject psb_bound_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "pysandboxes.EvaluatedCallable",
    .tp_basicsize = sizeof(bound),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION | Py_TPFLAGS_HAVE_VECTORCALL,
    .tp_vectorcall_offset = offsetof(bound, call),
    .tp_call = PyVectorcall_Call,
    .tp_repr = (reprfunc)repr,
    .tp_hash = (hashfunc)hash,
    .tp_richcompare = compare,
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

/* What does nothing but call: functions and what the standard library makes of them. Other callable objects are handed on as they are. */
bool psb_eval_is_function(PyObject *o) {
    static const char *const CALLS[] = {"functools.partial", "functools._lru_cache_wrapper", "operator.methodcaller", "operator.attrgetter", "method-wrapper", NULL};
    if (PyFunction_Check(o) || PyCFunction_Check(o) || PyMethod_Check(o) || Py_IS_TYPE(o, &PyMethodDescr_Type) || Py_IS_TYPE(o, &PyWrapperDescr_Type))
        return true;
    if (!PyCallable_Check(o) || PyType_Check(o))
        return false;
    for (PyTypeObject *t = Py_TYPE(o); t; t = t->tp_base)
        for (const char *const *p = CALLS; *p; p++)
            if (strcmp(t->tp_name, *p) == 0)
                return true;
    return false;
}

/* An iterator of the interpreter's or of itertools, or a generator of the source: it may have no end, so that who is handed it would never
 * come back, and functions may come out of it. Files and others of the host's are more than iterators, and stay what they are. */
static bool endless(psb_meter *m, PyObject *o) {
    const char *name = Py_TYPE(o)->tp_name;
    if (!PyIter_Check(o))
        return false;
    if (PyGen_CheckExact(o))
        return psb_eval_own_generator(m, o);
    return Py_TYPE(o) == &psb_steps_type || strncmp(name, "itertools.", 10) == 0 || (!(Py_TYPE(o)->tp_flags & Py_TPFLAGS_HEAPTYPE) && !strchr(name, '.'));
}

/* A range is walked by whom it is given to, with nobody counting; as one that counts it would be a range no more. */
static int walked(psb_meter *m, PyObject *o) {
    Py_ssize_t n = PyRange_Check(o) ? PyObject_Size(o) : 0;
    if (n < 0)
        PyErr_Clear(); /* more than fit */
    if (n < 0 || n > m->iterations)
        return psb_meter_trip(m, "eval-max-iterations");
    m->iterations -= n;
    return 0;
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

static bool begins(PyObject *name, const char *with) {
    const char *text = name && PyUnicode_Check(name) ? PyUnicode_AsUTF8(name) : NULL;
    PyErr_Clear();
    return text && strncmp(text, with, strlen(with)) == 0;
}

/* string.Formatter walks the attributes that a text names, as str.format does. */
static int formatter(psb_meter *m, PyObject *f, PyObject *const *args, Py_ssize_t n) {
    PyObject *self = PyMethod_Check(f) ? PyMethod_GET_SELF(f) : NULL, *function = PyMethod_Check(f) ? PyMethod_GET_FUNCTION(f) : f;
    PyObject *name = NULL, *home = NULL;
    Py_ssize_t at = self ? 0 : 1;
    int rc = 0;
    if (!PyFunction_Check(function))
        return 0;
    name = ((PyFunctionObject *)function)->func_qualname;
    home = ((PyFunctionObject *)function)->func_module;
    if (!home || !PyUnicode_Check(home) || PyUnicode_CompareWithASCIIString(home, "string") != 0 || !begins(name, "Formatter."))
        return 0;
    PyObject *format = n > at ? args[at] : NULL;
    if (format && PyUnicode_CheckExact(format))
        rc = PyUnicode_CompareWithASCIIString(name, "Formatter.get_field") == 0 ? psb_eval_field(m, format) : psb_eval_fields(m, format);
    else
        rc = psb_eval_refuses("evaluated code may give string.Formatter an exact str by position only");
    return rc;
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

static int handed(psb_meter *m, PyObject *f) {
    return psb_eval_own_function(m, f) || own_method(m, f) ? 1 : psb_eval_granted(m, f);
}

#define MOST_DEEP 100
#define MOST_CONTAINERS 5000000 /* a fifth of a second */

/* Functions in lists, dicts and the like are called by whom they are given to as well. Their containers are the source's, or the host's,
 * and stay what they are: with a function that the source could not call they are not handed on. */
static int holds_none(psb_meter *m, PyObject *o, int depth, int64_t *left) {
    PyObject *key, *value;
    Py_ssize_t pos = 0;
    if (!(o = psb_eval_held(o))) /* a view is what its dict holds */
        return 0;
    bool row = PyList_CheckExact(o) || PyTuple_CheckExact(o), set = PyAnySet_CheckExact(o);
    Py_hash_t hash;
    int rc = 0;
    if (!row && !set && !PyDict_CheckExact(o)) {
        if (!depth || !psb_eval_is_function(o))
            return 0;
        rc = handed(m, o);
        return rc < 0 ? -1 : rc ? 0 : psb_eval_not_granted(m, o);
    }
    if (depth > MOST_DEEP || --*left < 0)
        return psb_meter_trip(m, "it handed on a container that is nested more than 100 deep or has more than five million parts");
    while (rc == 0 && row && pos < PySequence_Fast_GET_SIZE(o)) {
        value = PySequence_Fast_GET_ITEM(o, pos++);
        rc = psb_eval_scalar(value) ? 0 : holds_none(m, value, depth + 1, left);
    }
    while (rc == 0 && set && _PySet_NextEntry(o, &pos, &key, &hash))
        rc = psb_eval_scalar(key) ? 0 : holds_none(m, key, depth + 1, left);
    while (rc == 0 && !row && !set && PyDict_Next(o, &pos, &key, &value))
        rc = (psb_eval_scalar(key) || holds_none(m, key, depth + 1, left) == 0) && (psb_eval_scalar(value) || holds_none(m, value, depth + 1, left) == 0) ? 0 : -1;
    return rc;
}

PyObject *psb_eval_key(psb_meter *m, PyObject *key) {
    if (psb_eval_scalar(key))
        return Py_NewRef(key);
    if (psb_eval_whole(m, key, false) < 0 || walked(m, key) < 0)
        return NULL;
    if (psb_eval_is_function(key))
        return psb_eval_bind(m, key);
    PyObject *own = PyTuple_CheckExact(key) ? PyTuple_New(PyTuple_GET_SIZE(key)) : Py_NewRef(key);
    for (Py_ssize_t i = 0; own && own != key && i < PyTuple_GET_SIZE(key); i++) {
        PyObject *o = PyTuple_GET_ITEM(key, i), *part = psb_eval_is_function(o) ? psb_eval_bind(m, o) : Py_NewRef(o);
        if (!part)
            Py_CLEAR(own);
        else
            PyTuple_SET_ITEM(own, i, part);
    }
    return own;
}

/* A function of the context may call what it is given (functools.reduce): functions that the source could not call itself go in as
 * ones that are judged. */
static PyObject *foreign(psb_meter *m, PyObject *f, PyObject *const *args, Py_ssize_t n, PyObject *kwnames) {
    Py_ssize_t all = n + (kwnames ? PyTuple_GET_SIZE(kwnames) : 0), functions = 0;
    for (Py_ssize_t i = 0; i < all; i++) {
        if (psb_eval_scalar(args[i]))
            continue;
        int64_t left = MOST_CONTAINERS;
        if (walked(m, args[i]) < 0 || holds_none(m, args[i], 0, &left) < 0)
            return NULL;
        functions += endless(m, args[i]) || (psb_eval_is_function(args[i]) && !psb_eval_own_function(m, args[i]));
    }
    m->countdown = 1; /* nobody knows what it takes */
    if (!functions)
        return PyObject_Vectorcall(f, args, (size_t)n, kwnames);
    if (all > FEW)
        return psb_eval_refuses("evaluated code may not give a function so many arguments"), NULL;
    PyObject *own[FEW], *result = NULL;
    Py_ssize_t made = 0;
    for (; made < all; made++)
        if (!(own[made] = endless(m, args[made])    ? psb_steps(m, args[made], STEPS_HAND)
                          : psb_eval_is_function(args[made]) ? psb_eval_bind(m, args[made])
                                                    : Py_NewRef(args[made])))
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
    if (getter_names(m, f, args, n) < 0 || formatter(m, f, args, n) < 0)
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
