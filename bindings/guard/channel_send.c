/* The call channel's other direction: frames to the application, from any thread. */
#include "guard.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdio_ext.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    KIND_READY = 10,
    KIND_STDOUT = 11,
    KIND_STDERR = 12,
    KIND_LOG = 13,
    KIND_RESULT = 14,
    KIND_EXCEPTION = 15,
    KIND_CANCELLED = 16,
    KIND_BUFFER = 17,
    KIND_FILL = 18,
    KIND_CHUNK = 19
};

/* A thread that waits for its turn to write, on its own stack: whoever writes before it wakes it and nobody else. */
typedef struct writer {
    struct writer *next;
    pthread_cond_t go;
    bool turn;
} writer;

static struct {
    int fd;
    bool forked; /* this process is a copy: the channel is its parent's */
    pthread_mutex_t mu;
    bool writing;
    writer *first, *last; /* frames are written in the order in which their threads came */
} out = {.fd = -1, .mu = PTHREAD_MUTEX_INITIALIZER};

static void forked(void) { out.forked = true; }

/* By send, not sendmsg: that one can bear an address, so where datagrams are allowed the supervisor is asked about each. */
static bool write_one(const char *from, size_t n) {
    while (n) {
        ssize_t w = send(out.fd, from, n, MSG_NOSIGNAL);
        if (w < 0 && errno == EINTR)
            continue;
        if (w <= 0)
            return false;
        from += w;
        n -= (size_t)w;
    }
    return true;
}

static bool write_all(struct iovec *iov, int n) {
    char together[4096]; /* a small frame is one message, which wakes its reader once */
    size_t total = 0;
    for (int i = 0; i < n; i++)
        total += iov[i].iov_len;
    if (n > 1 && total <= sizeof together) {
        size_t at = 0;
        for (int i = 0; i < n; at += iov[i++].iov_len)
            memcpy(together + at, iov[i].iov_base, iov[i].iov_len);
        return write_one(together, total);
    }
    for (int i = 0; i < n; i++)
        if (!write_one(iov[i].iov_base, iov[i].iov_len))
            return false;
    return true;
}

/* A bare mutex would go to the thread that has just given it back: a large result would keep every small one waiting. */
static bool write_in_turn(struct iovec *iov, int n) {
    pthread_mutex_lock(&out.mu);
    if (out.writing) {
        writer me = {.go = PTHREAD_COND_INITIALIZER};
        *(out.first ? &out.last->next : &out.first) = &me;
        out.last = &me;
        while (!me.turn) /* who sets it leaves `writing` as it is, and has done with `me` before the mutex is free */
            pthread_cond_wait(&me.go, &out.mu);
        pthread_cond_destroy(&me.go);
    }
    out.writing = true;
    pthread_mutex_unlock(&out.mu);
    bool ok = write_all(iov, n);
    pthread_mutex_lock(&out.mu);
    writer *next = out.first;
    if (next) {
        out.first = next->next;
        next->turn = true;
        pthread_cond_signal(&next->go);
    } else {
        out.writing = false;
    }
    pthread_mutex_unlock(&out.mu);
    return ok;
}

/* Opens a buffer: [kind, id, size, writable]. */
static bool send_buffer_head(int64_t id, const Py_buffer *buffer) {
    uint8_t head[64];
    mp_writer w = {head, 4, sizeof head, false, true, 0};
    mp_array(&w, 4);
    mp_int(&w, KIND_BUFFER);
    mp_int(&w, id);
    mp_int(&w, buffer->len);
    mp_bool(&w, !buffer->readonly);
    head[0] = head[1] = head[2] = 0, head[3] = (uint8_t)(w.len - 4);
    struct iovec iov = {head, w.len};
    return write_in_turn(&iov, 1);
}

/* One frame [kind, id, data?, more?]. Each part of a large result is a frame, so that a small one gets in between. Output waits for
 * its window, before it takes a turn at the socket. */
static bool send_frame(int kind, int64_t id, const Py_buffer *data, size_t from, size_t n, const Py_buffer *more, bool two) {
    if (kind == KIND_STDOUT || kind == KIND_STDERR || kind == KIND_LOG)
        psb_window_spend(id, n);
    else if (kind == KIND_RESULT || kind == KIND_EXCEPTION || kind == KIND_CANCELLED)
        psb_window_forget(id);
    uint8_t head[64], tail[16];
    mp_writer h = {head, 4, sizeof head, false, true, 0}, t = {tail, 0, sizeof tail, false, true, 0};
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
    return write_in_turn(iov, k);
}

/* The buffers of a result, straight from the objects that hold them: their exports keep them where they are. Each is a list's
 * item, so the list must not be changed by anybody. 0, or -1 with an exception. */
static int send_buffers(int64_t id, PyObject *list) {
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list); i++) {
        Py_buffer buffer, none = {0};
        PyObject *item = Py_NewRef(PyList_GET_ITEM(list, i)); /* a __buffer__ of the program's may take it out of the list */
        int got = PyObject_GetBuffer(item, &buffer, PyBUF_SIMPLE);
        Py_DECREF(item);
        if (got < 0)
            return -1;
        bool ok;
        Py_BEGIN_ALLOW_THREADS;
        ok = send_buffer_head(id, &buffer);
        for (size_t from = 0, size = (size_t)buffer.len; ok && from < size; from += PSB_PART)
            ok = send_frame(KIND_FILL, id, &buffer, from, size - from < PSB_PART ? size - from : PSB_PART, &none, false);
        Py_END_ALLOW_THREADS;
        PyBuffer_Release(&buffer);
        if (!ok) {
            PyErr_SetString(PyExc_BrokenPipeError, "the application does not take what the sandbox sends");
            return -1;
        }
    }
    return 0;
}

/* What C code of a call has printed goes out before the call's end, so that it is known whose it is. Not where another thread is at
 * it: its own end sends it. */
static void flush_stdio(void) {
    if (__fpending(stdout) == 0 || ftrylockfile(stdout) != 0)
        return;
    fflush_unlocked(stdout);
    funlockfile(stdout);
}

PyObject *psb_channel_send(PyObject *args) {
    int kind;
    long long id;
    PyObject *data_o = Py_None, *more_o = NULL, *buffers = NULL;
    if (!PyArg_ParseTuple(args, "iL|OOO!:send", &kind, &id, &data_o, &more_o, &PyList_Type, &buffers))
        return NULL;
    if (out.fd < 0 || out.forked) {
        PyObject *cls = psb_exception_class("SandBoxError");
        if (cls)
            PyErr_SetString(cls, "this process has no channel to the application (a fork does not inherit it)");
        return NULL;
    }
    if (buffers && send_buffers(id, buffers) < 0)
        return NULL;
    if (kind == KIND_RESULT)
        more_o = NULL;
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
    if (more.buf && (size_t)more.len + len > PSB_PART)
        two = true, ok = false;
    if (!ok) {
        PyErr_SetString(PyExc_ValueError, "send: an exception's two parts must fit one frame");
    } else {
        Py_BEGIN_ALLOW_THREADS;
        if (kind == KIND_RESULT || kind == KIND_EXCEPTION || kind == KIND_CANCELLED)
            flush_stdio();
        while (ok && kind == KIND_RESULT && len - from > PSB_PART) {
            ok = send_frame(KIND_CHUNK, id, &data, from, PSB_PART, &more, false);
            from += PSB_PART;
        }
        while (ok && (kind == KIND_STDOUT || kind == KIND_STDERR) && len - from > PSB_PART) {
            ok = send_frame(kind, id, &data, from, PSB_PART, &more, false);
            from += PSB_PART;
        }
        ok = ok && len - from <= PSB_PART && send_frame(kind, id, &data, from, len - from, &more, two);
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

/* Takes the socket and says READY. 0, or -1 with an exception. */
int psb_channel_ready(int fd) {
    uint8_t buf[256];
    mp_writer w = {buf, 4, sizeof buf, false, true, 0};
    out.fd = fd;
    /* Fewer turns of writer and reader for a large result; the kernel gives what net.core.wmem_max allows. */
    int room = PSB_PART;
    setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &room, sizeof room);
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
