/* eval(), exec() and compile() of a program in a sandbox whose profile has eval-* rules: strings, trees, and what compile() made
 * of them go to pysandboxes/_eval_inside.py, which runs them guarded. Everything else goes on to the interpreter's own function,
 * whose events are judged as ever: what is not guarded here is refused there.
 *
 * The rewriting is Python, and a program can change it. It gains nothing: what it compiles must pass eval_code.c before it
 * runs, and code that has not passed runs by no way that does not ask for dynamic-code. */
#include "eval.h"

#include <string.h>

static bool tree(PyObject *o) {
    PyTypeObject *t = Py_TYPE(o);
    return (t->tp_flags & Py_TPFLAGS_HEAPTYPE) && PyObject_HasAttrString(o, "_fields") && PyObject_HasAttrString(o, "_attributes");
}

/* A rule for the function itself wins, as one for all of dynamic-code does; a text is the same to exec as to eval. */
static bool granted(const char *function) {
    bool compiles = strcmp(function, "compile") == 0;
    return psb_call_allowed(compiles ? psb_call_id("builtins.compile", 16) : psb_call_id("builtins.eval", 13));
}

static bool concerns(const char *function, PyObject *what) {
    if ((!psb.enforce && !psb.learn) || !psb.eval_guard || psb.phase == PSB_PHASE_BOOT)
        return false;
    if (PyUnicode_Check(what) || PyBytes_Check(what) || PyByteArray_Check(what) || PyMemoryView_Check(what))
        return !granted(function);
    return strcmp(function, "compile") == 0 ? tree(what) : PyCode_Check(what);
}

/* What the caller sees, where a profile lets strings see it: for debugging. */
static PyObject *seen(void) {
    static int wanted = -1;
    PyObject *all = PyDict_New(), *globals = PyEval_GetGlobals(), *locals = NULL; /* borrowed, both */
    if (wanted < 0)
        wanted = psb.evals.s && memmem(psb.evals.s, psb.evals.n, "\"caller\"", 8) != NULL;
    if (!all || !wanted || !globals)
        return all ? (Py_DECREF(all), Py_NewRef(Py_None)) : NULL;
    locals = PyEval_GetLocals();
    if (PyErr_Occurred() || PyDict_Update(all, globals) < 0 || (locals && locals != globals && PyDict_Update(all, locals) < 0))
        Py_CLEAR(all);
    return all;
}

/* (file, line, what it sees) */
static PyObject *caller_of(void) {
    PyFrameObject *frame = PyEval_GetFrame(); /* borrowed */
    PyCodeObject *code = frame ? PyFrame_GetCode(frame) : NULL;
    PyObject *names = seen();
    PyObject *all = names ? Py_BuildValue("(OiN)", code ? code->co_filename : Py_None, frame ? PyFrame_GetLineNumber(frame) : 0, names) : NULL;
    Py_XDECREF(code);
    return all;
}

PyObject *psb_eval_door(PSB_CALL) {
    bool compiles = strcmp(door->name, "builtins.compile") == 0 || strcmp(door->name, "compile") == 0;
    if (n < 1 || !concerns(compiles ? "compile" : door->name, args[0]) || psb_eval_spared())
        return compiles ? psb_load_code(door, original, args, n, kwnames) : psb_call_original(original, args, n, kwnames);
    const char *dot = strrchr(door->name, '.');
    PyObject *module = PyImport_ImportModule("pysandboxes._eval_inside");
    PyObject *f = module ? PyObject_GetAttrString(module, "evaluated") : NULL, *result = NULL, *given = NULL, *kw = NULL, *kind = NULL, *caller = NULL;
    Py_XDECREF(module);
    kind = f ? PyUnicode_FromString(dot ? dot + 1 : door->name) : NULL;
    caller = kind ? caller_of() : NULL;
    given = caller ? PyTuple_New(n + 2) : NULL;
    kw = given ? PyDict_New() : NULL;
    if (kw) {
        int rc = 0;
        PyTuple_SET_ITEM(given, 0, Py_NewRef(kind));
        PyTuple_SET_ITEM(given, 1, Py_NewRef(caller));
        for (Py_ssize_t i = 0; i < n; i++)
            PyTuple_SET_ITEM(given, i + 2, Py_NewRef(args[i]));
        for (Py_ssize_t i = 0; kwnames && rc == 0 && i < PyTuple_GET_SIZE(kwnames); i++)
            rc = PyDict_SetItem(kw, PyTuple_GET_ITEM(kwnames, i), args[n + i]);
        result = rc == 0 ? PyObject_Call(f, given, kw) : NULL;
    }
    Py_XDECREF(kind);
    Py_XDECREF(caller);
    Py_XDECREF(given);
    Py_XDECREF(kw);
    Py_XDECREF(f);
    if (result == Py_NotImplemented) { /* code that it did not make */
        Py_DECREF(result);
        return compiles ? psb_load_code(door, original, args, n, kwnames) : psb_call_original(original, args, n, kwnames);
    }
    return result;
}
