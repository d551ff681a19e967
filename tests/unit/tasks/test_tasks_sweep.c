/* The sweep: no app's rows hide those of another in a table that they share, and events may be lost. */
#include "machine.h"
#include "backend/monitor.h"
#include "tasks/private.h"

#define OTHER_APP "a0000000-0000-4000-8000-000000000002"

enum { MORE_THAN_A_PAGE = LIMIT_LIST + 100 };

/* The rows were inserted while nobody listened: no event names them. */
static struct machine *machine_of_two_apps(struct world *w)
{
    static const char *const one_row[] = { "tasks.recovery_rows=1", NULL };
    struct machine *m = machine_open(w, "lin-a", one_row);

    m->others[0] = m->listener;
    m->others[0].app_id = OTHER_APP;
    m->others[0].app_name = "other";
    m->n_others = 1;
    assert_int_equal(m->backend->ops->ensure_table(m->backend, TABLE, NULL), 0);
    return m;
}

static void insert_many(struct machine *m, size_t n)
{
    for (size_t i = 0; i < n; i++)
        insert(m, "{}");
}

static void a_long_backlog_of_one_app_does_not_hide_the_row_of_another(void **state)
{
    struct world *w = *state;
    struct machine *m = machine_of_two_apps(w);
    const char *row = insert_as(m, OTHER_APP, "{}");

    insert_many(m, MORE_THAN_A_PAGE);
    machine_start(m);
    wait_run(w, 0);
    assert_true(row_says(m, row, "pending"));
    tasks_sweep_now(m->tasks);
    wait_run(w, 1);
    assert_false(row_says(m, row, "pending"));
}

struct sweeping {
    struct machine *m;
    const char *row;
};

static bool finds_when_it_sweeps(void *arg)
{
    struct sweeping *s = arg;

    tasks_sweep_now(s->m->tasks);
    return !row_says(s->m, s->row, "pending");
}

/* The second page of the first sweep does not reach the row, the second sweep goes on there. */
static void each_sweep_goes_on_where_the_last_one_stopped(void **state)
{
    struct world *w = *state;
    struct machine *m = machine_of_two_apps(w);
    struct sweeping s = { m, insert_as(m, OTHER_APP, "{}") };

    insert_many(m, 2 * LIMIT_LIST + 1);
    machine_start(m);
    wait_run(w, 0);
    assert_true(wait_until(finds_when_it_sweeps, &s));
}

/* A sweep passes over a row whose run is not quite over. */
static bool is_completed_by_a_sweep(void *arg)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    const struct sweeping *s = arg;
    struct task_row task;

    tasks_sweep_now(s->m->tasks);
    return find_task(s->m, a, s->row, &task) && strcmp(task.status, "completed") == 0;
}

/* Its task has failed here, and another machine completes the row without an event. The event of a later row comes
 * after those of this one. */
static const char *complete_unseen(struct machine *m)
{
    const char *id = insert(m, "{}");
    struct backend_lease lease;

    fake_fail(wait_run(m->world, 0), "no");
    wait_task(m, id, "failed");
    insert(m, "{}");
    fake_succeed(wait_run(m->world, 1), "{}");
    m->backend->ops->unsubscribe(m->backend, m->tasks);
    lease = steal_row(m, id, "lin-b");
    assert_int_equal(backend_complete(m->backend, &lease, "{}", NULL), 0);
    return id;
}

/* The realtime of a hosted project may lose an event, and nobody learns that. */
static void a_sweep_finds_what_another_machine_did_without_an_event(void **state)
{
    static const char *const hosted[] = { "backend.kind=hosted", NULL };
    struct world *w = *state;
    struct machine *m = machine_new(w, "lin-a", hosted);

    assert_true(wait_until(is_completed_by_a_sweep, &(struct sweeping){ m, complete_unseen(m) }));
}

/* A pooler in transaction mode lets no change through, and no gap. */
static struct backend_ops deaf_ops;

static void monitor_nothing(struct backend *b, struct arena *a, struct backend_monitor *ret)
{
    *ret = (struct backend_monitor){ .way = "outbox", .state = BACKEND_LINK_CONNECTING };
}

static void a_sweep_looks_where_no_changes_arrive(void **state)
{
    struct world *w = *state;
    struct machine *m = machine_new(w, "lin-a", NULL);
    const char *id = complete_unseen(m);

    deaf_ops = *m->backend->ops;
    deaf_ops.monitor = monitor_nothing;
    m->backend->ops = &deaf_ops;
    assert_true(wait_until(is_completed_by_a_sweep, &(struct sweeping){ m, id }));
}

/* Nobody subscribes, so a sweep finds the row: the sweep before has ended by then. */
static void wait_sweep(struct machine *m, size_t n_runs)
{
    assert_true(wait_until(finds_when_it_sweeps, &(struct sweeping){ m, insert(m, "{}") }));
    fake_succeed(wait_run(m->world, n_runs), "{}");
}

/* Each look costs a read of a row, every sweep, on every machine. */
static void a_sweep_does_not_look_where_every_lost_event_is_a_gap(void **state)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct world *w = *state;
    struct machine *m = machine_new(w, "lin-a", NULL);
    const char *id = complete_unseen(m);
    struct task_row task;

    wait_sweep(m, 2);
    wait_sweep(m, 3);
    assert_true(find_task(m, a, id, &task));
    assert_string_equal(task.status, "failed");
}

/* The backend cannot be reached: no row can be read. */
static struct backend_ops away_ops;
static const struct backend_ops *there_ops;
static atomic_bool is_away;
static atomic_size_t n_refused;

static int get_unless_away(struct backend *b, const char *table, const char *id, const char *app_id, struct arena *a,
                           struct backend_row *ret, struct err *e)
{
    if (!is_away)
        return there_ops->get(b, table, id, app_id, a, ret, e);
    n_refused++;
    return err_set(e, -EAGAIN, "STORE_UNAVAILABLE", "nobody answers");
}

static bool is_refused(void *arg)
{
    return n_refused > 0;
}

/* Before the machine starts: its threads read the operations. */
static struct machine *machine_with_switch(struct world *w)
{
    static const unsigned no_delete[] = { BACKEND_INSERT };
    struct machine *m = machine_open(w, "lin-a", NULL);

    m->listener.table_events = no_delete;
    is_away = false;
    n_refused = 0;
    there_ops = m->backend->ops;
    away_ops = *there_ops;
    away_ops.get = get_unless_away;
    m->backend->ops = &away_ops;
    machine_start(m);
    return m;
}

static void a_gap_is_looked_after_once_the_backend_can_be_reached(void **state)
{
    struct world *w = *state;
    struct machine *m = machine_with_switch(w);
    const char *id = complete_unseen(m);

    is_away = true;
    task_note_gap(m->tasks);
    assert_true(wait_until(is_refused, NULL));
    is_away = false;
    assert_true(wait_until(is_completed_by_a_sweep, &(struct sweeping){ m, id }));
}

static bool is_canceled_by_a_sweep(void *arg)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    const struct sweeping *s = arg;
    struct task_row task;

    tasks_sweep_now(s->m->tasks);
    return find_task(s->m, a, s->row, &task) && strcmp(task.status, "canceled") == 0;
}

static void an_event_whose_row_could_not_be_read_is_a_gap(void **state)
{
    struct world *w = *state;
    struct machine *m = machine_with_switch(w);
    const char *second;

    insert(m, "{}");
    wait_run(w, 0);
    second = insert(m, "{}");
    wait_task(m, second, "pending");
    is_away = true;
    assert_int_equal(backend_remove(m->backend, TABLE, second, NULL, NULL), 0);
    assert_true(wait_until(is_refused, NULL));
    is_away = false;
    assert_true(wait_until(is_canceled_by_a_sweep, &(struct sweeping){ m, second }));
    fake_succeed(wait_run(w, 0), "{}");
}

/* The answer to a read may come after the events of what happened since. */
static void a_row_that_was_read_before_another_machine_completed_it_changes_nothing(void **state)
{
    struct world *w = *state;
    struct machine *m = machine_new(w, "lin-a", NULL);
    const char *id = insert(m, "{}");
    struct backend_row failed;
    struct backend_lease lease;

    fake_fail(wait_run(w, 0), "no");
    wait_task(m, id, "failed");
    failed = row_now(m, id);
    lease = steal_row(m, id, "lin-b");
    assert_int_equal(backend_complete(m->backend, &lease, "{}", NULL), 0);
    wait_task(m, id, "completed");
    assert_int_equal(task_follow(m->tasks, &failed, NULL), 0);
    assert_string_equal(wait_task(m, id, "completed").status, "completed");
}

/* The rows that were freed cannot be read, for another row among them is too large. */
static struct backend_ops large_ops;

static int recover_unreadably(struct backend *b, const char *table, int64_t stale_after_ms, struct arena *a,
                              struct backend_rows *ret, struct err *e)
{
    return err_set(e, -E2BIG, "TOO_LARGE", "one row is too large");
}

static void a_recovery_that_cannot_be_read_leaves_no_work_unfound(void **state)
{
    struct world *w = *state;
    struct machine *m = machine_open(w, "lin-a", NULL);

    large_ops = *m->backend->ops;
    large_ops.recover_stale = recover_unreadably;
    m->backend->ops = &large_ops;
    machine_start(m);
    m->backend->ops->unsubscribe(m->backend, m->tasks);
    assert_true(wait_until(finds_when_it_sweeps, &(struct sweeping){ m, insert(m, "{}") }));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WORLD_TEST(a_long_backlog_of_one_app_does_not_hide_the_row_of_another),
        WORLD_TEST(each_sweep_goes_on_where_the_last_one_stopped),
        WORLD_TEST(a_sweep_finds_what_another_machine_did_without_an_event),
        WORLD_TEST(a_sweep_looks_where_no_changes_arrive),
        WORLD_TEST(a_sweep_does_not_look_where_every_lost_event_is_a_gap),
        WORLD_TEST(a_gap_is_looked_after_once_the_backend_can_be_reached),
        WORLD_TEST(an_event_whose_row_could_not_be_read_is_a_gap),
        WORLD_TEST(a_row_that_was_read_before_another_machine_completed_it_changes_nothing),
        WORLD_TEST(a_recovery_that_cannot_be_read_leaves_no_work_unfound),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
