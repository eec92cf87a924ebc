/* What the files that hold _ctypes share: ctypes.c says which types can hold an address, ctypes_held.c what is held of
 * them, ctypes_install.c puts that into _ctypes' types.
 *
 * Why types: almost nothing of ctypes raises an event, and each of its objects is a view of memory. What is free without a
 * grant of `native` can neither hold an address nor reach beyond its own bytes: plain numbers and one-dimensional arrays of
 * them. Classes may be made freely (libraries define their structures when they are imported); to make an instance of one that
 * holds an address, to follow a pointer, to read a field or to call a function is asked for.
 *
 * All of this runs with the GIL of the main interpreter. In another one (itself a grant of `native`) _ctypes is imported by a
 * grant of calls alone.
 */
#ifndef PSB_CTYPES_H
#define PSB_CTYPES_H

#include "guard.h"

enum psb_ctypes_root { CT_STRUCTURE, CT_UNION, CT_POINTER, CT_FUNCTION, CT_ARRAY, CT_SIMPLE, CT_ROOTS };

/* Rows of the registry, by what is held. */
enum psb_ctypes_row {
    CR_STRUCTURE, CR_UNION, CR_POINTER, CR_CHAR_P, CR_WCHAR_P, CR_VOID_P, CR_OBJECT, CR_ARRAY, CR_CFUNCTYPE, CR_CALL,
    CR_MEMMOVE, CR_MEMSET, CR_CAST, CR_STRING_AT, CR_WSTRING_AT, CR_OBJECTS, CR_FROM_ADDRESS, CR_ROWS, CR_FREE = -1, CR_ERROR = -2
};

/* One _ctypes. 3.13 makes its types anew for each module object; each is kept, and so are its types. */
typedef struct {
    PyTypeObject *cdata, *roots[CT_ROOTS], *metas[CT_ROOTS];
    PyObject *buffer_info; /* owned; a C function that runs no Python code */
    struct {
        const void *at;
        enum psb_ctypes_row row;
    } functions[8]; /* what `import ctypes` makes functions of */
    int n_functions;
    bool held; /* all of it */
} psb_ctypes;

#define CT_MAX 8
extern psb_ctypes psb_ctypes_known[CT_MAX];
extern int psb_ctypes_n;

/* The C functions of _ctypes that ours stand before: the same ones for every module object. */
typedef struct {
    newfunc data_new, pointer_new, function_new;
    ternaryfunc call;
    descrgetfunc field_get;
    descrsetfunc field_set;
    ssizeargfunc pointer_item;
    ssizeobjargproc pointer_ass_item, array_ass_item;
    binaryfunc pointer_subscript;
    objobjargproc array_ass_subscript;
    getter contents_get;
    setter contents_set;
    getbufferproc buffer;
    PyCFunction from_buffer, from_buffer_copy;
    PyMemberDef *objects;
} psb_ctypes_originals;
extern psb_ctypes_originals psb_ctypes_original;

bool psb_ctypes_granted(enum psb_ctypes_row row);
int psb_ctypes_ask(enum psb_ctypes_row row);             /* 0, or -1 with an exception */
const psb_ctypes *psb_ctypes_of(PyTypeObject *type);     /* NULL: no type of ctypes */
enum psb_ctypes_row psb_ctypes_needs(PyTypeObject *type); /* what an instance needs; CR_ERROR with an exception */
bool psb_ctypes_memory(PyObject *cdata, char **at, Py_ssize_t *size, Py_ssize_t *item);

PyObject *psb_ct_data_new(PyTypeObject *type, PyObject *args, PyObject *kwds);
PyObject *psb_ct_pointer_new(PyTypeObject *type, PyObject *args, PyObject *kwds);
PyObject *psb_ct_function_new(PyTypeObject *type, PyObject *args, PyObject *kwds);
PyObject *psb_ct_call(PyObject *self, PyObject *args, PyObject *kwds);
PyObject *psb_ct_field_get(PyObject *self, PyObject *inst, PyObject *type);
int psb_ct_field_set(PyObject *self, PyObject *inst, PyObject *value);
PyObject *psb_ct_pointer_item(PyObject *self, Py_ssize_t i);
int psb_ct_pointer_ass_item(PyObject *self, Py_ssize_t i, PyObject *value);
PyObject *psb_ct_pointer_subscript(PyObject *self, PyObject *key);
int psb_ct_array_ass_item(PyObject *self, Py_ssize_t i, PyObject *value);
int psb_ct_array_ass_subscript(PyObject *self, PyObject *key, PyObject *value);
PyObject *psb_ct_contents_get(PyObject *self, void *closure);
int psb_ct_contents_set(PyObject *self, PyObject *value, void *closure);
PyObject *psb_ct_objects_get(PyObject *self, void *closure);
int psb_ct_objects_set(PyObject *self, PyObject *value, void *closure);
extern PyCFunction const psb_ct_from_buffer, psb_ct_from_buffer_copy; /* of the calling convention of this Python */
extern const int psb_ct_from_buffer_flags;

#endif
