/* The builtins that evaluated code can be granted, and what each of them needs besides being called. One that is not in the
 * table cannot be granted: it reaches names, files, classes or memory in a way that no check here holds. */
#include "eval.h"

#include <string.h>

enum { PLAIN, GETATTR, HASATTR, DIR, TICK, SUM, MOST, SORTED, KEEP, KEEP_MAPPING, BYTES, ITER, MAP, FILTER, ZIP, REVERSED, POW, FORMAT, TYPE, ROUND, PRINT, WHOLE, DESCRIPTOR, SUPER, SLICE };

static const struct {
    const char *name;
    int kind;
} BUILTINS[] = {
    {"abs", PLAIN},      {"all", TICK},       {"any", TICK},         {"ascii", WHOLE},     {"bin", PLAIN},      {"bool", PLAIN},
    {"bytearray", BYTES}, {"bytes", BYTES},   {"callable", PLAIN},   {"chr", PLAIN},       {"complex", PLAIN},  {"dict", KEEP_MAPPING},
    {"dir", DIR},        {"divmod", PLAIN},   {"enumerate", TICK},   {"filter", FILTER},   {"float", PLAIN},    {"format", FORMAT},
    {"frozenset", KEEP}, {"getattr", GETATTR}, {"hasattr", HASATTR}, {"hash", WHOLE},      {"hex", PLAIN},      {"id", PLAIN},
    {"int", PLAIN},      {"isinstance", PLAIN}, {"issubclass", PLAIN}, {"iter", ITER},     {"len", PLAIN},      {"list", KEEP},
    {"map", MAP},        {"max", MOST},       {"min", MOST},         {"next", PLAIN},      {"oct", PLAIN},      {"ord", PLAIN},
    {"pow", POW},        {"print", PRINT},    {"range", PLAIN},      {"repr", WHOLE},      {"reversed", REVERSED}, {"round", ROUND},
    {"set", KEEP},       {"slice", SLICE},    {"sorted", SORTED},    {"str", WHOLE},       {"sum", SUM},        {"tuple", KEEP},
    {"type", TYPE},      {"zip", ZIP},        {"staticmethod", DESCRIPTOR}, {"classmethod", DESCRIPTOR}, {"property", DESCRIPTOR}, {"super", SUPER},
};

static int looked_up(const char *name) {
    for (size_t i = 0; i < sizeof BUILTINS / sizeof *BUILTINS; i++)
        if (strcmp(BUILTINS[i].name, name) == 0)
            return BUILTINS[i].kind;
    return -1;
}

/* Names come from the definitions of types and functions, which stay where they are: most are told by their address. */
static int kind_of(const char *name) {
    static struct {
        const char *name;
        int kind;
    } known[256];
    size_t at = ((uintptr_t)name >> 2) % (sizeof known / sizeof *known);
    if (known[at].name != name) {
        known[at].kind = looked_up(name);
        known[at].name = name;
    }
    return known[at].kind;
}

bool psb_eval_builtin_known(const char *name) { return looked_up(name) >= 0; }
bool psb_eval_builtin_type(PyTypeObject *t) { return !(t->tp_flags & Py_TPFLAGS_HEAPTYPE) && kind_of(t->tp_name) >= 0; }

#define FEW 64

static PyObject *listed(psb_meter *m, PyObject *names) {
    PyObject *shown = names && PyList_Check(names) ? PyList_New(0) : NULL;
    for (Py_ssize_t i = 0; shown && i < PyList_GET_SIZE(names); i++) {
        PyObject *name = PyList_GET_ITEM(names, i);
        bool may = psb_meter_attribute(m, name) == 0;
        PyErr_Clear();
        if (may && PyList_Append(shown, name) < 0)
            Py_CLEAR(shown);
    }
    Py_XDECREF(names);
    return psb_meter_charged(m, shown);
}

PyObject *psb_eval_builtin(psb_meter *m, const char *name, PyObject *f, PyObject *const *args, Py_ssize_t n, PyObject *kwnames) {
    Py_ssize_t k = kwnames ? PyTuple_GET_SIZE(kwnames) : 0, wrap_from = n, wrap_to = n;
    int kind = kind_of(name), mode = STEPS_TICK, rc = 0;
    bool bind_first = false, bind_keywords = false, bind_all = false, walk_result = false;
    switch (kind) {
    case GETATTR:
    case HASATTR:
        if (n >= 2 && psb_meter_attribute(m, args[1]) < 0)
            return NULL;
        if (kind == GETATTR && n == 2 && !k)
            return psb_eval_read(m, args[0], args[1]);
        if (kind == GETATTR && n == 3 && !k) {
            PyObject *value = psb_eval_read(m, args[0], args[1]);
            if (!value && PyErr_ExceptionMatches(PyExc_AttributeError)) {
                PyErr_Clear();
                value = Py_NewRef(args[2]);
            }
            return value;
        }
        break;
    case DIR:
        if (n != 1 || k)
            return psb_eval_refuses("evaluated code may give dir() one argument"), NULL;
        return listed(m, PyObject_Dir(args[0]));
    case TYPE:
        if (n != 1 || k)
            return psb_eval_refuses("evaluated code may give type() one argument: it makes no classes"), NULL;
        return Py_NewRef((PyObject *)Py_TYPE(args[0]));
    case TICK:
        wrap_from = 0, wrap_to = n ? 1 : 0;
        break;
    case SUM:
        wrap_from = 0, wrap_to = n ? 1 : 0, mode = STEPS_SUM;
        break;
    case MOST:
        if (n == 1)
            wrap_from = 0;
        else
            rc = psb_eval_whole_all(m, args, n, false);
        bind_keywords = true;
        break;
    case SORTED:
        wrap_from = 0, wrap_to = n ? 1 : 0, mode = STEPS_KEEP, bind_keywords = true;
        break;
    case KEEP:
    case KEEP_MAPPING:
        if (n && kind == KEEP_MAPPING && PyDict_Check(args[0]))
            rc = psb_meter_charge(m, 64 * (double)PyDict_GET_SIZE(args[0]));
        else if (n && !PyObject_HasAttrString(args[0], "keys"))
            wrap_from = 0, wrap_to = 1, mode = STEPS_KEEP;
        else if (n && kind == KEEP)
            wrap_from = 0, wrap_to = 1, mode = STEPS_KEEP;
        break;
    case BYTES:
        if (n + k > 1 && psb_eval_codec(args + 1, n + k - 1) < 0)
            return NULL;
        if (n && PyLong_Check(args[0])) {
            double size = PyLong_AsDouble(args[0]);
            if (PyErr_Occurred()) {
                PyErr_Clear();
                size = 1e300;
            }
            rc = psb_meter_charge(m, size);
        } else if (n && !PyUnicode_Check(args[0]) && !PyBytes_Check(args[0]) && !PyByteArray_Check(args[0])) {
            wrap_from = 0, wrap_to = 1, mode = STEPS_KEEP;
        }
        break;
    case ITER:
        if (n == 1 && !k)
            return psb_steps(m, args[0], STEPS_TICK);
        bind_first = true, walk_result = true;
        break;
    case MAP:
    case FILTER:
        wrap_from = 1, bind_first = true;
        break;
    case ZIP:
        wrap_from = 0;
        break;
    case REVERSED:
        walk_result = true;
        break;
    case POW:
        if ((n == 2 || n == 3) && !k)
            return psb_eval_power(m, args[0], args[1], n == 3 ? args[2] : Py_None);
        return psb_eval_refuses("evaluated code may give pow() positional arguments only"), NULL;
    case ROUND: /* 10**n is made on the way */
        for (Py_ssize_t i = 1; i < n + k; i++)
            if (PyLong_Check(args[i]) && (PyLong_AsLong(args[i]) > 10000 || PyLong_AsLong(args[i]) < -10000 || PyErr_Occurred())) {
                PyErr_Clear();
                psb_meter_trip(m, PSB_EVAL_NUMBER);
                return NULL;
            }
        break;
    case SLICE: /* freed as deep as it is nested, by as many calls of C */
        rc = psb_eval_whole_all(m, args, n + k, false);
        break;
    case DESCRIPTOR: /* C code calls these functions */
        for (Py_ssize_t i = 0; i < n + k; i++)
            if (Py_IS_TYPE(args[i], &PyStaticMethod_Type) || Py_IS_TYPE(args[i], &PyClassMethod_Type) || Py_IS_TYPE(args[i], &PyProperty_Type))
                return psb_eval_refuses("evaluated code may not put a staticmethod, a classmethod or a property into another one"), NULL;
        if (n > FEW || k > FEW)
            return psb_eval_refuses("evaluated code may not give a builtin so many arguments"), NULL;
        bind_first = bind_keywords = bind_all = true;
        break;
    case SUPER:
        if (k || (n && !(n == 2 && psb_eval_own_class(m, args[0]))))
            return psb_eval_refuses("evaluated code may call super() without arguments, or with a class of its own and an object"), NULL;
        break;
    case PRINT: /* `file` would have any object's write method called */
        for (Py_ssize_t i = 0; i < k; i++)
            if (PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(kwnames, i), "file") == 0)
                return psb_eval_refuses("evaluated code may not give print() a file"), NULL;
        rc = psb_eval_whole_all(m, args, n + k, true);
        break;
    case FORMAT:
        rc = n > 1 ? psb_eval_spec(m, args[1]) : 0;
        rc = rc < 0 ? rc : psb_eval_whole_all(m, args, n, true);
        break;
    case WHOLE:
        rc = psb_eval_whole_all(m, args, n + k, true);
        if (rc == 0 && n + k > 1 && strcmp(name, "str") == 0)
            rc = psb_eval_codec(args + 1, n + k - 1);
        break;
    }
    if (rc < 0)
        return NULL;
    if (n + k > FEW && (wrap_from < wrap_to || bind_first || bind_keywords))
        return psb_eval_refuses("evaluated code may not give a builtin so many arguments"), NULL;
    PyObject *own[FEW + 1], *result = NULL;
    if (wrap_from == wrap_to && !bind_first && !bind_keywords) {
        result = PyObject_Vectorcall(f, args, (size_t)n, kwnames);
    } else {
        Py_ssize_t made = 0;
        for (; made < n + k; made++) {
            PyObject *o = args[made];
            o = made >= wrap_from && made < wrap_to ? psb_steps(m, o, mode)
                : bind_all || (made == 0 && bind_first) || (made >= n && bind_keywords) ? psb_eval_bind(m, o)
                                                                            : Py_NewRef(o);
            if (!o)
                break;
            own[made] = o;
        }
        if (made == n + k)
            result = PyObject_Vectorcall(f, own, (size_t)n, kwnames);
        while (made)
            Py_DECREF(own[--made]);
    }
    if (result && walk_result)
        Py_SETREF(result, psb_steps(m, result, STEPS_TICK));
    return psb_meter_charged(m, result);
}
