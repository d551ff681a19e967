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
    struct sandbox *box;                /* borrowed; NULL: children run as they are */
    struct child_sockets on_sockets;
    char *mark;                         /* owned; "HEARTH_INSTANCE=<instance>" */
    struct child *children;             /* loop thread only; one reference each */
    bool is_closing;                    /* loop thread only */
    pthread_mutex_t mutex;              /* guards what follows */
    pthread_cond_t is_empty;
    size_t n_children, n_starting;      /* the latter: calls of child_start() */
};

/* What a child that hearth-child stands around has besides its pipes. */
struct child_enclosure {
    int control_fd;                     /* owned; -1: none, it runs as it is */
    pid_t program;                      /* as this namespace sees it */
    int sockets[4];                     /* owned: they listen on the service's port in the child's network */
    size_t n_sockets;
    bool is_jailed;                     /* in another profile than none */
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
    pid_t pid;                          /* of the program */
    pid_t root;                         /* what the loop spawned, also its process group: the program, hearth-child or bubblewrap */
    uint64_t tag;
    struct child_spec spec;             /* numbers and callbacks only: the pointers to text are cleared */
    struct metric *gauge;

    /* The loop thread's: */
    struct supervisor *supervisor;      /* borrowed; NULL after the end */
    struct child *next, *previous;      /* in the supervisor's list */
    int pidfd;                          /* owned */
    int control_fd;                     /* owned; -1: the program is the root */
    bool is_jailed;
    bool has_ended;                     /* hearth-child has reported how */
    bool is_killed;                     /* and was ordered to kill it */
    struct loop_watch *end_watch;       /* owned, as the five below */
    struct loop_watch *control_watch;
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

/* Takes over spawned and the descriptors of the enclosure. On the loop thread. */
struct child *child_new(struct supervisor *s, const struct child_spec *spec, const struct spawned *spawned, struct child_enclosure *enclosure) MUST_CHECK;
/* Asks its group to end and kills it after grace_ms. On the loop thread. */
void child_ask_to_end(struct child *c, int64_t grace_ms);
/* Ends the story whether or not the group did: closes, notes, on_exit. On the loop thread. */
void child_finish(struct child *c);

/* +1 before a start, -1 after it: supervisor_close() waits for them. Any thread. */
void supervisor_note_starting(struct supervisor *s, int by);
void supervisor_add(struct supervisor *s, struct child *c);
/* Out of the list and the count; the reference goes to the caller. */
void supervisor_drop(struct supervisor *s, struct child *c);
