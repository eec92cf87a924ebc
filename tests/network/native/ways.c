/* What the ways share: addresses, waiting, telling, being knocked at. */

#include "ways.h"

struct sockaddr_in v4(const char *host, int port) {
  struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(port)};
  inet_pton(AF_INET, host, &a.sin_addr);
  return a;
}

struct sockaddr_in6 v6(const char *host, int port) {
  struct sockaddr_in6 a = {.sin6_family = AF_INET6, .sin6_port = htons(port)};
  inet_pton(AF_INET6, host, &a.sin6_addr);
  return a;
}

struct sockaddr_in6 mapped(const char *host, int port) {
  char text[64];
  snprintf(text, sizeof text, "::ffff:%s", host);
  return v6(text, port);
}

int made(int family, int type, int protocol) {
  int fd = socket(family, type | SOCK_CLOEXEC, protocol);
  if (fd < 0) return -1;
  struct timeval limit = {.tv_sec = 2};
  setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  return fd;
}

static int ended(int fd, int result) {
  close(fd);
  return result;
}

int tell(int fd, const struct ground *g) {
  ssize_t sent = send(fd, g->token, strlen(g->token), MSG_NOSIGNAL);
  return ended(fd, sent < 0 ? errno : 0);
}

int joined(int fd, const void *address, socklen_t length) {
  if (connect(fd, address, length) == 0) return 0;
  if (errno != EINPROGRESS && errno != EINTR) return errno;
  struct pollfd wait = {.fd = fd, .events = POLLOUT};
  while (poll(&wait, 1, 2000) < 0 && errno == EINTR) {}
  int error = 0;
  socklen_t size = sizeof error;
  if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) < 0) return errno;
  if (error) return error;
  struct sockaddr_storage peer; /* writable and without an error is not yet connected (a call that never began) */
  size = sizeof peer;
  return getpeername(fd, (struct sockaddr *)&peer, &size) < 0 ? errno : 0;
}

int reach(int fd, const void *address, socklen_t length, const struct ground *g) {
  if (fd < 0) return errno;
  int error = joined(fd, address, length);
  return error ? ended(fd, error) : tell(fd, g);
}

int post(int fd, const void *address, socklen_t length, int flags, const struct ground *g) {
  if (fd < 0) return errno;
  struct iovec part = {.iov_base = (void *)g->token, .iov_len = strlen(g->token)};
  struct msghdr message = {.msg_name = (void *)address, .msg_namelen = length, .msg_iov = &part, .msg_iovlen = 1};
  ssize_t sent = sendmsg(fd, &message, flags | MSG_NOSIGNAL);
  return ended(fd, sent < 0 ? errno : 0);
}

int knocked(const char *how, int port) {
  dprintf(1, "\nKNOCK %s %d\n", how, port);
  char answer = 0, byte;
  while (read(0, &byte, 1) == 1 && byte != '\n') answer = byte;
  return answer == 'y';
}

int let_in(int fd, const char *how) {
  struct sockaddr_storage own;
  socklen_t size = sizeof own;
  if (getsockname(fd, (struct sockaddr *)&own, &size) < 0) return ended(fd, errno);
  int port = ntohs(own.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&own)->sin6_port : ((struct sockaddr_in *)&own)->sin_port);
  if (!knocked(how, port)) return ended(fd, EHOSTUNREACH);
  struct pollfd wait = {.fd = fd, .events = POLLIN};
  if (poll(&wait, 1, 1000) < 1) return ended(fd, ETIMEDOUT);
  int from = how[0] == 't' ? accept(fd, NULL, NULL) : dup(fd);
  if (from < 0) return ended(fd, errno);
  char byte;
  ssize_t got = recv(from, &byte, 1, 0);
  int error = got == 1 ? 0 : got == 0 ? ECONNRESET : errno;
  close(from);
  return ended(fd, error);
}
