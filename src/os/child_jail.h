/* What hearth-child does to itself and to the process that becomes the program: capabilities, /proc, Landlock, seccomp. Each
 * returns 0 or a negative errno. Part of hearth-child alone; one thread.
 */
#pragma once

#include "os/child_plan.h"

#include <linux/filter.h>
#include <stddef.h>

/* First process of a PID namespace: bounds how many tasks it may hold (Linux 6.14), makes the parts of /proc that change the
 * machine read-only, and gives up every capability. */
int child_jail_namespace(uint32_t max_tasks);
/* Files below the rules only, when has_file_rules; TCP to the port only, when is_offline; never an abstract socket or a process
 * outside (ABI 6). No new privileges from here on. */
int child_jail_landlock(const struct child_plan *plan, const char *const *rules);
int child_jail_filter(const struct sock_filter *filter, size_t n);
