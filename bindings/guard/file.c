/* Files: from an audit event or a shimmed function to a canonical path, to the snapshot, to a question. */
#include "guard.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

/* Standard library modules that look for files on their own account: refused without a question and without a record. */
static const char *const QUIET[] = {"linecache.py", "tokenize.py", "traceback.py", "ast.py", "site.py", "<frozen site>", NULL};

static bool quiet_caller(void) {
    psb_caller c = psb_nearest_caller();
    if (c == PSB_NO_FRAME || c == PSB_IMPORTLIB)
        return true;
    return c == PSB_STDLIB && (psb_frame_in(QUIET) || (psb.phase == PSB_PHASE_BOOT && psb_charged_caller() != PSB_OTHER));
}

/* str, bytes and plain buffers only: anything else could answer __fspath__ differently when the call asks again. (Of a class
 * derived from bytes the call takes the content, too, whatever its methods say.) A new
 * reference to a bytes object or an exact ASCII str whose bytes are borrowed in *s. */
static PyObject *path_bytes(PyObject *path, const char **s, Py_ssize_t *n) {
    if (PyBytes_Check(path)) {
        *s = PyBytes_AS_STRING(path);
        *n = PyBytes_GET_SIZE(path);
        return Py_NewRef(path);
    }
    if (PyByteArray_CheckExact(path) || PyMemoryView_Check(path)) { /* deprecated; the call has copied it already */
        PyObject *b = PyBytes_FromObject(path);
        if (b) {
            *s = PyBytes_AS_STRING(b);
            *n = PyBytes_GET_SIZE(b);
        }
        return b;
    }
    if (!PyUnicode_Check(path))
        return NULL;
    if (PyUnicode_IS_COMPACT_ASCII(path)) {
        *s = (const char *)PyUnicode_1BYTE_DATA(path);
        *n = PyUnicode_GET_LENGTH(path);
        return Py_NewRef(path);
    }
    PyObject *b = PyUnicode_EncodeFSDefault(path);
    if (b) {
        *s = PyBytes_AS_STRING(b);
        *n = PyBytes_GET_SIZE(b);
    }
    return b;
}

static int refuse_quietly(int need, PyObject *subject) {
    errno = need & PSB_WRITE ? EACCES : ENOENT;
    PyErr_SetFromErrnoWithFilenameObject(PyExc_OSError, subject);
    return -1;
}

static void learn_file(const char *path, size_t n, int need, bool metadata, const char *event) {
    /* what a later, stronger look at the same path needs must not be lost in a weaker one before it */
    bool quiet = quiet_caller();
    char kind = need & PSB_WRITE ? 'W' : metadata ? 'm' : strcmp(event, "open") == 0 ? 'o' : 'l';
    if (quiet)
        kind = (char)(kind | 0x80);
    if (psb_seen(kind, path, n))
        return;
    psb_remember(kind, path, n);
    char site[512];
    size_t sn = psb_site(site, sizeof site);
    mp_writer w = {0};
    psb_question(&w, "learn", 6, false);
    mp_str(&w, "file", 4);
    mp_bin(&w, path, n);
    mp_bool(&w, need & PSB_WRITE);
    mp_str(&w, event, strlen(event));
    mp_str(&w, site, sn);
    mp_bool(&w, quiet);
    psb_tell(&w);
}

/* via: the path whose link leads there, or NULL. */
static int ask_file(const char *path, size_t n, int need, PyObject *via, const char *event, PyObject *subject) {
    char kind = need & PSB_WRITE ? 'W' : 'R';
    /* what lies in a folder goes with it, and that may be another thing each time */
    if (strcmp(event, "os.rename") != 0 && psb_seen(kind, path, n))
        return 0;
    mp_writer w = {0};
    psb_question(&w, "file", 4, true);
    mp_bin(&w, path, n);
    mp_bool(&w, need & PSB_WRITE);
    mp_str(&w, event, strlen(event));
    if (via)
        mp_bin(&w, PyBytes_AS_STRING(via), (size_t)PyBytes_GET_SIZE(via));
    else
        mp_nil(&w);
    psb_answer a;
    psb_ask(&w, &a);
    if (a.allow) {
        psb_remember(kind, path, n);
        psb_answer_free(&a);
        return 0;
    }
    return psb_raise(&a, subject);
}

/* What is not there cannot be taken away: where a program may look, it is told so as it would be without a sandbox, rather
 * than that it may not write. Said here and not by the call, which would find what comes into being in between. */
static bool nothing_to_remove(const char *path, size_t n, const char *event, PyObject *subject) {
    struct stat st;
    if ((strcmp(event, "os.remove") != 0 && strcmp(event, "os.rmdir") != 0) || !psb_file_allowed(path, n, PSB_READ) ||
        lstat(path, &st) == 0 || (errno != ENOENT && errno != ENOTDIR))
        return false;
    PyErr_SetFromErrnoWithFilenameObject(PyExc_OSError, subject);
    return true;
}

/* What the snapshot does not allow: to be learned, or refused without a word, or asked. Looking at frames may start a garbage
 * collection (3.11), and a finalizer may open files itself: so the path is no longer in a buffer that those would share. */
static int undecided(PyObject *canonical, int need, bool metadata, PyObject *via, const char *event, PyObject *subject) {
    const char *path = PyBytes_AS_STRING(canonical);
    size_t n = (size_t)PyBytes_GET_SIZE(canonical);
    if (psb.learn) {
        learn_file(path, n, need, metadata, event);
        return 0;
    }
    if (nothing_to_remove(path, n, event, subject))
        return -1;
    if (!quiet_caller())
        return ask_file(path, n, need, via, event, subject);
    if (psb.ignore && psb_file_exposed(path, n, need)) { /* only the engine knows what an ignore rule hides of it */
        if (ask_file(path, n, need, via, event, subject) == 0)
            return 0;
        PyErr_Clear();
    }
    if (!(need & PSB_WRITE))
        psb_note_refused_folder(path, n);
    return refuse_quietly(need, subject);
}

/* Where the letters allow a path and no other layer but the kernel follows links: does one lead out of what is allowed? The
 * kernel refuses that whatever is said here, but its refusal names no rule. Where it leads goes to out. Paths that mean the
 * process itself (/proc/self, /dev/fd) are the kernel's alone. */
static bool leads_out(int dir_fd, const char *s, size_t given, bool follow, int bits, const char *text, size_t n, char *out, size_t *len) {
    static __thread char literal[PSB_PATH_MAX];
    size_t ignored;
    if (psb_path_plain(text, n) || psb_file_in_runtime(text, n) || strncmp(text, "/proc/", 6) == 0 || strncmp(text, "/dev/", 5) == 0)
        return false;
    return psb_path_literal(dir_fd, s, given, literal, &ignored) && psb_path_linked(literal, follow) &&
           psb_path_resolve(literal, follow, out, len) && !psb_file_allowed(out, *len, bits);
}

/* "x/", "x/." and the like name what x leads to, whatever the call says about links. */
static bool names_folder(const char *s, Py_ssize_t n) {
    while (n && s[n - 1] == '.')
        n--;
    return n == 0 || s[n - 1] == '/';
}

/* The path in text and what the snapshot says of it, without Python and without a question. False, and errno: too long, a
 * loop of links, a lost working directory. */
bool psb_file_look(const char *s, size_t n, int dir_fd, int need, bool follow, char *text, size_t *len, bool *allowed) {
    static __thread char real[PSB_PATH_MAX];
    size_t real_len;
    bool formed, resolve = psb.resolve || psb.learn || need & PSB_UNHELD;
    need &= ~PSB_UNHELD;
    follow |= names_folder(s, (Py_ssize_t)n);
    errno = ENOENT;
    if (resolve) { /* without a link that a program could have made, the letters will do */
        formed = psb_path_literal(dir_fd, s, n, real, &real_len);
        if (formed && !psb.resolve && !psb.learn && psb_path_lexical(-1, real, real_len, text, len) && psb_file_runtime(text, *len))
            resolve = false;
        else
            formed = formed && psb_path_resolve(real, follow, text, len);
    } else {
        formed = psb_path_lexical(dir_fd, s, n, text, len);
    }
    *allowed = formed && !psb.learn && psb_file_allowed(text, *len, need);
    if (formed && !*allowed && !psb.learn && !resolve) { /* not by its letters: perhaps where it leads is allowed */
        if (psb_path_literal(dir_fd, s, n, real, &real_len) && psb_path_resolve(real, follow, text, len))
            *allowed = psb_file_allowed(text, *len, need);
        else
            formed = false;
    }
    return formed;
}

/* What a descriptor that may only be read from lets be changed all the same: mode, owner, times, attributes. Whether it may be
 * is a matter of the file that it leads to; what has no name (a pipe, a socket, a file that was removed) is the program's own.
 * The kernel layer does not hold these. */
int psb_file_by_descriptor(PyObject *number, const char *event) {
    char path[PSB_PATH_MAX], link[64];
    struct stat st;
    int overflow;
    long fd = PyLong_AsLongAndOverflow(number, &overflow);
    if (overflow || fd < 0 || fd > INT_MAX || fstat((int)fd, &st) < 0) { /* the call says so in its own words */
        PyErr_Clear();
        return 0;
    }
    snprintf(link, sizeof link, "/proc/self/fd/%ld", fd);
    ssize_t n = readlink(link, path, sizeof path - 1);
    if (n < 0 || n == sizeof path - 1) {
        errno = EACCES;
        PyErr_SetFromErrno(PyExc_OSError);
        return -1;
    }
    if (path[0] != '/' || st.st_nlink == 0)
        return 0;
    PyObject *name = PyBytes_FromStringAndSize(path, n);
    int rc = name ? psb_file_object(name, -1, PSB_WRITE | PSB_UNHELD, false, false, event) : -1;
    Py_XDECREF(name);
    return rc;
}

/* To listdir and scandir the number -1 is no descriptor, but none: they list the working directory. */
static bool here(PyObject *path, const char *event) {
    int overflow;
    return PyLong_Check(path) && (strcmp(event, "os.listdir") == 0 || strcmp(event, "os.scandir") == 0) &&
           PyLong_AsLongAndOverflow(path, &overflow) == -1 && !overflow;
}

/* 0: go on. -1: refused, exception set. */
int psb_file_object(PyObject *path, int dir_fd, int need, bool follow, bool metadata, const char *event) {
    static __thread char text[PSB_PATH_MAX], real[PSB_PATH_MAX];
    size_t len, real_len;
    const char *s = NULL;
    Py_ssize_t n = 0;
    bool unheld = need & PSB_UNHELD;

    need &= ~PSB_UNHELD;
    if (path == Py_None || here(path, event)) { /* listdir(None) and friends: the working directory */
        s = ".";
        n = 1;
        path = NULL;
    } else if (PyLong_Check(path)) {
        /* decided when it was opened, and the kernel asks a right to write of ftruncate */
        return unheld && need & PSB_WRITE && strcmp(event, "os.truncate") != 0 ? psb_file_by_descriptor(path, event) : 0;
    }
    PyObject *hold = path ? path_bytes(path, &s, &n) : Py_NewRef(Py_None);
    if (!hold) {
        if (!PyErr_Occurred())
            PyErr_Format(PyExc_TypeError, "%s: the path must be str, bytes or int in a sandbox, not %.100s", event,
                         Py_TYPE(path)->tp_name);
        return -1;
    }
    if (n > 0 && memchr(s, 0, (size_t)n)) { /* the call itself raises ValueError; a C string ends at the NUL */
        n = (Py_ssize_t)strlen(s);
    }
    if (!n && (unheld || strcmp(event, "open") == 0)) { /* names nothing: the call itself says so */
        Py_DECREF(hold);
        return 0;
    }
    int bits = need | (metadata ? PSB_ANCESTOR : 0);
    bool allowed, formed = psb_file_look(s, (size_t)n, dir_fd, bits | (unheld ? PSB_UNHELD : 0), follow, text, &len, &allowed);
    if (allowed && need & PSB_WRITE && strcmp(event, "open") != 0 && psb_file_in_runtime(text, len))
        allowed = false; /* a device is written to, never changed or removed */
    PyObject *via = NULL;
    if (allowed && !psb.resolve && !unheld &&
        leads_out(dir_fd, s, (size_t)n, follow || names_folder(s, n), bits, text, len, real, &real_len)) {
        via = PyBytes_FromStringAndSize(text, (Py_ssize_t)len);
        memcpy(text, real, real_len + 1);
        len = real_len;
        allowed = false;
    }
    if (allowed) {
        Py_DECREF(hold);
        return 0;
    }
    if (!formed) { /* too long, a loop of links, a lost working directory: nothing that could be opened */
        int why = errno;
        if (why == ELOOP && !(psb_path_lexical(dir_fd, s, (size_t)n, text, &len) && psb_file_allowed(text, len, bits)))
            why = ENOENT;
        Py_DECREF(hold);
        errno = why;
        PyErr_SetFromErrnoWithFilenameObject(PyExc_OSError, path ? path : Py_None);
        return -1;
    }
    Py_DECREF(hold);
    PyObject *canonical = PyBytes_FromStringAndSize(text, (Py_ssize_t)len);
    int rc = canonical ? undecided(canonical, need, metadata, via, event, path ? path : Py_None) : -1;
    Py_XDECREF(canonical);
    Py_XDECREF(via);
    return rc;
}

int psb_open_need(long f) {
    int need = f & (O_WRONLY | O_RDWR | O_CREAT | O_TRUNC | O_APPEND) ? PSB_WRITE : PSB_READ;
    if ((f & O_ACCMODE) == O_RDWR)
        need |= PSB_READ;
    return need;
}

/* An exact str or bytes that nobody else has; what is neither stays. */
PyObject *psb_own_copy(PyObject *text) {
    if (PyBytes_Check(text)) {
        Py_ssize_t n = PyBytes_GET_SIZE(text);
        PyObject *copy = PyBytes_FromStringAndSize(NULL, n);
        if (copy)
            memcpy(PyBytes_AS_STRING(copy), PyBytes_AS_STRING(text), (size_t)n);
        return copy;
    }
    if (!PyUnicode_Check(text))
        return Py_NewRef(text);
    Py_ssize_t n = PyUnicode_GET_LENGTH(text);
    PyObject *copy = PyUnicode_New(n, PyUnicode_MAX_CHAR_VALUE(text));
    if (copy && n && PyUnicode_CopyCharacters(copy, 0, text, 0, n) < 0)
        Py_CLEAR(copy);
    return copy;
}

__thread PyObject *psb_judged_open;

/* Bytecode that the program could have written is hidden from the import system, which then compiles the source. */
static bool hidden_cache(PyObject *path) {
    static __thread char text[PSB_PATH_MAX];
    size_t len;
    bool ignored;
    Py_ssize_t n = 0;
    const char *s = PyUnicode_CheckExact(path) ? PyUnicode_AsUTF8AndSize(path, &n) : NULL;
    PyErr_Clear();
    if (!s || n < 4 || memcmp(s + n - 4, ".pyc", 4) != 0 || psb_nearest_caller() != PSB_IMPORTLIB || !psb_importing() ||
        !psb_file_look(s, (size_t)n, -1, PSB_READ, true, text, &len, &ignored) ||
        !psb_cache_of_program(text, len))
        return false;
    refuse_quietly(PSB_READ, path);
    return true;
}

static int open_event(PyObject *args) {
    static const char *const getpath[] = {"<frozen getpath>", NULL};
    if (PyTuple_GET_SIZE(args) < 3)
        return 0;
    /* The interpreter looks for pyvenv.cfg beside itself, before it has an import system, and takes an exception of a
     * hook for a defect of its own. The names are fixed, and a kernel layer holds them too. */
    if (psb.phase == PSB_PHASE_BOOT && psb_frame_in(getpath))
        return 0;
    PyObject *path = PyTuple_GET_ITEM(args, 0), *flags = PyTuple_GET_ITEM(args, 2), *judged = psb_judged_open;
    psb_judged_open = NULL;
    if (judged && judged == path) /* os.open with a dir_fd, which the event does not tell */
        return 0;
    long f = PyLong_Check(flags) ? PyLong_AsLong(flags) : O_RDWR;
    if (f == -1 && PyErr_Occurred()) {
        PyErr_Clear();
        f = O_RDWR;
    }
    if (f == (O_RDONLY | O_CLOEXEC) && psb.phase == PSB_PHASE_USER && !psb.learn && hidden_cache(path))
        return -1;
    const char *mode = PyUnicode_Check(PyTuple_GET_ITEM(args, 1)) ? PyUnicode_AsUTF8(PyTuple_GET_ITEM(args, 1)) : NULL;
    PyErr_Clear();
    if (mode && strpbrk(mode, "wax+")) /* C files, as of SSLContext.keylog_filename: their flags are 0 */
        f |= O_WRONLY;
    return psb_file_object(path, -1, psb_open_need(f), !(f & O_NOFOLLOW), false, "open");
}

static int hex(char c) { return c >= '0' && c <= '9' ? c - '0' : (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 'a' + 10 : -1; }

/* Does the query have the parameter with this value, once, and nothing that could say it in another way? */
static bool says(const char *query, const char *end, const char *key, const char *value) {
    size_t k = strlen(key), v = strlen(value);
    int keys = 0, right = 0;
    for (const char *p = query; p < end && *p != '#';) {
        const char *from = ++p;
        for (; p < end && *p != '&' && *p != '#'; p++)
            if (*p == '%')
                return false;
        if ((size_t)(p - from) >= k && memcmp(from, key, k) == 0) {
            keys++;
            right += (size_t)(p - from) == k + 1 + v && from[k] == '=' && memcmp(from + k + 1, value, v) == 0;
        }
    }
    return keys == 1 && right == 1;
}

/* sqlite3.connect's argument: a path, ":memory:", "" (a temporary file of its own), or a URI, https://sqlite.org/uri.html.
 * Where SQLite is held, what it opens is judged as it opens it (sqlite.c), and the error is sqlite3's own. Else a kernel layer
 * holds it, and this is for the words, which sqlite_report.c makes an error of sqlite3's. The event does not say whether a URI
 * is meant: "file:" at the start of a plain path is taken for one. */
static int database_event(PyObject *database, const char *event) {
    const char *s = NULL;
    Py_ssize_t n = 0;
    bool held = psb_sqlite_held();
    if (!held && psb.resolve && !psb.learn) {
        PyObject *cls = PyInterpreterState_Get() == PyInterpreterState_Main() ? psb_exception_class("SandBoxError") : PyExc_PermissionError;
        if (cls)
            PyErr_SetString(cls, "sqlite3.connect: the SQLite of this Python hides sqlite3_vfs_find, so what SQL opens cannot be judged, "
                                 "and this provider has no kernel boundary that would hold it.\n"
                                 "Use os-sandbox=landlock, or a Python whose sqlite3 uses the shared library.");
        return -1;
    }
    if (held)
        return 0;
    PyObject *hold = path_bytes(database, &s, &n);
    if (!hold) /* which says that it is no str */
        return PyErr_Occurred() ? -1 : psb_file_object(database, -1, PSB_READ, true, false, event);
    int rc = 0;
    static __thread char path[PSB_PATH_MAX];
    size_t len = 0;
    bool memory = n == 0 || (n == 8 && memcmp(s, ":memory:", 8) == 0);
    if (n >= 5 && memcmp(s, "file:", 5) == 0) {
        const char *p = s + 5, *end = s + n, *query = memchr(p, '?', (size_t)(end - p)), *stop = memchr(p, '#', (size_t)(end - p));
        if (query && (!stop || query < stop)) {
            memory = says(query, end, "mode", "memory") || says(query, end, "vfs", "memdb");
            stop = query;
        }
        end = stop ? stop : end;
        if (end - p >= 2 && p[0] == '/' && p[1] == '/') { /* an authority: empty or localhost */
            for (p += 2; p < end && *p != '/';)
                p++;
        }
        for (; p < end && len < sizeof path; p++) {
            bool coded = *p == '%' && end - p > 2 && hex(p[1]) >= 0 && hex(p[2]) >= 0;
            path[len++] = coded ? (char)(hex(p[1]) << 4 | hex(p[2])) : *p;
            p += coded ? 2 : 0;
        }
        memory |= len == 0 || (len == 8 && memcmp(path, ":memory:", 8) == 0);
        Py_SETREF(hold, PyBytes_FromStringAndSize(path, (Py_ssize_t)len));
        database = hold;
    }
    if (!hold)
        return -1;
    if (!memory)
        rc = psb_file_object(database, -1, PSB_READ, true, false, event);
    Py_DECREF(hold);
    return rc;
}

/* Longer than the kernel takes any path: of two, whichever it is, that is the first thing that the call finds out. */
static bool too_long(PyObject *path) {
    bool text = PyUnicode_CheckExact(path), ascii = text && PyUnicode_IS_COMPACT_ASCII(path);
    if (text && !ascii) /* each letter is a byte or more */
        return PyUnicode_GET_LENGTH(path) >= PATH_MAX && PyUnicode_FindChar(path, 0, 0, PyUnicode_GET_LENGTH(path), 1) == -1;
    if (!text && !PyBytes_CheckExact(path))
        return false;
    return strlen(ascii ? (const char *)PyUnicode_1BYTE_DATA(path) : PyBytes_AS_STRING(path)) >= PATH_MAX;
}

/* spec: words like "r0", "w0d2", "l1d3": what is needed of the path in that argument, and where its dir_fd stands.
 * r read, w write (of a name: its last link is not followed), l metadata of the name itself, s metadata. */
int psb_file_event(const char *spec, const char *event, PyObject *args) {
    if (strcmp(spec, "open") == 0)
        return open_event(args);
    if (strcmp(spec, "ioctl") == 0)
        return psb_ioctl_event(args);
    if (strcmp(spec, "environment") == 0)
        return psb_environment_event(args);
    if (strcmp(spec, "database") == 0)
        return PyTuple_GET_SIZE(args) ? database_event(PyTuple_GET_ITEM(args, 0), event) : 0;
    Py_ssize_t count = PyTuple_GET_SIZE(args);
    if (strlen(spec) > 4 && count >= 2 && (too_long(PyTuple_GET_ITEM(args, 0)) || too_long(PyTuple_GET_ITEM(args, 1))))
        return 0;
    while (*spec) {
        char what = *spec++;
        Py_ssize_t at = *spec ? *spec++ - '0' : 0;
        int dir_fd = -1;
        if (*spec == 'd') {
            Py_ssize_t d = spec[1] - '0';
            spec += 2;
            if (d < count && PyLong_Check(PyTuple_GET_ITEM(args, d))) {
                dir_fd = (int)PyLong_AsLong(PyTuple_GET_ITEM(args, d));
                if (dir_fd == -1)
                    PyErr_Clear();
                if (dir_fd == AT_FDCWD)
                    dir_fd = -1;
            }
        }
        if (*spec == ' ')
            spec++;
        if (at >= count)
            continue;
        PyObject *path = PyTuple_GET_ITEM(args, at);
        if (path == Py_None && what == 'w')
            continue;
        bool follow = what == 'r' || what == 's' || what == 'W';
        int need = what == 'w' ? PSB_WRITE : what == 'W' ? PSB_WRITE | PSB_UNHELD : PSB_READ | PSB_UNHELD;
        if (what == 'r')
            need = PSB_READ;
        if (psb_file_object(path, dir_fd, need, follow, what == 'l' || what == 's', event) < 0)
            return -1;
    }
    return strcmp(event, "os.rename") == 0 || strcmp(event, "os.link") == 0 ? psb_net_renamed(args) : 0;
}
