/* Shims: objects that stand in the place of a function that is written in Python (and of builtins.__import__, which the
 * interpreter passes by when it meets its own).
 *
 * The function is kept in a C field that nothing in Python can read: no attribute, no closure, no gc traversal, and in the
 * main interpreter the function itself is taken out of the collector's lists so that gc.get_objects() does not name it.
 */
#include "guard.h"

#include <string.h>
#include <structmember.h>

typedef struct {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    PyObject *function; /* owned, never handed out */
    PyObject *name, *qualname, *module, *doc, *self, *signature; /* what the function has of these; self only where a module */
    PyObject *weakrefs;
    psb_door door;
} shim;

static PyObject *shim_get(PyObject *self, PyObject *obj, PyObject *type);

/* Each interpreter has the type of its own; they have this function in common. */
bool psb_is_shim(PyObject *o) { return Py_TYPE(o)->tp_descr_get == shim_get; }

static PyObject *shim_vectorcall(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *kwnames) {
    psb_original original = {.function = ((shim *)self)->function};
    return psb_pass_door(&((shim *)self)->door, &original, args, PyVectorcall_NARGS(nargsf), kwnames);
}

/* Bound as a method where the original would be: a Python function in a class. */
static PyObject *shim_get(PyObject *self, PyObject *obj, PyObject *type) {
    (void)type;
    if (!obj || obj == Py_None || !PyFunction_Check(((shim *)self)->function))
        return Py_NewRef(self);
    return PyMethod_New(self, obj);
}

static PyObject *shim_reduce(PyObject *self, PyObject *Py_UNUSED(ignored)) { return Py_NewRef(((shim *)self)->qualname); }

static PyObject *shim_repr(PyObject *self) {
    shim *s = (shim *)self;
    if (PyFunction_Check(s->function))
        return PyUnicode_FromFormat("<function %U at %p>", s->qualname, self);
    return PyUnicode_FromFormat("<built-in function %U>", s->name);
}

static PyObject *shim_attribute(PyObject *self, void *closure) {
    PyObject *v = *(PyObject **)((char *)self + (size_t)(uintptr_t)closure);
    return Py_NewRef(v ? v : Py_None);
}

#define FIELD(f) ((void *)(uintptr_t)offsetof(shim, f))
static PyGetSetDef shim_getset[] = {
    {"__name__", shim_attribute, NULL, NULL, FIELD(name)},     {"__qualname__", shim_attribute, NULL, NULL, FIELD(qualname)},
    {"__module__", shim_attribute, NULL, NULL, FIELD(module)}, {"__doc__", shim_attribute, NULL, NULL, FIELD(doc)},
    {"__self__", shim_attribute, NULL, NULL, FIELD(self)},     {"__text_signature__", shim_attribute, NULL, NULL, FIELD(signature)},
    {NULL, NULL, NULL, NULL, NULL}};
static PyMethodDef shim_methods[] = {{"__reduce__", shim_reduce, METH_NOARGS, NULL}, {NULL, NULL, 0, NULL}};

static PyMemberDef shim_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(shim, vectorcall), READONLY, NULL},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(shim, weakrefs), READONLY, NULL},
    {NULL, 0, 0, 0, NULL}};

/* Only shims of sub-interpreters are tracked by the collector: they must end with their interpreter, and a function holds
 * its module's dict, which holds the shim. */
static int shim_traverse(PyObject *self, visitproc visit, void *arg) {
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(((shim *)self)->function);
    return 0;
}

static int shim_clear(PyObject *self) {
    (void)self; /* the module's dict and the function's globals are cleared: a shim never calls nothing */
    return 0;
}

static void shim_dealloc(PyObject *self) {
    shim *s = (shim *)self;
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    if (s->weakrefs)
        PyObject_ClearWeakRefs(self);
    PyObject *held[] = {s->function, s->name, s->qualname, s->module, s->doc, s->self, s->signature};
    PyObject_GC_Del(self);
    if (PyObject_IS_GC(held[0]) && !PyObject_GC_IsTracked(held[0]))
        PyObject_GC_Track(held[0]); /* as its own end expects it */
    for (size_t i = 0; i < sizeof held / sizeof *held; i++)
        Py_XDECREF(held[i]);
    Py_DECREF(type);
}

static PyType_Slot shim_slots[] = {{Py_tp_dealloc, shim_dealloc}, {Py_tp_call, PyVectorcall_Call}, {Py_tp_descr_get, shim_get},
                                   {Py_tp_repr, shim_repr},       {Py_tp_getset, shim_getset},     {Py_tp_methods, shim_methods},
                                   {Py_tp_members, shim_members},
                                   {Py_tp_traverse, shim_traverse}, {Py_tp_clear, shim_clear},     {0, NULL}};
static PyType_Spec shim_spec = {
    .name = "builtins.builtin_function_or_method",
    .basicsize = sizeof(shim),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_DISALLOW_INSTANTIATION | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = shim_slots,
};

/* The interpreter's own type, borrowed; it is kept where no Python code looks. */
static PyTypeObject *shim_type(void) {
    PyObject *dict = PyInterpreterState_GetDict(PyInterpreterState_Get());
    PyObject *type = dict ? PyDict_GetItemString(dict, "pysandboxes.shim") : NULL;
    if (!type && dict && (type = PyType_FromSpec(&shim_spec))) {
        int rc = PyDict_SetItemString(dict, "pysandboxes.shim", type);
        Py_DECREF(type);
        if (rc < 0)
            return NULL;
    }
    return (PyTypeObject *)type;
}

static PyObject *text_attribute(PyObject *o, const char *name) {
    PyObject *v = PyObject_GetAttrString(o, name);
    if (!v)
        PyErr_Clear();
    return v;
}

/* `(a, b=1, *c)` of a Python function, for inspect.signature(), which reads it as it reads those of C functions: the
 * function itself could not be shown to it, since a program may have replaced inspect. NULL, without an exception, where a
 * default is no plain value. */
static PyObject *written_signature(PyObject *function) {
    PyCodeObject *code = (PyCodeObject *)PyFunction_GetCode(function);
    PyObject *defaults = PyFunction_GetDefaults(function), *kwdefaults = PyFunction_GetKwDefaults(function); /* borrowed */
    PyObject *names = PyCode_GetVarnames(code), *parts = PyList_New(0), *text = NULL, *joined = NULL, *comma = NULL;
    int positional = code->co_argcount, all = positional + code->co_kwonlyargcount;
    bool variable = code->co_flags & CO_VARARGS, keywords = code->co_flags & CO_VARKEYWORDS;
    Py_ssize_t plain = positional - (defaults ? PyTuple_GET_SIZE(defaults) : 0);
    if (!names || !parts || PyTuple_GET_SIZE(names) < all + variable + keywords)
        goto done;
    for (int i = 0; i < all; i++) {
        PyObject *name = PyTuple_GET_ITEM(names, i), *value = NULL, *part;
        if (i == positional) {
            part = variable ? PyUnicode_FromFormat("*%U", PyTuple_GET_ITEM(names, all)) : PyUnicode_FromString("*");
            if (!part || PyList_Append(parts, part) < 0)
                goto done;
            Py_DECREF(part);
        }
        if (i < positional && i >= plain)
            value = PyTuple_GET_ITEM(defaults, i - plain);
        else if (i >= positional && kwdefaults)
            value = PyDict_GetItem(kwdefaults, name);
        if (value && value != Py_None && !PyBool_Check(value) && !PyLong_CheckExact(value) && !PyUnicode_CheckExact(value) &&
            !(PyTuple_CheckExact(value) && !PyTuple_GET_SIZE(value)))
            goto done;
        part = value ? PyUnicode_FromFormat("%U=%R", name, value) : Py_NewRef(name);
        if (!part || PyList_Append(parts, part) < 0)
            goto done;
        Py_DECREF(part);
        if (code->co_posonlyargcount && i == code->co_posonlyargcount - 1) {
            part = PyUnicode_FromString("/");
            if (!part || PyList_Append(parts, part) < 0)
                goto done;
            Py_DECREF(part);
        }
    }
    for (int i = all; i < all + variable + keywords; i++) {
        bool star = variable && i == all;
        if (star && all > positional) /* written before the keyword-only ones */
            continue;
        PyObject *part = PyUnicode_FromFormat(star ? "*%U" : "**%U", PyTuple_GET_ITEM(names, i));
        if (!part || PyList_Append(parts, part) < 0)
            goto done;
        Py_DECREF(part);
    }
    comma = PyUnicode_FromString(", ");
    joined = comma ? PyUnicode_Join(comma, parts) : NULL;
    text = joined ? PyUnicode_FromFormat("(%U)", joined) : NULL;
done:
    PyErr_Clear();
    Py_XDECREF(comma);
    Py_XDECREF(joined);
    Py_XDECREF(names);
    Py_XDECREF(parts);
    return text;
}

/* A shim lives as long as the module or class that it was put into. */
PyObject *psb_shim_new(enum psb_door_kind kind, PyObject *function, int call, const char *spec) {
    PyTypeObject *type = shim_type();
    shim *s = type ? PyObject_GC_New(shim, type) : NULL;
    if (!s)
        return NULL;
    s->vectorcall = shim_vectorcall;
    s->function = Py_NewRef(function);
    s->name = text_attribute(function, "__name__");
    s->qualname = text_attribute(function, "__qualname__");
    s->module = text_attribute(function, "__module__");
    s->doc = text_attribute(function, "__doc__");
    s->self = PyCFunction_Check(function) ? text_attribute(function, "__self__") : NULL;
    if (s->self && !PyModule_Check(s->self))
        Py_CLEAR(s->self);
    s->signature = PyFunction_Check(function) ? written_signature(function) : text_attribute(function, "__text_signature__");
    s->weakrefs = NULL;
    s->door = (psb_door){kind, call, spec, s->qualname && PyUnicode_Check(s->qualname) ? PyUnicode_AsUTF8(s->qualname) : NULL};
    if (!s->name || !s->door.name) {
        PyErr_Clear();
        PyErr_SetString(PyExc_SystemError, "a shimmed function has no name");
        Py_DECREF(s);
        return NULL;
    }
    if (PyInterpreterState_Get() != PyInterpreterState_Main())
        PyObject_GC_Track(s);
    else if (PyObject_IS_GC(function) && PyObject_GC_IsTracked(function))
        PyObject_GC_UnTrack(function);
    return (PyObject *)s;
}
