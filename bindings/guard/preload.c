/* The preload object: LD_PRELOADed into a sandboxed interpreter by init, it puts the guard in before Python starts.
 *
 * It knows nothing of Python's headers. A process that is no Python (a shell that a granted exec started) is left as it
 * is, variables included, so that a Python further down is still met. Whatever goes wrong in a Python ends the process:
 * better no program than one without its guard.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define VARIABLE "PYSANDBOXES_BOOT"

static void die(const char *what, const char *why) {
    dprintf(2, "pysandboxes: the guard cannot be put in: %s%s%s\n", what, why ? ": " : "", why ? why : "");
    _exit(125);
}

/* Undoes %XX in place. */
static void decode(char *s) {
    char *out = s;
    for (; *s; s++) {
        unsigned v;
        if (*s == '%' && sscanf(s + 1, "%2x", &v) == 1 && s[1] && s[2]) {
            *out++ = (char)v;
            s += 2;
        } else {
            *out++ = *s;
        }
    }
    *out = 0;
}

/* `number` or `number/inode`: a program that starts another has its guard's descriptors in reach. */
static int descriptor(const char *field) {
    int fd = atoi(field);
    const char *slash = strchr(field, '/');
    struct stat st;
    if (slash && (fstat(fd, &st) != 0 || (unsigned long long)st.st_ino != strtoull(slash + 1, NULL, 10)))
        die("a descriptor of the guard was closed or replaced", NULL);
    return fd;
}

__attribute__((constructor)) static void preload(void) {
    const char *value = getenv(VARIABLE);
    if (!value || !dlsym(RTLD_DEFAULT, "Py_BytesMain"))
        return;
    char *copy = strdup(value);
    if (!copy)
        die("out of memory", NULL);
    char *field[5];
    char *p = copy;
    for (int i = 0; i < 5; i++) {
        field[i] = p;
        p = strchr(p, ':');
        if (i < 4) {
            if (!p)
                die(VARIABLE " is malformed", NULL);
            *p++ = 0;
        } else if (p) {
            die(VARIABLE " is malformed", NULL);
        }
    }
    decode(field[3]);
    decode(field[4]);
    unsetenv(VARIABLE);
    if (field[4][0])
        setenv("LD_PRELOAD", field[4], 1);
    else
        unsetenv("LD_PRELOAD");
    void *guard = dlopen(field[3], RTLD_LAZY | RTLD_LOCAL);
    if (!guard)
        die("it does not load", dlerror());
    int (*boot)(int, int, int, const char *) = (int (*)(int, int, int, const char *))dlsym(guard, "psb_boot");
    if (!boot)
        die("it has no psb_boot", field[3]);
    if (boot(descriptor(field[0]), descriptor(field[1]), descriptor(field[2]), field[3]) != 0)
        die("it did not start", NULL);
    free(copy);
}
