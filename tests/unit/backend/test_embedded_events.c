#include "rig.h"
#include "recorder.h"
#include <spawn.h>
#include <sys/wait.h>

extern char **environ;

/* Debian's sqlite3 program: another process, independent of this one. */
static void shell(struct rig *rig, const char *sql)
{
    struct arena *a = rig->arena;
    char *argv[] = { arena_strdup(a, "sqlite3"),
                     arena_strdup(a, "-cmd"),
                     arena_strdup(a, ".timeout 10000"),
                     arena_strdup(a, rig_folder(rig)->file),
                     arena_strdup(a, sql),
                     NULL };
    int status;
    pid_t pid;

    assert_int_equal(posix_spawnp(&pid, "sqlite3", NULL, NULL, argv, environ), 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

static void another_program_s_writes_are_reported_too(void **state)
{
    struct rig *rig = *state;
    struct recorder *rec = recorder_start(rig->backend);
    const struct recorded *ev;

    shell(rig, "INSERT INTO " TABLE " (raw_data) VALUES ('{\"from\":\"shell\"}')");
    ev = recorder_wait(rec, 1);
    assert_int_equal(ev[0].op, BACKEND_INSERT);
    assert_string_equal(ev[0].new_raw, "{\"from\":\"shell\"}");
    assert_string_equal(rig_get(rig, ev[0].id).status, "pending");
    assert_null(rig_get(rig, ev[0].id).app_id);

    shell(rig, "UPDATE " TABLE " SET raw_data = '{\"from\":\"again\"}'");
    ev = recorder_wait(rec, 2);
    assert_int_equal(ev[1].op, BACKEND_UPDATE);
    assert_string_equal(ev[1].old_raw, "{\"from\":\"shell\"}");
    assert_string_equal(ev[1].new_raw, "{\"from\":\"again\"}");

    shell(rig, "DELETE FROM " TABLE);
    ev = recorder_wait(rec, 3);
    assert_int_equal(ev[2].op, BACKEND_DELETE);
    assert_string_equal(ev[2].old_raw, "{\"from\":\"again\"}");
    assert_string_equal(ev[2].work_source, TABLE);
    recorder_stop(rig->backend, rec);
}

static void json_that_another_program_makes_by_functions_is_reported_whole(void **state)
{
    struct rig *rig = *state;
    struct recorder *rec = recorder_start(rig->backend);
    const struct recorded *ev;

    shell(rig, "INSERT INTO " TABLE " (raw_data) VALUES (json_object('from', 'shell'))");
    shell(rig, "UPDATE " TABLE " SET raw_data = json_set(raw_data, '$.n', 2)");
    ev = recorder_wait(rec, 2);
    assert_string_equal(ev[0].new_raw, "{\"from\":\"shell\"}");
    assert_string_equal(ev[1].old_raw, "{\"from\":\"shell\"}");
    assert_string_equal(ev[1].new_raw, "{\"from\":\"shell\",\"n\":2}");
    recorder_stop(rig->backend, rec);
}

static void another_program_cannot_store_what_is_no_object(void **state)
{
    struct rig *rig = *state;
    struct sql_db *db = NULL;
    struct err e = { 0 };

    must(sql_open(rig_folder(rig)->file, NULL, &db, &e), &e);
    must(sql_script(db, "PRAGMA trusted_schema = ON", &e), &e);
    assert_true(sql_script(db, "INSERT INTO " TABLE " (raw_data) VALUES ('nonsense')", &e) < 0);
    assert_true(sql_script(db, "INSERT INTO " TABLE " (raw_data) VALUES ('[1]')", &e) < 0);
    sql_close(db);
}

static void a_rollback_gives_no_event(void **state)
{
    struct rig *rig = *state;
    struct recorder *rec = recorder_start(rig->backend);
    const struct recorded *ev;

    rig_sql(rig, "BEGIN; INSERT INTO " TABLE " (raw_data) VALUES ('{\"n\":\"undone\"}'); ROLLBACK;"
                 "BEGIN; INSERT INTO " TABLE " (raw_data) VALUES ('{\"n\":\"kept\"}');"
                 "SAVEPOINT s; INSERT INTO " TABLE " (raw_data) VALUES ('{\"n\":\"undone\"}'); ROLLBACK TO s; COMMIT");
    rig_insert(rig);
    ev = recorder_wait(rec, 2);
    assert_string_equal(ev[0].new_raw, "{\"n\":\"kept\"}");
    assert_string_equal(ev[1].new_raw, "{\"n\":1}");
    assert_int_equal(recorder_n_gaps(rec), 0);
    recorder_stop(rig->backend, rec);
}

static void nothing_is_reported_before_the_commit(void **state)
{
    struct rig *rig = *state;
    struct recorder *rec = recorder_start(rig->backend);
    struct sql_db *db = NULL;
    struct backend_row row;
    struct err e = { 0 };

    must(sql_open(rig_folder(rig)->file, NULL, &db, &e), &e);
    must(sql_script(
             db, "PRAGMA trusted_schema = ON; BEGIN IMMEDIATE; INSERT INTO " TABLE " (id, raw_data) VALUES ('x', '{}')",
             &e),
         &e);
    assert_int_equal(backend_get(rig->backend, TABLE, "x", NULL, rig->arena, &row, &e), -ENOENT);
    assert_int_equal(recorder_n(rec), 0);
    must(sql_script(db, "COMMIT", &e), &e);
    assert_string_equal(recorder_wait(rec, 1)[0].id, "x");
    sql_close(db);
    recorder_stop(rig->backend, rec);
}

static void what_was_trimmed_before_it_was_reported_is_a_gap(void **state)
{
    struct rig *rig = *state;
    struct recorder *rec = recorder_start(rig->backend);
    const struct recorded *ev;

    rig_sql(rig, "BEGIN; INSERT INTO " TABLE " (raw_data) VALUES ('{\"n\":\"lost\"}');"
                 " INSERT INTO " TABLE " (raw_data) VALUES ('{\"n\":\"seen\"}');"
                 " DELETE FROM _changes WHERE seq < (SELECT max(seq) FROM _changes); COMMIT");
    ev = recorder_wait(rec, 1);
    assert_string_equal(ev[0].new_raw, "{\"n\":\"seen\"}");
    assert_int_equal(recorder_n_gaps(rec), 1);
    recorder_stop(rig->backend, rec);
}

static void a_change_nobody_can_read_is_a_gap_and_the_next_is_reported(void **state)
{
    struct rig *rig = *state;
    struct recorder *rec = recorder_start(rig->backend);
    const struct recorded *ev;

    rig_sql(rig, "INSERT INTO " TABLE " (raw_data) VALUES (CAST(x'7b2278223a22ff227d' AS TEXT))"); /* {"x":"\xff"} */
    rig_insert(rig);
    ev = recorder_wait(rec, 1);
    assert_string_equal(ev[0].new_raw, "{\"n\":1}");
    assert_int_equal(recorder_n_gaps(rec), 1);
    recorder_stop(rig->backend, rec);
}

static bool has_few_changes(void *arg)
{
    return rig_number(arg, "SELECT count(*) FROM _changes") <= 2;
}

static void old_changes_leave_the_log_and_the_newest_stays(void **state)
{
    struct rig *rig = *state;

    rig_sql(rig, "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5000)"
                 " INSERT INTO _changes (name, op, at) SELECT 'x', 1, 1000 FROM n");
    rig_insert(rig);
    rig->backend = backend_close(rig->backend);
    rig->backend = rig_backend(rig);
    assert_true(wait_until(has_few_changes, rig));
    assert_int_equal(rig_number(rig, "SELECT max(seq) FROM _changes"), 5001);
}

static bool has_full_log(void *arg)
{
    return rig_number(arg, "SELECT count(*) FROM _changes") <= LIMIT_CHANGE_LOG;
}

static void the_log_keeps_the_newest_changes_up_to_its_limit(void **state)
{
    struct rig *rig = *state;

    rig_sql(rig, arena_printf(rig->arena,
                              "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d)"
                              " INSERT INTO _changes (name, op) SELECT 'x', 1 FROM n",
                              LIMIT_CHANGE_LOG + 5));
    rig->backend = backend_close(rig->backend);
    rig->backend = rig_backend(rig);
    assert_true(wait_until(has_full_log, rig));
    assert_int_equal(rig_number(rig, "SELECT count(*) FROM _changes"), LIMIT_CHANGE_LOG);
    assert_int_equal(rig_number(rig, "SELECT max(seq) FROM _changes"), LIMIT_CHANGE_LOG + 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(another_program_s_writes_are_reported_too),
        TEST(json_that_another_program_makes_by_functions_is_reported_whole),
        TEST(another_program_cannot_store_what_is_no_object),
        TEST(a_rollback_gives_no_event),
        TEST(nothing_is_reported_before_the_commit),
        TEST(what_was_trimmed_before_it_was_reported_is_a_gap),
        TEST(a_change_nobody_can_read_is_a_gap_and_the_next_is_reported),
        TEST(old_changes_leave_the_log_and_the_newest_stays),
        TEST(the_log_keeps_the_newest_changes_up_to_its_limit),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
