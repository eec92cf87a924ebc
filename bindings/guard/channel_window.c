/* How far the output of a call may run ahead of whoever takes it in the application (core/transport/window.go has the same figures).
 *
 * A thread that prints more than that waits here, without the GIL, as it would for a slow terminal. TAKEN frames let it go on; whoever
 * reads the channel passes them to psb_window_taken, and never waits here itself. What a call that was given up prints is thrown
 * away by the application, so it runs free. Nothing here is Python's; a fork does not send.
 */
#include "guard.h"

#include <pthread.h>
#include <stdlib.h>

enum { WINDOW = 1 << 20, EVENT_COST = 128, CHAINS = 64 };

/* One call, from its CALL frame to its last one. */
typedef struct call {
    struct call *next;
    int64_t id, ahead;
    bool free; /* nobody takes its output any more */
} call;

static struct {
    pthread_mutex_t mu;
    pthread_cond_t more;
    bool closed; /* the application is gone: writing says so */
    call *chains[CHAINS];
} w = {.mu = PTHREAD_MUTEX_INITIALIZER, .more = PTHREAD_COND_INITIALIZER};

/* Where the link to a call is, or would be. The mutex is held. */
static call **find(int64_t id) {
    call **at = &w.chains[(uint64_t)id % CHAINS];
    while (*at && (*at)->id != id)
        at = &(*at)->next;
    return at;
}

/* A call has come. Without memory to know of it, it is not counted, and not held up. */
void psb_window_begin(int64_t id) {
    pthread_mutex_lock(&w.mu);
    call **at = find(id);
    if (!*at && (*at = calloc(1, sizeof **at)))
        (*at)->id = id;
    pthread_mutex_unlock(&w.mu);
}

/* Waits until n more bytes of a call's output may be sent, and counts them. */
void psb_window_spend(int64_t id, size_t n) {
    pthread_mutex_lock(&w.mu);
    call *c;
    for (;;) { /* looked up anew each time: another thread may have ended the call */
        c = *find(id);
        if (!c || c->free || c->ahead < WINDOW || w.closed)
            break;
        pthread_cond_wait(&w.more, &w.mu);
    }
    if (c)
        c->ahead += (int64_t)n + EVENT_COST;
    pthread_mutex_unlock(&w.mu);
}

/* The application has taken n bytes, costs included. */
void psb_window_taken(int64_t id, int64_t n) {
    pthread_mutex_lock(&w.mu);
    call *c = *find(id);
    if (c) { /* else it is over */
        c->ahead = n < c->ahead ? c->ahead - n : 0;
        pthread_cond_broadcast(&w.more);
    }
    pthread_mutex_unlock(&w.mu);
}

/* Nobody waits for the call any longer. */
void psb_window_free(int64_t id) {
    pthread_mutex_lock(&w.mu);
    call *c = *find(id);
    if (c) {
        c->free = true;
        pthread_cond_broadcast(&w.more);
    }
    pthread_mutex_unlock(&w.mu);
}

/* The call is over. */
void psb_window_forget(int64_t id) {
    pthread_mutex_lock(&w.mu);
    call **at = find(id), *c = *at;
    if (c) {
        *at = c->next;
        free(c);
    }
    pthread_mutex_unlock(&w.mu);
}

/* The application is gone: let everybody go and find that out. */
void psb_window_close(void) {
    pthread_mutex_lock(&w.mu);
    w.closed = true;
    pthread_cond_broadcast(&w.more);
    pthread_mutex_unlock(&w.mu);
}
