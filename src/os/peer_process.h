/* Which process holds a socket, and does it belong to a program that the service started. Reads /proc of all processes: on a worker only.
 *
 *     is_there = peer_process_find(inode, (pid_t[]){ pid_of_child }, 1, &found);
 */
#pragma once

#include "base/util.h"
#include <limits.h>
#include <sys/types.h>

struct peer_process {
    pid_t pid;
    pid_t root;                         /* of whose tree it is: a descendant, or a member of the session; 0: of none */
    char path[PATH_MAX];                /* of its program; "" when it cannot be read */
};

/* False when no process that can be looked into holds it. A process of the tree is preferred, where several hold it. */
bool peer_process_find(uint64_t inode, const pid_t *roots, size_t n_roots, struct peer_process *ret) MUST_CHECK;
