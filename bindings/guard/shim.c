/* Shims: objects that stand in a function's place, judge the call, and pass it on.
 *
 * The original is kept in a C field that nothing in Python can read: no attribute, no closure, no gc traversal, and the
 * original itself is taken out of the collector's lists so that gc.get_objects() does not name it.
 */
#include "guard.h"

#include <fcntl.h>
#include <string.h>

typedef struct {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    PyObject *original; /* owned, never handed out */
    PyObject *name, *qualname, *module, *doc;
    enum psb_shim_kind kind;
    int call;
    const char *spec;
} shim;

static PyTypeObject shim_type;

bool psb_is_shim(PyObject *o) { return Py_TYPE(o) == &shim_type; }

/* The argument at `at` or under `keyword` (NULL: positional only). Borrowed. */
static PyObject *argument(PyObject *const *args, Py_ssize_t n, PyObject *kwnames, Py_ssize_t at, const char *keyword) {
    if (at >= 0 && at < n)
        return args[at];
    for (Py_ssize_t k = 0; keyword && kwnames && k < PyTuple_GET_SIZE(kwnames); k++)
        if (PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(kwnames, k), keyword) == 0)
            return args[n + k];
    return NULL;
}

/* Path functions. The path is converted once, to exact str or bytes, and the converted value is what the original gets:
 * a PathLike cannot answer the check and the call differently. */
static PyObject *call_file(shim *s, PyObject *const *args, size_t nargsf, PyObject *kwnames) {
    Py_ssize_t n = PyVectorcall_NARGS(nargsf), total = n + (kwnames ? PyTuple_GET_SIZE(kwnames) : 0);
    if (!psb.enforce || total > 16)
        return PyObject_Vectorcall(s->original, args, nargsf, kwnames);
    PyObject *copy[17];
    memcpy(copy, args, sizeof(PyObject *) * (size_t)total);
    PyObject *owned[2] = {NULL, NULL};
    PyObject *result = NULL;
    int nth = 0;
    for (const char *spec = s->spec; *spec && nth < 2; nth++) {
        char what = *spec++;
        Py_ssize_t at = *spec ? *spec++ - '0' : 0;
        char keyword[32] = "";
        if (spec[0] == 'd' && spec[1] == '=') {
            size_t k = 0;
            for (spec += 2; *spec && *spec != ' ' && k < sizeof keyword - 1; spec++)
                keyword[k++] = *spec;
            keyword[k] = 0;
        }
        while (*spec == ' ')
            spec++;
        Py_ssize_t slot = at < n ? at : -1;
        for (Py_ssize_t k = 0; slot < 0 && kwnames && k < PyTuple_GET_SIZE(kwnames); k++)
            if (PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(kwnames, k), at ? "dst" : "path") == 0)
                slot = n + k;
        if (slot < 0)
            continue; /* missing: the original complains, or means the working directory */
        PyObject *path = copy[slot];
        if (!PyLong_Check(path) && path != Py_None) {
            PyObject *plain = PyUnicode_CheckExact(path) || PyBytes_CheckExact(path) ? Py_NewRef(path) : PyOS_FSPath(path);
            if (!plain) { /* not a path at all: the original says so in its own words */
                PyErr_Clear();
                break;
            }
            if (PyUnicode_Check(plain) && !PyUnicode_CheckExact(plain))
                Py_SETREF(plain, PyUnicode_FromObject(plain));
            if (plain && PyBytes_Check(plain) && !PyBytes_CheckExact(plain))
                Py_SETREF(plain, PyBytes_FromStringAndSize(PyBytes_AS_STRING(plain), PyBytes_GET_SIZE(plain)));
            if (!plain)
                goto done;
            copy[slot] = owned[nth] = plain;
        }
        int dir_fd = -1;
        PyObject *d = keyword[0] ? argument(args, n, kwnames, -1, keyword) : NULL;
        if (d && PyLong_Check(d)) {
            dir_fd = (int)PyLong_AsLong(d);
            if (dir_fd == -1)
                PyErr_Clear();
        }
        bool follow = what != 'l' && what != 'w';
        PyObject *f = argument(args, n, kwnames, -1, "follow_symlinks");
        if (f && PyObject_IsTrue(f) == 0)
            follow = false;
        PyErr_Clear();
        if (psb_file_object(copy[slot], dir_fd, what == 'w' ? PSB_WRITE : PSB_READ, follow, what != 'w' && what != 'o',
                            PyUnicode_AsUTF8(s->qualname)) < 0)
            goto done;
    }
    result = PyObject_Vectorcall(s->original, copy, (size_t)n, kwnames);
done:
    Py_XDECREF(owned[0]);
    Py_XDECREF(owned[1]);
    return result;
}

/* posix.listdir for the import system. A folder that is not exposed itself but holds something that is (the script's, a
 * module that -m names) is shown to importlib with just those names, or it would find nothing there. */
static PyObject *call_listdir(shim *s, PyObject *const *args, size_t nargsf, PyObject *kwnames) {
    Py_ssize_t n = PyVectorcall_NARGS(nargsf);
    const char *path = n == 1 && !kwnames && PyUnicode_Check(args[0]) ? PyUnicode_AsUTF8(args[0]) : NULL;
    char text[PSB_PATH_MAX];
    size_t len;
    PyErr_Clear();
    if (path && psb.enforce && !psb.learn && psb_nearest_caller() == PSB_IMPORTLIB &&
        psb_path_lexical(-1, path, strlen(path), text, &len) && !psb_file_allowed(text, len, PSB_READ)) {
        psb_note_refused_folder(text, len);
        PyObject *names = psb_file_names(text, len);
        if (!names || PyList_GET_SIZE(names))
            return names;
        Py_DECREF(names);
    }
    return PyObject_Vectorcall(s->original, args, nargsf, kwnames);
}

/* A sensitive function: judged here, then its category carries to the doors behind it. */
static PyObject *call_call(shim *s, PyObject *const *args, size_t nargsf, PyObject *kwnames) {
    if (psb_call_check(s->call, PyUnicode_AsUTF8(s->qualname)) < 0)
        return NULL;
    psb_grant grant = {psb_grants, psb_call(s->call)->category, NULL, 0};
    psb_grants = &grant;
    PyObject *result;
    if (s->kind == SHIM_FORK_EXEC)
        result = psb_fork_exec(s->original, args, nargsf, kwnames);
    else
        result = PyObject_Vectorcall(s->original, args, nargsf, kwnames);
    psb_grants = grant.up;
    return result;
}

static PyObject *shim_vectorcall(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *kwnames) {
    shim *s = (shim *)self;
    switch (s->kind) {
    case SHIM_CALL:
    case SHIM_FORK_EXEC:
        return call_call(s, args, nargsf, kwnames);
    case SHIM_FILE:
        return call_file(s, args, nargsf, kwnames);
    case SHIM_ENV:
        if (PyVectorcall_NARGS(nargsf) >= 2 && psb_env_read(args[1]) < 0)
            return NULL;
        return PyObject_Vectorcall(s->original, args, nargsf, kwnames);
    case SHIM_IMPORT:
        return psb_import_call(s->original, args, nargsf, kwnames);
    case SHIM_FIND_AND_LOAD:
        return psb_find_and_load(s->original, args, nargsf, kwnames);
    case SHIM_CREATE:
        return psb_create_module(s->original, args, nargsf, kwnames);
    case SHIM_LISTDIR:
        return call_listdir(s, args, nargsf, kwnames);
    case SHIM_SOCKET:
        return psb_socket_init(s->original, args, nargsf, kwnames);
    }
    return NULL;
}

/* Bound as a method where the original would be: a Python function in a class. */
static PyObject *shim_get(PyObject *self, PyObject *obj, PyObject *type) {
    (void)type;
    if (!obj || obj == Py_None || !PyFunction_Check(((shim *)self)->original))
        return Py_NewRef(self);
    return PyMethod_New(self, obj);
}

static PyObject *shim_reduce(PyObject *self, PyObject *Py_UNUSED(ignored)) { return Py_NewRef(((shim *)self)->qualname); }

static PyObject *shim_repr(PyObject *self) {
    shim *s = (shim *)self;
    if (PyFunction_Check(s->original))
        return PyUnicode_FromFormat("<function %U at %p>", s->qualname, self);
    return PyUnicode_FromFormat("<built-in function %U>", s->name);
}

/* inspect.signature() asks for this; computed from the original, without showing it. */
static PyObject *shim_signature(PyObject *self, void *Py_UNUSED(closure)) {
    shim *s = (shim *)self;
    PyObject *modules = PyImport_GetModuleDict();
    PyObject *inspect = modules ? PyDict_GetItemString(modules, "inspect") : NULL;
    if (!inspect) {
        PyErr_SetString(PyExc_AttributeError, "__signature__");
        return NULL;
    }
    PyObject *text = PyObject_GetAttrString(s->original, "__text_signature__");
    if (!text)
        PyErr_Clear();
    Py_XDECREF(text);
    PyObject *signature = PyObject_CallMethod(inspect, "signature", "O", s->original);
    if (!signature) {
        PyErr_Clear();
        PyErr_SetString(PyExc_AttributeError, "__signature__");
    }
    return signature;
}

static PyObject *shim_attribute(PyObject *self, void *closure) {
    PyObject *v = *(PyObject **)((char *)self + (size_t)(uintptr_t)closure);
    return Py_NewRef(v ? v : Py_None);
}

#define FIELD(f) ((void *)(uintptr_t)offsetof(shim, f))
static PyGetSetDef shim_getset[] = {
    {"__name__", shim_attribute, NULL, NULL, FIELD(name)},     {"__qualname__", shim_attribute, NULL, NULL, FIELD(qualname)},
    {"__module__", shim_attribute, NULL, NULL, FIELD(module)}, {"__doc__", shim_attribute, NULL, NULL, FIELD(doc)},
    {"__signature__", shim_signature, NULL, NULL, NULL},       {NULL, NULL, NULL, NULL, NULL}};
static PyMethodDef shim_methods[] = {{"__reduce__", shim_reduce, METH_NOARGS, NULL}, {NULL, NULL, 0, NULL}};

static PyTypeObject shim_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "builtin_function_or_method",
    .tp_basicsize = sizeof(shim),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_DISALLOW_INSTANTIATION | Py_TPFLAGS_IMMUTABLETYPE,
    .tp_vectorcall_offset = offsetof(shim, vectorcall),
    .tp_call = PyVectorcall_Call,
    .tp_descr_get = shim_get,
    .tp_repr = shim_repr,
    .tp_getset = shim_getset,
    .tp_methods = shim_methods,
};

static PyObject *text_attribute(PyObject *o, const char *name) {
    PyObject *v = PyObject_GetAttrString(o, name);
    if (!v)
        PyErr_Clear();
    return v;
}

/* Shims live as long as the process: they are immortal by an extra reference, like the functions they stand for. */
PyObject *psb_shim_new(enum psb_shim_kind kind, PyObject *original, int call, const char *spec) {
    if (PyType_Ready(&shim_type) < 0)
        return NULL;
    shim *s = PyObject_New(shim, &shim_type);
    if (!s)
        return NULL;
    s->vectorcall = shim_vectorcall;
    s->original = Py_NewRef(original);
    s->name = text_attribute(original, "__name__");
    s->qualname = text_attribute(original, "__qualname__");
    s->module = text_attribute(original, "__module__");
    s->doc = text_attribute(original, "__doc__");
    s->kind = kind;
    s->call = call;
    s->spec = spec;
    if (!s->name || !s->qualname || !PyUnicode_Check(s->qualname)) {
        PyErr_SetString(PyExc_SystemError, "a shimmed function has no name");
        return NULL;
    }
    if (PyObject_IS_GC(original) && PyObject_GC_IsTracked(original))
        PyObject_GC_UnTrack(original);
    Py_INCREF(s);
    return (PyObject *)s;
}
