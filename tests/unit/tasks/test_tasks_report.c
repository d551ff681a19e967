#include "machine.h"

static int report(struct machine *m, const char *uuid, enum task_report what, int64_t attempt, const char *text,
                  const char **ret_status, struct err *e)
{
    bool is_success = what == TASK_COMPLETED;
    const struct tasks_report_request request = {
        .uuid = uuid,
        .what = what,
        .machine_id = m->id,
        .attempt = attempt,
        .result_json = is_success ? text : NULL,
        .error = is_success ? NULL : text,
    };

    *ret_status = NULL;
    return tasks_report(m->tasks, &request, ret_status, e);
}

static void must_report(struct machine *m, const char *uuid, enum task_report what, const char *text,
                        const char *status)
{
    struct err e = { 0 };
    const char *got;

    if (report(m, uuid, what, 0, text, &got, &e) < 0)
        fail_msg("%s", e.text);
    assert_string_equal(got, status);
}

static void must_refuse(struct machine *m, const char *uuid, enum task_report what, int64_t attempt, const char *code)
{
    struct err e = { 0 };
    const char *got;

    assert_true(report(m, uuid, what, attempt, NULL, &got, &e) < 0);
    assert_string_equal(e.code, code);
}

/* ---- of a running agent ---- */

static void an_agent_says_that_it_has_begun_and_what_came_of_it(void **state)
{
    struct world *w = *state;
    struct machine *m = machine_new(w, "lin-a", NULL);
    const char *id = insert(m, "{}");
    struct fake_run *run = wait_run(w, 0);
    struct run_row *runs;

    must_report(m, run->task_uuid, TASK_STARTED, NULL, "processing");
    wait_task(m, id, "processing");
    assert_string_equal(row_now(m, id).status, "claimed");
    must_report(m, run->task_uuid, TASK_COMPLETED, "{\"a\":1}", "completed");
    assert_string_equal(row_now(m, id).result, "{\"a\":1}");
    assert_string_equal(wait_task(m, id, "completed").result, "{\"a\":1}");
    fake_fail(run, "exit code 1 after all");
    wait_released(run);
    assert_string_equal(row_now(m, id).status, "completed");
    assert_string_equal(wait_task(m, id, "completed").result, "{\"a\":1}");
    assert_int_equal(runs_of(m, run->task_uuid, &runs), 1);
    assert_string_equal(runs[0].status, "completed");
}

static void a_reported_failure_wins_over_the_exit_code(void **state)
{
    struct world *w = *state;
    struct machine *m = machine_new(w, "lin-a", NULL);
    const char *id = insert(m, "{}");
    struct fake_run *run = wait_run(w, 0);

    must_report(m, run->task_uuid, TASK_FAILED, "no ink", "failed");
    fake_succeed(run, "{}");
    wait_released(run);
    assert_string_equal(wait_task(m, id, "failed").error, "no ink");
    assert_string_equal(row_now(m, id).status, "failed");
    assert_string_equal(row_now(m, id).error_message, "no ink");
}

static void no_result_is_an_empty_object(void **state)
{
    struct world *w = *state;
    struct machine *m = machine_new(w, "lin-a", NULL);
    const char *id = insert(m, "{}");

    must_report(m, wait_run(w, 0)->task_uuid, TASK_COMPLETED, NULL, "completed");
    assert_string_equal(row_now(m, id).result, "{}");
    fake_succeed(&w->runs[0], "{}");
}

static void the_same_end_may_be_reported_again_another_may_not(void **state)
{
    static const struct {
        enum task_report first, other;
        const char *status;
    } cases[] = {
        { TASK_COMPLETED, TASK_FAILED, "completed" },
        { TASK_FAILED, TASK_COMPLETED, "failed" },
        { TASK_CANCELED, TASK_COMPLETED, "canceled" },
    };
    struct world *w = *state;
    struct machine *m = machine_new(w, "lin-a", NULL);

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        const char *id = insert(m, "{}");
        struct fake_run *run = wait_run(w, i);
        struct backend_row row;

        must_report(m, run->task_uuid, cases[i].first, NULL, cases[i].status);
        row = row_now(m, id);
        must_report(m, run->task_uuid, cases[i].first, "{\"changed\":true}", cases[i].status);
        must_refuse(m, run->task_uuid, cases[i].other, 0, "TASK_ALREADY_FINISHED");
        must_refuse(m, run->task_uuid, TASK_STARTED, 0, "TASK_ALREADY_FINISHED");
        fake_succeed(run, "{\"changed\":true}");
        wait_released(run);
        must_report(m, run->task_uuid, cases[i].first, NULL, cases[i].status);
        assert_string_equal(row_now(m, id).status, row.status);
        if (row.result)
            assert_string_equal(row_now(m, id).result, row.result);
    }
}

struct reporter {
    struct machine *machine;
    const char *uuid;
    enum task_report what;
    int r;
    struct err e;
    pthread_t thread;
};

static void *report_once(void *arg)
{
    struct reporter *reporter = arg;
    const char *status;

    reporter->r = report(reporter->machine, reporter->uuid, reporter->what, 0, NULL, &status, &reporter->e);
    store_thread_end(reporter->machine->store);
    return NULL;
}

static void of_many_reports_at_once_one_end_counts(void **state)
{
    struct world *w = *state;
    struct machine *m = machine_new(w, "lin-a", NULL);

    for (size_t round = 0; round < 5; round++) {
        const char *id = insert(m, "{}");
        struct reporter reporters[8] = { 0 };
        struct fake_run *run = wait_run(w, round);
        const char *end;

        for (size_t i = 0; i < ARRAY_SIZE(reporters); i++) {
            reporters[i] =
                (struct reporter){ .machine = m, .uuid = run->task_uuid, .what = i % 2 ? TASK_COMPLETED : TASK_FAILED };
            assert_int_equal(pthread_create(&reporters[i].thread, NULL, report_once, &reporters[i]), 0);
        }
        fake_succeed(run, "{}");
        for (size_t i = 0; i < ARRAY_SIZE(reporters); i++)
            assert_int_equal(pthread_join(reporters[i].thread, NULL), 0);
        end = row_now(m, id).status;
        for (size_t i = 0; i < ARRAY_SIZE(reporters); i++) {
            bool is_winner = strcmp(end, i % 2 ? "completed" : "failed") == 0;

            assert_int_equal(reporters[i].r == 0, is_winner);
            if (!is_winner)
                assert_string_equal(reporters[i].e.code, "TASK_ALREADY_FINISHED");
        }
        wait_task(m, id, end);
        wait_released(run);
        assert_int_equal(row_now(m, id).attempt, 1);
    }
}

static void one_that_has_reported_but_stays_is_asked_to_leave(void **state)
{
    struct world *w = *state;
    struct machine *m = machine_new(w, "lin-a", NULL);
    const char *id = insert(m, "{}");
    struct fake_run *run = wait_run(w, 0);

    must_report(m, run->task_uuid, TASK_COMPLETED, "{\"a\":1}", "completed");
    assert_false(was_requested(run));
    assert_true(wait_until(was_requested, run));
    wait_released(run);
    assert_string_equal(wait_task(m, id, "completed").result, "{\"a\":1}");
}

static void a_canceled_task_ends_its_agent_and_is_nobodys_work(void **state)
{
    struct world *w = *state;
    struct machine *m = machine_new(w, "lin-a", NULL), *b;
    const char *id = insert(m, "{}");
    struct fake_run *run = wait_run(w, 0);
    struct task_row task;

    must_report(m, run->task_uuid, TASK_CANCELED, "not needed", "canceled");
    wait_released(run);
    assert_true(was_requested(run));
    task = wait_task(m, id, "canceled");
    assert_string_equal(task.error, "not needed");
    assert_string_equal(dispatch_of(m, &task), "canceled");
    assert_string_equal(row_now(m, id).status, "canceled");
    b = machine_new(w, "lin-b", NULL);
    wait_intake(b, 1);
    assert_string_equal(row_now(m, id).status, "canceled");
}

/* ---- attempts ---- */

static void a_report_of_an_old_attempt_is_refused(void **state)
{
    struct world *w = *state;
    struct machine *m = machine_new(w, "lin-a", NULL);
    const char *id = insert(m, "{}"), *status;
    struct fake_run *run = wait_run(w, 0);

    fake_fail(run, "no");
    wait_task(m, id, "failed");
    assert_int_equal(tasks_replay(m->tasks, run->task_uuid, NULL, NULL), 0);
    assert_int_equal(wait_run(w, 1)->attempt, 2);
    must_refuse(m, run->task_uuid, TASK_COMPLETED, 1, "LEASE_LOST");
    assert_string_equal(row_now(m, id).status, "claimed");
    assert_int_equal(report(m, run->task_uuid, TASK_COMPLETED, 2, "{\"n\":2}", &status, NULL), 0);
    assert_string_equal(row_now(m, id).result, "{\"n\":2}");
    fake_succeed(&w->runs[1], "{}");
}

static void a_report_after_the_lease_was_lost_changes_nothing(void **state)
{
    struct world *w = *state;
    struct machine *m = machine_new(w, "lin-a", NULL), *b = machine_open(w, "lin-b", NULL);
    const char *id = insert(m, "{}");
    struct fake_run *run = wait_run(w, 0);

    atomic_store(&m->ignores_stop, true);
    steal_row(b, id, "lin-b");
    must_refuse(m, run->task_uuid, TASK_COMPLETED, 0, "LEASE_LOST");
    must_refuse(m, run->task_uuid, TASK_FAILED, 1, "LEASE_LOST");
    assert_string_equal(row_now(m, id).locked_by, "lin-b");
    assert_true(wait_until(was_requested, run));
    fake_succeed(run, "{}");
    wait_released(run);
    assert_string_equal(row_now(m, id).locked_by, "lin-b");
    assert_string_equal(wait_task(m, id, "claimed").machine_id, "lin-b");
    must_refuse(m, run->task_uuid, TASK_COMPLETED, 0, "LEASE_LOST");
}

static void an_unknown_task_is_said_to_be_unknown(void **state)
{
    struct world *w = *state;
    struct machine *m = machine_new(w, "lin-a", NULL);

    must_refuse(m, "00000000-0000-4000-8000-000000000000", TASK_COMPLETED, 0, "TASK_NOT_FOUND");
}

/* ---- by a program outside, about a waiting task ---- */

static void a_waiting_task_may_be_finished_from_outside(void **state)
{
    static const struct {
        enum task_report what;
        const char *status;
    } cases[] = {
        { TASK_COMPLETED, "completed" },
        { TASK_FAILED, "failed" },
        { TASK_CANCELED, "canceled" },
    };
    struct world *w = *state;
    struct machine *m = machine_new(w, "lin-a", NULL);

    insert(m, "{}");
    wait_run(w, 0);
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        const char *id = insert(m, "{}");
        struct task_row task = wait_task(m, id, "pending");

        must_report(m, task.uuid, cases[i].what, NULL, cases[i].status);
        assert_string_equal(row_now(m, id).status, cases[i].status);
        assert_int_equal(row_now(m, id).attempt >= 1, 1);
        must_report(m, task.uuid, cases[i].what, NULL, cases[i].status);
    }
    fake_succeed(&w->runs[0], "{}");
    wait_released(&w->runs[0]);
    wait_intake(m, 1);
}

static void a_waiting_task_may_be_worked_on_from_outside(void **state)
{
    struct world *w = *state;
    struct machine *m = machine_new(w, "lin-a", NULL);
    struct task_row task;
    const char *id;

    insert(m, "{}");
    wait_run(w, 0);
    id = insert(m, "{}");
    task = wait_task(m, id, "pending");
    must_report(m, task.uuid, TASK_CLAIMED, NULL, "claimed");
    assert_string_equal(row_now(m, id).locked_by, "lin-a");
    must_report(m, task.uuid, TASK_STARTED, NULL, "processing");
    must_report(m, task.uuid, TASK_CLAIMED, NULL, "processing");
    must_report(m, task.uuid, TASK_STARTED, NULL, "processing");
    must_report(m, task.uuid, TASK_COMPLETED, "{\"out\":1}", "completed");
    assert_string_equal(row_now(m, id).result, "{\"out\":1}");
    assert_int_equal(row_now(m, id).attempt, 1);
    fake_succeed(&w->runs[0], "{}");
    wait_released(&w->runs[0]);
    assert_int_equal(world_n_runs(w), 1);
}

static void a_row_another_machine_works_on_is_not_ours_to_finish(void **state)
{
    struct world *w = *state;
    struct machine *m = machine_new(w, "lin-a", NULL);
    struct task_row task;
    struct backend_row row;
    struct backend_lease lease;
    const char *id;

    insert(m, "{}");
    wait_run(w, 0);
    id = insert(m, "{}");
    task = wait_task(m, id, "pending");
    assert_int_equal(
        backend_claim(
            m->backend,
            (&(struct backend_claim){
                .table = TABLE, .row_id = id, .machine_id = "x", .stale_after_ms = 100000, .max_machines = 3 }),
            w->arena, &row, &lease, NULL),
        0);
    wait_task(m, id, "claimed");
    must_refuse(m, task.uuid, TASK_COMPLETED, 0, "LEASE_LOST");
    fake_succeed(&w->runs[0], "{}");
}

/* ---- triggered tasks ---- */

static struct task_ids trigger(struct machine *m, const char *app, bool is_auto_run)
{
    struct task_trigger in = { .app_id = app,
                               .app_name = "Shop",
                               .raw_data = "{\"order\":7}",
                               .is_auto_run = is_auto_run,
                               .agent_name = "sorter",
                               .workspace_slug = "default",
                               .thread_slug = "t",
                               .prompt = "look" };
    struct task_ids ids;
    struct err e = { 0 };

    if (tasks_trigger(m->tasks, &in, &ids, &e) < 0)
        fail_msg("%s", e.text);
    return ids;
}

static void a_delivery_is_answered_with_the_task_it_made(void **state)
{
    struct world *w = *state;
    struct machine *m = machine_new(w, "lin-a", NULL);
    const struct task_ids chosen = { "0b3f0a52-6b52-4b7e-9a60-0c0c5d1f7a01", "0b3f0a52-6b52-4b7e-9a60-0c0c5d1f7a02" };
    struct delivery_row mine, again;
    struct task_ids ids;
    struct err e = { 0 };

    assert_int_equal(store_deliveries_claim(m->store, m->arena, "app", "e1", &mine, &e), 0);
    mine.status = 200;
    mine.answer = "{\"a\":1}";
    assert_int_equal(tasks_trigger(m->tasks,
                                   &(struct task_trigger){ .raw_data = "{}", .ids = &chosen, .delivery = &mine }, &ids,
                                   &e),
                     0);
    assert_string_equal(ids.task_uuid, chosen.task_uuid);
    assert_string_equal(ids.calendar_uuid, chosen.calendar_uuid);
    assert_int_equal(store_deliveries_release_all(m->store, &e), 0); /* like a restart */
    assert_int_equal(store_deliveries_claim(m->store, m->arena, "app", "e1", &again, &e), 0);
    assert_int_equal(again.state, DELIVERY_ANSWERED);
    assert_string_equal(again.answer, "{\"a\":1}");
}

static void a_triggered_task_is_run_and_its_result_kept(void **state)
{
    struct world *w = *state;
    struct machine *m = machine_new(w, "lin-a", NULL);
    struct task_ids ids = trigger(m, APP, true);
    struct fake_run *run = wait_run(w, 0);
    struct task_row task;
    struct run_row *runs;

    assert_string_equal(run->task_uuid, ids.task_uuid);
    assert_string_equal(run->prompt, "look");
    assert_non_null(strstr(run->activity, "\"raw_data\":{\"order\":7}"));
    assert_non_null(strstr(run->activity, "\"event\":\"SDK_TRIGGER\""));
    task = wait_task_uuid(m, ids.task_uuid, "claimed");
    assert_string_equal(task.action_type, "SDK_TRIGGER");
    assert_string_equal(task.title, "[Shop] New Activity");
    assert_string_equal(task.calendar_event_uuid, ids.calendar_uuid);
    fake_succeed(run, "{\"a\":1}");
    task = wait_task_uuid(m, ids.task_uuid, "completed");
    assert_string_equal(task.result, "{\"a\":1}");
    assert_int_equal(runs_of(m, ids.task_uuid, &runs), 1);
    assert_string_equal(runs[0].thread_slug, "t");
}

static void triggered_tasks_count_for_their_apps_places(void **state)
{
    struct world *w = *state;
    struct machine *m = machine_new(w, "lin-a", NULL);
    struct task_ids first = trigger(m, APP, true), second, of_nobody;

    wait_run(w, 0);
    second = trigger(m, APP, true);
    of_nobody = trigger(m, NULL, true);
    assert_string_equal(wait_run(w, 1)->task_uuid, of_nobody.task_uuid);
    wait_task_uuid(m, second.task_uuid, "pending");
    fake_succeed(&w->runs[0], "{}");
    assert_string_equal(wait_run(w, 2)->task_uuid, second.task_uuid);
    fake_succeed(&w->runs[1], "{}");
    fake_succeed(&w->runs[2], "{}");
    wait_task_uuid(m, first.task_uuid, "completed");
    wait_task_uuid(m, second.task_uuid, "completed");
}

static void a_triggered_task_that_failed_ends_there(void **state)
{
    struct world *w = *state;
    struct machine *m = machine_new(w, "lin-a", NULL);
    struct task_ids ids = trigger(m, APP, true);

    fake_fail(wait_run(w, 0), "no");
    assert_string_equal(wait_task_uuid(m, ids.task_uuid, "failed").error, "no");
    assert_int_equal(tasks_replay(m->tasks, ids.task_uuid, NULL, NULL), 0);
    assert_int_equal(wait_run(w, 1)->attempt, 2);
    fake_succeed(&w->runs[1], "{}");
    wait_task_uuid(m, ids.task_uuid, "completed");
}

static void a_triggered_task_may_be_worked_on_from_outside(void **state)
{
    struct world *w = *state;
    struct machine *m = machine_new(w, "lin-a", NULL);
    struct task_ids ids = trigger(m, NULL, false);

    must_report(m, ids.task_uuid, TASK_STARTED, NULL, "processing");
    must_report(m, ids.task_uuid, TASK_COMPLETED, "{\"x\":1}", "completed");
    must_report(m, ids.task_uuid, TASK_COMPLETED, NULL, "completed");
    must_refuse(m, ids.task_uuid, TASK_FAILED, 0, "TASK_ALREADY_FINISHED");
    assert_string_equal(wait_task_uuid(m, ids.task_uuid, "completed").result, "{\"x\":1}");
    ids = trigger(m, NULL, false);
    must_report(m, ids.task_uuid, TASK_FAILED, "no", "failed");
}

/* The run is told its agent's handle a moment after the agent's start. */
static bool has_live_log(void *arg)
{
    const struct fake_run *run = arg;
    AUTO(arena_freep) struct arena *a = arena_new();

    return tasks_live_log(run->machine->tasks, run->task_uuid, a) != NULL;
}

static void the_output_of_a_running_agent_can_be_read(void **state)
{
    struct world *w = *state;
    struct machine *m = machine_new(w, "lin-a", NULL);
    const char *id = insert(m, "{}");
    struct fake_run *run = wait_run(w, 0);
    struct run_row row;

    wait_task(m, id, "claimed");
    assert_true(wait_until(has_live_log, run));
    assert_string_equal(tasks_live_log(m->tasks, run->task_uuid, w->arena),
                        arena_printf(w->arena, "log of run %lld", (long long)run->id));
    fake_succeed(run, "{}");
    wait_released(run);
    assert_null(tasks_live_log(m->tasks, run->task_uuid, w->arena));
    assert_int_equal(store_runs_get(m->store, w->arena, run->id, &row, NULL), 0);
    assert_string_equal(row.log, "out");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WORLD_TEST(an_agent_says_that_it_has_begun_and_what_came_of_it),
        WORLD_TEST(a_reported_failure_wins_over_the_exit_code),
        WORLD_TEST(no_result_is_an_empty_object),
        WORLD_TEST(the_same_end_may_be_reported_again_another_may_not),
        WORLD_TEST(of_many_reports_at_once_one_end_counts),
        WORLD_TEST(one_that_has_reported_but_stays_is_asked_to_leave),
        WORLD_TEST(a_canceled_task_ends_its_agent_and_is_nobodys_work),
        WORLD_TEST(a_report_of_an_old_attempt_is_refused),
        WORLD_TEST(a_report_after_the_lease_was_lost_changes_nothing),
        WORLD_TEST(an_unknown_task_is_said_to_be_unknown),
        WORLD_TEST(a_waiting_task_may_be_finished_from_outside),
        WORLD_TEST(a_waiting_task_may_be_worked_on_from_outside),
        WORLD_TEST(a_row_another_machine_works_on_is_not_ours_to_finish),
        WORLD_TEST(a_delivery_is_answered_with_the_task_it_made),
        WORLD_TEST(a_triggered_task_is_run_and_its_result_kept),
        WORLD_TEST(triggered_tasks_count_for_their_apps_places),
        WORLD_TEST(a_triggered_task_that_failed_ends_there),
        WORLD_TEST(a_triggered_task_may_be_worked_on_from_outside),
        WORLD_TEST(the_output_of_a_running_agent_can_be_read),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
