/* Operators whose result can be far larger than what they are given are charged before they build it. */
#include "eval.h"

#include <string.h>

static double bits(PyObject *o) {
    size_t n = _PyLong_NumBits(o);
    if (n == (size_t)-1 && PyErr_Occurred()) {
        PyErr_Clear();
        return 1e300;
    }
    return (double)n;
}

static int number(psb_meter *m, double result, double a, double b) {
    if (result > PSB_EVAL_BITS || a > PSB_EVAL_BITS || b > PSB_EVAL_BITS)
        return psb_meter_trip(m, PSB_EVAL_NUMBER);
    return result > 512 ? psb_meter_charge(m, result / 8) : 0;
}

static double as_double(PyObject *o) {
    double value = PyLong_AsDouble(o);
    if (value == -1 && PyErr_Occurred()) {
        PyErr_Clear();
        return 1e300;
    }
    return value;
}

/* Bytes of the items of a sequence that repeats and concatenates by copying; -1 for any other object. */
static double sequence(PyObject *o) {
    if (PyUnicode_Check(o))
        return 32 + (double)PyUnicode_GET_LENGTH(o) * PyUnicode_KIND(o);
    if (PyBytes_Check(o))
        return 32 + (double)PyBytes_GET_SIZE(o);
    if (PyByteArray_Check(o))
        return 32 + (double)PyByteArray_GET_SIZE(o);
    if (PyList_Check(o) || PyTuple_Check(o))
        return 56 + 8 * (double)PySequence_Fast_GET_SIZE(o);
    return -1;
}

static int repeat(psb_meter *m, PyObject *sized, PyObject *times) {
    double size = sequence(sized);
    if (size < 0 || !PyLong_Check(times))
        return 0;
    double n = as_double(times);
    double head = PyList_Check(sized) || PyTuple_Check(sized) ? 56 : 32;
    return psb_meter_charge(m, n > 0 ? head + (size - head) * n : 0);
}

static int before(psb_meter *m, int code, PyObject *a, PyObject *b, bool in_place) {
    bool ints = PyLong_Check(a) && PyLong_Check(b);
    double x, y;
    switch (code) {
    case '+':
        if ((x = sequence(a)) >= 0 && (y = sequence(b)) >= 0)
            return psb_meter_charge(m, in_place && PyList_Check(a) ? y : x + y);
        return 0;
    case '*':
        if (ints) {
            x = bits(a), y = bits(b);
            return number(m, x + y, x, y);
        }
        return repeat(m, a, b) < 0 || repeat(m, b, a) < 0 ? -1 : 0;
    case 'l': /* << */
        return ints ? number(m, bits(a) ? bits(a) + as_double(b) : 0, 0, 0) : 0;
    case '%':
        if (PyUnicode_Check(a) || PyBytes_Check(a) || PyByteArray_Check(a))
            return psb_eval_percent(m, a, b);
        /* fall through */
    case '/':
    case 'f': /* // */
        return ints ? number(m, 0, bits(a), bits(b)) : 0;
    case '|':
    case '&':
    case '^':
    case '-':
        if (PyAnySet_Check(a))
            return psb_meter_charge(m, 64 * (double)PySet_GET_SIZE(a) + (PyAnySet_Check(b) ? 64 * (double)PySet_GET_SIZE(b) : 0));
        if (PyDict_Check(a) && PyDict_Check(b))
            return psb_meter_charge(m, 64 * (double)(PyDict_GET_SIZE(a) + PyDict_GET_SIZE(b)));
        return 0;
    }
    return 0;
}

#define MOST_MODULAR_BITS (1 << 14)

PyObject *psb_eval_power(psb_meter *m, PyObject *a, PyObject *b, PyObject *modulus) {
    if (PyLong_Check(a) && PyLong_Check(b)) {
        if (modulus != Py_None) {
            if (bits(a) > PSB_EVAL_BITS || bits(b) > MOST_MODULAR_BITS || (PyLong_Check(modulus) && bits(modulus) > MOST_MODULAR_BITS)) {
                psb_meter_trip(m, PSB_EVAL_NUMBER);
                return NULL;
            }
        } else if (bits(a) > 1 && number(m, bits(a) * (as_double(b) > 0 ? as_double(b) : 0), bits(a), 0) < 0) {
            return NULL;
        }
    }
    return PyNumber_Power(a, b, modulus);
}

PyObject *psb_eval_operator(psb_meter *m, int code, PyObject *a, PyObject *b, bool in_place) {
    PyObject *result = NULL, *wrapped = NULL;
    if (psb_meter_step(m) < 0)
        return NULL;
    if (PyFloat_CheckExact(a) && PyFloat_CheckExact(b))
        goto plain;
    if (code == 'p')
        return in_place && !PyLong_Check(a) ? PyNumber_InPlacePower(a, b, Py_None) : psb_eval_power(m, a, b, Py_None);
    if (before(m, code, a, b, in_place) < 0)
        return NULL;
    if (in_place && ((code == '+' && PyList_Check(a) && !PyList_Check(b) && !PyTuple_Check(b)) || (code == '|' && PyDict_Check(a) && !PyDict_Check(b)))) {
        if (!(b = wrapped = psb_steps(m, b, STEPS_KEEP))) /* a list takes any iterable, a dict one of pairs */
            return NULL;
    }
plain:
    switch (code) {
#define OPERATOR(c, name)                                                     \
    case c:                                                                   \
        result = in_place ? PyNumber_InPlace##name(a, b) : PyNumber_##name(a, b); \
        break
        OPERATOR('+', Add);
        OPERATOR('-', Subtract);
        OPERATOR('*', Multiply);
        OPERATOR('/', TrueDivide);
        OPERATOR('f', FloorDivide);
        OPERATOR('%', Remainder);
        OPERATOR('@', MatrixMultiply);
        OPERATOR('l', Lshift);
        OPERATOR('r', Rshift);
        OPERATOR('&', And);
        OPERATOR('|', Or);
        OPERATOR('^', Xor);
    case 'p':
        result = in_place ? PyNumber_InPlacePower(a, b, Py_None) : PyNumber_Power(a, b, Py_None);
        break;
    default:
        PyErr_SetString(PyExc_SystemError, "pysandboxes: no such operator");
    }
    Py_XDECREF(wrapped);
    return result;
}
