/* Processes found by reading /proc: those no handle is left of, and what a child does. Any thread; reads memory of the kernel, no disk. */
#pragma once

#include "base/util.h"
#include <sys/types.h>

/* Has the process group a member that lives? Zombies, which kill(2) counts, do not. */
bool proc_group_lives(pid_t pgid);

/* 0: it is gone, or has none. */
pid_t proc_parent(pid_t pid);

/* Ends every process of this user whose environment holds exactly `mark` ("NAME=value"), never the caller: SIGTERM, then
 * after grace_ms SIGKILL. Waits for their end. Returns how many the first look found. Safe against reuse of pids: a
 * process is held by pidfd before its environment is read for good. */
size_t proc_end_marked(const char *mark, int64_t grace_ms);

/* Port on which a process of the group listens at 127.0.0.1; 0: none does. For children that choose their port themselves. */
uint16_t proc_listening_port(pid_t pgid);
