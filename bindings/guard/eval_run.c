/* The functions that the rewritten source calls, and the start and end of an evaluation. */
#include "eval.h"

#include <string.h>
#include <time.h>

#define HELPER PSB_EVAL_HELPER
#define HELPER_KW(name) static PyObject *name(PyObject *Py_UNUSED(module), PyObject *const *a, Py_ssize_t n, PyObject *kwnames)
#define ENTER PSB_EVAL_ENTER

HELPER_KW(h_call) {
    ENTER(1)
    return psb_eval_call(m, a[0], a + 1, n - 1, kwnames);
}

HELPER(h_lookup) {
    ENTER(2)
    return psb_eval_lookup(m, a[0], a[1]);
}

HELPER_KW(h_method) {
    ENTER(1)
    return psb_eval_call_looked(m, a[0], a + 1, n - 1, kwnames);
}

HELPER(h_read) {
    ENTER(2)
    return psb_eval_read(m, a[0], a[1]);
}

static int code_of(PyObject *o) { return PyUnicode_Check(o) && PyUnicode_GET_LENGTH(o) == 1 ? (int)PyUnicode_READ_CHAR(o, 0) : 0; }

/* o[i] op= v, with each of them evaluated once: in_place_item(op, *item(o, i), v) */
HELPER(h_item) {
    ENTER(2)
    PyObject *old = psb_meter_step(m) < 0 ? NULL : PyObject_GetItem(a[0], a[1]);
    PyObject *all = old ? PyTuple_Pack(3, a[0], a[1], old) : NULL;
    Py_XDECREF(old);
    return all;
}

HELPER(h_in_place_item) {
    ENTER(5)
    PyObject *old = a[3], *new = psb_eval_operator(m, code_of(a[0]), old, a[4], true);
    int rc = new && (new == old || psb_eval_charged_before(code_of(a[0]), new) || (new = psb_meter_charged(m, new))) ? PyObject_SetItem(a[1], a[2], new) : -1;
    Py_XDECREF(new);
    return rc < 0 ? NULL : Py_NewRef(Py_None);
}

HELPER(h_loop) {
    ENTER(1)
    return psb_steps(m, a[0], STEPS_LOOP);
}

HELPER(h_collect) {
    ENTER(1)
    return psb_steps(m, a[0], STEPS_KEEP);
}

HELPER(h_tick) {
    (void)a;
    ENTER(0)
    return psb_meter_tick(m) < 0 ? NULL : Py_NewRef(Py_True);
}

HELPER(h_step) {
    (void)a;
    ENTER(0)
    return psb_meter_step(m) < 0 ? NULL : Py_NewRef(Py_None);
}

HELPER(h_star) {
    ENTER(1)
    if (PyList_CheckExact(a[0]) || PyTuple_CheckExact(a[0])) {
        if (psb_meter_step(m) < 0 || psb_meter_charge(m, 8 * (double)PySequence_Fast_GET_SIZE(a[0])) < 0)
            return NULL;
        return Py_NewRef(a[0]);
    }
    if (!Py_TYPE(a[0])->tp_iter && !PySequence_Check(a[0]))
        return PyErr_Format(PyExc_TypeError, "Value after * must be an iterable, not %.200s", Py_TYPE(a[0])->tp_name);
    return psb_steps(m, a[0], STEPS_KEEP);
}

/* The same for a, *b = o. */
HELPER(h_unpack) {
    ENTER(1)
    if (!Py_TYPE(a[0])->tp_iter && !PySequence_Check(a[0]))
        return PyErr_Format(PyExc_TypeError, "cannot unpack non-iterable %.200s object", Py_TYPE(a[0])->tp_name);
    return h_star(NULL, a, n);
}

HELPER(h_mapping) { /* ** in a display or a call */
    ENTER(1)
    if (psb_meter_step(m) < 0)
        return NULL;
    if (!PyDict_Check(a[0]))
        return psb_eval_refuses("evaluated code may unpack a dict only by **"), NULL;
    return psb_meter_charge(m, 64 * (double)PyDict_GET_SIZE(a[0])) < 0 ? NULL : Py_NewRef(a[0]);
}

HELPER(h_made) {
    ENTER(1)
    return psb_meter_step(m) < 0 ? NULL : psb_meter_charged(m, Py_NewRef(a[0]));
}

HELPER(h_grow) { /* the container of o[i] = v */
    ENTER(1)
    return psb_meter_step(m) < 0 || psb_meter_charge(m, 64) < 0 ? NULL : Py_NewRef(a[0]);
}

HELPER(h_bounds) { /* a:b:c */
    ENTER(3)
    return PySlice_New(a[0], a[1], a[2]);
}

HELPER(h_whole) { /* what C is about to compare or to hash */
    ENTER(1)
    return psb_eval_whole(m, a[0], false) < 0 ? NULL : Py_NewRef(a[0]);
}

HELPER(h_key) {
    ENTER(1)
    return psb_eval_key(m, a[0]);
}

HELPER(h_compare) { /* operator, as the C API numbers it */
    ENTER(3)
    long op = PyLong_AsLong(a[0]);
    if (psb_meter_step(m) < 0 || psb_eval_whole(m, a[1], false) < 0 || psb_eval_whole(m, a[2], false) < 0)
        return NULL;
    return op < 0 || op > 5 ? (PyErr_SetString(PyExc_SystemError, "pysandboxes: no such comparison"), NULL) : PyObject_RichCompare(a[1], a[2], (int)op);
}

HELPER(h_slice) {
    ENTER(2)
    /* a slice of slices of slices is freed by as many calls of C */
    PyObject *key = psb_meter_step(m) < 0 ? NULL : psb_eval_key(m, a[1]), *part = key ? PyObject_GetItem(a[0], key) : NULL;
    Py_XDECREF(key);
    return psb_meter_charged(m, part);
}

static bool walks(PyObject *o) { return PyRange_Check(o) || PyIter_Check(o); }

HELPER(h_member) { /* the right side of `in` within a chain */
    ENTER(1)
    return walks(a[0]) ? psb_steps(m, a[0], STEPS_TICK) : Py_NewRef(a[0]);
}

HELPER(h_in) {
    ENTER(2)
    if (psb_eval_whole(m, a[0], false) < 0)
        return NULL;
    PyObject *where = walks(a[1]) && !(PyRange_Check(a[1]) && (PyLong_CheckExact(a[0]) || PyBool_Check(a[0]))) ? psb_steps(m, a[1], STEPS_TICK)
                                                                                                               : Py_NewRef(a[1]);
    int there = where && psb_meter_step(m) == 0 ? PySequence_Contains(where, a[0]) : -1;
    Py_XDECREF(where);
    return there < 0 ? NULL : PyBool_FromLong(there);
}

HELPER(h_format) { /* value, conversion, specification */
    ENTER(3)
    PyObject *value = NULL, *result;
    if (psb_eval_whole(m, a[0], true) < 0)
        return NULL;
    switch (code_of(a[1])) {
    case 's':
        value = PyObject_Str(a[0]);
        break;
    case 'r':
        value = PyObject_Repr(a[0]);
        break;
    case 'a':
        value = PyObject_ASCII(a[0]);
        break;
    default:
        value = Py_NewRef(a[0]);
    }
    result = value && psb_meter_step(m) == 0 && psb_eval_spec(m, a[2]) == 0 ? PyObject_Format(value, a[2]) : NULL;
    Py_XDECREF(value);
    return psb_meter_charged(m, result);
}

HELPER(h_text) { /* the pieces of an f-string */
    ENTER(0)
    double size = 32;
    PyObject *list = PyList_New(n), *nothing = list ? PyUnicode_New(0, 0) : NULL, *result = NULL;
    for (Py_ssize_t i = 0; list && i < n; i++) {
        size += PyUnicode_Check(a[i]) ? (double)PyUnicode_GET_LENGTH(a[i]) * PyUnicode_KIND(a[i]) : 0;
        PyList_SET_ITEM(list, i, Py_NewRef(a[i]));
    }
    if (nothing && psb_meter_step(m) == 0 && psb_meter_charge(m, size) == 0)
        result = PyUnicode_Join(nothing, list);
    Py_XDECREF(list);
    Py_XDECREF(nothing);
    return result;
}

HELPER(h_judge) { /* a decorator, which the interpreter calls by itself */
    ENTER(1)
    return psb_meter_step(m) < 0 ? NULL : PyCallable_Check(a[0]) ? psb_eval_judge(m, a[0]) : Py_NewRef(a[0]);
}

HELPER(h_raised) { /* of a class that stands after `raise` the interpreter makes an object */
    ENTER(1)
    bool makes = PyExceptionClass_Check(a[0]) && ((PyTypeObject *)a[0])->tp_flags & Py_TPFLAGS_HEAPTYPE && !psb_eval_own_class(m, a[0]);
    int may = psb_meter_step(m) < 0 ? -1 : makes ? psb_eval_granted(m, a[0]) : 1;
    return may < 0 || (!may && psb_eval_not_granted(m, a[0]) < 0) ? NULL : Py_NewRef(a[0]);
}

HELPER(h_target) { /* o in o.name = v */
    ENTER(1)
    return psb_eval_target(m, a[0]);
}

/* o.name op= v: in_place_attribute(op, *attribute(o, name), v) */
HELPER(h_attribute) {
    ENTER(2)
    PyObject *old = psb_eval_read(m, a[0], a[1]), *all = old ? PyTuple_Pack(3, a[0], a[1], old) : NULL;
    Py_XDECREF(old);
    return all;
}

HELPER(h_in_place_attribute) {
    ENTER(5)
    PyObject *old = a[3], *new = psb_eval_operator(m, code_of(a[0]), old, a[4], true), *target = NULL;
    int rc = new && (new == old || psb_eval_charged_before(code_of(a[0]), new) || (new = psb_meter_charged(m, new))) ? 0 : -1;
    if (rc == 0)
        rc = (target = psb_eval_target(m, a[1])) ? PyObject_SetItem(target, a[2], new) : -1;
    Py_XDECREF(target);
    Py_XDECREF(new);
    return rc < 0 ? NULL : Py_NewRef(Py_None);
}

#define PROTOCOL(name, kind)                      \
    HELPER(name) {                                \
        ENTER(1)                                  \
        return psb_eval_protocol(m, a[0], kind);  \
    }
PROTOCOL(h_enter, PROTOCOL_WITH)
PROTOCOL(h_async_enter, PROTOCOL_ASYNC_WITH)
PROTOCOL(h_awaited, PROTOCOL_AWAIT)
PROTOCOL(h_async_loop, PROTOCOL_ASYNC_FOR)

HELPER(h_delegate) {
    ENTER(1)
    return psb_eval_delegate(m, a[0]);
}

HELPER(h_keep) { /* what an async comprehension is about to keep */
    (void)a;
    ENTER(0)
    return psb_meter_tick(m) < 0 || psb_meter_charge(m, 40) < 0 ? NULL : Py_NewRef(Py_True);
}

HELPER(h_match) {
    ENTER(3)
    return psb_eval_match(m, a, n);
}

#define F(f) ((PyCFunction)(void *)(f))
static PyMethodDef HELPERS[] = {
    {"call", F(h_call), METH_FASTCALL | METH_KEYWORDS, NULL},
    {"lookup", F(h_lookup), METH_FASTCALL, NULL},
    {"method", F(h_method), METH_FASTCALL | METH_KEYWORDS, NULL},
    {"read", F(h_read), METH_FASTCALL, NULL},
    {"in_place_item", F(h_in_place_item), METH_FASTCALL, NULL},
    {"loop", F(h_loop), METH_FASTCALL, NULL},
    {"collect", F(h_collect), METH_FASTCALL, NULL},
    {"tick", F(h_tick), METH_FASTCALL, NULL},
    {"step", F(h_step), METH_FASTCALL, NULL},
    {"star", F(h_star), METH_FASTCALL, NULL},
    {"unpack", F(h_unpack), METH_FASTCALL, NULL},
    {"mapping", F(h_mapping), METH_FASTCALL, NULL},
    {"made", F(h_made), METH_FASTCALL, NULL},
    {"grow", F(h_grow), METH_FASTCALL, NULL},
    {"item", F(h_item), METH_FASTCALL, NULL},
    {"bounds", F(h_bounds), METH_FASTCALL, NULL},
    {"whole", F(h_whole), METH_FASTCALL, NULL},
    {"key", F(h_key), METH_FASTCALL, NULL},
    {"compare", F(h_compare), METH_FASTCALL, NULL},
    {"slice", F(h_slice), METH_FASTCALL, NULL},
    {"member", F(h_member), METH_FASTCALL, NULL},
    {"in", F(h_in), METH_FASTCALL, NULL},
    {"format", F(h_format), METH_FASTCALL, NULL},
    {"text", F(h_text), METH_FASTCALL, NULL},
    {"judge", F(h_judge), METH_FASTCALL, NULL},
    {"raised", F(h_raised), METH_FASTCALL, NULL},
    {"target", F(h_target), METH_FASTCALL, NULL},
    {"attribute", F(h_attribute), METH_FASTCALL, NULL},
    {"in_place_attribute", F(h_in_place_attribute), METH_FASTCALL, NULL},
    {"enter", F(h_enter), METH_FASTCALL, NULL},
    {"async_enter", F(h_async_enter), METH_FASTCALL, NULL},
    {"awaited", F(h_awaited), METH_FASTCALL, NULL},
    {"async_loop", F(h_async_loop), METH_FASTCALL, NULL},
    {"delegate", F(h_delegate), METH_FASTCALL, NULL},
    {"keep", F(h_keep), METH_FASTCALL, NULL},
    {"match", F(h_match), METH_FASTCALL, NULL},
    {NULL, NULL, 0, NULL}};

#define MOST (sizeof HELPERS / sizeof *HELPERS)
static PyObject *made[MOST], *operations[PSB_EVAL_OPERATIONS]; /* kept for good: code that is kept holds them */

static PyObject *found(PyMethodDef *defs, PyObject **functions, const char *name) {
    for (PyMethodDef *d = defs; d->ml_name; d++) {
        PyObject **f = &functions[d - defs];
        if (strcmp(d->ml_name, name) == 0)
            return *f || (*f = PyCFunction_New(d, NULL)) ? *f : NULL;
    }
    return NULL;
}

PyObject *psb_eval_helper(const char *name) {
    PyObject *f = found(HELPERS, made, name);
    if (!f && !PyErr_Occurred() && !(f = found(psb_eval_operations, operations, name)) && !PyErr_Occurred())
        PyErr_SetString(PyExc_SystemError, "pysandboxes: there is no such helper");
    return f;
}

bool psb_eval_is_helper(PyObject *o) {
    bool is = false;
    for (size_t i = 0; !is && i < MOST; i++)
        is = o == made[i];
    for (size_t i = 0; !is && i < PSB_EVAL_OPERATIONS; i++)
        is = o == operations[i];
    return is;
}

/* ---- an evaluation ---- */

/* Functions come as ones that check what they are given, types as themselves (isinstance wants them): a call of a type is
 * checked where it happens. */
static int put_builtins(psb_meter *m, PyObject *given) {
    PyObject *name, *f;
    for (Py_ssize_t pos = 0; PyDict_Next(given, &pos, &name, &f);) {
        const char *text = PyUnicode_AsUTF8(name);
        PyObject *own = NULL;
        if (!text)
            return -1;
        if (PyExceptionClass_Check(f) || (PyType_Check(f) && psb_eval_builtin_known(text) && f != (PyObject *)&PyType_Type))
            own = Py_NewRef(f);
        else if (f == (PyObject *)&PyType_Type || (PyCFunction_Check(f) && psb_eval_builtin_known(text)))
            own = psb_eval_bound_builtin(m, f, f == (PyObject *)&PyType_Type ? "type" : ((PyCFunctionObject *)f)->m_ml->ml_name);
        else
            psb_eval_refuses("evaluated code cannot be granted such a builtin");
        int rc = own ? PyDict_SetItem(m->builtins, name, own) : -1;
        if (rc == 0 && PyType_Check(own))
            rc = psb_eval_grant(m, own);
        Py_XDECREF(own);
        if (rc < 0)
            return -1;
    }
    return 0;
}

static psb_meter *new_meter(PyObject *rules, long long iterations, long long alloc, int depth, double timeout) {
    struct timespec t;
    PyTypeObject *tuple = &PyTuple_Type;
    PyObject *allow, *deny, *magic_allow, *magic_deny, *call_allow, *call_deny, *import_allow, *import_deny, *decided;
    if (!PyArg_ParseTuple(rules, "O!O!O!O!O!O!O!O!O!", tuple, &allow, tuple, &deny, tuple, &magic_allow, tuple, &magic_deny, tuple, &call_allow, tuple,
                          &call_deny, tuple, &import_allow, tuple, &import_deny, &PyDict_Type, &decided))
        return NULL;
    if (PyType_Ready(&psb_meter_type) < 0 || PyType_Ready(&psb_steps_type) < 0 || PyType_Ready(&psb_bound_type) < 0 || PyType_Ready(&psb_target_type) < 0 ||
        PyType_Ready(&psb_looked_type) < 0)
        return NULL;
    psb_meter *m = PyObject_GC_New(psb_meter, &psb_meter_type);
    if (!m)
        return NULL;
    clock_gettime(CLOCK_MONOTONIC, &t);
    m->allow = Py_NewRef(allow);
    m->deny = Py_NewRef(deny);
    m->magic_allow = Py_NewRef(magic_allow);
    m->magic_deny = Py_NewRef(magic_deny);
    m->decided = Py_NewRef(decided);
    m->call_allow = Py_NewRef(call_allow);
    m->call_deny = Py_NewRef(call_deny);
    m->import_allow = Py_NewRef(import_allow);
    m->import_deny = Py_NewRef(import_deny);
    m->granted = PyDict_New();
    m->classes = PyDict_New();
    m->builtins = NULL;
    m->iterations = iterations;
    m->alloc = m->alloc_limit = alloc;
    m->deadline = (int64_t)t.tv_sec * 1000000000 + t.tv_nsec + (timeout < 1e9 ? (int64_t)(timeout * 1e9) : INT64_MAX / 4);
    m->depth = m->depth_most = m->making = 0;
    m->learned = NULL;
    m->depth_limit = depth;
    m->countdown = 1;
    m->tripped = NULL;
    m->running = false;
    PyObject_GC_Track(m);
    if (!m->granted || !m->classes)
        Py_CLEAR(m);
    return m;
}

/* The application writes down what it gets: it, too, would walk a container without end. */
static void leaves(psb_meter *m, PyObject **result) {
    PyObject *type, *value, *traceback;
    if (*result) {
        if (psb_eval_whole(m, *result, false) < 0)
            Py_CLEAR(*result);
        return;
    }
    PyErr_Fetch(&type, &value, &traceback);
    PyErr_NormalizeException(&type, &value, &traceback);
    if (m->tripped || !value || psb_eval_whole(m, value, false) == 0)
        PyErr_Restore(type, value, traceback);
    else {
        Py_XDECREF(type);
        Py_XDECREF(value);
        Py_XDECREF(traceback);
    }
}

/* What the evaluation took of its bounds is learned, too. */
static void used(psb_meter *m, int64_t iterations) {
    const struct {
        const char *key;
        int64_t value;
    } all[] = {{"eval-max-iterations", iterations - m->iterations}, {"eval-max-alloc", m->alloc_limit - m->alloc}, {"eval-max-call-depth", m->depth_most}};
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        PyObject *at = Py_BuildValue("(ss)", all[i].key, ""), *number = PyLong_FromLongLong(all[i].value);
        if (!at || !number || PyDict_SetItem(m->learned, at, number) < 0)
            PyErr_Clear();
        Py_XDECREF(at);
        Py_XDECREF(number);
    }
    PyErr_Restore(type, value, traceback);
}

PyObject *psb_evaluate(PyObject *args, PyObject *kwargs) {
    static char *names[] = {"code", "namespace", "builtins", "granted", "rules", "iterations", "alloc", "depth", "timeout", "leaked", "learned", NULL};
    PyObject *code, *space, *given, *granted, *rules, *learned = NULL, *result = NULL;
    long long iterations, alloc;
    int depth, leaked = 4;
    double timeout;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!O!O!O!O!LLid|iO:evaluate", names, &PyCode_Type, &code, &PyDict_Type, &space, &PyDict_Type, &given,
                                     &PyTuple_Type, &granted, &PyTuple_Type, &rules, &iterations, &alloc, &depth, &timeout, &leaked, &learned))
        return NULL;
    if (psb.active && psb_eval_verify(code) < 0) /* a program in a sandbox can hand in any code that it has */
        return NULL;
    PyObject *builtins = PyDict_New();
    psb_meter *m = builtins ? new_meter(rules, iterations, alloc, depth, timeout) : NULL;
    bool ready = m != NULL;
    if (m && psb.active && psb.learn && learned && PyDict_CheckExact(learned))
        m->learned = Py_NewRef(learned);
    ready = ready && psb_meter_put(m, builtins) == 0;
    for (Py_ssize_t i = 0; ready && i < PyTuple_GET_SIZE(granted); i++)
        ready = psb_eval_grant(m, PyTuple_GET_ITEM(granted, i)) == 0;
    ready = ready && psb_eval_format_ready() == 0 && put_builtins(m, given) == 0 && psb_eval_put_import(builtins) == 0 &&
            psb_eval_put_build_class(builtins) == 0 &&
            PyDict_SetItemString(space, "__builtins__", builtins) == 0;
    if (ready && psb_meter_begins(m, leaked) == 0) {
        result = PyEval_EvalCode(code, space, space);
        psb_meter_ended(m);
        leaves(m, &result);
        if (m->tripped && !(PyErr_Occurred() && PyErr_ExceptionMatches(psb_exception_class("EvalInterrupted")))) {
            Py_CLEAR(result); /* it was swallowed, or the last thing that happened */
            PyErr_Clear();
            psb_meter_trip(m, m->tripped);
        }
        if (m->learned)
            used(m, iterations);
    }
    Py_XDECREF((PyObject *)m);
    Py_XDECREF(builtins);
    return result;
}
