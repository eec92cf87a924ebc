/* What stands before the operations of _ctypes that give raw memory. Each asks first, and then lets the original do all. */
#include "ctypes.h"

#include <string.h>
#include <structmember.h> /* PyMember_GetOne, before 3.12 */

#define O psb_ctypes_original

/* ---- instances ---- */

static int ask_instance(PyObject *type) {
    enum psb_ctypes_row row = psb_ctypes_needs((PyTypeObject *)type);
    return row == CR_FREE ? 0 : row == CR_ERROR ? -1 : psb_ctypes_ask(row);
}

PyObject *psb_ct_data_new(PyTypeObject *type, PyObject *args, PyObject *kwds) {
    return ask_instance((PyObject *)type) < 0 ? NULL : O.data_new(type, args, kwds);
}

PyObject *psb_ct_pointer_new(PyTypeObject *type, PyObject *args, PyObject *kwds) {
    return psb_ctypes_ask(CR_POINTER) < 0 ? NULL : O.pointer_new(type, args, kwds);
}

static const psb_ctypes *with_function(const void *at, enum psb_ctypes_row *row) {
    for (int i = 0; i < psb_ctypes_n; i++)
        for (int k = 0; k < psb_ctypes_known[i].n_functions; k++)
            if (psb_ctypes_known[i].functions[k].at == at) {
                *row = psb_ctypes_known[i].functions[k].row;
                return &psb_ctypes_known[i];
            }
    return NULL;
}

/* A function of the addresses that `import ctypes` makes memmove and the like from may be made by anybody: it is held when it
 * is called. A function of a library is the event ctypes.dlsym's. */
PyObject *psb_ct_function_new(PyTypeObject *type, PyObject *args, PyObject *kwds) {
    PyObject *first = PyTuple_Check(args) && PyTuple_GET_SIZE(args) == 1 ? PyTuple_GET_ITEM(args, 0) : NULL;
    enum psb_ctypes_row row;
    bool own = false;
    if (first && PyLong_CheckExact(first)) {
        own = with_function(PyLong_AsVoidPtr(first), &row) != NULL;
        PyErr_Clear();
    }
    bool of_library = PyTuple_Check(args) && PyTuple_GET_SIZE(args) >= 1 && PyTuple_Check(PyTuple_GET_ITEM(args, 0));
    if (!own && !of_library && psb_ctypes_ask(CR_CFUNCTYPE) < 0)
        return NULL;
    return O.function_new(type, args, kwds);
}

/* ---- calls ---- */

/* multiprocessing clears the shared memory of a new object by ctypes.memset(addressof(obj), 0, sizeof(obj)). The memory is
 * found again in the caller's `obj`, a plain object that lives while we look: then it may be cleared, by us. */
static PyObject *clear_own_memory(PyObject *args) {
    static const char *const files[] = {"multiprocessing/sharedctypes.py", NULL};
    if (PyTuple_GET_SIZE(args) != 3 || !psb_frame_in(files))
        return NULL;
    for (int i = 0; i < 3; i++)
        if (!PyLong_CheckExact(PyTuple_GET_ITEM(args, i)))
            return NULL;
    char *wanted = PyLong_AsVoidPtr(PyTuple_GET_ITEM(args, 0)), *at = NULL;
    long value = PyLong_AsLong(PyTuple_GET_ITEM(args, 1));
    Py_ssize_t n = PyLong_AsSsize_t(PyTuple_GET_ITEM(args, 2)), size = 0, item;
    PyThreadState *ts = PyThreadState_GetUnchecked();
    PyFrameObject *frame = ts && !PyErr_Occurred() ? PyThreadState_GetFrame(ts) : NULL;
    PyObject *locals = frame ? PyFrame_GetLocals(frame) : NULL;
    PyObject *obj = locals ? PyMapping_GetItemString(locals, "obj") : NULL, *result = NULL;
    PyErr_Clear();
    if (obj && value == 0 && n >= 0 && psb_ctypes_of(Py_TYPE(obj)) && psb_ctypes_needs(Py_TYPE(obj)) == CR_FREE &&
        psb_ctypes_memory(obj, &at, &size, &item) && wanted && at == wanted && n <= size) {
        memset(at, 0, (size_t)n);
        result = PyLong_FromVoidPtr(at);
    }
    if (!result)
        PyErr_Clear();
    Py_XDECREF(obj);
    Py_XDECREF(locals);
    Py_XDECREF((PyObject *)frame);
    return result;
}

PyObject *psb_ct_call(PyObject *self, PyObject *args, PyObject *kwds) {
    char *at;
    Py_ssize_t size, item;
    const void *function = NULL;
    enum psb_ctypes_row row = CR_CALL;
    if (psb_ctypes_memory(self, &at, &size, &item) && size == (Py_ssize_t)sizeof function) {
        memcpy(&function, at, sizeof function);
        with_function(function, &row);
    }
    if (row == CR_MEMSET && !psb_ctypes_granted(row) && !(kwds && PyDict_GET_SIZE(kwds))) {
        PyObject *cleared = clear_own_memory(args);
        if (cleared)
            return cleared;
    }
    return psb_ctypes_ask(row) < 0 ? NULL : O.call(self, args, kwds);
}

/* ---- fields: a descriptor takes any object of ctypes, however small ---- */

static int ask_field(PyObject *inst) {
    const psb_ctypes *ct = psb_ctypes_of(Py_TYPE(inst));
    if (!ct) /* the original says so in its own words */
        return 0;
    return psb_ctypes_ask(PyType_IsSubtype(Py_TYPE(inst), ct->roots[CT_UNION]) ? CR_UNION : CR_STRUCTURE);
}

PyObject *psb_ct_field_get(PyObject *self, PyObject *inst, PyObject *type) {
    return inst && ask_field(inst) < 0 ? NULL : O.field_get(self, inst, type);
}

int psb_ct_field_set(PyObject *self, PyObject *inst, PyObject *value) {
    return ask_field(inst) < 0 ? -1 : O.field_set(self, inst, value);
}

/* ---- pointers ---- */

PyObject *psb_ct_pointer_item(PyObject *self, Py_ssize_t i) { return psb_ctypes_ask(CR_POINTER) < 0 ? NULL : O.pointer_item(self, i); }

int psb_ct_pointer_ass_item(PyObject *self, Py_ssize_t i, PyObject *value) {
    return psb_ctypes_ask(CR_POINTER) < 0 ? -1 : O.pointer_ass_item(self, i, value);
}

PyObject *psb_ct_pointer_subscript(PyObject *self, PyObject *key) {
    return psb_ctypes_ask(CR_POINTER) < 0 ? NULL : O.pointer_subscript(self, key);
}

PyObject *psb_ct_contents_get(PyObject *self, void *closure) {
    return psb_ctypes_ask(CR_POINTER) < 0 ? NULL : O.contents_get(self, closure);
}

int psb_ct_contents_set(PyObject *self, PyObject *value, void *closure) {
    return psb_ctypes_ask(CR_POINTER) < 0 ? -1 : O.contents_set(self, value, closure);
}

/* ---- arrays: an item is copied by the size of the array's item, and a subclass, or what says that it is one, can be smaller ---- */

static int ask_item(PyObject *self, PyObject *value) {
    char *at;
    Py_ssize_t size, item, ignored, have;
    if (!value || !psb_ctypes_of(Py_TYPE(value)))
        return 0;
    if (psb_ctypes_memory(self, &at, &size, &item) && psb_ctypes_memory(value, &at, &have, &ignored) && have >= item)
        return 0;
    return psb_ctypes_ask(CR_ARRAY);
}

int psb_ct_array_ass_item(PyObject *self, Py_ssize_t i, PyObject *value) {
    return ask_item(self, value) < 0 ? -1 : O.array_ass_item(self, i, value);
}

int psb_ct_array_ass_subscript(PyObject *self, PyObject *key, PyObject *value) {
    if (!value || psb_ctypes_granted(CR_ARRAY) || PyBytes_CheckExact(value) || PyUnicode_CheckExact(value))
        return O.array_ass_subscript(self, key, value);
    if (!PySlice_Check(key))
        return ask_item(self, value) < 0 ? -1 : O.array_ass_subscript(self, key, value);
    /* The items as they are judged are the ones that are assigned. */
    Py_ssize_t n = PySequence_Size(value);
    if (n < 0) { /* the original says so in its own words */
        PyErr_Clear();
        return O.array_ass_subscript(self, key, value);
    }
    PyObject *items = PyTuple_New(n);
    int rc = items ? 0 : -1;
    for (Py_ssize_t i = 0; rc == 0 && i < n; i++) {
        PyObject *item = PySequence_GetItem(value, i);
        if (!item || ask_item(self, item) < 0) {
            Py_XDECREF(item);
            rc = -1;
        } else {
            PyTuple_SET_ITEM(items, i, item);
        }
    }
    if (rc == 0)
        rc = O.array_ass_subscript(self, key, items);
    Py_XDECREF(items);
    return rc;
}

/* ---- what an object keeps alive: who gets at the memoryview of from_buffer() can release it under the object ---- */

PyObject *psb_ct_objects_get(PyObject *self, void *closure) {
    (void)closure;
    PyObject *kept = PyMember_GetOne((const char *)self, O.objects);
    if (kept && kept != Py_None && psb_ctypes_ask(CR_OBJECTS) < 0)
        Py_CLEAR(kept);
    return kept;
}

int psb_ct_objects_set(PyObject *self, PyObject *value, void *closure) {
    (void)closure;
    return PyMember_SetOne((char *)self, O.objects, value); /* it is read-only, and says so */
}

/* ---- from_buffer(): what raises the event of from_address(), though its memory is the buffer's ---- */

static __thread const char *of_buffer; /* the address whose next event is such a one */

/* 1: nothing has to be judged. */
int psb_ctypes_event(const char *event, PyObject *args) {
    if (strcmp(event, "ctypes.cdata") == 0) {
        const char *expected = of_buffer;
        of_buffer = NULL;
        if (!expected || PyTuple_GET_SIZE(args) != 1 || !PyLong_CheckExact(PyTuple_GET_ITEM(args, 0)))
            return 0;
        bool same = PyLong_AsVoidPtr(PyTuple_GET_ITEM(args, 0)) == expected;
        PyErr_Clear();
        return same;
    }
    if (strcmp(event, "object.__setattr__") != 0)
        return 0;
    /* The class of an object, or the bases of a class: what was a number would be a pointer. */
    PyObject *self = PyTuple_GET_SIZE(args) >= 2 ? PyTuple_GET_ITEM(args, 0) : NULL;
    PyObject *name = self ? PyTuple_GET_ITEM(args, 1) : NULL;
    if (!psb_ctypes_n || !name || !PyUnicode_Check(name) ||
        (PyUnicode_CompareWithASCIIString(name, "__class__") != 0 && PyUnicode_CompareWithASCIIString(name, "__bases__") != 0))
        return 1;
    return !psb_ctypes_of(Py_TYPE(self)) && !(PyType_Check(self) && psb_ctypes_of((PyTypeObject *)self));
}

/* The buffer and the offset as what no code of the program's answers for any more: between here and the event only C runs. */
static PyObject *plain_buffer(PyObject *const *args, Py_ssize_t n, PyObject *plain[2]) {
    plain[0] = plain[1] = NULL;
    if (n == 2) {
        PyObject *index = PyNumber_Index(args[1]);
        Py_ssize_t offset = index ? PyLong_AsSsize_t(index) : -1;
        Py_XDECREF(index);
        plain[1] = PyErr_Occurred() ? NULL : PyLong_FromSsize_t(offset);
        if (!plain[1])
            return NULL;
    }
    plain[0] = PyMemoryView_FromObject(args[0]);
    return plain[0];
}

/* While the window is open no collection may start, since that runs finalizers: of this thread only C code runs then. */
static int open_window(PyObject *plain[2]) {
    of_buffer = (const char *)PyMemoryView_GET_BUFFER(plain[0])->buf + (plain[1] ? PyLong_AsSsize_t(plain[1]) : 0);
    return PyGC_Disable();
}

static void close_window(int collected) {
    of_buffer = NULL;
    if (collected)
        PyGC_Enable();
}

#if PY_VERSION_HEX >= 0x030D0000
typedef PyObject *(*method_type)(PyObject *, PyTypeObject *, PyObject *const *, Py_ssize_t, PyObject *);
const int psb_ct_from_buffer_flags = METH_METHOD | METH_FASTCALL | METH_KEYWORDS;

static PyObject *from_buffer(PyObject *type, PyTypeObject *cls, PyObject *const *args, Py_ssize_t n, PyObject *kwnames) {
    PyObject *plain[2] = {NULL, NULL}, *result = NULL;
    if (!PyType_Check(type) || n < 1 || n > 2 || (kwnames && PyTuple_GET_SIZE(kwnames))) /* the original says so in its own words */
        return ((method_type)(void *)O.from_buffer)(type, cls, args, n, kwnames);
    if (ask_instance(type) == 0 && plain_buffer(args, n, plain)) {
        int collected = open_window(plain);
        result = ((method_type)(void *)O.from_buffer)(type, cls, plain, n, NULL);
        close_window(collected);
    }
    Py_XDECREF(plain[0]);
    Py_XDECREF(plain[1]);
    return result;
}

static PyObject *from_buffer_copy(PyObject *type, PyTypeObject *cls, PyObject *const *args, Py_ssize_t n, PyObject *kwnames) {
    return ask_instance(type) < 0 ? NULL : ((method_type)(void *)O.from_buffer_copy)(type, cls, args, n, kwnames);
}
#else
const int psb_ct_from_buffer_flags = METH_VARARGS;

static PyObject *from_buffer(PyObject *type, PyObject *args) {
    PyObject *plain[2] = {NULL, NULL}, *result = NULL, *converted = NULL;
    Py_ssize_t n = PyTuple_GET_SIZE(args);
    if (n < 1 || n > 2) /* the original says so in its own words */
        return O.from_buffer(type, args);
    if (ask_instance(type) == 0 && plain_buffer(((PyTupleObject *)args)->ob_item, n, plain))
        converted = n == 2 ? PyTuple_Pack(2, plain[0], plain[1]) : PyTuple_Pack(1, plain[0]);
    if (converted) {
        int collected = open_window(plain);
        result = O.from_buffer(type, converted);
        close_window(collected);
    }
    Py_XDECREF(converted);
    Py_XDECREF(plain[0]);
    Py_XDECREF(plain[1]);
    return result;
}

static PyObject *from_buffer_copy(PyObject *type, PyObject *args) { return ask_instance(type) < 0 ? NULL : O.from_buffer_copy(type, args); }
#endif

PyCFunction const psb_ct_from_buffer = (PyCFunction)(void *)from_buffer, psb_ct_from_buffer_copy = (PyCFunction)(void *)from_buffer_copy;
