#include "rig.h"
#include "recorder.h"

static bool are_three_deletions_left(void *rig)
{
    return rig_number(rig, "SELECT count(*) FROM " DELETIONS) == 3;
}

/* The rows age in one statement: the trim that the backend does at its opening may be late and run in the middle of
 * this test. */
static void work_of_deletions_is_forgotten_after_a_week_unless_it_is_at_work(void **state)
{
    static const char aged[] =
        "WITH told (id, status, age) AS (VALUES (1, 'pending', '-8 days'), (2, 'completed', '-8 days'), (3, 'failed', '-8 days'),"
        " (4, 'claimed', '-8 days'), (5, 'pending', '-6 days'), (6, 'completed', '-6 days'))"
        " UPDATE " DELETIONS " SET status = told.status, created_at = strftime('%Y-%m-%dT%H:%M:%fZ', 'now', told.age)"
        " FROM told WHERE " DELETIONS ".rowid = told.id";
    struct rig *rig = *state;

    for (size_t i = 0; i < 6; i++)
        rig_remove(rig, rig_insert(rig));
    rig_sql(rig, aged);
    rig->backend = backend_close(rig->backend);
    rig->backend = rig_backend(rig);
    assert_true(wait_until(are_three_deletions_left, rig));
    assert_int_equal(rig_number(rig, "SELECT min(rowid) FROM " DELETIONS), 4);
}

static void reserved_and_unfit_tables_are_refused(void **state)
{
    static const char *const refused[] = { "_changes", "sqlite_master", "svc_deletions", "SVC_Deletions",
                                           "theirs",   "a b",           "Svc_Activities" };
    struct rig *rig = *state;
    struct backend_row row;
    struct err e = { 0 };

    rig_sql(rig, "CREATE TABLE theirs (id TEXT, whatever TEXT)");
    for (size_t i = 0; i < ARRAY_SIZE(refused); i++)
        if (OPS(rig)->ensure_table(rig->backend, refused[i], &e) != -EINVAL)
            fail_msg("%s was taken", refused[i]);
    assert_int_equal(backend_get(rig->backend, "theirs", "x", NULL, rig->arena, &row, &e), -ENOENT);
    assert_int_equal(
        rig_number(rig, "SELECT count(*) FROM sqlite_master WHERE type = 'trigger' AND name LIKE 'theirs%'"), 0);
}

static void a_file_of_a_newer_version_is_refused(void **state)
{
    struct rig *rig = *state;
    struct backend_embedded_config config = { .path = rig_folder(rig)->file, .abbr = "svc" };
    struct backend *b = NULL;
    struct err e = { 0 };

    rig->backend = backend_close(rig->backend);
    rig_sql(rig, "PRAGMA user_version = 99");
    assert_int_equal(backend_embedded_open(&config, &b, &e), -EPROTONOSUPPORT);
    assert_string_equal(e.code, "SCHEMA_TOO_NEW");
    assert_null(b);
}

static void the_abbreviation_must_fit_a_table_name(void **state)
{
    static const char *const refused[] = { "9x", "a b", "a.b", "a-b",
                                           "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa" };
    struct rig *rig = *state;

    for (size_t i = 0; i < ARRAY_SIZE(refused); i++) {
        struct backend_embedded_config config = { .path = rig_folder(rig)->file, .abbr = refused[i] };
        struct backend *b = NULL;

        assert_int_equal(backend_embedded_open(&config, &b, NULL), -EINVAL);
    }
}

static void closing_folds_the_log_into_the_file(void **state)
{
    struct rig *rig = *state;
    struct recorder *rec = recorder_start(rig->backend);
    char path[512];

    rig_insert(rig);
    recorder_wait(rec, 1);
    recorder_stop(rig->backend, rec);
    rig_get(rig, rig_list(rig, (struct backend_query){ 0 }).items[0].id);
    rig->backend = backend_close(rig->backend);
    assert_int_equal(folder_count(rig_folder(rig), "-wal", path), 0);
    assert_int_equal(rig_number(rig, "SELECT count(*) FROM " TABLE), 1);
    rig->backend = rig_backend(rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(work_of_deletions_is_forgotten_after_a_week_unless_it_is_at_work),
        TEST(reserved_and_unfit_tables_are_refused),
        TEST(a_file_of_a_newer_version_is_refused),
        TEST(the_abbreviation_must_fit_a_table_name),
        TEST(closing_folds_the_log_into_the_file),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
