/* The heartbeat of running leases, and the sweep: events are hints, the sweep is authoritative. */
#include "tasks/private.h"

#include "base/limits.h"
#include "base/log.h"

#include <stdlib.h>
#include <string.h>

/* ---- heartbeat ---- */

void task_note_lost(struct tasks *t, struct task_run *run)
{
    metric_add(t->meters.leases_lost, 1);
    log_info("tasks", NULL, "task %s lost its lease in attempt %lld", run->uuid, (long long)run->attempt);
}

static bool needs_heartbeat(struct tasks *t, const struct task_run *run)
{
    bool needs;

    pthread_mutex_lock(&t->mutex);
    needs =
        run->table && run->id && run->fate == FATE_NONE && !run->is_settling && !run->is_reported && !run->has_ended;
    pthread_mutex_unlock(&t->mutex);
    return needs;
}

static void take_beat(struct tasks *t, struct task_run *run, int r, const struct err *why)
{
    if (r == -ESTALE && needs_heartbeat(t, run)) { /* the run has not just finished */
        task_note_lost(t, run);
        task_run_stop(t, run, FATE_LEASE_LOST);
    } else if (r < 0 && r != -ESTALE) {
        log_warn("tasks", NULL, "no heartbeat for task %s: %s", run->uuid, LOG_Q(why->text));
    }
}

static void beat(struct tasks *t, struct task_run **runs, size_t n, struct arena *a)
{
    struct backend_lease *leases = arena_array(a, n + 1, sizeof(*leases));
    struct task_run **beating = arena_array(a, n + 1, sizeof(struct task_run *));
    int *results = arena_array(a, n + 1, sizeof(*results));
    struct err e = { 0 };
    size_t n_beating = 0;

    for (size_t i = 0; i < n; i++)
        if (needs_heartbeat(t, runs[i])) {
            const struct task_ref ref = task_ref_of_run(t, runs[i]);

            beating[n_beating] = runs[i];
            leases[n_beating++] = task_lease_of(&ref);
        }
    if (backend_heartbeats(t->config.backend, leases, n_beating, results, &e) < 0) {
        log_warn("tasks", NULL, "no heartbeat for %zu tasks: %s", n_beating, LOG_Q(e.text));
        return;
    }
    for (size_t i = 0; i < n_beating; i++)
        take_beat(t, beating[i], results[i], &e);
}

void task_heartbeat_run(struct tasks *t, void *arg)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    size_t n;
    struct task_run **runs = task_runs_hold(t, a, &n);

    beat(t, runs, n, a);
    for (size_t i = 0; i < n; i++) {
        task_run_advance(t, runs[i]); /* settles an end that could not be stored before */
        task_run_unref(t, runs[i]);
    }
}

/* ---- sweep ---- */

static int recover_stale(struct tasks *t, const char *table, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct backend_rows rows = { 0 };
    int r = t->config.backend->ops->recover_stale(
        t->config.backend, table, settings_ms(t->config.settings, SETTING_TASKS_STALE_AFTER_S), a, &rows, e);

    for (size_t i = 0; r == 0 && i < rows.n; i++) {
        log_info("tasks", NULL, "row %s of %s had a stale lease and is free again", LOG_Q(rows.items[i].id),
                 LOG_Q(table));
        task_retry_broadcast(t, &rows.items[i], t->machine_id, "stale_lock");
    }
    return r;
}

/* Where the next sweep goes on with the older rows of a table, so that a backlog of one app hides no row of another. No
 * round: the older rows begin after the newest page. */
struct task_round {
    struct task_round *next;
    char *table, *created_at, *id; /* owned */
};

static struct task_round **find_round(struct tasks *t, const char *table)
{
    struct task_round **at = &t->rounds;

    while (*at && strcmp((*at)->table, table) != 0)
        at = &(*at)->next;
    return at;
}

static void end_round(struct task_round **at)
{
    struct task_round *round = *at;

    if (!round)
        return;
    *at = round->next;
    free(round->table);
    free(round->created_at);
    free(round->id);
    free(round);
}

static void keep_round(struct tasks *t, const char *table, const struct backend_position *place)
{
    struct task_round *round = xcalloc(1, sizeof(*round));

    *round = (struct task_round){ t->rounds, xstrdup(table), xstrdup(place->created_at), xstrdup(place->id) };
    t->rounds = round;
}

void task_sweep_clear(struct tasks *t)
{
    while (t->rounds)
        end_round(&t->rounds);
}

static struct backend_position copy_place(struct arena *a, const char *created_at, const char *id)
{
    return (struct backend_position){ arena_strdup(a, created_at), arena_strdup(a, id) };
}

/* *ret, in the arena: the place of the oldest row; empty without a row, unchanged when not all rows could be queued. */
static int take_page(struct tasks *t, const char *table, const struct backend_position *before, int64_t limit,
                     struct arena *a, struct backend_position *ret, struct err *e)
{
    AUTO(arena_freep) struct arena *scratch = arena_new();
    const struct backend_claim as = task_claim_of(t, table, NULL);
    struct backend_rows rows = { 0 };
    int r = t->config.backend->ops->claimable(t->config.backend, table, &as, before, limit, scratch, &rows, e);

    if (r == 0 && task_intake_rows(t, &rows))
        *ret = rows.n > 0 ? copy_place(a, rows.items[0].created_at, rows.items[0].id) : (struct backend_position){ 0 };
    return r;
}

static int go_on(struct tasks *t, const char *table, const struct backend_position *newest, struct arena *a,
                 struct err *e)
{
    struct task_round **round = find_round(t, table);
    struct backend_position place = *round ? copy_place(a, (*round)->created_at, (*round)->id) : *newest;
    const struct backend_position before = place;
    int r = take_page(t, table, &before, LIMIT_LIST, a, &place, e);

    if (r < 0)
        return r;
    end_round(round);
    if (place.id)
        keep_round(t, table, &place);
    return 0;
}

static int find_claimable(struct tasks *t, const char *table, int64_t limit, bool goes_on, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct backend_position oldest = { 0 };
    int r = take_page(t, table, NULL, limit, a, &oldest, e);

    return r == 0 && oldest.id && goes_on ? go_on(t, table, &oldest, a, e) : r;
}

/* A row that cannot be read fails the recovery of a whole table; stale leases can be claimed all the same. */
static int sweep_table(struct tasks *t, const char *table, int64_t limit, bool goes_on, struct err *e)
{
    int recovered = recover_stale(t, table, e), r = recovered;

    if (r == 0 || r == -E2BIG || r == -EIO)
        r = find_claimable(t, table, limit, goes_on, e);
    return r < 0 ? r : recovered;
}

void task_sweep_tables(struct tasks *t, int64_t limit, bool goes_on)
{
    struct task_listening *l = task_listening_hold(t);

    for (size_t i = 0; i < l->n_tables; i++) {
        struct err e = { 0 };

        if (sweep_table(t, l->tables[i], limit, goes_on, &e) < 0)
            log_warn("tasks", NULL, "table %s cannot be swept: %s", LOG_Q(l->tables[i]), LOG_Q(e.text));
    }
    task_listening_drop(t, l);
}

static enum task_reconcile_depth take_gap(struct tasks *t)
{
    bool had_gap;

    pthread_mutex_lock(&t->mutex);
    had_gap = t->has_gap;
    t->has_gap = false;
    pthread_mutex_unlock(&t->mutex);
    return had_gap ? RECONCILE_GAP : RECONCILE_LEASED;
}

/* Renews our own leases first: after the machine has slept all of them look stale. */
void task_sweep_run(struct tasks *t, void *arg)
{
    struct err e = { 0 };
    int r;

    task_heartbeat_run(t, NULL);
    task_apps_recount(t);
    task_sweep_tables(t, LIMIT_LIST, true);
    r = task_reconcile(t, take_gap(t), &e);
    if (r == 0)
        r = task_reconcile_some(t, &e);
    if (r < 0)
        log_warn("tasks", NULL, "tasks of other machines are not looked after: %s", LOG_Q(e.text));
    task_apps_dispatch(t);
}
