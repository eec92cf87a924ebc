//go:build pyext

/* See process.h. Nothing here needs the GIL. */

#include "process.h"

#include <pthread.h>
#include <string.h>
#include <sys/resource.h>

#include "_cgo_export.h"

volatile sig_atomic_t psb_forked;

static struct sigaction sigpipe_before;
static int sigpipe_known;
static struct rlimit files_before;
static int files_known;
static pthread_once_t settled = PTHREAD_ONCE_INIT;

static void in_forked_child(void) { psb_forked = 1; }

/* Runs before Go's own constructor, which has no priority and so comes after all that have one: Go starts its runtime there, on a
 * thread of its own, and installs a handler for SIGPIPE (runtime/signal_unix.go, sigInstallGoHandler). CPython had ignored it. And it
 * raises the soft limit of open files to the hard one (os/rlimit.go), which is the application's to choose, and its children's. */
__attribute__((constructor(101))) static void before_go(void) {
    sigpipe_known = sigaction(SIGPIPE, NULL, &sigpipe_before) == 0;
    files_known = getrlimit(RLIMIT_NOFILE, &files_before) == 0;
    pthread_atfork(NULL, NULL, in_forked_child);
}

static void settle(void) {
    psbReady(); /* returns when the runtime and its init functions are done */
    if (sigpipe_known) {
        sigaction(SIGPIPE, &sigpipe_before, NULL);
    }
    if (files_known) {
        setrlimit(RLIMIT_NOFILE, &files_before);
    }
}

void psb_settle(void) { pthread_once(&settled, settle); }
