/* The boot data that the supervisor left in a memfd, read once, before Python exists. */
#include "guard.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

psb_state psb = {.boot_fd = -1, .announce_fd = -1, .call_fd = -1};

static int fail(const char *format, ...) {
    va_list ap;
    va_start(ap, format);
    dprintf(2, "pysandboxes: ");
    vdprintf(2, format, ap);
    dprintf(2, "\n");
    va_end(ap);
    return -1;
}

static bool is(psb_text t, const char *s) { return t.n == strlen(s) && memcmp(t.s, s, t.n) == 0; }

static uint8_t *read_all(int fd, size_t *size) {
    struct stat st;
    if (fstat(fd, &st) < 0 || st.st_size <= 0 || st.st_size > 64 << 20)
        return NULL;
    uint8_t *buf = malloc((size_t)st.st_size);
    size_t have = 0;
    while (buf && have < (size_t)st.st_size) {
        ssize_t n = pread(fd, buf + have, (size_t)st.st_size - have, (off_t)have);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0) {
            free(buf);
            return NULL;
        }
        have += (size_t)n;
    }
    *size = have;
    return buf;
}

static void read_list(mp_reader *r, psb_list *list) {
    list->n = mp_read_array(r);
    list->items = calloc(list->n ? list->n : 1, sizeof(psb_text));
    if (!list->items) {
        r->bad = true;
        return;
    }
    for (uint32_t i = 0; i < list->n; i++)
        list->items[i] = mp_read_text(r);
}

static void read_files(mp_reader *r) {
    for (uint32_t n = mp_read_array(r); n-- && !r->bad;) {
        if (mp_read_array(r) != 3) {
            r->bad = true;
            return;
        }
        psb_text path = mp_read_text(r);
        int bits = (int)mp_read_int(r), flags = (int)mp_read_int(r);
        if (!r->bad && psb_table_add_file(path, bits & 3, flags & 7) < 0)
            r->bad = true;
    }
}

static void read_names(mp_reader *r, int (*add)(psb_text)) {
    for (uint32_t n = mp_read_array(r); n-- && !r->bad;) {
        psb_text name = mp_read_text(r);
        if (!r->bad && add(name) < 0)
            r->bad = true;
    }
}

static int add_import(psb_text name) { return psb_table_add_import(name, false); }
static int add_import_deny(psb_text name) { return psb_table_add_import(name, true); }

static int parse(const uint8_t *data, size_t size) {
    mp_reader r = {data, data + size, false};
    bool version = false, mode = false;
    for (uint32_t n = mp_read_map(&r); n-- && !r.bad;) {
        psb_text key = mp_read_text(&r);
        if (is(key, "v")) {
            int64_t v = mp_read_int(&r);
            if (v != PSB_PROTOCOL)
                return fail("the boot data is of protocol %lld, the guard of %d: pysandboxes and python-sb are of "
                            "different versions; install both again",
                            (long long)v, PSB_PROTOCOL);
        } else if (is(key, "version")) {
            psb_text v = mp_read_text(&r);
            if (!is(v, PSB_VERSION))
                return fail("python-sb is %.*s and pysandboxes is %s: install both in the same version", (int)v.n, v.s,
                            PSB_VERSION);
            version = true;
        } else if (is(key, "mode")) {
            psb.partial = is(mp_read_text(&r), "partial");
            mode = true;
        } else if (is(key, "learn")) {
            psb.learn = mp_read_bool(&r);
        } else if (is(key, "py")) {
            psb.enforce = mp_read_bool(&r);
        } else if (is(key, "resolve")) {
            psb.resolve = mp_read_bool(&r);
        } else if (is(key, "files")) {
            read_files(&r);
        } else if (is(key, "ignore")) {
            psb.ignore = mp_read_bool(&r);
        } else if (is(key, "imports")) {
            read_names(&r, add_import);
        } else if (is(key, "imports_deny")) {
            read_names(&r, add_import_deny);
        } else if (is(key, "calls")) {
            read_names(&r, psb_table_add_call);
        } else if (is(key, "inet")) {
            psb.no_inet = !mp_read_bool(&r);
        } else if (is(key, "signals")) {
            psb.signals_held = mp_read_bool(&r);
        } else if (is(key, "eval")) {
            psb_text how = mp_read_text(&r);
            psb.eval_all = is(how, "allow");
            psb.eval_guard = is(how, "guard");
        } else if (is(key, "evals")) {
            if (!mp_read_nil(&r))
                psb.evals = mp_read_text(&r);
        } else if (is(key, "stdlib")) {
            read_list(&r, &psb.stdlib);
        } else if (is(key, "site")) {
            read_list(&r, &psb.site);
        } else if (is(key, "target")) {
            read_list(&r, &psb.targets);
        } else if (is(key, "package")) {
            psb.package = mp_read_text(&r);
        } else if (is(key, "extra")) {
            if (!mp_read_nil(&r))
                psb.extra = mp_read_text(&r);
        } else {
            mp_skip(&r);
        }
    }
    if (r.bad || !version || !mode)
        return fail("the boot data is damaged");
    return 0;
}

/* Does -i ask for a prompt after the program? */
static bool asked_for_prompt(void) {
    static const char *const names[] = {"interactive", "inspect"};
    PyObject *flags = PySys_GetObject("flags"); /* borrowed */
    bool yes = false;
    for (int i = 0; flags && i < 2; i++) {
        PyObject *value = PyObject_GetAttrString(flags, names[i]);
        yes |= value && PyLong_Check(value) && PyLong_AsLong(value) > 0;
        Py_XDECREF(value);
    }
    PyErr_Clear();
    return yes;
}

void psb_enter_user_phase(void) {
    struct stat st;
    if (psb.phase == PSB_PHASE_USER)
        return;
    psb.phase = PSB_PHASE_USER;
    psb_note_path();
    psb.started |= psb.partial; /* its code comes by imports and calls */
    psb.typed = fstat(0, &st) == 0 && (isatty(0) || asked_for_prompt());
    psb.stdin_dev = st.st_dev;
    psb.stdin_ino = st.st_ino;
}

/* What is read from a terminal is a person's; a program could put one of its own in its place. */
bool psb_stdin_kept(void) {
    struct stat st;
    return psb.typed && fstat(0, &st) == 0 && st.st_dev == psb.stdin_dev && st.st_ino == psb.stdin_ino;
}

/* Called by the preload object before Python initialises. Returns 0, or -1 with the reason on stderr. */
__attribute__((visibility("default"))) int psb_boot(int boot_fd, int announce_fd, int call_fd, const char *guard_path) {
    size_t size;
    psb.enforce = true;
    uint8_t *data = read_all(boot_fd, &size);
    if (!data)
        return fail("the boot data cannot be read (descriptor %d)", boot_fd);
    if (parse(data, size) < 0)
        return -1; /* data stays: the tables point into it */
    psb.boot_fd = psb_fd_high(boot_fd);
    psb.announce_fd = psb_fd_high(announce_fd);
    psb.call_fd = call_fd >= 0 ? psb_fd_high(call_fd) : -1;
    if (psb.boot_fd < 0 || psb.announce_fd < 0 || (call_fd >= 0 && psb.call_fd < 0))
        return fail("a descriptor that the supervisor promised is not there");
    char *path = strdup(guard_path);
    if (!path)
        return fail("out of memory");
    psb.guard_path = (psb_text){path, strlen(path)};
    psb.main_thread = pthread_self();
    psb.active = true;
    if (psb_ask_start() < 0)
        return fail("the supervisor does not answer");
    if (PySys_AddAuditHook(psb_hook, NULL) != 0)
        return fail("the audit hook was refused");
    return 0;
}
