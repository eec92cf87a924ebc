/* The path of a call between calls.c and calls.go: plain values, no Python. */
#ifndef PSB_CALLS_H
#define PSB_CALLS_H

#include <stdint.h>

enum { PSB_SMALL = 4096 };

/* What psbCallNext, psbLoopSend and psbLoopTake say, unless their last parameter says that they failed. */
enum {
    PSB_EVENT = 0,       /* there is an event in *event */
    PSB_NOTHING = 1,     /* none within the time given */
    PSB_INTERRUPTED = 2, /* a signal arrived: look at it, then ask again */
    PSB_ROOM = 3,        /* *event describes a buffer to make memory for: data_len, index, writable */
};

/* One event of a call. The parts stand one after the other in small where they fit; else Go keeps them until psbEventTake
 * is called with the ticket. A length of -1 says that the part is absent, which is not the same as empty. */
typedef struct psb_event {
    int32_t kind;
    int64_t data_len;
    int64_t rich_len;
    int64_t descriptor_len;
    int64_t ticket;  /* 0: the parts are in small */
    int64_t buffers; /* of a RESULT: how many came beside it; they have a ticket */
    int64_t index;   /* PSB_ROOM: the buffer's place among them */
    int32_t writable;
    uint8_t small[PSB_SMALL];
} psb_event;

#endif
