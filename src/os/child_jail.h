/* Restrictions that hearth-child applies to itself and to the process that becomes the program: capabilities, /proc,
 * Landlock, seccomp. Each function returns 0 or a negative errno. Used only in hearth-child; one thread.
 */
#pragma once

#include "os/child_plan.h"

#include <linux/filter.h>
#include <stddef.h>

/* For the first process of a PID namespace: bounds the number of tasks in the namespace (Linux 6.14), makes the parts
 * of /proc that change the machine read-only, and drops every capability. */
int child_jail_namespace(uint32_t max_tasks);
/* Restricts files to the rules when has_file_rules, and TCP to the port when is_offline; from ABI 6 on, always blocks
 * abstract sockets and signals to processes outside. Sets no_new_privs. */
int child_jail_landlock(const struct child_plan *plan, const char *const *rules);
int child_jail_filter(const struct sock_filter *filter, size_t n);
