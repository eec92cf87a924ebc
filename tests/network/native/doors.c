/* In: to be reached from outside, and to take what was meant for another. */

#include "ways.h"

static int refused(int fd) {
  int error = errno;
  close(fd);
  return error;
}

static int door4(const char *host, int port, int family, const struct ground *g) {
  struct sockaddr_in own = v4(host, port);
  (void)g;
  own.sin_family = family;
  int fd = made(AF_INET, SOCK_STREAM, 0);
  if (fd < 0) return errno;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &(int){1}, 4);
  if (bind(fd, (void *)&own, sizeof own) < 0 || listen(fd, 8) < 0) return refused(fd);
  return let_in(fd, "tcp4");
}

int listen_v4(const struct ground *g) { return door4("127.0.0.1", g->door, AF_INET, g); }
int listen_everywhere(const struct ground *g) { return door4("0.0.0.0", g->door, AF_INET, g); }
/* bind reads the unspecified address of no family as IPv4's. */
int listen_no_family(const struct ground *g) { return door4("0.0.0.0", g->door, AF_UNSPEC, g); }

static int door6(const char *host, const char *how, const struct ground *g) {
  struct sockaddr_in6 own = v6(host, g->door);
  int fd = made(AF_INET6, SOCK_STREAM, 0);
  if (fd < 0) return errno;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &(int){1}, 4);
  setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &(int){0}, 4);
  if (bind(fd, (void *)&own, sizeof own) < 0 || listen(fd, 8) < 0) return refused(fd);
  return let_in(fd, how);
}

int listen_v6(const struct ground *g) { return door6("::1", "tcp6", g); }
int listen_dual_stack(const struct ground *g) { return door6("::", "tcp4", g); }
int listen_mapped(const struct ground *g) { return door6("::ffff:127.0.0.1", "tcp4", g); }

/* listen binds by itself. */
int listen_without_bind(const struct ground *g) {
  (void)g;
  int fd = made(AF_INET, SOCK_STREAM, 0);
  if (fd < 0) return errno;
  if (listen(fd, 8) < 0) return refused(fd);
  return let_in(fd, "tcp4");
}

int listen_without_bind_v6(const struct ground *g) {
  (void)g;
  int fd = made(AF_INET6, SOCK_STREAM, 0);
  if (fd < 0) return errno;
  if (listen(fd, 8) < 0) return refused(fd);
  return let_in(fd, "tcp6");
}

static int after(const struct sockaddr_in *first, int take_back, const struct ground *g) {
  struct sockaddr none = {.sa_family = AF_UNSPEC};
  (void)g;
  int fd = made(AF_INET, SOCK_STREAM, 0);
  if (fd < 0) return errno;
  int error = joined(fd, first, sizeof *first);
  if (take_back && error) return close(fd), error;
  if (take_back) connect(fd, &none, sizeof none);
  if (listen(fd, 8) < 0) return refused(fd);
  return let_in(fd, "tcp4");
}

/* The socket of a connect that failed, or that stood, may be one of the host's. */
int listen_after_a_refused_connect(const struct ground *g) {
  struct sockaddr_in a = v4("127.0.0.1", g->closed);
  return after(&a, 0, g);
}

int listen_after_a_connection(const struct ground *g) {
  struct sockaddr_in a = v4("127.0.0.1", g->open);
  return after(&a, 1, g);
}

/* A second server at the port of one outside: the kernel deals connections out to both. */
int steal_by_reuseport(const struct ground *g) {
  struct sockaddr_in own = v4("127.0.0.1", g->steal);
  int fd = made(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), error = ETIMEDOUT;
  if (fd < 0) return errno;
  setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &(int){1}, 4);
  if (bind(fd, (void *)&own, sizeof own) < 0) return close(fd), errno == EADDRINUSE ? ABSENT : errno;
  if (listen(fd, 64) < 0) return refused(fd);
  knocked("many4", g->steal);
  int got = accept(fd, NULL, NULL);
  if (got >= 0) error = 0, close(got);
  close(fd);
  return error;
}

int steal_by_reuseaddr(const struct ground *g) {
  struct sockaddr_in own = v4("127.0.0.1", g->steal);
  int fd = made(AF_INET, SOCK_DGRAM, 0);
  if (fd < 0) return errno;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &(int){1}, 4);
  if (bind(fd, (void *)&own, sizeof own) < 0) return refused(fd);
  return let_in(fd, "udp4");
}

int udp_bind(const struct ground *g) {
  struct sockaddr_in own = v4("127.0.0.1", g->door);
  int fd = made(AF_INET, SOCK_DGRAM, 0);
  if (fd < 0) return errno;
  if (bind(fd, (void *)&own, sizeof own) < 0) return refused(fd);
  return let_in(fd, "udp4");
}

int udp_bind_v6(const struct ground *g) {
  struct sockaddr_in6 own = v6("::1", g->door);
  int fd = made(AF_INET6, SOCK_DGRAM, 0);
  if (fd < 0) return errno;
  if (bind(fd, (void *)&own, sizeof own) < 0) return refused(fd);
  return let_in(fd, "udp6");
}

/* A datagram that went out, by rule, gives the socket a port: may others than the one asked answer? */
int udp_answer_from_a_stranger(const struct ground *g) {
  struct sockaddr_in a = v4("127.0.0.1", g->open);
  int fd = made(AF_INET, SOCK_DGRAM, 0);
  if (fd < 0) return errno;
  if (sendto(fd, "x", 1, 0, (void *)&a, sizeof a) < 0) return refused(fd);
  return let_in(fd, "udp4");
}

int udp_multicast_member(const struct ground *g) {
  struct sockaddr_in own = v4("239.255.77.77", g->door);
  struct ip_mreqn group = {.imr_ifindex = if_nametoindex("lo")};
  inet_pton(AF_INET, "239.255.77.77", &group.imr_multiaddr);
  int fd = made(AF_INET, SOCK_DGRAM, 0);
  if (fd < 0) return errno;
  if (bind(fd, (void *)&own, sizeof own) < 0) return refused(fd);
  if (setsockopt(fd, IPPROTO_IP, IP_ADD_MEMBERSHIP, &group, sizeof group) < 0) return refused(fd);
  return let_in(fd, "group4");
}

/* A local socket with a name that is no path is reached by everybody of the machine, whatever user. */
static int door_abstract(int type, int named, const struct ground *g) {
  struct sockaddr_un own = {.sun_family = AF_UNIX};
  socklen_t size = offsetof(struct sockaddr_un, sun_path);
  int number = getpid();
  (void)g;
  int fd = made(AF_UNIX, type, 0);
  if (fd < 0) return errno;
  if (named) size += 1 + snprintf(own.sun_path + 1, sizeof own.sun_path - 1, "psb-ways-%d-%d", number, type);
  if (bind(fd, (void *)&own, size) < 0 || listen(fd, 8) < 0) return refused(fd);
  if (!named) { /* the kernel has given it five digits */
    size = sizeof own;
    if (getsockname(fd, (void *)&own, &size) < 0) return refused(fd);
    number = strtol(own.sun_path + 1, NULL, 16);
  }
  if (!knocked(named ? type == SOCK_STREAM ? "named" : "packets" : "unnamed", number)) return close(fd), EHOSTUNREACH;
  struct pollfd wait = {.fd = fd, .events = POLLIN};
  if (poll(&wait, 1, 1000) < 1) return close(fd), ETIMEDOUT;
  int from = accept(fd, NULL, NULL);
  if (from < 0) return refused(fd);
  char byte;
  int error = recv(from, &byte, 1, 0) == 1 ? 0 : ECONNRESET;
  close(from);
  close(fd);
  return error;
}

int listen_abstract(const struct ground *g) { return door_abstract(SOCK_STREAM, 1, g); }
int listen_abstract_packets(const struct ground *g) { return door_abstract(SOCK_SEQPACKET, 1, g); }
int listen_abstract_unnamed(const struct ground *g) { return door_abstract(SOCK_STREAM, 0, g); }
