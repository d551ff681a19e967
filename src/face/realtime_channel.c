/* Channels: join, leave, tokens, and to whom a message goes. */
#include "face/realtime_private.h"

#include "base/clock.h"
#include "base/hash.h"
#include "base/uuid.h"

#include <stdlib.h>
#include <strings.h>

#define TOPIC_PREFIX "realtime:"

/* ---- topics ---- */

struct rt_topic *rt_topic_find(struct realtime *rt, struct slice name, bool is_private)
{
    struct rt_topic *t;

    LIST_FOREACH(t, &rt->topics[hash_fast(name) % RT_BUCKETS], links)
    if (t->is_private == is_private && slice_eq_str(name, t->name))
        return t;
    return NULL;
}

static struct rt_topic *topic_of(struct realtime *rt, struct slice name, bool is_private)
{
    struct rt_topic *t = rt_topic_find(rt, name, is_private);

    if (t)
        return t;
    t = xcalloc(1, sizeof(*t));
    t->name = xcalloc(1, name.n + 1);
    memcpy(t->name, name.p, name.n);
    t->is_private = is_private;
    TAILQ_INIT(&t->members);
    TAILQ_INIT(&t->present);
    LIST_INSERT_HEAD(&rt->topics[hash_fast(name) % RT_BUCKETS], t, links);
    rt_bridge_change(rt, t, true);
    if (rt_is_of_machines(rt, t))
        rt_machines_tick(rt, true);
    return t;
}

void rt_topic_release(struct realtime *rt, struct rt_topic *t)
{
    if (!TAILQ_EMPTY(&t->members))
        return;
    rt_bridge_change(rt, t, false);
    rt_presence_clear(t);
    LIST_REMOVE(t, links);
    free(t->name);
    free(t);
}

/* ---- what a channel is told ---- */

static struct rt_message to_channel(const struct rt_channel *ch, struct slice event)
{
    return (
        struct rt_message){ .join_ref = slice_of(ch->join_ref), .topic = slice_of(ch->topic->name), .event = event };
}

void rt_system(struct rt_channel *ch, const char *extension, bool is_ok, const char *text)
{
    struct rt_message m = to_channel(ch, SLICE_LIT("system"));
    struct json_writer w;
    struct buf payload;

    buf_init(&payload, KIB(16));
    json_write_init(&w, &payload);
    json_begin_object(&w);
    json_add_string(&w, "extension", extension);
    json_add_string(&w, "status", is_ok ? "ok" : "error");
    json_add_string(&w, "message", text);
    json_add_string(&w, "channel", ch->topic->name + strlen(TOPIC_PREFIX));
    json_end(&w);
    m.text = buf_slice(&payload);
    m.join_ref = (struct slice){ 0 };
    rt_send(ch->socket, &m);
    buf_clear(&payload);
}

static void say_closed(struct rt_channel *ch)
{
    struct rt_message m = to_channel(ch, SLICE_LIT("phx_close"));

    m.ref = m.join_ref;
    rt_send(ch->socket, &m);
}

/* ---- the end of a channel ---- */

void rt_channel_leave(struct rt_channel *ch)
{
    struct rt_socket *s = ch->socket;
    struct rt_topic *t = ch->topic;

    TAILQ_REMOVE(&s->channels, ch, of_socket);
    TAILQ_REMOVE(&t->members, ch, of_topic);
    s->n_channels--;
    rt_unwatch(ch);
    rt_presence_gone(ch);
    rt_topic_release(s->rt, t);
    budget_give(http_websocket_holder(s->ws), BUDGET_SUBSCRIPTIONS, ch->n_charged);
    arena_free(ch->arena);
}

void rt_channel_fail(struct rt_channel *ch, const char *text)
{
    rt_system(ch, "system", false, text);
    say_closed(ch);
    rt_channel_leave(ch);
}

static void check_expiry(struct rt_channel *ch, int64_t now_s)
{
    char text[80];

    if (ch->caller.expires_s == 0 || now_s <= ch->caller.expires_s + LIMIT_JWT_SKEW_S)
        return;
    snprintf(text, sizeof(text), "Token has expired %lld seconds ago", (long long)(now_s - ch->caller.expires_s));
    rt_channel_fail(ch, text);
}

void rt_expire(struct realtime *rt)
{
    int64_t now_s = rt_now_s();
    struct rt_socket *s;

    TAILQ_FOREACH(s, &rt->sockets, links)
    {
        struct rt_channel *ch, *next;

        for (ch = TAILQ_FIRST(&s->channels); ch; ch = next) {
            next = TAILQ_NEXT(ch, of_socket);
            check_expiry(ch, now_s);
        }
    }
}

/* ---- tokens ---- */

/* A key instead of a token says nothing about a user: the connection's caller counts. */
static bool is_token(struct slice text)
{
    return text.n > 0 && !(text.n >= 3 && memcmp(text.p, "sb_", 3) == 0);
}

static const char *code_of_token(const struct err *e)
{
    if (strcmp(e->code, "JWT_SIGNATURE") == 0)
        return "JwtSignatureError";
    return strcmp(e->code, "MALFORMED_JWT") == 0 ? "MalformedJWT" : "InvalidJWTToken";
}

static int caller_of(struct rt_socket *s, struct slice token, struct face_caller *ret, struct err *e)
{
    const struct face_keys *keys = NULL;
    int r;

    *ret = s->caller;
    if (!is_token(token))
        return 0;
    r = realtime_keys(s->rt, &keys, e);
    return r < 0 ? r : face_caller_of_token(keys, token, rt_now_s(), ret, e);
}

static struct slice name_of(struct slice topic)
{
    return (struct slice){ topic.p + strlen(TOPIC_PREFIX), topic.n - strlen(TOPIC_PREFIX) };
}

/* No answer when all is well. */
static void take_token(struct rt_channel *ch, const struct rt_message *m)
{
    struct slice token = json_string(json_get(m->payload, "access_token"));
    enum face_role before = ch->caller.role;
    struct face_caller caller;
    struct err e = { 0 };

    if (!is_token(token))
        return;
    if (caller_of(ch->socket, token, &caller, &e) < 0) {
        rt_channel_fail(ch, e.text);
        return;
    }
    ch->caller = caller;
    if (ch->topic->is_private && !face_may_join(&caller, name_of(slice_of(ch->topic->name))))
        rt_channel_fail(ch, "You do not have permissions to read from this Channel");
    else if (ch->n_bindings > 0 && (before == FACE_ANON) != (caller.role == FACE_ANON))
        rt_confirm(ch);
}

/* ---- join ---- */

/* The service takes "true" for true as well. */
static bool is_true(struct json_value v, bool otherwise)
{
    if (json_type(v) == JSON_STRING)
        return slice_eq_str(json_string(v), "true");
    return json_type(v) == JSON_BOOL ? json_bool(v) : otherwise;
}

static void read_config(struct rt_channel *ch, struct json_value config)
{
    struct json_value broadcast = json_get(config, "broadcast"), presence = json_get(config, "presence");
    struct slice key = json_string(json_get(presence, "key"));
    char uuid[UUID_SIZE];

    ch->gets_own = is_true(json_get(broadcast, "self"), false);
    ch->wants_ack = is_true(json_get(broadcast, "ack"), false);
    ch->has_presence = is_true(json_get(presence, "enabled"), true);
    if (key.n == 0) {
        uuid_v4(uuid);
        key = slice_of(uuid);
    }
    ch->presence_key = arena_slicedup(ch->arena, key);
}

static struct rt_channel *find_channel(struct rt_socket *s, struct slice topic)
{
    struct rt_channel *ch;

    TAILQ_FOREACH(ch, &s->channels, of_socket)
    if (slice_eq_str(topic, ch->topic->name))
        return ch;
    return NULL;
}

/* Refuses with the codes of the service. True: the join may go on. */
static bool check_join(struct rt_socket *s, const struct rt_message *m, bool is_private, struct face_caller *ret_caller)
{
    struct err e = { 0 };

    if (m->topic.n <= strlen(TOPIC_PREFIX) || memcmp(m->topic.p, TOPIC_PREFIX, strlen(TOPIC_PREFIX)) != 0)
        rt_reply_error(s, m, "TopicNameRequired: You must provide a topic name");
    else if (s->n_channels >= LIMIT_SOCKET_CHANNELS)
        rt_reply_error(s, m, "ChannelRateLimitReached: Too many channels: at most %d over one connection",
                       LIMIT_SOCKET_CHANNELS);
    else if (caller_of(s, json_string(json_get(m->payload, "access_token")), ret_caller, &e) < 0)
        rt_reply_error(s, m, "%s: %s", code_of_token(&e), e.text);
    else if (is_private && !face_may_join(ret_caller, name_of(m->topic)))
        rt_reply_error(s, m, "Unauthorized: You do not have permissions to read from this Channel topic: %.*s",
                       (int)name_of(m->topic).n, name_of(m->topic).p);
    else
        return true;
    return false;
}

static void answer_join(struct rt_channel *ch, const struct rt_message *m, struct json_value config)
{
    struct buf response;

    buf_init(&response, LIMIT_SOCKET_WAITING);
    rt_bindings_print(&response, ch, config);
    rt_reply(ch->socket, m, true, buf_slice(&response));
    buf_clear(&response);
    if (ch->has_presence)
        rt_presence_state(ch);
}

static struct rt_channel *make_channel(struct rt_socket *s, const struct rt_message *m,
                                       const struct face_caller *caller, struct json_value config)
{
    struct arena *a = arena_new_sized(KIB(1));
    struct rt_channel *ch = ARENA_NEW(a, struct rt_channel);

    ch->arena = a;
    ch->socket = s;
    ch->serial = ++s->rt->last_serial;
    ch->join_ref = arena_slicedup(a, m->join_ref.p ? m->join_ref : m->ref);
    ch->caller = *caller;
    read_config(ch, config);
    return ch;
}

static void enter(struct rt_channel *ch, const struct rt_message *m, bool is_private)
{
    struct rt_socket *s = ch->socket;

    ch->topic = topic_of(s->rt, m->topic, is_private);
    TAILQ_INSERT_TAIL(&s->channels, ch, of_socket);
    TAILQ_INSERT_TAIL(&ch->topic->members, ch, of_topic);
    s->n_channels++;
}

static int take_places(struct rt_channel *ch, struct err *e)
{
    int64_t n = 1 + (int64_t)ch->n_bindings;
    int r = budget_take(http_websocket_holder(ch->socket->ws), BUDGET_SUBSCRIPTIONS, n, e);

    ch->n_charged = r < 0 ? 0 : n;
    return r;
}

/* The channel receives before its reply is sent: a client that reads rows after the reply misses none. */
static void join(struct rt_socket *s, const struct rt_message *m)
{
    struct json_value config = json_get(m->payload, "config");
    bool is_private = is_true(json_get(config, "private"), false);
    struct rt_channel *ch = find_channel(s, m->topic);
    struct face_caller caller;
    struct err e = { 0 };
    int r;

    if (ch) { /* a client that joins again has given up the channel it had */
        say_closed(ch);
        rt_channel_leave(ch);
    }
    if (!check_join(s, m, is_private, &caller))
        return;
    ch = make_channel(s, m, &caller, config);
    r = rt_bindings_read(ch, json_get(config, "postgres_changes"), &e);
    if (r == 0)
        r = take_places(ch, &e);
    if (r < 0) {
        rt_reply_error(s, m, "ChannelRateLimitReached: %s", e.text);
        arena_free(ch->arena);
        return;
    }
    enter(ch, m, is_private);
    if (ch->n_bindings > 0)
        rt_watch(ch);
    answer_join(ch, m, json_get(config, "postgres_changes"));
    if (ch->n_bindings > 0)
        rt_confirm(ch);
}

static void leave(struct rt_channel *ch, const struct rt_message *m)
{
    rt_reply(ch->socket, m, true, SLICE_LIT("{}"));
    say_closed(ch);
    rt_channel_leave(ch);
}

/* ---- dispatch ---- */

static void handle_in_channel(struct rt_channel *ch, struct arena *a, const struct rt_message *m)
{
    if (m->is_broadcast || slice_eq_str(m->event, "broadcast"))
        rt_take_broadcast(ch, a, m);
    else if (slice_eq_str(m->event, "phx_leave"))
        leave(ch, m);
    else if (slice_eq_str(m->event, "access_token"))
        take_token(ch, m);
    else if (slice_eq_str(m->event, "presence"))
        rt_presence_message(ch, m);
    /* the service ignores every other event */
}

void rt_handle(struct rt_socket *s, struct arena *a, const struct rt_message *m)
{
    struct rt_channel *ch;

    if (slice_eq_str(m->topic, "phoenix")) {
        if (slice_eq_str(m->event, "heartbeat"))
            rt_reply(s, m, true, SLICE_LIT("{}"));
        return;
    }
    if (slice_eq_str(m->event, "phx_join")) {
        join(s, m);
        return;
    }
    ch = find_channel(s, m->topic);
    if (ch)
        handle_in_channel(ch, a, m);
    else
        rt_reply_error(s, m, "unmatched topic");
}
