/* Whom a program may signal that may start programs, and no more: what it has started.
 *
 * subprocess and multiprocessing signal the number that a Popen object holds, and any number can be put there.
 */
#include "guard.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* The parent of a process, 0 where there is none, -1 where /proc is not to be read. */
static pid_t parent_of(pid_t pid) {
    char name[32], text[512];
    snprintf(name, sizeof name, "/proc/%ld/stat", (long)pid);
    FILE *f = fopen(name, "re");
    if (!f)
        return errno == ENOENT ? 0 : -1;
    size_t n = fread(text, 1, sizeof text - 1, f);
    fclose(f);
    text[n] = 0;
    char *end = strrchr(text, ')'); /* the name of the program may hold anything */
    long parent = 0;
    return end && sscanf(end + 1, " %*c %ld", &parent) == 1 ? (pid_t)parent : 0;
}

/* Is this the number of a process that this one started, or that such a one did (multiprocessing's fork server)? A child that
 * has ended keeps its number until somebody waits for it. */
bool psb_own_child(long pid) {
    enum { DEPTH = 16 };
    siginfo_t info;
    if (pid <= 0 || pid != (pid_t)pid)
        return false; /* a group */
    if (waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0)
        return true;
    pid_t own = getpid(), at = (pid_t)pid;
    for (int i = 0; i < DEPTH && at > 1; i++)
        if ((at = parent_of(at)) == own)
            return true;
    return at < 0 && psb.signals_held; /* the kernel keeps /proc from us, and signals inside the sandbox */
}
