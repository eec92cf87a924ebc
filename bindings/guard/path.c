/* Paths to canonical text: by their letters, or by asking the kernel where they lead. */
#include "guard.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static bool append(char *out, size_t *len, const char *s, size_t n) {
    if (*len + n + 2 > PSB_PATH_MAX) {
        errno = ENAMETOOLONG;
        return false;
    }
    memcpy(out + *len, s, n);
    *len += n;
    return true;
}

/* Adds the components of path to the canonical prefix in out ("" stands for the root). */
static bool add_components(const char *path, size_t n, char *out, size_t *len) {
    size_t i = 0;
    while (i < n) {
        size_t start = i;
        while (i < n && path[i] != '/')
            i++;
        size_t part = i - start;
        if (part == 2 && path[start] == '.' && path[start + 1] == '.') {
            while (*len && out[*len - 1] != '/')
                --*len;
            if (*len)
                --*len;
        } else if (part && !(part == 1 && path[start] == '.')) {
            if (!append(out, len, "/", 1) || !append(out, len, path + start, part))
                return false;
        }
        i++;
    }
    return true;
}

/* The path of a descriptor. Where it has none out says what it is instead, such as pipe:[5], or is "". */
static bool fd_path(int fd, char *out, size_t *len) {
    char link[64];
    out[0] = 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, out, PSB_PATH_MAX - 1);
    if (n <= 0 || n >= PSB_PATH_MAX - 1 || out[0] != '/') {
        errno = fcntl(fd, F_GETFD) < 0 ? EBADF : ENOTDIR;
        return false;
    }
    *len = (size_t)n;
    return true;
}

static bool finish(char *out, size_t len, size_t *result) {
    if (!len)
        out[len++] = '/';
    out[len] = 0;
    *result = len;
    return true;
}

/* The folder that a path starts from, "" for the root. */
static bool base(int dir_fd, const char *path, size_t n, char *out, size_t *len) {
    *len = 0;
    if (n && path[0] == '/')
        return true;
    if (dir_fd >= 0) {
        if (!fd_path(dir_fd, out, len))
            return false;
    } else {
        if (!getcwd(out, PSB_PATH_MAX) || out[0] != '/')
            return false; /* "(unreachable)": the folder is gone or outside the root */
        *len = strlen(out);
    }
    if (*len == 1)
        *len = 0;
    return true;
}

bool psb_path_lexical(int dir_fd, const char *path, size_t n, char *out, size_t *result) {
    size_t len;
    if (!base(dir_fd, path, n, out, &len) || !add_components(path, n, out, &len))
        return false;
    return finish(out, len, result);
}

bool psb_path_literal(int dir_fd, const char *path, size_t n, char *out, size_t *result) {
    size_t len;
    if (!base(dir_fd, path, n, out, &len))
        return false;
    if (n && path[0] != '/' && !append(out, &len, "/", 1))
        return false;
    if (!append(out, &len, path, n))
        return false;
    while (len > 1 && out[len - 1] == '/') /* "x/" is x, or fails where x is no folder */
        len--;
    return finish(out, len, result);
}

/* Why it cannot be known where a path leads, or 0: for want of memory, or since from the root it is longer than the kernel takes
 * any path (a program may go down into such a folder step by step). To take it for one that is not there would be to go by its
 * letters. */
static __thread int unknown;

/* Where does an existing path lead? O_PATH opens follow links and need no right on the file itself. A program that has used up
 * its descriptors is answered all the same: it may have done so to be judged by letters. */
static bool existing(const char *path, char *out, size_t *len) {
    int fd = open(path, O_PATH | O_CLOEXEC);
    if (fd < 0 && errno != EMFILE && errno != ENFILE) {
        if (errno == ENOMEM || strlen(path) >= PATH_MAX)
            unknown = errno;
        return false;
    }
    bool ok = fd >= 0 && fd_path(fd, out, len);
    bool nowhere = fd >= 0 && !ok && out[0] && out[0] != '/' && out[0] != '('; /* a pipe, a socket, a namespace by its link in /proc */
    if (!ok && !nowhere) { /* no descriptor, or no /proc */
        char *real = realpath(path, NULL);
        ok = real && strlen(real) < PSB_PATH_MAX;
        if (ok) {
            *len = strlen(real);
            memcpy(out, real, *len + 1);
        } else if (fd >= 0 || errno == ENOMEM || errno == ENAMETOOLONG) { /* it is there */
            unknown = errno == ENOMEM ? ENOMEM : ENAMETOOLONG;
        }
        free(real);
    }
    if (fd >= 0)
        close(fd);
    if (ok)
        out[*len] = 0;
    return ok;
}

/* A path without a link on the way is its own letters: one system call instead of two and a half. */
static bool without_links(const char *path, char *out, size_t *len) {
    struct open_how how = {.flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_NO_SYMLINKS};
    long fd = syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof how);
    if (fd < 0)
        return false;
    close((int)fd);
    size_t n = 0;
    return !strstr(path, "/..") && add_components(path, strlen(path), out, &n) && finish(out, n, len);
}

static bool part_exists(char *path, char *end, char *out, size_t *len) {
    *end = 0;
    bool there = existing(end == path ? "/" : path, out, len);
    *end = '/';
    return there;
}

/* A slash between the two, or NULL. */
static char *slash_between(char *low, char *high) {
    char *middle = low + (high - low) / 2;
    for (char *p = middle; p > low; p--)
        if (*p == '/' && p < high)
            return p;
    return middle + 1 < high ? memchr(middle + 1, '/', (size_t)(high - middle - 1)) : NULL;
}

/* The longest part of the path, without its last name, that is there: resolved to out; the slash after it. Mostly that is all
 * of it; else what is left is halved, since beneath what is not there nothing is. */
static char *existing_part(char *path, char *out, size_t *len) {
    char *low = path, *high = strrchr(path, '/'), *at;
    if (part_exists(path, high, out, len)) {
        low = high;
    } else {
        while ((at = slash_between(low, high))) {
            if (part_exists(path, at, out, len))
                low = at;
            else
                high = at;
        }
        if (!part_exists(path, low, out, len)) { /* it has just gone: the letters alone */
            *len = 0;
            return path;
        }
    }
    if (*len == 1) /* the root */
        *len = 0;
    return low;
}

/* Paths that are no links and lead over none, by their hashes. What a program makes of one later is the kernel's business, which
 * follows every link itself: only the words of a refusal depend on this. */
static uint64_t plain[4096]; /* a power of two; one of two that share a place is asked about again */

static bool known_plain(uint64_t hash) { return plain[hash % 4096] == hash; }

bool psb_path_plain(const char *path, size_t n) { return known_plain(psb_hash(path, n)); }

/* The same question about a folder where openat2 is not to be had: it is there, and is another than its letters say. */
static bool leads_elsewhere(const char *folder, size_t n, bool *straight) {
    static __thread char real[PSB_PATH_MAX];
    size_t len;
    bool there = existing(folder, real, &len);
    unknown = 0; /* who is to know where it leads asks again */
    *straight = there && len == n && !memcmp(real, folder, n);
    return there && !*straight;
}

/* Is a link on the way that the call would follow? */
bool psb_path_linked(const char *absolute, bool follow_last) {
    static __thread char folder[PSB_PATH_MAX];
    const char *slash = strrchr(absolute, '/');
    size_t parent = slash ? (size_t)(slash - absolute) : 0;
    int before = errno;
    bool linked = false, all = follow_last;
    uint64_t hash = psb_hash(absolute, parent);
    if (parent && parent < sizeof folder && !known_plain(hash)) {
        struct open_how how = {.flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_NO_SYMLINKS};
        memcpy(folder, absolute, parent);
        folder[parent] = 0;
        long fd = syscall(SYS_openat2, AT_FDCWD, folder, &how, sizeof how);
        bool straight = fd >= 0;
        linked = fd < 0 && errno == ELOOP;
        if (fd >= 0)
            close((int)fd);
        else if (errno == ENOSYS || errno == EPERM) /* an older kernel, or what a filter answers in its place */
            linked = leads_elsewhere(folder, parent, &straight);
        if (straight)
            plain[hash % 4096] = hash;
        else
            all = false;
    }
    if (!linked && follow_last) {
        struct stat st;
        bool there = lstat(absolute, &st) == 0;
        linked = there && S_ISLNK(st.st_mode);
        if (there && !linked && all) {
            hash = psb_hash(absolute, strlen(absolute));
            plain[hash % 4096] = hash;
        }
    }
    errno = before;
    return linked;
}

/* `absolute` may hold "..", which the kernel applies after links and letters cannot. A path that does not exist resolves
 * to the part of it that does, resolved, and the rest: a component that is a dangling link leads where the link says, since
 * O_CREAT would create there, and since a program could else tell what is there beyond its links from what is not. */
static bool resolve(const char *absolute, bool follow_last, char *out, size_t *len) {
    static __thread char current[PSB_PATH_MAX], joined[PSB_PATH_MAX], target[PATH_MAX];
    size_t n = strlen(absolute);
    if (n >= sizeof current) {
        errno = ENAMETOOLONG;
        return false;
    }
    memcpy(current, absolute, n + 1);
    for (int links = 0; links < 40; links++) {
        if (follow_last && (without_links(current, out, len) || existing(current, out, len)))
            return true;
        size_t there;
        const char *cut = existing_part(current, out, &there);
        const char *name = cut + strspn(cut, "/"), *rest = name + strcspn(name, "/");
        size_t size = (size_t)(rest - name), end = there;
        if (size > NAME_MAX) {
            errno = ENAMETOOLONG;
            return false;
        }
        ssize_t t = -1;
        if (*rest || follow_last) {
            if (!append(out, &end, "/", 1) || !append(out, &end, name, size))
                return false;
            out[end] = 0;
            t = readlink(out, target, sizeof target - 1);
            if (t < 0 && end >= PATH_MAX)
                unknown = ENAMETOOLONG;
        }
        if (t < 0) /* no link: a new name in a real folder, and what would be beneath it */
            return add_components(cut, strlen(cut), out, &there) && finish(out, there, len);
        end = 0;
        if (target[0] != '/' && (!append(joined, &end, out, there) || !append(joined, &end, "/", 1)))
            return false;
        if (!append(joined, &end, target, (size_t)t) || !append(joined, &end, rest, strlen(rest)))
            return false;
        joined[end] = 0;
        memcpy(current, joined, end + 1);
    }
    errno = ELOOP;
    return false;
}

bool psb_path_resolve(const char *absolute, bool follow_last, char *out, size_t *len) {
    unknown = 0;
    bool ok = resolve(absolute, follow_last, out, len);
    if (unknown)
        errno = unknown;
    return ok && !unknown;
}
