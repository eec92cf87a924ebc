/* The interactive prompt of a sandboxed program: it is marked, completes names, and shows help without a pager.
 *
 * The mark is the prompt's text, sys.ps1 and sys.ps2, set before the first line is read; what a person sets later stays.
 * Completion evaluates what stands before the dot (rlcompleter): a dotted name, and nothing else is let through.
 * pydoc looks for a pager by starting one. Where no program may be started that is a refusal in the place of a help page; so the
 * module gets its own plain pager, which it takes by itself where there is no terminal.
 */
#include "guard.h"

#include <string.h>
#include <unistd.h>

static const char *const COMPLETER[] = {"rlcompleter.py", NULL};

static bool speaks_utf8(void) {
    PyObject *out = PySys_GetObject("stdout"); /* borrowed */
    PyObject *name = out ? PyObject_GetAttrString(out, "encoding") : NULL;
    const char *s = name && PyUnicode_Check(name) ? PyUnicode_AsUTF8(name) : NULL;
    bool yes = s && (strncmp(s, "utf", 3) == 0 || strncmp(s, "UTF", 3) == 0);
    PyErr_Clear();
    Py_XDECREF(name);
    return yes;
}

static void mark(const char *name, const char *text) {
    PyObject *value = PySys_GetObject(name) ? NULL : PyUnicode_FromFormat("%s %s", speaks_utf8() ? "\xe2\x9a\xa0" : "!", text);
    if (value)
        PySys_SetObject(name, value);
    PyErr_Clear();
    Py_XDECREF(value);
}

void psb_prompt_begins(void) {
    if (!isatty(0)) /* `-i` with a pipe: what drives it looks for the prompt that it knows */
        return;
    mark("ps1", ">>> ");
    mark("ps2", "... ");
}

static bool letter(unsigned char c) { return c >= 0x80 || c == '_' || (c | 32u) - 'a' < 26u; }

static bool dotted_name(const char *s) {
    do {
        if (!letter((unsigned char)*s))
            return false;
        while (letter((unsigned char)*s) || (*s >= '0' && *s <= '9'))
            s++;
    } while (*s++ == '.');
    return s[-1] == 0;
}

/* Called while the text that the completer evaluates is compiled. */
bool psb_prompt_completes(const char *source) {
    return psb.interactive && psb_stdin_kept() && pthread_equal(pthread_self(), psb.main_thread) && psb_frame_in(COMPLETER) &&
           psb_charged_caller() != PSB_OTHER && dotted_name(source);
}

/* Called when a module has been imported. 0, or -1 with an exception. */
int psb_prompt_module(const char *name, PyObject *module) {
    if (strcmp(name, "pydoc") != 0 || psb.learn || psb_call_allowed(psb_call_id("os.system", 9)))
        return 0;
    PyObject *plain = PyObject_GetAttrString(module, "plainpager");
    int rc = plain ? PyObject_SetAttrString(module, "pager", plain) : -1;
    Py_XDECREF(plain);
    return rc;
}
