/* Imports: which names the program may import, and the shims that see every way to a module.
 *
 * builtins.__import__ sees the statement, modules already loaded included. importlib's _find_and_load sees what is not
 * loaded yet, whoever asks (the statement, import_module, pkgutil, C code). Both charge the name to the nearest caller
 * outside the standard library; what the standard library imports by its own statements is free.
 */
#include "guard.h"

#include <limits.h>
#include <string.h>
#include <sys/stat.h>

/* Modules that C code of the interpreter and its standard extensions imports by itself, whoever calls it. */
static const char *const C_IMPORTS[] = {
    "_strptime", "copyreg", "_compat_pickle", "warnings", "codecs", "functools", "collections.abc", "collections", "re",
    "io", "os", "locale", "weakref", "_weakrefset", "traceback", "linecache", "tokenize", "threading", "types", "typing",
    "inspect", "importlib._bootstrap", "importlib._bootstrap_external", "importlib.machinery", "importlib.util", "zipimport",
    "_pyio", "_pydecimal", "numbers", "decimal", "datetime", "_datetime", "time", "abc", "_py_abc", "enum", "string", "_io",
    "asyncio.events", "asyncio.base_futures", "asyncio.exceptions", "asyncio.base_tasks", "asyncio.coroutines", "asyncio",
    "zoneinfo._common", "zoneinfo._tzpath", "unicodedata", "stringprep", "encodings", "xml.etree.ElementPath", "copy",
    "pyexpat", "_colorize", "_suggestions", "math", "struct", "_struct", "site", "sys", "builtins", "rlcompleter", "readline",
    "_socket", "runpy", "pkgutil", "_pyrepl", "_pyrepl.__main__", "_pyrepl.main", NULL};

static char refused_folder[PSB_PATH_MAX];

void psb_note_refused_folder(const char *path, size_t n) {
    if (n < sizeof refused_folder && psb_nearest_caller() == PSB_IMPORTLIB) {
        memcpy(refused_folder, path, n);
        refused_folder[n] = 0;
    }
}

static bool listed(const char *name, size_t n) {
    static const char *const prefixes[] = {"encodings.", "_sysconfigdata_"};
    for (size_t i = 0; i < 2; i++)
        if (n > strlen(prefixes[i]) && memcmp(name, prefixes[i], strlen(prefixes[i])) == 0)
            return true;
    for (const char *const *p = C_IMPORTS; *p; p++)
        if (strlen(*p) == n && memcmp(*p, name, n) == 0)
            return true;
    return false;
}

static bool is_target(const char *name, size_t n) {
    for (uint32_t i = 0; i < psb.targets.n; i++)
        if (psb.targets.items[i].n == n && memcmp(psb.targets.items[i].s, name, n) == 0)
            return true;
    return false;
}

/* a is b, or a parent of b. */
static bool parent_of(const char *a, size_t an, const char *b, size_t bn) {
    return an <= bn && memcmp(a, b, an) == 0 && (an == bn || b[an] == '.');
}

static bool being_imported(const char *name, size_t n) {
    for (psb_grant *g = psb_grants; g; g = g->up)
        if (g->import)
            return parent_of(name, n, g->import, g->import_len) ||
                   (parent_of(g->import, g->import_len, name, n) && (g->standard || n == g->import_len || !psb_import_denied(name, n)));
    return false;
}

static void tell_import(const char *name, size_t n, bool absent) {
    char site[512];
    size_t sn = psb_site(site, sizeof site);
    mp_writer w = {0};
    psb_question(&w, "learn", 4, false);
    mp_str(&w, "import", 6);
    mp_str(&w, name, n);
    mp_str(&w, site, sn);
    mp_bool(&w, absent);
    psb_tell(&w);
}

/* Told before the module is made, which may end the process. One that was absent is told each time: it may be there by now. */
static void learn_import(const char *name, size_t n) {
    if (psb_seen('i', name, n) && !psb_seen('I', name, n))
        return;
    psb_remember('i', name, n);
    tell_import(name, n, false);
}

static int ask(const char *name, size_t n, const char *hint, PyObject *subject) {
    if (!hint && psb_seen('i', name, n))
        return 0;
    mp_writer w = {0};
    psb_question(&w, "import", 2, true);
    mp_str(&w, name, n);
    if (hint)
        mp_bin(&w, hint, strlen(hint));
    else
        mp_nil(&w);
    psb_answer a;
    psb_ask(&w, &a);
    if (a.allow) {
        if (!hint)
            psb_remember('i', name, n);
        psb_answer_free(&a);
        return 0;
    }
    return psb_raise(&a, subject);
}

/* The name's UTF-8, borrowed from the object that is returned; what cannot be encoded is written as an escape, which no
 * rule can name. */
static PyObject *utf8(PyObject *name, const char **s, Py_ssize_t *n) {
    *s = PyUnicode_AsUTF8AndSize(name, n);
    if (*s)
        return Py_NewRef(name);
    PyErr_Clear();
    PyObject *b = PyUnicode_AsEncodedString(name, "utf-8", "backslashreplace");
    if (b) {
        *s = PyBytes_AS_STRING(b);
        *n = PyBytes_GET_SIZE(b);
    }
    return b;
}

/* by_statement: __import__ was called (perhaps by an import statement); else the finder was. */
static int charge(PyObject *subject, const char *name, size_t n, bool by_statement, bool from_c) {
    if (psb.phase == PSB_PHASE_BOOT || !psb.enforce)
        return 0;
    if (!psb.learn && psb_import_allowed(name, n))
        return 0;
    if (is_target(name, n) || being_imported(name, n))
        return 0;
    psb_caller caller = psb_nearest_caller();
    if (by_statement && (psb_static_import(name, n) || psb_package_import(name, n)))
        return 0; /* what the standard library and this package need for themselves */
    if (listed(name, n) && (from_c || caller != PSB_OTHER)) /* no frame: the interpreter itself, or a C thread */
        return 0;
    if (psb.partial && psb_delivered_import(subject, name, n))
        return 0; /* the module of a function that the application calls, the classes of its arguments: the application's choice */
    if (psb.learn) {
        learn_import(name, n);
        return 0;
    }
    return ask(name, n, NULL, subject);
}

/* The absolute name that `name` at `level` means in `globals`, as import_ does it; NULL without an exception: let the
 * original complain. */
static PyObject *absolute(PyObject *name, PyObject *globals, long level) {
    if (level <= 0)
        return Py_NewRef(name);
    if (!globals || !PyDict_Check(globals))
        return NULL;
    PyObject *package = PyDict_GetItemString(globals, "__package__");
    PyObject *owned = NULL;
    if (!package || package == Py_None) {
        PyObject *spec = PyDict_GetItemString(globals, "__spec__");
        if (spec && spec != Py_None) {
            package = owned = PyObject_GetAttrString(spec, "parent");
            if (!package) {
                PyErr_Clear();
                return NULL;
            }
        } else {
            package = PyDict_GetItemString(globals, "__name__");
            if (package && PyUnicode_Check(package) && !PyDict_GetItemString(globals, "__path__")) {
                Py_ssize_t dot = PyUnicode_FindChar(package, '.', 0, PyUnicode_GET_LENGTH(package), -1);
                package = owned = dot >= 0 ? PyUnicode_Substring(package, 0, dot) : NULL;
            }
        }
    }
    PyObject *result = NULL;
    if (package && PyUnicode_CheckExact(package) && PyUnicode_GET_LENGTH(package)) {
        Py_ssize_t end = PyUnicode_GET_LENGTH(package);
        while (--level > 0 && end > 0)
            end = PyUnicode_FindChar(package, '.', 0, end, -1);
        if (end > 0) {
            PyObject *base = PyUnicode_Substring(package, 0, end);
            if (base && PyUnicode_GET_LENGTH(name))
                result = PyUnicode_FromFormat("%U.%U", base, name);
            else
                result = Py_XNewRef(base);
            Py_XDECREF(base);
        }
    }
    Py_XDECREF(owned);
    return result;
}

/* `from package import name` with a rule that denies package.name: where that is a module, importlib has it from sys.modules
 * without asking, or passes over our refusal since the statement may mean an attribute. */
static int charge_from(PyObject *package, const char *name, PyObject *from) {
    PyObject *seq = psb.learn || psb.phase == PSB_PHASE_BOOT || !psb.enforce || !from || from == Py_None ? NULL : PySequence_Tuple(from);
    int rc = 0;
    for (Py_ssize_t i = 0; seq && rc == 0 && i < PyTuple_GET_SIZE(seq); i++) {
        PyObject *item = PyTuple_GET_ITEM(seq, i);
        PyObject *full = PyUnicode_Check(item) ? PyUnicode_FromFormat("%s.%U", name, item) : NULL;
        Py_ssize_t n = 0;
        const char *s = full ? PyUnicode_AsUTF8AndSize(full, &n) : NULL;
        if (s && psb_import_denied(s, (size_t)n)) {
            PyObject *loaded = PyMapping_GetItemString(PyImport_GetModuleDict(), s);
            PyErr_Clear();
            if (loaded || !PyObject_HasAttr(package, item))
                rc = ask(s, (size_t)n, NULL, full);
            Py_XDECREF(loaded);
        } else {
            PyErr_Clear();
        }
        Py_XDECREF(full);
    }
    Py_XDECREF(seq);
    if (rc == 0)
        PyErr_Clear();
    return rc;
}

/* `written` at `level`, as written; five: all arguments were given by place. */
static PyObject *import_exactly(PyObject *written, PyObject *const *got, long level, bool five) {
    PyObject *name = absolute(written, got[1], level);
    if (!name)
        return PyErr_Occurred() ? NULL : PyImport_ImportModuleLevelObject(written, got[1], got[2], got[3], (int)level);
    Py_ssize_t len;
    const char *s;
    PyObject *hold = utf8(name, &s, &len);
    /* PyImport_Import's way of calling: globals twice, an empty list, level 0 */
    bool from_c = five && got[1] && got[1] == got[2] && got[3] && PyList_CheckExact(got[3]) && !PyList_GET_SIZE(got[3]) && !level;
    if (!hold || charge(name, s, (size_t)len, true, from_c) < 0) {
        Py_XDECREF(hold);
        Py_DECREF(name);
        return NULL;
    }
    /* A spec that answers otherwise now gets at modules that are loaded already; others are charged when they are found. */
    psb_grant grant = {psb_grants, NULL, s, (size_t)len, psb_import_denies() && psb_static_import(s, (size_t)len)};
    psb_grants = &grant;
    PyObject *result = PyImport_ImportModuleLevelObject(written, got[1], got[2], got[3], (int)level);
    psb_grants = grant.up;
    if (result && psb_import_denies() && !grant.standard && charge_from(result, s, got[3]) < 0)
        Py_CLEAR(result);
    Py_DECREF(hold);
    Py_DECREF(name);
    return result;
}

PyObject *psb_import_call(PSB_CALL) {
    (void)door;
    static const char *const names[] = {"name", "globals", "locals", "fromlist", "level"};
    PyObject *got[5] = {0};
    bool odd = n > 5;
    for (Py_ssize_t i = 0; i < n && i < 5; i++)
        got[i] = args[i];
    for (Py_ssize_t k = 0; kwnames && k < PyTuple_GET_SIZE(kwnames); k++) {
        int j = 0;
        while (j < 5 && PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(kwnames, k), names[j]) != 0)
            j++;
        if (j == 5 || got[j])
            odd = true;
        else
            got[j] = args[n + k];
    }
    if (odd || !got[0] || !PyUnicode_Check(got[0]))
        return psb_call_original(original, args, n, kwnames); /* raises */
    /* Taken once, as exact types: a str subclass or an __index__ cannot change its mind. */
    PyObject *index = got[4] ? PyNumber_Index(got[4]) : PyLong_FromLong(0);
    int overflow = 0;
    long level = index ? PyLong_AsLongAndOverflow(index, &overflow) : -1;
    Py_XDECREF(index);
    if (overflow || level > INT_MAX || level < INT_MIN)
        PyErr_SetString(PyExc_OverflowError, "Python int too large to convert to C int");
    if (!PyErr_Occurred() && !level && !PyUnicode_CheckExact(got[0]) && PyUnicode_GET_LENGTH(got[0]))
        PyObject_Hash(got[0]); /* sys.modules would be asked for it: what that raises is raised */
    PyObject *written = PyErr_Occurred() ? NULL : PyUnicode_FromObject(got[0]);
    if (!written)
        return NULL;
    PyObject *result = import_exactly(written, got, level, n == 5);
    Py_DECREF(written);
    return result;
}

/* a is a package above b: a.b, a.b.c. */
static bool above(PyObject *a, PyObject *b) {
    Py_ssize_t n = PyUnicode_GET_LENGTH(a);
    return PyUnicode_GET_LENGTH(b) > n && PyUnicode_READ_CHAR(b, n) == '.' && PyUnicode_Tailmatch(b, a, 0, n, -1) == 1;
}

/* Whether the exception that is set says that no module `name` was found: not that a module which `name` imports was not, and
 * not that a rule refused one. */
static bool is_missing(PyObject *name, bool or_above) {
    if (!PyErr_ExceptionMatches(PyExc_ModuleNotFoundError))
        return false;
    PyObject *type, *value, *tb;
    PyErr_Fetch(&type, &value, &tb);
    PyErr_NormalizeException(&type, &value, &tb);
    PyObject *refusal = psb_exception_class("SandBoxError");
    PyObject *missing = value ? PyObject_GetAttrString(value, "name") : NULL;
    bool same = refusal && !PyErr_GivenExceptionMatches(type, refusal) && missing && PyUnicode_CheckExact(missing) &&
                (PyUnicode_Compare(missing, name) == 0 || (or_above && above(missing, name)));
    Py_XDECREF(missing);
    PyErr_Clear();
    PyErr_Restore(type, value, tb);
    return same;
}

/* sys.path as it was when the program began: what it has put there itself shall not tell it what is in a hidden folder. */
static char **first_path;
static Py_ssize_t n_first_path;

void psb_note_path(void) {
    PyObject *path = PySys_GetObject("path"); /* borrowed */
    Py_ssize_t n = path && PyList_Check(path) ? PyList_GET_SIZE(path) : 0;
    first_path = calloc((size_t)n + 1, sizeof *first_path);
    for (Py_ssize_t i = 0; first_path && i < n; i++) {
        PyObject *entry = PyList_GET_ITEM(path, i);
        const char *s = PyUnicode_Check(entry) ? PyUnicode_AsUTF8(entry) : NULL;
        PyErr_Clear();
        if (s && (first_path[n_first_path] = strdup(s)))
            n_first_path++;
    }
}

static bool was_first(const char *folder) {
    for (Py_ssize_t i = 0; i < n_first_path; i++)
        if (strcmp(first_path[i], folder) == 0)
            return true;
    return false;
}

/* A module was not found. If a file of that name stands in a folder that may not be read, say so. */
static void explain_missing(PyObject *name) {
    if (!refused_folder[0] || !is_missing(name, false))
        return;
    PyObject *type, *value, *tb;
    PyErr_Fetch(&type, &value, &tb);
    PyObject *sys_path = PySys_GetObject("path");
    Py_ssize_t n;
    const char *s = PyUnicode_AsUTF8AndSize(name, &n);
    static __thread char found[PSB_PATH_MAX];
    const char *dot = s ? strrchr(s, '.') : NULL;
    found[0] = 0;
    for (Py_ssize_t i = 0; s && !dot && sys_path && PyList_Check(sys_path) && i < PyList_GET_SIZE(sys_path) && !found[0]; i++) {
        static const char *const shapes[] = {"%s/%s.py", "%s/%s/__init__.py", "%s/%s.pyc"};
        PyObject *entry = PyList_GET_ITEM(sys_path, i);
        const char *folder = PyUnicode_Check(entry) ? PyUnicode_AsUTF8(entry) : NULL;
        static __thread char text[PSB_PATH_MAX], file[PSB_PATH_MAX];
        size_t len;
        struct stat st;
        if (!folder || !was_first(folder) || !psb_path_lexical(-1, folder, strlen(folder), text, &len) || psb_file_exposed(text, len, PSB_READ))
            continue;
        for (size_t k = 0; k < 3 && !found[0]; k++)
            if (snprintf(file, sizeof file, shapes[k], text, s) < (int)sizeof file && stat(file, &st) == 0)
                strcpy(found, file);
    }
    PyErr_Clear();
    if (found[0] && s && ask(s, (size_t)n, found, name) < 0) {
        Py_XDECREF(type);
        Py_XDECREF(value);
        Py_XDECREF(tb);
    } else {
        PyErr_Restore(type, value, tb);
    }
    refused_folder[0] = 0;
}

/* There is no such module, so it needs no rule; a package that was looked through for it does. The exception that says so stays
 * as it is. */
static void take_back(PyObject *name) {
    PyObject *type, *value, *tb;
    Py_ssize_t n;
    const char *s;
    if (!is_missing(name, true))
        return;
    bool itself = is_missing(name, false);
    PyErr_Fetch(&type, &value, &tb);
    PyObject *hold = utf8(name, &s, &n);
    if (hold && psb_seen('i', s, (size_t)n)) {
        psb_remember('I', s, (size_t)n);
        tell_import(s, (size_t)n, true);
        const char *dot = itself ? memchr(s, '.', (size_t)n) : NULL;
        if (dot)
            learn_import(s, (size_t)(dot - s));
    }
    Py_XDECREF(hold);
    PyErr_Clear();
    PyErr_Restore(type, value, tb);
}

PyObject *psb_find_and_load(PSB_CALL) {
    (void)door;
    if (n < 1 || !PyUnicode_CheckExact(args[0]))
        return psb_call_original(original, args, n, kwnames);
    PyObject *name = args[0];
    Py_ssize_t len;
    const char *s;
    PyObject *hold = utf8(name, &s, &len);
    int rc = hold ? charge(name, s, (size_t)len, false, false) : -1;
    Py_XDECREF(hold);
    if (rc < 0)
        return NULL;
    PyObject *module = psb_call_original(original, args, n, kwnames);
    if (!module) {
        if (psb.phase == PSB_PHASE_USER && psb.learn)
            take_back(name);
        else if (psb.phase == PSB_PHASE_USER)
            explain_missing(name);
        return NULL;
    }
    if (psb_install_module(name, module) < 0)
        Py_CLEAR(module);
    return module;
}

/* _imp.create_builtin(spec): a builtin module made anew comes without shims. No event tells of it, as one does of a library. */
PyObject *psb_create_module(PSB_CALL) {
    PyObject *wanted = door->kind == DOOR_CREATE && n >= 1 ? PyObject_GetAttrString(args[0], "name") : NULL;
    PyErr_Clear();
    bool refused = wanted && psb_native_import(wanted) < 0;
    Py_XDECREF(wanted);
    if (refused)
        return NULL;
    PyObject *module = psb_call_original(original, args, n, kwnames);
    if (!module || !PyModule_Check(module))
        return module;
    PyObject *name = PyModule_GetNameObject(module);
    if (!name) {
        PyErr_Clear();
        return module;
    }
    if (psb_install_module(name, module) < 0)
        Py_CLEAR(module);
    Py_DECREF(name);
    return module;
}

/* _imp.exec_dynamic(module), exec_builtin(module): here a module of several phases gets its contents. They are guarded before
 * a loader of the program's own sees them. */
PyObject *psb_exec_module(PSB_CALL) {
    if (psb_call_check(door->call, door->name) < 0)
        return NULL;
    PyObject *result = psb_call_original(original, args, n, kwnames);
    if (!result || n < 1 || !PyModule_Check(args[0]))
        return result;
    PyObject *name = PyModule_GetNameObject(args[0]);
    if (!name) { /* a loader took it away; the C code has its name still */
        PyErr_Clear();
        name = PyUnicode_FromString("");
    }
    if (!name || psb_install_module(name, args[0]) < 0)
        Py_CLEAR(result);
    Py_XDECREF(name);
    return result;
}

/* _imp.create_dynamic(spec[, file]): an extension's code. The import system may load what is there to be imported; what the
 * program could have written itself is native code of its own, and needs that grant. */
PyObject *psb_create_dynamic(PSB_CALL) {
    static __thread char literal[PSB_PATH_MAX], text[PSB_PATH_MAX];
    size_t len;
    if (psb_call_check(door->call, "_imp.create_dynamic") < 0)
        return NULL;
    PyObject *origin = n >= 1 ? PyObject_GetAttrString(args[0], "origin") : NULL;
    if (!origin || !PyUnicode_CheckExact(origin)) { /* what the original reads it does not read the same twice */
        Py_XDECREF(origin);
        PyErr_Clear();
        if (psb_call_ask(door->call, "_imp.create_dynamic") < 0)
            return NULL;
        return psb_create_module(door, original, args, n, kwnames);
    }
    PyObject *bytes = PyUnicode_EncodeFSDefault(origin);
    bool written = bytes && psb_path_literal(-1, PyBytes_AS_STRING(bytes), (size_t)PyBytes_GET_SIZE(bytes), literal, &len) &&
                   psb_path_resolve(literal, true, text, &len) && psb_file_writable(text, len) && !psb_file_in_runtime(text, len);
    PyErr_Clear();
    Py_XDECREF(bytes);
    Py_DECREF(origin);
    if (written && psb_call_ask(door->call, "_imp.create_dynamic") < 0)
        return NULL;
    return psb_create_module(door, original, args, n, kwnames);
}

/* The event `import` of an extension carries the file that is about to be loaded, which a spec of the program's own may
 * not have told psb_create_dynamic. */
int psb_extension_event(PyObject *file) {
    static __thread char literal[PSB_PATH_MAX], text[PSB_PATH_MAX];
    size_t n;
    PyObject *bytes = PyUnicode_Check(file) ? PyUnicode_EncodeFSDefault(file) : PyBytes_Check(file) ? Py_NewRef(file) : NULL;
    if (!bytes) {
        if (!PyErr_Occurred())
            PyErr_SetString(PyExc_TypeError, "import: the file of an extension must be str or bytes in a sandbox");
        return -1;
    }
    bool found = psb_path_literal(-1, PyBytes_AS_STRING(bytes), strlen(PyBytes_AS_STRING(bytes)), literal, &n) &&
                 psb_path_resolve(literal, true, text, &n);
    bool written = !found || (psb_file_writable(text, n) && !psb_file_in_runtime(text, n));
    int rc = psb.phase == PSB_PHASE_USER && found ? psb_file_object(file, -1, PSB_READ, true, false, "open") : 0; /* dlopen has no event */
    Py_DECREF(bytes);
    if (rc < 0)
        return -1;
    return written ? psb_call_ask(psb_call_id("_imp.create_dynamic", 19), "_imp.create_dynamic") : 0;
}
