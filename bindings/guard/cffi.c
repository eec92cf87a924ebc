/* cffi: its FFI objects make pointers of numbers, and a library's functions take them.
 *
 * A compiled package (PyNaCl, argon2) has an FFI object and a library of its own, and works with them as part of itself: so code
 * of an installed package may use them where its own text names what it uses. The text is compared with the package's file
 * (identity.c): code that only says that it is there is the program's. A package's code that calls what it was given, such as
 * an iterator over map(ffi.cast, ...), does not name it.
 *
 * The functions of _cffi_backend below, which cffi.FFI() in ABI mode is made of, are rows of the registry and free to nobody.
 *
 * What it does not hold: items and fields of a pointer object that a package hands out.
 */
#include "guard.h"

#include <string.h>

static const char ROW[] = "cffi.FFI.cast";
static const char *const METHODS[] = {"addressof", "callback", "cast",          "def_extern", "dlopen", "from_buffer", "from_handle", "gc",
                                      "memmove",   "new",      "new_allocator", "new_handle", "string", "unpack",      NULL};
static newfunc buffer_new;
static getattrofunc lib_getattro;

static bool names(PyCodeObject *code, const char *name) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(code->co_names); i++)
        if (PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(code->co_names, i), name) == 0)
            return true;
    return false;
}

/* Below a folder of installed packages, and not cffi itself, which does what it is told. */
static bool of_package(PyCodeObject *code) {
    Py_ssize_t n;
    const char *s = PyUnicode_AsUTF8AndSize(code->co_filename, &n);
    bool yes = false;
    for (uint32_t i = 0; s && i < psb.site.n && !yes; i++) {
        psb_text f = psb.site.items[i];
        if ((size_t)n > f.n + 1 && memcmp(s, f.s, f.n) == 0 && s[f.n] == '/')
            yes = strncmp(s + f.n + 1, "cffi/", 5) != 0;
    }
    PyErr_Clear();
    return yes;
}

static bool of_its_own(const char *name, const char *or_name) {
    PyThreadState *ts = PyThreadState_GetUnchecked();
    PyFrameObject *frame = ts ? PyThreadState_GetFrame(ts) : NULL;
    PyCodeObject *code = frame ? PyFrame_GetCode(frame) : NULL;
    bool yes = code && of_package(code) && (names(code, name) || (or_name && names(code, or_name))) && psb_code_verified(code);
    Py_XDECREF(code);
    Py_XDECREF(frame);
    return yes;
}

static int ask(const char *name, const char *or_name) {
    int call = psb_call_id(ROW, sizeof ROW - 1);
    if (!psb.enforce || (!psb.learn && psb_call_allowed(call)) || of_its_own(name, or_name))
        return 0;
    return psb_call_check(call, ROW);
}

PyObject *psb_cffi_call(PSB_CALL) { return ask(door->name, NULL) < 0 ? NULL : psb_call_original(original, args, n, kwnames); }

static PyObject *held_buffer_new(PyTypeObject *type, PyObject *args, PyObject *kwds) {
    return ask("buffer", NULL) < 0 ? NULL : buffer_new(type, args, kwds);
}

static PyObject *held_getattro(PyObject *self, PyObject *name) {
    const char *s = PyUnicode_Check(name) ? PyUnicode_AsUTF8(name) : NULL;
    PyErr_Clear();
    bool dunder = s && s[0] == '_' && s[1] == '_';
    return !dunder && ask(s ? s : "", "getattr") < 0 ? NULL : lib_getattro(self, name);
}

static PyTypeObject *type_of(PyObject *module, const char *name) {
    PyObject *type = PyObject_GetAttrString(module, name);
    PyErr_Clear();
    if (type && PyType_Check(type) && !(((PyTypeObject *)type)->tp_flags & Py_TPFLAGS_HEAPTYPE) && ((PyTypeObject *)type)->tp_dict)
        return (PyTypeObject *)type; /* static, kept by the module for ever */
    Py_XDECREF(type);
    PyErr_Format(PyExc_RuntimeError, "pysandboxes: _cffi_backend.%s is not as the guard knows it", name);
    return NULL;
}

int psb_guard_cffi(PyObject *module) {
    PyModuleDef *def = PyModule_GetDef(module);
    PyErr_Clear();
    if (!def || !def->m_name || strcmp(def->m_name, "_cffi_backend") != 0)
        return 0;
    PyTypeObject *ffi = type_of(module, "FFI"), *buffer = ffi ? type_of(module, "buffer") : NULL, *lib = buffer ? type_of(module, "Lib") : NULL;
    if (!lib)
        return -1;
    for (const char *const *m = METHODS; *m; m++) {
        PyObject *method = PyDict_GetItemString(ffi->tp_dict, *m); /* borrowed */
        if (!method || !Py_IS_TYPE(method, &PyMethodDescr_Type)) {
            PyErr_Format(PyExc_RuntimeError, "pysandboxes: _cffi_backend.FFI.%s is not as the guard knows it", *m);
            return -1;
        }
        if (psb_patch(((PyMethodDescrObject *)method)->d_method, DOOR_CFFI, psb_call_id(ROW, sizeof ROW - 1), NULL) < 0)
            return -1;
    }
    if (buffer->tp_new != held_buffer_new) {
        buffer_new = buffer->tp_new;
        buffer->tp_new = held_buffer_new;
        PyType_Modified(buffer);
    }
    if (lib->tp_getattro != held_getattro) {
        PyObject *wrapper = PyDict_GetItemString(lib->tp_dict, "__getattribute__"); /* borrowed */
        lib_getattro = lib->tp_getattro;
        lib->tp_getattro = held_getattro;
        if (wrapper && Py_IS_TYPE(wrapper, &PyWrapperDescr_Type))
            ((PyWrapperDescrObject *)wrapper)->d_wrapped = (void *)held_getattro;
        PyType_Modified(lib);
    }
    return 0;
}
