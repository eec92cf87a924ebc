/* Doors before functions that take paths: what the verdict depends on is made exact first, and the exact values are what
 * the function gets.
 */
#include "guard.h"

#include <fcntl.h>
#include <limits.h>
#include <string.h>

/* Functions that take a descriptor in the place of a path. */
static bool takes_fd(const psb_door *door) { return door->spec[0] == 'r' && strcmp(door->name, "access") != 0; }

/* A new reference to path as exact str or bytes, or to path itself where it is a descriptor, None, or no path at all: then
 * the original says so in its own words. NULL with an exception. In the order in which the originals look. */
PyObject *psb_plain_path(const psb_door *door, PyObject *path) {
    if (PyLong_CheckExact(path) || PyBool_Check(path) || path == Py_None || PyUnicode_CheckExact(path) || PyBytes_CheckExact(path))
        return Py_NewRef(path);
    if (PyUnicode_Check(path))
        return PyUnicode_FromObject(path);
    if (PyBytes_Check(path))
        return PyBytes_FromStringAndSize(PyBytes_AS_STRING(path), PyBytes_GET_SIZE(path));
#if PY_VERSION_HEX < 0x030C0000 /* from then on the originals refuse it */
    if (PyObject_CheckBuffer(path) && door->spec[0] != 'n' && door->spec[0] != 'o') {
        if (PyErr_WarnFormat(PyExc_DeprecationWarning, 1, "%s: path should be string, bytes%s, not %.200s", door->name,
                             takes_fd(door) ? ", os.PathLike or integer" : " or os.PathLike", Py_TYPE(path)->tp_name))
            return NULL;
        return PyBytes_FromObject(path);
    }
#endif
    if (PyIndex_Check(path) && takes_fd(door))
        return PyNumber_Index(path);
    PyObject *name = PyUnicode_InternFromString("__fspath__");
    if (!name)
        return NULL;
    bool is_path = _PyType_Lookup(Py_TYPE(path), name); /* asks no code of the program's, as getattr() would */
    Py_DECREF(name);
    if (!is_path)
        return Py_NewRef(path);
    PyObject *fspath = PyOS_FSPath(path), *plain = fspath ? psb_plain_path(door, fspath) : NULL;
    Py_XDECREF(fspath);
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
    bool changed;
} copied;

/* Puts a new reference in an argument's place. */
static bool put(copied *c, Py_ssize_t at, PyObject *value) {
    if (value == c->args[at]) {
        Py_DECREF(value);
    } else if (value) {
        c->args[at] = value;
        Py_XSETREF(c->owned[at], value);
        c->changed = true;
    }
    return value;
}

static Py_ssize_t path_place(const psb_door *door, Py_ssize_t n, PyObject *kwnames) {
    Py_ssize_t at = door->spec[1] ? door->spec[1] - '0' : 0;
    return place(n, kwnames, at, at ? "dst" : door->spec[0] == 'n' ? "database" : "path");
}

static bool is_path(PyObject *o) { return PyUnicode_Check(o) || PyBytes_Check(o) || PyLong_Check(o) || o == Py_None; }

/* Makes an argument exact: what a question to it can change is asked once. What is nothing that the original takes stays. */
static bool exact(copied *c, Py_ssize_t at, bool truth) {
    PyObject *o = c->args[at];
    if (o == Py_None || PyLong_CheckExact(o) || PyBool_Check(o))
        return true;
    if (truth) {
        int yes = PyObject_IsTrue(o);
        return yes >= 0 && put(c, at, Py_NewRef(yes ? Py_True : Py_False));
    }
    return !PyIndex_Check(o) || put(c, at, PyNumber_Index(o));
}

/* Keywords in the order in which every one of these functions has its parameters: the originals convert them so, however the
 * caller wrote them, and of several mistakes name the first. */
static const char *const IN_ORDER[] = {"path", "flags", "mode", "device", "dir_fd", "effective_ids", "follow_symlinks", NULL};

static Py_ssize_t in_order(Py_ssize_t n, PyObject *kwnames, Py_ssize_t order[]) {
    Py_ssize_t count = 0;
    for (Py_ssize_t i = 0; i < n; i++)
        order[count++] = i;
    for (const char *const *name = IN_ORDER; *name; name++) {
        Py_ssize_t at = place(n, kwnames, -1, *name);
        if (at >= 0)
            order[count++] = at;
    }
    return count; /* a keyword of another name is refused by the original before it looks at any argument */
}

/* Will the original refuse this exact argument whatever the others are? Then it shall be the one that says so, before another
 * argument is asked anything. */
static bool hopeless(PyObject *o, bool path, bool wide) {
    if (PyLong_CheckExact(o) && !wide) {
        int overflow;
        long value = PyLong_AsLongAndOverflow(o, &overflow);
        return overflow || value > INT_MAX || value < INT_MIN;
    }
    if (!path || !(PyUnicode_CheckExact(o) || PyBytes_CheckExact(o)))
        return false;
    PyObject *bytes = PyUnicode_Check(o) ? PyUnicode_EncodeFSDefault(o) : Py_NewRef(o);
    /* The kernel takes no text of PATH_MAX letters, wherever it leads; pathconf knows some answers without a look at it. */
    bool impossible = bytes ? strlen(PyBytes_AS_STRING(bytes)) != (size_t)PyBytes_GET_SIZE(bytes) || PyBytes_GET_SIZE(bytes) >= PATH_MAX
                            : PyErr_ExceptionMatches(PyExc_UnicodeError); /* not for want of memory: it may be there for the call */
    PyErr_Clear();
    Py_XDECREF(bytes);
    return impossible;
}

/* Every argument, again until a round finds nothing more to ask: then no code of the program's runs between the verdict and
 * the call, which could make a path of what was none, or lead a descriptor or the working directory elsewhere. *odd: the call
 * cannot succeed, and the original says why. */
static bool all_exact(const psb_door *door, copied *c, Py_ssize_t n, PyObject *kwnames, bool *odd) {
    Py_ssize_t path = path_place(door, n, kwnames), follow = place(n, kwnames, -1, "follow_symlinks"),
               effective = place(n, kwnames, -1, "effective_ids"), order[ARGUMENTS_MAX], count = in_order(n, kwnames, order),
               device = strcmp(door->name, "mknod") == 0 ? place(n, kwnames, 2, "device") : -1;
    bool ints = strstr(door->spec, "d="), database = door->spec[0] == 'n';
    bool numbers = !database && strcmp(door->name, "pathconf") != 0; /* these take an exact number or name, or ask no more; so does a device */
    for (int rounds = 0; rounds < 8; rounds++) {
        c->changed = false;
        if (database && path >= 0 && !put(c, path, psb_plain_path(door, c->args[path])))
            return false;
        for (Py_ssize_t k = 0; !database && k < count; k++) {
            Py_ssize_t i = order[k];
            if (i == path) {
                if (!put(c, path, psb_plain_path(door, c->args[path])))
                    return false;
                *odd = i == 0 && !is_path(c->args[path]);
                if (*odd && !c->changed)
                    return true;
            } else if (numbers && (i != device || PY_VERSION_HEX >= 0x030E0000) && !exact(c, i, i == follow || i == effective)) {
                return false;
            }
            /* of what is no path only flags, modes and folders are C ints; any number is a truth */
            bool wide = i != path && (!ints || i == follow || i == effective || i == device);
            if ((i == path || numbers) && hopeless(c->args[i], i == path, wide)) {
                *odd = true;
                return true;
            }
        }
        if (!c->changed)
            return true;
    }
    PyErr_Format(PyExc_TypeError, "%s: arguments that change when they are asked cannot be judged in a sandbox", door->name);
    return false;
}

/* The argument as a C int; -1 where it is None or not there. *odd: it is nothing that the original takes. */
static int number(const copied *c, Py_ssize_t at, bool *odd) {
    int overflow = 0;
    if (at < 0 || c->args[at] == Py_None)
        return -1;
    long value = PyLong_Check(c->args[at]) ? PyLong_AsLongAndOverflow(c->args[at], &overflow) : LONG_MAX;
    *odd |= overflow || value > INT_MAX || value < INT_MIN;
    return *odd ? -1 : (int)value;
}

/* Exact arguments, to a verdict. */
static bool judge_path(const psb_door *door, const copied *c, Py_ssize_t n, PyObject *kwnames, bool *opens) {
    char what = door->spec[0];
    Py_ssize_t slot = path_place(door, n, kwnames), f = place(n, kwnames, -1, "follow_symlinks");
    bool odd = slot >= 0 && !is_path(c->args[slot]);
    int dir_fd = strstr(door->spec, "d=") ? number(c, place(n, kwnames, -1, strstr(door->spec, "d=") + 2), &odd) : -1;
    int flags = what == 'p' ? number(c, place(n, kwnames, 1, "flags"), &odd) : 0;
    if (what == 'p')
        number(c, place(n, kwnames, 2, "mode"), &odd);
    /* Missing, or meaning the working directory; not what the original takes: it says so itself; judged by its event. */
    if (slot < 0 || odd || what == 'n' || (what == 'p' && dir_fd < 0))
        return true;
    bool follow = what == 'r' || what == 'o' || (what == 'p' && !(flags & O_NOFOLLOW));
    if (f >= 0)
        follow &= c->args[f] == Py_True;
    int need = what == 'w' ? PSB_WRITE : what == 'p' ? psb_open_need(flags) : what == 'o' ? PSB_READ : PSB_READ | PSB_UNHELD;
    *opens = what == 'p';
    return psb_file_object(c->args[slot], dir_fd < 0 ? -1 : dir_fd, need, follow, what == 'r' || what == 'l', door->name) == 0;
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
            if (name == c->args[k] && name != args[k] &&
                (PyUnicode_Check(args[k]) || PyObject_CheckBuffer(args[k]) || PyIndex_Check(args[k]))) /* path objects are named as str, too */
                PyObject_SetAttrString(value, attributes[i], args[k]);
        Py_XDECREF(name);
    }
    PyErr_Clear();
    PyErr_Restore(type, value, tb);
}

static bool has_mode(const copied *c, Py_ssize_t n, PyObject *kwnames) {
    Py_ssize_t at = place(n, kwnames, 1, "mode");
    return at >= 0 && PyLong_Check(c->args[at]);
}

/* access() answers: no where a path cannot be formed, and no where a rule refuses it, as for what is not there. The refusal is in
 * the log and among the denials all the same. */
static bool answers_no(const psb_door *door) {
    return strcmp(door->name, "access") == 0 && PyErr_ExceptionMatches(PyExc_OSError);
}

/* Path functions. Everything that the verdict depends on is converted once, to exact types, and the converted values are
 * what the original gets: a PathLike cannot answer the check and the call differently. */
PyObject *psb_call_file(PSB_CALL) {
    if (strchr("bg", door->spec[0]))
        return psb_dbm_open(door, original, args, n, kwnames);
    if (door->spec[0] == 'i')
        return psb_readline_call(door, original, args, n, kwnames);
    Py_ssize_t total = n + (kwnames ? PyTuple_GET_SIZE(kwnames) : 0);
    if (!psb.enforce || total > ARGUMENTS_MAX) /* the originals take fewer */
        return psb_call_original(original, args, n, kwnames);
    if (door->spec[0] == 'p' && !kwnames && n >= 2 && (PyUnicode_CheckExact(args[0]) || PyBytes_CheckExact(args[0])))
        return psb_call_original(original, args, n, NULL); /* os.open of a plain path: its event says all there is */
    copied c = {.changed = false};
    memcpy(c.args, args, sizeof(PyObject *) * (size_t)total);
    bool odd = false, opens = false, ok = all_exact(door, &c, n, kwnames, &odd), refused = false;
    Py_ssize_t at_path = path_place(door, n, kwnames);
    if (ok && !odd && at_path >= 0 && strcmp(door->name, "access") == 0 && !has_mode(&c, n, kwnames))
        ok = put(&c, at_path, PyUnicode_New(0, 0)); /* it says so of itself, whatever the path */
    else if (ok && !odd)
        refused = !(ok = judge_path(door, &c, n, kwnames, &opens));
    PyObject *result = NULL;
    if (ok) {
        Py_ssize_t at = opens ? place(n, kwnames, 0, "path") : -1; /* the event knows its path by being nobody else's object */
        if (!opens || put(&c, at, psb_own_copy(c.args[at]))) {
            psb_judged_open = opens ? c.args[at] : NULL;
            result = psb_call_original(original, c.args, n, kwnames);
            psb_judged_open = NULL;
        }
    } else if (refused && answers_no(door)) {
        PyErr_Clear();
        result = Py_NewRef(Py_False);
    }
    if (!result)
        name_given(&c, args, total);
    for (Py_ssize_t i = 0; i < total; i++)
        Py_XDECREF(c.owned[i]);
    return result;
}
