/* Where control comes back from SQLite: an error that a refusal caused says so.
 *
 * The error stays the sqlite3.Error that plain Python raises, with the refusal as a note and among its denials. Nothing is
 * judged here: where a method cannot be found, it is the telling that is lost.
 */
#include "guard.h"
#include "sqlite.h"

#include <string.h>

#define READONLY 8  /* SQLITE_READONLY */
#define CANTOPEN 14 /* SQLITE_CANTOPEN */

/* ---- before and after ---- */

static int enter(void) {
    if (psb.learn && psb.enforce)
        psb_sql.site_len = psb_site(psb_sql.site, sizeof psb_sql.site);
    psb_sql.depth++;
    return psb_sql.n;
}

static void tell_all(PyObject *error, const psb_sql_refused *refused, int n) {
    PyObject *number = PyObject_GetAttrString(error, "sqlite_errorcode");
    long code = number && PyLong_Check(number) ? PyLong_AsLong(number) : -1;
    PyErr_Clear();
    Py_XDECREF(number);
    if (code < 0) /* not of SQLite's making */
        return;
    for (int need = PSB_READ; need <= PSB_WRITE; need++) /* reading first, which asks for less */
        for (int i = 0; i < n; i++)
            if (refused[i].need == need)
                psb_tell_file(error, refused[i].path, need, "open");
    if (!n && (code & 0xff) == READONLY)
        for (const char *const *path = psb_sql_read_only(); *path; path++)
            psb_tell_file(error, *path, PSB_WRITE, "open");
}

static void leave(int before, bool failed) {
    psb_sql_refused mine[PSB_SQL_REFUSED_MAX];
    int n = psb_sql.n - before;
    psb_sql.depth--;
    memcpy(mine, psb_sql.refused + before, sizeof *mine * (size_t)n);
    psb_sql.n = before;
    if (failed && (n || *psb_sql_read_only())) {
        PyObject *type, *error, *tb;
        PyErr_Fetch(&type, &error, &tb);
        PyErr_NormalizeException(&type, &error, &tb);
        if (error)
            tell_all(error, mine, n);
        PyErr_Restore(type, error, tb);
    }
    while (n)
        free(mine[--n].path);
}

/* ---- methods ---- */

static const struct {
    const char *type, *method;
} METHODS[] = {
    {"Connection", "backup"},        {"Connection", "blobopen"},    {"Connection", "close"},         {"Connection", "commit"},
    {"Connection", "deserialize"},   {"Connection", "execute"},     {"Connection", "executemany"},   {"Connection", "executescript"},
    {"Connection", "__exit__"},      {"Connection", "rollback"},    {"Connection", "serialize"},     {"Cursor", "close"},
    {"Cursor", "execute"},           {"Cursor", "executemany"},     {"Cursor", "executescript"},     {"Cursor", "fetchall"},
    {"Cursor", "fetchmany"},         {"Cursor", "fetchone"},        {"Blob", "close"},               {"Blob", "__exit__"},
    {"Blob", "read"},                {"Blob", "write"},
};

PyObject *psb_sql_call(PSB_CALL) {
    (void)door;
    int before = enter();
    PyObject *result = psb_call_original(original, args, n, kwnames);
    leave(before, !result);
    return result;
}

/* ---- slots: Connection(...) opens, `for row in cursor` steps ---- */

static initproc original_init;
static iternextfunc original_next;

/* The exception that is set is a refusal of the event, which judges where SQLite itself could not be held (file.c). SQLite
 * would have said this instead. The class is the interpreter's own; where it cannot be found, the refusal stays as it is. */
static void as_sqlite_says(void) {
    PyObject *type, *refusal, *tb, *error = NULL;
    PyErr_Fetch(&type, &refusal, &tb);
    PyErr_NormalizeException(&type, &refusal, &tb);
    PyObject *name = PyUnicode_FromString("_sqlite3"), *module = name ? PyImport_GetModule(name) : NULL;
    PyObject *cls = module ? PyObject_GetAttrString(module, "OperationalError") : NULL;
    if (cls && PyExceptionClass_Check(cls))
        error = PyObject_CallFunction(cls, "s", "unable to open database file");
    if (error && PyExceptionInstance_Check(error)) {
        PyObject *code = PyLong_FromLong(CANTOPEN), *word = PyUnicode_FromString("SQLITE_CANTOPEN");
        if (code && word && PyObject_SetAttrString(error, "sqlite_errorcode", code) == 0 &&
            PyObject_SetAttrString(error, "sqlite_errorname", word) == 0 && psb_carry(error, refusal) == 0) {
            Py_SETREF(type, Py_NewRef((PyObject *)Py_TYPE(error)));
            Py_SETREF(refusal, Py_NewRef(error));
        }
        Py_XDECREF(code);
        Py_XDECREF(word);
    }
    PyErr_Clear();
    Py_XDECREF(error);
    Py_XDECREF(cls);
    Py_XDECREF(module);
    Py_XDECREF(name);
    PyErr_Restore(type, refusal, tb);
}

static int connection_init(PyObject *self, PyObject *args, PyObject *kwargs) {
    int before = enter(), rc = original_init(self, args, kwargs);
    leave(before, rc < 0);
    PyObject *refusal = rc < 0 ? psb_exception_class("RuleFileNotFoundError") : NULL;
    if (refusal && PyErr_ExceptionMatches(refusal) && !psb_sqlite_held())
        as_sqlite_says();
    return rc;
}

static PyObject *cursor_next(PyObject *self) {
    int before = enter();
    PyObject *row = original_next(self);
    leave(before, !row && PyErr_Occurred());
    return row;
}

static int guard_method(PyObject *type, const void *module, const char *name) {
    PyObject *dict = PyObject_GetAttrString(type, "__dict__");
    PyObject *method = dict ? PyMapping_GetItemString(dict, name) : NULL;
    int rc = 0;
    PyErr_Clear(); /* not in this version */
    if (method && Py_IS_TYPE(method, &PyMethodDescr_Type)) {
        PyMethodDef *def = ((PyMethodDescrObject *)method)->d_method;
        if (psb_types_own(method, (PyTypeObject *)type, def, module))
            rc = psb_patch(def, DOOR_SQL, -1, NULL);
    }
    Py_XDECREF(method);
    Py_XDECREF(dict);
    return rc;
}

int psb_sqlite_methods(const char *name, PyObject *module) {
    static const char *const types[] = {"Connection", "Cursor", "Blob"}, *const names[] = {"sqlite3.Connection", "sqlite3.Cursor", "sqlite3.Blob"};
    const PyModuleDef *def = strcmp(name, "_sqlite3") == 0 ? PyModule_GetDef(module) : NULL;
    if (!def || !def->m_name || strcmp(def->m_name, name) != 0) {
        PyErr_Clear();
        return 0;
    }
    psb_sqlite_held();
    int rc = 0;
    for (size_t t = 0; rc == 0 && t < sizeof types / sizeof *types; t++) {
        PyObject *type = PyObject_GetAttrString(module, types[t]);
        PyErr_Clear(); /* a program may have put anything into the module; its own types it cannot change */
        if (type && PyType_Check(type) && strcmp(((PyTypeObject *)type)->tp_name, names[t]) == 0) {
            for (size_t i = 0; rc == 0 && i < sizeof METHODS / sizeof *METHODS; i++)
                if (strcmp(METHODS[i].type, types[t]) == 0)
                    rc = guard_method(type, def, METHODS[i].method);
            PyTypeObject *slots = (PyTypeObject *)type;
            PyObject *setconfig = t == 0 ? PyDict_GetItemString(slots->tp_dict, "setconfig") : NULL; /* borrowed; 3.12 */
            if (setconfig && Py_IS_TYPE(setconfig, &PyMethodDescr_Type))
                rc = rc < 0 ? rc : psb_patch(((PyMethodDescrObject *)setconfig)->d_method, DOOR_LIBRARY, -1, "c");
            if (t == 0)
                psb_patch_slot(slots, def, "__init__", (void **)&slots->tp_init, (void **)&original_init, (void *)connection_init);
            if (t == 1)
                psb_patch_slot(slots, def, "__next__", (void **)&slots->tp_iternext, (void **)&original_next, (void *)cursor_next);
        }
        Py_XDECREF(type);
    }
    return rc;
}
