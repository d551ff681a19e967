/* Subscriptions to changes of rows: what a channel asked for, and which changes it receives. */
#include "face/realtime_private.h"

#include "backend/backend_columns.h"
#include "base/hash.h"

#include <strings.h>

enum { ALL_OPS = BACKEND_INSERT | BACKEND_UPDATE | BACKEND_DELETE, ID_MASK = 0x7ffffff /* 27 bits, as the service */ };

/* ---- reading ---- */

static unsigned ops_of(struct slice event)
{
    static const enum backend_op ops[] = { BACKEND_INSERT, BACKEND_UPDATE, BACKEND_DELETE };

    for (size_t i = 0; i < ARRAY_SIZE(ops); i++) {
        const char *name = backend_op_name(ops[i]);

        if (event.n == strlen(name) && strncasecmp(event.p, name, event.n) == 0)
            return ops[i];
    }
    return ALL_OPS;
}

/* A member that is no text must not be taken for one that is missing: that would be every row. */
static int check_texts(struct json_value v, struct err *e)
{
    static const char *const names[] = { "event", "schema", "table", "filter" };

    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        struct json_value member = json_get(v, names[i]);

        if (!json_is_absent(member) && !json_cstr(member))
            return err_set(e, -EINVAL, "VALIDATION_ERROR", "`%s` of a subscription must be text", names[i]);
    }
    return 0;
}

static int read_binding(struct arena *a, struct json_value v, struct rt_binding *ret, struct err *e)
{
    struct json_value schema = json_get(v, "schema"), table = json_get(v, "table");
    struct slice filter = json_string(json_get(v, "filter"));
    int r = check_texts(v, e);

    if (r < 0)
        return r;
    if (json_type(v) != JSON_OBJECT || (json_is_absent(schema) && json_is_absent(table)))
        return err_set(
            e, -EINVAL, "VALIDATION_ERROR",
            "No subscription params provided. Please provide at least a `schema` or `table` to subscribe to");
    ret->ops = ops_of(json_string(json_get(v, "event")));
    ret->schema = json_is_absent(schema) ? "public" : arena_slicedup(a, json_string(schema));
    ret->name = json_is_absent(table) ? "*" : arena_slicedup(a, json_string(table));
    return rt_filter_read(a, filter, &ret->filter, e);
}

static uint32_t id_of(struct arena *a, struct json_value v)
{
    return (uint32_t)(hash_fast(slice_of(json_to_str(a, v))) & ID_MASK);
}

int rt_bindings_read(struct rt_channel *ch, struct json_value config, struct err *e)
{
    size_t n = json_type(config) == JSON_ARRAY ? json_length(config) : 0;
    struct json_value v;
    struct slice key;

    if (n > LIMIT_CHANNEL_CHANGES)
        return err_set(e, -E2BIG, "TOO_MANY_SUBSCRIPTIONS", "a channel may have at most %d subscriptions to changes",
                       LIMIT_CHANNEL_CHANGES);
    ch->bindings = arena_array(ch->arena, n, sizeof(*ch->bindings));
    for (struct json_iter it = json_iter(config); n > 0 && json_next(&it, &key, &v);) {
        struct rt_binding *b = &ch->bindings[ch->n_bindings++];
        struct err why = { 0 };

        b->id = id_of(ch->arena, v);
        if (read_binding(ch->arena, v, b, &why) < 0 && !ch->fault)
            ch->fault = arena_strdup(ch->arena, why.text);
    }
    return 0;
}

/* The official client compares the members one by one: they are repeated as they came. */
static void print_binding(struct json_writer *w, const struct rt_binding *b, struct json_value as_sent)
{
    struct json_value member;
    struct slice name;

    json_begin_object(w);
    json_add_int(w, "id", b->id);
    for (struct json_iter it = json_iter(as_sent); json_next(&it, &name, &member);)
        if (!slice_eq_str(name, "id"))
            json_add_value(w, name.p, member);
    json_end(w);
}

void rt_bindings_print(struct buf *out, const struct rt_channel *ch, struct json_value config)
{
    struct json_writer w;
    struct json_value v;
    struct slice key;
    size_t i = 0;

    json_write_init(&w, out);
    json_begin_object(&w);
    json_begin_array_as(&w, "postgres_changes");
    for (struct json_iter it = json_iter(config); i < ch->n_bindings && json_next(&it, &key, &v); i++)
        print_binding(&w, &ch->bindings[i], v);
    json_end(&w);
    json_end(&w);
}

/* ---- who receives ---- */

void rt_watch(struct rt_channel *ch)
{
    struct realtime *rt = ch->socket->rt;

    if (ch->fault || ch->is_watching)
        return;
    ch->is_watching = true;
    TAILQ_INSERT_TAIL(&rt->watching, ch, of_changes);
    atomic_fetch_add(&rt->n_watching, 1);
}

void rt_unwatch(struct rt_channel *ch)
{
    struct realtime *rt = ch->socket->rt;

    if (!ch->is_watching)
        return;
    ch->is_watching = false;
    TAILQ_REMOVE(&rt->watching, ch, of_changes);
    atomic_fetch_sub(&rt->n_watching, 1);
}

void rt_confirm(struct rt_channel *ch)
{
    if (ch->fault)
        rt_system(ch, "postgres_changes", false, ch->fault);
    else
        rt_request_tables(ch->socket->rt, ch);
}

bool rt_is_named(const char *wanted, const char *name)
{
    return strcmp(wanted, "*") == 0 || strcmp(wanted, name) == 0;
}

static bool is_published(const struct rt_binding *b, const struct backend_publications *all, struct arena *a)
{
    for (size_t i = 0; i < all->n; i++)
        for (size_t j = 0; j < all->items[i].n_tables; j++) {
            struct rt_change as = { .table = all->items[i].tables[j] };

            rt_change_name(a, &as);
            if (rt_is_named(b->schema, as.schema) && rt_is_named(b->name, as.name))
                return true;
        }
    return false;
}

static const char *event_text(unsigned ops)
{
    return ops == ALL_OPS ? "*" : backend_op_name(ops);
}

static bool is_internal_of(const struct rt_channel *ch, const struct rt_binding *b)
{
    return ch->caller.role == FACE_SERVICE && rt_is_named(b->schema, "public") &&
           rt_is_internal(ch->socket->rt->config.backend, b->name);
}

static void confirm(struct rt_channel *ch, const struct rt_item *item)
{
    for (size_t i = 0; i < ch->n_bindings; i++) {
        const struct rt_binding *b = &ch->bindings[i];

        if (is_published(b, &item->tables, item->arena) || is_internal_of(ch, b))
            continue;
        rt_system(
            ch, "postgres_changes", false,
            arena_printf(item->arena,
                         "Unable to subscribe to changes with given parameters. Please check Realtime is enabled "
                         "for the given connect parameters: [event: %s, schema: %.80s, table: %.80s, filters: []]",
                         event_text(b->ops), b->schema, b->name));
        return;
    }
    rt_system(ch, "postgres_changes", true, "Subscribed to PostgreSQL");
}

static void refuse(struct rt_channel *ch, const char *fault)
{
    ch->fault = arena_strdup(ch->arena, fault);
    rt_unwatch(ch);
    rt_system(ch, "postgres_changes", false, ch->fault);
}

void rt_tables_known(struct realtime *rt, const struct rt_item *item)
{
    struct rt_channel *ch;

    TAILQ_FOREACH(ch, &rt->watching, of_changes)
    if (ch->serial == item->serial)
        break;
    if (!ch)
        return;
    if (item->r < 0)
        rt_system(ch, "postgres_changes", false, "The database does not answer; changes arrive when it does again.");
    else if (ch->caller.role == FACE_ANON)
        rt_system(ch, "postgres_changes", false,
                  "Error 401: Unauthorized: rows are for signed-in users; the role anon receives none");
    else if (item->fault)
        refuse(ch, item->fault);
    else
        confirm(ch, item);
}

/* ---- delivery ---- */

static bool matches(const struct rt_binding *b, const struct rt_change *c)
{
    return (b->ops & (unsigned)c->op) && rt_is_named(b->schema, c->schema) && rt_is_named(b->name, c->name) &&
           (!c->is_internal || strcmp(b->name, "*") != 0) && rt_filter_passes(&b->filter, c);
}

/* The last frame that was made: members of one topic with the same subscriptions share it. */
struct cast {
    const struct rt_topic *topic;
    bool is_v2;
    struct buf ids, next_ids, frame;
};

static bool collect_ids(struct cast *cast, const struct rt_channel *ch, const struct rt_change *c)
{
    buf_reset(&cast->next_ids);
    for (size_t i = 0; i < ch->n_bindings; i++)
        if (matches(&ch->bindings[i], c))
            buf_printf(&cast->next_ids, "%s%u", cast->next_ids.n ? "," : "", ch->bindings[i].id);
    return cast->next_ids.n > 0;
}

static bool is_same(const struct cast *cast, const struct rt_channel *ch)
{
    return cast->topic == ch->topic && cast->is_v2 == ch->socket->is_v2 &&
           slice_eq(buf_slice(&cast->ids), buf_slice(&cast->next_ids));
}

static void make_frame(struct cast *cast, const struct rt_channel *ch, const struct rt_change *c)
{
    struct rt_message m = { .topic = slice_of(ch->topic->name), .event = SLICE_LIT("postgres_changes") };
    struct buf payload, text;

    buf_init(&payload, LIMIT_SOCKET_WAITING);
    buf_init(&text, LIMIT_SOCKET_WAITING);
    buf_printf(&payload, "{\"ids\":[%s],\"data\":", buf_str(&cast->next_ids));
    buf_add_slice(&payload, c->data);
    buf_add_char(&payload, '}');
    m.text = buf_slice(&payload);
    rt_wire_write(&text, ch->socket->is_v2, &m);
    buf_reset(&cast->frame);
    websocket_write_message(&cast->frame, WEBSOCKET_SERVER, false, buf_slice(&text));
    buf_clear(&text);
    buf_clear(&payload);
    buf_reset(&cast->ids);
    buf_add_slice(&cast->ids, buf_slice(&cast->next_ids));
    cast->topic = ch->topic;
    cast->is_v2 = ch->socket->is_v2;
}

/* A row is seen by its user and by the service role; a row of a table without users, by every signed-in user. */
static bool is_for(const struct rt_channel *ch, const struct rt_change *c)
{
    const struct backend_row *row = c->new_row ? c->new_row : c->old_row;

    if (c->is_internal)
        return ch->caller.role == FACE_SERVICE;
    if (c->shape && c->shape->of.n_columns && !c->shape->has_user)
        return ch->caller.role != FACE_ANON;
    return row && face_may_see(&ch->caller, row->user_id);
}

void rt_deliver_change(struct realtime *rt, struct rt_change *c)
{
    struct cast cast = { 0 };
    struct rt_channel *ch;

    buf_init(&cast.ids, KIB(4));
    buf_init(&cast.next_ids, KIB(4));
    buf_init(&cast.frame, LIMIT_SOCKET_WAITING);
    TAILQ_FOREACH(ch, &rt->watching, of_changes)
    {
        if (!is_for(ch, c) || !collect_ids(&cast, ch, c))
            continue;
        if (!is_same(&cast, ch))
            make_frame(&cast, ch, c);
        metric_add(rt->delivered, 1); /* before the client can know of it */
        rt_send_frame(ch->socket, buf_slice(&cast.frame));
    }
    buf_clear(&cast.ids);
    buf_clear(&cast.next_ids);
    buf_clear(&cast.frame);
}

void rt_deliver_gap(struct realtime *rt)
{
    struct rt_channel *ch;

    TAILQ_FOREACH(ch, &rt->watching, of_changes)
    rt_system(ch, "postgres_changes", false, "Changes may have been lost: read the rows again");
}
