/* What this process was refused: the newest refusals of each call, and of the process where no call is under way.
 *
 * A library may swallow a refusal and raise an error of its own. So each refusal is written down here, in the record of the
 * call in whose context it came (a context variable that the serving loop sets, so that tasks and threads with a copy of the
 * context belong to the call that started them), else in the process's. A record is a ring of fixed size that counts what it
 * dropped: a program that is refused a million times does not grow.
 *
 * What was refused to native code, no question told of: it is asked for when somebody wants the refusals.
 *
 * An entry is the supervisor's own words (msgpack), which become Python objects only when somebody asks, and the place in
 * the program.
 *
 * Everything here runs with the GIL held. After a fork the child has a copy. A record is freed with the context that holds it.
 */
#include "guard.h"

#include <string.h>

#define ENTRIES 256 /* of one record; a power of two */

typedef struct {
    uint8_t *raw; /* a denial map, owned */
    size_t n;
    char *site; /* owned, or NULL */
} entry;

typedef struct {
    PyObject_HEAD
    entry *entries;  /* NULL before the first refusal */
    uint64_t count; /* of all refusals */
} record;

static void record_free(PyObject *self) {
    record *r = (record *)self;
    for (size_t i = 0; r->entries && i < ENTRIES; i++) {
        free(r->entries[i].raw);
        free(r->entries[i].site);
    }
    free(r->entries);
    PyObject_Free(self);
}

static PyObject *record_dropped(PyObject *self, void *unused) {
    (void)unused;
    uint64_t count = ((record *)self)->count;
    return PyLong_FromUnsignedLongLong(count > ENTRIES ? count - ENTRIES : 0);
}

static PyGetSetDef record_getset[] = {{"dropped", record_dropped, NULL, "How many refusals are not kept any more.", NULL},
                                      {NULL, NULL, NULL, NULL, NULL}};

static PyTypeObject record_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "pysandboxes._guard.Record",
    .tp_basicsize = sizeof(record),
    .tp_dealloc = record_free,
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION | Py_TPFLAGS_IMMUTABLETYPE,
    .tp_getset = record_getset,
};

static record *whole; /* of the process, made at its first refusal; lives as long as the process */
static PyObject *current; /* the context variable, made by the first enter */

static record *new_record(void) {
    if (PyType_Ready(&record_type) < 0)
        return NULL;
    record *r = PyObject_New(record, &record_type);
    if (r) {
        r->entries = NULL;
        r->count = 0;
    }
    return r;
}

/* The record of the running call, a new reference, or NULL without an exception. */
static record *of_call(void) {
    PyObject *value = NULL;
    if (!current || PyContextVar_Get(current, NULL, &value) < 0)
        PyErr_Clear();
    if (value && !Py_IS_TYPE(value, &record_type)) /* a program can put anything into a variable that it finds */
        Py_CLEAR(value);
    return (record *)value;
}

static void add(record *r, const uint8_t *raw, size_t n, const char *site) {
    if (r && !r->entries)
        r->entries = calloc(ENTRIES, sizeof(entry));
    uint8_t *copy = r && r->entries ? malloc(n) : NULL;
    if (copy) {
        entry *e = &r->entries[r->count++ % ENTRIES];
        free(e->raw);
        free(e->site);
        memset(e, 0, sizeof *e);
        memcpy(copy, raw, n);
        e->raw = copy;
        e->n = n;
        e->site = site[0] ? strdup(site) : NULL;
    }
}

/* The record of the running call, else the process's: a new reference, or NULL without an exception. */
static record *present(void) {
    record *r = of_call();
    if (!r && !whole)
        whole = new_record();
    if (!r)
        r = (record *)Py_XNewRef((PyObject *)whole);
    PyErr_Clear();
    return r;
}

void psb_denial_record(const uint8_t *raw, size_t n, const char *site) {
    record *r = present();
    add(r, raw, n, site);
    Py_XDECREF(r);
}

static int64_t told; /* the number of the last refusal of native code that the supervisor has told of */

/* Fetches what was refused to native code since it was last asked, into r: the supervisor alone saw it. Refusals of code that runs
 * for several calls at once go to the call that asks first. */
static void fetch_native(record *r) {
    for (int i = 0; psb.active && i < ENTRIES; i++) {
        mp_writer w = {0};
        psb_question(&w, "native", 1, true);
        mp_int(&w, told);
        psb_answer a;
        psb_ask(&w, &a);
        int64_t number = 0;
        for (size_t k = 0; k < a.message.n && k < 18; k++)
            number = 10 * number + (a.message.s[k] - '0');
        bool more = a.allow && a.denial && number > told;
        if (more) {
            add(r, a.denial, (size_t)(a.denial_end - a.denial), "");
            told = number;
        }
        psb_answer_free(&a);
        if (!more)
            return;
    }
}

PyObject *psb_denial_map(const uint8_t *raw, size_t n, const char *site) {
    mp_reader reader = {raw, raw + n, false};
    PyObject *map = mp_to_object(&reader, 0);
    if (map && !PyDict_Check(map)) {
        PyErr_SetString(PyExc_ValueError, "malformed denial from the supervisor");
        Py_CLEAR(map);
    }
    PyObject *text = map ? PyUnicode_DecodeUTF8(site, (Py_ssize_t)strlen(site), "backslashreplace") : NULL;
    if (!text || PyDict_SetItemString(map, "site", text) < 0)
        Py_CLEAR(map);
    Py_XDECREF(text);
    return map;
}

/* Adds the maps of r, the oldest first. Making one may run a finaliser, which may be refused something: what is taken out of
 * the ring is copied first. */
static int add_maps(record *r, PyObject *list) {
    for (uint64_t i = r->count > ENTRIES ? r->count - ENTRIES : 0, end = r->count; r->entries && i < end; i++) {
        const entry *e = &r->entries[i % ENTRIES];
        if (!e->raw)
            continue;
        uint8_t *raw = malloc(e->n);
        char *site = strdup(e->site ? e->site : "");
        size_t n = e->n;
        if (raw)
            memcpy(raw, e->raw, n);
        PyObject *map = raw && site ? psb_denial_map(raw, n, site) : PyErr_NoMemory();
        free(raw);
        free(site);
        int rc = map ? PyList_Append(list, map) : -1;
        Py_XDECREF(map);
        if (rc < 0)
            return -1;
    }
    return 0;
}

PyObject *psb_denials_enter(PyObject *value) {
    if (!current && !(current = PyContextVar_New("pysandboxes_call", NULL)))
        return NULL;
    PyObject *r = value && Py_IS_TYPE(value, &record_type) ? Py_NewRef(value) : (PyObject *)new_record();
    PyObject *token = r ? PyContextVar_Set(current, r) : NULL;
    if (!token)
        Py_CLEAR(r);
    Py_XDECREF(token);
    return r;
}

PyObject *psb_denials_list(PyObject *value) {
    PyObject *list = PyList_New(0);
    bool one = value && Py_IS_TYPE(value, &record_type);
    record *r = one ? (record *)Py_NewRef(value) : present();
    fetch_native(r);
    if (list && r && add_maps(r, list) < 0)
        Py_CLEAR(list);
    if (list && !one && whole && r != whole && add_maps(whole, list) < 0)
        Py_CLEAR(list);
    Py_XDECREF(r);
    return list;
}
