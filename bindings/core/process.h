/* What a Go runtime changes in a process, and how that is undone. */
#ifndef PSB_PROCESS_H
#define PSB_PROCESS_H

#include <signal.h>

/* 1 in a process that was forked after this library was loaded. The Go runtime has one thread left there and would hang sooner or
 * later: nothing may enter Go. */
extern volatile sig_atomic_t psb_forked;

/* Waits for the Go runtime and gives SIGPIPE back the disposition it had before. Once a process; safe to call again. */
void psb_settle(void);

#endif
