/* The meter of an evaluation: its bounds, which attributes it may read, and how a refusal reads. */
#include "eval.h"

#include <string.h>
#include <time.h>

#define BETWEEN 64 /* four for each thing done between two looks at the clock, which eval-max-alloc bounds; one for each small thing */

static int64_t now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static PyObject *key; /* METER_KEY, made with the first meter and kept: every helper looks it up */

int psb_meter_put(psb_meter *m, PyObject *builtins) {
    if (!key && !(key = PyUnicode_InternFromString(METER_KEY)))
        return -1;
    m->builtins = builtins;
    return PyDict_SetItem(builtins, key, (PyObject *)m);
}

/* The one that was asked for last, while its evaluation runs: its builtins cannot have gone meanwhile. The GIL guards it. */
static psb_meter *last;

/* Those that run, in any thread. The GIL guards them. One that is long past its deadline hangs in a call of C, which nothing interrupts:
 * with more and more of them the process would be lost bit by bit. */
static psb_meter *all;

#define LATE 1000000000 /* ns: between two looks at the clock there may be a call */

int psb_meter_begins(psb_meter *m, int most) {
    int hang = 0;
    int64_t at = all ? now() : 0;
    for (psb_meter *o = all; o; o = o->others)
        hang += at > o->deadline + LATE;
    if (hang && hang >= most) {
        PyObject *cls = psb_exception_class("RuleEvalPermissionError");
        if (cls)
            PyErr_Format(cls, "%d evaluated strings hang past their eval-timeout in calls that cannot be interrupted, and eval-max-leaked-threads=%d lets no other begin.", hang, most);
        return -1;
    }
    m->others = all;
    all = m;
    m->running = true;
    return 0;
}

void psb_meter_ended(psb_meter *m) {
    for (psb_meter **o = &all; *o; o = &(*o)->others)
        if (*o == m) {
            *o = m->others;
            break;
        }
    m->running = false;
    if (last == m)
        last = NULL;
}

psb_meter *psb_meter_here(void) {
    PyObject *builtins = PyEval_GetBuiltins(); /* of the frame that calls; borrowed */
    if (last && last->builtins == builtins)
        return last;
    PyObject *m = builtins && key && PyDict_CheckExact(builtins) ? PyDict_GetItemWithError(builtins, key) : NULL;
    if (m && Py_TYPE(m) == &psb_meter_type && ((psb_meter *)m)->builtins == builtins) {
        if (((psb_meter *)m)->running)
            last = (psb_meter *)m;
        return (psb_meter *)m;
    }
    psb_eval_refuses("evaluated code has lost its budget");
    return NULL;
}

/* Once passed, a bound stays passed: what swallows the exception meets it again at its next step. */
int psb_meter_trip(psb_meter *m, const char *key) {
    PyObject *cls = psb_exception_class("EvalInterrupted");
    if (!m->tripped)
        m->tripped = key;
    if (cls && strncmp(m->tripped, "eval-", 5) == 0)
        PyErr_Format(cls, "the evaluated code was stopped: it passed %s. A larger value would let it go on.", m->tripped);
    else if (cls)
        PyErr_Format(cls, "the evaluated code was stopped: %s, whatever a rule says.", m->tripped);
    return -1;
}

int psb_meter_look(psb_meter *m) {
    if (m->tripped)
        return psb_meter_trip(m, m->tripped);
    m->countdown = BETWEEN;
    return now() > m->deadline ? psb_meter_trip(m, "eval-timeout") : 0;
}

int psb_meter_charge_passes(psb_meter *m) { return psb_meter_trip(m, m->tripped ? m->tripped : "eval-max-alloc"); }

/* Small numbers are free: they live on only in containers, whose growth is charged. */
PyObject *psb_meter_charged(psb_meter *m, PyObject *o) {
    double size = 0;
    if (!o || PyFloat_CheckExact(o) || o == Py_None || PyBool_Check(o))
        return o;
    if (PyUnicode_Check(o))
        size = 32 + (double)PyUnicode_GET_LENGTH(o) * PyUnicode_KIND(o);
    else if (PyBytes_Check(o))
        size = 32 + (double)PyBytes_GET_SIZE(o);
    else if (PyByteArray_Check(o))
        size = 32 + (double)PyByteArray_GET_SIZE(o);
    else if (PyList_Check(o))
        size = 56 + 8 * (double)PyList_GET_SIZE(o);
    else if (PyTuple_Check(o))
        size = 40 + 8 * (double)PyTuple_GET_SIZE(o);
    else if (PyDict_Check(o))
        size = 64 + 64 * (double)PyDict_GET_SIZE(o);
    else if (PyAnySet_Check(o))
        size = 64 + 64 * (double)PySet_GET_SIZE(o);
    else if (PyLong_Check(o)) {
        size_t bits = _PyLong_NumBits(o);
        if (bits > PSB_EVAL_BITS) { /* (size_t)-1 too */
            PyErr_Clear();
            psb_meter_trip(m, PSB_EVAL_NUMBER);
            Py_CLEAR(o);
            return NULL;
        }
        size = bits > 512 ? (double)bits / 8 : 0;
    }
    if (size && psb_meter_charge(m, size) < 0)
        Py_CLEAR(o);
    return o;
}

static int refusal(PyObject *text) {
    PyObject *cls = text ? psb_exception_class("RuleEvalPermissionError") : NULL;
    PyObject *exc = cls ? PyObject_CallOneArg(cls, text) : NULL;
    if (exc)
        PyErr_SetObject(cls, exc);
    Py_XDECREF(exc);
    Py_XDECREF(text);
    return -1;
}

int psb_eval_refuses(const char *text) { return refusal(PyUnicode_FromString(text)); }

static int refuse(const char *what, PyObject *subject, const char *key) {
    return refusal(PyUnicode_FromFormat("evaluated code may not %s %U. Add to allow it:\n    %s=%U", what, subject, key, subject));
}

/* ---- attributes ---- */

/* They lead to frames and code, and so to every name of the host, whatever a profile says. */
static const char *const NEVER[] = {"gi_*", "cr_*", "ag_*", "f_globals", "f_locals", "f_builtins", "f_back", "f_code", "f_trace*", "tb_frame", "tb_next", "co_*", "__builtins__",
                                    "__getattribute__", "__getattr__", "__get__", "__setattr__", "__delattr__", NULL};

static bool matches(const char *pattern, size_t n, const char *name) {
    const char *star = memchr(pattern, '*', n);
    size_t len = strlen(name);
    if (!star)
        return len == n && memcmp(pattern, name, n) == 0;
    size_t head = (size_t)(star - pattern), tail = n - head - 1;
    return len >= head + tail && memcmp(pattern, name, head) == 0 && memcmp(star + 1, name + len - tail, tail) == 0;
}

static bool among(PyObject *patterns, const char *name) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(patterns); i++) {
        Py_ssize_t n;
        const char *p = PyUnicode_AsUTF8AndSize(PyTuple_GET_ITEM(patterns, i), &n);
        if (p && matches(p, (size_t)n, name))
            return true;
    }
    PyErr_Clear();
    return false;
}

bool psb_eval_among(PyObject *patterns, PyObject *name) {
    const char *text = PyUnicode_AsUTF8(name);
    if (!text)
        PyErr_Clear();
    return text && among(patterns, text);
}

static bool decide(psb_meter *m, const char *name) {
    for (const char *const *p = NEVER; *p; p++)
        if (matches(*p, strlen(*p), name))
            return false;
    bool magic = name[0] == '_' && name[1] == '_';
    return among(magic ? m->magic_allow : m->allow, name) && !among(magic ? m->magic_deny : m->deny, name) && !among(m->deny, name);
}

int psb_meter_attribute(psb_meter *m, PyObject *name) {
    if (!PyUnicode_CheckExact(name)) {
        PyErr_SetString(PyExc_TypeError, "attribute name must be string");
        return -1;
    }
    PyObject *known = PyDict_GetItemWithError(m->decided, name);
    if (!known && PyErr_Occurred())
        return -1;
    if (!known) {
        Py_ssize_t n;
        const char *text = PyUnicode_AsUTF8AndSize(name, &n);
        if (!text) {
            PyErr_Clear(); /* a lone surrogate: no attribute of anybody */
            return psb_eval_refuses("evaluated code may not read an attribute of such a name");
        }
        known = strlen(text) == (size_t)n && decide(m, text) ? Py_True : Py_False;
        if (PyDict_GET_SIZE(m->decided) < 4096 && PyDict_SetItem(m->decided, name, known) < 0)
            return -1;
    }
    if (known == Py_True)
        return 0;
    const char *text = PyUnicode_AsUTF8(name);
    for (const char *const *p = NEVER; text && *p; p++)
        if (matches(*p, strlen(*p), text))
            return refusal(PyUnicode_FromFormat("evaluated code may not read the attribute %U, whatever a rule says: it leads out of the evaluation", name));
    return psb_meter_wants(m, "read the attribute", name, text && strncmp(text, "__", 2) == 0 ? "eval-magic" : "eval-attribute", NULL);
}

/* ---- learning ---- */

static bool denied(psb_meter *m, const char *key, PyObject *name) {
    if (strcmp(key, "eval-import") == 0)
        return psb_eval_module_in(m->import_deny, name);
    if (strcmp(key, "eval-call") == 0)
        return psb_eval_among(m->call_deny, name);
    return psb_eval_among(m->deny, name) || (strcmp(key, "eval-magic") == 0 && psb_eval_among(m->magic_deny, name));
}

int psb_meter_wants(psb_meter *m, const char *what, PyObject *subject, const char *key, PyObject *object) {
    if (!m->learned || denied(m, key, subject))
        return refuse(what, subject, key);
    PyObject *at = Py_BuildValue("(sO)", key, subject);
    int rc = at ? PyDict_SetItem(m->learned, at, object ? object : Py_None) : -1;
    Py_XDECREF(at);
    return rc;
}

static int traverse(psb_meter *m, visitproc visit, void *arg) {
    Py_VISIT(m->learned);
    Py_VISIT(m->granted);
    Py_VISIT(m->classes);
    return 0;
}

static int clear(psb_meter *m) {
    Py_CLEAR(m->learned);
    Py_CLEAR(m->granted);
    Py_CLEAR(m->classes);
    return 0;
}

static void dealloc(psb_meter *m) {
    PyObject_GC_UnTrack(m);
    clear(m);
    Py_XDECREF(m->decided);
    Py_XDECREF(m->allow);
    Py_XDECREF(m->deny);
    Py_XDECREF(m->magic_allow);
    Py_XDECREF(m->magic_deny);
    Py_XDECREF(m->call_allow);
    Py_XDECREF(m->call_deny);
    Py_XDECREF(m->import_allow);
    Py_XDECREF(m->import_deny);
    PyObject_GC_Del(m);
}

PyTypeObject psb_meter_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "pysandboxes.Meter",
    .tp_basicsize = sizeof(psb_meter),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .tp_traverse = (traverseproc)traverse,
    .tp_clear = (inquiry)clear,
    .tp_dealloc = (destructor)dealloc,
};
