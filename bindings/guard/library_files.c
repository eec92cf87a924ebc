/* Functions by which a C library opens files, or does worse, without an event: shared memory and semaphores, catalogs of messages,
 * the maps of perf, and switches of SQLite that let SQL call machine code.
 *
 * What the verdict depends on is made exact first, and that is what the original gets.
 */
#include "guard.h"

#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

/* Where the argument stands, or -1. */
static Py_ssize_t place(Py_ssize_t n, PyObject *kwnames, Py_ssize_t at, const char *keyword) {
    if (at < n)
        return at;
    for (Py_ssize_t k = 0; kwnames && k < PyTuple_GET_SIZE(kwnames); k++)
        if (PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(kwnames, k), keyword) == 0)
            return n + k;
    return -1;
}

static int judge(const char *path, int need, const char *event) {
    PyObject *o = PyUnicode_DecodeFSDefault(path);
    int rc = o ? psb_file_object(o, -1, need, true, false, event) : -1;
    Py_XDECREF(o);
    return rc;
}

/* A file of /dev/shm, by its own rule or by that of the folder: names are made up, so a refusal speaks of the folder. */
static int judge_shared(const char *prefix, PyObject *name, int need, const char *event) {
    static __thread char path[PSB_PATH_MAX], text[PSB_PATH_MAX];
    const char *s = PyUnicode_Check(name) ? PyUnicode_AsUTF8(name) : NULL;
    size_t len;
    bool allowed = false;
    PyErr_Clear(); /* no name: the original says so */
    if (s && snprintf(path, sizeof path, "/dev/shm/%s%s", prefix, s + strspn(s, "/")) < (int)sizeof path && !psb.learn &&
        psb_file_look(path, strlen(path), -1, need, true, text, &len, &allowed) && allowed && strncmp(text, "/dev/shm/", 9) == 0)
        return 0;
    return judge("/dev/shm", need, event);
}

/* ---- multiprocessing's semaphores: the type itself makes and opens them ---- */

static newfunc semaphore_original;

static PyObject *semaphore_new(PyTypeObject *type, PyObject *args, PyObject *kwds) {
    PyObject *name = PyTuple_GET_SIZE(args) > 3 ? PyTuple_GET_ITEM(args, 3) : kwds ? PyDict_GetItemString(kwds, "name") : NULL;
    if (psb.enforce && name && judge_shared("sem.", name, PSB_WRITE, "SemLock") < 0)
        return NULL;
    return semaphore_original(type, args, kwds);
}

int psb_guard_semaphore(PyObject *module) {
    const PyModuleDef *def = PyModule_GetDef(module);
    PyObject *type = def ? PyObject_GetAttrString(module, "SemLock") : NULL;
    PyErr_Clear();
    if (type && PyType_Check(type) && strcmp(((PyTypeObject *)type)->tp_name, "_multiprocessing.SemLock") == 0) {
        PyTypeObject *t = (PyTypeObject *)type;
        PyObject *rebuild = PyDict_GetItemString(t->tp_dict, "_rebuild"); /* borrowed */
        if (t->tp_new != semaphore_new) {
            semaphore_original = t->tp_new;
            t->tp_new = semaphore_new;
            PyType_Modified(t);
        }
        if (rebuild && Py_IS_TYPE(rebuild, &PyClassMethodDescr_Type) &&
            psb_patch(((PyMethodDescrObject *)rebuild)->d_method, DOOR_LIBRARY, -1, "m3") < 0) {
            Py_DECREF(type);
            return -1;
        }
    }
    Py_XDECREF(type);
    return 0;
}

/* ---- by kind of door ---- */

static PyObject *with(PyObject *value, Py_ssize_t at, const psb_original *original, PyObject *const *args, Py_ssize_t n, PyObject *kwnames) {
    PyObject *copy[8];
    Py_ssize_t total = n + (kwnames ? PyTuple_GET_SIZE(kwnames) : 0);
    if (!value || total > 8)
        return value ? psb_call_original(original, args, n, kwnames) : NULL; /* too many: the original says so */
    memcpy(copy, args, sizeof *copy * (size_t)total);
    copy[at] = value;
    PyObject *result = psb_call_original(original, copy, n, kwnames);
    Py_DECREF(value);
    return result;
}

/* _posixshmem.shm_open(path, flags, mode) */
static PyObject *shm_open_call(PSB_CALL) {
    Py_ssize_t name = place(n, kwnames, 0, "path"), flags = place(n, kwnames, 1, "flags");
    if (name < 0 || flags < 0 || !PyUnicode_Check(args[name]) || !PyIndex_Check(args[flags]))
        return psb_call_original(original, args, n, kwnames);
    PyObject *number = PyNumber_Index(args[flags]);
    int overflow = 0;
    long f = number ? PyLong_AsLongAndOverflow(number, &overflow) : -1;
    if (!number || judge_shared("", args[name], overflow ? PSB_WRITE : psb_open_need(f) & PSB_WRITE ? PSB_WRITE : PSB_READ, door->name) < 0) {
        Py_XDECREF(number);
        return NULL;
    }
    return with(number, flags, original, args, n, kwnames);
}

/* The name in an argument: of shared memory (s) or of a semaphore (m). */
static PyObject *shared_name(PSB_CALL) { /* the number of arguments is the original's to judge */
    Py_ssize_t at = door->spec[1] ? door->spec[1] - '0' : place(n, kwnames, 0, "path");
    if (at >= 0 && at < n + (kwnames ? PyTuple_GET_SIZE(kwnames) : 0) && PyUnicode_Check(args[at]) &&
        judge_shared(door->spec[0] == 'm' ? "sem." : "", args[at], PSB_WRITE, door->name) < 0)
        return NULL;
    return psb_call_original(original, args, n, kwnames);
}

/* Catalogs of libintl: FOLDER/LOCALE/LC_MESSAGES/DOMAIN.mo. A domain with a slash leads anywhere. */
static PyObject *catalog(PSB_CALL) {
    const char *s = n && PyUnicode_Check(args[0]) ? PyUnicode_AsUTF8(args[0]) : NULL;
    PyErr_Clear();
    if (s && strchr(s, '/') && psb_leads_anywhere(door->name) < 0)
        return NULL;
    if (door->spec[0] != 'f' || n != 2 || args[1] == Py_None)
        return psb_call_original(original, args, n, kwnames);
    PyObject *folder;
    if (!PyUnicode_FSConverter(args[1], &folder))
        return NULL;
    if (judge(PyBytes_AS_STRING(folder), PSB_READ, door->name) < 0) {
        Py_DECREF(folder);
        return NULL;
    }
    return with(folder, 1, original, args, n, kwnames);
}

/* sys.activate_stack_trampoline("perf"), 3.12 */
static PyObject *perf(PSB_CALL) {
    char path[64];
    snprintf(path, sizeof path, "/tmp/perf-%d.map", (int)getpid());
    return judge(path, PSB_WRITE, door->name) < 0 ? NULL : psb_call_original(original, args, n, kwnames);
}

/* sqlite3.Connection.setconfig(op, enable), 3.12: with the one switch SQL registers functions by their address, with the other
 * it loads libraries. */
static PyObject *configure(PSB_CALL) {
    (void)door;
    enum { FTS3_TOKENIZER = 1004, LOAD_EXTENSION = 1005 };
    if (!n || !PyIndex_Check(args[0]))
        return psb_call_original(original, args, n, kwnames);
    PyObject *op = PyNumber_Index(args[0]);
    int overflow = 0;
    long which = op ? PyLong_AsLongAndOverflow(op, &overflow) : -1;
    if (op && (which == FTS3_TOKENIZER || which == LOAD_EXTENSION) &&
        psb_call_check(psb_call_id("sqlite3.Connection.enable_load_extension", 40), "sqlite3.Connection.setconfig") < 0)
        Py_CLEAR(op);
    return with(op, 0, original, args, n, kwnames);
}

PyObject *psb_library_call(PSB_CALL) {
    if (!psb.enforce)
        return psb_call_original(original, args, n, kwnames);
    switch (door->spec[0]) {
    case 'o':
        return shm_open_call(door, original, args, n, kwnames);
    case 's':
    case 'm':
        return shared_name(door, original, args, n, kwnames);
    case 'f':
    case 'd':
        return catalog(door, original, args, n, kwnames);
    case 'p':
        return perf(door, original, args, n, kwnames);
    default:
        return configure(door, original, args, n, kwnames);
    }
}
