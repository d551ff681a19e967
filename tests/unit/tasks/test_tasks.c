#include "machine.h"

/* ---- from an event to a result ---- */

static void a_row_is_claimed_run_and_its_result_written_back(void **state)
{
    struct world *w = *state;
    struct machine *m = machine_new(w, "lin-a", NULL);
    const char *id = insert(m, "{\"k\":1}");
    struct fake_run *run = wait_run(w, 0);
    struct task_row task = wait_task(m, id, "claimed");
    struct run_row *runs;
    struct backend_row row = row_now(m, id);

    assert_string_equal(row.status, "claimed");
    assert_string_equal(row.locked_by, "lin-a");
    assert_string_equal(run->agent, "sorter");
    assert_string_equal(run->prompt, "sort it");
    assert_string_equal(run->table, TABLE);
    assert_int_equal(run->attempt, 1);
    assert_string_equal(task.title, "[Triage] New Activity");
    assert_string_equal(task.action_type, "INSERT");
    assert_string_equal(task.source_app, APP);
    assert_string_equal(task.source_app_name, "Triage");
    assert_string_equal(dispatch_of(m, &task), "running");
    fake_succeed(run, "{\"answer\":42}");
    task = wait_task(m, id, "completed");
    assert_string_equal(task.result, "{\"answer\":42}");
    row = row_now(m, id);
    assert_string_equal(row.status, "completed");
    assert_string_equal(row.result, "{\"answer\":42}");
    assert_int_equal(runs_of(m, task.uuid, &runs), 1);
    assert_string_equal(runs[0].status, "completed");
    assert_int_equal(runs[0].pid, 4711);
    assert_string_equal(runs[0].machine_id, "lin-a");
    assert_string_equal(dispatch_of(m, &task), "completed");
}

static void the_agent_is_given_the_whole_activity(void **state)
{
    struct world *w = *state;
    struct machine *m = machine_new(w, "lin-a", NULL);
    const char *id = insert(m, "{\"k\":[1,2]}");
    struct json_value activity;

    assert_int_equal(json_parse(w->arena, slice_of(wait_run(w, 0)->activity), &activity, NULL), 0);
    assert_string_equal(json_cstr(json_get(activity, "id")), id);
    assert_string_equal(json_cstr(json_get(activity, "task_uuid")), w->runs[0].task_uuid);
    assert_string_equal(json_cstr(json_get(activity, "table_name")), TABLE);
    assert_string_equal(json_cstr(json_get(activity, "event")), "INSERT");
    assert_string_equal(json_to_str(w->arena, json_get(activity, "raw_data")), "{\"k\":[1,2]}");
    fake_succeed(&w->runs[0], "{}");
}

static void an_end_reported_before_the_start_has_returned_counts(void **state)
{
    struct world *w = *state;
    struct machine *m = machine_open(w, "lin-a", NULL);
    const char *id;

    atomic_store(&m->ends_in_start, true);
    machine_start(m);
    id = insert(m, "{}");
    assert_string_equal(wait_task(m, id, "completed").result, "{\"quick\":true}");
    wait_released(&w->runs[0]);
}

static void an_agent_that_cannot_be_started_is_a_failure_with_that_reason(void **state)
{
    struct world *w = *state;
    struct machine *m = machine_open(w, "lin-a", NULL);
    struct task_row task;
    struct run_row *runs;
    const char *id;

    atomic_store(&m->start_result, -ENOENT);
    machine_start(m);
    id = insert(m, "{}");
    task = wait_task(m, id, "failed");
    assert_string_equal(task.error, "There is no agent named \"sorter\".");
    assert_string_equal(task.attempted_by, "[\"lin-a\"]");
    assert_int_equal(task.retry_count, 1);
    assert_false(task.is_quarantined);
    assert_int_equal(runs_of(m, task.uuid, &runs), 1);
    assert_string_equal(runs[0].status, "failed");
    assert_string_equal(row_now(m, id).status, "failed");
}

static void too_many_processes_are_nobodys_failure(void **state)
{
    struct world *w = *state;
    struct machine *m = machine_open(w, "lin-a", NULL);
    const char *id;

    atomic_store(&m->start_result, -EAGAIN);
    machine_start(m);
    id = insert(m, "{}");
    wait_task(m, id, "pending");
    wait_row(m, id, "pending");
    assert_string_equal(row_now(m, id).attempted_by, "[]");
    atomic_store(&m->start_result, 0);
    tasks_sweep_now(m->tasks);
    fake_succeed(wait_run(w, 0), "{}");
    wait_task(m, id, "completed");
}

static void the_time_from_event_to_start_is_measured(void **state)
{
    struct world *w = *state;
    struct machine *m = machine_new(w, "lin-a", NULL);
    struct buf page;

    insert(m, "{}");
    fake_succeed(wait_run(w, 0), "{}");
    wait_released(&w->runs[0]);
    buf_init(&page, LIMIT_REPLY);
    metrics_print(&page);
    assert_non_null(strstr(buf_str(&page), "hearth_event_to_start_seconds_count"));
    assert_null(strstr(buf_str(&page), "hearth_event_to_start_seconds_count 0"));
    assert_non_null(strstr(buf_str(&page), "hearth_task_claims_total"));
    buf_clear(&page);
}

/* ---- places ---- */

static void what_finds_no_place_waits_in_order(void **state)
{
    struct world *w = *state;
    struct machine *m = machine_new(w, "lin-a", NULL);
    const char *ids[4];
    struct task_row task;

    for (int i = 0; i < 4; i++)
        ids[i] = insert(m, "{}");
    wait_run(w, 0);
    for (int i = 1; i < 4; i++)
        task = wait_task(m, ids[i], "pending");
    assert_string_equal(dispatch_of(m, &task), "waiting");
    assert_string_equal(row_now(m, ids[3]).status, "pending");
    for (int i = 0; i < 4; i++) {
        struct fake_run *run = wait_run(w, (size_t)i);

        assert_string_equal(run->task_uuid, wait_task(m, ids[i], "claimed").uuid);
        assert_int_equal(world_n_runs(w), i + 1);
        fake_succeed(run, "{}");
        wait_task(m, ids[i], "completed");
    }
}

static void an_app_has_as_many_places_as_it_says(void **state)
{
    struct world *w = *state;
    struct machine *m = machine_open(w, "lin-a", NULL);

    m->listener.max_concurrent = 3;
    machine_start(m);
    for (int i = 0; i < 5; i++)
        insert(m, "{}");
    wait_run(w, 2);
    tasks_sweep_now(m->tasks);
    fake_succeed(wait_run(w, 0), "{}");
    wait_run(w, 3);
    assert_int_equal(world_n_runs(w), 4);
    for (size_t i = 1; i < 5; i++)
        fake_succeed(wait_run(w, i), "{}");
}

enum { N_PLACES = 4 };

/* The list counts rows that waited for a moment before their run: it is full with up to N_PLACES fewer tasks. */
static bool is_full(void *arg)
{
    struct machine *m = arg;
    AUTO(arena_freep) struct arena *a = arena_new();
    struct task_row *tasks;
    size_t n;

    return store_tasks_waiting(m->store, a, APP, LIMIT_LIST, &tasks, &n, NULL) == 0 && n >= LIMIT_LIST - N_PLACES;
}

static void the_list_of_an_app_is_bounded_and_nothing_beyond_it_is_lost(void **state)
{
    struct world *w = *state;
    struct machine *m = machine_open(w, "lin-a", NULL);
    const size_t n = LIMIT_LIST + 20;

    m->listener.max_concurrent = N_PLACES;
    machine_start(m);
    for (size_t i = 0; i < N_PLACES; i++)
        insert(m, "{}");
    wait_run(w, N_PLACES - 1); /* every place is taken: nothing leaves the list while it fills */
    for (size_t i = N_PLACES; i < n; i++)
        insert(m, "{}");
    assert_true(wait_until(is_full, m));
    for (size_t i = 0; i < n; i++)
        fake_succeed(wait_run(w, i), "{}");
}

static void many_looks_at_a_row_at_work_disturb_nothing(void **state)
{
    struct world *w = *state;
    struct machine *m = machine_new(w, "lin-a", NULL);
    const char *payload, *id = insert(m, "{}");
    struct task_row task;

    payload = arena_printf(w->arena, "{\"task_id\":\"%s\",\"table_name\":\"" TABLE "\"}", id);
    for (int i = 0; i < 50; i++) {
        assert_int_equal(m->backend->ops->broadcast(m->backend, "task-retry-triage", "task-available", payload, NULL),
                         0);
        tasks_sweep_now(m->tasks);
    }
    wait_run(w, 0);
    for (int i = 0; i < 50; i++) {
        assert_int_equal(m->backend->ops->broadcast(m->backend, "task-retry-triage", "task-available", payload, NULL),
                         0);
        tasks_sweep_now(m->tasks);
    }
    task = wait_task(m, id, "claimed");
    assert_int_equal(task.attempt, 1);
    fake_succeed(&w->runs[0], "{}");
    wait_released(&w->runs[0]);
    wait_intake(m, 1);
    assert_string_equal(wait_task(m, id, "completed").result, "{}");
}

/* ---- who listens ---- */

static void a_new_listener_finds_the_rows_that_are_there(void **state)
{
    struct world *w = *state;
    struct machine *m = machine_open(w, "lin-a", NULL);
    const char *id;

    atomic_store(&m->is_deaf, true);
    machine_start(m);
    assert_int_equal(m->backend->ops->ensure_table(m->backend, TABLE, NULL), 0);
    id = insert(m, "{}");
    atomic_store(&m->is_deaf, false);
    tasks_listeners_changed(m->tasks);
    fake_succeed(wait_run(w, 0), "{}");
    wait_task(m, id, "completed");
}

static void *listen_now(void *tasks)
{
    tasks_listen_now(tasks);
    return NULL;
}

static void an_older_read_of_the_listeners_does_not_replace_a_newer_one(void **state)
{
    struct world *w = *state;
    struct machine *m = machine_open(w, "lin-a", NULL);
    pthread_t older;
    const char *id;

    atomic_store(&m->is_deaf, true);
    machine_start(m);
    assert_int_equal(sem_init(&m->read_holds, 0, 0) + sem_init(&m->read_ends, 0, 0), 0);
    atomic_store(&m->holds_read, true);
    assert_int_equal(pthread_create(&older, NULL, listen_now, m->tasks), 0);
    machine_wait(&m->read_holds);
    atomic_store(&m->is_deaf, false);
    tasks_listen_now(m->tasks);
    sem_post(&m->read_ends);
    assert_int_equal(pthread_join(older, NULL), 0);
    id = insert(m, "{}");
    fake_succeed(wait_run(w, 0), "{}");
    wait_task(m, id, "completed");
    sem_destroy(&m->read_holds);
    sem_destroy(&m->read_ends);
}

static void rows_of_other_apps_and_rows_the_filter_refuses_are_left_alone(void **state)
{
    struct world *w = *state;
    struct machine *m = machine_open(w, "lin-a", NULL);
    const char *foreign, *refused, *free_row;

    assert_int_equal(filter_parse(w->arena, "raw_data->>kind=eq.mail", &m->listener.filter, NULL), 0);
    machine_start(m);
    foreign = insert_as(m, "b0000000-0000-4000-8000-000000000002", "{\"kind\":\"mail\"}");
    refused = insert(m, "{\"kind\":\"note\"}");
    free_row = insert_as(m, NULL, "{\"kind\":\"mail\"}");
    fake_succeed(wait_run(w, 0), "{}");
    wait_task(m, free_row, "completed");
    assert_string_equal(row_now(m, foreign).status, "pending");
    assert_string_equal(row_now(m, refused).status, "pending");
    assert_int_equal(world_n_runs(w), 1);
}

/* ---- updates and deletions ---- */

static void a_row_changed_while_its_agent_works_is_worked_on_again(void **state)
{
    struct world *w = *state;
    struct machine *m = machine_new(w, "lin-a", NULL);
    const char *id = insert(m, "{\"n\":1}");
    struct fake_run *run = wait_run(w, 0);

    patch_row(m, id, (struct backend_patch){ .raw_data = "{\"n\":2}" });
    fake_succeed(run, "{}");
    run = wait_run(w, 1);
    assert_non_null(strstr(run->activity, "\"raw_data\":{\"n\":2}"));
    assert_non_null(strstr(run->activity, "\"event\":\"UPDATE\""));
    assert_int_equal(run->attempt, 2);
    assert_string_equal(run->task_uuid, w->runs[0].task_uuid);
    fake_succeed(run, "{\"second\":true}");
    assert_string_equal(wait_task(m, id, "completed").result, "{\"second\":true}");
}

static void a_finished_row_that_changes_is_work_for_who_wants_updates(void **state)
{
    static const unsigned only_insert[] = { BACKEND_INSERT };
    struct world *w = *state;
    struct machine *m = machine_new(w, "lin-a", NULL);
    const char *id = insert(m, "{\"n\":1}");

    fake_succeed(wait_run(w, 0), "{}");
    wait_released(&w->runs[0]);
    patch_row(m, id, (struct backend_patch){ .raw_data = "{\"n\":2}" });
    fake_succeed(wait_run(w, 1), "{}");
    wait_released(&w->runs[1]);
    m->listener.table_events = only_insert;
    tasks_listeners_changed(m->tasks);
    wait_intake(m, 2);
    patch_row(m, id, (struct backend_patch){ .raw_data = "{\"n\":3}" });
    wait_intake(m, 3);
    assert_string_equal(row_now(m, id).status, "completed");
}

static void a_deletion_is_work_and_cancels_what_waited(void **state)
{
    struct world *w = *state;
    struct machine *m = machine_new(w, "lin-a", NULL);
    const char *first = insert(m, "{\"n\":1}"), *second = insert(m, "{\"n\":2}");
    struct task_row task;

    wait_run(w, 0);
    wait_task(m, second, "pending");
    assert_int_equal(backend_remove(m->backend, TABLE, second, NULL, NULL), 0);
    task = wait_task(m, second, "canceled");
    assert_string_equal(task.error, "The row was deleted.");
    fake_succeed(wait_run(w, 0), "{}");
    wait_task(m, first, "completed");
    assert_non_null(strstr(wait_run(w, 1)->activity, "\"event\":\"DELETE\""));
    assert_non_null(strstr(w->runs[1].activity, "\"raw_data\":{\"n\":2}"));
    assert_string_equal(w->runs[1].table, TABLE);
    fake_succeed(&w->runs[1], "{}");
    wait_task_uuid(m, w->runs[1].task_uuid, "completed");
}

static void a_status_from_outside_is_followed(void **state)
{
    struct world *w = *state;
    struct machine *m = machine_new(w, "lin-a", NULL);
    const char *done, *archived;

    insert(m, "{}");
    wait_run(w, 0);
    done = insert(m, "{}");
    archived = insert(m, "{}");
    wait_task(m, done, "pending");
    wait_task(m, archived, "pending");
    patch_row(m, done, (struct backend_patch){ .status = "completed", .result = "{\"by\":\"hand\"}" });
    patch_row(m, archived, (struct backend_patch){ .status = "archived" });
    assert_string_equal(wait_task(m, done, "completed").result, "{\"by\":\"hand\"}");
    assert_string_equal(wait_task(m, archived, "canceled").error, "The row's status was set to \"archived\".");
    patch_row(m, archived, (struct backend_patch){ .status = "pending" });
    wait_task(m, archived, "pending");
    fake_succeed(wait_run(w, 0), "{}");
    fake_succeed(wait_run(w, 1), "{}");
    wait_task(m, archived, "completed");
}

/* ---- two machines ---- */

static void only_one_of_two_machines_takes_a_row(void **state)
{
    struct world *w = *state;
    struct machine *a = machine_open(w, "lin-a", NULL), *b = machine_open(w, "lin-b", NULL);
    const char *ids[20];

    a->listener.max_concurrent = b->listener.max_concurrent = LIMIT_MAX_CONCURRENT;
    machine_start(a);
    machine_start(b);
    for (int i = 0; i < 20; i++)
        ids[i] = insert(i % 2 ? a : b, "{}");
    for (size_t i = 0; i < 20; i++)
        fake_succeed(wait_run(w, i), "{}");
    for (int i = 0; i < 20; i++)
        wait_row(a, ids[i], "completed");
    assert_int_equal(world_n_runs(w), 20);
    for (int i = 0; i < 20; i++)
        assert_int_equal(row_now(a, ids[i]).attempt, 1);
}

static void a_failure_is_retried_by_another_machine(void **state)
{
    struct world *w = *state;
    struct machine *a = machine_new(w, "lin-a", NULL), *b;
    const char *id = insert(a, "{}");
    struct task_row task;

    fake_fail(wait_run(w, 0), "no luck");
    task = wait_task(a, id, "failed");
    assert_string_equal(task.error, "no luck");
    assert_string_equal(dispatch_of(a, &task), "failed");
    tasks_sweep_now(a->tasks);
    b = machine_new(w, "lin-b", NULL);
    wait_run(w, 1);
    assert_ptr_equal(w->runs[1].machine, b);
    assert_int_equal(w->runs[1].attempt, 2);
    wait_task(a, id, "claimed");
    fake_succeed(&w->runs[1], "{\"by\":\"b\"}");
    wait_task(b, id, "completed");
    task = wait_task(a, id, "completed");
    assert_string_equal(task.result, "{\"by\":\"b\"}");
    assert_string_equal(task.machine_id, "lin-b");
}

static void a_waiting_task_is_taken_by_a_machine_with_a_free_place(void **state)
{
    struct world *w = *state;
    struct machine *a = machine_new(w, "lin-a", NULL), *b;
    const char *first = insert(a, "{}"), *second;

    wait_run(w, 0);
    second = insert(a, "{}");
    wait_task(a, second, "pending");
    b = machine_new(w, "lin-b", NULL);
    wait_run(w, 1);
    assert_ptr_equal(w->runs[1].machine, b);
    assert_string_equal(wait_task(a, second, "claimed").machine_id, "lin-b");
    fake_succeed(&w->runs[0], "{}");
    fake_succeed(&w->runs[1], "{}");
    wait_task(a, first, "completed");
    wait_task(a, second, "completed");
    wait_task(b, second, "completed");
    assert_int_equal(world_n_runs(w), 2);
}

static void after_three_machines_failed_the_task_is_quarantined(void **state)
{
    static const char *const names[] = { "lin-a", "lin-b", "lin-c", "lin-d" };
    struct world *w = *state;
    struct machine *m[4];
    struct run_row *runs;
    struct task_row task;
    const char *id = NULL;

    for (size_t i = 0; i < 4; i++) {
        m[i] = machine_new(w, names[i], NULL);
        if (i == 0)
            id = insert(m[0], "{}");
        if (i < 3)
            fake_fail(wait_run(w, i), names[i]);
        if (i < 3)
            wait_task(m[i], id, "failed");
    }
    tasks_sweep_now(m[3]->tasks);
    wait_row(m[3], id, "failed");
    task = wait_task(m[2], id, "failed");
    assert_true(task.is_quarantined);
    assert_string_equal(dispatch_of(m[2], &task), "quarantined");
    assert_int_equal(task.retry_count, 3);
    wait_task_error(m[0], id, "lin-c");
    assert_int_equal(runs_of(m[0], wait_task(m[0], id, "failed").uuid, &runs), 3);
    for (size_t i = 0; i < 3; i++) {
        assert_string_equal(runs[i].error, names[i]);
        assert_string_equal(runs[i].machine_id, names[i]);
        assert_int_equal(runs[i].attempt, i + 1);
    }
    wait_intake(m[3], 3);
    assert_int_equal(row_now(m[0], id).attempt, 3);
}

struct heard {
    atomic_int n;
    char payload[400];
};

static void hear(void *arg, const char *channel, const char *event, const char *payload)
{
    struct heard *h = arg;

    assert_string_equal(event, "task-available");
    snprintf(h->payload, sizeof(h->payload), "%s", payload);
    atomic_fetch_add(&h->n, 1);
}

static bool has_heard(void *arg)
{
    struct heard *h = arg;

    return atomic_load(&h->n) > 0;
}

static void a_failure_is_broadcast(void **state)
{
    struct world *w = *state;
    struct machine *m = machine_new(w, "lin-a", NULL);
    struct heard h = { 0 };
    struct json_value payload;
    const char *id;

    assert_int_equal(m->backend->ops->listen(m->backend, "task-retry-triage", hear, &h, NULL), 0);
    id = insert(m, "{}");
    fake_fail(wait_run(w, 0), "no");
    assert_true(wait_until(has_heard, &h));
    m->backend->ops->unlisten(m->backend, &h);
    assert_int_equal(json_parse(w->arena, slice_of(h.payload), &payload, NULL), 0);
    assert_string_equal(json_cstr(json_get(payload, "task_id")), id);
    assert_string_equal(json_cstr(json_get(payload, "table_name")), TABLE);
    assert_string_equal(json_cstr(json_get(payload, "failed_by")), "lin-a");
    assert_int_equal(json_int(json_get(payload, "retry_count")), 1);
}

static void a_broadcast_is_a_chance_to_claim(void **state)
{
    struct world *w = *state;
    struct machine *m = machine_open(w, "lin-b", NULL);
    struct backend_row row;
    struct backend_lease lease;
    const char *id;

    atomic_store(&m->is_deaf, true);
    machine_start(m);
    assert_int_equal(m->backend->ops->ensure_table(m->backend, TABLE, NULL), 0);
    assert_int_equal(backend_claim(m->backend,
                                   (&(struct backend_claim){ .table = TABLE,
                                                             .row_id = (id = insert(m, "{}")),
                                                             .machine_id = "x",
                                                             .stale_after_ms = 100000,
                                                             .max_machines = 3 }),
                                   w->arena, &row, &lease, NULL),
                     0);
    assert_int_equal(fail_row(m, &lease, "no"), 0);
    atomic_store(&m->is_deaf, false);
    tasks_listeners_changed(m->tasks);
    assert_int_equal(
        m->backend->ops->broadcast(
            m->backend, "task-retry-triage", "task-available",
            arena_printf(w->arena, "{\"task_id\":\"%s\",\"table_name\":\"" TABLE "\",\"failed_by\":\"x\"}", id), NULL),
        0);
    fake_succeed(wait_run(w, 0), "{}");
    wait_task(m, id, "completed");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WORLD_TEST(a_row_is_claimed_run_and_its_result_written_back),
        WORLD_TEST(the_agent_is_given_the_whole_activity),
        WORLD_TEST(an_end_reported_before_the_start_has_returned_counts),
        WORLD_TEST(an_agent_that_cannot_be_started_is_a_failure_with_that_reason),
        WORLD_TEST(too_many_processes_are_nobodys_failure),
        WORLD_TEST(the_time_from_event_to_start_is_measured),
        WORLD_TEST(what_finds_no_place_waits_in_order),
        WORLD_TEST(an_app_has_as_many_places_as_it_says),
        WORLD_TEST(the_list_of_an_app_is_bounded_and_nothing_beyond_it_is_lost),
        WORLD_TEST(many_looks_at_a_row_at_work_disturb_nothing),
        WORLD_TEST(a_new_listener_finds_the_rows_that_are_there),
        WORLD_TEST(an_older_read_of_the_listeners_does_not_replace_a_newer_one),
        WORLD_TEST(rows_of_other_apps_and_rows_the_filter_refuses_are_left_alone),
        WORLD_TEST(a_row_changed_while_its_agent_works_is_worked_on_again),
        WORLD_TEST(a_finished_row_that_changes_is_work_for_who_wants_updates),
        WORLD_TEST(a_deletion_is_work_and_cancels_what_waited),
        WORLD_TEST(a_status_from_outside_is_followed),
        WORLD_TEST(only_one_of_two_machines_takes_a_row),
        WORLD_TEST(a_failure_is_retried_by_another_machine),
        WORLD_TEST(a_waiting_task_is_taken_by_a_machine_with_a_free_place),
        WORLD_TEST(after_three_machines_failed_the_task_is_quarantined),
        WORLD_TEST(a_failure_is_broadcast),
        WORLD_TEST(a_broadcast_is_a_chance_to_claim),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
