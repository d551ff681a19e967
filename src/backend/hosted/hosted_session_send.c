/* What the client says. */
#include "backend/hosted/hosted_session_private.h"

#include "base/limits.h"
#include "base/percent.h"

#include <inttypes.h>
#include <string.h>

static void next_ref(struct hosted_session *s, char ret[HOSTED_REF])
{
    snprintf(ret, HOSTED_REF, "%" PRIu64, ++s->last_ref);
}

static int send_message(struct hosted_session *s, const struct rt_message *m, struct err *e)
{
    struct buf text;
    int r;

    buf_init(&text, LIMIT_SOCKET_MESSAGE);
    rt_wire_write(&text, !s->config.is_v1, m);
    r = buf_check(&text, e);
    if (r == 0)
        r = s->config.send(s->config.arg, false, buf_slice(&text), e);
    buf_clear(&text);
    return r;
}

/* ref: filled with that of the message. */
static int push(struct hosted_session *s, const struct hosted_channel *ch, const char *event, struct slice payload,
                char ref[HOSTED_REF], struct err *e)
{
    next_ref(s, ref);
    const struct rt_message m = { .join_ref = slice_of(ch->join_ref),
                                  .ref = slice_of(ref),
                                  .topic = slice_of(ch->topic),
                                  .event = slice_of(event),
                                  .text = payload };
    return send_message(s, &m, e);
}

/* ---- join ---- */

static void write_change(struct json_writer *w, const struct hosted_channel *ch)
{
    AUTO(arena_freep) struct arena *a = arena_new_sized(512);
    const struct table_parts parts = backend_table_parts(a, ch->table);

    json_begin_object(w);
    json_add_string(w, "event", "*");
    json_add_string(w, "schema", parts.schema);
    json_add_string(w, "table", parts.table);
    if (ch->filter)
        json_add_string(w, "filter", ch->filter);
    json_end(w);
}

static void write_join(struct hosted_session *s, const struct hosted_channel *ch, struct json_writer *w)
{
    bool has_presence = ch->kind == HOSTED_PRESENCE;

    json_begin_object(w);
    json_begin_object_as(w, "config");
    json_begin_object_as(w, "broadcast");
    json_add_bool(w, "ack", false);
    json_add_bool(w, "self", true);
    json_end(w);
    json_begin_object_as(w, "presence");
    json_add_string(w, "key", has_presence && s->machine_id ? s->machine_id : "");
    json_add_bool(w, "enabled", has_presence);
    json_end(w);
    json_begin_array_as(w, "postgres_changes");
    if (ch->kind == HOSTED_TABLE)
        write_change(w, ch);
    json_end(w);
    json_add_bool(w, "private", ch->is_private);
    json_end(w);
    if (s->token)
        json_add_string(w, "access_token", s->token);
    json_end(w);
}

/* join_ref is the ref of the join. */
int hosted_send_join(struct hosted_session *s, struct hosted_channel *ch, int64_t now_ms, struct err *e)
{
    struct json_writer w;
    struct buf payload;
    int r;

    buf_init(&payload, KIB(64));
    json_write_init(&w, &payload);
    write_join(s, ch, &w);
    next_ref(s, ch->join_ref);
    const struct rt_message m = { .join_ref = slice_of(ch->join_ref),
                                  .ref = slice_of(ch->join_ref),
                                  .topic = slice_of(ch->topic),
                                  .event = SLICE_LIT("phx_join"),
                                  .text = buf_slice(&payload) };
    r = buf_check(&payload, e);
    if (r == 0)
        r = send_message(s, &m, e);
    buf_clear(&payload);
    return r;
}

int hosted_send_leave(struct hosted_session *s, struct hosted_channel *ch, struct err *e)
{
    char ref[HOSTED_REF];

    return push(s, ch, "phx_leave", SLICE_LIT("{}"), ref, e);
}

/* ---- heartbeat, token ---- */

int hosted_send_heartbeat(struct hosted_session *s, struct err *e)
{
    next_ref(s, s->beat_ref);
    const struct rt_message m = { .ref = slice_of(s->beat_ref),
                                  .topic = SLICE_LIT("phoenix"),
                                  .event = SLICE_LIT("heartbeat"),
                                  .text = SLICE_LIT("{}") };
    return send_message(s, &m, e);
}

int hosted_send_token(struct hosted_session *s, struct hosted_channel *ch, struct err *e)
{
    char ref[HOSTED_REF];
    struct json_writer w;
    struct buf payload;
    int r;

    buf_init(&payload, KIB(64));
    json_write_init(&w, &payload);
    json_begin_object(&w);
    json_add_string(&w, "access_token", s->token);
    json_end(&w);
    r = buf_check(&payload, e);
    if (r == 0)
        r = push(s, ch, "access_token", buf_slice(&payload), ref, e);
    buf_clear(&payload);
    return r;
}

/* ---- presence, broadcast ---- */

int hosted_send_track(struct hosted_session *s, struct hosted_channel *ch, struct err *e)
{
    struct buf payload;
    int r;

    buf_init(&payload, LIMIT_PRESENCE_BYTES + KIB(1));
    buf_printf(&payload, "{\"type\":\"presence\",\"event\":\"%s\",\"payload\":", s->record ? "track" : "untrack");
    buf_add_str(&payload, s->record ? s->record : "{}");
    buf_add_char(&payload, '}');
    r = buf_check(&payload, e);
    if (r == 0)
        r = push(s, ch, "presence", buf_slice(&payload), s->track_ref, e);
    buf_clear(&payload);
    return r;
}

static int send_as_text(struct hosted_session *s, const struct hosted_channel *ch, const struct hosted_spoken *b,
                        struct err *e)
{
    char ref[HOSTED_REF];
    struct buf payload;
    int r;

    buf_init(&payload, LIMIT_SOCKET_MESSAGE);
    buf_add_str(&payload, "{\"type\":\"broadcast\",\"event\":");
    json_quote(&payload, slice_of(b->event));
    buf_add_str(&payload, ",\"payload\":");
    buf_add_str(&payload, b->payload);
    buf_add_char(&payload, '}');
    r = buf_check(&payload, e);
    if (r == 0)
        r = push(s, ch, "broadcast", buf_slice(&payload), ref, e);
    buf_clear(&payload);
    return r;
}

/* Binary in version 2.0.0, as the official client; a name above 255 bytes goes as text. */
int hosted_send_broadcast(struct hosted_session *s, struct hosted_channel *ch, const struct hosted_spoken *b,
                          struct err *e)
{
    char ref[HOSTED_REF];
    struct buf bytes;
    bool is_binary;
    int r;

    if (s->config.is_v1)
        return send_as_text(s, ch, b, e);
    next_ref(s, ref);
    const struct rt_message m = { .join_ref = slice_of(ch->join_ref),
                                  .ref = slice_of(ref),
                                  .topic = slice_of(ch->topic),
                                  .user_event = slice_of(b->event),
                                  .body = slice_of(b->payload),
                                  .is_json = true };
    buf_init(&bytes, LIMIT_SOCKET_MESSAGE);
    is_binary = rt_wire_write_push(&bytes, &m);
    if (!is_binary) {
        buf_clear(&bytes);
        return send_as_text(s, ch, b, e);
    }
    r = buf_check(&bytes, e);
    if (r == 0)
        r = s->config.send(s->config.arg, true, buf_slice(&bytes), e);
    buf_clear(&bytes);
    return r;
}
