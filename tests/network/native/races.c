/* Races: what is judged is changed by another thread before it is done. Each tries g->tries times. */

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/time.h>
#include <time.h>

#include "ways.h"

/* A second thread that changes something until it is told to stop. */
struct flip {
  void (*change)(struct flip *, int turn);
  volatile int stop, turns;
  pthread_t thread;
  union {
    struct sockaddr_in address;
    struct sockaddr_storage room;
  };
  struct msghdr *message;
  struct sockaddr_in good, bad;
  struct iovec parts[2];
  int port, open;
  int shown, first, second;
  struct timespec began;
};

static void port_flips(struct flip *f, int turn) { *(volatile in_port_t *)&f->address.sin_port = turn ? f->port : f->open; }
static void family_flips(struct flip *f, int turn) { *(volatile sa_family_t *)&f->address.sin_family = turn ? AF_INET : AF_UNIX; }
static void name_flips(struct flip *f, int turn) { *(void *volatile *)&f->message->msg_name = turn ? &f->bad : &f->good; }
static void length_flips(struct flip *f, int turn) { *(volatile socklen_t *)&f->message->msg_namelen = turn ? sizeof f->bad : 0; }
static void parts_flip(struct flip *f, int turn) {
  *(volatile size_t *)&f->message->msg_iovlen = turn ? 2 : 1;
  *(void *volatile *)&f->message->msg_name = turn ? &f->bad : &f->good;
}
static void descriptor_flips(struct flip *f, int turn) { dup2(turn ? f->first : f->second, f->shown); }

static void *flipping(void *argument) {
  struct flip *f = argument;
  for (int turn = 0; !f->stop; f->turns = ++turn) f->change(f, turn & 1);
  return NULL;
}

static int begin(struct flip *f, const struct ground *g) {
  f->port = htons(g->port), f->open = htons(g->open);
  f->good = v4(g->host, g->open), f->bad = v4(g->host, g->port);
  f->address = f->change == family_flips ? f->bad : f->good;
  if (pthread_create(&f->thread, NULL, flipping, f)) return -1;
  clock_gettime(CLOCK_MONOTONIC, &f->began);
  while (f->turns < 2) sched_yield(); /* or all is over before it runs */
  return 0;
}

static void end(struct flip *f) {
  f->stop = 1;
  pthread_join(f->thread, NULL);
}

/* Enough tries, and enough time: on a busy machine the other thread has to come to its turn. */
static int more(const struct flip *f, int i, int tries) {
  struct timespec now;
  if (i < tries) return 1;
  clock_gettime(CLOCK_MONOTONIC, &now);
  long passed = (now.tv_sec - f->began.tv_sec) * 1000 + (now.tv_nsec - f->began.tv_nsec) / 1000000;
  return passed < 300 || (f->turns < 1000 && passed < 10000);
}

/* One connection and the token on it; closed by reset, or the ports run out. */
static int once(int fd, const void *address, socklen_t length, const struct ground *g) {
  struct linger reset = {.l_onoff = 1};
  int error = connect(fd, address, length) < 0 ? errno : 0;
  if (!error && send(fd, g->token, strlen(g->token), MSG_NOSIGNAL) < 0) error = errno;
  if (error) setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
  close(fd);
  return error;
}

static int connects(void (*change)(struct flip *, int), int flags, const struct ground *g) {
  struct flip f = {.change = change};
  int through = 0, error = EACCES;
  if (begin(&f, g)) return EAGAIN;
  for (int i = 0; more(&f, i, g->tries); i++) {
    int fd = made(AF_INET, SOCK_STREAM | flags, 0), result;
    if (fd < 0) continue;
    result = once(fd, &f.address, sizeof f.address, g);
    if (result) error = result;
    else through++;
  }
  end(&f);
  return through ? 0 : error;
}

int race_connect_port(const struct ground *g) { return connects(port_flips, 0, g); }
int race_connect_family(const struct ground *g) { return connects(family_flips, 0, g); }

/* UDP connects are cheap: more of them for the same time. */
int race_udp_connect(const struct ground *g) {
  struct flip f = {.change = port_flips};
  int through = 0;
  if (begin(&f, g)) return EAGAIN;
  for (int i = 0; more(&f, i, g->tries); i++) {
    int fd = made(AF_INET, SOCK_DGRAM, 0);
    if (fd >= 0) through += once(fd, &f.address, sizeof f.address, g) == 0;
  }
  end(&f);
  return through ? 0 : EACCES;
}

int race_sendto_port(const struct ground *g) {
  struct flip f = {.change = port_flips};
  int fd = made(AF_INET, SOCK_DGRAM, 0), through = 0;
  if (fd < 0) return errno;
  if (begin(&f, g)) return EAGAIN;
  for (int i = 0; more(&f, i, g->tries); i++) through += sendto(fd, g->token, strlen(g->token), 0, (void *)&f.address, sizeof f.address) > 0;
  end(&f);
  close(fd);
  return through ? 0 : EACCES;
}

static int messages(void (*change)(struct flip *, int), int connected, const struct ground *g) {
  struct flip f = {.change = change};
  struct msghdr message = {.msg_name = &f.good, .msg_namelen = sizeof f.good, .msg_iov = f.parts, .msg_iovlen = 1};
  int fd = made(AF_INET, SOCK_DGRAM, 0), through = 0, error = EACCES;
  if (fd < 0) return errno;
  f.message = &message;
  f.parts[0] = (struct iovec){.iov_base = (void *)g->token, .iov_len = strlen(g->token)};
  f.parts[1] = (struct iovec){.iov_base = "", .iov_len = 0};
  if (change == length_flips) message.msg_name = &f.bad;
  if (begin(&f, g)) return EAGAIN;
  if (connected) connect(fd, (void *)&f.good, sizeof f.good);
  for (int i = 0; more(&f, i, g->tries); i++) {
    if (sendmsg(fd, &message, 0) > 0) through++;
    else error = errno;
  }
  end(&f);
  close(fd);
  return through ? 0 : error;
}

int race_sendmsg_name(const struct ground *g) { return messages(name_flips, 0, g); }
int race_sendmsg_length(const struct ground *g) { return messages(length_flips, 1, g); }
int race_sendmsg_parts(const struct ground *g) { return messages(parts_flip, 0, g); }

int race_sendmmsg_name(const struct ground *g) {
  struct flip f = {.change = name_flips};
  struct iovec part = {.iov_base = (void *)g->token, .iov_len = strlen(g->token)};
  struct mmsghdr both[2] = {0};
  int fd = made(AF_INET, SOCK_DGRAM, 0), through = 0;
  if (fd < 0) return errno;
  for (int i = 0; i < 2; i++) both[i].msg_hdr = (struct msghdr){.msg_name = &f.good, .msg_namelen = sizeof f.good, .msg_iov = &part, .msg_iovlen = 1};
  f.message = &both[1].msg_hdr;
  if (begin(&f, g)) return EAGAIN;
  for (int i = 0; more(&f, i, g->tries / 2); i++) through += sendmmsg(fd, both, 2, 0) > 0;
  end(&f);
  close(fd);
  return through ? 0 : EACCES;
}

/* One number is by turns a local socket, for which nobody asks, and a UDP socket. */
static int swapped(int connect_it, const struct ground *g) {
  struct flip f = {.change = descriptor_flips};
  struct sockaddr_in a = v4(g->host, g->port);
  struct iovec part = {.iov_base = (void *)g->token, .iov_len = strlen(g->token)};
  struct msghdr message = {.msg_name = &a, .msg_namelen = sizeof a, .msg_iov = &part, .msg_iovlen = 1};
  int pair[2], through = 0, error = EACCES;
  f.first = made(AF_INET, SOCK_DGRAM, 0);
  if (f.first < 0) return errno;
  if (socketpair(AF_UNIX, SOCK_DGRAM, 0, pair) < 0) return errno;
  f.second = pair[0];
  f.shown = dup(f.second);
  if (begin(&f, g)) return EAGAIN;
  for (int i = 0; more(&f, i, g->tries * 4); i++) {
    int result = connect_it ? connect(f.shown, (void *)&a, sizeof a) : (int)sendmsg(f.shown, &message, MSG_DONTWAIT);
    if (connect_it && result == 0) result = send(f.first, g->token, strlen(g->token), MSG_DONTWAIT);
    if (result < 0) error = errno;
    else through++;
  }
  end(&f);
  close(pair[0]), close(pair[1]), close(f.first), close(f.shown);
  return through ? 0 : error;
}

int race_descriptor_sendmsg(const struct ground *g) { return swapped(0, g); }
int race_descriptor_connect(const struct ground *g) { return swapped(1, g); }

/* A connected socket that a rule allows and a fresh one take turns at one number, where an addressed send goes out. */
int race_descriptor_sendto(const struct ground *g) {
  struct flip f = {.change = descriptor_flips};
  struct sockaddr_in good = v4(g->host, g->open), bad = v4(g->host, g->port);
  int through = 0;
  f.first = made(AF_INET, SOCK_DGRAM, 0), f.second = made(AF_INET, SOCK_DGRAM, 0);
  if (f.first < 0 || f.second < 0) return errno;
  connect(f.second, (void *)&good, sizeof good);
  f.shown = dup(f.second);
  if (begin(&f, g)) return EAGAIN;
  for (int i = 0; more(&f, i, g->tries); i++) {
    through += sendto(f.shown, g->token, strlen(g->token), MSG_DONTWAIT, (void *)&bad, sizeof bad) > 0;
    send(f.shown, "x", 1, MSG_DONTWAIT);
  }
  end(&f);
  close(f.first), close(f.second), close(f.shown);
  return through ? 0 : EACCES;
}

/* A signal a millisecond, in the middle of every call. */
static volatile sig_atomic_t signals;
static void on_signal(int number) { (void)number, signals++; }

static int stormed(int flags, int all, const struct ground *g) {
  struct sockaddr_in a = v4(g->host, g->port);
  struct sigaction before, handler = {.sa_handler = on_signal, .sa_flags = flags};
  struct itimerval often = {.it_interval.tv_usec = 1000, .it_value.tv_usec = 1000}, never = {0};
  int through = 0, wrong = 0, error = EACCES;
  sigaction(SIGALRM, &handler, &before);
  setitimer(ITIMER_REAL, &often, NULL);
  for (int i = 0; i < all; i++) {
    int fd = made(AF_INET, SOCK_STREAM, 0);
    if (fd < 0) { error = errno; break; }
    int result = joined(fd, &a, sizeof a);
    while (result == EINTR || result == ENOTCONN) result = joined(fd, &a, sizeof a);
    if (result == EISCONN) wrong++;
    if (result) close(fd), error = result;
    else if ((result = tell(fd, g))) error = result, wrong++; /* a connection that never was */
    else through++;
  }
  setitimer(ITIMER_REAL, &never, NULL);
  sigaction(SIGALRM, &before, NULL);
  if (wrong) dprintf(1, "FALSE %d of %d\n", wrong, all);
  return through == all ? 0 : error;
}

int storm_of_signals(const struct ground *g) { return stormed(0, g->tries / 10, g); }
int storm_of_restarting_signals(const struct ground *g) { return stormed(SA_RESTART, g->tries / 10, g); }

int storm_of_signals_udp(const struct ground *g) {
  struct sockaddr_in a = v4(g->host, g->port);
  struct sigaction before, handler = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
  struct itimerval often = {.it_interval.tv_usec = 1000, .it_value.tv_usec = 1000}, never = {0};
  int fd = made(AF_INET, SOCK_DGRAM, 0), through = 0, all = g->tries / 10, error = EACCES;
  if (fd < 0) return errno;
  sigaction(SIGALRM, &handler, &before);
  setitimer(ITIMER_REAL, &often, NULL);
  for (int i = 0; i < all; i++) {
    if (sendto(fd, g->token, strlen(g->token), 0, (void *)&a, sizeof a) == (ssize_t)strlen(g->token)) through++;
    else error = errno;
  }
  setitimer(ITIMER_REAL, &never, NULL);
  sigaction(SIGALRM, &before, NULL);
  close(fd);
  return through == all ? 0 : error;
}
