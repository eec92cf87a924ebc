/* The call channel of a partial-mode child: frames from and to the application.
 *
 * One thread at a time reads. The thread that served the last call reads the next one, so that a single caller never
 * pays for a thread switch; the others wait as standbys. The main thread comes first whenever it is idle: what a standby
 * has read meanwhile is handed to it, since some things work on the main thread only. A watchdog thread (no Python state, no GIL) looks once a
 * millisecond while calls are coming in, and promotes a standby when a frame has arrived and nobody is reading, which
 * means that a call is taking long. It sleeps when nothing has come for a while.
 */
#include "guard.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { KIND_CALL = 1, KIND_CANCEL = 2, KIND_STOP = 3, KIND_PIECE = 4, KIND_TAKEN = 5 };
#define FRAME_MAX (PSB_PART + 64) /* bytes of a frame's body */
#define PAYLOAD_MAX (1LL << 31) /* bytes of a whole payload */
#define SPIN_NS 40000           /* how long a reader looks before it sleeps */
#define SPIN_MOST 8             /* hits that are remembered */
#define SPIN_RETRY 32           /* sleeps after which it is tried again */
#define AWAKE_TICKS 100         /* ticks without a frame before the watchdog sleeps */

typedef struct {
    int64_t kind, id;
    uint8_t *payload;
    size_t size;
} frame;

static struct {
    int fd;
    pthread_mutex_t mu;
    pthread_cond_t standby, main, watchdog;
    bool reading, closed, promote, dozing, started;
    bool stopping; /* STOP has come: no more calls, but the running ones go on, and what is said of them is read */
    bool main_waits, main_next; /* the main thread is idle; it is to become the reader */
    bool handed;                /* `hand` holds a frame for the main thread */
    frame hand;
    int waiting; /* standbys */
    uint64_t frames;
    /* read ahead; the reader's role guards these */
    uint8_t buf[1 << 16];
    size_t from, to;
} ch = {.fd = -1,
        .mu = PTHREAD_MUTEX_INITIALIZER,
        .standby = PTHREAD_COND_INITIALIZER,
        .main = PTHREAD_COND_INITIALIZER,
        .watchdog = PTHREAD_COND_INITIALIZER};

static void *watch(void *unused) {
    (void)unused;
    uint64_t seen = 0;
    int quiet = 0;
    bool idle_before = false;
    for (;;) {
        struct timespec tick = {0, 1000000};
        nanosleep(&tick, NULL);
        pthread_mutex_lock(&ch.mu);
        if (ch.closed) {
            pthread_mutex_unlock(&ch.mu);
            return NULL;
        }
        quiet = ch.frames == seen ? quiet + 1 : 0;
        bool nobody = !ch.reading && ch.waiting > 0 && !ch.promote && !ch.main_next;
        if (nobody && idle_before && ch.frames == seen) {
            struct pollfd p = {ch.fd, POLLIN, 0};
            if (ch.from < ch.to || poll(&p, 1, 0) == 1) {
                ch.promote = true;
                pthread_cond_signal(&ch.standby);
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

static void forked(void) { ch.closed = true; }

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

/* Before it sleeps a reader looks for a short while, giving the processor away in between: being woken costs more than a
 * small call takes. Looking that found nothing makes it give up for a while. The reader's role guards this. */
static ssize_t receive(void *p, size_t n) {
    static int credit = 1, slept;
    struct timespec start, now;
    if (credit == 0 && ++slept >= SPIN_RETRY) {
        slept = 0;
        credit = 1;
    }
    if (credit > 0) {
        clock_gettime(CLOCK_MONOTONIC, &start);
        do {
            ssize_t r = recv(ch.fd, p, n, MSG_DONTWAIT);
            if (r >= 0 || (errno != EAGAIN && errno != EWOULDBLOCK)) {
                credit = credit < SPIN_MOST ? credit + 1 : credit;
                return r;
            }
            sched_yield();
            clock_gettime(CLOCK_MONOTONIC, &now);
        } while ((now.tv_sec - start.tv_sec) * 1000000000L + now.tv_nsec - start.tv_nsec < SPIN_NS);
        credit--;
    }
    return recv(ch.fd, p, n, 0);
}

/* 1: read; 0: the other end is gone; -1: interrupted by a signal before the first byte. */
static int read_exact(uint8_t *out, size_t n, bool may_interrupt) {
    size_t have = 0;
    while (have < n) {
        if (ch.from < ch.to) {
            size_t k = ch.to - ch.from < n - have ? ch.to - ch.from : n - have;
            memcpy(out + have, ch.buf + ch.from, k);
            ch.from += k;
            have += k;
            continue;
        }
        bool direct = n - have >= sizeof ch.buf; /* large parts go where they belong */
        ssize_t r = direct ? recv(ch.fd, out + have, n - have, 0) : receive(ch.buf, sizeof ch.buf);
        if (r < 0 && errno == EINTR) {
            if (may_interrupt && have == 0)
                return -1;
            continue;
        }
        if (r <= 0)
            return 0;
        if (direct) {
            have += (size_t)r;
        } else {
            ch.from = 0;
            ch.to = (size_t)r;
        }
    }
    return 1;
}

static void close_channel(void) {
    pthread_mutex_lock(&ch.mu);
    ch.reading = false;
    ch.closed = true;
    pthread_cond_broadcast(&ch.standby);
    pthread_cond_signal(&ch.main);
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

/* Becomes the reader (true), is handed a frame (true, *hand), or learns that the channel is closed (false). */
static bool claim(frame *hand) {
    pthread_mutex_lock(&ch.mu);
    if (!ch.started)
        start_watchdog();
    if (on_main()) {
        while (!ch.closed && !ch.stopping && !ch.handed && ch.reading) {
            ch.main_waits = true;
            pthread_cond_wait(&ch.main, &ch.mu);
        }
        ch.main_waits = ch.main_next = false;
        if (ch.handed) {
            *hand = ch.hand;
            ch.handed = false;
            pthread_mutex_unlock(&ch.mu);
            return true;
        }
    } else {
        if (!ch.reading && ch.main_waits) { /* the main thread first */
            ch.main_next = true;
            pthread_cond_signal(&ch.main);
        }
        if (ch.reading || ch.main_next || ch.handed) {
            ch.waiting++;
            while (!ch.closed && !(ch.promote && !ch.reading))
                pthread_cond_wait(&ch.standby, &ch.mu);
            ch.waiting--;
            ch.promote = false;
        }
    }
    bool ok = !ch.closed && !(ch.stopping && on_main()); /* the main thread is not to sleep at the socket: it ends the process */
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
        pthread_cond_signal(&ch.main);
    }
    if (ch.dozing)
        pthread_cond_signal(&ch.watchdog);
    pthread_mutex_unlock(&ch.mu);
    return give;
}

/* A payload that comes in PIECE frames, with others and whole calls in between. */
typedef struct pieces {
    struct pieces *next;
    uint8_t *buf;
    size_t len;
    int64_t id;
    bool lost; /* there was no memory for it: the call is taken without its payload, and fails by that */
} pieces;

/* Appends to a payload, or gives the whole of it up: a call that is too large for this process must not end it. */
static void append(pieces *part, psb_text data) {
    uint8_t *grown = NULL;
    if (!part->lost && part->len + data.n <= PAYLOAD_MAX)
        grown = realloc(part->buf, part->len + data.n + 1);
    if (!grown) {
        free(part->buf);
        part->buf = NULL;
        part->lost = true;
        return;
    }
    memcpy(grown + part->len, data.s, data.n);
    part->buf = grown;
    part->len += data.n;
}

static pieces *unfinished; /* the reader's role guards it */

/* Where the link to the call's pieces is, or would be. */
static pieces **pieces_of(int64_t id) {
    pieces **at = &unfinished;
    while (*at && (*at)->id != id)
        at = &(*at)->next;
    return at;
}

/* Keeps a part of a payload. false: there is not even memory to know of it. */
static bool keep(int64_t id, psb_text data) {
    pieces **at = pieces_of(id);
    if (!*at && !(*at = calloc(1, sizeof **at)))
        return false;
    (*at)->id = id;
    append(*at, data);
    return true;
}

/* The last part of a payload has come: the whole goes to the frame. */
static void finish(pieces **at, psb_text data, frame *f) {
    pieces *part = *at;
    append(part, data);
    f->payload = part->buf;
    f->size = part->len;
    *at = part->next;
    free(part);
}

/* Reads one whole call. 1: *payload holds it, NULL where there was no memory for it; 0: closed; -1: interrupted. */
static int read_frame(frame *f) {
    for (;;) {
        uint8_t head[4];
        int rc = read_exact(head, 4, true);
        if (rc <= 0)
            return rc;
        uint32_t n = (uint32_t)head[0] << 24 | (uint32_t)head[1] << 16 | (uint32_t)head[2] << 8 | head[3];
        uint8_t *body = n <= FRAME_MAX ? malloc(n ? n : 1) : NULL;
        if (!body)
            return 0;
        rc = read_exact(body, n, false);
        mp_reader r = {body, body + n, false};
        uint32_t fields = mp_read_array(&r);
        f->kind = mp_read_int(&r);
        f->id = fields > 1 ? mp_read_int(&r) : 0;
        if (f->kind == KIND_TAKEN) {
            int64_t taken = mp_read_int(&r);
            free(body);
            if (rc == 0 || r.bad)
                return 0;
            psb_window_taken(f->id, taken);
            continue;
        }
        psb_text data = fields > 2 ? mp_read_text(&r) : (psb_text){"", 0};
        if (rc == 0 || r.bad) {
            free(body);
            return 0;
        }
        if (f->kind == KIND_PIECE) {
            bool kept = keep(f->id, data);
            free(body);
            if (!kept)
                return 0;
            continue;
        }
        if (f->kind == KIND_CALL)
            psb_window_begin(f->id);
        else if (f->kind == KIND_CANCEL)
            psb_window_free(f->id);
        pieces **at = f->kind == KIND_CALL && unfinished ? pieces_of(f->id) : NULL;
        if (at && *at) {
            finish(at, data, f);
            free(body);
            return 1;
        }
        memmove(body, data.s, data.n);
        f->payload = body;
        f->size = data.n;
        return 1;
    }
}

PyObject *psb_channel_recv(void) {
    frame f = {0};
    bool spare = false;
    for (;;) {
        int rc = 0;
        bool ok;
        Py_BEGIN_ALLOW_THREADS;
        ok = claim(&f);
        if (ok && f.kind) { /* handed over: whoever read it is a standby now */
            rc = 1;
            spare = true;
        } else if (ok) {
            rc = read_frame(&f);
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
    pthread_atfork(NULL, NULL, forked);
    return psb_channel_ready(fd);
}
