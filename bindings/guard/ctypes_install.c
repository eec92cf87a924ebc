/* Puts what ctypes_held.c holds into the types of _ctypes.
 *
 * The types are C's and cannot be changed from Python; a program may hold any of them before the import is over. So a slot is
 * changed in the type itself, and in the wrapper objects that Python sees of it (__call__, __getitem__), before a class of the
 * program's own could have inherited it: where such a class exists, or the types are not as they are known, the import fails.
 */
#include "ctypes.h"

#include <string.h>

static const char *const ROOT_NAMES[CT_ROOTS] = {"Structure", "Union", "_Pointer", "CFuncPtr", "Array", "_SimpleCData"};

static int unknown(const char *what) {
    PyErr_Clear();
    PyErr_Format(PyExc_RuntimeError, "pysandboxes: _ctypes.%s of this Python is not as the guard knows it", what);
    return -1;
}

/* ---- slots ---- */

typedef struct {
    void *original, *ours;
} pair;

/* A slot, and where its original is kept. One that is another function than it was in a former _ctypes is not known. */
static int slot(void *field, pair *p, void *ours, void *original, const char *what) {
    void *now, *kept;
    memcpy(&now, field, sizeof now);
    memcpy(&kept, original, sizeof kept);
    p->ours = ours;
    if (now == ours && kept) {
        p->original = kept;
        return 0;
    }
    if (!now || (kept && kept != now))
        return unknown(what);
    p->original = now;
    memcpy(original, &now, sizeof now);
    memcpy(field, &ours, sizeof ours);
    return 0;
}

/* The wrappers of these slots: what `_Pointer.__getitem__` is, and what classes inherit from. */
static void rewrap(PyTypeObject *type, const pair *pairs, int n) {
    PyObject *name, *value;
    Py_ssize_t at = 0;
    while (PyDict_Next(type->tp_dict, &at, &name, &value))
        for (int i = 0; i < n && Py_IS_TYPE(value, &PyWrapperDescr_Type); i++)
            if (((PyWrapperDescrObject *)value)->d_wrapped == pairs[i].original)
                ((PyWrapperDescrObject *)value)->d_wrapped = pairs[i].ours;
    PyType_Modified(type);
}

#define K psb_ctypes_original
#define SLOT(field, ours, original, what) (slot(&(field), &pairs[n++], (void *)(ours), &(original), what) < 0)

static int hold_slots(const psb_ctypes *ct) {
    pair pairs[8];
    int n = 0;
    static const enum psb_ctypes_root data[] = {CT_STRUCTURE, CT_UNION, CT_ARRAY, CT_SIMPLE};
    for (int i = 0; i < 4; i++, n = 0)
        if (SLOT(ct->roots[data[i]]->tp_new, psb_ct_data_new, K.data_new, "tp_new"))
            return -1;
    PyTypeObject *t = ct->roots[CT_POINTER];
    if (!t->tp_as_sequence || !t->tp_as_mapping || SLOT(t->tp_new, psb_ct_pointer_new, K.pointer_new, "_Pointer") ||
        SLOT(t->tp_as_sequence->sq_item, psb_ct_pointer_item, K.pointer_item, "_Pointer") ||
        SLOT(t->tp_as_sequence->sq_ass_item, psb_ct_pointer_ass_item, K.pointer_ass_item, "_Pointer") ||
        SLOT(t->tp_as_mapping->mp_subscript, psb_ct_pointer_subscript, K.pointer_subscript, "_Pointer"))
        return PyErr_Occurred() ? -1 : unknown("_Pointer");
    rewrap(t, pairs, n);
    n = 0;
    t = ct->roots[CT_FUNCTION];
    if (SLOT(t->tp_new, psb_ct_function_new, K.function_new, "CFuncPtr") || SLOT(t->tp_call, psb_ct_call, K.call, "CFuncPtr"))
        return -1;
    rewrap(t, pairs, n);
    n = 0;
    t = ct->roots[CT_ARRAY];
    if (!t->tp_as_sequence || !t->tp_as_mapping || SLOT(t->tp_as_sequence->sq_ass_item, psb_ct_array_ass_item, K.array_ass_item, "Array") ||
        SLOT(t->tp_as_mapping->mp_ass_subscript, psb_ct_array_ass_subscript, K.array_ass_subscript, "Array"))
        return PyErr_Occurred() ? -1 : unknown("Array");
    rewrap(t, pairs, n);
    return 0;
}

/* ---- fields: their type is not in the module, so a structure with one is made ---- */

static int hold_fields(const psb_ctypes *ct) {
    pair pairs[2];
    int n = 0, rc = -1;
    PyObject *number = PyObject_CallFunction((PyObject *)ct->metas[CT_SIMPLE], "s(O){ss}", "number", ct->roots[CT_SIMPLE], "_type_", "i");
    PyObject *with = number ? PyObject_CallFunction((PyObject *)ct->metas[CT_STRUCTURE], "s(O){s[(sO)]}", "with", ct->roots[CT_STRUCTURE],
                                                    "_fields_", "field", number)
                            : NULL;
    PyObject *field = with ? PyObject_GetAttrString(with, "field") : NULL;
    PyTypeObject *type = field ? Py_TYPE(field) : NULL;
    if (!type || strcmp(type->tp_name, "_ctypes.CField") != 0)
        unknown("CField");
    else if (!SLOT(type->tp_descr_get, psb_ct_field_get, K.field_get, "CField") && !SLOT(type->tp_descr_set, psb_ct_field_set, K.field_set, "CField")) {
        rewrap(type, pairs, n);
        rc = 0;
    }
    Py_XDECREF(field);
    Py_XDECREF(with);
    Py_XDECREF(number);
    return rc;
}

/* ---- attributes and methods ---- */

static PyGetSetDef objects = {"_objects", psb_ct_objects_get, psb_ct_objects_set, "internal objects tree (NEVER CHANGE THIS OBJECT!)", NULL};

static int hold_attributes(const psb_ctypes *ct) {
    PyObject *member = PyDict_GetItemString(ct->cdata->tp_dict, "_objects"); /* borrowed */
    PyObject *contents = PyDict_GetItemString(ct->roots[CT_POINTER]->tp_dict, "contents");
    if (!contents || !Py_IS_TYPE(contents, &PyGetSetDescr_Type))
        return unknown("_Pointer.contents");
    pair ignored;
    PyGetSetDef *def = ((PyGetSetDescrObject *)contents)->d_getset;
    if (slot(&def->get, &ignored, (void *)psb_ct_contents_get, &K.contents_get, "_Pointer.contents") < 0 ||
        slot(&def->set, &ignored, (void *)psb_ct_contents_set, &K.contents_set, "_Pointer.contents") < 0)
        return -1;
    if (!member || !Py_IS_TYPE(member, &PyMemberDescr_Type))
        return unknown("_CData._objects");
    K.objects = ((PyMemberDescrObject *)member)->d_member;
    PyObject *held = PyDescr_NewGetSet(ct->cdata, &objects);
    int rc = held ? PyDict_SetItemString(ct->cdata->tp_dict, "_objects", held) : -1;
    Py_XDECREF(held);
    PyType_Modified(ct->cdata);
    return rc;
}

static int hold_method(PyTypeObject *meta, const char *name, PyCFunction ours, PyCFunction *original) {
    PyObject *method = PyDict_GetItemString(meta->tp_dict, name); /* borrowed */
    if (!method || !Py_IS_TYPE(method, &PyMethodDescr_Type))
        return unknown(name);
    PyMethodDef *def = ((PyMethodDescrObject *)method)->d_method;
    pair ignored;
    return def->ml_flags != psb_ct_from_buffer_flags ? unknown(name) : slot(&def->ml_meth, &ignored, (void *)ours, original, name);
}

/* ---- a module ---- */

static int type_of(PyObject *module, const char *name, PyTypeObject **out) {
    PyObject *type = PyObject_GetAttrString(module, name);
    if (!type || !PyType_Check(type) || !(((PyTypeObject *)type)->tp_flags & Py_TPFLAGS_IMMUTABLETYPE) || !((PyTypeObject *)type)->tp_dict ||
        strncmp(((PyTypeObject *)type)->tp_name, "_ctypes.", 8) != 0) {
        Py_XDECREF(type);
        return unknown(name);
    }
    *out = (PyTypeObject *)type; /* kept: the types live as long as the process */
    return 0;
}

/* Has anybody made a class of it already? Code of the program's can run while the module is made: a garbage collection. */
static int still_bare(PyTypeObject *root) {
    PyObject *classes = PyObject_CallMethod((PyObject *)&PyType_Type, "__subclasses__", "O", root);
    Py_ssize_t n = classes && PyList_Check(classes) ? PyList_GET_SIZE(classes) : -1;
    Py_XDECREF(classes);
    if (n > 0)
        PyErr_Format(PyExc_RuntimeError, "pysandboxes: a class of %s was made before the guard stood", root->tp_name);
    return n == 0 ? 0 : -1;
}

static int read_functions(psb_ctypes *ct, PyObject *module) {
    static const struct {
        const char *name;
        enum psb_ctypes_row row;
    } made[] = {{"_memmove_addr", CR_MEMMOVE}, {"_memset_addr", CR_MEMSET}, {"_cast_addr", CR_CAST},
                {"_string_at_addr", CR_STRING_AT}, {"_wstring_at_addr", CR_WSTRING_AT}};
    for (size_t i = 0; i < sizeof made / sizeof *made; i++) {
        PyObject *address = PyObject_GetAttrString(module, made[i].name);
        if (!address || !PyLong_CheckExact(address))
            return unknown(made[i].name);
        ct->functions[ct->n_functions].at = PyLong_AsVoidPtr(address);
        ct->functions[ct->n_functions++].row = made[i].row;
        Py_DECREF(address);
    }
    return 0;
}

static int read_module(psb_ctypes *ct, PyObject *module) {
    for (int i = 0; i < CT_ROOTS; i++) {
        if (type_of(module, ROOT_NAMES[i], &ct->roots[i]) < 0)
            return -1;
        ct->metas[i] = Py_TYPE(ct->roots[i]);
        if (ct->roots[i]->tp_base != ct->roots[0]->tp_base || !ct->roots[i]->tp_base || still_bare(ct->roots[i]) < 0)
            return PyErr_Occurred() ? -1 : unknown(ROOT_NAMES[i]);
    }
    ct->cdata = ct->roots[0]->tp_base;
    ct->buffer_info = PyObject_GetAttrString(module, "buffer_info");
    if (!ct->buffer_info || !PyCFunction_CheckExact(ct->buffer_info) || !ct->cdata->tp_dict)
        return unknown("buffer_info");
    return read_functions(ct, module);
}

/* 1: there is nothing to do, -1: it was met before and could not be held. */
static int known(PyObject *module) {
    PyObject *type = PyObject_GetAttrString(module, ROOT_NAMES[0]);
    int is = !type; /* made, but not filled yet (3.13) */
    for (int i = 0; type && i < psb_ctypes_n; i++)
        if ((PyTypeObject *)type == psb_ctypes_known[i].roots[0])
            is = psb_ctypes_known[i].held ? 1 : unknown("Structure");
    if (is >= 0)
        PyErr_Clear();
    Py_XDECREF(type);
    return is;
}

static bool all_granted(void) {
    for (int row = 0; row < CR_ROWS; row++)
        if (!psb_ctypes_granted((enum psb_ctypes_row)row))
            return false;
    return true;
}

static int hold(PyObject *module) {
    if (psb_ctypes_n == CT_MAX) {
        PyErr_SetString(PyExc_RuntimeError, "pysandboxes: _ctypes was made anew too often");
        return -1;
    }
    psb_ctypes *ct = &psb_ctypes_known[psb_ctypes_n];
    memset(ct, 0, sizeof *ct);
    if (read_module(ct, module) < 0)
        return -1;
    getbufferproc buffer = ct->roots[CT_SIMPLE]->tp_as_buffer ? ct->roots[CT_SIMPLE]->tp_as_buffer->bf_getbuffer : NULL;
    if (!buffer || (K.buffer && K.buffer != buffer))
        return unknown("_CData");
    K.buffer = buffer;
    psb_ctypes_n++; /* from here on its types are judged */
    if (hold_slots(ct) < 0 || hold_attributes(ct) < 0 || hold_fields(ct) < 0)
        return -1;
    for (int i = 0; i < CT_ROOTS; i++)
        if (hold_method(ct->metas[i], "from_buffer", psb_ct_from_buffer, &K.from_buffer) < 0 ||
            hold_method(ct->metas[i], "from_buffer_copy", psb_ct_from_buffer_copy, &K.from_buffer_copy) < 0)
            return -1;
    ct->held = true;
    return 0;
}

int psb_guard_ctypes(PyObject *module) {
    PyModuleDef *def = PyModule_GetDef(module);
    PyErr_Clear();
    if (!def || !def->m_name || strcmp(def->m_name, "_ctypes") != 0 || all_granted())
        return 0;
    if (PyInterpreterState_Get() != PyInterpreterState_Main())
        return PyObject_HasAttrString(module, ROOT_NAMES[0]) ? psb_ctypes_ask(CR_CALL) : 0; /* no types are held there: all or nothing */
    int rc = known(module);
    if (rc)
        return rc < 0 ? -1 : 0;
    int collected = PyGC_Disable(); /* 3.11 runs finalizers where objects are made: none of them shall see half of this */
    rc = hold(module);
    if (collected)
        PyGC_Enable();
    return rc;
}
