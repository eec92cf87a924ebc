/* Dunder methods of types in C that are called by their name: super().__init__(), len.__call__(), [].__mul__(n). Where eval-magic
 * grants the name, they still build, walk and call as operators and builtins do, which are charged and judged. So of plain
 * types those alone may be called that do neither; the others have an operator or a builtin to be written instead. */
#include "eval.h"

#include <string.h>

static bool is_one_of(const char *name, const char *const *list) {
    for (; *list; list++)
        if (strcmp(*list, name) == 0)
            return true;
    return false;
}

static const char *const QUIET[] = {"__len__", "__getitem__", "__iter__", "__next__", "__repr__", "__str__", "__hash__", "__bool__", "__int__", "__float__", "__index__",
                                    "__abs__", "__neg__", "__pos__", "__invert__", "__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__", "__delitem__", NULL};

static int refuse(const char *name) {
    PyObject *text = PyUnicode_FromFormat("evaluated code may not call %s by its name: write the operator or the builtin that stands for it", name);
    const char *said = text ? PyUnicode_AsUTF8(text) : NULL;
    int rc = said ? psb_eval_refuses(said) : -1;
    Py_XDECREF(text);
    return rc;
}

/* Its type has no name in the headers of 3.13. */
static bool method_wrapper(PyObject *f) {
    return !(Py_TYPE(f)->tp_flags & Py_TPFLAGS_HEAPTYPE) && strcmp(Py_TYPE(f)->tp_name, "method-wrapper") == 0;
}

bool psb_eval_is_wrapper(PyObject *f) { return Py_IS_TYPE(f, &PyWrapperDescr_Type) || method_wrapper(f); }

static bool own_object(psb_meter *m, PyObject *o) { return psb_eval_own_class(m, (PyObject *)Py_TYPE(o)); }

/* f is a slot wrapper, or one with its object. `object` and exceptions have an __init__ that objects of the source's classes call. */
PyObject *psb_eval_wrapper(psb_meter *m, PyObject *f, PyObject *const *args, Py_ssize_t n, PyObject *kwnames) {
    PyObject *name = PyObject_GetAttrString(f, "__name__"), *self = NULL, *result = NULL;
    bool bound = method_wrapper(f);
    Py_ssize_t given = n + (kwnames ? PyTuple_GET_SIZE(kwnames) : 0);
    const char *text = name && PyUnicode_Check(name) ? PyUnicode_AsUTF8(name) : NULL;
    if (!text)
        goto end;
    self = bound ? PyObject_GetAttrString(f, "__self__") : n ? Py_NewRef(args[0]) : NULL;
    if (!self) {
        if (!PyErr_Occurred())
            psb_eval_refuses("evaluated code may not call this method without an object");
        goto end;
    }
    if (strcmp(text, "__call__") == 0) { /* a call of the object itself */
        result = bound ? psb_eval_call(m, self, args, n, kwnames) : (refuse(text), NULL);
    } else if (strcmp(text, "__init__") == 0 && (PyExceptionInstance_Check(self) || own_object(m, self))) {
        result = psb_meter_step(m) < 0 ? NULL : PyObject_Vectorcall(f, args, (size_t)n, kwnames);
    } else if (psb_eval_plain_self(self) || PyType_Check(self) || PyCallable_Check(self)) {
        if (!is_one_of(text, QUIET))
            refuse(text);
        else if (psb_eval_whole(m, self, true) == 0 && psb_eval_whole_all(m, args, given, false) == 0)
            result = psb_meter_charged(m, PyObject_Vectorcall(f, args, (size_t)n, kwnames));
    } else {
        result = psb_meter_charged(m, PyObject_Vectorcall(f, args, (size_t)n, kwnames));
    }
end:
    Py_XDECREF(name);
    Py_XDECREF(self);
    return result;
}

/* cls.__new__(cls, ...) of a type in C: plain values are made by calling their type. */
PyObject *psb_eval_new(psb_meter *m, PyObject *f, PyObject *const *args, Py_ssize_t n, PyObject *kwnames) {
    PyObject *type = PyCFunction_GET_SELF(f);
    bool makes_object = type == (PyObject *)&PyBaseObject_Type || PyExceptionClass_Check(type);
    if (!makes_object || !n || !psb_eval_own_class(m, args[0])) {
        refuse("__new__");
        return NULL;
    }
    return psb_meter_step(m) < 0 || psb_meter_charge(m, 200) < 0 ? NULL : PyObject_Vectorcall(f, args, (size_t)n, kwnames);
}
