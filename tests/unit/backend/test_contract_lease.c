#include "contract.h"
#include "../skip.h"

/* Architecture section 4 and the contract in backend.h, line by line. */

static void fail_by(struct rig *rig, const char *id, const char *machine_id)
{
    struct backend_lease lease = rig_claim(rig, id, machine_id);
    struct err e = { 0 };

    must(backend_fail(rig->backend, &lease, "no", &e), &e);
}

static void a_claim_locks_the_row_and_raises_the_attempt(void **state)
{
    struct rig *rig = *state;
    const char *id = rig_insert(rig);
    struct backend_lease lease = rig_claim(rig, id, "lin-a");
    struct backend_row row = rig_get(rig, id);

    assert_string_equal(row.status, "claimed");
    assert_string_equal(row.locked_by, "lin-a");
    assert_non_null(row.locked_at);
    assert_attempt(rig, row.attempt, 1);
    assert_attempt(rig, lease.attempt, 1);
    assert_string_equal(lease.row_id, id);
    assert_string_equal(lease.machine_id, "lin-a");
    assert_string_equal(lease.table, TABLE);
}

static void a_held_row_is_refused_and_names_its_holder(void **state)
{
    struct rig *rig = *state;
    const char *id = rig_insert(rig);
    struct backend_lease lease = rig_claim(rig, id, "lin-a"), other = { .attempt = -7 };
    struct err e;

    assert_int_equal(rig_try_claim(rig, id, "lin-b", &other, &e), -EBUSY);
    assert_string_equal(e.code, "ALREADY_LOCKED");
    assert_int_equal(e.n_extras, 1);
    assert_string_equal(e.extras[0].key, "locked_by");
    assert_string_equal(e.extras[0].value, "lin-a");
    assert_int_equal(other.attempt, -7); /* untouched */
    assert_int_equal(rig_try_claim(rig, id, "lin-a", &other, &e), -EBUSY);
    must(backend_heartbeat(rig->backend, &lease, &e), &e);
}

static void a_missing_row_and_a_missing_table_cannot_be_claimed(void **state)
{
    struct rig *rig = *state;
    struct backend_claim claim = { "nowhere", "x", "lin-a", STALE_MS, 3 };
    struct backend_lease lease;
    struct backend_row row;
    struct err e;

    assert_int_equal(rig_try_claim(rig, "6f9619ff-8b86-4d01-b42d-00c04fc964ff", "lin-a", &lease, &e), -ENOENT);
    assert_string_equal(e.code, "NOT_FOUND");
    assert_int_equal(backend_claim(rig->backend, &claim, rig->arena, &row, &lease, &e), -ENOENT);
    assert_string_equal(e.code, "UNKNOWN_TABLE");
}

static void a_stale_lease_is_taken_over_and_its_holder_is_fenced_off(void **state)
{
    struct rig *rig = *state;
    const char *id = rig_insert(rig);
    struct backend_lease old = rig_claim(rig, id, "lin-a"), lease;
    struct err e = { 0 };

    rig_make_stale(rig, id);
    lease = rig_claim(rig, id, "lin-b");
    assert_attempt(rig, lease.attempt, 2);
    assert_int_equal(backend_heartbeat(rig->backend, &old, &e), -ESTALE);
    assert_string_equal(e.code, "LEASE_LOST");
    assert_int_equal(backend_complete(rig->backend, &old, "{\"late\":true}", &e), -ESTALE);
    assert_int_equal(backend_fail(rig->backend, &old, "late", &e), -ESTALE);
    assert_int_equal(backend_release(rig->backend, &old, &e), -ESTALE);
    must(backend_complete(rig->backend, &lease, "{\"late\":false}", &e), &e);
    assert_string_equal(rig_get(rig, id).result, "{\"late\":false}");
    assert_int_equal(backend_complete(rig->backend, &old, "{\"late\":true}", &e), -ESTALE);
    assert_string_equal(rig_get(rig, id).result, "{\"late\":false}");
}

static void the_same_machine_is_fenced_by_the_attempt_alone(void **state)
{
    struct rig *rig = *state;
    const char *id = rig_insert(rig);
    struct backend_lease old = rig_claim(rig, id, "lin-a"), lease;
    struct err e = { 0 };

    rig_make_stale(rig, id);
    lease = rig_claim(rig, id, "lin-a");
    assert_int_equal(backend_complete(rig->backend, &old, NULL, &e), -ESTALE);
    assert_int_equal(backend_fail(rig->backend, &old, "x", &e), -ESTALE);
    assert_int_equal(backend_heartbeat(rig->backend, &old, &e), -ESTALE);
    must(backend_heartbeat(rig->backend, &lease, &e), &e);
}

/* The weaker promise of a table without attempts: an old run of the same machine passes after its later claim, those of
 * other machines do not, and an end is not told twice. */
static void without_attempts_the_same_machine_is_fenced_by_its_claims_time(void **state)
{
    struct rig *rig = *state;
    const char *id = rig_insert(rig), *other = rig_insert(rig);
    struct backend_lease old = rig_claim(rig, id, "lin-a"), lost = rig_claim(rig, other, "lin-a"), lease;
    struct err e = { 0 };

    if (rig_counts_attempts(rig))
        SKIP_TEST("the attempt is the fence");
    rig_make_stale(rig, id);
    assert_int_equal(backend_complete(rig->backend, &old, "{}", &e), -ESTALE);
    lease = rig_claim(rig, id, "lin-a");
    must(backend_complete(rig->backend, &old, "{\"of\":\"old\"}", &e), &e);
    assert_int_equal(backend_complete(rig->backend, &lease, "{\"of\":\"new\"}", &e), -ESTALE);
    assert_string_equal(rig_get(rig, id).result, "{\"of\":\"old\"}");
    rig_make_stale(rig, other);
    lease = rig_claim(rig, other, "lin-b");
    assert_int_equal(backend_complete(rig->backend, &lost, "{}", &e), -ESTALE);
    must(backend_heartbeat(rig->backend, &lease, &e), &e);
    must(backend_complete(rig->backend, &lease, "{}", &e), &e);
}

static void a_heartbeat_keeps_a_lease_from_going_stale(void **state)
{
    struct rig *rig = *state;
    const char *id = rig_insert(rig);
    struct backend_lease lease = rig_claim(rig, id, "lin-a"), other;
    struct err e = { 0 };

    rig_make_stale(rig, id);
    must(backend_heartbeat(rig->backend, &lease, &e), &e);
    assert_int_equal(rig_try_claim(rig, id, "lin-b", &other, &e), -EBUSY);
}

static void complete_stores_the_result_and_clears_the_lock(void **state)
{
    struct rig *rig = *state;
    const char *id = rig_insert(rig);
    struct backend_lease lease = rig_claim(rig, id, "lin-a"), other;
    struct backend_row row;
    struct err e = { 0 };

    must(backend_complete(rig->backend, &lease, "{\"ok\":1}", &e), &e);
    row = rig_get(rig, id);
    assert_string_equal(row.status, "completed");
    assert_string_equal(row.result, "{\"ok\":1}");
    assert_non_null(row.completed_at);
    assert_null(row.locked_by);
    assert_null(row.locked_at);
    assert_int_equal(rig_try_claim(rig, id, "lin-b", &other, &e), -EBUSY);
    assert_string_equal(e.code, "NOT_CLAIMABLE");
}

static void repeating_complete_is_a_success_that_changes_nothing(void **state)
{
    struct rig *rig = *state;
    const char *id = rig_insert(rig);
    struct backend_lease lease = rig_claim(rig, id, "lin-a"), foreign = lease;
    struct err e = { 0 };

    must(backend_complete(rig->backend, &lease, "{\"first\":true}", &e), &e);
    must(backend_complete(rig->backend, &lease, "{\"first\":false}", &e), &e);
    assert_string_equal(rig_get(rig, id).result, "{\"first\":true}");
    foreign.machine_id = "lin-b";
    assert_int_equal(backend_complete(rig->backend, &foreign, NULL, &e), -ESTALE);
    assert_int_equal(backend_fail(rig->backend, &lease, "changed my mind", &e), -ESTALE);
    assert_int_equal(backend_heartbeat(rig->backend, &lease, &e), -ESTALE);
    assert_int_equal(backend_release(rig->backend, &lease, &e), -ESTALE);
}

static void fail_counts_names_the_machine_and_frees_the_row(void **state)
{
    struct rig *rig = *state;
    const char *id = rig_insert(rig);
    struct backend_lease lease = rig_claim(rig, id, "lin-\"a\"");
    struct backend_row row;
    struct err e = { 0 };

    must(backend_fail(rig->backend, &lease, "it broke", &e), &e);
    must(backend_fail(rig->backend, &lease, "it broke again", &e), &e);
    row = rig_get(rig, id);
    assert_string_equal(row.status, "failed");
    assert_string_equal(row.error_message, "it broke");
    assert_string_equal(row.attempted_by, "[\"lin-\\\"a\\\"\"]");
    assert_int_equal(row.retry_count, 1);
    assert_null(row.locked_by);
    assert_int_equal(backend_complete(rig->backend, &lease, NULL, &e), -ESTALE);
}

static void a_machine_that_failed_does_not_claim_again_and_another_does(void **state)
{
    struct rig *rig = *state;
    const char *id = rig_insert(rig);
    struct backend_lease lease;
    struct err e;

    fail_by(rig, id, "lin-a");
    assert_int_equal(rig_try_claim(rig, id, "lin-a", &lease, &e), -EPERM);
    assert_string_equal(e.code, "ALREADY_ATTEMPTED");
    lease = rig_claim(rig, id, "lin-b");
    assert_attempt(rig, lease.attempt, 2);
    must(backend_complete(rig->backend, &lease, NULL, &e), &e);
    assert_null(rig_get(rig, id).error_message);
}

static void three_failed_machines_quarantine_a_row_until_it_is_replayed(void **state)
{
    struct rig *rig = *state;
    const char *id = rig_insert(rig);
    struct backend_lease lease;
    struct backend_row row;
    struct err e;

    fail_by(rig, id, "lin-a");
    fail_by(rig, id, "lin-b");
    fail_by(rig, id, "lin-c");
    assert_int_equal(rig_try_claim(rig, id, "lin-d", &lease, &e), -EDQUOT);
    assert_string_equal(e.code, "QUARANTINED");
    assert_int_equal(rig_try_claim(rig, id, "lin-a", &lease, &e), -EDQUOT);
    must(OPS(rig)->replay(rig->backend, TABLE, id, &e), &e);
    row = rig_get(rig, id);
    assert_string_equal(row.status, "pending");
    assert_string_equal(row.attempted_by, "[]");
    assert_int_equal(row.retry_count, 0);
    assert_attempt(rig, rig_claim(rig, id, "lin-a").attempt, 4);
}

static void a_held_row_is_not_replayed(void **state)
{
    struct rig *rig = *state;
    const char *id = rig_insert(rig);
    struct err e = { 0 };

    rig_claim(rig, id, "lin-a");
    assert_int_equal(OPS(rig)->replay(rig->backend, TABLE, id, &e), -EBUSY);
    assert_int_equal(OPS(rig)->replay(rig->backend, TABLE, "none", &e), -ENOENT);
}

static void release_gives_the_row_back_as_if_it_had_not_been_tried(void **state)
{
    struct rig *rig = *state;
    const char *id = rig_insert(rig);
    struct backend_lease lease = rig_claim(rig, id, "lin-a");
    struct backend_row row;
    struct err e = { 0 };

    must(backend_release(rig->backend, &lease, &e), &e);
    row = rig_get(rig, id);
    assert_string_equal(row.status, "pending");
    assert_null(row.locked_by);
    assert_string_equal(row.attempted_by, "[]");
    assert_int_equal(backend_complete(rig->backend, &lease, NULL, &e), -ESTALE);
    assert_attempt(rig, rig_claim(rig, id, "lin-a").attempt, 2);
}

static void release_machine_frees_its_rows_and_nobody_elses(void **state)
{
    struct rig *rig = *state;
    const char *a1 = rig_insert(rig), *a2 = rig_insert(rig), *b1 = rig_insert(rig);
    struct err e = { 0 };
    size_t n = 99;

    rig_claim(rig, a1, "lin-a");
    rig_claim(rig, a2, "lin-a");
    rig_claim(rig, b1, "lin-b");
    must(OPS(rig)->release_machine(rig->backend, TABLE, "lin-a", &n, &e), &e);
    assert_int_equal(n, 2);
    assert_string_equal(rig_get(rig, a1).status, "pending");
    assert_string_equal(rig_get(rig, a2).status, "pending");
    assert_string_equal(rig_get(rig, b1).locked_by, "lin-b");
}

static void recovery_frees_stale_leases_only_and_reports_which(void **state)
{
    struct rig *rig = *state;
    const char *stale = rig_insert(rig), *fresh = rig_insert(rig), *idle = rig_insert(rig);
    struct backend_rows rows = { 0 };
    struct err e = { 0 };

    rig_claim(rig, stale, "lin-a");
    rig_claim(rig, fresh, "lin-a");
    rig_make_stale(rig, stale);
    must(OPS(rig)->recover_stale(rig->backend, TABLE, STALE_MS, rig->arena, &rows, &e), &e);
    assert_int_equal(rows.n, 1);
    assert_string_equal(rows.items[0].id, stale);
    assert_string_equal(rows.items[0].status, "pending");
    assert_null(rows.items[0].locked_by);
    assert_null(rows.items[0].locked_at);
    assert_string_equal(rig_get(rig, fresh).status, "claimed");
    assert_string_equal(rig_get(rig, idle).status, "pending");
    must(OPS(rig)->recover_stale(rig->backend, TABLE, STALE_MS, rig->arena, &rows, &e), &e);
    assert_int_equal(rows.n, 0);
}

static void a_lease_of_the_future_or_of_no_time_is_stale(void **state)
{
    static const char *const times[] = { "2999-01-01T00:00:00.000Z", NULL };
    struct rig *rig = *state;

    for (size_t i = 0; i < ARRAY_SIZE(times); i++) {
        const char *id = rig_insert(rig);
        struct backend_rows rows = { 0 };
        struct err e = { 0 };

        rig_claim(rig, id, "lin-a");
        rig_set(rig, id, "locked_at", times[i]);
        must(OPS(rig)->recover_stale(rig->backend, TABLE, STALE_MS, rig->arena, &rows, &e), &e);
        assert_int_equal(rows.n, 1);
        assert_string_equal(rows.items[0].id, id);
        rig_remove(rig, id);
    }
}

static void new_data_makes_a_finished_row_dirty_and_rearm_sets_it_to_work(void **state)
{
    struct rig *rig = *state;
    const char *id = rig_insert(rig);
    struct backend_lease lease = rig_claim(rig, id, "lin-a");
    struct backend_row row;
    struct err e = { 0 };

    must(backend_complete(rig->backend, &lease, NULL, &e), &e);
    assert_false(rig_get(rig, id).is_dirty);
    assert_int_equal(OPS(rig)->rearm(rig->backend, TABLE, id, &e), -ESTALE);
    rig_patch(rig, id, &(struct backend_patch){ .raw_data = "{\"n\":2}" });
    row = rig_get(rig, id);
    assert_true(row.is_dirty);
    assert_string_equal(row.old_data, "{\"n\":1}");
    assert_int_equal(rig_try_claim(rig, id, "lin-b", &lease, &e), -EBUSY); /* not before rearm */
    must(OPS(rig)->rearm(rig->backend, TABLE, id, &e), &e);
    row = rig_get(rig, id);
    assert_string_equal(row.status, "pending");
    assert_int_equal(row.event, BACKEND_UPDATE);
    assert_false(row.is_dirty);
    lease = rig_claim(rig, id, "lin-a");
    must(backend_complete(rig->backend, &lease, NULL, &e), &e);
    assert_int_equal(OPS(rig)->rearm(rig->backend, TABLE, id, &e), -ESTALE);
    assert_int_equal(OPS(rig)->rearm(rig->backend, TABLE, "none", &e), -ENOENT);
}

static void data_that_changes_under_a_holder_leaves_the_row_dirty_after_it(void **state)
{
    struct rig *rig = *state;
    const char *id = rig_insert(rig);
    struct backend_lease lease;
    struct err e = { 0 };

    fail_by(rig, id, "lin-a");
    lease = rig_claim(rig, id, "lin-b");
    rig_patch(rig, id, &(struct backend_patch){ .raw_data = "{\"n\":2}" });
    assert_string_equal(rig_get(rig, id).locked_by, "lin-b");
    assert_int_equal(OPS(rig)->rearm(rig->backend, TABLE, id, &e), -ESTALE); /* it is being worked on */
    must(backend_complete(rig->backend, &lease, NULL, &e), &e);
    assert_true(rig_get(rig, id).is_dirty);
    must(OPS(rig)->rearm(rig->backend, TABLE, id, &e), &e);
    rig_claim(rig, id, "lin-a"); /* for every machine again */
}

static void data_that_changes_before_the_claim_is_taken_up_by_it(void **state)
{
    struct rig *rig = *state;
    const char *id = rig_insert(rig);
    struct backend_lease lease;
    struct err e = { 0 };

    rig_patch(rig, id, &(struct backend_patch){ .raw_data = "{\"n\":2}" });
    assert_false(rig_get(rig, id).is_dirty);
    lease = rig_claim(rig, id, "lin-a");
    must(backend_complete(rig->backend, &lease, NULL, &e), &e);
    assert_false(rig_get(rig, id).is_dirty);
}

static void claimable_lists_what_this_machine_could_claim_oldest_of_the_newest_first(void **state)
{
    struct rig *rig = *state;
    const char *ids[7];
    struct backend_claim as = { .machine_id = "lin-a", .stale_after_ms = STALE_MS, .max_machines = 2 };
    struct backend_rows rows = { 0 };
    struct backend_lease lease;
    struct err e = { 0 };

    for (size_t i = 0; i < ARRAY_SIZE(ids); i++) {
        ids[i] = rig_insert(rig);
        rig_set(rig, ids[i], "created_at", arena_printf(rig->arena, "2026-01-01T00:00:0%zu.000Z", i));
    }
    fail_by(rig, ids[1], "lin-a"); /* not by this machine again */
    fail_by(rig, ids[2], "lin-b"); /* yes */
    fail_by(rig, ids[3], "lin-b"); /* quarantined */
    fail_by(rig, ids[3], "lin-c");
    rig_claim(rig, ids[4], "lin-b"); /* held */
    rig_claim(rig, ids[5], "lin-b"); /* stale: yes */
    rig_make_stale(rig, ids[5]);
    lease = rig_claim(rig, ids[6], "lin-b"); /* completed and dirty: yes */
    must(backend_complete(rig->backend, &lease, NULL, &e), &e);
    rig_patch(rig, ids[6], &(struct backend_patch){ .raw_data = "{\"n\":2}" });

    must(OPS(rig)->claimable(rig->backend, TABLE, &as, NULL, 10, rig->arena, &rows, &e), &e);
    assert_int_equal(rows.n, 4);
    assert_string_equal(rows.items[0].id, ids[0]);
    assert_string_equal(rows.items[1].id, ids[2]);
    assert_string_equal(rows.items[2].id, ids[5]);
    assert_string_equal(rows.items[3].id, ids[6]);
    assert_true(rows.items[3].is_dirty);
    must(OPS(rig)->claimable(rig->backend, TABLE, &as, NULL, 2, rig->arena, &rows, &e), &e);
    assert_int_equal(rows.n, 2);
    assert_string_equal(rows.items[0].id, ids[5]);
    assert_string_equal(rows.items[1].id, ids[6]);
}

static struct backend_rows claimable_before(struct rig *rig, const struct backend_row *row, int64_t limit)
{
    const struct backend_claim as = { .machine_id = "lin-a", .stale_after_ms = STALE_MS, .max_machines = 2 };
    const struct backend_position before = { row->created_at, row->id };
    struct backend_rows rows = { 0 };
    struct err e = { 0 };

    must(OPS(rig)->claimable(rig->backend, TABLE, &as, &before, limit, rig->arena, &rows, &e), &e);
    return rows;
}

/* Four rows of one time: only their order of insertion tells them apart. */
static void claimable_goes_on_before_a_place(void **state)
{
    struct rig *rig = *state;
    struct backend_row rows[5], last;
    struct backend_rows older;

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        const char *id = rig_insert(rig);

        rig_set(rig, id, "created_at", i ? "2026-01-01T00:00:01.000Z" : "2026-01-01T00:00:00.000Z");
        rows[i] = rig_get(rig, id);
    }
    last = rows[3];
    older = claimable_before(rig, &last, 2);
    assert_int_equal(older.n, 2);
    assert_string_equal(older.items[0].id, rows[1].id);
    assert_string_equal(older.items[1].id, rows[2].id);
    older = claimable_before(rig, &older.items[0], 2);
    assert_int_equal(older.n, 1);
    assert_string_equal(older.items[0].id, rows[0].id);
    assert_int_equal(claimable_before(rig, &rows[0], 2).n, 0);
    last.id = "gone"; /* no row of that time is skipped */
    assert_int_equal(claimable_before(rig, &last, 10).n, 5);
}

static void a_status_from_outside_ends_the_lease(void **state)
{
    struct rig *rig = *state;
    const char *id = rig_insert(rig);
    struct backend_lease lease = rig_claim(rig, id, "lin-a");
    struct err e = { 0 };

    rig_patch(rig, id, &(struct backend_patch){ .status = "processing" });
    must(backend_heartbeat(rig->backend, &lease, &e), &e);
    rig_patch(rig, id, &(struct backend_patch){ .status = "completed", .result = "{\"by\":\"app\"}" });
    assert_int_equal(backend_complete(rig->backend, &lease, "{\"by\":\"agent\"}", &e), -ESTALE);
    assert_string_equal(rig_get(rig, id).result, "{\"by\":\"app\"}");
    assert_non_null(rig_get(rig, id).completed_at);
    assert_null(rig_get(rig, id).locked_by);
}

static void pending_from_outside_frees_the_row_for_every_machine(void **state)
{
    struct rig *rig = *state;
    const char *id = rig_insert(rig);
    struct backend_row row;

    fail_by(rig, id, "lin-a");
    rig_patch(rig, id, &(struct backend_patch){ .status = "pending" });
    row = rig_get(rig, id);
    assert_string_equal(row.attempted_by, "[]");
    assert_int_equal(row.retry_count, 0);
    assert_null(row.error_message);
    rig_claim(rig, id, "lin-a");
}

static void a_deleted_row_has_no_lease_any_more(void **state)
{
    struct rig *rig = *state;
    const char *id = rig_insert(rig);
    struct backend_lease lease = rig_claim(rig, id, "lin-a");
    struct err e = { 0 };

    must(OPS(rig)->remove(rig->backend, TABLE, id, NULL, &e), &e);
    assert_int_equal(backend_heartbeat(rig->backend, &lease, &e), -ESTALE);
    assert_int_equal(backend_complete(rig->backend, &lease, NULL, &e), -ESTALE);
}

static void a_result_that_is_no_json_is_refused_and_the_lease_lives_on(void **state)
{
    struct rig *rig = *state;
    const char *id = rig_insert(rig);
    struct backend_lease lease = rig_claim(rig, id, "lin-a");
    struct err e = { 0 };

    assert_int_equal(backend_complete(rig->backend, &lease, "{\"n\":", &e), -EINVAL);
    assert_string_equal(e.code, "VALIDATION_ERROR");
    must(backend_complete(rig->backend, &lease, "[1,\"two\"]", &e), &e);
    assert_string_equal(rig_get(rig, id).result, "[1,\"two\"]");
}

static void a_result_and_a_message_are_bounded(void **state)
{
    struct rig *rig = *state;
    const char *id = rig_insert(rig), *other = rig_insert(rig);
    struct backend_lease lease = rig_claim(rig, id, "lin-a");
    char *text = arena_alloc(rig->arena, LIMIT_RESULT_BYTES + 2);
    struct err e = { 0 };

    memset(text, '1', LIMIT_RESULT_BYTES + 1);
    text[0] = text[LIMIT_RESULT_BYTES] = '"';
    assert_int_equal(backend_complete(rig->backend, &lease, text, &e), -E2BIG);
    text[LIMIT_RESULT_BYTES - 1] = '"';
    text[LIMIT_RESULT_BYTES] = '\0';
    must(backend_complete(rig->backend, &lease, text, &e), &e);
    lease = rig_claim(rig, other, "lin-a");
    must(backend_fail(rig->backend, &lease, text, &e), &e);
    assert_int_equal(strlen(rig_get(rig, other).error_message), LIMIT_STRING_DEFAULT);
}

enum { N_BEATS = 130 };

static void many_leases_are_renewed_at_once_and_the_lost_ones_told(void **state)
{
    struct rig *rig = *state;
    struct backend_lease leases[N_BEATS];
    int results[N_BEATS];
    struct err e = { 0 };

    for (int i = 0; i < N_BEATS; i++)
        leases[i] = rig_claim(rig, rig_insert(rig), "lin-a");
    must(backend_complete(rig->backend, &leases[70], "{}", &e), &e);
    leases[3].attempt = 2;
    leases[129].row_id = "6f9619ff-8b86-4d01-b42d-00c04fc964ff";
    for (int i = 0; i < N_BEATS; i++)
        rig_set(rig, leases[i].row_id, "error_message", "untouched");
    must(backend_heartbeats(rig->backend, leases, N_BEATS, results, &e), &e);
    for (int i = 0; i < N_BEATS; i++)
        assert_int_equal(results[i], i == 70 || i == 3 || i == 129 ? -ESTALE : 0);
    must(backend_heartbeats(rig->backend, leases, 0, results, &e), &e);
    leases[1].table = "nowhere";
    must(backend_heartbeats(rig->backend, leases, 3, results, &e), &e);
    assert_int_equal(results[0], 0);
    assert_int_equal(results[1], -ENOENT);
    assert_int_equal(results[2], 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(many_leases_are_renewed_at_once_and_the_lost_ones_told),
        TEST(a_claim_locks_the_row_and_raises_the_attempt),
        TEST(a_held_row_is_refused_and_names_its_holder),
        TEST(a_missing_row_and_a_missing_table_cannot_be_claimed),
        TEST(a_stale_lease_is_taken_over_and_its_holder_is_fenced_off),
        TEST(the_same_machine_is_fenced_by_the_attempt_alone),
        TEST(without_attempts_the_same_machine_is_fenced_by_its_claims_time),
        TEST(a_heartbeat_keeps_a_lease_from_going_stale),
        TEST(complete_stores_the_result_and_clears_the_lock),
        TEST(repeating_complete_is_a_success_that_changes_nothing),
        TEST(fail_counts_names_the_machine_and_frees_the_row),
        TEST(a_machine_that_failed_does_not_claim_again_and_another_does),
        TEST(three_failed_machines_quarantine_a_row_until_it_is_replayed),
        TEST(a_held_row_is_not_replayed),
        TEST(release_gives_the_row_back_as_if_it_had_not_been_tried),
        TEST(release_machine_frees_its_rows_and_nobody_elses),
        TEST(recovery_frees_stale_leases_only_and_reports_which),
        TEST(a_lease_of_the_future_or_of_no_time_is_stale),
        TEST(new_data_makes_a_finished_row_dirty_and_rearm_sets_it_to_work),
        TEST(data_that_changes_under_a_holder_leaves_the_row_dirty_after_it),
        TEST(data_that_changes_before_the_claim_is_taken_up_by_it),
        TEST(claimable_lists_what_this_machine_could_claim_oldest_of_the_newest_first),
        TEST(claimable_goes_on_before_a_place),
        TEST(a_status_from_outside_ends_the_lease),
        TEST(pending_from_outside_frees_the_row_for_every_machine),
        TEST(a_deleted_row_has_no_lease_any_more),
        TEST(a_result_that_is_no_json_is_refused_and_the_lease_lives_on),
        TEST(a_result_and_a_message_are_bounded),
    };

    return contract_run(tests, ARRAY_SIZE(tests));
}
