#include "fixture.h"
#include "store/backup.h"
#include "store/meta.h"
#include "store/migrate.h"
#include "store/schema.h"

#include <pthread.h>
#include <sys/stat.h>

static char *script(const char *sql)
{
    return (char *)sql;
}

/* --- migrations --- */

static int64_t version_of(const char *path)
{
    struct sql_options readonly = { .is_readonly = true };
    struct sql_rows *rows = NULL;
    struct sql_db *db = NULL;
    int64_t version;

    assert_int_equal(sql_open(path, &readonly, &db, NULL), 0);
    assert_int_equal(sql_query(db, &rows, NULL, "PRAGMA user_version", ""), 0);
    assert_int_equal(sql_step(rows, NULL), 1);
    version = sql_int(rows, 0);
    sql_rows_endp(&rows);
    sql_close(db);
    return version;
}

static const struct migration steps[] = {
    { "first", "CREATE TABLE one (x); INSERT INTO one VALUES (1)" },
    { "second", "CREATE TABLE two (x)" },
    { "third", "CREATE TABLE three (x)" },
};

static void a_new_file_gets_all_migrations_and_no_copy(void **state)
{
    AUTO(folder_remove) struct folder f = folder_make();
    struct err e = { 0 };

    assert_int_equal(migrate_run(f.file, steps, 3, &e), 0);
    assert_int_equal(version_of(f.file), 3);
    assert_int_equal(migrate_run(f.file, steps, 3, &e), 0);
    assert_int_equal(folder_count(&f, ".bak", NULL), 0);
}

static void an_existing_file_is_copied_before_it_is_changed(void **state)
{
    AUTO(folder_remove) struct folder f = folder_make();
    struct err e = { 0 };
    char copy[512];
    struct stat st;

    assert_int_equal(migrate_run(f.file, steps, 1, &e), 0);
    assert_int_equal(migrate_run(f.file, steps, 3, &e), 0);
    assert_int_equal(version_of(f.file), 3);
    assert_int_equal(folder_count(&f, ".v1-", copy), 1);
    assert_int_equal(version_of(copy), 1);
    assert_int_equal(stat(copy, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
}

static void a_new_copy_replaces_the_one_of_the_upgrade_before(void **state)
{
    AUTO(folder_remove) struct folder f = folder_make();
    AUTO(arena_freep) struct arena *a = arena_new();
    const struct migrate_copy *copies;
    struct err e = { 0 };

    assert_int_equal(migrate_run(f.file, steps, 1, &e), 0);
    assert_int_equal(migrate_run(f.file, steps, 2, &e), 0);
    assert_int_equal(folder_count(&f, ".v1-", NULL), 1);
    assert_int_equal(migrate_run(f.file, steps, 3, &e), 0);
    assert_int_equal(migrate_copies(a, f.file, &copies), 1);
    assert_non_null(strstr(copies[0].path, ".v2-"));
    assert_true(copies[0].bytes > 0);
}

static void a_migration_that_fails_leaves_the_one_before(void **state)
{
    static const struct migration broken[] = {
        { "first", "CREATE TABLE one (x)" },
        { "bad", "CREATE TABLE two (x); INSERT INTO nowhere VALUES (1)" },
    };
    AUTO(folder_remove) struct folder f = folder_make();
    struct err e = { 0 };

    assert_true(migrate_run(f.file, broken, 2, &e) < 0);
    assert_non_null(strstr(e.text, "migration 2 (bad)"));
    assert_int_equal(version_of(f.file), 1);
    assert_int_equal(migrate_run(f.file, steps, 2, &e), 0); /* no trace of "two" is left */
}

static void a_newer_file_is_refused_untouched(void **state)
{
    AUTO(folder_remove) struct folder f = folder_make();
    struct err e = { 0 };

    assert_int_equal(migrate_run(f.file, steps, 3, &e), 0);
    assert_int_equal(migrate_run(f.file, steps, 2, &e), -EPROTONOSUPPORT);
    assert_string_equal(e.code, "SCHEMA_TOO_NEW");
    assert_int_equal(migrate_check(f.file, 2, &e), -EPROTONOSUPPORT);
    assert_int_equal(migrate_check(f.file, 3, &e), 0);
    assert_int_equal(version_of(f.file), 3);
    assert_int_equal(folder_count(&f, ".bak", NULL), 0);
}

struct race {
    const char *path;
    int r;
    struct err e;
    pthread_t thread;
};

static void *migrate_thread(void *arg)
{
    struct race *race = arg;

    race->r = migrate_run(race->path, steps, 3, &race->e);
    return NULL;
}

static void several_may_migrate_the_same_new_file_at_once(void **state)
{
    AUTO(folder_remove) struct folder f = folder_make();
    struct race races[4] = { 0 };

    for (size_t i = 0; i < ARRAY_SIZE(races); i++) {
        races[i].path = f.file;
        pthread_create(&races[i].thread, NULL, migrate_thread, &races[i]);
    }
    for (size_t i = 0; i < ARRAY_SIZE(races); i++) {
        pthread_join(races[i].thread, NULL);
        if (races[i].r < 0)
            fail_msg("%s", races[i].e.text);
    }
    assert_int_equal(version_of(f.file), 3);
}

/* --- the store --- */

static void what_was_written_is_there_after_opening_again(void **state)
{
    struct fixture x = fixture_open();
    char *value = NULL;

    MUST(store_meta_set(x.store, "a", "1", &x.e));
    x.store = store_close(x.store);
    MUST(store_open(x.folder.path, &x.store, &x.e));
    MUST(store_meta_get(x.store, x.a, "a", &value, &x.e));
    assert_string_equal(value, "1");
    fixture_close(&x);
}

static void a_store_of_a_newer_program_is_refused(void **state)
{
    struct fixture x = fixture_open();

    MUST(store_write(x.store, fixture_run_script, script("PRAGMA user_version = 9999"), &x.e));
    x.store = store_close(x.store);
    MUST_FAIL(store_open(x.folder.path, &x.store, &x.e), -EPROTONOSUPPORT, "SCHEMA_TOO_NEW");
    assert_null(x.store);
    fixture_close(&x);
}

static void a_folder_that_is_not_there_is_reported(void **state)
{
    struct store *s = NULL;
    struct err e = { 0 };

    assert_true(store_open("/nowhere/at/all", &s, &e) < 0);
    assert_non_null(strstr(e.text, "/nowhere/at/all"));
}

struct reading {
    struct store *s;
    int r;
    bool ends;
};

static void *read_thread(void *arg)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct reading *reading = arg;
    char *value = NULL;

    reading->r = store_meta_get(reading->s, a, "a", &value, NULL);
    if (reading->r == 0 && store_reader(reading->s) != store_reader(reading->s))
        reading->r = -EDOM;
    if (reading->ends)
        store_thread_end(reading->s);
    return NULL;
}

static void every_thread_has_its_own_reader_and_may_end_it_or_not(void **state)
{
    struct fixture x = fixture_open();
    struct reading readings[6];
    pthread_t threads[6];

    MUST(store_meta_set(x.store, "a", "1", &x.e));
    for (size_t i = 0; i < 6; i++) {
        readings[i] = (struct reading){ .s = x.store, .ends = i % 2 == 0 };
        pthread_create(&threads[i], NULL, read_thread, &readings[i]);
    }
    for (size_t i = 0; i < 6; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(readings[i].r, 0);
    }
    store_thread_end(x.store);
    store_thread_end(x.store);
    fixture_close(&x);
}

static void a_reader_that_cannot_be_opened_reports_so_at_the_query(void **state)
{
    struct fixture x = fixture_open();
    AUTO(arena_freep) struct arena *a = arena_new();
    char aside[600], path[600], *value;

    snprintf(path, sizeof(path), "%s/hearth.db", x.folder.path);
    snprintf(aside, sizeof(aside), "%s/aside", x.folder.path);
    assert_int_equal(rename(path, aside), 0);
    assert_int_equal(store_meta_get(x.store, a, "a", &value, &x.e), -EIO);
    assert_non_null(strstr(x.e.text, "hearth.db"));
    assert_int_equal(rename(aside, path), 0);
    assert_int_equal(store_meta_get(x.store, a, "a", &value, &x.e), -ENOENT); /* tried again */
    fixture_close(&x);
}

static void exec_reports_how_many_rows_changed(void **state)
{
    struct fixture x = fixture_open();
    int64_t n = -1;

    MUST(store_exec(x.store, &x.e, &n, "INSERT INTO meta VALUES ('p', ?), ('q', ?)", "ss", "1", "2"));
    assert_int_equal(n, 2);
    MUST(store_exec(x.store, &x.e, &n, "UPDATE meta SET value = 'x' WHERE key = ?", "s", "none"));
    assert_int_equal(n, 0);
    assert_true(store_exec(x.store, &x.e, &n, "INSERT INTO meta VALUES ('p', '3')", "") == -EEXIST);
    fixture_close(&x);
}

/* --- backup and restore --- */

static int copy_store(struct fixture *x, const char *path, struct err *e)
{
    char from[600];

    snprintf(from, sizeof(from), "%s/hearth.db", x->folder.path);
    return backup_copy(from, path, e);
}

static void a_backup_is_whole_private_and_never_overwrites(void **state)
{
    struct fixture x = fixture_open();
    char path[600];
    struct stat st;

    snprintf(path, sizeof(path), "%s/copy", x.folder.path);
    MUST(store_meta_set(x.store, "a", "1", &x.e));
    MUST(copy_store(&x, path, &x.e));
    MUST(backup_check(path, &x.e));
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    MUST_FAIL(copy_store(&x, path, &x.e), -EEXIST, "FILE_EXISTS");
    assert_int_equal(copy_store(&x, "/nowhere/copy", &x.e), -ENOENT);
    assert_int_equal(folder_count(&x.folder, ".part", NULL), 0);
    MUST(store_check(x.store, NULL, &x.e));
    fixture_close(&x);
}

static void damage(const char *path)
{
    FILE *file = fopen(path, "r+");

    assert_non_null(file);
    for (long at = 4096; at < 4096 * 12; at += 512) {
        fseek(file, at, SEEK_SET);
        fputs("garbage in the middle of pages", file);
    }
    fclose(file);
}

static void what_is_no_good_copy_is_refused(void **state)
{
    struct fixture x = fixture_open();
    char copy[600], other[600], missing[600];

    snprintf(copy, sizeof(copy), "%s/copy", x.folder.path);
    snprintf(other, sizeof(other), "%s/other.db", x.folder.path);
    snprintf(missing, sizeof(missing), "%s/missing", x.folder.path);
    MUST(store_meta_set(x.store, "a", "1", &x.e));
    MUST(copy_store(&x, copy, &x.e));
    MUST(store_check_file(copy, &x.e));
    MUST(migrate_run(other, steps, 1, &x.e));
    damage(copy);
    MUST_FAIL(store_check_file(copy, &x.e), -EUCLEAN, "STORE_DAMAGED");
    MUST_FAIL(store_check_file(other, &x.e), -EINVAL, "NOT_A_BACKUP");
    assert_true(store_check_file(missing, &x.e) < 0);
    fixture_close(&x);
}

static void a_newer_copy_is_refused(void **state)
{
    struct fixture x = fixture_open();
    char copy[600];

    snprintf(copy, sizeof(copy), "%s/copy", x.folder.path);
    MUST(store_write(x.store, fixture_run_script, script("PRAGMA user_version = 9999"), &x.e));
    MUST(copy_store(&x, copy, &x.e));
    MUST_FAIL(store_check_file(copy, &x.e), -EPROTONOSUPPORT, "SCHEMA_TOO_NEW");
    fixture_close(&x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_new_file_gets_all_migrations_and_no_copy),
        cmocka_unit_test(an_existing_file_is_copied_before_it_is_changed),
        cmocka_unit_test(a_new_copy_replaces_the_one_of_the_upgrade_before),
        cmocka_unit_test(a_migration_that_fails_leaves_the_one_before),
        cmocka_unit_test(a_newer_file_is_refused_untouched),
        cmocka_unit_test(several_may_migrate_the_same_new_file_at_once),
        cmocka_unit_test(what_was_written_is_there_after_opening_again),
        cmocka_unit_test(a_store_of_a_newer_program_is_refused),
        cmocka_unit_test(a_folder_that_is_not_there_is_reported),
        cmocka_unit_test(every_thread_has_its_own_reader_and_may_end_it_or_not),
        cmocka_unit_test(a_reader_that_cannot_be_opened_reports_so_at_the_query),
        cmocka_unit_test(exec_reports_how_many_rows_changed),
        cmocka_unit_test(a_backup_is_whole_private_and_never_overwrites),
        cmocka_unit_test(what_is_no_good_copy_is_refused),
        cmocka_unit_test(a_newer_copy_is_refused),
    };

    return cmocka_run_group_tests_name("store", tests, NULL, NULL);
}
