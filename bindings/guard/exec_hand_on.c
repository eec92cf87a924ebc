/* execv, execve, posix_spawn and posix_spawnp (and what os builds on them: os.exec*, os.spawn*): a Python that they start
 * gets the guard, as with fork_exec (exec.c). What is refused or fails leaves the environment and the descriptors as they
 * were.
 */
#include "guard.h"

#include <fcntl.h>
#include <gnu/libc-version.h>
#include <stdlib.h>
#include <string.h>

#define DUP2 2 /* os.POSIX_SPAWN_DUP2 (Modules/posixmodule.c) */

/* Of a mapping, asked once: a list of b"name=value". NULL without an exception where the original has something to say. */
static PyObject *lines_of(PyObject *mapping) {
    PyObject *keys = PyMapping_Check(mapping) ? PyMapping_Keys(mapping) : NULL, *values = keys ? PyMapping_Values(mapping) : NULL;
    PyObject *list = values && PyList_GET_SIZE(keys) == PyList_GET_SIZE(values) ? PyList_New(0) : NULL;
    for (Py_ssize_t i = 0; list && i < PyList_GET_SIZE(keys) && i < PyList_GET_SIZE(values); i++) {
        PyObject *k = NULL, *v = NULL, *line = NULL;
        if (PyUnicode_FSConverter(PyList_GET_ITEM(keys, i), &k) && PyUnicode_FSConverter(PyList_GET_ITEM(values, i), &v) &&
            PyBytes_GET_SIZE(k) && !strchr(PyBytes_AS_STRING(k) + 1, '='))
            line = PyBytes_FromFormat("%s=%s", PyBytes_AS_STRING(k), PyBytes_AS_STRING(v));
        if (!line || PyList_Append(list, line) < 0)
            Py_CLEAR(list);
        Py_XDECREF(line);
        Py_XDECREF(k);
        Py_XDECREF(v);
    }
    Py_XDECREF(keys);
    Py_XDECREF(values);
    return list;
}

/* A dict of bytes with ours among them; of two of one name the first holds, as in the program that is started. */
static PyObject *handed(PyObject *given) {
    PyObject *lines = given == Py_None ? Py_NewRef(given) : lines_of(given), *list = lines ? psb_exec_environment(lines) : NULL;
    PyObject *dict = list ? PyDict_New() : NULL;
    for (Py_ssize_t i = 0; dict && i < PyList_GET_SIZE(list); i++) {
        const char *line = PyBytes_AS_STRING(PyList_GET_ITEM(list, i)), *equals = *line ? strchr(line + 1, '=') : NULL;
        if (!equals)
            continue;
        PyObject *k = PyBytes_FromStringAndSize(line, equals - line), *v = PyBytes_FromString(equals + 1);
        if (!k || !v || !PyDict_SetDefault(dict, k, v))
            Py_CLEAR(dict);
        Py_XDECREF(k);
        Py_XDECREF(v);
    }
    Py_XDECREF(list);
    Py_XDECREF(lines);
    return dict;
}

static void inherit(bool yes) {
    fcntl(psb.boot_fd, F_SETFD, yes ? 0 : FD_CLOEXEC);
    fcntl(psb.announce_fd, F_SETFD, yes ? 0 : FD_CLOEXEC);
}

static PyObject *replace_process(const psb_original *original, PyObject **args, Py_ssize_t n, PyObject *kwnames) {
    inherit(true);
    PyObject *result = psb_call_original(original, args, n, kwnames);
    inherit(false);
    return result;
}

/* execv takes the process's own environment. */
static PyObject *call_execv(PSB_CALL) {
    static const char *const names[] = {"LD_PRELOAD", "PYSANDBOXES_BOOT"};
    PyObject *env = handed(Py_None), *result = NULL;
    char *before[2] = {NULL, NULL};
    (void)door;
    for (int i = 0; env && i < 2; i++) {
        const char *old = getenv(names[i]);
        PyObject *name = PyBytes_FromString(names[i]), *value = name ? PyDict_GetItem(env, name) : NULL; /* borrowed */
        before[i] = old ? strdup(old) : NULL;
        if (value)
            setenv(names[i], PyBytes_AS_STRING(value), 1);
        Py_XDECREF(name);
    }
    if (env)
        result = replace_process(original, (PyObject **)args, n, kwnames);
    for (int i = 0; env && i < 2; i++) {
        if (before[i])
            setenv(names[i], before[i], 1);
        else
            unsetenv(names[i]);
        free(before[i]);
    }
    Py_XDECREF(env);
    return result;
}

/* dup2 of a descriptor to itself clears its close-on-exec in the child alone: glibc 2.29 and newer. */
static bool spawn_keeps(void) {
    int major = 0, minor = 0;
    return sscanf(gnu_get_libc_version(), "%d.%d", &major, &minor) == 2 && (major > 2 || minor >= 29);
}

/* The file actions with ours before them: a program that closes all descriptors closes these, too. */
static PyObject *actions(PyObject *given) {
    PyObject *ours = Py_BuildValue("((iii)(iii))", DUP2, psb.boot_fd, psb.boot_fd, DUP2, psb.announce_fd, psb.announce_fd);
    PyObject *theirs = given && given != Py_None ? PySequence_Tuple(given) : PyTuple_New(0);
    PyObject *all = ours && theirs ? PySequence_Concat(ours, theirs) : NULL;
    Py_XDECREF(ours);
    Py_XDECREF(theirs);
    return all;
}

static Py_ssize_t named(PyObject *kwnames, const char *name) {
    for (Py_ssize_t k = 0; kwnames && k < PyTuple_GET_SIZE(kwnames); k++)
        if (PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(kwnames, k), name) == 0)
            return k;
    return -1;
}

PyObject *psb_hand_on(PSB_CALL) {
    PyObject *copy[16], *env = NULL, *files = NULL, *names = kwnames ? Py_NewRef(kwnames) : NULL, *result = NULL;
    Py_ssize_t total = n + (kwnames ? PyTuple_GET_SIZE(kwnames) : 0), at = 2, f = named(kwnames, "file_actions");
    bool spawn = strncmp(door->name, "posix_spawn", 11) == 0;
    if (!psb.active || total > 15 || (spawn && !spawn_keeps()))
        goto plain;
    if (strcmp(door->name, "execv") == 0) {
        Py_XDECREF(names);
        return call_execv(door, original, args, n, kwnames);
    }
    if (n <= at)
        at = named(kwnames, "env") < 0 ? -1 : n + named(kwnames, "env");
    if (at < 0 || (f >= 0 && args[n + f] != Py_None && !PySequence_Check(args[n + f])))
        goto plain; /* the original says what is missing */
    memcpy(copy, args, sizeof *copy * (size_t)total);
    env = handed(args[at]);
    if (!env) {
        if (PyErr_Occurred())
            goto done;
        goto plain;
    }
    copy[at] = env;
    if (!spawn) {
        result = replace_process(original, copy, n, names);
        goto done;
    }
    files = actions(f >= 0 ? args[n + f] : NULL);
    if (f < 0 && files) {
        PyObject *one = Py_BuildValue("(s)", "file_actions");
        Py_XSETREF(names, one && names ? PySequence_Concat(names, one) : Py_XNewRef(one));
        Py_XDECREF(one);
        f = total - n;
    }
    if (files && names) {
        copy[n + f] = files;
        result = psb_call_original(original, copy, n, names);
    }
    goto done;
plain:
    result = psb_call_original(original, args, n, kwnames);
done:
    Py_XDECREF(env);
    Py_XDECREF(files);
    Py_XDECREF(names);
    return result;
}
