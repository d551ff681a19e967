/* What child.c (one child) and supervisor.c (all of them) share. Nobody else includes it. */
#pragma once

#include "base/buf.h"
#include "base/metrics.h"
#include "os/child.h"
#include "os/spawn.h"

#include <pthread.h>
#include <stdatomic.h>

struct supervisor {
    struct loop *loop;                  /* borrowed */
    char *mark;                         /* owned; "HEARTH_INSTANCE=<instance>" */
    struct child *children;             /* loop thread only; one reference each */
    bool is_closing;                    /* loop thread only */
    pthread_mutex_t mutex;              /* guards what follows */
    pthread_cond_t is_empty;
    size_t n_children;
};

struct child_pipe {
    int fd;                             /* owned; -1 after its end */
    struct loop_watch *watch;           /* owned */
};

struct child {
    atomic_uint n_refs;
    atomic_bool is_running;
    struct loop *loop;                  /* borrowed; used while it runs */
    char *label;                        /* owned */
    struct child_log *log;              /* one reference */
    pid_t pid;                          /* also of its process group */
    struct child_spec spec;             /* numbers and callbacks only: the pointers to text are cleared */
    struct metric *gauge;

    /* The loop thread's: */
    struct supervisor *supervisor;      /* borrowed; NULL after the end */
    struct child *next, *previous;      /* in the supervisor's list */
    int pidfd;                          /* owned */
    struct loop_watch *end_watch;       /* owned, as the four below */
    struct loop_timer *timeout, *kill, *poll;
    struct child_pipe pipes[CHILD_NOTE];        /* of CHILD_STDOUT and CHILD_STDERR */
    struct buf stdout_kept;
    bool stdout_is_cut;
    bool is_asked;                      /* SIGTERM was sent */
    int64_t kill_at_ms;                 /* when SIGKILL is to be sent, monotonic; 0 = not decided */
    int64_t killed_at_ms;               /* when SIGKILL was sent, monotonic; 0 = not yet */
    int poll_ms;                        /* until the next look at the group */
    struct child_exit how;
};

/* Takes over spawned. On the loop thread. */
struct child *child_new(struct supervisor *s, const struct child_spec *spec, const struct spawned *spawned) MUST_CHECK;
/* Asks its group to end and kills it after grace_ms. On the loop thread. */
void child_ask_to_end(struct child *c, int64_t grace_ms);
/* Ends the story whether or not the group did: closes, notes, on_exit. On the loop thread. */
void child_finish(struct child *c);

void supervisor_add(struct supervisor *s, struct child *c);
/* Out of the list and the count; the reference goes to the caller. */
void supervisor_drop(struct supervisor *s, struct child *c);
