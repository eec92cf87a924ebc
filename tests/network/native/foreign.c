/* Ways beside the socket calls: other families and protocols, rings, namespaces, other processes' descriptors. */

#include <linux/io_uring.h>
#include <linux/rtnetlink.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

#include "ways.h"

/* Every family that is not on the list, in every type: none may be made. */
int every_other_family(const struct ground *g) {
  (void)g;
  for (int family = 0; family < 48; family++) {
    if (family == AF_UNIX || family == AF_INET || family == AF_INET6 || family == AF_NETLINK) continue;
    for (int type = 1; type < 11; type++) {
      int fd = socket(family, type, 0);
      if (fd < 0) continue;
      dprintf(1, "family %d, type %d\n", family, type);
      close(fd);
      return 0;
    }
  }
  return EACCES;
}

/* Every protocol beside TCP and UDP, in every type. */
int every_other_protocol(const struct ground *g) {
  (void)g;
  for (int family = AF_INET; family <= AF_INET6; family += AF_INET6 - AF_INET)
    for (int type = 1; type < 11; type++)
      for (int protocol = 1; protocol < 264; protocol++) {
        if (type == SOCK_STREAM && protocol == IPPROTO_TCP) continue;
        if (type == SOCK_DGRAM && protocol == IPPROTO_UDP) continue;
        int fd = socket(family, type, protocol);
        if (fd < 0) continue;
        dprintf(1, "family %d, type %d, protocol %d\n", family, type, protocol);
        close(fd);
        return 0;
      }
  return EACCES;
}

int every_other_netlink(const struct ground *g) {
  (void)g;
  for (int protocol = 1; protocol < 32; protocol++) { /* 0 is the list of addresses that getaddrinfo reads */
    int fd = socket(AF_NETLINK, SOCK_RAW, protocol);
    if (fd < 0) continue;
    dprintf(1, "netlink %d\n", protocol);
    close(fd);
    return 0;
  }
  return EACCES;
}

/* Changes the loopback device, to what it is: who may, could as well change the machine's routes. By each call that has the
 * kernel's address, or none. */
static int netlink(int type, int how, const char *body, size_t size) {
  struct sockaddr_nl kernel = {.nl_family = AF_NETLINK};
  struct { struct nlmsghdr head; char body[64]; } ask = {.head = {.nlmsg_type = type, .nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK, .nlmsg_len = NLMSG_LENGTH(size)}};
  struct { struct nlmsghdr head; int error; char rest[8192]; } answer = {.error = -ENODATA};
  struct iovec data = {&ask, ask.head.nlmsg_len};
  struct mmsghdr many = {.msg_hdr = {.msg_name = how & 1 ? &kernel : NULL, .msg_namelen = how & 1 ? sizeof kernel : 0, .msg_iov = &data, .msg_iovlen = 1}};
  int fd = made(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE), sent;
  if (fd < 0) return errno;
  memcpy(ask.body, body, size);
  if (how < 2) sent = sendto(fd, &ask, data.iov_len, 0, many.msg_hdr.msg_name, many.msg_hdr.msg_namelen);
  else if (how < 4) sent = sendmsg(fd, &many.msg_hdr, 0);
  else sent = sendmmsg(fd, &many, 1, 0);
  int error = sent < 0 ? errno : 0;
  ssize_t got = error ? 0 : recv(fd, &answer, sizeof answer, 0);
  close(fd);
  if (got < 0) return errno;
  if (type == RTM_GETLINK) return error ? error : answer.head.nlmsg_type == RTM_NEWLINK ? 0 : ENODATA;
  return error ? error : -answer.error;
}

static int link_changed(int how) {
  struct ifinfomsg lo = {.ifi_index = 1};
  return netlink(RTM_SETLINK, how, (char *)&lo, sizeof lo);
}

int netlink_change(const struct ground *g) { return (void)g, link_changed(1); }
int netlink_change_without_address(const struct ground *g) { return (void)g, link_changed(0); }
int netlink_change_by_sendmsg(const struct ground *g) { return (void)g, link_changed(3); }
int netlink_change_by_sendmsg_without_address(const struct ground *g) { return (void)g, link_changed(2); }
int netlink_change_by_sendmmsg(const struct ground *g) { return (void)g, link_changed(5); }

/* A change behind a question, in one datagram. */
int netlink_change_behind_a_question(const struct ground *g) {
  (void)g;
  struct { struct ifinfomsg lo; struct nlmsghdr head; struct ifinfomsg change; } two = {
    {.ifi_index = 1}, {.nlmsg_type = RTM_SETLINK, .nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK, .nlmsg_len = NLMSG_LENGTH(sizeof two.change)}, {.ifi_index = 1}};
  struct sockaddr_nl kernel = {.nl_family = AF_NETLINK};
  struct { struct nlmsghdr head; char body[sizeof two]; } ask = {.head = {.nlmsg_type = RTM_GETLINK, .nlmsg_flags = NLM_F_REQUEST, .nlmsg_len = NLMSG_LENGTH(sizeof two.lo)}};
  struct { struct nlmsghdr head; int error; char rest[8192]; } answer;
  memcpy(ask.body, &two, sizeof two);
  int fd = made(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE);
  if (fd < 0) return errno;
  if (sendto(fd, &ask, sizeof ask, 0, (void *)&kernel, sizeof kernel) < 0) return errno;
  while (recv(fd, &answer, sizeof answer, 0) > 0)
    if (answer.head.nlmsg_type == NLMSG_ERROR) return close(fd), -answer.error;
  return close(fd), ENODATA;
}

/* What the C library asks before it orders addresses. */
int means_netlink(const struct ground *g) {
  struct ifinfomsg lo = {.ifi_index = 1};
  (void)g;
  for (int how = 0; how < 6; how++) dprintf(1, "asked %d: %s\n", how, strerror(netlink(RTM_GETLINK, how, (char *)&lo, sizeof lo)));
  return 0;
}

/* A pair of sockets of a family that is not on the list: of TIPC they reach whoever is in the cluster. */
int socketpair_of_another_family(const struct ground *g) {
  (void)g;
  int ends[2];
  for (int family = 0; family < 48; family++) {
    if (family == AF_UNIX) continue;
    for (int type = 1; type < 11; type++) {
      if (socketpair(family, type, 0, ends) < 0) continue;
      dprintf(1, "family %d, type %d\n", family, type);
      close(ends[0]), close(ends[1]);
      return 0;
    }
  }
  return ABSENT;
}

/* The numbers of a socket call are ints: what stands above them does not count. */
int packet_family_with_high_bits(const struct ground *g) {
  (void)g;
  long fd = syscall(SYS_socket, 0x100000000UL | AF_PACKET, SOCK_DGRAM, 0);
  return fd < 0 ? errno : (close(fd), 0);
}

int socketpair_of_the_internet(const struct ground *g) {
  struct sockaddr_in a = v4(g->host, g->port);
  int ends[2];
  if (socketpair(AF_INET, SOCK_DGRAM, 0, ends) < 0) return errno == EOPNOTSUPP ? ABSENT : errno;
  return post(ends[0], &a, sizeof a, 0, g);
}

/* io_uring: the calls are made by the kernel, a filter does not see them. */
static int ring_call(const struct io_uring_sqe *call) {
  struct io_uring_params p = {0};
  int ring = syscall(SYS_io_uring_setup, 2, &p);
  if (ring < 0) return -errno;
  char *sq = mmap(NULL, p.sq_off.array + p.sq_entries * 4, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, ring, IORING_OFF_SQ_RING);
  char *cq = mmap(NULL, p.cq_off.cqes + p.cq_entries * sizeof(struct io_uring_cqe), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, ring, IORING_OFF_CQ_RING);
  struct io_uring_sqe *calls = mmap(NULL, p.sq_entries * sizeof *calls, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, ring, IORING_OFF_SQES);
  if (sq == MAP_FAILED || cq == MAP_FAILED || calls == MAP_FAILED) return close(ring), -ENOMEM;
  calls[0] = *call;
  ((unsigned *)(sq + p.sq_off.array))[0] = 0;
  __atomic_store_n((unsigned *)(sq + p.sq_off.tail), 1, __ATOMIC_RELEASE);
  int result = -EIO;
  if (syscall(SYS_io_uring_enter, ring, 1, 1, IORING_ENTER_GETEVENTS, NULL, 0) < 0) result = -errno;
  else result = ((struct io_uring_cqe *)(cq + p.cq_off.cqes))->res;
  close(ring);
  return result;
}

int ring_connect(const struct ground *g) {
  struct sockaddr_in a = v4(g->host, g->port);
  int fd = made(AF_INET, SOCK_STREAM, 0);
  if (fd < 0) return errno;
  struct io_uring_sqe call = {.opcode = IORING_OP_CONNECT, .fd = fd, .addr = (unsigned long)&a, .off = sizeof a};
  int result = ring_call(&call);
  if (result < 0) return close(fd), -result;
  return tell(fd, g);
}

int ring_sendmsg(const struct ground *g) {
  struct sockaddr_in a = v4(g->host, g->port);
  struct iovec part = {.iov_base = (void *)g->token, .iov_len = strlen(g->token)};
  struct msghdr message = {.msg_name = &a, .msg_namelen = sizeof a, .msg_iov = &part, .msg_iovlen = 1};
  int fd = made(AF_INET, SOCK_DGRAM, 0);
  if (fd < 0) return errno;
  struct io_uring_sqe call = {.opcode = IORING_OP_SENDMSG, .fd = fd, .addr = (unsigned long)&message, .len = 1};
  int result = ring_call(&call);
  close(fd);
  return result < 0 ? -result : 0;
}

/* Namespaces. */
int new_network(const struct ground *g) {
  (void)g;
  pid_t child = syscall(SYS_clone, CLONE_NEWUSER | CLONE_NEWNET | SIGCHLD, 0, 0, 0, 0);
  if (child < 0) return errno;
  if (child == 0) _exit(0);
  waitpid(child, NULL, 0);
  return 0;
}

int new_network_by_clone3(const struct ground *g) {
  (void)g;
  unsigned long arguments[11] = {CLONE_NEWUSER | CLONE_NEWNET, 0, 0, 0, SIGCHLD};
  pid_t child = syscall(SYS_clone3, arguments, sizeof arguments);
  if (child < 0) return errno;
  if (child == 0) _exit(0);
  waitpid(child, NULL, 0);
  return 0;
}

static int network_of(const char *who, const struct ground *g) {
  char path[64];
  snprintf(path, sizeof path, "/proc/%s/ns/net", who);
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return errno;
  if (setns(fd, CLONE_NEWNET) < 0) return close(fd), errno;
  close(fd);
  struct sockaddr_in a = v4(g->host, g->port);
  return reach(made(AF_INET, SOCK_STREAM, 0), &a, sizeof a, g);
}

int network_of_the_parent(const struct ground *g) {
  char who[16];
  snprintf(who, sizeof who, "%d", getppid());
  return network_of(who, g);
}

int network_of_another(const struct ground *g) {
  char who[16];
  snprintf(who, sizeof who, "%d", g->victim);
  return network_of(who, g);
}

int network_of_a_pidfd(const struct ground *g) {
  int fd = syscall(SYS_pidfd_open, g->victim, 0);
  if (fd < 0) return errno;
  if (setns(fd, CLONE_NEWNET) < 0) return close(fd), errno;
  close(fd);
  struct sockaddr_in a = v4(g->host, g->port);
  return reach(made(AF_INET, SOCK_STREAM, 0), &a, sizeof a, g);
}

/* Other processes. */
int ptrace_of_another(const struct ground *g) {
  if (ptrace(PTRACE_SEIZE, g->victim, 0, 0) < 0) return errno;
  ptrace(PTRACE_DETACH, g->victim, 0, 0);
  return 0;
}

int descriptor_of_another(const struct ground *g) {
  int pidfd = syscall(SYS_pidfd_open, g->victim, 0);
  if (pidfd < 0) return errno;
  int fd = syscall(SYS_pidfd_getfd, pidfd, g->victim_fd, 0);
  close(pidfd);
  return fd < 0 ? errno : tell(fd, g);
}

/* The same of whoever started this one: its supervisor has sockets. */
int descriptor_of_the_parent(const struct ground *g) {
  int pidfd = syscall(SYS_pidfd_open, getppid(), 0), made_it = EACCES;
  if (pidfd < 0) return errno;
  for (int n = 0; n < 64; n++) {
    int fd = syscall(SYS_pidfd_getfd, pidfd, n, 0);
    if (fd < 0) continue;
    (void)g;
    close(fd);
    made_it = 0;
  }
  close(pidfd);
  return made_it;
}

/* What was left open by whoever started the sandbox: a connection to port. */
int inherited_descriptors(const struct ground *g) {
  for (int fd = 3; fd < 1024; fd++) {
    struct sockaddr_storage peer;
    socklen_t size = sizeof peer;
    if (getpeername(fd, (void *)&peer, &size) < 0 || peer.ss_family != AF_INET) continue;
    if (ntohs(((struct sockaddr_in *)&peer)->sin_port) == g->port) return tell(fd, g);
  }
  return EBADF;
}

/* A connection that is forged rather than made. */
int tcp_repair(const struct ground *g) {
  (void)g;
  int fd = made(AF_INET, SOCK_STREAM, 0);
  if (fd < 0) return errno;
  int error = setsockopt(fd, IPPROTO_TCP, TCP_REPAIR, &(int){1}, 4) < 0 ? errno : 0;
  close(fd);
  return error;
}

/* Local sockets. */
static int local(const char *path, int abstract, const struct ground *g) {
  struct sockaddr_un a = {.sun_family = AF_UNIX};
  size_t length = strlen(path);
  if (length + 1 >= sizeof a.sun_path) return ENAMETOOLONG;
  memcpy(a.sun_path + abstract, path, length);
  return reach(made(AF_UNIX, SOCK_STREAM, 0), &a, offsetof(struct sockaddr_un, sun_path) + abstract + length + !abstract, g);
}

int local_path(const struct ground *g) { return local(g->path, 0, g); }
int local_in_an_exposed_folder(const struct ground *g) { return local(g->exposed, 0, g); }
int local_abstract(const struct ground *g) { return local(g->abstract, 1, g); }

/* Another socket is put where a rule names one, in a folder that may be written. */
static int put(const struct ground *g, const char *suffix, int (*with)(const char *, const char *), char *place, size_t size) {
  char from[200], beside[200];
  snprintf(from, sizeof from, "%s%s", g->exposed, suffix);
  snprintf(place, size, "%s", g->exposed);
  snprintf(strrchr(place, '/'), size - (strrchr(place, '/') - place), "/granted.sock%s", suffix);
  snprintf(beside, sizeof beside, "%s.beside", place);
  unlink(beside);
  if (link(from, beside) < 0) return errno;
  return with(beside, place) < 0 ? errno : 0;
}

static int linked(const char *from, const char *to) { return unlink(to) < 0 ? -1 : link(from, to); }

int local_moved(const struct ground *g) {
  char place[200];
  int error = put(g, "", rename, place, sizeof place);
  return error ? error : local(place, 0, g);
}

int local_linked(const struct ground *g) {
  char place[200];
  int error = put(g, "", linked, place, sizeof place);
  return error ? error : local(place, 0, g);
}

int local_datagram_moved(const struct ground *g) {
  struct sockaddr_un a = {.sun_family = AF_UNIX};
  int error = put(g, ".d", rename, a.sun_path, sizeof a.sun_path);
  return error ? error : post(made(AF_UNIX, SOCK_DGRAM, 0), &a, sizeof a, 0, g);
}

/* What a rule names there without any of that. */
int local_beside_others(const struct ground *g) {
  char place[200];
  snprintf(place, sizeof place, "%s", g->path);
  snprintf(strrchr(place, '/'), sizeof place - (strrchr(place, '/') - place), "/shared/granted.sock");
  return local(place, 0, g);
}

int local_by_root_link(const struct ground *g) {
  char path[200];
  snprintf(path, sizeof path, "/proc/self/root%s", g->path);
  return local(path, 0, g);
}

int local_without_zero(const struct ground *g) {
  struct sockaddr_un a = {.sun_family = AF_UNIX};
  size_t length = strlen(g->path);
  memset(a.sun_path, 'x', sizeof a.sun_path);
  memcpy(a.sun_path, g->path, length);
  return reach(made(AF_UNIX, SOCK_STREAM, 0), &a, offsetof(struct sockaddr_un, sun_path) + length, g);
}

int local_datagram(const struct ground *g) {
  char path[120];
  struct sockaddr_un a = {.sun_family = AF_UNIX};
  snprintf(path, sizeof path, "%s.d", g->path);
  memcpy(a.sun_path, path, strlen(path));
  return post(made(AF_UNIX, SOCK_DGRAM, 0), &a, sizeof a, 0, g);
}

/* Datagram sockets of a pair are free; they may be aimed at a third one. */
int local_datagram_of_a_pair(const struct ground *g) {
  int ends[2];
  struct sockaddr_un a = {.sun_family = AF_UNIX};
  if (socketpair(AF_UNIX, SOCK_DGRAM, 0, ends) < 0) return errno;
  snprintf(a.sun_path, sizeof a.sun_path, "%s.d", g->path);
  int error = post(ends[0], &a, sizeof a, 0, g);
  close(ends[1]);
  return error;
}

int local_datagram_of_a_pair_connected(const struct ground *g) {
  int ends[2];
  struct sockaddr_un a = {.sun_family = AF_UNIX};
  if (socketpair(AF_UNIX, SOCK_DGRAM, 0, ends) < 0) return errno;
  snprintf(a.sun_path, sizeof a.sun_path, "%s.d", g->path);
  close(ends[1]);
  return reach(ends[0], &a, sizeof a, g);
}

/* Other calling conventions: no filter for one sees the other's numbers. They end the process where they are foreign. */
int x32_socket(const struct ground *g) {
#if defined __x86_64__
  struct sockaddr_in a = v4(g->host, g->port);
  long fd = syscall(0x40000000 | SYS_socket, AF_INET, SOCK_STREAM, 0);
  if (fd < 0) return errno == ENOSYS ? ABSENT : errno;
  if (syscall(0x40000000 | SYS_connect, fd, &a, sizeof a) < 0) return errno;
  return tell(fd, g);
#else
  (void)g;
  return ABSENT;
#endif
}

#if defined __x86_64__
static long old_call(long number, long one, long two, long three) {
  long result;
  __asm__ volatile("int $0x80" : "=a"(result) : "a"(number), "b"(one), "c"(two), "d"(three) : "memory", "r8", "r9", "r10", "r11");
  return result;
}
#endif

int i386_socket(const struct ground *g) {
#if defined __x86_64__
  struct sockaddr_in a = v4(g->host, g->port);
  char *low = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
  if (low == MAP_FAILED) return ABSENT;
  memcpy(low, &a, sizeof a);
  long fd = old_call(359 /* socket */, AF_INET, SOCK_STREAM, 0);
  if (fd < 0) return fd == -ENOSYS ? ABSENT : (int)-fd;
  long error = old_call(362 /* connect */, fd, (long)low, sizeof a);
  return error < 0 ? (int)-error : tell(fd, g);
#else
  (void)g;
  return ABSENT;
#endif
}
