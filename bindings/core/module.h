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

#define PSB_REFUSE_FORKED(name)                                                                                                \
    if (psb_forked) {                                                                                                          \
        return psb_refuse_forked(name);                                                                                        \
    }

/* calls.c */
PyObject *psb_call_begin(PyObject *module, PyObject *const *args, Py_ssize_t nargs);
PyObject *psb_call_next(PyObject *module, PyObject *const *args, Py_ssize_t nargs);
PyObject *psb_call_cancel(PyObject *module, PyObject *const *args, Py_ssize_t nargs);

/* 1, or 0 with an exception. */
int psb_arguments(const char *name, Py_ssize_t given, Py_ssize_t least, Py_ssize_t most);
int psb_number(PyObject *object, long long *out);
int psb_list(const char *name, const char *argument, PyObject *object);
/* Appends the id of a call to the list that its caller gave, or cancels the call. 1, or 0 with an exception. */
int psb_begun(PyObject *begun, long long handle, long long id);

/* The tuple (kind, data, rich, descriptor) of an event, with id before them where there is one. In place of rich a result has the
 * list of its buffers, where it has any: buffers, or a new one for NULL. */
struct psb_event;
PyObject *psb_event_tuple(struct psb_event *event, PyObject *buffers, const long long *id);

/* loops.c */
PyObject *psb_loop_open(PyObject *module, PyObject *handle);
PyObject *psb_loop_send(PyObject *module, PyObject *const *args, Py_ssize_t nargs);
PyObject *psb_loop_take(PyObject *module, PyObject *const *args, Py_ssize_t nargs);
PyObject *psb_loop_close(PyObject *module, PyObject *const *args, Py_ssize_t nargs);

#endif
