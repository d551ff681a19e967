#include "os/child_private.h"

#include "base/clock.h"
#include "base/cond.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/metrics.h"
#include "os/proc.h"
#include "os/program.h"

#include <assert.h>
#include <signal.h>
#include <sys/stat.h>

enum {
    SUPERVISOR_ORPHAN_GRACE_MS = 2000,
    SUPERVISOR_KILL_WAIT_MS = 5000,     /* what SIGKILL may take at the close before a child is given up */
};

#define SUPERVISOR_MARK "HEARTH_INSTANCE"

/* ---- starting ---- */

struct start_job {
    struct supervisor *supervisor;
    const struct child_spec *spec;
    struct spawn_plan plan;
    struct child *child;                /* the answer, a reference */
    struct err *e;
    int r;
};

static size_t start_count(const char *const *strings)
{
    size_t n = 0;

    while (strings && strings[n])
        n++;
    return n;
}

static int start_check_args(const struct child_spec *spec, struct err *e)
{
    size_t n = start_count(spec->args);

    if (n > LIMIT_ARGS)
        return err_set(e, -E2BIG, "TOO_MANY_ARGUMENTS", "A command may have at most %d arguments; this one has %zu.", LIMIT_ARGS, n);
    for (size_t i = 0; i < n; i++)
        if (strlen(spec->args[i]) > LIMIT_ARG_BYTES)
            return err_set(e, -E2BIG, "ARGUMENT_TOO_LONG", "Argument %zu of the command must be at most %d bytes.", i + 1,
                           LIMIT_ARG_BYTES);
    return 0;
}

static int start_check_env(const struct child_spec *spec, struct err *e)
{
    for (size_t i = 0; i < start_count(spec->env); i++)
        if (strlen(spec->env[i]) > LIMIT_ARG_BYTES)
            return err_set(e, -E2BIG, "ARGUMENT_TOO_LONG", "The environment variable %.*s with its value must be at most %d bytes.",
                           (int)MIN(strcspn(spec->env[i], "="), (size_t)80), spec->env[i], LIMIT_ARG_BYTES);
    return 0;
}

static int start_check_dir(const char *working_dir, struct err *e)
{
    struct stat st;

    if (working_dir && (stat(working_dir, &st) < 0 || !S_ISDIR(st.st_mode)))
        return err_set(e, -ENOTDIR, "BAD_WORKING_DIR", "The working folder %.300s does not exist or is not a folder.", working_dir);
    return 0;
}

static const char *start_search_path(const struct child_spec *spec)
{
    const char *found = NULL;

    for (size_t i = 0; i < start_count(spec->env); i++)
        if (strncmp(spec->env[i], "PATH=", 5) == 0)
            found = spec->env[i] + 5;
    return found;
}

static char **start_argv(struct arena *a, const struct child_spec *spec)
{
    size_t n = start_count(spec->args);
    char **argv = arena_array(a, n + 2, sizeof(*argv));

    argv[0] = arena_strdup(a, spec->command);
    for (size_t i = 0; i < n; i++)
        argv[i + 1] = arena_strdup(a, spec->args[i]);
    return argv;
}

/* The caller's, with the mark by which a later service finds what this one left. */
static char **start_envp(struct arena *a, const struct child_spec *spec, const char *mark)
{
    size_t n = start_count(spec->env), n_name = strlen(SUPERVISOR_MARK "="), n_kept = 1;
    char **envp = arena_array(a, n + 2, sizeof(*envp));

    envp[0] = arena_strdup(a, mark);
    for (size_t i = 0; i < n; i++)
        if (strncmp(spec->env[i], mark, n_name) != 0)
            envp[n_kept++] = arena_strdup(a, spec->env[i]);
    return envp;
}

static int start_prepare(struct start_job *job, struct arena *a)
{
    const struct child_spec *spec = job->spec;
    char *path = NULL;
    int r = start_check_args(spec, job->e);

    if (r == 0)
        r = start_check_env(spec, job->e);
    if (r == 0)
        r = start_check_dir(spec->working_dir, job->e);
    if (r == 0)
        r = program_find(a, spec->command, spec->working_dir, start_search_path(spec), &path, job->e);
    if (r < 0)
        return r;
    job->plan = (struct spawn_plan){ path, start_argv(a, spec), start_envp(a, spec, job->supervisor->mark), spec->working_dir };
    return 0;
}

static int start_admit(struct supervisor *s, struct err *e)
{
    if (s->is_closing)
        return err_set(e, -EPIPE, "SHUTTING_DOWN", "The service is ending and starts no more programs.");
    if (supervisor_n_children(s) >= LIMIT_CHILDREN)
        return err_set(e, -EAGAIN, "TOO_MANY_CHILDREN", "At most %d programs run at a time; try again when one has ended.",
                       LIMIT_CHILDREN);
    return 0;
}

/* On the loop thread: it forks, because PR_SET_PDEATHSIG follows the thread that did. */
static void start_on_loop(void *arg)
{
    struct start_job *job = arg;
    struct spawned spawned;

    job->r = start_admit(job->supervisor, job->e);
    if (job->r == 0)
        job->r = spawn_process(&job->plan, &spawned, job->e);
    if (job->r < 0)
        return;
    job->child = child_new(job->supervisor, job->spec, &spawned);
    child_log_note(job->child->log, "started %s as process %d", job->plan.path, (int)spawned.pid);
    log_debug("child", NULL, "%s started as pid %d", LOG_Q(job->spec->label), (int)spawned.pid);
    supervisor_add(job->supervisor, child_ref(job->child));
}

int child_start(struct supervisor *s, const struct child_spec *spec, struct child **ret, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct start_job job = { .supervisor = s, .spec = spec, .e = e };
    int r = start_prepare(&job, a);

    if (r < 0)
        return r;
    loop_call(s->loop, start_on_loop, &job);
    if (job.r == 0)
        *ret = job.child;
    return job.r;
}

/* ---- all of them ---- */

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

size_t supervisor_n_children(const struct supervisor *s)
{
    struct supervisor *locked = (struct supervisor *)s;
    size_t n;

    pthread_mutex_lock(&locked->mutex);
    n = s->n_children;
    pthread_mutex_unlock(&locked->mutex);
    return n;
}

static double count_children(void *arg)
{
    return (double)supervisor_n_children(arg);
}

int supervisor_open(struct loop *l, const char *instance, struct supervisor **ret, size_t *ret_n_orphans, struct err *e)
{
    size_t n_mark = strlen(SUPERVISOR_MARK "=") + strlen(instance);
    struct supervisor *s;
    size_t n_orphans;

    if (!*instance || n_mark > LIMIT_ARG_BYTES)
        return err_set(e, -EINVAL, "INTERNAL_ERROR", "The instance must have a name that fits into an environment variable.");
    s = xcalloc(1, sizeof(*s));
    s->loop = l;
    s->mark = xcalloc(1, n_mark + 1);
    snprintf(s->mark, n_mark + 1, "%s=%s", SUPERVISOR_MARK, instance);
    pthread_mutex_init(&s->mutex, NULL);
    cond_init(&s->is_empty);

    signal(SIGCHLD, SIG_DFL);           /* an ignored one is inherited through exec, and then no exit code is told */
    n_orphans = proc_end_marked(s->mark, SUPERVISOR_ORPHAN_GRACE_MS);
    if (ret_n_orphans)
        *ret_n_orphans = n_orphans;
    metric_gauge_fn("hearth_children", "Programs of apps and agents that run", "", count_children, s);
    *ret = s;
    return 0;
}

/* ---- closing ---- */

struct close_job {
    struct supervisor *supervisor;
    int64_t grace_ms;
};

static void close_ask(void *arg)
{
    struct close_job *job = arg;

    job->supervisor->is_closing = true;
    for (struct child *c = job->supervisor->children; c; c = c->next) {
        c->how.was_stopped = true;
        child_ask_to_end(c, MIN(job->grace_ms, c->spec.stop_grace_ms));
    }
}

/* Also makes sure that the callbacks of those that ended are over. */
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
    while (s->n_children > 0 && cond_wait_until(&s->is_empty, &s->mutex, deadline_us))
        ;
    pthread_mutex_unlock(&s->mutex);
}

struct supervisor *supervisor_close(struct supervisor *s, int64_t grace_ms)
{
    struct close_job job = { s, grace_ms };

    if (!s)
        return NULL;
    assert(!loop_is_current(s->loop) || supervisor_n_children(s) == 0);     /* the loop tells of their end */
    metric_gauge_fn_forget(s);
    loop_call(s->loop, close_ask, &job);
    close_wait(s, grace_ms + SUPERVISOR_KILL_WAIT_MS);
    loop_call(s->loop, close_abandon, s);
    proc_end_marked(s->mark, MIN(grace_ms, SUPERVISOR_ORPHAN_GRACE_MS));
    pthread_cond_destroy(&s->is_empty);
    pthread_mutex_destroy(&s->mutex);
    free(s->mark);
    free(s);
    return NULL;
}
