/* The call channel of a partial-mode child: frames from and to the application.
 *
 * One thread at a time reads. The thread that served the last call reads the next one, so that a single caller never
 * pays for a thread switch; the others wait as standbys. The main thread comes first whenever it is idle: what a standby
 * has read meanwhile is handed to it, since some things work on the main thread only. While one coroutine after the other is
 * called, the role is lent to the thread of the event loop (channel_loop.c). A watchdog thread (no Python state, no GIL) looks three
 * times a millisecond while calls are coming in, and promotes a standby when a frame has arrived and nobody is reading, which
 * means that a call is taking long. It sleeps when nothing has come for a while.
 */
#include "guard.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "channel.h"

#define TICK_NS 300000   /* a call that nobody reads is seen after one to two of these */
#define AWAKE_TICKS 250 /* ticks without a frame before the watchdog sleeps */

psb_channel ch = {.fd = -1,
                  .mu = PTHREAD_MUTEX_INITIALIZER,
                  .standby = PTHREAD_COND_INITIALIZER,
                  .watchdog = PTHREAD_COND_INITIALIZER};

void psb_channel_take_back(void) {
    ch.looping = false;
    if (ch.main_waits) /* else it is about to, or in a call: the watchdog finds out */
        sem_post(&ch.main);
}

static void *watch(void *unused) {
    (void)unused;
    uint64_t seen = 0;
    int quiet = 0;
    bool idle_before = false;
    for (;;) {
        struct timespec tick = {0, TICK_NS};
        nanosleep(&tick, NULL);
        pthread_mutex_lock(&ch.mu);
        if (ch.closed) {
            pthread_mutex_unlock(&ch.mu);
            return NULL;
        }
        quiet = ch.frames == seen ? quiet + 1 : 0;
        bool nobody = !ch.reading && (ch.looping || (ch.waiting > 0 && !ch.main_next));
        if (nobody && idle_before && ch.frames == seen) {
            struct pollfd p = {ch.fd, POLLIN, 0};
            if (ch.from < ch.to || poll(&p, 1, 0) == 1) {
                bool main_reads = ch.looping && ch.main_waits;
                if (ch.looping)
                    psb_channel_take_back();
                if (!main_reads && ch.waiting > 0) {
                    ch.promote = true; /* once a tick until one comes: a signal can be lost (glibc bug 25847) */
                    pthread_cond_signal(&ch.standby);
                }
            }
        }
        idle_before = nobody;
        seen = ch.frames;
        while (quiet > AWAKE_TICKS && ch.reading && !ch.closed) { /* the reader is at the socket: nothing to watch */
            ch.dozing = true;
            pthread_cond_wait(&ch.watchdog, &ch.mu);
            quiet = 0;
        }
        ch.dozing = false;
        pthread_mutex_unlock(&ch.mu);
    }
}

static void forked(void) { ch.closed = ch.forked = true; }

static void start_watchdog(void) {
    pthread_t t;
    sigset_t all, old;
    pthread_attr_t attr;
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, 64 * 1024);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    sigfillset(&all); /* signals are Python's: never delivered here */
    pthread_sigmask(SIG_SETMASK, &all, &old);
    ch.started = pthread_create(&t, &attr, watch, NULL) == 0;
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    pthread_attr_destroy(&attr);
}

static void close_channel(void) {
    pthread_mutex_lock(&ch.mu);
    ch.reading = false;
    ch.closed = true;
    pthread_cond_broadcast(&ch.standby);
    sem_post(&ch.main);
    pthread_cond_signal(&ch.watchdog);
    pthread_mutex_unlock(&ch.mu);
    psb_window_close();
}

/* Ends the reading: every thread that waits for a frame comes back. What is sent is still sent. */
void psb_channel_close(void) {
    shutdown(ch.fd, SHUT_RD); /* whoever reads finds the end */
    close_channel();
}

static bool on_main(void) { return pthread_equal(pthread_self(), psb.main_thread); }

/* 1: this thread is the reader, or was handed a frame (*hand). 0: the channel is closed. -1: a signal came. */
static int claim(frame *hand) {
    pthread_mutex_lock(&ch.mu);
    if (!ch.started)
        start_watchdog();
    if (on_main()) {
        while (!ch.closed && !ch.stopping && !ch.handed && (ch.reading || ch.looping)) {
            ch.main_waits = true;
            pthread_mutex_unlock(&ch.mu);
            bool signalled = sem_wait(&ch.main) < 0 && errno == EINTR;
            pthread_mutex_lock(&ch.mu);
            if (signalled) {
                ch.main_waits = ch.main_next = false;
                pthread_mutex_unlock(&ch.mu);
                return -1;
            }
        }
        ch.main_waits = ch.main_next = false;
        if (ch.handed) {
            *hand = ch.hand;
            ch.handed = false;
            pthread_mutex_unlock(&ch.mu);
            return 1;
        }
    } else {
        if (!ch.reading && !ch.looping && ch.main_waits) { /* the main thread first */
            ch.main_next = true;
            sem_post(&ch.main);
        }
        if (ch.reading || ch.looping || ch.main_next || ch.handed) {
            ch.waiting++;
            while (!ch.closed && !(ch.promote && !ch.reading))
                pthread_cond_wait(&ch.standby, &ch.mu);
            ch.waiting--;
            ch.promote = false;
        }
    }
    int ok = !ch.closed && !(ch.stopping && on_main()); /* the main thread is not to sleep at the socket: it ends the process */
    if (ok) {
        ch.reading = true;
        ch.promote = false; /* a promotion that came too late must not keep the watchdog from the next one */
    }
    pthread_mutex_unlock(&ch.mu);
    return ok;
}

/* Gives the role up after a frame. true: the frame went to the idle main thread. */
static bool release(const frame *f, bool *spare) {
    pthread_mutex_lock(&ch.mu);
    ch.reading = false;
    ch.stopping |= f && f->kind == KIND_STOP;
    ch.frames++;
    *spare = ch.waiting > 0;
    bool give = f && ch.main_waits && !ch.handed && !on_main();
    if (give) {
        ch.hand = *f;
        ch.handed = true;
        sem_post(&ch.main);
    }
    if (ch.dozing)
        pthread_cond_signal(&ch.watchdog);
    pthread_mutex_unlock(&ch.mu);
    return give;
}

PyObject *psb_channel_recv(void) {
    frame f = {0};
    bool spare = false;
    for (;;) {
        int rc = 0;
        int ok;
        Py_BEGIN_ALLOW_THREADS;
        ok = claim(&f);
        if (ok < 0) {
            rc = -1;
        } else if (ok && f.kind) { /* handed over: whoever read it is a standby now */
            rc = 1;
            spare = true;
        } else if (ok) {
            rc = psb_channel_read(&f);
            if (rc == 0)
                close_channel();
            else if (release(rc > 0 ? &f : NULL, &spare)) {
                f = (frame){0};
                rc = 2;
            }
        }
        Py_END_ALLOW_THREADS;
        if (!ok || rc == 0) {
            free(f.payload);
            Py_RETURN_NONE;
        }
        if (rc == 1)
            break;
        if (rc < 0 && PyErr_CheckSignals() < 0)
            return NULL;
    }
    PyObject *payload = f.payload ? psb_sent_payload(f.payload, f.size) : NULL;
    free(f.payload);
    if (!payload) { /* no memory: the call has to be answered all the same */
        PyErr_Clear();
        payload = Py_NewRef(Py_None);
    }
    return Py_BuildValue("iLNO", (int)f.kind, (long long)f.id, payload, spare ? Py_True : Py_False);
}

/* Opens the channel and says READY: from here on calls are taken. 0, or -1 with an exception. */
int psb_channel_open(int fd) {
    ch.fd = fd;
    sem_init(&ch.main, 0, 0);
    pthread_atfork(NULL, NULL, forked);
    return psb_channel_ready(fd);
}
