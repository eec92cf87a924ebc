/* What arrives on the call channel: bytes, and frames made of them. The reader's role guards all that is here. */
#include "guard.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "channel.h"

#define PAYLOAD_MAX (1LL << 31) /* bytes of a whole payload */
#define SPIN_NS 100000          /* how long a reader looks before it sleeps */
#define SPIN_MOST 8             /* hits that are remembered */
#define SPIN_RETRY 32           /* sleeps after which it is tried again */

/* Before it sleeps a reader looks for a short while, giving the processor away in between: being woken costs more than a
 * small call takes. Looking that found nothing makes it give up for a while. */
ssize_t psb_channel_glance(void *p, size_t n) {
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
    errno = EAGAIN;
    return -1;
}

static ssize_t receive(void *p, size_t n) {
    ssize_t r = psb_channel_glance(p, n);
    return r < 0 && errno == EAGAIN ? recv(ch.fd, p, n, 0) : r;
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

bool psb_channel_in_pieces(int64_t id) { return *pieces_of(id) != NULL; }

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

int psb_channel_read(frame *f) {
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
