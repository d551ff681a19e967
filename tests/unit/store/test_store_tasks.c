/* Tasks, runs, and rows that are stored together with them. */
#include "fixture.h"
#include "base/limits.h"
#include "store/tables/tasks.h"

#include <pthread.h>

static const char uuid_1[] = "00000000-0000-4000-8000-000000000001", uuid_2[] = "00000000-0000-4000-8000-000000000002",
                  uuid_3[] = "00000000-0000-4000-8000-000000000003";

static struct task_row task_of(const char *uuid, const char *row_id)
{
    return (struct task_row){ .uuid = uuid,
                              .title = "t",
                              .action_type = "INSERT",
                              .source_app = "app",
                              .backend_table = row_id ? "public.t" : NULL,
                              .row_id = row_id,
                              .auto_run = true,
                              .raw_data = "{\"a\":1}",
                              .prompt = "do it" };
}

static void add(struct fixture *x, const struct task_row *task)
{
    char uuid[UUID_SIZE];
    bool is_new = false;

    if (store_tasks_add(x->store, &(struct task_bundle){ .task = task }, &is_new, uuid, &x->e) < 0)
        fail_msg("%s", x->e.text);
    assert_true(is_new);
    assert_string_equal(uuid, task->uuid);
}

static struct task_row get(struct fixture *x, const char *uuid)
{
    struct task_row row = { 0 };

    if (store_tasks_get(x->store, x->a, uuid, &row, &x->e) < 0)
        fail_msg("%s", x->e.text);
    return row;
}

static struct task_change change_of(const char *uuid, const char *status)
{
    return (
        struct task_change){ .uuid = uuid, .status = status, .attempt = -1, .retry_count = -1, .is_quarantined = -1 };
}

static bool apply(struct fixture *x, const struct task_step *step)
{
    bool has_changed = false;

    if (store_tasks_apply(x->store, step, &has_changed, &x->e) < 0)
        fail_msg("%s", x->e.text);
    return has_changed;
}

/* --- tasks --- */

static void a_task_comes_back_as_it_was_stored(void **state)
{
    struct fixture x = fixture_open();
    struct task_row row = task_of(uuid_1, "r1"), got;

    row.review = "waiting";
    row.old_data = "{}";
    row.attempted_by = "[\"m1\"]";
    row.attempt = 3;
    row.retry_count = 2;
    row.machine_id = "m2";
    row.thread_slug = "th";
    row.is_quarantined = true;
    add(&x, &row);
    got = get(&x, uuid_1);
    assert_string_equal(got.status, "pending");
    assert_string_equal(got.prompt, "do it");
    assert_string_equal(got.raw_data, "{\"a\":1}");
    assert_string_equal(got.old_data, "{}");
    assert_string_equal(got.review, "waiting");
    assert_string_equal(got.attempted_by, "[\"m1\"]");
    assert_string_equal(got.machine_id, "m2");
    assert_string_equal(got.thread_slug, "th");
    assert_int_equal(got.attempt, 3);
    assert_int_equal(got.retry_count, 2);
    assert_true(got.auto_run && got.is_quarantined);
    assert_string_equal(got.created_at, got.updated_at);
    assert_null(got.completed_at);
    assert_null(got.result);
    MUST(store_tasks_get_by_row(x.store, x.a, "public.t", "r1", &got, &x.e));
    assert_string_equal(got.uuid, uuid_1);
    MUST_FAIL(store_tasks_get(x.store, x.a, uuid_2, &got, &x.e), -ENOENT, "TASK_NOT_FOUND");
    MUST_FAIL(store_tasks_get_by_row(x.store, x.a, "public.t", "r2", &got, &x.e), -ENOENT, "TASK_NOT_FOUND");
    fixture_close(&x);
}

static void a_row_has_one_task_and_webhooks_as_many_as_they_like(void **state)
{
    struct fixture x = fixture_open();
    struct task_row first = task_of(uuid_1, "r1"), again = task_of(uuid_2, "r1"), hook = task_of(uuid_2, NULL);
    struct calendar_row event = { .uuid = uuid_3, .title = "t", .start_date = "2026-01-01" }, got;
    char uuid[UUID_SIZE];
    bool is_new = true;

    add(&x, &first);
    MUST(store_tasks_add(x.store, &(struct task_bundle){ .task = &again, .event = &event }, &is_new, uuid, &x.e));
    assert_false(is_new);
    assert_string_equal(uuid, uuid_1);
    assert_int_equal(store_calendar_get(x.store, x.a, uuid_3, &got, NULL),
                     -ENOENT); /* no part of the bundle was stored */
    add(&x, &hook);
    hook.uuid = uuid_3;
    add(&x, &hook);
    MUST_FAIL(store_tasks_add(x.store, &(struct task_bundle){ .task = &hook }, &is_new, uuid, &x.e), -EEXIST,
              "ALREADY_EXISTS");
    fixture_close(&x);
}

struct adder {
    struct store *s;
    char mine[UUID_SIZE], got[UUID_SIZE];
    bool is_new;
    int r;
    pthread_t thread;
};

static void *add_same_row(void *arg)
{
    struct adder *adder = arg;
    struct task_row row = task_of(adder->mine, "same");

    adder->r = store_tasks_add(adder->s, &(struct task_bundle){ .task = &row }, &adder->is_new, adder->got, NULL);
    return NULL;
}

static void of_many_who_add_the_same_row_one_is_new_and_all_agree(void **state)
{
    struct fixture x = fixture_open();
    struct adder adders[6] = { 0 };
    int n_new = 0;

    for (size_t i = 0; i < ARRAY_SIZE(adders); i++) {
        adders[i].s = x.store;
        uuid_v4(adders[i].mine);
        pthread_create(&adders[i].thread, NULL, add_same_row, &adders[i]);
    }
    for (size_t i = 0; i < ARRAY_SIZE(adders); i++) {
        pthread_join(adders[i].thread, NULL);
        assert_int_equal(adders[i].r, 0);
        n_new += adders[i].is_new;
    }
    assert_int_equal(n_new, 1);
    for (size_t i = 1; i < ARRAY_SIZE(adders); i++)
        assert_string_equal(adders[i].got, adders[0].got);
    fixture_close(&x);
}

static void a_bundle_is_stored_whole_or_not_at_all(void **state)
{
    struct fixture x = fixture_open();
    struct task_row task = task_of(uuid_1, NULL), got;
    struct calendar_row event = { .uuid = uuid_2, .title = "t", .start_date = "2026-01-01" }, stored;
    struct run_row run = { .agent_name = "a", .status = "nonsense" }, *runs;
    struct task_bundle bundle = { .task = &task, .run = &run, .event = &event };
    char uuid[UUID_SIZE];
    bool is_new;
    size_t n;

    assert_int_equal(store_tasks_add(x.store, &bundle, &is_new, uuid, &x.e), -EEXIST); /* CHECK of runs.status */
    assert_int_equal(store_tasks_get(x.store, x.a, uuid_1, &got, NULL), -ENOENT);
    run.status = NULL;
    MUST(store_tasks_add(x.store, &bundle, &is_new, uuid, &x.e));
    assert_string_equal(get(&x, uuid_1).calendar_event_uuid, uuid_2);
    MUST(store_calendar_get(x.store, x.a, uuid_2, &stored, &x.e));
    assert_string_equal(stored.task_uuid, uuid_1);
    MUST(store_runs_list(x.store, x.a, uuid_1, &runs, &n, &x.e));
    assert_int_equal(n, 1);
    assert_string_equal(runs[0].status, "pending");
    fixture_close(&x);
}

static void a_guard_that_does_not_hold_changes_nothing(void **state)
{
    struct fixture x = fixture_open();
    struct task_row row = task_of(uuid_1, "r1");
    struct run_row run = { .agent_name = "a" }, *runs;
    struct task_change wrong[4];
    size_t n;

    row.attempt = 2;
    row.status = "processing";
    add(&x, &row);
    for (size_t i = 0; i < 4; i++)
        wrong[i] = change_of(uuid_1, "completed");
    wrong[0].is_guarded = true;
    wrong[0].if_attempt = 1;
    wrong[1].if_status = "pending";
    wrong[2].uuid = uuid_2;
    wrong[3].is_guarded = true;
    wrong[3].if_attempt = 3;
    for (size_t i = 0; i < 4; i++)
        assert_false(
            apply(&x, &(struct task_step){ .change = wrong[i], .new_run = &run, .dispatch_status = "completed" }));
    assert_string_equal(get(&x, uuid_1).status, "processing");
    MUST(store_runs_list(x.store, x.a, uuid_1, &runs, &n, &x.e));
    assert_int_equal(n, 0);
    fixture_close(&x);
}

static void a_finished_task_is_finished_once(void **state)
{
    static const char *const ends[] = { "completed", "failed", "canceled" };

    for (size_t i = 0; i < ARRAY_SIZE(ends); i++) {
        struct fixture x = fixture_open();
        struct task_row row = task_of(uuid_1, "r1"), got;
        struct task_change end = change_of(uuid_1, ends[i]);

        add(&x, &row);
        end.if_unfinished = true;
        end.result = "{\"n\":1}";
        assert_true(apply(&x, &(struct task_step){ .change = end }));
        got = get(&x, uuid_1);
        assert_string_equal(got.status, ends[i]);
        assert_non_null(got.completed_at);
        end.status = "completed";
        end.result = "{\"n\":2}";
        assert_false(apply(&x, &(struct task_step){ .change = end }));
        assert_string_equal(get(&x, uuid_1).result, "{\"n\":1}");
        fixture_close(&x);
    }
}

static void a_new_attempt_clears_the_outcome_and_keeps_what_is_not_named(void **state)
{
    struct fixture x = fixture_open();
    struct task_row row = task_of(uuid_1, "r1"), got;
    struct task_change fail = change_of(uuid_1, "failed"), again = change_of(uuid_1, "claimed");

    add(&x, &row);
    fail.error = "it broke";
    fail.attempted_by = "[\"m1\"]";
    fail.retry_count = 1;
    fail.is_quarantined = 1;
    assert_true(apply(&x, &(struct task_step){ .change = fail }));
    got = get(&x, uuid_1);
    assert_string_equal(got.error, "it broke");
    assert_true(got.is_quarantined);
    again.clears_outcome = true;
    again.attempt = 1;
    again.machine_id = "m2";
    again.is_quarantined = 0;
    assert_true(apply(&x, &(struct task_step){ .change = again }));
    got = get(&x, uuid_1);
    assert_null(got.error);
    assert_null(got.completed_at);
    assert_false(got.is_quarantined);
    assert_int_equal(got.attempt, 1);
    assert_int_equal(got.retry_count, 1);
    assert_string_equal(got.attempted_by, "[\"m1\"]");
    assert_string_equal(got.machine_id, "m2");
    assert_string_equal(got.raw_data, "{\"a\":1}");
    fixture_close(&x);
}

static void a_step_changes_run_event_and_delivery_with_the_task(void **state)
{
    struct fixture x = fixture_open();
    struct task_row task = task_of(uuid_1, "r1");
    struct calendar_row event = { .uuid = uuid_2, .title = "t", .start_date = "2026-01-01", .metadata = "{\"a\":1}" };
    struct run_row run = { .agent_name = "a", .status = "running", .attempt = 1, .machine_id = "m" }, *runs;
    struct run_change done = { .status = "completed" };
    struct delivery_row delivery;
    char uuid[UUID_SIZE];
    bool is_new;
    size_t n;

    MUST(store_tasks_add(x.store, &(struct task_bundle){ .task = &task, .event = &event }, &is_new, uuid, &x.e));
    assert_true(apply(&x, &(struct task_step){ .change = change_of(uuid_1, "processing"),
                                               .new_run = &run,
                                               .ret_run_id = &done.id,
                                               .dispatch_status = "running" }));
    assert_true(done.id > 0);
    MUST(store_deliveries_claim(x.store, x.a, "s", "e", &delivery, &x.e));
    delivery.status = 200;
    delivery.answer = "{}";
    assert_true(apply(&x, &(struct task_step){ .change = change_of(uuid_1, "completed"),
                                               .run = &done,
                                               .dispatch_status = "done",
                                               .delivery = &delivery }));
    MUST(store_runs_list(x.store, x.a, uuid_1, &runs, &n, &x.e));
    assert_string_equal(runs[0].status, "completed");
    assert_non_null(runs[0].started_at);
    assert_non_null(runs[0].completed_at);
    MUST(store_calendar_get(x.store, x.a, uuid_2, &event, &x.e));
    assert_string_equal(event.metadata, "{\"a\":1,\"dispatch_status\":\"done\"}");
    MUST(store_deliveries_claim(x.store, x.a, "s", "e", &delivery, &x.e));
    assert_int_equal(delivery.state, DELIVERY_ANSWERED);
    MUST(store_calendar_delete(x.store, uuid_2, &x.e));
    assert_true(apply(&x, &(struct task_step){ .change = change_of(uuid_1, NULL), .dispatch_status = "gone" }));
    fixture_close(&x);
}

/* --- lists of tasks --- */

static void add_many(struct fixture *x, size_t n)
{
    static const char *const statuses[] = { "pending", "completed", "failed" };

    for (size_t i = 0; i < n; i++) {
        struct task_row row = task_of(NULL, NULL);
        char uuid[UUID_SIZE];

        uuid_v4(uuid);
        row.uuid = uuid;
        row.status = statuses[i % 3];
        row.source_app = i % 2 ? "odd" : "even";
        row.is_quarantined = i % 3 == 2;
        add(x, &row);
    }
}

static void a_list_is_newest_first_filtered_paged_and_without_large_columns(void **state)
{
    struct fixture x = fixture_open();
    struct task_row *list;
    size_t n;
    static const struct {
        struct task_filter filter;
        size_t n;
    } cases[] = {
        { { 0 }, LIMIT_LIST_DEFAULT },
        { { .limit = 1000000 }, 60 },
        { { .limit = 7 }, 7 },
        { { .limit = 7, .offset = 58 }, 2 },
        { { .offset = 100 }, 0 },
        { { .offset = -5, .limit = 3 }, 3 },
        { { .status = "failed" }, 20 },
        { { .status = "nonsense" }, 0 },
        { { .source_app = "odd", .status = "pending" }, 10 },
        { { .only_quarantined = true }, 20 },
    };

    add_many(&x, 60);
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        MUST(store_tasks_list(x.store, x.a, &cases[i].filter, &list, &n, &x.e));
        assert_int_equal(n, cases[i].n);
        for (size_t j = 1; j < n; j++)
            assert_true(list[j].seq < list[j - 1].seq);
        if (n > 0)
            assert_true(!list[0].raw_data && !list[0].prompt && !list[0].result && list[0].title);
    }
    fixture_close(&x);
}

static void counts_are_by_status(void **state)
{
    struct fixture x = fixture_open();
    struct task_count *counts;
    size_t n;

    MUST(store_tasks_counts(x.store, x.a, &counts, &n, &x.e));
    assert_int_equal(n, 0);
    add_many(&x, 10);
    MUST(store_tasks_counts(x.store, x.a, &counts, &n, &x.e));
    assert_int_equal(n, 3);
    assert_string_equal(counts[2].status, "pending");
    assert_int_equal(counts[2].n, 4);
    fixture_close(&x);
}

static void those_that_wait_come_in_order_and_only_if_they_may_run(void **state)
{
    static const struct {
        const char *row, *status, *review;
        bool auto_run, is_quarantined;
        bool waits;
    } cases[] = {
        { "a", "pending", NULL, true, false, true },        { "b", "pending", NULL, false, false, false },
        { "c", "pending", "waiting", true, false, false },  { "d", "pending", "approved", false, false, true },
        { "e", "pending", "rejected", true, false, false }, { "f", "claimed", NULL, true, false, false },
        { "g", "pending", NULL, true, true, false },        { "h", "pending", NULL, true, false, true },
    };
    struct fixture x = fixture_open();
    struct task_row *list;
    size_t n, at = 0;

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct task_row row = task_of(NULL, cases[i].row);
        char uuid[UUID_SIZE];

        uuid_v4(uuid);
        row.uuid = uuid;
        row.status = cases[i].status;
        row.review = cases[i].review;
        row.auto_run = cases[i].auto_run;
        row.is_quarantined = cases[i].is_quarantined;
        row.machine_id = "m";
        add(&x, &row);
    }
    MUST(store_tasks_waiting(x.store, x.a, "app", 0, &list, &n, &x.e));
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        if (cases[i].waits)
            assert_string_equal(list[at++].row_id, cases[i].row);
    assert_int_equal(n, at);
    MUST(store_tasks_waiting(x.store, x.a, "app", 1, &list, &n, &x.e));
    assert_int_equal(n, 1);
    MUST(store_tasks_waiting(x.store, x.a, "other", 0, &list, &n, &x.e));
    assert_int_equal(n, 0);
    fixture_close(&x);
}

/* --- runs --- */

struct insertion {
    const struct run_row *row;
    int64_t *ret_id;
};

static int add_run(struct sql_db *db, void *arg, struct err *e)
{
    const struct insertion *ins = arg;

    return store_runs_add(db, ins->row, ins->ret_id, e);
}

static int insert_run(struct fixture *x, const struct run_row *row, int64_t *ret_id)
{
    return store_write(x->store, add_run, &(struct insertion){ row, ret_id }, &x->e);
}

static void a_run_ends_once_and_keeps_the_end_of_its_log(void **state)
{
    struct fixture x = fixture_open();
    struct task_row task = task_of(uuid_1, NULL);
    struct run_row run = { .task_uuid = uuid_1, .agent_name = "a", .machine_id = "m" }, got;
    char *log = malloc(LIMIT_RUN_LOG_BYTES + 3);
    int64_t id = 0;

    add(&x, &task);
    MUST(insert_run(&x, &run, &id));
    MUST(store_runs_update(x.store, &(struct run_change){ .id = id, .status = "running", .pid = 42 }, &x.e));
    MUST(store_runs_get(x.store, x.a, id, &got, &x.e));
    assert_int_equal(got.pid, 42);
    assert_non_null(got.started_at);
    assert_null(got.completed_at);

    memset(log, 'x', LIMIT_RUN_LOG_BYTES + 2);
    log[LIMIT_RUN_LOG_BYTES + 2] = '\0';
    MUST(store_runs_update(x.store, &(struct run_change){ .id = id, .log = log + 2 }, &x.e));
    MUST(store_runs_get(x.store, x.a, id, &got, &x.e));
    assert_int_equal(strlen(got.log), LIMIT_RUN_LOG_BYTES);
    memcpy(log, "a\xc3\xa9", 3); /* the cut falls inside the second character */
    MUST(store_runs_update(x.store, &(struct run_change){ .id = id, .log = log, .status = "failed", .error = "first" },
                           &x.e));
    MUST(store_runs_get(x.store, x.a, id, &got, &x.e));
    assert_int_equal(strlen(got.log), LIMIT_RUN_LOG_BYTES - 1);
    assert_int_equal(got.log[0], 'x');
    MUST(store_runs_update(x.store, &(struct run_change){ .id = id, .status = "completed", .error = "second" }, &x.e));
    MUST(store_runs_get(x.store, x.a, id, &got, &x.e));
    assert_string_equal(got.status, "failed");
    assert_string_equal(got.error, "first");
    assert_int_equal(got.pid, 42);
    free(log);

    run.task_uuid = uuid_2;
    MUST_FAIL(insert_run(&x, &run, NULL), -ENOENT, "TASK_NOT_FOUND");
    MUST_FAIL(store_runs_update(x.store, &(struct run_change){ .id = 99 }, &x.e), -ENOENT, "RUN_NOT_FOUND");
    MUST_FAIL(store_runs_get(x.store, x.a, 99, &got, &x.e), -ENOENT, "RUN_NOT_FOUND");
    fixture_close(&x);
}

static void open_runs_of_this_machine_are_abandoned_at_start(void **state)
{
    static const struct {
        const char *machine, *status, *after;
    } cases[] = {
        { "m", "pending", "failed" },
        { "m", "running", "failed" },
        { "m", "completed", "completed" },
        { "o", "running", "running" },
    };
    struct fixture x = fixture_open();
    struct task_row task = task_of(uuid_1, NULL);
    struct run_row *runs;
    int64_t n_abandoned = 0;
    size_t n;

    add(&x, &task);
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        MUST(insert_run(
            &x, &(struct run_row){ .task_uuid = uuid_1, .machine_id = cases[i].machine, .status = cases[i].status },
            NULL));
    MUST(store_runs_abandon(x.store, "m", "The service ended.", &n_abandoned, &x.e));
    assert_int_equal(n_abandoned, 2);
    MUST(store_runs_list(x.store, x.a, uuid_1, &runs, &n, &x.e));
    assert_int_equal(n, ARRAY_SIZE(cases));
    for (size_t i = 0; i < n; i++)
        assert_string_equal(runs[i].status, cases[i].after);
    assert_string_equal(runs[0].error, "The service ended.");
    fixture_close(&x);
}

static void a_task_and_the_answer_to_its_delivery_are_one(void **state)
{
    struct fixture x = fixture_open();
    struct task_row task = task_of(uuid_1, NULL), got;
    struct delivery_row unclaimed = { .source = "s", .event_id = "e", .status = 200, .answer = "{}" }, mine;
    char uuid[UUID_SIZE];
    bool is_new;

    MUST_FAIL(store_tasks_add(x.store, &(struct task_bundle){ .task = &task, .delivery = &unclaimed }, &is_new, uuid,
                              &x.e),
              -ENOENT, "DELIVERY_NOT_FOUND");
    assert_int_equal(store_tasks_get(x.store, x.a, uuid_1, &got, NULL), -ENOENT);
    MUST(store_deliveries_claim(x.store, x.a, "s", "e", &mine, &x.e));
    MUST(store_tasks_add(x.store, &(struct task_bundle){ .task = &task, .delivery = &unclaimed }, &is_new, uuid, &x.e));
    MUST(store_deliveries_claim(x.store, x.a, "s", "e", &mine, &x.e));
    assert_int_equal(mine.state, DELIVERY_ANSWERED);
    fixture_close(&x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_task_comes_back_as_it_was_stored),
        cmocka_unit_test(a_row_has_one_task_and_webhooks_as_many_as_they_like),
        cmocka_unit_test(of_many_who_add_the_same_row_one_is_new_and_all_agree),
        cmocka_unit_test(a_bundle_is_stored_whole_or_not_at_all),
        cmocka_unit_test(a_guard_that_does_not_hold_changes_nothing),
        cmocka_unit_test(a_finished_task_is_finished_once),
        cmocka_unit_test(a_new_attempt_clears_the_outcome_and_keeps_what_is_not_named),
        cmocka_unit_test(a_step_changes_run_event_and_delivery_with_the_task),
        cmocka_unit_test(a_list_is_newest_first_filtered_paged_and_without_large_columns),
        cmocka_unit_test(counts_are_by_status),
        cmocka_unit_test(those_that_wait_come_in_order_and_only_if_they_may_run),
        cmocka_unit_test(a_run_ends_once_and_keeps_the_end_of_its_log),
        cmocka_unit_test(open_runs_of_this_machine_are_abandoned_at_start),
        cmocka_unit_test(a_task_and_the_answer_to_its_delivery_are_one),
    };

    return cmocka_run_group_tests_name("store_tasks", tests, NULL, NULL);
}
