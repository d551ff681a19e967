#include "store/writer.h"
#include "base/limits.h"
#include "../metric.h"
#include "folder.h"
#include "../wait.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <pthread.h>
#include <semaphore.h>

enum { N_THREADS = 8, N_EACH = 50 };

static void must(int r, const struct err *e)
{
    if (r < 0)
        fail_msg("%d %s", r, e->text);
}

static struct writer *start(const char *path, const char *label, void (*on_commit)(void *arg), void *arg)
{
    struct writer_config config = {
        .path = path, .label = label, .on_commit = on_commit, .arg = arg, .busy_timeout_ms = 200
    };
    struct writer *w = NULL;
    struct err e = { 0 };

    must(writer_start(&config, &w, &e), &e);
    return w;
}

static int make_table(struct sql_db *db, void *arg, struct err *e)
{
    return sql_script(db, "CREATE TABLE t (x INTEGER PRIMARY KEY)", e);
}

static int insert(struct sql_db *db, void *arg, struct err *e)
{
    return sql_exec(db, e, "INSERT INTO t VALUES (?)", "i", *(int64_t *)arg);
}

static int insert_and_fail(struct sql_db *db, void *arg, struct err *e)
{
    int r = insert(db, arg, e);

    return r < 0 ? r : err_set(e, -EDOM, "NO", "it failed on purpose");
}

static int64_t count_rows(const char *path)
{
    struct sql_options readonly = { .is_readonly = true };
    struct sql_rows *rows = NULL;
    struct sql_db *db = NULL;
    struct err e = { 0 };
    int64_t n;

    must(sql_open(path, &readonly, &db, &e), &e);
    must(sql_query(db, &rows, &e, "SELECT count(*) FROM t", ""), &e);
    must(sql_step(rows, &e), &e);
    n = sql_int(rows, 0);
    sql_rows_endp(&rows);
    sql_close(db);
    return n;
}

static void a_change_is_on_disk_when_the_call_returns(void **state)
{
    AUTO(folder_remove) struct folder f = folder_make();
    struct writer *w = start(f.file, "one", NULL, NULL);
    struct err e = { 0 };
    int64_t x = 1;

    must(writer_run(w, make_table, NULL, &e), &e);
    must(writer_run(w, insert, &x, &e), &e);
    assert_int_equal(count_rows(f.file), 1);
    assert_null(writer_stop(w));
    assert_null(writer_stop(NULL));
}

/* --- groups: the first closure blocks the writer until all others wait --- */

struct call {
    struct writer *w;
    int (*fn)(struct sql_db *db, void *arg, struct err *e);
    int64_t x;
    int r;
    struct err e;
    pthread_t thread;
};

static sem_t may_go, is_held;

static int hold(struct sql_db *db, void *arg, struct err *e)
{
    sem_post(&is_held);
    sem_wait(&may_go);
    return 0;
}

static void *run_call(void *arg)
{
    struct call *c = arg;

    c->r = writer_run(c->w, c->fn, &c->x, &c->e);
    return NULL;
}

static void start_call(struct call *c)
{
    assert_int_equal(pthread_create(&c->thread, NULL, run_call, c), 0);
}

struct expected {
    struct writer *w;
    size_t n;
};

static bool are_waiting(void *arg)
{
    struct expected *x = arg;

    return writer_n_waiting(x->w) >= x->n;
}

static void wait_for_waiting(struct writer *w, size_t n)
{
    assert_true(wait_until(are_waiting, &(struct expected){ .w = w, .n = n }));
}

static void one_that_fails_in_a_group_is_undone_alone(void **state)
{
    AUTO(folder_remove) struct folder f = folder_make();
    struct writer *w = start(f.file, "alone", NULL, NULL);
    struct call first = { .w = w, .fn = hold }, calls[4];
    struct err e = { 0 };

    must(writer_run(w, make_table, NULL, &e), &e);
    sem_init(&may_go, 0, 0);
    sem_init(&is_held, 0, 0);
    start_call(&first);
    sem_wait(&is_held);
    for (size_t i = 0; i < ARRAY_SIZE(calls); i++) {
        calls[i] = (struct call){ .w = w, .fn = i == 1 ? insert_and_fail : insert, .x = i == 3 ? 0 : (int64_t)i };
        start_call(&calls[i]);
    }
    wait_for_waiting(w, ARRAY_SIZE(calls));
    sem_post(&may_go);
    pthread_join(first.thread, NULL);
    for (size_t i = 0; i < ARRAY_SIZE(calls); i++)
        pthread_join(calls[i].thread, NULL);

    assert_int_equal(calls[1].r, -EDOM);
    assert_string_equal(calls[1].e.text, "it failed on purpose");
    assert_int_equal(calls[2].r, 0);
    assert_int_equal((calls[0].r == 0) + (calls[3].r == 0), 1); /* both insert 0 */
    assert_int_equal((calls[0].r == -EEXIST) + (calls[3].r == -EEXIST), 1);
    assert_int_equal(count_rows(f.file), 2);
    writer_stop(w);
}

static int lose_transaction(struct sql_db *db, void *arg, struct err *e)
{
    int r = insert(db, arg, e);

    return r < 0 ? r : sql_script(db, "ROLLBACK", e); /* like SQLite itself when the disk is full */
}

static void when_the_transaction_is_lost_every_caller_of_the_group_is_reported(void **state)
{
    AUTO(folder_remove) struct folder f = folder_make();
    struct writer *w = start(f.file, "lost", NULL, NULL);
    struct call first = { .w = w, .fn = hold }, calls[1];
    struct err e = { 0 };
    int64_t x = 9;

    must(writer_run(w, make_table, NULL, &e), &e);
    sem_init(&may_go, 0, 0);
    sem_init(&is_held, 0, 0);
    start_call(&first);
    sem_wait(&is_held);
    calls[0] = (struct call){ .w = w, .fn = lose_transaction, .x = 1 };
    start_call(&calls[0]);
    wait_for_waiting(w, 1);
    sem_post(&may_go);
    pthread_join(first.thread, NULL);
    pthread_join(calls[0].thread, NULL);
    assert_int_equal(calls[0].r, -EIO);
    assert_int_equal(first.r, -EIO);
    assert_int_equal(count_rows(f.file), 0);
    must(writer_run(w, insert, &x, &e), &e); /* the writer still works */
    assert_int_equal(count_rows(f.file), 1);
    writer_stop(w);
}

static void a_begun_change_is_on_disk_when_its_end_returns(void **state)
{
    AUTO(folder_remove) struct folder f = folder_make();
    struct writer *w = start(f.file, "begun", NULL, NULL);
    struct call first = { .w = w, .fn = hold };
    int64_t x = 1, same = 1;
    struct err e = { 0 }, own = { 0 };
    struct writer_job job = { .fn = insert, .arg = &x, .e = &own }, refused = { .fn = insert, .arg = &same, .e = &own };

    must(writer_run(w, make_table, NULL, &e), &e);
    sem_init(&may_go, 0, 0);
    sem_init(&is_held, 0, 0);
    start_call(&first);
    sem_wait(&is_held);
    must(writer_begin(w, &job, &e), &e); /* the writer is held: this does not wait */
    must(writer_begin(w, &refused, &e), &e);
    assert_int_equal(writer_n_waiting(w), 2);
    sem_post(&may_go);
    must(writer_end(&job), &own);
    assert_int_equal(count_rows(f.file), 1);
    assert_int_equal(writer_end(&refused), -EEXIST);
    assert_string_not_equal(own.text, "");
    pthread_join(first.thread, NULL);
    writer_stop(w);
}

static void a_begun_change_may_be_ended_after_the_writer(void **state)
{
    AUTO(folder_remove) struct folder f = folder_make();
    struct writer *w = start(f.file, "ended", NULL, NULL);
    int64_t x = 1;
    struct err e = { 0 };
    struct writer_job job = { .fn = insert, .arg = &x, .e = &e };

    must(writer_run(w, make_table, NULL, &e), &e);
    must(writer_begin(w, &job, &e), &e);
    writer_stop(w);
    must(writer_end(&job), &e);
    assert_int_equal(count_rows(f.file), 1);
}

static bool has_a_row(void *path)
{
    return count_rows(path) == 1;
}

static void a_begun_change_is_stored_before_its_end_when_it_is_hastened(void **state)
{
    AUTO(folder_remove) struct folder f = folder_make();
    struct writer *w = start(f.file, "hastened", NULL, NULL);
    int64_t x = 1;
    struct err e = { 0 };
    struct writer_job job = { .fn = insert, .arg = &x, .e = &e };

    must(writer_run(w, make_table, NULL, &e), &e);
    must(writer_begin(w, &job, &e), &e);
    writer_hasten(&job);
    assert_true(wait_until(has_a_row, f.file));
    must(writer_end(&job), &e);
    writer_stop(w);
}

static void a_begun_change_shares_the_commit_of_the_next_change(void **state)
{
    AUTO(folder_remove) struct folder f = folder_make();
    struct writer *w = start(f.file, "shared", NULL, NULL);
    static const char n_commits[] = "hearth_db_commits_total{db=\"shared\"}";
    int64_t x = 1, y = 2;
    struct err e = { 0 };
    struct writer_job job = { .fn = insert, .arg = &x, .e = &e };
    double before;

    must(writer_run(w, make_table, NULL, &e), &e);
    before = metric_of(n_commits);
    must(writer_begin(w, &job, &e), &e);
    assert_int_equal(count_rows(f.file), 0); /* nobody was woken */
    must(writer_run(w, insert, &y, &e), &e);
    assert_int_equal(count_rows(f.file), 2);
    must(writer_end(&job), &e);
    assert_true(metric_of(n_commits) - before == 1);
    writer_stop(w);
}

static int note_thread(struct sql_db *db, void *arg, struct err *e)
{
    *(pthread_t *)arg = pthread_self();
    return 0;
}

static void a_change_alone_is_made_on_its_callers_thread(void **state)
{
    AUTO(folder_remove) struct folder f = folder_make();
    struct writer *w = start(f.file, "own", NULL, NULL);
    struct err e = { 0 };
    pthread_t ran_on;

    must(writer_run(w, note_thread, &ran_on, &e), &e);
    assert_true(pthread_equal(ran_on, pthread_self()));
    writer_stop(w);
}

/* The first closure runs on its caller's thread; stopping waits for it and runs what is queued. */
static void a_stop_waits_for_the_group_of_a_caller(void **state)
{
    AUTO(folder_remove) struct folder f = folder_make();
    struct writer *w = start(f.file, "stop", NULL, NULL);
    struct call first = { .w = w, .fn = hold };
    int64_t x = 1;
    struct err e = { 0 };
    struct writer_job job = { .fn = insert, .arg = &x, .e = &e };

    must(writer_run(w, make_table, NULL, &e), &e);
    sem_init(&may_go, 0, 0);
    sem_init(&is_held, 0, 0);
    start_call(&first);
    sem_wait(&is_held);
    must(writer_begin(w, &job, &e), &e);
    sem_post(&may_go);
    writer_stop(w);
    must(writer_end(&job), &e);
    pthread_join(first.thread, NULL);
    must(first.r, &first.e);
    assert_int_equal(count_rows(f.file), 1);
}

/* --- many threads --- */

static void *insert_many(void *arg)
{
    struct call *c = arg;

    for (int64_t i = 0; i < N_EACH && c->r == 0; i++) {
        int64_t x = c->x * N_EACH + i;

        c->r = writer_run(c->w, insert, &x, &c->e);
    }
    return NULL;
}

static void many_threads_share_commits_and_lose_nothing(void **state)
{
    AUTO(folder_remove) struct folder f = folder_make();
    struct writer *w = start(f.file, "many", NULL, NULL);
    static const char n_commits[] = "hearth_db_commits_total{db=\"many\"}";
    struct call calls[N_THREADS];
    struct err e = { 0 };

    must(writer_run(w, make_table, NULL, &e), &e);
    for (size_t i = 0; i < N_THREADS; i++) {
        calls[i] = (struct call){ .w = w, .x = (int64_t)i };
        assert_int_equal(pthread_create(&calls[i].thread, NULL, insert_many, &calls[i]), 0);
    }
    for (size_t i = 0; i < N_THREADS; i++) {
        pthread_join(calls[i].thread, NULL);
        must(calls[i].r, &calls[i].e);
    }
    assert_int_equal(count_rows(f.file), N_THREADS * N_EACH);
    assert_true(metric_of(n_commits) >= 1);
    assert_true(metric_of(n_commits) <= N_THREADS * N_EACH + 1);
    writer_stop(w);
}

/* --- limits --- */

struct gathering {
    struct writer *w;
    struct call calls[LIMIT_WRITER_GROUP + 1];
};

/* All waiting calls form one group, but never more than the limit: counted by the number of commits. */
static void a_group_holds_as_many_as_the_limit(void **state)
{
    AUTO(folder_remove) struct folder f = folder_make();
    struct gathering *g = calloc(1, sizeof(*g));
    static const char n_commits[] = "hearth_db_commits_total{db=\"limit\"}";
    struct err e = { 0 };
    double before;

    g->w = start(f.file, "limit", NULL, NULL);
    must(writer_run(g->w, make_table, NULL, &e), &e);
    before = metric_of(n_commits);
    sem_init(&may_go, 0, 0);
    sem_init(&is_held, 0, 0);
    for (int64_t i = 0; i <= LIMIT_WRITER_GROUP; i++) {
        g->calls[i] = (struct call){ .w = g->w, .fn = i ? insert : hold, .x = i };
        start_call(&g->calls[i]);
        if (i == 0)
            sem_wait(&is_held);
    }
    wait_for_waiting(g->w, LIMIT_WRITER_GROUP);
    sem_post(&may_go);
    for (size_t i = 0; i <= LIMIT_WRITER_GROUP; i++)
        pthread_join(g->calls[i].thread, NULL);
    assert_int_equal(count_rows(f.file), LIMIT_WRITER_GROUP);
    assert_true(metric_of(n_commits) - before == 2);
    writer_stop(g->w);
    free(g);
}

/* --- on_commit --- */

static void count_up(void *arg)
{
    __atomic_add_fetch((int *)arg, 1, __ATOMIC_SEQ_CST);
}

static int only_read(struct sql_db *db, void *arg, struct err *e)
{
    return sql_exec(db, e, "SELECT count(*) FROM t", "");
}

static void on_commit_comes_for_changes_only(void **state)
{
    AUTO(folder_remove) struct folder f = folder_make();
    int n = 0;
    struct writer *w = start(f.file, "hook", count_up, &n);
    struct err e = { 0 };
    int64_t x = 1;

    must(writer_run(w, make_table, NULL, &e), &e);
    must(writer_run(w, insert, &x, &e), &e);
    must(writer_run(w, only_read, NULL, &e), &e);
    x = 2;
    assert_int_equal(writer_run(w, insert_and_fail, &x, &e), -EDOM);
    writer_stop(w);
    assert_int_equal(n, 1);
}

static void a_database_held_by_another_process_is_busy_and_then_free(void **state)
{
    AUTO(folder_remove) struct folder f = folder_make();
    struct writer *w = start(f.file, "busy", NULL, NULL);
    struct sql_db *other = NULL;
    struct err e = { 0 };
    int64_t x = 1;

    must(writer_run(w, make_table, NULL, &e), &e);
    must(sql_open(f.file, NULL, &other, &e), &e);
    must(sql_exec(other, &e, "BEGIN IMMEDIATE", ""), &e);
    assert_int_equal(writer_run(w, insert, &x, &e), -EBUSY);
    assert_string_equal(e.code, "STORE_BUSY");
    must(sql_exec(other, &e, "COMMIT", ""), &e);
    must(writer_run(w, insert, &x, &e), &e);
    assert_int_equal(count_rows(f.file), 1);
    sql_close(other);
    writer_stop(w);
}

/* --- a full disk: simulated by allowing no more pages than there are --- */

static int allow_no_more_pages(struct sql_db *db, void *arg, struct err *e)
{
    return sql_script(db, "PRAGMA max_page_count = 1", e); /* SQLite raises this to the present number of pages */
}

static int allow_more_pages(struct sql_db *db, void *arg, struct err *e)
{
    return sql_script(db, "PRAGMA max_page_count = 1000000", e);
}

static int insert_much(struct sql_db *db, void *arg, struct err *e)
{
    int r = insert(db, arg, e);

    return r < 0 ? r : sql_exec(db, e, "CREATE TABLE big AS SELECT randomblob(100000) AS bytes", "");
}

static void a_full_disk_is_reported_and_work_goes_on_when_there_is_room(void **state)
{
    AUTO(folder_remove) struct folder f = folder_make();
    struct writer *w = start(f.file, "full", NULL, NULL);
    struct err e = { 0 };
    int64_t x = 1;

    must(writer_run(w, make_table, NULL, &e), &e);
    must(writer_run(w, allow_no_more_pages, NULL, &e), &e);
    assert_int_equal(writer_run(w, insert_much, &x, &e), -ENOSPC);
    assert_string_equal(e.code, "STORE_FULL");
    assert_int_equal(count_rows(f.file), 0);
    must(writer_run(w, allow_more_pages, NULL, &e), &e);
    must(writer_run(w, insert_much, &x, &e), &e);
    assert_int_equal(count_rows(f.file), 1);
    writer_stop(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_change_is_on_disk_when_the_call_returns),
        cmocka_unit_test(one_that_fails_in_a_group_is_undone_alone),
        cmocka_unit_test(when_the_transaction_is_lost_every_caller_of_the_group_is_reported),
        cmocka_unit_test(a_begun_change_is_on_disk_when_its_end_returns),
        cmocka_unit_test(a_begun_change_may_be_ended_after_the_writer),
        cmocka_unit_test(a_begun_change_is_stored_before_its_end_when_it_is_hastened),
        cmocka_unit_test(a_begun_change_shares_the_commit_of_the_next_change),
        cmocka_unit_test(a_change_alone_is_made_on_its_callers_thread),
        cmocka_unit_test(a_stop_waits_for_the_group_of_a_caller),
        cmocka_unit_test(many_threads_share_commits_and_lose_nothing),
        cmocka_unit_test(a_group_holds_as_many_as_the_limit),
        cmocka_unit_test(on_commit_comes_for_changes_only),
        cmocka_unit_test(a_full_disk_is_reported_and_work_goes_on_when_there_is_room),
        cmocka_unit_test(a_database_held_by_another_process_is_busy_and_then_free),
    };

    return cmocka_run_group_tests_name("writer", tests, NULL, NULL);
}
