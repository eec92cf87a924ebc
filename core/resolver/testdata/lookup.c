/* Looks names up as programs do, by the C library: lookup FAMILY NAME... prints a line for each name. */
#define _GNU_SOURCE /* EAI_NODATA */
#include <arpa/inet.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

static int compare(const void *a, const void *b) { return strcmp(a, b); }

int main(int argc, char **argv) {
    int family = atoi(argv[1]) == 4 ? AF_INET : atoi(argv[1]) == 6 ? AF_INET6 : AF_UNSPEC;
    for (int i = 2; i < argc; i++) {
        struct addrinfo hints = {.ai_family = family, .ai_socktype = SOCK_STREAM}, *list, *a;
        char found[256][INET6_ADDRSTRLEN];
        int n = 0, rc = getaddrinfo(argv[i], NULL, &hints, &list);
        if (rc) {
            printf("%s: %s\n", argv[i], rc == EAI_NONAME ? "no name" : rc == EAI_AGAIN ? "again" : rc == EAI_FAIL ? "failed" :
#ifdef EAI_NODATA
                                        rc == EAI_NODATA ? "no data" :
#endif
                                                           gai_strerror(rc));
            continue;
        }
        for (a = list; a && n < 256; a = a->ai_next) {
            void *at = a->ai_family == AF_INET6 ? (void *)&((struct sockaddr_in6 *)a->ai_addr)->sin6_addr : (void *)&((struct sockaddr_in *)a->ai_addr)->sin_addr;
            inet_ntop(a->ai_family, at, found[n++], INET6_ADDRSTRLEN);
        }
        qsort(found, n, INET6_ADDRSTRLEN, compare);
        printf("%s:", argv[i]);
        if (n > 8)
            printf(" %d addresses", n);
        else
            for (int k = 0; k < n; k++)
                printf(" %s", found[k]);
        printf("\n");
        freeaddrinfo(list);
    }
    return 0;
}
