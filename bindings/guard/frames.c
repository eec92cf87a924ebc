/* Who is calling: the Python frames of the running thread, told apart by where their code was loaded from.
 *
 * co_filename is what code says of itself. Where it claims to be somebody whom the guard trusts, identity.c compares the code
 * with the file first; code that claims to be the program's is believed.
 */
#include "guard.h"

#include <opcode.h>
#include <string.h>

#define MEMO 64
static struct {
    PyObject *filename; /* owned, so that its address is not reused */
    psb_caller kind;
} memo[MEMO];

static bool below(const char *s, size_t n, const psb_list *folders, size_t *prefix) {
    for (uint32_t i = 0; i < folders->n; i++) {
        psb_text f = folders->items[i];
        if (n > f.n && s[f.n] == '/' && memcmp(s, f.s, f.n) == 0) {
            *prefix = f.n + 1;
            return true;
        }
    }
    return false;
}

static psb_caller judge(const char *s, size_t n) {
    static const char importlib[] = "<frozen importlib._bootstrap", zip[] = "<frozen zipimport>", frozen[] = "<frozen ";
    size_t ignored;
    if (n >= sizeof importlib - 1 && memcmp(s, importlib, sizeof importlib - 1) == 0)
        return PSB_IMPORTLIB;
    if (n == sizeof zip - 1 && memcmp(s, zip, n) == 0)
        return PSB_IMPORTLIB;
    if (n >= sizeof frozen - 1 && memcmp(s, frozen, sizeof frozen - 1) == 0)
        return PSB_STDLIB;
    if (below(s, n, &psb.site, &ignored))
        return PSB_OTHER;
    return below(s, n, &psb.stdlib, &ignored) ? PSB_STDLIB : PSB_OTHER;
}

static psb_caller claimed(PyCodeObject *code) {
    PyObject *filename = code->co_filename;
    size_t i = ((uintptr_t)filename >> 4) % MEMO;
    bool shared = PyInterpreterState_Get() == PyInterpreterState_Main(); /* others may have a GIL of their own */
    if (shared && memo[i].filename == filename)
        return memo[i].kind;
    Py_ssize_t n;
    const char *s = PyUnicode_AsUTF8AndSize(filename, &n);
    if (!s) {
        PyErr_Clear();
        return PSB_OTHER;
    }
    psb_caller kind = judge(s, (size_t)n);
    if (shared) {
        PyObject *old = memo[i].filename;
        memo[i].filename = Py_NewRef(filename);
        memo[i].kind = kind;
        Py_XDECREF(old);
    }
    return kind;
}

static psb_caller classify(PyCodeObject *code) {
    psb_caller kind = claimed(code);
    return kind == PSB_OTHER || psb_code_verified(code) ? kind : PSB_OTHER;
}

/* A new reference to the code of the nearest frame and, where asked for, to the frame. */
static PyCodeObject *nearest(PyFrameObject **frame) {
    PyThreadState *ts = PyThreadState_GetUnchecked();
    PyFrameObject *f = ts ? PyThreadState_GetFrame(ts) : NULL;
    if (!f)
        return NULL;
    PyCodeObject *code = PyFrame_GetCode(f);
    if (frame)
        *frame = f;
    else
        Py_DECREF(f);
    return code;
}

psb_caller psb_nearest_caller(void) {
    PyCodeObject *code = nearest(NULL);
    if (!code)
        return PSB_NO_FRAME;
    psb_caller kind = classify(code);
    Py_DECREF(code);
    return kind;
}

/* Walks outwards past importlib and the standard library. */
static PyFrameObject *outside(PyFrameObject *f) {
    while (f) {
        PyCodeObject *code = PyFrame_GetCode(f);
        psb_caller kind = classify(code);
        Py_DECREF(code);
        if (kind == PSB_OTHER)
            return f;
        PyFrameObject *back = PyFrame_GetBack(f);
        Py_DECREF(f);
        f = back;
    }
    return NULL;
}

static PyFrameObject *outside_frame(void) {
    PyThreadState *ts = PyThreadState_GetUnchecked();
    return ts ? outside(PyThreadState_GetFrame(ts)) : NULL;
}

psb_caller psb_charged_caller(void) {
    PyFrameObject *f = outside_frame();
    if (!f)
        return psb_nearest_caller() == PSB_NO_FRAME ? PSB_NO_FRAME : PSB_STDLIB;
    Py_DECREF(f);
    return PSB_OTHER;
}

static bool in_package(PyCodeObject *code, const char **rest, size_t *n) {
    Py_ssize_t len;
    const char *s = PyUnicode_AsUTF8AndSize(code->co_filename, &len);
    psb_text p = psb.package;
    if (!s) {
        PyErr_Clear();
        return false;
    }
    *rest = s + p.n + 1;
    *n = (size_t)len - p.n - 1;
    return p.n && (size_t)len > p.n + 1 && memcmp(s, p.s, p.n) == 0 && s[p.n] == '/';
}

size_t psb_site(char *out, size_t cap) {
    PyFrameObject *f = outside_frame();
    PyCodeObject *code = NULL;
    const char *rest;
    size_t ignored;
    out[0] = 0;
    while (f && in_package(code = PyFrame_GetCode(f), &rest, &ignored)) { /* our own code on the program's behalf */
        PyFrameObject *back = PyFrame_GetBack(f);
        Py_DECREF(code);
        Py_DECREF(f);
        f = outside(back);
    }
    if (!f)
        return 0;
    Py_ssize_t n;
    const char *s = PyUnicode_AsUTF8AndSize(code->co_filename, &n);
    int written = s ? snprintf(out, cap, "%s:%d", s, PyFrame_GetLineNumber(f)) : 0;
    if (!s)
        PyErr_Clear();
    Py_DECREF(code);
    Py_DECREF(f);
    return written < 0 ? 0 : (size_t)written < cap ? (size_t)written : cap - 1;
}

/* The instruction that the nearest frame is executing: its opcode, and the raw argument byte of it. */
static int instruction(PyCodeObject *code, PyFrameObject *frame, int *arg) {
    int last = PyFrame_GetLasti(frame); /* in bytes */
    if (last < 0)
        return -1;
    PyObject *bytes = PyCode_GetCode(code); /* without specialisation and instrumentation */
    int op = -1;
    if (bytes && last + 1 < PyBytes_GET_SIZE(bytes)) {
        const uint8_t *b = (const uint8_t *)PyBytes_AS_STRING(bytes);
        op = b[last];
        *arg = b[last + 1];
        for (int at = last - 2, shift = 8; at >= 0 && b[at] == EXTENDED_ARG && shift < 32; at -= 2, shift += 8)
            *arg |= b[at + 1] << shift;
    }
    if (!bytes)
        PyErr_Clear();
    Py_XDECREF(bytes);
    return op;
}

/* A relative import takes the package from its globals, which the program can change, or bring along with the code: it
 * leads to the package that the file is in, or it is not the one that was written. */
static bool of_same_package(PyCodeObject *code, const char *name, size_t n) {
    Py_ssize_t len;
    const char *s = PyUnicode_AsUTF8AndSize(code->co_filename, &len);
    size_t from = 8; /* "<frozen " */
    if (!s)
        PyErr_Clear();
    if (!s || (memcmp(s, "<frozen ", 8) != 0 && !below(s, (size_t)len, &psb.stdlib, &from)))
        return false;
    size_t top = strcspn(s + from, "/.>");
    return n >= top && memcmp(s + from, name, top) == 0 && (n == top || name[top] == '.');
}

/* Is the running instruction of a frame an import of the name? */
static bool imports(PyCodeObject *code, PyFrameObject *frame, const char *name, size_t n) {
    int arg = 0;
    bool same = false;
    if (instruction(code, frame, &arg) == IMPORT_NAME && arg < PyTuple_GET_SIZE(code->co_names)) {
        PyObject *written = PyTuple_GET_ITEM(code->co_names, arg);
        Py_ssize_t wn;
        const char *ws = PyUnicode_AsUTF8AndSize(written, &wn);
        if (!ws)
            PyErr_Clear();
        /* a relative import writes the tail of the absolute name, or nothing */
        same = ws && (size_t)wn <= n && memcmp(ws, name + n - (size_t)wn, (size_t)wn) == 0 &&
               ((size_t)wn == n || ((wn == 0 || name[n - (size_t)wn - 1] == '.') && of_same_package(code, name, n)));
    }
    return same;
}

bool psb_static_import(const char *name, size_t n) {
    PyFrameObject *frame = NULL;
    PyCodeObject *code = nearest(&frame);
    if (!code)
        return false;
    bool same = classify(code) == PSB_STDLIB && imports(code, frame, name, n);
    Py_DECREF(code);
    Py_DECREF(frame);
    return same;
}

bool psb_frame_subscripts(void) {
    PyFrameObject *frame = NULL;
    PyCodeObject *code = nearest(&frame);
    int arg;
    if (!code)
        return false;
    bool yes = instruction(code, frame, &arg) == BINARY_SUBSCR;
    Py_DECREF(code);
    Py_DECREF(frame);
    return yes;
}

static bool listed(const char *s, size_t n, const char *const *list) {
    for (; *list; list++)
        if (strlen(*list) == n && memcmp(*list, s, n) == 0)
            return true;
    return false;
}

static bool code_in(PyCodeObject *code, const char *const *files) {
    bool yes = false;
    Py_ssize_t n;
    const char *s = PyUnicode_AsUTF8AndSize(code->co_filename, &n);
    size_t prefix = 0;
    if (!s)
        PyErr_Clear();
    else if (n > 9 && memcmp(s, "<frozen ", 8) == 0)
        yes = listed(s, (size_t)n, files);
    else if (below(s, (size_t)n, &psb.site, &prefix) || below(s, (size_t)n, &psb.stdlib, &prefix))
        yes = listed(s + prefix, (size_t)n - prefix, files);
    return yes && psb_code_verified(code);
}

bool psb_frame_in(const char *const *files) {
    PyCodeObject *code = nearest(NULL);
    if (!code)
        return false;
    bool yes = code_in(code, files);
    Py_DECREF(code);
    return yes;
}

/* Is the nearest frame in one of the files, and was that file entered through one of the functions (NULL: any)? *first: no
 * frame of another file called it. */
bool psb_frame_entered(const char *const *files, const char *const *functions, bool *first) {
    PyThreadState *ts = PyThreadState_GetUnchecked();
    PyFrameObject *f = ts ? PyThreadState_GetFrame(ts) : NULL;
    PyCodeObject *outermost = NULL;
    while (f) {
        PyCodeObject *code = PyFrame_GetCode(f);
        if (!code_in(code, files)) {
            Py_DECREF(code);
            break;
        }
        Py_XSETREF(outermost, code);
        PyFrameObject *back = PyFrame_GetBack(f);
        Py_DECREF(f);
        f = back;
    }
    *first = !f;
    Py_XDECREF(f);
    if (!outermost)
        return false;
    Py_ssize_t n;
    const char *s = PyUnicode_AsUTF8AndSize(outermost->co_name, &n);
    bool yes = s && (!functions || listed(s, (size_t)n, functions));
    if (!s)
        PyErr_Clear();
    Py_DECREF(outermost);
    return yes;
}

static bool runs(const char *const *files) {
    PyCodeObject *code = nearest(NULL);
    const char *rest;
    size_t n;
    bool yes = code && in_package(code, &rest, &n) && listed(rest, n, files) && psb_code_verified(code);
    Py_XDECREF(code);
    return yes;
}

bool psb_frame_serves(void) {
    static const char *const serving[] = {"_serve.py", "_arrival.py", "_wire.py", "_child.py", NULL};
    return runs(serving);
}

bool psb_frame_rewrites(void) {
    static const char *const rewriting[] = {"_eval_rewrite.py", NULL};
    return runs(rewriting);
}

bool psb_package_import(const char *name, size_t n) {
    PyFrameObject *frame = NULL;
    PyCodeObject *code = nearest(&frame);
    const char *rest;
    size_t ignored;
    if (!code)
        return false;
    bool same = in_package(code, &rest, &ignored) && imports(code, frame, name, n) && psb_code_verified(code);
    Py_DECREF(code);
    Py_DECREF(frame);
    return same;
}

bool psb_running_is(const PyFrameObject *frame) {
    PyThreadState *ts = PyThreadState_GetUnchecked();
    PyFrameObject *f = ts ? PyThreadState_GetFrame(ts) : NULL;
    Py_XDECREF(f); /* only compared */
    return f == frame;
}

bool psb_outside_is(const PyFrameObject *frame) {
    PyFrameObject *f = outside_frame();
    Py_XDECREF(f); /* only compared */
    return f == frame;
}

bool psb_outside_serves(void) {
    PyFrameObject *f = outside_frame();
    if (!f)
        return false;
    PyCodeObject *code = PyFrame_GetCode(f);
    const char *rest;
    size_t n;
    bool yes = in_package(code, &rest, &n) && psb_code_verified(code);
    Py_DECREF(code);
    Py_DECREF(f);
    return yes;
}

/* Does the nearest frame's code have one of the names written in it? */
bool psb_frame_writes(const char *const *names) {
    PyCodeObject *code = nearest(NULL);
    bool yes = false;
    for (Py_ssize_t i = 0; code && !yes && i < PyTuple_GET_SIZE(code->co_names); i++) {
        Py_ssize_t n;
        const char *s = PyUnicode_AsUTF8AndSize(PyTuple_GET_ITEM(code->co_names, i), &n);
        yes = s && listed(s, (size_t)n, names);
        if (!s)
            PyErr_Clear();
    }
    Py_XDECREF(code);
    return yes;
}

bool psb_frame_function(const char *const *names) {
    PyCodeObject *code = nearest(NULL);
    if (!code)
        return false;
    Py_ssize_t n;
    const char *s = PyUnicode_AsUTF8AndSize(code->co_name, &n);
    bool yes = s && listed(s, (size_t)n, names);
    if (!s)
        PyErr_Clear();
    Py_DECREF(code);
    return yes;
}

PyObject *psb_frame_local(const char *function, const char *name) {
    PyFrameObject *frame = NULL;
    PyCodeObject *code = nearest(&frame);
    PyObject *value = NULL;
    if (!code)
        return NULL;
    PyObject *locals = PyUnicode_CompareWithASCIIString(code->co_name, function) == 0 ? PyFrame_GetLocals(frame) : NULL;
    if (locals)
        value = PyMapping_GetItemString(locals, name);
    PyErr_Clear();
    Py_XDECREF(locals);
    Py_DECREF(code);
    Py_DECREF(frame);
    return value;
}

/* Is the import system at work, from _find_and_load down to here without a frame of anyone else's in between? Its
 * functions called directly (_call_with_frames_removed(exec, ...), loader.source_to_code(...)) are not that. runpy loads
 * the program's code through a loader by itself, and importlib.reload() a module's. */
bool psb_importing(void) {
    static const char *const importlib[] = {"importlib/__init__.py", NULL};
    static const char *const runpy[] = {"runpy.py", "<frozen runpy>", NULL};
    PyThreadState *ts = PyThreadState_GetUnchecked();
    PyFrameObject *f = ts ? PyThreadState_GetFrame(ts) : NULL;
    bool yes = false, any = false;
    while (f && !yes) {
        PyCodeObject *code = PyFrame_GetCode(f);
        bool inside = classify(code) == PSB_IMPORTLIB;
        if (inside)
            yes = PyUnicode_CompareWithASCIIString(code->co_name, "_find_and_load") == 0;
        else if (any)
            yes = code_in(code, runpy) ||
                  (code_in(code, importlib) && PyUnicode_CompareWithASCIIString(code->co_name, "reload") == 0);
        Py_DECREF(code);
        if (!inside)
            break;
        any = true;
        PyFrameObject *back = PyFrame_GetBack(f);
        Py_DECREF(f);
        f = back;
    }
    Py_XDECREF(f);
    return yes;
}
