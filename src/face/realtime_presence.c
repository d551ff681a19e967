/* Presence: what the members of a channel say of themselves, and who is told. */
#include "face/realtime_private.h"

#include "base/clock.h"

#include <stdlib.h>
#include <strings.h>

enum { MS_A_SECOND = 1000, META_BYTES = 64 };

/* "1f": any text that no other meta has. */
static void add_meta(struct buf *out, const struct rt_meta *meta, uint64_t before)
{
    buf_printf(out, "{\"phx_ref\":\"%llx\"", (unsigned long long)meta->ref);
    if (before)
        buf_printf(out, ",\"phx_ref_prev\":\"%llx\"", (unsigned long long)before);
    if (meta->fields[0])
        buf_printf(out, ",%s", meta->fields);
    buf_add_char(out, '}');
}

/* {"<key>":{"metas":[...]}} */
static void add_one(struct buf *out, const struct rt_meta *meta, uint64_t before)
{
    json_quote(out, slice_of(meta->channel->presence_key));
    buf_add_str(out, ":{\"metas\":[");
    add_meta(out, meta, before);
    buf_add_str(out, "]}");
}

static void send_to(struct rt_channel *ch, const char *event, struct slice payload)
{
    const struct rt_message m = { .topic = slice_of(ch->topic->name), .event = slice_of(event), .text = payload };

    if (ch->has_presence)
        rt_send(ch->socket, &m);
}

/* before: the meta that `joined` replaces, 0: none. */
static void send_diff(struct rt_topic *t, const struct rt_meta *joined, uint64_t before, const struct rt_meta *left)
{
    struct rt_channel *ch;
    struct buf diff;

    buf_init(&diff, LIMIT_SOCKET_WAITING);
    buf_add_str(&diff, "{\"joins\":{");
    if (joined)
        add_one(&diff, joined, before);
    buf_add_str(&diff, "},\"leaves\":{");
    if (left)
        add_one(&diff, left, 0);
    buf_add_str(&diff, "}}");
    TAILQ_FOREACH(ch, &t->members, of_topic)
    send_to(ch, "presence_diff", buf_slice(&diff));
    buf_clear(&diff);
}

/* ---- the state, for a member that joins ---- */

/* Is it the first meta of its key? Members of one key are told together. */
static bool is_first(const struct rt_topic *t, const struct rt_meta *meta)
{
    const struct rt_meta *m;

    TAILQ_FOREACH(m, &t->present, links)
    if (strcmp(m->channel->presence_key, meta->channel->presence_key) == 0)
        return m == meta;
    return true;
}

static void add_key(struct buf *out, const struct rt_topic *t, const struct rt_meta *first)
{
    const struct rt_meta *m;
    bool has_one = false;

    json_quote(out, slice_of(first->channel->presence_key));
    buf_add_str(out, ":{\"metas\":[");
    TAILQ_FOREACH(m, &t->present, links)
    {
        if (strcmp(m->channel->presence_key, first->channel->presence_key) != 0)
            continue;
        if (has_one)
            buf_add_char(out, ',');
        add_meta(out, m, 0);
        has_one = true;
    }
    buf_add_str(out, "]}");
}

void rt_presence_state(struct rt_channel *ch)
{
    const struct rt_meta *m;
    struct buf state;
    bool has_one = false;

    buf_init(&state, LIMIT_SOCKET_WAITING);
    buf_add_char(&state, '{');
    TAILQ_FOREACH(m, &ch->topic->present, links)
    {
        if (!is_first(ch->topic, m))
            continue;
        if (has_one)
            buf_add_char(&state, ',');
        add_key(&state, ch->topic, m);
        has_one = true;
    }
    buf_add_char(&state, '}');
    send_to(ch, "presence_state", buf_slice(&state));
    buf_clear(&state);
}

/* ---- track and untrack ---- */

static struct rt_meta *meta_of(const struct rt_channel *ch)
{
    struct rt_meta *m;

    TAILQ_FOREACH(m, &ch->topic->present, links)
    if (m->channel == ch)
        return m;
    return NULL;
}

/* At most this many bytes of presence_state; key and fields may be escaped. */
static size_t weight_of(const struct rt_channel *ch, const char *fields)
{
    return 6 * strlen(ch->presence_key) + strlen(fields) + META_BYTES;
}

static void meta_free(struct rt_topic *t, struct rt_meta *m)
{
    TAILQ_REMOVE(&t->present, m, links);
    t->n_present_bytes -= weight_of(m->channel, m->fields);
    free(m->fields);
    free(m);
}

void rt_presence_gone(struct rt_channel *ch)
{
    struct rt_meta *m = meta_of(ch);

    if (!m)
        return;
    send_diff(ch->topic, NULL, 0, m);
    meta_free(ch->topic, m);
}

/* The members of an object without its braces. Members that the protocol itself writes are left out. */
static char *fields_of(struct json_value payload)
{
    struct json_value member;
    struct slice name;
    struct buf out;

    buf_init(&out, LIMIT_PRESENCE_BYTES);
    for (struct json_iter it = json_iter(payload); json_next(&it, &name, &member);) {
        if (slice_eq_str(name, "phx_ref") || slice_eq_str(name, "phx_ref_prev"))
            continue;
        if (out.n > 0)
            buf_add_char(&out, ',');
        json_quote(&out, name);
        buf_add_char(&out, ':');
        json_print(&out, member);
    }
    if (out.overflowed) {
        buf_clear(&out);
        return NULL;
    }
    return buf_take(&out);
}

static void track(struct rt_channel *ch, const struct rt_message *m, char *fields)
{
    struct rt_meta *old = meta_of(ch), *fresh;
    size_t weight = weight_of(ch, fields);

    if (ch->topic->n_present_bytes + weight > LIMIT_PRESENCE_TOPIC_BYTES) {
        rt_reply_error(ch->socket, m, "The members of this channel track too much together");
        free(fields);
        return;
    }
    rt_reply(ch->socket, m, true, SLICE_LIT("{}"));
    if (old && strcmp(old->fields, fields) == 0) {
        free(fields);
        return;
    }
    fresh = xcalloc(1, sizeof(*fresh));
    fresh->channel = ch;
    fresh->fields = fields;
    fresh->ref = ++ch->socket->rt->last_meta;
    TAILQ_INSERT_TAIL(&ch->topic->present, fresh, links);
    ch->topic->n_present_bytes += weight;
    send_diff(ch->topic, fresh, old ? old->ref : 0, old);
    if (old)
        meta_free(ch->topic, old);
}

static void take_track(struct rt_channel *ch, const struct rt_message *m)
{
    struct json_value payload = json_get(m->payload, "payload");
    bool is_map = json_type(payload) == JSON_OBJECT || json_is_absent(payload);
    char *fields = is_map ? fields_of(payload) : NULL;

    if (!is_map)
        rt_reply_error(ch->socket, m, "Presence track payload must be a map");
    else if (!fields)
        rt_reply_error(ch->socket, m, "Presence track payload must be at most %d bytes", LIMIT_PRESENCE_BYTES);
    else
        track(ch, m, fields);
}

/* Each call is told to every member: too many of them close the channel. */
static bool is_too_often(struct rt_channel *ch)
{
    int64_t now_ms = clock_mono_ms();

    if (now_ms - ch->presence_since_ms >= LIMIT_PRESENCE_WINDOW_S * MS_A_SECOND) {
        ch->presence_since_ms = now_ms;
        ch->n_presence_calls = 0;
    }
    return ++ch->n_presence_calls > LIMIT_PRESENCE_CALLS;
}

static bool is_event(struct slice event, const char *name)
{
    return event.n == strlen(name) && strncasecmp(event.p, name, event.n) == 0;
}

void rt_presence_message(struct rt_channel *ch, const struct rt_message *m)
{
    struct slice event = json_string(json_get(m->payload, "event"));

    if (is_too_often(ch)) {
        rt_channel_fail(ch, "Client presence rate limit exceeded");
        return;
    }
    if (is_event(event, "track")) {
        bool had_presence = ch->has_presence;

        ch->has_presence = true;
        if (!had_presence)
            rt_presence_state(ch);
        take_track(ch, m);
    } else if (is_event(event, "untrack")) {
        rt_reply(ch->socket, m, true, SLICE_LIT("{}"));
        rt_presence_gone(ch);
    } else {
        rt_reply_error(ch->socket, m, "Presence event must be track or untrack");
    }
}
