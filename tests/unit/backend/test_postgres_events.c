#include "events_rig.h"
#include "../tsan.h"
#include "backend/postgres/postgres_outbox_schema.h"

#include <stdatomic.h>

#define INSERT_ONE "INSERT INTO " ACTIVITIES " (raw_data) VALUES ('{\"n\": 1}')"

/* --- what is reported --- */

static void every_change_is_reported_with_its_old_and_new_row(void **state)
{
    struct events_rig *rig = *state;
    const struct recorded *ev;

    sql(rig, INSERT_ONE);
    sql(rig, "UPDATE " ACTIVITIES " SET raw_data = '{\"n\": 2}'");
    sql(rig, "UPDATE " ACTIVITIES " SET status = 'claimed', locked_by = 'm', locked_at = now()");
    sql(rig, "UPDATE " ACTIVITIES " SET locked_at = now() + interval '1 s'"); /* a sign of life */
    sql(rig, "DELETE FROM " ACTIVITIES);
    ev = recorder_wait(rig->rec, 4);
    assert_int_equal(ev[0].op, BACKEND_INSERT);
    assert_string_equal(ev[0].table, "svc_activities");
    assert_string_equal(ev[0].new_raw, "{\"n\":1}");
    assert_string_equal(ev[0].old_raw, "(none)");
    assert_int_equal(ev[1].op, BACKEND_UPDATE);
    assert_false(ev[1].is_lease_only);
    assert_string_equal(ev[1].old_raw, "{\"n\":1}");
    assert_string_equal(ev[1].new_raw, "{\"n\":2}");
    assert_true(ev[2].is_lease_only);
    assert_string_equal(ev[2].old_status, "pending");
    assert_string_equal(ev[2].new_status, "claimed");
    assert_int_equal(ev[3].op, BACKEND_DELETE);
    assert_string_equal(ev[3].old_raw, "{\"n\":2}");
    assert_string_equal(ev[3].work_table, "svc_deletions");
    assert_string_equal(ev[3].work_source, "svc_activities");
    assert_int_equal(recorder_n(rig->rec), 4);
    assert_int_equal(recorder_n_gaps(rig->rec), 0);
}

static void a_transaction_is_reported_when_it_commits_and_one_undone_is_not(void **state)
{
    struct events_rig *rig = *state;
    PGconn *open = events_db(rig, "");
    const struct recorded *ev;

    sql_on(open, "BEGIN; INSERT INTO " ACTIVITIES " (raw_data) VALUES ('{\"n\": \"slow\"}')");
    sql(rig, "BEGIN; INSERT INTO " ACTIVITIES " (raw_data) VALUES ('{\"n\": \"undone\"}'); ROLLBACK");
    sql(rig, "BEGIN; SAVEPOINT s; INSERT INTO " ACTIVITIES " (raw_data) VALUES ('{\"n\": \"undone\"}');"
             " ROLLBACK TO s; INSERT INTO " ACTIVITIES " (raw_data) VALUES ('{\"n\": \"fast\"}'); COMMIT");
    ev = recorder_wait(rig->rec, 1);
    assert_string_equal(ev[0].new_raw, "{\"n\":\"fast\"}");
    sql_on(open, "COMMIT");
    ev = recorder_wait(rig->rec, 2);
    assert_string_equal(ev[1].new_raw, "{\"n\":\"slow\"}");
    assert_int_equal(recorder_n(rig->rec), 2);
    assert_int_equal(recorder_n_gaps(rig->rec), 0);
    PQfinish(open);
}

/* The one that waits for a row of the other has the lower transaction number. */
static void what_waited_for_a_row_is_reported_after_what_held_it(void **state)
{
    struct events_rig *rig = *state;
    PGconn *first = events_db(rig, ""), *second = events_db(rig, "");
    const struct recorded *ev;

    sql(rig, INSERT_ONE);
    sql_on(second, "BEGIN; INSERT INTO " ACTIVITIES " (raw_data) VALUES ('{\"n\": \"second\"}')");
    sql_on(first, "BEGIN; UPDATE " ACTIVITIES " SET raw_data = '{\"n\": \"a\"}'");
    assert_int_equal(PQsendQuery(second, "UPDATE " ACTIVITIES " SET raw_data = '{\"n\": \"b\"}' WHERE"
                                         " raw_data->>'n' <> 'second'"),
                     1);
    sql_on(first, "COMMIT");
    PQclear(PQgetResult(second));
    while (PQgetResult(second))
        ;
    sql_on(second, "COMMIT");
    ev = recorder_wait(rig->rec, 4);
    assert_string_equal(ev[1].new_raw, "{\"n\":\"a\"}");
    assert_string_equal(ev[2].new_raw, "{\"n\":\"second\"}");
    assert_string_equal(ev[3].old_raw, "{\"n\":\"a\"}");
    assert_string_equal(ev[3].new_raw, "{\"n\":\"b\"}");
    PQfinish(first);
    PQfinish(second);
}

static void only_what_commits_after_the_subscription_is_reported(void **state)
{
    struct events_rig *rig = *state;
    struct postgres_events *other = events_open(rig);
    struct recorder *rec;

    sql(rig, INSERT_ONE);
    rec = events_recorder(other);
    sql(rig, "UPDATE " ACTIVITIES " SET raw_data = '{\"n\": 2}'");
    assert_int_equal(recorder_wait(rec, 1)[0].op, BACKEND_UPDATE);
    assert_int_equal(recorder_n_gaps(rec), 0);
    assert_int_equal(postgres_events_subscribe(other, record_event, record_gap, rec, NULL), -EEXIST);
    postgres_events_close(other);
    pthread_mutex_destroy(&rec->lock);
    free(rec);
}

static void a_truncated_table_is_a_gap(void **state)
{
    struct events_rig *rig = *state;

    sql(rig, "TRUNCATE " ACTIVITIES);
    events_wait_gaps(rig, 1);
    assert_int_equal(recorder_n(rig->rec), 0);
}

/* --- many writers --- */

enum { WRITERS = 8, EACH = 60 };

struct writer {
    struct events_rig *rig;
    int number;
    pthread_t thread;
};

static void *write_some(void *arg)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct writer *w = arg;
    PGconn *conn = events_db(w->rig, "");

    for (int i = 0; i < EACH; i++)
        sql_on(conn, arena_printf(a, "INSERT INTO " ACTIVITIES " (raw_data) VALUES ('{\"i\": %d, \"t\": %d}')", i,
                                  w->number));
    PQfinish(conn);
    return NULL;
}

static void start_writers(struct events_rig *rig, struct writer writers[WRITERS])
{
    for (int t = 0; t < WRITERS; t++) {
        writers[t] = (struct writer){ .rig = rig, .number = t };
        pthread_create(&writers[t].thread, NULL, write_some, &writers[t]);
    }
}

static void end_writers(struct writer writers[WRITERS])
{
    for (int t = 0; t < WRITERS; t++)
        pthread_join(writers[t].thread, NULL);
}

/* Each event once, those of one writer in their order. */
static void check_writers(struct recorder *rec)
{
    int next[WRITERS] = { 0 }, thread, i;

    for (size_t k = 0; k < recorder_n(rec); k++) {
        assert_int_equal(sscanf(rec->events[k].new_raw, "{\"i\":%d,\"t\":%d}", &i, &thread), 2);
        assert_int_equal(i, next[thread]++);
        assert_true(k == 0 || rec->events[k].sequence > rec->events[k - 1].sequence);
    }
    assert_int_equal(recorder_n(rec), WRITERS * EACH);
}

static void events_of_concurrent_writers_come_once_each_in_order(void **state)
{
    struct events_rig *rig = *state;
    struct writer writers[WRITERS];

    start_writers(rig, writers);
    end_writers(writers);
    recorder_wait(rig->rec, WRITERS * EACH);
    check_writers(rig->rec);
    assert_int_equal(recorder_n_gaps(rig->rec), 0);
}

#define TERMINATE_READERS                                                                                              \
    "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE application_name = 'reader'"

static bool has_terminated(void *arg)
{
    return sql(arg, TERMINATE_READERS) > 0;
}

/* The position is a snapshot, so a new connection goes on where the last one ended; a gap is reported all the same. */
static void storms_of_terminated_connections_lose_and_repeat_nothing(void **state)
{
    struct events_rig *rig = *state;
    struct writer writers[WRITERS];

    start_writers(rig, writers);
    for (int i = 0; i < 12; i++)
        assert_true(wait_until(has_terminated, rig));
    end_writers(writers);
    assert_true(wait_until(has_terminated, rig));
    recorder_wait(rig->rec, WRITERS * EACH);
    events_wait_gaps(rig, 1);
    check_writers(rig->rec);
}

/* --- writers who could be disturbed --- */

static void a_writer_with_a_foreign_search_path_is_not_disturbed(void **state)
{
    struct events_rig *rig = *state;

    sql(rig, "CREATE SCHEMA evil; CREATE TABLE evil.svc_outbox (x int);"
             "CREATE FUNCTION evil.pg_notify(text, text) RETURNS void LANGUAGE plpgsql AS $$ BEGIN"
             " RAISE 'evil'; END $$;"
             "CREATE FUNCTION evil.json_build_object(VARIADIC \"any\") RETURNS json LANGUAGE internal"
             " AS 'json_build_object';"
             "SET search_path = evil; SET TimeZone = 'Asia/Tokyo'; SET DateStyle = 'German'");
    sql(rig, INSERT_ONE);
    assert_string_equal(recorder_wait(rig->rec, 1)[0].new_raw, "{\"n\":1}");
    sql(rig, "RESET ALL; DROP SCHEMA evil CASCADE");
    assert_int_equal(recorder_n_gaps(rig->rec), 0);
}

static void a_writer_without_rights_on_the_outbox_is_not_disturbed(void **state)
{
    struct events_rig *rig = *state;
    PGconn *conn;

    sql(rig, "DROP ROLE IF EXISTS guest; CREATE ROLE guest LOGIN; GRANT SELECT, INSERT, UPDATE, DELETE ON " ACTIVITIES
             " TO guest; ALTER TABLE " ACTIVITIES " ENABLE ROW LEVEL SECURITY; CREATE POLICY p ON " ACTIVITIES
             " USING (app_id = 'guest') WITH CHECK (app_id = 'guest')");
    conn = events_db(rig, "user=guest");
    sql_on(conn, "SET row_security = on; INSERT INTO " ACTIVITIES " (raw_data, app_id) VALUES ('{\"n\": 1}', 'guest')");
    sql_on(conn, "DELETE FROM " ACTIVITIES);
    assert_int_equal(recorder_wait(rig->rec, 2)[1].op, BACKEND_DELETE);
    assert_string_equal(rig->rec->events[1].work_source, "svc_activities");
    assert_int_equal(recorder_n_gaps(rig->rec), 0);
    PQfinish(conn);
}

/* The trigger cannot record the change: the writer commits, and readers are sent a gap. */
static void a_change_that_cannot_be_recorded_is_a_gap_and_no_error(void **state)
{
    struct events_rig *rig = *state;

    sql(rig, "ALTER TABLE public.svc_outbox ADD CONSTRAINT broken CHECK (op <> 1)");
    sql(rig, INSERT_ONE);
    events_wait_gaps(rig, 1);
    sql(rig, "ALTER TABLE public.svc_outbox RENAME TO elsewhere");
    sql(rig, INSERT_ONE);
    sql(rig, "ALTER TABLE public.elsewhere RENAME TO svc_outbox");
    events_wait_gaps(rig, 2);
    assert_int_equal(sql(rig, "SELECT count(*) FROM " ACTIVITIES), 2);
}

/* Such a statement is a service's claim or completion; any program may set what these set. */
static void a_statement_that_says_it_changes_leases_only_and_changes_more_is_a_gap(void **state)
{
    struct events_rig *rig = *state;

    sql(rig, INSERT_ONE);
    recorder_wait(rig->rec, 1);
    sql(rig, POSTGRES_SAYS_LEASES "UPDATE " ACTIVITIES " SET status = 'claimed', locked_by = 'm'");
    assert_true(recorder_wait(rig->rec, 2)[1].is_lease_only);
    assert_string_equal(rig->rec->events[1].new_status, "claimed");
    assert_int_equal(recorder_n_gaps(rig->rec), 0);
    sql(rig, POSTGRES_SAYS_LEASES "UPDATE " ACTIVITIES " SET status = 'pending', raw_data = '{\"n\": 2}'");
    events_wait_gaps(rig, 1);
    sql(rig, "UPDATE " ACTIVITIES " SET raw_data = '{\"n\": 3}'");
    assert_string_equal(recorder_wait(rig->rec, 3)[2].new_raw, "{\"n\":3}");
    assert_int_equal(recorder_n_gaps(rig->rec), 1);
}

/* Old and new row cannot be told to be the same one. */
static void a_row_whose_id_changes_is_a_gap(void **state)
{
    struct events_rig *rig = *state;
    int n_gaps;

    sql(rig, INSERT_ONE);
    recorder_wait(rig->rec, 1);
    sql(rig, "UPDATE " ACTIVITIES " SET id = gen_random_uuid()");
    events_wait_gaps(rig, 1);
    sql(rig, "UPDATE " ACTIVITIES " SET status = 'claimed'");
    recorder_wait(rig->rec, 2);
    n_gaps = recorder_n_gaps(rig->rec);
    sql(rig, POSTGRES_SAYS_LEASES "UPDATE " ACTIVITIES " SET id = gen_random_uuid()");
    events_wait_gaps(rig, n_gaps + 1);
}

/* The function of changes runs with its owner's rights and the writer's search_path. */
static void operators_and_types_of_a_writer_stand_for_none_of_the_trigger_s(void **state)
{
    static const char *const types[] = { "uuid", "text", "bigint", "integer", "jsonb", "timestamptz", "text[]" };
    struct events_rig *rig = *state;
    const struct recorded *ev;
    char text[400];

    sql(rig, INSERT_ONE);
    sql(rig, "CREATE SCHEMA evil; CREATE TABLE evil.called (n int)");
    for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
        snprintf(text, sizeof(text),
                 "CREATE FUNCTION evil.same(%s, %s) RETURNS boolean LANGUAGE sql AS"
                 " 'INSERT INTO evil.called VALUES (1); SELECT true';"
                 "CREATE OPERATOR evil.= (LEFTARG = %s, RIGHTARG = %s, FUNCTION = evil.same)",
                 types[i], types[i], types[i], types[i]);
        sql(rig, text);
    }
    sql(rig,
        "CREATE DOMAIN evil.text AS pg_catalog.text CHECK (value = 'never');"
        "CREATE FUNCTION evil.current_query() RETURNS pg_catalog.text LANGUAGE sql AS $$ SELECT 'x'::pg_catalog.text $$;"
        "CREATE TEMP TABLE hearth_new (id int); CREATE TEMP TABLE hearth_old (id int)");
    sql(rig, "SET search_path = evil, pg_catalog; UPDATE " ACTIVITIES " SET raw_data = '{\"n\": 2}'");
    sql(rig, POSTGRES_SAYS_LEASES "UPDATE " ACTIVITIES " SET status = 'claimed'");
    ev = recorder_wait(rig->rec, 3);
    assert_string_equal(ev[1].new_raw, "{\"n\":2}");
    assert_true(ev[2].is_lease_only);
    assert_int_equal(recorder_n_gaps(rig->rec), 0);
    assert_int_equal(sql(rig, "SELECT count(*) FROM evil.called"), 0);
}

static void note_plan(void *arg, const PGresult *notice)
{
    const char *text = PQresultErrorMessage(notice);
    int *plans = arg;

    plans[0] += strstr(text, "Full Join") != NULL;
    plans[1] += strstr(text, "Nested Loop") != NULL;
}

/* A session keeps the plan of its first statements, which changed one row each. */
static void a_statement_of_many_rows_after_small_ones_is_recorded_without_comparing_all_pairs(void **state)
{
    struct events_rig *rig = *state;
    PGconn *conn = events_db(rig, "");
    int plans[2] = { 0, 0 };

    sql(rig, INSERT_ONE);
    PQsetNoticeReceiver(conn, note_plan, plans);
    sql_on(conn, "LOAD 'auto_explain'; SET auto_explain.log_min_duration = 0;"
                 "SET auto_explain.log_nested_statements = on; SET client_min_messages = log");
    for (int i = 0; i < 12; i++)
        sql_on(conn, "UPDATE " ACTIVITIES " SET raw_data = raw_data || jsonb_build_object('m', random())");
    assert_int_equal(plans[0], 12);
    sql_on(conn,
           "INSERT INTO " ACTIVITIES " (raw_data) SELECT jsonb_build_object('n', i) FROM generate_series(1, 500) i;"
           "UPDATE " ACTIVITIES " SET raw_data = raw_data || '{\"m\": 0}'");
    assert_int_equal(plans[0], 13);
    assert_int_equal(plans[1], 0);
    recorder_wait(rig->rec, 1 + 12 + 500 + 501);
    assert_int_equal(recorder_n_gaps(rig->rec), 0);
    PQfinish(conn);
}

static void a_row_that_is_too_large_for_an_event_is_a_gap(void **state)
{
    struct events_rig *rig = *state;

    sql(rig, "DROP TRIGGER hearth_0_sizes ON " ACTIVITIES);
    sql(rig, "INSERT INTO " ACTIVITIES " (raw_data) SELECT jsonb_build_object('x', string_agg(md5(i::text), ''))"
             " FROM generate_series(1, 1200000) i"); /* 38 MB */
    events_wait_gaps(rig, 1);
    assert_int_equal(sql(rig, "SELECT count(*) FROM public.svc_outbox WHERE NOT new_rest IS NULL"), 0);
    sql(rig, "INSERT INTO " ACTIVITIES " (raw_data) VALUES (jsonb_build_object('x', repeat('\"', 30000000)))");
    events_wait_gaps(rig, 2); /* 60 MB as text, small as it is stored */
    sql(rig, INSERT_ONE);
    recorder_wait(rig->rec, 1);
}

/* Its text would have more than the 1 GB that a server prints; every service would fail to read the outbox for ever. */
static void a_row_that_the_server_cannot_print_is_a_gap(void **state)
{
    struct events_rig *rig = *state;

    sql(rig, "INSERT INTO " ACTIVITIES
             " (raw_data, old_data) SELECT '{}', jsonb_agg(1e131071) FROM generate_series(1, 8300)");
    events_wait_gaps(rig, 1);
    sql(rig, INSERT_ONE);
    recorder_wait(rig->rec, 1);
}

/* NOTIFY would make PREPARE TRANSACTION fail. */
static void a_writer_may_prepare_its_transaction(void **state)
{
    struct events_rig *rig = *state;
    PGconn *conn = events_db(rig, "");

    sql_on(conn, "BEGIN; " INSERT_ONE "; PREPARE TRANSACTION 'one'");
    sql_on(conn, "COMMIT PREPARED 'one'");
    recorder_wait(rig->rec, 1);
    assert_int_equal(recorder_n_gaps(rig->rec), 0);
    PQfinish(conn);
}

/* --- size --- */

struct counter {
    atomic_size_t n, n_gaps;
    size_t n_wanted;
};

static void count_event(void *arg, const struct backend_event *event)
{
    atomic_fetch_add(&((struct counter *)arg)->n, 1);
}

static void count_gap(void *arg)
{
    atomic_fetch_add(&((struct counter *)arg)->n_gaps, 1);
}

static bool has_counted(void *arg)
{
    const struct counter *c = arg;

    return atomic_load(&c->n) >= c->n_wanted;
}

enum { MANY = TENTH_UNDER_TSAN(100000) };

static void a_statement_of_many_rows_is_reported_whole(void **state)
{
    struct events_rig *rig = *state;
    struct counter c = { .n_wanted = MANY };
    char text[200];
    struct err e = { 0 };

    postgres_events_unsubscribe(rig->events, rig->rec);
    must(postgres_events_subscribe(rig->events, count_event, count_gap, &c, &e), &e);
    snprintf(text, sizeof(text),
             "INSERT INTO " ACTIVITIES " (raw_data) SELECT jsonb_build_object('i', i) FROM generate_series(1, %d) i",
             MANY);
    sql(rig, text);
    assert_true(wait_until(has_counted, &c));
    assert_int_equal(atomic_load(&c.n), MANY);
    assert_int_equal(atomic_load(&c.n_gaps), 0);
    postgres_events_unsubscribe(rig->events, &c);
}

/* --- pruning --- */

static bool is_pruned(void *arg)
{
    return sql(arg, "SELECT count(*) FROM public.svc_outbox WHERE name <> 'x'") == 0;
}

static void old_changes_leave_the_outbox(void **state)
{
    struct events_rig *rig = *state;

    sql(rig, "UPDATE public.svc_outbox_mark SET marked_at = 'infinity'"); /* no pruning yet */
    sql(rig, "INSERT INTO " ACTIVITIES " (raw_data) SELECT '{}' FROM generate_series(1, 2500)");
    recorder_wait(rig->rec, 2500);
    sql(rig, "UPDATE public.svc_outbox_mark SET marked_at = now() - interval '1 hour', mark = pg_current_snapshot()");
    assert_true(wait_until(is_pruned, rig));
    assert_int_equal(recorder_n_gaps(rig->rec), 0);
}

static void what_was_pruned_before_it_was_reported_is_a_gap(void **state)
{
    struct events_rig *rig = *state;

    sql(rig, "BEGIN; " INSERT_ONE "; SELECT pg_current_xact_id(); COMMIT");
    recorder_wait(rig->rec, 1);
    sql(rig, "BEGIN; DELETE FROM public.svc_outbox; UPDATE public.svc_outbox_mark SET marked_at = now(),"
             " pruned = (pg_snapshot_xmin(pg_current_snapshot())::text || ':' ||"
             " (pg_current_xact_id()::text::bigint + 1)::text || ':')::pg_snapshot; COMMIT; " INSERT_ONE);
    recorder_wait(rig->rec, 2);
    assert_true(recorder_n_gaps(rig->rec) <= 1); /* whether the reader had looked between both is open */
}

/* --- broadcasts --- */

struct heard {
    pthread_mutex_t lock;
    char channel[64], event[64];
    char *payload;
    int n;
};

static void hear(void *arg, const char *channel, const char *event, const char *payload_json)
{
    struct heard *heard = arg;

    pthread_mutex_lock(&heard->lock);
    copy_text(heard->channel, sizeof(heard->channel), channel);
    copy_text(heard->event, sizeof(heard->event), event);
    free(heard->payload);
    heard->payload = xstrdup(payload_json);
    heard->n++;
    pthread_mutex_unlock(&heard->lock);
}

static int n_heard(struct heard *heard)
{
    int n;

    pthread_mutex_lock(&heard->lock);
    n = heard->n;
    pthread_mutex_unlock(&heard->lock);
    return n;
}

static bool has_heard(void *arg)
{
    return n_heard(arg) > 0;
}

static void a_broadcast_reaches_the_listeners_of_every_service(void **state)
{
    struct events_rig *rig = *state;
    struct postgres_events *other = events_open(rig);
    struct heard heard = { .lock = PTHREAD_MUTEX_INITIALIZER }, elsewhere = { .lock = PTHREAD_MUTEX_INITIALIZER };
    struct err e = { 0 };

    must(postgres_events_listen(other, "task-retry-shop", hear, &heard, &e), &e);
    must(postgres_events_listen(other, "another", hear, &elsewhere, &e), &e);
    sql(rig, "NOTIFY svc_broadcast, 'no JSON'");
    sql(rig, "NOTIFY svc_broadcast, '[1,2,3]'");
    sql(rig, "NOTIFY svc_broadcast, '[\"task-retry-shop\",\"x\",\"no JSON\"]'");
    must(postgres_events_broadcast(rig->events, "task-retry-shop", "task-available", "{\"id\":\"7 \\\"q\\\"\"}", &e),
         &e);
    assert_true(wait_until(has_heard, &heard));
    assert_string_equal(heard.channel, "task-retry-shop");
    assert_string_equal(heard.event, "task-available");
    assert_string_equal(heard.payload, "{\"id\":\"7 \\\"q\\\"\"}");
    assert_int_equal(n_heard(&heard), 1);
    assert_int_equal(n_heard(&elsewhere), 0);
    postgres_events_unlisten(other, &heard);
    postgres_events_close(other);
    free(heard.payload);
}

static void a_broadcast_may_fill_a_notification_and_no_more(void **state)
{
    struct events_rig *rig = *state;
    struct heard heard = { .lock = PTHREAD_MUTEX_INITIALIZER };
    enum { FRAME = sizeof("[\"c\",\"e\",\"\\\"\\\"\"]") - 1 };
    char payload[LIMIT_NOTIFY_BYTES];
    struct err e = { 0 };

    memset(payload, 'x', sizeof(payload));
    payload[0] = payload[LIMIT_NOTIFY_BYTES - FRAME + 1] = '"';
    payload[LIMIT_NOTIFY_BYTES - FRAME + 2] = '\0';
    must(postgres_events_listen(rig->events, "c", hear, &heard, &e), &e);
    must(postgres_events_broadcast(rig->events, "c", "e", payload, &e), &e);
    assert_true(wait_until(has_heard, &heard));
    assert_string_equal(heard.payload, payload);
    assert_int_equal(postgres_events_broadcast(rig->events, "cc", "e", payload, &e), -E2BIG);
    assert_string_equal(e.code, "TOO_LARGE");
    postgres_events_unlisten(rig->events, &heard);
    free(heard.payload);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        EVENTS_TEST(every_change_is_reported_with_its_old_and_new_row),
        EVENTS_TEST(a_transaction_is_reported_when_it_commits_and_one_undone_is_not),
        EVENTS_TEST(what_waited_for_a_row_is_reported_after_what_held_it),
        EVENTS_TEST(only_what_commits_after_the_subscription_is_reported),
        EVENTS_TEST(a_truncated_table_is_a_gap),
        EVENTS_TEST(events_of_concurrent_writers_come_once_each_in_order),
        EVENTS_TEST(storms_of_terminated_connections_lose_and_repeat_nothing),
        EVENTS_TEST(a_writer_with_a_foreign_search_path_is_not_disturbed),
        EVENTS_TEST(a_writer_without_rights_on_the_outbox_is_not_disturbed),
        EVENTS_TEST(a_change_that_cannot_be_recorded_is_a_gap_and_no_error),
        EVENTS_TEST(a_statement_that_says_it_changes_leases_only_and_changes_more_is_a_gap),
        EVENTS_TEST(a_row_whose_id_changes_is_a_gap),
        EVENTS_TEST(operators_and_types_of_a_writer_stand_for_none_of_the_trigger_s),
        EVENTS_TEST(a_statement_of_many_rows_after_small_ones_is_recorded_without_comparing_all_pairs),
        EVENTS_TEST(a_row_that_is_too_large_for_an_event_is_a_gap),
        EVENTS_TEST(a_row_that_the_server_cannot_print_is_a_gap),
        EVENTS_TEST_LOGICAL(a_writer_may_prepare_its_transaction),
        EVENTS_TEST(a_statement_of_many_rows_is_reported_whole),
        EVENTS_TEST(old_changes_leave_the_outbox),
        EVENTS_TEST(what_was_pruned_before_it_was_reported_is_a_gap),
        EVENTS_TEST(a_broadcast_reaches_the_listeners_of_every_service),
        EVENTS_TEST(a_broadcast_may_fill_a_notification_and_no_more),
    };

    if (!cluster_is_installed())
        return puts("1..0 # SKIP no PostgreSQL is installed") < 0;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
