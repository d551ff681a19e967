/* Deletions in a project whose table of deletions is there, is missing, or is not known yet. */
#include "hosted_script.h"
#include "base/json.h"

#define TABLE "svc_activities"
#define NO_TABLE "{\"code\":\"PGRST205\",\"message\":\"Could not find the table\"}"

/* A deleted row as the embedded backend keeps it: SQLite has no booleans. */
#define KEPT_ROW                                                                                                       \
    "{\"id\":\"" ID "\",\"raw_data\":{\"a\":1},\"status\":\"pending\",\"attempted_by\":[],\"retry_count\":0,"          \
    "\"created_at\":\"2026-11-20T09:30:18.112Z\",\"is_dirty\":0}"

struct heard_events {
    int n_deletions, n_with_work;
};

static void hear_event(void *arg, const struct backend_event *event)
{
    struct heard_events *all = arg;

    if (event->op == BACKEND_DELETE && strcmp(event->old_row->id, ID) == 0 && strcmp(event->table, TABLE) == 0)
        all->n_deletions++;
    all->n_with_work += event->work && strcmp(event->work->id, OTHER) == 0;
}

static void hear_gap(void *arg)
{
    fail_msg("a gap");
}

static struct json_value record_of(struct arena *a, const char *text)
{
    struct json_value v = { 0 };
    struct err e = { 0 };

    if (json_parse(a, slice_of(text), &v, &e) < 0)
        fail_msg("%s", e.text);
    return v;
}

/* A row is deleted: its table says so, and the table of deletions has a new row. */
static struct heard_events delete_row(struct project *p, const char *kept_row)
{
    struct heard_events all = { 0 };
    const struct hosted_change deletion = { .op = BACKEND_DELETE,
                                            .table = TABLE,
                                            .old_record = record_of(p->arena, ROW(ID)) };
    const struct hosted_change tombstone = {
        .op = BACKEND_INSERT,
        .table = "svc_deletions",
        .record = record_of(p->arena, arena_printf(p->arena,
                                                   "{\"id\":\"" OTHER "\",\"raw_data\":{},\"status\":\"pending\","
                                                   "\"event_type\":\"DELETE\",\"source_table\":\"" TABLE
                                                   "\",\"created_at\":\"2026-11-20T09:30:18Z\",\"old_data\":%s}",
                                                   kept_row))
    };
    struct err e = { 0 };

    assert_int_equal(p->backend->ops->subscribe(p->backend, hear_event, hear_gap, &all, &e), 0);
    hosted_events_take(hosted_of(p->backend), &deletion);
    if (atomic_load(&hosted_of(p->backend)->has_deletions) != HOSTED_DELETIONS_MISSING)
        hosted_events_take(hosted_of(p->backend), &tombstone);
    p->backend->ops->unsubscribe(p->backend, &all);
    return all;
}

static void check_deletion(const char *body, int status, int state, int n_deletions, int n_with_work)
{
    const char *const bodies[] = { TABLE_THERE, body };
    const int statuses[] = { 200, status };
    struct heard_events all;
    struct project p;

    open_patient_project(&p, bodies, statuses, 2);
    hosted_events_settle(hosted_of(p.backend));
    assert_int_equal(atomic_load(&hosted_of(p.backend)->has_deletions), state);
    all = delete_row(&p, ROW(ID));
    assert_int_equal(all.n_deletions, n_deletions);
    assert_int_equal(all.n_with_work, n_with_work);
    close_project(&p);
}

static void a_deletion_is_told_by_the_row_that_it_leaves(void **state)
{
    check_deletion("[]", 200, HOSTED_DELETIONS_THERE, 1, 1);
}

static void without_the_table_of_deletions_it_is_told_without_work(void **state)
{
    check_deletion(NO_TABLE, 404, HOSTED_DELETIONS_MISSING, 1, 0);
}

static void a_deleted_row_that_sqlite_has_kept_is_read(void **state)
{
    static const char *const bodies[] = { TABLE_THERE, "[]" };
    static const int statuses[] = { 200, 200 };
    struct heard_events all;
    struct project p;

    open_patient_project(&p, bodies, statuses, 2);
    hosted_events_settle(hosted_of(p.backend));
    all = delete_row(&p, KEPT_ROW);
    assert_int_equal(all.n_with_work, 1);
    close_project(&p);
}

/* Both are told: the one may be the only one that comes. */
static void while_the_table_of_deletions_is_unknown_no_deletion_is_lost(void **state)
{
    check_deletion("{}", 503, HOSTED_DELETIONS_UNKNOWN, 2, 1);
}

static void a_project_that_was_away_is_asked_again_until_it_answers(void **state)
{
    static const char *const bodies[] = { TABLE_THERE, "{}", "[]" };
    static const int statuses[] = { 200, 503, 200 };
    struct project p;
    struct hosted *h;
    int n;

    open_patient_project(&p, bodies, statuses, 3);
    h = hosted_of(p.backend);
    while (atomic_load(&h->has_deletions) == HOSTED_DELETIONS_UNKNOWN)
        hosted_events_settle(h);
    assert_int_equal(atomic_load(&h->has_deletions), HOSTED_DELETIONS_THERE);
    n = atomic_load(&p.script.n);
    hosted_events_settle(h);
    assert_int_equal(atomic_load(&p.script.n), n);
    close_project(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_deletion_is_told_by_the_row_that_it_leaves),
        cmocka_unit_test(a_deleted_row_that_sqlite_has_kept_is_read),
        cmocka_unit_test(without_the_table_of_deletions_it_is_told_without_work),
        cmocka_unit_test(while_the_table_of_deletions_is_unknown_no_deletion_is_lost),
        cmocka_unit_test(a_project_that_was_away_is_asked_again_until_it_answers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
