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

enum { KIND_STOP = 3, KIND_PIECE = 4, KIND_READY = 10, KIND_STDOUT = 11, KIND_STDERR = 12, KIND_RESULT = 14, KIND_CHUNK = 19 };
#define PART (1 << 20)          /* bytes of a payload in one frame */
#define FRAME_MAX (PART + 64)   /* bytes of a frame's body */
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
    pthread_mutex_t mu, send_mu;
    pthread_cond_t standby, main, watchdog;
    bool reading, closed, forked, promote, dozing, started;
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
        .send_mu = PTHREAD_MUTEX_INITIALIZER,
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
}

static bool on_main(void) { return pthread_equal(pthread_self(), psb.main_thread); }

/* Becomes the reader (true), is handed a frame (true, *hand), or learns that the channel is closed (false). */
static bool claim(frame *hand) {
    pthread_mutex_lock(&ch.mu);
    if (!ch.started)
        start_watchdog();
    if (on_main()) {
        while (!ch.closed && !ch.handed && ch.reading) {
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
    bool ok = !ch.closed;
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

/* A payload that came in PIECE frames: one call's at a time, since the application sends a call's parts in a row. */
typedef struct {
    uint8_t *buf;
    size_t len;
    int64_t id;
} pieces;

/* Reads one whole call. 1: *payload holds it; 0: closed; -1: interrupted. */
static int read_frame(frame *f) {
    static pieces part; /* the reader's role guards it */
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
        psb_text data = fields > 2 ? mp_read_text(&r) : (psb_text){"", 0};
        if (rc == 0 || r.bad) {
            free(body);
            return 0;
        }
        if (f->kind == KIND_PIECE || part.buf) {
            if (part.buf && part.id != f->id) { /* a CANCEL or STOP between the parts passes as it is */
                f->payload = NULL;
                f->size = 0;
                free(body);
                return 1;
            }
            uint8_t *grown = part.len + data.n <= PAYLOAD_MAX ? realloc(part.buf, part.len + data.n + 1) : NULL;
            if (!grown) {
                free(body);
                return 0;
            }
            memcpy(grown + part.len, data.s, data.n);
            part = (pieces){grown, part.len + data.n, f->id};
            free(body);
            if (f->kind == KIND_PIECE)
                continue;
            f->payload = part.buf;
            f->size = part.len;
            part = (pieces){0};
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
            if (rc > 0 && f.kind == KIND_STOP)
                rc = 0;
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
    PyObject *bytes = f.payload ? PyBytes_FromStringAndSize((char *)f.payload, (Py_ssize_t)f.size) : Py_NewRef(Py_None);
    free(f.payload);
    return bytes ? Py_BuildValue("iLNO", (int)f.kind, (long long)f.id, bytes, spare ? Py_True : Py_False) : NULL;
}

/* ---- sending ---- */

static bool write_all(struct iovec *iov, int n) {
    while (n) {
        struct msghdr m = {.msg_iov = iov, .msg_iovlen = (size_t)n};
        ssize_t w = sendmsg(ch.fd, &m, MSG_NOSIGNAL);
        if (w < 0 && errno == EINTR)
            continue;
        if (w <= 0)
            return false;
        while (n && (size_t)w >= iov->iov_len) {
            w -= (ssize_t)iov->iov_len;
            iov++;
            n--;
        }
        if (n) {
            iov->iov_base = (char *)iov->iov_base + w;
            iov->iov_len -= (size_t)w;
        }
    }
    return true;
}

/* One frame [kind, id, data?, more?]; the mutex keeps frames whole, and is taken anew for each part of a large result so
 * that a small one gets in between. */
static bool send_frame(int kind, int64_t id, const Py_buffer *data, size_t from, size_t n, const Py_buffer *more, bool two) {
    uint8_t head[64], tail[16];
    mp_writer h = {head, 4, sizeof head, false, true}, t = {tail, 0, sizeof tail, false, true};
    mp_array(&h, two ? 4 : data->buf ? 3 : 2);
    mp_int(&h, kind);
    mp_int(&h, id);
    if (data->buf) {
        uint8_t bin[5] = {0xc6, (uint8_t)(n >> 24), (uint8_t)(n >> 16), (uint8_t)(n >> 8), (uint8_t)n};
        mp_raw(&h, bin, 5);
    } else if (two) {
        mp_nil(&h);
    }
    size_t more_len = more->buf ? (size_t)more->len : 0;
    if (two && more->buf) {
        uint8_t bin[5] = {0xc6, (uint8_t)(more_len >> 24), (uint8_t)(more_len >> 16), (uint8_t)(more_len >> 8), (uint8_t)more_len};
        mp_raw(&t, bin, 5);
    } else if (two) {
        mp_nil(&t);
    }
    size_t body = h.len - 4 + n + t.len + more_len;
    head[0] = (uint8_t)(body >> 24), head[1] = (uint8_t)(body >> 16), head[2] = (uint8_t)(body >> 8), head[3] = (uint8_t)body;
    struct iovec iov[4];
    int k = 0;
    iov[k++] = (struct iovec){head, h.len};
    if (n)
        iov[k++] = (struct iovec){(char *)data->buf + from, n};
    if (t.len)
        iov[k++] = (struct iovec){tail, t.len};
    if (more_len)
        iov[k++] = (struct iovec){more->buf, more_len};
    pthread_mutex_lock(&ch.send_mu);
    bool ok = write_all(iov, k);
    pthread_mutex_unlock(&ch.send_mu);
    return ok;
}

PyObject *psb_channel_send(PyObject *args) {
    int kind;
    long long id;
    PyObject *data_o = Py_None, *more_o = NULL;
    if (!PyArg_ParseTuple(args, "iL|OO:send", &kind, &id, &data_o, &more_o))
        return NULL;
    if (ch.fd < 0 || ch.forked) {
        PyObject *cls = psb_exception_class("SandBoxError");
        if (cls)
            PyErr_SetString(cls, "this process has no channel to the application (a fork does not inherit it)");
        return NULL;
    }
    Py_buffer data = {0}, more = {0};
    if (data_o != Py_None && PyObject_GetBuffer(data_o, &data, PyBUF_SIMPLE) < 0)
        return NULL;
    if (more_o && more_o != Py_None && PyObject_GetBuffer(more_o, &more, PyBUF_SIMPLE) < 0) {
        PyBuffer_Release(&data);
        return NULL;
    }
    bool ok = true, two = more_o != NULL;
    size_t len = data_o != Py_None ? (size_t)data.len : 0, from = 0;
    if (data_o != Py_None && !data.buf)
        data.buf = "";
    if (more.buf && (size_t)more.len + len > PART)
        two = true, ok = false;
    if (!ok) {
        PyErr_SetString(PyExc_ValueError, "send: an exception's two parts must fit one frame");
    } else {
        Py_BEGIN_ALLOW_THREADS;
        while (ok && kind == KIND_RESULT && len - from > PART) {
            ok = send_frame(KIND_CHUNK, id, &data, from, PART, &more, false);
            from += PART;
        }
        while (ok && (kind == KIND_STDOUT || kind == KIND_STDERR) && len - from > PART) {
            ok = send_frame(kind, id, &data, from, PART, &more, false);
            from += PART;
        }
        ok = ok && len - from <= PART && send_frame(kind, id, &data, from, len - from, &more, two);
        Py_END_ALLOW_THREADS;
        if (!ok)
            PyErr_SetString(PyExc_BrokenPipeError, "the application does not take what the sandbox sends");
    }
    if (data.obj)
        PyBuffer_Release(&data);
    if (more.obj)
        PyBuffer_Release(&more);
    if (!ok)
        return NULL;
    Py_RETURN_NONE;
}

/* Opens the channel and says READY: from here on calls are taken. 0, or -1 with an exception. */
int psb_channel_open(int fd) {
    uint8_t buf[256];
    mp_writer w = {buf, 4, sizeof buf, false, true};
    ch.fd = fd;
    pthread_atfork(NULL, NULL, forked);
    mp_array(&w, 5);
    mp_int(&w, KIND_READY);
    mp_int(&w, 0);
    mp_str(&w, PSB_VERSION, strlen(PSB_VERSION));
    mp_int(&w, getpid());
    mp_str(&w, PY_VERSION, strlen(PY_VERSION));
    size_t body = w.len - 4;
    buf[0] = buf[1] = 0, buf[2] = (uint8_t)(body >> 8), buf[3] = (uint8_t)body;
    struct iovec iov = {buf, w.len};
    if (!w.bad && write_all(&iov, 1))
        return 0;
    PyErr_SetString(PyExc_BrokenPipeError, "the application does not take what the sandbox sends");
    return -1;
}
