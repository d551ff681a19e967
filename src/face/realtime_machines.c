/* The presence of machines (specification, "Presence") on the public channel <abbr>_presence: the machines of the
 * backend are shown there, and a machine that a client with the secret key tracks there - a service with
 * backend.kind=hosted, or a program - is one of the backend's.
 *
 * While the channel has members, the hub sends the thread of the rows what clients track, now and then and after each
 * change; that thread tells the backend, and lists its machines. */
#include "face/realtime_private.h"

#include "backend/hosted/hosted_presence.h"
#include "base/clock.h"

#include <stdlib.h>

enum { READ_MS = 2000 };

struct rt_machine { /* put into the backend for a client; of the thread of the rows */
    LIST_ENTRY(rt_machine) links;
    char *machine_id, *instance; /* owned */
};

static const char *topic_name(const struct realtime *rt, char out[LIMIT_TOPIC_BYTES])
{
    snprintf(out, LIMIT_TOPIC_BYTES, "realtime:%s_presence", rt->config.backend->abbr);
    return out;
}

static struct rt_topic *topic_of(const struct realtime *rt)
{
    char name[LIMIT_TOPIC_BYTES];

    return rt_topic_find((struct realtime *)rt, slice_of(topic_name(rt, name)), false);
}

/* ---- on the hub's thread ---- */

/* A state of the protocol with what clients of the service role track. */
static char *tracked_state(struct arena *a, const struct rt_topic *t)
{
    const struct rt_meta *m = NULL;
    const char *comma = "";
    struct buf out;
    size_t n = 0;

    buf_init(&out, LIMIT_PRESENCE_TOPIC_BYTES);
    buf_add_char(&out, '{');
    for (m = t ? TAILQ_FIRST(&t->present) : NULL; m; m = TAILQ_NEXT(m, links)) {
        if (!m->channel || m->channel->caller.role != FACE_SERVICE || n == LIMIT_PRESENCE_MACHINES)
            continue;
        n++;
        buf_add_str(&out, comma);
        json_quote(&out, slice_of(m->key));
        buf_printf(&out, ":{\"metas\":[{%s}]}", m->fields);
        comma = ",";
    }
    buf_add_char(&out, '}');
    return buf_to_arena(&out, a);
}

void rt_machines_tick(struct realtime *rt, bool is_due)
{
    struct rt_topic *t = topic_of(rt);
    int64_t now_ms = clock_mono_ms();
    struct rt_item *item;

    rt->is_machines_due = rt->is_machines_due || is_due;
    if (rt->is_reading_machines || (!t && !rt->has_put_machines) || (!rt->is_machines_due && now_ms < rt->machines_ms))
        return;
    item = rt_item_new(RT_MACHINES);
    item->arena = arena_new();
    item->bytes = slice_of(tracked_state(item->arena, t));
    rt->has_put_machines = item->bytes.n > 2;
    rt->is_reading_machines = true;
    rt->is_machines_due = false;
    rt->machines_ms = now_ms + MIN((int64_t)READ_MS, rt->config.presence_ms / 3);
    rt_queue_push(&rt->rows, item, 0);
}

bool rt_is_of_machines(const struct realtime *rt, const struct rt_topic *t)
{
    char name[LIMIT_TOPIC_BYTES];

    return !t->is_private && strcmp(t->name, topic_name(rt, name)) == 0;
}

/* The members of the record without its braces; NULL: it is too large. */
static char *fields_of(const struct backend_presence *p)
{
    char *record = hosted_presence_record(p);
    size_t n = record ? strlen(record) : 0;

    if (n < 2)
        return record;
    memmove(record, record + 1, n - 2);
    record[n - 2] = '\0';
    return record;
}

static const struct rt_meta *find(const struct rt_topic *t, const char *key, bool is_machine)
{
    const struct rt_meta *m;

    TAILQ_FOREACH(m, &t->present, links)
    if (!m->channel == is_machine && strcmp(m->key, key) == 0)
        return m;
    return NULL;
}

/* Who is in the list and not tracked by a member is shown. */
static void show(struct realtime *rt, struct rt_topic *t, const struct backend_presence *p)
{
    const struct rt_meta *known = find(t, p->machine_id, true);
    char *fields = find(t, p->machine_id, false) ? NULL : fields_of(p);

    if (fields && (!known || strcmp(known->fields, fields) != 0))
        rt_presence_show(rt, t, p->machine_id, fields);
    else
        free(fields);
}

static bool is_listed(const struct backend_presences *list, const struct rt_topic *t, const struct rt_meta *m)
{
    for (size_t i = 0; i < MIN(list->n, (size_t)LIMIT_PRESENCE_MACHINES); i++)
        if (strcmp(list->items[i].machine_id, m->key) == 0)
            return !find(t, m->key, false);
    return false;
}

void rt_machines_known(struct realtime *rt, const struct rt_item *item)
{
    struct rt_topic *t = topic_of(rt);
    struct rt_meta *m, *next;

    rt->is_reading_machines = false;
    if (t && item->r == 0) {
        for (m = TAILQ_FIRST(&t->present); m; m = next) {
            next = TAILQ_NEXT(m, links);
            if (!m->channel && !is_listed(&item->presences, t, m))
                rt_presence_hide(t, m);
        }
        for (size_t i = 0; i < MIN(item->presences.n, (size_t)LIMIT_PRESENCE_MACHINES); i++)
            show(rt, t, &item->presences.items[i]);
    }
    if (rt->is_machines_due)
        rt_machines_tick(rt, true);
}

/* ---- on the thread of the rows ---- */

static void forget(struct realtime *rt, struct rt_machine *m)
{
    struct backend *b = rt->config.backend;

    (void)!b->ops->presence_remove(b, m->machine_id, m->instance, NULL);
    LIST_REMOVE(m, links);
    free(m->machine_id);
    free(m->instance);
    free(m);
}

static bool is_same(const struct rt_machine *m, const struct backend_presence *p)
{
    return strcmp(m->machine_id, p->machine_id) == 0 && strcmp(m->instance, p->instance) == 0;
}

static void remember(struct realtime *rt, const struct backend_presence *p)
{
    struct rt_machine *m;

    LIST_FOREACH(m, &rt->machines, links)
    if (is_same(m, p))
        return;
    m = xcalloc(1, sizeof(*m));
    m->machine_id = xstrdup(p->machine_id);
    m->instance = xstrdup(p->instance);
    LIST_INSERT_HEAD(&rt->machines, m, links);
}

static void forget_others(struct realtime *rt, const struct backend_presences *list)
{
    struct rt_machine *m = LIST_FIRST(&rt->machines), *next;

    for (; m; m = next) {
        size_t i = 0;

        next = LIST_NEXT(m, links);
        while (i < list->n && !is_same(m, &list->items[i]))
            i++;
        if (i == list->n)
            forget(rt, m);
    }
}

/* A record without an instance may not pass for a service of ours with that machine id. */
static void put(struct realtime *rt, struct backend_presence *p)
{
    struct backend *b = rt->config.backend;

    if (b->ops->presence_put(b, p, rt->config.presence_ms, NULL) == 0)
        remember(rt, p);
}

void rt_machines_work(struct realtime *rt, struct rt_item *item)
{
    struct hosted_presence *tracked = hosted_presence_new();
    struct backend *b = rt->config.backend;
    struct backend_presences list = { 0 };
    struct json_value state;

    if (json_parse(item->arena, item->bytes, &state, NULL) == 0 && hosted_presence_state(tracked, state))
        hosted_presence_list(tracked, item->arena, &list);
    hosted_presence_free(tracked);
    for (size_t i = 0; i < list.n; i++)
        list.items[i].instance = list.items[i].instance ? list.items[i].instance : "face";
    forget_others(rt, &list);
    for (size_t i = 0; i < list.n; i++)
        put(rt, &list.items[i]);
    item->r = b->ops->presence_list(b, rt->config.presence_ms, item->arena, &item->presences, NULL);
    rt_queue_push(&rt->hub, item, 0);
}

void rt_machines_end(struct realtime *rt)
{
    while (!LIST_EMPTY(&rt->machines))
        forget(rt, LIST_FIRST(&rt->machines));
}
