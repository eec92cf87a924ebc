/* Calls that no signal interrupts in a bare interpreter, and that the supervisor makes for a sandboxed one.
 *
 * A signal that comes before the supervisor has taken the call ends it with EINTR and nothing done (seccomp_unotify(2)); that
 * is no outcome that a program knows of chmod. CPython has run the handlers of signals by then, and an exception of theirs is
 * the outcome. Where no kernel layer puts calls to a supervisor nothing of this happens, and the loop runs once.
 */
#include "guard.h"

PyObject *psb_call_again(PSB_CALL) {
    (void)door;
    for (;;) {
        PyObject *result = psb_call_original(original, args, n, kwnames);
        if (result || psb.resolve || !PyErr_ExceptionMatches(PyExc_InterruptedError))
            return result;
        PyObject *type, *error, *tb;
        PyErr_Fetch(&type, &error, &tb);
        PyErr_NormalizeException(&type, &error, &tb);
        if (!error || !Py_IS_TYPE(error, (PyTypeObject *)PyExc_InterruptedError) || tb) { /* raised by a handler, which is Python code */
            PyErr_Restore(type, error, tb);
            return NULL;
        }
        Py_DECREF(type);
        Py_DECREF(error);
    }
}
