/* What runs behind a guarded string: docs/implementation.md, "Strings that become code".
 *
 * pysandboxes/_eval_rewrite.py puts calls of the functions below into the source's tree. They stand in the constants of its
 * code, so no name leads to them and none can hide them. Each finds the meter of its evaluation in the builtins of the
 * frame that calls it, under a key that is no identifier; a frame without one is refused. All of it needs the GIL. */
#ifndef PSB_EVAL_H
#define PSB_EVAL_H

#include "guard.h"

/* What one evaluation may still do. Functions and generators that outlive it keep it, by their builtins. */
typedef struct psb_meter psb_meter;
struct psb_meter {
    PyObject_HEAD
    psb_meter *others;                /* the next of those that run, borrowed */
    PyObject *decided;                /* dict, attribute name -> bool: what was decided before; shared by a profile */
    PyObject *allow, *deny;           /* tuples of names with at most one `*` */
    PyObject *magic_allow, *magic_deny, *call_allow, *call_deny, *import_allow, *import_deny;
    PyObject *classes;                /* dict, address -> class: what the source defined */
    PyObject *granted;                /* dict, address -> object: what else eval-call names */
    PyObject *builtins;               /* borrowed: it owns the meter */
    int64_t iterations, alloc, alloc_limit, deadline; /* what is left; the last in ns of the monotonic clock */
    int depth, depth_limit, depth_most, countdown, making; /* making: classes that are being made */
    PyObject *learned;                /* dict, (key, name) -> object: what no rule allows yet and was let through; NULL: nothing is */
    const char *tripped;              /* the key of the bound that was passed; it stays passed */
    bool running;                     /* its evaluation has not ended, which keeps its builtins */
};

#define METER_KEY "@meter"

/* Nothing of it is walked, and nothing of it is large besides a text or a whole number. */
static inline bool psb_eval_scalar(PyObject *o) { return PyLong_CheckExact(o) || PyUnicode_CheckExact(o) || PyFloat_CheckExact(o) || o == Py_None || PyBool_Check(o); }

/* Numbers beyond this many bits (300 000 digits) take seconds to multiply, divide or print within one uninterruptible call. */
#define PSB_EVAL_BITS (1 << 20)
#define PSB_EVAL_NUMBER "it made or used a whole number of more than 300 000 digits (16 000 bits in pow() with three arguments)"

/* eval_meter.c */
extern PyTypeObject psb_meter_type;
int psb_meter_put(psb_meter *m, PyObject *builtins); /* from here on it is their meter */
psb_meter *psb_meter_here(void);                    /* borrowed, or NULL with an exception */
int psb_meter_begins(psb_meter *m, int most);       /* its evaluation, or -1: as many others hang past their time */
void psb_meter_ended(psb_meter *m);
int psb_meter_trip(psb_meter *m, const char *key);  /* -1 */
int psb_meter_look(psb_meter *m);                   /* at the clock, and at what was passed */
/* something was done: is there time left? */
static inline int psb_meter_step(psb_meter *m) { return m->tripped || (m->countdown -= 4) <= 0 ? psb_meter_look(m) : 0; }
/* the same, of what takes no more time than an instruction */
static inline int psb_meter_light(psb_meter *m) { return m->tripped || --m->countdown <= 0 ? psb_meter_look(m) : 0; }
/* a turn of a loop */
static inline int psb_meter_tick(psb_meter *m) {
    return psb_meter_light(m) < 0 ? -1 : --m->iterations < 0 ? psb_meter_trip(m, "eval-max-iterations") : 0;
}
int psb_meter_charge_passes(psb_meter *m);
/* before, where the size is known; else after */
static inline int psb_meter_charge(psb_meter *m, double bytes) {
    if (m->tripped || !(bytes <= (double)m->alloc))
        return psb_meter_charge_passes(m);
    m->alloc -= bytes > 0 ? (int64_t)bytes : 0;
    return 0;
}
PyObject *psb_meter_charged(psb_meter *m, PyObject *result); /* the same object, charged; NULL and freed where that is too much */
int psb_meter_attribute(psb_meter *m, PyObject *name);       /* may the attribute be read? */
/* What a rule `key=subject` would allow: 0 while learning, where no rule denies it, else -1 with RuleEvalPermissionError. */
int psb_meter_wants(psb_meter *m, const char *what, PyObject *subject, const char *key, PyObject *object);
int psb_eval_refuses(const char *text);                      /* the same, with no line that would allow it */
bool psb_eval_among(PyObject *patterns, PyObject *name);     /* does one of them match? */

/* eval_steps.c: an iterator that counts */
enum { STEPS_LOOP, STEPS_TICK, STEPS_KEEP, STEPS_SUM, STEPS_HAND }; /* LOOP: the source itself gets the items, one by one; HAND: a function of the context does */
PyObject *psb_steps(psb_meter *m, PyObject *iterable, int mode);
extern PyTypeObject psb_steps_type;

/* eval_format.c */
int psb_eval_spec(psb_meter *m, PyObject *spec);       /* charges the widths that a format specification asks for */
int psb_eval_percent(psb_meter *m, PyObject *format, PyObject *args);
int psb_eval_fields(psb_meter *m, PyObject *format);   /* str.format's fields: attributes and widths */
int psb_eval_field(psb_meter *m, PyObject *name);      /* the name of one of them */

int psb_eval_format_ready(void);                      /* 0, or -1 with an exception: before code of the source runs */

/* eval_operator.c */
PyObject *psb_eval_operator(psb_meter *m, int code, PyObject *a, PyObject *b, bool in_place);
PyObject *psb_eval_power(psb_meter *m, PyObject *a, PyObject *b, PyObject *modulus);

/* eval_operations.c: the helpers of them */
#define PSB_EVAL_OPERATIONS 26
extern PyMethodDef psb_eval_operations[PSB_EVAL_OPERATIONS + 1];
bool psb_eval_charged_before(int code, PyObject *result);

/* eval_method.c: methods of the builtin types */
PyObject *psb_eval_method(psb_meter *m, PyObject *self, const char *name, PyObject *f, PyObject *const *args, Py_ssize_t n, PyObject *kwnames, bool unbound);

int psb_eval_codec(PyObject *const *args, Py_ssize_t n); /* may these name an encoding? */

/* eval_call.c */
PyObject *psb_eval_call(psb_meter *m, PyObject *f, PyObject *const *args, Py_ssize_t n, PyObject *kwnames);
PyObject *psb_eval_read(psb_meter *m, PyObject *o, PyObject *name);
PyObject *psb_eval_value(psb_meter *m, PyObject *o, PyObject *name); /* read, where that may be done */
PyObject *psb_eval_key(psb_meter *m, PyObject *key); /* an index, with functions in it as ones that are judged */
bool psb_eval_is_function(PyObject *o); /* something that does nothing but call */
PyObject *psb_eval_bind(psb_meter *m, PyObject *f); /* a callable that C code may be given */
extern PyTypeObject psb_bound_type;
/* `of` and `attribute`: what f was read from and by which name; NULL where it was not. */
PyObject *psb_eval_judged(psb_meter *m, PyObject *f, PyObject *const *args, Py_ssize_t n, PyObject *kwnames, PyObject *of, PyObject *attribute);
PyObject *psb_eval_bound_builtin(psb_meter *m, PyObject *f, const char *name);
PyObject *psb_eval_judge(psb_meter *m, PyObject *f);         /* a callable whose calls are judged, whatever it is */
bool psb_eval_own_function(psb_meter *m, PyObject *f);
int psb_eval_grant(psb_meter *m, PyObject *o);               /* from here on it may be called */
int psb_eval_granted(psb_meter *m, PyObject *o);
bool psb_eval_plain_self(PyObject *self);                    /* is it of a builtin type of values? */
int psb_eval_not_granted(psb_meter *m, PyObject *f);         /* 0 while learning, else -1 with what to add */

/* eval_lookup.c: o.name(...), where the attribute's grant is the call's */
extern PyTypeObject psb_looked_type;
PyObject *psb_eval_lookup(psb_meter *m, PyObject *o, PyObject *name);
PyObject *psb_eval_call_looked(psb_meter *m, PyObject *looked, PyObject *const *args, Py_ssize_t n, PyObject *kwnames);

/* eval_class.c */
extern PyTypeObject psb_target_type;
bool psb_eval_own_class(psb_meter *m, PyObject *cls);
bool psb_eval_chosen(PyObject *o, PyObject *name); /* can the source have chosen what o.name is? */
PyObject *psb_eval_target(psb_meter *m, PyObject *o);
int psb_eval_put_build_class(PyObject *builtins);

/* eval_import.c */
bool psb_eval_module_in(PyObject *patterns, PyObject *name); /* does one of them name it, or a package that it is in? */
int psb_eval_module(psb_meter *m, PyObject *of, PyObject *name, PyObject *value); /* may this module be had from that one? */
int psb_eval_put_import(PyObject *builtins);

/* eval_match.c */
PyObject *psb_eval_match(psb_meter *m, PyObject *const *a, Py_ssize_t n);

/* eval_protocol.c */
enum { PROTOCOL_WITH, PROTOCOL_ASYNC_WITH, PROTOCOL_AWAIT, PROTOCOL_ASYNC_FOR };
PyObject *psb_eval_protocol(psb_meter *m, PyObject *o, int kind);
PyObject *psb_eval_delegate(psb_meter *m, PyObject *o);
bool psb_eval_own_generator(psb_meter *m, PyObject *o);

/* eval_wrapper.c: o.__name__(...) of a type in C */
bool psb_eval_is_wrapper(PyObject *f);
PyObject *psb_eval_wrapper(psb_meter *m, PyObject *f, PyObject *const *args, Py_ssize_t n, PyObject *kwnames);
PyObject *psb_eval_new(psb_meter *m, PyObject *f, PyObject *const *args, Py_ssize_t n, PyObject *kwnames);

/* eval_code.c */
PyObject *psb_eval_code(PyObject *code, PyObject *token);
int psb_eval_verify(PyObject *code); /* is it code that such a look has passed, or could? */

/* eval_look.c */
PyObject *psb_eval_look(PyObject *tree, PyObject *kinds, double depth);

/* eval_builtin.c */
bool psb_eval_builtin_known(const char *name);
bool psb_eval_builtin_type(PyTypeObject *t);
PyObject *psb_eval_builtin(psb_meter *m, const char *name, PyObject *f, PyObject *const *args, Py_ssize_t n, PyObject *kwnames);

/* eval_whole.c: is a container, written out as a tree, within bounds? written: as a text, which is charged */
PyObject *psb_eval_held(PyObject *o); /* what a view, an alias, an exception holds; else itself. Borrowed, may be NULL */
int psb_eval_whole(psb_meter *m, PyObject *o, bool written);
int psb_eval_whole_all(psb_meter *m, PyObject *const *args, Py_ssize_t n, bool written);

/* eval_run.c */
#define PSB_EVAL_HELPER(name) static PyObject *name(PyObject *Py_UNUSED(module), PyObject *const *a, Py_ssize_t n)
/* Only our own rewriting calls them; a wrong number of arguments is a fault of it, and refused like one. */
#define PSB_EVAL_ENTER(least)                                              \
    psb_meter *m = psb_meter_here();                                       \
    if (!m)                                                                \
        return NULL;                                                       \
    if (n < (least)) {                                                     \
        PyErr_SetString(PyExc_SystemError, "pysandboxes: a helper was called wrongly"); \
        return NULL;                                                       \
    }
PyObject *psb_evaluate(PyObject *args, PyObject *kwargs);
PyObject *psb_eval_helper(const char *name); /* borrowed, kept for good; NULL with an exception */
bool psb_eval_is_helper(PyObject *o);

#endif
