/* Which functions are guarded, and when: the base ones before site, a module's own ones when that module is made. */
#include "guard.h"

#include <fcntl.h>
#include <string.h>

#include "registry.inc"

/* Functions of the registry that are not only judged. */
static const struct {
    const char *module, *attr;
    enum psb_door_kind kind;
} KINDS[] = {
    {"_posixsubprocess", "fork_exec", DOOR_FORK_EXEC},
    {"_imp", "create_dynamic", DOOR_DYNAMIC},
    {"_imp", "exec_dynamic", DOOR_EXEC},
    {"_imp", "exec_builtin", DOOR_EXEC},
    {"_imp", "get_frozen_object", DOOR_CODE},
    {"posix", "execve", DOOR_HAND_ON},
    {"posix", "posix_spawnp", DOOR_HAND_ON},
    {"posix", "setpriority", DOOR_OWN_NUMBER},
    {"posix", "sched_setaffinity", DOOR_OWN_NUMBER},
    {"posix", "sched_setparam", DOOR_OWN_NUMBER},
    {"posix", "sched_setscheduler", DOOR_OWN_NUMBER},
};

static enum psb_door_kind kind_of(const char *module, const char *attr) {
    for (size_t i = 0; i < sizeof KINDS / sizeof *KINDS; i++)
        if (strcmp(KINDS[i].module, module) == 0 && strcmp(KINDS[i].attr, attr) == 0)
            return KINDS[i].kind;
    return DOOR_CALL;
}

/* Functions that need no grant of the registry: their events judge them, or their door does. */
enum { ALWAYS, WITH_IGNORE, WITHOUT_INET, WITH_GUARD };
static const struct {
    const char *module, *attr;
    enum psb_door_kind kind;
    const char *spec;
    int when;
} DOORS[] = {
    {"posix", "execv", DOOR_HAND_ON, NULL, ALWAYS},
    {"posix", "posix_spawn", DOOR_HAND_ON, NULL, ALWAYS},
    {"posix", "close", DOOR_CLOSE, NULL, ALWAYS},
    {"posix", "dup2", DOOR_CLOSE, NULL, ALWAYS},
    {"posix", "closerange", DOOR_CLOSERANGE, NULL, ALWAYS},
    {"posix", "mkdir", DOOR_MKDIR, NULL, ALWAYS},
    {"posix", "listdir", DOOR_LISTDIR, "r0", ALWAYS},
    {"posix", "scandir", DOOR_SCANDIR, NULL, WITH_IGNORE},
    {"posix", "chmod", DOOR_AGAIN, NULL, ALWAYS},
    {"posix", "chown", DOOR_AGAIN, NULL, ALWAYS},
    {"posix", "lchown", DOOR_AGAIN, NULL, ALWAYS},
    {"posix", "utime", DOOR_AGAIN, NULL, ALWAYS},
    {"posix", "setxattr", DOOR_AGAIN, NULL, ALWAYS},
    {"posix", "removexattr", DOOR_AGAIN, NULL, ALWAYS},
    {"marshal", "loads", DOOR_CODE, NULL, ALWAYS},
    {"builtins", "compile", DOOR_EVAL, NULL, ALWAYS},
    {"builtins", "eval", DOOR_EVAL, NULL, WITH_GUARD},
    {"builtins", "exec", DOOR_EVAL, NULL, WITH_GUARD},
    {"builtins", "__import__", DOOR_IMPORT, NULL, ALWAYS},
    {"_imp", "create_builtin", DOOR_CREATE, NULL, ALWAYS},
    {"socket", "socket.__init__", DOOR_SOCKET, NULL, WITHOUT_INET},
    {"_socket", "getaddrinfo", DOOR_HOST, NULL, ALWAYS},
    {"_socket", "gethostbyname", DOOR_HOST, NULL, ALWAYS},
    {"_socket", "gethostbyname_ex", DOOR_HOST, NULL, ALWAYS},
    {"_socket", "gethostbyaddr", DOOR_HOST, NULL, ALWAYS},
    {"os", "_Environ.__getitem__", DOOR_ENV, NULL, ALWAYS},
    {"_posixshmem", "shm_open", DOOR_LIBRARY, "o", ALWAYS},
    {"_posixshmem", "shm_unlink", DOOR_LIBRARY, "s", ALWAYS},
    {"_multiprocessing", "sem_unlink", DOOR_LIBRARY, "m0", ALWAYS},
    {"_locale", "bindtextdomain", DOOR_LIBRARY, "f", ALWAYS},
    {"_locale", "textdomain", DOOR_LIBRARY, "d", ALWAYS},
    {"_locale", "dgettext", DOOR_LIBRARY, "d", ALWAYS},
    {"_locale", "dcgettext", DOOR_LIBRARY, "d", ALWAYS},
    {"sys", "activate_stack_trampoline", DOOR_LIBRARY, "p", ALWAYS},
};

static bool wanted(int when) { return when == ALWAYS || (when == WITH_IGNORE && psb.ignore) || (when == WITHOUT_INET && psb.no_inet) || (when == WITH_GUARD && psb.eval_guard); }

/* The definition of a C function that is the module's own: a program may have put any function into any module. */
static PyMethodDef *definition(PyObject *o, const char *module) {
    PyObject *self = PyCFunction_Check(o) ? PyCFunction_GET_SELF(o) : NULL;
    PyModuleDef *home = self && PyModule_Check(self) ? PyModule_GetDef(self) : NULL;
    PyErr_Clear();
    if (!home || !home->m_methods || !home->m_name || strcmp(home->m_name, module) != 0)
        return NULL;
    PyMethodDef *def = ((PyCFunctionObject *)o)->m_ml;
    for (PyMethodDef *m = home->m_methods; m->ml_name; m++)
        if (m == def)
            return def;
    return NULL;
}

static int shim(PyObject *holder, const char *attr, PyObject *old, enum psb_door_kind kind, int call, const char *spec) {
    PyObject *s = psb_shim_new(kind, old, call, spec);
    int rc = s ? PyObject_SetAttrString(holder, attr, s) : -1;
    Py_XDECREF(s);
    return rc;
}

/* Guards what stands under attr: in place where that is a C function, else by a shim. A function of the program's own is left
 * alone: it calls ours, or calls nothing. */
static int replace(const char *name, PyObject *module, PyObject *holder, const char *attr, enum psb_door_kind kind, int call, const char *spec) {
    PyObject *old = PyObject_GetAttrString(holder, attr);
    if (!old) { /* not in this version */
        PyErr_Clear();
        return 0;
    }
    int rc = 0;
    PyMethodDef *def = definition(old, name);
    if (def)
        rc = psb_patch(def, kind, call, spec);
    if (rc == 0 && !psb_is_shim(old) && (kind == DOOR_IMPORT ? def != NULL : PyFunction_Check(old) && PyFunction_GET_GLOBALS(old) == PyModule_GetDict(module)))
        rc = shim(holder, attr, old, kind, call, spec);
    Py_DECREF(old);
    return rc;
}

/* attr may reach into a class: "Popen.__init__". */
static int replace_path(const char *name, PyObject *module, const char *attr, enum psb_door_kind kind, int call, const char *spec) {
    const char *dot = strchr(attr, '.');
    if (!dot)
        return replace(name, module, module, attr, kind, call, spec);
    char first[64];
    size_t n = (size_t)(dot - attr);
    if (n >= sizeof first)
        return 0;
    memcpy(first, attr, n);
    first[n] = 0;
    PyObject *cls = PyObject_GetAttrString(module, first);
    if (!cls) {
        PyErr_Clear();
        return 0;
    }
    int rc = 0;
    if (PyType_Check(cls)) { /* only what the class itself defines: an inherited method is another row's */
        PyObject *own = PyObject_GetAttrString(cls, "__dict__");
        PyObject *there = own ? PyMapping_GetItemString(own, dot + 1) : NULL;
        if (there)
            rc = replace(name, module, cls, dot + 1, kind, call, spec);
        else
            PyErr_Clear();
        Py_XDECREF(there);
        Py_XDECREF(own);
    }
    Py_DECREF(cls);
    return rc;
}

/* subprocess starts programs by posix_spawn where that can close descriptors (3.13); fork_exec is the door that hands the
 * guard on to a Python that is started. */
static int always_fork_exec(PyObject *module) {
    return PyObject_SetAttrString(module, "_USE_POSIX_SPAWN", Py_False);
}

static int install(const char *m, PyObject *module) {
    if (psb_guard_methods(m, module) < 0 || psb_sqlite_methods(m, module) < 0 || psb_guard_fileio(m, module) < 0)
        return -1;
    if ((strcmp(m, "_ctypes") == 0 && psb_guard_ctypes(module) < 0) || (strcmp(m, "_cffi_backend") == 0 && psb_guard_cffi(module) < 0))
        return -1;
    for (int i = 0; PSB_CALL_SHIMS[i].module; i++) {
        const psb_shim_row *row = &PSB_CALL_SHIMS[i];
        if (strcmp(row->module, m) == 0 &&
            replace_path(m, module, row->attr, kind_of(m, row->attr), row->call, NULL) < 0)
            return -1;
    }
    for (int i = 0; PSB_FILE_SHIMS[i].module; i++) {
        const psb_shim_row2 *row = &PSB_FILE_SHIMS[i];
        if (strcmp(row->module, m) == 0 && replace_path(m, module, row->attr, DOOR_FILE, -1, row->spec) < 0)
            return -1;
    }
    for (size_t i = 0; i < sizeof DOORS / sizeof *DOORS; i++)
        if (strcmp(DOORS[i].module, m) == 0 && wanted(DOORS[i].when) &&
            replace_path(m, module, DOORS[i].attr, DOORS[i].kind, -1, DOORS[i].spec) < 0)
            return -1;
    for (const psb_explained_row *row = PSB_EXPLAINED; row->module; row++)
        if (strcmp(row->module, m) == 0 && replace(m, module, module, row->attr, DOOR_EXPLAINED, -1, row->spec) < 0)
            return -1;
    if ((strcmp(m, "_multiprocessing") == 0 && psb_guard_semaphore(module) < 0) || psb_prompt_module(m, module) < 0)
        return -1;
    return strcmp(m, "subprocess") == 0 ? always_fork_exec(module) : 0;
}

/* By the name it was imported under, and by the one its C code has: an extension can be loaded as a submodule of anything. */
int psb_install_module(PyObject *name, PyObject *module) {
    if (!PyModule_Check(module))
        return 0;
    const char *m = PyUnicode_AsUTF8(name);
    if (!m)
        PyErr_Clear();
    else if (install(m, module) < 0)
        return -1;
    PyModuleDef *def = PyModule_GetDef(module);
    if (!def)
        PyErr_Clear();
    return def && def->m_name && (!m || strcmp(def->m_name, m) != 0) ? install(def->m_name, module) : 0;
}

/* An interpreter that has its shims says so in a dict of its own, which Python code does not see. */
static bool is_installed(PyInterpreterState *interpreter) {
    PyObject *dict = PyInterpreterState_GetDict(interpreter);
    return dict && PyDict_GetItemString(dict, "pysandboxes.installed");
}

static bool note_installed(PyInterpreterState *interpreter) {
    PyObject *dict = PyInterpreterState_GetDict(interpreter);
    return dict && PyDict_SetItemString(dict, "pysandboxes.installed", Py_True) == 0;
}

static int install_all_loaded(PyObject *modules) {
    PyObject *items = PyDict_Items(modules);
    int rc = items ? 0 : -1;
    for (Py_ssize_t i = 0; rc == 0 && i < PyList_GET_SIZE(items); i++) {
        PyObject *pair = PyList_GET_ITEM(items, i);
        if (PyUnicode_Check(PyTuple_GET_ITEM(pair, 0)))
            rc = psb_install_module(PyTuple_GET_ITEM(pair, 0), PyTuple_GET_ITEM(pair, 1));
    }
    Py_XDECREF(items);
    return rc;
}

/* Called at import events: does nothing until the interpreter's import system stands, then its work once in each. */
int psb_install_base(void) {
    static bool main_done;
    PyInterpreterState *interpreter = PyInterpreterState_Get();
    bool main = interpreter == PyInterpreterState_Main();
    if (main ? main_done : is_installed(interpreter))
        return 0;
    PyObject *modules = PyImport_GetModuleDict();
    PyObject *importlib = modules ? PyDict_GetItemString(modules, "_frozen_importlib") : NULL;
    PyObject *external = modules ? PyDict_GetItemString(modules, "_frozen_importlib_external") : NULL;
    if (!importlib || !external || !PyDict_GetItemString(modules, "builtins") || !PyDict_GetItemString(modules, "posix"))
        return 0;
    main_done |= main;
    if (!note_installed(interpreter) || install_all_loaded(modules) < 0 ||
        replace("_frozen_importlib", importlib, importlib, "_find_and_load", DOOR_FIND_AND_LOAD, -1, NULL) < 0) {
        PyErr_Clear();
        PyErr_SetString(PyExc_RuntimeError, "pysandboxes: the guard could not put its shims in");
        return -1;
    }
    return 0;
}
