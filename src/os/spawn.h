/* One fork (vfork(2)) and exec. On the loop thread only: PR_SET_PDEATHSIG follows the forking thread, which must live as long as the
 * process. The child has its own session, no descriptors above 2 but those passed, default signals, no core dump. Used by child_start() alone.
 */
#pragma once

#include "base/err.h"
#include "os/child_plan.h"
#include <sys/types.h>

struct spawn_plan {
    const char *path;                   /* for execve() */
    char *const *argv, *const *envp;    /* NULL-ended */
    const char *working_dir;            /* or NULL */
    const int *passed;                  /* NULL, or CHILD_FDS_END descriptors: what the child has at that number; -1 = nothing */
};

struct spawned {
    pid_t pid;                          /* leader of its own session and process group */
    int pidfd;                          /* these three are the caller's to close */
    int stdout_fd, stderr_fd;           /* read ends, non-blocking */
};

/* Returns when the new program runs, or says why it does not; then nothing is left behind. */
int spawn_process(const struct spawn_plan *plan, struct spawned *ret, struct err *e) MUST_CHECK;
/* The sentence and code for a step that failed, here or in hearth-child. */
int spawn_explain(const struct spawn_plan *plan, enum child_step step, int error, struct err *e);
/* Moves a descriptor above those that a child is given; -errno. */
int spawn_keep_above(int *fd) MUST_CHECK;
