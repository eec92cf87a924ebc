/* A slot of a C type is guarded in place, as patch.c does it with functions. */
#include "guard.h"

#include <dlfcn.h>
#include <string.h>

/* A program may put a type of another extension into a module, and name it as it likes: only what is the type's own, and
 * lies in the object that the module lies in, is touched. */
bool psb_types_own(PyObject *descriptor, PyTypeObject *type, const void *function, const void *module) {
    Dl_info f, m;
    return PyDescr_TYPE(descriptor) == type && dladdr(function, &f) && dladdr(module, &m) && f.dli_fbase == m.dli_fbase;
}

/* The slot itself, which subclasses have copied from it by the time a program makes them, and its descriptor, by which
 * super() comes. */
void psb_patch_slot(PyTypeObject *type, const void *module, const char *name, void **slot, void **original, void *guarded) {
    PyObject *dict = PyObject_GetAttrString((PyObject *)type, "__dict__");
    PyObject *descriptor = dict ? PyMapping_GetItemString(dict, name) : NULL;
    PyErr_Clear();
    if (*slot != guarded && descriptor && Py_IS_TYPE(descriptor, &PyWrapperDescr_Type) &&
        ((PyWrapperDescrObject *)descriptor)->d_wrapped == *slot && psb_types_own(descriptor, type, *slot, module) &&
        (!*original || *original == *slot)) {
        *original = *slot;
        *slot = ((PyWrapperDescrObject *)descriptor)->d_wrapped = guarded;
    }
    Py_XDECREF(descriptor);
    Py_XDECREF(dict);
}
