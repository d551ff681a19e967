/* A file that lost its write-ahead log is older than its note, whoever folded the log into the file, and when. */
#include "store/fold_mark.h"
#include "store/writer.h"
#include "folder.h"
#include "../wait.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <fcntl.h>

#include "held_folds.h" /* needs cmocka.h */

struct story {
    struct folder folder;
    struct instance *instance;
    struct writer *writer;
    struct sql_db *other; /* of another program */
    char copy[128];       /* the file as it is without its log */
};

static void must(int r, const struct err *e)
{
    if (r < 0)
        fail_msg("%d %s", r, e->text);
}

static int make_table(struct sql_db *db, void *arg, struct err *e)
{
    return sql_script(db, "CREATE TABLE t (x INTEGER PRIMARY KEY)", e);
}

static int insert(struct sql_db *db, void *arg, struct err *e)
{
    return sql_exec(db, e, "INSERT INTO t DEFAULT VALUES", NULL);
}

static void fold(struct story *s)
{
    struct err e = { 0 };

    must(sql_script(s->other, "PRAGMA wal_checkpoint(PASSIVE)", &e), &e);
}

static int insert_while_another_folds(struct sql_db *db, void *arg, struct err *e)
{
    int r = insert(db, NULL, e);

    fold(arg);
    return r;
}

static void change(struct story *s)
{
    struct err e = { 0 };

    must(writer_run(s->writer, insert, NULL, &e), &e);
}

static bool is_marked(void *path)
{
    return fold_mark_of(path).is_usable;
}

/* At its end the file is some time old and the generation was raised since the last checkpoint. */
static void begin_with(struct story *s, struct writer_config config)
{
    struct err e = { 0 };

    *s = (struct story){ .folder = folder_make() };
    must(instance_open(s->folder.path, false, &s->instance, &e), &e);
    must(instance_admit(s->instance, INSTANCE_BACKEND, s->folder.file, &e), &e);
    config.label = "folds";
    config.file = INSTANCE_BACKEND;
    config.path = s->folder.file;
    config.instance = s->instance;
    must(writer_start(&config, &s->writer, &e), &e);
    must(writer_run(s->writer, make_table, NULL, &e), &e);
    must(sql_open(s->folder.file, NULL, &s->other, &e), &e);
    snprintf(s->copy, sizeof(s->copy), "%s/copy", s->folder.path);
    change(s);
    fold(s);
    assert_true(wait_until(is_marked, s->folder.file));
    change(s);
    change(s);
}

static void begin(struct story *s, int checkpoint_pages)
{
    begin_with(s, (struct writer_config){ .checkpoint_pages = checkpoint_pages });
}

static void copy_file(const char *from, const char *to)
{
    char block[4096];
    int in = open(from, O_RDONLY), out = open(to, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    ssize_t n;

    assert_true(in >= 0 && out >= 0);
    while ((n = read(in, block, sizeof(block))) > 0)
        assert_int_equal(write(out, block, (size_t)n), n);
    close(in);
    close(out);
}

/* The service is killed here and the log is lost. */
static int examine_without_log(struct story *s, struct err *e)
{
    copy_file(s->folder.file, s->copy);
    s->other = sql_close(s->other);
    s->writer = writer_stop(s->writer);
    copy_file(s->copy, s->folder.file);
    return instance_examine(s->instance, INSTANCE_BACKEND, s->folder.file, e);
}

static void end(struct story *s)
{
    instance_close(s->instance);
    folder_remove(&s->folder);
}

static void assert_loss_is_noticed(struct story *s)
{
    struct err e = { 0 };

    if (examine_without_log(s, &e) != -EUCLEAN)
        fail_msg("the loss went unnoticed");
    if (!strstr(e.text, "is older than what was stored last"))
        fail_msg("%s", e.text);
    end(s);
}

static void the_first_change_after_another_program_s_checkpoint(void **state)
{
    struct story s;

    begin(&s, 0);
    fold(&s);
    change(&s);
    assert_loss_is_noticed(&s);
}

static struct sql_db *read_on(struct story *s)
{
    struct sql_db *reader = NULL;
    struct err e = { 0 };

    must(sql_open(s->folder.file, NULL, &reader, &e), &e);
    must(sql_script(reader, "BEGIN; SELECT count(*) FROM t", &e), &e);
    return reader;
}

/* The reader keeps the log from beginning anew, so the log only grows. */
static void changes_after_a_checkpoint_while_a_program_reads(void **state)
{
    struct sql_db *reader;
    struct story s;

    begin(&s, 0);
    reader = read_on(&s);
    fold(&s);
    change(&s);
    change(&s);
    sql_close(reader);
    assert_loss_is_noticed(&s);
}

static void a_change_during_which_another_program_folds(void **state)
{
    struct story s;
    struct err e = { 0 };

    begin(&s, 0);
    change(&s);
    must(writer_run(s.writer, insert_while_another_folds, &s, &e), &e);
    assert_loss_is_noticed(&s);
}

/* The writer's own checkpoint runs after the commit of one of these changes, and the reader keeps it from folding them.
 */
static void any_number_of_changes_until_the_writer_s_own_checkpoint(void **state)
{
    for (int n = 1; n <= 14; n++) {
        struct sql_db *reader;
        struct story s;

        begin(&s, 12);
        reader = read_on(&s);
        for (int i = 0; i < n; i++)
            change(&s);
        sql_close(reader);
        assert_loss_is_noticed(&s);
    }
}

static void a_file_into_which_all_was_folded_has_lost_nothing(void **state)
{
    struct story s;
    struct err e = { 0 };

    begin(&s, 0);
    fold(&s);
    change(&s);
    fold(&s);
    must(examine_without_log(&s, &e), &e);
    end(&s);
}

static int64_t generation_of(const struct story *s)
{
    AUTO(sql_rows_endp) struct sql_rows *rows = NULL;
    struct err e = { 0 };

    must(sql_query(s->other, &rows, &e, "SELECT generation FROM _instance", NULL), &e);
    must(sql_step(rows, &e), &e);
    return sql_int(rows, 0);
}

/* The fold may write the last raise into the file after the change. */
static void every_change_beside_a_fold_raises_the_generation(void **state)
{
    struct story s;
    int64_t before;

    begin_with(&s, (struct writer_config){ .checkpoint_pages = 12, .folds_beside = true });
    held_folds_begin();
    for (int i = 0; i < 12; i++)
        change(&s);
    held_folds_await();
    before = generation_of(&s);
    change(&s);
    assert_int_equal(generation_of(&s), before + 1);
    change(&s);
    assert_int_equal(generation_of(&s), before + 2);
    held_folds_end();
    s.other = sql_close(s.other);
    writer_stop(s.writer);
    end(&s);
}

static void *fold_now(void *writer)
{
    struct err e = { 0 };

    must(writer_fold(writer, &e), &e);
    return NULL;
}

static void every_change_beside_a_fold_that_somebody_asked_for_raises_it_too(void **state)
{
    pthread_t thread;
    struct story s;
    int64_t before;

    begin(&s, 1000);
    before = generation_of(&s);
    held_folds_begin();
    assert_int_equal(pthread_create(&thread, NULL, fold_now, s.writer), 0);
    held_folds_await();
    change(&s);
    assert_int_equal(generation_of(&s), before + 1);
    change(&s);
    assert_int_equal(generation_of(&s), before + 2);
    held_folds_end();
    pthread_join(thread, NULL);
    s.other = sql_close(s.other);
    writer_stop(s.writer);
    end(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_change_after_another_program_s_checkpoint),
        cmocka_unit_test(changes_after_a_checkpoint_while_a_program_reads),
        cmocka_unit_test(a_change_during_which_another_program_folds),
        cmocka_unit_test(any_number_of_changes_until_the_writer_s_own_checkpoint),
        cmocka_unit_test(every_change_beside_a_fold_raises_the_generation),
        cmocka_unit_test(every_change_beside_a_fold_that_somebody_asked_for_raises_it_too),
        cmocka_unit_test(a_file_into_which_all_was_folded_has_lost_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
