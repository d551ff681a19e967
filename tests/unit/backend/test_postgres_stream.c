/* The logical stream of a server gives the same events as its outbox. */
#define RECORDER_RAW 16384
#include "events_rig.h"
#include "fixture_postgres.h"

#include "backend/postgres/pgoutput.h"
#include "backend/postgres/postgres_stream.h"
#include "backend/query.h"

struct streaming {
    struct recorder *rec;
    struct postgres_stream *stream;
    struct pg_link *link, *catalog;
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

static int read_columns(void *arg, uint32_t relation, struct arena *a, struct postgres_columns *ret, struct err *e)
{
    const struct net_wait wait = net_wait_of(WAIT_MS, NULL, NULL);
    const struct streaming *s = arg;

    return postgres_columns_read(s->catalog, relation, &wait, a, ret, e);
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

static struct streaming *streaming_start(struct events_rig *rig)
{
    const struct net_wait wait = net_wait_of(WAIT_MS, NULL, NULL);
    struct streaming *s = xcalloc(1, sizeof(*s));
    const struct postgres_outbox_sink sink = { stream_event, stream_gap, s };
    const struct postgres_stream_catalog catalog = { read_columns, s };
    struct err e = { 0 };

    s->rec = xcalloc(1, sizeof(*s->rec));
    pthread_mutex_init(&s->rec->lock, NULL);
    s->link = open_stream(rig);
    must(events_connect(rig, false, &wait, &s->catalog, &e), &e);
    s->stream = postgres_stream_new("svc", &sink, &catalog);
    return s;
}

static void streaming_stop(struct streaming *s)
{
    pg_link_close(s->link);
    pg_link_close(s->catalog);
    postgres_stream_free(s->stream);
    pthread_mutex_destroy(&s->rec->lock);
    free(s->rec);
    free(s);
}

static void read_stream(struct streaming *s, size_t n)
{
    const struct net_wait wait = net_wait_of(WAIT_MS, NULL, NULL);
    struct err e = { 0 };
    int r = 0;

    while (r >= 0 && recorder_n(s->rec) < n) {
        r = pg_link_stream_take(s->link, SIZE_MAX, take_message, s, &e);
        if (r == 0)
            r = pg_link_await(&s->link, 1, &wait, &e);
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
    struct streaming *s = streaming_start(rig);

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
    read_stream(s, 11);
    assert_int_equal(recorder_n(rig->rec), recorder_n(s->rec));
    for (size_t i = 0; i < recorder_n(s->rec); i++)
        check_same(&rig->rec->events[i], &s->rec->events[i]);
    assert_int_equal(recorder_n_gaps(s->rec), 0);
    streaming_stop(s);
}

/* --- tables with columns of their own --- */

static const char every_type[] =
    "CREATE SCHEMA \"the shop\"; CREATE TYPE public.mood AS ENUM ('sad', 'it''s ok');"
    "CREATE DOMAIN public.amount AS numeric(12,2); CREATE DOMAIN public.list AS int4[];"
    "CREATE TABLE \"the shop\".\"all.types\" (id int8, part text, PRIMARY KEY (id, part), ok bool, small int2, n int4,"
    " f4 float4, f8 float8, price amount, day date, at time, attz timetz, stamp timestamp, stamptz timestamptz,"
    " \"a \"\"b\"\" ü\" text, v varchar(9), c char(4), code uuid, j json, jb jsonb, bytes bytea, span interval, mood mood,"
    " address inet, bits varbit, r int4range, texts text[], numbers int4[], oks bool[], prices amount[], l list,"
    " stamps timestamptz[], jbs jsonb[], moods mood[], boxes box[], status text, user_id uuid, big text)";

static const char every_value[] =
    "INSERT INTO \"the shop\".\"all.types\" VALUES (9007199254740993, 'a', true, -1, 7, 1.5, 1e-7, 1234567890.10,"
    " '0044-03-15 BC', '10:11:12.5', '10:11:12+02', '2026-11-20 09:30:18.1', '2026-11-20 09:30:18.123456+02',"
    " E'q\"\\\\\n\\u0001', 'v', 'c', gen_random_uuid(), ' {\"a\": [1,\n\tnull]}', '{\"b\": 1.50, \"a\": \"x  y\"}', '\\x00ff',"
    " '1 day 2 hours', 'it''s ok', '10.0.0.1/8', B'101', '[1,5)', ARRAY['a,b', 'c\"d', NULL, 'NULL', '', '{}'],"
    " '{{1,2},{3,NULL}}', '{t,f}', '{1.10,NULL}', '[2:3]={7,8}', ARRAY['infinity'::timestamptz, '2026-01-01'],"
    " ARRAY['{\"x\": [1]}'::jsonb], '{sad,\"it''s ok\"}', '{(1,1),(0,0);(2,2),(0,0)}', 'new', gen_random_uuid(),"
    " (SELECT string_agg(md5(i::text), '') FROM generate_series(1, 200) i))";

static const char other_values[] =
    "INSERT INTO \"the shop\".\"all.types\" (id, part, small, f4, f8, price, day, stamp, stamptz) VALUES"
    " (2, '', 0, 'NaN', 'Infinity', 'NaN', 'infinity', '-infinity', '0001-01-01 00:00:00+00 BC')";

/* As an app does whose table was there before. */
static void declare_every_type(struct events_rig *rig)
{
    struct table_column columns[] = { { .name = "id", .type = TABLE_INT8, .is_key = true },
                                      { .name = "part", .type = TABLE_TEXT, .is_key = true } };
    const struct table_shape shape = { .table = "\"the shop\".\"all.types\"", .columns = columns, .n_columns = 2 };
    struct backend *b = postgres_open(rig->place);
    struct err e = { 0 };

    sql(rig, every_type);
    must(backend_declare(b, &shape, &e), &e);
    b->ops->close(b);
}

static bool is_same_json(struct events_rig *rig, const char *one, const char *other)
{
    const char *const values[] = { one, other };
    PGresult *result;
    bool is_so;

    if (strcmp(one, "(none)") == 0 || strcmp(other, "(none)") == 0)
        return strcmp(one, other) == 0;
    result = PQexecParams(rig->db, "SELECT $1::jsonb = $2::jsonb", 2, NULL, values, NULL, NULL, 0);
    is_so = strcmp(PQgetvalue(result, 0, 0), "t") == 0;
    PQclear(result);
    return is_so;
}

static void check_same_record(struct events_rig *rig, const struct recorded *one, const struct recorded *other)
{
    assert_int_equal(one->op, other->op);
    assert_string_equal(one->table, other->table);
    if (!is_same_json(rig, one->id, other->id))
        fail_msg("the id is %s, not %s", other->id, one->id);
    assert_string_equal(one->new_status, other->new_status);
    assert_string_equal(one->old_status, other->old_status);
    if (!is_same_json(rig, one->new_raw, other->new_raw))
        fail_msg("the new record is\n%.1500s, not\n%.1500s", other->new_raw, one->new_raw);
    if (!is_same_json(rig, one->old_raw, other->old_raw))
        fail_msg("the old record is\n%.1500s, not\n%.1500s", other->old_raw, one->old_raw);
}

static void the_stream_gives_the_records_of_the_outbox(void **state)
{
    struct events_rig *rig = *state;
    struct streaming *s;

    declare_every_type(rig);
    s = streaming_start(rig);
    sql(rig, every_value);
    sql(rig, other_values);
    sql(rig, "UPDATE \"the shop\".\"all.types\" SET status = NULL, n = 8 WHERE id > 2"); /* TOAST stays unchanged */
    sql(rig, "ALTER TABLE \"the shop\".\"all.types\" DROP COLUMN j, ADD COLUMN more amount DEFAULT 3");
    sql(rig, "UPDATE \"the shop\".\"all.types\" SET more = 4, part = 'b'");
    sql(rig, "DELETE FROM \"the shop\".\"all.types\"");
    recorder_wait(rig->rec, 7);
    read_stream(s, 7);
    for (size_t i = 0; i < 7; i++)
        check_same_record(rig, &rig->rec->events[i], &s->rec->events[i]);
    assert_int_equal(recorder_n_gaps(s->rec), 0);
    streaming_stop(s);
}

static void a_table_without_whole_old_rows_is_told_by_its_key(void **state)
{
    struct events_rig *rig = *state;
    struct streaming *s;

    declare_every_type(rig);
    sql(rig, "ALTER TABLE \"the shop\".\"all.types\" REPLICA IDENTITY DEFAULT");
    s = streaming_start(rig);
    sql(rig, "INSERT INTO \"the shop\".\"all.types\" (id, part, n) VALUES (1, 'p', 1)");
    sql(rig, "UPDATE \"the shop\".\"all.types\" SET n = 2");
    sql(rig, "DELETE FROM \"the shop\".\"all.types\"");
    read_stream(s, 3);
    assert_string_equal(s->rec->events[1].id, "[1,\"p\"]");
    for (int i = 1; i < 3; i++)
        assert_string_equal(s->rec->events[i].old_raw, "{\"id\":1,\"part\":\"p\"}");
    assert_non_null(strstr(s->rec->events[1].new_raw, "\"n\":2,"));
    streaming_stop(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        EVENTS_TEST_LOGICAL(the_stream_gives_the_events_of_the_outbox),
        EVENTS_TEST_LOGICAL(the_stream_gives_the_records_of_the_outbox),
        EVENTS_TEST_LOGICAL(a_table_without_whole_old_rows_is_told_by_its_key),
    };

    if (!cluster_is_installed())
        return puts("1..0 # SKIP no PostgreSQL is installed") < 0;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
