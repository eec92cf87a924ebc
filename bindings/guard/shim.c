/* Shims: objects that stand in a function's place, judge the call, and pass it on.
 *
 * The original is kept in a C field that nothing in Python can read: no attribute, no closure, no gc traversal, and the
 * original itself is taken out of the collector's lists so that gc.get_objects() does not name it.
 */
#include "guard.h"

#include <fcntl.h>
#include <limits.h>
#include <string.h>

typedef struct {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    PyObject *original; /* owned, never handed out */
    PyObject *name, *qualname, *module, *doc, *self, *signature; /* what the original has of these; self only where a module */
    PyObject *weakrefs;
    enum psb_shim_kind kind;
    int call;
    const char *spec;
} shim;

static PyTypeObject shim_type;

bool psb_is_shim(PyObject *o) { return Py_TYPE(o) == &shim_type; }

/* A new reference to path as exact str or bytes, or to path itself where it is a descriptor, None, or no path at all: then
 * the original says so in its own words. NULL with an exception. */
static PyObject *plain_path(shim *s, PyObject *path) {
    if (PyLong_Check(path) || path == Py_None || PyUnicode_CheckExact(path) || PyBytes_CheckExact(path))
        return Py_NewRef(path);
    PyObject *plain;
    if (PyUnicode_Check(path)) {
        plain = PyUnicode_FromObject(path);
    } else if (PyObject_CheckBuffer(path) && !PyBytes_Check(path)) {
        bool fd = s->spec[0] == 'r' && PyUnicode_CompareWithASCIIString(s->name, "access") != 0;
        if (PyErr_WarnFormat(PyExc_DeprecationWarning, 1, "%U: path should be string, bytes%s, not %.200s", s->name,
                             fd ? ", os.PathLike or integer" : " or os.PathLike", Py_TYPE(path)->tp_name))
            return NULL;
        return PyBytes_FromObject(path);
    } else if (PyBytes_Check(path)) {
        plain = PyBytes_FromStringAndSize(PyBytes_AS_STRING(path), PyBytes_GET_SIZE(path));
    } else if (PyIndex_Check(path)) {
        plain = PyNumber_Index(path);
    } else {
        PyObject *fspath = PyObject_HasAttrString((PyObject *)Py_TYPE(path), "__fspath__") ? PyOS_FSPath(path) : Py_NewRef(path);
        if (!fspath || fspath == path)
            return fspath;
        plain = plain_path(s, fspath);
        Py_DECREF(fspath);
    }
    return plain;
}

/* Where the argument stands in a vectorcall, or -1. */
static Py_ssize_t place(Py_ssize_t n, PyObject *kwnames, Py_ssize_t at, const char *keyword) {
    if (at >= 0 && at < n)
        return at;
    for (Py_ssize_t k = 0; keyword[0] && kwnames && k < PyTuple_GET_SIZE(kwnames); k++)
        if (PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(kwnames, k), keyword) == 0)
            return n + k;
    return -1;
}

#define ARGUMENTS_MAX 16
typedef struct {
    PyObject *args[ARGUMENTS_MAX + 1], *owned[ARGUMENTS_MAX];
    int n_owned;
} copied;

/* Puts a new reference in an argument's place. */
static bool put(copied *c, Py_ssize_t at, PyObject *value) {
    if (!value)
        return false;
    if (value == c->args[at] || c->n_owned == ARGUMENTS_MAX) {
        Py_DECREF(value);
        return value == c->args[at];
    }
    c->args[at] = c->owned[c->n_owned++] = value;
    return true;
}

/* A number is taken once, as an exact int: __index__ cannot answer the check and the call differently. -1 in *value where
 * there is none; *odd where it is nothing that the original takes. */
static bool number(copied *c, Py_ssize_t at, long *value, bool *odd) {
    *value = -1;
    if (at < 0 || c->args[at] == Py_None)
        return true;
    if (!PyIndex_Check(c->args[at])) {
        *odd = true;
        return true;
    }
    if (!put(c, at, PyNumber_Index(c->args[at])))
        return false;
    int overflow;
    *value = PyLong_AsLongAndOverflow(c->args[at], &overflow);
    *odd |= overflow || *value > INT_MAX || *value < INT_MIN;
    return true;
}

/* One path of the spec at *spec, which moves past it. */
static bool judge_path(shim *s, copied *c, Py_ssize_t n, PyObject *kwnames, const char **spec, bool *opens) {
    char what = *(*spec)++, keyword[32] = "";
    Py_ssize_t at = **spec ? *(*spec)++ - '0' : 0;
    if ((*spec)[0] == 'd' && (*spec)[1] == '=') {
        size_t k = 0;
        for (*spec += 2; **spec && **spec != ' ' && k < sizeof keyword - 1; ++*spec)
            keyword[k++] = **spec;
        keyword[k] = 0;
    }
    while (**spec == ' ')
        ++*spec;
    Py_ssize_t slot = place(n, kwnames, at, at ? "dst" : what == 'n' ? "database" : "path");
    if (slot < 0)
        return true; /* missing: the original complains, or means the working directory */
    long dir_fd, flags = 0;
    bool odd = false;
    if (!number(c, place(n, kwnames, -1, keyword), &dir_fd, &odd))
        return false;
    if (what == 'p') {
        long mode;
        if (dir_fd < 0) /* the event says it all */
            return true;
        if (!number(c, place(n, kwnames, 1, "flags"), &flags, &odd) || !number(c, place(n, kwnames, 2, "mode"), &mode, &odd))
            return false;
    }
    if (odd) /* the original says so in its own words */
        return true;
    if (!put(c, slot, plain_path(s, c->args[slot])))
        return false;
    PyObject *path = c->args[slot];
    if (!PyUnicode_Check(path) && !PyBytes_Check(path) && !PyLong_Check(path) && path != Py_None)
        return true; /* no path: the original says so in its own words */
    if (what == 'n') /* its event judges it */
        return true;
    bool follow = what == 'r' || what == 'o' || (what == 'p' && !(flags & O_NOFOLLOW));
    Py_ssize_t f = place(n, kwnames, -1, "follow_symlinks");
    if (f >= 0) {
        int yes = PyObject_IsTrue(c->args[f]);
        if (yes < 0 || !put(c, f, PyBool_FromLong(yes)))
            return false;
        follow &= yes;
    }
    int need = what == 'w' ? PSB_WRITE : what == 'p' ? psb_open_need(flags) : what == 'o' ? PSB_READ : PSB_READ | PSB_UNHELD;
    *opens = what == 'p';
    return psb_file_object(path, dir_fd < 0 || dir_fd > INT_MAX ? -1 : (int)dir_fd, need, follow, what == 'r' || what == 'l',
                           PyUnicode_AsUTF8(s->qualname)) == 0;
}

/* An error names the path as it was given, not what it was converted to. */
static void name_given(const copied *c, PyObject *const *args, Py_ssize_t total) {
    if (!PyErr_ExceptionMatches(PyExc_OSError))
        return;
    PyObject *type, *value, *tb;
    PyErr_Fetch(&type, &value, &tb);
    PyErr_NormalizeException(&type, &value, &tb);
    static const char *const attributes[] = {"filename", "filename2"};
    for (int i = 0; i < 2 && value && PyObject_TypeCheck(value, (PyTypeObject *)PyExc_OSError); i++) {
        PyObject *name = PyObject_GetAttrString(value, attributes[i]);
        for (Py_ssize_t k = 0; name && name != Py_None && k < total; k++)
            if (name == c->args[k] && name != args[k] && PyObject_CheckBuffer(args[k])) /* path objects are named as str, too */
                PyObject_SetAttrString(value, attributes[i], args[k]);
        Py_XDECREF(name);
    }
    PyErr_Clear();
    PyErr_Restore(type, value, tb);
}

/* Path functions. Everything that the verdict depends on is converted once, to exact types, and the converted values are
 * what the original gets: a PathLike cannot answer the check and the call differently. */
static PyObject *call_file(shim *s, PyObject *const *args, size_t nargsf, PyObject *kwnames) {
    Py_ssize_t n = PyVectorcall_NARGS(nargsf), total = n + (kwnames ? PyTuple_GET_SIZE(kwnames) : 0);
    if (!psb.enforce || total > ARGUMENTS_MAX) /* the originals take fewer */
        return PyObject_Vectorcall(s->original, args, nargsf, kwnames);
    if (s->spec[0] == 'p' && !kwnames && n >= 2 && (PyUnicode_CheckExact(args[0]) || PyBytes_CheckExact(args[0])))
        return PyObject_Vectorcall(s->original, args, nargsf, NULL); /* os.open of a plain path: its event says all there is */
    copied c;
    memcpy(c.args, args, sizeof(PyObject *) * (size_t)total);
    c.n_owned = 0;
    bool ok = true, opens = false;
    for (const char *spec = s->spec; ok && *spec;)
        ok = judge_path(s, &c, n, kwnames, &spec, &opens);
    PyObject *result = NULL;
    if (ok) {
        if (opens)
            psb_judged_open = c.args[place(n, kwnames, 0, "path")];
        result = PyObject_Vectorcall(s->original, c.args, (size_t)n, kwnames);
        psb_judged_open = NULL;
    }
    if (!result && c.n_owned)
        name_given(&c, args, total);
    while (c.n_owned)
        Py_DECREF(c.owned[--c.n_owned]);
    return result;
}

/* posix.mkdir. A folder that the start made because the profile names it with a slash at its end is there for the program
 * to make: the first time, that it exists is no error. */
static PyObject *call_mkdir(shim *s, PyObject *const *args, size_t nargsf, PyObject *kwnames) {
    PyObject *result = PyObject_Vectorcall(s->original, args, nargsf, kwnames);
    if (result || !psb.enforce || !PyVectorcall_NARGS(nargsf) || !PyErr_ExceptionMatches(PyExc_FileExistsError))
        return result;
    PyObject *type, *value, *tb, *bytes = NULL;
    static __thread char text[PSB_PATH_MAX];
    size_t len;
    PyErr_Fetch(&type, &value, &tb);
    if (PyUnicode_FSConverter(args[0], &bytes) &&
        psb_path_lexical(-1, PyBytes_AS_STRING(bytes), (size_t)PyBytes_GET_SIZE(bytes), text, &len) && psb_file_made(text, len)) {
        Py_XDECREF(type);
        Py_XDECREF(value);
        Py_XDECREF(tb);
        result = Py_NewRef(Py_None);
    } else {
        PyErr_Clear();
        PyErr_Restore(type, value, tb);
    }
    Py_XDECREF(bytes);
    return result;
}

/* posix.listdir for the import system. A folder that is not exposed itself but holds something that is (the script's, a
 * module that -m names) is shown to importlib with just those names, or it would find nothing there. */
static PyObject *call_listdir(shim *s, PyObject *const *args, size_t nargsf, PyObject *kwnames) {
    Py_ssize_t n = PyVectorcall_NARGS(nargsf);
    const char *path = n == 1 && !kwnames && PyUnicode_Check(args[0]) ? PyUnicode_AsUTF8(args[0]) : NULL;
    static __thread char text[PSB_PATH_MAX];
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

/* multiprocessing's semaphores are files in /dev/shm that libc makes: no event, and the kernel's refusal names no rule. */
static PyObject *call_semaphore(shim *s, PyObject *const *args, size_t nargsf, PyObject *kwnames) {
    PyObject *folder = psb.enforce ? PyUnicode_FromString("/dev/shm") : NULL;
    if (psb.enforce && (!folder || psb_file_object(folder, -1, PSB_WRITE, true, false, "SemLock") < 0)) {
        Py_XDECREF(folder);
        return NULL;
    }
    Py_XDECREF(folder);
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
    case SHIM_DYNAMIC:
        return psb_create_dynamic(s->original, s->call, args, nargsf, kwnames);
    case SHIM_MKDIR:
        return call_mkdir(s, args, nargsf, kwnames);
    case SHIM_LISTDIR:
        return call_listdir(s, args, nargsf, kwnames);
    case SHIM_SEMAPHORE:
        return call_semaphore(s, args, nargsf, kwnames);
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

static PyTypeObject shim_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "builtin_function_or_method",
    .tp_basicsize = sizeof(shim),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_DISALLOW_INSTANTIATION | Py_TPFLAGS_IMMUTABLETYPE,
    .tp_vectorcall_offset = offsetof(shim, vectorcall),
    .tp_call = PyVectorcall_Call,
    .tp_descr_get = shim_get,
    .tp_weaklistoffset = offsetof(shim, weakrefs),
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
    s->self = PyCFunction_Check(original) ? text_attribute(original, "__self__") : NULL;
    if (s->self && !PyModule_Check(s->self))
        Py_CLEAR(s->self);
    s->signature = PyFunction_Check(original) ? written_signature(original) : text_attribute(original, "__text_signature__");
    s->weakrefs = NULL;
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
