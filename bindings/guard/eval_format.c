/* Formats: the widths they ask for are charged before anything is built, the attributes they walk to are checked. */
#include "eval.h"

#include <string.h>

/* The sum of all numbers in a text. Dates have small ones, which cost nothing that counts. */
static double numbers(PyObject *text) {
    double sum = 0, number = 0;
    for (Py_ssize_t i = 0; i < PyUnicode_GET_LENGTH(text); i++) {
        int digit = Py_UNICODE_TODECIMAL(PyUnicode_READ_CHAR(text, i)); /* any script's: format() takes them too */
        if (digit >= 0) {
            number = number * 10 + digit;
        } else {
            sum += number;
            number = 0;
        }
    }
    return sum + number;
}

int psb_eval_spec(psb_meter *m, PyObject *spec) {
    return PyUnicode_Check(spec) ? psb_meter_charge(m, 4 * numbers(spec)) : 0;
}

/* `*` takes its width from the arguments: all their numbers are charged then. */
int psb_eval_percent(psb_meter *m, PyObject *format, PyObject *args) {
    PyObject *text = PyUnicode_Check(format) ? Py_NewRef(format) : NULL;
    if (PyBytes_Check(format))
        text = PyUnicode_DecodeLatin1(PyBytes_AS_STRING(format), PyBytes_GET_SIZE(format), NULL);
    else if (PyByteArray_Check(format))
        text = PyUnicode_DecodeLatin1(PyByteArray_AS_STRING(format), PyByteArray_GET_SIZE(format), NULL);
    if (!text)
        return PyErr_Occurred() ? -1 : 0;
    if (psb_eval_whole(m, args, true) < 0) {
        Py_DECREF(text);
        return -1;
    }
    double sum = numbers(text);
    if (PyUnicode_FindChar(text, '*', 0, PyUnicode_GET_LENGTH(text), 1) >= 0 && PyTuple_Check(args)) {
        for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args); i++) {
            PyObject *o = PyTuple_GET_ITEM(args, i);
            double value = PyLong_Check(o) ? PyLong_AsDouble(o) : 0;
            if (PyErr_Occurred()) {
                PyErr_Clear();
                value = 1e300;
            }
            sum += value < 0 ? -value : value;
        }
    }
    Py_DECREF(text);
    return psb_meter_charge(m, 4 * sum);
}

static PyObject *module; /* _string, which pysandboxes/_evaluated.py has imported; kept for good */

int psb_eval_format_ready(void) {
    PyObject *name = module ? NULL : PyUnicode_FromString("_string");
    if (name && !(module = PyImport_GetModule(name)) && !PyErr_Occurred())
        module = PyImport_ImportModule("_string");
    Py_XDECREF(name);
    return module ? 0 : -1;
}

/* "0.a[b].c": every attribute on the way. */
int psb_eval_field(psb_meter *m, PyObject *name) {
    PyObject *split = PyObject_CallMethod(module, "formatter_field_name_split", "O", name);
    PyObject *rest = split && PyTuple_Check(split) && PyTuple_GET_SIZE(split) == 2 ? PyTuple_GET_ITEM(split, 1) : NULL, *part;
    int rc = rest ? 0 : -1;
    while (rc == 0 && (part = PyIter_Next(rest))) {
        PyObject *is_attribute, *what;
        if (!PyArg_ParseTuple(part, "OO", &is_attribute, &what))
            rc = -1;
        else if (is_attribute == Py_True)
            rc = psb_meter_attribute(m, what);
        Py_DECREF(part);
    }
    Py_XDECREF(split);
    return rc < 0 || PyErr_Occurred() ? -1 : 0;
}

int psb_eval_fields(psb_meter *m, PyObject *format) {
    PyObject *parts = module ? PyObject_CallMethod(module, "formatter_parser", "O", format) : NULL, *part;
    int rc = parts ? 0 : -1;
    while (rc == 0 && (part = PyIter_Next(parts))) {
        PyObject *literal, *name, *spec, *conversion;
        if (psb_meter_step(m) < 0 || !PyArg_ParseTuple(part, "OOOO", &literal, &name, &spec, &conversion)) {
            rc = -1;
        } else if (PyUnicode_Check(name)) {
            rc = psb_eval_field(m, name);
            if (rc == 0 && PyUnicode_Check(spec)) {
                if (PyUnicode_FindChar(spec, '{', 0, PyUnicode_GET_LENGTH(spec), 1) >= 0)
                    rc = psb_eval_refuses("evaluated code may not use str.format with a field inside of a format specification; an f-string may");
                else
                    rc = psb_eval_spec(m, spec);
            }
        }
        Py_DECREF(part);
    }
    Py_XDECREF(parts);
    return rc < 0 || PyErr_Occurred() ? -1 : 0;
}
