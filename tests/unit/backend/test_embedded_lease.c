#include "rig.h"

/* Changes of the lease, and whether the lease is stale after each. A mark that is bound to locked_at counts; nothing
 * else changes the lease's age. */
static const struct {
    const char *set;
    bool is_stale;
} oddities[] = {
    { "status = 'claimed'", false },
    /* the wall clock stepped after the last heartbeat, by an hour ahead or back */
    { "locked_at = strftime('%Y-%m-%dT%H:%M:%fZ', 'now', '-1 hour')"
      ", lease_mark = substr(lease_mark, 1, 37) || strftime('%Y-%m-%dT%H:%M:%fZ', 'now', '-1 hour')",
      false },
    { "locked_at = strftime('%Y-%m-%dT%H:%M:%fZ', 'now', '+1 hour')"
      ", lease_mark = substr(lease_mark, 1, 37) || strftime('%Y-%m-%dT%H:%M:%fZ', 'now', '+1 hour')",
      false },
    /* the holder died before a step back */
    { "lease_ms = lease_ms - 301000, locked_at = strftime('%Y-%m-%dT%H:%M:%fZ', 'now', '+1 hour')"
      ", lease_mark = substr(lease_mark, 1, 37) || strftime('%Y-%m-%dT%H:%M:%fZ', 'now', '+1 hour')",
      true },
    { "lease_ms = lease_ms + 3600000", true },
    { "lease_ms = 'soon'", true },
    /* of another boot: only the wall clock counts */
    { "lease_mark = 'another-boot ' || locked_at", false },
    { "lease_mark = 'another-boot ' || locked_at, locked_at = strftime('%Y-%m-%dT%H:%M:%fZ', 'now', '-1 hour')", true },
    { "lease_mark = NULL, locked_at = strftime('%Y-%m-%dT%H:%M:%fZ', 'now', '+1 hour')", true },
    /* of a program that writes only locked_at, also in SQLite's own form */
    { "locked_at = strftime('%Y-%m-%dT%H:%M:%fZ', 'now', '-10 seconds')", false },
    { "locked_at = datetime('now')", false },
    { "locked_at = datetime('now', '-10 minutes')", true },
    { "locked_at = NULL", true },
    { "locked_at = ''", true },
    { "locked_at = 'garbage'", true },
    { "locked_at = 'now'", true },
    { "locked_at = '2460000.5'", true },
    { "locked_at = '2999-01-01T00:00:00.000Z'", true },
    { "locked_at = '2026-13-45'", true },
    { "locked_at = 7", true },
};

static void a_lease_is_judged_by_the_clock_of_the_boot_and_never_by_garbage(void **state)
{
    struct rig *rig = *state;

    for (size_t i = 0; i < ARRAY_SIZE(oddities); i++) {
        const char *id = rig_insert(rig);
        struct backend_rows rows;
        struct err e = { 0 };

        rig_claim(rig, id, "lin-a");
        rig_sql(rig, arena_printf(rig->arena, "UPDATE " TABLE " SET %s WHERE id = '%s'", oddities[i].set, id));
        must(OPS(rig)->recover_stale(rig->backend, TABLE, STALE_MS, rig->arena, &rows, &e), &e);
        if ((rows.n == 1) != oddities[i].is_stale)
            fail_msg("%s: %s stale", oddities[i].set, rows.n ? "is" : "is not");
        rig_sql(rig, "DELETE FROM " TABLE);
    }
}

static void a_stale_lease_of_garbage_time_is_claimable_too(void **state)
{
    struct rig *rig = *state;
    const char *id = rig_insert(rig);
    struct backend_lease lease;
    struct err e = { 0 };

    rig_claim(rig, id, "lin-a");
    assert_int_equal(rig_try_claim(rig, id, "lin-b", &lease, &e), -EBUSY);
    rig_sql(rig, arena_printf(rig->arena, "UPDATE " TABLE " SET locked_at = 'garbage' WHERE id = '%s'", id));
    must(rig_try_claim(rig, id, "lin-b", &lease, &e), &e);
    assert_int_equal(lease.attempt, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_lease_is_judged_by_the_clock_of_the_boot_and_never_by_garbage),
        TEST(a_stale_lease_of_garbage_time_is_claimable_too),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
