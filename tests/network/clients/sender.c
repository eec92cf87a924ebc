/* Asks the name servers of the arguments from one socket that is connected to none, in each of the ways to receive an answer,
 * and prints who sent it: what a client of names compares with whom it asked. */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <unistd.h>

static const unsigned char question[] = "\0\7\1\0\0\1\0\0\0\0\0\0\3www\7example\3com\0\0\1\0\1";

static void report(const char *way, ssize_t n, const unsigned char *answer, const struct sockaddr_in *from, socklen_t size) {
    char text[INET_ADDRSTRLEN] = "nobody";
    if (n >= 0 && size >= sizeof *from)
        inet_ntop(AF_INET, &from->sin_addr, text, sizeof text);
    if (n < 0)
        printf("%s: %s\n", way, strerror(errno));
    else
        printf("%s: %s %d, %s\n", way, text, size >= sizeof *from ? ntohs(from->sin_port) : 0,
               n > 12 && answer[1] == 7 && (answer[3] & 15) == 0 ? "an answer" : "something else");
}

static void ask(int fd, const char *server) {
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(53)};
    inet_pton(AF_INET, server, &to.sin_addr);
    if (sendto(fd, question, sizeof question - 1, MSG_NOSIGNAL, (void *)&to, sizeof to) < 0)
        printf("sendto: %s\n", strerror(errno));
}

static void by_message(const char *way, int fd, int flags, int room) {
    unsigned char first[5], rest[600], whole[605];
    struct sockaddr_in from = {0};
    struct iovec parts[] = {{first, sizeof first}, {NULL, 0}, {rest, sizeof rest}};
    char control[64];
    struct msghdr m = {.msg_name = room ? &from : NULL, .msg_namelen = room, .msg_iov = parts, .msg_iovlen = 3, .msg_control = control, .msg_controllen = sizeof control};
    ssize_t n = recvmsg(fd, &m, flags);
    memcpy(whole, first, sizeof first);
    memcpy(whole + sizeof first, rest, sizeof rest);
    report(way, n, whole, &from, m.msg_namelen == sizeof from ? room : 0);
    if (n >= 0 && (m.msg_controllen || m.msg_flags))
        printf("%s: control %zu, flags %d\n", way, (size_t)m.msg_controllen, m.msg_flags);
}

int main(int argc, char **argv) {
    unsigned char answer[600];
    struct sockaddr_in from;
    socklen_t size;
    struct timeval soon = {0, 50000};
    int fd = socket(AF_INET, SOCK_DGRAM, 0);
    struct pollfd ready = {fd, POLLIN, 0};
    setbuf(stdout, NULL);

    ask(fd, argv[1]);
    size = sizeof from;
    report("recvfrom, waiting", recvfrom(fd, answer, sizeof answer, 0, (void *)&from, &size), answer, &from, size);
    ask(fd, argv[1]);
    by_message("recvmsg, waiting", fd, 0, sizeof from);
    ask(fd, argv[1]);
    poll(&ready, 1, 5000);
    size = sizeof from;
    report("peeked", recvfrom(fd, answer, sizeof answer, MSG_PEEK | MSG_DONTWAIT, (void *)&from, &size), answer, &from, size);
    by_message("recvmsg, when it is there", fd, MSG_DONTWAIT, sizeof from);
    by_message("recvmsg of nothing", fd, MSG_DONTWAIT, sizeof from);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &soon, sizeof soon);
    size = sizeof from;
    report("recvfrom of nothing, for a while", recvfrom(fd, answer, sizeof answer, 0, (void *)&from, &size), answer, &from, size);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &(struct timeval){0, 0}, sizeof soon);
    ask(fd, argv[1]);
    by_message("recvmsg without an address", fd, 0, 0);
    ask(fd, argv[1]);
    size = sizeof from;
    report("cut off", recvfrom(fd, answer, 4, MSG_TRUNC, (void *)&from, &size) > 12 ? 0 : -1, answer, &from, size);
    ask(fd, argv[1]);
    poll(&ready, 1, 5000);
    size = sizeof from;
    report("into nothing", recvfrom(fd, (void *)1, 100, 0, (void *)&from, &size), answer, &from, size);
    if (argc > 2) { /* the other server, on the same socket */
        ask(fd, argv[2]);
        size = sizeof from;
        report("the other", recvfrom(fd, answer, sizeof answer, 0, (void *)&from, &size), answer, &from, size);
    }
    close(fd);
    return 0;
}
