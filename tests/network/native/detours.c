/* Detours: what a connection that has ended becomes, and options by which a packet goes elsewhere than its address says. */

#include <netinet/ip.h>

#include "ways.h"

/* A socket that a rule let out, whose connection has come to its end on both sides and was given back: it is free again, and
 * where another was put in its place it is one of the host's. -1 and errno. */
static int used_up(const struct ground *g) {
  struct sockaddr none = {.sa_family = AF_UNSPEC};
  struct sockaddr_in a = v4(g->host, g->open);
  struct tcp_info info = {0};
  int fd = made(AF_INET, SOCK_STREAM, 0), error;
  if (fd < 0) return -1;
  if ((error = joined(fd, &a, sizeof a))) return errno = error, -1;
  shutdown(fd, SHUT_WR);
  char byte;
  recv(fd, &byte, 1, 0); /* the other side has ended, too */
  for (int i = 0; i < 1000 && info.tcpi_state != TCP_CLOSE; i++) {
    socklen_t size = sizeof info;
    getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size);
    if (i) poll(NULL, 0, 1);
  }
  connect(fd, &none, sizeof none);
  return fd;
}

int ended_then_connect(const struct ground *g) {
  struct sockaddr_in a = v4(g->host, g->port);
  return reach(used_up(g), &a, sizeof a, g);
}

int ended_then_fastopen(const struct ground *g) {
  struct sockaddr_in a = v4(g->host, g->port);
  return post(used_up(g), &a, sizeof a, MSG_FASTOPEN, g);
}

int ended_then_fastopen_by_sendto(const struct ground *g) {
  struct sockaddr_in a = v4(g->host, g->port);
  int fd = used_up(g);
  if (fd < 0) return errno;
  int error = sendto(fd, g->token, strlen(g->token), MSG_FASTOPEN | MSG_NOSIGNAL, (void *)&a, sizeof a) < 0 ? errno : 0;
  close(fd);
  return error;
}

int ended_then_deferred(const struct ground *g) {
  struct sockaddr_in a = v4(g->host, g->port);
  int fd = used_up(g);
  if (fd < 0) return errno;
  setsockopt(fd, IPPROTO_TCP, 34 /* TCP_FASTOPEN_NO_COOKIE */, &(int){1}, 4);
  setsockopt(fd, IPPROTO_TCP, TCP_FASTOPEN_CONNECT, &(int){1}, 4);
  return reach(fd, &a, sizeof a, g);
}

int ended_then_listen(const struct ground *g) {
  int fd = used_up(g);
  if (fd < 0) return errno;
  if (listen(fd, 8) < 0) {
    int error = errno;
    close(fd);
    return error;
  }
  return let_in(fd, "tcp4");
}

int ended_then_bind(const struct ground *g) {
  struct sockaddr_in own = v4("127.0.0.1", g->door);
  int fd = used_up(g);
  if (fd < 0) return errno;
  if (bind(fd, (void *)&own, sizeof own) < 0 || listen(fd, 8) < 0) {
    int error = errno;
    close(fd);
    return error;
  }
  return let_in(fd, "tcp4");
}

/* A loose source route: the packet goes to its first stop, whoever the address names (RFC 791). */
static void route(unsigned char *option) {
  static const unsigned char by_way_of[8] = {131, 7, 4, 127, 0, 0, 3, 1};
  memcpy(option, by_way_of, sizeof by_way_of);
}

int source_route(const struct ground *g) {
  unsigned char option[8];
  (void)g;
  route(option);
  int fd = made(AF_INET, SOCK_STREAM, 0);
  if (fd < 0) return errno;
  int error = setsockopt(fd, IPPROTO_IP, IP_OPTIONS, option, sizeof option) < 0 ? errno : 0;
  close(fd);
  return error;
}

int source_route_of_a_connection(const struct ground *g) {
  struct sockaddr_in a = v4(g->host, g->open);
  unsigned char option[8];
  route(option);
  int fd = made(AF_INET, SOCK_STREAM, 0);
  if (fd < 0) return errno;
  int error = joined(fd, &a, sizeof a);
  if (!error) error = setsockopt(fd, IPPROTO_IP, IP_OPTIONS, option, sizeof option) < 0 ? errno : 0;
  close(fd);
  return error;
}

int source_route_of_a_datagram(const struct ground *g) {
  struct sockaddr_in a = v4(g->host, g->open);
  struct iovec part = {.iov_base = "routed", .iov_len = 6};
  union {
    char room[CMSG_SPACE(8)];
    struct cmsghdr head;
  } control = {{0}};
  struct msghdr message = {.msg_name = &a, .msg_namelen = sizeof a, .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
  control.head = (struct cmsghdr){.cmsg_len = CMSG_LEN(8), .cmsg_level = IPPROTO_IP, .cmsg_type = IP_RETOPTS};
  route(CMSG_DATA(&control.head));
  int fd = made(AF_INET, SOCK_DGRAM, 0);
  if (fd < 0) return errno;
  int error = sendmsg(fd, &message, 0) < 0 ? errno : 0;
  close(fd);
  return error;
}

/* The same of IPv6: a segment routing header (RFC 8754), which needs no privilege. */
int routing_header(const struct ground *g) {
  struct {
    unsigned char next, length, type, left, first, flags;
    unsigned short tag;
    struct in6_addr segments[2];
  } header = {.length = 4, .type = 4, .left = 1, .first = 1, .segments = {in6addr_loopback, in6addr_loopback}};
  (void)g;
  int fd = made(AF_INET6, SOCK_STREAM, 0);
  if (fd < 0) return errno;
  int error = setsockopt(fd, IPPROTO_IPV6, IPV6_RTHDR, &header, sizeof header) < 0 ? errno : 0;
  close(fd);
  return error;
}

/* A device of the program's choice: what goes to an address of this machine leaves it by that one. */
static int choose(int family, int level, int option, const void *value, socklen_t size) {
  int fd = made(family, SOCK_STREAM, 0);
  if (fd < 0) return errno;
  int error = setsockopt(fd, level, option, value, size) < 0 ? errno : 0;
  close(fd);
  return error;
}

int device_by_name(const struct ground *g) { return (void)g, choose(AF_INET, SOL_SOCKET, SO_BINDTODEVICE, "lo", 3); }
int device_by_number(const struct ground *g) { return (void)g, choose(AF_INET6, SOL_SOCKET, 62 /* SO_BINDTOIFINDEX */, &(int){1}, 4); }
int device_of_unicast(const struct ground *g) { return (void)g, choose(AF_INET, IPPROTO_IP, 50 /* IP_UNICAST_IF */, &(int){htonl(1)}, 4); }
int device_of_unicast_v6(const struct ground *g) { return (void)g, choose(AF_INET6, IPPROTO_IPV6, 76 /* IPV6_UNICAST_IF */, &(int){htonl(1)}, 4); }
int device_of_a_source_v6(const struct ground *g) {
  struct in6_pktinfo source = {.ipi6_ifindex = 1};
  (void)g;
  return choose(AF_INET6, IPPROTO_IPV6, IPV6_PKTINFO, &source, sizeof source);
}
