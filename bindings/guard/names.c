/* Names that ignore rules hide are in no list of a folder: os.listdir and os.scandir, by which os.walk, glob and pathlib list.
 *
 * Which names are hidden is the engine's to say, of many at once; the answers are kept by the text of the path. Nothing here
 * runs where the profile has no ignore rule (psb.ignore).
 *
 * What an iterator of os.scandir reads is the folder behind its own descriptor, whatever has become of the path since. A list
 * of os.listdir has none: the folder that its path leads to is looked up before the call and after it, and a name that is
 * hidden in either is left out.
 */
#include "guard.h"

#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#define AHEAD_MAX 4096                     /* names of a folder that are asked about before they are wanted */
#define ASKED_MAX 512                      /* names of one question: core/wire */
#define BYTES_MAX (PSB_MESSAGE_MAX - 9216) /* of their text and heads, beside the longest folder */

enum { SHOWN = 'L', HIDDEN = 'H' }; /* in the cache of answers */

static const char *join(PyObject *folder, PyObject *name, size_t *len) {
    static __thread char path[PSB_PATH_MAX];
    size_t f = (size_t)PyBytes_GET_SIZE(folder), n = (size_t)PyBytes_GET_SIZE(name);
    if (f == 1) /* the root */
        f = 0;
    if (f + n + 2 > sizeof path)
        return NULL;
    memcpy(path, PyBytes_AS_STRING(folder), f);
    path[f] = '/';
    memcpy(path + f + 1, PyBytes_AS_STRING(name), n);
    *len = f + 1 + n;
    path[*len] = 0;
    return path;
}

/* SHOWN, HIDDEN, or 0 where it has to be asked. A path that is too long to be asked about is not to be had by it either. */
static char known(PyObject *folder, PyObject *name) {
    size_t len;
    const char *path = join(folder, name, &len);
    if (!path)
        return HIDDEN;
    if (psb_file_allowed(path, len, PSB_READ) || psb_seen(SHOWN, path, len))
        return SHOWN;
    return psb_seen(HIDDEN, path, len) ? HIDDEN : 0;
}

/* Asks about the names that `asked` counts, from the first to the last of them. */
static int ask(PyObject *folder, PyObject *names, const Py_ssize_t *asked, uint32_t n, char *verdicts) {
    mp_writer w = {0};
    psb_question(&w, "hidden", 2, true);
    mp_bin(&w, PyBytes_AS_STRING(folder), (size_t)PyBytes_GET_SIZE(folder));
    mp_array(&w, n);
    for (uint32_t i = 0; i < n; i++) {
        PyObject *name = PyList_GET_ITEM(names, asked[i]);
        mp_bin(&w, PyBytes_AS_STRING(name), (size_t)PyBytes_GET_SIZE(name));
    }
    psb_answer a;
    psb_ask(&w, &a);
    if (!a.allow)
        return psb_raise(&a, NULL);
    bool whole = a.message.n == n;
    for (uint32_t i = 0; i < n; i++) {
        char verdict = whole && a.message.s[i] == '+' ? SHOWN : HIDDEN;
        size_t len;
        const char *path = join(folder, PyList_GET_ITEM(names, asked[i]), &len);
        verdicts[asked[i]] = verdict;
        if (path && whole)
            psb_remember(verdict, path, len);
    }
    psb_answer_free(&a);
    return 0;
}

/* A verdict for each of the names, which are bytes. */
static int judge(PyObject *folder, PyObject *names, char *verdicts) {
    Py_ssize_t asked[ASKED_MAX], n = 0;
    size_t bytes = 0;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(names); i++) {
        size_t size = (size_t)PyBytes_GET_SIZE(PyList_GET_ITEM(names, i)) + 8;
        if ((verdicts[i] = known(folder, PyList_GET_ITEM(names, i))))
            continue;
        if (n && (bytes + size > BYTES_MAX || n == ASKED_MAX)) {
            if (ask(folder, names, asked, (uint32_t)n, verdicts) < 0)
                return -1;
            n = 0;
            bytes = 0;
        }
        asked[n++] = i;
        bytes += size;
    }
    return n ? ask(folder, names, asked, (uint32_t)n, verdicts) : 0;
}

/* New references, or NULL with an exception. */
static PyObject *as_bytes(PyObject *name) { return PyBytes_Check(name) ? Py_NewRef(name) : PyUnicode_EncodeFSDefault(name); }

static PyObject *all_as_bytes(PyObject *names) {
    PyObject *all = PyList_New(PyList_GET_SIZE(names));
    for (Py_ssize_t i = 0; all && i < PyList_GET_SIZE(names); i++) {
        PyObject *name = as_bytes(PyList_GET_ITEM(names, i));
        if (name)
            PyList_SET_ITEM(all, i, name);
        else
            Py_CLEAR(all);
    }
    return all;
}

/* ---- os.listdir ---- */

/* The folder that the argument of listdir leads to, as bytes; None where there is none. */
static PyObject *folder_of(PyObject *path) {
    static __thread char literal[PSB_PATH_MAX], text[PSB_PATH_MAX];
    size_t len;
    bool found = false;
    if (path && PyLong_Check(path)) {
        int overflow;
        long fd = PyLong_AsLongAndOverflow(path, &overflow);
        found = !overflow && fd >= -1 && fd <= INT32_MAX && psb_path_lexical((int)fd, ".", 1, text, &len);
    } else if (!path || path == Py_None) {
        found = psb_path_lexical(-1, ".", 1, text, &len);
    } else if (PyUnicode_CheckExact(path) || PyBytes_CheckExact(path)) {
        PyObject *bytes = as_bytes(path);
        if (!bytes)
            return NULL;
        size_t n = strnlen(PyBytes_AS_STRING(bytes), (size_t)PyBytes_GET_SIZE(bytes));
        found = psb_path_literal(-1, PyBytes_AS_STRING(bytes), n, literal, &len) && psb_path_resolve(literal, true, text, &len);
        Py_DECREF(bytes);
    }
    return found ? PyBytes_FromStringAndSize(text, (Py_ssize_t)len) : Py_NewRef(Py_None);
}

/* Takes out of the list, a new one that nobody else has, what is hidden in the folder. */
static int take_out(PyObject *list, PyObject *folder) {
    Py_ssize_t count = PyList_GET_SIZE(list);
    PyObject *names = all_as_bytes(list);
    char *verdicts = names ? PyMem_Malloc((size_t)count + 1) : NULL;
    int rc = verdicts ? judge(folder, names, verdicts) : -1;
    if (!verdicts && !PyErr_Occurred())
        PyErr_NoMemory();
    for (Py_ssize_t i = count; rc == 0 && i-- > 0;)
        if (verdicts[i] == HIDDEN)
            rc = PyList_SetSlice(list, i, i + 1, NULL);
    PyMem_Free(verdicts);
    Py_XDECREF(names);
    return rc;
}

/* posix.listdir. One argument by whatever name, or none: what else there may be, the original says so. */
PyObject *psb_list_shown(PSB_CALL) {
    Py_ssize_t total = n + (kwnames ? PyTuple_GET_SIZE(kwnames) : 0);
    if (!psb.ignore || psb.learn || !psb.enforce || total > 1)
        return psb_call_original(original, args, n, kwnames);
    PyObject *path = total ? psb_plain_path(door, args[0]) : NULL, *before = NULL, *after = NULL, *list = NULL;
    if (total && !path)
        return NULL;
    before = folder_of(path);
    list = before ? psb_call_original(original, &path, n, kwnames) : NULL;
    if (list && PyList_CheckExact(list) && PyList_GET_SIZE(list)) {
        after = folder_of(path);
        int rc = after ? 0 : -1;
        if (rc == 0 && before == Py_None && after == Py_None) /* where is it, then? */
            rc = PyList_SetSlice(list, 0, PyList_GET_SIZE(list), NULL);
        if (rc == 0 && before != Py_None)
            rc = take_out(list, before);
        if (rc == 0 && after != Py_None && (before == Py_None || PyBytes_GET_SIZE(after) != PyBytes_GET_SIZE(before) ||
                                            memcmp(PyBytes_AS_STRING(after), PyBytes_AS_STRING(before), (size_t)PyBytes_GET_SIZE(after)) != 0))
            rc = take_out(list, after);
        if (rc < 0)
            Py_CLEAR(list);
    }
    Py_XDECREF(before);
    Py_XDECREF(after);
    Py_XDECREF(path);
    return list;
}

/* ---- os.scandir ---- */

/* CPython's ScandirIterator (Modules/posixmodule.c): a path_t, then these. */
typedef struct {
    PyObject_HEAD
#if PY_VERSION_HEX < 0x030D0000
    void *path[9];
#else
    void *path[11];
#endif
    DIR *folder;
    int fd;
} iterator;

static iternextfunc original_next;

/* Asks at once about all that is in the folder: a walk would else ask about each name. What fails here is asked later. */
static int ask_ahead(PyObject *folder, int fd) {
    static __thread uint64_t last; /* a folder with more names than the cache holds is read ahead once */
    uint64_t hash = psb_hash(PyBytes_AS_STRING(folder), (size_t)PyBytes_GET_SIZE(folder));
    if (hash == last)
        return 0;
    last = hash;
    int own = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = own < 0 ? NULL : fdopendir(own);
    PyObject *names = dir ? PyList_New(0) : NULL;
    int rc = dir && !names ? -1 : 0;
    for (struct dirent *e; names && rc == 0 && PyList_GET_SIZE(names) < AHEAD_MAX && (e = readdir(dir));) {
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
            continue;
        PyObject *name = PyBytes_FromString(e->d_name);
        rc = name ? PyList_Append(names, name) : -1;
        Py_XDECREF(name);
    }
    char *verdicts = names && rc == 0 ? PyMem_Malloc(AHEAD_MAX) : NULL;
    if (verdicts)
        rc = judge(folder, names, verdicts);
    PyMem_Free(verdicts);
    Py_XDECREF(names);
    if (dir)
        closedir(dir);
    else if (own >= 0)
        close(own);
    return rc;
}

/* -1 with an exception. */
static int hides(int fd, PyObject *entry) {
    static __thread char text[PSB_PATH_MAX];
    size_t len;
    if (!psb_path_lexical(fd, ".", 1, text, &len))
        return 1; /* a folder without a name: nobody can say what it hides */
    PyObject *folder = PyBytes_FromStringAndSize(text, (Py_ssize_t)len), *name = psb_entry_name(entry), *bytes = name ? as_bytes(name) : NULL;
    int verdict = -1;
    if (folder && bytes) {
        verdict = known(folder, bytes);
        if (!verdict && ask_ahead(folder, fd) < 0)
            verdict = -1;
        else if (!verdict && !(verdict = known(folder, bytes))) {
            PyObject *one = PyList_New(1);
            char answer = 0;
            if (one)
                PyList_SET_ITEM(one, 0, Py_NewRef(bytes));
            verdict = one && judge(folder, one, &answer) == 0 ? answer : -1;
            Py_XDECREF(one);
        }
    }
    Py_XDECREF(bytes);
    Py_XDECREF(folder);
    return verdict < 0 ? -1 : verdict != SHOWN;
}

static PyObject *next_shown(PyObject *self) {
    for (;;) {
        PyObject *entry = original_next(self);
        if (!entry || !psb.enforce || psb.learn)
            return entry;
        /* Another thread may have closed it meanwhile: then the number may be another folder's. */
        DIR *folder = ((iterator *)self)->folder;
        int hidden = folder ? hides(dirfd(folder), entry) : 1;
        if (hidden == 0)
            return entry;
        Py_DECREF(entry);
        if (hidden < 0)
            return NULL;
    }
}

/* posix.scandir. The type of what it returns stands in no module: it is guarded in each interpreter before its first iterator is
 * given away. */
PyObject *psb_scan_shown(PSB_CALL) {
    (void)door;
    PyObject *it = psb_call_original(original, args, n, kwnames);
    if (!it || !psb.ignore || Py_TYPE(it)->tp_iternext == next_shown)
        return it;
    PyTypeObject *type = Py_TYPE(it);
    PyModuleDef *home = original->self && PyModule_Check(original->self) ? PyModule_GetDef(original->self) : NULL;
    if (home && type->tp_basicsize == (Py_ssize_t)sizeof(iterator))
        psb_patch_slot(type, home, "__next__", (void **)&type->tp_iternext, (void **)&original_next, (void *)next_shown);
    if (type->tp_iternext != next_shown) {
        Py_DECREF(it);
        PyErr_SetString(PyExc_RuntimeError, "pysandboxes: os.scandir of this Python is not as the guard knows it, so ignore rules cannot hold");
        return NULL;
    }
    return it;
}
