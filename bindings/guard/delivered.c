/* What the application's calls bring, and what may be done for it without a rule.
 *
 * A call names the module of its function, and classes in the pickle of its arguments: to import those is the application's choice, and
 * charged to nobody. A program can call the serving code as well as the application does. So the permission does not belong to that
 * code but to what came over the channel: a payload is an object of a type of its own, which the guard alone makes and reads. While
 * loads() reads one, the frame that called it may import the modules and find the classes that the payload names, and no other frame may.
 *
 * The GIL is held throughout. What is remembered is each thread's own.
 */
#include "guard.h"

#include <string.h>

#define NAME_MAX_BYTES 512 /* of a module that a call names; a longer one is charged */

typedef struct {
    PyObject_HEAD
    PyObject *data; /* bytes, owned */
} payload;

static void payload_free(PyObject *self) {
    Py_XDECREF(((payload *)self)->data);
    PyObject_Free(self);
}

static PyTypeObject payload_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "pysandboxes._guard.Payload",
    .tp_basicsize = sizeof(payload),
    .tp_dealloc = payload_free,
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION | Py_TPFLAGS_IMMUTABLETYPE,
};

static PyObject *unpickle;              /* _pickle.loads, taken before any code of the program ran; lives as long as the process */
static char main_package[NAME_MAX_BYTES]; /* what the main file's relative imports start from */

int psb_delivered_open(const char *package) {
    PyObject *module = PyType_Ready(&payload_type) < 0 ? NULL : PyImport_ImportModule("_pickle");
    if (!unpickle && module)
        unpickle = PyObject_GetAttrString(module, "loads");
    if (strlen(package) < sizeof main_package)
        strcpy(main_package, package);
    Py_XDECREF(module);
    return unpickle ? 0 : -1;
}

PyObject *psb_delivered_bytes(const uint8_t *data, size_t n) {
    payload *made = PyObject_New(payload, &payload_type);
    if (made && !(made->data = PyBytes_FromStringAndSize((const char *)data, (Py_ssize_t)n)))
        Py_CLEAR(made);
    return (PyObject *)made;
}

PyObject *psb_delivered_object(PyObject *bytes) {
    payload *made = PyObject_New(payload, &payload_type);
    if (made)
        made->data = Py_NewRef(bytes);
    return (PyObject *)made;
}

PyObject *psb_delivered_data(PyObject *o) {
    if (Py_IS_TYPE(o, &payload_type))
        return ((payload *)o)->data;
    PyErr_SetString(PyExc_TypeError, "a payload that the application sent is wanted");
    return NULL;
}

/* ---- what a thread is doing for the application ---- */

/* A payload that is read just now, and by whom. */
typedef struct reading {
    struct reading *up;
    PyFrameObject *frame;
    PyObject *data;
} reading;

static __thread reading *now;
/* The modules that the last call of this thread named: its function's, and that of the function which a pool's task stands for. */
static __thread char called[2][NAME_MAX_BYTES];

static void remember(char *out, PyObject *name) {
    Py_ssize_t n = 0;
    const char *s = PyUnicode_CheckExact(name) ? PyUnicode_AsUTF8AndSize(name, &n) : NULL;
    if (!s)
        PyErr_Clear();
    if (s && n < NAME_MAX_BYTES && strlen(s) == (size_t)n)
        strcpy(out, s);
}

/* (module, name, args, kwargs); a request to the serving loop itself has no module, and (module, name) as its first argument. */
static void remember_call(PyObject *call) {
    called[0][0] = called[1][0] = 0;
    if (!PyTuple_CheckExact(call) || PyTuple_GET_SIZE(call) < 4)
        return;
    remember(called[0], PyTuple_GET_ITEM(call, 0));
    PyObject *args = PyTuple_GET_ITEM(call, 2);
    PyObject *first = PyTuple_CheckExact(args) && PyTuple_GET_SIZE(args) ? PyTuple_GET_ITEM(args, 0) : NULL;
    if (!called[0][0] && first && PyTuple_CheckExact(first) && PyTuple_GET_SIZE(first) == 2)
        remember(called[1], PyTuple_GET_ITEM(first, 0));
}

PyObject *psb_delivered_loads(PyObject *o) {
    PyObject *data = psb_delivered_data(o);
    PyThreadState *ts = PyThreadState_GetUnchecked();
    PyFrameObject *frame = data && ts ? PyThreadState_GetFrame(ts) : NULL;
    if (!data)
        return NULL;
    reading here = {now, frame, Py_NewRef(data)};
    now = &here;
    PyObject *loaded = PyObject_CallOneArg(unpickle, data);
    now = here.up;
    if (loaded)
        remember_call(loaded);
    Py_DECREF(data);
    Py_XDECREF(frame);
    return loaded;
}

static bool written_in(PyObject *data, const char *s, size_t n) {
    return n && memmem(PyBytes_AS_STRING(data), (size_t)PyBytes_GET_SIZE(data), s, n);
}

bool psb_delivered_class(PyObject *module, PyObject *name) {
    Py_ssize_t mn, nn;
    if (!now || !now->frame || !psb_running_is(now->frame))
        return false;
    const char *m = PyUnicode_AsUTF8AndSize(module, &mn), *s = m ? PyUnicode_AsUTF8AndSize(name, &nn) : NULL;
    if (!s)
        PyErr_Clear();
    return s && written_in(now->data, m, (size_t)mn) && written_in(now->data, s, (size_t)nn);
}

static bool is(const char *name, size_t n, const char *s) { return n && strlen(s) == n && memcmp(s, name, n) == 0; }

/* A module that is there: to name it again gives a program nothing that sys.modules would not. */
static bool loaded(PyObject *name) {
    PyObject *modules = PyImport_GetModuleDict(); /* borrowed */
    PyObject *found = modules && PyDict_CheckExact(modules) ? PyDict_GetItemWithError(modules, name) : NULL;
    PyErr_Clear();
    return found && found != Py_None;
}

/* Is this import one that the package makes for itself or for the application? */
bool psb_delivered_import(PyObject *subject, const char *name, size_t n) {
    static const char own[] = "pysandboxes";
    if (!psb_outside_serves())
        return false;
    if (now && now->frame && psb_outside_is(now->frame) && written_in(now->data, name, n))
        return true;
    return is(name, n, called[0]) || is(name, n, called[1]) || is(name, n, "__mp_main__") || is(name, n, main_package) ||
           (n >= sizeof own - 1 && memcmp(name, own, sizeof own - 1) == 0 && (n == sizeof own - 1 || name[sizeof own - 1] == '.')) ||
           loaded(subject) || psb_package_import(name, n);
}
