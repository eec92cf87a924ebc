/* The helpers of operators: one for each and one for each in place, so that it need not be told which it is. */
#include "eval.h"

/* Within one machine word: no result of theirs is large, besides a power's and a shift's. */
static inline bool small(PyObject *o) {
#if PY_VERSION_HEX >= 0x030C0000
    return PyLong_CheckExact(o) && PyUnstable_Long_IsCompact((PyLongObject *)o);
#else
    return PyLong_CheckExact(o) && Py_SIZE(o) >= -1 && Py_SIZE(o) <= 1;
#endif
}

static inline bool number(PyObject *o) { return small(o) || PyFloat_CheckExact(o); }

/* All but a formatted text and a number are charged before they are built. */
bool psb_eval_charged_before(int code, PyObject *result) { return result && code != '%' && !PyLong_Check(result); }

/* x += y: a list that grows in place has been charged for what it grows by. */
static PyObject *guarded(psb_meter *m, int code, PyObject *a, PyObject *b, bool in_place) {
    PyObject *result = psb_eval_operator(m, code, a, b, in_place);
    return (in_place && result == a) || psb_eval_charged_before(code, result) ? result : psb_meter_charged(m, result);
}

#define GUARDED(name, code)                                  \
    PSB_EVAL_HELPER(name) {                                  \
        PSB_EVAL_ENTER(2)                                    \
        return guarded(m, code, a[0], a[1], false);          \
    }                                                        \
    PSB_EVAL_HELPER(name##_in_place) {                       \
        PSB_EVAL_ENTER(2)                                    \
        return guarded(m, code, a[0], a[1], true);           \
    }
/* Most of all operators: of two plain numbers that nothing has to be known of. */
#define OPERATION(name, code, plain)                                  \
    PSB_EVAL_HELPER(name) {                                           \
        PSB_EVAL_ENTER(2)                                             \
        if (number(a[0]) && number(a[1]))                             \
            return psb_meter_light(m) < 0 ? NULL : plain(a[0], a[1]); \
        return guarded(m, code, a[0], a[1], false);                   \
    }                                                                 \
    PSB_EVAL_HELPER(name##_in_place) {                                \
        PSB_EVAL_ENTER(2)                                             \
        if (number(a[0]) && number(a[1]))                             \
            return psb_meter_light(m) < 0 ? NULL : plain(a[0], a[1]); \
        return guarded(m, code, a[0], a[1], true);                    \
    }
OPERATION(add, '+', PyNumber_Add)
OPERATION(subtract, '-', PyNumber_Subtract)
OPERATION(multiply, '*', PyNumber_Multiply)
OPERATION(divide, '/', PyNumber_TrueDivide)
OPERATION(floor_divide, 'f', PyNumber_FloorDivide)
OPERATION(remainder_of, '%', PyNumber_Remainder)
GUARDED(power, 'p')
GUARDED(matrix, '@')
GUARDED(left_shift, 'l')
GUARDED(right_shift, 'r')
GUARDED(bit_and, '&')
GUARDED(bit_or, '|')
GUARDED(bit_xor, '^')

#define ROW(code, f) {code, (PyCFunction)(void *)(f), METH_FASTCALL, NULL}, {code "=", (PyCFunction)(void *)(f##_in_place), METH_FASTCALL, NULL}
/* By the letter of the operator, with `=` where it is in place. */
PyMethodDef psb_eval_operations[PSB_EVAL_OPERATIONS + 1] = {
    ROW("+", add),          ROW("-", subtract),    ROW("*", multiply),     ROW("/", divide),  ROW("f", floor_divide), ROW("%", remainder_of), ROW("p", power),
    ROW("@", matrix),       ROW("l", left_shift),  ROW("r", right_shift),  ROW("&", bit_and), ROW("|", bit_or),       ROW("^", bit_xor),
    {NULL, NULL, 0, NULL},
};
