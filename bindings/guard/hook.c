/* The audit hook: from an event's name to the family that judges it.
 *
 * It is added before the interpreter initialises and cannot be taken out. It runs with the GIL, also while the
 * interpreter shuts down and in forked children. Event names are compared by content: their addresses say nothing.
 */
#include "guard.h"

#include <string.h>
#include <unistd.h>

#include "registry.inc"

enum { NONE, FILES, CALL, EVAL, NET, IMPORT, RUN };

typedef struct {
    const char *event; /* NULL: free */
    uint64_t hash;
    int family, index;
} event_slot;

#define SLOTS 1024 /* a power of two, several times the number of events */
static event_slot events[SLOTS];
static bool ready;

static void add(const char *event, int family, int index) {
    uint64_t h = psb_hash(event, strlen(event));
    size_t i = h & (SLOTS - 1);
    while (events[i].event) {
        if (strcmp(events[i].event, event) == 0)
            return; /* the first family named keeps it */
        i = (i + 1) & (SLOTS - 1);
    }
    events[i] = (event_slot){event, h, family, index};
}

static void fill(void) {
    static const char *const net[] = {"socket.__new__",       "socket.connect",       "socket.bind",
                                      "socket.sendto",        "socket.sendmsg",       "socket.getaddrinfo",
                                      "socket.gethostbyname", "socket.gethostbyaddr", "socket.getnameinfo"};
    static const char *const run[] = {"cpython.run_command", "cpython.run_file",  "cpython.run_module",
                                      "cpython.run_stdin",   "cpython.run_startup", "cpython.run_interactivehook"};
    for (size_t i = 0; i < sizeof net / sizeof *net; i++)
        add(net[i], NET, 0);
    for (size_t i = 0; i < sizeof run / sizeof *run; i++)
        add(run[i], RUN, 0);
    add("import", IMPORT, 0);
    add("exec", EVAL, 0);
    add("compile", EVAL, 1);
    for (int i = 0; PSB_FILE_EVENTS[i].event; i++)
        add(PSB_FILE_EVENTS[i].event, FILES, i);
    for (int i = 0; PSB_CALL_EVENTS[i].event; i++)
        add(PSB_CALL_EVENTS[i].event, CALL, PSB_CALL_EVENTS[i].call);
    ready = true;
}

static const event_slot *lookup(const char *event) {
    uint64_t h = psb_hash(event, strlen(event));
    for (size_t i = h & (SLOTS - 1); events[i].event; i = (i + 1) & (SLOTS - 1))
        if (events[i].hash == h && strcmp(events[i].event, event) == 0)
            return &events[i];
    return NULL;
}

/* The event comes with many attributes; this one turns a function into another. */
static bool sets_code(PyObject *args) {
    PyObject *name = PyTuple_GET_SIZE(args) >= 2 ? PyTuple_GET_ITEM(args, 1) : NULL;
    return name && PyUnicode_Check(name) && PyUnicode_CompareWithASCIIString(name, "__code__") == 0;
}

static bool signals_own(PyObject *args) {
    PyObject *pid = PyTuple_GET_SIZE(args) >= 1 ? PyTuple_GET_ITEM(args, 0) : NULL;
    int overflow = 1;
    long number = pid && PyLong_CheckExact(pid) ? PyLong_AsLongAndOverflow(pid, &overflow) : 0;
    return !overflow && psb_own_child(number);
}

uint64_t psb_judged;

static int judge(const event_slot *e, PyObject *args) {
    __atomic_store_n(&psb_judged, __atomic_load_n(&psb_judged, __ATOMIC_RELAXED) + 1, __ATOMIC_RELAXED); /* may lose one */
    switch (e->family) {
    case FILES:
        return psb_file_event(PSB_FILE_EVENTS[e->index].spec, e->event, args);
    case CALL:
        if (strcmp(e->event, "pickle.find_class") == 0)
            return psb_find_class(e->index, args);
        if (strcmp(e->event, "ctypes.dlopen") == 0 && PyTuple_GET_SIZE(args) >= 1 && PyTuple_GET_ITEM(args, 0) == Py_None &&
            psb_nearest_caller() == PSB_STDLIB)
            return 0; /* `import ctypes` opens the program itself; what is looked up in it is charged */
        if (strcmp(e->event, "object.__setattr__") == 0 && sets_code(args))
            return psb_call_check(psb_call_id("function.__code__", 17), e->event);
        if (psb_ctypes_event(e->event, args) || (strcmp(e->event, "fcntl.fcntl") == 0 && !psb_fcntl_event(args)))
            return 0;
        if (strcmp(e->event, "os.kill") == 0 && !signals_own(args))
            return psb_call_ask(e->index, e->event); /* what a grant to start programs carries does not reach that far */
        if (psb_call_check(e->index, e->event) < 0)
            return -1;
        return psb_exec_event(e->event, args);
    case EVAL:
        return psb_eval_check(e->index ? "compile" : "exec", args);
    case NET:
        return psb_net_event(e->event, args);
    case IMPORT:
        if (PyTuple_GET_SIZE(args) < 2 || PyTuple_GET_ITEM(args, 1) == Py_None)
            return 0;
        return psb_native_import(PyTuple_GET_ITEM(args, 0)) < 0 ? -1 : psb_extension_event(PyTuple_GET_ITEM(args, 1));
    case RUN:
        if (!psb.partial)
            psb_enter_user_phase();
        psb.interactive |= psb.typed && (strcmp(e->event, "cpython.run_interactivehook") == 0 || strcmp(e->event, "cpython.run_stdin") == 0);
        if (psb.interactive)
            psb_prompt_begins();
        return 0;
    }
    return 0;
}

/* CPython up to 3.13 allocates the entry of a hook that is added before the interpreter's memory is set up by the plain
 * allocator, and frees it by whatever PYTHONMALLOC or -X dev made of it: the debug one then ends the process. So just before
 * the hooks are freed, the raw allocator is told from our entry by its contents. */
static PyMemAllocatorEx raw;

static void free_entry(void *context, void *p) {
    struct {
        void *next;
        Py_AuditHookFunction hook;
    } *entry = p; /* _Py_AuditHookEntry; malloc gives 24 bytes at least, and the debug allocator pads more */
    if (p && entry->hook == psb_hook)
        free(p);
    else
        raw.free(context, p);
}

static void before_hooks_are_freed(void) {
    PyMemAllocatorEx now;
    PyMem_GetAllocator(PYMEM_DOMAIN_RAW, &now);
    if (now.free == free_entry) /* a program can raise the event, too */
        return;
    raw = now;
    now.free = free_entry;
    PyMem_SetAllocator(PYMEM_DOMAIN_RAW, &now);
}

int psb_hook(const char *event, PyObject *args, void *unused) {
    (void)unused;
    if (!ready)
        fill();
    const event_slot *e = lookup(event);
    if (!e && strcmp(event, "cpython._PySys_ClearAuditHooks") == 0)
        before_hooks_are_freed();
    if (!e || !psb.enforce || psb_own_event(args))
        return 0;
    if (e->family == IMPORT || e->family == RUN) { /* the first import after the core is up, well before site */
        if (psb_install_base() < 0)
            return -1;
    }
    if (!args || !PyTuple_Check(args)) { /* CPython always gives a tuple: what cannot be judged is refused */
        PyErr_Format(PyExc_PermissionError, "%s: an event without arguments cannot be judged", event);
        return -1;
    }
    return judge(e, args);
}
