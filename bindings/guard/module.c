/* pysandboxes._guard: the little of the guard that Python sees. Nothing here arms, disarms or shows a rule. */
#include "eval.h"

#include <string.h>

static PyObject *text(psb_text t) { return PyBytes_FromStringAndSize(t.n ? t.s : "", (Py_ssize_t)t.n); }

static PyObject *active(PyObject *m, PyObject *Py_UNUSED(a)) {
    (void)m;
    return PyBool_FromLong(psb.active);
}

static PyObject *mode(PyObject *m, PyObject *Py_UNUSED(a)) {
    (void)m;
    if (!psb.active)
        Py_RETURN_NONE;
    return PyUnicode_FromString(psb.partial ? "partial" : "complete");
}

static PyObject *learning(PyObject *m, PyObject *Py_UNUSED(a)) {
    (void)m;
    return PyBool_FromLong(psb.active && psb.learn);
}

static PyObject *extra(PyObject *m, PyObject *Py_UNUSED(a)) {
    (void)m;
    return text(psb.extra);
}

static PyObject *package(PyObject *m, PyObject *Py_UNUSED(a)) {
    (void)m;
    return PyUnicode_DecodeFSDefaultAndSize(psb.package.n ? psb.package.s : "", (Py_ssize_t)psb.package.n);
}

static PyObject *need_partial(void) {
    PyObject *cls = psb_exception_class("SandBoxError");
    if (cls)
        PyErr_SetString(cls, "this process is no child of sandboxes()");
    return NULL;
}

static PyObject *arm(PyObject *m, PyObject *args) {
    const char *main_package = "";
    (void)m;
    if (!PyArg_ParseTuple(args, "|s:arm", &main_package))
        return NULL;
    if (!psb.active || !psb.partial)
        return need_partial();
    bool first = psb.phase == PSB_PHASE_BOOT;
    if (first && psb_delivered_open(main_package) < 0)
        return NULL;
    psb_enter_user_phase(); /* one way: nothing leads back */
    if (first && psb.call_fd >= 0 && psb_channel_open(psb.call_fd) < 0)
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *receive(PyObject *m, PyObject *Py_UNUSED(a)) {
    (void)m;
    return psb.active && psb.partial ? psb_channel_recv() : need_partial();
}

static PyObject *close_(PyObject *m, PyObject *Py_UNUSED(a)) {
    (void)m;
    if (!psb.active || !psb.partial)
        return need_partial();
    psb_channel_close();
    Py_RETURN_NONE;
}

static PyObject *lend(PyObject *m, PyObject *Py_UNUSED(a)) {
    (void)m;
    return psb.active && psb.partial ? psb_channel_lend() : need_partial();
}

static PyObject *look(PyObject *m, PyObject *Py_UNUSED(a)) {
    (void)m;
    return psb.active && psb.partial ? psb_channel_look() : need_partial();
}

static PyObject *leave(PyObject *m, PyObject *Py_UNUSED(a)) {
    (void)m;
    return psb.active && psb.partial ? psb_channel_leave() : need_partial();
}

static PyObject *take(PyObject *m, PyObject *known) {
    (void)m;
    return psb.active && psb.partial ? psb_channel_take(known) : need_partial();
}

static PyObject *target(PyObject *m, PyObject *payload) {
    (void)m;
    PyObject *data = psb_delivered_data(payload);
    return data ? psb_channel_target((const uint8_t *)PyBytes_AS_STRING(data), (size_t)PyBytes_GET_SIZE(data)) : NULL;
}

static PyObject *loads(PyObject *m, PyObject *payload) {
    (void)m;
    return psb.active && psb.partial ? psb_delivered_loads(payload) : need_partial();
}

static PyObject *send_(PyObject *m, PyObject *args) {
    (void)m;
    return psb.active && psb.partial ? psb_channel_send(args) : need_partial();
}

static PyObject *function(PyObject *m, PyObject *args) {
    (void)m;
    return psb.active && psb.partial ? psb_sent_function(args) : need_partial();
}

static PyObject *pack(PyObject *m, PyObject *o) {
    (void)m;
    mp_writer w = {0};
    PyObject *result = mp_object(&w, o, 0) == 0 ? PyBytes_FromStringAndSize((char *)w.buf, (Py_ssize_t)w.len) : NULL;
    free(w.buf);
    return result;
}

static PyObject *enter(PyObject *m, PyObject *args) {
    PyObject *record = NULL;
    (void)m;
    return PyArg_ParseTuple(args, "|O:enter", &record) ? psb_denials_enter(record) : NULL;
}

static PyObject *denials(PyObject *m, PyObject *args) {
    PyObject *record = NULL;
    (void)m;
    return PyArg_ParseTuple(args, "|O:denials", &record) ? psb_denials_list(record) : NULL;
}

static PyObject *judged(PyObject *m, PyObject *Py_UNUSED(a)) {
    (void)m;
    return PyLong_FromUnsignedLongLong(__atomic_load_n(&psb_judged, __ATOMIC_RELAXED));
}

static PyObject *evaluate(PyObject *m, PyObject *args, PyObject *kwargs) {
    (void)m;
    return psb_evaluate(args, kwargs);
}

static PyObject *eval_table(PyObject *m, PyObject *Py_UNUSED(a)) {
    (void)m;
    return text(psb.evals);
}

/* What would allow something that a guarded string did is told once. */
static PyObject *eval_learn(PyObject *m, PyObject *args) {
    const char *key, *item;
    char site[512];
    int given;
    (void)m;
    if (!PyArg_ParseTuple(args, "ssp:eval_learn", &key, &item, &given))
        return NULL;
    if (!psb.active || !psb.learn)
        Py_RETURN_NONE;
    PyObject *both = PyBytes_FromFormat("%d%s=%s", given, key, item);
    if (!both)
        return NULL;
    const char *told = PyBytes_AS_STRING(both);
    size_t length = (size_t)PyBytes_GET_SIZE(both);
    if (!psb_seen('w', told, length)) {
        mp_writer w = {0};
        psb_remember('w', told, length);
        size_t n = psb_site(site, sizeof site);
        psb_question(&w, "learn", 5, false);
        mp_str(&w, "eval-rule", 9);
        mp_str(&w, key, strlen(key));
        mp_str(&w, item, strlen(item));
        mp_str(&w, site, n);
        mp_bool(&w, given);
        psb_tell(&w);
    }
    Py_DECREF(both);
    Py_RETURN_NONE;
}

static PyObject *eval_code(PyObject *m, PyObject *args) {
    PyObject *code, *token;
    (void)m;
    return PyArg_ParseTuple(args, "O!U:eval_code", &PyCode_Type, &code, &token) ? psb_eval_code(code, token) : NULL;
}

static PyObject *eval_look(PyObject *m, PyObject *args) {
    PyObject *tree, *kinds;
    double depth;
    (void)m;
    return PyArg_ParseTuple(args, "OO!d:eval_look", &tree, &PyDict_Type, &kinds, &depth) ? psb_eval_look(tree, kinds, depth) : NULL;
}

static PyObject *eval_builtin(PyObject *m, PyObject *name) {
    const char *text = PyUnicode_AsUTF8(name);
    (void)m;
    return text ? PyBool_FromLong(psb_eval_builtin_known(text)) : NULL;
}

/* The exception classes, made when they are first asked for. */
static PyObject *getattr_(PyObject *m, PyObject *name) {
    const char *s = PyUnicode_AsUTF8(name);
    if (!s)
        return NULL;
    for (const char *const *p = psb_exception_names; *p; p++) {
        if (strcmp(*p, s) == 0) {
            PyObject *cls = psb_exception_class(s);
            if (!cls || PyObject_SetAttr(m, name, cls) < 0)
                return NULL;
            return Py_NewRef(cls);
        }
    }
    PyErr_Format(PyExc_AttributeError, "module 'pysandboxes._guard' has no attribute '%U'", name);
    return NULL;
}

static PyMethodDef methods[] = {
    {"active", active, METH_NOARGS, "active() -> bool\n\nIs this process a sandboxed interpreter?"},
    {"mode", mode, METH_NOARGS, "mode() -> str | None\n\n'complete', 'partial', or None in an application."},
    {"learning", learning, METH_NOARGS, "learning() -> bool\n\nIs this a learning run, where everything is allowed?"},
    {"extra", extra, METH_NOARGS, "extra() -> bytes\n\nWhat the application gave its child."},
    {"package", package, METH_NOARGS, "package() -> str\n\nThe folder the pysandboxes package must come from."},
    {"arm", arm, METH_VARARGS,
     "arm(main_package='') -> None\n\nThe child's start is over: from here on the code is the user's. The main file may import its package."},
    {"recv", receive, METH_NOARGS,
     "recv() -> tuple[int, int, Payload | tuple | None, bool] | None\n\nThe next frame (kind, id, payload, spare), or None when the channel is closed."},
    {"function", function, METH_VARARGS, "function(code, globals, closure) -> function\n\nMakes a function of code that the application sent, and of no other."},
    {"close", close_, METH_NOARGS, "close() -> None\n\nEnds the reading of frames: every recv() gives None."},
    {"lend", lend, METH_NOARGS,
     "lend() -> int\n\nLends the reading of the channel to the event loop's thread: the descriptor to watch there, -1 if it is not to be had."},
    {"look", look, METH_NOARGS,
     "look() -> bool\n\nThe loop's thread goes to the channel, until leave(), and looks for a moment whether something has come."},
    {"leave", leave, METH_NOARGS, "leave() -> None\n\nThe loop's thread leaves the channel."},
    {"take", take, METH_O,
     "take(known) -> tuple[int, int, Payload, bool] | bool | None\n\nThe loop's thread takes the next frame (kind, id, payload, whether there is "
     "more) if it cancels or calls one of known. None or True: there is none yet; False: the channel is read by other threads from here on."},
    {"loads", loads, METH_O, "loads(payload) -> object\n\nUnpickles what the application sent, and nothing else."},
    {"target", target, METH_O, "target(payload) -> bytes | None\n\nWhat names the function of a call, as take() knows it."},
    {"send", send_, METH_VARARGS, "send(kind, id, data=None, more=None, buffers=[]) -> None\n\nSends a frame to the application, a RESULT's buffers before it."},
    {"pack", pack, METH_O, "pack(obj) -> bytes\n\nPlain values as msgpack."},
    {"enter", enter, METH_VARARGS, "enter(record=None) -> Record\n\nWhat is refused in this context from here on is written there; None: in a new one."},
    {"denials", denials, METH_VARARGS,
     "denials(record=None) -> list[dict]\n\nThe refusals of a record, the newest last; None: of this context's and the process's."},
    {"judged", judged, METH_NOARGS, "judged() -> int\n\nHow many events of this process were judged; 0 in an application."},
    {"evaluate", (PyCFunction)(void *)evaluate, METH_VARARGS | METH_KEYWORDS,
     "evaluate(code, namespace, builtins, granted, rules, iterations, alloc, depth, timeout) -> object\n\nRuns rewritten code under a meter."},
    {"eval_code", eval_code, METH_VARARGS,
     "eval_code(code, token) -> code\n\nPuts the helpers into rewritten code, and refuses code that would do by itself what they guard."},
    {"eval_learn", eval_learn, METH_VARARGS, "eval_learn(key, item, given)\n\nIn a learning run: tells what would allow something that a guarded string did."},
    {"eval_table", eval_table, METH_NOARGS, "eval_table() -> bytes\n\nIn a sandboxed interpreter: its guarded profiles, as the engine's EvalProfiles gives them."},
    {"eval_look", eval_look, METH_VARARGS,
     "eval_look(tree, kinds, depth) -> tuple | None\n\nWhat a source names, where its tree has nothing that is not in the table."},
    {"eval_builtin", eval_builtin, METH_O, "eval_builtin(name) -> bool\n\nCan evaluated code be granted this builtin?"},
    {"__getattr__", getattr_, METH_O, NULL},
    {NULL, NULL, 0, NULL}};

static int fill(PyObject *m) { return PyModule_AddStringConstant(m, "__version__", PSB_VERSION); }

static PyModuleDef_Slot slots[] = {{Py_mod_exec, fill},
#if PY_VERSION_HEX >= 0x030C0000
                                   {Py_mod_multiple_interpreters, Py_MOD_MULTIPLE_INTERPRETERS_NOT_SUPPORTED},
#endif
                                   {0, NULL}};

static PyModuleDef definition = {PyModuleDef_HEAD_INIT, .m_name = "pysandboxes._guard",
                                 .m_doc = "The guard of a sandboxed interpreter, and the exception classes of the package.",
                                 .m_size = 0, .m_methods = methods, .m_slots = slots};

PyMODINIT_FUNC PyInit__guard(void) { return PyModuleDef_Init(&definition); }
