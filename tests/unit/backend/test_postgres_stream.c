/* The logical stream of a server gives the same events as its outbox. */
#include "events_rig.h"

#include "backend/postgres/pgoutput.h"
#include "backend/postgres/postgres_stream.h"

struct streaming {
    struct recorder *rec;
    struct postgres_stream *stream;
};

static void stream_event(void *arg, const struct backend_event *event)
{
    record_event(((struct streaming *)arg)->rec, event);
}

static void stream_gap(void *arg)
{
    record_gap(((struct streaming *)arg)->rec);
}

static int take_message(void *arg, struct slice message, struct err *e)
{
    struct streaming *s = arg;
    struct pgoutput_frame frame = { .kind = PGOUTPUT_KEEPALIVE };
    int r = pgoutput_read_frame(message, &frame, e);

    return r == 0 && frame.kind == PGOUTPUT_DATA ? postgres_stream_take(s->stream, frame.body, 0, e) : r;
}

static struct pg_link *open_stream(struct events_rig *rig)
{
    const struct net_wait wait = net_wait_of(WAIT_MS, NULL, NULL);
    const struct pg_statement slot = {
        .sql = "CREATE_REPLICATION_SLOT \"peer\" TEMPORARY LOGICAL pgoutput NOEXPORT_SNAPSHOT", .is_script = true
    };
    struct pg_link *link = NULL;
    struct err e = { 0 };

    must(events_connect(rig, true, &wait, &link, &e), &e);
    must(pg_link_run(link, &wait, &slot, &e), &e);
    must(pg_link_stream(
             link, &wait,
             "START_REPLICATION SLOT \"peer\" LOGICAL 0/0 (proto_version '1', publication_names 'svc_events')", &e),
         &e);
    return link;
}

static void read_stream(struct events_rig *rig, struct pg_link *link, struct streaming *s, size_t n)
{
    const struct net_wait wait = net_wait_of(WAIT_MS, NULL, NULL);
    struct err e = { 0 };
    int r = 0;

    while (r >= 0 && s->rec->n < n) {
        r = pg_link_stream_take(link, SIZE_MAX, take_message, s, &e);
        if (r == 0)
            r = pg_link_await(&link, 1, &wait, &e);
    }
    must(r, &e);
}

static void check_same(const struct recorded *one, const struct recorded *other)
{
    assert_int_equal(one->op, other->op);
    assert_int_equal(one->is_lease_only, other->is_lease_only);
    assert_string_equal(one->table, other->table);
    assert_string_equal(one->id, other->id);
    assert_string_equal(one->new_raw, other->new_raw);
    assert_string_equal(one->old_raw, other->old_raw);
    assert_string_equal(one->new_status, other->new_status);
    assert_string_equal(one->old_status, other->old_status);
    assert_string_equal(one->work_id, other->work_id);
    assert_string_equal(one->work_table, other->work_table);
    assert_string_equal(one->work_source, other->work_source);
}

static void the_stream_gives_the_events_of_the_outbox(void **state)
{
    struct events_rig *rig = *state;
    struct streaming s = { .rec = xcalloc(1, sizeof(*s.rec)) };
    const struct postgres_outbox_sink sink = { stream_event, stream_gap, &s };
    struct pg_link *link = open_stream(rig);

    pthread_mutex_init(&s.rec->lock, NULL);
    s.stream = postgres_stream_new("svc", &sink);
    sql(rig, "INSERT INTO svc_activities (raw_data) SELECT jsonb_build_object('i', i) FROM generate_series(1, 5) i");
    sql(rig, "UPDATE svc_activities SET raw_data = raw_data || jsonb_build_object('x', repeat('y', 20000))"
             " WHERE raw_data->>'i' = '1'"); /* TOAST; the next statement leaves it unchanged */
    sql(rig, "UPDATE svc_activities SET user_id = gen_random_uuid(), attempted_by = '{a,\"b \\\"c\"}'"
             " WHERE raw_data->>'i' = '1'");
    sql(rig, "SELECT svc_fn_claim_task(id, 'peer') FROM svc_activities WHERE raw_data->>'i' = '4'");
    sql(rig, "UPDATE svc_activities SET locked_at = now() - interval '1 min' WHERE raw_data->>'i' = '4'");
    sql(rig, "BEGIN; INSERT INTO svc_activities (raw_data) VALUES ('{\"i\": 6}');"
             " DELETE FROM svc_activities WHERE raw_data->>'i' IN ('5', '6'); COMMIT");
    recorder_wait(rig->rec, 11);
    read_stream(rig, link, &s, 11);
    assert_int_equal(rig->rec->n, s.rec->n);
    for (size_t i = 0; i < s.rec->n; i++)
        check_same(&rig->rec->events[i], &s.rec->events[i]);
    assert_int_equal(s.rec->n_gaps, 0);
    pg_link_close(link);
    postgres_stream_free(s.stream);
    pthread_mutex_destroy(&s.rec->lock);
    free(s.rec);
}

int main(void)
{
    const struct CMUnitTest tests[] = { EVENTS_TEST_LOGICAL(the_stream_gives_the_events_of_the_outbox) };

    if (!cluster_is_installed())
        return puts("1..0 # SKIP no PostgreSQL is installed") < 0;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
