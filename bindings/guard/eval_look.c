/* A quick look at the tree of a source: is everything in it plainly allowed? It says yes or nothing. Where it says nothing,
 * pysandboxes/_eval_check.py decides, which knows every rule and words what is refused; what holds is behind both of them.
 *
 * The caller's table says of each class of nodes that may come what it is and which of its fields hold nodes:
 * class -> (flags, field of an identifier or None, fields of nodes). */
#include "eval.h"

enum {
    DEEP = 1,       /* counts as a level */
    CHAIN = 2,      /* a + b + c is nested, but nobody reads it so */
    NAME = 4,       /* its identifier is read, or bound where its context stores */
    BINDS = 8,      /* its identifier is bound */
    CALL = 16,      /* its `func` may be a name */
    ATTRIBUTE = 32, /* its identifier is an attribute's */
    ITEM = 64,      /* its `slice` matters where it is no load */
    LOADS = 128,    /* a context: nothing is stored or deleted */
    STORES = 256,
    LOAD_ONLY = 512, /* allowed where its context loads */
    SIMPLE = 1024,   /* an index that is no slice for sure */
};

typedef struct {
    PyObject *kinds;                              /* borrowed */
    PyObject *read, *bound, *called, *attributes; /* sets of identifiers */
    double depth;                                 /* the most levels */
    Py_ssize_t nodes;
} look;

static PyObject *ctx_name, *func_name, *slice_name; /* kept for good */

/* The row of a node; NULL, with or without an exception, where there is none. Borrowed. */
static PyObject *row_of(look *l, PyObject *node, long *flags) {
    PyObject *row = PyDict_GetItemWithError(l->kinds, (PyObject *)Py_TYPE(node));
    if (!row || !PyTuple_CheckExact(row) || PyTuple_GET_SIZE(row) != 3 || !PyTuple_CheckExact(PyTuple_GET_ITEM(row, 2)))
        return NULL;
    *flags = PyLong_AsLong(PyTuple_GET_ITEM(row, 0));
    return row;
}

static long flags_of_field(look *l, PyObject *node, PyObject *field) {
    long flags = 0;
    PyObject *value = PyObject_GetAttr(node, field);
    if (value && !row_of(l, value, &flags))
        flags = 0;
    Py_XDECREF(value);
    return flags;
}

/* A dunder name needs a rule that is not looked at here. */
static bool ordinary(PyObject *name) {
    return PyUnicode_CheckExact(name) &&
           (PyUnicode_GET_LENGTH(name) < 2 || PyUnicode_READ_CHAR(name, 0) != '_' || PyUnicode_READ_CHAR(name, 1) != '_');
}

static bool ordinary_all(PyObject *names) {
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(names); i++)
        if (!ordinary(PyList_GET_ITEM(names, i)))
            return false;
    return true;
}

static bool identifier(look *l, PyObject *node, PyObject *field, long flags) {
    PyObject *name = PyObject_GetAttr(node, field);
    bool well = name && (name == Py_None || (PyList_CheckExact(name) ? ordinary_all(name) : ordinary(name)));
    if (well && PyUnicode_CheckExact(name)) {
        if (flags & NAME)
            well = PySet_Add(l->read, name) == 0 && (!(flags_of_field(l, node, ctx_name) & STORES) || PySet_Add(l->bound, name) == 0);
        else if (flags & (BINDS | ATTRIBUTE))
            well = PySet_Add(flags & BINDS ? l->bound : l->attributes, name) == 0;
    }
    Py_XDECREF(name);
    return well;
}

/* f(...): the name of what is called, where it has one. */
static bool callee(look *l, PyObject *node) {
    long flags;
    PyObject *f = PyObject_GetAttr(node, func_name), *row = f ? row_of(l, f, &flags) : NULL, *name = NULL;
    bool well = row != NULL;
    if (well && flags & NAME)
        well = (name = PyObject_GetAttr(f, PyTuple_GET_ITEM(row, 1))) && PySet_Add(l->called, name) == 0;
    Py_XDECREF(name);
    Py_XDECREF(f);
    return well;
}

static bool node_is_plain(look *l, PyObject *node, bool chained, double depth);

static bool children(look *l, PyObject *node, PyObject *fields, long flags, double depth) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(fields); i++) {
        PyObject *value = PyObject_GetAttr(node, PyTuple_GET_ITEM(fields, i));
        bool well = value != NULL;
        if (well && PyList_CheckExact(value)) {
            for (Py_ssize_t j = 0; well && j < PyList_GET_SIZE(value); j++) {
                PyObject *item = Py_NewRef(PyList_GET_ITEM(value, j)); /* None: the key of ** in a dict */
                well = item == Py_None || node_is_plain(l, item, false, depth);
                Py_DECREF(item);
            }
        } else if (well && value != Py_None) {
            well = node_is_plain(l, value, i == 0 && flags & CHAIN, depth);
        }
        Py_XDECREF(value);
        if (!well)
            return false;
    }
    return true;
}

/* chained: it is the left side of an operator. */
static bool node_is_plain(look *l, PyObject *node, bool chained, double depth) {
    long flags;
    PyObject *row = row_of(l, node, &flags);
    if (!row)
        return false;
    l->nodes++;
    if (flags & DEEP && (depth += chained && flags & CHAIN ? 0.1 : 1) > l->depth)
        return false;
    if (PyTuple_GET_ITEM(row, 1) != Py_None && !identifier(l, node, PyTuple_GET_ITEM(row, 1), flags))
        return false;
    if (flags & CALL && !callee(l, node))
        return false;
    if (flags & LOAD_ONLY && !(flags_of_field(l, node, ctx_name) & LOADS))
        return false;
    if (flags & ITEM && !(flags_of_field(l, node, ctx_name) & LOADS) && !(flags_of_field(l, node, slice_name) & SIMPLE))
        return false;
    if (!PyTuple_GET_SIZE(PyTuple_GET_ITEM(row, 2)))
        return true;
    if (Py_EnterRecursiveCall(" in the look at a source"))
        return false;
    bool well = children(l, node, PyTuple_GET_ITEM(row, 2), flags, depth);
    Py_LeaveRecursiveCall();
    return well;
}

/* (nodes, read, bound, called, attributes), or None where there is more to be asked. */
PyObject *psb_eval_look(PyObject *tree, PyObject *kinds, double depth) {
    look l = {.kinds = kinds, .depth = depth};
    PyObject *result = NULL;
    if (!slice_name && (!(ctx_name = PyUnicode_InternFromString("ctx")) || !(func_name = PyUnicode_InternFromString("func")) ||
                        !(slice_name = PyUnicode_InternFromString("slice"))))
        return NULL;
    l.read = PySet_New(NULL);
    l.bound = PySet_New(NULL);
    l.called = PySet_New(NULL);
    l.attributes = PySet_New(NULL);
    if (l.read && l.bound && l.called && l.attributes) {
        if (node_is_plain(&l, tree, false, 0) && !PyErr_Occurred()) {
            result = Py_BuildValue("(nOOOO)", l.nodes, l.read, l.bound, l.called, l.attributes);
        } else {
            PyErr_Clear(); /* an odd tree, or one too deep: the check says what is wrong with it */
            result = Py_NewRef(Py_None);
        }
    }
    Py_XDECREF(l.read);
    Py_XDECREF(l.bound);
    Py_XDECREF(l.called);
    Py_XDECREF(l.attributes);
    return result;
}
