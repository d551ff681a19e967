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

int main(void)
{
    const struct CMUnitTest tests[] = {
        POSTGRES_TEST(a_row_that_the_server_cannot_print_ends_as_failed_with_the_reason),
        POSTGRES_TEST(a_stale_and_a_dirty_row_that_cannot_be_read_end_too),
        POSTGRES_TEST(a_row_that_is_held_stays),
        POSTGRES_TEST(a_row_at_the_limit_is_kept),
    };

    return postgres_run_tests(tests, ARRAY_SIZE(tests));
}
