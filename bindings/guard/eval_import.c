/* `import` in evaluated code. The statement calls __import__ of the builtins that it finds: the function here. What eval-import
 * names is imported by the interpreter's own import, so in a sandbox the rules of imports hold besides. */
#include "eval.h"

#include <string.h>

/* Does a list of modules name this one, or a package that it is in? */
bool psb_eval_module_in(PyObject *patterns, PyObject *name) {
    if (psb_eval_among(patterns, name))
        return true;
    Py_ssize_t n = PyUnicode_GET_LENGTH(name);
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *head = PyUnicode_READ_CHAR(name, i) == '.' ? PyUnicode_Substring(name, 0, i) : NULL;
        bool there = head && psb_eval_among(patterns, head);
        Py_XDECREF(head);
        if (there)
            return true;
    }
    PyErr_Clear();
    return false;
}

static bool granted(psb_meter *m, PyObject *name) { return psb_eval_module_in(m->import_allow, name) && !psb_eval_module_in(m->import_deny, name); }

/* Is the module known by this name? `os.path` names one whose own name is another; `json.codecs` names none. */
static bool known_as(PyObject *full, PyObject *module) {
    PyObject *there = full ? PyImport_GetModule(full) : NULL;
    bool known = there == module;
    PyErr_Clear();
    Py_XDECREF(there);
    return known;
}

/* A module is had where it lies in the one that it is read from, or where eval-import names it: `json.codecs` is a module that json
 * uses, and all of them are a few steps away from each other. */
int psb_eval_module(psb_meter *m, PyObject *of, PyObject *name, PyObject *value) {
    PyObject *home = PyModule_Check(of) ? PyModule_GetNameObject(of) : NULL, *own = PyModule_GetNameObject(value);
    PyObject *full = home ? PyUnicode_FromFormat("%U.%U", home, name) : NULL;
    PyErr_Clear();
    bool may = own && full && PyUnicode_Compare(own, full) == 0;
    may = may || (own && granted(m, own)) || (known_as(full, value) && granted(m, full));
    int rc = may ? 0 : own ? psb_meter_wants(m, "reach the module", own, "eval-import", NULL) : psb_eval_refuses("evaluated code may not reach a module without a name");
    Py_XDECREF(home);
    Py_XDECREF(own);
    Py_XDECREF(full);
    return rc;
}

/* from module import name: an attribute, or a module that is granted itself. What eval-call names may be called. */
static int member(psb_meter *m, PyObject *module, PyObject *module_name, PyObject *name, bool whole) {
    PyObject *full = PyUnicode_Check(name) ? PyUnicode_FromFormat("%U.%U", module_name, name) : NULL, *value = NULL;
    if (!full)
        return PyErr_Occurred() ? -1 : psb_eval_refuses("evaluated code may not import such a name");
    value = PyObject_GetAttr(module, name);
    bool submodule = value && PyModule_Check(value) && granted(m, full) && known_as(full, value);
    Py_DECREF(full);
    if (!value) {
        if (!PyErr_ExceptionMatches(PyExc_AttributeError))
            return -1;
        PyErr_Clear(); /* the statement says so itself */
        return 0;
    }
    int rc = submodule ? 0 : whole ? psb_meter_attribute(m, name) : psb_meter_wants(m, "import from the module", module_name, "eval-import", NULL);
    if (rc == 0 && !submodule && PyModule_Check(value))
        rc = psb_eval_module(m, module, name, value);
    if (rc == 0 && !PyModule_Check(value) && psb_eval_among(m->call_allow, name) && !psb_eval_among(m->call_deny, name))
        rc = psb_eval_grant(m, value);
    Py_DECREF(value);
    return rc;
}

/* C code imports by the builtins of the running frame, too (date.strftime does): modules that are there, and a few that these
 * types load when they are first needed. It passes a list, which no statement does. */
static PyObject *for_c(PyObject *name) {
    static const char *const FREE[] = {"time", "_strptime", "datetime", "_datetime", NULL};
    PyObject *there = PyImport_GetModule(name);
    for (const char *const *p = FREE; !there && !PyErr_Occurred() && *p; p++)
        if (PyUnicode_CompareWithASCIIString(name, *p) == 0)
            there = PyImport_ImportModuleLevel(*p, NULL, NULL, NULL, 0);
    if (!there && !PyErr_Occurred())
        psb_eval_refuses("evaluated code may not have a module loaded by a function that it calls");
    return there;
}

/* from os import path, where os.path is granted and os is not */
static bool all_granted(psb_meter *m, PyObject *module_name, PyObject *from) {
    bool all = PyTuple_GET_SIZE(from) > 0;
    for (Py_ssize_t i = 0; all && i < PyTuple_GET_SIZE(from); i++) {
        PyObject *name = PyTuple_GET_ITEM(from, i), *full = PyUnicode_Check(name) ? PyUnicode_FromFormat("%U.%U", module_name, name) : NULL;
        all = full && granted(m, full);
        Py_XDECREF(full);
    }
    return all;
}

static PyObject *import(PyObject *Py_UNUSED(module), PyObject *const *a, Py_ssize_t n, PyObject *Py_UNUSED(kwnames)) {
    psb_meter *m = psb_meter_here();
    if (!m || psb_meter_step(m) < 0)
        return NULL;
    if (n < 1 || !PyUnicode_CheckExact(a[0]))
        return psb_eval_refuses("evaluated code may not import"), NULL;
    PyObject *from = n > 3 && a[3] != Py_None ? a[3] : NULL;
    if (from && PyList_CheckExact(from))
        return for_c(a[0]);
    if (n < 5 || !PyLong_CheckExact(a[4]) || PyLong_AsLong(a[4]) != 0 || (from && !PyTuple_CheckExact(from)))
        return psb_eval_refuses("evaluated code may import modules by their full names only"), NULL;
    bool whole = granted(m, a[0]);
    if (!whole && !(from && all_granted(m, a[0], from))) {
        if (PyErr_Occurred() || psb_meter_wants(m, "import", a[0], "eval-import", NULL) < 0)
            return NULL;
        whole = true;
    }
    PyObject *result = PyImport_ImportModuleLevelObject(a[0], NULL, NULL, from, 0);
    for (Py_ssize_t i = 0; result && from && i < PyTuple_GET_SIZE(from); i++)
        if (member(m, result, a[0], PyTuple_GET_ITEM(from, i), whole) < 0)
            Py_CLEAR(result);
    return result;
}

static PyMethodDef IMPORT = {"__import__", (PyCFunction)(void *)import, METH_FASTCALL | METH_KEYWORDS, NULL};

int psb_eval_put_import(PyObject *builtins) {
    PyObject *f = PyCFunction_New(&IMPORT, NULL);
    int rc = f ? PyDict_SetItemString(builtins, "__import__", f) : -1;
    Py_XDECREF(f);
    return rc;
}
