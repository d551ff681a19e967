/* The writer folds a long write-ahead log into the file: who waits for that, and how long the log gets. */
#include "store/writer.h"
#include "folder.h"
#include "../wait.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <limits.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "held_folds.h" /* needs cmocka.h */

static void must(int r, const struct err *e)
{
    if (r < 0)
        fail_msg("%d %s", r, e->text);
}

enum { N_LOG_BYTES = 400000, N_THREADS = 8, N_LONG = 12 };

static int64_t bytes_of(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 ? (int64_t)st.st_size : -1;
}

struct fold_watch {
    const char *path;
    int64_t n_bytes; /* of the file when the commit was reported */
};

static void note_bytes(void *arg)
{
    struct fold_watch *watch = arg;

    watch->n_bytes = bytes_of(watch->path);
}

static int insert_long(struct sql_db *db, void *arg, struct err *e)
{
    return sql_exec(db, e, "INSERT INTO long VALUES (zeroblob(?))", "i", (int64_t)N_LOG_BYTES);
}

static int make_long_table(struct sql_db *db, void *arg, struct err *e)
{
    return sql_script(db, "CREATE TABLE long (x BLOB)", e);
}

static bool is_folded(void *path)
{
    return bytes_of(path) > N_LOG_BYTES;
}

/* While the log is folded, readers see the change: its caller must know by then that it is stored. */
static void a_change_is_reported_before_a_long_log_is_folded(void **state)
{
    AUTO(folder_remove) struct folder f = folder_make();
    struct fold_watch watch = { .path = f.file };
    struct writer_config config = {
        .path = f.file, .label = "folded", .on_commit = note_bytes, .arg = &watch, .checkpoint_pages = 8
    };
    struct writer *w = NULL;
    struct err e = { 0 };

    must(writer_start(&config, &w, &e), &e);
    must(writer_run(w, make_long_table, NULL, &e), &e);
    must(writer_run(w, insert_long, NULL, &e), &e);
    assert_in_range(watch.n_bytes, 0, N_LOG_BYTES);
    assert_true(wait_until(is_folded, f.file)); /* without another change */
    writer_stop(w);
}

/* Each commit tries, and what the reader keeps in the log is folded after it has ended. */
static void a_reader_that_keeps_the_log_long_holds_no_change_up(void **state)
{
    AUTO(folder_remove) struct folder f = folder_make();
    struct writer_config config = { .path = f.file, .label = "pinned", .checkpoint_pages = 8 };
    struct sql_db *reader = NULL;
    struct writer *w = NULL;
    struct err e = { 0 };

    must(writer_start(&config, &w, &e), &e);
    must(writer_run(w, make_long_table, NULL, &e), &e);
    must(sql_open(f.file, NULL, &reader, &e), &e);
    must(sql_script(reader, "BEGIN; SELECT count(*) FROM long", &e), &e);
    for (int i = 0; i < 3; i++)
        must(writer_run(w, insert_long, NULL, &e), &e);
    assert_false(is_folded(f.file));
    sql_close(reader);
    must(writer_run(w, insert_long, NULL, &e), &e);
    assert_true(wait_until(is_folded, f.file));
    writer_stop(w);
}

static void changes_are_stored_while_a_long_log_is_folded_beside_them(void **state)
{
    AUTO(folder_remove) struct folder f = folder_make();
    struct writer_config config = { .path = f.file, .label = "beside", .checkpoint_pages = 80, .folds_beside = true };
    struct writer *w = NULL;
    struct err e = { 0 };

    must(writer_start(&config, &w, &e), &e);
    must(writer_run(w, make_long_table, NULL, &e), &e);
    held_folds_begin();
    must(writer_run(w, insert_long, NULL, &e), &e);
    held_folds_await();
    must(writer_run(w, insert_long, NULL, &e), &e);
    assert_in_range(bytes_of(f.file), 0, N_LOG_BYTES);
    held_folds_end();
    assert_true(wait_until(is_folded, f.file));
    writer_stop(w);
}

struct late {
    struct writer *writer;
    struct writer_job *begun; /* before the change; may be NULL */
    pthread_t thread;
    bool has_begun;
};

static void *insert_late(void *arg)
{
    struct late *late = arg;
    struct err e = { 0 };

    if (late->begun)
        must(writer_begin(late->writer, late->begun, &e), &e);
    must(writer_run(late->writer, insert_long, NULL, &e), &e);
    return NULL;
}

static bool are_late_ones_waiting(void *arg)
{
    struct late *late = arg;

    return writer_n_waiting(late->writer) == (late->begun ? 2 : 1);
}

/* After the commit of the group that makes the log long, before its end. */
static void begin_late(void *arg)
{
    struct late *late = arg;

    if (!late->writer || late->has_begun)
        return;
    late->has_begun = true;
    assert_int_equal(pthread_create(&late->thread, NULL, insert_late, late), 0);
    assert_true(wait_until(are_late_ones_waiting, late));
}

static void store_late(struct writer_job *begun)
{
    AUTO(folder_remove) struct folder f = folder_make();
    struct late late = { .begun = begun };
    struct writer_config config = { .path = f.file,
                                    .label = "late",
                                    .on_commit = begin_late,
                                    .arg = &late,
                                    .checkpoint_pages = 80,
                                    .folds_beside = true };
    struct writer *w = NULL;
    struct err e = { 0 };

    must(writer_start(&config, &w, &e), &e);
    must(writer_run(w, make_long_table, NULL, &e), &e);
    held_folds_begin();
    late.writer = w;
    must(writer_run(w, insert_long, NULL, &e), &e);
    pthread_join(late.thread, NULL);
    assert_in_range(bytes_of(f.file), 0, N_LOG_BYTES);
    held_folds_end();
    assert_true(wait_until(is_folded, f.file));
    if (begun)
        must(writer_end(begun), begun->e);
    writer_stop(w);
}

static void a_change_that_waits_when_a_fold_begins_is_stored_beside_it(void **state)
{
    store_late(NULL);
}

static void a_change_that_is_not_ended_holds_up_none_behind_it(void **state)
{
    struct err e = { 0 };
    struct writer_job begun = { .fn = insert_long, .e = &e };

    store_late(&begun);
}

struct held_change {
    struct writer *writer;
    pthread_t thread;
    sem_t has_begun, may_end;
};

static int insert_long_when_told(struct sql_db *db, void *arg, struct err *e)
{
    struct held_change *held = arg;

    sem_post(&held->has_begun);
    if (held_folds_wait(&held->may_end) < 0)
        return err_set(e, -ETIMEDOUT, "LATE", "nobody ended the change");
    return insert_long(db, NULL, e);
}

static void *run_held_change(void *arg)
{
    struct held_change *held = arg;
    struct err e = { 0 };

    must(writer_run(held->writer, insert_long_when_told, held, &e), &e);
    return NULL;
}

static void begin_held_change(struct held_change *held, struct writer *w)
{
    held->writer = w;
    sem_init(&held->has_begun, 0, 0);
    sem_init(&held->may_end, 0, 0);
    assert_int_equal(pthread_create(&held->thread, NULL, run_held_change, held), 0);
    assert_int_equal(held_folds_wait(&held->has_begun), 0);
}

static bool are_four_folded(void *path)
{
    return bytes_of(path) > 4 * N_LOG_BYTES;
}

/* The change begins the log anew, so that the log is short after it. */
static void a_fold_goes_on_after_a_change_that_outlasts_it(void **state)
{
    AUTO(folder_remove) struct folder f = folder_make();
    struct writer_config config = { .path = f.file, .label = "last", .checkpoint_pages = 200, .folds_beside = true };
    struct held_change held = { 0 };
    struct writer *w = NULL;
    struct err e = { 0 };

    must(writer_start(&config, &w, &e), &e);
    must(writer_run(w, make_long_table, NULL, &e), &e);
    held_folds_begin();
    for (int i = 0; i < 3; i++)
        must(writer_run(w, insert_long, NULL, &e), &e);
    held_folds_await();
    held_folds_pass();
    held_folds_await(); /* all is folded once */
    begin_held_change(&held, w);
    held_folds_end();
    sem_post(&held.may_end);
    pthread_join(held.thread, NULL);
    assert_true(wait_until(are_four_folded, f.file)); /* without another change */
    writer_stop(w);
}

static void *insert_many_long(void *writer)
{
    struct err e = { 0 };

    for (int i = 0; i < N_LONG; i++)
        must(writer_run(writer, insert_long, NULL, &e), &e);
    return NULL;
}

/* Each group makes the log so long that the next one waits until it begins anew. */
static void a_log_that_is_folded_beside_many_changes_does_not_grow_with_them(void **state)
{
    AUTO(folder_remove) struct folder f = folder_make();
    struct writer_config config = { .path = f.file, .label = "short", .checkpoint_pages = 8, .folds_beside = true };
    struct writer *w = NULL;
    pthread_t threads[N_THREADS];
    char log[PATH_MAX];
    struct err e = { 0 };

    must(writer_start(&config, &w, &e), &e);
    must(writer_run(w, make_long_table, NULL, &e), &e);
    for (int i = 0; i < N_THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, insert_many_long, w), 0);
    for (int i = 0; i < N_THREADS; i++)
        pthread_join(threads[i], NULL);
    snprintf(log, sizeof(log), "%s-wal", f.file);
    assert_in_range(bytes_of(log), 0, 2 * N_THREADS * N_LOG_BYTES);
    writer_stop(w);
    assert_in_range(bytes_of(f.file), N_THREADS * N_LONG * N_LOG_BYTES, 2 * N_THREADS * N_LONG * N_LOG_BYTES);
}

static int insert_short(struct sql_db *db, void *arg, struct err *e)
{
    return sql_exec(db, e, "INSERT INTO long VALUES (1)", NULL);
}

static void read_with_another_program(char *path)
{
    char name[] = "sqlite3", query[] = "SELECT x FROM long";
    char *argv[] = { name, path, query, NULL };
    int status = -1;
    pid_t pid;

    assert_int_equal(posix_spawnp(&pid, "sqlite3", NULL, NULL, argv, environ), 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

/* The last program that closes the file removes the log, unless a lock tells that another one has the file open. */
static void a_program_that_reads_after_a_fold_leaves_the_log_to_the_writer(void **state)
{
    AUTO(folder_remove) struct folder f = folder_make();
    struct writer_config config = { .path = f.file, .label = "left" };
    struct writer *w = NULL;
    char log[PATH_MAX];
    struct err e = { 0 };

    must(writer_start(&config, &w, &e), &e);
    must(writer_run(w, make_long_table, NULL, &e), &e);
    must(writer_fold(w, &e), &e);
    snprintf(log, sizeof(log), "%s-wal", f.file);
    read_with_another_program(f.file);
    assert_true(bytes_of(log) > 0);
    must(writer_run(w, insert_short, NULL, &e), &e);
    assert_true(bytes_of(log) > 0);
    writer_stop(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(changes_are_stored_while_a_long_log_is_folded_beside_them),
        cmocka_unit_test(a_log_that_is_folded_beside_many_changes_does_not_grow_with_them),
        cmocka_unit_test(a_change_that_waits_when_a_fold_begins_is_stored_beside_it),
        cmocka_unit_test(a_change_that_is_not_ended_holds_up_none_behind_it),
        cmocka_unit_test(a_fold_goes_on_after_a_change_that_outlasts_it),
        cmocka_unit_test(a_change_is_reported_before_a_long_log_is_folded),
        cmocka_unit_test(a_reader_that_keeps_the_log_long_holds_no_change_up),
        cmocka_unit_test(a_program_that_reads_after_a_fold_leaves_the_log_to_the_writer),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
