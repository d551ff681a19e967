/* What the server says (facts A3 to A8). Everything here is foreign: what has no meaning is counted and left out. */
#include "backend/hosted/hosted_session_private.h"

#include "base/clock.h"
#include "base/hash.h"
#include "base/limits.h"

#include <strings.h>
#include <string.h>

#define PREFIX "realtime:"

static bool is_text(struct json_value v, const char *wanted)
{
    return json_type(v) == JSON_STRING && slice_eq_str(json_string(v), wanted);
}

static void fail_with(struct hosted_session *s, struct hosted_channel *ch, int64_t now_ms, const char *what,
                      struct slice said)
{
    char why[HOSTED_WHY];

    hosted_words(s, what, said, why);
    hosted_channel_fail(s, ch, now_ms, why);
}

/* ---- replies ---- */

/* The same text, or both none. */
static bool is_member(struct json_value binding, const char *name, struct slice wanted)
{
    struct json_value v = json_get(binding, name);

    return wanted.p ? json_type(v) == JSON_STRING && slice_eq(json_string(v), wanted) : json_is_absent(v);
}

/* The server repeats what it was asked for, with an id; the official client checks the same. */
static bool read_binding(struct hosted_channel *ch, struct json_value response)
{
    struct json_value list = json_get(response, "postgres_changes"), binding = { 0 }, id;
    AUTO(arena_freep) struct arena *a = arena_new_sized(512);
    const struct table_parts parts = backend_table_parts(a, ch->table);
    struct json_iter it = json_iter(list);
    struct slice none;

    if (json_type(list) != JSON_ARRAY || json_length(list) != 1 || !json_next(&it, &none, &binding))
        return false;
    id = json_get(binding, "id");
    ch->binding = json_int(id);
    return json_type(id) == JSON_INT && is_text(json_get(binding, "event"), "*") &&
           is_member(binding, "schema", slice_of(parts.schema)) && is_member(binding, "table", slice_of(parts.table)) &&
           is_member(binding, "filter", slice_of(ch->filter));
}

static void take_join_reply(struct hosted_session *s, struct hosted_channel *ch, struct json_value payload,
                            int64_t now_ms)
{
    struct json_value response = json_get(payload, "response");

    if (!is_text(json_get(payload, "status"), "ok")) {
        ch->is_at_server = false;
        fail_with(s, ch, now_ms, "The server refused the subscription", json_string(json_get(response, "reason")));
        return;
    }
    s->n_lost = 0; /* the next loss is the first of a row */
    if (ch->kind != HOSTED_TABLE) {
        hosted_channel_live(s, ch);
        return;
    }
    if (!read_binding(ch, response)) {
        hosted_channel_fail(s, ch, now_ms,
                            "The server's reply does not match the subscription: it has other ids or parameters.");
        return;
    }
    ch->step = HOSTED_CONFIRMING;
    ch->due_ms = now_ms + s->config.times->confirm_ms;
}

static void take_track_reply(struct hosted_session *s, struct hosted_channel *ch, struct json_value payload,
                             int64_t now_ms)
{
    s->track_ref[0] = '\0';
    s->is_tracked = is_text(json_get(payload, "status"), "ok") && s->is_track_sent;
    if (s->is_tracked || !s->is_track_sent) {
        hosted_session_changed(s);
        return;
    }
    s->is_track_sent = false;
    fail_with(s, ch, now_ms, "The server refused the presence record",
              json_string(json_get(json_get(payload, "response"), "reason")));
}

static void take_reply(struct hosted_session *s, struct hosted_channel *ch, const struct rt_message *m, int64_t now_ms)
{
    if (ch->step == HOSTED_JOINING && slice_eq_str(m->ref, ch->join_ref))
        take_join_reply(s, ch, m->payload, now_ms);
    else if (ch->kind == HOSTED_PRESENCE && s->track_ref[0] && slice_eq_str(m->ref, s->track_ref))
        take_track_reply(s, ch, m->payload, now_ms);
    /* others are of a join that was given up, or of a message without interest */
}

/* ---- system, close, error ---- */

/* Each confirmation begins a time whose past is not known: of the join, and of another token. */
static void confirm(struct hosted_session *s, struct hosted_channel *ch, struct hosted_news *ret)
{
    hosted_channel_live(s, ch);
    ch->n_gaps++;
    ret->gap_table = ch->table;
}

static void take_system(struct hosted_session *s, struct hosted_channel *ch, struct json_value payload, int64_t now_ms,
                        struct hosted_news *ret)
{
    bool is_of_changes = is_text(json_get(payload, "extension"), "postgres_changes");
    struct slice said = json_string(json_get(payload, "message"));
    char why[HOSTED_WHY];

    if (is_text(json_get(payload, "status"), "ok")) {
        if (is_of_changes && ch->kind == HOSTED_TABLE && ch->is_at_server && ch->step != HOSTED_JOINING)
            confirm(s, ch, ret);
        return;
    }
    if (is_of_changes) {
        fail_with(s, ch, now_ms, "The server delivers no changes of the table", said);
        return;
    }
    hosted_words(s, "The server says", said, why); /* phx_close follows */
    hosted_fault_set(&ch->fault, "%s", why);
    hosted_session_changed(s);
}

static bool is_of_this_join(const struct hosted_channel *ch, const struct rt_message *m)
{
    struct slice ref = m->join_ref.p ? m->join_ref : m->ref;

    return !ref.p || slice_eq_str(ref, ch->join_ref);
}

static void take_end(struct hosted_session *s, struct hosted_channel *ch, const struct rt_message *m, int64_t now_ms)
{
    char why[HOSTED_WHY];

    if (!is_of_this_join(ch, m) || !ch->is_at_server)
        return;
    ch->is_at_server = false;
    snprintf(why, sizeof(why), "%.300s",
             ch->fault.text[0] && ch->step == HOSTED_JOINED &&
                     clock_wall_ms() - ch->fault.wall_ms < s->config.times->reply_ms
                 ? ch->fault.text
             : slice_eq_str(m->event, "phx_error") ? "The channel broke at the server."
                                                   : "The server closed the channel.");
    if (ch->kind == HOSTED_PRESENCE)
        s->is_presence_known = s->is_tracked = s->is_track_sent = false;
    hosted_channel_fail(s, ch, now_ms, why);
}

/* ---- changes ---- */

/* The server may deliver an event twice. */
static bool is_repeated(struct hosted_channel *ch, struct slice bytes)
{
    uint64_t hash = hash_fast(bytes);

    for (size_t i = 0; i < MIN(ch->n_seen, (size_t)HOSTED_SEEN); i++)
        if (ch->seen[i] == hash)
            return true;
    ch->seen[ch->n_seen++ % HOSTED_SEEN] = hash;
    return false;
}

static bool has_binding(const struct hosted_channel *ch, struct json_value ids)
{
    struct json_value id;
    struct slice none;
    size_t n = 0;

    if (json_type(ids) != JSON_ARRAY)
        return false;
    for (struct json_iter it = json_iter(ids); n < LIMIT_CHANNEL_CHANGES && json_next(&it, &none, &id); n++)
        if (json_type(id) == JSON_INT && json_int(id) == ch->binding)
            return true;
    return false;
}

static enum backend_op op_of(struct json_value type)
{
    static const enum backend_op ops[] = { BACKEND_INSERT, BACKEND_UPDATE, BACKEND_DELETE };

    for (size_t i = 0; i < ARRAY_SIZE(ops); i++)
        if (is_text(type, backend_op_name(ops[i])))
            return ops[i];
    return 0;
}

static struct json_value object_of(struct json_value data, const char *name)
{
    struct json_value v = json_get(data, name);

    return json_type(v) == JSON_OBJECT ? v : (struct json_value){ 0 };
}

/* False: no change of a row. */
static bool read_change(struct hosted_channel *ch, struct json_value data, struct hosted_change *ret)
{
    struct json_value at = json_get(data, "commit_timestamp");

    *ret = (struct hosted_change){ .op = op_of(json_get(data, "type")),
                                   .table = ch->table,
                                   .commit_at = json_cstr(at) ? json_cstr(at) : "",
                                   .is_cut = json_length(json_get(data, "errors")) > 0 };
    if (ret->op != BACKEND_DELETE)
        ret->record = object_of(data, "record");
    if (ret->op != BACKEND_INSERT)
        ret->old_record = object_of(data, "old_record");
    if (clock_parse(slice_of(ret->commit_at), &ret->commit_ms) < 0)
        ret->commit_ms = 0;
    return ret->op != 0;
}

static void count_change(struct hosted_channel *ch, const struct hosted_change *c)
{
    ch->event_wall_ms = clock_wall_ms();
    ch->n_events++;
    ch->lag_ms = c->commit_ms > 0 ? MAX(ch->event_wall_ms - c->commit_ms, (int64_t)0) : -1;
}

static void take_change(struct hosted_session *s, struct hosted_channel *ch, struct slice bytes,
                        struct json_value payload, struct hosted_news *ret)
{
    struct json_value data = json_get(payload, "data");
    bool has_row;

    if (ch->kind != HOSTED_TABLE || ch->step < HOSTED_CONFIRMING || !has_binding(ch, json_get(payload, "ids")) ||
        !read_change(ch, data, &ret->change)) {
        s->n_ignored++;
        return;
    }
    if (is_repeated(ch, bytes)) {
        s->n_ignored++;
        return;
    }
    count_change(ch, &ret->change);
    has_row = json_length(ret->change.record) > 0 || json_length(ret->change.old_record) > 0;
    ret->has_change = has_row;
    if (!has_row) { /* something has changed, and the server does not say what */
        ch->n_gaps++;
        ret->gap_table = ch->table;
    }
}

/* ---- broadcasts and presence ---- */

static void take_broadcast(struct hosted_session *s, struct hosted_channel *ch, struct arena *a,
                           const struct rt_message *m, struct hosted_news *ret)
{
    struct slice event = m->is_broadcast ? m->user_event : json_string(json_get(m->payload, "event"));
    struct json_value body = json_get(m->payload, "payload");

    if (ch->kind != HOSTED_TOPIC || event.n == 0 || memchr(event.p, '\0', event.n)) {
        s->n_ignored++;
        return;
    }
    ret->event = arena_slicedup(a, event);
    if (!m->is_broadcast)
        ret->payload_json = json_to_str(a, body);
    else
        ret->payload_json = m->is_json ? arena_slicedup(a, m->body) : "null";
    ret->topic = ch->topic + strlen(PREFIX);
}

static void take_presence(struct hosted_session *s, struct hosted_channel *ch, const struct rt_message *m,
                          struct hosted_news *ret)
{
    bool is_state = slice_eq_str(m->event, "presence_state");

    if (ch->kind != HOSTED_PRESENCE)
        return;
    if (is_state) {
        ret->has_presence = hosted_presence_state(s->presence, m->payload);
        s->is_presence_known = s->is_presence_known || ret->has_presence;
        hosted_session_changed(s);
    } else if (s->is_presence_known) {
        ret->has_presence = hosted_presence_diff(s->presence, m->payload);
    }
}

/* ---- one message ---- */

static struct hosted_channel *channel_of(struct hosted_session *s, struct slice topic)
{
    struct hosted_channel *ch;

    TAILQ_FOREACH(ch, &s->channels, links)
    if (ch->is_wanted && slice_eq_str(topic, ch->topic))
        return ch;
    return NULL;
}

static void take_heartbeat(struct hosted_session *s, const struct rt_message *m, int64_t now_ms)
{
    if (!s->beat_ref[0] || !slice_eq_str(m->ref, s->beat_ref))
        return;
    s->beat_ref[0] = '\0';
    s->beat_ms = now_ms + s->config.times->heartbeat_ms;
}

static void take_message(struct hosted_session *s, struct hosted_channel *ch, struct arena *a, struct slice bytes,
                         const struct rt_message *m, int64_t now_ms, struct hosted_news *ret)
{
    if (m->is_broadcast || slice_eq_str(m->event, "broadcast"))
        take_broadcast(s, ch, a, m, ret);
    else if (slice_eq_str(m->event, "postgres_changes"))
        take_change(s, ch, bytes, m->payload, ret);
    else if (slice_eq_str(m->event, "phx_reply"))
        take_reply(s, ch, m, now_ms);
    else if (slice_eq_str(m->event, "system"))
        take_system(s, ch, m->payload, now_ms, ret);
    else if (slice_eq_str(m->event, "phx_close") || slice_eq_str(m->event, "phx_error"))
        take_end(s, ch, m, now_ms);
    else if (slice_eq_str(m->event, "presence_state") || slice_eq_str(m->event, "presence_diff"))
        take_presence(s, ch, m, ret);
    else
        s->n_ignored++;
}

void hosted_session_take(struct hosted_session *s, struct arena *a, bool is_binary, struct slice bytes, int64_t now_ms,
                         struct hosted_news *ret)
{
    struct hosted_channel *ch;
    struct rt_message m;
    struct err e;

    err_init(&e);
    *ret = (struct hosted_news){ 0 };
    if (rt_wire_read_of_server(a, !s->config.is_v1, is_binary, bytes, &m, &e) < 0) {
        s->n_ignored++;
        return;
    }
    if (slice_eq_str(m.topic, "phoenix")) {
        take_heartbeat(s, &m, now_ms);
        return;
    }
    ch = channel_of(s, m.topic);
    if (ch)
        take_message(s, ch, a, bytes, &m, now_ms, ret);
    else
        s->n_ignored++;
}
