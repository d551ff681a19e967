/* The logical stream as the source of the events, and the choice between it and the outbox. */
#include "events_rig.h"
#include "fixture_postgres.h"
#include "backend/query.h"

#include <stdatomic.h>

static struct postgres_events_status status_of(struct events_rig *rig)
{
    return postgres_events_status(rig->events);
}

static void every_change_is_reported_with_its_old_and_new_row(void **state)
{
    struct events_rig *rig = *state;
    const struct recorded *ev;

    assert_true(status_of(rig).is_logical);
    sql(rig, "INSERT INTO svc_activities (raw_data) VALUES ('{\"n\": 1}')");
    sql(rig, "UPDATE svc_activities SET raw_data = '{\"n\": 2}'");
    sql(rig, "UPDATE svc_activities SET locked_at = now()"); /* a sign of life */
    sql(rig, "UPDATE svc_activities SET status = 'later'");
    sql(rig, "BEGIN; DELETE FROM svc_activities; ROLLBACK");
    sql(rig, "DELETE FROM svc_activities");
    ev = recorder_wait(rig->rec, 4);
    assert_int_equal(ev[0].op, BACKEND_INSERT);
    assert_string_equal(ev[1].old_raw, "{\"n\":1}");
    assert_string_equal(ev[1].new_raw, "{\"n\":2}");
    assert_true(ev[2].is_lease_only);
    assert_string_equal(ev[2].new_status, "later");
    assert_int_equal(ev[3].op, BACKEND_DELETE);
    assert_string_equal(ev[3].work_source, "svc_activities");
    assert_int_equal(recorder_n(rig->rec), 4);
    assert_int_equal(recorder_n_gaps(rig->rec), 0);
}

static void only_what_commits_after_the_subscription_is_reported(void **state)
{
    struct events_rig *rig = *state;
    PGconn *other = events_db(rig, "");
    struct recorder *late;
    const struct recorded *ev;

    sql_on(other, "BEGIN; INSERT INTO svc_activities (raw_data) VALUES ('{\"n\": 2}')");
    sql(rig, "INSERT INTO svc_activities (raw_data) VALUES ('{\"n\": 1}')");
    recorder_wait(rig->rec, 1);
    postgres_events_unsubscribe(rig->events, rig->rec);
    sql(rig, "INSERT INTO svc_activities (raw_data) VALUES ('{\"n\": 0}')");
    late = events_recorder(rig->events);
    sql_on(other, "COMMIT");
    ev = recorder_wait(late, 1);
    assert_string_equal(ev[0].new_raw, "{\"n\":2}");
    assert_int_equal(recorder_n_gaps(late), 0);
    postgres_events_unsubscribe(rig->events, late);
    pthread_mutex_destroy(&late->lock);
    free(late);
    PQfinish(other);
}

static bool has_stream(void *arg)
{
    struct postgres_events_status status = status_of(arg);

    return status.is_logical && status.state == POSTGRES_EVENTS_LIVE;
}

static void a_killed_walsender_is_a_gap_and_the_stream_goes_on(void **state)
{
    struct events_rig *rig = *state;

    for (int i = 1; i <= 3; i++) {
        if (!wait_until(has_stream, rig))
            fail_msg("there is no stream");
        sql(rig, "SELECT count(pg_terminate_backend(active_pid)) FROM pg_replication_slots"
                 " WHERE database = current_database() AND active_pid IS NOT NULL");
        events_wait_gaps(rig, i);
    }
    sql(rig, "INSERT INTO svc_activities (raw_data) VALUES ('{\"n\": 1}')");
    recorder_wait(rig->rec, 1);
}

/* The server asks after half of its time limit and ends the stream after the whole: what is left is for a machine that
 * stands still meanwhile. */
static bool has_the_limit_passed(void *arg)
{
    return clock_mono_ms() > *(const int64_t *)arg + 6000;
}

static void an_idle_stream_answers_a_server_that_asks(void **state)
{
    struct events_rig *rig = *state;
    int64_t began_ms;

    sql(rig, "ALTER ROLE hearth_test SET wal_sender_timeout = '5s'");
    sql(rig, "SELECT count(pg_terminate_backend(active_pid)) FROM pg_replication_slots"
             " WHERE database = current_database()"); /* the next one has the setting */
    events_wait_gaps(rig, 1);
    began_ms = clock_mono_ms();
    assert_true(wait_until(has_the_limit_passed, &began_ms));
    sql(rig, "INSERT INTO svc_activities (raw_data) VALUES ('{\"n\": 1}')");
    recorder_wait(rig->rec, 1);
    sql(rig, "ALTER ROLE hearth_test RESET wal_sender_timeout");
    assert_int_equal(recorder_n_gaps(rig->rec), 1);
}

static bool has_confirmed(void *arg)
{
    return sql(arg, "SELECT count(*) FROM pg_replication_slots WHERE database = current_database()"
                    " AND confirmed_flush_lsn >= (SELECT max(lsn) FROM marks)") == 1;
}

static void the_server_is_told_how_far_the_stream_was_read(void **state)
{
    struct events_rig *rig = *state;

    sql(rig, "CREATE TABLE marks (lsn pg_lsn)");
    sql(rig, "INSERT INTO svc_activities (raw_data) VALUES ('{\"n\": 1}')");
    sql(rig, "INSERT INTO marks SELECT pg_current_wal_insert_lsn()");
    sql(rig, "INSERT INTO svc_activities (raw_data) VALUES ('{\"n\": 2}')");
    recorder_wait(rig->rec, 2);
    assert_true(wait_until(has_confirmed, rig));
}

static void a_row_that_is_too_large_for_an_event_is_a_gap(void **state)
{
    struct events_rig *rig = *state;

    sql(rig, "DROP TRIGGER hearth_0_sizes ON svc_activities");
    sql(rig, "INSERT INTO svc_activities (raw_data) VALUES (jsonb_build_object('x', repeat('y', 34000000)))");
    events_wait_gaps(rig, 1);
    assert_int_equal(recorder_n(rig->rec), 0);
    sql(rig, "INSERT INTO svc_activities (raw_data) VALUES ('{\"n\": 1}')");
    recorder_wait(rig->rec, 1);
}

static void a_truncated_table_is_a_gap(void **state)
{
    struct events_rig *rig = *state;

    sql(rig, "TRUNCATE svc_activities");
    events_wait_gaps(rig, 1);
}

/* --- the choice --- */

static bool has_why(struct events_rig *rig, const char *part)
{
    return strstr(status_of(rig).why, part) != NULL;
}

static bool has_outbox(void *arg)
{
    struct postgres_events_status status = status_of(arg);

    return !status.is_logical && status.state == POSTGRES_EVENTS_LIVE;
}

static void terminate_stream(struct events_rig *rig)
{
    sql(rig, "SELECT count(pg_terminate_backend(active_pid)) FROM pg_replication_slots"
             " WHERE database = current_database() AND active_pid IS NOT NULL");
}

/* The connection of the events has a name of its own. */
static void terminate_outbox(struct events_rig *rig)
{
    sql(rig, "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity"
             " WHERE datname = current_database() AND application_name = 'reader'");
}

struct awaited {
    struct events_rig *rig;
    const char *new_raw;
};

static bool is_reported(void *arg)
{
    const struct awaited *it = arg;
    bool is_so = false;

    for (size_t i = 0, n = recorder_n(it->rig->rec); i < n; i++)
        is_so |= strcmp(it->rig->rec->events[i].new_raw, it->new_raw) == 0;
    return is_so;
}

/* Whatever came before it, or comes beside it. */
static void wait_for_row(struct events_rig *rig, const char *new_raw)
{
    struct awaited it = { rig, new_raw };

    if (!wait_until(is_reported, &it))
        fail_msg("no event has the row %s", new_raw);
}

/* After the change the service finds the outbox, says why, and reports a gap and what comes then. */
static void check_outbox(struct events_rig *rig, const char *why)
{
    if (!wait_until(has_outbox, rig))
        fail_msg("the outbox was not chosen: %s", status_of(rig).why);
    if (!has_why(rig, why))
        fail_msg("it says %s", status_of(rig).why);
    events_wait_gaps(rig, 1);
    sql(rig, "INSERT INTO svc_activities (raw_data) VALUES ('{\"n\": 1}')");
    wait_for_row(rig, "{\"n\":1}");
}

static void the_stream_is_chosen_where_it_can_be_had(void **state)
{
    struct events_rig *rig = *state;

    assert_true(has_stream(rig));
    assert_string_equal(status_of(rig).why, "");
}

static void a_dropped_publication_leads_to_the_outbox(void **state)
{
    struct events_rig *rig = *state;

    sql(rig, "DROP PUBLICATION svc_events");
    sql(rig, "INSERT INTO svc_activities (raw_data) VALUES ('{\"n\": 0}')");
    check_outbox(rig, "no publication svc_events");
}

static void a_table_outside_the_publication_leads_to_the_outbox(void **state)
{
    struct events_rig *rig = *state;

    sql(rig, "ALTER PUBLICATION svc_events DROP TABLE svc_deletions");
    terminate_stream(rig);
    check_outbox(rig, "svc_deletions");
}

static void a_table_that_leaves_the_publication_leads_to_the_outbox(void **state)
{
    struct events_rig *rig = *state;

    sql(rig, "ALTER PUBLICATION svc_events DROP TABLE svc_activities");
    check_outbox(rig, "lacks the whole rows of public.svc_activities");
}

static bool has_lost_table(void *arg)
{
    return has_why(arg, "ALTER PUBLICATION \"svc_events\" ADD TABLE public.svc_activities");
}

static bool has_no_complaint(void *arg)
{
    return !*status_of(arg).why;
}

static const char *last_fault(struct events_rig *rig, struct arena *a)
{
    struct backend_monitor monitor = { 0 };

    postgres_events_monitor(rig->events, a, &monitor);
    return monitor.last_error;
}

/* No choice: nobody is sent the changes, and the sweep finds them. */
static void without_a_choice_a_table_that_leaves_the_publication_is_a_gap(void **state)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct events_rig *rig = *state;

    sql(rig, "ALTER PUBLICATION svc_events DROP TABLE svc_activities");
    events_wait_gaps(rig, 1);
    assert_true(wait_until(has_lost_table, rig));
    assert_non_null(strstr(last_fault(rig, a), "public.svc_activities"));
    sql(rig, "INSERT INTO svc_activities (raw_data) VALUES ('{\"n\": 1}')");
    sql(rig, "ALTER PUBLICATION svc_events ADD TABLE svc_activities");
    events_wait_gaps(rig, 2);
    assert_true(wait_until(has_no_complaint, rig));
    assert_true(has_stream(rig));
    sql(rig, "INSERT INTO svc_activities (raw_data) VALUES ('{\"n\": 2}')");
    assert_string_equal(recorder_wait(rig->rec, 1)[0].new_raw, "{\"n\":2}");
    assert_int_equal(recorder_n_gaps(rig->rec), 2);
}

static void declare_notes(struct events_rig *rig)
{
    struct table_column id = { .name = "id", .type = TABLE_INT8, .is_key = true };
    const struct table_shape notes = { .table = "notes", .columns = &id, .n_columns = 1 };
    struct backend *b = postgres_open(rig->place);
    struct err e = { 0 };

    must(backend_declare(b, &notes, &e), &e);
    b->ops->close(b);
}

static void a_declared_table_outside_the_publication_leads_to_the_outbox(void **state)
{
    struct events_rig *rig = *state;

    declare_notes(rig);
    sql(rig, "ALTER PUBLICATION svc_events DROP TABLE notes");
    terminate_stream(rig);
    check_outbox(rig, "notes");
    sql(rig, "INSERT INTO notes VALUES (1)");
    wait_for_row(rig, "{\"id\":1}");
    declare_notes(rig); /* puts it back */
    terminate_outbox(rig);
    if (!wait_until(has_stream, rig))
        fail_msg("the stream was not chosen: %s", status_of(rig).why);
}

static void reopen(struct events_rig *rig)
{
    rig->events = events_open(rig);
    pthread_mutex_destroy(&rig->rec->lock);
    free(rig->rec);
    rig->rec = events_recorder(rig->events);
}

static void taken_slots_lead_to_the_outbox(void **state)
{
    struct events_rig *rig = *state;

    postgres_events_close(rig->events);
    assert_true(wait_until(cluster_has_no_slot, rig->place));
    sql(rig, "SELECT count(pg_create_physical_replication_slot('taken_' || i)) FROM generate_series(1,"
             " current_setting('max_replication_slots')::int) i");
    reopen(rig);
    sql(rig, "SELECT count(pg_drop_replication_slot(slot_name)) FROM pg_replication_slots");
    assert_true(has_outbox(rig));
    assert_true(has_why(rig, "every replication slot of the server is in use"));
    sql(rig, "INSERT INTO svc_activities (raw_data) VALUES ('{\"n\": 1}')");
    recorder_wait(rig->rec, 1);
    assert_int_equal(recorder_n_gaps(rig->rec), 0);
}

static void an_open_transaction_does_not_hold_the_events_up(void **state)
{
    struct events_rig *rig = *state;
    PGconn *holder = events_db(rig, "");

    sql_on(holder, "BEGIN; CREATE TABLE held (n int)");
    terminate_stream(rig);
    check_outbox(rig, "a transaction that was open did not end");
    PQfinish(holder);
}

static void without_wal_level_logical_the_outbox_is_chosen(void **state)
{
    struct events_rig *rig = *state;
    struct postgres_events_config config = {
        .abbr = "svc", .mode = POSTGRES_EVENTS_AUTO, .connect = events_connect, .run = events_run, .arg = rig
    };
    struct postgres_events *ev = NULL;
    struct recorder *rec;
    struct err e = { 0 };

    must(postgres_events_open(&config, &ev, &e), &e);
    rec = events_recorder(ev);
    assert_string_equal(postgres_events_status(ev).why, "wal_level is replica");
    sql(rig, "INSERT INTO svc_activities (raw_data) VALUES ('{\"n\": 1}')");
    recorder_wait(rec, 1);
    assert_int_equal(recorder_n_gaps(rec), 0);
    postgres_events_close(ev);
    pthread_mutex_destroy(&rec->lock);
    free(rec);
}

static bool has_told(void *arg)
{
    return has_why(arg, "no publication");
}

static void a_demanded_stream_waits_for_what_is_missing(void **state)
{
    struct events_rig *rig = *state;

    sql(rig, "DROP PUBLICATION svc_events");
    terminate_stream(rig);
    assert_true(wait_until(has_told, rig));
    assert_false(has_stream(rig));
    sql(rig, "CREATE PUBLICATION svc_events FOR TABLE svc_activities, svc_deletions");
    events_wait_gaps(rig, 1);
    assert_true(wait_until(has_stream, rig));
    sql(rig, "INSERT INTO svc_activities (raw_data) VALUES ('{\"n\": 1}')");
    recorder_wait(rig->rec, 1);
}

/* --- the outbox that nobody reads --- */

static void the_outbox_stays_empty_while_only_streams_are_read(void **state)
{
    struct events_rig *rig = *state;

    sql(rig, "INSERT INTO svc_activities (raw_data) VALUES ('{\"n\": 1}')");
    recorder_wait(rig->rec, 1);
    assert_int_equal(sql(rig, "SELECT count(*) FROM svc_outbox"), 0);
}

/* The server ends a closed connection, and its locks, some time later. */
static bool has_no_reader(void *arg)
{
    return sql(arg, "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'") == 0;
}

static void a_reader_of_the_outbox_is_served_beside_a_stream(void **state)
{
    struct events_rig *rig = *state;
    struct postgres_events_config config = {
        .abbr = "svc", .mode = POSTGRES_EVENTS_OUTBOX, .connect = events_connect, .run = events_run, .arg = rig
    };
    struct postgres_events *ev = NULL;
    struct recorder *rec;
    struct err e = { 0 };

    must(postgres_events_open(&config, &ev, &e), &e);
    rec = events_recorder(ev);
    sql(rig, "INSERT INTO svc_activities (raw_data) VALUES ('{\"n\": 1}')");
    recorder_wait(rec, 1);
    recorder_wait(rig->rec, 1);
    assert_int_equal(recorder_n_gaps(rec), 0);
    postgres_events_close(ev);
    sql(rig, "INSERT INTO svc_activities (raw_data) VALUES ('{\"n\": 2}')"); /* the reader may come back */
    assert_int_equal(sql(rig, "SELECT count(*) FROM svc_outbox"), 2);
    assert_true(wait_until(has_no_reader, rig));
    sql(rig, "UPDATE svc_outbox_mark SET wanted_until = now() - interval '1 second'");
    sql(rig, "INSERT INTO svc_activities (raw_data) VALUES ('{\"n\": 3}')");
    assert_int_equal(sql(rig, "SELECT count(*) FROM svc_outbox"), 2);
    pthread_mutex_destroy(&rec->lock);
    free(rec);
}

/* Its trigger found nobody to record for. */
static void what_was_open_before_the_reader_came_is_a_gap(void **state)
{
    struct events_rig *rig = *state;
    PGconn *other = events_db(rig, "");

    postgres_events_close(rig->events);
    assert_true(wait_until(has_no_reader, rig));
    sql(rig, "UPDATE svc_outbox_mark SET wanted_until = NULL");
    sql_on(other, "BEGIN; INSERT INTO svc_activities (raw_data) VALUES ('{\"n\": 1}')");
    reopen(rig);
    sql(rig, "INSERT INTO svc_activities (raw_data) VALUES ('{\"n\": 2}')");
    recorder_wait(rig->rec, 1);
    assert_int_equal(recorder_n_gaps(rig->rec), 0);
    sql_on(other, "COMMIT");
    events_wait_gaps(rig, 1);
    assert_int_equal(recorder_n(rig->rec), 1);
    PQfinish(other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        EVENTS_TEST_STREAM(every_change_is_reported_with_its_old_and_new_row),
        EVENTS_TEST_STREAM(only_what_commits_after_the_subscription_is_reported),
        EVENTS_TEST_STREAM(a_killed_walsender_is_a_gap_and_the_stream_goes_on),
        EVENTS_TEST_STREAM(an_idle_stream_answers_a_server_that_asks),
        EVENTS_TEST_STREAM(the_server_is_told_how_far_the_stream_was_read),
        EVENTS_TEST_STREAM(a_row_that_is_too_large_for_an_event_is_a_gap),
        EVENTS_TEST_STREAM(a_truncated_table_is_a_gap),
        EVENTS_TEST_AUTO(the_stream_is_chosen_where_it_can_be_had),
        EVENTS_TEST_AUTO(a_dropped_publication_leads_to_the_outbox),
        EVENTS_TEST_AUTO(a_table_outside_the_publication_leads_to_the_outbox),
        EVENTS_TEST_AUTO(a_table_that_leaves_the_publication_leads_to_the_outbox),
        EVENTS_TEST_STREAM(without_a_choice_a_table_that_leaves_the_publication_is_a_gap),
        EVENTS_TEST_AUTO(a_declared_table_outside_the_publication_leads_to_the_outbox),
        EVENTS_TEST_AUTO(taken_slots_lead_to_the_outbox),
        EVENTS_TEST_AUTO(an_open_transaction_does_not_hold_the_events_up),
        EVENTS_TEST(without_wal_level_logical_the_outbox_is_chosen),
        EVENTS_TEST_STREAM(a_demanded_stream_waits_for_what_is_missing),
        EVENTS_TEST_STREAM(the_outbox_stays_empty_while_only_streams_are_read),
        EVENTS_TEST_STREAM(a_reader_of_the_outbox_is_served_beside_a_stream),
        EVENTS_TEST(what_was_open_before_the_reader_came_is_a_gap),
    };

    if (!cluster_is_installed())
        return puts("1..0 # SKIP no PostgreSQL is installed") < 0;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
