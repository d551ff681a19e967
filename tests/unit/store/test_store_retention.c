/* What is removed because of its age, and what is never removed. */
#include "fixture.h"
#include "store/tables/audit.h"
#include "store/tables/calendar.h"
#include "store/meta.h"
#include "store/retention.h"
#include "store/tables/runs.h"
#include "store/tables/tasks.h"

#define OLD "2020-01-01T00:00:00.000Z"
#define BEFORE_MS INT64_C(1600000000000) /* 2020-09 */

static void run_sql(struct fixture *x, const char *sql)
{
    assert_int_equal(store_write(x->store, fixture_run_script, (void *)(uintptr_t)sql, &x->e), 0);
}

static int64_t count(struct fixture *x, const char *sql)
{
    AUTO(sql_rows_endp) struct sql_rows *rows = NULL;

    assert_int_equal(sql_query(store_reader(x->store), &rows, &x->e, sql, ""), 0);
    assert_true(sql_step(rows, &x->e) > 0);
    return sql_int(rows, 0);
}

static int64_t trim_all(struct fixture *x, enum kept what)
{
    int64_t n = -1, n_all = 0;

    while (n != 0) {
        assert_int_equal(store_retention_trim(x->store, what, BEFORE_MS, &n, &x->e), 0);
        n_all += n;
    }
    return n_all;
}

static void add_task(struct fixture *x, const char *uuid, const char *status, const char *completed_at,
                     bool is_quarantined)
{
    assert_int_equal(
        store_exec(
            x->store, &x->e, NULL,
            "INSERT INTO tasks (uuid, title, status, action_type, raw_data, result, auto_run, is_quarantined, created_at, updated_at, completed_at) "
            "VALUES (?, 't', ?, 'INSERT', '{}', '{\"a\":1}', 1, ?, '" OLD "', '" OLD "', ?)",
            "ssis", uuid, status, (int64_t)is_quarantined, completed_at),
        0);
    assert_int_equal(
        store_exec(
            x->store, &x->e, NULL,
            "INSERT INTO runs (task_uuid, status, attempt, completed_at, log) VALUES (?, 'completed', 1, ?, 'output')",
            "ss", uuid, completed_at),
        0);
}

static void add_four_tasks(struct fixture *x)
{
    add_task(x, "old", "completed", OLD, false);
    add_task(x, "old-quarantined", "failed", OLD, true);
    add_task(x, "young", "failed", "2026-01-01T00:00:00.000Z", false);
    add_task(x, "waiting", "pending", NULL, false);
}

static void old_finished_tasks_go_with_their_runs_and_others_stay(void **state)
{
    struct fixture x = fixture_open();

    add_four_tasks(&x);
    assert_int_equal(trim_all(&x, KEPT_TASKS), 1);
    assert_int_equal(count(&x, "SELECT count(*) FROM tasks WHERE uuid = 'old'"), 0);
    assert_int_equal(count(&x, "SELECT count(*) FROM runs WHERE task_uuid = 'old'"), 0);
    assert_int_equal(count(&x, "SELECT count(*) FROM tasks"), 3);
    assert_int_equal(count(&x, "SELECT count(*) FROM runs"), 3);
    fixture_close(&x);
}

static void many_go_few_at_a_time(void **state)
{
    static const int64_t wanted[] = { 100, 100, 50, 0 };
    struct fixture x = fixture_open();
    int64_t n = 0;

    run_sql(&x, "WITH RECURSIVE i(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM i WHERE n < 250) "
                "INSERT INTO tasks (uuid, title, status, action_type, auto_run, created_at, updated_at, completed_at) "
                "SELECT 'u' || n, 't', 'completed', 'INSERT', 1, '" OLD "', '" OLD "', '" OLD "' FROM i");
    for (size_t i = 0; i < ARRAY_SIZE(wanted); i++) {
        MUST(store_retention_trim(x.store, KEPT_TASKS, BEFORE_MS, &n, &x.e));
        assert_int_equal(n, wanted[i]);
    }
    assert_int_equal(count(&x, "SELECT count(*) FROM tasks"), 0);
    fixture_close(&x);
}

static void output_of_old_runs_goes_and_the_runs_stay(void **state)
{
    struct fixture x = fixture_open();

    add_four_tasks(&x);
    assert_int_equal(trim_all(&x, KEPT_RUN_LOGS), 2);
    assert_int_equal(count(&x, "SELECT count(*) FROM runs WHERE log IS NULL AND completed_at = '" OLD "'"), 2);
    assert_int_equal(count(&x, "SELECT count(*) FROM runs WHERE log = 'output'"), 2);
    fixture_close(&x);
}

static void past_events_of_finished_tasks_go_and_a_persons_own_stay(void **state)
{
    struct fixture x = fixture_open();

    add_four_tasks(&x);
    run_sql(
        &x,
        "INSERT INTO calendar (uuid, title, start_date, end_date, repeat, task_uuid, created_at, updated_at) VALUES "
        "('gone', 't', '" OLD "', NULL, NULL, 'old', '', ''), "
        "('gone-with-its-task', 't', '" OLD "', '" OLD "', NULL, 'no such task', '', ''), "
        "('of a person', 't', '" OLD "', NULL, NULL, NULL, '', ''), "
        "('repeats', 't', '" OLD "', NULL, 'weekly', 'old', '', ''), "
        "('lasts', 't', '" OLD "', '2030-01-01', NULL, 'old', '', ''), "
        "('quarantined', 't', '" OLD "', NULL, NULL, 'old-quarantined', '', ''), "
        "('waits', 't', '" OLD "', NULL, NULL, 'waiting', '', ''), "
        "('young', 't', '2026-01-01', NULL, NULL, 'young', '', '')");
    assert_int_equal(trim_all(&x, KEPT_EVENTS), 2);
    assert_int_equal(count(&x, "SELECT count(*) FROM calendar WHERE uuid LIKE 'gone%'"), 0);
    assert_int_equal(count(&x, "SELECT count(*) FROM calendar"), 6);
    fixture_close(&x);
}

static void old_turns_go_with_their_messages_and_running_ones_stay(void **state)
{
    struct fixture x = fixture_open();

    run_sql(&x, "INSERT INTO threads (id, workspace_id, slug, name, created_at) VALUES (1, 1, 't', 't', '" OLD "');"
                "INSERT INTO turns (id, uuid, thread_id, scope, who, agent_name, state, started_at, ended_at) VALUES "
                "(1, 'old', 1, 's', 'w', 'a', 'ended', '" OLD "', '" OLD "'), "
                "(2, 'runs', 1, 's', 'w', 'a', 'running', '" OLD "', NULL), "
                "(3, 'young', 1, 's', 'w', 'a', 'interrupted', '2026-01-01', '2026-01-01');"
                "INSERT INTO messages (turn_id, role, message, created_at) SELECT id, 'user', '{}', '' FROM turns");
    assert_int_equal(trim_all(&x, KEPT_TURNS), 1);
    assert_int_equal(count(&x, "SELECT count(*) FROM turns WHERE uuid <> 'old'"), 2);
    assert_int_equal(count(&x, "SELECT count(*) FROM messages"), 2);
    fixture_close(&x);
}

static void a_sum_reports_how_many_how_large_and_since_when(void **state)
{
    struct fixture x = fixture_open();
    struct kept_sum sum;

    for (enum kept what = 0; what < N_KEPT; what++) {
        MUST(store_retention_sum(x.store, what, &sum, &x.e));
        assert_int_equal(sum.n, 0);
        assert_int_equal(sum.bytes, 0);
        assert_string_equal(sum.oldest, "");
    }
    add_four_tasks(&x);
    MUST(store_retention_sum(x.store, KEPT_TASKS, &sum, &x.e));
    assert_int_equal(sum.n, 4);
    assert_int_equal(sum.bytes, 4 * (2 + 7));
    assert_string_equal(sum.oldest, OLD);
    MUST(store_retention_sum(x.store, KEPT_RUN_LOGS, &sum, &x.e));
    assert_int_equal(sum.n, 4);
    assert_int_equal(sum.bytes, 4 * 6);
    fixture_close(&x);
}

/* ---- the audit log ---- */

static void append(struct fixture *x, int n)
{
    for (int i = 0; i < n; i++)
        assert_int_equal(
            store_audit_append(x->store, &(struct audit_row){ .actor = "cli", .action = "act", .subject = "s" }, &x->e),
            0);
}

static struct audit_verdict verify(struct fixture *x)
{
    struct audit_verdict v = { .n_entries = -1, .bad_seq = -1 };

    assert_int_equal(store_audit_verify(x->store, &v, &x->e), 0);
    return v;
}

/* Everything written before is older. */
static int64_t next_moment(void)
{
    int64_t now = clock_wall_ms(), next = now;

    while (next <= now)
        next = clock_wall_ms();
    return next;
}

static int64_t trim_audit(struct fixture *x, int64_t before_ms)
{
    int64_t n = -1, n_all = 0;

    while (n != 0) {
        assert_int_equal(store_audit_trim(x->store, before_ms, &n, &x->e), 0);
        n_all += n;
    }
    return n_all;
}

static void the_chain_stays_checkable_when_its_beginning_is_removed(void **state)
{
    struct fixture x = fixture_open();
    struct audit_verdict v;
    struct audit_row *list;
    size_t n;

    append(&x, 1203);
    assert_int_equal(trim_audit(&x, 0), 0);
    assert_int_equal(trim_audit(&x, clock_wall_ms() + 60000), 1202); /* the newest stays */
    v = verify(&x);
    assert_int_equal(v.bad_seq, 0);
    assert_int_equal(v.n_entries, 1203);
    assert_int_equal(v.n_trimmed, 1202);
    MUST(store_audit_note_trim(x.store, &x.e));
    append(&x, 2);
    assert_int_equal(verify(&x).bad_seq, 0);
    MUST(store_audit_list(x.store, x.a, 0, 0, &list, &n, &x.e));
    assert_int_equal(n, 4);
    assert_int_equal(list[0].seq, 1206);
    assert_string_equal(list[2].action, "audit.trim");
    assert_non_null(strstr(list[2].detail, "\"until_seq\":1202"));
    assert_non_null(strstr(list[2].detail, list[3].prev_hash));
    fixture_close(&x);
}

/* Trims the first three of six entries; returns the moment after them. */
static int64_t trim_three_of_six(struct fixture *x)
{
    int64_t between;

    append(x, 3);
    between = next_moment();
    append(x, 3);
    assert_int_equal(trim_audit(x, between), 3);
    return between;
}

static void only_the_old_ones_at_the_beginning_are_removed(void **state)
{
    struct fixture x = fixture_open();
    int64_t between = trim_three_of_six(&x);

    assert_int_equal(verify(&x).n_trimmed, 3);
    assert_int_equal(trim_audit(&x, between), 0);
    fixture_close(&x);
}

static void entries_behind_the_base_cannot_be_deleted_and_tampering_shows(void **state)
{
    static const struct {
        const char *sql;
        int64_t bad_seq;
    } cases[] = {
        { "DROP TRIGGER audit_no_delete; DELETE FROM audit WHERE seq = 4", 4 },
        { "DROP TRIGGER audit_no_delete; DELETE FROM audit WHERE seq > 5", 6 },
        { "DROP TRIGGER audit_no_update; UPDATE audit SET actor = 'x' WHERE seq = 5", 5 },
        { "DELETE FROM meta WHERE key = '" META_AUDIT_BASE "'", 1 },
        { "UPDATE meta SET value = '3:' || substr(value, 4, 1) WHERE key = '" META_AUDIT_BASE "'", 4 },
        { "UPDATE meta SET value = '4' || substr(value, 2) WHERE key = '" META_AUDIT_BASE
          "'; DELETE FROM audit WHERE seq = 4",
          5 },
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct fixture x = fixture_open();

        (void)trim_three_of_six(&x);
        assert_int_equal(store_exec(x.store, &x.e, NULL, "DELETE FROM audit WHERE seq = 4", ""), -EPERM);
        run_sql(&x, cases[i].sql);
        if (verify(&x).bad_seq != cases[i].bad_seq)
            fail_msg("%s: bad_seq %d", cases[i].sql, (int)verify(&x).bad_seq);
        fixture_close(&x);
    }
}

static void what_was_tampered_with_is_not_removed(void **state)
{
    struct fixture x = fixture_open();
    int64_t n = -1;

    append(&x, 5);
    run_sql(&x, "DROP TRIGGER audit_no_update; UPDATE audit SET actor = 'x' WHERE seq = 2");
    MUST_FAIL(store_audit_trim(x.store, clock_wall_ms() + 60000, &n, &x.e), -EUCLEAN, "AUDIT_BROKEN");
    assert_non_null(strstr(x.e.text, "entry 2"));
    assert_int_equal(count(&x, "SELECT count(*) FROM audit"), 5);
    assert_int_equal(verify(&x).bad_seq, 2);
    fixture_close(&x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(old_finished_tasks_go_with_their_runs_and_others_stay),
        cmocka_unit_test(many_go_few_at_a_time),
        cmocka_unit_test(output_of_old_runs_goes_and_the_runs_stay),
        cmocka_unit_test(past_events_of_finished_tasks_go_and_a_persons_own_stay),
        cmocka_unit_test(old_turns_go_with_their_messages_and_running_ones_stay),
        cmocka_unit_test(a_sum_reports_how_many_how_large_and_since_when),
        cmocka_unit_test(the_chain_stays_checkable_when_its_beginning_is_removed),
        cmocka_unit_test(only_the_old_ones_at_the_beginning_are_removed),
        cmocka_unit_test(entries_behind_the_base_cannot_be_deleted_and_tampering_shows),
        cmocka_unit_test(what_was_tampered_with_is_not_removed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
