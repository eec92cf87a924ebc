/* Network: sockets' audit events to questions by protocol, host and port. Nothing is cached: the engine judges each. */
#include "guard.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

/* The head of CPython's PySocketSockObject, the same in 3.11 to 3.13 (Modules/socketmodule.h). Read here rather than by
 * attribute, since a subclass may define what `family` and `type` answer. */
typedef struct {
    PyObject_HEAD
    int fd, family, type, proto;
} socket_head;

typedef struct {
    const char *op, *proto;
    const char *host;
    size_t host_len;
    long port;
} endpoint;

#define HOST_MAX 1024 /* bytes of a host in a question; a name has 253 at most */

/* What cannot be a host or a port is brought into the question's limits: no rule allows it, and the call itself fails. The
 * NUL of an abstract local socket is written as @. */
static void write_endpoint(mp_writer *w, const endpoint *e) {
    char host[HOST_MAX];
    size_t n = e->host_len < HOST_MAX ? e->host_len : HOST_MAX;
    for (size_t i = 0; i < n; i++)
        host[i] = e->host[i] ? e->host[i] : '@';
    mp_str(w, e->op, strlen(e->op));
    mp_str(w, e->proto, strlen(e->proto));
    mp_bin(w, host, n);
    mp_int(w, e->port >= 0 && e->port <= 65535 ? e->port : 0);
}

static int check(const endpoint *e) {
    mp_writer w = {0};
    if (psb.learn) {
        char key[600], site[512];
        int n = snprintf(key, sizeof key, "%s %s %.*s %ld", e->op, e->proto, (int)(e->host_len < 400 ? e->host_len : 400),
                         e->host, e->port);
        if (psb_seen('n', key, (size_t)n))
            return 0;
        psb_remember('n', key, (size_t)n);
        size_t sn = psb_site(site, sizeof site);
        psb_question(&w, "learn", 7, false);
        mp_str(&w, "net", 3);
        write_endpoint(&w, e);
        mp_str(&w, site, sn);
        mp_bool(&w, false);
        psb_tell(&w);
        return 0;
    }
    psb_question(&w, "net", 4, true);
    write_endpoint(&w, e);
    psb_answer a;
    psb_ask(&w, &a);
    if (a.allow) {
        psb_answer_free(&a);
        return 0;
    }
    return psb_raise(&a, NULL);
}

static const char *protocol(const socket_head *s) {
    int domain = s->family, type = s->type;
    socklen_t size = sizeof domain;
    if (s->fd >= 0 && !(psb.no_inet && domain != AF_UNIX)) { /* what the kernel says counts: fromfd() believes its caller */
        getsockopt(s->fd, SOL_SOCKET, SO_DOMAIN, &domain, &size);
        size = sizeof type;
        getsockopt(s->fd, SOL_SOCKET, SO_TYPE, &type, &size);
    }
    type &= 0xf;
    if (domain == AF_UNIX)
        return "unix";
    if (domain != AF_INET && domain != AF_INET6)
        return "raw";
    return type == SOCK_STREAM ? "tcp" : type == SOCK_DGRAM ? "udp" : "raw";
}

/* Holds a reference for as long as the endpoint borrows its text. */
static PyObject *text_of(PyObject *o, const char **s, size_t *n) {
    if (PyUnicode_Check(o)) {
        PyObject *b = PyUnicode_EncodeFSDefault(o);
        if (b) {
            *s = PyBytes_AS_STRING(b);
            *n = (size_t)PyBytes_GET_SIZE(b);
        }
        return b;
    }
    if (PyBytes_Check(o)) {
        *s = PyBytes_AS_STRING(o);
        *n = (size_t)PyBytes_GET_SIZE(o);
        return Py_NewRef(o);
    }
    if (PyObject_CheckBuffer(o)) {
        PyObject *b = PyBytes_FromObject(o);
        if (b) {
            *s = PyBytes_AS_STRING(b);
            *n = (size_t)PyBytes_GET_SIZE(b);
        }
        return b;
    }
    if (o == Py_None) {
        *s = "";
        *n = 0;
        return Py_NewRef(o);
    }
    PyErr_Format(PyExc_TypeError, "network address: expected str or bytes, not %.100s", Py_TYPE(o)->tp_name);
    return NULL;
}

static bool is_socket(PyObject *o) {
    for (PyTypeObject *t = Py_TYPE(o); t; t = t->tp_base)
        if (strcmp(t->tp_name, "_socket.socket") == 0 && (size_t)t->tp_basicsize >= sizeof(socket_head))
            return true;
    return false;
}

static int addressed(const char *op, PyObject *sock, PyObject *address) {
    endpoint e = {.op = op};
    if (address == Py_None) /* sendmsg without an address: the connected peer was judged at connect */
        return 0;
    if (!is_socket(sock)) {
        PyErr_SetString(PyExc_TypeError, "network event of something that is no socket");
        return -1;
    }
    e.proto = protocol((socket_head *)sock);
    PyObject *hold;
    if (PyTuple_Check(address) && PyTuple_GET_SIZE(address) >= 2 && strcmp(e.proto, "unix") != 0) {
        PyObject *port = PyTuple_GET_ITEM(address, 1);
        if (!PyLong_Check(port)) { /* what its __index__ answered the call it need not answer us */
            PyErr_Format(PyExc_TypeError, "%s: the port must be an int in a sandbox, not %.100s", op, Py_TYPE(port)->tp_name);
            return -1;
        }
        hold = text_of(PyTuple_GET_ITEM(address, 0), &e.host, &e.host_len);
        e.port = PyLong_AsLong(port);
        if (e.port == -1 && PyErr_Occurred())
            PyErr_Clear();
    } else if (PyTuple_Check(address)) { /* packet, vsock, netlink ... */
        e.proto = "raw";
        hold = Py_NewRef(Py_None);
        e.host = "";
    } else {
        hold = text_of(address, &e.host, &e.host_len);
    }
    if (!hold)
        return -1;
    static __thread char path[PSB_PATH_MAX];
    if (strcmp(e.proto, "unix") == 0 && e.host_len && e.host[0]) {
        size_t n;
        static __thread char literal[PSB_PATH_MAX];
        if (!psb_path_literal(-1, e.host, strnlen(e.host, e.host_len), literal, &n) ||
            !psb_path_resolve(literal, strcmp(op, "bind") != 0, path, &n)) {
            Py_DECREF(hold);
            errno = ENOENT;
            PyErr_SetFromErrno(PyExc_OSError);
            return -1;
        }
        Py_SETREF(hold, PyBytes_FromStringAndSize(path, (Py_ssize_t)n)); /* a finalizer may use the buffer before we do */
        if (!hold)
            return -1;
        e.host = PyBytes_AS_STRING(hold);
        e.host_len = n;
    }
    int rc = check(&e);
    Py_DECREF(hold);
    return rc;
}

/* Another name for a local socket: at the name of one that the sandbox has made itself it would be reached without a rule. So
 * it takes what reaching it takes. args: (src, dst, src_dir_fd, dst_dir_fd), src judged already. */
int psb_net_renamed(PyObject *args) {
    static __thread char literal[PSB_PATH_MAX], text[PSB_PATH_MAX];
    const char *s = NULL;
    size_t given = 0, n;
    struct stat st;
    PyObject *dir = PyTuple_GET_SIZE(args) > 2 ? PyTuple_GET_ITEM(args, 2) : Py_None;
    long dir_fd = PyLong_Check(dir) ? PyLong_AsLong(dir) : -1;
    if (dir_fd == -1)
        PyErr_Clear();
    if (psb.learn || !PyTuple_GET_SIZE(args))
        return 0;
    PyObject *hold = text_of(PyTuple_GET_ITEM(args, 0), &s, &given);
    if (!hold)
        return -1;
    bool is_socket = psb_path_literal(dir_fd < 0 ? -1 : (int)dir_fd, s, strnlen(s, given), literal, &n) &&
                     psb_path_resolve(literal, false, text, &n) && lstat(text, &st) == 0 && S_ISSOCK(st.st_mode);
    Py_DECREF(hold);
    endpoint e = {.op = "connect", .proto = "unix", .host = text, .host_len = n};
    return is_socket ? check(&e) : 0;
}

/* Is the host text that needs no look-up? A scope id is no part of an address. */
static bool numeric(const char *host, size_t n) {
    char text[256];
    unsigned char scratch[16];
    if (n >= sizeof text)
        return false;
    memcpy(text, host, n);
    text[n] = 0;
    char *scope = strchr(text, '%');
    if (scope)
        *scope = 0;
    return inet_pton(AF_INET, text, scratch) == 1 || inet_pton(AF_INET6, text, scratch) == 1;
}

int psb_net_name(const char *op, PyObject *sock, PyObject *address) {
    if (!psb.enforce || psb.learn || !is_socket(sock) || !PyTuple_Check(address) || PyTuple_GET_SIZE(address) < 2)
        return 0;
    int family = ((socket_head *)sock)->family;
    PyObject *host = PyTuple_GET_ITEM(address, 0);
    if ((family != AF_INET && family != AF_INET6) || host == Py_None)
        return 0;
    const char *s;
    size_t n;
    PyObject *hold = text_of(host, &s, &n);
    if (!hold) { /* no host at all: the call says so in its own words */
        PyErr_Clear();
        return 0;
    }
    bool look_up = n && !numeric(s, n) && !(n == 11 && memcmp(s, "<broadcast>", 11) == 0);
    Py_DECREF(hold);
    PyObject *port = PyTuple_GET_ITEM(address, 1);
    if (look_up && !PyLong_Check(port)) { /* as the call says it, before it looks up the name */
        PyErr_Format(PyExc_TypeError, "'%.200s' object cannot be interpreted as an integer", Py_TYPE(port)->tp_name);
        return -1;
    }
    return look_up ? addressed(op, sock, address) : 0;
}

/* The address as the call shall get it, a new reference: what is asked of it is asked once. A port is made an int, a host the
 * text that is looked up. What is no address of its kind stays as it is: the call says so in its own words. NULL with an
 * exception. */
PyObject *psb_net_address(PyObject *sock, PyObject *address) {
    if (!psb.enforce || !is_socket(sock) || !PyTuple_Check(address) || PyTuple_GET_SIZE(address) < 2 ||
        (((socket_head *)sock)->family != AF_INET && ((socket_head *)sock)->family != AF_INET6))
        return Py_NewRef(address);
    PyObject *host = PyTuple_GET_ITEM(address, 0), *port = PyTuple_GET_ITEM(address, 1), *plain = NULL, *number = NULL, *exact = NULL;
    if (PyUnicode_CheckExact(host) && PyUnicode_IS_ASCII(host)) /* is taken as it is written; all else goes by a codec */
        plain = Py_NewRef(host);
    else
        plain = psb_host_name(host);
    if (plain)
        number = PyLong_Check(port) || !PyIndex_Check(port) ? Py_NewRef(port) : PyNumber_Index(port);
    if (number && plain == host && number == port)
        exact = Py_NewRef(address);
    else if (number && (exact = PyTuple_New(PyTuple_GET_SIZE(address)))) {
        PyTuple_SET_ITEM(exact, 0, Py_NewRef(plain));
        PyTuple_SET_ITEM(exact, 1, Py_NewRef(number));
        for (Py_ssize_t i = 2; i < PyTuple_GET_SIZE(address); i++)
            PyTuple_SET_ITEM(exact, i, Py_NewRef(PyTuple_GET_ITEM(address, i)));
    }
    Py_XDECREF(plain);
    Py_XDECREF(number);
    return exact;
}

/* A socket, by the number that the kernel gives to no other, and what it is bound to. Its size, or 0. */
typedef struct {
    uint64_t cookie;
    struct sockaddr_storage at;
} bound_socket;

static size_t identify(PyObject *sock, bound_socket *b, long *port) {
    socklen_t size = sizeof b->at, cookie = sizeof b->cookie;
    *b = (bound_socket){0};
    if (!is_socket(sock) || getsockname(((socket_head *)sock)->fd, (struct sockaddr *)&b->at, &size) < 0 ||
        (b->at.ss_family != AF_INET && b->at.ss_family != AF_INET6))
        return 0;
    *port = ntohs(b->at.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&b->at)->sin6_port : ((struct sockaddr_in *)&b->at)->sin_port);
    if (getsockopt(((socket_head *)sock)->fd, SOL_SOCKET, SO_COOKIE, &b->cookie, &cookie) < 0)
        b->cookie = 0;
    return sizeof *b;
}

/* The port that the system chose is learned: where the program asks for it by its number later, that is no number to write down. */
static void learn_chosen(PyObject *sock) {
    bound_socket b;
    long port;
    if (identify(sock, &b, &port) && port)
        check(&(endpoint){.op = "chosen", .proto = protocol((socket_head *)sock), .host = "", .port = port});
}

/* A bind() was allowed and has succeeded. A thread may have put another socket in the place of the one that was bound: one with
 * another port than the allowed one is not remembered. */
void psb_net_bound(PyObject *sock, PyObject *address) {
    bound_socket b;
    long port, wanted = PyTuple_Check(address) && PyTuple_GET_SIZE(address) >= 2 && PyLong_Check(PyTuple_GET_ITEM(address, 1))
                            ? PyLong_AsLong(PyTuple_GET_ITEM(address, 1))
                            : -1;
    if (wanted == -1)
        PyErr_Clear();
    if (psb.learn && wanted == 0)
        learn_chosen(sock);
    size_t n = psb.enforce && wanted >= 0 ? identify(sock, &b, &port) : 0;
    if (n && b.cookie && port && (wanted == 0 || port == wanted))
        psb_remember('B', (const char *)&b, n);
}

/* The system gives a port to a socket that has none, and a connect() that failed leaves one: only what bind() was allowed to
 * take has been judged. A socket that another process has bound, or one of which that has been forgotten, is judged by its address. */
int psb_net_listen(PyObject *sock) {
    bound_socket b;
    long port;
    char host[INET6_ADDRSTRLEN];
    size_t n = psb.enforce ? identify(sock, &b, &port) : 0;
    if (!n || (port && b.cookie && psb_seen('B', (const char *)&b, n)))
        return 0;
    const void *at = b.at.ss_family == AF_INET6 ? (void *)&((struct sockaddr_in6 *)&b.at)->sin6_addr : (void *)&((struct sockaddr_in *)&b.at)->sin_addr;
    if (!inet_ntop(b.at.ss_family, at, host, sizeof host))
        host[0] = 0;
    endpoint e = {.op = "listen", .proto = "tcp", .host = host, .host_len = strlen(host), .port = port};
    return check(&e);
}

static int resolve(PyObject *host, PyObject *port) {
    endpoint e = {.op = "resolve", .proto = "udp"};
    PyObject *hold = text_of(host, &e.host, &e.host_len);
    if (!hold)
        return -1;
    int rc = 0;
    if (e.host_len && !numeric(e.host, e.host_len)) {
        if (port && PyLong_Check(port)) {
            e.port = PyLong_AsLong(port);
            if (e.port == -1)
                PyErr_Clear();
        }
        rc = check(&e);
    }
    Py_DECREF(hold);
    return rc;
}

/* socket.socket.__init__ where no net rule exists. The kernel refuses the socket itself then, and the refusal could not say
 * which address was wanted: the program gets an object over a nameless local socket, which reaches nothing, and its
 * connect, bind or sendto is refused by the address. */
PyObject *psb_socket_init(PSB_CALL) {
    (void)door;
    static const char *const names[] = {"self", "family", "type", "proto", "fileno"};
    PyObject *got[5] = {0};
    for (Py_ssize_t i = 0; i < n && i < 5; i++)
        got[i] = args[i];
    for (Py_ssize_t k = 0; kwnames && k < PyTuple_GET_SIZE(kwnames); k++)
        for (int j = 1; j < 5; j++)
            if (PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(kwnames, k), names[j]) == 0)
                got[j] = args[n + k];
    long family = got[1] && PyLong_Check(got[1]) ? PyLong_AsLong(got[1]) : -1;
    long type = got[2] && PyLong_Check(got[2]) ? PyLong_AsLong(got[2]) : -1;
    PyErr_Clear();
    bool inet = family == -1 || family == AF_INET || family == AF_INET6;
    int kind = type == -1 ? SOCK_STREAM : (int)type & 0xf;
    if (n > 5 || !got[0] || !inet || (got[4] && got[4] != Py_None) || (kind != SOCK_STREAM && kind != SOCK_DGRAM))
        return psb_call_original(original, args, n, kwnames);
    int fd = socket(AF_UNIX, kind | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return PyErr_SetFromErrno(PyExc_OSError);
    PyObject *result = PyObject_CallFunction(original->function, "Oiili", got[0], family == -1 ? AF_INET : (int)family, kind, 0L, fd);
    if (!result)
        close(fd);
    return result;
}

int psb_net_event(const char *event, PyObject *args) {
    Py_ssize_t n = PyTuple_GET_SIZE(args);
    const char *op = event + strlen("socket.");
    if (strcmp(op, "__new__") == 0) {
        if (n < 4)
            return 0;
        long family = PyLong_AsLong(PyTuple_GET_ITEM(args, 1)), type = PyLong_AsLong(PyTuple_GET_ITEM(args, 2));
        PyErr_Clear();
        bool plain = (family == AF_INET || family == AF_INET6 || family == AF_UNIX || family == -1) &&
                     ((type & 0xf) == SOCK_STREAM || (type & 0xf) == SOCK_DGRAM || (type & 0xf) == SOCK_SEQPACKET || type == -1);
        if (plain)
            return 0;
        endpoint e = {.op = "socket", .proto = "raw", .host = "", .port = family};
        return check(&e);
    }
    if (strcmp(op, "connect") == 0 || strcmp(op, "bind") == 0 || strcmp(op, "sendto") == 0 || strcmp(op, "sendmsg") == 0)
        return n >= 2 ? addressed(strcmp(op, "sendmsg") == 0 ? "sendto" : op, PyTuple_GET_ITEM(args, 0), PyTuple_GET_ITEM(args, 1)) : 0;
    if (strcmp(op, "getaddrinfo") == 0)
        return n >= 1 ? resolve(PyTuple_GET_ITEM(args, 0), n > 1 ? PyTuple_GET_ITEM(args, 1) : NULL) : 0;
    if (strcmp(op, "gethostbyname") == 0)
        return n >= 1 ? resolve(PyTuple_GET_ITEM(args, 0), NULL) : 0;
    if (strcmp(op, "gethostbyaddr") == 0 || strcmp(op, "getnameinfo") == 0) { /* a reverse look-up sends the address away */
        endpoint e = {.op = "reverse", .proto = "udp"};
        PyObject *o = n >= 1 ? PyTuple_GET_ITEM(args, 0) : NULL;
        if (o && PyTuple_Check(o) && PyTuple_GET_SIZE(o) >= 1)
            o = PyTuple_GET_ITEM(o, 0);
        PyObject *hold = o ? text_of(o, &e.host, &e.host_len) : NULL;
        if (!hold)
            return o ? -1 : 0;
        int rc = check(&e);
        Py_DECREF(hold);
        return rc;
    }
    return 0;
}
