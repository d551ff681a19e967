/* Calendar, deliveries, agents, workspaces and threads. */
#include "fixture.h"
#include "base/limits.h"
#include "store/tables/agents.h"
#include "store/tables/calendar.h"
#include "store/tables/deliveries.h"
#include "store/retention.h"
#include "store/tables/workspaces.h"

/* --- calendar --- */

static int add_event(struct sql_db *db, void *row, struct err *e)
{
    return store_calendar_add(db, row, e);
}

static int insert_event(struct fixture *x, const struct calendar_row *row)
{
    return store_write(x->store, add_event, (void *)(uintptr_t)row, &x->e);
}

static void events_are_listed_by_overlap(void **state)
{
    static const struct {
        const char *uuid, *start, *end;
    } events[] = {
        { "before", "2026-01-01T00:00:00.000Z", "2026-01-10T00:00:00.000Z" },
        { "into", "2026-01-09T00:00:00.000Z", "2026-01-11T00:00:00.000Z" },
        { "at", "2026-01-10T00:00:00.000Z", NULL },
        { "inside", "2026-01-15T00:00:00.000Z", "2026-01-16T00:00:00.000Z" },
        { "across", "2026-01-01T12:00:00.000Z", "2026-02-10T00:00:00.000Z" },
        { "at end", "2026-01-20T00:00:00.000Z", NULL },
        { "after", "2026-01-21T00:00:00.000Z", "2026-01-22T00:00:00.000Z" },
    };
    static const struct {
        const char *from, *to, *found;
    } cases[] = {
        { "2026-01-10T00:00:00.000Z", "2026-01-20T00:00:00.000Z", "across,into,at,inside," },
        { NULL, "2026-01-02T00:00:00.000Z", "before,across," },
        { "2026-01-20T00:00:00.000Z", NULL, "across,at end,after," },
        { NULL, NULL, "before,across,into,at,inside,at end,after," },
        { "2027-01-01T00:00:00.000Z", NULL, "" },
    };
    struct fixture x = fixture_open();
    struct calendar_row *list;
    size_t n;

    for (size_t i = 0; i < ARRAY_SIZE(events); i++)
        MUST(insert_event(
            &x, &(struct calendar_row){
                    .uuid = events[i].uuid, .title = "t", .start_date = events[i].start, .end_date = events[i].end }));
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        char found[200] = "";

        MUST(store_calendar_list(x.store, x.a,
                                 &(struct calendar_list_request){ .from = cases[i].from, .to = cases[i].to }, &list, &n,
                                 &x.e));
        for (size_t j = 0; j < n; j++)
            snprintf(found + strlen(found), sizeof(found) - strlen(found), "%s,", list[j].uuid);
        assert_string_equal(found, cases[i].found);
    }
    MUST(store_calendar_list(x.store, x.a,
                             &(struct calendar_list_request){ .from = "2026-01-10T00:00:00.000Z", .limit = 2 }, &list,
                             &n, &x.e));
    assert_int_equal(n, 2);
    assert_string_equal(list[0].uuid, "across");
    MUST(store_calendar_list(x.store, x.a, &(struct calendar_list_request){ .limit = 2 }, &list, &n, &x.e));
    assert_int_equal(n, 2);
    assert_string_equal(list[0].uuid, "at end");
    assert_string_equal(list[1].uuid, "after");
    fixture_close(&x);
}

static void an_event_is_edited_in_part(void **state)
{
    struct fixture x = fixture_open();
    struct calendar_row row = { .uuid = "1",
                                .title = "old",
                                .description = "d",
                                .start_date = "2026-01-01",
                                .color = "red" },
                        got;

    MUST(insert_event(&x, &row));
    MUST_FAIL(insert_event(&x, &row), -EEXIST, "ALREADY_EXISTS");
    MUST(store_calendar_update(x.store, &(struct calendar_change){ .uuid = "1", .title = "new", .all_day = -1 }, &x.e));
    MUST(store_calendar_get(x.store, x.a, "1", &got, &x.e));
    assert_string_equal(got.title, "new");
    assert_string_equal(got.description, "d");
    assert_string_equal(got.color, "red");
    assert_string_equal(got.reminders, "[]");
    assert_string_equal(got.metadata, "{}");
    assert_false(got.all_day);
    MUST(store_calendar_update(x.store, &(struct calendar_change){ .uuid = "1", .all_day = 1, .reminders = "[5]" },
                               &x.e));
    MUST(store_exec(x.store, &x.e, NULL, "UPDATE calendar SET metadata = '{\"dispatch_status\":\"say \\\"hi\\\"\"}'",
                    "")); /* like tasks */
    MUST(store_calendar_get(x.store, x.a, "1", &got, &x.e));
    assert_true(got.all_day);
    assert_string_equal(got.reminders, "[5]");
    assert_string_equal(got.metadata, "{\"dispatch_status\":\"say \\\"hi\\\"\"}");
    MUST(store_calendar_update(
        x.store,
        &(struct calendar_change){ .uuid = "1", .all_day = -1, .metadata = "{\"a\":1,\"dispatch_status\":\"old\"}" },
        &x.e));
    MUST(store_calendar_get(x.store, x.a, "1", &got, &x.e));
    assert_string_equal(got.metadata, "{\"a\":1,\"dispatch_status\":\"say \\\"hi\\\"\"}");
    MUST(store_calendar_delete(x.store, "1", &x.e));
    MUST_FAIL(store_calendar_delete(x.store, "1", &x.e), -ENOENT, "EVENT_NOT_FOUND");
    MUST_FAIL(store_calendar_update(x.store, &(struct calendar_change){ .uuid = "1", .all_day = -1 }, &x.e), -ENOENT,
              "EVENT_NOT_FOUND");
    fixture_close(&x);
}

static const char *metadata_after(struct fixture *x, const struct calendar_delivery *d)
{
    struct calendar_row got;

    assert_int_equal(store_calendar_note_delivery(x->store, d, &x->e), 0);
    assert_int_equal(store_calendar_get(x->store, x->a, "1", &got, &x->e), 0);
    return got.metadata;
}

static void an_end_that_the_app_has_not_accepted_is_in_the_metadata_until_it_is_delivered(void **state)
{
    struct fixture x = fixture_open();
    struct calendar_delivery d = { .table = "orders", .row_id = "7", .status = "dead", .error = "say \"no\"" };
    const struct calendar_change patch = { .uuid = "1", .all_day = -1, .metadata = "{\"a\":1}" };
    struct calendar_row got;

    MUST(insert_event(&x, &(struct calendar_row){ .uuid = "1", .title = "t", .start_date = "2026-01-01" }));
    MUST(store_exec(x.store, &x.e, NULL, "UPDATE calendar SET metadata = '{\"dispatch_status\":\"completed\"}'", ""));
    assert_string_equal(metadata_after(&x, &d), "{\"dispatch_status\":\"completed\"}");
    MUST(store_exec(x.store, &x.e, NULL,
                    "INSERT INTO tasks (uuid, title, status, action_type, auto_run, backend_table, row_id, "
                    "calendar_event_uuid, created_at, updated_at) "
                    "VALUES ('t', 't', 'completed', 'INSERT', 1, 'orders', '7', '1', '', '')",
                    ""));
    assert_string_equal(metadata_after(&x, &d), "{\"dispatch_status\":\"completed\",\"delivery_status\":\"dead\","
                                                "\"delivery_error\":\"say \\\"no\\\"\"}");
    MUST(store_calendar_update(x.store, &patch, &x.e));
    MUST(store_calendar_get(x.store, x.a, "1", &got, &x.e));
    assert_non_null(strstr(got.metadata, "\"delivery_status\":\"dead\""));
    d = (struct calendar_delivery){ .table = "orders", .row_id = "7" };
    assert_string_equal(metadata_after(&x, &d), "{\"a\":1,\"dispatch_status\":\"completed\"}");
    fixture_close(&x);
}

/* --- deliveries --- */

static void a_repeat_gets_the_first_answer(void **state)
{
    struct fixture x = fixture_open();
    struct delivery_row first, repeat;

    MUST(store_deliveries_claim(x.store, x.a, "s", "e", &first, &x.e));
    assert_int_equal(first.state, DELIVERY_MINE);
    MUST(store_deliveries_claim(x.store, x.a, "s", "e", &repeat, &x.e));
    assert_int_equal(repeat.state, DELIVERY_BUSY);
    MUST(store_deliveries_claim(x.store, x.a, "other", "e", &repeat, &x.e));
    assert_int_equal(repeat.state, DELIVERY_MINE);
    first.status = 201;
    first.answer = "{\"n\":1}";
    MUST(store_deliveries_answer(x.store, &first, &x.e));
    first.answer = "{\"n\":2}";
    MUST_FAIL(store_deliveries_answer(x.store, &first, &x.e), -ENOENT, "DELIVERY_NOT_FOUND");
    MUST(store_deliveries_release(x.store, "s", "e", &x.e)); /* too late: already answered */
    MUST(store_deliveries_claim(x.store, x.a, "s", "e", &repeat, &x.e));
    assert_int_equal(repeat.state, DELIVERY_ANSWERED);
    assert_int_equal(repeat.status, 201);
    assert_string_equal(repeat.answer, "{\"n\":1}");
    assert_string_equal(repeat.created_at, first.created_at);
    fixture_close(&x);
}

static void a_released_delivery_may_be_claimed_again(void **state)
{
    struct fixture x = fixture_open();
    struct delivery_row d;

    MUST(store_deliveries_claim(x.store, x.a, "s", "e", &d, &x.e));
    MUST(store_deliveries_release(x.store, "s", "e", &x.e));
    MUST(store_deliveries_claim(x.store, x.a, "s", "e", &d, &x.e));
    assert_int_equal(d.state, DELIVERY_MINE);
    MUST(store_deliveries_release_all(x.store, &x.e));
    MUST(store_deliveries_claim(x.store, x.a, "s", "e", &d, &x.e));
    assert_int_equal(d.state, DELIVERY_MINE);
    fixture_close(&x);
}

static void old_answers_are_forgotten_and_open_claims_are_not(void **state)
{
    struct fixture x = fixture_open();
    struct delivery_row d, open;
    int64_t n = -1;

    MUST(store_deliveries_claim(x.store, x.a, "s", "answered", &d, &x.e));
    MUST(store_deliveries_claim(x.store, x.a, "s", "open", &open, &x.e));
    d.answer = "{}";
    MUST(store_deliveries_answer(x.store, &d, &x.e));
    MUST(store_retention_trim(x.store, KEPT_DELIVERIES, clock_wall_ms() - 3600000, &n, &x.e));
    assert_int_equal(n, 0);
    MUST(store_retention_trim(x.store, KEPT_DELIVERIES, clock_wall_ms() + 3600000, &n, &x.e));
    assert_int_equal(n, 1);
    MUST(store_deliveries_claim(x.store, x.a, "s", "open", &open, &x.e));
    assert_int_equal(open.state, DELIVERY_BUSY);
    fixture_close(&x);
}

/* --- agents, workspaces, threads --- */

static void an_agent_is_kept_changed_and_removed(void **state)
{
    struct fixture x = fixture_open();
    struct agent_row row = { .name = "b", .display_name = "B", .kind = "process", .definition = "{}" }, got, *list;
    size_t n;

    MUST(store_agents_insert(x.store, &row, &x.e));
    MUST_FAIL(store_agents_insert(x.store, &row, &x.e), -EEXIST, "AGENT_EXISTS");
    row.definition = "{\"command\":\"x\"}";
    row.hub_id = "h";
    MUST(store_agents_update(x.store, &row, &x.e));
    MUST(store_agents_get(x.store, x.a, "b", &got, &x.e));
    assert_string_equal(got.definition, "{\"command\":\"x\"}");
    assert_string_equal(got.hub_id, "h");
    row.name = "a";
    MUST_FAIL(store_agents_update(x.store, &row, &x.e), -ENOENT, "AGENT_NOT_FOUND");
    MUST(store_agents_insert(x.store, &row, &x.e));
    MUST(store_agents_list(x.store, x.a, &list, &n, &x.e));
    assert_int_equal(n, 2);
    assert_string_equal(list[0].name, "a");
    MUST(store_agents_delete(x.store, "a", &x.e));
    MUST_FAIL(store_agents_delete(x.store, "a", &x.e), -ENOENT, "AGENT_NOT_FOUND");
    MUST_FAIL(store_agents_get(x.store, x.a, "a", &got, &x.e), -ENOENT, "AGENT_NOT_FOUND");
    fixture_close(&x);
}

static int fill_agents(struct sql_db *db, void *arg, struct err *e)
{
    return sql_exec(db, e,
                    "WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < ?) "
                    "INSERT INTO agents (name, display_name, kind, definition, created_at, updated_at) "
                    "SELECT 'x' || i, '', '', '', '', '' FROM n",
                    "i", (int64_t)(LIMIT_AGENTS - 1));
}

static void the_last_agent_below_the_limit_is_taken(void **state)
{
    struct fixture x = fixture_open();
    struct agent_row row = { .name = "b", .display_name = "B", .kind = "process", .definition = "{}" };

    MUST(store_write(x.store, fill_agents, NULL, &x.e));
    MUST(store_agents_insert(x.store, &row, &x.e));
    row.name = "c";
    MUST_FAIL(store_agents_insert(x.store, &row, &x.e), -E2BIG, "TOO_MANY_AGENTS");
    fixture_close(&x);
}

static void there_is_a_default_workspace_and_others_can_be_made(void **state)
{
    struct fixture x = fixture_open();
    struct workspace_row *list, got;
    struct thread_row *threads, thread;
    int64_t id = 0, thread_id = 0;
    size_t n;

    MUST(store_workspaces_list(x.store, x.a, &list, &n, &x.e));
    assert_int_equal(n, 1);
    assert_string_equal(list[0].slug, "default");
    assert_string_equal(list[0].type, "default");
    assert_int_equal(strlen(list[0].created_at), strlen("2026-01-01T00:00:00.000Z"));
    MUST(store_workspaces_insert(x.store, &(struct workspace_row){ .slug = "w", .name = "W" }, &id, &x.e));
    MUST_FAIL(store_workspaces_insert(x.store, &(struct workspace_row){ .slug = "w", .name = "W" }, NULL, &x.e),
              -EEXIST, "WORKSPACE_EXISTS");
    MUST(store_workspaces_get(x.store, x.a, "w", &got, &x.e));
    assert_int_equal(got.id, id);
    MUST_FAIL(store_workspaces_get(x.store, x.a, "z", &got, &x.e), -ENOENT, "WORKSPACE_NOT_FOUND");

    MUST(store_threads_insert(x.store, &(struct thread_row){ .workspace_id = id, .slug = "t", .name = "T" }, &thread_id,
                              &x.e));
    MUST(store_threads_insert(x.store, &(struct thread_row){ .workspace_id = list[0].id, .slug = "t", .name = "T" },
                              NULL, &x.e));
    MUST_FAIL(store_threads_insert(x.store, &(struct thread_row){ .workspace_id = id, .slug = "t", .name = "T" }, NULL,
                                   &x.e),
              -EEXIST, "THREAD_EXISTS");
    MUST_FAIL(store_threads_insert(x.store, &(struct thread_row){ .workspace_id = 99, .slug = "t", .name = "T" }, NULL,
                                   &x.e),
              -ENOENT, "WORKSPACE_NOT_FOUND");
    MUST(store_threads_list(x.store, x.a, &(struct threads_list_request){ .workspace_id = id }, &threads, &n, &x.e));
    assert_int_equal(n, 1);
    assert_int_equal(threads[0].id, thread_id);
    MUST(store_threads_get(x.store, x.a, id, "t", &thread, &x.e));
    assert_int_equal(thread.id, thread_id);
    MUST_FAIL(store_threads_get(x.store, x.a, id, "u", &thread, &x.e), -ENOENT, "THREAD_NOT_FOUND");
    fixture_close(&x);
}

static int fill_workspaces(struct sql_db *db, void *arg, struct err *e)
{
    return sql_exec(db, e,
                    "WITH RECURSIVE n(i) AS (VALUES (2) UNION ALL SELECT i + 1 FROM n WHERE i < ?) "
                    "INSERT INTO workspaces (slug, name, created_at) SELECT 'x' || i, '', '' FROM n",
                    "i", (int64_t)(LIMIT_WORKSPACES - 1));
}

static void the_last_workspace_below_the_limit_is_taken(void **state)
{
    struct fixture x = fixture_open();

    MUST(store_write(x.store, fill_workspaces, NULL, &x.e));
    MUST(store_workspaces_insert(x.store, &(struct workspace_row){ .slug = "w", .name = "W" }, NULL, &x.e));
    MUST_FAIL(store_workspaces_insert(x.store, &(struct workspace_row){ .slug = "z", .name = "Z" }, NULL, &x.e), -E2BIG,
              "TOO_MANY_WORKSPACES");
    fixture_close(&x);
}

static int fill_threads(struct sql_db *db, void *arg, struct err *e)
{
    return sql_exec(db, e,
                    "WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < ?) "
                    "INSERT INTO threads (workspace_id, slug, name, created_at) SELECT 1, 'x' || i, '', '' FROM n",
                    "i", (int64_t)(LIMIT_THREADS - 1));
}

static void the_last_thread_of_a_workspace_below_the_limit_is_taken(void **state)
{
    struct fixture x = fixture_open();
    int64_t other = 0;

    MUST(store_write(x.store, fill_threads, NULL, &x.e));
    MUST(
        store_threads_insert(x.store, &(struct thread_row){ .workspace_id = 1, .slug = "t", .name = "T" }, NULL, &x.e));
    MUST_FAIL(store_threads_insert(x.store, &(struct thread_row){ .workspace_id = 1, .slug = "u", .name = "U" }, NULL,
                                   &x.e),
              -E2BIG, "TOO_MANY_THREADS");
    MUST(store_workspaces_insert(x.store, &(struct workspace_row){ .slug = "w", .name = "W" }, &other, &x.e));
    MUST(store_threads_insert(x.store, &(struct thread_row){ .workspace_id = other, .slug = "u", .name = "U" }, NULL,
                              &x.e));
    fixture_close(&x);
}

/* --- lists of large rows --- */

static void a_list_that_would_take_all_memory_is_refused(void **state)
{
    enum { NAME_BYTES = 1 << 20, ROWS = LIMIT_LIST_BYTES / NAME_BYTES + 1 };
    const struct threads_list_request all = { .workspace_id = 1, .limit = LIMIT_LIST };
    struct threads_list_request fewer = all;
    struct fixture x = fixture_open();
    char *name = arena_alloc(x.a, NAME_BYTES + 1), slug[16];
    struct thread_row *list;
    size_t n = 0;

    memset(name, 'x', NAME_BYTES);
    for (size_t i = 0; i < ROWS; i++) {
        snprintf(slug, sizeof(slug), "t-%zu", i);
        MUST(store_threads_insert(x.store, &(struct thread_row){ .workspace_id = 1, .slug = slug, .name = name }, NULL,
                                  &x.e));
    }
    MUST_FAIL(store_threads_list(x.store, x.a, &all, &list, &n, &x.e), -E2BIG, "TOO_LARGE");
    fewer.limit = ROWS / 2;
    MUST(store_threads_list(x.store, x.a, &fewer, &list, &n, &x.e));
    assert_int_equal(n, ROWS / 2);
    fixture_close(&x);
}

static void large_events_are_cut_off_the_list(void **state)
{
    enum { EVENT_BYTES = 1 << 20, EVENTS = LIMIT_CALENDAR_BYTES / EVENT_BYTES + 4 };
    struct fixture x = fixture_open();
    char *text = arena_alloc(x.a, EVENT_BYTES + 1), uuid[16];
    struct calendar_row *list;
    size_t n = 0;

    memset(text, 'x', EVENT_BYTES);
    for (size_t i = 0; i < EVENTS; i++) {
        snprintf(uuid, sizeof(uuid), "e-%02zu", i);
        MUST(insert_event(
            &x, &(struct calendar_row){
                    .uuid = uuid, .title = "t", .start_date = "2026-01-01T00:00:00.000Z", .description = text }));
    }
    assert_int_equal(store_calendar_list(x.store, x.a, &(struct calendar_list_request){ .limit = 0 }, &list, &n, &x.e),
                     1);
    assert_in_range(n, LIMIT_CALENDAR_BYTES / EVENT_BYTES / 2, EVENTS - 3);
    assert_string_equal(list[0].uuid, "e-00");
    fixture_close(&x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(events_are_listed_by_overlap),
        cmocka_unit_test(an_event_is_edited_in_part),
        cmocka_unit_test(an_end_that_the_app_has_not_accepted_is_in_the_metadata_until_it_is_delivered),
        cmocka_unit_test(a_repeat_gets_the_first_answer),
        cmocka_unit_test(a_released_delivery_may_be_claimed_again),
        cmocka_unit_test(old_answers_are_forgotten_and_open_claims_are_not),
        cmocka_unit_test(an_agent_is_kept_changed_and_removed),
        cmocka_unit_test(the_last_agent_below_the_limit_is_taken),
        cmocka_unit_test(there_is_a_default_workspace_and_others_can_be_made),
        cmocka_unit_test(the_last_workspace_below_the_limit_is_taken),
        cmocka_unit_test(the_last_thread_of_a_workspace_below_the_limit_is_taken),
        cmocka_unit_test(a_list_that_would_take_all_memory_is_refused),
        cmocka_unit_test(large_events_are_cut_off_the_list),
    };

    return cmocka_run_group_tests_name("store_work", tests, NULL, NULL);
}
