/* readline: the C library opens files itself, under names that it expands, and one that a line of text names. */
#include "guard.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

static bool blank(char c) { return c == ' ' || c == '\t'; }

/* The file that the line includes, as readline's handle_parser_directive() and parser_include() find it; NULL: none. */
static const char *included(const char *line, char *out, size_t cap) {
    while (blank(*line))
        line++;
    if (*line++ != '$')
        return NULL;
    while (blank(*line))
        line++;
    size_t n = strcspn(line, " \t");
    if (n != strlen("include") || strncasecmp(line, "include", n) != 0)
        return NULL;
    line += n;
    while (blank(*line))
        line++;
    n = strcspn(line, "\n");
    if (n >= cap)
        return NULL; /* longer than any path: it cannot be opened */
    memcpy(out, line, n);
    out[n] = 0;
    return out;
}

/* What readline makes of a name: a new bytes object. HOME is the C library's, which a program may set; so the name that was
 * judged is what readline gets. Names in which it would look up another user, or expand more than the first word, it does not. */
static PyObject *expanded(const char *name) {
    const char *home = getenv("HOME");
    PyObject *path = home && name[0] == '~' && (name[1] == '/' || !name[1]) ? PyBytes_FromFormat("%s%s", home, name + 1)
                                                                             : PyBytes_FromString(name);
    if (!path)
        return NULL;
    const char *s = PyBytes_AS_STRING(path);
    bool more = *s == '~';
    for (const char *at = s; !more && (at = strchr(at, '~')); at++)
        more = at > s && blank(at[-1]);
    if (!more)
        return path;
    Py_DECREF(path);
    PyErr_SetString(PyExc_ValueError, "readline: a name that ~ stands in cannot be judged in a sandbox: write out the path");
    return NULL;
}

/* Judges the file as one to be read. A new reference to its name, or NULL with an exception. */
static PyObject *judged_name(const psb_door *door, const char *name) {
    PyObject *path = expanded(name), *text = path ? PyUnicode_DecodeFSDefault(PyBytes_AS_STRING(path)) : NULL;
    bool ok = text && psb_file_object(text, -1, PSB_READ, true, false, door->name) == 0;
    Py_XDECREF(text);
    if (!ok)
        Py_CLEAR(path);
    return path;
}

/* parse_and_bind(string): `$include FILE` alone opens something. */
static PyObject *bind_line(PSB_CALL) {
    static __thread char name[PSB_PATH_MAX];
    PyObject *line = PyUnicode_EncodeLocale(args[0], "surrogateescape");
    if (!line) { /* the original says so */
        PyErr_Clear();
        return psb_call_original(original, args, n, kwnames);
    }
    const char *file = included(PyBytes_AS_STRING(line), name, sizeof name);
    PyObject *path = file && *file ? judged_name(door, file) : NULL, *result = NULL;
    Py_DECREF(line);
    if (file && *file && !path)
        return NULL;
    if (!path)
        return psb_call_original(original, args, n, kwnames);
    PyObject *text = PyUnicode_DecodeLocale(PyBytes_AS_STRING(path), "surrogateescape");
    PyObject *exact = text ? PyUnicode_FromFormat("$include %U", text) : NULL;
    if (exact)
        result = psb_call_original(original, &exact, 1, NULL);
    Py_XDECREF(exact);
    Py_XDECREF(text);
    Py_DECREF(path);
    return result;
}

/* read_init_file([filename]). Without a name readline has one of its own. */
static PyObject *read_init(PSB_CALL) {
    (void)n; /* one */
    PyObject *given = NULL, *result = NULL;
    if (!PyUnicode_FSConverter(args[0], &given))
        return NULL;
    PyObject *path = judged_name(door, PyBytes_AS_STRING(given));
    if (path)
        result = psb_call_original(original, &path, 1, kwnames);
    Py_XDECREF(path);
    Py_DECREF(given);
    return result;
}

PyObject *psb_readline_call(PSB_CALL) {
    if (!psb.enforce || n != 1 || kwnames || args[0] == Py_None)
        return psb_call_original(original, args, n, kwnames);
    if (strcmp(door->name, "parse_and_bind") == 0 && !PyUnicode_Check(args[0]))
        return psb_call_original(original, args, n, kwnames); /* a TypeError */
    return (strcmp(door->name, "parse_and_bind") == 0 ? bind_line : read_init)(door, original, args, n, kwnames);
}
