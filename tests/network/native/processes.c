/* The same by processes that the program makes. */

#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>

#include "ways.h"

extern char **environ;
int connect_v4(const struct ground *g);
int udp_sendto(const struct ground *g);

static int status_of(pid_t child) {
  int status;
  if (child < 0) return errno;
  while (waitpid(child, &status, 0) < 0)
    if (errno != EINTR) return errno;
  return WIFEXITED(status) ? WEXITSTATUS(status) : ECANCELED;
}

int forked(const struct ground *g) {
  pid_t child = fork();
  if (child == 0) _exit(connect_v4(g));
  return status_of(child);
}

int forked_without_the_library(const struct ground *g) {
  pid_t child = syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
  if (child == 0) _exit(udp_sendto(g));
  return status_of(child);
}

int vforked(const struct ground *g) {
  pid_t child = vfork();
  if (child == 0) _exit(connect_v4(g));
  return status_of(child);
}

static char stack[65536];
static int in_shared_memory(void *argument) { return connect_v4(argument); }

int cloned_with_memory(const struct ground *g) {
  return status_of(clone(in_shared_memory, stack + sizeof stack, CLONE_VM | CLONE_FILES | SIGCHLD, (void *)g));
}

/* An orphan in a session of its own, that connects when its parent has ended. */
int daemonised(const struct ground *g) {
  int ends[2];
  if (pipe(ends) < 0) return errno;
  pid_t child = fork();
  if (child == 0) {
    setsid();
    if (fork() != 0) _exit(0);
    while (getppid() != 1 && waitpid(getppid(), NULL, WNOHANG) == 0) {}
    int error = connect_v4(g);
    _exit(write(ends[1], &error, sizeof error) < 0);
  }
  close(ends[1]);
  status_of(child);
  int error = EIO;
  if (read(ends[0], &error, sizeof error) < 0) error = errno;
  close(ends[0]);
  return error;
}

/* A connection that one process makes and another uses. */
int connected_by_a_child(const struct ground *g) {
  struct sockaddr_in a = v4(g->host, g->port);
  int fd = made(AF_INET, SOCK_DGRAM, 0);
  if (fd < 0) return errno;
  pid_t child = fork();
  if (child == 0) _exit(connect(fd, (void *)&a, sizeof a) < 0 ? errno : 0);
  int error = status_of(child);
  return error ? close(fd), error : tell(fd, g);
}

/* Forks by the hundred, each with a connection. */
int fork_storm(const struct ground *g) {
  enum { all = 100 };
  pid_t children[all];
  int error = 0;
  for (int i = 0; i < all; i++)
    if ((children[i] = fork()) == 0) _exit(connect_v4(g));
  for (int i = 0; i < all; i++) {
    int one = status_of(children[i]);
    if (one) error = one;
  }
  return error;
}

/* This same code as a program of its own: WAYS_PROGRAM is its path. */
int executed(const struct ground *g) {
  char port[16];
  snprintf(port, sizeof port, "%d", g->port);
  char *arguments[] = {getenv("WAYS_PROGRAM"), "connect_v4", port, (char *)g->token, (char *)g->host, NULL};
  if (!arguments[0]) return EINVAL;
  pid_t child = fork();
  if (child == 0) execv(arguments[0], arguments), _exit(127);
  return status_of(child);
}

int spawned(const struct ground *g) {
  char port[16];
  snprintf(port, sizeof port, "%d", g->port);
  char *arguments[] = {getenv("WAYS_PROGRAM"), "udp_sendto", port, (char *)g->token, (char *)g->host, NULL};
  pid_t child;
  if (!arguments[0]) return EINVAL;
  int error = posix_spawn(&child, arguments[0], NULL, NULL, arguments, environ);
  return error ? error : status_of(child);
}

#ifdef PROGRAM
int main(int count, char **arguments) {
  if (count < 5) return 2;
  struct ground g = {.port = atoi(arguments[2]), .token = arguments[3], .host = arguments[4]};
  return strcmp(arguments[1], "connect_v4") == 0 ? connect_v4(&g) : udp_sendto(&g);
}
#endif
