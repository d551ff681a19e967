#include "os/child_private.h"

#include "base/clock.h"
#include "base/cond.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/metrics.h"
#include "os/proc.h"

#include <assert.h>
#include <signal.h>
#include <unistd.h>

enum {
    SUPERVISOR_ORPHAN_GRACE_MS = 2000,
    SUPERVISOR_DEEPEST = 4096,      /* generations of parents examined */
    SUPERVISOR_KILL_WAIT_MS = 5000, /* how long SIGKILL may take at the close before a child is abandoned */
};

/* ---- all children ---- */

void supervisor_add(struct supervisor *s, struct child *c)
{
    c->next = s->children;
    if (c->next)
        c->next->previous = c;
    s->children = c;
    pthread_mutex_lock(&s->mutex);
    s->n_children++;
    pthread_mutex_unlock(&s->mutex);
}

void supervisor_drop(struct supervisor *s, struct child *c)
{
    if (c->previous)
        c->previous->next = c->next;
    else
        s->children = c->next;
    if (c->next)
        c->next->previous = c->previous;
    c->next = c->previous = NULL;
    pthread_mutex_lock(&s->mutex);
    s->n_children--;
    pthread_cond_broadcast(&s->is_empty);
    pthread_mutex_unlock(&s->mutex);
}

void supervisor_set_sandbox(struct supervisor *s, struct sandbox *box)
{
    s->box = box;
}

void supervisor_on_sockets(struct supervisor *s, const struct child_sockets *on)
{
    s->on_sockets = *on;
}

static const struct child *child_of_root(const struct supervisor *s, pid_t pid)
{
    for (const struct child *c = s->children; c; c = c->next)
        if (c->is_jailed && c->root == pid)
            return c;
    return NULL;
}

bool supervisor_has_in_sandbox(const struct supervisor *s, pid_t pid)
{
    const pid_t service = getpid();

    if (!s->children)
        return false;
    for (int i = 0; pid > 1 && pid != service && i < SUPERVISOR_DEEPEST; i++) {
        if (child_of_root(s, pid))
            return true;
        pid = proc_parent(pid);
    }
    return pid == 0;
}

void supervisor_note_starting(struct supervisor *s, int by)
{
    pthread_mutex_lock(&s->mutex);
    s->n_starting += (size_t)by;
    pthread_cond_broadcast(&s->is_empty);
    pthread_mutex_unlock(&s->mutex);
}

size_t supervisor_n_children(const struct supervisor *s)
{
    struct supervisor *locked = (struct supervisor *)s;
    size_t n;

    pthread_mutex_lock(&locked->mutex);
    n = s->n_children;
    pthread_mutex_unlock(&locked->mutex);
    return n;
}

int supervisor_open(struct loop *l, const char *instance, struct supervisor **ret, size_t *ret_n_orphans, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    const char *marks = arena_printf(a, "HEARTH_INSTANCE=%s:%s:", instance, clock_boot_id());
    struct supervisor *s;
    size_t n_orphans;
    int r;

    if (!*instance || strlen(marks) > LIMIT_ARG_BYTES)
        return err_set(e, -EINVAL, "INTERNAL_ERROR",
                       "The instance must have a name that fits into an environment variable.");
    s = xcalloc(1, sizeof(*s));
    r = spawner_start(&s->spawner, e);
    if (r < 0) {
        free(s);
        return r;
    }
    s->loop = l;
    s->mark = xstrdup(arena_printf(a, "%s%d", marks, (int)getpid()));
    pthread_mutex_init(&s->mutex, NULL);
    cond_init(&s->is_empty);

    signal(SIGCHLD, SIG_DFL); /* an ignored SIGCHLD is inherited through exec, and no exit code would be reported */
    n_orphans = proc_end_orphans(marks, SUPERVISOR_ORPHAN_GRACE_MS);
    if (ret_n_orphans)
        *ret_n_orphans = n_orphans;
    child_gauge("app"); /* listed before the first one runs */
    child_gauge("agent");
    *ret = s;
    return 0;
}

/* ---- closing ---- */

struct close_job {
    struct supervisor *supervisor;
    int64_t grace_ms;
};

static void close_request(void *arg)
{
    struct close_job *job = arg;

    job->supervisor->is_closing = true;
    for (struct child *c = job->supervisor->children; c; c = c->next) {
        c->how.was_stopped = true;
        child_end_softly(c, MIN(job->grace_ms, c->spec.stop_grace_ms));
    }
}

/* Also ensures that the callbacks of ended children have returned. */
static void close_abandon(void *arg)
{
    struct supervisor *s = arg;

    while (s->children) {
        child_log_note(s->children->log, "could not be ended and is left behind");
        child_finish(s->children);
    }
}

static void close_wait(struct supervisor *s, int64_t wait_ms)
{
    int64_t deadline_us = clock_mono_us() + wait_ms * 1000;

    pthread_mutex_lock(&s->mutex);
    while (s->n_children + s->n_starting > 0 && cond_wait_until(&s->is_empty, &s->mutex, deadline_us))
        ;
    pthread_mutex_unlock(&s->mutex);
}

struct supervisor *supervisor_close(struct supervisor *s, int64_t grace_ms)
{
    struct close_job job = { s, grace_ms };

    if (!s)
        return NULL;
    assert(!loop_is_current(s->loop) || supervisor_n_children(s) == 0); /* the loop reports their end */
    loop_call(s->loop, close_request, &job);
    close_wait(s, grace_ms + SUPERVISOR_KILL_WAIT_MS);
    loop_call(s->loop, close_abandon, s);
    s->spawner = spawner_stop(s->spawner);
    proc_end_marked(s->mark, MIN(grace_ms, SUPERVISOR_ORPHAN_GRACE_MS));
    pthread_cond_destroy(&s->is_empty);
    pthread_mutex_destroy(&s->mutex);
    free(s->mark);
    free(s);
    return NULL;
}
