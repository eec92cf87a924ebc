/* Code that the import system has read from a file, told from code that it was handed.
 *
 * importlib executes what its loader gives it, and everything on that way is Python that a program can replace: a loader's
 * get_data or get_code, a module global of importlib, a path hook. So importlib at work is no reason to execute a code object;
 * that it stands in a file is. The two functions that make code for importlib are watched: where the bytes they are given
 * are the file's, what they return is marked in the code object's extra slot, which Python cannot see and which replace()
 * does not copy. `exec` looks for the mark.
 *
 * An entry of a zip archive is not compared (that takes zlib): the text that zipimport's own functions compile is marked unseen.
 * Its bytecode is not: bytecode that no compiler has made reads and writes memory as it likes. So for the same reason a .pyc
 * that the program may write is native code of its own; where the import system keeps one beside a source it is hidden from
 * it, which then compiles the source.
 */
#include "guard.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#if PY_VERSION_HEX < 0x030C0000
#define PyUnstable_Eval_RequestCodeExtraIndex _PyEval_RequestCodeExtraIndex
#define PyUnstable_Code_GetExtra _PyCode_GetExtra
#define PyUnstable_Code_SetExtra _PyCode_SetExtra
#endif

static const char MARK, SENT; /* their addresses are the marks: nothing is owned, nothing is freed with the code */

/* The slot of the running interpreter, or -1. */
static Py_ssize_t slot(void) {
    static const char key[] = "pysandboxes.loaded";
    PyObject *here = PyInterpreterState_GetDict(PyInterpreterState_Get()); /* borrowed; C code alone sees it */
    PyObject *known = here ? PyDict_GetItemString(here, key) : NULL;
    if (known)
        return PyLong_AsSsize_t(known);
    Py_ssize_t index = here ? PyUnstable_Eval_RequestCodeExtraIndex(NULL) : -1;
    PyObject *number = PyLong_FromSsize_t(index);
    if (!number || !here || PyDict_SetItemString(here, key, number) < 0)
        index = -1;
    PyErr_Clear();
    Py_XDECREF(number);
    return index;
}

static bool marked(PyObject *code, const char *mark) {
    Py_ssize_t at = slot();
    void *value = NULL;
    return PyCode_Check(code) && at >= 0 && PyUnstable_Code_GetExtra(code, at, &value) == 0 && value == mark;
}

bool psb_code_loaded(PyObject *code) { return marked(code, &MARK); }

bool psb_code_sent(PyObject *code) { return marked(code, &SENT); }

bool psb_code_mark_sent(PyObject *code) {
    Py_ssize_t at = slot();
    return at >= 0 && PyUnstable_Code_SetExtra(code, at, (void *)&SENT) == 0;
}

/* Is the file, from an offset to its end, these bytes? The file must be one that the program may read: else the answer would
 * tell it something. */
static bool holds(PyObject *path, size_t from, const char *data, size_t n) {
    char part[4096];
    struct stat st;
    PyObject *bytes = NULL;
    if (!PyUnicode_CheckExact(path) || !PyUnicode_FSConverter(path, &bytes) || psb_file_object(bytes, -1, PSB_READ, true, false, "open") < 0) {
        PyErr_Clear();
        Py_XDECREF(bytes);
        return false;
    }
    int fd = open(PyBytes_AS_STRING(bytes), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    Py_DECREF(bytes);
    bool same = fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && (size_t)st.st_size == from + n;
    for (size_t at = 0; same && at < n;) {
        ssize_t got = pread(fd, part, sizeof part, (off_t)(from + at));
        same = got > 0 && (size_t)got <= n - at && memcmp(part, data + at, (size_t)got) == 0;
        at += (size_t)(same ? got : 0);
    }
    if (fd >= 0)
        close(fd);
    return same;
}

/* Bytes that nobody can change between here and the call. */
static bool constant(PyObject *o, const char **data, size_t *n) {
    if (PyBytes_CheckExact(o)) {
        *data = PyBytes_AS_STRING(o);
        *n = (size_t)PyBytes_GET_SIZE(o);
        return true;
    }
    if (!PyMemoryView_Check(o))
        return false;
    Py_buffer *view = PyMemoryView_GET_BUFFER(o);
    PyObject *base = PyMemoryView_GET_BASE(o);
    *data = view->buf;
    *n = (size_t)view->len;
    return base && PyBytes_CheckExact(base) && PyBuffer_IsContiguous(view, 'C');
}

#define HEADER 16 /* of a .pyc, PEP 552 */

/* Where marshal.loads is granted the program makes its bytecode anyhow. */
static bool distrusted(const char *path, size_t n) {
    return psb_file_writable(path, n) && !psb_file_in_runtime(path, n) && !psb.learn && !psb_call_allowed(psb_call_id("marshal.loads", 13));
}

static bool written_by_program(PyObject *path) {
    static __thread char literal[PSB_PATH_MAX], text[PSB_PATH_MAX];
    PyObject *bytes = NULL;
    size_t n;
    bool yes = !PyUnicode_FSConverter(path, &bytes) ||
               !psb_path_literal(-1, PyBytes_AS_STRING(bytes), (size_t)PyBytes_GET_SIZE(bytes), literal, &n) ||
               !psb_path_resolve(literal, true, text, &n) || distrusted(text, n);
    PyErr_Clear();
    Py_XDECREF(bytes);
    return yes;
}

bool psb_cache_of_program(const char *path, size_t n) {
    const char *slash = memrchr(path, '/', n), *name = slash ? slash + 1 : path;
    size_t len = n - (size_t)(name - path);
    return len > 4 && memcmp(path + n - 4, ".pyc", 4) == 0 && memmem(name, len, ".cpython-", 9) && distrusted(path, n);
}

/* Before the call, while its caller is the nearest frame. */
static bool from_file(const char *function, PyObject *const *args, Py_ssize_t n) {
    static const char *const zip[] = {"_compile_source", NULL};
    const char *data;
    size_t size;
    if (!psb.enforce || psb.phase == PSB_PHASE_BOOT || n < 1 || psb_nearest_caller() != PSB_IMPORTLIB || !psb_importing())
        return false;
    if (strcmp(function, "get_frozen_object") == 0)
        return n == 1; /* of the interpreter's own table; a second argument would be the code itself */
    if (psb_frame_function(zip))
        return true;
    if (!constant(args[0], &data, &size))
        return false;
    if (strcmp(function, "compile") == 0)
        return n >= 2 && holds(args[1], 0, data, size);
    PyObject *path = psb_frame_local("_compile_bytecode", "bytecode_path");
    bool yes = path && holds(path, HEADER, data, size) && !written_by_program(path);
    Py_XDECREF(path);
    return yes;
}

PyObject *psb_load_code(PSB_CALL) {
    if (door->call >= 0 && psb_call_check(door->call, door->name) < 0)
        return NULL;
    bool file = from_file(door->name, args, n);
    PyObject *code = psb_call_original(original, args, n, kwnames);
    Py_ssize_t at = code && file && PyCode_Check(code) ? slot() : -1;
    if (at >= 0 && PyUnstable_Code_SetExtra(code, at, (void *)&MARK) < 0)
        PyErr_Clear(); /* unmarked: `exec` asks */
    return code;
}
