/* Child processes: Local Apps, agent processes and, later, stdio MCP servers and speech workers.
 *
 * One supervisor for each process, on the loop thread. child_start() may be called on any thread, but not on the loop
 * thread when the child has a sandbox. Every child has its own session and process group, a minimal environment, no
 * inherited descriptors above 2, a pidfd watched by the loop, and a bounded log of its output. With a sandbox,
 * hearth-child (child_plan.h) runs between the service and the program: it reports how the program ended, and when
 * hearth-child ends, every process that descends from the program ends too. To end a child means: SIGTERM to the group,
 * a grace period, SIGKILL; the same applies to processes left behind when the program exits. Without a sandbox, a
 * process that left the group (setsid) lives on until supervisor_close(), which finds it by the mark
 * HEARTH_INSTANCE=<instance>:<boot>:<pid of the service> in its environment. After a kill -9 of the service,
 * supervisor_open() finds and ends the orphans in the same way: marked processes of this instance and boot whose
 * service has ended. The instance identifies one data folder; a copy of the folder has another instance.
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
    int code;         /* exit code, or -1 */
    int signal;       /* the signal that ended it, or 0 */
    bool was_stopped; /* child_stop() had been called */
    bool timed_out;   /* it ran past timeout_ms */
    bool was_crowded; /* it failed, and after it the machine had hardly a process left (RLIMIT_NPROC, pids.max) */
};

/* The service's ends of a child's standard input and output: non-blocking, closed on exec. */
struct child_ends {
    int stdin_fd, stdout_fd; /* owned by the caller of child_start() */
};

struct child_spec {
    const char *label;       /* "app triage", "run 12": for logs and metrics */
    const char *command;     /* looked up in PATH of env when it has no slash */
    const char *const *args; /* NULL-ended, without argv[0]; may be NULL */
    const char *const *env;  /* NULL-ended "NAME=value": the complete environment (see env.h); nothing is inherited */
    const char *working_dir; /* NULL: the service's */
    const struct sandbox_definition *sandbox; /* NULL: none, and no hearth-child either */
    const char *own_dir; /* in a sandbox: the child's own folder, made by the caller; the child's home is made in it */
    const char *shown_file;  /* in a sandbox: a file of the service that the child may read */
    bool is_cut_off;         /* in a sandbox of the profile strict: no network at all, not even the service's port, no
                                home; needs bubblewrap */
    uint64_t max_file_bytes; /* in a sandbox: of the largest file that the child may write; 0: LIMIT_CHILD_FILE_BYTES */
    uint64_t tag;            /* from child_tag_new(), for callers that need the tag before the start; 0: a new one */
    int64_t timeout_ms;      /* 0: none */
    int64_t stop_grace_ms;   /* between SIGTERM and SIGKILL; 0: 5000 */
    size_t max_stdout;       /* bytes of standard output kept complete in addition to the log; 0: none */
    struct child_ends *ends; /* receives the pipes to the child, whose log then has standard error only; NULL: standard
                                input is empty, and standard output goes to the log */
    struct child_log *log;   /* continue this log (of an earlier start of the app); NULL: a new one */
    /* Called once, on the loop thread, when the process and its group have ended and all output is read. For a
     * short-lived child that may happen before child_start() returns to a worker. */
    void (*on_exit)(struct child *c, const struct child_exit *how, void *arg);
    /* Optional, called on the loop thread after lines were added to the log (once for each read). */
    void (*on_line)(struct child *c, void *arg);
    void *arg;
};

/* Sockets on the service's port inside the network namespace of a child that has no other network. Both functions are
 * called on the loop thread. */
struct child_sockets {
    void (*opened)(void *arg, int fd, uint64_t tag); /* takes ownership of fd */
    void (*closed)(void *arg, uint64_t tag);         /* the child has ended */
    void *arg;
};

int supervisor_open(struct loop *l, const char *instance, struct supervisor **ret, size_t *ret_n_orphans,
                    struct err *e) MUST_CHECK;
/* Ends every child, waits up to grace_ms, then kills. Call on a thread other than the loop's, while the loop runs;
 * without children, on any thread. */
struct supervisor *supervisor_close(struct supervisor *s, int64_t grace_ms);
/* Call before the first start. */
void supervisor_set_sandbox(struct supervisor *s, struct sandbox *box);
void supervisor_on_sockets(struct supervisor *s, const struct child_sockets *on);
/* Whether this process descends from a child in a sandbox. Also true for a process that has ended, whose origin is
 * unknown. For the Unix socket, which Landlock cannot block. Loop thread. */
bool supervisor_has_in_sandbox(const struct supervisor *s, pid_t pid);
size_t supervisor_n_children(const struct supervisor *s);

/* -ENOENT COMMAND_NOT_FOUND "The program `uvx` was not found; ..." names what to install for python, node, npx, uvx;
 * -EACCES when it is not executable; -ENOTDIR for a bad working_dir; -E2BIG for an argument above LIMIT_ARG_BYTES;
 * -EAGAIN TOO_MANY_CHILDREN; -EPIPE SHUTTING_DOWN; -ENOTSUP SANDBOX_UNAVAILABLE. The caller owns the reference
 * returned. A worker waits for the loop here.
 */
int child_start(struct supervisor *s, const struct child_spec *spec, struct child **ret, struct err *e) MUST_CHECK;
/* Requests the end of the child. Any thread, any number of times; never waits. */
void child_stop(struct child *c);
pid_t child_pid(const struct child *c); /* of the program itself, so that `kill` ends it */
uint64_t child_tag_new(void);           /* for child_spec.tag */
bool child_is_running(const struct child *c);
/* Waits until the child has ended and all that it wrote is in its log. False: it runs on. Not on the loop thread. A
 * child that has closed its standard output may not have ended yet, and its last words may not be in the log. */
bool child_wait_for_end(struct child *c, int64_t most_ms);
/* The last n lines of its standard error. Where its standard output (child_ends) has ended, it has 5 s to end, so that
 * the lines are all there. Not on the loop thread. */
char *child_last_words(struct child *c, int stdout_fd, struct arena *a, size_t n);
struct child_log *child_log_of(struct child *c); /* borrowed; any thread */
/* The complete standard output (max_stdout); valid in on_exit and after it. */
struct slice child_stdout(struct child *c, bool *ret_is_cut);
struct child *child_ref(struct child *c);
struct child *child_unref(struct child *c); /* does not stop it */
