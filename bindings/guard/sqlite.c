/* What SQL opens: ATTACH, VACUUM INTO, journals, temporary files, the database itself.
 *
 * SQLite's unix VFS makes every system call on a path through a table that may be changed (sqlite3_vfs.xSetSystemCall,
 * https://sqlite.org/c3ref/vfs.html); "unix", "unix-none", "unix-dotfile" and "unix-excl" share it. The guard puts functions
 * of its own there that judge the path first. Putting the old ones back takes native code.
 *
 * SQLite calls these with the GIL or without it, and with mutexes of its own held: so nothing here touches Python or waits
 * for the GIL. What was refused is noted for the thread, and becomes a refusal that names its rule when control comes back
 * to Python (sqlite_report.c).
 */
#include "guard.h"
#include "sqlite.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define CANTOPEN 14 /* SQLITE_CANTOPEN */

__thread psb_sql_visit psb_sql;

static void refused(const char *path, int need) {
    psb_sql_visit *v = &psb_sql;
    if (!v->depth || v->n == PSB_SQL_REFUSED_MAX)
        return; /* nobody could be told */
    for (int i = 0; i < v->n; i++)
        if (v->refused[i].need == need && strcmp(v->refused[i].path, path) == 0)
            return;
    char *copy = strdup(path);
    if (copy)
        v->refused[v->n++] = (psb_sql_refused){copy, need};
}

#define READ_ONLY_MAX 8
static const char *read_only[READ_ONLY_MAX + 1];

const char *const *psb_sql_read_only(void) { return read_only; }

/* After a refusal to write SQLite opens for reading what it can read. */
static void fell_back(const char *path) {
    bool was_refused = false;
    for (int i = 0; i < psb_sql.n; i++)
        was_refused |= psb_sql.refused[i].need == PSB_WRITE && strcmp(psb_sql.refused[i].path, path) == 0;
    if (!was_refused)
        return;
    psb_lock();
    int i = 0;
    while (i < READ_ONLY_MAX && read_only[i] && strcmp(read_only[i], path) != 0)
        i++;
    if (i < READ_ONLY_MAX && !read_only[i]) /* readers see the whole text or none */
        __atomic_store_n(&read_only[i], strdup(path), __ATOMIC_RELEASE);
    psb_unlock();
}

static void learn(const char *text, size_t n, bool write) {
    char kind = write ? 'W' : 'o';
    if (psb_seen(kind, text, n))
        return;
    psb_remember(kind, text, n);
    mp_writer w = {0};
    psb_question(&w, "learn", 6, false);
    mp_str(&w, "file", 4);
    mp_bin(&w, text, n);
    mp_bool(&w, write);
    mp_str(&w, "sqlite3.open", 12); /* by which the recorder knows that this, and not how the file is opened, says what is needed */
    mp_str(&w, psb_sql.site, psb_sql.depth ? psb_sql.site_len : 0);
    mp_bool(&w, false);
    psb_tell(&w);
}

/* Is it allowed? Without a record where it is not: SQLite tries what it may not need, and goes on without. */
static bool allowed(const char *path, int need, bool follow, char *text, size_t *len) {
    bool yes;
    if (!psb_file_look(path, strlen(path), -1, need, follow, text, len, &yes))
        return false; /* nothing that could be opened */
    if (yes || psb.learn)
        return true;
    if (!psb.ignore || !psb_file_exposed(text, *len, need & PSB_WRITE ? PSB_WRITE : PSB_READ))
        return false;
    char kind = need & PSB_WRITE ? 'W' : 'R'; /* by an exposure, unless an ignore rule hides it: the engine knows */
    if (psb_seen(kind, text, *len))
        return true;
    mp_writer w = {0};
    psb_question(&w, "file", 4, true);
    mp_bin(&w, text, *len);
    mp_bool(&w, need & PSB_WRITE);
    mp_str(&w, "open", 4);
    mp_nil(&w);
    psb_answer a;
    psb_ask(&w, &a);
    yes = a.allow;
    if (yes)
        psb_remember(kind, text, *len);
    psb_answer_free(&a);
    return yes;
}

static bool visible(const char *path, bool follow) {
    static __thread char text[PSB_PATH_MAX];
    size_t len;
    return allowed(path, PSB_READ | PSB_UNHELD | PSB_ANCESTOR, follow, text, &len);
}

static bool writable(const char *path, bool follow) {
    static __thread char text[PSB_PATH_MAX];
    size_t len;
    bool yes = allowed(path, PSB_WRITE, follow, text, &len);
    if (yes && psb.learn)
        learn(text, len, true);
    return yes;
}

/* ---- a learning run: SQLite opens for writing what it may only read, so the first write is what tells ---- */

static unsigned char unwritten[1024]; /* by descriptor; a stale 1 costs one look */

static void first_write(int fd) {
    if (fd < 0 || fd >= (int)sizeof unwritten || !__atomic_exchange_n(&unwritten[fd], 0, __ATOMIC_RELAXED))
        return;
    char link[64], path[PATH_MAX];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, path, sizeof path);
    if (n > 0 && n < (ssize_t)sizeof path && path[0] == '/')
        learn(path, (size_t)n, true);
}

static ssize_t held_pwrite(int fd, const void *buf, size_t n, off_t at) {
    first_write(fd);
    return pwrite(fd, buf, n, at);
}

static ssize_t held_write(int fd, const void *buf, size_t n) {
    first_write(fd);
    return write(fd, buf, n);
}

/* ---- the calls ---- */

/* Under a provider without a kernel boundary: did the open reach what was judged? */
static bool arrived(int fd, const char *text, size_t len) {
    char link[64], path[PATH_MAX];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, path, sizeof path);
    return n == (ssize_t)len && memcmp(path, text, len) == 0;
}

static int held_open(const char *path, int flags, int mode) {
    static __thread char text[PSB_PATH_MAX];
    size_t len;
    int need = psb_open_need(flags) & PSB_WRITE ? PSB_WRITE : PSB_READ;
    bool is_new = psb.learn && access(path, F_OK) != 0;
    if (!allowed(path, need, !(flags & O_NOFOLLOW), text, &len)) {
        refused(path, need);
        errno = need == PSB_WRITE ? EACCES : ENOENT;
        return -1;
    }
    int fd = open(path, flags, mode);
    if (fd >= 0 && psb.resolve && !psb.learn && !arrived(fd, text, len)) { /* a link was put in its place meanwhile */
        close(fd);
        refused(path, need);
        errno = EACCES;
        return -1;
    }
    if (fd >= 0 && need == PSB_READ)
        fell_back(path);
    if (fd >= 0 && psb.learn) {
        learn(text, len, need == PSB_WRITE && is_new);
        if (fd < (int)sizeof unwritten)
            __atomic_store_n(&unwritten[fd], need == PSB_WRITE && !is_new, __ATOMIC_RELAXED);
    }
    return fd;
}

/* The folder of a file, to be synced after a change of its names. SQLite does without where it cannot be opened, so this
 * is no refusal of anything. */
static int held_open_directory(const char *path, int *fd) {
    static __thread char folder[PSB_PATH_MAX], text[PSB_PATH_MAX];
    size_t n = strlen(path), len;
    *fd = -1;
    if (n + 1 > sizeof folder)
        return CANTOPEN;
    memcpy(folder, path, n + 1);
    while (n > 0 && folder[n] != '/')
        n--;
    if (n)
        folder[n] = 0;
    else
        strcpy(folder, path[0] == '/' ? "/" : ".");
    if (allowed(folder, PSB_READ, true, text, &len))
        *fd = open(folder, O_RDONLY | O_CLOEXEC);
    return *fd >= 0 ? 0 : CANTOPEN;
}

static int absent(void) {
    errno = ENOENT;
    return -1;
}

static int held_access(const char *path, int mode) {
    static __thread char text[PSB_PATH_MAX];
    size_t len;
    if (!visible(path, true))
        return absent();
    if (mode & W_OK && !allowed(path, PSB_WRITE, true, text, &len)) {
        refused(path, PSB_WRITE);
        errno = EACCES;
        return -1;
    }
    return access(path, mode);
}

static int held_stat(const char *path, struct stat *st) { return visible(path, true) ? stat(path, st) : absent(); }
static int held_lstat(const char *path, struct stat *st) { return visible(path, false) ? lstat(path, st) : absent(); }

static ssize_t held_readlink(const char *path, char *buf, size_t n) {
    return visible(path, false) ? readlink(path, buf, n) : absent();
}

static int change(const char *path, int (*call)(const char *)) {
    if (!visible(path, false))
        return absent();
    if (!writable(path, false)) {
        refused(path, PSB_WRITE);
        errno = EACCES;
        return -1;
    }
    return call(path);
}

static int held_unlink(const char *path) { return change(path, unlink); }
static int held_rmdir(const char *path) { return change(path, rmdir); }

static int held_mkdir(const char *path, mode_t mode) { /* the lock of unix-dotfile */
    if (!writable(path, false)) {
        refused(path, PSB_WRITE);
        errno = EACCES;
        return -1;
    }
    return mkdir(path, mode);
}

/* ---- putting them in ---- */

typedef void (*syscall_ptr)(void);

#define F(f) ((syscall_ptr)(void *)(f))
static const struct {
    const char *name;
    syscall_ptr held;
    bool learning; /* only there */
} CALLS[] = {
    {"open", F(held_open), false},         {"openDirectory", F(held_open_directory), false},
    {"access", F(held_access), false},     {"stat", F(held_stat), false},
    {"lstat", F(held_lstat), false},       {"readlink", F(held_readlink), false},
    {"unlink", F(held_unlink), false},     {"mkdir", F(held_mkdir), false},
    {"rmdir", F(held_rmdir), false},       {"write", F(held_write), true},
    {"pwrite", F(held_pwrite), true},      {"pwrite64", F(held_pwrite), true},
};

/* sqlite3.h, version 3 of the structure (SQLite 3.7.6, 2011). */
typedef struct vfs vfs;
struct vfs {
    int version, file_size, path_max;
    vfs *next;
    const char *name;
    void *data, *open, *delete, *access, *full_path_name, *dl_open, *dl_error, *dl_sym, *dl_close, *randomness, *sleep, *time,
        *last_error, *time64;
    int (*set_system_call)(vfs *, const char *name, syscall_ptr);
    syscall_ptr (*get_system_call)(vfs *, const char *name);
};

/* "memdb" opens no file. Any other VFS without a table of calls is not one that this guard knows. */
static bool hold_vfs(vfs *v) {
    if (v->name && strcmp(v->name, "memdb") == 0)
        return true;
    if (v->version < 3 || !v->set_system_call || !v->get_system_call)
        return false;
    for (size_t i = 0; i < sizeof CALLS / sizeof *CALLS; i++) {
        if (CALLS[i].learning && !psb.learn)
            continue;
        syscall_ptr now = v->get_system_call(v, CALLS[i].name);
        if (!now || now == CALLS[i].held) /* not in this version or build, or shared with another VFS */
            continue;
        if (v->set_system_call(v, CALLS[i].name, CALLS[i].held) != 0 || v->get_system_call(v, CALLS[i].name) != CALLS[i].held)
            return false;
    }
    return v->get_system_call(v, "open") == F(held_open);
}

#define LIBRARIES_MAX 32
typedef struct {
    char *names[LIBRARIES_MAX];
    int n;
    bool more;
    unsigned long long adds; /* objects ever loaded: another number, another look */
} libraries;

static const char *base_name(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static int collect(struct dl_phdr_info *info, size_t size, void *data) {
    libraries *l = data;
    (void)size;
    l->adds = info->dlpi_adds;
    if (!strstr(base_name(info->dlpi_name), "sqlite") && !strstr(info->dlpi_name, "/apsw/"))
        return 0;
    if (l->n < LIBRARIES_MAX && (l->names[l->n] = strdup(info->dlpi_name)))
        l->n++;
    else
        l->more = true;
    return 0;
}

/* Is every VFS of the SQLite held that the object of this name (NULL: the program) uses? Not where its symbols are hidden. */
static bool hold_library(const char *name) {
    void *handle = dlopen(name, RTLD_LAZY | RTLD_NOLOAD);
    vfs *(*find)(const char *) = handle ? (vfs * (*)(const char *)) dlsym(handle, "sqlite3_vfs_find") : NULL;
    vfs *v = find ? find(NULL) : NULL;
    bool held = v != NULL;
    for (; v; v = v->next)
        held &= hold_vfs(v);
    if (handle)
        dlclose(handle);
    return held;
}

static bool built_in(void) {
    for (const struct _inittab *t = PyImport_Inittab; t && t->name; t++)
        if (strcmp(t->name, "_sqlite3") == 0)
            return true;
    return false;
}

/* Are all the _sqlite3 of this process held? Called with the GIL at each connect; as long as nothing is loaded, what was
 * found last is found at the cost of a look at a counter. Two interpreters may do this at once: it is the same that they
 * do. */
bool psb_sqlite_held(void) {
    static unsigned long long found; /* twice the number of objects loaded ever, and 1 where all were held */
    libraries l = {0};
    dl_iterate_phdr(collect, &l);
    unsigned long long before = __atomic_load_n(&found, __ATOMIC_ACQUIRE);
    bool held = before & 1;
    if (before >> 1 != l.adds) {
        bool any = built_in(), all = !any || hold_library(NULL);
        for (int i = 0; i < l.n; i++) {
            bool this = hold_library(l.names[i]); /* others' too, as far as they can be seen */
            if (strncmp(base_name(l.names[i]), "_sqlite3.", 9) == 0) {
                any = true;
                all &= this;
            }
        }
        held = any && all && !l.more;
        __atomic_store_n(&found, l.adds << 1 | held, __ATOMIC_RELEASE);
    }
    while (l.n)
        free(l.names[--l.n]);
    return held;
}
