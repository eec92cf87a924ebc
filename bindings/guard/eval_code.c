/* The last look at code before it can run: the helpers are put into its constants, and no instruction is left in it that could
 * do by itself what the helpers guard. The code comes from the interpreter's own compiler; what it was made from, a program in
 * a sandbox could have had a hand in. */
#include "eval.h"

#include <opcode.h>
#include <string.h>

#include "eval_opcodes.inc"

static bool allowed(int op) { return memchr(ALLOWED, op, sizeof ALLOWED) != NULL; }

/* The intrinsics that ordinary code needs: 3 StopIteration, 4 wrapping in async generators, 5 unary plus, 6 list to tuple; of
 * the others 1 prints, 2 is `import *`, the rest makes type parameters. Of those with two arguments 1 is for except*. */
static bool intrinsic(int op, int arg) {
#ifdef CALL_INTRINSIC_1
    if (op == CALL_INTRINSIC_1)
        return arg >= 3 && arg <= 6;
    if (op == CALL_INTRINSIC_2)
        return arg == 1;
#endif
    (void)op;
    (void)arg;
    return true;
}

/* Whatever is called stands beside PUSH_NULL, but for decorators and comprehensions, which the rewriting made helpers or which
 * call a function of the source. */
static bool callee(PyObject *consts, const unsigned char *code, Py_ssize_t n, Py_ssize_t at) {
#if PY_VERSION_HEX >= 0x030D0000
    int step = -2;
#else
    int step = 2;
#endif
    Py_ssize_t i = at + step;
    while (i >= 0 && i < n && (code[i] == NOP || (step > 0 && code[i] == EXTENDED_ARG)))
        i += step;
    if (i < 0 || i >= n)
        return false;
    if (code[i] == LOAD_BUILD_CLASS)
        return true;
    if (code[i] != LOAD_CONST)
        return false;
    Py_ssize_t index = code[i + 1];
    for (Py_ssize_t j = i - 2, shift = 8; j >= 0 && code[j] == EXTENDED_ARG; j -= 2, shift += 8)
        index |= (Py_ssize_t)code[j + 1] << shift;
    return index < PyTuple_GET_SIZE(consts) && psb_eval_is_helper(PyTuple_GET_ITEM(consts, index));
}

static int looked_at(PyObject *code, PyObject *consts) {
    PyObject *bytes = PyCode_GetCode((PyCodeObject *)code);
    if (!bytes)
        return -1;
    const unsigned char *p = (const unsigned char *)PyBytes_AS_STRING(bytes);
    Py_ssize_t n = PyBytes_GET_SIZE(bytes);
    int rc = 0;
    for (Py_ssize_t i = 0; rc == 0 && i + 1 < n; i += 2) {
        bool well = allowed(p[i]) && intrinsic(p[i], p[i + 1]) && (p[i] != LOAD_GLOBAL || !(p[i + 1] & 1)) &&
                    (p[i] != PUSH_NULL || callee(consts, p, n, i));
        if (!well) {
            PyErr_Format(PyExc_SystemError, "pysandboxes: instruction %d is left in evaluated code", p[i]);
            rc = -1;
        }
    }
    Py_DECREF(bytes);
    return rc;
}

/* The helper that a constant stands for: a text of the token and its name. Borrowed; NULL with an exception where there is none. */
static PyObject *named(PyObject *constant, PyObject *token) {
    const char *text = PyUnicode_AsUTF8(constant);
    return text ? psb_eval_helper(text + strlen(PyUnicode_AsUTF8(token))) : NULL;
}

static int filled(PyObject *code, PyObject *token) {
    PyObject *consts = PyObject_GetAttrString(code, "co_consts");
    if (!consts || Py_EnterRecursiveCall(" in evaluated code")) {
        Py_XDECREF(consts);
        return -1;
    }
    int rc = 0;
    for (Py_ssize_t i = 0; rc == 0 && i < PyTuple_GET_SIZE(consts); i++) {
        PyObject *o = PyTuple_GET_ITEM(consts, i), *helper = NULL;
        if (PyCode_Check(o)) {
            rc = filled(o, token);
        } else if (token && PyUnicode_CheckExact(o) && PyUnicode_Tailmatch(o, token, 0, PY_SSIZE_T_MAX, -1) == 1) {
            /* The tuple is changed where it is: the compiler has just made it, and nobody has seen it yet. A copy of the code
             * would be code that was made by hand, for whoever watches that. */
            if ((rc = (helper = named(o, token)) ? 0 : -1) == 0) {
                PyTuple_SET_ITEM(consts, i, Py_NewRef(helper));
                Py_DECREF(o);
            }
        }
    }
    Py_LeaveRecursiveCall();
    rc = rc == 0 ? looked_at(code, consts) : rc;
    Py_XDECREF(consts);
    return rc;
}

int psb_eval_verify(PyObject *code) { return filled(code, NULL); }

/* The code, with the helpers in the place of the texts that begin with the token. */
PyObject *psb_eval_code(PyObject *code, PyObject *token) {
    if (!PyUnicode_AsUTF8(token) || !PyUnicode_GET_LENGTH(token))
        return PyErr_Occurred() ? NULL : (PyErr_SetString(PyExc_ValueError, "the token is empty"), NULL);
    return filled(code, token) < 0 ? NULL : Py_NewRef(code);
}
