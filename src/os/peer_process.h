/* Finds the process that holds a socket, and whether it belongs to a program that the service started. Reads /proc of
 * all processes: call on a worker only.
 *
 *     r = peer_process_find(inode, (pid_t[]){ pid_of_child }, 1, &found);
 */
#pragma once

#include "base/util.h"
#include <limits.h>
#include <sys/types.h>

struct peer_process {
    pid_t pid;
    pid_t root;          /* root of the tree to which it belongs, as a descendant or a member of the session; 0: none */
    char path[PATH_MAX]; /* path of its program; "" when unreadable */
};

/* 1: found; 0: no readable process holds the socket. When several hold it, a process of a tree in roots is preferred.
 * -EMFILE: not everything was read, because no descriptor was free. */
int peer_process_find(uint64_t inode, const pid_t *roots, size_t n_roots, struct peer_process *ret) MUST_CHECK;
