/* The call channel as the event loop of a sandboxed interpreter reads it.
 *
 * A coroutine that another thread has taken pays for two thread switches. So the role of the reader is lent to the loop's thread while
 * coroutines are called, and that thread reads between two steps of its tasks. It takes calls whose functions are known to
 * be coroutine functions, for which there is no need of any other thread. What else comes stays in the buffer, and the role
 * goes back to the threads in channel.c. So it does when a task keeps the loop from reading: the watchdog sees to that.
 *
 * Everything here runs on the loop's thread with the GIL, but for psb_channel_lend; no lock is held while the GIL is waited for.
 */
#include "guard.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "channel.h"

PyObject *psb_channel_lend(void) {
    pthread_mutex_lock(&ch.mu);
    bool lent = ch.started && !ch.closed && !ch.stopping && !ch.reading && !ch.looping && !ch.handed && !ch.promote && !ch.main_next;
    if (lent)
        ch.looping = true;
    pthread_mutex_unlock(&ch.mu);
    return PyLong_FromLong(lent ? ch.fd : -1);
}

/* Goes to the socket, or leaves it. False: the role is not ours any more, or another thread uses it, as a program can that calls
 * these functions itself: only who went there leaves. */
static bool at_socket(bool there) {
    pthread_mutex_lock(&ch.mu);
    bool ours = ch.looping && !ch.closed && (there ? !ch.reading : ch.reading && pthread_equal(ch.at_socket, pthread_self()));
    if (ours) {
        ch.reading = there;
        ch.at_socket = pthread_self();
    }
    if (ch.dozing && !there)
        pthread_cond_signal(&ch.watchdog);
    pthread_mutex_unlock(&ch.mu);
    return ours;
}

PyObject *psb_channel_look(void) {
    if (!at_socket(true))
        Py_RETURN_FALSE;
    if (ch.from < ch.to)
        Py_RETURN_TRUE;
    ssize_t r;
    Py_BEGIN_ALLOW_THREADS;
    r = psb_channel_glance(ch.buf, sizeof ch.buf);
    Py_END_ALLOW_THREADS;
    if (r > 0) {
        ch.from = 0;
        ch.to = (size_t)r;
    }
    return PyBool_FromLong(r >= 0); /* the end is told again by the next read */
}

PyObject *psb_channel_leave(void) {
    if (!ch.taking)
        at_socket(false);
    Py_RETURN_NONE;
}

/* The text that a pickled str of less than 256 bytes is, memoised: its end, or NULL. */
static const uint8_t *short_text(const uint8_t *p, const uint8_t *end) {
    if (end - p < 2 || p[0] != 0x8c || end - p < 3 + p[1] || p[2 + p[1]] != 0x94)
        return NULL;
    return p + 3 + p[1];
}

/* What names the function in the payload of a call, the pickle of (module, qualname, args, kwargs) that is framed as a whole: new
 * bytes, or None where it looks otherwise. It is compared with what it was before, never taken for more. */
PyObject *psb_channel_target(const uint8_t *data, size_t n) {
    static const uint8_t proto[] = {0x80, 5, 0x95};
    const uint8_t *end = data + n, *from = data + 12, *to;
    if (n < 12 || memcmp(data, proto, sizeof proto) || data[11] != '(' || !(to = short_text(from, end)) || !(to = short_text(to, end)))
        Py_RETURN_NONE;
    return PyBytes_FromStringAndSize((const char *)from, to - from);
}

/* One whole frame of the buffer: 1; 0: there is none; -1: there is one in parts, or not as it should be. What the application has taken
 * of some output is told on the way. */
static int whole(frame *f, psb_text *data, size_t *length) {
again:;
    const uint8_t *at = ch.buf + ch.from;
    size_t have = ch.to - ch.from;
    if (!have)
        return 0;
    size_t n = have < 4 ? 0 : (size_t)at[0] << 24 | (size_t)at[1] << 16 | (size_t)at[2] << 8 | at[3];
    if (have < 4 || have - 4 < n)
        return -1;
    mp_reader r = {at + 4, at + 4 + n, false};
    uint32_t fields = mp_read_array(&r);
    f->kind = mp_read_int(&r);
    f->id = fields > 1 ? mp_read_int(&r) : 0;
    if (f->kind == KIND_TAKEN) {
        int64_t taken = mp_read_int(&r);
        if (r.bad)
            return -1;
        psb_window_taken(f->id, taken);
        ch.from += 4 + n;
        goto again;
    }
    *data = fields > 2 ? mp_read_text(&r) : (psb_text){"", 0};
    *length = 4 + n;
    return r.bad ? -1 : 1;
}

/* 1: the frame is for this thread; 0: it is for another; -1: an exception. */
static int ours(const frame *f, psb_text data, PyObject *known) {
    if (f->kind != KIND_CALL)
        return f->kind == KIND_CANCEL;
    if (psb_channel_in_pieces(f->id)) /* the rest of a payload may look like a whole one */
        return 0;
    PyObject *target = psb_channel_target((const uint8_t *)data.s, data.n);
    if (!target)
        return -1;
    int found = PySet_Contains(known, target);
    Py_DECREF(target);
    return found;
}

PyObject *psb_channel_take(PyObject *known) {
    if (!PyAnySet_Check(known))
        return PyErr_Format(PyExc_TypeError, "take: known is not a set");
    if (!at_socket(true))
        return PyBool_FromLong(ch.forked); /* in a copy the loop's descriptors are the parent's, too: let them be */
    bool end = false;
    ch.taking = true; /* the members of `known` compare as they like, and the collector may run */
    if (ch.from == ch.to) {
        ssize_t r = recv(ch.fd, ch.buf, sizeof ch.buf, MSG_DONTWAIT);
        end = r <= 0;
        if (r > 0) {
            ch.from = 0;
            ch.to = (size_t)r;
        } else if (r < 0 && (errno == EAGAIN || errno == EINTR)) {
            ch.taking = false;
            at_socket(false);
            Py_RETURN_NONE;
        }
    }
    frame f = {0};
    psb_text data = {"", 0};
    size_t length = 0;
    int mine = whole(&f, &data, &length);
    if (mine > 0)
        mine = ours(&f, data, known);
    PyObject *message = NULL;
    if (mine > 0 && f.kind == KIND_CALL)
        psb_window_begin(f.id);
    else if (mine > 0)
        psb_window_free(f.id);
    if (mine > 0)
        message = Py_BuildValue("iLNO", (int)f.kind, (long long)f.id, psb_delivered_bytes((const uint8_t *)data.s, data.n),
                                ch.from + length < ch.to ? Py_True : Py_False);
    pthread_mutex_lock(&ch.mu);
    ch.reading = ch.taking = false;
    bool nothing = !mine && ch.from == ch.to && !end;
    if (message) {
        ch.from += length;
        ch.frames++;
    } else if (!nothing) {
        psb_channel_take_back(); /* another thread reads it, the end of the channel, or what there is no memory for */
    }
    if (ch.dozing)
        pthread_cond_signal(&ch.watchdog);
    pthread_mutex_unlock(&ch.mu);
    if (nothing)
        Py_RETURN_NONE;
    if (!message && !PyErr_Occurred())
        Py_RETURN_FALSE;
    return message;
}
