/* The exception classes of the package, and how a refusal becomes one.
 *
 * They are made here, once, for the application and for the sandboxed interpreter alike: the guard must be able to raise
 * them where the package itself may not be imported (python-sb -I -S). Each refusal is a SandBoxError and the builtin
 * that plain Python would raise; the builtin comes first among the bases, or errno, filename and name would stay unset.
 */
#include "guard.h"

#include <errno.h>
#include <string.h>

typedef struct {
    const char *name;
    const char *builtin; /* "" : RuntimeError by way of SandBoxError alone; "BaseException" : that alone */
    const char *doc;
} class_row;

static const class_row CLASSES[] = {
    {"SandBoxError", "RuntimeError", "Base class of every refusal and failure of a sandbox."},
    {"RuleFileNotFoundError", "FileNotFoundError", "Reading what is not exposed or is ignored. errno, strerror and filename are set as Python sets them."},
    {"RulePermissionError", "PermissionError", "Writing what is read-only or not exposed. errno, strerror and filename are set as Python sets them."},
    {"RuleSocketConnectionRefusedError", "ConnectionRefusedError", "A network operation that no rule allows."},
    {"RuleModuleNotFoundError", "ModuleNotFoundError", "An import that no rule allows. `name` is set."},
    {"RuleApiPermissionError", "PermissionError", "A sensitive call that no rule allows."},
    {"RuleEvalPermissionError", "PermissionError", "eval, exec or compile of a string that no rule allows."},
    {"EvalSyntaxRejected", "SyntaxError", "A guarded string was refused; lists every violation."},
    {"EvalInterrupted", "BaseException", "A guarded string passed its time or budget. Not an Exception, so that the string cannot swallow it."},
    {"RestrictedUnpicklingError", "pickle.UnpicklingError", "A result was refused by the parent's validator."},
    {"ConfigSyntaxError", "ValueError", "A profile is missing, or does not load; the text names file and line."},
    {"SandBoxProtocolError", "ConnectionError", "The sandbox child died or broke the protocol, or raised a class that the caller does not know."},
    {"SandBoxBaseExceptionError", "", "The child raised a BaseException (SystemExit, KeyboardInterrupt); named in it, never raised as such in the parent."},
    {"SandBoxTimeoutError", "TimeoutError", "A call passed its time limit; its child was ended."},
};
#define N_CLASSES (sizeof CLASSES / sizeof *CLASSES)

static PyObject *classes[N_CLASSES];

const char *const psb_exception_names[] = {
    "SandBoxError", "RuleFileNotFoundError", "RulePermissionError", "RuleSocketConnectionRefusedError",
    "RuleModuleNotFoundError", "RuleApiPermissionError", "RuleEvalPermissionError", "EvalSyntaxRejected",
    "EvalInterrupted", "RestrictedUnpicklingError", "ConfigSyntaxError", "SandBoxProtocolError",
    "SandBoxBaseExceptionError", "SandBoxTimeoutError", NULL};

/* str(): what the builtin says, then the guard's text, which ends with the line to add. */
static PyObject *rule_str(PyObject *self, PyObject *Py_UNUSED(ignored)) {
    PyTypeObject *builtin = Py_TYPE(self);
    while (builtin->tp_flags & Py_TPFLAGS_HEAPTYPE)
        builtin = builtin->tp_base;
    PyObject *base = builtin->tp_str(self);
    PyObject *text = base ? PyObject_GetAttrString(self, "text") : NULL;
    if (!text || !PyUnicode_Check(text)) {
        Py_XDECREF(text);
        if (base)
            PyErr_Clear();
        return base;
    }
    PyObject *joined =
        PyUnicode_GetLength(base) ? PyUnicode_FromFormat("%U\n%U", base, text) : Py_NewRef(text);
    Py_DECREF(base);
    Py_DECREF(text);
    return joined;
}

static PyMethodDef rule_str_def = {"__str__", rule_str, METH_NOARGS, NULL};

static PyObject *builtin_base(const char *name) {
    if (strcmp(name, "pickle.UnpicklingError") == 0) {
        PyObject *key = PyUnicode_FromString("_pickle");
        PyObject *module = key ? PyImport_GetModule(key) : NULL;
        Py_XDECREF(key);
        if (!module && !PyErr_Occurred())
            module = PyImport_ImportModule("_pickle");
        PyObject *cls = module ? PyObject_GetAttrString(module, "UnpicklingError") : NULL;
        Py_XDECREF(module);
        return cls;
    }
    PyObject *builtins = PyEval_GetBuiltins();
    PyObject *cls = builtins ? PyDict_GetItemString(builtins, name) : NULL;
    if (!cls || !PyExceptionClass_Check(cls) || ((PyTypeObject *)cls)->tp_flags & Py_TPFLAGS_HEAPTYPE) {
        /* the program replaced the name: fall back to what C holds */
        static const struct {
            const char *name;
            PyObject **cls;
        } known[] = {{"RuntimeError", &PyExc_RuntimeError}, {"FileNotFoundError", &PyExc_FileNotFoundError},
                     {"PermissionError", &PyExc_PermissionError}, {"ConnectionRefusedError", &PyExc_ConnectionRefusedError},
                     {"ModuleNotFoundError", &PyExc_ModuleNotFoundError}, {"SyntaxError", &PyExc_SyntaxError},
                     {"BaseException", &PyExc_BaseException}, {"ValueError", &PyExc_ValueError},
                     {"ConnectionError", &PyExc_ConnectionError}, {"TimeoutError", &PyExc_TimeoutError}};
        for (size_t i = 0; i < sizeof known / sizeof *known; i++)
            if (strcmp(known[i].name, name) == 0)
                return Py_NewRef(*known[i].cls);
    }
    return Py_XNewRef(cls);
}

static PyObject *make(size_t i) {
    const class_row *row = &CLASSES[i];
    PyObject *sandbox = i ? psb_exception_class("SandBoxError") : NULL;
    if (i && !sandbox)
        return NULL;
    PyObject *builtin = row->builtin[0] ? builtin_base(row->builtin) : NULL;
    if (row->builtin[0] && !builtin)
        return NULL;
    PyObject *bases;
    if (!i || strcmp(row->builtin, "BaseException") == 0)
        bases = PyTuple_Pack(1, builtin);
    else if (!builtin)
        bases = PyTuple_Pack(1, sandbox);
    else
        bases = PyTuple_Pack(2, builtin, sandbox);
    Py_XDECREF(builtin);
    if (!bases)
        return NULL;
    PyObject *cls = PyObject_CallFunction((PyObject *)&PyType_Type, "sO{ssssss}", row->name, bases, "__module__", "pysandboxes",
                                          "__qualname__", row->name, "__doc__", row->doc);
    Py_DECREF(bases);
    if (cls && !i && PyObject_SetAttrString(cls, "text", Py_None) < 0)
        Py_CLEAR(cls);
    if (cls && strncmp(row->name, "Rule", 4) == 0) {
        PyObject *method = PyDescr_NewMethod((PyTypeObject *)cls, &rule_str_def);
        if (!method || PyObject_SetAttrString(cls, "__str__", method) < 0)
            Py_CLEAR(cls);
        Py_XDECREF(method);
    }
    return cls;
}

PyObject *psb_exception_class(const char *name) {
    for (size_t i = 0; i < N_CLASSES; i++) {
        if (strcmp(CLASSES[i].name, name) == 0) {
            if (!classes[i])
                classes[i] = make(i);
            return classes[i];
        }
    }
    PyErr_Format(PyExc_AttributeError, "no exception class %s", name);
    return NULL;
}

static PyObject *instance(const char *name, psb_answer *a, PyObject *subject, PyObject *text) {
    PyObject *cls = psb_exception_class(name);
    if (!cls)
        return NULL;
    int err = a->err;
    if (PyObject_IsSubclass(cls, PyExc_OSError) == 1) {
        if (err == 0)
            return PyObject_CallFunction(cls, NULL);
        if (subject)
            return PyObject_CallFunction(cls, "isO", err, strerror(err), subject);
        return PyObject_CallFunction(cls, "is", err, strerror(err));
    }
    if (subject && PyUnicode_Check(subject) && PyObject_IsSubclass(cls, PyExc_ImportError) == 1) {
        PyObject *args = PyTuple_New(0);
        PyObject *kwargs = args ? Py_BuildValue("{sO}", "name", subject) : NULL;
        PyObject *exc = kwargs ? PyObject_Call(cls, args, kwargs) : NULL;
        Py_XDECREF(args);
        Py_XDECREF(kwargs);
        return exc;
    }
    return PyObject_CallFunction(cls, "O", text);
}

/* The builtin that plain Python would raise, with the refusal as its text. */
static void raise_builtin(const psb_answer *a, PyObject *subject, PyObject *text) {
    PyObject *const by_code[] = {PyExc_RuntimeError,         PyExc_FileNotFoundError, PyExc_PermissionError, PyExc_ConnectionRefusedError,
                                 PyExc_ModuleNotFoundError, PyExc_PermissionError,   PyExc_PermissionError, PyExc_RuntimeError};
    PyObject *cls = by_code[a->exc >= 0 && a->exc <= 7 ? a->exc : 7], *exc = NULL;
    if (cls == PyExc_ModuleNotFoundError)
        PyErr_SetImportErrorSubclass(cls, text, subject && PyUnicode_Check(subject) ? subject : NULL, NULL);
    else if (cls == PyExc_RuntimeError || !a->err)
        PyErr_SetObject(cls, text);
    else if ((exc = subject ? PyObject_CallFunction(cls, "iOO", a->err, text, subject) : PyObject_CallFunction(cls, "iO", a->err, text)))
        PyErr_SetObject((PyObject *)Py_TYPE(exc), exc);
    Py_XDECREF(exc);
}

int psb_raise(psb_answer *a, PyObject *subject) {
    static const char *const by_code[] = {"SandBoxError", "RuleFileNotFoundError", "RulePermissionError",
                                          "RuleSocketConnectionRefusedError", "RuleModuleNotFoundError",
                                          "RuleApiPermissionError", "RuleEvalPermissionError", "SandBoxError"};
    PyObject *text = a->lost || !a->message.n
                         ? PyUnicode_FromString("refused: the supervisor of this sandbox does not answer")
                         : PyUnicode_DecodeUTF8(a->message.s, (Py_ssize_t)a->message.n, "backslashreplace");
    PyObject *exc = NULL, *denial = NULL, *list = NULL;
    if (!text)
        goto done;
    if (PyInterpreterState_Get() != PyInterpreterState_Main()) { /* the classes belong to the main interpreter */
        raise_builtin(a, subject, text);
        goto done;
    }
    exc = instance(by_code[a->exc >= 0 && a->exc <= 7 ? a->exc : 7], a, subject, text);
    if (!exc || PyObject_SetAttrString(exc, "text", text) < 0)
        goto done;
    list = PyList_New(0);
    if (!list)
        goto done;
    if (a->denial) {
        char site[512];
        psb_site(site, sizeof site);
        psb_denial_record(a->denial, (size_t)(a->denial_end - a->denial), site);
        denial = psb_denial_map(a->denial, (size_t)(a->denial_end - a->denial), site);
        if (!denial || PyList_Append(list, denial) < 0)
            goto done;
        PyObject *rule = PyDict_GetItemString(denial, "rule"), *add = PyDict_GetItemString(denial, "add");
        if ((rule && PyObject_SetAttrString(exc, "rule", rule) < 0) || (add && PyObject_SetAttrString(exc, "add", add) < 0))
            goto done;
    }
    if (PyObject_SetAttrString(exc, "denials", list) == 0)
        PyErr_SetObject((PyObject *)Py_TYPE(exc), exc);
done:
    if (!PyErr_Occurred())
        PyErr_SetString(PyExc_PermissionError, "refused by pysandboxes");
    Py_XDECREF(text);
    Py_XDECREF(exc);
    Py_XDECREF(denial);
    Py_XDECREF(list);
    psb_answer_free(a);
    return -1;
}

/* Whether or not it can be told, the error stays what it is. */
static int carry(PyObject *error, PyObject *text, PyObject *own) {
    PyObject *all = NULL, *done = NULL;
    if (text && own) {
        all = PyObject_GetAttrString(error, "__sandbox_denials__"); /* _exceptions.CARRIED */
        PyErr_Clear();
        PyObject *joined = all ? PySequence_Concat(all, own) : Py_NewRef(own);
        if (joined && PyObject_SetAttrString(error, "__sandbox_denials__", joined) == 0)
            done = PyObject_CallMethod(error, "add_note", "O", text);
        Py_XDECREF(joined);
    }
    PyErr_Clear();
    Py_XDECREF(all);
    Py_XDECREF(own);
    Py_XDECREF(text);
    Py_XDECREF(done);
    return done ? 0 : -1;
}

int psb_carry(PyObject *error, PyObject *refusal) {
    PyObject *text = PyObject_GetAttrString(refusal, "text");
    return carry(error, text, text ? PyObject_GetAttrString(refusal, "denials") : NULL);
}

int psb_carry_answer(PyObject *error, const psb_answer *a) {
    char site[512];
    psb_site(site, sizeof site);
    PyObject *text = PyUnicode_DecodeUTF8(a->message.s, (Py_ssize_t)a->message.n, "replace");
    PyObject *denial = text && a->denial ? psb_denial_map(a->denial, (size_t)(a->denial_end - a->denial), site) : NULL;
    PyObject *own = denial ? PyList_New(1) : NULL;
    if (own)
        PyList_SET_ITEM(own, 0, denial);
    else
        Py_XDECREF(denial);
    return carry(error, text, own);
}
