/* What the C files of the module share. Include Python.h first. */
#ifndef PSB_MODULE_H
#define PSB_MODULE_H

/* Raises what a Go function reported, if it did, and frees it. 1: an exception is set. Needs the GIL. */
int psb_raise(char *fail);

/* Whether a Go function said that it goes on: call it again. Signals are looked at in between, and what their handlers raise ends
 * it. Needs the GIL. */
int psb_pending(char **fail);

/* Raises the error of the fork guard for the function of that name. Always NULL. Needs the GIL. */
PyObject *psb_refuse_forked(const char *name);

/* calls.c */
PyObject *psb_call_begin(PyObject *module, PyObject *const *args, Py_ssize_t nargs);
PyObject *psb_call_next(PyObject *module, PyObject *const *args, Py_ssize_t nargs);
PyObject *psb_call_poll(PyObject *module, PyObject *const *args, Py_ssize_t nargs);
PyObject *psb_call_pump(PyObject *module, PyObject *handle);
PyObject *psb_call_cancel(PyObject *module, PyObject *const *args, Py_ssize_t nargs);
PyObject *psb_call_fds(PyObject *module, PyObject *handle);

#endif
