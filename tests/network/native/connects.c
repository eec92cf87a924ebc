/* TCP out: every form of connect. */

#include <pthread.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/sendfile.h>

#include "ways.h"

static int to4(const char *host, int port, const struct ground *g) {
  struct sockaddr_in a = v4(host, port);
  return reach(made(AF_INET, SOCK_STREAM, 0), &a, sizeof a, g);
}

static int to6(const char *host, int port, int scope, const struct ground *g) {
  struct sockaddr_in6 a = v6(host, port);
  a.sin6_scope_id = scope;
  return reach(made(AF_INET6, SOCK_STREAM, 0), &a, sizeof a, g);
}

int connect_v4(const struct ground *g) { return to4(g->host, g->port, g); }
int connect_v6(const struct ground *g) { return to6(g->host6, g->port, 0, g); }
int connect_mapped(const struct ground *g) {
  struct sockaddr_in6 a = mapped(g->host, g->port);
  return reach(made(AF_INET6, SOCK_STREAM, 0), &a, sizeof a, g);
}
int connect_scoped(const struct ground *g) { return to6(g->host6, g->port, if_nametoindex("lo"), g); }
int connect_unspecified(const struct ground *g) { return to4("0.0.0.0", g->port, g); }
int connect_unspecified_v6(const struct ground *g) { return to6("::", g->port, 0, g); }
int connect_unspecified_mapped(const struct ground *g) { return to6("::ffff:0.0.0.0", g->port, 0, g); }
int connect_other_loopback(const struct ground *g) { return to4(g->other, g->port, g); }
int connect_other_host_of_a_granted_port(const struct ground *g) { return to4(g->other, g->narrow, g); }
int connect_other_host_mapped(const struct ground *g) {
  struct sockaddr_in6 a = mapped(g->other, g->narrow);
  return reach(made(AF_INET6, SOCK_STREAM, 0), &a, sizeof a, g);
}

int connect_spelled(const struct ground *g) {
  struct sockaddr_in a = v4("0.0.0.0", g->port);
  if (!inet_aton("0x7f.1", &a.sin_addr)) return EINVAL;
  return reach(made(AF_INET, SOCK_STREAM, IPPROTO_TCP), &a, sizeof a, g);
}

int connect_by_syscall(const struct ground *g) {
  struct sockaddr_in a = v4(g->host, g->port);
  int fd = made(AF_INET, SOCK_STREAM, 0);
  if (fd < 0) return errno;
  if (syscall(SYS_connect, fd, &a, sizeof a) < 0) return errno;
  return tell(fd, g);
}

/* An address longer than its family needs: what follows is not looked at. */
int connect_long_address(const struct ground *g) {
  struct sockaddr_storage long_one = {0};
  struct sockaddr_in a = v4(g->host, g->port);
  memcpy(&long_one, &a, sizeof a);
  memset((char *)&long_one + sizeof a, 0xff, sizeof long_one - sizeof a);
  return reach(made(AF_INET, SOCK_STREAM, 0), &long_one, sizeof long_one, g);
}

/* High bits of a descriptor and of a length: the kernel takes the low half. */
int connect_high_bits(const struct ground *g) {
  struct sockaddr_in a = v4(g->host, g->port);
  int fd = made(AF_INET, SOCK_STREAM, 0);
  if (fd < 0) return errno;
  if (syscall(SYS_connect, 0xdead00000000UL | (unsigned)fd, &a, 0xbeef00000000UL | sizeof a) < 0) return errno;
  return tell(fd, g);
}

/* The address ends where its page does. */
int connect_at_the_end_of_a_page(const struct ground *g) {
  char *pages = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (pages == MAP_FAILED) return errno;
  munmap(pages + 4096, 4096);
  struct sockaddr_in a = v4(g->host, g->port);
  memcpy(pages + 4096 - sizeof a, &a, sizeof a);
  int error = reach(made(AF_INET, SOCK_STREAM, 0), pages + 4096 - sizeof a, sizeof a, g);
  munmap(pages, 4096);
  return error;
}

int connect_read_only_address(const struct ground *g) {
  char *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) return errno;
  struct sockaddr_in a = v4(g->host, g->port);
  memcpy(page, &a, sizeof a);
  mprotect(page, 4096, PROT_READ);
  int error = reach(made(AF_INET, SOCK_STREAM, 0), page, sizeof a, g);
  munmap(page, 4096);
  return error;
}

/* Odd addresses first: they may confuse the one who reads them, and none of them may make it through or hang. */
int connect_after_odd_addresses(const struct ground *g) {
  struct sockaddr_in a = v4(g->host, g->port);
  socklen_t lengths[] = {0, 1, 2, 7, 15, 129, 4096, (socklen_t)-1};
  for (unsigned i = 0; i < sizeof lengths / sizeof *lengths; i++) {
    int fd = made(AF_INET, SOCK_STREAM, 0);
    if (fd < 0) return errno;
    if (connect(fd, (void *)&a, lengths[i]) == 0) tell(fd, g);
    else close(fd);
  }
  void *nowhere[] = {NULL, (void *)1, (void *)-1L, (void *)0xffff888000000000UL};
  for (unsigned i = 0; i < sizeof nowhere / sizeof *nowhere; i++) {
    int fd = made(AF_INET, SOCK_STREAM, 0);
    if (connect(fd, nowhere[i], sizeof a) == 0) tell(fd, g);
    else close(fd);
  }
  return connect_v4(g);
}

int connect_unspec_first(const struct ground *g) {
  struct sockaddr none = {.sa_family = AF_UNSPEC};
  struct sockaddr_in a = v4(g->host, g->port);
  int fd = made(AF_INET, SOCK_STREAM, 0);
  if (fd < 0) return errno;
  connect(fd, &none, sizeof none);
  return reach(fd, &a, sizeof a, g);
}

/* A socket that a rule let out, taken back and aimed elsewhere. */
static int again(int family, const void *first, const void *second, socklen_t length, const struct ground *g) {
  struct sockaddr none = {.sa_family = AF_UNSPEC};
  int fd = made(family, SOCK_STREAM, 0);
  if (fd < 0) return errno;
  int error = joined(fd, first, length);
  if (error) return error;
  if (connect(fd, &none, sizeof none) < 0) return errno;
  return reach(fd, second, length, g);
}

int connect_granted_then_elsewhere(const struct ground *g) {
  struct sockaddr_in first = v4(g->host, g->open), second = v4(g->host, g->port);
  return again(AF_INET, &first, &second, sizeof first, g);
}

int connect_granted_then_elsewhere_v6(const struct ground *g) {
  struct sockaddr_in6 first = v6(g->host6, g->open), second = v6(g->host6, g->port);
  return again(AF_INET6, &first, &second, sizeof first, g);
}

/* A mapped connection becomes an IPv4 socket in place. */
int connect_addrform_then_elsewhere(const struct ground *g) {
  struct sockaddr_in6 first = mapped(g->host, g->open);
  struct sockaddr_in second = v4(g->host, g->port);
  struct sockaddr none = {.sa_family = AF_UNSPEC};
  int fd = made(AF_INET6, SOCK_STREAM, 0), inet = AF_INET;
  if (fd < 0) return errno;
  int error = joined(fd, &first, sizeof first);
  if (error) return error;
  if (setsockopt(fd, IPPROTO_IPV6, IPV6_ADDRFORM, &inet, sizeof inet) < 0) return errno;
  if (connect(fd, &none, sizeof none) < 0) return errno;
  return reach(fd, &second, sizeof second, g);
}

int connect_after_a_refused_one(const struct ground *g) {
  struct sockaddr_in first = v4(g->host, g->closed), second = v4(g->host, g->port);
  int fd = made(AF_INET, SOCK_STREAM, 0);
  if (fd < 0) return errno;
  connect(fd, (void *)&first, sizeof first);
  return reach(fd, &second, sizeof second, g);
}

/* A second address while the first is under way. */
int connect_twice_without_waiting(const struct ground *g) {
  struct sockaddr_in first = v4(g->host, g->closed), second = v4(g->host, g->port);
  int fd = made(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), error = 0;
  if (fd < 0) return errno;
  connect(fd, (void *)&first, sizeof first);
  for (int i = 0; i < 5 && (error = joined(fd, &second, sizeof second)); i++) {}
  return error ? error : tell(fd, g);
}

int connect_nonblocking(const struct ground *g) {
  struct sockaddr_in a = v4(g->host, g->port);
  return reach(made(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), &a, sizeof a, g);
}

int connect_bound_before(const struct ground *g) {
  struct sockaddr_in own = v4("127.0.0.1", 0), a = v4(g->host, g->port);
  int fd = made(AF_INET, SOCK_STREAM, 0);
  if (fd < 0) return errno;
  bind(fd, (void *)&own, sizeof own);
  return reach(fd, &a, sizeof a, g);
}

static void *in_a_thread(void *argument) {
  return (void *)(long)connect_v4(argument);
}

int connect_in_a_thread(const struct ground *g) {
  pthread_t thread;
  void *error = NULL;
  if (pthread_create(&thread, NULL, in_a_thread, (void *)g)) return EAGAIN;
  pthread_join(thread, &error);
  return (int)(long)error;
}

/* The connection is made by one number and used by another. */
int connect_by_a_copy(const struct ground *g) {
  struct sockaddr_in a = v4(g->host, g->port);
  int fd = made(AF_INET, SOCK_STREAM, 0);
  if (fd < 0) return errno;
  int copy = dup(fd), error = joined(copy, &a, sizeof a);
  close(copy);
  return error ? (close(fd), error) : tell(fd, g);
}

int connect_in_epoll(const struct ground *g) {
  struct sockaddr_in a = v4(g->host, g->port);
  int fd = made(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), set = epoll_create1(EPOLL_CLOEXEC), error = 0;
  if (fd < 0) return errno;
  struct epoll_event wanted = {.events = EPOLLOUT | EPOLLONESHOT, .data.u64 = 0x1234567890}, happened = {0};
  socklen_t size = sizeof error;
  epoll_ctl(set, EPOLL_CTL_ADD, fd, &wanted);
  epoll_wait(set, &happened, 1, 0); /* not connected: that is an event, and the registration is spent */
  wanted.events = EPOLLOUT;
  epoll_ctl(set, EPOLL_CTL_MOD, fd, &wanted);
  if (connect(fd, (void *)&a, sizeof a) < 0 && errno != EINPROGRESS) error = errno;
  else if (epoll_wait(set, &happened, 1, 2000) < 1) error = ETIMEDOUT;
  else if (happened.data.u64 != 0x1234567890) error = EBADMSG;
  else getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size);
  close(set);
  return error ? (close(fd), error) : tell(fd, g);
}

static int optioned(int level, int name, const void *value, socklen_t size, const struct ground *g) {
  struct sockaddr_in a = v4(g->host, g->port);
  int fd = made(AF_INET, SOCK_STREAM, 0);
  if (fd < 0) return errno;
  setsockopt(fd, level, name, value, size);
  return reach(fd, &a, sizeof a, g);
}

int connect_bound_to_a_device(const struct ground *g) { return optioned(SOL_SOCKET, SO_BINDTODEVICE, "lo", 3, g); }
int connect_transparent(const struct ground *g) { return optioned(IPPROTO_IP, IP_TRANSPARENT, &(int){1}, 4, g); }
int connect_marked(const struct ground *g) { return optioned(SOL_SOCKET, SO_MARK, &(int){1}, 4, g); }
int connect_without_a_port(const struct ground *g) { return optioned(IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &(int){1}, 4, g); }
int connect_reusing(const struct ground *g) { return optioned(SOL_SOCKET, SO_REUSEPORT, &(int){1}, 4, g); }

int connect_from_a_foreign_address(const struct ground *g) {
  struct sockaddr_in own = v4("127.9.9.9", 0), a = v4(g->host, g->port);
  int fd = made(AF_INET, SOCK_STREAM, 0);
  if (fd < 0) return errno;
  setsockopt(fd, IPPROTO_IP, IP_FREEBIND, &(int){1}, 4);
  bind(fd, (void *)&own, sizeof own);
  return reach(fd, &a, sizeof a, g);
}

int connect_flow_label(const struct ground *g) {
  struct sockaddr_in6 a = v6(g->host6, g->port);
  a.sin6_flowinfo = htonl(0x0f000000);
  return reach(made(AF_INET6, SOCK_STREAM, 0), &a, sizeof a, g);
}

/* Fast open: a send that connects. */
int fastopen_sendto(const struct ground *g) {
  struct sockaddr_in a = v4(g->host, g->port);
  int fd = made(AF_INET, SOCK_STREAM, 0);
  if (fd < 0) return errno;
  ssize_t sent = sendto(fd, g->token, strlen(g->token), MSG_FASTOPEN | MSG_NOSIGNAL, (void *)&a, sizeof a);
  int error = sent < 0 ? errno : 0;
  close(fd);
  return error;
}

int fastopen_sendmsg(const struct ground *g) {
  struct sockaddr_in a = v4(g->host, g->port);
  return post(made(AF_INET, SOCK_STREAM, 0), &a, sizeof a, MSG_FASTOPEN, g);
}

int fastopen_sendmmsg(const struct ground *g) {
  struct sockaddr_in6 a = v6(g->host6, g->port);
  struct iovec part = {.iov_base = (void *)g->token, .iov_len = strlen(g->token)};
  struct mmsghdr one = {.msg_hdr = {.msg_name = &a, .msg_namelen = sizeof a, .msg_iov = &part, .msg_iovlen = 1}};
  int fd = made(AF_INET6, SOCK_STREAM, 0);
  if (fd < 0) return errno;
  int error = sendmmsg(fd, &one, 1, MSG_FASTOPEN | MSG_NOSIGNAL) < 1 ? errno : 0;
  close(fd);
  return error;
}

/* connect only remembers the address, the first write sends it out. */
int fastopen_deferred(const struct ground *g) {
  struct sockaddr_in a = v4(g->host, g->port);
  int fd = made(AF_INET, SOCK_STREAM, 0);
  if (fd < 0) return errno;
  setsockopt(fd, IPPROTO_TCP, 34 /* TCP_FASTOPEN_NO_COOKIE */, &(int){1}, 4);
  setsockopt(fd, IPPROTO_TCP, TCP_FASTOPEN_CONNECT, &(int){1}, 4);
  return reach(fd, &a, sizeof a, g);
}

/* The address of a TCP send is not looked at where the connection stands. */
int sendto_on_a_connection(const struct ground *g) {
  struct sockaddr_in first = v4(g->host, g->open), second = v4(g->host, g->port);
  int fd = made(AF_INET, SOCK_STREAM, 0);
  if (fd < 0) return errno;
  int error = joined(fd, &first, sizeof first);
  if (error) return error;
  ssize_t sent = sendto(fd, g->token, strlen(g->token), MSG_NOSIGNAL, (void *)&second, sizeof second);
  error = sent < 0 ? errno : 0;
  close(fd);
  return error;
}

/* Bytes that never pass through a send. */
static int by_pipe(int fd, int in, const struct ground *g) {
  ssize_t sent = splice(in, NULL, fd, NULL, strlen(g->token), 0);
  int error = sent < 0 ? errno : 0;
  close(fd);
  return error;
}

int splice_into(const struct ground *g) {
  struct sockaddr_in a = v4(g->host, g->port);
  int ends[2], copy[2], fd = made(AF_INET, SOCK_STREAM, 0);
  if (fd < 0 || pipe(ends) < 0 || pipe(copy) < 0) return errno;
  if (write(ends[1], g->token, strlen(g->token)) < 0) return errno;
  if (tee(ends[0], copy[1], strlen(g->token), 0) < 0) return errno;
  connect(fd, (void *)&a, sizeof a);
  int error = by_pipe(fd, copy[0], g);
  for (int i = 0; i < 2; i++) close(ends[i]), close(copy[i]);
  return error;
}

int sendfile_into(const struct ground *g) {
  struct sockaddr_in a = v4(g->host, g->port);
  int fd = made(AF_INET, SOCK_STREAM, 0), file = memfd_create("token", MFD_CLOEXEC);
  if (fd < 0 || file < 0) return errno;
  if (write(file, g->token, strlen(g->token)) < 0) return errno;
  connect(fd, (void *)&a, sizeof a);
  off_t at = 0;
  ssize_t sent = sendfile(fd, file, &at, strlen(g->token));
  int error = sent < 0 ? errno : 0;
  close(fd);
  close(file);
  return error;
}

/* Two hundred at once, none of them waited for before all are under way. */
int connect_two_hundred(const struct ground *g) {
  enum { all = 200 };
  struct sockaddr_in a = v4(g->host, g->port);
  int fds[all], through = 0, error = 0;
  for (int i = 0; i < all; i++) {
    fds[i] = made(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    if (connect(fds[i], (void *)&a, sizeof a) < 0 && errno != EINPROGRESS) error = errno;
  }
  for (int i = 0; i < all; i++) {
    struct pollfd wait = {.fd = fds[i], .events = POLLOUT};
    poll(&wait, 1, 2000);
    ssize_t sent = send(fds[i], g->token, strlen(g->token), MSG_NOSIGNAL);
    if (sent > 0) through++;
    close(fds[i]);
  }
  return through == all ? 0 : error ? error : ENOTCONN;
}

/* No descriptor is left, neither for this process nor, as far as it depends on its limit, for one who helps it. */
int connect_without_descriptors(const struct ground *g) {
  struct sockaddr_in a = v4(g->host, g->port);
  struct rlimit before, few;
  int fd = made(AF_INET, SOCK_STREAM, 0);
  if (fd < 0) return errno;
  getrlimit(RLIMIT_NOFILE, &before);
  few = before;
  few.rlim_cur = fd + 1; /* the lowest free number it was, so all below are taken */
  if (setrlimit(RLIMIT_NOFILE, &few) < 0) return errno;
  int error = joined(fd, &a, sizeof a);
  setrlimit(RLIMIT_NOFILE, &before);
  return error ? (close(fd), error) : tell(fd, g);
}

int mptcp_connect(const struct ground *g) {
  struct sockaddr_in a = v4(g->host, g->port);
  int fd = made(AF_INET, SOCK_STREAM, 262);
  if (fd < 0) return errno == EPROTONOSUPPORT || errno == ENOPROTOOPT ? ABSENT : errno;
  return reach(fd, &a, sizeof a, g);
}
