#include "store/sql.h"
#include "folder.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <sys/resource.h>
#include <sys/stat.h>

static struct sql_db *open_db(const char *path)
{
    struct err e = { 0 };
    struct sql_db *db = NULL;

    if (sql_open(path, NULL, &db, &e) < 0)
        fail_msg("%s", e.text);
    return db;
}

static void must(int r, const struct err *e)
{
    if (r < 0)
        fail_msg("%d %s", r, e->text);
}

static void a_value_of_every_kind_comes_back_as_it_was_bound(void **state)
{
    AUTO(folder_remove) struct folder f = folder_make();
    AUTO(arena_freep) struct arena *a = arena_new();
    struct sql_db *db = open_db(f.file);
    struct sql_rows *rows = NULL;
    struct err e = { 0 };
    struct slice part = { "half of this", 4 }, blob = { "a\0b", 3 };

    must(sql_exec(db, &e, "CREATE TABLE t (s, part, i, d, b, n, empty)", ""), &e);
    must(sql_exec(db, &e, "INSERT INTO t VALUES (?, ?, ?, ?, ?, ?, ?)", "sSidbns", "text", part, INT64_MIN, 0.1, blob,
                  ""),
         &e);
    must(sql_query(db, &rows, &e, "SELECT s, part, i, d, b, n, empty FROM t", ""), &e);
    assert_int_equal(sql_step(rows, &e), 1);
    assert_string_equal(sql_text(rows, a, 0), "text");
    assert_string_equal(sql_text(rows, a, 1), "half");
    assert_true(sql_int(rows, 2) == INT64_MIN);
    assert_string_equal(sql_text(rows, a, 3), "0.1");
    assert_true(slice_eq(sql_blob(rows, a, 4), blob));
    assert_true(sql_is_null(rows, 5));
    assert_null(sql_text(rows, a, 5));
    assert_string_equal(sql_text(rows, a, 6), "");
    assert_int_equal(sql_step(rows, &e), 0);
    sql_rows_endp(&rows);
    sql_close(db);
}

static void a_null_pointer_is_bound_as_null(void **state)
{
    AUTO(folder_remove) struct folder f = folder_make();
    struct sql_db *db = open_db(f.file);
    struct sql_rows *rows = NULL;
    struct err e = { 0 };

    must(sql_query(db, &rows, &e, "SELECT ?, ?, ?", "sSb", NULL, (struct slice){ 0 }, (struct slice){ 0 }), &e);
    assert_int_equal(sql_step(rows, &e), 1);
    for (int i = 0; i < 3; i++)
        assert_true(sql_is_null(rows, i));
    sql_rows_endp(&rows);
    sql_close(db);
}

/* Both use the same literal, so a shared prepared statement would be reset during the outer query. */
static void the_same_query_may_run_inside_itself(void **state)
{
    AUTO(folder_remove) struct folder f = folder_make();
    static const char sql[] = "WITH n(i) AS (VALUES (1), (2), (3)) SELECT i FROM n";
    struct sql_db *db = open_db(f.file);
    struct sql_rows *outer = NULL, *inner = NULL;
    struct err e = { 0 };
    int64_t sum = 0;

    must(sql_query(db, &outer, &e, sql, ""), &e);
    while (sql_step(outer, &e) > 0) {
        must(sql_query(db, &inner, &e, sql, ""), &e);
        while (sql_step(inner, &e) > 0)
            sum += 10 * sql_int(outer, 0) + sql_int(inner, 0);
        sql_rows_endp(&inner);
    }
    sql_rows_endp(&outer);
    assert_int_equal(sum, 3 * 60 + 3 * 6);
    sql_close(db);
}

static void a_statement_is_prepared_once_a_literal_and_many_fit(void **state)
{
    AUTO(folder_remove) struct folder f = folder_make();
    struct sql_db *db = open_db(f.file);
    struct err e = { 0 };
    char *texts[200];
    int n = 0;

    for (int i = 0; i < 200; i++) {
        assert_true(asprintf(&texts[i], "SELECT %d", i) > 0);
        for (int times = 0; times < 3; times++)
            must(sql_exec(db, &e, texts[i], ""), &e);
    }
    for (sqlite3_stmt *st = sqlite3_next_stmt(sql_handle(db), NULL); st; st = sqlite3_next_stmt(sql_handle(db), st))
        n++;
    assert_int_equal(n, 200);
    sql_close(db);
    for (int i = 0; i < 200; i++)
        free(texts[i]);
}

static void built_text_is_not_kept(void **state)
{
    AUTO(folder_remove) struct folder f = folder_make();
    struct sql_db *db = open_db(f.file);
    struct sql_rows *rows = NULL;
    struct err e = { 0 };
    char text[64];

    snprintf(text, sizeof(text), "SELECT ? + %d", 1);
    must(sql_query_text(db, &rows, &e, text, "i", (int64_t)41), &e);
    memset(text, 'x', sizeof(text));
    assert_int_equal(sql_step(rows, &e), 1);
    assert_int_equal(sql_int(rows, 0), 42);
    sql_rows_endp(&rows);
    must(sql_exec_text(db, &e, "SELECT 1", ""), &e);
    assert_null(sqlite3_next_stmt(sql_handle(db), NULL));
    sql_close(db);
}

static void rows_outlive_the_values_they_were_asked_with(void **state)
{
    AUTO(folder_remove) struct folder f = folder_make();
    AUTO(arena_freep) struct arena *a = arena_new();
    struct sql_db *db = open_db(f.file);
    struct sql_rows *rows = NULL;
    struct err e = { 0 };
    char *value = strdup("kept");

    must(sql_query(db, &rows, &e, "SELECT ?", "s", value), &e);
    free(value);
    assert_int_equal(sql_step(rows, &e), 1);
    assert_string_equal(sql_text(rows, a, 0), "kept");
    sql_rows_endp(&rows);
    sql_close(db);
}

static void a_query_is_begun_again_with_other_values(void **state)
{
    AUTO(folder_remove) struct folder f = folder_make();
    struct sql_db *db = open_db(f.file);
    struct sql_rows *rows = NULL;
    struct err e = { 0 };

    must(sql_query(db, &rows, &e, "WITH n(i) AS (VALUES (1), (2), (3)) SELECT i FROM n WHERE i >= ?", "i", (int64_t)3),
         &e);
    assert_int_equal(sql_step(rows, &e), 1);
    assert_int_equal(sql_int(rows, 0), 3);
    must(sql_again(rows, &e, "i", (int64_t)2), &e); /* before the last row */
    for (int64_t i = 2; i <= 3; i++) {
        assert_int_equal(sql_step(rows, &e), 1);
        assert_int_equal(sql_int(rows, 0), i);
    }
    assert_int_equal(sql_step(rows, &e), 0);
    must(sql_again(rows, &e, "i", (int64_t)4), &e); /* after it */
    assert_int_equal(sql_step(rows, &e), 0);
    sql_rows_endp(&rows);
    sql_close(db);
}

static void failures_are_reported_as_errno_and_code(void **state)
{
    static const struct {
        const char *sql;
        int r;
        const char *code;
    } cases[] = {
        { "INSERT INTO p VALUES (1, 1)", -EEXIST, "ALREADY_EXISTS" },
        { "INSERT INTO p VALUES (2, 1)", -EEXIST, "ALREADY_EXISTS" },
        { "INSERT INTO c VALUES (99)", -ENOENT, "NOT_FOUND" },
        { "INSERT INTO p VALUES (3, NULL)", -EEXIST, "STORE_ERROR" },
        { "DELETE FROM p", -EPERM, "STORE_REFUSED" },
        { "SELECT zeroblob(2000000000)", -E2BIG, "TOO_LARGE" },
        { "nonsense", -EIO, "STORE_ERROR" },
        { "SELECT * FROM missing", -EIO, "STORE_ERROR" },
    };
    AUTO(folder_remove) struct folder f = folder_make();
    struct sql_db *db = open_db(f.file);
    struct err e = { 0 };

    must(sql_script(db,
                    "CREATE TABLE p (id INTEGER PRIMARY KEY, u UNIQUE NOT NULL); CREATE TABLE c (p REFERENCES p(id));"
                    "CREATE TRIGGER no BEFORE DELETE ON p BEGIN SELECT RAISE(ABORT, 'never'); END;"
                    "INSERT INTO p VALUES (1, 1)",
                    &e),
         &e);
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct err got = { 0 };

        assert_int_equal(sql_exec(db, &got, cases[i].sql, ""), cases[i].r);
        assert_string_equal(got.code, cases[i].code);
        assert_true(strlen(got.text) > 10);
    }
    assert_int_equal(sql_exec(db, NULL, "nonsense", ""), -EIO);
    sql_close(db);
}

static void a_reading_connection_cannot_write(void **state)
{
    AUTO(folder_remove) struct folder f = folder_make();
    struct sql_options readonly = { .is_readonly = true };
    struct sql_db *writer = open_db(f.file), *reader = NULL;
    struct err e = { 0 };

    must(sql_exec(writer, &e, "CREATE TABLE t (x)", ""), &e);
    must(sql_open(f.file, &readonly, &reader, &e), &e);
    must(sql_exec(reader, &e, "SELECT count(*) FROM t", ""), &e);
    assert_int_equal(sql_exec(reader, NULL, "INSERT INTO t VALUES (1)", ""), -EROFS);
    sql_close(reader);
    sql_close(writer);
}

/* Another process may add a table at any time: the first statement afterwards reads the whole schema again. */
static void a_check_with_json_is_read_from_a_trusted_schema_only(void **state)
{
    AUTO(folder_remove) struct folder f = folder_make();
    const struct sql_options trusting = { .is_schema_trusted = true };
    struct sql_db *plain = open_db(f.file), *trusted, *other = open_db(f.file);
    struct err e = { 0 };

    must(sql_open(f.file, &trusting, &trusted, &e), &e);
    must(sql_script(trusted, "CREATE TABLE t (j CHECK (json_valid(j)))", &e), &e);
    must(sql_script(trusted, "INSERT INTO t VALUES ('{}')", &e), &e);
    assert_true(sql_script(plain, "INSERT INTO t VALUES ('1')", NULL) < 0);
    assert_true(sql_script(other, "CREATE TABLE u (i)", NULL) < 0);
    sql_close(other);
    must(sql_open(f.file, &trusting, &other, &e), &e);
    must(sql_script(other, "CREATE TABLE u (i)", &e), &e);
    must(sql_script(trusted, "INSERT INTO t VALUES ('[]')", &e), &e);
    sql_close(plain);
    sql_close(trusted);
    sql_close(other);
}

static void the_files_are_private_and_durable(void **state)
{
    AUTO(folder_remove) struct folder f = folder_make();
    AUTO(arena_freep) struct arena *a = arena_new();
    struct sql_rows *rows = NULL;
    struct err e = { 0 };
    char path[128];
    struct sql_db *db;
    struct stat st;
    mode_t old = umask(0);

    db = open_db(f.file);
    umask(old);
    must(sql_exec(db, &e, "CREATE TABLE t (x)", ""), &e);
    for (size_t i = 0; i < 3; i++) {
        snprintf(path, sizeof(path), "%s%s", f.file, (const char *[]){ "", "-wal", "-shm" }[i]);
        assert_int_equal(stat(path, &st), 0);
        assert_int_equal(st.st_mode & 0777, 0600);
    }
    must(sql_query(db, &rows, &e,
                   "SELECT journal_mode, synchronous, foreign_keys "
                   "FROM pragma_journal_mode, pragma_synchronous, pragma_foreign_keys",
                   ""),
         &e);
    assert_int_equal(sql_step(rows, &e), 1);
    assert_string_equal(sql_text(rows, a, 0), "wal");
    assert_int_equal(sql_int(rows, 1), 2);
    assert_int_equal(sql_int(rows, 2), 1);
    sql_rows_endp(&rows);
    sql_close(db);
}

static void what_cannot_be_opened_says_why(void **state)
{
    AUTO(folder_remove) struct folder f = folder_make();
    struct sql_options readonly = { .is_readonly = true };
    struct sql_db *db = NULL;
    struct err e = { 0 };
    FILE *file;

    assert_true(sql_open("/nowhere/t.db", NULL, &db, &e) < 0);
    assert_non_null(strstr(e.text, "/nowhere/t.db"));
    assert_true(sql_open(f.file, &readonly, &db, &e) < 0);
    file = fopen(f.file, "w");
    fputs("this is no database, it only has the length of one: 0123456789 0123456789 0123456789 0123456789", file);
    fclose(file);
    assert_int_equal(sql_open(f.file, NULL, &db, &e), -EUCLEAN);
    assert_null(db);
}

/* At every number of free descriptors: each file of the database may be the one that is not opened. */
static void a_lack_of_descriptors_is_no_failure_of_the_database(void **state)
{
    AUTO(folder_remove) struct folder f = folder_make();
    struct sql_db *writer = open_db(f.file), *reader = NULL;
    const struct sql_options options = { .is_readonly = true };
    struct rlimit usual, few;
    int first_free = open("/dev/null", O_RDONLY | O_CLOEXEC), n_failed = 0;
    struct err e = { 0 };

    close(first_free);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &usual), 0);
    must(sql_exec(writer, &e, "CREATE TABLE t (x)", ""), &e);
    for (int n_free = 0; n_free < 4; n_free++) {
        int r;

        few = (struct rlimit){ (rlim_t)(first_free + n_free), usual.rlim_max };
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
        r = sql_open(f.file, &options, &reader, &e);
        if (r == 0) {
            struct sql_rows *rows = NULL;

            r = sql_query(reader, &rows, &e, "SELECT x FROM t", "");
            if (r == 0)
                r = sql_step(rows, &e);
            sql_rows_endp(&rows);
            reader = sql_close(reader);
        }
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &usual), 0);
        n_failed += r < 0;
        if (r < 0)
            assert_string_equal(e.code, "TOO_FEW_FILES");
        assert_true(r == 0 || r == -EMFILE);
    }
    assert_true(n_failed >= 2);
    sql_close(writer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_value_of_every_kind_comes_back_as_it_was_bound),
        cmocka_unit_test(a_null_pointer_is_bound_as_null),
        cmocka_unit_test(the_same_query_may_run_inside_itself),
        cmocka_unit_test(a_statement_is_prepared_once_a_literal_and_many_fit),
        cmocka_unit_test(built_text_is_not_kept),
        cmocka_unit_test(rows_outlive_the_values_they_were_asked_with),
        cmocka_unit_test(a_query_is_begun_again_with_other_values),
        cmocka_unit_test(failures_are_reported_as_errno_and_code),
        cmocka_unit_test(a_reading_connection_cannot_write),
        cmocka_unit_test(a_check_with_json_is_read_from_a_trusted_schema_only),
        cmocka_unit_test(the_files_are_private_and_durable),
        cmocka_unit_test(what_cannot_be_opened_says_why),
        cmocka_unit_test(a_lack_of_descriptors_is_no_failure_of_the_database),
    };

    return cmocka_run_group_tests_name("sql", tests, NULL, NULL);
}
