#define ONLY_WITH_EVENTS 1
#include "recorder.h"
#include "backend/monitor.h"
#include "backend/query.h"

static void every_change_is_reported_with_its_old_and_new_row(void **state)
{
    struct rig *rig = *state;
    struct recorder *rec = recorder_start(rig->backend);
    const char *id = rig_insert(rig);
    const struct recorded *ev;

    rig_patch(rig, id, &(struct backend_patch){ .raw_data = "{\"n\":2}" });
    rig_remove(rig, id);
    ev = recorder_wait(rec, 3);

    assert_int_equal(ev[0].op, BACKEND_INSERT);
    assert_string_equal(ev[0].table, TABLE);
    assert_string_equal(ev[0].id, id);
    assert_string_equal(ev[0].new_raw, "{\"n\":1}");
    assert_string_equal(ev[0].new_status, "pending");
    assert_string_equal(ev[0].old_raw, "(none)");
    assert_string_equal(ev[0].work_id, "(none)");

    assert_int_equal(ev[1].op, BACKEND_UPDATE);
    assert_false(ev[1].is_lease_only);
    assert_string_equal(ev[1].old_raw, "{\"n\":1}");
    assert_string_equal(ev[1].new_raw, "{\"n\":2}");

    assert_int_equal(ev[2].op, BACKEND_DELETE);
    assert_string_equal(ev[2].new_raw, "(none)");
    assert_string_equal(ev[2].old_raw, "{\"n\":2}");
    assert_string_equal(ev[2].id, id);
    assert_string_equal(ev[2].work_table, DELETIONS);
    assert_string_equal(ev[2].work_source, TABLE);
    assert_string_not_equal(ev[2].work_id, id);
    assert_int_equal(recorder_n(rec), 3);
    recorder_stop(rig->backend, rec);
}

/* The same members with the same values, in any order. */
static void assert_json_equal(struct rig *rig, const char *a, const char *b)
{
    struct json_value x = rig_json(rig, a), y = rig_json(rig, b), v;
    struct json_iter it = json_iter(y);
    struct slice name;

    assert_int_equal(json_length(x), json_length(y));
    while (json_next(&it, &name, &v))
        assert_string_equal(json_to_str(rig->arena, json_get(x, arena_slicedup(rig->arena, name))),
                            json_to_str(rig->arena, v));
}

static void write_note(struct rig *rig, enum query_kind kind, const char *rows)
{
    struct query q = { .kind = kind, .table = "notes", .rows = rig_json(rig, rows), .limit = -1, .max_affected = -1 };
    struct query_reply reply = { 0 };
    struct err e = { 0 };

    must(backend_query(rig->backend, &q, rig->arena, &reply, &e), &e);
    assert_int_equal(reply.n_rows, 1);
}

static void a_declared_tables_change_is_reported_with_its_whole_record(void **state)
{
    struct table_column columns[] = { { .name = "id", .type = TABLE_INT8, .is_key = true },
                                      { .name = "ok", .type = TABLE_BOOL, .is_nullable = true },
                                      { .name = "it's", .type = TABLE_JSONB, .is_nullable = true },
                                      { .name = "status", .type = TABLE_TEXT, .is_nullable = true } };
    const struct table_shape notes = { .table = "notes", .columns = columns, .n_columns = ARRAY_SIZE(columns) };
    static const char first[] = "{\"id\":7,\"ok\":true,\"it's\":[1],\"status\":null}",
                      second[] = "{\"id\":7,\"ok\":null,\"it's\":[1],\"status\":\"s\"}";
    struct rig *rig = *state;
    const struct recorded *ev;
    struct recorder *rec;
    struct err e = { 0 };

    must(backend_declare(rig->backend, &notes, &e), &e);
    rec = recorder_start(rig->backend);
    write_note(rig, QUERY_INSERT, "[{\"id\":7,\"ok\":true,\"it's\":[1]}]");
    write_note(rig, QUERY_UPDATE, "{\"ok\":null,\"status\":\"s\"}");
    write_note(rig, QUERY_DELETE, "{}");
    ev = recorder_wait(rec, 3);
    assert_int_equal(ev[0].op, BACKEND_INSERT);
    assert_string_equal(ev[0].table, "notes");
    assert_string_equal(ev[0].id, "7");
    assert_json_equal(rig, ev[0].new_raw, first);
    assert_string_equal(ev[0].new_status, "");
    assert_int_equal(ev[1].op, BACKEND_UPDATE);
    assert_false(ev[1].is_lease_only);
    assert_json_equal(rig, ev[1].old_raw, first);
    assert_json_equal(rig, ev[1].new_raw, second);
    assert_string_equal(ev[1].new_status, "s");
    assert_int_equal(ev[2].op, BACKEND_DELETE);
    assert_json_equal(rig, ev[2].old_raw, second);
    assert_string_equal(ev[2].new_raw, "(none)");
    assert_string_equal(ev[2].work_id, "(none)");
    recorder_stop(rig->backend, rec);
}

static void what_only_moves_a_lease_is_reported_as_such(void **state)
{
    struct rig *rig = *state;
    const char *id = rig_insert(rig);
    struct recorder *rec = recorder_start(rig->backend);
    struct backend_lease lease = rig_claim(rig, id, "lin-a");
    const struct recorded *ev;
    struct err e = { 0 };

    must(backend_heartbeat(rig->backend, &lease, &e), &e); /* not reported */
    must(backend_fail(rig->backend, &lease, "no", &e), &e);
    rig_patch(rig, id, &(struct backend_patch){ .status = "pending" });
    rig_patch(rig, id, &(struct backend_patch){ .status = "pending", .raw_data = "{\"n\":1}" }); /* the same data */
    rig_patch(rig, id,
              &(struct backend_patch){ .status = "later", .raw_data = "{\"n\":3}" }); /* other data: once, in full */
    ev = recorder_wait(rec, 5);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(ev[i].op, BACKEND_UPDATE);
        assert_true(ev[i].is_lease_only);
        assert_string_equal(ev[i].id, id);
    }
    assert_string_equal(ev[0].old_status, "pending");
    assert_string_equal(ev[0].new_status, "claimed");
    assert_string_equal(ev[1].old_status, "claimed");
    assert_string_equal(ev[1].new_status, "failed");
    assert_string_equal(ev[2].new_status, "pending");
    assert_false(ev[4].is_lease_only);
    assert_string_equal(ev[4].new_status, "later");
    assert_string_equal(ev[4].new_raw, "{\"n\":3}");
    assert_int_equal(recorder_n(rec), 5);
    recorder_stop(rig->backend, rec);
}

static void another_program_s_writes_are_reported_too(void **state)
{
    struct rig *rig = *state;
    struct recorder *rec = recorder_start(rig->backend);
    const struct recorded *ev;

    rig_write(rig, (struct foreign_write){ .op = BACKEND_INSERT, .raw_data = "{\"from\": \"outside\"}" });
    ev = recorder_wait(rec, 1);
    assert_int_equal(ev[0].op, BACKEND_INSERT);
    assert_non_null(strstr(ev[0].new_raw, "outside"));
    assert_string_equal(rig_get(rig, ev[0].id).status, "pending");
    assert_null(rig_get(rig, ev[0].id).app_id);

    rig_set(rig, ev[0].id, "raw_data", "{\"from\": \"again\"}");
    ev = recorder_wait(rec, 2);
    assert_int_equal(ev[1].op, BACKEND_UPDATE);
    assert_non_null(strstr(ev[1].old_raw, "outside"));
    assert_non_null(strstr(ev[1].new_raw, "again"));

    rig_write(rig, (struct foreign_write){ .op = BACKEND_DELETE, .id = ev[0].id });
    ev = recorder_wait(rec, 3);
    assert_int_equal(ev[2].op, BACKEND_DELETE);
    assert_non_null(strstr(ev[2].old_raw, "again"));
    assert_string_equal(ev[2].work_source, TABLE);
    recorder_stop(rig->backend, rec);
}

static void what_another_program_undoes_is_not_reported(void **state)
{
    struct rig *rig = *state;
    struct recorder *rec = recorder_start(rig->backend);
    const struct recorded *ev;

    rig_write(rig, (struct foreign_write){ .op = BACKEND_INSERT, .raw_data = "{\"n\":0}", .is_undone = true });
    rig_insert(rig);
    ev = recorder_wait(rec, 1);
    assert_string_equal(ev[0].new_raw, "{\"n\":1}");
    assert_int_equal(recorder_n(rec), 1);
    assert_int_equal(recorder_n_gaps(rec), 0);
    recorder_stop(rig->backend, rec);
}

/* --- order --- */

enum { N_THREADS = 8, N_EACH = 40 };

struct inserter {
    struct rig *rig;
    int number;
    pthread_t thread;
};

static void *insert_some(void *arg)
{
    struct inserter *in = arg;
    AUTO(arena_freep) struct arena *a = arena_new();

    for (int i = 0; i < N_EACH; i++) {
        struct backend_new_row new_row = { .table = TABLE,
                                           .raw_data = arena_printf(a, "{\"i\":%d,\"t\":%d}", i, in->number) };
        struct backend_row row;

        if (backend_insert(in->rig->backend, &new_row, a, &row, NULL) < 0)
            return in;
    }
    return NULL;
}

static void events_of_concurrent_writers_come_once_each_in_commit_order(void **state)
{
    struct rig *rig = *state;
    struct recorder *rec = recorder_start(rig->backend);
    struct inserter inserters[N_THREADS];
    int next[N_THREADS] = { 0 }, thread, i;
    const struct recorded *ev;
    void *failed;

    for (int t = 0; t < N_THREADS; t++) {
        inserters[t] = (struct inserter){ .rig = rig, .number = t };
        pthread_create(&inserters[t].thread, NULL, insert_some, &inserters[t]);
    }
    for (int t = 0; t < N_THREADS; t++) {
        pthread_join(inserters[t].thread, &failed);
        assert_null(failed);
    }
    ev = recorder_wait(rec, N_THREADS * N_EACH);
    for (size_t k = 0; k < recorder_n(rec); k++) {
        if (k > 0)
            assert_true(ev[k].sequence > ev[k - 1].sequence);
        assert_int_equal(sscanf(ev[k].new_raw, "{\"i\":%d,\"t\":%d}", &i, &thread), 2);
        assert_int_equal(i, next[thread]++); /* the inserts of one thread keep their order */
    }
    assert_int_equal(recorder_n(rec), N_THREADS * N_EACH);
    assert_int_equal(recorder_n_gaps(rec), 0);
    recorder_stop(rig->backend, rec);
}

/* --- who is told --- */

static void a_subscriber_is_reported_only_what_comes_after(void **state)
{
    struct rig *rig = *state;
    struct recorder *rec, *second;
    const char *id;

    rig_insert(rig);
    rec = recorder_start(rig->backend);
    id = rig_insert(rig);
    assert_string_equal(recorder_wait(rec, 1)[0].id, id);
    second = recorder_start(rig->backend);
    id = rig_insert(rig);
    assert_string_equal(recorder_wait(rec, 2)[1].id, id);
    assert_string_equal(recorder_wait(second, 1)[0].id, id);
    recorder_stop(rig->backend, rec);
    rig_insert(rig);
    recorder_wait(second, 2);
    recorder_stop(rig->backend, second);
}

static void one_argument_subscribes_once(void **state)
{
    struct rig *rig = *state;
    struct recorder *rec = recorder_start(rig->backend);

    assert_int_equal(OPS(rig)->subscribe(rig->backend, record_event, record_gap, rec, NULL), -EEXIST);
    recorder_stop(rig->backend, rec);
    rec = recorder_start(rig->backend);
    recorder_stop(rig->backend, rec);
}

struct leaver {
    struct rig *rig;
    struct recorder *rec;
};

static void leave_on_request(void *arg, const struct backend_event *event)
{
    struct leaver *leaver = arg;

    record_event(leaver->rec, event);
    leaver->rig->backend->ops->unsubscribe(leaver->rig->backend, leaver);
}

static void a_subscriber_may_leave_from_its_own_callback(void **state)
{
    struct rig *rig = *state;
    struct recorder mine = { .lock = PTHREAD_MUTEX_INITIALIZER }, *other = recorder_start(rig->backend);
    struct leaver leaver = { rig, &mine };
    struct err e = { 0 };

    must(OPS(rig)->subscribe(rig->backend, leave_on_request, NULL, &leaver, &e), &e);
    rig_insert(rig);
    rig_insert(rig);
    recorder_wait(other, 2);
    assert_int_equal(recorder_n(&mine), 1);
    recorder_stop(rig->backend, other);
}

static void two_services_on_one_file_report_each_other(void **state)
{
    struct rig *rig = *state;
    struct backend *second = rig_backend(rig);
    struct recorder *rec = recorder_start(second);
    const char *id = rig_insert(rig);

    assert_string_equal(recorder_wait(rec, 1)[0].id, id);
    recorder_stop(second, rec);
    backend_close(second);
}

struct awaited {
    struct recorder *rec;
    const char *id;
};

static bool is_reported(void *arg)
{
    struct awaited *it = arg;
    bool is_so = false;

    for (size_t i = 0, n = recorder_n(it->rec); i < n; i++)
        is_so |= strcmp(it->rec->events[i].id, it->id) == 0;
    return is_so;
}

/* Over the hosted service each table has a subscription of its own: the gap may be that of another one. */
static bool is_followed(void *arg)
{
    struct rig *rig = arg;
    struct backend_monitor m;

    OPS(rig)->monitor(rig->backend, rig->arena, &m);
    for (size_t i = 0; !m.is_whole && i < m.n; i++)
        if (strcmp(m.items[i].table, TABLE) == 0)
            return m.items[i].state == BACKEND_LINK_LIVE;
    return m.state == BACKEND_LINK_LIVE;
}

/* What came in between is not known, and what comes later is reported. */
static void lost_changes_are_a_gap_and_later_ones_are_reported(void **state)
{
    struct rig *rig = *state;
    struct awaited later = { .rec = recorder_start(rig->backend) };

    rig->fixture->lose(rig->place);
    recorder_wait_gaps(later.rec, 1);
    assert_true(wait_until(is_followed, rig));
    later.id = rig_insert(rig);
    assert_true(wait_until(is_reported, &later));
    recorder_stop(rig->backend, later.rec);
}

static void a_user_table_reports_its_events_under_its_name(void **state)
{
    struct rig *rig = *state;
    struct recorder *rec = recorder_start(rig->backend);
    struct err e = { 0 };

    must(OPS(rig)->ensure_table(rig->backend, "sales.orders", &e), &e);
    rig_write(rig, (struct foreign_write){ .op = BACKEND_INSERT, .table = "sales.orders", .raw_data = "{}" });
    assert_string_equal(recorder_wait(rec, 1)[0].table, "sales.orders");
    recorder_stop(rig->backend, rec);
}

static struct backend_subscription monitored(struct rig *rig, const char *table, enum backend_link_state *ret_state)
{
    struct backend_monitor m;

    OPS(rig)->monitor(rig->backend, rig->arena, &m);
    assert_non_null(m.way);
    *ret_state = m.state;
    for (size_t i = 0; i < m.n; i++)
        if (strcmp(m.items[i].table, table) == 0)
            return m.items[i];
    return (struct backend_subscription){ .lag_ms = -1 };
}

static void the_monitor_counts_the_events_of_each_table(void **state)
{
    struct rig *rig = *state;
    struct recorder *rec = recorder_start(rig->backend);
    enum backend_link_state link;
    struct backend_subscription s;
    int64_t n_before = monitored(rig, TABLE, &link).n_events;

    rig_remove(rig, rig_insert(rig));
    recorder_wait(rec, 2);
    s = monitored(rig, TABLE, &link);
    assert_int_equal(link, BACKEND_LINK_LIVE);
    assert_int_equal(s.n_events, n_before + 2);
    assert_true(s.lag_ms >= 0);
    assert_non_null(s.last_event_at);
    recorder_stop(rig->backend, rec);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(every_change_is_reported_with_its_old_and_new_row),
        TEST(a_declared_tables_change_is_reported_with_its_whole_record),
        TEST(what_only_moves_a_lease_is_reported_as_such),
        TEST(another_program_s_writes_are_reported_too),
        TEST(what_another_program_undoes_is_not_reported),
        TEST(events_of_concurrent_writers_come_once_each_in_commit_order),
        TEST(a_subscriber_is_reported_only_what_comes_after),
        TEST(one_argument_subscribes_once),
        TEST(a_subscriber_may_leave_from_its_own_callback),
        TEST(two_services_on_one_file_report_each_other),
        TEST(lost_changes_are_a_gap_and_later_ones_are_reported),
        TEST(a_user_table_reports_its_events_under_its_name),
        TEST(the_monitor_counts_the_events_of_each_table),
    };

    return contract_run(tests, ARRAY_SIZE(tests));
}
