/* The environment: which variables a learning run reads, and a word on one that is not there.
 *
 * The rules are in force when the program starts: it is given the variables that they name and no others, so nothing is judged here.
 * But a KeyError names no rule. Where the program asks for one variable by name and the rules do not hand that on, the KeyError
 * stays what it is and carries the line to add as a note. That says what the rules say, and nothing of whether the host has it.
 */
#include "guard.h"

#include <string.h>

#define NAME_MAX_BYTES 256 /* of a name that is asked about */

/* What walks or copies the whole mapping asks for every name; only a read of one name is a need. Within the mapping's own
 * code the function tells them apart, elsewhere `environ[name]` is written as a subscript. */
static const char *const MAPPING[] = {"os.py", "<frozen os>", "_collections_abc.py", "<frozen _collections_abc>", NULL};

static void learn_env(PyObject *key) {
    static const char *const single[] = {"get", "__contains__", "getenv", "getenvb", "setdefault", "pop", NULL};
    if (psb.phase == PSB_PHASE_BOOT) /* site's own interest */
        return;
    if (psb_frame_in(MAPPING) ? !psb_frame_function(single) : !psb_frame_subscripts())
        return;
    PyObject *b = PyUnicode_Check(key) ? PyUnicode_EncodeFSDefault(key) : PyBytes_Check(key) ? Py_NewRef(key) : NULL;
    if (!b) {
        PyErr_Clear();
        return;
    }
    const char *s = PyBytes_AS_STRING(b);
    size_t n = (size_t)PyBytes_GET_SIZE(b);
    if (!psb_seen('e', s, n)) {
        psb_remember('e', s, n);
        char site[512];
        size_t sn = psb_site(site, sizeof site);
        mp_writer w = {0};
        psb_question(&w, "learn-env", 2, false);
        mp_bin(&w, s, n);
        mp_str(&w, site, sn);
        psb_tell(&w);
    }
    Py_DECREF(b);
}

/* Is it one of the two mappings of the process, and not one that the program made of the same class? */
static bool of_process(PyObject *mapping) {
    static const char *const names[] = {"environ", "environb"};
    PyObject *modules = PyImport_GetModuleDict(), *os = modules ? PyDict_GetItemString(modules, "os") : NULL;
    PyObject *dict = os && PyModule_Check(os) ? PyModule_GetDict(os) : NULL; /* all borrowed */
    for (int i = 0; dict && i < 2; i++)
        if (PyDict_GetItemString(dict, names[i]) == mapping)
            return true;
    return false;
}

/* A KeyError is set. Asked of the engine each time: it says what its rules say now. Whoever looks for a variable and goes on
 * without it (get, getenv, `in`, the standard library) is told nothing. */
static void explain(PyObject *mapping, PyObject *key) {
    PyObject *type, *error, *tb;
    PyErr_Fetch(&type, &error, &tb);
    PyErr_NormalizeException(&type, &error, &tb);
    PyObject *b = NULL;
    if (error && Py_IS_TYPE(error, (PyTypeObject *)PyExc_KeyError) && of_process(mapping) && !psb_frame_in(MAPPING) &&
        psb_nearest_caller() == PSB_OTHER)
        b = PyUnicode_CheckExact(key) ? PyUnicode_EncodeFSDefault(key) : PyBytes_CheckExact(key) ? Py_NewRef(key) : NULL;
    if (b && PyBytes_GET_SIZE(b) <= NAME_MAX_BYTES && strlen(PyBytes_AS_STRING(b)) == (size_t)PyBytes_GET_SIZE(b) && PyBytes_GET_SIZE(b)) {
        mp_writer w = {0};
        psb_question(&w, "env", 1, true);
        mp_bin(&w, PyBytes_AS_STRING(b), (size_t)PyBytes_GET_SIZE(b));
        psb_answer a;
        psb_ask(&w, &a);
        if (!a.allow && !a.lost)
            psb_carry_answer(error, &a);
        psb_answer_free(&a);
    }
    PyErr_Clear();
    Py_XDECREF(b);
    PyErr_Restore(type, error, tb);
}

/* os._Environ.__getitem__(self, key) */
PyObject *psb_call_env(PSB_CALL) {
    (void)door;
    if (psb.learn && n >= 2)
        learn_env(args[1]);
    PyObject *value = psb_call_original(original, args, n, kwnames);
    if (!value && !psb.learn && n == 2 && psb.phase == PSB_PHASE_USER && PyErr_ExceptionMatches(PyExc_KeyError))
        explain(args[0], args[1]);
    return value;
}
