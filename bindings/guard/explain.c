/* Errors that are not the guard's but come of the rules: they stay what they are and carry the refusal as a note.
 *
 * The C library reads /etc/passwd and /etc/group for itself, tempfile tries folders and says in the end that there is none, and
 * the kernel refuses to remove what a rule exposes alone. Where nothing is to be told, nothing is. Of these only the user
 * database is judged: what it holds is unknown to who may not read it, as where the kernel keeps the file from the C library.
 */
#include "guard.h"

#include <errno.h>
#include <string.h>

/* The refusal of a file, recorded and with its text, a new reference; NULL, with no exception, where it is allowed. */
static PyObject *file_refusal(const char *path, int need, const char *event) {
    PyObject *type, *refusal = NULL, *tb, *name = PyUnicode_DecodeFSDefault(path);
    if (name && psb_file_object(name, -1, need, true, false, event) < 0) {
        PyErr_Fetch(&type, &refusal, &tb);
        PyErr_NormalizeException(&type, &refusal, &tb);
        Py_XDECREF(type);
        Py_XDECREF(tb);
    }
    PyErr_Clear();
    Py_XDECREF(name);
    return refusal;
}

/* Asks about a file and hangs its refusal on the error. */
void psb_tell_file(PyObject *error, const char *path, int need, const char *event) {
    PyObject *refusal = file_refusal(path, need, event);
    if (refusal)
        psb_carry(error, refusal);
    PyErr_Clear();
    Py_XDECREF(refusal);
}

/* The first folder that tempfile looks at: the one that somebody meant. */
static const char *temporary(void) {
    static const char *const names[] = {"TMPDIR", "TEMP", "TMP"};
    for (int i = 0; i < 3; i++) {
        const char *value = getenv(names[i]);
        if (value && *value)
            return value;
    }
    return "/tmp";
}

/* The kernel refused to take a name away that a rule exposes: the rule may be for the name alone, and not for its folder. */
static void tell_remove(PyObject *error, const char *function, PyObject *const *args, Py_ssize_t n, PyObject *kwnames) {
    static __thread char text[PSB_PATH_MAX];
    PyObject *bytes = NULL, *at = kwnames && PyTuple_GET_SIZE(kwnames) == 1 && n == 1 ? args[1] : Py_None; /* dir_fd */
    int dir_fd = PyLong_CheckExact(at) ? (int)PyLong_AsLong(at) : -1;
    size_t len, parent;
    if (PyErr_Occurred() || n < 1 || !PyUnicode_FSConverter(args[0], &bytes))
        return;
    if (psb_path_lexical(dir_fd, PyBytes_AS_STRING(bytes), (size_t)PyBytes_GET_SIZE(bytes), text, &len)) {
        for (parent = len; parent > 1 && text[parent - 1] != '/';)
            parent--;
        parent -= parent > 1;
        if (psb_file_allowed(text, len, PSB_WRITE) && !psb_file_allowed(text, parent, PSB_WRITE)) {
            mp_writer w = {0};
            psb_question(&w, "remove", 2, true);
            mp_bin(&w, text, len);
            mp_str(&w, function, strlen(function));
            psb_answer a;
            psb_ask(&w, &a);
            if (!a.allow && !a.lost)
                psb_carry_answer(error, &a);
            psb_answer_free(&a);
        }
    }
    Py_DECREF(bytes);
}

static PyObject *expected(const char *spec) {
    return spec[0] == '/' ? PyExc_KeyError : strcmp(spec, "tempdir") == 0 ? PyExc_FileNotFoundError : PyExc_PermissionError;
}

/* What the user database says of one that it does not have. The arguments were right, or there were none. */
static PyObject *unknown(const psb_door *door, PyObject *const *args) {
    if (strcmp(door->name, "getpwall") == 0 || strcmp(door->name, "getgrall") == 0)
        return PyList_New(0);
    const char *what = strcmp(door->name, "getpwuid") == 0 ? "uid" : strcmp(door->name, "getgrgid") == 0 ? "gid" : NULL;
    return what ? PyErr_Format(PyExc_KeyError, "%s(): %s not found: %S", door->name, what, args[0])
                : PyErr_Format(PyExc_KeyError, "%s(): name not found: %R", door->name, args[0]);
}

/* An entry of the user database is there: whoever may not read the file does not get it. The learning run is told of the file. */
static PyObject *entry_of(const psb_door *door, PyObject *entry, PyObject *const *args) {
    PyObject *type, *error, *tb, *refusal = file_refusal(door->spec, PSB_READ, "open");
    if (!refusal)
        return entry;
    Py_SETREF(entry, unknown(door, args));
    if (!entry) {
        PyErr_Fetch(&type, &error, &tb);
        PyErr_NormalizeException(&type, &error, &tb);
        psb_carry(error, refusal);
        PyErr_Restore(type, error, tb);
    }
    Py_DECREF(refusal);
    return entry;
}

/* spec: the file that the C library reads, or "tempdir", or "remove". */
PyObject *psb_explained(PSB_CALL) {
    PyObject *result = psb_call_original(original, args, n, kwnames);
    bool file = door->spec[0] == '/';
    if (!psb.enforce || psb.phase == PSB_PHASE_BOOT)
        return result;
    if (result && file)
        return entry_of(door, result, args);
    if (result || psb.learn || !PyErr_ExceptionMatches(expected(door->spec)))
        return result;
    PyObject *type, *error, *tb;
    PyErr_Fetch(&type, &error, &tb);
    PyErr_NormalizeException(&type, &error, &tb);
    if (error && Py_IS_TYPE(error, (PyTypeObject *)expected(door->spec))) { /* not one of ours */
        if (file)
            psb_tell_file(error, door->spec, PSB_READ, "open");
        else if (strcmp(door->spec, "tempdir") == 0)
            psb_tell_file(error, temporary(), PSB_WRITE, "gettempdir");
        else
            tell_remove(error, door->name, args, n, kwnames);
        PyErr_Clear();
    }
    PyErr_Restore(type, error, tb);
    return NULL;
}

const psb_explained_row PSB_EXPLAINED[] = {
    {"pwd", "getpwuid", "/etc/passwd"}, {"pwd", "getpwnam", "/etc/passwd"},
    {"pwd", "getpwall", "/etc/passwd"}, {"grp", "getgrgid", "/etc/group"},
    {"grp", "getgrnam", "/etc/group"},  {"grp", "getgrall", "/etc/group"},
    {"posix", "rmdir", "remove"},       {"posix", "remove", "remove"},
    {"posix", "unlink", "remove"},      {"tempfile", "_get_default_tempdir", "tempdir"},
    {NULL, NULL, NULL},
};
