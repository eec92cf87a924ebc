/* Doors before functions that take paths: what the verdict depends on is made exact first, and the exact values are what
 * the function gets.
 */
#include "guard.h"

#include <fcntl.h>
#include <limits.h>
#include <string.h>

/* A new reference to path as exact str or bytes, or to path itself where it is a descriptor, None, or no path at all: then
 * the original says so in its own words. NULL with an exception. */
static PyObject *plain_path(const psb_door *door, PyObject *path) {
    if (PyLong_Check(path) || path == Py_None || PyUnicode_CheckExact(path) || PyBytes_CheckExact(path))
        return Py_NewRef(path);
    PyObject *plain;
    if (PyUnicode_Check(path)) {
        plain = PyUnicode_FromObject(path);
    } else if (PyObject_CheckBuffer(path) && !PyBytes_Check(path)) {
        bool fd = door->spec[0] == 'r' && strcmp(door->name, "access") != 0;
        if (PyErr_WarnFormat(PyExc_DeprecationWarning, 1, "%s: path should be string, bytes%s, not %.200s", door->name,
                             fd ? ", os.PathLike or integer" : " or os.PathLike", Py_TYPE(path)->tp_name))
            return NULL;
        return PyBytes_FromObject(path);
    } else if (PyBytes_Check(path)) {
        plain = PyBytes_FromStringAndSize(PyBytes_AS_STRING(path), PyBytes_GET_SIZE(path));
    } else if (PyIndex_Check(path)) {
        plain = PyNumber_Index(path);
    } else {
        PyObject *fspath = PyObject_HasAttrString((PyObject *)Py_TYPE(path), "__fspath__") ? PyOS_FSPath(path) : Py_NewRef(path);
        if (!fspath || fspath == path)
            return fspath;
        plain = plain_path(door, fspath);
        Py_DECREF(fspath);
    }
    return plain;
}

/* Where the argument stands in a vectorcall, or -1. */
static Py_ssize_t place(Py_ssize_t n, PyObject *kwnames, Py_ssize_t at, const char *keyword) {
    if (at >= 0 && at < n)
        return at;
    for (Py_ssize_t k = 0; keyword[0] && kwnames && k < PyTuple_GET_SIZE(kwnames); k++)
        if (PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(kwnames, k), keyword) == 0)
            return n + k;
    return -1;
}

#define ARGUMENTS_MAX 16
typedef struct {
    PyObject *args[ARGUMENTS_MAX + 1], *owned[ARGUMENTS_MAX];
    int n_owned;
} copied;

/* Puts a new reference in an argument's place. */
static bool put(copied *c, Py_ssize_t at, PyObject *value) {
    if (!value)
        return false;
    if (value == c->args[at] || c->n_owned == ARGUMENTS_MAX) {
        Py_DECREF(value);
        return value == c->args[at];
    }
    c->args[at] = c->owned[c->n_owned++] = value;
    return true;
}

/* A number is taken once, as an exact int: __index__ cannot answer the check and the call differently. -1 in *value where
 * there is none; *odd where it is nothing that the original takes. */
static bool number(copied *c, Py_ssize_t at, long *value, bool *odd) {
    *value = -1;
    if (at < 0 || c->args[at] == Py_None)
        return true;
    if (!PyIndex_Check(c->args[at])) {
        *odd = true;
        return true;
    }
    if (!put(c, at, PyNumber_Index(c->args[at])))
        return false;
    int overflow;
    *value = PyLong_AsLongAndOverflow(c->args[at], &overflow);
    *odd |= overflow || *value > INT_MAX || *value < INT_MIN;
    return true;
}

/* One path of the spec at *spec, which moves past it. */
static bool judge_path(const psb_door *door, copied *c, Py_ssize_t n, PyObject *kwnames, const char **spec, bool *opens) {
    char what = *(*spec)++, keyword[32] = "";
    Py_ssize_t at = **spec ? *(*spec)++ - '0' : 0;
    if ((*spec)[0] == 'd' && (*spec)[1] == '=') {
        size_t k = 0;
        for (*spec += 2; **spec && **spec != ' ' && k < sizeof keyword - 1; ++*spec)
            keyword[k++] = **spec;
        keyword[k] = 0;
    }
    while (**spec == ' ')
        ++*spec;
    Py_ssize_t slot = place(n, kwnames, at, at ? "dst" : what == 'n' ? "database" : "path");
    if (slot < 0)
        return true; /* missing: the original complains, or means the working directory */
    long dir_fd, flags = 0;
    bool odd = false;
    if (!number(c, place(n, kwnames, -1, keyword), &dir_fd, &odd))
        return false;
    if (what == 'p') {
        long mode;
        if (dir_fd < 0) /* the event says it all */
            return true;
        if (!number(c, place(n, kwnames, 1, "flags"), &flags, &odd) || !number(c, place(n, kwnames, 2, "mode"), &mode, &odd))
            return false;
    }
    if (odd) /* the original says so in its own words */
        return true;
    if (!put(c, slot, plain_path(door, c->args[slot])))
        return false;
    PyObject *path = c->args[slot];
    if (!PyUnicode_Check(path) && !PyBytes_Check(path) && !PyLong_Check(path) && path != Py_None)
        return true; /* no path: the original says so in its own words */
    if (what == 'n') /* its event judges it */
        return true;
    bool follow = what == 'r' || what == 'o' || (what == 'p' && !(flags & O_NOFOLLOW));
    Py_ssize_t f = place(n, kwnames, -1, "follow_symlinks");
    if (f >= 0) {
        int yes = PyObject_IsTrue(c->args[f]);
        if (yes < 0 || !put(c, f, PyBool_FromLong(yes)))
            return false;
        follow &= yes;
    }
    int need = what == 'w' ? PSB_WRITE : what == 'p' ? psb_open_need(flags) : what == 'o' ? PSB_READ : PSB_READ | PSB_UNHELD;
    *opens = what == 'p';
    return psb_file_object(path, dir_fd < 0 || dir_fd > INT_MAX ? -1 : (int)dir_fd, need, follow, what == 'r' || what == 'l',
                           door->name) == 0;
}

/* An error names the path as it was given, not what it was converted to. */
static void name_given(const copied *c, PyObject *const *args, Py_ssize_t total) {
    if (!PyErr_ExceptionMatches(PyExc_OSError))
        return;
    PyObject *type, *value, *tb;
    PyErr_Fetch(&type, &value, &tb);
    PyErr_NormalizeException(&type, &value, &tb);
    static const char *const attributes[] = {"filename", "filename2"};
    for (int i = 0; i < 2 && value && PyObject_TypeCheck(value, (PyTypeObject *)PyExc_OSError); i++) {
        PyObject *name = PyObject_GetAttrString(value, attributes[i]);
        for (Py_ssize_t k = 0; name && name != Py_None && k < total; k++)
            if (name == c->args[k] && name != args[k] && PyObject_CheckBuffer(args[k])) /* path objects are named as str, too */
                PyObject_SetAttrString(value, attributes[i], args[k]);
        Py_XDECREF(name);
    }
    PyErr_Clear();
    PyErr_Restore(type, value, tb);
}

/* Path functions. Everything that the verdict depends on is converted once, to exact types, and the converted values are
 * what the original gets: a PathLike cannot answer the check and the call differently. */
PyObject *psb_call_file(PSB_CALL) {
    if (strchr("bg", door->spec[0]))
        return psb_dbm_open(door, original, args, n, kwnames);
    Py_ssize_t total = n + (kwnames ? PyTuple_GET_SIZE(kwnames) : 0);
    if (!psb.enforce || total > ARGUMENTS_MAX) /* the originals take fewer */
        return psb_call_original(original, args, n, kwnames);
    if (door->spec[0] == 'p' && !kwnames && n >= 2 && (PyUnicode_CheckExact(args[0]) || PyBytes_CheckExact(args[0])))
        return psb_call_original(original, args, n, NULL); /* os.open of a plain path: its event says all there is */
    copied c;
    memcpy(c.args, args, sizeof(PyObject *) * (size_t)total);
    c.n_owned = 0;
    bool ok = true, opens = false;
    for (const char *spec = door->spec; ok && *spec;)
        ok = judge_path(door, &c, n, kwnames, &spec, &opens);
    PyObject *result = NULL;
    if (ok) {
        if (opens)
            psb_judged_open = c.args[place(n, kwnames, 0, "path")];
        result = psb_call_original(original, c.args, n, kwnames);
        psb_judged_open = NULL;
    }
    if (!result && c.n_owned)
        name_given(&c, args, total);
    while (c.n_owned)
        Py_DECREF(c.owned[--c.n_owned]);
    return result;
}
