#include "rig.h"
#include "base/limits.h"
#include <spawn.h>
#include <sys/wait.h>

#define OPS(rig) ((rig)->backend->ops)

extern char **environ;

/* Debian's sqlite3 program: another process that knows nothing of this one. */
static void shell(struct rig *rig, const char *sql)
{
    struct arena *a = rig->arena;
    char *argv[] = { arena_strdup(a, "sqlite3"), arena_strdup(a, "-cmd"), arena_strdup(a, ".timeout 10000"),
                     rig->folder.file,           arena_strdup(a, sql),    NULL };
    int status;
    pid_t pid;

    assert_int_equal(posix_spawnp(&pid, "sqlite3", NULL, NULL, argv, environ), 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

static void every_change_is_told_with_its_old_and_new_row(void **state)
{
    struct rig *rig = *state;
    struct recorder *rec = recorder_start(rig->backend);
    const char *id = rig_insert(rig);
    const struct recorded *ev;
    struct err e = { 0 };

    rig_patch(rig, id, &(struct backend_patch){ .raw_data = "{\"n\":2}" });
    must(OPS(rig)->remove(rig->backend, TABLE, id, NULL, &e), &e);
    ev = recorder_wait(rec, 3);

    assert_int_equal(ev[0].op, BACKEND_INSERT);
    assert_string_equal(ev[0].table, TABLE);
    assert_string_equal(ev[0].id, id);
    assert_string_equal(ev[0].new_raw, "{\"n\":1}");
    assert_string_equal(ev[0].new_status, "pending");
    assert_string_equal(ev[0].old_raw, "(none)");
    assert_string_equal(ev[0].work_id, "(none)");

    assert_int_equal(ev[1].op, BACKEND_UPDATE);
    assert_false(ev[1].is_lease_only);
    assert_string_equal(ev[1].old_raw, "{\"n\":1}");
    assert_string_equal(ev[1].new_raw, "{\"n\":2}");

    assert_int_equal(ev[2].op, BACKEND_DELETE);
    assert_string_equal(ev[2].new_raw, "(none)");
    assert_string_equal(ev[2].old_raw, "{\"n\":2}");
    assert_string_equal(ev[2].id, id);
    assert_string_equal(ev[2].work_table, DELETIONS);
    assert_string_equal(ev[2].work_source, TABLE);
    assert_string_not_equal(ev[2].work_id, id);
    assert_int_equal(rec->n, 3);
    recorder_stop(rig->backend, rec);
}

static void what_only_moves_a_lease_is_told_as_such(void **state)
{
    struct rig *rig = *state;
    const char *id = rig_insert(rig);
    struct recorder *rec = recorder_start(rig->backend);
    struct backend_lease lease = rig_claim(rig, id, "lin-a");
    const struct recorded *ev;
    struct err e = { 0 };

    must(backend_heartbeat(rig->backend, &lease, &e), &e);                      /* not told */
    must(backend_fail(rig->backend, &lease, "no", &e), &e);
    rig_patch(rig, id, &(struct backend_patch){ .status = "pending" });
    rig_patch(rig, id, &(struct backend_patch){ .status = "pending", .raw_data = "{\"n\":1}" });    /* the same data */
    rig_patch(rig, id,
              &(struct backend_patch){ .status = "later", .raw_data = "{\"n\":3}" }); /* other data: once, in full */
    ev = recorder_wait(rec, 5);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(ev[i].op, BACKEND_UPDATE);
        assert_true(ev[i].is_lease_only);
        assert_string_equal(ev[i].id, id);
    }
    assert_string_equal(ev[0].old_status, "pending");
    assert_string_equal(ev[0].new_status, "claimed");
    assert_string_equal(ev[1].old_status, "claimed");
    assert_string_equal(ev[1].new_status, "failed");
    assert_string_equal(ev[2].new_status, "pending");
    assert_false(ev[4].is_lease_only);
    assert_string_equal(ev[4].new_status, "later");
    assert_string_equal(ev[4].new_raw, "{\"n\":3}");
    assert_int_equal(rec->n, 5);
    recorder_stop(rig->backend, rec);
}

static void another_program_s_writes_are_told_too(void **state)
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

static void another_program_cannot_store_what_is_no_object(void **state)
{
    struct rig *rig = *state;
    struct sql_db *db = NULL;
    struct err e = { 0 };

    must(sql_open(rig->folder.file, NULL, &db, &e), &e);
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
    assert_int_equal(rec->n_gaps, 0);
    recorder_stop(rig->backend, rec);
}

static void nothing_is_told_before_the_commit(void **state)
{
    struct rig *rig = *state;
    struct recorder *rec = recorder_start(rig->backend);
    struct sql_db *db = NULL;
    struct backend_row row;
    struct err e = { 0 };

    must(sql_open(rig->folder.file, NULL, &db, &e), &e);
    must(sql_script(db, "PRAGMA trusted_schema = ON; BEGIN IMMEDIATE; INSERT INTO " TABLE
                        " (id, raw_data) VALUES ('x', '{}')", &e), &e);
    assert_int_equal(backend_get(rig->backend, TABLE, "x", NULL, rig->arena, &row, &e), -ENOENT);
    assert_int_equal(rec->n, 0);
    must(sql_script(db, "COMMIT", &e), &e);
    assert_string_equal(recorder_wait(rec, 1)[0].id, "x");
    sql_close(db);
    recorder_stop(rig->backend, rec);
}

/* --- order --- */

enum { N_THREADS = 8, N_EACH = 40 };

struct inserter { struct rig *rig; int number; pthread_t thread; };

static void *insert_some(void *arg)
{
    struct inserter *in = arg;
    AUTO(arena_freep) struct arena *a = arena_new();

    for (int i = 0; i < N_EACH; i++) {
        struct backend_new_row new_row = { .table = TABLE,
                                           .raw_data = arena_printf(a, "{\"t\":%d,\"i\":%d}", in->number, i) };
        struct backend_row row;

        if (backend_insert(in->rig->backend, &new_row, a, &row, NULL) < 0)
            return in;
    }
    return NULL;
}

static void events_of_concurrent_writers_come_once_each_in_commit_order(void **state)
{
    struct rig *rig = *state;
    struct recorder *rec = recorder_start(rig->backend);
    struct inserter inserters[N_THREADS];
    int next[N_THREADS] = { 0 }, thread, i;
    const struct recorded *ev;
    void *failed;

    for (int t = 0; t < N_THREADS; t++) {
        inserters[t] = (struct inserter){ .rig = rig, .number = t };
        pthread_create(&inserters[t].thread, NULL, insert_some, &inserters[t]);
    }
    for (int t = 0; t < N_THREADS; t++) {
        pthread_join(inserters[t].thread, &failed);
        assert_null(failed);
    }
    ev = recorder_wait(rec, N_THREADS * N_EACH);
    for (size_t k = 0; k < rec->n; k++) {
        if (k > 0)
            assert_int_equal(ev[k].sequence, ev[k - 1].sequence + 1);
        assert_int_equal(sscanf(ev[k].new_raw, "{\"t\":%d,\"i\":%d}", &thread, &i), 2);
        assert_int_equal(i, next[thread]++);            /* one thread's own inserts keep their order */
    }
    assert_int_equal(rec->n, N_THREADS * N_EACH);
    assert_int_equal(rec->n_gaps, 0);
    recorder_stop(rig->backend, rec);
}

/* --- gaps --- */

static void what_was_trimmed_before_it_was_told_is_a_gap(void **state)
{
    struct rig *rig = *state;
    struct recorder *rec = recorder_start(rig->backend);
    const struct recorded *ev;

    rig_sql(rig, "BEGIN; INSERT INTO " TABLE " (raw_data) VALUES ('{\"n\":\"lost\"}');"
                 " INSERT INTO " TABLE " (raw_data) VALUES ('{\"n\":\"seen\"}');"
                 " DELETE FROM _changes WHERE seq < (SELECT max(seq) FROM _changes); COMMIT");
    ev = recorder_wait(rec, 1);
    assert_string_equal(ev[0].new_raw, "{\"n\":\"seen\"}");
    assert_int_equal(rec->n_gaps, 1);
    recorder_stop(rig->backend, rec);
}

static void a_change_nobody_can_read_is_a_gap_and_the_next_is_told(void **state)
{
    struct rig *rig = *state;
    struct recorder *rec = recorder_start(rig->backend);
    const struct recorded *ev;

    rig_sql(rig, "INSERT INTO " TABLE " (raw_data) VALUES (CAST(x'7b2278223a22ff227d' AS TEXT))");  /* {"x":"\xff"} */
    rig_insert(rig);
    ev = recorder_wait(rec, 1);
    assert_string_equal(ev[0].new_raw, "{\"n\":1}");
    assert_int_equal(rec->n_gaps, 1);
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

/* --- who is told --- */

static void a_subscriber_is_told_only_what_comes_after(void **state)
{
    struct rig *rig = *state;
    struct recorder *rec, *second;
    const char *id;

    rig_insert(rig);
    rec = recorder_start(rig->backend);
    id = rig_insert(rig);
    assert_string_equal(recorder_wait(rec, 1)[0].id, id);
    second = recorder_start(rig->backend);
    id = rig_insert(rig);
    assert_string_equal(recorder_wait(rec, 2)[1].id, id);
    assert_string_equal(recorder_wait(second, 1)[0].id, id);
    recorder_stop(rig->backend, rec);
    rig_insert(rig);
    recorder_wait(second, 2);
    recorder_stop(rig->backend, second);
}

static void one_argument_subscribes_once(void **state)
{
    struct rig *rig = *state;
    struct recorder *rec = recorder_start(rig->backend);

    assert_int_equal(OPS(rig)->subscribe(rig->backend, record_event, record_gap, rec, NULL), -EEXIST);
    recorder_stop(rig->backend, rec);
    rec = recorder_start(rig->backend);
    recorder_stop(rig->backend, rec);
}

struct leaver { struct rig *rig; struct recorder *rec; };

static void leave_when_told(void *arg, const struct backend_event *event)
{
    struct leaver *leaver = arg;

    record_event(leaver->rec, event);
    leaver->rig->backend->ops->unsubscribe(leaver->rig->backend, leaver);
}

static void a_subscriber_may_leave_from_its_own_callback(void **state)
{
    struct rig *rig = *state;
    struct recorder mine = { .lock = PTHREAD_MUTEX_INITIALIZER }, *other = recorder_start(rig->backend);
    struct leaver leaver = { rig, &mine };
    struct err e = { 0 };

    must(OPS(rig)->subscribe(rig->backend, leave_when_told, NULL, &leaver, &e), &e);
    rig_insert(rig);
    rig_insert(rig);
    recorder_wait(other, 2);
    assert_int_equal(mine.n, 1);
    recorder_stop(rig->backend, other);
}

static void two_services_on_one_file_tell_each_other(void **state)
{
    struct rig *rig = *state;
    struct backend *second = rig_backend(rig);
    struct recorder *rec = recorder_start(second);
    const char *id = rig_insert(rig);

    assert_string_equal(recorder_wait(rec, 1)[0].id, id);
    recorder_stop(second, rec);
    backend_close(second);
}

static void a_user_table_tells_its_events_under_its_name(void **state)
{
    struct rig *rig = *state;
    struct recorder *rec = recorder_start(rig->backend);
    struct err e = { 0 };

    must(OPS(rig)->ensure_table(rig->backend, "sales.orders", &e), &e);
    shell(rig, "INSERT INTO \"sales.orders\" (raw_data) VALUES ('{}')");
    assert_string_equal(recorder_wait(rec, 1)[0].table, "sales.orders");
    recorder_stop(rig->backend, rec);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, rig_open, rig_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(every_change_is_told_with_its_old_and_new_row),
        TEST(what_only_moves_a_lease_is_told_as_such),
        TEST(another_program_s_writes_are_told_too),
        TEST(another_program_cannot_store_what_is_no_object),
        TEST(a_rollback_gives_no_event),
        TEST(nothing_is_told_before_the_commit),
        TEST(events_of_concurrent_writers_come_once_each_in_commit_order),
        TEST(what_was_trimmed_before_it_was_told_is_a_gap),
        TEST(a_change_nobody_can_read_is_a_gap_and_the_next_is_told),
        TEST(old_changes_leave_the_log_and_the_newest_stays),
        TEST(the_log_keeps_the_newest_changes_up_to_its_limit),
        TEST(a_subscriber_is_told_only_what_comes_after),
        TEST(one_argument_subscribes_once),
        TEST(a_subscriber_may_leave_from_its_own_callback),
        TEST(two_services_on_one_file_tell_each_other),
        TEST(a_user_table_tells_its_events_under_its_name),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
