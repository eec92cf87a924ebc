/* Which types of ctypes can hold an address or reach beyond their own memory, and which row of the registry grants them. */
#include "ctypes.h"

#include <string.h>

psb_ctypes psb_ctypes_known[CT_MAX];
int psb_ctypes_n;
psb_ctypes_originals psb_ctypes_original;

static const char *const ROWS[CR_ROWS] = {
    [CR_STRUCTURE] = "ctypes.Structure", [CR_UNION] = "ctypes.Union",         [CR_POINTER] = "ctypes.POINTER",
    [CR_CHAR_P] = "ctypes.c_char_p",     [CR_WCHAR_P] = "ctypes.c_wchar_p",   [CR_VOID_P] = "ctypes.c_void_p",
    [CR_OBJECT] = "ctypes.py_object",    [CR_ARRAY] = "ctypes.Array",         [CR_CFUNCTYPE] = "ctypes.CFUNCTYPE",
    [CR_CALL] = "ctypes.CFuncPtr",       [CR_MEMMOVE] = "ctypes.memmove",     [CR_MEMSET] = "ctypes.memset",
    [CR_CAST] = "ctypes.cast",           [CR_STRING_AT] = "ctypes.string_at", [CR_WSTRING_AT] = "ctypes.wstring_at",
    [CR_OBJECTS] = "ctypes.keepalive",   [CR_FROM_ADDRESS] = "ctypes.from_address",
};

/* Formats of PEP 3118 that ctypes gives to what holds an address. Unions, functions and packed structures have formats that
 * do not say so; only PLAIN is free. */
static const struct {
    char format;
    enum psb_ctypes_row row;
} ADDRESSES[] = {{'z', CR_CHAR_P}, {'Z', CR_WCHAR_P}, {'P', CR_VOID_P}, {'O', CR_OBJECT}};
static const char PLAIN[] = "cbBhHiIlLqQfdgu?";

static int call_of(enum psb_ctypes_row row) {
    static int calls[CR_ROWS]; /* 0: not looked up yet; else the id and one */
    if (!calls[row])
        calls[row] = psb_call_id(ROWS[row], strlen(ROWS[row])) + 1;
    return calls[row] - 1; /* -1 would be a row that the registry lost: never allowed */
}

bool psb_ctypes_granted(enum psb_ctypes_row row) { return !psb.enforce || (!psb.learn && psb_call_allowed(call_of(row))); }

int psb_ctypes_ask(enum psb_ctypes_row row) {
    if (psb_ctypes_granted(row))
        return 0;
    if (call_of(row) >= 0)
        return psb_call_check(call_of(row), ROWS[row]);
    PyErr_Format(PyExc_PermissionError, "%s: the registry does not know it", ROWS[row]);
    return -1;
}

const psb_ctypes *psb_ctypes_of(PyTypeObject *type) {
    for (int i = 0; i < psb_ctypes_n; i++)
        if (PyType_IsSubtype(type, psb_ctypes_known[i].cdata))
            return &psb_ctypes_known[i];
    return NULL;
}

/* By the format that _ctypes keeps of the type: what its class says (_type_, _length_) can be changed afterwards. */
static enum psb_ctypes_row by_format(const psb_ctypes *ct, PyTypeObject *type) {
    PyObject *info = PyObject_CallOneArg(ct->buffer_info, (PyObject *)type);
    if (!info) {
        if (!PyErr_ExceptionMatches(PyExc_TypeError))
            return CR_ERROR;
        PyErr_Clear(); /* an abstract class: the original refuses to make an instance of it */
        return CR_FREE;
    }
    PyObject *format = PyTuple_GET_ITEM(info, 0);
    long dimensions = PyLong_AsLong(PyTuple_GET_ITEM(info, 1));
    const char *f = PyUnicode_Check(format) ? PyUnicode_AsUTF8(format) : NULL;
    enum psb_ctypes_row row = CR_ARRAY;
    if (f && (f[0] == '<' || f[0] == '>') && f[1] && !f[2]) {
        for (size_t i = 0; i < sizeof ADDRESSES / sizeof *ADDRESSES; i++)
            if (ADDRESSES[i].format == f[1])
                row = ADDRESSES[i].row;
        /* An array of arrays copies what it is assigned by the size of its own item, not of the value. */
        if (strchr(PLAIN, f[1]) && dimensions >= 0 && dimensions <= 1)
            row = CR_FREE;
    }
    PyErr_Clear();
    Py_DECREF(info);
    return row;
}

enum psb_ctypes_row psb_ctypes_needs(PyTypeObject *type) {
    static const enum psb_ctypes_row always[] = {CR_STRUCTURE, CR_UNION, CR_POINTER, CR_CFUNCTYPE};
    const psb_ctypes *ct = psb_ctypes_of(type);
    if (!ct)
        return CR_ARRAY;
    for (int root = CT_STRUCTURE; root <= CT_FUNCTION; root++)
        if (PyType_IsSubtype(type, ct->roots[root]))
            return always[root];
    /* A metaclass of the program's own could give the class another order of bases later, or call anything an instance. */
    bool array = PyType_IsSubtype(type, ct->roots[CT_ARRAY]);
    if (array == (bool)PyType_IsSubtype(type, ct->roots[CT_SIMPLE]) || !Py_IS_TYPE(type, ct->metas[array ? CT_ARRAY : CT_SIMPLE]))
        return CR_ARRAY;
    return by_format(ct, type);
}

/* Where an object's memory is, its size, and the size of an item. By _ctypes' own function: a class can have a __buffer__ of
 * its own (3.12). */
bool psb_ctypes_memory(PyObject *cdata, char **at, Py_ssize_t *size, Py_ssize_t *item) {
    Py_buffer view;
    if (psb_ctypes_original.buffer(cdata, &view, PyBUF_SIMPLE) < 0) {
        PyErr_Clear();
        return false;
    }
    *at = view.buf;
    *size = view.len;
    *item = view.itemsize;
    Py_DECREF(view.obj); /* _ctypes has nothing to release; PyBuffer_Release would call the class's __release_buffer__ */
    return true;
}
