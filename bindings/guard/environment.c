/* Variables of the environment that tell C libraries of this very process what to open or to load: os.putenv, which os.environ
 * comes to.
 *
 * What the environment held at the start is the user's. What a program puts there later is judged when it is put there, since
 * nobody sees when the library looks: a file or folder to be read as any other, and code to be loaded as an extension is, which
 * must lie where the program cannot write. A path that is no absolute one means another file after chdir(), so it counts as
 * what leads anywhere.
 */
#include "guard.h"

#include <string.h>

enum { READS, LOADS, NAMES };

static const struct {
    const char *name;
    int what;
} VARIABLES[] = {
    {"OPENSSL_CONF", LOADS},        /* providers and engines, by their files */
    {"OPENSSL_MODULES", LOADS},     /* where they are */
    {"OPENSSL_ENGINES", LOADS},
    {"GCONV_PATH", LOADS},          /* glibc's converters, which message catalogs ask for */
    {"OMP_TOOL_LIBRARIES", LOADS},  /* OpenMP's */
    {"SSL_CERT_FILE", READS},       /* OpenSSL's default certificates, shown by get_ca_certs() */
    {"SSL_CERT_DIR", READS},
    {"TERMINFO", READS},            /* curses */
    {"TERMINFO_DIRS", READS},
    {"LOCPATH", READS},             /* locales */
    {"TZDIR", READS},               /* time zones */
    {"HOSTALIASES", READS},         /* names of hosts, looked up under other names */
    {"TZ", NAMES},                  /* a file, beneath its folder where it is no absolute path */
    {"LANGUAGE", NAMES},            /* a folder of message catalogs, the same way */
};

static int judge(const char *path, size_t n, const char *event) {
    PyObject *o = PyUnicode_DecodeFSDefaultAndSize(path, (Py_ssize_t)n);
    int rc = o ? psb_file_object(o, -1, PSB_READ, true, false, event) : -1;
    Py_XDECREF(o);
    return rc;
}

/* What no line could allow: it says nothing that could be judged. */
int psb_leads_anywhere(const char *event) {
    PyObject *cls = PyInterpreterState_Get() == PyInterpreterState_Main() ? psb_exception_class("SandBoxError") : PyExc_PermissionError;
    if (psb.learn)
        return 0;
    if (cls)
        PyErr_Format(cls, "%s: in a sandbox this must be an absolute path or a plain name; what is relative leads anywhere", event);
    return -1;
}

/* One path of a list. */
static int one(int what, const char *path, size_t n) {
    static __thread char literal[PSB_PATH_MAX], text[PSB_PATH_MAX];
    size_t len;
    const char *event = "os.putenv";
    if (!n)
        return 0;
    if (what == NAMES && path[0] != '/')
        return memchr(path, '/', n) && memmem(path, n, "..", 2) ? psb_leads_anywhere(event) : 0;
    if (what == READS && path[0] != '/')
        return psb_leads_anywhere(event);
    bool written = what == LOADS && (path[0] != '/' || !psb_path_literal(-1, path, n, literal, &len) ||
                                     !psb_path_resolve(literal, true, text, &len) || (psb_file_writable(text, len) && !psb_file_in_runtime(text, len)));
    if (written && psb_call_ask(psb_call_id("_imp.create_dynamic", 19), event) < 0)
        return -1;
    return path[0] == '/' ? judge(path, n, event) : 0; /* granted */
}

int psb_environment_event(PyObject *args) {
    PyObject *name = PyTuple_GET_SIZE(args) >= 2 ? PyTuple_GET_ITEM(args, 0) : NULL, *value = name ? PyTuple_GET_ITEM(args, 1) : NULL;
    if (psb.phase == PSB_PHASE_BOOT || !name || !PyBytes_Check(name) || !PyBytes_Check(value))
        return 0;
    for (size_t i = 0; i < sizeof VARIABLES / sizeof *VARIABLES; i++) {
        if (strcmp(PyBytes_AS_STRING(name), VARIABLES[i].name) != 0)
            continue;
        for (const char *p = PyBytes_AS_STRING(value); *p; p += *p == ':') {
            size_t n = strcspn(p, ":");
            if (one(VARIABLES[i].what, p, n) < 0)
                return -1;
            p += n;
        }
    }
    return 0;
}
