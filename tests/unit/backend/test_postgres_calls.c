/* Calls over connections that break, are few, or go through a pooler. */
#include "rig_postgres.h"

#include "base/limits.h"

#include <poll.h>
#include <stdatomic.h>

#define OTHERS                                                                                                         \
    "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"

/* --- lost connections --- */

static void a_call_after_the_server_has_closed_its_connections_succeeds(void **state)
{
    struct rig *rig = *state;
    const char *id = rig_insert(rig);
    struct backend_lease lease;
    struct err e = { 0 };

    rig_value(rig, "SELECT count(*) FROM (" OTHERS ") t");
    lease = rig_claim(rig, id, "lin-a"); /* a claim is never repeated: the loss was seen before it was sent */
    rig_value(rig, "SELECT count(*) FROM (" OTHERS ") t");
    must(backend_complete(rig->backend, &lease, "{}", &e), &e);
    assert_string_equal(rig_get(rig, id).status, "completed");
}

struct storm {
    struct rig *rig;
    atomic_bool is_over;
    pthread_t thread;
};

static void *terminate_all_the_time(void *arg)
{
    struct storm *storm = arg;
    PGconn *conn = PQconnectdb(rig_place(storm->rig)->url);

    while (!atomic_load(&storm->is_over)) {
        PQclear(PQexec(conn, OTHERS));
        (void)!poll(NULL, 0, 20);
    }
    PQfinish(conn);
    return NULL;
}

enum { N_STORM = 60 };

static void results_are_stored_once_while_connections_are_terminated(void **state)
{
    struct rig *rig = *state;
    struct backend_lease leases[N_STORM];
    struct storm storm = { .rig = rig };
    struct err e = { 0 };

    for (int i = 0; i < N_STORM; i++)
        leases[i] = rig_claim(rig, rig_insert(rig), "lin-a");
    pthread_create(&storm.thread, NULL, terminate_all_the_time, &storm);
    for (int i = 0; i < N_STORM; i++)
        while (backend_fail(rig->backend, &leases[i], "no", &e) < 0)
            assert_int_equal(strncmp(e.code, "STORE_", 6), 0); /* trouble, never a lost lease */
    atomic_store(&storm.is_over, true);
    pthread_join(storm.thread, NULL);
    assert_string_equal(rig_value(rig, "SELECT count(*) FROM svc_activities WHERE status = 'failed'"), "60");
    assert_string_equal(rig_value(rig, "SELECT sum(retry_count) FROM svc_activities"), "60");
}

static void a_server_that_is_not_there_is_trouble_and_answered_at_once_during_the_pause(void **state)
{
    struct rig *rig = *state;
    const struct postgres_place place = { .url = "host=/nowhere/at/all dbname=x user=y" };
    const struct net_wait wait = net_wait_of(20000, NULL, NULL);
    struct postgres_pool *pool = postgres_pool_new(&place);
    struct pg_link *link = NULL;
    struct err e = { 0 };

    assert_non_null(rig);
    assert_int_equal(postgres_pool_take(pool, &wait, &link, &e), -EAGAIN);
    assert_string_equal(e.code, "STORE_UNAVAILABLE");
    assert_int_equal(e.retry_after_ms, 0);
    while (e.retry_after_ms == 0) { /* an attempt whose pause was over by then makes the next pause longer */
        e = (struct err){ 0 };
        assert_int_equal(postgres_pool_take(pool, &wait, &link, &e), -EAGAIN);
    }
    postgres_pool_free(pool);
}

/* --- few connections --- */

struct reader {
    struct backend *backend;
    const char *id;
    int n_failed;
    pthread_t thread;
};

static void *read_often(void *arg)
{
    struct reader *reader = arg;
    AUTO(arena_freep) struct arena *a = arena_new();
    struct backend_row row;

    for (int i = 0; i < 40; i++)
        reader->n_failed += backend_get(reader->backend, TABLE, reader->id, NULL, a, &row, NULL) < 0;
    return NULL;
}

static void threads_share_few_connections(void **state)
{
    struct rig *rig = *state;
    struct backend *narrow = rig_open_url(rig_url_as(rig, "hearth_test application_name=narrow"), 2);
    struct reader readers[12];

    for (size_t i = 0; i < ARRAY_SIZE(readers); i++) {
        readers[i] = (struct reader){ .backend = narrow, .id = rig_insert(rig) };
        pthread_create(&readers[i].thread, NULL, read_often, &readers[i]);
    }
    for (size_t i = 0; i < ARRAY_SIZE(readers); i++) {
        pthread_join(readers[i].thread, NULL);
        assert_int_equal(readers[i].n_failed, 0);
    }
    /* and one for the events */
    assert_string_equal(rig_value(rig, "SELECT count(*) <= 3 FROM pg_stat_activity WHERE application_name = 'narrow'"),
                        "t");
    backend_close(narrow);
}

static void a_service_has_no_more_connections_than_the_limit_whatever_it_was_told(void **state)
{
    struct rig *rig = *state;
    const struct postgres_place place = { .url = rig_place(rig)->url, .n_connections = LIMIT_BACKEND_CONNECTIONS + 1 };
    const struct net_wait wait = net_wait_of(120000, NULL, NULL), none = net_wait_of(1, NULL, NULL);
    struct postgres_pool *pool = postgres_pool_new(&place);
    struct pg_link *links[LIMIT_BACKEND_CONNECTIONS], *another = NULL;
    struct err e = { 0 };

    for (size_t i = 0; i < ARRAY_SIZE(links); i++)
        must(postgres_pool_take(pool, &wait, &links[i], &e), &e);
    assert_true(postgres_pool_take(pool, &none, &another, &e) < 0);
    assert_null(another);
    postgres_pool_give(pool, &links[0]);
    must(postgres_pool_take(pool, &wait, &links[0], &e), &e);
    for (size_t i = 0; i < ARRAY_SIZE(links); i++)
        postgres_pool_give(pool, &links[i]);
    postgres_pool_free(pool);
}

/* --- statements that the server rolls back --- */

/* A sequence counts the attempts, because a rollback does not undo it. */
static void let_first_changes_conflict(struct rig *rig, int n)
{
    rig_sql(rig, arena_printf(rig->arena,
                              "DROP SEQUENCE IF EXISTS tries; CREATE SEQUENCE tries;"
                              "CREATE OR REPLACE FUNCTION conflict() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
                              " IF nextval('public.tries') <= %d THEN"
                              " RAISE 'conflict' USING ERRCODE = 'serialization_failure'; END IF; RETURN NEW; END $$;"
                              "CREATE OR REPLACE TRIGGER conflict BEFORE UPDATE ON svc_activities"
                              " FOR EACH ROW EXECUTE FUNCTION conflict()",
                              n));
}

static void a_statement_that_is_rolled_back_is_tried_six_times(void **state)
{
    struct rig *rig = *state;
    const char *first = rig_insert(rig), *second = rig_insert(rig);
    const struct backend_lease taken = rig_claim(rig, first, "lin-a"), other = rig_claim(rig, second, "lin-a");
    struct err e = { 0 };

    let_first_changes_conflict(rig, LIMIT_BACKEND_ATTEMPTS - 1);
    must(backend_complete(rig->backend, &taken, "{}", &e), &e);
    assert_string_equal(rig_get(rig, first).status, "completed");
    let_first_changes_conflict(rig, LIMIT_BACKEND_ATTEMPTS);
    assert_true(backend_complete(rig->backend, &other, "{}", &e) < 0);
    assert_string_equal(rig_value(rig, "SELECT last_value FROM tries"), "6");
    rig_sql(rig, "DROP TRIGGER conflict ON svc_activities");
    must(backend_complete(rig->backend, &other, "{}", &e), &e);
}

/* --- prepared statements and poolers --- */

static int count_rows(void *arg, const struct pg_row *row, struct err *e)
{
    ++*(int *)arg;
    return 0;
}

static void a_pooler_that_changes_servers_is_noticed_and_nothing_is_prepared_any_more(void **state)
{
    static const char *const disturbances[] = {
        "DEALLOCATE ALL",                               /* the next server does not know the statement */
        "DEALLOCATE ALL; PREPARE hearth_x AS SELECT 1", /* nor this one */
    };
    const struct net_wait wait = net_wait_of(20000, NULL, NULL);
    struct rig *rig = *state;
    const struct postgres_place place = { .url = rig_place(rig)->url };

    for (size_t i = 0; i < ARRAY_SIZE(disturbances); i++) {
        const struct pg_statement disturb = { .sql = disturbances[i], .is_script = true };
        int n = 0;
        const struct pg_statement st = { .sql = "SELECT $1",
                                         .params = (const char *const[]){ "x" },
                                         .n_params = 1,
                                         .n_columns = 1,
                                         .max_rows = 1,
                                         .on_row = count_rows,
                                         .arg = &n,
                                         .is_prepared = true };
        struct pg_link *link = NULL;
        struct err e = { 0 };

        must(postgres_pool_connect(&place, &wait, &link, &e), &e);
        must(pg_link_run(link, &wait, &st, &e), &e);
        must(pg_link_run(link, &wait, &st, &e), &e);
        must(pg_link_run(link, &wait, &disturb, &e), &e);
        must(pg_link_run(link, &wait, &st, &e), &e);
        must(pg_link_run(link, &wait, &disturb, &e), &e);
        must(pg_link_run(link, &wait, &st, &e), &e);
        assert_int_equal(n, 4);
        assert_true(pg_link_is_reusable(link));
        pg_link_close(link);
    }
}

static void statements_of_one_round_trip_stand_alone(void **state)
{
    static const char *const bad[] = { "none" }, *const good[] = { "7" };
    const struct net_wait wait = net_wait_of(20000, NULL, NULL);
    struct rig *rig = *state;
    const struct postgres_place place = { .url = rig_place(rig)->url };
    const struct pg_statement disturb = { .sql = "DEALLOCATE ALL", .is_script = true };
    int64_t n[3] = { 0 };
    struct pg_statement statements[3];
    struct pg_link *link = NULL;
    struct err e = { 0 };
    int results[3];

    rig_sql(rig, "CREATE TABLE numbers (n int)");
    for (int i = 0; i < 3; i++)
        statements[i] = (struct pg_statement){ .sql = "INSERT INTO numbers SELECT $1::int",
                                               .params = i == 1 ? bad : good,
                                               .n_params = 1,
                                               .ret_changes = &n[i],
                                               .is_prepared = true };
    must(postgres_pool_connect(&place, &wait, &link, &e), &e);
    must(pg_link_run_all(link, &wait, statements, 3, results, &e), &e);
    assert_true(results[0] == 0 && results[1] == -EIO && results[2] == 0 && n[0] == 1 && n[2] == 1);
    assert_true(pg_link_is_reusable(link));
    must(pg_link_run(link, &wait, &disturb, &e), &e); /* as a pooler does */
    must(pg_link_run_all(link, &wait, statements, 3, results, &e), &e);
    assert_true(results[0] == -EIO && results[2] == -EIO);
    assert_true(pg_link_is_reusable(link));
    must(pg_link_run(link, &wait, &statements[0], &e), &e);
    pg_link_close(link);
    assert_string_equal(rig_value(rig, "SELECT count(*) FROM numbers"), "3");
}

static void a_changed_table_makes_no_statement_fail(void **state)
{
    struct rig *rig = *state;
    const char *id = rig_insert(rig);

    rig_get(rig, id);
    rig_sql(rig, "ALTER TABLE svc_activities ALTER COLUMN app_id TYPE varchar(200)");
    assert_string_equal(rig_get(rig, id).id, id);
}

/* --- values --- */

static void what_jsonb_cannot_hold_is_refused_in_words(void **state)
{
    static const char *const refused[] = { "{\"a\":\"\\u0000\"}", "{\"a\":1e999999}" };
    struct rig *rig = *state;

    for (size_t i = 0; i < ARRAY_SIZE(refused); i++) {
        struct backend_new_row in = { .table = TABLE, .raw_data = refused[i] };
        struct backend_row row;
        struct err e = { 0 };

        assert_int_equal(backend_insert(rig->backend, &in, rig->arena, &row, &e), -EINVAL);
        assert_string_equal(e.code, "VALIDATION_ERROR");
    }
}

/* Numbers that jsonb prints with all their digits make a text of megabytes out of few bytes. */
static void numbers_that_grow_beyond_the_limit_are_refused(void **state)
{
    struct rig *rig = *state;
    struct backend_row row;
    struct buf text;
    struct err e = { 0 };

    buf_init(&text, LIMIT_BODY_ACTIVITY);
    buf_add_str(&text, "{\"a\":[1");
    for (int i = 0; i < 30000; i++)
        buf_add_str(&text, ",1e300");
    buf_add_str(&text, "]}");
    assert_int_equal(backend_insert(rig->backend,
                                    &(struct backend_new_row){ .table = TABLE, .raw_data = buf_str(&text) }, rig->arena,
                                    &row, &e),
                     -E2BIG);
    assert_string_equal(e.code, "TOO_LARGE");
    buf_clear(&text);
}

static void rows_that_others_filled_oddly_are_read_and_claimed(void **state)
{
    struct rig *rig = *state;
    const char *id;
    struct backend_row row;

    rig_sql(rig, "INSERT INTO svc_activities (id, raw_data, attempted_by, locked_at, created_at) VALUES"
                 " ('6f9619ff-8b86-4d01-b42d-00c04fc964ff', '{\" \\\\\\\" \": \"a, b: c\"}', '{NULL,b}', 'infinity',"
                 " '0001-01-01')");
    id = "6f9619ff-8b86-4d01-b42d-00c04fc964ff";
    row = rig_get(rig, id);
    assert_string_equal(row.raw_data, "{\" \\\\\\\" \":\"a, b: c\"}");
    assert_null(row.locked_at);
    rig_claim(rig, id, "lin-a");
    rig_sql(rig, "INSERT INTO svc_activities (raw_data, attempted_by) VALUES ('{}', '{{a,b},{c,d}}')");
    assert_int_equal(rig_list(rig, (struct backend_query){ 0 }).n, 2);
}

static void work_of_deletions_that_nobody_took_up_for_a_week_is_removed(void **state)
{
    struct rig *rig = *state;
    const struct backend_presence me = { .machine_id = "lin-a" };
    struct err e = { 0 };

    rig_sql(
        rig,
        "INSERT INTO svc_deletions (raw_data, status, created_at) VALUES ('{}', 'pending', now() - interval '8 days'),"
        " ('{}', 'claimed', now() - interval '8 days'), ('{}', 'pending', now() - interval '6 days')");
    must(OPS(rig)->presence_put(rig->backend, &me, 1000, &e), &e);
    assert_string_equal(rig_value(rig, "SELECT count(*) FROM svc_deletions"), "2");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        POSTGRES_TEST(a_call_after_the_server_has_closed_its_connections_succeeds),
        POSTGRES_TEST(results_are_stored_once_while_connections_are_terminated),
        POSTGRES_TEST(a_server_that_is_not_there_is_trouble_and_answered_at_once_during_the_pause),
        POSTGRES_TEST(threads_share_few_connections),
        POSTGRES_TEST(a_service_has_no_more_connections_than_the_limit_whatever_it_was_told),
        POSTGRES_TEST(a_statement_that_is_rolled_back_is_tried_six_times),
        POSTGRES_TEST(a_pooler_that_changes_servers_is_noticed_and_nothing_is_prepared_any_more),
        POSTGRES_TEST(statements_of_one_round_trip_stand_alone),
        POSTGRES_TEST(a_changed_table_makes_no_statement_fail),
        POSTGRES_TEST(what_jsonb_cannot_hold_is_refused_in_words),
        POSTGRES_TEST(numbers_that_grow_beyond_the_limit_are_refused),
        POSTGRES_TEST(rows_that_others_filled_oddly_are_read_and_claimed),
        POSTGRES_TEST(work_of_deletions_that_nobody_took_up_for_a_week_is_removed),
    };

    return postgres_run_tests(tests, ARRAY_SIZE(tests));
}
