/* UDP out: every form of an addressed datagram. */

#include <net/ethernet.h>
#include <netinet/ip.h>
#include <netinet/ip6.h>
#include <netinet/udp.h>
#include <netpacket/packet.h>

#include "ways.h"

static int sent(int fd, int flags, const void *address, socklen_t length, const struct ground *g) {
  if (fd < 0) return errno;
  ssize_t n = sendto(fd, g->token, strlen(g->token), flags, address, length);
  int error = n < 0 ? errno : 0;
  close(fd);
  return error;
}

int udp_sendto(const struct ground *g) {
  struct sockaddr_in a = v4(g->host, g->port);
  return sent(made(AF_INET, SOCK_DGRAM, 0), 0, &a, sizeof a, g);
}

int udp_sendto_v6(const struct ground *g) {
  struct sockaddr_in6 a = v6(g->host6, g->port);
  return sent(made(AF_INET6, SOCK_DGRAM, 0), 0, &a, sizeof a, g);
}

int udp_sendto_mapped(const struct ground *g) {
  struct sockaddr_in6 a = mapped(g->host, g->port);
  return sent(made(AF_INET6, SOCK_DGRAM, 0), 0, &a, sizeof a, g);
}

int udp_sendto_other_host(const struct ground *g) {
  struct sockaddr_in a = v4(g->other, g->narrow);
  return sent(made(AF_INET, SOCK_DGRAM, 0), 0, &a, sizeof a, g);
}

/* An IPv6 socket takes an IPv4 address, too. */
int udp_v6_socket_v4_address(const struct ground *g) {
  struct sockaddr_in a = v4(g->host, g->port);
  return sent(made(AF_INET6, SOCK_DGRAM, 0), 0, &a, sizeof a, g);
}

int udp_v6_socket_v4_connect(const struct ground *g) {
  struct sockaddr_in a = v4(g->host, g->port);
  return reach(made(AF_INET6, SOCK_DGRAM, 0), &a, sizeof a, g);
}

/* UDP over IPv4 reads an address of no family as one of its own. */
int udp_sendto_no_family(const struct ground *g) {
  struct sockaddr_in a = v4(g->host, g->port);
  a.sin_family = AF_UNSPEC;
  return sent(made(AF_INET, SOCK_DGRAM, 0), 0, &a, sizeof a, g);
}

int udp_sendmsg_no_family(const struct ground *g) {
  struct sockaddr_in a = v4(g->host, g->port);
  a.sin_family = AF_UNSPEC;
  return post(made(AF_INET, SOCK_DGRAM, 0), &a, sizeof a, 0, g);
}

int udp_sendto_flags(const struct ground *g) {
  struct sockaddr_in a = v4(g->host, g->port);
  return sent(made(AF_INET, SOCK_DGRAM, 0), MSG_DONTWAIT | MSG_CONFIRM | MSG_NOSIGNAL, &a, sizeof a, g);
}

int udp_sendto_unspecified(const struct ground *g) {
  struct sockaddr_in a = v4("0.0.0.0", g->port);
  return sent(made(AF_INET, SOCK_DGRAM, 0), 0, &a, sizeof a, g);
}

int udp_sendmsg(const struct ground *g) {
  struct sockaddr_in a = v4(g->host, g->port);
  return post(made(AF_INET, SOCK_DGRAM, 0), &a, sizeof a, 0, g);
}

int udp_sendmsg_v6(const struct ground *g) {
  struct sockaddr_in6 a = v6(g->host6, g->port);
  return post(made(AF_INET6, SOCK_DGRAM, 0), &a, sizeof a, 0, g);
}

/* The address rides in control data as far as it can: the source and the interface. */
int udp_sendmsg_pktinfo(const struct ground *g) {
  struct sockaddr_in a = v4(g->host, g->port);
  struct iovec part = {.iov_base = (void *)g->token, .iov_len = strlen(g->token)};
  union {
    char room[CMSG_SPACE(sizeof(struct in_pktinfo))];
    struct cmsghdr head;
  } control = {{0}};
  struct msghdr message = {.msg_name = &a, .msg_namelen = sizeof a, .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
  control.head = (struct cmsghdr){.cmsg_len = CMSG_LEN(sizeof(struct in_pktinfo)), .cmsg_level = IPPROTO_IP, .cmsg_type = IP_PKTINFO};
  struct in_pktinfo *info = (void *)CMSG_DATA(&control.head);
  info->ipi_ifindex = if_nametoindex("lo");
  info->ipi_spec_dst.s_addr = htonl(INADDR_LOOPBACK);
  int fd = made(AF_INET, SOCK_DGRAM, 0);
  if (fd < 0) return errno;
  int error = sendmsg(fd, &message, 0) < 0 ? errno : 0;
  close(fd);
  return error;
}

static int two(int connect_first, const struct ground *g) {
  struct sockaddr_in a[2] = {v4(g->host, g->open), v4(g->host, g->port)};
  struct iovec part = {.iov_base = (void *)g->token, .iov_len = strlen(g->token)};
  struct mmsghdr both[2] = {0};
  for (int i = 0; i < 2; i++) both[i].msg_hdr = (struct msghdr){.msg_name = &a[i], .msg_namelen = sizeof *a, .msg_iov = &part, .msg_iovlen = 1};
  int fd = made(AF_INET, SOCK_DGRAM, 0);
  if (fd < 0) return errno;
  if (connect_first) connect(fd, (void *)&a[0], sizeof *a);
  int n = sendmmsg(fd, both, 2, 0), error = n < 0 ? errno : n < 2 ? EACCES : 0;
  close(fd);
  return error;
}

/* The first is granted, the second is not. */
int udp_sendmmsg_second(const struct ground *g) { return two(0, g); }
int udp_sendmmsg_connected(const struct ground *g) { return two(1, g); }

int udp_connect_send(const struct ground *g) {
  struct sockaddr_in a = v4(g->host, g->port);
  return reach(made(AF_INET, SOCK_DGRAM, 0), &a, sizeof a, g);
}

int udp_connect_write(const struct ground *g) {
  struct sockaddr_in6 a = v6(g->host6, g->port);
  int fd = made(AF_INET6, SOCK_DGRAM, 0);
  if (fd < 0) return errno;
  if (connect(fd, (void *)&a, sizeof a) < 0) return errno;
  int error = write(fd, g->token, strlen(g->token)) < 0 ? errno : 0;
  close(fd);
  return error;
}

static int granted(const struct ground *g) {
  struct sockaddr_in a = v4(g->host, g->open);
  int fd = made(AF_INET, SOCK_DGRAM, 0);
  if (fd >= 0 && connect(fd, (void *)&a, sizeof a) < 0) return -1;
  return fd;
}

int udp_granted_then_sendto_elsewhere(const struct ground *g) {
  struct sockaddr_in a = v4(g->host, g->port);
  return sent(granted(g), 0, &a, sizeof a, g);
}

int udp_granted_then_sendmsg_elsewhere(const struct ground *g) {
  struct sockaddr_in a = v4(g->host, g->port);
  return post(granted(g), &a, sizeof a, 0, g);
}

int udp_granted_then_connect_elsewhere(const struct ground *g) {
  struct sockaddr_in a = v4(g->host, g->port);
  return reach(granted(g), &a, sizeof a, g);
}

int udp_unspec_then_sendto(const struct ground *g) {
  struct sockaddr none = {.sa_family = AF_UNSPEC};
  struct sockaddr_in a = v4(g->host, g->port);
  int fd = granted(g);
  if (fd < 0) return errno;
  connect(fd, &none, sizeof none);
  return sent(fd, 0, &a, sizeof a, g);
}

/* A part for the granted address, kept back, and the rest for another one. */
int udp_corked(const struct ground *g) {
  struct sockaddr_in a = v4(g->host, g->port);
  int fd = made(AF_INET, SOCK_DGRAM, 0);
  if (fd < 0) return errno;
  if (sendto(fd, g->token, strlen(g->token), MSG_MORE, (void *)&a, sizeof a) < 0) return errno;
  return sent(fd, 0, &a, sizeof a, g);
}

/* One send that the kernel cuts into several datagrams. */
int udp_segmented(const struct ground *g) {
  struct sockaddr_in a = v4(g->host, g->port);
  int fd = made(AF_INET, SOCK_DGRAM, 0);
  if (fd < 0) return errno;
  setsockopt(fd, IPPROTO_UDP, UDP_SEGMENT, &(int){512}, 4);
  return sent(fd, 0, &a, sizeof a, g);
}

/* Cut into datagrams of the token each, by the kernel. */
static int cut(int family, const void *address, socklen_t length, const struct ground *g) {
  char data[512] = "";
  int fd = made(family, SOCK_DGRAM, 0), size = strlen(g->token);
  if (fd < 0) return errno;
  for (int i = 0; i < 4; i++) strcat(data, g->token);
  if (setsockopt(fd, IPPROTO_UDP, UDP_SEGMENT, &size, sizeof size) < 0) return errno;
  int error = sendto(fd, data, strlen(data), 0, address, length) < 0 ? errno : 0;
  close(fd);
  return error;
}

int udp_in_segments(const struct ground *g) {
  struct sockaddr_in a = v4(g->host, g->port);
  return cut(AF_INET, &a, sizeof a, g);
}

int udp_in_segments_v6(const struct ground *g) {
  struct sockaddr_in6 a = v6(g->host6, g->port);
  return cut(AF_INET6, &a, sizeof a, g);
}

int udp_broadcast(const struct ground *g) {
  struct sockaddr_in a = v4("127.255.255.255", g->port);
  int fd = made(AF_INET, SOCK_DGRAM, 0);
  if (fd < 0) return errno;
  setsockopt(fd, SOL_SOCKET, SO_BROADCAST, &(int){1}, 4);
  return sent(fd, 0, &a, sizeof a, g);
}

int udp_multicast(const struct ground *g) {
  struct sockaddr_in a = v4("239.255.77.77", g->port);
  struct ip_mreqn lo = {.imr_address.s_addr = htonl(INADDR_LOOPBACK), .imr_ifindex = if_nametoindex("lo")};
  int fd = made(AF_INET, SOCK_DGRAM, 0);
  if (fd < 0) return errno;
  if (setsockopt(fd, IPPROTO_IP, IP_MULTICAST_IF, &lo, sizeof lo) < 0) return errno; /* nothing leaves the machine */
  return sent(fd, 0, &a, sizeof a, g);
}

int udp_bound_to_a_device(const struct ground *g) {
  struct sockaddr_in a = v4(g->host, g->port);
  int fd = made(AF_INET, SOCK_DGRAM, IPPROTO_UDP);
  if (fd < 0) return errno;
  setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, "lo", 3);
  return sent(fd, 0, &a, sizeof a, g);
}

/* A descriptor that went through a local socket is another number of the same thing. */
int udp_descriptor_sent_to_oneself(const struct ground *g) {
  struct sockaddr_in a = v4(g->host, g->port);
  int ends[2], fd = granted(g), got = -1;
  if (fd < 0 || socketpair(AF_UNIX, SOCK_STREAM, 0, ends) < 0) return errno;
  union {
    char room[CMSG_SPACE(sizeof(int))];
    struct cmsghdr head;
  } control = {{0}};
  struct iovec part = {.iov_base = "x", .iov_len = 1};
  struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
  control.head = (struct cmsghdr){.cmsg_len = CMSG_LEN(sizeof(int)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS};
  memcpy(CMSG_DATA(&control.head), &fd, sizeof fd);
  int error = sendmsg(ends[0], &message, 0) < 0 ? errno : 0;
  char byte;
  part.iov_base = &byte;
  if (!error && recvmsg(ends[1], &message, 0) < 0) error = errno;
  if (!error) memcpy(&got, CMSG_DATA(&control.head), sizeof got);
  close(ends[0]), close(ends[1]), close(fd);
  return error ? error : sent(got, 0, &a, sizeof a, g);
}

/* The packet itself, by hand. */
static int packet(unsigned char *into, const struct ground *g) {
  size_t payload = strlen(g->token), all = sizeof(struct iphdr) + sizeof(struct udphdr) + payload;
  struct iphdr ip = {.version = 4, .ihl = 5, .ttl = 64, .protocol = IPPROTO_UDP, .tot_len = htons(all), .saddr = htonl(INADDR_LOOPBACK), .daddr = htonl(INADDR_LOOPBACK)};
  struct udphdr udp = {.uh_sport = htons(9), .uh_dport = htons(g->port), .uh_ulen = htons(sizeof udp + payload)};
  unsigned sum = 0;
  memcpy(into, &ip, sizeof ip);
  for (size_t i = 0; i < sizeof ip; i += 2) sum += into[i] << 8 | into[i + 1];
  while (sum >> 16) sum = (sum & 0xffff) + (sum >> 16);
  ip.check = htons(~sum);
  memcpy(into, &ip, sizeof ip);
  memcpy(into + sizeof ip, &udp, sizeof udp);
  memcpy(into + sizeof ip + sizeof udp, g->token, payload);
  return all;
}

int raw_packet(const struct ground *g) {
  unsigned char bytes[512];
  struct sockaddr_in a = v4("127.0.0.1", 0);
  int fd = socket(AF_INET, SOCK_RAW, IPPROTO_RAW), length = packet(bytes, g);
  if (fd < 0) return errno;
  int error = sendto(fd, bytes, length, 0, (void *)&a, sizeof a) < 0 ? errno : 0;
  close(fd);
  return error;
}

/* The same below the network layer; over IPv6, since no IPv4 packet of the loopback's comes in that way. */
int link_packet(const struct ground *g) {
  size_t payload = strlen(g->token), length = sizeof(struct udphdr) + payload;
  struct ip6_hdr ip = {.ip6_src = in6addr_loopback, .ip6_dst = in6addr_loopback};
  struct udphdr udp = {.uh_sport = htons(9), .uh_dport = htons(g->port), .uh_ulen = htons(length)};
  unsigned char bytes[512] = {0}, *at = bytes + sizeof ip;
  ip.ip6_flow = htonl(6 << 28), ip.ip6_plen = htons(length), ip.ip6_nxt = IPPROTO_UDP, ip.ip6_hlim = 64;
  memcpy(bytes, &ip, sizeof ip), memcpy(at, &udp, sizeof udp), memcpy(at + sizeof udp, g->token, payload);
  unsigned sum = length + IPPROTO_UDP + 2; /* of the two addresses */
  for (size_t i = 0; i < length; i += 2) sum += at[i] << 8 | at[i + 1];
  while (sum >> 16) sum = (sum & 0xffff) + (sum >> 16);
  udp.uh_sum = htons(~sum);
  memcpy(at, &udp, sizeof udp);
  struct sockaddr_ll a = {.sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_IPV6), .sll_ifindex = if_nametoindex("lo"), .sll_halen = 6};
  int fd = socket(AF_PACKET, SOCK_DGRAM, htons(ETH_P_IPV6));
  if (fd < 0) return errno;
  int error = sendto(fd, bytes, sizeof ip + length, 0, (void *)&a, sizeof a) < 0 ? errno : 0;
  close(fd);
  return error;
}
