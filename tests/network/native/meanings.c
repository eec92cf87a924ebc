/* What socket calls mean: each function prints what it sees, and has to see the same in a sandbox as bare. All of it is
 * allowed by rule. Numbers that are chance (ports of one's own, times) are not printed. */

#include <netinet/udp.h>
#include <pthread.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/time.h>
#include <time.h>

#include "ways.h"

#define SAY(...) dprintf(1, __VA_ARGS__)

static const char *named(int error) {
  return error < 0 ? strerrorname_np(errno) : "fine";
}

static int opened(const struct ground *g, int flags) {
  struct sockaddr_in a = v4(g->host, g->port);
  int fd = made(AF_INET, SOCK_STREAM | flags, 0);
  if (joined(fd, &a, sizeof a)) SAY("not connected: %s\n", strerrorname_np(errno));
  return fd;
}

static void names(int fd) {
  struct sockaddr_storage a[2];
  socklen_t size[2] = {sizeof *a, sizeof *a};
  SAY("own %s", named(getsockname(fd, (void *)&a[0], &size[0])));
  SAY(", peer %s\n", named(getpeername(fd, (void *)&a[1], &size[1])));
  for (int i = 0; i < 2; i++) {
    char text[64] = "?";
    int six = a[i].ss_family == AF_INET6;
    inet_ntop(a[i].ss_family, six ? (void *)&((struct sockaddr_in6 *)&a[i])->sin6_addr : (void *)&((struct sockaddr_in *)&a[i])->sin_addr, text, sizeof text);
    SAY("family %d, length %d, %s, %s\n", a[i].ss_family, size[i], text, ((struct sockaddr_in *)&a[i])->sin_port ? "a port" : "none");
  }
}

int means_names(const struct ground *g) {
  int fd = opened(g, 0);
  names(fd);
  close(fd);
  struct sockaddr_in6 a = mapped(g->host, g->port), b = v6(g->host6, g->port);
  fd = made(AF_INET6, SOCK_STREAM, 0);
  SAY("mapped %d\n", joined(fd, &a, sizeof a));
  names(fd);
  close(fd);
  fd = made(AF_INET6, SOCK_STREAM, 0);
  SAY("six %d\n", joined(fd, &b, sizeof b));
  names(fd);
  close(fd);
  return 0;
}

int means_options(const struct ground *g) {
  struct sockaddr_in a = v4(g->host, g->port);
  static const struct { int level, name, value; } options[] = {
    {IPPROTO_TCP, TCP_NODELAY, 1}, {SOL_SOCKET, SO_KEEPALIVE, 1}, {IPPROTO_TCP, TCP_KEEPIDLE, 77}, {IPPROTO_TCP, TCP_KEEPINTVL, 11},
    {IPPROTO_TCP, TCP_KEEPCNT, 5}, {IPPROTO_TCP, TCP_USER_TIMEOUT, 4321}, {SOL_SOCKET, SO_SNDBUF, 70000}, {SOL_SOCKET, SO_RCVBUF, 50000},
    {SOL_SOCKET, SO_REUSEADDR, 1}, {SOL_SOCKET, SO_OOBINLINE, 1}, {SOL_SOCKET, SO_PRIORITY, 3}, {IPPROTO_IP, IP_TOS, 16}, {IPPROTO_IP, IP_TTL, 33},
    {SOL_SOCKET, SO_TYPE, -1}, {SOL_SOCKET, SO_DOMAIN, -1}, {SOL_SOCKET, SO_PROTOCOL, -1}, {SOL_SOCKET, SO_ERROR, -1}, {SOL_SOCKET, SO_ACCEPTCONN, -1},
  };
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  struct timeval limit = {.tv_sec = 3, .tv_usec = 500000}, kept = {0};
  struct linger wait = {.l_onoff = 1, .l_linger = 9}, waits = {0};
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  setsockopt(fd, SOL_SOCKET, SO_LINGER, &wait, sizeof wait);
  for (unsigned i = 0; i < sizeof options / sizeof *options; i++)
    if (options[i].value >= 0) setsockopt(fd, options[i].level, options[i].name, &options[i].value, 4);
  SAY("connected %d\n", joined(fd, &a, sizeof a));
  for (unsigned i = 0; i < sizeof options / sizeof *options; i++) {
    int value = -1;
    socklen_t size = sizeof value;
    int done = getsockopt(fd, options[i].level, options[i].name, &value, &size);
    SAY("option %d %d: %s %d\n", options[i].level, options[i].name, named(done), value);
  }
  socklen_t size = sizeof kept, width = sizeof waits;
  getsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &kept, &size);
  getsockopt(fd, SOL_SOCKET, SO_LINGER, &waits, &width);
  SAY("limit %ld.%06ld, linger %d %d\n", kept.tv_sec, kept.tv_usec, waits.l_onoff, waits.l_linger);
  int segment = 0;
  socklen_t four = sizeof segment;
  getsockopt(fd, IPPROTO_TCP, TCP_MAXSEG, &segment, &four);
  SAY("segments of a kilobyte and more %d\n", segment > 1000);
  SAY("flags %x, close-on-exec %d\n", fcntl(fd, F_GETFL) & (O_NONBLOCK | O_ACCMODE), fcntl(fd, F_GETFD));
  close(fd);
  return 0;
}

int means_refused(const struct ground *g) {
  struct sockaddr_in a = v4(g->host, g->closed), b = v4(g->host, g->port);
  int fd = made(AF_INET, SOCK_STREAM, 0), error = -1;
  socklen_t size = sizeof error;
  SAY("first %s\n", named(connect(fd, (void *)&a, sizeof a)));
  getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size);
  struct pollfd now = {.fd = fd, .events = POLLIN | POLLOUT};
  SAY("error %d, poll %d", error, poll(&now, 1, 0));
  SAY(", events %x\n", now.revents);
  SAY("second, to an open port, %s\n", named(connect(fd, (void *)&b, sizeof b)));
  close(fd);
  fd = made(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
  int first = connect(fd, (void *)&a, sizeof a) < 0 ? errno : 0; /* under way, or refused already */
  now = (struct pollfd){.fd = fd, .events = POLLOUT};
  SAY("poll %d", poll(&now, 1, 2000));
  SAY(", writable %d\n", (now.revents & POLLOUT) != 0);
  getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size);
  SAY("without waiting %s\n", strerrorname_np(first == EINPROGRESS ? error : first));
  close(fd);
  return 0;
}

int means_mistakes(const struct ground *g) {
  struct sockaddr_in a = v4(g->host, g->port), odd = {.sin_family = 99};
  struct sockaddr_in6 six = v6(g->host6, g->port);
  int fd = opened(g, 0), ends[2];
  SAY("again %s\n", named(connect(fd, (void *)&a, sizeof a)));
  close(fd);
  if (pipe(ends) < 0) return errno;
  SAY("no descriptor %s\n", named(connect(777, (void *)&a, sizeof a)));
  SAY("a pipe %s\n", named(connect(ends[0], (void *)&a, sizeof a)));
  close(ends[0]), close(ends[1]);
  fd = made(AF_INET, SOCK_STREAM, 0);
  SAY("no memory %s\n", named(connect(fd, (void *)8, sizeof a)));
  SAY("short %s\n", named(connect(fd, (void *)&a, 3)));
  SAY("family %s\n", named(connect(fd, (void *)&odd, sizeof odd)));
  SAY("six for four %s\n", named(connect(fd, (void *)&six, sizeof six)));
  SAY("and then %d\n", joined(fd, &a, sizeof a));
  close(fd);
  fd = made(AF_INET, SOCK_STREAM, 0);
  SAY("send before %s\n", named(send(fd, "x", 1, MSG_NOSIGNAL)));
  SAY("accept before %s\n", named(accept(fd, NULL, NULL)));
  close(fd);
  fd = made(AF_INET, SOCK_DGRAM, 0);
  SAY("datagram to nobody %s\n", named(send(fd, "x", 1, 0)));
  SAY("no address there %s\n", named(sendto(fd, "x", 1, 0, (void *)8, sizeof a)));
  SAY("no bytes there %s\n", named(sendto(fd, (void *)8, 1, 0, (void *)&a, sizeof a)));
  close(fd);
  return 0;
}

/* What comes back of what was sent: the outside sends back what begins with "?". */
static int echoed(int fd, size_t length) {
  char *sent = malloc(length), *got = malloc(length);
  size_t out = 0, in = 0;
  memset(sent, '?', length);
  while (in < length) {
    if (out < length) {
      ssize_t n = send(fd, sent + out, length - out > 16384 ? 16384 : length - out, MSG_NOSIGNAL);
      if (n < 0) break;
      out += n;
    }
    ssize_t n = recv(fd, got + in, length - in, 0);
    if (n <= 0) break;
    in += n;
  }
  int same = in == length && memcmp(sent, got, length) == 0;
  free(sent), free(got);
  return same;
}

int means_stream(const struct ground *g) {
  int fd = opened(g, 0);
  SAY("echo %d\n", echoed(fd, 300000));
  struct iovec parts[2] = {{"?a", 2}, {"bc", 2}};
  struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
  char room[8] = {0};
  SAY("sendmsg %zd", sendmsg(fd, &message, MSG_NOSIGNAL));
  SAY(", back %zd %s\n", recv(fd, room, 4, MSG_WAITALL), room);
  SAY("half closed %s", named(shutdown(fd, SHUT_WR)));
  SAY(", send %s", named(send(fd, "x", 1, MSG_NOSIGNAL)));
  SAY(", end %zd\n", recv(fd, room, 4, 0));
  close(fd);
  return 0;
}

int means_copies(const struct ground *g) {
  struct sockaddr_in a = v4(g->host, g->port);
  int fd = made(AF_INET, SOCK_STREAM, 0), before = dup(fd), high = fcntl(fd, F_DUPFD_CLOEXEC, 200);
  SAY("connected %d\n", joined(fd, &a, sizeof a));
  int after = dup(fd), all[] = {before, high, after, fd};
  for (int i = 0; i < 4; i++) SAY("copy %d: echo %d, flags %d\n", i, echoed(all[i], 10), fcntl(all[i], F_GETFD));
  for (int i = 0; i < 4; i++) close(all[i]);
  return 0;
}

int means_epoll(const struct ground *g) {
  struct sockaddr_in a = v4(g->host, g->port);
  int set = epoll_create1(0), fd = made(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), copy = dup(fd);
  struct epoll_event wanted[2] = {{.events = EPOLLIN | EPOLLOUT | EPOLLET, .data.u64 = 0xfeedfacecafe}, {.events = EPOLLIN, .data.u64 = 7}}, got[4];
  epoll_ctl(set, EPOLL_CTL_ADD, fd, &wanted[0]);
  epoll_ctl(set, EPOLL_CTL_ADD, copy, &wanted[1]);
  epoll_wait(set, got, 4, 0);
  connect(fd, (void *)&a, sizeof a);
  int n = epoll_wait(set, got, 4, 2000), seen = 0;
  for (int i = 0; i < n; i++) seen |= got[i].data.u64 == 0xfeedfacecafe && got[i].events == EPOLLOUT;
  SAY("writable %d\n", seen);
  SAY("sent %zd\n", send(fd, "?hello", 6, MSG_NOSIGNAL));
  for (seen = 0; seen != 3 && (n = epoll_wait(set, got, 4, 2000)) > 0;)
    for (int i = 0; i < n; i++) seen |= got[i].data.u64 == 7 ? 1 : (got[i].events & EPOLLIN ? 2 : 0);
  SAY("readable by both %d\n", seen == 3);
  SAY("there is one already: %s\n", named(epoll_ctl(set, EPOLL_CTL_ADD, fd, &wanted[0])));
  SAY("taken out %s\n", named(epoll_ctl(set, EPOLL_CTL_DEL, fd, NULL)));
  close(fd), close(copy);
  SAY("left %d\n", epoll_wait(set, got, 4, 0));
  close(set);
  return 0;
}

/* IPv6 to a port where nobody listens and IPv4 to an open one, side by side: the one that stands wins. */
int means_happy_eyeballs(const struct ground *g) {
  struct sockaddr_in a = v4(g->host, g->port), b = v4(g->host, g->closed);
  int one = made(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), two = made(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), error[2];
  connect(one, (void *)&b, sizeof b);
  connect(two, (void *)&a, sizeof a);
  fd_set writable;
  FD_ZERO(&writable);
  FD_SET(two, &writable);
  SAY("select %d\n", select(two + 1, NULL, &writable, NULL, &(struct timeval){.tv_sec = 2}));
  socklen_t size = sizeof *error;
  getsockopt(two, SOL_SOCKET, SO_ERROR, &error[1], &size);
  struct pollfd wait = {.fd = one, .events = POLLOUT};
  poll(&wait, 1, 2000);
  fcntl(two, F_SETFL, 0); /* the echo is waited for */
  SAY("won %d %d\n", error[1], echoed(two, 1));
  close(one), close(two);
  return 0;
}

static long since(const struct timespec *began) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (now.tv_sec - began->tv_sec) * 1000 + (now.tv_nsec - began->tv_nsec) / 1000000;
}

static void on_alarm(int number) { (void)number; }

/* A peer that never answers: limits, signals and other threads go on. */
static void *into_the_hole(void *argument) {
  const struct ground *g = argument;
  struct sockaddr_in a = v4(g->host, g->hole);
  int fd = made(AF_INET, SOCK_STREAM, 0);
  struct timeval limit = {.tv_usec = 600000};
  setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
  long error = connect(fd, (void *)&a, sizeof a) < 0 ? errno : 0;
  close(fd);
  return (void *)error;
}

int means_hole(const struct ground *g) {
  struct timespec began;
  clock_gettime(CLOCK_MONOTONIC, &began);
  pthread_t thread;
  void *error;
  pthread_create(&thread, NULL, into_the_hole, (void *)g);
  int fd = opened(g, 0);
  SAY("others go on %d, at once %d\n", echoed(fd, 1), since(&began) < 400);
  close(fd);
  pthread_join(thread, &error);
  SAY("limit %s, kept %d\n", strerrorname_np((int)(long)error), since(&began) >= 500 && since(&began) < 5000);
  struct sockaddr_in a = v4(g->host, g->hole);
  fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  SAY("non-blocking %s", named(connect(fd, (void *)&a, sizeof a)));
  SAY(", again %s", named(connect(fd, (void *)&a, sizeof a)));
  struct pollfd wait = {.fd = fd, .events = POLLOUT};
  SAY(", poll %d\n", poll(&wait, 1, 50));
  close(fd);
  return 0;
}

int means_hole_interrupted(const struct ground *g) {
  struct sigaction before, handler = {.sa_handler = on_alarm};
  struct itimerval soon = {.it_value.tv_usec = 100000};
  struct sockaddr_in a = v4(g->host, g->hole);
  struct timespec began;
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sigaction(SIGALRM, &handler, &before);
  setitimer(ITIMER_REAL, &soon, NULL);
  clock_gettime(CLOCK_MONOTONIC, &began);
  SAY("interrupted %s", named(connect(fd, (void *)&a, sizeof a)));
  SAY(", soon %d\n", since(&began) < 5000);
  sigaction(SIGALRM, &before, NULL);
  close(fd);
  return 0;
}

/* UDP: who answers is who was asked. */
static void asked(int fd, const void *address, socklen_t length) {
  char room[16];
  struct sockaddr_storage from = {0};
  socklen_t size = sizeof from;
  if (address) SAY("sent %s", named(sendto(fd, "?udp", 4, 0, address, length)));
  else SAY("sent %s", named(send(fd, "?udp", 4, 0)));
  ssize_t n = recvfrom(fd, room, sizeof room, 0, (void *)&from, &size);
  SAY(", back %zd (%s), from whom it was sent to %d\n", n, named(n), address ? size == length && memcmp(&from, address, 8) == 0 : -1);
}

int means_datagrams(const struct ground *g) {
  struct sockaddr_in one = v4(g->host, g->port), two = v4(g->other, g->port), peer;
  socklen_t size = sizeof peer;
  int fd = made(AF_INET, SOCK_DGRAM, 0);
  asked(fd, &one, sizeof one), asked(fd, &two, sizeof two), asked(fd, &one, sizeof one);
  SAY("connected %s\n", named(connect(fd, (void *)&one, sizeof one)));
  asked(fd, NULL, 0);
  SAY("peer %s", named(getpeername(fd, (void *)&peer, &size)));
  SAY(", the one %d\n", memcmp(&peer, &one, 8) == 0);
  close(fd);
  return 0;
}

int means_datagrams_v6(const struct ground *g) {
  struct sockaddr_in6 six = v6(g->host6, g->port);
  int fd = made(AF_INET6, SOCK_DGRAM, 0);
  asked(fd, &six, sizeof six);
  SAY("connected %s\n", named(connect(fd, (void *)&six, sizeof six)));
  asked(fd, NULL, 0);
  close(fd);
  return 0;
}

int means_datagram_to_nobody(const struct ground *g) {
  struct sockaddr_in a = v4(g->host, g->closed);
  int fd = made(AF_INET, SOCK_DGRAM, 0);
  SAY("connected %s\n", named(connect(fd, (void *)&a, sizeof a)));
  SAY("sent %s\n", named(send(fd, "x", 1, 0)));
  char byte;
  SAY("answer %s\n", named(recv(fd, &byte, 1, 0)));
  close(fd);
  return 0;
}

/* Small and large ones, and sends that are cut into several; what comes back may be put together again. */
static void sized(int family, const void *address, socklen_t length) {
  static char sent[65528], got[65536];
  const int sizes[] = {1, 1472, 9000, 40000, 65507, 65528};
  int fd = made(family, SOCK_DGRAM, 0), large = 1 << 20, size = 100;
  setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &large, sizeof large);
  setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &large, sizeof large);
  memset(sent, '?', sizeof sent);
  for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    ssize_t n = sendto(fd, sent, sizes[i], 0, address, length);
    SAY("%d: sent %zd", sizes[i], n);
    if (n >= 0) SAY(", back %zd", recv(fd, got, sizeof got, 0));
    SAY("\n");
  }
  union {
    struct cmsghdr head;
    char room[CMSG_SPACE(sizeof(uint16_t))];
  } control = {.head = {.cmsg_level = IPPROTO_UDP, .cmsg_type = UDP_SEGMENT, .cmsg_len = CMSG_LEN(sizeof(uint16_t))}};
  memcpy(CMSG_DATA(&control.head), &(uint16_t){1200}, sizeof(uint16_t));
  struct iovec data = {sent, 12500};
  struct msghdr message = {.msg_name = (void *)address, .msg_namelen = length, .msg_iov = &data, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
  SAY("in parts %zd", sendmsg(fd, &message, 0));
  for (int i = 0; i < 11; i++) SAY(", back %zd", recv(fd, got, sizeof got, 0));
  setsockopt(fd, IPPROTO_UDP, UDP_SEGMENT, &size, sizeof size);
  SAY("\ntaken together %s", named(setsockopt(fd, IPPROTO_UDP, UDP_GRO, &(int){1}, sizeof(int))));
  SAY(", in parts %zd", sendto(fd, sent, 250, 0, address, length));
  for (int left = 250; left > 0;) {
    ssize_t n = recv(fd, got, sizeof got, 0);
    if (n <= 0) break;
    SAY("%s", (left -= n) ? "" : ", all back");
  }
  SAY("\nof nothing %s\n", named(sendto(fd, sent, 0, 0, address, length)));
  close(fd);
}

int means_datagram_sizes(const struct ground *g) {
  struct sockaddr_in a = v4(g->host, g->port);
  sized(AF_INET, &a, sizeof a);
  return 0;
}

int means_datagram_sizes_v6(const struct ground *g) {
  struct sockaddr_in6 a = v6(g->host6, g->port);
  sized(AF_INET6, &a, sizeof a);
  return 0;
}
