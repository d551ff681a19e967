#include "backend/custom/custom_private.h"

#include "backend/refusals.h"
#include "base/clock.h"
#include "base/log.h"

#include <stdlib.h>

static struct backend *inner_of(struct backend *b)
{
    return custom_of(b)->config.inner;
}

int custom_find(struct custom *c, const char *table, struct arena *a, struct custom_view *ret, struct err *e)
{
    struct table_shape shape = { 0 };
    bool has_facts = false;
    char *name = NULL;
    int r;

    if (custom_tables_count(c->tables) == 0 || backend_table_name(a, table, &name, NULL) < 0 ||
        !custom_tables_find(c->tables, name, a, ret, &has_facts))
        return 0;
    if (has_facts)
        return 1;
    r = backend_shape(c->config.inner, name, a, &shape, e);
    if (r == 0)
        r = custom_facts_read(&shape, &ret->facts, e);
    if (r == 0)
        custom_tables_learn(c->tables, name, &ret->facts);
    return r < 0 ? r : 1;
}

int custom_now(struct custom *c, int64_t *ret_ms, struct err *e)
{
    struct backend *inner = c->config.inner;

    if (inner->ops->clock)
        return inner->ops->clock(inner, ret_ms, e);
    *ret_ms = clock_wall_ms();
    return 0;
}

static int refuse_own(const char *table, struct err *e)
{
    return err_set(e, -EPERM, "CUSTOM_TABLE",
                   "The rows of %.130s belong to the app that owns the table: only the app inserts and deletes them",
                   table);
}

/* ---- calls that name a table ---- */

/* Here when the table is one of Custom Mode, else of the inner backend. */
#define EITHER(op, table, here, ...)                                                                                   \
    {                                                                                                                  \
        AUTO(arena_freep) struct arena *scratch = arena_new();                                                         \
        struct custom *c = custom_of(b);                                                                               \
        struct custom_view view;                                                                                       \
        int is_here = custom_find(c, (table), scratch, &view, e);                                                      \
                                                                                                                       \
        if (is_here < 0)                                                                                               \
            return is_here;                                                                                            \
        return is_here ? (here) : c->config.inner->ops->op(c->config.inner, __VA_ARGS__);                              \
    }

static int op_insert(struct backend *b, const struct backend_new_row *in, struct arena *a, struct backend_row *ret,
                     struct err *e) EITHER(insert, in->table, refuse_own(in->table, e), in, a, ret, e)

    static int op_get(struct backend *b, const char *table, const char *id, const char *app_id, struct arena *a,
                      struct backend_row *ret,
                      struct err *e) EITHER(get, table, custom_get(c, &view, id, app_id, a, ret, e), table, id, app_id,
                                            a, ret, e)

        static int op_list(struct backend *b, const struct backend_query *q, struct arena *a, struct backend_rows *ret,
                           struct err *e) EITHER(list, q->table, custom_list(c, &view, q, a, ret, e), q, a, ret, e)

            static int op_update(struct backend *b, const struct backend_update_request *q, struct arena *a,
                                 struct backend_row *ret,
                                 struct err *e) EITHER(update, q->table, custom_update(c, &view, q, a, ret, e), q, a,
                                                       ret, e)

                static int op_remove(struct backend *b, const char *table, const char *id, const char *app_id,
                                     struct err *e) EITHER(remove, table, refuse_own(table, e), table, id, app_id, e)

                    static int op_claim(struct backend *b, const struct backend_claim *in, struct arena *a,
                                        struct backend_row *ret, struct backend_lease *ret_lease,
                                        struct err *e) EITHER(claim, in->table,
                                                              custom_claim(c, &view, in, a, ret, ret_lease, e), in, a,
                                                              ret, ret_lease, e)

                        static int op_heartbeat(struct backend *b, const struct backend_lease *l,
                                                struct err *e) EITHER(heartbeat, l->table,
                                                                      custom_heartbeat(c, &view, l, e), l, e)

                            static int op_complete(struct backend *b, const struct backend_lease *l,
                                                   const char *result_json, struct err *e)
                                EITHER(complete, l->table,
                                       custom_end(c, &view, l, false, result_json ? result_json : "{}", e), l,
                                       result_json, e)

                                    static int op_fail(struct backend *b, const struct backend_lease *l,
                                                       const char *message, struct err *e)
                                        EITHER(fail, l->table, custom_end(c, &view, l, true, message, e), l, message, e)

                                            static int op_release(struct backend *b, const struct backend_lease *l,
                                                                  struct err *e) EITHER(release, l->table,
                                                                                        custom_release(c, &view, l, e),
                                                                                        l, e)

                                                static int op_release_machine(struct backend *b, const char *table,
                                                                              const char *machine_id, size_t *ret_n,
                                                                              struct err *e)
                                                    EITHER(release_machine, table,
                                                           custom_release_machine(c, &view, machine_id, ret_n, e),
                                                           table, machine_id, ret_n, e)

                                                        static int op_rearm(
                                                            struct backend *b, const char *table, const char *id,
                                                            struct err *e) EITHER(rearm, table, refusals_not_dirty(e),
                                                                                  table, id, e)

                                                            static int op_replay(struct backend *b, const char *table,
                                                                                 const char *id,
                                                                                 struct err *e)
                                                                EITHER(replay, table, custom_replay(c, &view, id, e),
                                                                       table, id, e)

                                                                    static int op_recover_stale(
                                                                        struct backend *b, const char *table,
                                                                        int64_t stale_after_ms,
                                                                        struct arena *a, struct backend_rows *ret,
                                                                        struct err *e)
                                                                        EITHER(recover_stale, table,
                                                                               custom_recover_stale(c, &view,
                                                                                                    stale_after_ms, a,
                                                                                                    ret, e),
                                                                               table, stale_after_ms, a, ret, e)

                                                                            static int op_claimable(
                                                                                struct backend *b, const char *table,
                                                                                const struct backend_claim *as,
                                                                                const struct backend_position *before,
                                                                                int64_t limit, struct arena *a,
                                                                                struct backend_rows *ret, struct err *e)
                                                                                EITHER(claimable, table,
                                                                                       custom_claimable(c, &view, as,
                                                                                                        before, limit,
                                                                                                        a, ret, e),
                                                                                       table, as, before, limit, a, ret,
                                                                                       e)

    /* The service changes nothing on the app's table; it looks whether the table is fit, and has its changes reported.
     */
    static int look_at(struct custom *c, const char *table, struct err *e)
{
    struct backend *inner = c->config.inner;

    return inner->ops->follow ? inner->ops->follow(inner, table, e) : 0;
}

static int op_ensure_table(struct backend *b, const char *table, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct custom *c = custom_of(b);
    struct custom_view view;
    char *name = NULL;
    int r = 0;

    if (!custom_has_table(b, table))
        return c->config.inner->ops->ensure_table(c->config.inner, table, e);
    r = backend_table_name(a, table, &name, e);
    if (r == 0)
        r = look_at(c, name, e);
    return r < 0 ? r : MIN(custom_find(c, name, a, &view, e), 0);
}

/* ---- heartbeats: those of Custom Mode one by one, the others together ---- */

struct beats {
    struct backend_lease *leases;
    size_t *places, n;
    int *results;
};

static int beat_rest(struct backend *inner, struct beats *rest, int *ret, struct err *e)
{
    int r = backend_heartbeats(inner, rest->leases, rest->n, rest->results, e);

    for (size_t i = 0; r == 0 && i < rest->n; i++)
        ret[rest->places[i]] = rest->results[i];
    return r;
}

static int op_heartbeats(struct backend *b, const struct backend_lease *leases, size_t n, int *ret, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct beats rest = { arena_array(a, n + 1, sizeof(*rest.leases)), arena_array(a, n + 1, sizeof(*rest.places)), 0,
                          arena_array(a, n + 1, sizeof(*rest.results)) };

    for (size_t i = 0; i < n; i++) {
        if (custom_has_table(b, leases[i].table)) {
            ret[i] = op_heartbeat(b, &leases[i], e);
        } else {
            rest.places[rest.n] = i;
            rest.leases[rest.n++] = leases[i];
        }
    }
    return beat_rest(inner_of(b), &rest, ret, e);
}

/* ---- calls of all tables ---- */

static int op_owners(struct backend *b, int64_t max_machines, struct arena *a, struct backend_owners *ret,
                     struct err *e)
{
    int r = inner_of(b)->ops->owners(inner_of(b), max_machines, a, ret, e);

    return r < 0 || !custom_has_tables(b) ? r : custom_owners(custom_of(b), a, ret, e);
}

#define PASS(type, op, params, ...)                                                                                    \
    static type op_##op params                                                                                         \
    {                                                                                                                  \
        struct backend *inner = inner_of(b);                                                                           \
                                                                                                                       \
        return (inner->ops->op)(inner, __VA_ARGS__);                                                                   \
    }

PASS(int, is_ready, (struct backend * b, struct err *e), e)
PASS(int, check, (struct backend * b, const struct backup_patience *patience, struct err *e), patience, e)
PASS(int, broadcast,
     (struct backend * b, const char *channel, const char *event, const char *payload_json, struct err *e), channel,
     event, payload_json, e)
PASS(int, listen, (struct backend * b, const char *channel, backend_broadcast_fn *fn, void *arg, struct err *e),
     channel, fn, arg, e)
PASS(void, unlisten, (struct backend * b, void *arg), arg)
PASS(int, presence_put, (struct backend * b, const struct backend_presence *p, int64_t fresh_ms, struct err *e), p,
     fresh_ms, e)
PASS(int, presence_remove, (struct backend * b, const char *machine_id, const char *instance, struct err *e),
     machine_id, instance, e)
PASS(int, presence_list,
     (struct backend * b, int64_t fresh_ms, struct arena *a, struct backend_presences *ret, struct err *e), fresh_ms, a,
     ret, e)
PASS(void, monitor, (struct backend * b, struct arena *a, struct backend_monitor *ret), a, ret)
PASS(int, publications, (struct backend * b, struct arena *a, struct backend_publications *ret, struct err *e), a, ret,
     e)
PASS(int, query, (struct backend * b, const struct query *q, struct arena *a, struct query_reply *ret, struct err *e),
     q, a, ret, e)
PASS(int, shape, (struct backend * b, const char *table, struct arena *a, struct table_shape *ret, struct err *e),
     table, a, ret, e)
PASS(int, declare, (struct backend * b, const struct table_shape *declared, struct err *e), declared, e)

/* ---- open and close ---- */

static void op_leave(struct backend *b)
{
    custom_deliveries_leave(custom_of(b)->deliveries);
    inner_of(b)->ops->leave(inner_of(b));
}

static void free_parts(struct custom *c)
{
    c->tables = custom_tables_free(c->tables);
    c->memory = custom_memory_free(c->memory);
    c->rests = custom_rests_free(c->rests);
    pthread_mutex_destroy(&c->lock);
    free(c);
}

static struct backend *op_close(struct backend *b)
{
    struct custom *c = custom_of(b);

    c->deliveries = custom_deliveries_close(c->deliveries);
    backend_close(c->config.inner);
    free_parts(c);
    return NULL;
}

static const struct backend_ops custom_ops = {
    .name = "custom",
    .close = op_close,
    .leave = op_leave,
    .is_ready = op_is_ready,
    .ensure_table = op_ensure_table,
    .insert = op_insert,
    .get = op_get,
    .list = op_list,
    .update = op_update,
    .remove = op_remove,
    .claim = op_claim,
    .heartbeat = op_heartbeat,
    .heartbeats = op_heartbeats,
    .complete = op_complete,
    .fail = op_fail,
    .release = op_release,
    .release_machine = op_release_machine,
    .rearm = op_rearm,
    .replay = op_replay,
    .recover_stale = op_recover_stale,
    .claimable = op_claimable,
    .owners = op_owners,
    .check = op_check,
    .subscribe = custom_subscribe,
    .unsubscribe = custom_unsubscribe,
    .broadcast = op_broadcast,
    .listen = op_listen,
    .unlisten = op_unlisten,
    .presence_put = op_presence_put,
    .presence_remove = op_presence_remove,
    .presence_list = op_presence_list,
    .monitor = op_monitor,
    .publications = op_publications,
    .query = op_query,
    .shape = op_shape,
    .declare = op_declare,
    .needs_app_lock = custom_has_table,
};

bool custom_is(const struct backend *b)
{
    return b->ops->close == op_close;
}

static struct custom *make(const struct custom_config *config)
{
    struct custom *c = xcalloc(1, sizeof(*c));

    c->config = *config;
    c->ops = custom_ops;
    c->ops.name = config->inner->ops->name;
    c->ops.leave = config->inner->ops->leave ? op_leave : NULL;
    c->backend = (struct backend){ .ops = &c->ops, .abbr = config->inner->abbr };
    c->tables = custom_tables_new();
    c->memory = custom_memory_new();
    c->rests = custom_rests_new();
    pthread_mutex_init(&c->lock, NULL);
    return c;
}

int custom_open(const struct custom_config *config, struct backend **ret, struct err *e)
{
    struct custom *c = make(config);
    const struct custom_deliveries_config deliveries = {
        .store = config->store,
        .net = config->net,
        .calls = &custom_delivery_calls,
        .arg = c,
        .beat_ms = settings_ms(config->settings, SETTING_TASKS_HEARTBEAT_S),
        .tries = settings_int(config->settings, SETTING_BACKEND_WEBHOOK_TRIES),
        .pause_ms = settings_ms(config->settings, SETTING_BACKEND_WEBHOOK_PAUSE_S),
    };
    int r = custom_deliveries_open(&deliveries, &c->deliveries, e);

    if (r < 0) {
        free_parts(c);
        return r;
    }
    *ret = &c->backend;
    return 0;
}

int custom_start(struct backend *b, struct err *e)
{
    return custom_deliveries_start(custom_of(b)->deliveries, e);
}

void custom_stop(struct backend *b)
{
    struct custom *c = custom_of(b);

    c->deliveries = custom_deliveries_close(c->deliveries);
}

void custom_set_tables(struct backend *b, const struct custom_table *tables, size_t n)
{
    custom_tables_set(custom_of(b)->tables, tables, n);
    custom_rests_clear(custom_of(b)->rests);
}

bool custom_has_tables(struct backend *b)
{
    return custom_tables_count(custom_of(b)->tables) > 0;
}

bool custom_has_table(struct backend *b, const char *table)
{
    AUTO(arena_freep) struct arena *a = arena_new_sized(1024);
    struct custom_view view;
    bool has_facts;
    char *name = NULL;

    return custom_has_tables(b) && backend_table_name(a, table, &name, NULL) == 0 &&
           custom_tables_find(custom_of(b)->tables, name, a, &view, &has_facts);
}

struct backend *custom_inner(struct backend *b)
{
    return custom_is(b) ? inner_of(b) : b;
}

struct custom_deliveries *custom_backend_deliveries(struct backend *b)
{
    return custom_is(b) ? custom_of(b)->deliveries : NULL;
}
