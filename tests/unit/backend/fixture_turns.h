/* A backend that is two services on one place: each call goes to the other one than the call before, so that a lease is
 * taken by one service and ended by the other. What is within one process (receivers, broadcasts) stays with the first.
 */
#pragma once

#include "fixture.h"

#include <stdatomic.h>

struct turns {
    struct backend backend;
    struct backend *services[2]; /* owned */
    atomic_uint n_calls;
};

static inline struct turns *turns_of(struct backend *b)
{
    return CONTAINER_OF(b, struct turns, backend);
}

static inline struct backend *turns_next(struct backend *b)
{
    struct turns *t = turns_of(b);

    return t->services[atomic_fetch_add(&t->n_calls, 1) % 2];
}

static struct backend *turns_close(struct backend *b)
{
    struct turns *t = turns_of(b);

    backend_close(t->services[0]);
    backend_close(t->services[1]);
    free(t);
    return NULL;
}

#define PASS(type, op, to, params, ...)                                                                                \
    static type turns_##op params                                                                                      \
    {                                                                                                                  \
        struct backend *to_service = to;                                                                               \
                                                                                                                       \
        return (to_service->ops->op)(to_service, __VA_ARGS__);                                                         \
    }
#define EACH(op, params, ...) PASS(int, op, turns_next(b), params, __VA_ARGS__)
#define FIRST(type, op, params, ...) PASS(type, op, turns_of(b)->services[0], params, __VA_ARGS__)
#define ROW struct arena *a, struct backend_row *ret, struct err *e
#define ROWS struct arena *a, struct backend_rows *ret, struct err *e

EACH(is_ready, (struct backend * b, struct err *e), e)
EACH(ensure_table, (struct backend * b, const char *table, struct err *e), table, e)
EACH(insert, (struct backend * b, const struct backend_new_row *in, ROW), in, a, ret, e)
EACH(get, (struct backend * b, const char *table, const char *id, const char *app_id, ROW), table, id, app_id, a, ret,
     e)
EACH(list, (struct backend * b, const struct backend_query *q, ROWS), q, a, ret, e)
EACH(update, (struct backend * b, const struct backend_update_request *request, ROW), request, a, ret, e)
EACH(remove, (struct backend * b, const char *table, const char *id, const char *app_id, struct err *e), table, id,
     app_id, e)
EACH(claim,
     (struct backend * b, const struct backend_claim *c, struct arena *a, struct backend_row *ret,
      struct backend_lease *ret_lease, struct err *e),
     c, a, ret, ret_lease, e)
EACH(heartbeat, (struct backend * b, const struct backend_lease *l, struct err *e), l, e)
EACH(complete, (struct backend * b, const struct backend_lease *l, const char *result_json, struct err *e), l,
     result_json, e)
EACH(fail, (struct backend * b, const struct backend_lease *l, const char *message, struct err *e), l, message, e)
EACH(release, (struct backend * b, const struct backend_lease *l, struct err *e), l, e)
EACH(release_machine, (struct backend * b, const char *table, const char *machine_id, size_t *ret_n, struct err *e),
     table, machine_id, ret_n, e)
EACH(rearm, (struct backend * b, const char *table, const char *id, struct err *e), table, id, e)
EACH(replay, (struct backend * b, const char *table, const char *id, struct err *e), table, id, e)
EACH(recover_stale, (struct backend * b, const char *table, int64_t stale_after_ms, ROWS), table, stale_after_ms, a,
     ret, e)
EACH(claimable,
     (struct backend * b, const char *table, const struct backend_claim *as, const struct backend_position *before,
      int64_t limit, ROWS),
     table, as, before, limit, a, ret, e)
EACH(owners, (struct backend * b, int64_t max_machines, struct arena *a, struct backend_owners *ret, struct err *e),
     max_machines, a, ret, e)
EACH(check, (struct backend * b, const struct backup_patience *patience, struct err *e), patience, e)
EACH(presence_put, (struct backend * b, const struct backend_presence *p, int64_t fresh_ms, struct err *e), p, fresh_ms,
     e)
EACH(presence_remove, (struct backend * b, const char *machine_id, const char *instance, struct err *e), machine_id,
     instance, e)
EACH(presence_list,
     (struct backend * b, int64_t fresh_ms, struct arena *a, struct backend_presences *ret, struct err *e), fresh_ms, a,
     ret, e)
EACH(publications, (struct backend * b, struct arena *a, struct backend_publications *ret, struct err *e), a, ret, e)
EACH(query, (struct backend * b, const struct query *q, struct arena *a, struct query_reply *ret, struct err *e), q, a,
     ret, e)
EACH(shape, (struct backend * b, const char *table, struct arena *a, struct table_shape *ret, struct err *e), table, a,
     ret, e)
EACH(declare, (struct backend * b, const struct table_shape *declared, struct err *e), declared, e)
FIRST(int, subscribe, (struct backend * b, backend_event_fn *fn, backend_gap_fn *on_gap, void *arg, struct err *e), fn,
      on_gap, arg, e)
FIRST(void, unsubscribe, (struct backend * b, void *arg), arg)
FIRST(int, broadcast,
      (struct backend * b, const char *channel, const char *event, const char *payload_json, struct err *e), channel,
      event, payload_json, e)
FIRST(int, listen, (struct backend * b, const char *channel, backend_broadcast_fn *fn, void *arg, struct err *e),
      channel, fn, arg, e)
FIRST(void, unlisten, (struct backend * b, void *arg), arg)

static inline void turns_monitor(struct backend *b, struct arena *a, struct backend_monitor *ret)
{
    struct backend *one = turns_of(b)->services[0];

    one->ops->monitor(one, a, ret);
}

static const struct backend_ops turns_ops = {
    .name = "turns",
    .close = turns_close,
    .is_ready = turns_is_ready,
    .ensure_table = turns_ensure_table,
    .insert = turns_insert,
    .get = turns_get,
    .list = turns_list,
    .update = turns_update,
    .remove = turns_remove,
    .claim = turns_claim,
    .heartbeat = turns_heartbeat,
    .complete = turns_complete,
    .fail = turns_fail,
    .release = turns_release,
    .release_machine = turns_release_machine,
    .rearm = turns_rearm,
    .replay = turns_replay,
    .recover_stale = turns_recover_stale,
    .claimable = turns_claimable,
    .owners = turns_owners,
    .check = turns_check,
    .subscribe = turns_subscribe,
    .unsubscribe = turns_unsubscribe,
    .broadcast = turns_broadcast,
    .listen = turns_listen,
    .unlisten = turns_unlisten,
    .presence_put = turns_presence_put,
    .presence_remove = turns_presence_remove,
    .presence_list = turns_presence_list,
    .monitor = turns_monitor,
    .publications = turns_publications,
    .query = turns_query,
    .shape = turns_shape,
    .declare = turns_declare,
};

/* Takes both services over. */
static inline struct backend *turns_new(struct backend *one, struct backend *other)
{
    struct turns *t = xcalloc(1, sizeof(*t));

    t->backend = (struct backend){ .ops = &turns_ops, .abbr = one->abbr };
    t->services[0] = one;
    t->services[1] = other;
    return &t->backend;
}
