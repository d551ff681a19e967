#include "store/writer.h"
#include "base/clock.h"
#include "base/limits.h"
#include "base/metrics.h"
#include "base/stall.h"
#include "base/thread.h"
#include "store/fold_mark.h"
#include <assert.h>
#include <sqlite3.h>
#include <stdatomic.h>
#include <sys/resource.h>

enum {
    WRITER_BUSY_TIMEOUT_MS = 10000,
    WRITER_CHECKPOINT_PAGES = 1000,
    WRITER_FOLDS_BESIDE = 2, /* the second one folds what came during the first, so that little is left */
    WRITER_FULL_HALVES = 5,  /* the log is full at so many halves of the size at which it is folded */
};

struct jobs {
    struct writer_job *first, *last;
    size_t n;
};

struct writer {
    atomic_int n_refs; /* of the owner and of each begun change */
    struct sql_db *db; /* owned; used only by whoever has set is_running */
    void (*on_commit)(void *arg);
    void *arg;
    pthread_t thread;
    pthread_mutex_t lock; /* guards waiting, what follows up to is_awaited, and runner */
    pthread_cond_t has_work;
    struct jobs waiting;
    bool is_stopping;
    bool is_running;    /* a group is being run, by the thread or by the caller of one of its changes */
    bool is_shared;     /* the last group had changes of several callers: the next one will have them too */
    bool is_due;        /* the thread runs what waits; a begun change alone is not due */
    bool must_fold;     /* the log is long: the thread folds it before the next group */
    bool is_full;       /* the log has grown so much that no group runs beside a fold */
    bool is_folding;    /* the thread folds beside groups, which callers run */
    bool is_awaited;    /* the present group, by the thread, which has folded beside it and runs the next one */
    int n_log_pages;    /* after the commit of the present group; used by whoever has set is_running */
    atomic_int n_folds; /* on connections of their own, by any thread, at present */
    pthread_t runner;
    struct metric *n_commits, *group_size, *commit_seconds;
    int checkpoint_pages;
    bool folds_beside;
    struct instance *instance; /* borrowed; may be NULL */
    enum instance_file file;
    char *path;              /* owned */
    struct instance_row row; /* the committed row */
    struct fold_mark raised; /* the file before the last raise of the generation; while it holds, the file lacks that
                                raise, so the loss of the log is noticed */
};

static void jobs_append(struct jobs *list, struct writer_job *job)
{
    job->next = NULL;
    if (list->last)
        list->last->next = job;
    else
        list->first = job;
    list->last = job;
    list->n++;
}

static struct writer_job *jobs_pop(struct jobs *list)
{
    struct writer_job *job = list->first;

    if (!job)
        return NULL;
    list->first = job->next;
    if (!list->first)
        list->last = NULL;
    list->n--;
    return job;
}

/* --- who runs the next group --- */

/* The caller holds the lock. */
static void begin_group(struct writer *w)
{
    w->is_running = true;
    w->runner = pthread_self();
}

/* Sleeps until there is work for the thread; false: stopping, and no work is left. A log that must be folded then is
 * folded when the file is closed. */
static bool wait_for_work(struct writer *w)
{
    bool has_work;

    pthread_mutex_lock(&w->lock);
    while (w->is_running || (!w->is_due && !w->must_fold && !w->is_stopping))
        pthread_cond_wait(&w->has_work, &w->lock);
    has_work = w->waiting.first || !w->is_stopping;
    if (has_work)
        begin_group(w);
    pthread_mutex_unlock(&w->lock);
    return has_work;
}

/* False: the change has been taken by a group, or will be by the next one. While several callers write, and when the
 * log must be folded first, the thread is woken instead: the changes that come until it runs share one commit. A thread
 * that folds beside groups runs none. */
static bool may_run_itself(struct writer *w, struct writer_job *job)
{
    bool is_free, may;

    pthread_mutex_lock(&w->lock);
    job->is_ended = true;
    is_free = !w->is_running && !job->is_taken;
    may = is_free && (w->is_folding ? !w->is_full : !w->is_shared && !w->must_fold && !w->is_awaited);
    if (may)
        begin_group(w);
    else if (is_free)
        w->is_due = true;
    pthread_mutex_unlock(&w->lock);
    if (is_free && !may)
        pthread_cond_signal(&w->has_work);
    return may;
}

/* Under the lock. Has the first caller that waits run the next group, because the thread has other work. */
static void hand_over(struct writer *w)
{
    struct writer_job *job = w->waiting.first;

    while (job && !job->is_ended)
        job = job->next;
    if (!w->is_folding || w->is_full || !job || job->is_called)
        return;
    job->is_called = true;
    sem_post(&job->is_done);
}

/* Changes that came too late for the group are the thread's. */
static void end_group(struct writer *w, size_t n_changes)
{
    bool must_wake;

    pthread_mutex_lock(&w->lock);
    w->is_running = false;
    w->is_shared = n_changes > 1;
    w->must_fold = w->n_log_pages >= w->checkpoint_pages;
    w->is_full = (int64_t)w->n_log_pages * 2 >= (int64_t)w->checkpoint_pages * WRITER_FULL_HALVES;
    w->is_due = w->waiting.first != NULL;
    must_wake = w->is_due || w->must_fold || w->is_awaited || w->is_stopping;
    hand_over(w);
    pthread_mutex_unlock(&w->lock);
    if (must_wake)
        pthread_cond_signal(&w->has_work);
}

static struct writer_job *next_job(struct writer *w)
{
    struct writer_job *job;

    pthread_mutex_lock(&w->lock);
    job = jobs_pop(&w->waiting);
    if (job)
        job->is_taken = true;
    pthread_mutex_unlock(&w->lock);
    return job;
}

/* Runs one closure in its savepoint. Negative: SQLite rolled back the whole transaction, for example on a full disk. */
static int run_job(struct writer *w, struct writer_job *job, bool *has_changed, struct err *e)
{
    int64_t before = sqlite3_total_changes64(sql_handle(w->db));
    int r;

    r = sql_exec(w->db, e, "SAVEPOINT job", NULL);
    if (r < 0)
        return r;
    job->r = job->fn(w->db, job->arg, job->e);
    if (sqlite3_get_autocommit(sql_handle(w->db)))
        return err_set(e, -EIO, "STORE_ERROR", "the database undid the transaction this change was part of");
    if (job->r < 0)
        r = sql_exec(w->db, e, "ROLLBACK TO job", NULL);
    else if (sqlite3_total_changes64(sql_handle(w->db)) != before)
        *has_changed = true;
    return r < 0 ? r : sql_exec(w->db, e, "RELEASE job", NULL);
}

/* Runs the waiting jobs, including those that arrive meanwhile, up to the limit. */
static int run_waiting(struct writer *w, struct jobs *group, bool *has_changed, struct err *e)
{
    struct writer_job *job;
    int r = 0;

    while (r == 0 && group->n < LIMIT_WRITER_GROUP && (job = next_job(w))) {
        jobs_append(group, job);
        r = run_job(w, job, has_changed, e);
    }
    return r;
}

/* --- the instance of the file (store/instance.h) --- */

/* In place of SQLite's own hook, which would fold at another size, and before the commit returns: readers see the
 * change already, and its caller would not know for the time of the fold that it is stored. */
static int after_commit(void *arg, sqlite3 *handle, const char *name, int n_log_pages)
{
    struct writer *w = arg;

    w->n_log_pages = n_log_pages;
    return SQLITE_OK;
}

/* During a fold beside groups, the last raise may be written into the file at any moment, so every change raises the
 * generation. */
static bool must_raise(const struct writer *w)
{
    return w->instance && (atomic_load(&w->n_folds) > 0 || !fold_mark_holds(&w->raised, w->path));
}

/* A failed note is not an error: the data is stored, and only the check at the next start is weaker. The next change
 * tries again. */
static void note_raise(struct writer *w, int64_t generation, const struct fold_mark *before)
{
    w->row.generation = generation;
    if (instance_note(w->instance, w->file, w->path, &w->row, NULL) == 0)
        w->raised = *before;
    else
        w->raised = (struct fold_mark){ 0 };
}

/* A checkpoint may have run since the transaction began: it folded the last raise and not this change. A failure here
 * is the next change's affair. */
static void raise_alone(struct writer *w)
{
    const struct fold_mark before = fold_mark_of(w->path);
    int64_t generation = 0;

    if (sql_exec(w->db, NULL, "BEGIN IMMEDIATE", NULL) < 0)
        return;
    if (instance_raise(w->db, &generation, NULL) == 0 && sql_exec(w->db, NULL, "COMMIT", NULL) == 0)
        note_raise(w, generation, &before);
    else if (!sqlite3_get_autocommit(sql_handle(w->db)) && sql_exec(w->db, NULL, "ROLLBACK", NULL) < 0)
        assert(sqlite3_get_autocommit(sql_handle(w->db)));
}

/* On a connection of its own. */
static int fold_on_own(struct writer *w, struct err *e)
{
    struct sql_db *own = NULL;
    int r;

    atomic_fetch_add(&w->n_folds, 1);
    r = sql_open(w->path, &(struct sql_options){ .busy_timeout_ms = 1 }, &own, e);
    if (r == 0 &&
        sqlite3_wal_checkpoint_v2(sql_handle(own), "main", SQLITE_CHECKPOINT_PASSIVE, NULL, NULL) != SQLITE_OK)
        r = sql_fail(own, e, "the write-ahead log cannot be folded");
    sql_close(own);
    atomic_fetch_sub(&w->n_folds, 1);
    return r;
}

/* Lets groups run meanwhile; a caller that comes afterwards waits for the thread. */
static void fold_beside(struct writer *w)
{
    pthread_mutex_lock(&w->lock);
    w->is_running = false;
    w->is_folding = true;
    hand_over(w);
    pthread_mutex_unlock(&w->lock);
    for (int i = 0; i < WRITER_FOLDS_BESIDE; i++)
        fold_on_own(w, NULL); /* what fails is left for fold() */
    pthread_mutex_lock(&w->lock);
    w->is_folding = false;
    w->is_awaited = true;
    while (w->is_running)
        pthread_cond_wait(&w->has_work, &w->lock);
    w->is_awaited = false;
    begin_group(w);
    pthread_mutex_unlock(&w->lock);
}

/* The thread, between begin_group() and end_group(). The log begins anew only after a fold of all of it while no change
 * comes, which is short after a fold beside changes. What readers keep in the log is folded after a later commit. */
static void fold(struct writer *w)
{
    if (w->folds_beside)
        fold_beside(w);
    sqlite3_wal_checkpoint_v2(sql_handle(w->db), "main", SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);
    if (must_raise(w))
        raise_alone(w);
    w->n_log_pages = 0;
}

static int stamp_file(struct writer *w, struct err *e)
{
    int r = sql_exec(w->db, e, "BEGIN IMMEDIATE", NULL);

    if (r < 0)
        return r;
    r = instance_stamp(w->instance, w->file, w->db, &w->row, e);
    if (r == 0)
        r = sql_exec(w->db, e, "COMMIT", NULL);
    else if (sql_exec(w->db, NULL, "ROLLBACK", NULL) < 0)
        return r; /* rolled back when the connection closes */
    return r < 0 ? r : instance_note(w->instance, w->file, w->path, &w->row, e);
}

/* --- committing --- */

static int commit_changes(struct writer *w, bool has_changed, struct err *e)
{
    bool is_raised = has_changed && must_raise(w);
    int64_t started_us, generation = 0;
    struct fold_mark before;
    int r = is_raised ? instance_raise(w->db, &generation, e) : 0;

    if (r < 0)
        return r;
    if (is_raised)
        before = fold_mark_of(w->path);
    started_us = clock_mono_us();
    r = sql_exec(w->db, e, "COMMIT", NULL);
    metric_observe(w->commit_seconds, (double)(clock_mono_us() - started_us) / 1e6);
    if (r == 0 && is_raised)
        note_raise(w, generation, &before);
    else if (r == 0 && has_changed && must_raise(w))
        raise_alone(w);
    return r;
}

static int commit(struct writer *w, struct jobs *group, bool *has_changed, struct err *e)
{
    int r = sql_exec(w->db, e, "BEGIN IMMEDIATE", NULL);

    if (r == 0)
        r = run_waiting(w, group, has_changed, e);
    return r < 0 ? r : commit_changes(w, *has_changed, e);
}

/* Nothing of the group is stored. When the transaction could not even begin, all waiting jobs fail. */
static void fail_group(struct writer *w, struct jobs *group, int r, const struct err *why)
{
    bool has_begun = group->first != NULL;
    struct writer_job *job;

    if (!sqlite3_get_autocommit(sql_handle(w->db)) && sql_exec(w->db, NULL, "ROLLBACK", NULL) < 0)
        assert(sqlite3_get_autocommit(sql_handle(w->db)));
    while (!has_begun && (job = next_job(w)))
        jobs_append(group, job);
    for (job = group->first; job; job = job->next)
        if (job->r >= 0)
            job->r = err_set(job->e, r, why->code, "%s", why->text);
}

static void wake(struct jobs *group)
{
    struct writer_job *job;

    while ((job = jobs_pop(group)))
        sem_post(&job->is_done); /* the job is invalid from here on */
}

/* Between begin_group() and end_group(). The number of changes. */
static size_t commit_group(struct writer *w)
{
    struct jobs group = { 0 };
    struct err why = { 0 };
    bool has_changed = false;
    size_t n_changes;
    int r;

    r = commit(w, &group, &has_changed, &why);
    n_changes = group.n;
    if (r < 0) {
        fail_group(w, &group, r, &why);
    } else {
        metric_add(w->n_commits, 1);
        metric_observe(w->group_size, (double)group.n);
    }
    wake(&group);
    if (r == 0 && has_changed && w->on_commit)
        w->on_commit(w->arg);
    return n_changes;
}

static void *writer_main(void *arg)
{
    struct writer *w = arg;

    if (w->folds_beside)
        thread_give_way(PRIO_MIN);
    while (wait_for_work(w)) {
        if (w->n_log_pages >= w->checkpoint_pages)
            fold(w);
        end_group(w, writer_n_waiting(w) > 0 ? commit_group(w) : 0);
    }
    return NULL;
}

/* --- functions for callers --- */

static double waiting_now(void *arg)
{
    return (double)writer_n_waiting(arg);
}

static void make_metrics(struct writer *w, const char *label)
{
    static const double group_sizes[] = { 1, 2, 4, 8, 16, 32, 64, 128, 256, 512 };
    char labels[64];

    snprintf(labels, sizeof(labels), "db=\"%s\"", label);
    w->n_commits = metric_counter("hearth_db_commits_total", "Transactions committed.", labels);
    w->group_size = metric_histogram_of("hearth_db_commit_group_size", "Changes in one commit.", labels, group_sizes,
                                        ARRAY_SIZE(group_sizes));
    w->commit_seconds = metric_histogram("hearth_db_commit_seconds", "Time of a commit until it is on disk.", labels);
    metric_gauge_fn("hearth_db_waiting", "Changes that wait for their transaction.", labels, waiting_now, w);
}

static void writer_unref(struct writer *w)
{
    if (atomic_fetch_sub(&w->n_refs, 1) > 1)
        return;
    pthread_cond_destroy(&w->has_work);
    pthread_mutex_destroy(&w->lock);
    free(w);
}

/* What is left is for changes that are ended later. */
static struct writer *writer_close(struct writer *w)
{
    metric_gauge_fn_forget(w);
    w->db = sql_close(w->db);
    free(TAKE(w->path));
    writer_unref(w);
    return NULL;
}

int writer_start(const struct writer_config *c, struct writer **ret, struct err *e)
{
    struct sql_options options = {
        .busy_timeout_ms = c->busy_timeout_ms > 0 ? c->busy_timeout_ms : WRITER_BUSY_TIMEOUT_MS,
        .is_schema_trusted = c->is_schema_trusted,
    };
    struct writer *w = xcalloc(1, sizeof(*w));
    int r;

    atomic_init(&w->n_refs, 1);
    w->on_commit = c->on_commit;
    w->arg = c->arg;
    w->instance = c->instance;
    w->file = c->file;
    w->path = xstrdup(c->path);
    w->folds_beside = c->folds_beside;
    w->checkpoint_pages = c->checkpoint_pages > 0 ? c->checkpoint_pages : WRITER_CHECKPOINT_PAGES;
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->has_work, NULL);
    make_metrics(w, c->label);
    r = sql_open(c->path, &options, &w->db, e);
    if (r == 0)
        sqlite3_wal_hook(sql_handle(w->db), after_commit, w);
    if (r == 0 && w->instance)
        r = stamp_file(w, e);
    if (r == 0) {
        r = thread_start(&w->thread, c->label, writer_main, w);
        if (r < 0)
            err_errno(e, -r, "cannot start the thread that writes the database");
    }
    if (r < 0) {
        writer_close(w);
        return r;
    }
    *ret = w;
    return 0;
}

struct writer *writer_stop(struct writer *w)
{
    if (!w)
        return NULL;
    pthread_mutex_lock(&w->lock);
    w->is_stopping = true;
    pthread_cond_signal(&w->has_work);
    pthread_mutex_unlock(&w->lock);
    pthread_join(w->thread, NULL);
    return writer_close(w);
}

int writer_fold(struct writer *w, struct err *e)
{
    return fold_on_own(w, e);
}

size_t writer_n_waiting(struct writer *w)
{
    size_t n;

    pthread_mutex_lock(&w->lock);
    n = w->waiting.n;
    pthread_mutex_unlock(&w->lock);
    return n;
}

static int submit(struct writer *w, struct writer_job *job, struct err *e)
{
    int r = 0;

    pthread_mutex_lock(&w->lock);
    assert(!w->is_running || !pthread_equal(w->runner, pthread_self())); /* a change makes no further one */
    if (w->is_stopping)
        r = err_set(e, -EPIPE, "STORE_CLOSED", "the database is being closed");
    else if (w->waiting.n >= LIMIT_WRITER_WAITING)
        r = err_set(e, -EAGAIN, "OVERLOADED", "%d changes wait for the database already", LIMIT_WRITER_WAITING);
    else
        jobs_append(&w->waiting, job);
    pthread_mutex_unlock(&w->lock);
    return r;
}

int writer_begin(struct writer *w, struct writer_job *job, struct err *e)
{
    int r;

    sem_init(&job->is_done, 0, 0);
    job->writer = w;
    atomic_fetch_add(&w->n_refs, 1);
    r = submit(w, job, e);
    if (r < 0) {
        sem_destroy(&job->is_done);
        writer_unref(w);
    }
    return r;
}

void writer_hasten(struct writer_job *job)
{
    struct writer *w = job->writer;

    pthread_mutex_lock(&w->lock);
    if (!job->is_taken)
        w->is_due = true;
    pthread_mutex_unlock(&w->lock);
    pthread_cond_signal(&w->has_work);
}

/* Until the change is done, or is to be run by its caller. */
static bool is_called_while_it_waits(struct writer *w, struct writer_job *job)
{
    bool is_called;

    while (sem_wait(&job->is_done) < 0 && errno == EINTR)
        ;
    pthread_mutex_lock(&w->lock);
    is_called = job->is_called;
    job->is_called = false;
    pthread_mutex_unlock(&w->lock);
    return is_called;
}

int writer_end(struct writer_job *job)
{
    int64_t began_us = clock_mono_us(), excused_us = stall_excused();
    struct writer *w = job->writer;

    do {
        if (may_run_itself(w, job))
            end_group(w, commit_group(w));
    } while (is_called_while_it_waits(w, job));
    sem_destroy(&job->is_done);
    writer_unref(w);
    stall_excuse(clock_mono_us() - began_us - (stall_excused() - excused_us));
    return job->r;
}

int writer_run(struct writer *w, int (*fn)(struct sql_db *db, void *arg, struct err *e), void *arg, struct err *e)
{
    struct writer_job job = { .fn = fn, .arg = arg, .e = e };
    int r = writer_begin(w, &job, e);

    return r < 0 ? r : writer_end(&job);
}
