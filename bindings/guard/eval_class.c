/* Classes that evaluated code defines, and what it may set on them and on their objects.
 *
 * C calls dunder methods by itself, with nobody who judges the call. So a class of the source has as dunder names only functions
 * of the source, which are guarded, and plain values; and each such name needs eval-magic. Other names may hold anything: what
 * is read by them is judged when it is called (psb_eval_chosen). */
#include "eval.h"

#include <string.h>

bool psb_eval_own_class(psb_meter *m, PyObject *cls) {
    if (!PyType_Check(cls) || !(((PyTypeObject *)cls)->tp_flags & Py_TPFLAGS_HEAPTYPE) || !PyDict_GET_SIZE(m->classes))
        return false;
    PyObject *key = PyLong_FromVoidPtr(cls);
    bool own = key && PyDict_Contains(m->classes, key) == 1;
    Py_XDECREF(key);
    return own;
}

/* Classes of all evaluations, by address, as weak references: what one string defined another may be given. The GIL guards it. */
static PyObject *every;

static int remember(PyObject *cls) {
    PyObject *key = every || (every = PyDict_New()) ? PyLong_FromVoidPtr(cls) : NULL, *ref = key ? PyWeakref_NewRef(cls, NULL) : NULL;
    if (ref && PyDict_GET_SIZE(every) % 1024 == 1023) { /* those that are gone */
        PyObject *all = PyDict_Copy(every), *k, *r;
        for (Py_ssize_t pos = 0; all && PyDict_Next(all, &pos, &k, &r);) {
            PyObject *there = PyObject_CallNoArgs(r);
            if (there == Py_None && PyDict_DelItem(every, k) < 0)
                PyErr_Clear();
            Py_XDECREF(there);
        }
        Py_XDECREF(all);
        PyErr_Clear();
    }
    int rc = ref ? PyDict_SetItem(every, key, ref) : -1;
    Py_XDECREF(key);
    Py_XDECREF(ref);
    return rc;
}

/* Is it a class that some evaluation has made? */
static bool evaluated(PyObject *cls) {
    if (!every || !PyType_Check(cls) || !(((PyTypeObject *)cls)->tp_flags & Py_TPFLAGS_HEAPTYPE))
        return false;
    PyObject *key = PyLong_FromVoidPtr(cls), *ref = key ? PyDict_GetItemWithError(every, key) : NULL;
    PyObject *there = ref ? PyObject_CallNoArgs(ref) : NULL;
    bool yes = there == cls;
    Py_XDECREF(key);
    Py_XDECREF(there);
    return yes;
}

/* What the compiler itself puts into the body of a class, or type() into the class. */
static bool implicit(const char *name) {
    static const char *const NAMES[] = {"__name__", "__module__", "__qualname__", "__doc__", "__annotations__", "__static_attributes__", "__firstlineno__",
                                        "__classcell__", "__class__", "__dict__", "__weakref__", NULL};
    for (const char *const *p = NAMES; *p; p++)
        if (strcmp(*p, name) == 0)
            return true;
    return false;
}

static bool magic(PyObject *name) {
    return PyUnicode_GET_LENGTH(name) > 1 && PyUnicode_READ_CHAR(name, 0) == '_' && PyUnicode_READ_CHAR(name, 1) == '_';
}

/* The names of the body's code, which are all that it can put into the class. */
static int names(psb_meter *m, PyObject *function) {
    PyObject *all = PyObject_GetAttrString(PyFunction_GET_CODE(function), "co_names");
    int rc = all && PyTuple_Check(all) ? 0 : -1;
    for (Py_ssize_t i = 0; rc == 0 && i < PyTuple_GET_SIZE(all); i++) {
        PyObject *name = PyTuple_GET_ITEM(all, i);
        const char *text = magic(name) ? PyUnicode_AsUTF8(name) : "";
        if (!text || (*text && !implicit(text)))
            rc = text ? psb_meter_attribute(m, name) : -1;
    }
    Py_XDECREF(all);
    return rc;
}

static bool harmless(psb_meter *m, PyObject *value) {
    PyObject *inner = NULL;
    if (Py_IS_TYPE(value, &PyStaticMethod_Type) || Py_IS_TYPE(value, &PyClassMethod_Type)) {
        inner = PyObject_GetAttrString(value, "__func__");
        PyErr_Clear();
        bool own = inner && psb_eval_own_function(m, inner);
        Py_XDECREF(inner);
        return own;
    }
    return value == Py_None || PyUnicode_CheckExact(value) || PyTuple_CheckExact(value) || PyList_CheckExact(value) || PyLong_CheckExact(value) || PyBool_Check(value) ||
           psb_eval_own_function(m, value);
}

static int values(psb_meter *m, PyTypeObject *cls) {
    PyObject *all = PyObject_CallMethod(cls->tp_dict, "copy", NULL), *name, *value;
    int rc = all ? 0 : -1;
    for (Py_ssize_t pos = 0; rc == 0 && PyDict_Next(all, &pos, &name, &value);) {
        const char *text = PyUnicode_Check(name) ? PyUnicode_AsUTF8(name) : NULL;
        if (!text)
            rc = psb_eval_refuses("evaluated code may not define a class with such a name in it");
        else if (magic(name) && !implicit(text) && !harmless(m, value))
            rc = psb_eval_refuses("evaluated code may give a dunder name of a class a function of its own, a text, a number, a tuple, a list or None only");
    }
    Py_XDECREF(all);
    return rc;
}

static int base(psb_meter *m, PyObject *o) {
    if (o == (PyObject *)&PyBaseObject_Type || psb_eval_own_class(m, o))
        return 0;
    if (!PyType_Check(o) || !Py_IS_TYPE(o, &PyType_Type))
        return psb_eval_refuses("evaluated code may derive a class from classes without a metaclass only");
    PyTypeObject *t = (PyTypeObject *)o;
    if (PyType_IsSubtype(t, &PyType_Type) || (!(t->tp_flags & Py_TPFLAGS_HEAPTYPE) && !PyExceptionClass_Check(o)))
        return psb_eval_refuses("evaluated code may derive a class from its own, from exceptions and from classes of the context that eval-call names, and not from a type of the interpreter's");
    int there = psb_eval_granted(m, o);
    if (there == 1)
        return 0;
    return there < 0 ? -1 : psb_eval_not_granted(m, o);
}

static PyObject *original; /* builtins.__build_class__, found before code of the source runs; kept for good */

/* What a class statement calls. It stands in the builtins of the evaluation, where the statement looks for it. */
static PyObject *build(PyObject *Py_UNUSED(module), PyObject *const *a, Py_ssize_t n, PyObject *kwnames) {
    psb_meter *m = psb_meter_here();
    if (!m || psb_meter_step(m) < 0)
        return NULL;
    if (n < 2 || !psb_eval_own_function(m, a[0]) || !PyUnicode_Check(a[1]))
        return psb_eval_refuses("evaluated code may make classes by the class statement only"), NULL;
    for (Py_ssize_t i = 2; i < n; i++)
        if (base(m, a[i]) < 0)
            return NULL;
    for (Py_ssize_t i = 0; kwnames && i < PyTuple_GET_SIZE(kwnames); i++)
        if (PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(kwnames, i), "metaclass") == 0)
            return psb_eval_refuses("evaluated code may not give a class a metaclass"), NULL;
    if (names(m, a[0]) < 0 || psb_meter_charge(m, 4096) < 0)
        return NULL;
    if (m->depth >= m->depth_limit)
        return psb_meter_trip(m, "eval-max-call-depth"), NULL;
    m->depth++;
    m->making++;
    PyObject *cls = PyObject_Vectorcall(original, a, (size_t)n, kwnames);
    m->making--;
    m->depth--;
    if (!cls)
        return NULL;
    PyObject *key = PyLong_FromVoidPtr(cls);
    if (!Py_IS_TYPE(cls, &PyType_Type))
        psb_eval_refuses("evaluated code may not make a class that is no plain type");
    else if (key && values(m, (PyTypeObject *)cls) == 0 && PyDict_SetItem(m->classes, key, cls) == 0 && remember(cls) == 0) {
        Py_DECREF(key);
        return cls;
    }
    Py_XDECREF(key);
    Py_DECREF(cls);
    return NULL;
}

static PyMethodDef BUILD = {"__build_class__", (PyCFunction)(void *)build, METH_FASTCALL | METH_KEYWORDS, NULL};

int psb_eval_put_build_class(PyObject *into) {
    if (!original) {
        PyObject *module = PyImport_ImportModule("builtins");
        original = module ? PyObject_GetAttrString(module, "__build_class__") : NULL;
        Py_XDECREF(module);
    }
    PyObject *f = original ? PyCFunction_New(&BUILD, NULL) : NULL, *name = f ? PyUnicode_FromString("builtins") : NULL;
    int rc = name && PyDict_SetItemString(into, "__build_class__", f) == 0 && PyDict_SetItemString(into, "__name__", name) == 0 ? 0 : -1;
    Py_XDECREF(f);
    Py_XDECREF(name);
    return rc;
}

/* ---- where an attribute comes from ---- */

/* The class in an MRO that has the name; `after` NULL or the class to begin behind. Borrowed. */
static PyObject *holder(PyTypeObject *t, PyObject *after, PyObject *name, PyObject **value) {
    PyObject *mro = t->tp_mro;
    bool seen = !after;
    for (Py_ssize_t i = 0; mro && i < PyTuple_GET_SIZE(mro); i++) {
        PyObject *cls = PyTuple_GET_ITEM(mro, i);
        if (!seen) {
            seen = cls == after;
            continue;
        }
        if (!PyType_Check(cls))
            continue;
#if PY_VERSION_HEX >= 0x030C0000
        PyObject *dict = PyType_GetDict((PyTypeObject *)cls);
        *value = dict ? PyDict_GetItemWithError(dict, name) : NULL;
        Py_XDECREF(dict);
#else
        *value = ((PyTypeObject *)cls)->tp_dict ? PyDict_GetItemWithError(((PyTypeObject *)cls)->tp_dict, name) : NULL;
#endif
        if (*value)
            return cls;
    }
    return NULL;
}

static bool in_instance(PyObject *o, PyObject *name) {
    PyObject *dict = PyObject_GenericGetDict(o, NULL);
    bool there = dict && PyDict_Check(dict) && PyDict_Contains(dict, name) == 1;
    PyErr_Clear();
    Py_XDECREF(dict);
    return there;
}

/* Can the source have chosen what o.name is? Then the name's grant says nothing of what is called. */
bool psb_eval_chosen(PyObject *o, PyObject *name) {
    PyObject *value = NULL, *where;
    if (PyModule_Check(o))
        return false;
    if (PyType_Check(o)) {
        where = holder((PyTypeObject *)o, NULL, name, &value);
        return where && evaluated(where);
    }
    if (Py_IS_TYPE(o, &PySuper_Type)) {
        PyObject *cls = PyObject_GetAttrString(o, "__self_class__"), *after = PyObject_GetAttrString(o, "__thisclass__");
        PyErr_Clear();
        where = cls && after && PyType_Check(cls) ? holder((PyTypeObject *)cls, after, name, &value) : NULL;
        bool chosen = !where || evaluated(where);
        Py_XDECREF(cls);
        Py_XDECREF(after);
        return chosen;
    }
    where = holder(Py_TYPE(o), NULL, name, &value);
    if (where && (evaluated(where) || Py_TYPE(value)->tp_descr_set))
        return true; /* a member, a property: data, and no method */
    return (PyExceptionInstance_Check(o) || evaluated((PyObject *)Py_TYPE(o))) && in_instance(o, name);
}

/* ---- o.name = value ---- */

typedef struct {
    PyObject_HEAD
    psb_meter *meter; /* owned */
    PyObject *o;
} target;

/* What __init_subclass__ gets: a class that derives from one of the source's, and is not yet among them. */
static bool being_made(psb_meter *m, PyObject *o) {
    PyObject *bases = m->making && PyType_Check(o) && !((PyTypeObject *)o)->tp_subclasses ? ((PyTypeObject *)o)->tp_bases : NULL;
    bool own = false;
    for (Py_ssize_t i = 0; bases && !own && i < PyTuple_GET_SIZE(bases); i++)
        own = psb_eval_own_class(m, PyTuple_GET_ITEM(bases, i));
    return own;
}

static int assign(target *t, PyObject *name, PyObject *value) {
    psb_meter *m = t->meter;
    PyObject *found = NULL, *where = NULL;
    if (!t->o || psb_meter_step(m) < 0 || psb_meter_attribute(m, name) < 0)
        return -1;
    if (magic(name))
        return psb_eval_refuses("evaluated code may not set a dunder name");
    if (!psb_eval_own_class(m, t->o) && !being_made(m, t->o)) {
        if (!psb_eval_own_class(m, (PyObject *)Py_TYPE(t->o)))
            return psb_eval_refuses("evaluated code may set attributes of its own classes and of their objects only");
        if (Py_TYPE(t->o)->tp_setattro != PyObject_GenericSetAttr)
            return psb_eval_refuses("evaluated code may not set attributes of an object that sets them by code of its own");
        where = holder(Py_TYPE(t->o), NULL, name, &found);
        if (where && Py_TYPE(found)->tp_descr_set && !psb_eval_own_class(m, where) && !Py_IS_TYPE(found, &PyGetSetDescr_Type) &&
            !Py_IS_TYPE(found, &PyMemberDescr_Type))
            return psb_eval_refuses("evaluated code may not set an attribute that a class of the context sets by code of its own");
    }
    return psb_meter_charge(m, value ? 64 : 0) < 0 ? -1 : value ? PyObject_SetAttr(t->o, name, value) : PyObject_DelAttr(t->o, name);
}

static int traverse(target *t, visitproc visit, void *arg) {
    Py_VISIT((PyObject *)t->meter);
    Py_VISIT(t->o);
    return 0;
}

static int clear(target *t) {
    Py_CLEAR(t->o); /* assign() knows */
    return 0;
}

static void dealloc(target *t) {
    PyObject_GC_UnTrack(t);
    clear(t);
    Py_XDECREF((PyObject *)t->meter);
    PyObject_GC_Del(t);
}

static PyMappingMethods mapping = {.mp_ass_subscript = (objobjargproc)assign};

PyTypeObject psb_target_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "pysandboxes.EvaluatedTarget",
    .tp_basicsize = sizeof(target),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .tp_as_mapping = &mapping,
    .tp_traverse = (traverseproc)traverse,
    .tp_clear = (inquiry)clear,
    .tp_dealloc = (destructor)dealloc,
};

/* What stands in the place of o in `o.name = value`, written as an item of it. */
PyObject *psb_eval_target(psb_meter *m, PyObject *o) {
    target *t = PyObject_GC_New(target, &psb_target_type);
    if (!t)
        return NULL;
    t->meter = (psb_meter *)Py_NewRef((PyObject *)m);
    t->o = Py_NewRef(o);
    PyObject_GC_Track(t);
    return (PyObject *)t;
}
