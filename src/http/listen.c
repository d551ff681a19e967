#include "http/connection.h"
#include "http/crowd.h"
#include "http/server_state.h"

#include <arpa/inet.h>
#include <assert.h>
#include <event2/listener.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum { ACCEPT_AGAIN_MS = 200, BACKLOG = 1024 };

struct http_listener {
    TAILQ_ENTRY(http_listener) links;
    struct http_server *server;       /* borrowed */
    struct evconnlistener *accepting; /* owned, with its socket */
    char *path;                       /* owned; of a Unix socket, else NULL */
    uint64_t tag;                     /* owner of the listener; 0: no owner */
};

union address {
    struct sockaddr any;
    struct sockaddr_in in;
    struct sockaddr_in6 in6;
    struct sockaddr_un un;
};

/* The layers above need only the family of a Unix socket's address. */
static struct http_peer *peer_of(const struct http_listener *listener, int fd, const struct sockaddr *from, size_t size)
{
    union http_address local = { .any.sa_family = AF_UNIX }, remote = { .any.sa_family = AF_UNIX };
    socklen_t local_size = sizeof(local);

    if (!listener->path) {
        memcpy(&remote, from, MIN(size, sizeof(remote)));
        if (getsockname(fd, &local.any, &local_size) < 0)
            local = (union http_address){ 0 };
    }
    return http_peer_new(&local, &remote, listener->tag, fd);
}

/* Whether the process may use the Unix socket: this user and root, unless config.may_use_socket denies it. */
static bool is_peer_trusted(const struct http_server_config *c, int fd)
{
    struct ucred peer;
    socklen_t size = sizeof(peer);

    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0 || (peer.uid != geteuid() && peer.uid != 0))
        return false;
    return !c->may_use_socket || c->may_use_socket(c->arg, peer.pid);
}

static void accepted(struct http_listener *listener, int fd, const struct sockaddr *from, int size)
{
    if (listener->path && !is_peer_trusted(&listener->server->config, fd)) {
        close(fd);
        return;
    }
    http_connection_open(listener->server, fd, peer_of(listener, fd, from, (size_t)size));
}

static void on_accepted(struct evconnlistener *accepting, evutil_socket_t fd, struct sockaddr *from, int size,
                        void *arg)
{
    accepted(arg, fd, from, size);
}

/* Accepts with the spare descriptor. */
static bool accept_with_spare(struct http_listener *listener)
{
    struct http_server *s = listener->server;
    struct sockaddr_un from = { 0 };
    socklen_t size = sizeof(from);
    int fd;

    if (!http_spare_give_up(s))
        return false;
    fd = accept4(evconnlistener_get_fd(listener->accepting), (struct sockaddr *)&from, &size,
                 SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd >= 0)
        accepted(listener, fd, (struct sockaddr *)&from, (int)size);
    else
        http_spare_keep(s);
    return fd >= 0;
}

/* Most likely no descriptor is free: an idle connection is closed, and the listener is called again. Without an idle
 * connection the listener is disabled for a while, because the waiting connection would wake the loop again and
 * again. */
static void on_accept_failed(struct evconnlistener *accepting, void *arg)
{
    struct http_listener *listener = arg;

    if (http_crowd_give_way(listener->server, false) || (listener->path && accept_with_spare(listener)))
        return;
    evconnlistener_disable(accepting);
    loop_timer_set(listener->server->accept_again, ACCEPT_AGAIN_MS);
}

void http_listeners_resume(void *server)
{
    struct http_server *s = server;
    struct http_listener *listener;

    TAILQ_FOREACH(listener, &s->listeners, links)
    evconnlistener_enable(listener->accepting);
}

static struct http_listener *free_listener(struct http_listener *listener)
{
    if (listener->accepting)
        evconnlistener_free(listener->accepting);
    if (listener->path)
        unlink(listener->path);
    free(listener->path);
    free(listener);
    return NULL;
}

void http_listeners_close(struct http_server *s)
{
    struct http_listener *listener;

    while ((listener = TAILQ_FIRST(&s->listeners))) {
        TAILQ_REMOVE(&s->listeners, listener, links);
        free_listener(listener);
    }
}

/* Closes the tagged connections with their listeners: their client has ended. */
static void close_tagged(struct http_server *s, uint64_t tag)
{
    struct http_connection *c, *next;

    for (c = TAILQ_FIRST(&s->connections); c; c = next) {
        next = TAILQ_NEXT(c, links);
        if (c->peer->tag == tag)
            http_connection_close(c);
    }
}

void http_server_unlisten(struct http_server *s, uint64_t tag)
{
    struct http_listener *listener, *next;

    assert(tag != 0);
    for (listener = TAILQ_FIRST(&s->listeners); listener; listener = next) {
        next = TAILQ_NEXT(listener, links);
        if (listener->tag != tag)
            continue;
        TAILQ_REMOVE(&s->listeners, listener, links);
        free_listener(listener);
    }
    close_tagged(s, tag);
}

/* Takes ownership of the bound socket; path is NULL for TCP. */
static int begin_accepting(struct http_server *s, int fd, const char *path, uint64_t tag, struct err *e)
{
    struct http_listener *listener = xcalloc(1, sizeof(*listener));

    listener->server = s;
    listener->accepting = evconnlistener_new(loop_base(s->loop), on_accepted, listener,
                                             LEV_OPT_CLOSE_ON_FREE | LEV_OPT_CLOSE_ON_EXEC, BACKLOG, fd);
    if (!listener->accepting) {
        int error = errno;

        close(fd);
        free_listener(listener);
        return err_errno(e, error, "The socket could not be listened on");
    }
    listener->path = path ? xstrdup(path) : NULL;
    listener->tag = tag;
    evconnlistener_set_error_cb(listener->accepting, on_accept_failed);
    TAILQ_INSERT_TAIL(&s->listeners, listener, links);
    return 0;
}

static int parse_address(const char *text, uint16_t port, union address *ret, socklen_t *ret_size, struct err *e)
{
    *ret = (union address){ 0 };
    if (inet_pton(AF_INET, text, &ret->in.sin_addr) == 1) {
        ret->in.sin_family = AF_INET;
        ret->in.sin_port = htons(port);
        *ret_size = sizeof(ret->in);
        return 0;
    }
    if (inet_pton(AF_INET6, text, &ret->in6.sin6_addr) == 1) {
        ret->in6.sin6_family = AF_INET6;
        ret->in6.sin6_port = htons(port);
        *ret_size = sizeof(ret->in6);
        return 0;
    }
    return err_set(e, -EINVAL, "VALIDATION_ERROR",
                   "The address to listen on must be an IPv4 or IPv6 address; \"%s\" is none.", text);
}

/* Accepted sockets inherit the options set here (tcp(7)). */
static int open_tcp_socket(const union address *address, socklen_t size)
{
    static const int one = 1;
    int fd = socket(address->any.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    if (fd < 0)
        return -errno;
    if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) < 0 ||
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)) < 0 ||
        (address->any.sa_family == AF_INET6 && setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof(one)) < 0) ||
        bind(fd, &address->any, size) < 0) {
        int error = errno;

        close(fd);
        return -error;
    }
    return fd;
}

static uint16_t port_of(int fd)
{
    union address address = { 0 };
    socklen_t size = sizeof(address);

    if (getsockname(fd, &address.any, &size) < 0)
        return 0;
    return ntohs(address.any.sa_family == AF_INET6 ? address.in6.sin6_port : address.in.sin_port);
}

int http_server_listen(struct http_server *s, const char *address, uint16_t port, uint16_t *ret_port, struct err *e)
{
    union address bound = { 0 };
    socklen_t size = 0;
    uint16_t real_port;
    int r, fd;

    r = parse_address(address, port, &bound, &size, e);
    if (r < 0)
        return r;
    fd = open_tcp_socket(&bound, size);
    if (fd == -EADDRINUSE)
        return err_set(e, fd, "ADDRESS_IN_USE", "Port %u of %s is in use by another program.", port, address);
    if (fd < 0)
        return err_errno(e, -fd, "Port %u of %s could not be opened", port, address);
    real_port = port_of(fd);
    r = begin_accepting(s, fd, NULL, 0, e);
    if (r == 0)
        *ret_port = real_port;
    return r;
}

/* accept() must never wait: the socket may come from a process that did not set O_NONBLOCK. */
int http_server_listen_fd(struct http_server *s, int fd, uint64_t tag, struct err *e)
{
    static const int one = 1;
    int flags = fcntl(fd, F_GETFL), error;

    if (s->is_draining) {
        close(fd);
        return err_set(e, -EPIPE, "SHUTTING_DOWN", "The service is stopping.");
    }
    if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0 ||
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)) < 0) {
        error = errno;
        close(fd);
        return err_errno(e, error, "The socket could not be listened on");
    }
    return begin_accepting(s, fd, NULL, tag, e);
}

/* Removes a socket file that a killed service left; no process listens on it. */
static int remove_stale_socket(const union address *address, struct err *e)
{
    const char *path = address->un.sun_path;
    struct stat file;
    int fd, r;

    if (lstat(path, &file) < 0)
        return errno == ENOENT ? 0 : err_errno(e, errno, "The socket %s could not be looked at", path);
    if (!S_ISSOCK(file.st_mode))
        return err_set(e, -EEXIST, "ADDRESS_IN_USE", "The file %s is in the way of the service's socket.", path);
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return err_errno(e, errno, "The socket %s could not be made", path);
    r = connect(fd, &address->any, sizeof(address->un));
    close(fd);
    if (r == 0)
        return err_set(e, -EADDRINUSE, "ADDRESS_IN_USE", "The socket %s is in use by another program.", path);
    return unlink(path) < 0 ? err_errno(e, errno, "The old socket %s could not be removed", path) : 0;
}

/* No process can connect before listen(), so the mode is set in time. */
static int open_unix_socket(const union address *address)
{
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    if (fd < 0)
        return -errno;
    if (bind(fd, &address->any, sizeof(address->un)) < 0 || chmod(address->un.sun_path, 0600) < 0) {
        int error = errno;

        close(fd);
        return -error;
    }
    return fd;
}

int http_server_listen_unix(struct http_server *s, const char *path, struct err *e)
{
    union address address = { .un = { .sun_family = AF_UNIX } };
    int r, fd;

    if (strlen(path) >= sizeof(address.un.sun_path))
        return err_set(e, -ENAMETOOLONG, "VALIDATION_ERROR",
                       "The path of the socket %s must be shorter than %zu bytes.", path, sizeof(address.un.sun_path));
    memcpy(address.un.sun_path, path, strlen(path));
    r = remove_stale_socket(&address, e);
    if (r < 0)
        return r;
    fd = open_unix_socket(&address);
    if (fd < 0)
        return err_errno(e, -fd, "The socket %s could not be made", path);
    return begin_accepting(s, fd, path, 0, e);
}
