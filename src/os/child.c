#include "os/child_private.h"

#include "base/clock.h"
#include "base/cond.h"
#include "base/limits.h"
#include "base/log.h"
#include "os/proc.h"

#include <assert.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    CHILD_READ_BYTES = 65536,    /* for each turn of the loop, so that a flood of output leaves time for other work */
    CHILD_DRAIN_BYTES = 1 << 20, /* after the child's end: the largest capacity of a pipe (pipe(7), pipe-max-size) */
    CHILD_STOP_GRACE_MS = 5000,
    CHILD_POLL_MS = 10, /* first interval of polling the group, which has no descriptor; doubled each time */
    CHILD_POLL_MOST_MS = 500,
    CHILD_LAST_WORDS_MS = 5000,
    CHILD_ORDER_MS = 3000,    /* how long hearth-child may take to kill all processes */
    CHILD_GIVE_UP_MS = 30000, /* after SIGKILL: a process may be blocked in the kernel or belong to another user */
};

/* ---- references ---- */

struct child *child_ref(struct child *c)
{
    atomic_fetch_add(&c->n_refs, 1);
    return c;
}

struct child *child_unref(struct child *c)
{
    if (!c || atomic_fetch_sub(&c->n_refs, 1) > 1)
        return NULL;
    assert(!c->supervisor);
    child_log_unref(c->log);
    buf_clear(&c->stdout_kept);
    pthread_cond_destroy(&c->is_over);
    pthread_mutex_destroy(&c->end_lock);
    free(c->label);
    free(c);
    return NULL;
}

pid_t child_pid(const struct child *c)
{
    return c->pid;
}

uint64_t child_tag_new(void)
{
    static _Atomic uint64_t n_tags = 0;

    return atomic_fetch_add(&n_tags, 1) + 1;
}

bool child_is_running(const struct child *c)
{
    return atomic_load(&c->is_running);
}

bool child_wait_for_end(struct child *c, int64_t most_ms)
{
    int64_t until_us = clock_mono_us() + most_ms * 1000;

    pthread_mutex_lock(&c->end_lock);
    while (child_is_running(c) && cond_wait_until(&c->is_over, &c->end_lock, until_us))
        ;
    pthread_mutex_unlock(&c->end_lock);
    return !child_is_running(c);
}

char *child_last_words(struct child *c, int stdout_fd, struct arena *a, size_t n)
{
    struct pollfd fd = { .fd = stdout_fd }; /* POLLHUP is always reported */

    if (poll(&fd, 1, 0) > 0 && (fd.revents & POLLHUP))
        child_wait_for_end(c, CHILD_LAST_WORDS_MS);
    return child_log_tail(c->log, a, CHILD_STDERR, n);
}

struct child_log *child_log_of(struct child *c)
{
    return c->log;
}

struct slice child_stdout(struct child *c, bool *ret_is_cut)
{
    if (ret_is_cut)
        *ret_is_cut = c->stdout_is_cut;
    return buf_slice(&c->stdout_kept);
}

/* ---- output ---- */

static void child_pipe_close(struct child_pipe *pipe)
{
    pipe->watch = loop_watch_free(pipe->watch);
    if (pipe->fd >= 0)
        close(pipe->fd);
    pipe->fd = -1;
}

static void child_keep_stdout(struct child *c, struct slice bytes)
{
    size_t room = c->spec.max_stdout - c->stdout_kept.n;

    c->stdout_is_cut = c->stdout_is_cut || bytes.n > room;
    buf_add(&c->stdout_kept, bytes.p, MIN(bytes.n, room));
}

static void child_take_output(struct child *c, enum child_stream stream, struct slice bytes)
{
    if (stream == CHILD_STDOUT && c->spec.max_stdout > 0)
        child_keep_stdout(c, bytes);
    child_log_add_bytes(c->log, stream, bytes);
    if (c->spec.on_line && memchr(bytes.p, '\n', bytes.n))
        c->spec.on_line(c, c->spec.arg);
}

/* Reads once. Closes the pipe at end of file. Returns the number of bytes read; 0 = no data now, or end of file. */
static size_t child_read(struct child *c, enum child_stream stream)
{
    struct child_pipe *pipe = &c->pipes[stream];
    char bytes[CHILD_READ_BYTES];
    ssize_t n = read(pipe->fd, bytes, sizeof(bytes));

    if (n > 0) {
        child_take_output(c, stream, (struct slice){ bytes, (size_t)n });
        return (size_t)n;
    }
    if (n == 0 || (errno != EAGAIN && errno != EINTR))
        child_pipe_close(pipe);
    return 0;
}

static void child_on_stdout(int fd, void *arg)
{
    child_read(arg, CHILD_STDOUT);
}

static void child_on_stderr(int fd, void *arg)
{
    child_read(arg, CHILD_STDERR);
}

/* All output of the group is in the pipe by now. A process that left the group may hold the pipe open and go on
 * writing, so the read is bounded.
 */
static void child_drain(struct child *c, enum child_stream stream)
{
    size_t n_read = 0, n = 1;

    while (c->pipes[stream].fd >= 0 && n > 0 && n_read < CHILD_DRAIN_BYTES) {
        n = child_read(c, stream);
        n_read += n;
    }
    child_pipe_close(&c->pipes[stream]);
}

/* ---- the end ---- */

static void child_note_end(struct child *c)
{
    if (c->how.signal)
        child_log_note(c->log, "ended by signal %d (%s)", c->how.signal, strsignal(c->how.signal));
    else if (c->how.code >= 0)
        child_log_note(c->log, "ended with exit code %d", c->how.code);
    else
        child_log_note(c->log, "ended; how is not known");
}

static void child_release(struct child *c)
{
    c->end_watch = loop_watch_free(c->end_watch);
    c->timeout = loop_timer_free(c->timeout);
    c->kill = loop_timer_free(c->kill);
    c->poll = loop_timer_free(c->poll);
    if (c->pidfd >= 0)
        close(c->pidfd);
    c->pidfd = -1;
    c->control_watch = loop_watch_free(c->control_watch);
    if (c->control_fd >= 0)
        close(c->control_fd);
    c->control_fd = -1;
    if (c->supervisor->on_sockets.closed)
        c->supervisor->on_sockets.closed(c->supervisor->on_sockets.arg, c->tag);
}

static void child_broadcast_end(struct child *c)
{
    pthread_mutex_lock(&c->end_lock);
    atomic_store(&c->is_running, false);
    pthread_cond_broadcast(&c->is_over);
    pthread_mutex_unlock(&c->end_lock);
}

void child_finish(struct child *c)
{
    for (enum child_stream stream = CHILD_STDOUT; stream < CHILD_NOTE; stream++)
        child_drain(c, stream);
    child_release(c);
    child_log_flush(c->log);
    child_note_end(c);
    log_debug("child", NULL, "%s (pid %d) ended: code %d, signal %d", LOG_Q(c->label), (int)c->pid, c->how.code,
              c->how.signal);
    supervisor_drop(c->supervisor, c);
    c->supervisor = NULL;
    metric_add(c->gauge, -1);
    child_broadcast_end(c);
    if (c->spec.on_exit)
        c->spec.on_exit(c, &c->how, c->spec.arg);
    child_unref(c);
}

/* hearth-child sends the signals, because it knows whether the pid still belongs to the program. */
static bool child_order(struct child *c, enum child_order order)
{
    const char byte = (char)order;

    return c->control_fd >= 0 && send(c->control_fd, &byte, 1, MSG_NOSIGNAL | MSG_DONTWAIT) == 1;
}

static void child_signal_group(struct child *c)
{
    if (c->control_fd >= 0) {
        child_order(c, CHILD_ORDER_TERMINATE);
        return;
    }
    kill(-c->root, SIGTERM); /* ESRCH: the group has no members left */
    kill(-c->root, SIGCONT); /* a stopped process cannot handle SIGTERM */
}

static bool child_group_is_gone(struct child *c)
{
    siginfo_t info;

    /* When the service is process 1 of a container, it must reap group members that lost their parent. */
    do
        info.si_pid = 0;
    while (waitid(P_PGID, (id_t)c->root, &info, WEXITED | WNOHANG) == 0 && info.si_pid != 0);
    return kill(-c->root, 0) < 0 && errno == ESRCH;
}

static void child_poll_later(struct child *c)
{
    loop_timer_set(c->poll, c->poll_ms);
    c->poll_ms = MIN(2 * c->poll_ms, CHILD_POLL_MOST_MS);
}

static void child_on_poll(void *arg)
{
    struct child *c = arg;
    bool has_tried = c->killed_at_ms && clock_mono_ms() - c->killed_at_ms >= CHILD_GIVE_UP_MS;

    /* kill(2) counts zombies until process 1 reaps them, which may take long or never happen. */
    if (child_group_is_gone(c) || !proc_group_lives(c->root)) {
        child_finish(c);
    } else if (has_tried) {
        child_log_note(c->log, "processes of its group could not be killed and are left behind");
        child_finish(c);
    } else {
        child_poll_later(c);
    }
}

static void child_on_kill(void *arg)
{
    struct child *c = arg;

    if (!c->is_killed)
        child_log_note(c->log, "did not end when asked: killed");
    c->killed_at_ms = clock_mono_ms();
    if (!c->is_killed && child_order(c, CHILD_ORDER_KILL))
        loop_timer_set(c->kill, CHILD_ORDER_MS); /* hearth-child itself may be stopped (SIGSTOP) */
    else
        kill(-c->root, SIGKILL);
    c->is_killed = true;
}

/* An earlier deadline stays in force. */
static void child_kill_after(struct child *c, int64_t grace_ms)
{
    int64_t at_ms = clock_mono_ms() + grace_ms;

    if (c->kill_at_ms && c->kill_at_ms <= at_ms)
        return;
    c->kill_at_ms = at_ms;
    loop_timer_set(c->kill, grace_ms);
}

void child_end_softly(struct child *c, int64_t grace_ms)
{
    if (!c->is_requested)
        child_signal_group(c);
    c->is_requested = true;
    child_kill_after(c, grace_ms);
}

static void child_take_status(struct child *c, const siginfo_t *info)
{
    if (c->has_ended)
        return; /* hearth-child reported how the program ended */
    c->how.code = info->si_code == CLD_EXITED ? info->si_status : -1;
    c->how.signal = info->si_code == CLD_EXITED ? 0 : info->si_status;
}

static void child_signal_left(struct child *c)
{
    if (c->is_requested)
        return;
    child_log_note(c->log, "the processes it left behind are asked to end");
    c->is_requested = true;
    child_kill_after(c, c->spec.stop_grace_ms);
}

/* False: no further message is available. */
static bool child_take_note(struct child *c)
{
    struct child_note note;
    ssize_t n = recv(c->control_fd, &note, sizeof(note), MSG_DONTWAIT);

    if (n == (ssize_t)sizeof(note) && note.kind == CHILD_NOTE_ENDED) {
        c->has_ended = true;
        c->how.code = WIFEXITED(note.value) ? WEXITSTATUS(note.value) : -1;
        c->how.signal = WIFSIGNALED(note.value) ? WTERMSIG(note.value) : 0;
        loop_timer_cancel(c->timeout);
        if (note.error)
            child_signal_left(c);
    }
    c->how.was_crowded = c->how.was_crowded || (n == (ssize_t)sizeof(note) && note.kind == CHILD_NOTE_CROWDED);
    return n > 0;
}

static void child_on_control(int fd, void *arg)
{
    struct child *c = arg;

    if (!child_take_note(c))
        c->control_watch = loop_watch_free(c->control_watch);
}

/* The leader is a zombie while its group is signalled: until it is reaped, its pid cannot be reused. Afterwards the
 * number stays reserved while the group has members, and a group found empty is not signalled again. */
static void child_on_leader_end(int pidfd, void *arg)
{
    struct child *c = arg;
    siginfo_t info = { 0 };

    while (c->control_fd >= 0 && child_take_note(c))
        ;
    if (waitid(P_PIDFD, (id_t)pidfd, &info, WEXITED | WNOHANG | WNOWAIT) == 0) {
        if (info.si_pid == 0)
            return; /* spurious wakeup */
        child_take_status(c, &info);
        if (!c->is_requested && c->control_fd < 0)
            child_signal_group(c);
        waitid(P_PIDFD, (id_t)pidfd, &info, WEXITED | WNOHANG);
    }
    c->end_watch = loop_watch_free(c->end_watch);
    loop_timer_cancel(c->timeout);
    if (child_group_is_gone(c)) {
        child_finish(c);
        return;
    }
    child_signal_left(c);
    child_poll_later(c);
}

static void child_on_timeout(void *arg)
{
    struct child *c = arg;

    c->how.timed_out = true;
    child_log_note(c->log, "ran longer than %lld ms: asked to end", (long long)c->spec.timeout_ms);
    child_end_softly(c, c->spec.stop_grace_ms);
}

/* ---- from any thread ---- */

static void child_stop_posted(void *arg)
{
    struct child *c = arg;

    if (c->supervisor && !c->how.was_stopped) {
        c->how.was_stopped = true;
        child_log_note(c->log, "asked to end");
        child_end_softly(c, c->spec.stop_grace_ms);
    }
    child_unref(c);
}

void child_stop(struct child *c)
{
    if (child_is_running(c))
        loop_post(c->loop, child_stop_posted, child_ref(c));
}

/* ---- the beginning ---- */

struct metric *child_gauge(const char *label)
{
    char labels[64];

    snprintf(labels, sizeof(labels), "kind=\"%.*s\"", (int)strspn(label, "abcdefghijklmnopqrstuvwxyz_"), label);
    return metric_gauge("hearth_children", "Child processes that run", labels);
}

static struct child_spec child_spec_kept(const struct child_spec *spec)
{
    struct child_spec kept = *spec;

    kept.label = kept.command = kept.working_dir = kept.own_dir = kept.shown_file = NULL;
    kept.sandbox = NULL;
    kept.args = kept.env = NULL;
    kept.log = NULL;
    kept.ends = NULL;
    if (kept.stop_grace_ms <= 0)
        kept.stop_grace_ms = CHILD_STOP_GRACE_MS;
    return kept;
}

static void child_take_enclosure(struct child *c, struct child_enclosure *enclosure)
{
    const struct child_sockets *on = &c->supervisor->on_sockets;

    c->control_fd = enclosure->control_fd;
    c->is_jailed = enclosure->is_jailed;
    enclosure->control_fd = -1;
    for (size_t i = 0; on->opened && i < enclosure->n_sockets; i++)
        on->opened(on->arg, enclosure->sockets[i], c->tag);
    if (on->opened)
        enclosure->n_sockets = 0;
}

static bool child_watch(struct child *c, const struct spawned *spawned, bool has_stdout, int control_fd)
{
    if (has_stdout)
        c->pipes[CHILD_STDOUT].watch = loop_watch_read(c->loop, spawned->stdout_fd, child_on_stdout, c);
    c->pipes[CHILD_STDERR].watch = loop_watch_read(c->loop, spawned->stderr_fd, child_on_stderr, c);
    c->end_watch = loop_watch_read(c->loop, spawned->pidfd, child_on_leader_end, c);
    if (control_fd >= 0)
        c->control_watch = loop_watch_read(c->loop, control_fd, child_on_control, c);
    return (!has_stdout || c->pipes[CHILD_STDOUT].watch) && c->pipes[CHILD_STDERR].watch && c->end_watch &&
           (control_fd < 0 || c->control_watch);
}

static struct child *child_discard(struct child *c)
{
    for (enum child_stream stream = CHILD_STDOUT; stream < CHILD_NOTE; stream++)
        c->pipes[stream].watch = loop_watch_free(c->pipes[stream].watch);
    c->end_watch = loop_watch_free(c->end_watch);
    c->control_watch = loop_watch_free(c->control_watch);
    c->supervisor = NULL;
    return child_unref(c);
}

struct child *child_new(struct supervisor *s, const struct child_spec *spec, const struct spawned *spawned,
                        struct child_enclosure *enclosure)
{
    struct child *c = xcalloc(1, sizeof(*c));

    atomic_init(&c->n_refs, 1);
    atomic_init(&c->is_running, true);
    pthread_mutex_init(&c->end_lock, NULL);
    cond_init(&c->is_over);
    c->loop = s->loop;
    c->supervisor = s;
    c->label = xstrdup(spec->label);
    c->log = spec->log ? child_log_ref(spec->log) : child_log_new();
    c->root = spawned->pid;
    c->pid = enclosure->program > 0 ? enclosure->program : spawned->pid;
    c->tag = spec->tag ? spec->tag : child_tag_new();
    c->pidfd = spawned->pidfd;
    c->spec = child_spec_kept(spec);
    c->how.code = -1;
    buf_init(&c->stdout_kept, spec->max_stdout);
    if (!child_watch(c, spawned, !spec->ends, enclosure->control_fd))
        return child_discard(c);
    if (spec->ends)
        *spec->ends = (struct child_ends){ spawned->stdin_fd, spawned->stdout_fd };
    c->gauge = child_gauge(spec->label);
    metric_add(c->gauge, 1);
    c->pipes[CHILD_STDOUT].fd = spec->ends ? -1 : spawned->stdout_fd;
    c->pipes[CHILD_STDERR].fd = spawned->stderr_fd;
    c->timeout = loop_timer_new(s->loop, child_on_timeout, c);
    c->kill = loop_timer_new(s->loop, child_on_kill, c);
    c->poll = loop_timer_new(s->loop, child_on_poll, c);
    c->poll_ms = CHILD_POLL_MS;
    child_take_enclosure(c, enclosure);
    if (spec->timeout_ms > 0)
        loop_timer_set(c->timeout, spec->timeout_ms);
    return c;
}
