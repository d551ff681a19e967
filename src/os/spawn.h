/* One fork (vfork(2)) and exec. Called only on the thread of spawner.h: PR_SET_PDEATHSIG follows the forking thread,
 * which must live as long as the process. The child has its own session, no descriptors above 2 except those passed,
 * default signals, no core dump.
 */
#pragma once

#include "base/err.h"
#include "os/child_plan.h"
#include <sys/types.h>

struct spawn_plan {
    const char *path;                /* for execve() */
    char *const *argv, *const *envp; /* NULL-ended */
    const char *working_dir;         /* or NULL */
    const int *passed;               /* NULL, or CHILD_FDS_END descriptors: descriptor i of the child; -1 = closed */
    bool has_stdin;                  /* standard input is a pipe; otherwise /dev/null */
};

struct spawned {
    pid_t pid;                /* leader of its own session and process group */
    int pidfd;                /* the caller closes these four */
    int stdout_fd, stderr_fd; /* read ends, non-blocking */
    int stdin_fd;             /* write end, non-blocking; -1: none */
};

/* Returns when the new program runs, or with the reason why it does not; then no process and no descriptor is left. */
int spawn_process(const struct spawn_plan *plan, struct spawned *ret, struct err *e) MUST_CHECK;
/* The sentence and code for a step that failed, here or in hearth-child. */
int spawn_explain(const struct spawn_plan *plan, enum child_step step, int error, struct err *e);
/* Moves a descriptor above the numbers that are passed to a child; 0 or -errno. */
int spawn_keep_above(int *fd) MUST_CHECK;
