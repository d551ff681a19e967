/* Child processes: Local Apps, agent processes and, later, stdio MCP servers and speech workers.
 *
 * One supervisor a process, on the loop thread. child_start() is for any thread but the loop's when the child has a sandbox. Every child
 * has its own session and process group, a minimal environment, no inherited descriptors above 2, a pidfd watched by the loop, its output in
 * a bounded log. With a sandbox hearth-child (child_plan.h) stands between: it tells how the program ended, and its end is the end of every
 * process that came of the program, whatever they did. Ended = asked (SIGTERM to the group), waited for, SIGKILL; also whatever was left
 * behind when the program exits. Without a sandbox what left the group (setsid) lives on until supervisor_close(), which finds it by the
 * mark HEARTH_INSTANCE=<instance> in its environment; after a kill -9 of the service supervisor_open() finds and ends the orphans of the
 * last run the same way. The instance must be one data folder's own.
 */
#pragma once

#include "base/loop.h"
#include "base/slice.h"
#include "os/child_log.h"
#include "os/sandbox.h"
#include <sys/types.h>

struct supervisor;
struct child;

struct child_exit {
    int code;                           /* exit code, or -1 */
    int signal;                         /* that ended it, or 0 */
    bool was_stopped;                   /* child_stop() had been called */
    bool timed_out;                     /* it ran past timeout_ms */
};

struct child_spec {
    const char *label;                  /* "app triage", "run 12": for logs and metrics */
    const char *command;                /* looked up in PATH of env when it has no slash */
    const char *const *args;            /* NULL-ended, without argv[0]; may be NULL */
    const char *const *env;             /* NULL-ended "NAME=value": the whole environment (see env.h), nothing is inherited */
    const char *working_dir;            /* NULL: the service's */
    const struct sandbox_wish *sandbox; /* NULL: none, and no hearth-child around it either */
    const char *own_dir;                /* in a sandbox: a folder that is its own, made by the caller; its home is made in it */
    const char *shown_file;             /* in a sandbox: a file of the service that it may read */
    uint64_t tag;                       /* of child_tag_new(), for who has to know it before the start; 0: a new one */
    int64_t timeout_ms;                 /* 0: none */
    int64_t stop_grace_ms;              /* between SIGTERM and SIGKILL; 0: 5000 */
    size_t max_stdout;                  /* bytes of standard output kept whole besides the log; 0: none */
    struct child_log *log;              /* goes on in this log (an app that was started before); NULL: a new one */
    /* Once, on the loop thread, when the process and its group have ended and all output is read. For a short-lived one
     * that may be before child_start() has returned to a worker. */
    void (*on_exit)(struct child *c, const struct child_exit *how, void *arg);
    /* Optional, on the loop thread: lines were added to the log (one call for all that was read at once). */
    void (*on_line)(struct child *c, void *arg);
    void *arg;
};

/* Sockets of the service's port in the network of a child without another one. Both on the loop thread. */
struct child_sockets {
    void (*opened)(void *arg, int fd, uint64_t tag);    /* takes fd over */
    void (*closed)(void *arg, uint64_t tag);            /* the child has ended */
    void *arg;
};

int supervisor_open(struct loop *l, const char *instance, struct supervisor **ret, size_t *ret_n_orphans, struct err *e) MUST_CHECK;
/* Ends every child, waits up to grace_ms, then kills. Call while the loop runs, from a thread that is not the loop; when
 * there are no children, from anywhere. */
struct supervisor *supervisor_close(struct supervisor *s, int64_t grace_ms);
/* Before the first start. */
void supervisor_set_sandbox(struct supervisor *s, struct sandbox *box);
void supervisor_on_sockets(struct supervisor *s, const struct child_sockets *on);
/* Does this process come of a child in a sandbox? Also true when it has ended, so that nobody knows. For the Unix socket, which Landlock
 * cannot close. Loop thread. */
bool supervisor_has_in_sandbox(const struct supervisor *s, pid_t pid);
size_t supervisor_n_children(const struct supervisor *s);

/* -ENOENT COMMAND_NOT_FOUND "The program `uvx` was not found; ..." names what to install for python, node, npx, uvx;
 * -EACCES when it is no executable; -ENOTDIR for a bad working_dir; -E2BIG for an argument above LIMIT_ARG_BYTES;
 * -EAGAIN TOO_MANY_CHILDREN; -EPIPE SHUTTING_DOWN. The reference returned is the caller's. A worker waits for the loop. */
int child_start(struct supervisor *s, const struct child_spec *spec, struct child **ret, struct err *e) MUST_CHECK;
/* Asks it to end. Any thread, any number of times; never waits. */
void child_stop(struct child *c);
pid_t child_pid(const struct child *c);                /* of the program, as the person sees it: `kill` ends it */
pid_t child_root_pid(const struct child *c);           /* of the process under which all of its processes are */
uint64_t child_tag_new(void);                            /* for child_spec.tag */
uint64_t child_tag(const struct child *c);             /* no other child of this process has it; never 0 */
bool child_is_running(const struct child *c);
struct child_log *child_log_of(struct child *c);        /* borrowed; any thread */
/* Standard output kept whole (max_stdout); valid inside on_exit and after. */
struct slice child_stdout(struct child *c, bool *ret_is_cut);
struct child *child_ref(struct child *c);
struct child *child_unref(struct child *c);             /* does not stop it */
