/* Rows that the server cannot print, or this service not read, are no work any more. */
#include "rig_postgres.h"

#include "base/limits.h"

static size_t n_claimable(struct rig *rig)
{
    const struct backend_claim as = { .machine_id = "lin-a", .stale_after_ms = STALE_MS, .max_machines = 3 };
    struct backend_rows rows = { 0 };
    struct err e = { 0 };

    must(OPS(rig)->claimable(rig->backend, TABLE, &as, NULL, 100, rig->arena, &rows, &e), &e);
    return rows.n;
}

/* 10,000 numbers of 131,072 digits, 40 KB as they are stored. */
static void make_unprintable(struct rig *rig, const char *id, const char *and)
{
    rig_sql(rig, arena_printf(rig->arena,
                              "UPDATE svc_activities SET old_data = (SELECT jsonb_agg('1e131071'::jsonb)"
                              " FROM generate_series(1, 10000))%s WHERE id = '%s'",
                              and, id));
}

static const char *column_of(struct rig *rig, const char *id, const char *column)
{
    return rig_value(rig, arena_printf(rig->arena, "SELECT %s FROM svc_activities WHERE id = '%s'", column, id));
}

static void a_row_that_the_server_cannot_print_ends_as_failed_with_the_reason(void **state)
{
    struct rig *rig = *state;
    const char *id = rig_insert(rig);

    rig_insert(rig);
    make_unprintable(rig, id, "");
    assert_int_equal(n_claimable(rig), 1);
    assert_string_equal(column_of(rig, id, "status"), "failed");
    assert_string_equal(column_of(rig, id, "attempted_by"), "{-,-,-}");
    assert_non_null(strstr(column_of(rig, id, "error_message"), "too large to be read"));
    assert_int_equal(n_claimable(rig), 1);
}

static void a_stale_and_a_dirty_row_that_cannot_be_read_end_too(void **state)
{
    struct rig *rig = *state;
    const char *stale = rig_insert(rig), *dirty = rig_insert(rig);

    rig_insert(rig);
    make_unprintable(rig, stale, ", status = 'claimed', locked_by = 'm', locked_at = now() - interval '1 hour'");
    make_unprintable(rig, dirty, ", status = 'completed', revision = 5");
    assert_int_equal(n_claimable(rig), 1);
    assert_string_equal(column_of(rig, stale, "locked_by IS NULL"), "t");
    assert_string_equal(column_of(rig, dirty, "handled_revision"), "5");
}

/* Somebody works on it. */
static void a_row_that_is_held_stays(void **state)
{
    struct rig *rig = *state;
    const char *id = rig_insert(rig);

    rig_claim(rig, id, "lin-b");
    make_unprintable(rig, id, "");
    rig_insert(rig);
    assert_int_equal(n_claimable(rig), 1);
    assert_string_equal(column_of(rig, id, "status"), "claimed");
}

static void fill(struct rig *rig, const char *id, size_t n)
{
    rig_sql(rig, arena_printf(rig->arena,
                              "UPDATE svc_activities SET locked_by = repeat('x', %zu - octet_length(concat(app_id,"
                              " status, event_type, source_table)) - octet_length(attempted_by::text)) WHERE id = '%s'",
                              n, id));
}

/* All that is neither raw_data, result nor error_message. */
static void a_row_at_the_limit_is_kept(void **state)
{
    struct rig *rig = *state;
    const char *at = rig_insert(rig), *above = rig_insert(rig), *id = rig_insert(rig);

    fill(rig, at, LIMIT_BACKEND_REST_BYTES);
    fill(rig, above, LIMIT_BACKEND_REST_BYTES + 1);
    assert_int_equal(n_claimable(rig), 3); /* each can be read, so nobody asks */
    make_unprintable(rig, id, "");
    assert_int_equal(n_claimable(rig), 1);
    assert_string_equal(column_of(rig, at, "status"), "pending");
    assert_string_equal(column_of(rig, above, "status"), "failed");
}

static struct backend_rows listed(struct rig *rig)
{
    struct backend_rows rows = { 0 };
    struct err e = { 0 };

    must(OPS(rig)->list(rig->backend, &(struct backend_query){ .table = TABLE }, rig->arena, &rows, &e), &e);
    return rows;
}

static const struct backend_row *row_in(const struct backend_rows *rows, const char *id)
{
    for (size_t i = 0; i < rows->n; i++)
        if (strcmp(rows->items[i].id, id) == 0)
            return &rows->items[i];
    fail_msg("%s is not in the list", id);
    return NULL;
}

static void assert_shown_without_old_data(const struct backend_rows *rows, const char *id)
{
    const struct backend_row *row = row_in(rows, id);

    assert_null(row->old_data);
    assert_non_null(row->raw_data);
    assert_non_null(strstr(row->error_message, "too large to be read"));
}

static void a_list_shows_a_row_that_cannot_be_printed_without_what_is_too_large(void **state)
{
    struct rig *rig = *state;
    const char *first = rig_insert(rig), *good = rig_insert(rig);
    struct backend_rows rows;

    rig_sql(rig, arena_printf(rig->arena, "UPDATE svc_activities SET old_data = '{\"n\": 1}' WHERE id = '%s'", good));
    make_unprintable(rig, first, "");
    rows = listed(rig);
    assert_int_equal(rows.n, 2);
    assert_string_equal(rows.items[1].id, first);
    assert_shown_without_old_data(&rows, first);
    assert_string_equal(row_in(&rows, good)->old_data, "{\"n\":1}");
    assert_null(row_in(&rows, good)->error_message);
}

/* As it is sent, not only as it is printed. */
static void a_list_shows_a_row_with_more_bytes_than_a_row_may_have(void **state)
{
    struct rig *rig = *state;
    const char *id = rig_insert(rig);
    struct backend_rows rows;

    rig_insert(rig);
    fill(rig, id, LIMIT_BACKEND_ROW_BYTES);
    rows = listed(rig);
    assert_int_equal(rows.n, 2);
    assert_shown_without_old_data(&rows, id);
    assert_int_equal(strlen(row_in(&rows, id)->locked_by), 100);
}

/* A view in the place of the table: each statement on it is counted and refused. */
static void make_refusing(struct rig *rig)
{
    rig_sql(rig, "CREATE SEQUENCE n_statements; CREATE FUNCTION refuse() RETURNS boolean LANGUAGE plpgsql AS $$"
                 " BEGIN PERFORM nextval('n_statements'); RAISE EXCEPTION 'not today'; END $$;"
                 " ALTER TABLE svc_activities RENAME TO kept;"
                 " CREATE VIEW svc_activities AS SELECT * FROM kept WHERE refuse()");
}

static void nobody_looks_for_large_rows_after_another_failure(void **state)
{
    const struct backend_claim as = { .machine_id = "lin-a", .stale_after_ms = STALE_MS, .max_machines = 3 };
    struct rig *rig = *state;
    struct backend_rows rows = { 0 };
    struct err e = { 0 };

    rig_insert(rig);
    make_refusing(rig);
    assert_int_equal(OPS(rig)->claimable(rig->backend, TABLE, &as, NULL, 100, rig->arena, &rows, &e), -EIO);
    assert_non_null(strstr(e.text, "not today"));
    assert_string_equal(rig_value(rig, "SELECT last_value FROM n_statements"), "1");
    assert_int_equal(OPS(rig)->list(rig->backend, &(struct backend_query){ .table = TABLE }, rig->arena, &rows, &e),
                     -EIO);
    assert_string_equal(rig_value(rig, "SELECT last_value FROM n_statements"), "2");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        POSTGRES_TEST(a_row_that_the_server_cannot_print_ends_as_failed_with_the_reason),
        POSTGRES_TEST(a_stale_and_a_dirty_row_that_cannot_be_read_end_too),
        POSTGRES_TEST(a_row_that_is_held_stays),
        POSTGRES_TEST(a_row_at_the_limit_is_kept),
        POSTGRES_TEST(a_list_shows_a_row_that_cannot_be_printed_without_what_is_too_large),
        POSTGRES_TEST(a_list_shows_a_row_with_more_bytes_than_a_row_may_have),
        POSTGRES_TEST(nobody_looks_for_large_rows_after_another_failure),
    };

    return postgres_run_tests(tests, ARRAY_SIZE(tests));
}
