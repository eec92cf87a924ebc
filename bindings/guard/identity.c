/* Is a code object what the file that it names holds?
 *
 * co_filename is a claim: a loader of the program's own, code.replace() or a .pyc with a chosen name can claim any file. So
 * code that claims to be the standard library's is compared, once, with what the interpreter would load from that file: the
 * frozen module, the .pyc beside the source, or the source. What it was found to be is kept in the code object's extra
 * slot, which Python cannot see, which replace() does not copy, and which ends with the object.
 *
 * Nothing that the program says is trusted on the way: not sys.pycache_prefix, not sys.modules, not importlib. A file that
 * the profile lets the program write proves nothing: code from it is the program's.
 *
 * The GIL is held throughout. Reading a .pyc allocates, so the collector, and with it the program's finalizers, may run
 * in between: the tables are whole whenever that can happen, and a second comparison inside a first one fails.
 */
#include "guard.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <marshal.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#if PY_VERSION_HEX < 0x030C0000
#define PyUnstable_Eval_RequestCodeExtraIndex _PyEval_RequestCodeExtraIndex
#define PyUnstable_Code_GetExtra _PyCode_GetExtra
#define PyUnstable_Code_SetExtra _PyCode_SetExtra
#endif

/* ---- the mark: which file's content the code object is ---- */

#define FILES_MAX 8192 /* a standard library has about 2000; beyond it code counts as the program's */
static psb_text files[FILES_MAX];
static size_t n_files;
static psb_text nothing; /* the mark of what was compared and is not the file's */

static Py_ssize_t slot(void) {
    static Py_ssize_t of_main = -1;
    PyInterpreterState *here = PyInterpreterState_Get();
    if (here == PyInterpreterState_Main()) {
        if (of_main < 0)
            of_main = PyUnstable_Eval_RequestCodeExtraIndex(NULL);
        return of_main;
    }
    PyObject *own = PyInterpreterState_GetDict(here); /* borrowed; C code alone sees it */
    PyObject *known = own ? PyDict_GetItemString(own, "pysandboxes.identity") : NULL;
    if (known)
        return PyLong_AsSsize_t(known);
    Py_ssize_t index = own ? PyUnstable_Eval_RequestCodeExtraIndex(NULL) : -1;
    PyObject *number = PyLong_FromSsize_t(index);
    if (!number || PyDict_SetItemString(own, "pysandboxes.identity", number) < 0)
        index = -1;
    Py_XDECREF(number);
    return index;
}

/* NULL: not compared yet. A static code object of a frozen module is shared by interpreters, whose slots may differ: what is
 * not the address of an entry is no mark of ours. */
static const psb_text *mark_of(PyCodeObject *code) {
    Py_ssize_t at = slot();
    void *value = NULL;
    if (at < 0 || PyUnstable_Code_GetExtra((PyObject *)code, at, &value) < 0)
        return &nothing;
    const psb_text *mark = value;
    return mark == &nothing || (mark >= files && mark < files + FILES_MAX) ? mark : NULL;
}

static bool mark_one(PyCodeObject *code, const psb_text *mark) {
    Py_ssize_t at = slot();
    return at >= 0 && PyUnstable_Code_SetExtra((PyObject *)code, at, (void *)mark) == 0;
}

/* The code objects that stand in its constants are parts of it, and equal to parts of the file. */
static void mark_all(PyCodeObject *code, const psb_text *mark) {
    if (!mark_one(code, mark))
        return;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(code->co_consts); i++)
        if (PyCode_Check(PyTuple_GET_ITEM(code->co_consts, i)))
            mark_all((PyCodeObject *)PyTuple_GET_ITEM(code->co_consts, i), mark);
}

static const psb_text *entry(const char *s, size_t n) {
    psb_lock(); /* no Python runs below */
    psb_text *e = NULL;
    for (size_t i = 0; i < n_files && !e; i++)
        if (files[i].n == n && memcmp(files[i].s, s, n) == 0)
            e = &files[i];
    char *copy = !e && n_files < FILES_MAX ? malloc(n) : NULL;
    if (copy) {
        memcpy(copy, s, n);
        e = &files[n_files];
        *e = (psb_text){copy, n};
        n_files++;
    }
    psb_unlock();
    return e;
}

/* ---- the same code? ---- */

/* Python's own comparison looks at the inline caches of code that has run (3.11), and asks constants that could be of the
 * program's classes. */
static bool same_code(PyCodeObject *a, PyCodeObject *b, int depth);

/* A tuple's hash and comparison are those of its items. The compiler makes sets of few levels (email.message has one of pairs). */
static bool plain(PyObject *o, int levels) {
    if (PyTuple_CheckExact(o) && levels > 0) {
        for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(o); i++)
            if (!plain(PyTuple_GET_ITEM(o, i), levels - 1))
                return false;
        return true;
    }
    return PyUnicode_CheckExact(o) || PyLong_CheckExact(o) || PyBytes_CheckExact(o) || PyBool_Check(o) || o == Py_None;
}

static bool plain_items(PyObject *set) {
    PyObject *items = PySequence_List(set);
    bool all = items;
    for (Py_ssize_t i = 0; all && i < PyList_GET_SIZE(items); i++)
        all = plain(PyList_GET_ITEM(items, i), 4);
    Py_XDECREF(items);
    return all;
}

static bool same(PyObject *a, PyObject *b, int depth) {
    if (a == b)
        return true;
    if (Py_TYPE(a) != Py_TYPE(b) || depth > 200)
        return false;
    if (PyCode_Check(a))
        return same_code((PyCodeObject *)a, (PyCodeObject *)b, depth + 1);
    if (PyTuple_CheckExact(a)) {
        Py_ssize_t n = PyTuple_GET_SIZE(a);
        for (Py_ssize_t i = 0; i < n && PyTuple_GET_SIZE(b) == n; i++)
            if (!same(PyTuple_GET_ITEM(a, i), PyTuple_GET_ITEM(b, i), depth + 1))
                return false;
        return PyTuple_GET_SIZE(b) == n;
    }
    if (PyBytes_CheckExact(a))
        return PyBytes_GET_SIZE(a) == PyBytes_GET_SIZE(b) &&
               memcmp(PyBytes_AS_STRING(a), PyBytes_AS_STRING(b), (size_t)PyBytes_GET_SIZE(a)) == 0;
    if (PyFloat_CheckExact(a))
        return memcmp(&((PyFloatObject *)a)->ob_fval, &((PyFloatObject *)b)->ob_fval, sizeof(double)) == 0;
    if (PyComplex_CheckExact(a))
        return memcmp(&((PyComplexObject *)a)->cval, &((PyComplexObject *)b)->cval, sizeof(Py_complex)) == 0;
    if (PyUnicode_CheckExact(a))
        return PyUnicode_Compare(a, b) == 0;
    if (PyLong_CheckExact(a))
        return PyObject_RichCompareBool(a, b, Py_EQ) == 1;
    if (PyFrozenSet_CheckExact(a)) { /* its elements are hashed and compared: of plain types alone */
        if (!plain_items(a) || !plain_items(b))
            return false;
        return PyObject_RichCompareBool(a, b, Py_EQ) == 1;
    }
    return false;
}

static bool same_code(PyCodeObject *a, PyCodeObject *b, int depth) {
    const int marked = CO_ITERABLE_COROUTINE; /* types.coroutine() makes a copy with it */
    if (a == b)
        return true;
    if (a->co_firstlineno != b->co_firstlineno || a->co_argcount != b->co_argcount ||
        a->co_posonlyargcount != b->co_posonlyargcount || a->co_kwonlyargcount != b->co_kwonlyargcount ||
        a->co_stacksize != b->co_stacksize || a->co_nlocalsplus != b->co_nlocalsplus ||
        (a->co_flags | marked) != (b->co_flags | marked) || !same(a->co_name, b->co_name, depth) ||
        !same(a->co_qualname, b->co_qualname, depth) || !same(a->co_names, b->co_names, depth) ||
        !same(a->co_localsplusnames, b->co_localsplusnames, depth) ||
        !same(a->co_localspluskinds, b->co_localspluskinds, depth) || !same(a->co_exceptiontable, b->co_exceptiontable, depth) ||
        !same(a->co_linetable, b->co_linetable, depth))
        return false;
    PyObject *x = PyCode_GetCode(a), *y = PyCode_GetCode(b); /* without specialisation and instrumentation */
    bool equal = x && y && same(x, y, depth);
    Py_XDECREF(x);
    Py_XDECREF(y);
    return equal && same(a->co_consts, b->co_consts, depth);
}

/* Is code the whole (2), a part (1), or nothing (0) of tree? */
static int part_of(PyCodeObject *code, PyCodeObject *tree, int depth) {
    if (same_code(code, tree, 0))
        return 2;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tree->co_consts) && depth < 200; i++) {
        PyObject *o = PyTuple_GET_ITEM(tree->co_consts, i);
        if (PyCode_Check(o) && part_of(code, (PyCodeObject *)o, depth + 1))
            return 1;
    }
    return 0;
}

/* ---- what the file holds ---- */

/* What the guard itself hands to marshal and to the compiler: the events of that are its own. They are known by the content,
 * so whoever else raises one with the very bytes of a file of the standard library makes nothing but that file's code. */
static __thread PyObject *own_bytes;
static __thread Py_ssize_t own_from;

bool psb_own_event(PyObject *args) {
    if (!own_bytes || !args || !PyTuple_Check(args) || !PyTuple_GET_SIZE(args) || !PyBytes_CheckExact(PyTuple_GET_ITEM(args, 0)))
        return false;
    PyObject *b = PyTuple_GET_ITEM(args, 0);
    Py_ssize_t n = PyBytes_GET_SIZE(own_bytes) - own_from;
    return PyBytes_GET_SIZE(b) == n && memcmp(PyBytes_AS_STRING(b), PyBytes_AS_STRING(own_bytes) + own_from, (size_t)n) == 0;
}

PyObject *psb_own_unmarshal(PyObject *bytes, Py_ssize_t from) {
    own_bytes = bytes;
    own_from = from;
    PyObject *o = PyMarshal_ReadObjectFromString(PyBytes_AS_STRING(bytes) + from, PyBytes_GET_SIZE(bytes) - from);
    own_bytes = NULL;
    return o;
}

static PyObject *unmarshal(PyObject *bytes, Py_ssize_t from) {
    PyObject *o = psb_own_unmarshal(bytes, from);
    if (o && !PyCode_Check(o))
        Py_CLEAR(o);
    return o;
}

static PyObject *compile(PyObject *source, const char *path) {
    own_bytes = source;
    own_from = 0;
    PyObject *name = PyUnicode_DecodeFSDefault(path), *o = NULL;
    if (name)
        o = Py_CompileStringObject(PyBytes_AS_STRING(source), name, Py_file_input, NULL, -1);
    Py_XDECREF(name);
    own_bytes = NULL;
    return o;
}

/* A name without ".." and the like, of a file that the program cannot write, by its letters or by where they lead. */
static bool kept_from_program(const char *path, size_t n) {
    static __thread char text[PSB_PATH_MAX];
    size_t len;
    return psb_path_lexical(-1, path, n, text, &len) && len == n && memcmp(text, path, n) == 0 && !psb_file_writable(path, n) &&
           psb_path_resolve(path, true, text, &len) && !psb_file_writable(text, len);
}

#define FILE_MAX_BYTES (32 << 20)

static PyObject *read_file(const char *path) {
    struct stat st;
    int fd = kept_from_program(path, strlen(path)) ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    PyObject *bytes = NULL;
    if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > 0 && st.st_size < FILE_MAX_BYTES) {
        bytes = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)st.st_size);
        size_t have = 0;
        while (bytes && have < (size_t)st.st_size) {
            ssize_t n = read(fd, PyBytes_AS_STRING(bytes) + have, (size_t)st.st_size - have);
            if (n > 0)
                have += (size_t)n;
            else
                Py_CLEAR(bytes); /* these are local files: no signal comes in between */
        }
    }
    if (fd >= 0)
        close(fd);
    return bytes;
}

static uint32_t little(const uint8_t *b) { return b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24; }

/* The header, as importlib reads it: the magic number; flags; time and size of the source. A .pyc that is checked by its
 * source's hash is passed over, for the source itself. */
static PyObject *read_pyc(const char *path, const char *source) {
    PyObject *bytes = read_file(path), *code = NULL;
    const uint8_t *b = bytes ? (const uint8_t *)PyBytes_AS_STRING(bytes) : NULL;
    if (b && PyBytes_GET_SIZE(bytes) > 16 && little(b) == (uint32_t)PyImport_GetMagicNumber()) {
        struct stat st;
        uint32_t flags = little(b + 4);
        bool right = flags == 1 || !source; /* by a hash that is not checked; without a source */
        if (flags == 0 && source && stat(source, &st) == 0)
            right = little(b + 8) == (uint32_t)st.st_mtime && little(b + 12) == (uint32_t)st.st_size;
        code = right ? unmarshal(bytes, 16) : NULL;
    }
    Py_XDECREF(bytes);
    return code;
}

static PyObject *read_cached(const char *path, size_t n) {
    static __thread char pyc[PSB_PATH_MAX];
    const char *slash = memrchr(path, '/', n);
    if (!slash || n < 4 || memcmp(path + n - 3, ".py", 3) != 0)
        return NULL;
_Pragma("GCC diagnostic push") _Pragma("GCC diagnostic ignored \"-Wdeprecated-declarations\"")
    int level = Py_OptimizeFlag;
_Pragma("GCC diagnostic pop")
    char optimized[24] = "";
    if (level > 0)
        snprintf(optimized, sizeof optimized, ".opt-%d", level);
    int len = snprintf(pyc, sizeof pyc, "%.*s/__pycache__/%.*s.cpython-%d%d%s.pyc", (int)(slash - path), path,
                       (int)(path + n - 3 - slash - 1), slash + 1, PY_MAJOR_VERSION, PY_MINOR_VERSION, optimized);
    return len > 0 && (size_t)len < sizeof pyc ? read_pyc(pyc, path) : NULL;
}

static PyObject *read_sourceless(const char *path, size_t n) {
    static __thread char pyc[PSB_PATH_MAX];
    int len = snprintf(pyc, sizeof pyc, "%.*sc", (int)n, path);
    return len > 0 && (size_t)len < sizeof pyc && access(path, F_OK) != 0 ? read_pyc(pyc, NULL) : NULL;
}

static PyObject *read_source(const char *path, size_t n) {
    (void)n;
    PyObject *source = read_file(path), *code = source ? compile(source, path) : NULL;
    Py_XDECREF(source);
    return code;
}

/* "<frozen NAME>", from the interpreter's own tables: PyImport_FrozenModules is what an embedding program adds. */
static PyObject *read_frozen(const char *path, size_t n) {
    static const char *const tables[] = {"_PyImport_FrozenBootstrap", "_PyImport_FrozenStdlib"};
    static const char bootstrap[] = "importlib._bootstrap", external[] = "importlib._bootstrap_external";
    const char *name = path + 8;
    size_t len = n - 9;
    if (len == sizeof bootstrap - 1 && memcmp(name, bootstrap, len) == 0)
        name = "_frozen_importlib", len = strlen(name);
    else if (len == sizeof external - 1 && memcmp(name, external, len) == 0)
        name = "_frozen_importlib_external", len = strlen(name);
    for (int i = 0; i < 2; i++) {
        const struct _frozen *const *table = dlsym(RTLD_DEFAULT, tables[i]);
        for (const struct _frozen *f = table ? *table : NULL; f && f->name; f++) {
            if (strlen(f->name) != len || memcmp(f->name, name, len) != 0)
                continue;
#if PY_VERSION_HEX < 0x030D0000
            /* The very objects that were loaded. In 3.12 they are the main interpreter's alone, others unmarshal the code; 3.11
             * has no other form. What PyCode_GetCode() keeps in an object must not be another interpreter's memory. */
            if (f->get_code && (PY_VERSION_HEX < 0x030C0000 || PyInterpreterState_Get() == PyInterpreterState_Main()))
                return f->get_code();
#endif
            if (!f->code)
                return NULL;
            PyObject *bytes = PyBytes_FromStringAndSize((const char *)f->code, f->size < 0 ? -f->size : f->size);
            PyObject *code = bytes ? unmarshal(bytes, 0) : NULL;
            Py_XDECREF(bytes);
            return code;
        }
    }
    return NULL;
}

/* ---- the question ---- */

/* What was read last and may be asked about again: functions of a module whose own code has gone. */
#define KEPT 8
static struct {
    const psb_text *file;
    PyObject *tree; /* owned */
} kept[KEPT];

static void keep(const psb_text *file, PyObject *tree) {
    static unsigned next;
    if (PyInterpreterState_Get() != PyInterpreterState_Main())
        return;
    unsigned at = next++ % KEPT;
    PyObject *old = kept[at].tree;
    kept[at].tree = Py_NewRef(tree);
    kept[at].file = file;
    Py_XDECREF(old);
}

static int compare(PyCodeObject *code, PyObject *tree, const char *path, size_t n, bool fresh) {
    int found = part_of(code, (PyCodeObject *)tree, 0);
    const psb_text *file = found ? entry(path, n) : NULL;
    if (!file)
        return 0;
    mark_all(code, file);
    if (found == 1 && fresh)
        keep(file, tree);
    return 1;
}

static bool look(PyCodeObject *code, const char *path, size_t n) {
    static PyObject *(*const readers[])(const char *, size_t) = {read_cached, read_source, read_sourceless};
    bool frozen = n > 9 && memcmp(path, "<frozen ", 8) == 0;
    for (int i = 0; i < KEPT && PyInterpreterState_Get() == PyInterpreterState_Main(); i++) {
        if (kept[i].tree && kept[i].file->n == n && memcmp(kept[i].file->s, path, n) == 0) {
            PyObject *tree = Py_NewRef(kept[i].tree);
            int found = compare(code, tree, path, n, false);
            Py_DECREF(tree);
            if (found)
                return true;
        }
    }
    for (int i = 0; i < (frozen ? 1 : 3); i++) {
        PyObject *tree = frozen ? read_frozen(path, n) : readers[i](path, n);
        PyErr_Clear();
        int found = tree ? compare(code, tree, path, n, true) : 0;
        Py_XDECREF(tree);
        if (found)
            return true;
    }
    mark_one(code, &nothing);
    return false;
}

bool psb_code_never_verified(PyCodeObject *code) { return mark_one(code, &nothing); }

bool psb_code_verified(PyCodeObject *code) {
    static __thread bool busy;
    if (psb.phase == PSB_PHASE_BOOT) /* no code of the program has run that could forge one */
        return true;
    const psb_text *mark = mark_of(code);
    if (mark == &nothing || busy)
        return false;
    PyObject *type, *value, *tb;
    PyErr_Fetch(&type, &value, &tb);
    Py_ssize_t n;
    const char *path = PyUnicode_AsUTF8AndSize(code->co_filename, &n); /* valid as long as the name */
    bool yes = false;
    if (path && mark) {
        yes = mark->n == (size_t)n && memcmp(mark->s, path, (size_t)n) == 0; /* _fix_co_filename can give it another one */
    } else if (path && memchr(path, 0, (size_t)n) == NULL) {
        PyObject *name = Py_NewRef(code->co_filename);
        busy = true;
        yes = look(code, path, (size_t)n);
        busy = false;
        Py_DECREF(name);
    }
    PyErr_Clear();
    PyErr_Restore(type, value, tb);
    return yes;
}
