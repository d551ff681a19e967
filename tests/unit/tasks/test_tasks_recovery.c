#include "../metric.h"
#include "machine.h"

#include "tasks/private.h"
#include "tasks/private.h"

static struct backend_lease claim_as(struct machine *m, const char *id, const char *machine)
{
    const struct backend_claim claim = {
        .table = TABLE, .row_id = id, .machine_id = machine, .stale_after_ms = 1000000, .max_machines = 3
    };
    struct backend_lease lease;
    struct backend_row row;
    struct err e = { 0 };

    if (backend_claim(m->backend, &claim, m->world->arena, &row, &lease, &e) < 0)
        fail_msg("%s", e.text);
    return lease;
}

static void make_table(struct machine *m)
{
    assert_int_equal(m->backend->ops->ensure_table(m->backend, TABLE, NULL), 0);
}

/* ---- what a killed service left ---- */

/* The machine's store as kill -9 leaves it: the task claimed, the run running. */
static void leave_task(struct machine *m, const char *row_id, int64_t attempt, const char *uuid)
{
    struct task_row task = { .uuid = uuid,
                             .title = "t",
                             .status = "claimed",
                             .action_type = "INSERT",
                             .source_app = APP,
                             .backend_table = row_id ? TABLE : NULL,
                             .row_id = row_id,
                             .agent_name = "sorter",
                             .raw_data = "{}",
                             .auto_run = true,
                             .attempt = attempt,
                             .machine_id = m->id };
    struct run_row run = {
        .task_uuid = uuid, .agent_name = "sorter", .status = "running", .attempt = attempt, .machine_id = m->id
    };
    struct task_bundle bundle = { .task = &task, .run = &run };
    char stored[UUID_SIZE];
    bool is_new;

    assert_int_equal(store_tasks_add(m->store, &bundle, &is_new, stored, NULL), 0);
    assert_true(is_new);
}

#define LEFT "11111111-1111-4111-8111-111111111111"

static void a_row_held_by_an_earlier_life_is_run_again(void **state)
{
    struct world *w = *state;
    struct machine *m = machine_open(w, "lin-a", NULL);
    struct run_row *runs;
    const char *id;

    make_table(m);
    id = insert(m, "{}");
    claim_as(m, id, "lin-a");
    leave_task(m, id, 1, LEFT);
    machine_start(m);
    assert_int_equal(wait_run(w, 0)->attempt, 2);
    assert_string_equal(w->runs[0].task_uuid, LEFT);
    fake_succeed(&w->runs[0], "{}");
    wait_task(m, id, "completed");
    assert_string_equal(row_now(m, id).attempted_by, "[]");
    assert_int_equal(runs_of(m, LEFT, &runs), 2);
    assert_string_equal(runs[0].status, "failed");
    assert_string_equal(runs[0].error, "The service ended while this ran.");
    assert_string_equal(runs[1].status, "completed");
}

static void a_row_claimed_but_not_stored_is_run_again(void **state)
{
    struct world *w = *state;
    struct machine *m = machine_open(w, "lin-a", NULL);
    const char *id;

    make_table(m);
    id = insert(m, "{}");
    claim_as(m, id, "lin-a");
    machine_start(m);
    assert_int_equal(wait_run(w, 0)->attempt, 2);
    fake_succeed(&w->runs[0], "{}");
    wait_task(m, id, "completed");
}

static void a_result_that_reached_the_backend_is_not_lost(void **state)
{
    struct world *w = *state;
    struct machine *m = machine_open(w, "lin-a", NULL);
    struct backend_lease lease;
    const char *id;

    make_table(m);
    id = insert(m, "{}");
    lease = claim_as(m, id, "lin-a");
    leave_task(m, id, 1, LEFT);
    assert_int_equal(backend_complete(m->backend, &lease, "{\"kept\":1}", NULL), 0);
    machine_start(m);
    assert_string_equal(wait_task(m, id, "completed").result, "{\"kept\":1}");
    wait_intake(m, 0);
    assert_int_equal(row_now(m, id).attempt, 1);
}

static void what_another_machine_finished_meanwhile_is_known_after_the_start(void **state)
{
    struct world *w = *state;
    struct machine *m = machine_new(w, "lin-a", NULL);
    const char *id = insert(m, "{}");
    struct backend_lease lease;

    fake_fail(wait_run(w, 0), "not today");
    wait_task(m, id, "failed");
    machine_stop(m);
    lease = claim_as(m, id, "lin-b");
    assert_int_equal(backend_complete(m->backend, &lease, "{\"by\":\"b\"}", NULL), 0);
    machine_restart(m);
    assert_string_equal(wait_task(m, id, "completed").result, "{\"by\":\"b\"}");
}

static void a_triggered_task_of_an_earlier_life_is_run_again(void **state)
{
    struct world *w = *state;
    struct machine *m = machine_open(w, "lin-a", NULL);

    leave_task(m, NULL, 1, LEFT);
    machine_start(m);
    assert_int_equal(wait_run(w, 0)->attempt, 2);
    fake_succeed(&w->runs[0], "{}");
    wait_task_uuid(m, LEFT, "completed");
}

static void what_came_while_it_was_away_is_found(void **state)
{
    struct world *w = *state;
    struct machine *m = machine_open(w, "lin-a", NULL);
    struct backend_lease lease;
    const char *pending, *failed;

    make_table(m);
    m->listener.max_concurrent = 2;
    pending = insert(m, "{}");
    failed = insert(m, "{}");
    lease = claim_as(m, failed, "x");
    assert_int_equal(fail_row(m, &lease, "no"), 0);
    machine_start(m);
    fake_succeed(wait_run(w, 0), "{}");
    fake_succeed(wait_run(w, 1), "{}");
    wait_task(m, pending, "completed");
    wait_task(m, failed, "completed");
}

static void at_start_only_the_newest_rows_are_taken_up(void **state)
{
    static const char *const two_rows[] = { "tasks.recovery_rows=2", NULL };
    struct world *w = *state;
    struct machine *m = machine_open(w, "lin-a", two_rows);
    const char *ids[4];

    make_table(m);
    m->listener.max_concurrent = 4;
    for (int i = 0; i < 4; i++)
        ids[i] = insert(m, arena_printf(w->arena, "{\"n\":%d}", i));
    machine_start(m);
    wait_run(w, 1);
    assert_int_equal(world_n_runs(w), 2);
    assert_non_null(strstr(w->runs[0].activity, ids[2] ? "{\"n\":" : ""));
    assert_string_equal(row_now(m, ids[0]).status, "pending");
    assert_string_equal(row_now(m, ids[1]).status, "pending");
    tasks_sweep_now(m->tasks);
    wait_run(w, 3);
    for (size_t i = 0; i < 4; i++)
        fake_succeed(&w->runs[i], "{}");
}

static void what_others_did_while_it_was_away_is_followed(void **state)
{
    struct world *w = *state;
    struct machine *m = machine_new(w, "lin-a", NULL);
    const char *failed = insert(m, "{}"), *waiting;
    struct backend_lease lease;

    fake_fail(wait_run(w, 0), "no");
    wait_task(m, failed, "failed");
    insert(m, "{}");
    wait_run(w, 1);
    waiting = insert(m, "{}");
    wait_task(m, waiting, "pending");
    machine_stop(m);
    lease = claim_as(m, failed, "x");
    assert_int_equal(backend_complete(m->backend, &lease, "{\"x\":1}", NULL), 0);
    lease = claim_as(m, waiting, "x");
    assert_int_equal(backend_complete(m->backend, &lease, "{\"x\":2}", NULL), 0);
    machine_restart(m);
    assert_string_equal(wait_task(m, failed, "completed").result, "{\"x\":1}");
    assert_string_equal(wait_task(m, waiting, "completed").result, "{\"x\":2}");
    fake_succeed(wait_run(w, 2), "{}");
}

/* ---- more than fits ---- */

static void events_beyond_the_queue_are_left_to_the_sweep(void **state)
{
    struct world *w = *state;
    struct machine *m = machine_open(w, "lin-a", NULL);

    for (size_t i = 0; i < LIMIT_TASK_EVENTS; i++)
        task_intake_hint(m->tasks, TABLE, "x");
    assert_int_equal(m->tasks->n_items, LIMIT_TASK_EVENTS);
    assert_false(m->tasks->has_gap);
    task_intake_hint(m->tasks, TABLE, "x");
    assert_int_equal(m->tasks->n_items, LIMIT_TASK_EVENTS);
    assert_true(m->tasks->has_gap);
}

static void a_result_that_is_too_large_is_a_failure(void **state)
{
    struct world *w = *state;
    struct machine *m = machine_new(w, "lin-a", NULL);
    char *result = arena_alloc(w->arena, LIMIT_RESULT_BYTES + 2);
    const char *fits, *too_large;

    memset(result, 'x', LIMIT_RESULT_BYTES + 1);
    result[0] = '"';
    result[LIMIT_RESULT_BYTES] = '"';
    too_large = insert(m, "{}");
    fake_succeed(wait_run(w, 0), result);
    assert_non_null(strstr(wait_task(m, too_large, "failed").error, "at most"));
    result[LIMIT_RESULT_BYTES - 1] = '"';
    result[LIMIT_RESULT_BYTES] = '\0';
    fits = insert(m, "{}");
    fake_succeed(wait_run(w, 1), result);
    wait_task(m, fits, "completed");
}

/* ---- leases ---- */

static bool was_refreshed(void *arg)
{
    const char **had = arg;
    struct machine *m = (struct machine *)(uintptr_t)had[0];
    AUTO(arena_freep) struct arena *a = arena_new();
    struct backend_row row;

    return backend_get(m->backend, TABLE, had[1], NULL, a, &row, NULL) == 0 && row.locked_at &&
           strcmp(row.locked_at, had[2]) > 0;
}

static void a_running_lease_is_kept_alive(void **state)
{
    static const char *const quick[] = { "tasks.heartbeat_s=0.05", "tasks.stale_after_s=60", NULL };
    struct world *w = *state;
    struct machine *m = machine_new(w, "lin-a", quick);
    const char *id = insert(m, "{}");
    const char *had[3] = { (const char *)m, id, NULL };

    wait_run(w, 0);
    had[2] = row_now(m, id).locked_at;
    assert_true(wait_until(was_refreshed, had));
    fake_succeed(&w->runs[0], "{}");
}

static void a_stale_lease_of_a_dead_machine_is_recovered_by_the_sweep(void **state)
{
    static const char *const quick[] = { "tasks.sweep_s=0.1", NULL };
    struct world *w = *state;
    struct machine *m = machine_open(w, "lin-a", quick);
    const char *id;

    make_table(m);
    id = insert(m, "{}");
    claim_as(m, id, "dead");
    make_stale(m, id);
    machine_start(m);
    assert_int_equal(wait_run(w, 0)->attempt, 2);
    fake_succeed(&w->runs[0], "{}");
    wait_task(m, id, "completed");
}

struct heard {
    atomic_int n;
    char payload[400];
};

static void hear(void *arg, const char *channel, const char *event, const char *payload)
{
    struct heard *h = arg;

    snprintf(h->payload, sizeof(h->payload), "%s", payload);
    atomic_fetch_add(&h->n, 1);
}

static bool has_heard(void *arg)
{
    struct heard *h = arg;

    return atomic_load(&h->n) > 0;
}

static void a_recovered_row_is_broadcast_with_its_reason(void **state)
{
    struct world *w = *state;
    struct machine *m = machine_open(w, "lin-a", NULL);
    struct heard h = { 0 };
    struct json_value payload;
    const char *id;

    make_table(m);
    assert_int_equal(m->backend->ops->listen(m->backend, "task-retry-triage", hear, &h, NULL), 0);
    id = insert(m, "{}");
    claim_as(m, id, "dead");
    make_stale(m, id);
    machine_start(m);
    tasks_sweep_now(m->tasks);
    assert_true(wait_until(has_heard, &h));
    m->backend->ops->unlisten(m->backend, &h);
    assert_int_equal(json_parse(w->arena, slice_of(h.payload), &payload, NULL), 0);
    assert_string_equal(json_cstr(json_get(payload, "task_id")), id);
    assert_string_equal(json_cstr(json_get(payload, "recovery_reason")), "stale_lock");
    fake_succeed(wait_run(w, 0), "{}");
}

static void a_run_whose_lease_was_taken_is_stopped_and_writes_nothing(void **state)
{
    struct world *w = *state;
    struct machine *m = machine_new(w, "lin-a", NULL);
    const char *id = insert(m, "{}");
    struct fake_run *run = wait_run(w, 0);
    struct backend_row row;
    struct backend_lease lease;
    struct run_row *runs;

    wait_task(m, id, "claimed");
    lease = steal_row(m, id, "thief");
    assert_true(wait_until(was_requested, run));
    wait_released(run);
    row = row_now(m, id);
    assert_string_equal(row.locked_by, "thief");
    assert_string_equal(row.attempted_by, "[]");
    assert_int_equal(runs_of(m, run->task_uuid, &runs), 1);
    assert_string_equal(runs[0].status, "failed");
    assert_string_equal(runs[0].error, "lease lost");
    assert_string_equal(wait_task(m, id, "claimed").machine_id, "thief");
    assert_int_equal(backend_complete(m->backend, &lease, "{\"thief\":1}", NULL), 0);
    assert_string_equal(wait_task(m, id, "completed").result, "{\"thief\":1}");
}

static void the_heartbeat_finds_a_lost_lease_without_an_event(void **state)
{
    static const char *const quick[] = { "tasks.heartbeat_s=0.05", "tasks.stale_after_s=60", NULL };
    struct world *w = *state;
    struct machine *m = machine_new(w, "lin-a", quick);
    const char *id = insert(m, "{}");
    struct fake_run *run = wait_run(w, 0);

    wait_task(m, id, "claimed");
    m->backend->ops->unsubscribe(m->backend, m->tasks);
    patch_row(m, id, (struct backend_patch){ .status = "completed" });
    assert_true(wait_until(was_requested, run));
    wait_released(run);
    wait_task(m, id, "completed");
}

static void a_row_deleted_under_its_agent_stops_it(void **state)
{
    struct world *w = *state;
    struct machine *m = machine_open(w, "lin-a", NULL);
    static const unsigned no_delete[] = { BACKEND_INSERT };
    const char *id;

    m->listener.table_events = no_delete;
    machine_start(m);
    id = insert(m, "{}");
    wait_run(w, 0);
    wait_task(m, id, "claimed");
    assert_int_equal(backend_remove(m->backend, TABLE, id, NULL, NULL), 0);
    assert_true(wait_until(was_requested, &w->runs[0]));
    wait_released(&w->runs[0]);
    wait_task(m, id, "canceled");
}

static void after_a_gap_the_rows_are_found(void **state)
{
    struct world *w = *state;
    struct machine *m = machine_new(w, "lin-a", NULL);
    const char *id;

    m->backend->ops->unsubscribe(m->backend, m->tasks);
    id = insert(m, "{}");
    tasks_sweep_now(m->tasks);
    fake_succeed(wait_run(w, 0), "{}");
    wait_task(m, id, "completed");
}

/* ---- the end of a service ---- */

static void a_service_that_stops_gives_its_rows_back(void **state)
{
    struct world *w = *state;
    struct machine *m = machine_new(w, "lin-a", NULL);
    const char *running = insert(m, "{}"), *waiting = insert(m, "{}");
    struct run_row *runs;
    struct task_row task;

    wait_run(w, 0);
    wait_task(m, waiting, "pending");
    machine_stop(m);
    assert_true(was_requested(&w->runs[0]));
    assert_string_equal(row_now(m, running).status, "pending");
    assert_string_equal(row_now(m, running).attempted_by, "[]");
    task = wait_task(m, running, "pending");
    assert_null(task.error);
    assert_int_equal(runs_of(m, task.uuid, &runs), 1);
    assert_string_equal(runs[0].error, "The service stopped.");
    machine_restart(m);
    fake_succeed(wait_run(w, 1), "{}");
    fake_succeed(wait_run(w, 2), "{}");
    wait_task(m, running, "completed");
    wait_task(m, waiting, "completed");
    assert_int_equal(world_n_runs(w), 3);
}

static void agents_that_do_not_leave_in_time_lose_their_rows(void **state)
{
    struct world *w = *state;
    struct machine *m = machine_new(w, "lin-a", NULL);
    const char *id = insert(m, "{}");

    wait_run(w, 0);
    wait_task(m, id, "claimed");
    atomic_store(&m->ignores_stop, true);
    tasks_stop(m->tasks, clock_mono_ms() + 50);
    m->is_started = false;
    assert_string_equal(row_now(m, id).status, "pending");
    assert_false(is_released(&w->runs[0]));
    fake_succeed(&w->runs[0], "{\"late\":true}");
    assert_string_equal(row_now(m, id).status, "pending");
}

/* ---- who it is ---- */

static void a_machine_id_is_made_once_and_kept(void **state)
{
    static const char *const unnamed[] = { "identity.machine_id=", NULL };
    struct world *w = *state;
    struct machine *m = machine_open(w, "lin-a", unnamed);
    char first[64];

    snprintf(first, sizeof(first), "%s", tasks_machine_id(m->tasks));
    assert_int_equal(strlen(first), 12);
    assert_memory_equal(first, "lin-", 4);
    assert_int_equal(strspn(first + 4, "0123456789abcdef"), 8);
    m->tasks = tasks_close(m->tasks);
    machine_open_tasks(m, true);
    assert_string_equal(tasks_machine_id(m->tasks), first);
}

/* The sweep reads rows and queues them; a queued row may be outdated when its turn comes. */
static void sweep_saw(struct machine *m, struct backend_row row)
{
    task_intake_rows(m->tasks, &(struct backend_rows){ &row, 1 });
}

static void what_a_sweep_saw_before_the_claim_does_not_touch_the_run(void **state)
{
    struct world *w = *state;
    struct machine *m = machine_open(w, "lin-a", NULL);
    struct backend_row old;
    struct task_row task;
    const char *id;

    make_table(m);
    m->listener.max_concurrent = 2;
    id = insert(m, "{}");
    old = row_now(m, id);
    machine_start(m);
    wait_run(w, 0);
    sweep_saw(m, old);
    wait_intake(m, 1);
    assert_true(find_task(m, w->arena, id, &task));
    assert_string_equal(task.status, "claimed");
    fake_succeed(&w->runs[0], "{}");
    wait_task(m, id, "completed");
}

static void what_a_sweep_saw_before_the_end_does_not_make_the_task_wait(void **state)
{
    struct world *w = *state;
    struct machine *m = machine_open(w, "lin-a", NULL);
    struct backend_row old;
    struct task_row task;
    const char *id;

    make_table(m);
    id = insert(m, "{}");
    old = row_now(m, id);
    machine_start(m);
    fake_succeed(wait_run(w, 0), "{}");
    wait_released(&w->runs[0]);
    insert(m, "{\"takes\":\"the place\"}");
    wait_run(w, 1);
    sweep_saw(m, old);
    wait_task(m, insert(m, "{}"), "pending"); /* after it in the queue */
    assert_true(find_task(m, w->arena, id, &task));
    assert_string_equal(task.status, "completed");
}

static bool is_present(void *arg)
{
    struct machine *m = arg;
    AUTO(arena_freep) struct arena *a = arena_new();
    struct backend_presences list = { 0 };

    if (m->backend->ops->presence_list(m->backend, 60000, a, &list, NULL) < 0 || list.n != 1)
        return false;
    return strcmp(list.items[0].machine_id, m->id) == 0 && strcmp(list.items[0].app_name, "triage") == 0 &&
           *list.items[0].hostname;
}

static void a_machine_is_present_while_it_serves(void **state)
{
    struct world *w = *state;
    struct machine *m = machine_new(w, "lin-a", NULL);
    struct backend_presences list = { 0 };

    assert_true(wait_until(is_present, m));
    machine_stop(m);
    assert_int_equal(m->backend->ops->presence_list(m->backend, 60000, w->arena, &list, NULL), 0);
    assert_int_equal(list.n, 0);
}

static bool gauge_is_one(void *arg)
{
    return metric_of("hearth_tasks{status=\"completed\"}") == 1;
}

static void tasks_are_counted_by_status(void **state)
{
    struct world *w = *state;
    struct machine *m = machine_new(w, "lin-a", NULL);

    insert(m, "{}");
    fake_succeed(wait_run(w, 0), "{}");
    assert_true(wait_until(gauge_is_one, NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WORLD_TEST(a_row_held_by_an_earlier_life_is_run_again),
        WORLD_TEST(a_row_claimed_but_not_stored_is_run_again),
        WORLD_TEST(a_result_that_reached_the_backend_is_not_lost),
        WORLD_TEST(what_another_machine_finished_meanwhile_is_known_after_the_start),
        WORLD_TEST(a_triggered_task_of_an_earlier_life_is_run_again),
        WORLD_TEST(what_came_while_it_was_away_is_found),
        WORLD_TEST(at_start_only_the_newest_rows_are_taken_up),
        WORLD_TEST(what_others_did_while_it_was_away_is_followed),
        WORLD_TEST(events_beyond_the_queue_are_left_to_the_sweep),
        WORLD_TEST(a_result_that_is_too_large_is_a_failure),
        WORLD_TEST(a_running_lease_is_kept_alive),
        WORLD_TEST(a_stale_lease_of_a_dead_machine_is_recovered_by_the_sweep),
        WORLD_TEST(a_recovered_row_is_broadcast_with_its_reason),
        WORLD_TEST(a_run_whose_lease_was_taken_is_stopped_and_writes_nothing),
        WORLD_TEST(the_heartbeat_finds_a_lost_lease_without_an_event),
        WORLD_TEST(a_row_deleted_under_its_agent_stops_it),
        WORLD_TEST(after_a_gap_the_rows_are_found),
        WORLD_TEST(what_a_sweep_saw_before_the_claim_does_not_touch_the_run),
        WORLD_TEST(what_a_sweep_saw_before_the_end_does_not_make_the_task_wait),
        WORLD_TEST(a_service_that_stops_gives_its_rows_back),
        WORLD_TEST(agents_that_do_not_leave_in_time_lose_their_rows),
        WORLD_TEST(a_machine_id_is_made_once_and_kept),
        WORLD_TEST(a_machine_is_present_while_it_serves),
        WORLD_TEST(tasks_are_counted_by_status),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
