/* Ways of native code to get a byte past the network boundary, one function each.
 *
 * A way is called with the ground that stands outside, tries, and returns 0 where it went through as far as it can
 * tell, an errno where it was refused, and ABSENT where this machine lacks what it needs. Whether anything arrived is
 * looked up outside. The same function, given a port that a rule allows, is the way's own twin: it has to work then.
 * Compiled with -D_GNU_SOURCE. */

#pragma once
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

struct ground { /* ways.py has the same */
  const char *token;    /* what is to arrive outside */
  const char *path;     /* a local socket that no rule names (of the twin: that one does) */
  const char *exposed;  /* the same in a folder that is exposed for writing (twin: the socket itself is) */
  const char *abstract; /* the same without a path, zero byte not included */
  const char *host;     /* where somebody listens: on this machine's loopback, or elsewhere */
  const char *other;    /* another one */
  const char *host6;    /* by IPv6 */
  int port;             /* TCP and UDP on these three: no rule names it (of the twin: one does) */
  int open;             /* a port that a rule allows; somebody listens */
  int closed;           /* the same, and nobody listens */
  int narrow;           /* somebody listens on host and other; a rule names host (twin: both) */
  int hole;             /* a rule allows it, and whoever connects there waits for ever */
  int door;             /* a free port to bind (of the twin: a rule lets it be reached) */
  int steal;            /* a port that somebody outside holds with SO_REUSEPORT and SO_REUSEADDR */
  int victim;           /* a process of the same user outside */
  int victim_fd;        /* of which this descriptor is connected to port */
  int tries;            /* of a race */
};

#define ABSENT (-2)

/* Addresses. */
struct sockaddr_in v4(const char *host, int port);
struct sockaddr_in6 v6(const char *host, int port);
struct sockaddr_in6 mapped(const char *host, int port);

/* A socket with send and receive time limits; -1 and errno. */
int made(int family, int type, int protocol);
/* The token on a connected socket, which is closed; 0 or errno. */
int tell(int fd, const struct ground *g);
/* Connects (waiting where it has to) and tells; closes fd. */
int reach(int fd, const void *address, socklen_t length, const struct ground *g);
/* connect, and what follows EINPROGRESS and EINTR; 0 or errno. */
int joined(int fd, const void *address, socklen_t length);
/* The token in a datagram by sendmsg. */
int post(int fd, const void *address, socklen_t length, int flags, const struct ground *g);
/* Asks the outside to knock ("tcp4", "tcp6", "udp4" ...) at a port; true where it could. */
int knocked(const char *how, int port);
/* What comes in on a listening socket (accept) or a datagram socket after a knock: 0, or errno. Closes fd. */
int let_in(int fd, const char *how);
