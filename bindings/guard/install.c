/* Which functions are guarded, and when: the base ones before site, a module's own ones when that module is made. */
#include "guard.h"

#include <fcntl.h>
#include <string.h>

#include "registry.inc"

/* Most are only judged. */
static enum psb_door_kind kind_of(const char *module, const char *attr) {
    if (strcmp(module, "_posixsubprocess") == 0 && strcmp(attr, "fork_exec") == 0)
        return DOOR_FORK_EXEC;
    if (strcmp(module, "_imp") == 0 && strcmp(attr, "create_dynamic") == 0)
        return DOOR_DYNAMIC;
    if (strcmp(module, "posix") == 0 && (strcmp(attr, "execve") == 0 || strcmp(attr, "posix_spawnp") == 0))
        return DOOR_HAND_ON;
    if (strcmp(module, "posix") == 0 && (strcmp(attr, "setpriority") == 0 || strncmp(attr, "sched_set", 9) == 0))
        return DOOR_OWN_NUMBER;
    if (strcmp(module, "_imp") == 0 && strncmp(attr, "exec_", 5) == 0)
        return DOOR_EXEC;
    if (strcmp(module, "_imp") == 0 && strcmp(attr, "get_frozen_object") == 0)
        return DOOR_CODE;
    return DOOR_CALL;
}

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
    if (strcmp(m, "posix") == 0 && (replace(m, module, module, "execv", DOOR_HAND_ON, -1, NULL) < 0 ||
                                    replace(m, module, module, "posix_spawn", DOOR_HAND_ON, -1, NULL) < 0))
        return -1; /* their events judge them */
    for (const psb_explained_row *row = PSB_EXPLAINED; row->module; row++)
        if (strcmp(row->module, m) == 0 && replace(m, module, module, row->attr, DOOR_EXPLAINED, -1, row->spec) < 0)
            return -1;
    if (strcmp(m, "marshal") == 0 && replace(m, module, module, "loads", DOOR_CODE, -1, NULL) < 0)
        return -1;
    if (strcmp(m, "builtins") == 0 && replace(m, module, module, "compile", DOOR_CODE, -1, NULL) < 0)
        return -1;
    if (strcmp(m, "posix") == 0 &&
        (replace(m, module, module, "close", DOOR_CLOSE, -1, NULL) < 0 || replace(m, module, module, "dup2", DOOR_CLOSE, -1, NULL) < 0 ||
         replace(m, module, module, "closerange", DOOR_CLOSERANGE, -1, NULL) < 0))
        return -1;
    if (strcmp(m, "_imp") == 0 && replace(m, module, module, "create_builtin", DOOR_CREATE, -1, NULL) < 0)
        return -1;
    if ((strcmp(m, "posix") == 0 || strcmp(m, "os") == 0) && replace(m, module, module, "mkdir", DOOR_MKDIR, -1, NULL) < 0)
        return -1;
    if (strcmp(m, "posix") == 0 && (replace(m, module, module, "listdir", DOOR_LISTDIR, -1, "r0") < 0 ||
                                    (psb.ignore && replace(m, module, module, "scandir", DOOR_SCANDIR, -1, NULL) < 0)))
        return -1;
    if (psb.no_inet && strcmp(m, "socket") == 0 && replace_path(m, module, "socket.__init__", DOOR_SOCKET, -1, NULL) < 0)
        return -1;
    if (strcmp(m, "os") == 0 && replace_path(m, module, "_Environ.__getitem__", DOOR_ENV, -1, NULL) < 0)
        return -1;
    static const struct {
        const char *module, *attr, *spec;
    } library[] = {{"_posixshmem", "shm_open", "o"},   {"_posixshmem", "shm_unlink", "s"}, {"_multiprocessing", "sem_unlink", "m0"},
                   {"_locale", "bindtextdomain", "f"}, {"_locale", "textdomain", "d"},     {"_locale", "dgettext", "d"},
                   {"_locale", "dcgettext", "d"},      {"sys", "activate_stack_trampoline", "p"}};
    for (size_t i = 0; i < sizeof library / sizeof *library; i++)
        if (strcmp(m, library[i].module) == 0 && replace(m, module, module, library[i].attr, DOOR_LIBRARY, -1, library[i].spec) < 0)
            return -1;
    if (strcmp(m, "_multiprocessing") == 0 && psb_guard_semaphore(module) < 0)
        return -1;
    if (strcmp(m, "multiprocessing.synchronize") == 0 && replace_path(m, module, "SemLock.__init__", DOOR_SEMAPHORE, -1, NULL) < 0)
        return -1;
    if (strcmp(m, "subprocess") == 0 && always_fork_exec(module) < 0)
        return -1;
    if (strcmp(m, "builtins") == 0 && replace(m, module, module, "__import__", DOOR_IMPORT, -1, NULL) < 0)
        return -1;
    return 0;
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
