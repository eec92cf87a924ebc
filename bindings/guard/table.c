/* What needs no question: the snapshot's tables and the cache of answers.
 *
 * Text sets with open addressing. The snapshot is filled at boot and then only read; the cache holds what the engine has
 * allowed (or, in a learning run, what was reported already) under its exact text and is emptied when it is full.
 * Refusals are never cached: each is asked, so that each is recorded.
 */
#include "guard.h"

#include <string.h>

typedef struct {
    const char *s; /* NULL: free */
    uint32_t n;
    uint16_t bits, flags;
    uint64_t hash;
} slot;

typedef struct {
    slot *slots;
    size_t cap, used; /* cap is a power of two */
} set;

static set files, imports, imports_deny;
static bool all_imports, deny_all_imports;
static uint64_t calls[32];

#define FNV_BASIS 1469598103934665603ULL
#define FNV_PRIME 1099511628211ULL

static inline uint64_t step(uint64_t h, char c) { return (h ^ (uint8_t)c) * FNV_PRIME; }

uint64_t psb_hash(const char *s, size_t n) {
    uint64_t h = FNV_BASIS;
    for (size_t i = 0; i < n; i++)
        h = step(h, s[i]);
    return h;
}

static slot *find(const set *t, const char *s, size_t n, uint64_t h) {
    if (!t->cap)
        return NULL;
    for (size_t i = (h ^ h >> 32) & (t->cap - 1);; i = (i + 1) & (t->cap - 1)) {
        slot *e = &t->slots[i];
        if (!e->s)
            return e;
        if (e->hash == h && e->n == n && memcmp(e->s, s, n) == 0)
            return e;
    }
}

static slot *insert(set *t, const char *s, size_t n) {
    if (t->used * 2 >= t->cap) {
        set grown = {NULL, t->cap ? t->cap * 2 : 64, t->used};
        grown.slots = calloc(grown.cap, sizeof(slot));
        if (!grown.slots)
            return NULL;
        for (size_t i = 0; i < t->cap; i++)
            if (t->slots[i].s)
                *find(&grown, t->slots[i].s, t->slots[i].n, t->slots[i].hash) = t->slots[i];
        free(t->slots);
        *t = grown;
    }
    uint64_t h = psb_hash(s, n);
    slot *e = find(t, s, n, h);
    if (!e->s) {
        *e = (slot){s, (uint32_t)n, 0, 0, h};
        t->used++;
    }
    return e;
}

/* ---- files ---- */

int psb_table_add_file(psb_text path, int bits, int flags) {
    if (!path.n || path.s[0] != '/')
        return -1;
    size_t n = path.n == 1 ? 0 : path.n; /* "/" is the empty prefix */
    slot *e = insert(&files, path.s, n);
    if (!e)
        return -1;
    if (flags & PSB_EXACT) {
        e->bits |= (uint16_t)(bits << 4); /* the high bits hold for this very path only */
    } else {
        e->bits |= (uint16_t)bits;
    }
    e->flags |= (uint16_t)flags;
    for (size_t i = n; i-- > 0;) {
        if (path.s[i] == '/') {
            e = insert(&files, path.s, i);
            if (!e)
                return -1;
            e->bits |= PSB_ANCESTOR << 4;
        }
    }
    return 0;
}

/* need: PSB_READ, PSB_WRITE, or PSB_READ|PSB_ANCESTOR (metadata: an ancestor of what is exposed may be seen too). */
bool psb_file_allowed(const char *path, size_t n, int need) {
    bool ancestor_ok = need & PSB_ANCESTOR;
    need &= PSB_READ | PSB_WRITE;
    if (n == 1 && path[0] == '/')
        n = 0;
    uint64_t h = FNV_BASIS;
    for (size_t i = 0; i <= n; i++) {
        if (i == n || path[i] == '/') {
            slot *e = find(&files, path, i, h);
            if (e && e->s) {
                bool runtime = e->flags & PSB_RUNTIME;
                int bits = e->bits & 15;
                if (i == n) {
                    bits |= e->bits >> 4 & 3;
                    if (ancestor_ok && e->bits >> 4 & PSB_ANCESTOR)
                        return true;
                }
                if ((bits & need) == need && (runtime || !psb.ignore))
                    return true;
            }
        }
        if (i < n)
            h = step(h, path[i]);
    }
    return false;
}

/* Do entries with all of these bits and flags cover the path? */
static bool covered(const char *path, size_t n, int bits, int flags) {
    uint64_t h = FNV_BASIS;
    for (size_t i = 0; i <= n; i++) {
        if (i == n || path[i] == '/') {
            slot *e = find(&files, path, i, h);
            if (e && e->s && (e->flags & flags) == flags && ((e->bits | (i == n ? e->bits >> 4 : 0)) & bits) == bits)
                return true;
        }
        if (i < n)
            h = step(h, path[i]);
    }
    return false;
}

bool psb_file_runtime(const char *path, size_t n) { return covered(path, n, PSB_READ, PSB_RUNTIME) && !covered(path, n, PSB_WRITE, 0); }

bool psb_file_in_runtime(const char *path, size_t n) { return covered(path, n, PSB_READ, PSB_RUNTIME); }

bool psb_file_exposed(const char *path, size_t n, int need) { return covered(path, n, need & (PSB_READ | PSB_WRITE), 0); }

bool psb_file_writable(const char *path, size_t n) { return covered(path, n, PSB_WRITE, 0); }

bool psb_file_made(const char *path, size_t n) {
    slot *e = find(&files, path, n, psb_hash(path, n));
    bool made = e && e->s && e->flags & PSB_MADE;
    if (made)
        e->flags &= (uint16_t)~PSB_MADE;
    return made;
}

PyObject *psb_file_names(const char *folder, size_t n) {
    PyObject *names = PySet_New(NULL);
    if (n == 1)
        n = 0; /* the root */
    for (size_t i = 0; names && i < files.cap; i++) {
        const slot *e = &files.slots[i];
        if (!e->s || e->n <= n + 1 || e->s[n] != '/' || memcmp(e->s, folder, n) != 0)
            continue;
        const char *name = e->s + n + 1, *end = memchr(name, '/', e->n - n - 1);
        PyObject *o = PyUnicode_DecodeFSDefaultAndSize(name, end ? end - name : (Py_ssize_t)(e->n - n - 1));
        if (!o || PySet_Add(names, o) < 0)
            Py_CLEAR(names);
        Py_XDECREF(o);
    }
    PyObject *list = names ? PySequence_List(names) : NULL;
    Py_XDECREF(names);
    return list;
}

/* ---- imports ---- */

int psb_table_add_import(psb_text name, bool deny) {
    if (name.n == 1 && name.s[0] == '*') {
        if (deny)
            deny_all_imports = true;
        else
            all_imports = true;
        return 0;
    }
    return insert(deny ? &imports_deny : &imports, name.s, name.n) ? 0 : -1;
}

static bool names_cover(const set *t, const char *name, size_t n) {
    uint64_t h = FNV_BASIS;
    for (size_t i = 0; i <= n; i++) {
        if (i == n || name[i] == '.') {
            slot *e = find(t, name, i, h);
            if (e && e->s)
                return true;
        }
        if (i < n)
            h = step(h, name[i]);
    }
    return false;
}

bool psb_import_denies(void) { return deny_all_imports || imports_deny.used; }

bool psb_import_denied(const char *name, size_t n) {
    return deny_all_imports || (imports_deny.used && names_cover(&imports_deny, name, n));
}

bool psb_import_allowed(const char *name, size_t n) {
    if (psb_import_denied(name, n))
        return false;
    return all_imports || names_cover(&imports, name, n);
}

/* ---- calls ---- */

int psb_table_add_call(psb_text name) {
    int id = psb_call_id(name.s, name.n);
    if (id >= 0 && (size_t)id < sizeof calls * 8)
        calls[id / 64] |= 1ULL << id % 64;
    return 0; /* a name that this guard does not know allows nothing */
}

bool psb_call_allowed(int call) {
    return call >= 0 && (size_t)call < sizeof calls * 8 && (calls[call / 64] >> call % 64 & 1);
}

/* ---- answers ---- */

#define CACHE_MAX 8192
static set cache;
static char scratch[PSB_PATH_MAX + 1];

static const char *keyed(char kind, const char *text, size_t *n) {
    if (*n + 1 > sizeof scratch)
        return NULL;
    scratch[0] = kind;
    memcpy(scratch + 1, text, *n);
    *n += 1;
    return scratch;
}

bool psb_seen(char kind, const char *text, size_t n) {
    psb_lock();
    const char *key = keyed(kind, text, &n);
    const slot *e = key ? find(&cache, key, n, psb_hash(key, n)) : NULL;
    bool seen = e && e->s;
    psb_unlock();
    return seen;
}

static void remember(char kind, const char *text, size_t n) {
    const char *key = keyed(kind, text, &n);
    if (!key)
        return;
    if (cache.used >= CACHE_MAX) {
        for (size_t i = 0; i < cache.cap; i++)
            free((char *)cache.slots[i].s);
        memset(cache.slots, 0, cache.cap * sizeof(slot));
        cache.used = 0;
    }
    char *copy = malloc(n);
    if (!copy)
        return;
    memcpy(copy, key, n);
    slot *e = insert(&cache, copy, n);
    if (!e || e->s != copy)
        free(copy);
}

void psb_remember(char kind, const char *text, size_t n) {
    psb_lock();
    remember(kind, text, n);
    psb_unlock();
}
