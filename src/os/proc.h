/* Finds processes by reading /proc: processes to which no handle is left, and the activity of a child. Any thread;
 * reads kernel memory, no disk. */
#pragma once

#include "base/util.h"
#include <sys/types.h>

/* Whether the process group has a living member; unlike kill(2), this does not count zombies. */
bool proc_group_lives(pid_t pgid);

/* 0: the process has ended or has no parent. */
pid_t proc_parent(pid_t pid);

/* Ends every process of this user whose environment holds exactly `mark` ("NAME=value"), never the caller: SIGTERM,
 * then after grace_ms SIGKILL. Waits for their end. Returns how many processes the first round found. Safe against
 * reuse of pids: a pidfd is opened before the final read of the environment. */
size_t proc_end_marked(const char *mark, int64_t grace_ms);

/* The same for orphans: processes whose environment holds `prefix` followed by the pid of a service that has ended. */
size_t proc_end_orphans(const char *prefix, int64_t grace_ms);

/* Port on which a process of the group listens on 127.0.0.1; 0: none. For children that choose their own port. */
uint16_t proc_listening_port(pid_t pgid);
