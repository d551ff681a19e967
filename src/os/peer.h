/* The owner of the other end of a TCP connection on this machine, as the kernel reports it (sock_diag(7)). Any thread:
 * one exchange of netlink messages with the kernel, under a mutex, which waits for no other process. Covers only the
 * sockets of the service's own network namespace.
 *
 *     peer_kernel_init(&kernel);
 *     r = peer_owner(&kernel, &remote.any, &local.any, &owner);        owner.uid, owner.inode
 */
#pragma once

#include "base/err.h"
#include <pthread.h>
#include <sys/socket.h>
#include <sys/types.h>

struct peer_kernel {
    pthread_mutex_t lock; /* guards what follows */
    int fd;               /* owned; -1: not opened yet */
    uint32_t n_requested;
};

struct peer_owner {
    uid_t uid;
    uint64_t inode; /* of the socket, as in /proc/PID/fd: "socket:[inode]"; never 0 */
};

void peer_kernel_init(struct peer_kernel *k);
void peer_kernel_clear(struct peer_kernel *k);
/* The owner of the socket that is bound to `remote` and connected to `local`, both named from this end; AF_INET and
 * AF_INET6, also v4-mapped. -ENOENT: no process of this machine holds the socket (any more); -EMFILE, -ENFILE, -ENOMEM,
 * -ENOBUFS: the kernel cannot be asked now. */
int peer_owner(struct peer_kernel *k, const struct sockaddr *remote, const struct sockaddr *local,
               struct peer_owner *ret) MUST_CHECK;
/* The owner of the socket that accepts connections to 127.0.0.1:port. -ENOENT: there is none. */
int peer_listener(struct peer_kernel *k, uint16_t port, struct peer_owner *ret) MUST_CHECK;
/* Whether the kernel reports owners at all: looks up a listener of its own. -EOPNOTSUPP: the kernel has no inet_diag or
 * its module cannot be loaded; another negative errno: a sandbox around the service forbids the question. */
int peer_kernel_check(struct peer_kernel *k, struct err *e) MUST_CHECK;
