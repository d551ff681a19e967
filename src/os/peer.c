#include "os/peer.h"

#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <unistd.h>

enum { PEER_ANSWER_BYTES = 4096 };

struct peer_question {
    struct nlmsghdr head;
    struct inet_diag_req_v2 body;
};

/* ---- addresses ---- */

/* A v4-mapped address becomes an IPv4 address, by which the kernel finds sockets of both families. */
static int put_address(const struct sockaddr *from, unsigned char *ret_family, __be32 address[4], __be16 *port)
{
    const struct sockaddr_in *in = (const struct sockaddr_in *)(const void *)from;
    const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)(const void *)from;

    if (from->sa_family == AF_INET) {
        address[0] = in->sin_addr.s_addr;
        *port = in->sin_port;
    } else if (from->sa_family == AF_INET6 && IN6_IS_ADDR_V4MAPPED(&in6->sin6_addr)) {
        memcpy(address, &in6->sin6_addr.s6_addr[12], sizeof(address[0]));
        *port = in6->sin6_port;
    } else if (from->sa_family == AF_INET6) {
        memcpy(address, &in6->sin6_addr, sizeof(in6->sin6_addr));
        *port = in6->sin6_port;
        *ret_family = AF_INET6;
        return 0;
    } else {
        return -EAFNOSUPPORT;
    }
    *ret_family = AF_INET;
    return 0;
}

/* The socket whose own address is `own` and whose peer is `other`. */
static int query_kernel(const struct sockaddr *own, const struct sockaddr *other, struct peer_question *ret)
{
    struct inet_diag_req_v2 body = { .sdiag_protocol = IPPROTO_TCP, .idiag_states = ~0U };
    struct inet_diag_sockid *id = &body.id;
    unsigned char family = 0;
    int r = put_address(own, &body.sdiag_family, id->idiag_src, &id->idiag_sport);

    if (r == 0)
        r = put_address(other, &family, id->idiag_dst, &id->idiag_dport);
    if (r < 0)
        return r;
    if (family != body.sdiag_family)
        return -EAFNOSUPPORT;
    id->idiag_cookie[0] = id->idiag_cookie[1] = INET_DIAG_NOCOOKIE;
    *ret = (struct peer_question){
        .head = { .nlmsg_len = sizeof(*ret), .nlmsg_type = SOCK_DIAG_BY_FAMILY, .nlmsg_flags = NLM_F_REQUEST },
        .body = body,
    };
    return 0;
}

/* ---- the exchange ---- */

static int read_answer(const struct nlmsghdr *head, size_t n, struct inet_diag_msg *ret)
{
    struct nlmsgerr error;

    if (!NLMSG_OK(head, n))
        return -EIO;
    if (head->nlmsg_type == NLMSG_ERROR && head->nlmsg_len >= NLMSG_LENGTH(sizeof(error))) {
        memcpy(&error, NLMSG_DATA(head), sizeof(error));
        return error.error < 0 ? error.error : -EIO;
    }
    if (head->nlmsg_type != SOCK_DIAG_BY_FAMILY || head->nlmsg_len < NLMSG_LENGTH(sizeof(*ret)))
        return -EIO;
    memcpy(ret, NLMSG_DATA(head), sizeof(*ret));
    return 0;
}

void peer_kernel_init(struct peer_kernel *k)
{
    *k = (struct peer_kernel){ .fd = -1 };
    pthread_mutex_init(&k->lock, NULL);
}

static void close_line(struct peer_kernel *k)
{
    if (k->fd >= 0)
        close(k->fd);
    k->fd = -1;
}

void peer_kernel_clear(struct peer_kernel *k)
{
    close_line(k);
    pthread_mutex_destroy(&k->lock);
}

/* The caller holds the lock. The kernel has answered when send() returns. An answer to another request means that an
 * earlier answer was not read: the next call opens a new socket. */
static int exchange(struct peer_kernel *k, struct peer_question *question, struct inet_diag_msg *ret)
{
    union {
        struct nlmsghdr head;
        char bytes[PEER_ANSWER_BYTES];
    } answer;
    ssize_t n = -1;
    int r;

    if (k->fd < 0)
        k->fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_SOCK_DIAG);
    question->head.nlmsg_seq = ++k->n_requested;
    if (k->fd >= 0 && send(k->fd, question, sizeof(*question), 0) == (ssize_t)sizeof(*question))
        n = recv(k->fd, &answer, sizeof(answer), 0);
    r = n < 0 ? -errno : read_answer(&answer.head, (size_t)n, ret);
    if (n < (ssize_t)sizeof(answer.head) || answer.head.nlmsg_seq != question->head.nlmsg_seq) {
        close_line(k);
        return r < 0 ? r : -EIO;
    }
    return r;
}

/* Without a match the kernel returns a listener on that port instead. A socket without an inode is held by no process,
 * and its uid is meaningless. */
static int owner_of(struct peer_kernel *k, struct peer_question *question, bool is_listener, struct peer_owner *ret)
{
    struct inet_diag_msg found;
    int r;

    pthread_mutex_lock(&k->lock);
    r = exchange(k, question, &found);
    pthread_mutex_unlock(&k->lock);
    if (r < 0)
        return r;
    if ((found.idiag_state == TCP_LISTEN) != is_listener || found.idiag_state == TCP_SYN_SENT ||
        found.idiag_inode == 0 || found.id.idiag_sport != question->body.id.idiag_sport)
        return -ENOENT;
    *ret = (struct peer_owner){ found.idiag_uid, found.idiag_inode };
    return 0;
}

int peer_owner(struct peer_kernel *k, const struct sockaddr *remote, const struct sockaddr *local,
               struct peer_owner *ret)
{
    struct peer_question question;
    int r = query_kernel(remote, local, &question);

    return r < 0 ? r : owner_of(k, &question, false, ret);
}

int peer_listener(struct peer_kernel *k, uint16_t port, struct peer_owner *ret)
{
    const struct sockaddr_in at = { .sin_family = AF_INET,
                                    .sin_port = htons(port),
                                    .sin_addr = { htonl(INADDR_LOOPBACK) } };
    const struct sockaddr_in nobody = { .sin_family = AF_INET };
    struct peer_question question;
    int r = query_kernel((const struct sockaddr *)(const void *)&at, (const struct sockaddr *)(const void *)&nobody,
                         &question);

    return r < 0 ? r : owner_of(k, &question, true, ret);
}

static int listen_somewhere(uint16_t *ret_port)
{
    struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
    socklen_t size = sizeof(at);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), saved;

    if (fd >= 0 && bind(fd, (struct sockaddr *)&at, size) == 0 && listen(fd, 1) == 0 &&
        getsockname(fd, (struct sockaddr *)&at, &size) == 0) {
        *ret_port = ntohs(at.sin_port);
        return fd;
    }
    saved = errno;
    if (fd >= 0)
        close(fd);
    return -saved;
}

int peer_kernel_check(struct peer_kernel *k, struct err *e)
{
    struct peer_owner owner;
    uint16_t port = 0;
    int fd = listen_somewhere(&port), r;

    if (fd < 0)
        return err_errno(e, -fd, "cannot listen on 127.0.0.1");
    r = peer_listener(k, port, &owner);
    close(fd);
    if (r == -ENOENT)
        return err_errno(e, EOPNOTSUPP, "the kernel's inet_diag and tcp_diag do not report who holds a connection");
    return r < 0 ? err_errno(e, -r, "the kernel does not report who holds a connection") : 0;
}
