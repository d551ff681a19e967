#include "tasks/private.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#define I BACKEND_INSERT
#define U BACKEND_UPDATE
#define D BACKEND_DELETE

static const char *const tables[] = { "orders", "notes" };
static const unsigned events[] = { I | U, I | U | D };
static const struct task_handler handlers[] = {
    { .table = "orders", .agent_name = "first", .events = I },
    { .table = "orders", .agent_name = "second", .events = I | U },
    { .table = "notes", .agent_name = "reviewed", .events = I, .is_review = true },
};

static struct task_listener listener(void)
{
    return (struct task_listener){ .app_id = "app",
                                   .app_name = "app",
                                   .tables = tables,
                                   .table_events = events,
                                   .n_tables = 2,
                                   .handlers = handlers,
                                   .n_handlers = 3,
                                   .max_concurrent = 1 };
}

static struct backend_row row_of(const char *table, enum backend_op event)
{
    return (struct backend_row){ .table = table,
                                 .id = "1",
                                 .app_id = "app",
                                 .raw_data = "{\"n\":5}",
                                 .status = "pending",
                                 .attempted_by = "[]",
                                 .event = event };
}

static void the_first_handler_of_table_and_event_is_chosen(void **state)
{
    static const struct {
        const char *table;
        enum backend_op event;
        const char *agent;
        bool is_review;
    } cases[] = {
        { "orders", I, "first", false },
        { "orders", U, "second", false },
        { "notes", I, "reviewed", true },
    };
    const struct task_listener l = listener();
    const struct task_listeners list = { &l, 1 };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct backend_row row = row_of(cases[i].table, cases[i].event);
        struct task_match m;

        assert_true(task_match(&list, &row, &m));
        assert_string_equal(m.handler->agent_name, cases[i].agent);
        assert_int_equal(m.is_review, cases[i].is_review);
        assert_int_equal(m.op, cases[i].event);
    }
}

static void what_nobody_asked_for_is_nobodys_work(void **state)
{
    const struct task_listener l = listener();
    const struct task_listeners list = { &l, 1 };
    struct backend_row unlisted = row_of("others", I), masked = row_of("orders", D), unhandled = row_of("notes", U),
                       foreign = row_of("orders", I);
    struct task_match m;

    foreign.app_id = "another";
    assert_false(task_match(&list, &unlisted, &m));
    assert_false(task_match(&list, &masked, &m));
    assert_false(task_match(&list, &unhandled, &m));
    assert_false(task_match(&list, &foreign, &m));
}

static void without_any_handler_a_person_decides(void **state)
{
    struct task_listener l = listener();
    const struct task_listeners list = { &l, 1 };
    struct backend_row row = row_of("orders", U);
    struct task_match m;

    l.n_handlers = 0;
    assert_true(task_match(&list, &row, &m));
    assert_null(m.handler);
    assert_true(m.is_review);
}

static void a_row_of_no_app_is_the_first_listeners_who_wants_it(void **state)
{
    struct task_listener both[2] = { listener(), listener() };
    const struct task_listeners list = { both, 2 };
    struct backend_row row = row_of("orders", I);
    struct task_match m;

    both[0].app_id = "other";
    both[0].n_tables = 0;
    row.app_id = NULL;
    assert_true(task_match(&list, &row, &m));
    assert_string_equal(m.listener->app_id, "app");
}

static void the_filter_decides(void **state)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct task_listener l = listener();
    const struct task_listeners list = { &l, 1 };
    struct backend_row row = row_of("orders", I);
    struct task_match m;

    assert_int_equal(filter_parse(a, "raw_data->>n=gt.4", &l.filter, NULL), 0);
    assert_true(task_match(&list, &row, &m));
    assert_int_equal(filter_parse(a, "raw_data->>n=gt.5", &l.filter, NULL), 0);
    assert_false(task_match(&list, &row, &m));
}

static void a_deletion_is_work_of_the_table_it_came_from(void **state)
{
    static const struct task_handler of_deletes[] = { { .table = "notes", .agent_name = "undertaker", .events = D } };
    struct task_listener l = listener();
    const struct task_listeners list = { &l, 1 };
    struct backend_row row = row_of("svc_deletions", D);
    struct task_match m;

    l.handlers = of_deletes;
    l.n_handlers = 1;
    row.source_table = "notes";
    assert_true(task_match(&list, &row, &m));
    assert_string_equal(m.handler->agent_name, "undertaker");
}

static void a_row_changed_before_its_claim_is_the_update_of_who_wants_no_insert(void **state)
{
    static const unsigned only_update[] = { U, U };
    struct task_listener l = listener();
    const struct task_listeners list = { &l, 1 };
    struct backend_row row = row_of("orders", I);
    struct task_match m;

    l.table_events = only_update;
    assert_false(task_match(&list, &row, &m));
    row.old_data = "{\"n\":4}";
    assert_true(task_match(&list, &row, &m));
    assert_int_equal(m.op, U);
    l.table_events = events;
    assert_true(task_match(&list, &row, &m));
    assert_int_equal(m.op, I);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_handler_of_table_and_event_is_chosen),
        cmocka_unit_test(what_nobody_asked_for_is_nobodys_work),
        cmocka_unit_test(without_any_handler_a_person_decides),
        cmocka_unit_test(a_row_of_no_app_is_the_first_listeners_who_wants_it),
        cmocka_unit_test(the_filter_decides),
        cmocka_unit_test(a_deletion_is_work_of_the_table_it_came_from),
        cmocka_unit_test(a_row_changed_before_its_claim_is_the_update_of_who_wants_no_insert),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
