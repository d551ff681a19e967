/* Who holds the other end of a TCP connection of this machine, as the kernel says (sock_diag(7)). Any thread: one exchange of netlink messages
 * with the kernel under a mutex, which waits for nobody. Sees the sockets of the service's own network namespace only.
 *
 *     peer_kernel_init(&kernel);
 *     r = peer_owner(&kernel, &remote.any, &local.any, &owner);        owner.uid, owner.inode
 */
#pragma once

#include "base/util.h"
#include <pthread.h>
#include <sys/socket.h>
#include <sys/types.h>

struct peer_kernel {
    pthread_mutex_t lock;               /* guards what follows */
    int fd;                             /* owned; -1: not opened yet */
    uint32_t n_asked;
};

struct peer_owner {
    uid_t uid;
    uint64_t inode;                     /* of the socket, as in /proc/PID/fd: "socket:[inode]"; never 0 */
};

void peer_kernel_init(struct peer_kernel *k);
void peer_kernel_clear(struct peer_kernel *k);
/* Of the socket that is bound to `remote` and connected to `local`, both as this end sees them; AF_INET and AF_INET6, also v4-mapped ones.
 * -ENOENT: no process of this machine holds it (any more). */
int peer_owner(struct peer_kernel *k, const struct sockaddr *remote, const struct sockaddr *local, struct peer_owner *ret) MUST_CHECK;
/* Of the socket that takes connections to 127.0.0.1:port. -ENOENT: none does. */
int peer_listener(struct peer_kernel *k, uint16_t port, struct peer_owner *ret) MUST_CHECK;
