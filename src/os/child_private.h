/* Shared by child.c (one child) and supervisor.c (all children). No other file may include it. */
#pragma once

#include "base/buf.h"
#include "base/metrics.h"
#include "os/child.h"
#include "os/spawner.h"

#include <pthread.h>
#include <stdatomic.h>

struct supervisor {
    struct loop *loop;       /* borrowed */
    struct spawner *spawner; /* owned */
    struct sandbox *box;     /* borrowed; NULL: children run without a sandbox */
    struct child_sockets on_sockets;
    char *mark;             /* owned; "HEARTH_INSTANCE=<instance>:<boot>:<pid of this service>" */
    struct child *children; /* loop thread only; one reference each */
    bool is_closing;        /* loop thread only */
    pthread_mutex_t mutex;  /* guards what follows */
    pthread_cond_t is_empty;
    size_t n_children, n_starting; /* n_starting: running calls of child_start() */
};

/* What a child started through hearth-child has in addition to its pipes. */
struct child_enclosure {
    int control_fd; /* owned; -1: the child runs without hearth-child */
    pid_t program;  /* pid of the program in this namespace */
    int sockets[4]; /* owned: they listen on the service's port in the child's network */
    size_t n_sockets;
    bool is_jailed; /* its profile is not "none" */
};

struct child_pipe {
    int fd;                   /* owned; -1 after its end */
    struct loop_watch *watch; /* owned */
};

struct child {
    atomic_uint n_refs;
    atomic_bool is_running;
    pthread_mutex_t end_lock;
    pthread_cond_t is_over; /* is_running became false */
    struct loop *loop;      /* borrowed; used while it runs */
    char *label;            /* owned */
    struct child_log *log;  /* one reference */
    pid_t pid;              /* of the program */
    pid_t root;             /* the spawned process and its process group: the program, hearth-child or bubblewrap */
    uint64_t tag;
    struct child_spec spec; /* numbers and callbacks only: the pointers to text are cleared */
    struct metric *gauge;

    /* Used only on the loop thread: */
    struct supervisor *supervisor; /* borrowed; NULL after the end */
    struct child *next, *previous; /* in the supervisor's list */
    int pidfd;                     /* owned */
    int control_fd;                /* owned; -1: the program is the root process */
    bool is_jailed;
    bool has_ended;               /* hearth-child has reported how the program ended */
    bool is_killed;               /* hearth-child was ordered to kill it */
    struct loop_watch *end_watch; /* owned, like the five below */
    struct loop_watch *control_watch;
    struct loop_timer *timeout, *kill, *poll;
    struct child_pipe pipes[CHILD_NOTE]; /* of CHILD_STDOUT and CHILD_STDERR */
    struct buf stdout_kept;
    bool stdout_is_cut;
    bool is_requested;    /* SIGTERM was sent */
    int64_t kill_at_ms;   /* when to send SIGKILL, monotonic; 0 = not decided */
    int64_t killed_at_ms; /* when SIGKILL was sent, monotonic; 0 = not yet */
    int poll_ms;          /* until the group is polled again */
    struct child_exit how;
};

/* The gauge of the programs that run, by the first word of their label: app, agent. */
struct metric *child_gauge(const char *label);
/* Takes ownership of spawned and of the enclosure's descriptors, except of those that spec->ends receives. Returns NULL
 * and takes nothing when the loop cannot watch more descriptors. Loop thread. */
struct child *child_new(struct supervisor *s, const struct child_spec *spec, const struct spawned *spawned,
                        struct child_enclosure *enclosure) MUST_CHECK;
/* Sends SIGTERM to the child's group and kills it after grace_ms. Loop thread. */
void child_end_softly(struct child *c, int64_t grace_ms);
/* Completes the child's end even if the group still lives: closes descriptors, writes the note, calls on_exit. Loop
 * thread. */
void child_finish(struct child *c);

/* +1 before a start, -1 after it: supervisor_close() waits for running starts. Any thread. */
void supervisor_note_starting(struct supervisor *s, int by);
void supervisor_add(struct supervisor *s, struct child *c);
/* Removes the child from the list and the count; the caller receives the reference. */
void supervisor_drop(struct supervisor *s, struct child *c);
