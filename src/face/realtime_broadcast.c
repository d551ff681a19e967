/* Broadcasts: from one member of a channel, or from an HTTP request, to the members. */
#include "face/realtime_private.h"

struct cast {
    const struct rt_channel *from; /* NULL: not a member */
    struct rt_message m;           /* in binary form; user_event.p NULL: text says all */
    struct slice text;             /* the payload for clients of text; p NULL: they cannot have it */
    struct buf frames[2];          /* by version; made when the first member needs them */
};

static void make_frame(struct cast *cast, bool is_v2)
{
    struct buf *frame = &cast->frames[is_v2], message;
    struct rt_message m = { .topic = cast->m.topic, .event = SLICE_LIT("broadcast"), .text = cast->text };
    bool is_binary;

    buf_init(&message, LIMIT_SOCKET_WAITING);
    is_binary = is_v2 && cast->m.user_event.p && rt_wire_write_broadcast(&message, &cast->m);
    if (!is_binary)
        rt_wire_write(&message, is_v2, &m);
    if (is_binary || cast->text.p)
        websocket_write_message(frame, WEBSOCKET_SERVER, is_binary, buf_slice(&message));
    buf_clear(&message);
}

static void deliver_to(struct rt_channel *ch, struct cast *cast)
{
    struct buf *frame = &cast->frames[ch->socket->is_v2];

    if (ch == cast->from && !ch->gets_own)
        return;
    if (frame->n == 0)
        make_frame(cast, ch->socket->is_v2);
    if (frame->n > 0)
        rt_send_frame(ch->socket, buf_slice(frame));
}

static void deliver(struct rt_topic *t, struct cast *cast)
{
    buf_init(&cast->frames[false], LIMIT_SOCKET_WAITING);
    buf_init(&cast->frames[true], LIMIT_SOCKET_WAITING);
    for (struct rt_channel *ch = TAILQ_FIRST(&t->members); ch; ch = TAILQ_NEXT(ch, of_topic))
        deliver_to(ch, cast);
    buf_clear(&cast->frames[false]);
    buf_clear(&cast->frames[true]);
}

/* {"type":"broadcast","event":...,"payload":...}: what clients of text receive for a binary broadcast. */
static struct slice text_of(struct arena *a, const struct rt_message *m)
{
    struct json_writer w;
    struct buf out;
    size_t n;

    if (!m->is_json)
        return (struct slice){ 0 };
    buf_init(&out, LIMIT_SOCKET_WAITING);
    json_write_init(&w, &out);
    json_begin_object(&w);
    json_add_string(&w, "type", "broadcast");
    json_add_slice(&w, "event", m->user_event);
    buf_add_str(&out, ",\"payload\":");
    buf_add_slice(&out, m->body);
    if (m->meta.n > 0) {
        buf_add_str(&out, ",\"meta\":");
        buf_add_slice(&out, m->meta);
    }
    buf_add_char(&out, '}');
    n = out.n;
    return (struct slice){ buf_to_arena(&out, a), n };
}

/* Broadcasts in text have their event and payload within the payload. */
static void read_text(struct cast *cast, struct arena *a, struct json_value payload)
{
    struct json_value event = json_get(payload, "event"), body = json_get(payload, "payload"),
                      meta = json_get(payload, "meta");

    cast->text = slice_of(json_to_str(a, payload));
    if (json_type(event) != JSON_STRING || json_type(body) == JSON_ABSENT)
        return;
    cast->m.user_event = json_string(event);
    cast->m.body = slice_of(json_to_str(a, body));
    cast->m.meta = (struct slice){ 0 };
    if (!json_is_absent(meta))
        cast->m.meta = slice_of(json_to_str(a, meta));
    cast->m.is_json = true;
}

void rt_take_broadcast(struct rt_channel *from, struct arena *a, const struct rt_message *m)
{
    struct cast cast = { .from = from, .m = *m };

    if (m->is_broadcast)
        cast.text = text_of(a, m);
    else
        read_text(&cast, a, m->payload);
    if (MAX(cast.text.n, cast.m.body.n) > LIMIT_BROADCAST_BYTES) {
        if (from->wants_ack)
            rt_reply_error(from->socket, m, "payload_size_exceeded");
        return;
    }
    deliver(from->topic, &cast);
    if (rt_is_bridged(from->topic) && cast.m.user_event.p && cast.m.is_json)
        rt_bridge_send(from->socket->rt, from->topic->name, cast.m.user_event, cast.m.body);
    if (from->wants_ack)
        rt_reply(from->socket, m, true, SLICE_LIT("{}"));
}

void rt_deliver_broadcast(struct realtime *rt, struct arena *a, const struct realtime_broadcast *b)
{
    const char *name = arena_printf(a, "realtime:%.*s", (int)b->topic.n, b->topic.p);
    struct rt_topic *t = rt_topic_find(rt, slice_of(name), b->is_private);
    struct cast cast = { .m = { .topic = slice_of(name),
                                .user_event = b->event,
                                .body = b->payload,
                                .is_json = !b->is_bytes,
                                .is_broadcast = true } };

    if (!t)
        return;
    cast.text = text_of(a, &cast.m);
    deliver(t, &cast);
}
