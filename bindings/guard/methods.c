/* Methods of C types that raise no event, or raise it too late. Their type cannot be changed from Python, and a program may
 * hold the method already: so the C function in the method's definition is replaced, once for the process.
 *
 * A definition whose calling convention is another one than the table's is of a Python that this guard does not know: the
 * guard does not start then.
 */
#include "guard.h"

#include <dirent.h>
#include <string.h>

typedef PyObject *(*method_type)(PyObject *, PyTypeObject *, PyObject *const *, size_t, PyObject *);

enum { ENTRY_STAT, ENTRY_IS_DIR, ENTRY_IS_FILE, LISTEN, CONNECT, CONNECT_EX, BIND, SENDTO, SENDMSG, CERT_CHAIN, VERIFY_LOCATIONS, N_METHODS };
static PyCFunction originals[N_METHODS];

/* ---- os.DirEntry: what a link in an exposed folder leads to, or a folder that became one since ---- */

/* The head of CPython's DirEntry, the same in 3.11 to 3.13 (Modules/posixmodule.c). */
typedef struct {
    PyObject_HEAD
    PyObject *name, *path, *stat, *lstat;
    unsigned char d_type;
    ino_t d_ino;
    int dir_fd;
} entry;

PyObject *psb_entry_name(PyObject *self) { return ((entry *)self)->name; }

static int judge_entry(PyObject *self, PyObject *const *args, size_t nargs, PyObject *kwnames, bool whole, const char *event) {
    entry *e = (entry *)self;
    if (!psb.enforce || e->stat)
        return 0;
    bool follow = e->d_type == DT_LNK || e->d_type == DT_UNKNOWN;
    for (Py_ssize_t k = 0; kwnames && k < PyTuple_GET_SIZE(kwnames); k++)
        if (PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(kwnames, k), "follow_symlinks") == 0 && args[nargs + (size_t)k] == Py_False)
            follow = false; /* any other false value is judged as if it were true */
    if (!follow && (!whole || e->lstat)) /* known already, or by the type that came with the name */
        return 0;
    return psb_file_object(e->path, e->dir_fd < 0 ? -1 : e->dir_fd, PSB_READ | PSB_UNHELD, follow, true, event);
}

static PyObject *entry_stat(PyObject *self, PyTypeObject *cls, PyObject *const *args, size_t nargs, PyObject *kwnames) {
    if (judge_entry(self, args, nargs, kwnames, true, "os.DirEntry.stat") < 0)
        return NULL;
    return ((method_type)(void *)originals[ENTRY_STAT])(self, cls, args, nargs, kwnames);
}

/* A link to what is not there is neither file nor folder. */
static PyObject *entry_is(int which, const char *event, PyObject *self, PyTypeObject *cls, PyObject *const *args, size_t nargs,
                          PyObject *kwnames) {
    if (judge_entry(self, args, nargs, kwnames, false, event) < 0) {
        if (!PyErr_ExceptionMatches(PyExc_FileNotFoundError))
            return NULL;
        PyErr_Clear();
        Py_RETURN_FALSE;
    }
    return ((method_type)(void *)originals[which])(self, cls, args, nargs, kwnames);
}

static PyObject *entry_is_dir(PyObject *self, PyTypeObject *cls, PyObject *const *args, size_t nargs, PyObject *kwnames) {
    return entry_is(ENTRY_IS_DIR, "os.DirEntry.is_dir", self, cls, args, nargs, kwnames);
}

static PyObject *entry_is_file(PyObject *self, PyTypeObject *cls, PyObject *const *args, size_t nargs, PyObject *kwnames) {
    return entry_is(ENTRY_IS_FILE, "os.DirEntry.is_file", self, cls, args, nargs, kwnames);
}

/* ---- _socket.socket: names are looked up before the event, and listen() has none ---- */

static PyObject *socket_listen(PyObject *self, PyObject *args) {
    return psb_net_listen(self) < 0 ? NULL : originals[LISTEN](self, args);
}

static PyObject *with_address(int which, const char *op, PyObject *self, PyObject *address) {
    PyObject *exact = psb_net_address(self, address), *result = NULL;
    if (exact && psb_net_name(op, self, exact) == 0)
        result = which == BIND ? originals[which](self, exact) : psb_connect_again(originals[which], self, exact);
    if (result && which == BIND)
        psb_net_bound(self, exact);
    Py_XDECREF(exact);
    return result;
}

static PyObject *socket_connect(PyObject *self, PyObject *address) { return with_address(CONNECT, "connect", self, address); }

static PyObject *socket_connect_ex(PyObject *self, PyObject *address) { return with_address(CONNECT_EX, "connect", self, address); }

static PyObject *socket_bind(PyObject *self, PyObject *address) { return with_address(BIND, "bind", self, address); }

/* The address is one of the arguments. */
static PyObject *with_address_at(int which, Py_ssize_t at, PyObject *self, PyObject *args) {
    Py_ssize_t n = PyTuple_GET_SIZE(args);
    PyObject *address = at >= 0 && at < n ? psb_net_address(self, PyTuple_GET_ITEM(args, at)) : NULL, *copy = NULL, *result = NULL;
    if (at < 0 || at >= n)
        return originals[which](self, args);
    if (address && address == PyTuple_GET_ITEM(args, at))
        copy = Py_NewRef(args);
    else if (address && (copy = PyTuple_New(n)))
        for (Py_ssize_t i = 0; i < n; i++)
            PyTuple_SET_ITEM(copy, i, Py_NewRef(i == at ? address : PyTuple_GET_ITEM(args, i)));
    if (copy && psb_net_name("sendto", self, address) == 0)
        result = originals[which](self, copy);
    Py_XDECREF(address);
    Py_XDECREF(copy);
    return result;
}

static PyObject *socket_sendto(PyObject *self, PyObject *args) {
    Py_ssize_t n = PyTuple_GET_SIZE(args);
    return with_address_at(SENDTO, n >= 2 ? n - 1 : -1, self, args);
}

static PyObject *socket_sendmsg(PyObject *self, PyObject *args) { return with_address_at(SENDMSG, 3, self, args); }

/* ---- ssl.SSLContext: OpenSSL opens the files ---- */

static PyObject *with_files(int which, const char *event, const char *const keywords[2], PyObject *self, PyObject *const *args,
                            Py_ssize_t nargs, PyObject *kwnames) {
    PyObject *copy[8], *owned[2] = {NULL, NULL}, *result = NULL;
    Py_ssize_t total = nargs + (kwnames ? PyTuple_GET_SIZE(kwnames) : 0);
    _PyCFunctionFastWithKeywords original = (_PyCFunctionFastWithKeywords)(void *)originals[which];
    if (!psb.enforce || total > 8) /* the originals take three */
        return original(self, args, nargs, kwnames);
    memcpy(copy, args, sizeof(PyObject *) * (size_t)total);
    for (int i = 0; i < 2; i++) {
        Py_ssize_t at = i < nargs ? i : -1;
        for (Py_ssize_t k = 0; at < 0 && kwnames && k < PyTuple_GET_SIZE(kwnames); k++)
            if (PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(kwnames, k), keywords[i]) == 0)
                at = nargs + k;
        PyObject *bytes;
        if (at < 0 || copy[at] == Py_None)
            continue;
        if (!PyUnicode_FSConverter(copy[at], &bytes)) {
            if (!PyErr_ExceptionMatches(PyExc_TypeError))
                goto done;
            PyErr_Clear(); /* no path: the original says so in its own words, of something that cannot become one */
            copy[at] = Py_Ellipsis;
            continue;
        }
        copy[at] = owned[i] = bytes;
        if (psb_file_object(bytes, -1, PSB_READ, true, false, event) < 0)
            goto done;
    }
    result = original(self, copy, nargs, kwnames);
done:
    Py_XDECREF(owned[0]);
    Py_XDECREF(owned[1]);
    return result;
}

static PyObject *load_cert_chain(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    static const char *const keywords[2] = {"certfile", "keyfile"};
    return with_files(CERT_CHAIN, "ssl.SSLContext.load_cert_chain", keywords, self, args, nargs, kwnames);
}

static PyObject *load_verify_locations(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    static const char *const keywords[2] = {"cafile", "capath"};
    return with_files(VERIFY_LOCATIONS, "ssl.SSLContext.load_verify_locations", keywords, self, args, nargs, kwnames);
}

/* ---- the table ---- */

#define F(f) ((PyCFunction)(void *)(f))
static const struct {
    const char *module, *type, *method;
    int flags, original;
    PyCFunction guarded;
} METHODS[] = {
    {"posix", "DirEntry", "stat", METH_METHOD | METH_FASTCALL | METH_KEYWORDS, ENTRY_STAT, F(entry_stat)},
    {"posix", "DirEntry", "is_dir", METH_METHOD | METH_FASTCALL | METH_KEYWORDS, ENTRY_IS_DIR, F(entry_is_dir)},
    {"posix", "DirEntry", "is_file", METH_METHOD | METH_FASTCALL | METH_KEYWORDS, ENTRY_IS_FILE, F(entry_is_file)},
    {"_socket", "socket", "listen", METH_VARARGS, LISTEN, F(socket_listen)},
    {"_socket", "socket", "connect", METH_O, CONNECT, F(socket_connect)},
    {"_socket", "socket", "connect_ex", METH_O, CONNECT_EX, F(socket_connect_ex)},
    {"_socket", "socket", "bind", METH_O, BIND, F(socket_bind)},
    {"_socket", "socket", "sendto", METH_VARARGS, SENDTO, F(socket_sendto)},
    {"_socket", "socket", "sendmsg", METH_VARARGS, SENDMSG, F(socket_sendmsg)},
    {"_ssl", "_SSLContext", "load_cert_chain", METH_FASTCALL | METH_KEYWORDS, CERT_CHAIN, F(load_cert_chain)},
    {"_ssl", "_SSLContext", "load_verify_locations", METH_FASTCALL | METH_KEYWORDS, VERIFY_LOCATIONS, F(load_verify_locations)},
};

/* Something that lies in the library that the module came from. */
static const void *home(PyObject *module) {
    PyModuleDef *def = PyModule_GetDef(module);
    PyErr_Clear();
    return def;
}

static int guard_method(size_t i, PyObject *module) {
    PyObject *type = PyObject_GetAttrString(module, METHODS[i].type);
    PyObject *dict = type && PyType_Check(type) ? PyObject_GetAttrString(type, "__dict__") : NULL;
    PyObject *method = dict ? PyMapping_GetItemString(dict, METHODS[i].method) : NULL;
    int rc = 0;
    PyErr_Clear(); /* a program may have put anything into the module; its own type it cannot change */
    if (method && Py_IS_TYPE(method, &PyMethodDescr_Type)) {
        PyMethodDef *def = ((PyMethodDescrObject *)method)->d_method;
        if (def->ml_meth == METHODS[i].guarded) {
            rc = 0;
        } else if (!psb_types_own(method, (PyTypeObject *)type, (void *)def->ml_meth, home(module))) {
            rc = 0; /* another extension's type, which a program has put there */
        } else if (def->ml_flags != METHODS[i].flags || (i < 3 && ((PyTypeObject *)type)->tp_basicsize != (Py_ssize_t)sizeof(entry))) {
            PyErr_Format(PyExc_RuntimeError, "pysandboxes: %s.%s.%s of this Python is not as the guard knows it", METHODS[i].module,
                         METHODS[i].type, METHODS[i].method);
            rc = -1;
        } else {
            originals[METHODS[i].original] = def->ml_meth;
            def->ml_meth = METHODS[i].guarded;
        }
    }
    Py_XDECREF(method);
    Py_XDECREF(dict);
    Py_XDECREF(type);
    return rc;
}

int psb_guard_methods(const char *name, PyObject *module) {
    for (size_t i = 0; i < sizeof METHODS / sizeof *METHODS; i++)
        if (strcmp(METHODS[i].module, name) == 0 && guard_method(i, module) < 0)
            return -1;
    return 0;
}
