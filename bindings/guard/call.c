/* Sensitive calls: the generated registry (core/audit) and the question whether one is granted. */
#include "guard.h"

#include <string.h>

#include "registry.inc"

__thread psb_grant *psb_grants;

/* Modules whose own exec generates code from templates of their own, each with its reason (hardening 19), and the functions
 * through which a program comes there: their helpers, called directly, are like exec. typing only compiles annotations;
 * evaluating them raises `exec` and is charged. */
static const struct {
    const char *file, *entries[4];
    bool shaped; /* its text must be of the templates' shape, template.c */
} EXEC_FREE[] = {
    {"dataclasses.py", {"dataclass", "wrap", "make_dataclass"}, true}, /* __init__ and friends from field names */
    {"collections/__init__.py", {"namedtuple"}, true},                 /* __new__ from names */
    {"multiprocessing/sharedctypes.py", {"<module>"}, true},           /* its two properties; later calls name what they like */
    {"attr/_make.py", {"attrs", "wrap", "make_class"}, false},         /* attrs: as dataclasses, in too many versions */
};
static const char *const SHAPED[] = {"dataclasses.py", "collections/__init__.py", NULL}, *const PROPERTIES[] = {"multiprocessing/sharedctypes.py", NULL};
/* runpy runs the program itself, and what its shimmed functions were granted to. */
static const char *const READS_CODE[] = {"pkgutil.py", NULL}; /* for runpy */
static const char *const RUNPY[] = {"runpy.py", "<frozen runpy>", NULL};
static const char *const COMPILE_FREE[] = {
    "ast.py",          /* to a tree, never to code */
    "typing.py",       /* forward references are compiled when written, evaluated later */
    "linecache.py", "tokenize.py", "traceback.py", "_colorize.py", NULL};

static const char *const PROMPT[] = {"code.py", "codeop.py", "_pyrepl/console.py", "_pyrepl/simple_interact.py", "_pyrepl/main.py",
                                     "_pyrepl/__main__.py", NULL};

const psb_call_row *psb_call(int id) { return &PSB_CALLS[id]; }

int psb_call_id(const char *name, size_t n) {
    for (int i = 0; PSB_CALLS[i].name; i++)
        if (strlen(PSB_CALLS[i].name) == n && memcmp(PSB_CALLS[i].name, name, n) == 0)
            return i;
    return -1;
}

static void learn_call(const psb_call_row *row, const char *event) {
    char site[512];
    size_t n = psb_site(site, sizeof site);
    if (psb_seen('c', row->name, strlen(row->name)))
        return;
    psb_remember('c', row->name, strlen(row->name));
    mp_writer w = {0};
    psb_question(&w, "learn", 5, false);
    mp_str(&w, "call", 4);
    mp_array(&w, 1);
    mp_str(&w, row->name, strlen(row->name));
    mp_str(&w, event, strlen(event));
    mp_str(&w, site, n);
    mp_bool(&w, false);
    psb_tell(&w);
}

static bool carried(const char *category) {
    for (psb_grant *g = psb_grants; g; g = g->up)
        if (g->category && strcmp(g->category, category) == 0)
            return true;
    return false;
}

/* What the standard library calls for itself it calls by its name. A function that the program has handed to it
 * (weakref.finalize(o, marshal.loads, data)()) is called by another, and is the program's call. */
static bool written_there(const psb_call_row *row) {
    static const char *const replace[] = {"replace", NULL}, *const types[] = {"types.py", NULL}, *const function[] = {"FunctionType", NULL};
    static const char *const own_code[] = {"__code__", NULL};
    if (strcmp(row->name, "code.__new__") == 0) /* types.coroutine(), which sets a flag: others call what they are given, or give it away */
        return psb_frame_in(types) && psb_frame_writes(replace);
    if (strcmp(row->name, "function.__code__") == 0)
        return psb_frame_in(types) && psb_frame_writes(own_code);
    if (strcmp(row->name, "function.__new__") == 0) /* the prompt of asyncio: the code is what is typed */
        return psb.interactive && psb_stdin_kept() && psb_frame_writes(function);
    const char *const name[] = {strrchr(row->name, '.') + 1, NULL};
    return psb_frame_writes(name);
}

/* What importlib calls to load a module. Anything else is called there since a program has handed it in: as a path hook, as a
 * finder's or a loader's method. */
static bool loads_modules(const psb_call_row *row) {
    static const char *const names[] = {"marshal.loads",      "_imp.create_dynamic",    "_imp.exec_dynamic",
                                        "_imp.exec_builtin", "_imp.get_frozen_object", "_imp._fix_co_filename", NULL};
    for (const char *const *name = names; *name; name++)
        if (strcmp(*name, row->name) == 0)
            return true;
    return false;
}

int psb_call_check(int call, const char *event) {
    const psb_call_row *row = &PSB_CALLS[call];
    if (psb_call_allowed(call) && !psb.learn)
        return 0;
    psb_caller caller = psb_nearest_caller();
    if (caller == PSB_NO_FRAME && psb.phase == PSB_PHASE_BOOT)
        return 0;
    bool reads_code = strcmp(row->category, "dynamic-code") == 0 || strcmp(row->category, "deserialization") == 0;
    if (caller == PSB_NO_FRAME && reads_code && PyInterpreterState_Get() != PyInterpreterState_Main())
        return 0; /* a granted sub-interpreter is being made: CPython ends the process where that fails */
    if (psb.phase == PSB_PHASE_BOOT && (row->flags & PSB_F_STDLIB_FREE || reads_code))
        return 0; /* what the interpreter does to start */
    if (caller == PSB_IMPORTLIB && loads_modules(row) && psb_importing())
        return 0;
    if (caller == PSB_STDLIB && ((row->flags & PSB_F_STDLIB_FREE && written_there(row)) || carried(row->category)))
        return 0;
    if (caller == PSB_STDLIB && strcmp(row->name, "marshal.load") == 0 && carried("dynamic-code") && psb_frame_in(READS_CODE))
        return 0;
    if (psb.partial && strcmp(row->category, "threads") == 0 && psb_frame_serves())
        return 0; /* the threads that take the calls: the application's doing */
    return psb_call_ask(call, event);
}

int psb_call_ask(int call, const char *event) {
    const psb_call_row *row = &PSB_CALLS[call];
    if (psb_call_allowed(call) && !psb.learn)
        return 0;
    if (psb.learn) {
        learn_call(row, event);
        return 0;
    }
    mp_writer w = {0};
    psb_question(&w, "call", 2, true);
    mp_array(&w, 1);
    mp_str(&w, row->name, strlen(row->name));
    mp_str(&w, event, strlen(event));
    psb_answer a;
    psb_ask(&w, &a);
    if (a.allow) {
        psb_answer_free(&a);
        return 0;
    }
    return psb_raise(&a, NULL);
}

static bool named(PyObject *filename, const char *text) {
    return filename && PyUnicode_CheckExact(filename) && PyUnicode_CompareWithASCIIString(filename, text) == 0;
}

/* Classes of plain values, which a pickle may name without a grant: the table of transport.md's data-only mode. */
static const char *const VALUE_CLASSES[] = {
    "builtins.set", "builtins.frozenset", "builtins.range", "builtins.slice", "builtins.complex", "builtins.bytearray",
    "builtins.list", "builtins.dict", "builtins.int", "builtins.float", "builtins.str", "builtins.bytes", "builtins.bool",
    "builtins.tuple", "builtins.Ellipsis", "datetime.date", "datetime.time", "datetime.datetime", "datetime.timedelta",
    "datetime.timezone", "decimal.Decimal", "fractions.Fraction", "uuid.UUID", "uuid.SafeUUID", "pathlib.Path",
    "pathlib.PosixPath", "pathlib.PurePath", "pathlib.PurePosixPath", "pathlib.PureWindowsPath", "pathlib._local.PosixPath",
    "pathlib._local.PurePosixPath", "collections.OrderedDict", "collections.Counter", "collections.deque",
    "collections.defaultdict", "ipaddress.IPv4Address", "ipaddress.IPv6Address", "ipaddress.IPv4Network",
    "ipaddress.IPv6Network", "ipaddress.IPv4Interface", "ipaddress.IPv6Interface", "time.struct_time", "_codecs.encode",
    NULL};

/* What its processes send each other. */
static const char *const MULTIPROCESSING[] = {
    "multiprocessing/connection.py", "multiprocessing/queues.py",      "multiprocessing/pool.py",
    "multiprocessing/managers.py",   "multiprocessing/spawn.py",       "multiprocessing/forkserver.py",
    "multiprocessing/reduction.py",  "multiprocessing/synchronize.py", "multiprocessing/resource_sharer.py",
    "multiprocessing/heap.py",       "concurrent/futures/process.py",  NULL};
static const char *const SHELVE[] = {"shelve.py", NULL};

static bool starts_programs(void) {
    for (int i = 0; PSB_CALLS[i].name; i++)
        if (strcmp(PSB_CALLS[i].category, "process-exec") == 0 && psb_call_allowed(i))
            return true;
    return false;
}

int psb_find_class(int call, PyObject *args) {
    PyObject *module = PyTuple_GET_SIZE(args) >= 2 ? PyTuple_GET_ITEM(args, 0) : NULL;
    PyObject *name = module ? PyTuple_GET_ITEM(args, 1) : NULL;
    if (name && PyUnicode_CheckExact(module) && PyUnicode_CheckExact(name)) {
        PyObject *full = PyUnicode_FromFormat("%U.%U", module, name);
        const char *s = full ? PyUnicode_AsUTF8(full) : NULL;
        bool value = false;
        for (const char *const *p = VALUE_CLASSES; s && *p && !value; p++)
            value = strcmp(*p, s) == 0;
        PyErr_Clear();
        Py_XDECREF(full);
        if (value || (psb.partial && psb_delivered_class(module, name)))
            return 0;
    }
    if (psb_frame_in(MULTIPROCESSING) && (psb.learn || starts_programs()))
        return 0; /* who may start programs needs no pickle for it; nobody else has such processes */
    if (psb_frame_in(SHELVE)) /* a shelf unpickles when it is read, long after it was opened */
        return psb_call_ask(psb_call_id("shelve.open", 11), "pickle.find_class");
    return psb_call_check(call, "pickle.find_class");
}

/* An allowed eval(str) or exec(str) raises `compile` and then `exec`: the first answer holds for the second, for this one
 * frame and this one event. */
static __thread const void *allowed_in;

static const void *running_frame(void) {
    PyThreadState *ts = PyThreadState_GetUnchecked();
    PyFrameObject *f = ts ? PyThreadState_GetFrame(ts) : NULL;
    Py_XDECREF(f); /* its address is only compared */
    return f;
}

/* The frame that has just handed a template's text to the compiler: exec() of it comes next. */
static __thread const void *shaped_in;

static bool generates(void) {
    const void *shaped = shaped_in;
    bool first;
    shaped_in = NULL;
    for (size_t i = 0; i < sizeof EXEC_FREE / sizeof *EXEC_FREE; i++) {
        const char *const file[] = {EXEC_FREE[i].file, NULL};
        if (psb_frame_entered(file, EXEC_FREE[i].entries, &first))
            return !EXEC_FREE[i].shaped || (shaped && shaped == running_frame());
    }
    if (!psb_frame_entered(RUNPY, NULL, &first))
        return false;
    if (first && !psb.started) {
        psb.started = true; /* the program begins; a callback from C later is not that */
        return true;
    }
    return carried("dynamic-code");
}

/* Is code about to be made or run that no rule of strings is asked for? What that is the events themselves decide. */
bool psb_eval_spared(void) {
    bool first;
    psb_caller caller = psb_nearest_caller();
    if (caller == PSB_NO_FRAME || (caller == PSB_IMPORTLIB && psb_importing()) || psb_frame_in(COMPILE_FREE) || psb_frame_rewrites())
        return true;
    if (psb.interactive && psb_frame_in(PROMPT))
        return true;
    for (size_t i = 0; i < sizeof EXEC_FREE / sizeof *EXEC_FREE; i++) {
        const char *const file[] = {EXEC_FREE[i].file, NULL};
        if (psb_frame_entered(file, EXEC_FREE[i].entries, &first))
            return true;
    }
    return psb_frame_entered(RUNPY, NULL, &first);
}

int psb_eval_check(const char *kind, PyObject *args) {
    const void *before = allowed_in;
    allowed_in = NULL;
    if (psb.eval_all && !psb.learn)
        return 0;
    if (psb.phase == PSB_PHASE_BOOT)
        return 0;
    psb_caller caller = psb_nearest_caller();
    if (caller == PSB_NO_FRAME && pthread_equal(pthread_self(), psb.main_thread) && (!psb.started || (psb.interactive && psb_stdin_kept()))) {
        psb.started |= strcmp(kind, "exec") == 0; /* the program's own text; a callback from C later is not that */
        return 0;
    }
    if (caller == PSB_IMPORTLIB && psb_importing() &&
        (strcmp(kind, "compile") == 0 || (PyTuple_GET_SIZE(args) >= 1 && psb_code_loaded(PyTuple_GET_ITEM(args, 0)))))
        return 0; /* what is compiled runs by `exec` only */
    if (caller == PSB_STDLIB && psb.interactive && psb_stdin_kept() && pthread_equal(pthread_self(), psb.main_thread) &&
        psb_frame_in(PROMPT) && psb_charged_caller() != PSB_OTHER)
        return 0; /* 3.13's prompt is written in Python: what a person types is the program */
    if (strcmp(kind, "compile") == 0 && PyTuple_GET_SIZE(args) >= 2 && PyBytes_Check(PyTuple_GET_ITEM(args, 0))) {
        /* the parser's own event: builtins.compile raised one before it, eval and exec raise `exec` after it */
        if (caller == PSB_STDLIB && psb_frame_in(SHAPED))
            shaped_in = psb_template_text(PyBytes_AS_STRING(PyTuple_GET_ITEM(args, 0))) ? running_frame() : NULL;
        if (caller == PSB_STDLIB && psb_frame_in(PROPERTIES))
            shaped_in = psb_property_text(PyBytes_AS_STRING(PyTuple_GET_ITEM(args, 0))) ? running_frame() : NULL;
        if (caller == PSB_STDLIB && psb_prompt_completes(PyBytes_AS_STRING(PyTuple_GET_ITEM(args, 0))))
            allowed_in = running_frame();
        if (caller == PSB_NO_FRAME || caller == PSB_STDLIB)
            return 0; /* a traceback looks for its carets; what would run is met at `exec` */
        if (named(PyTuple_GET_ITEM(args, 1), "<string>"))
            kind = "eval";
    } else if (before && strcmp(kind, "exec") == 0 && before == running_frame()) {
        return 0;
    }
    if (generates() || (strcmp(kind, "compile") == 0 && (psb_frame_in(COMPILE_FREE) || psb_frame_rewrites())))
        return 0; /* code that is compiled runs where `exec` lets it, or where bindings/guard/eval_code.c has looked at it */
    mp_writer w = {0};
    if (psb.learn) {
        char told[528]; /* the kind, a colon, the site: a line may do several of them */
        size_t head = strlen(kind) + 1;
        memcpy(told, kind, head);
        told[head - 1] = ':';
        char *site = told + head;
        size_t n = psb_site(site, 512);
        if (psb_seen('v', told, head + n))
            return 0;
        psb_remember('v', told, head + n);
        psb_question(&w, "learn", 4, false);
        mp_str(&w, "eval", 4);
        mp_str(&w, kind, strlen(kind));
        mp_str(&w, site, n);
        mp_bool(&w, false);
        psb_tell(&w);
        return 0;
    }
    psb_question(&w, "eval", 1, true);
    mp_str(&w, kind, strlen(kind));
    psb_answer a;
    psb_ask(&w, &a);
    if (a.allow) {
        if (strcmp(kind, "eval") == 0)
            allowed_in = running_frame();
        psb_answer_free(&a);
        return 0;
    }
    return psb_raise(&a, NULL);
}
