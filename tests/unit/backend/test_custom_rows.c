/* Custom Mode: events, recovery, rows that wait, what tables lack. */
#include "../skip.h"
#include "custom_rig.h"

#include "backend/backend_providers.h"

/* ---- recovery ---- */

static struct backend_rows recover(struct custom_rig *x)
{
    struct backend *b = x->machines[1].backend;
    struct backend_rows rows = { 0 };
    struct err e = { 0 };

    must(b->ops->recover_stale(b, ORDERS, STALE_MS, x->arena, &rows, &e), &e);
    return rows;
}

static const char *insert_leased(struct custom_rig *x, const char *locked_at)
{
    return order_insert(x, arena_printf(x->arena, "{\"status\":\"processing\",\"locked_by\":\"gone\",\"locked_at\":%s}",
                                        locked_at));
}

static const char *quoted_time(struct custom_rig *x, int64_t from_now_ms)
{
    return arena_printf(x->arena, "\"%s\"", time_at(x->arena, clock_wall_ms() + from_now_ms));
}

static void stale_rows_wait_again(void **state)
{
    struct custom_rig *x = *state;
    const char *old = insert_leased(x, quoted_time(x, -2 * STALE_MS)), *none = insert_leased(x, "null");
    const char *future = insert_leased(x, quoted_time(x, 2 * STALE_MS + 60000));
    const char *fresh = insert_leased(x, quoted_time(x, -STALE_MS / 2)),
               *ahead = insert_leased(x, quoted_time(x, 30000));

    assert_int_equal(recover(x).n, 3);
    assert_string_equal(order_text(x, old, "status"), "pending");
    assert_string_equal(order_text(x, old, "locked_by"), "");
    assert_string_equal(order_text(x, none, "status"), "pending");
    assert_string_equal(order_text(x, future, "status"), "pending");
    assert_string_equal(order_text(x, fresh, "status"), "processing");
    assert_string_equal(order_text(x, ahead, "status"), "processing");
    assert_int_equal(recover(x).n, 0);
}

static void rows_of_a_killed_service_are_freed(void **state)
{
    struct custom_rig *x = *state;
    struct backend *b = x->machines[1].backend;
    const char *mine = order_insert(x, "{}"), *other = order_insert(x, "{}");
    struct err e = { 0 };
    size_t n = 0;

    machine_must_claim(&x->machines[0], mine);
    machine_must_claim(&x->machines[2], other);
    must(b->ops->release_machine(b, ORDERS, "m0", &n, &e), &e);
    assert_int_equal(n, 1);
    assert_string_equal(order_text(x, mine, "status"), "pending");
    assert_string_equal(order_text(x, other, "status"), "claimed");
}

/* ---- rows that wait ---- */

static struct backend_rows claimable(struct custom_rig *x, const struct backend_position *before, int64_t limit)
{
    struct backend *b = x->machines[0].backend;
    const struct backend_claim as = { ORDERS, NULL, "m0", STALE_MS, 3 };
    struct backend_rows rows = { 0 };
    struct err e = { 0 };

    must(b->ops->claimable(b, ORDERS, &as, before, limit, x->arena, &rows, &e), &e);
    return rows;
}

static void the_newest_rows_that_wait_are_found_page_by_page(void **state)
{
    struct custom_rig *x = *state;
    const char *ids[5];
    struct backend_rows rows;
    struct backend_position before;

    for (size_t i = 0; i < ARRAY_SIZE(ids); i++)
        ids[i] = order_insert(x, arena_printf(x->arena, "{\"created_at\":\"2026-11-2%zuT00:00:00Z\"}", i));
    order_insert(x, "{\"status\":\"completed\"}");
    order_insert(x, "{\"status\":\"draft\"}");
    rows = claimable(x, NULL, 2);
    assert_int_equal(rows.n, 2);
    assert_string_equal(rows.items[0].id, ids[3]);
    assert_string_equal(rows.items[1].id, ids[4]);
    before = (struct backend_position){ rows.items[0].created_at, rows.items[0].id };
    rows = claimable(x, &before, 10);
    assert_int_equal(rows.n, 3);
    assert_string_equal(rows.items[0].id, ids[0]);
    assert_string_equal(rows.items[2].id, ids[2]);
}

static void rows_without_a_time_have_an_order_too(void **state)
{
    struct custom_rig *x = *state;
    struct backend *b = x->machines[0].backend;
    const struct backend_claim as = { "things", NULL, "m0", STALE_MS, 3 };
    struct backend_rows rows = { 0 };
    struct backend_position before;
    struct err e = { 0 };

    statement(x, (struct query){ .kind = QUERY_INSERT,
                                 .table = "things",
                                 .rows = json_of(x, "[{\"name\":\"a\"},{\"name\":\"b\"},{\"name\":\"c\"}]") });
    must(b->ops->claimable(b, "things", &as, NULL, 2, x->arena, &rows, &e), &e);
    assert_int_equal(rows.n, 2);
    assert_string_equal(rows.items[0].id, "b");
    before = (struct backend_position){ rows.items[0].created_at, rows.items[0].id };
    must(b->ops->claimable(b, "things", &as, &before, 2, x->arena, &rows, &e), &e);
    assert_int_equal(rows.n, 1);
    assert_string_equal(rows.items[0].id, "a");
}

static void waiting_rows_are_counted_for_their_app(void **state)
{
    struct custom_rig *x = *state;
    struct backend *b = x->machines[0].backend;
    struct backend_owners owners = { 0 };
    struct err e = { 0 };

    for (int i = 0; i < 4; i++)
        order_insert(x, "{}");
    must(b->ops->owners(b, 3, x->arena, &owners, &e), &e);
    assert_int_equal(owners.n, 1);
    assert_string_equal(owners.items[0].app_id, APP_ID);
    assert_int_equal(owners.items[0].n_waiting, 4);
}

/* ---- a person ---- */

static void a_person_cancels_and_replays(void **state)
{
    const struct backend_patch patch = { .status = "canceled", .error_message = "no need" };
    struct custom_rig *x = *state;
    struct backend *b = x->machines[0].backend;
    const char *id = order_insert(x, "{}");
    const struct backend_update_request request = { .table = ORDERS, .id = id, .patch = &patch };
    struct backend_lease lease = machine_must_claim(&x->machines[0], id);
    struct backend_row row = { 0 };
    struct err e = { 0 };

    assert_int_equal(b->ops->replay(b, ORDERS, id, &e), -EBUSY);
    must(backend_update(b, &request, x->arena, &row, &e), &e);
    assert_string_equal(row.status, "canceled");
    assert_string_equal(order_text(x, id, "error_message"), "no need");
    assert_int_equal(backend_heartbeat(b, &lease, &e), -ESTALE);
    must(b->ops->replay(b, ORDERS, id, &e), &e);
    assert_string_equal(order_text(x, id, "status"), "pending");
    assert_string_equal(order_text(x, id, "error_message"), "");
    machine_must_claim(&x->machines[1], id);
}

static void the_rows_belong_to_the_app(void **state)
{
    const struct backend_patch patch = { .raw_data = "{}" };
    struct custom_rig *x = *state;
    struct backend *b = x->machines[0].backend;
    const char *id = order_insert(x, "{}");
    const struct backend_new_row in = { .table = ORDERS, .raw_data = "{}" };
    const struct backend_update_request request = { .table = ORDERS, .id = id, .patch = &patch };
    struct backend_row row = { 0 };
    struct err e = { 0 };

    assert_int_equal(backend_insert(b, &in, x->arena, &row, &e), -EPERM);
    assert_string_equal(e.code, "CUSTOM_TABLE");
    assert_int_equal(backend_remove(b, ORDERS, id, NULL, &e), -EPERM);
    assert_int_equal(backend_update(b, &request, x->arena, &row, &e), -EPERM);
    assert_int_equal(backend_get(b, "public.orders", id, "another app", x->arena, &row, &e), -ENOENT);
    must(backend_get(b, "public.orders", id, APP_ID, x->arena, &row, &e), &e);
}

static void other_tables_are_the_inner_backends(void **state)
{
    struct custom_rig *x = *state;
    struct backend *b = x->machines[0].backend;
    const struct backend_new_row in = { .table = TABLE, .raw_data = "{\"n\":1}" };
    struct backend_row row = { 0 };
    struct backend_lease leases[2];
    struct err e = { 0 };
    int results[2] = { 1, 1 };
    const struct backend_claim claim = { TABLE, NULL, "m0", STALE_MS, 3 };
    struct backend_claim named = claim;

    must(backend_insert(b, &in, x->arena, &row, &e), &e);
    named.row_id = row.id;
    must(backend_claim(b, &named, x->arena, &row, &leases[0], &e), &e);
    leases[1] = machine_must_claim(&x->machines[0], order_insert(x, "{}"));
    must(backend_heartbeats(b, leases, 2, results, &e), &e);
    assert_int_equal(results[0], 0);
    assert_int_equal(results[1], 0);
    leases[1].machine_id = "other";
    must(backend_heartbeats(b, leases, 2, results, &e), &e);
    assert_int_equal(results[0], 0);
    assert_int_equal(results[1], -ESTALE);
}

/* ---- events ---- */

struct seen {
    pthread_mutex_t lock;
    struct {
        enum backend_op op, event;
        bool is_lease_only;
        char id[64], status[24], old_data[24];
    } items[64];
    size_t n, n_wanted;
};

static void on_event(void *arg, const struct backend_event *event)
{
    struct seen *s = arg;
    const struct backend_row *row = event->new_row ? event->new_row : event->old_row;

    pthread_mutex_lock(&s->lock);
    if (s->n < ARRAY_SIZE(s->items)) {
        s->items[s->n].op = event->op;
        s->items[s->n].event = row->event;
        s->items[s->n].is_lease_only = event->is_lease_only;
        snprintf(s->items[s->n].id, sizeof(s->items[0].id), "%s", row->id);
        snprintf(s->items[s->n].status, sizeof(s->items[0].status), "%s", row->status);
        s->n++;
    }
    pthread_mutex_unlock(&s->lock);
}

static void on_gap(void *arg)
{
}

static size_t n_seen(struct seen *s)
{
    size_t n;

    pthread_mutex_lock(&s->lock);
    n = s->n;
    pthread_mutex_unlock(&s->lock);
    return n;
}

static bool has_seen(void *arg)
{
    struct seen *s = arg;

    return n_seen(s) >= s->n_wanted;
}

static void wait_for(struct seen *s, size_t n)
{
    s->n_wanted = n;
    if (!wait_until(has_seen, s))
        fail_msg("%zu events, %zu were awaited", n_seen(s), n);
}

static void changes_are_work_when_the_row_waits(void **state)
{
    struct custom_rig *x = *state;
    struct backend *b = x->machines[0].backend;
    struct seen s = { .lock = PTHREAD_MUTEX_INITIALIZER };
    struct err e = { 0 };
    const char *id;

    must(b->ops->ensure_table(b, ORDERS, &e), &e);
    must(b->ops->subscribe(b, on_event, on_gap, &s, &e), &e);
    hosted_settle(custom_inner(b));
    id = order_insert(x, "{\"note\":\"a\"}");
    wait_for(&s, 1);
    assert_int_equal(s.items[0].event, BACKEND_INSERT);
    assert_false(s.items[0].is_lease_only);
    assert_string_equal(s.items[0].id, id);
    order_set(x, id, "{\"note\":\"b\"}");
    wait_for(&s, 2);
    assert_int_equal(s.items[1].event, BACKEND_UPDATE);
    assert_false(s.items[1].is_lease_only);
    order_set(x, id, "{\"status\":\"claimed\",\"locked_by\":\"m1\",\"locked_at\":\"now\"}");
    wait_for(&s, 3);
    assert_true(s.items[2].is_lease_only);
    order_set(x, id, "{\"locked_at\":\"2026-01-01T00:00:00Z\"}"); /* a heartbeat is no event */
    order_set(x, id, "{\"status\":\"pending\",\"locked_by\":null,\"locked_at\":null}");
    wait_for(&s, 4);
    assert_string_equal(s.items[3].status, "pending");
    assert_true(s.items[3].is_lease_only);
    order_set(x, id, "{\"status\":\"draft\"}");
    order_set(x, id, "{\"status\":\"pending\"}");
    wait_for(&s, 6);
    assert_false(s.items[5].is_lease_only);
    assert_int_equal(s.items[5].event, BACKEND_UPDATE);
    b->ops->unsubscribe(b, &s);
}

/* ---- what is missing ---- */

static struct backend_lacks lacks_of(struct custom_rig *x, const char *table)
{
    struct backend_lacks lacks = { 0 };
    struct err e = { 0 };

    must(custom_check(x->machines[0].backend, table, x->arena, &lacks, &e), &e);
    return lacks;
}

static void a_fit_table_lacks_nothing(void **state)
{
    struct custom_rig *x = *state;
    struct backend_lacks lacks = lacks_of(x, "public.orders");

    if (lacks.n > 0)
        fail_msg("%s", lacks.items[0].what);
}

static void a_table_that_is_not_there_is_told(void **state)
{
    struct custom_rig *x = *state;
    struct backend_lacks lacks = lacks_of(x, "nowhere");

    assert_int_equal(lacks.n, 1);
    assert_string_equal(lacks.items[0].what, "the table nowhere");
    assert_true(strlen(lacks.items[0].remedy) > 0);
}

static void each_missing_column_is_told_with_its_remedy(void **state)
{
    static struct table_column columns[] = { { .name = "id", .type = TABLE_INT4, .is_key = true },
                                             { .name = "locked_at", .type = TABLE_TEXT, .is_nullable = true } };
    const struct table_shape poor = { .table = "poor", .columns = columns, .n_columns = ARRAY_SIZE(columns) };
    struct custom_rig *x = *state;
    struct backend_lacks lacks;
    struct err e = { 0 };

    must(backend_declare(x->inner, &poor, &e), &e);
    lacks = lacks_of(x, "poor");
    assert_int_equal(lacks.n, 3);
    assert_non_null(strstr(lacks.items[0].what, "status"));
    assert_non_null(strstr(lacks.items[0].remedy, "status"));
    assert_non_null(strstr(lacks.items[1].what, "locked_by"));
    assert_non_null(strstr(lacks.items[2].what, "timestamptz"));
}

/* A table of the app's own that Hearth never made: the SQL of each lack is run, and then it lacks nothing. */
static void the_remedies_mend_a_foreign_table(void **state)
{
    struct custom_rig *x = *state;
    const struct cluster_place *place = x->place;
    struct backend_lacks lacks;

    if (strcmp(x->fixture->provider, "postgres") != 0)
        SKIP_TEST("only PostgreSQL has tables that Hearth did not make");
    cluster_exec(place->url, "CREATE SCHEMA sales; CREATE TABLE sales.\"my \"\"orders\" (note text, locked_at text)");
    lacks = lacks_of(x, "sales.\"my \"\"orders\"");
    assert_int_equal(lacks.n, 6);
    for (size_t round = 0; round < 3 && lacks.n > 0; round++) {
        for (size_t i = 0; i + 1 < lacks.n; i++)
            cluster_exec(place->url, lacks.items[i].remedy);
        lacks = lacks_of(x, "sales.\"my \"\"orders\""); /* with its key, which the trigger names */
        if (lacks.n == 1)
            cluster_exec(place->url, lacks.items[0].remedy);
        lacks = lacks_of(x, "sales.\"my \"\"orders\"");
    }
    if (lacks.n > 0)
        fail_msg("%s", lacks.items[0].what);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CUSTOM_TEST(stale_rows_wait_again),
        CUSTOM_TEST(rows_of_a_killed_service_are_freed),
        CUSTOM_TEST(the_newest_rows_that_wait_are_found_page_by_page),
        CUSTOM_TEST(rows_without_a_time_have_an_order_too),
        CUSTOM_TEST(waiting_rows_are_counted_for_their_app),
        CUSTOM_TEST(a_person_cancels_and_replays),
        CUSTOM_TEST(the_rows_belong_to_the_app),
        CUSTOM_TEST(other_tables_are_the_inner_backends),
        CUSTOM_TEST(changes_are_work_when_the_row_waits),
        CUSTOM_TEST(a_fit_table_lacks_nothing),
        CUSTOM_TEST(a_table_that_is_not_there_is_told),
        CUSTOM_TEST(each_missing_column_is_told_with_its_remedy),
        CUSTOM_TEST(the_remedies_mend_a_foreign_table),
    };

    return custom_run(tests, ARRAY_SIZE(tests));
}
