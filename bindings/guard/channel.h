/* What the files of the call channel share: whose turn it is to read (channel.c), what is read (channel_read.c), and the event loop's
 * part of both (channel_loop.c). Include guard.h first. */
#ifndef PSB_CHANNEL_H
#define PSB_CHANNEL_H

#include <pthread.h>
#include <semaphore.h>
#include <sys/types.h>

enum { KIND_CALL = 1, KIND_CANCEL = 2, KIND_STOP = 3, KIND_PIECE = 4, KIND_TAKEN = 5 };
#define FRAME_MAX (PSB_PART + 64) /* bytes of a frame's body */

typedef struct {
    int64_t kind, id;
    uint8_t *payload;
    size_t size;
} frame;

typedef struct {
    int fd;
    pthread_mutex_t mu;
    pthread_cond_t standby, watchdog;
    sem_t main; /* not a condition: a signal has to end the wait, since Python's handlers run in this thread */
    bool reading;    /* a thread is at the socket */
    bool taking;     /* the event loop's thread works on what it has read: code of the program may run then, and must not move on */
    bool looping;    /* the event loop's thread has the reader's role, also while it is not at the socket */
    pthread_t at_socket; /* which one, of the loop's */
    bool closed;     /* the application is gone, or nobody reads any more */
    bool stopping;   /* STOP has come: no more calls, but the running ones go on, and what is said of them is read */
    bool forked;     /* this process is a copy: the channel is its parent's */
    bool promote, dozing, started;
    bool main_waits, main_next; /* the main thread is idle; it is to become the reader */
    bool handed;                /* `hand` holds a frame for the main thread */
    frame hand;
    int waiting; /* standbys */
    uint64_t frames;
    /* read ahead; the reader's role guards these */
    uint8_t buf[1 << 16];
    size_t from, to;
} psb_channel;
extern psb_channel ch;

/* Bytes for whoever has the reader's role. Looks for a short while, without the GIL: -1 with EAGAIN if nothing has come. */
ssize_t psb_channel_glance(void *p, size_t n);
/* Reads one whole call. 1: *f holds it, its payload NULL where there was no memory for it; 0: closed; -1: interrupted. */
int psb_channel_read(frame *f);
/* Whether parts of the call's payload have come before. */
bool psb_channel_in_pieces(int64_t id);
/* Takes the role from the event loop for one of the threads that wait for it. ch.mu is held. */
void psb_channel_take_back(void);

#endif
