/* Methods of the builtin types that build much of little, or walk an iterable that they are given. */
#include "eval.h"

#include <string.h>

enum { WIDTH, TABS, JOIN, REPLACE, TRANSLATE, FORMAT, FORMAT_MAP, SPLIT, WALK, GROW, SORT, CODEC, BACKWARDS };

static const struct {
    const char *name;
    int kind;
} METHODS[] = {
    {"ljust", WIDTH},        {"rjust", WIDTH},      {"center", WIDTH},       {"zfill", WIDTH},     {"to_bytes", WIDTH},
    {"expandtabs", TABS},    {"join", JOIN},        {"replace", REPLACE},    {"translate", TRANSLATE},
    {"format", FORMAT},      {"format_map", FORMAT_MAP},
    {"split", SPLIT},        {"rsplit", SPLIT},     {"splitlines", SPLIT},
    {"extend", WALK},        {"update", WALK},      {"fromkeys", WALK},      {"union", WALK},      {"intersection", WALK},
    {"difference", WALK},    {"symmetric_difference", WALK}, {"intersection_update", WALK}, {"difference_update", WALK},
    {"symmetric_difference_update", WALK}, {"issubset", WALK}, {"issuperset", WALK}, {"isdisjoint", WALK},
    {"append", GROW},        {"insert", GROW},      {"add", GROW},           {"setdefault", GROW},
    {"sort", SORT},          {"encode", CODEC},     {"decode", CODEC},
    {"rfind", BACKWARDS},    {"rindex", BACKWARDS}, {"rpartition", BACKWARDS},
};

static bool textual(PyObject *o) { return PyUnicode_Check(o) || PyBytes_Check(o) || PyByteArray_Check(o); }

static double length(PyObject *o) {
    return PyUnicode_Check(o) ? (double)PyUnicode_GET_LENGTH(o) * PyUnicode_KIND(o)
           : PyBytes_Check(o) ? (double)PyBytes_GET_SIZE(o)
           : PyByteArray_Check(o) ? (double)PyByteArray_GET_SIZE(o)
                                  : 0;
}

/* How often a part stands in a text, at most. */
static double occurs(PyObject *text, PyObject *part) {
    if (PyUnicode_Check(text) && PyUnicode_Check(part) && PyUnicode_GET_LENGTH(part)) {
        Py_ssize_t n = PyUnicode_Count(text, part, 0, PY_SSIZE_T_MAX);
        PyErr_Clear();
        return n < 0 ? 1e300 : (double)n;
    }
    double unit = length(part);
    return length(text) / (unit > 0 ? unit : 1) + 1;
}

static int pieces(psb_meter *m, PyObject *self, PyObject *const *args, Py_ssize_t n) {
    double count = 1;
    if (n && textual(args[0])) {
        count += occurs(self, args[0]);
    } else if (PyUnicode_Check(self)) {
        for (Py_ssize_t i = 0; i < PyUnicode_GET_LENGTH(self); i++)
            count += Py_UNICODE_ISSPACE(PyUnicode_READ_CHAR(self, i)) || Py_UNICODE_ISLINEBREAK(PyUnicode_READ_CHAR(self, i)) ? 1 : 0;
    } else {
        count += length(self) / 2;
    }
    return psb_meter_charge(m, 64 * count + length(self));
}

static int widest(psb_meter *m, PyObject *self, PyObject *table) {
    double most = 4;
    if (PyBytes_Check(self) || PyByteArray_Check(self) || PyUnicode_Check(table))
        return psb_meter_charge(m, length(self) + 32);
    if (!PyDict_CheckExact(table))
        return psb_eval_refuses("evaluated code may give translate() a dict only");
    PyObject *key, *value;
    for (Py_ssize_t pos = 0; PyDict_Next(table, &pos, &key, &value);)
        if (PyUnicode_Check(value) && length(value) > most)
            most = length(value);
    return psb_meter_charge(m, most * (length(self) + 1));
}

/* The parts of a join are brought together first, so that their length is known. */
static PyObject *join(psb_meter *m, PyObject *self, PyObject *iterable) {
    PyObject *it = psb_steps(m, iterable, STEPS_KEEP), *list = it ? PySequence_List(it) : NULL;
    double size = 32;
    Py_XDECREF(it);
    for (Py_ssize_t i = 0; list && i < PyList_GET_SIZE(list); i++)
        size += length(PyList_GET_ITEM(list, i)) + length(self);
    if (list && psb_meter_charge(m, size) < 0)
        Py_CLEAR(list);
    return list;
}

static double wanted(PyObject *const *args, Py_ssize_t n) {
    double value = n && PyLong_Check(args[0]) ? PyLong_AsDouble(args[0]) : 0;
    if (PyErr_Occurred()) {
        PyErr_Clear();
        value = 1e300;
    }
    return value > 0 ? value : 0;
}

static int tabs(psb_meter *m, PyObject *self, PyObject *const *args, Py_ssize_t n) {
    double size = n ? wanted(args, n) : 8, count = 0;
    if (!PyUnicode_Check(self))
        count = length(self);
    for (Py_ssize_t i = 0; PyUnicode_Check(self) && i < PyUnicode_GET_LENGTH(self); i++)
        count += PyUnicode_READ_CHAR(self, i) == '\t';
    return psb_meter_charge(m, length(self) + 4 * count * size);
}

/* Other codecs are written in Python, and some take time by the square of what they get. */
int psb_eval_codec(PyObject *const *args, Py_ssize_t n) {
    static const char *const KNOWN[] = {"utf-8", "utf8", "UTF-8", "ascii", "latin-1", "latin1", "iso-8859-1", "utf-16", "utf-16-le", "utf-16-be", "utf-32",
                                        "cp1252", "utf-8-sig", "strict", "ignore", "replace", "backslashreplace", "surrogateescape", NULL};
    for (Py_ssize_t i = 0; i < n; i++) {
        bool known = !PyUnicode_Check(args[i]);
        for (const char *const *p = KNOWN; !known && *p; p++)
            known = PyUnicode_CompareWithASCIIString(args[i], *p) == 0;
        if (!known)
            return psb_eval_refuses("evaluated code may encode and decode by utf-8, utf-16, utf-32, ascii, latin-1 and cp1252 only");
    }
    return 0;
}

/* Searching from the end compares every part at every place. */
static int backwards(psb_meter *m, PyObject *self, PyObject *const *args, Py_ssize_t n) {
    double part = n && PyUnicode_Check(args[0]) && PyUnicode_Check(self) ? (double)PyUnicode_GET_LENGTH(args[0]) : n ? length(args[0]) : 0;
    if (length(self) * part > 1e9)
        return psb_meter_trip(m, "it searched a long text from its end for a long part");
    return 0;
}

static int looked_up(const char *name) {
    for (size_t i = 0; i < sizeof METHODS / sizeof *METHODS; i++)
        if (strcmp(METHODS[i].name, name) == 0)
            return METHODS[i].kind;
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

#define MOST 64 /* arguments of such a method */

PyObject *psb_eval_method(psb_meter *m, PyObject *self, const char *name, PyObject *f, PyObject *const *given, Py_ssize_t n, PyObject *kwnames,
                          bool unbound) {
    Py_ssize_t k = kwnames ? PyTuple_GET_SIZE(kwnames) : 0;
    int kind = kind_of(name), rc = 0;
    if (psb_eval_whole_all(m, given, n + k, kind == FORMAT || kind == FORMAT_MAP) < 0 || (kind == SORT && psb_eval_whole(m, self, false) < 0))
        return NULL;
    if (n > MOST && (kind == WALK || kind == SORT || kind == WIDTH))
        return psb_eval_refuses("evaluated code may not give a method so many arguments"), NULL;
    if (kind < 0) {
        return psb_meter_charged(m, PyObject_Vectorcall(f, given - unbound, (size_t)(n + unbound), kwnames));
    }
    PyObject *few[MOST + 1], **own = n + k > MOST ? PyMem_New(PyObject *, n + k + 1) : few, *made[MOST + 1], *exact = NULL, *result = NULL;
    if (!own)
        return PyErr_NoMemory();
    int owned = 0;
    PyObject *const *args = given;
    switch (kind) {
    case WIDTH: /* by position or by keyword: any number among them */
        for (Py_ssize_t i = 0; rc == 0 && i < n + k; i++)
            rc = psb_meter_charge(m, 4 * wanted(given + i, 1));
        break;
    case TABS:
        rc = tabs(m, self, given, n + k);
        break;
    case REPLACE:
        if (textual(self) && n >= 2)
            rc = psb_meter_charge(m, 32 + length(self) + occurs(self, given[0]) * length(given[1]) * 4);
        else if (textual(self) && k)
            rc = psb_eval_refuses("evaluated code may give replace() positional arguments only");
        break;
    case TRANSLATE:
        rc = n ? widest(m, self, given[0]) : 0;
        break;
    case SPLIT:
        if ((rc = strcmp(name, "rsplit") == 0 ? backwards(m, self, given, n + k) : 0) < 0)
            break;
        rc = k && PyUnicode_Check(given[n]) ? pieces(m, self, given + n, 1) : pieces(m, self, given, n);
        break;
    case CODEC:
        rc = psb_eval_codec(given, n + k);
        break;
    case BACKWARDS:
        rc = backwards(m, self, given, n);
        break;
    case GROW:
        rc = psb_meter_charge(m, 40);
        break;
    case FORMAT:
    case FORMAT_MAP:
        if (PyUnicode_Check(self) && (exact = PyUnicode_FromObject(self)))
            rc = psb_eval_fields(m, exact);
        else
            rc = -1;
        break;
    case JOIN:
        if (n == 1 && textual(self)) {
            made[owned++] = join(m, self, given[0]);
            rc = made[0] ? 0 : -1;
        }
        break;
    case WALK:
        for (Py_ssize_t i = 0; rc == 0 && i < n; i++) {
            bool value = strcmp(name, "fromkeys") == 0 && i > 0;
            if (PyDict_Check(given[i]) || value) {
                rc = psb_meter_charge(m, value ? 0 : 64 * (double)PyDict_GET_SIZE(given[i]));
                made[owned++] = Py_NewRef(given[i]);
            } else {
                made[owned] = psb_steps(m, given[i], STEPS_KEEP);
                rc = made[owned] ? 0 : -1;
                owned += rc == 0;
            }
        }
        break;
    case SORT:
        if (n + k > MOST)
            rc = psb_eval_refuses("evaluated code may not give a method so many arguments");
        for (Py_ssize_t i = 0; rc == 0 && i < n + k; i++) {
            made[owned] = psb_eval_bind(m, given[i]);
            rc = made[owned] ? 0 : -1;
            owned += rc == 0;
        }
        break;
    }
    if (rc == 0 && owned) { /* what was made stands in the place of the first arguments */
        own[0] = self;
        for (Py_ssize_t i = 0; i < n + k; i++)
            own[i + 1] = i < owned ? made[i] : given[i];
        args = own + 1;
    }
    if (rc == 0 && !PyErr_Occurred())
        result = PyObject_Vectorcall(f, args - unbound, (size_t)(n + unbound), kwnames);
    if (result && !(kind <= TRANSLATE || kind == SPLIT)) /* those have been charged */
        result = psb_meter_charged(m, result);
    Py_XDECREF(exact);
    while (owned)
        Py_XDECREF(made[--owned]);
    if (own != few)
        PyMem_Free(own);
    return result;
}
