/* Questions to the Go engine in the supervisor, over a SOCK_SEQPACKET socket of this process's own.
 *
 * Every process makes its own socketpair and hands one end to the supervisor over the announce socket: the first child,
 * each fork at its first question, each exec'd Python. Callers hold the GIL, so one question is under way at a time.
 * Whatever is not a well-formed answer refuses. The socket's inode is compared before each use: a program that puts
 * something else in its place (dup2) gets refusals, not its own answers. A program can write to the socket, too: it could
 * ask about what is allowed and leave the answer there for the guard's next question. So every question has a random
 * number, and answers to other numbers are passed over.
 */
#include "guard.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

static int question_fd = -1;
static ino_t question_ino;
static volatile bool stale; /* forked since: the socket is the parent's */
static pthread_mutex_t lock = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static uint64_t numbers[32]; /* random, for the questions to come */
static size_t numbers_left;

static ino_t inode(int fd) {
    struct stat st;
    return fstat(fd, &st) == 0 ? st.st_ino : 0;
}

int psb_fd_high(int fd) {
    struct rlimit lim;
    int base = 1000;
    if (getrlimit(RLIMIT_NOFILE, &lim) == 0 && lim.rlim_cur != RLIM_INFINITY && lim.rlim_cur < 1016)
        base = lim.rlim_cur > 48 ? (int)lim.rlim_cur - 16 : 3;
    int high = fcntl(fd, F_DUPFD_CLOEXEC, base);
    if (high >= 0)
        close(fd);
    return high;
}

int psb_question_fd(void) { return question_fd; }

bool psb_own_fd(int fd) {
    return psb.active && fd >= 0 &&
           (fd == question_fd || fd == psb.announce_fd || fd == psb.boot_fd || fd == psb.call_fd);
}

static int announce(int fd) {
    char byte = 'A';
    struct iovec iov = {&byte, 1};
    union {
        char buf[CMSG_SPACE(sizeof(int))];
        struct cmsghdr align;
    } control;
    memset(&control, 0, sizeof control);
    struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1, .msg_control = control.buf, .msg_controllen = sizeof control.buf};
    struct cmsghdr *c = CMSG_FIRSTHDR(&m);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(c), &fd, sizeof(int));
    ssize_t n;
    do
        n = sendmsg(psb.announce_fd, &m, MSG_NOSIGNAL);
    while (n < 0 && errno == EINTR);
    return n == 1 ? 0 : -1;
}

static int open_socket(void) {
    int pair[2];
    if (inode(psb.announce_fd) != psb.announce_ino)
        return -1;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return -1;
    int rc = announce(pair[1]);
    close(pair[1]);
    question_fd = rc == 0 ? psb_fd_high(pair[0]) : -1;
    if (question_fd < 0) {
        close(pair[0]);
        return -1;
    }
    question_ino = inode(question_fd);
    stale = false;
    mp_writer w = {0};
    psb_question(&w, "hello", 3, true);
    mp_int(&w, getpid());
    mp_str(&w, PSB_VERSION, strlen(PSB_VERSION));
    mp_str(&w, PY_VERSION, strlen(PY_VERSION));
    psb_answer a;
    psb_ask(&w, &a);
    bool ok = a.allow;
    psb_answer_free(&a);
    return ok ? 0 : -1;
}

void psb_lock(void) { pthread_mutex_lock(&lock); }
void psb_unlock(void) { pthread_mutex_unlock(&lock); }

static void after_fork(void) {
    static const pthread_mutex_t new = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
    lock = new; /* the forking thread held it, so nothing is half done; its owner is a number of the parent's */
    stale = true;
    if (question_fd >= 0 && inode(question_fd) == question_ino)
        close(question_fd); /* or the copy could take the answers that its parent waits for */
    question_fd = -1;
    numbers_left = 0; /* the parent's to come are not the child's to know */
}

int psb_ask_start(void) {
    psb.boot_ino = inode(psb.boot_fd);
    psb.announce_ino = inode(psb.announce_fd);
    if (!psb.boot_ino || !psb.announce_ino || pthread_atfork(psb_lock, psb_unlock, after_fork) != 0)
        return -1;
    return open_socket();
}

static bool connected(void) {
    if (stale) {
        if (open_socket() < 0)
            return false;
    }
    return question_fd >= 0 && inode(question_fd) == question_ino;
}

/* A number that a program cannot know before its answer is here; 0 where there is no randomness to be had. */
static int64_t fresh(void) {
    if (!numbers_left) {
        if (getrandom(numbers, sizeof numbers, 0) != (ssize_t)sizeof numbers) /* at most 256 bytes come whole */
            return 0;
        numbers_left = sizeof numbers / sizeof *numbers;
    }
    int64_t n = (int64_t)(numbers[--numbers_left] & INT64_MAX);
    return n ? n : 1;
}

void psb_question(mp_writer *w, const char *op, uint32_t args, bool reply) {
    mp_array(w, args + 2);
    if (reply) {
        psb_lock();
        w->number = fresh();
        psb_unlock();
        w->bad |= !w->number;
    }
    mp_int(w, w->number);
    mp_str(w, op, strlen(op));
}

static bool send_all(const mp_writer *w) {
    ssize_t n;
    if (w->bad || w->len > PSB_MESSAGE_MAX)
        return false;
    do
        n = send(question_fd, w->buf, w->len, MSG_NOSIGNAL);
    while (n < 0 && errno == EINTR);
    return n == (ssize_t)w->len;
}

/* Takes one message: 1 it is the answer, 0 it is one to another number, -1 there will be none. */
static int receive(psb_answer *a, int64_t expected, uint8_t *buf) {
    ssize_t n;
    do
        n = recv(question_fd, buf, PSB_MESSAGE_MAX, MSG_TRUNC);
    while (n < 0 && errno == EINTR);
    if (n <= 0 || n > PSB_MESSAGE_MAX)
        return -1;
    mp_reader r = {buf, buf + n, false};
    if (mp_read_array(&r) != 7)
        return -1;
    int64_t number = mp_read_int(&r);
    bool allow = mp_read_bool(&r);
    a->exc = (int)mp_read_int(&r);
    a->err = (int)mp_read_int(&r);
    a->message = mp_read_text(&r);
    if (!mp_read_nil(&r)) {
        a->denial = r.p;
        mp_skip(&r);
        a->denial_end = r.p;
    }
    mp_skip(&r); /* scope */
    if (r.bad)
        return -1;
    if (number != expected)
        return 0;
    a->allow = allow;
    return 1;
}

#define STRAYS_MAX 1024 /* answers to others' questions that are passed over before giving up */

static bool answered(psb_answer *a, int64_t expected) {
    uint8_t *buf = malloc(PSB_MESSAGE_MAX);
    int rc = buf ? 0 : -1;
    for (int strays = 0; rc == 0 && strays < STRAYS_MAX; strays++) {
        *a = (psb_answer){0};
        rc = receive(a, expected, buf);
    }
    if (rc != 1)
        *a = (psb_answer){0};
    a->buf = buf;
    return rc == 1;
}

void psb_ask(mp_writer *w, psb_answer *a) {
    *a = (psb_answer){0};
    /* After a fork connected() makes a new socket and asks hello on it first; the engine echoes the number it is sent, so
     * the number given before still fits. */
    psb_lock();
    bool ok = connected() && send_all(w) && answered(a, w->number);
    psb_unlock();
    a->lost = !ok;
    a->allow = a->allow && ok;
    free(w->buf);
    *w = (mp_writer){0};
}

void psb_tell(mp_writer *w) {
    psb_lock();
    if (connected())
        send_all(w);
    psb_unlock();
    free(w->buf);
    *w = (mp_writer){0};
}

void psb_answer_free(psb_answer *a) {
    free(a->buf);
    a->buf = NULL;
}
