/* Functions that the application sends: those of a `__main__` that no file holds (a notebook, a prompt, `python -c`).
 *
 * Their code comes over the call channel, in a payload that begins with byte 1 and goes on as a marshalled tuple, whose first item is
 * the tuple of code objects. Only the application writes to that end of the channel. So what is unmarshalled here is its choice,
 * as the module of a function that it calls is; each code object gets a mark in its extra slot, which Python can neither see nor set
 * (loaded.c). function() makes a function of such a code object and of no other: types.FunctionType, marshal.loads, exec and
 * the like stay what the profile says of them. A function that is made so is the program's own, whatever file its code claims.
 */
#include "guard.h"

enum { SENT = 1 }; /* a pickle begins with 0x80 */

/* The code object and those in its constants. */
static bool mark(PyCodeObject *code) {
    bool good = psb_code_mark_sent((PyObject *)code) && psb_code_never_verified(code);
    for (Py_ssize_t i = 0; good && i < PyTuple_GET_SIZE(code->co_consts); i++)
        if (PyCode_Check(PyTuple_GET_ITEM(code->co_consts, i)))
            good = mark((PyCodeObject *)PyTuple_GET_ITEM(code->co_consts, i));
    return good;
}

/* The pickles of items (name, number, pickle, pickle) become payloads, empty ones None. Nobody else has the tuples yet; an item may be in both lists. */
static bool deliver(PyObject *items) {
    for (Py_ssize_t i = 0; PyList_CheckExact(items) && i < PyList_GET_SIZE(items); i++) {
        PyObject *item = PyList_GET_ITEM(items, i);
        for (Py_ssize_t k = 2; PyTuple_CheckExact(item) && k < PyTuple_GET_SIZE(item); k++) {
            PyObject *pickle = PyTuple_GET_ITEM(item, k);
            if (!PyBytes_CheckExact(pickle))
                continue;
            PyObject *made = PyBytes_GET_SIZE(pickle) ? psb_delivered_object(pickle) : Py_NewRef(Py_None);
            if (!made)
                return false;
            PyTuple_SET_ITEM(item, k, made);
            Py_DECREF(pickle);
        }
    }
    return PyList_CheckExact(items);
}

/* What a call brings: a payload, or the tuple, with payloads in it. NULL with an exception. */
PyObject *psb_sent_payload(const uint8_t *data, size_t n) {
    if (n == 0 || data[0] != SENT)
        return psb_delivered_bytes(data, n);
    PyObject *bytes = PyBytes_FromStringAndSize((const char *)data, (Py_ssize_t)n);
    PyObject *sent = bytes ? psb_own_unmarshal(bytes, 1) : NULL;
    Py_XDECREF(bytes);
    PyObject *codes = sent && PyTuple_CheckExact(sent) && PyTuple_GET_SIZE(sent) ? PyTuple_GET_ITEM(sent, 0) : NULL;
    bool good = codes && PyTuple_CheckExact(codes) && PyTuple_GET_SIZE(sent) >= 3;
    for (Py_ssize_t i = 0; good && i < PyTuple_GET_SIZE(codes); i++)
        good = PyCode_Check(PyTuple_GET_ITEM(codes, i)) && mark((PyCodeObject *)PyTuple_GET_ITEM(codes, i));
    for (Py_ssize_t list = 1; good && list <= 2; list++)
        good = deliver(PyTuple_GET_ITEM(sent, list));
    if (good)
        return sent;
    Py_XDECREF(sent);
    if (!PyErr_Occurred())
        PyErr_SetString(PyExc_ValueError, "definitions of the application that cannot be read");
    return NULL;
}

/* function(code, globals, closure): a function of code that the application sent. The closure is checked as types.FunctionType
 * does it: the interpreter reads as many cells as the code names. */
PyObject *psb_sent_function(PyObject *args) {
    PyObject *code, *globals, *closure;
    if (!PyArg_ParseTuple(args, "O!O!O!:function", &PyCode_Type, &code, &PyDict_Type, &globals, &PyTuple_Type, &closure))
        return NULL;
    if (!psb_code_sent(code)) {
        PyErr_SetString(PyExc_PermissionError, "function: this code was not sent by the application");
        return NULL;
    }
    bool cells = PyTuple_CheckExact(closure) && PyTuple_GET_SIZE(closure) == PyCode_GetNumFree((PyCodeObject *)code);
    for (Py_ssize_t i = 0; cells && i < PyTuple_GET_SIZE(closure); i++)
        cells = PyCell_Check(PyTuple_GET_ITEM(closure, i));
    if (!cells || !PyDict_CheckExact(globals)) {
        PyErr_SetString(PyExc_TypeError, "function: a dict, and a cell for each free variable are wanted");
        return NULL;
    }
    PyObject *made = PyFunction_New(code, globals);
    if (made && PyTuple_GET_SIZE(closure) && PyFunction_SetClosure(made, closure) < 0)
        Py_CLEAR(made);
    return made;
}
