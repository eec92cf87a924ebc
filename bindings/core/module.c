//go:build pyext

/*
 * The module pysandboxes._core.
 *
 * GIL: every function here is entered with it and returns with it. The wrappers release it around each call into Go.
 * References: arguments are borrowed from the caller's tuple, which lives until the wrapper returns; results are new.
 * After a fork: every wrapper refuses (see process.h), but for the two that only keep count of handles: those do nothing.
 * After finalization: a thread that waits for the GIL then is ended by CPython inside of Py_END_ALLOW_THREADS. No Go frame is on
 * its stack there, which is why Go never takes the GIL itself.
 */

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "_cgo_export.h"
#include "calls.h"
#include "module.h"
#include "process.h"

/* Stands in for what a Go function reported when a Python exception is set already. */
static char raised[1];

int psb_pending(char **fail) {
    if (*fail == NULL || **fail != '\0') {
        return 0;
    }
    free(*fail);
    *fail = NULL;
    if (PyErr_CheckSignals() < 0) {
        *fail = raised;
        return 0;
    }
    return 1;
}

int psb_raise(char *fail) {
    if (fail == NULL || fail == raised) {
        return fail != NULL;
    }
    PyObject *text = PyUnicode_DecodeUTF8(fail, (Py_ssize_t)strlen(fail), "replace");
    free(fail);
    if (text != NULL) {
        PyErr_SetObject(PyExc_RuntimeError, text);
        Py_DECREF(text);
    }
    return 1;
}

PyObject *psb_refuse_forked(const char *name) {
    PyErr_Format(PyExc_RuntimeError,
                 "{\"kind\":\"SandBoxError\",\"message\":\"%s cannot be used after fork: this process is a copy of the one that "
                 "loaded pysandboxes, and the sandbox belongs to that one. Open the sandbox in this process after an exec "
                 "(multiprocessing: set_start_method('spawn')), or call it from the parent.\"}",
                 name);
    return NULL;
}

#define PSB_FORK_GUARD(name)                                                                                                   \
    if (psb_forked) {                                                                                                          \
        return psb_refuse_forked(name);                                                                                        \
    }
/* __del__ and weakref finalizers run in forked children too; they have nothing to do there, and an error would only be noise. */
#define PSB_HANDLES_GUARD(name)                                                                                                \
    if (psb_forked) {                                                                                                          \
        Py_RETURN_NONE;                                                                                                        \
    }
#define PYBINDGEN_UNUSED(param) param __attribute__((__unused__))

#include "gopy_wrappers.h"

#define PSB_QUOTE(text) #text
#define PSB_QUOTE_VALUE(macro) PSB_QUOTE(macro)

#define FAST(name, signature, doc)                                                                                             \
    {#name, (PyCFunction)(void (*)(void))psb_##name, METH_FASTCALL, #name signature "\n--\n\n" doc}
#define ONE(name, signature, doc) {#name, psb_##name, METH_O, #name signature "\n--\n\n" doc}

static PyMethodDef methods[] = {
    PSB_GOPY_METHODS
    FAST(call_begin, "($module, handle, payload, begun, /)",
         "Send a call, a pickle as bytes. Appends its id to the list begun, so that no signal comes between the call and who knows of it."),
    FAST(call_next, "($module, handle, id, wait=None, buffers=None, /)",
         "The next event of a call as (kind, data, rich, descriptor), or None after wait seconds. Blocks this thread only. buffers: a "
         "list, empty at first and the same for all events of a call, to which the large parts of its result go."),
    FAST(call_cancel, "($module, handle, id, /)", "Cancel a call and forget its events."),
    ONE(loop_open, "($module, handle, /)",
        "A face of the sandbox for an event loop: its number, and a descriptor to watch until loop_close (readable: loop_take)."),
    FAST(loop_send, "($module, handle, loop, payload, look, begun, /)",
         "Send a call for an event loop: (id, kind, data, rich, descriptor) as of loop_take, kind -1 for no event yet. look: wait some ten "
         "microseconds for one, if nothing else is under way. begun: as of call_begin."),
    FAST(loop_take, "($module, handle, loop, events, /)",
         "Send and read what the socket takes and has, without blocking. Appends the events of the loop's calls to a list, from which no "
         "signal takes them: (id, kind, data, rich, descriptor), kind 0 for a call that has failed. Its error is the descriptor; None says "
         "that there was no memory. Raises when the connection is over and every call knows."),
    FAST(loop_close, "($module, handle, loop, /)", "Cancel the loop's calls and close its descriptor."),
    {NULL, NULL, 0, NULL},
};

static int execute(PyObject *module) {
    psb_settle();
    return PyModule_AddStringConstant(module, "__version__", PSB_QUOTE_VALUE(PSB_VERSION_BARE));
}

static PyModuleDef_Slot slots[] = {
    {Py_mod_exec, execute},
#if PY_VERSION_HEX >= 0x030C0000
    /* True: no object is kept in C between calls, PyExc_RuntimeError is immortal, and Go's own state has its own locks. A
     * handle is a number of the process and may be used from any interpreter that knows it. */
    {Py_mod_multiple_interpreters, Py_MOD_PER_INTERPRETER_GIL_SUPPORTED},
#endif
    {0, NULL},
};

static struct PyModuleDef definition = {
    .m_base = PyModuleDef_HEAD_INIT,
    .m_name = "pysandboxes._core",
    .m_doc = "The Go engine. Private: pysandboxes is the interface. Errors are RuntimeError whose text is a JSON object.",
    .m_size = 0,
    .m_methods = methods,
    .m_slots = slots,
};

PyMODINIT_FUNC PyInit__core(void) { return PyModuleDef_Init(&definition); }
