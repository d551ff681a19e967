/* Machines in Custom Mode on one database, and the app that owns the table `orders` there.
 *
 *     struct custom_rig *x = *state;      with CUSTOM_TEST(name) and custom_run(tests, n)
 *     id = order_insert(x, "{\"note\":\"a\"}");     r = machine_claim(&x->machines[0], id, &lease, &e);
 */
#pragma once

#include "app_double.h"
#include "backend/custom/custom.h"
#include "net/guard.h"
#include "store/store.h"

#define APP_ID "33333333-3333-4333-8333-333333333333"
#define CUSTOM_TEST(name) cmocka_unit_test_setup_teardown(name, custom_rig_open, custom_rig_close)
#define ORDERS "orders"

enum { MACHINES = 3 };

struct machine {
    struct folder folder;
    struct store *store;
    struct settings *settings;
    struct backend *backend; /* the decorator */
    struct custom_rig *rig;
    char name[16];
};

struct custom_rig {
    const struct fixture *fixture;
    void *place;
    struct arena *arena;
    struct guard *guard;
    struct backend *inner; /* of another program */
    struct app_double *app;
    struct machine machines[MACHINES];
    int lock_ms; /* of machines that are opened from now on: how long the app may take to lock a row */
    atomic_bool is_app_away;
};

/* clang-format off */
static struct table_column order_columns[] = {
    { .name = "id",         .type = TABLE_UUID, .is_key = true, .default_text = "gen_random_uuid()" },
    { .name = "status",     .type = TABLE_TEXT, .default_text = "pending" },
    { .name = "locked_by",  .type = TABLE_TEXT, .is_nullable = true },
    { .name = "locked_at",  .type = TABLE_TIMESTAMPTZ, .is_nullable = true },
    { .name = "note",       .type = TABLE_TEXT, .is_nullable = true },
    { .name = "created_at", .type = TABLE_TIMESTAMPTZ, .default_text = "now()" },
    { .name = "error_message", .type = TABLE_TEXT, .is_nullable = true },
};
static struct table_column thing_columns[] = {
    { .name = "name",       .type = TABLE_TEXT, .is_key = true },
    { .name = "status",     .type = TABLE_TEXT, .default_text = "pending" },
    { .name = "locked_by",  .type = TABLE_TEXT, .is_nullable = true },
    { .name = "locked_at",  .type = TABLE_TIMESTAMP, .is_nullable = true },
};
/* clang-format on */
static const struct table_shape orders = { .table = ORDERS,
                                           .columns = order_columns,
                                           .n_columns = ARRAY_SIZE(order_columns) };
static const struct table_shape things = { .table = "things",
                                           .columns = thing_columns,
                                           .n_columns = ARRAY_SIZE(thing_columns) };

static int rig_place(void *arg, const char *app_id, struct arena *a, struct custom_place *ret, struct err *e)
{
    struct custom_rig *x = ((struct machine *)arg)->rig;

    *ret = (struct custom_place){ .app_id = APP_ID,
                                  .base_url = atomic_load(&x->is_app_away)
                                                  ? NULL
                                                  : arena_printf(a, "http://127.0.0.1:%u/page", x->app->port) };
    return 0;
}

static inline void machine_connect(struct machine *m)
{
    static const struct custom_table tables[] = {
        { ORDERS, APP_ID, BACKEND_INSERT | BACKEND_UPDATE | BACKEND_DELETE },
        { "things", APP_ID, BACKEND_INSERT | BACKEND_UPDATE | BACKEND_DELETE },
    };
    struct custom_rig *x = m->rig;
    const struct custom_config config = {
        .inner = x->fixture->open(x->place),
        .store = m->store,
        .settings = m->settings,
        .net = { .guard = x->guard, .abbr = "svc", .lock_ms = x->lock_ms, .webhook_ms = WAIT_MS },
        .calls = { .place = rig_place },
        .arg = m
    };
    struct err e = { 0 };

    must(custom_open(&config, &m->backend, &e), &e);
    custom_set_tables(m->backend, tables, ARRAY_SIZE(tables));
}

static inline void machine_open(struct custom_rig *x, struct machine *m, int i)
{
    static const char *const flags[] = { "backend.webhook_pause_s=0.1" };
    const struct settings_sources from = { .flags = (const char *const *)flags, .n_flags = ARRAY_SIZE(flags) };
    struct err e = { 0 };

    m->rig = x;
    snprintf(m->name, sizeof(m->name), "m%d", i);
    m->folder = folder_make();
    must(store_open(m->folder.path, &m->store, &e), &e);
    must(settings_load(&from, &m->settings, &e), &e);
    machine_connect(m);
}

static inline void machine_close(struct machine *m)
{
    backend_close(m->backend);
    settings_free(m->settings);
    store_close(m->store);
    folder_remove(&m->folder);
}

static int custom_rig_open(void **state)
{
    struct custom_rig *x = xcalloc(1, sizeof(*x));
    struct err e = { 0 };

    x->fixture = *state;
    x->arena = arena_new();
    x->lock_ms = WAIT_MS;
    x->place = x->fixture->make();
    x->guard = guard_new(&(struct guard_config){ 0 });
    x->inner = x->fixture->open(x->place);
    must(backend_declare(x->inner, &orders, &e), &e);
    must(backend_declare(x->inner, &things, &e), &e);
    x->app = app_start(x->fixture->open(x->place));
    for (int i = 0; i < MACHINES; i++)
        machine_open(x, &x->machines[i], i);
    *state = x;
    return 0;
}

static int custom_rig_close(void **state)
{
    struct custom_rig *x = *state;

    for (int i = 0; i < MACHINES; i++)
        machine_close(&x->machines[i]);
    app_stop(x->app);
    backend_close(x->inner);
    guard_free(x->guard);
    x->fixture->remove(x->place);
    arena_free(x->arena);
    free(x);
    return 0;
}

static inline int custom_run(const struct CMUnitTest *tests, size_t n)
{
    static const char *const names[] = { "embedded", "postgres", "hosted" };
    AUTO(arena_freep) struct arena *a = arena_new();
    struct CMUnitTest *all = arena_array(a, n * ARRAY_SIZE(fixtures), sizeof(*all));
    const char *only = getenv("HEARTH_TEST_PROVIDER");
    size_t n_all = 0;

    for (size_t f = 0; f < ARRAY_SIZE(fixtures); f++)
        for (size_t k = 0; k < ARRAY_SIZE(names); k++) {
            if (strcmp(fixtures[f].name, names[k]) != 0 || (only && strcmp(only, names[k]) != 0) ||
                (fixtures[f].is_installed && !fixtures[f].is_installed()))
                continue;
            for (size_t i = 0; i < n; i++) {
                all[n_all] = tests[i];
                all[n_all].name = arena_printf(a, "%s: %s", names[k], tests[i].name);
                all[n_all++].initial_state = (void *)&fixtures[f];
            }
        }
    return _cmocka_run_group_tests("custom", all, n_all, NULL, NULL);
}

/* ---- rows, as another program writes them ---- */

static inline struct json_value json_of(struct custom_rig *x, const char *text)
{
    struct json_value value = { 0 };
    struct err e = { 0 };

    must(json_parse(x->arena, slice_of(text), &value, &e), &e);
    return value;
}

static inline struct json_value statement(struct custom_rig *x, struct query q)
{
    struct query_reply reply = { 0 };
    struct err e = { 0 };

    q.limit = -1;
    q.max_affected = -1;
    q.is_rows_wanted = true;
    must(backend_query(x->inner, &q, x->arena, &reply, &e), &e);
    return json_of(x, arena_slicedup(x->arena, reply.rows));
}

static inline struct json_value first_of(struct json_value list)
{
    struct json_iter it = json_iter(list);
    struct json_value v = { 0 };

    (void)!json_next(&it, NULL, &v);
    return v;
}

static inline const char *order_insert(struct custom_rig *x, const char *object)
{
    const struct query q = {
        .kind = QUERY_INSERT,
        .table = ORDERS,
        .rows = json_of(x, arena_printf(x->arena, "[%s]", strcmp(object, "{}") ? object : "{\"status\":\"pending\"}"))
    };

    return json_cstr(json_get(first_of(statement(x, q)), "id"));
}

static inline void order_set(struct custom_rig *x, const char *id, const char *object)
{
    const char *const *values = &id;
    const struct query_condition where = {
        .path = { .column = "id" }, .op = QUERY_EQ, .values = values, .n_values = 1
    };

    statement(x, (struct query){ .kind = QUERY_UPDATE, .table = ORDERS, .where = &where, .rows = json_of(x, object) });
}

static inline struct json_value order_get(struct custom_rig *x, const char *id)
{
    const struct query_condition where = { .path = { .column = "id" }, .op = QUERY_EQ, .values = &id, .n_values = 1 };

    return first_of(statement(x, (struct query){ .kind = QUERY_SELECT, .table = ORDERS, .where = &where }));
}

static inline const char *order_text(struct custom_rig *x, const char *id, const char *column)
{
    const char *text = json_cstr(json_get(order_get(x, id), column));

    return text ? text : "";
}

/* ---- machines ---- */

static inline int machine_claim_of(struct machine *m, const char *table, const char *id, struct backend_lease *ret,
                                   struct err *e)
{
    const struct backend_claim claim = { table, id, m->name, STALE_MS, 3 };
    struct backend_row row = { 0 };

    *e = (struct err){ 0 };
    return backend_claim(m->backend, &claim, m->rig->arena, &row, ret, e);
}

static inline int machine_claim(struct machine *m, const char *id, struct backend_lease *ret, struct err *e)
{
    return machine_claim_of(m, ORDERS, id, ret, e);
}

static inline struct backend_lease machine_must_claim(struct machine *m, const char *id)
{
    struct backend_lease lease = { 0 };
    struct err e;

    must(machine_claim(m, id, &lease, &e), &e);
    return lease;
}

static inline struct backend_row machine_get(struct machine *m, const char *id)
{
    struct backend_row row = { 0 };
    struct err e = { 0 };

    must(backend_get(m->backend, ORDERS, id, NULL, m->rig->arena, &row, &e), &e);
    return row;
}
