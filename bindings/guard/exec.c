/* A program that a granted call starts: if it is a Python, it shall have the guard too.
 *
 * _posixsubprocess.fork_exec (subprocess, multiprocessing's spawn, forkserver and resource tracker) gets the two
 * variables of the preload object and keeps the two descriptors; exec_hand_on.c does the same for os.exec* and
 * os.posix_spawn*. What os.system starts, or what drops them, is held by the OS layer alone.
 */
#include "guard.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern char **environ;

static void encoded(char **p, char *end, const char *s) {
    static const char hex[] = "0123456789abcdef";
    for (; *s && *p < end - 4; s++) {
        if (*s == '%' || *s == ':' || (uint8_t)*s < 32) {
            *(*p)++ = '%';
            *(*p)++ = hex[(uint8_t)*s >> 4];
            *(*p)++ = hex[*s & 15];
        } else {
            *(*p)++ = *s;
        }
    }
    **p = 0;
}

/* A list of "NAME=value" bytes: what was given (or the process's own), with ours in place. */
PyObject *psb_exec_environment(PyObject *given) {
    PyObject *list = PyList_New(0);
    const char *preload = "";
    static __thread char boot[3 * PSB_PATH_MAX], line[PSB_PATH_MAX + 64];
    PyObject *seq = NULL, *kept_preload = NULL;
    if (!list)
        return NULL;
    if (given == Py_None) {
        seq = PyList_New(0);
        for (char **e = environ; seq && e && *e; e++) {
            PyObject *b = PyBytes_FromString(*e);
            if (!b || PyList_Append(seq, b) < 0)
                Py_CLEAR(seq);
            Py_XDECREF(b);
        }
    } else {
        seq = PySequence_List(given);
    }
    if (!seq)
        goto fail;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(seq); i++) {
        PyObject *item = PyList_GET_ITEM(seq, i);
        if (PyBytes_Check(item) && strncmp(PyBytes_AS_STRING(item), "LD_PRELOAD=", 11) == 0) {
            Py_XSETREF(kept_preload, Py_NewRef(item));
            preload = PyBytes_AS_STRING(item) + 11;
            continue;
        }
        if (PyBytes_Check(item) && strncmp(PyBytes_AS_STRING(item), "PYSANDBOXES_BOOT=", 17) == 0)
            continue;
        if (PyList_Append(list, item) < 0)
            goto fail;
    }
    const char *slash = strrchr(psb.guard_path.s, '/');
    int folder = slash ? (int)(slash - psb.guard_path.s) : 0;
    snprintf(line, sizeof line, "LD_PRELOAD=%.*s/_preload.so%s%s", folder, psb.guard_path.s, preload[0] ? ":" : "", preload);
    /* With the inodes: the descriptors are the program's to replace, now, in a preexec_fn, or by a file action. */
    char *p = boot + snprintf(boot, sizeof boot, "PYSANDBOXES_BOOT=%d/%llu:%d/%llu:-1:", psb.boot_fd, (unsigned long long)psb.boot_ino,
                              psb.announce_fd, (unsigned long long)psb.announce_ino);
    encoded(&p, boot + sizeof boot, psb.guard_path.s);
    *p++ = ':';
    encoded(&p, boot + sizeof boot, preload);
    PyObject *a = PyBytes_FromString(line), *b = PyBytes_FromString(boot);
    int rc = a && b && PyList_Append(list, a) == 0 && PyList_Append(list, b) == 0 ? 0 : -1;
    Py_XDECREF(a);
    Py_XDECREF(b);
    Py_XDECREF(kept_preload);
    Py_DECREF(seq);
    if (rc == 0)
        return list;
    Py_DECREF(list);
    return NULL;
fail:
    Py_XDECREF(seq);
    Py_XDECREF(kept_preload);
    Py_DECREF(list);
    return NULL;
}

/* Descriptors as the original wants them: a sorted tuple of numbers. It says itself what is wrong with another. */
static bool well_formed(PyObject *fds) {
    long before = -1;
    for (Py_ssize_t i = 0; PyTuple_Check(fds) && i < PyTuple_GET_SIZE(fds); i++) {
        PyObject *o = PyTuple_GET_ITEM(fds, i);
        int overflow = 0;
        long fd = PyLong_CheckExact(o) ? PyLong_AsLongAndOverflow(o, &overflow) : -1;
        if (overflow || fd <= before)
            return false;
        before = fd;
    }
    return PyTuple_Check(fds);
}

/* The sorted tuple of descriptors to keep, with ours among them. */
static PyObject *descriptors(PyObject *given) {
    if (!well_formed(given))
        return Py_NewRef(given);
    PyObject *list = PySequence_List(given);
    PyObject *ours[2] = {PyLong_FromLong(psb.boot_fd), PyLong_FromLong(psb.announce_fd)};
    for (int i = 0; i < 2 && list; i++)
        if (!ours[i] || (PySequence_Contains(list, ours[i]) == 0 && PyList_Append(list, ours[i]) < 0))
            Py_CLEAR(list);
    Py_XDECREF(ours[0]);
    Py_XDECREF(ours[1]);
    if (!list || PyList_Sort(list) < 0) {
        Py_XDECREF(list);
        return NULL;
    }
    PyObject *tuple = PyList_AsTuple(list);
    Py_DECREF(list);
    return tuple;
}

/* With a preexec_fn and the process's own environment, the program gets what that function makes of the environment: so ours
 * goes into it, for the time of the fork. */
static PyObject *by_environ(const psb_original *original, PyObject **args, Py_ssize_t n, PyObject *list) {
    static const char *const names[] = {"LD_PRELOAD", "PYSANDBOXES_BOOT"};
    char *before[2];
    PyObject *result = NULL;
    bool ok = true;
    for (int i = 0; i < 2; i++) {
        const char *old = getenv(names[i]);
        before[i] = old ? strdup(old) : NULL;
        ok &= !old || before[i];
    }
    for (Py_ssize_t i = PyList_GET_SIZE(list) - 2; ok && i < PyList_GET_SIZE(list); i++) { /* the last two are ours */
        const char *line = PyBytes_AS_STRING(PyList_GET_ITEM(list, i));
        const char *value = strchr(line, '=') + 1;
        ok = setenv(names[i - PyList_GET_SIZE(list) + 2], value, 1) == 0;
    }
    if (ok)
        result = psb_call_original(original, args, n, NULL);
    else
        PyErr_NoMemory();
    for (int i = 0; i < 2; i++) {
        if (!before[i])
            unsetenv(names[i]);
        else
            setenv(names[i], before[i], 1);
        free(before[i]);
    }
    return result;
}

/* A granted call is about to run this program: its file must be exposed, or the kernel's refusal would name no rule. A path
 * that is not there is left to the call. */
int psb_exec_file(PyObject *path) {
    PyObject *bytes = NULL;
    if (!PyUnicode_FSConverter(path, &bytes)) {
        PyErr_Clear(); /* the call itself says what is wrong with it */
        return 0;
    }
    int rc = 0;
    if (access(PyBytes_AS_STRING(bytes), F_OK) == 0)
        rc = psb_file_object(bytes, -1, PSB_READ, true, false, "exec");
    Py_DECREF(bytes);
    return rc;
}

int psb_exec_event(const char *event, PyObject *args) {
    if (strcmp(event, "os.system") == 0) {
        PyObject *shell = PyBytes_FromString("/bin/sh");
        int rc = shell ? psb_exec_file(shell) : -1;
        Py_XDECREF(shell);
        return rc;
    }
    if ((strcmp(event, "os.exec") == 0 || strcmp(event, "os.posix_spawn") == 0) && PyTuple_GET_SIZE(args) >= 1)
        return psb_exec_file(PyTuple_GET_ITEM(args, 0));
    return 0;
}

/* fork_exec tries these in turn; the first that exists is the one that runs. */
static int candidates(PyObject *list) {
    PyObject *seq = PySequence_Tuple(list);
    int rc = 0;
    if (!seq) {
        PyErr_Clear();
        return 0;
    }
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(seq); i++) {
        PyObject *o = PyTuple_GET_ITEM(seq, i);
        if (PyBytes_Check(o) && access(PyBytes_AS_STRING(o), X_OK) == 0) {
            rc = psb_exec_file(o);
            break;
        }
    }
    Py_DECREF(seq);
    return rc;
}

PyObject *psb_fork_exec(PSB_CALL) {
    (void)door;
    PyObject *copy[32];
    if (!psb.active || n < 6 || n > 32 || kwnames)
        return psb_call_original(original, args, n, kwnames);
    if (psb.enforce && candidates(args[1]) < 0)
        return NULL;
    memcpy(copy, args, sizeof(PyObject *) * (size_t)n);
    PyObject *fds = descriptors(args[3]), *env = fds ? psb_exec_environment(args[5]) : NULL;
    PyObject *result = NULL;
    copy[3] = fds;
    if (env && args[5] == Py_None && n > 21 && args[21] != Py_None) { /* preexec_fn, 3.11 to 3.13 */
        result = by_environ(original, copy, n, env);
    } else if (env) {
        copy[5] = env;
        result = psb_call_original(original, copy, n, NULL);
    }
    Py_XDECREF(fds);
    Py_XDECREF(env);
    return result;
}
