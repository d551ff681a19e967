/* The thread that chooses which app is told next, and keeps the leases of what is not yet told. An app has one request
 * at a time, so one that is slow or away takes no thread from the others for longer than its own pauses allow. */
#include "backend/custom/custom_delivery_private.h"
#include "base/clock.h"
#include "base/cond.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/thread.h"

#include <stdlib.h>
#include <string.h>

enum { JOB_ENDS = 16 /* of one app before it is another's turn */, BEAT_PAGE = 100, MOST_DOUBLINGS = 20 };

static const size_t keeper_stack_bytes = 512 << 10;
static const int64_t trim_every_ms = INT64_C(3600000), longest_wait_ms = 60000, retry_store_ms = 1000;

/* ---- whose turn it is ---- */

/* The caller holds the lock. */
static struct custom_turn *find_turn(struct custom_deliveries *d, const char *app_id)
{
    struct custom_turn *turn = d->turns;

    while (turn && strcmp(turn->app_id, app_id) != 0)
        turn = turn->next;
    if (turn)
        return turn;
    turn = xcalloc(1, sizeof(*turn));
    *turn = (struct custom_turn){ .next = d->turns, .app_id = xstrdup(app_id), .d = d };
    d->turns = turn;
    return turn;
}

static bool is_starting(const struct custom_turn *turn)
{
    return turn->starts_until_ms > clock_mono_ms();
}

static void free_turn(struct custom_turn *turn)
{
    free(turn->app_id);
    free(turn);
}

/* Forgets apps that are neither busy nor away. The caller holds the lock. */
static void forget_turns(struct custom_deliveries *d)
{
    for (struct custom_turn **at = &d->turns; *at;) {
        struct custom_turn *turn = *at;

        if (turn->is_busy || turn->n_failures > 0 || is_starting(turn)) {
            at = &turn->next;
            continue;
        }
        *at = turn->next;
        free_turn(turn);
    }
}

void custom_keeper_app_starts(struct custom_deliveries *d, const char *app_id)
{
    struct custom_turn *turn;

    pthread_mutex_lock(&d->lock);
    turn = find_turn(d, app_id);
    turn->n_failures = 0;
    turn->not_before_ms = 0;
    turn->starts_until_ms = clock_mono_ms() + LIMIT_DELIVERY_START_MS;
    pthread_mutex_unlock(&d->lock);
    custom_keeper_wake(d);
}

bool custom_keeper_is_starting(struct custom_deliveries *d, const char *app_id)
{
    bool is;

    pthread_mutex_lock(&d->lock);
    is = is_starting(find_turn(d, app_id));
    pthread_mutex_unlock(&d->lock);
    return is;
}

/* ---- a job of the pool: ends of one app ---- */

static int send_next(struct custom_turn *turn)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct custom_deliveries *d = turn->d;
    struct app_delivery_row row;
    struct err e = { 0 };
    int r = store_app_deliveries_next(d->config.store, a, turn->app_id, clock_wall_ms(), &row, &e);

    if (r == 0)
        return custom_send(d, &row, a);
    if (r != -ENOENT)
        log_error("custom", NULL, "deliveries cannot be read: %s", LOG_Q(e.text));
    return r;
}

/* The caller holds the lock. */
static void note_failure(struct custom_turn *turn, bool has_failed)
{
    int64_t pause;

    turn->n_failures = has_failed ? MIN(turn->n_failures + 1, MOST_DOUBLINGS) : 0;
    turn->not_before_ms = 0;
    if (!has_failed)
        return;
    pause = is_starting(turn) ? LIMIT_DELIVERY_START_PAUSE_MS : turn->d->config.pause_ms << (turn->n_failures - 1);
    turn->not_before_ms = clock_mono_ms() + MIN(pause, LIMIT_DELIVERY_PAUSE_MS);
}

static void run_turn(void *arg)
{
    struct custom_turn *turn = arg;
    struct custom_deliveries *d = turn->d;
    int r = 0;

    for (int i = 0; i < JOB_ENDS && r == 0 && !atomic_load(&d->is_stopping); i++)
        r = send_next(turn);
    pthread_mutex_lock(&d->lock);
    turn->is_busy = false;
    note_failure(turn, r < 0 && r != -ENOENT);
    d->is_woken = true;
    pthread_cond_broadcast(&d->changed);
    pthread_mutex_unlock(&d->lock);
}

/* ---- choosing ---- */

/* The milliseconds until this app can be told, 0 when it now is. */
static int64_t give_turn(struct custom_deliveries *d, const struct app_delivery_row *app)
{
    int64_t wait_ms = app->next_ms - clock_wall_ms();
    struct custom_turn *turn;

    if (wait_ms > LIMIT_DELIVERY_PAUSE_MS)
        wait_ms = 0; /* the clock was set back */
    pthread_mutex_lock(&d->lock);
    turn = find_turn(d, app->app_id);
    if (turn->not_before_ms)
        wait_ms = MAX(wait_ms, turn->not_before_ms - clock_mono_ms());
    if (turn->is_busy)
        wait_ms = longest_wait_ms; /* the end of its job wakes this thread */
    else if (wait_ms <= 0)
        turn->is_busy = pool_submit(d->pool, run_turn, turn) == 0;
    pthread_mutex_unlock(&d->lock);
    return MAX(wait_ms, 0);
}

/* Returns the milliseconds until another look is due. */
static int64_t give_turns(struct custom_deliveries *d)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct app_delivery_row *apps = NULL;
    int64_t wait_ms = longest_wait_ms;
    struct err e = { 0 };
    size_t n = 0;

    if (store_app_deliveries_apps(d->config.store, a, &apps, &n, &e) < 0) {
        log_error("custom", NULL, "deliveries cannot be read: %s", LOG_Q(e.text));
        return retry_store_ms;
    }
    for (size_t i = 0; i < n; i++) {
        int64_t ms = give_turn(d, &apps[i]);

        wait_ms = ms > 0 ? MIN(wait_ms, ms) : wait_ms;
    }
    pthread_mutex_lock(&d->lock);
    forget_turns(d);
    pthread_mutex_unlock(&d->lock);
    return wait_ms;
}

/* ---- leases ---- */

/* -EAGAIN: the database does not answer, so the others are not tried. */
static int beat_one(struct custom_deliveries *d, const struct app_delivery_row *row)
{
    const struct backend_lease lease = custom_lease_of(row);
    struct err e = { 0 };
    int r = d->config.calls->beat(d->config.arg, &lease, &e);

    if (r == 0 || r == -ESTALE) /* a lost lease is found out by the next try, or by the person who wants one */
        return 0;
    log_warn("custom", NULL, "the lease of %s in %s cannot be kept: %s", LOG_Q(row->row_id), LOG_Q(row->table_name),
             LOG_Q(e.text));
    return -EAGAIN;
}

/* The leases of everything that waits or is dead. */
static int beat_all(struct custom_deliveries *d)
{
    struct app_deliveries_query q = { .limit = BEAT_PAGE };
    size_t n = BEAT_PAGE;
    int r = 0;

    while (r == 0 && n == BEAT_PAGE && !atomic_load(&d->is_stopping)) {
        AUTO(arena_freep) struct arena *a = arena_new();
        struct app_delivery_row *rows = NULL;

        r = store_app_deliveries_list(d->config.store, a, &q, &rows, &n, NULL);
        for (size_t i = 0; r == 0 && i < n && !atomic_load(&d->is_stopping); i++)
            r = beat_one(d, &rows[i]);
        if (r == 0 && n > 0)
            q.after_seq = rows[n - 1].seq;
    }
    return r;
}

/* ---- the thread ---- */

struct due {
    int64_t beat_ms, trim_ms; /* clock_mono_ms() */
};

static void do_chores(struct custom_deliveries *d, struct due *due)
{
    int64_t now_ms = clock_mono_ms();

    if (now_ms >= due->beat_ms)
        due->beat_ms = now_ms + (beat_all(d) == 0 ? d->config.beat_ms : MIN(d->config.beat_ms, longest_wait_ms / 4));
    if (now_ms < due->trim_ms)
        return;
    due->trim_ms = now_ms + trim_every_ms;
    if (store_app_deliveries_trim(d->config.store, clock_wall_ms() - LIMIT_DELIVERY_KEPT_MS, NULL) < 0)
        log_warn("custom", NULL, "old deliveries cannot be removed");
}

static void sleep_until(struct custom_deliveries *d, int64_t until_ms)
{
    pthread_mutex_lock(&d->lock);
    while (!d->is_woken && !atomic_load(&d->is_stopping) && cond_wait_until(&d->changed, &d->lock, until_ms * 1000))
        ;
    d->is_woken = false;
    pthread_mutex_unlock(&d->lock);
}

static void *keep(void *arg)
{
    struct custom_deliveries *d = arg;
    struct due due = { .beat_ms = clock_mono_ms() };

    while (!atomic_load(&d->is_stopping)) {
        int64_t wait_ms;

        do_chores(d, &due);
        wait_ms = give_turns(d);
        sleep_until(d, MIN(clock_mono_ms() + wait_ms, due.beat_ms));
    }
    store_thread_end(d->config.store);
    return NULL;
}

static void end_thread(void *arg)
{
    store_thread_end(arg);
}

static int start_threads(struct custom_deliveries *d, struct err *e)
{
    const struct pool_config config = { .name = "custom",
                                        .n_max = LIMIT_DELIVERY_THREADS,
                                        .max_waiting = LIMIT_APP_DELIVERIES,
                                        .on_thread_end = end_thread,
                                        .arg = d->config.store };
    int r = d->pool ? 0 : pool_start(&config, &d->pool, e);

    if (r < 0)
        return r;
    r = thread_start_sized(&d->keeper, "custom", keeper_stack_bytes, keep, d);
    return r < 0 ? err_errno(e, -r, "The thread of the deliveries cannot be started") : 0;
}

int custom_keeper_begin(struct custom_deliveries *d, struct err *e)
{
    int r = 0;

    pthread_mutex_lock(&d->lock);
    if (d->is_started && !d->has_keeper && !atomic_load(&d->is_stopping)) {
        r = start_threads(d, e);
        d->has_keeper = r == 0;
    }
    pthread_mutex_unlock(&d->lock);
    return r;
}

void custom_keeper_wake(struct custom_deliveries *d)
{
    pthread_mutex_lock(&d->lock);
    d->is_woken = true;
    pthread_cond_broadcast(&d->changed);
    pthread_mutex_unlock(&d->lock);
}

void custom_keeper_end(struct custom_deliveries *d)
{
    custom_keeper_wake(d);
    if (d->has_keeper)
        pthread_join(d->keeper, NULL);
    d->pool = pool_stop(d->pool);
    while (d->turns) {
        struct custom_turn *turn = d->turns;

        d->turns = turn->next;
        free_turn(turn);
    }
}
