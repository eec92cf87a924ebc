/* dbm: the C library opens the files, under names that it makes of the given one. */
#include "guard.h"

#include <dlfcn.h>
#include <string.h>

/* What ndbm adds: Berkeley DB keeps one file, gdbm's imitation and the old library two. Which it is, is read from what the
 * extension is linked to: its own word for it is an attribute that a program can change. */
static const char *const *endings(const psb_door *door, const psb_original *original) {
    static const char *const gdbm[] = {"", NULL}, *const berkeley[] = {".db", NULL}, *const two[] = {".pag", ".dir", NULL};
    static const char *const any[] = {".db", ".pag", ".dir", NULL};
    Dl_info module;
    if (door->spec[0] == 'g')
        return gdbm;
    void *handle = dladdr((void *)original->c, &module) ? dlopen(module.dli_fname, RTLD_LAZY | RTLD_NOLOAD) : NULL;
    const char *const *found = any;
    if (handle && dlsym(handle, "__db_ndbm_open"))
        found = berkeley;
    else if (handle && dlsym(handle, "dbm_open"))
        found = two;
    if (handle)
        dlclose(handle);
    return found;
}

/* open(filename, flags='r', mode=0o666, /). The name is made a bytes object once, and that is what the original gets. */
PyObject *psb_dbm_open(PSB_CALL) {
    if (!psb.enforce || n < 1 || n > 3 || kwnames || (n > 1 && !PyUnicode_Check(args[1]))) /* no call that opens */
        return psb_call_original(original, args, n, kwnames);
    const char *flags = n > 1 ? PyUnicode_AsUTF8(args[1]) : "r";
    if (!flags)
        return NULL;
    if (!strchr("rwcn", flags[0])) /* the original says so; the empty string is among these */
        return psb_call_original(original, args, n, kwnames);
    PyObject *copy[3], *name = NULL, *result = NULL;
    if (!PyUnicode_FSConverter(args[0], &name))
        return NULL;
    memcpy(copy, args, sizeof *copy * (size_t)n);
    copy[0] = name;
    bool ok = true;
    for (const char *const *end = endings(door, original); ok && *end; end++) {
        PyObject *file = PyBytes_FromFormat("%s%s", PyBytes_AS_STRING(name), *end);
        PyObject *text = file ? PyUnicode_DecodeFSDefault(PyBytes_AS_STRING(file)) : NULL;
        ok = text && psb_file_object(text, -1, flags[0] == 'r' ? PSB_READ : PSB_WRITE, true, false, "open") == 0;
        Py_XDECREF(text);
        Py_XDECREF(file);
    }
    if (ok)
        result = psb_call_original(original, copy, n, NULL);
    Py_DECREF(name);
    return result;
}
