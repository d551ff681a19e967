/* The retry broadcast across machines (specification, "Retry broadcast"): what members of a channel `task-retry-<app>`
 * send goes to the backend, so that the services obey it, and what the services of any machine send there goes to the
 * members.
 *
 * The backend gives a service its own broadcasts back: the hub remembers what it has passed on and drops it once. Calls
 * of the backend are made on the thread of the rows, because they may wait. */
#include "face/realtime_private.h"

#include "base/clock.h"
#include "base/hash.h"

#include <stdlib.h>

#define BRIDGED "realtime:task-retry-"

enum { ECHO_MS = 10000 };

struct rt_bridge { /* a channel that the backend reports about; of the thread of the rows */
    LIST_ENTRY(rt_bridge) links;
    struct realtime *rt;
    char *channel; /* owned; without "realtime:" */
};

bool rt_is_bridged(const struct rt_topic *t)
{
    return !t->is_private && strncmp(t->name, BRIDGED, strlen(BRIDGED)) == 0;
}

static const char *channel_of(const char *topic_name)
{
    return topic_name + strlen("realtime:");
}

/* ---- on the hub's thread ---- */

void rt_bridge_change(struct realtime *rt, const struct rt_topic *t, bool is_wanted)
{
    struct rt_item *item;

    if (!rt_is_bridged(t))
        return;
    item = rt_item_new(is_wanted ? RT_LISTEN : RT_UNLISTEN);
    item->arena = arena_new();
    item->broadcast.topic = slice_of(arena_strdup(item->arena, channel_of(t->name)));
    rt_queue_push(&rt->rows, item, 0);
}

static uint64_t mark_of(struct slice topic, struct slice event, struct slice payload)
{
    return hash_fast(topic) * 31 + hash_fast(event) * 17 + hash_fast(payload);
}

static void remember(struct realtime *rt, uint64_t mark)
{
    rt->echoes[rt->n_echoes++ % RT_ECHOES] = (struct rt_echo){ mark, clock_mono_ms() + ECHO_MS };
}

static bool is_echo(struct realtime *rt, uint64_t mark)
{
    int64_t now_ms = clock_mono_ms();

    for (size_t i = 0; i < RT_ECHOES; i++) {
        struct rt_echo *echo = &rt->echoes[i];

        if (echo->mark != mark || echo->until_ms <= now_ms)
            continue;
        echo->until_ms = 0;
        return true;
    }
    return false;
}

void rt_bridge_send(struct realtime *rt, const char *topic_name, struct slice event, struct slice payload)
{
    struct slice channel = slice_of(channel_of(topic_name));
    struct rt_topic *t = rt_topic_find(rt, slice_of(topic_name), false);
    struct rt_item *item;

    if (atomic_fetch_add(&rt->n_bridged, 1) >= RT_ECHOES || memchr(event.p, '\0', event.n)) {
        atomic_fetch_sub(&rt->n_bridged, 1); /* nobody promises that a broadcast arrives */
        return;
    }
    item = rt_item_new(RT_BRIDGE);
    item->arena = arena_new();
    item->broadcast.topic = (struct slice){ arena_slicedup(item->arena, channel), channel.n };
    item->broadcast.event = (struct slice){ arena_slicedup(item->arena, event), event.n };
    item->broadcast.payload = (struct slice){ arena_slicedup(item->arena, payload), payload.n };
    if (t) /* else the backend is not listened to */
        remember(rt, mark_of(channel, event, payload));
    rt_queue_push(&rt->rows, item, 0);
}

void rt_bridge_deliver(struct realtime *rt, struct arena *a, const struct realtime_broadcast *b)
{
    if (!is_echo(rt, mark_of(b->topic, b->event, b->payload)))
        rt_deliver_broadcast(rt, a, b);
}

/* ---- on the thread of the backend ---- */

static void on_broadcast(void *arg, const char *channel, const char *event, const char *payload_json)
{
    const struct rt_bridge *bridge = arg;
    const struct realtime_broadcast b = { slice_of(channel), slice_of(event), slice_of(payload_json), false, false };

    if (b.topic.n <= LIMIT_TOPIC_BYTES && b.event.n <= LIMIT_TOPIC_BYTES)
        (void)!rt_queue_broadcast(bridge->rt, RT_REMOTE, &b, NULL);
}

/* ---- on the thread of the rows ---- */

static void listen_to(struct realtime *rt, const char *channel)
{
    struct backend *b = rt->config.backend;
    struct rt_bridge *bridge = xcalloc(1, sizeof(*bridge));

    bridge->rt = rt;
    bridge->channel = xstrdup(channel);
    LIST_INSERT_HEAD(&rt->bridges, bridge, links);
    (void)!b->ops->listen(b, channel, on_broadcast, bridge, NULL);
}

static void end_bridge(struct realtime *rt, struct rt_bridge *bridge)
{
    struct backend *b = rt->config.backend;

    b->ops->unlisten(b, bridge);
    LIST_REMOVE(bridge, links);
    free(bridge->channel);
    free(bridge);
}

static void leave(struct realtime *rt, const char *channel)
{
    struct rt_bridge *bridge;

    LIST_FOREACH(bridge, &rt->bridges, links)
    if (strcmp(bridge->channel, channel) == 0) {
        end_bridge(rt, bridge);
        return;
    }
}

void rt_bridge_work(struct realtime *rt, const struct rt_item *item)
{
    const struct realtime_broadcast *in = &item->broadcast;
    struct backend *b = rt->config.backend;

    if (item->kind == RT_LISTEN)
        listen_to(rt, in->topic.p);
    else if (item->kind == RT_UNLISTEN)
        leave(rt, in->topic.p);
    else {
        (void)!b->ops->broadcast(b, in->topic.p, in->event.p, in->payload.p, NULL);
        atomic_fetch_sub(&rt->n_bridged, 1);
    }
}

void rt_bridges_end(struct realtime *rt)
{
    while (!LIST_EMPTY(&rt->bridges))
        end_bridge(rt, LIST_FIRST(&rt->bridges));
}
