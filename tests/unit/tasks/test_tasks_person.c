#include "machine.h"

/* The app's handler requires review by a person. */
static struct machine *reviewing(struct world *w, const char *id)
{
    struct machine *m = machine_open(w, id, NULL);

    m->handlers[0].is_review = true;
    machine_start(m);
    return m;
}

static void a_row_for_review_waits_for_a_person_and_is_claimed_then(void **state)
{
    struct world *w = *state;
    struct machine *m = reviewing(w, "lin-a");
    const char *id = insert(m, "{}");
    struct task_row task = wait_task(m, id, "pending");

    assert_string_equal(task.review, "waiting");
    assert_false(task.auto_run);
    assert_string_equal(dispatch_of(m, &task), "review");
    assert_string_equal(row_now(m, id).status, "pending");
    tasks_sweep_now(m->tasks);
    assert_int_equal(tasks_run_now(m->tasks, task.uuid, NULL, NULL), 0);
    assert_string_equal(wait_run(w, 0)->agent, "sorter");
    assert_string_equal(wait_task(m, id, "claimed").review, "approved");
    fake_succeed(&w->runs[0], "{}");
    wait_task(m, id, "completed");
    assert_int_equal(world_n_runs(w), 1);
}

static void without_a_handler_a_person_names_the_agent(void **state)
{
    struct world *w = *state;
    struct machine *m = machine_open(w, "lin-a", NULL);
    struct task_row task;
    struct err e = { 0 };
    const char *id;

    m->listener.n_handlers = 0;
    machine_start(m);
    id = insert(m, "{}");
    task = wait_task(m, id, "pending");
    assert_null(task.agent_name);
    assert_int_equal(tasks_run_now(m->tasks, task.uuid, NULL, &e), -EINVAL);
    assert_string_equal(e.fields[0].field, "agent_name");
    assert_int_equal(tasks_run_now(m->tasks, task.uuid, "chosen", NULL), 0);
    assert_string_equal(wait_run(w, 0)->agent, "chosen");
    fake_succeed(&w->runs[0], "{}");
    assert_string_equal(wait_task(m, id, "completed").agent_name, "chosen");
}

static void what_the_person_wrote_into_the_calendar_counts(void **state)
{
    struct world *w = *state;
    struct machine *m = machine_open(w, "lin-a", NULL);
    struct calendar_change change = {
        .all_day = -1, .metadata = "{\"agent_name\":\"written\",\"prompt\":\"with care\",\"workspace_slug\":\"w2\"}"
    };
    struct task_row task;
    const char *id;

    m->listener.n_handlers = 0;
    machine_start(m);
    id = insert(m, "{}");
    task = wait_task(m, id, "pending");
    change.uuid = task.calendar_event_uuid;
    assert_int_equal(store_calendar_update(m->store, &change, NULL), 0);
    assert_int_equal(tasks_run_now(m->tasks, task.uuid, NULL, NULL), 0);
    assert_string_equal(wait_run(w, 0)->agent, "written");
    assert_string_equal(w->runs[0].prompt, "with care");
    fake_succeed(&w->runs[0], "{}");
    assert_string_equal(wait_task(m, id, "completed").workspace_slug, "w2");
}

static void only_what_waits_for_a_person_is_run_by_one(void **state)
{
    struct world *w = *state;
    struct machine *m = machine_new(w, "lin-a", NULL);
    struct err e = { 0 };
    struct task_row task;
    const char *id = insert(m, "{}");

    wait_run(w, 0);
    task = wait_task(m, id, "claimed");
    assert_int_equal(tasks_run_now(m->tasks, task.uuid, NULL, &e), -EALREADY);
    assert_string_equal(e.code, "TASK_NOT_WAITING");
    e = (struct err){ 0 };
    assert_int_equal(tasks_run_now(m->tasks, "00000000-0000-4000-8000-000000000000", NULL, &e), -ENOENT);
    fake_succeed(&w->runs[0], "{}");
}

static void an_approved_task_waits_for_a_place_like_others(void **state)
{
    struct world *w = *state;
    struct machine *m = reviewing(w, "lin-a");
    const char *first = insert(m, "{}"), *second = insert(m, "{}");
    struct task_row a = wait_task(m, first, "pending"), b = wait_task(m, second, "pending");

    assert_int_equal(tasks_run_now(m->tasks, b.uuid, NULL, NULL), 0);
    assert_string_equal(wait_run(w, 0)->task_uuid, b.uuid);
    assert_int_equal(tasks_run_now(m->tasks, a.uuid, NULL, NULL), 0);
    wait_task(m, first, "pending");
    fake_succeed(&w->runs[0], "{}");
    assert_string_equal(wait_run(w, 1)->task_uuid, a.uuid);
    fake_succeed(&w->runs[1], "{}");
}

static void a_rejected_row_is_nobodys_work_on_any_machine(void **state)
{
    struct world *w = *state;
    struct machine *a = reviewing(w, "lin-a"), *b = reviewing(w, "lin-b");
    const char *id = insert(a, "{}");
    struct task_row task = wait_task(a, id, "pending");
    struct err e = { 0 };

    wait_task(b, id, "pending");
    assert_int_equal(tasks_reject(a->tasks, task.uuid, "spam", NULL), 0);
    task = wait_task(a, id, "canceled");
    assert_string_equal(task.error, "spam");
    assert_string_equal(task.review, "rejected");
    assert_string_equal(dispatch_of(a, &task), "rejected");
    assert_string_equal(row_now(a, id).status, "canceled");
    assert_string_equal(wait_task(b, id, "canceled").error, "spam");
    assert_int_equal(tasks_reject(a->tasks, task.uuid, NULL, &e), -EALREADY);
    assert_int_equal(tasks_replay(a->tasks, task.uuid, NULL, NULL), 0);
    task = wait_task(a, id, "pending");
    assert_string_equal(task.review, "waiting");
    assert_string_equal(dispatch_of(a, &task), "review");
    assert_string_equal(wait_task(b, id, "pending").review, "waiting");
}

static void one_that_another_machine_runs_cannot_be_rejected(void **state)
{
    struct world *w = *state;
    struct machine *a = reviewing(w, "lin-a");
    const char *id = insert(a, "{}");
    struct task_row task = wait_task(a, id, "pending");
    struct backend_row row;
    struct backend_lease lease;
    struct err e = { 0 };

    assert_int_equal(
        backend_claim(
            a->backend,
            (&(struct backend_claim){
                .table = TABLE, .row_id = id, .machine_id = "x", .stale_after_ms = 100000, .max_machines = 3 }),
            w->arena, &row, &lease, NULL),
        0);
    assert_true(tasks_reject(a->tasks, task.uuid, NULL, &e) < 0);
    assert_string_equal(row_now(a, id).locked_by, "x");
}

static void a_quarantined_task_is_replayed_for_every_machine(void **state)
{
    static const char *const one_machine[] = { "tasks.max_machines=1", NULL };
    struct world *w = *state;
    struct machine *m = machine_new(w, "lin-a", one_machine);
    const char *id = insert(m, "{}");
    struct task_row task;
    struct err e = { 0 };

    fake_fail(wait_run(w, 0), "no");
    task = wait_task(m, id, "failed");
    assert_true(task.is_quarantined);
    tasks_sweep_now(m->tasks);
    assert_int_equal(tasks_replay(m->tasks, task.uuid, NULL, NULL), 0);
    assert_int_equal(wait_run(w, 1)->attempt, 2);
    fake_succeed(&w->runs[1], "{}");
    task = wait_task(m, id, "completed");
    assert_false(task.is_quarantined);
    assert_null(task.error);
    assert_int_equal(tasks_replay(m->tasks, task.uuid, NULL, &e), -EALREADY);
    assert_string_equal(e.code, "TASK_NOT_FAILED");
}

static void triggered_without_auto_run_waits_for_a_person(void **state)
{
    struct world *w = *state;
    struct machine *m = machine_new(w, "lin-a", NULL);
    const struct task_trigger in = { .raw_data = "{}", .agent_name = "sorter" };
    struct task_ids ids, rejected;
    struct task_row task;

    assert_int_equal(tasks_trigger(m->tasks, &in, &ids, NULL), 0);
    assert_int_equal(tasks_trigger(m->tasks, &in, &rejected, NULL), 0);
    task = wait_task_uuid(m, ids.task_uuid, "pending");
    assert_string_equal(task.review, "waiting");
    assert_string_equal(task.title, "[Developer] New Activity");
    assert_int_equal(tasks_reject(m->tasks, rejected.task_uuid, NULL, NULL), 0);
    wait_task_uuid(m, rejected.task_uuid, "canceled");
    assert_int_equal(tasks_run_now(m->tasks, ids.task_uuid, NULL, NULL), 0);
    assert_string_equal(wait_run(w, 0)->task_uuid, ids.task_uuid);
    fake_succeed(&w->runs[0], "{}");
    wait_task_uuid(m, ids.task_uuid, "completed");
    assert_int_equal(world_n_runs(w), 1);
}

static void what_its_app_finishes_waits_for_no_person_any_more(void **state)
{
    static const struct {
        enum task_report what;
        const char *status;
    } cases[] = {
        { TASK_COMPLETED, "completed" },
        { TASK_FAILED, "failed" },
        { TASK_CANCELED, "canceled" },
        { TASK_STARTED, "processing" },
    };
    struct world *w = *state;
    struct machine *m = machine_new(w, "lin-a", NULL);
    const struct task_trigger in = { .raw_data = "{}", .agent_name = "sorter" };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        const char *status = NULL;
        struct task_ids ids;
        struct task_row task;

        assert_int_equal(tasks_trigger(m->tasks, &in, &ids, NULL), 0);
        assert_string_equal(wait_task_uuid(m, ids.task_uuid, "pending").review, "waiting");
        assert_int_equal(tasks_report(m->tasks,
                                      &(struct tasks_report_request){ .uuid = ids.task_uuid, .what = cases[i].what },
                                      &status, NULL),
                         0);
        assert_null(wait_task_uuid(m, ids.task_uuid, cases[i].status).review);
        if (strcmp(cases[i].status, "failed") != 0)
            continue;
        assert_int_equal(tasks_replay(m->tasks, ids.task_uuid, NULL, NULL), 0);
        task = wait_task_uuid(m, ids.task_uuid, "pending");
        assert_string_equal(task.review, "waiting");
        assert_string_equal(dispatch_of(m, &task), "review");
    }
    assert_int_equal(world_n_runs(w), 0);
}

static void without_a_service_a_person_still_decides(void **state)
{
    struct world *w = *state;
    struct machine *m = reviewing(w, "lin-a");
    const char *approved = insert(m, "{}"), *rejected = insert(m, "{}");
    struct task_row a = wait_task(m, approved, "pending"), r = wait_task(m, rejected, "pending");

    machine_stop(m);
    m->tasks = tasks_close(m->tasks);
    machine_open_tasks(m, false);
    assert_int_equal(tasks_start(m->tasks, NULL), 0);
    assert_int_equal(tasks_run_now(m->tasks, a.uuid, NULL, NULL), 0);
    assert_int_equal(tasks_reject(m->tasks, r.uuid, NULL, NULL), 0);
    assert_int_equal(tasks_replay(m->tasks, r.uuid, NULL, NULL), 0);
    assert_string_equal(wait_task(m, rejected, "pending").review, "waiting");
    tasks_sweep_now(m->tasks);
    assert_int_equal(world_n_runs(w), 0);
    m->tasks = tasks_close(m->tasks);
    machine_open_tasks(m, true);
    machine_start(m);
    assert_string_equal(wait_run(w, 0)->task_uuid, a.uuid);
    fake_succeed(&w->runs[0], "{}");
    wait_task(m, approved, "completed");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WORLD_TEST(a_row_for_review_waits_for_a_person_and_is_claimed_then),
        WORLD_TEST(without_a_handler_a_person_names_the_agent),
        WORLD_TEST(what_the_person_wrote_into_the_calendar_counts),
        WORLD_TEST(only_what_waits_for_a_person_is_run_by_one),
        WORLD_TEST(an_approved_task_waits_for_a_place_like_others),
        WORLD_TEST(a_rejected_row_is_nobodys_work_on_any_machine),
        WORLD_TEST(one_that_another_machine_runs_cannot_be_rejected),
        WORLD_TEST(a_quarantined_task_is_replayed_for_every_machine),
        WORLD_TEST(triggered_without_auto_run_waits_for_a_person),
        WORLD_TEST(what_its_app_finishes_waits_for_no_person_any_more),
        WORLD_TEST(without_a_service_a_person_still_decides),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
