/* FileIO(file, mode='r', closefd=True, opener=None), which open() ends in. Its event carries the object that was given.
 *
 * A path object is asked once, here, and the event and the call get the answer: asked again it could say something else. And
 * where there is an opener, it is the opener that opens: what it does is judged, and the name is only a name. The event of
 * such a call is known by the path, a copy that nobody else has: no code that runs in between (a finalizer) can raise an
 * event with it.
 */
#include "guard.h"

#include <limits.h>
#include <string.h>

enum { FILE_, MODE, CLOSEFD, OPENER, PARAMETERS };
static initproc original_init;

/* The arguments by their place, borrowed; false where the original has something to say about them. */
static bool arguments(PyObject *args, PyObject *kwargs, PyObject *value[PARAMETERS]) {
    static const char *const names[PARAMETERS] = {"file", "mode", "closefd", "opener"};
    Py_ssize_t n = PyTuple_GET_SIZE(args), pos = 0;
    PyObject *key, *item;
    if (n > PARAMETERS)
        return false;
    for (Py_ssize_t i = 0; i < PARAMETERS; i++)
        value[i] = i < n ? PyTuple_GET_ITEM(args, i) : NULL;
    while (kwargs && PyDict_Next(kwargs, &pos, &key, &item)) {
        int i = 0;
        while (i < PARAMETERS && !(PyUnicode_Check(key) && PyUnicode_CompareWithASCIIString(key, names[i]) == 0))
            i++;
        if (i == PARAMETERS || value[i])
            return false;
        value[i] = item;
    }
    if (!value[FILE_] || (value[MODE] && !PyUnicode_Check(value[MODE])))
        return false;
    Py_ssize_t length = 0;
    const char *mode = value[MODE] ? PyUnicode_AsUTF8AndSize(value[MODE], &length) : "";
    bool possible = mode && strlen(mode) == (size_t)length;
    PyErr_Clear();
    return possible;
}

/* What the original shall get: a new reference, or NULL with an exception. */
static PyObject *once(PyObject *file) {
    if (PyLong_Check(file) || PyFloat_Check(file))
        return Py_NewRef(file);
    PyObject *number = PyIndex_Check(file) ? PyNumber_Index(file) : NULL;
    if (number)
        return number;
    PyErr_Clear(); /* no descriptor: then it may be a path, as the original has it */
    PyObject *path = PyOS_FSPath(file), *copy = path ? psb_own_copy(path) : NULL;
    Py_XDECREF(path);
    return copy;
}

/* Errors and the attribute `name` have what was given. */
static int name_given(PyObject *self, PyObject *used, PyObject *given, int rc) {
    if (used == given || (rc == 0 && Py_IS_TYPE(given, Py_TYPE(used))))
        return rc;
    if (rc == 0)
        return PyObject_SetAttrString(self, "name", given);
    if (!PyErr_ExceptionMatches(PyExc_OSError))
        return rc;
    PyObject *type, *value, *tb;
    PyErr_Fetch(&type, &value, &tb);
    PyErr_NormalizeException(&type, &value, &tb);
    PyObject *name = value ? PyObject_GetAttrString(value, "filename") : NULL;
    if (name == used)
        PyObject_SetAttrString(value, "filename", given);
    PyErr_Clear();
    Py_XDECREF(name);
    PyErr_Restore(type, value, tb);
    return rc;
}

/* closefd as this version takes it: 1, 0, or -1 with an exception. */
static int truth(PyObject *o) {
#if PY_VERSION_HEX < 0x030C0000
    PyObject *number = PyNumber_Index(o);
    int overflow = 0;
    long value = number ? PyLong_AsLongAndOverflow(number, &overflow) : -1;
    Py_XDECREF(number);
    if (!number)
        return -1;
    if (overflow || value > INT_MAX || value < INT_MIN) {
        PyErr_SetString(PyExc_OverflowError, "Python int too large to convert to C int");
        return -1;
    }
    return value != 0;
#else
    return PyObject_IsTrue(o);
#endif
}

static int file_init(PyObject *self, PyObject *args, PyObject *kwargs) {
    PyObject *value[PARAMETERS];
    if (!psb.enforce || !arguments(args, kwargs, value)) /* then the event has no mark */
        return original_init(self, args, kwargs);
    for (int i = 0; i < PARAMETERS; i++)
        Py_XINCREF(value[i]); /* Python code runs from here on, and kwargs may be the program's own */
    int closefd = value[CLOSEFD] ? truth(value[CLOSEFD]) : 1, rc = -1;
    PyObject *used = closefd < 0 ? NULL : once(value[FILE_]);
    PyObject *mode = value[MODE] ? PyUnicode_FromObject(value[MODE]) : PyUnicode_FromString("r");
    PyObject *opener = value[OPENER] ? value[OPENER] : Py_None, *plain = NULL;
    if (used && mode)
        plain = PyTuple_Pack(PARAMETERS, used, mode, closefd ? Py_True : Py_False, opener);
    if (plain) {
        bool text = PyUnicode_CheckExact(used) || PyBytes_CheckExact(used);
        psb_judged_open = text && opener != Py_None ? used : NULL;
        rc = original_init(self, plain, NULL);
        psb_judged_open = NULL;
        rc = name_given(self, used, value[FILE_], rc);
    }
    for (int i = 0; i < PARAMETERS; i++)
        Py_XDECREF(value[i]);
    Py_XDECREF(plain);
    Py_XDECREF(mode);
    Py_XDECREF(used);
    return rc;
}

int psb_guard_fileio(const char *name, PyObject *module) {
    const PyModuleDef *def = strcmp(name, "_io") == 0 ? PyModule_GetDef(module) : NULL;
    PyObject *type = def ? PyObject_GetAttrString(module, "FileIO") : NULL;
    PyErr_Clear();
    if (type && PyType_Check(type) && strcmp(((PyTypeObject *)type)->tp_name, "_io.FileIO") == 0) {
        PyTypeObject *t = (PyTypeObject *)type;
        psb_patch_slot(t, def, "__init__", (void **)&t->tp_init, (void **)&original_init, (void *)file_init);
    }
    Py_XDECREF(type);
    return 0;
}
