/* The thread of the realtime client: one connection after the other, for one session (hosted_session.h). */
#include "backend/hosted/hosted_realtime.h"
#include "backend/hosted/hosted_session.h"
#include "backend/hosted/hosted_token.h"

#include "base/clock.h"
#include "base/cond.h"
#include "base/json_write.h"
#include "base/limits.h"
#include "base/percent.h"
#include "base/secret.h"
#include "base/thread.h"
#include "net/url.h"
#include "net/websocket.h"

#include <stdlib.h>
#include <string.h>

enum {
    OPEN_MS = 10000,  /* of a connection: until the upgrade */
    TOKEN_MS = 10000, /* of the token callback */
    TOKEN_EARLY_MS = 60000,
    TOKEN_AGAIN_MS = 10000, /* after a failure, and between two early renewals */
    SHUT_MS = 500,
    REQUEST_MS = 10000,
    LOOK_MS = 50, /* interval at which a settling caller checks its flags */
    ACCEPTED = 202
};

struct hosted_realtime {
    struct hosted_realtime_config config;
    char *url, *key, *abbr; /* owned */
    pthread_t thread;
    atomic_bool is_stopping;

    pthread_mutex_t lock; /* guards this paragraph; held during no callback and no I/O */
    pthread_cond_t changed;
    struct hosted_session *session;
    char *token;                    /* owned; NULL: none */
    bool must_renew, is_delivering; /* a message has changed the session, and the callbacks have not returned yet */
    int64_t pause_until_ms;

    struct net_websocket *ws; /* the thread's own, but for the wake */
    int64_t token_due_ms;     /* 0: never */
    uint64_t n_states;        /* reported */
};

/* ---- threads ---- */

static void wake_locked(struct hosted_realtime *rt)
{
    pthread_cond_broadcast(&rt->changed);
    net_websocket_wake(rt->ws);
}

static void unlock_and_wake(struct hosted_realtime *rt)
{
    wake_locked(rt);
    pthread_mutex_unlock(&rt->lock);
}

static void report_states(struct hosted_realtime *rt)
{
    uint64_t n;

    pthread_mutex_lock(&rt->lock);
    n = hosted_session_n_states(rt->session);
    if (n != rt->n_states)
        pthread_cond_broadcast(&rt->changed);
    pthread_mutex_unlock(&rt->lock);
    if (n != rt->n_states && rt->config.on_state)
        rt->config.on_state(rt->config.arg);
    rt->n_states = n;
}

/* ---- messages ---- */

static int queue_message(void *arg, bool is_binary, struct slice message, struct err *e)
{
    struct hosted_realtime *rt = arg;

    return net_websocket_send(rt->ws, is_binary, message, e);
}

static void deliver(struct hosted_realtime *rt, const struct hosted_news *news)
{
    const struct hosted_realtime_config *c = &rt->config;

    if (news->gap_table && c->on_gap)
        c->on_gap(c->arg, news->gap_table);
    if (news->has_change && c->on_change)
        c->on_change(c->arg, &news->change);
    if (news->topic && c->on_broadcast)
        c->on_broadcast(c->arg, news->topic, news->event, news->payload_json);
    if (news->has_presence && c->on_presence)
        c->on_presence(c->arg);
}

static void take_message(void *arg, bool is_binary, struct slice message)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct hosted_realtime *rt = arg;
    struct hosted_news news;

    if (atomic_load(&rt->is_stopping))
        return;
    pthread_mutex_lock(&rt->lock);
    hosted_session_take(rt->session, a, is_binary, message, clock_mono_ms(), &news);
    rt->is_delivering = true;
    pthread_mutex_unlock(&rt->lock);
    deliver(rt, &news);
    pthread_mutex_lock(&rt->lock);
    rt->is_delivering = false;
    pthread_mutex_unlock(&rt->lock);
}

/* ---- the user's token ---- */

static bool is_same(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) == 0 : a == b;
}

static void forget_token(struct hosted_realtime *rt)
{
    if (rt->token)
        secret_wipe(rt->token, strlen(rt->token));
    free(rt->token);
    rt->token = NULL;
}

/* *ret_has_left: a user was signed in, and nobody is now. */
static void keep_token(struct hosted_realtime *rt, const char *text, bool *ret_has_left)
{
    pthread_mutex_lock(&rt->lock);
    *ret_has_left = rt->token && !text;
    if (!is_same(rt->token, text)) {
        forget_token(rt);
        rt->token = text ? xstrdup(text) : NULL;
    }
    hosted_session_use_token(rt->session, text);
    pthread_mutex_unlock(&rt->lock);
}

/* A token is renewed a minute before it expires; a short one in the middle of its life. */
static int64_t renewal_due_ms(int64_t expires_wall_ms)
{
    int64_t left_ms = expires_wall_ms - clock_wall_ms();

    if (expires_wall_ms == 0)
        return 0;
    return clock_mono_ms() +
           MAX(left_ms > 2 * TOKEN_EARLY_MS ? left_ms - TOKEN_EARLY_MS : left_ms / 2, (int64_t)TOKEN_AGAIN_MS);
}

static int fetch_token(struct hosted_realtime *rt, bool *ret_has_left, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    const struct net_wait wait = net_wait_of(TOKEN_MS, NULL, &rt->is_stopping);
    struct hosted_token token = { 0 };
    int r = rt->config.token ? rt->config.token(rt->config.arg, &wait, a, &token, e) : 0;

    rt->token_due_ms = clock_mono_ms() + TOKEN_AGAIN_MS;
    if (r < 0)
        return r;
    if (token.text && token.expires_ms == 0)
        token.expires_ms = hosted_token_expiry(a, token.text);
    rt->token_due_ms = token.text ? renewal_due_ms(token.expires_ms) : 0;
    keep_token(rt, token.text, ret_has_left);
    return 0;
}

static bool takes_renewal(struct hosted_realtime *rt)
{
    bool must;

    pthread_mutex_lock(&rt->lock);
    must = hosted_session_needs_token(rt->session) || rt->must_renew;
    rt->must_renew = false;
    pthread_mutex_unlock(&rt->lock);
    return must || (rt->token_due_ms && clock_mono_ms() >= rt->token_due_ms);
}

/* A failure is of no consequence until the old token ends. */
static int renew_token(struct hosted_realtime *rt, struct err *e)
{
    struct err ignored;
    bool has_left = false;

    err_init(&ignored);
    if (!takes_renewal(rt) || fetch_token(rt, &has_left, &ignored) < 0 || !has_left)
        return 0;
    return err_set(e, -ECONNRESET, "UPSTREAM_CLOSED", "The user has signed out; the connection begins anew.");
}

/* ---- one connection ---- */

static int open_socket(struct hosted_realtime *rt, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    const struct net_wait wait = net_wait_of(OPEN_MS, NULL, &rt->is_stopping);
    struct http_call_request request = { .connect_ms = OPEN_MS, .guard = rt->config.guard };
    struct buf path;
    char *url = NULL;
    int r;

    buf_init(&path, LIMIT_JWT_BYTES * 4);
    buf_add_str(&path, "realtime/v1/websocket?apikey=");
    percent_encode(&path, slice_of(rt->key));
    buf_printf(&path, "&vsn=%s", rt->config.is_v1 ? "1.0.0" : "2.0.0");
    r = buf_check(&path, e);
    if (r == 0)
        r = url_join(a, rt->url, buf_str(&path), &url, e);
    request.url = url;
    if (r == 0)
        r = net_websocket_open(rt->ws, &request, &wait, e);
    buf_clear(&path);
    return r;
}

/* *ret_due_ms: when the next tick is due; false: nothing is wanted any more. */
static int tick(struct hosted_realtime *rt, int64_t *ret_due_ms, bool *ret_is_wanted, struct err *e)
{
    int64_t now_ms = clock_mono_ms();
    int r;

    pthread_mutex_lock(&rt->lock);
    *ret_is_wanted = hosted_session_is_wanted(rt->session);
    r = hosted_session_tick(rt->session, now_ms, e);
    *ret_due_ms = hosted_session_due_ms(rt->session, now_ms);
    pthread_mutex_unlock(&rt->lock);
    return r;
}

/* Until the connection is lost, or not wanted any more: 0. */
static int serve(struct hosted_realtime *rt, struct err *e)
{
    bool is_wanted = true;
    int64_t due_ms = 0;
    int r = 0;

    while (r == 0 && is_wanted && !atomic_load(&rt->is_stopping)) {
        r = renew_token(rt, e);
        if (r == 0)
            r = tick(rt, &due_ms, &is_wanted, e);
        report_states(rt);
        if (rt->token_due_ms)
            due_ms = MIN(due_ms, rt->token_due_ms);
        if (r == 0 && is_wanted)
            r = net_websocket_step(rt->ws, MAX(due_ms - clock_mono_ms(), (int64_t)0), e);
    }
    return r;
}

static void note_lost(struct hosted_realtime *rt, const char *why)
{
    pthread_mutex_lock(&rt->lock);
    hosted_session_end(rt->session, clock_mono_ms(), why);
    rt->pause_until_ms = clock_mono_ms() + hosted_session_pause_ms(rt->session);
    pthread_mutex_unlock(&rt->lock);
    report_states(rt);
}

static void connect_once(struct hosted_realtime *rt)
{
    bool has_left = false;
    struct err e;
    int r;

    err_init(&e);
    r = fetch_token(rt, &has_left, &e);
    if (r == 0)
        r = open_socket(rt, &e);
    if (r == 0) {
        pthread_mutex_lock(&rt->lock);
        hosted_session_begin(rt->session, clock_mono_ms());
        pthread_mutex_unlock(&rt->lock);
        r = serve(rt, &e);
    }
    if (r == 0)
        net_websocket_shut(rt->ws, SHUT_MS);
    else
        net_websocket_drop(rt->ws);
    note_lost(rt, r < 0 ? e.text : "The connection was closed because nothing needs it.");
}

/* False: the client is closed. */
static bool wait_for_work(struct hosted_realtime *rt)
{
    bool is_due = false;

    pthread_mutex_lock(&rt->lock);
    while (!is_due && !atomic_load(&rt->is_stopping)) {
        bool is_wanted = hosted_session_is_wanted(rt->session);
        int64_t until_ms = is_wanted && !rt->must_renew ? rt->pause_until_ms : clock_mono_ms() + OPEN_MS;

        is_due = is_wanted && (rt->must_renew || clock_mono_ms() >= rt->pause_until_ms);
        if (!is_due)
            (void)!cond_wait_until(&rt->changed, &rt->lock, until_ms * 1000);
    }
    rt->must_renew = false; /* the token is asked for with each connection */
    pthread_mutex_unlock(&rt->lock);
    return !atomic_load(&rt->is_stopping);
}

static void *run(void *arg)
{
    struct hosted_realtime *rt = arg;

    while (wait_for_work(rt))
        connect_once(rt);
    return NULL;
}

/* ---- open and close ---- */

static struct hosted_realtime *clear(struct hosted_realtime *rt)
{
    hosted_session_free(rt->session);
    net_websocket_free(rt->ws);
    forget_token(rt);
    secret_wipe(rt->key, strlen(rt->key));
    free(rt->key);
    free(rt->url);
    free(rt->abbr);
    pthread_cond_destroy(&rt->changed);
    pthread_mutex_destroy(&rt->lock);
    free(rt);
    return NULL;
}

static struct hosted_realtime *make(const struct hosted_realtime_config *c)
{
    struct hosted_realtime *rt = xcalloc(1, sizeof(*rt));
    const struct hosted_session_config of_session = {
        .abbr = c->abbr, .times = c->times, .is_v1 = c->is_v1, .send = queue_message, .arg = rt
    };

    rt->config = *c;
    rt->url = xstrdup(c->url);
    rt->key = xstrdup(c->key);
    rt->abbr = xstrdup(c->abbr);
    rt->session = hosted_session_new(&of_session);
    rt->ws = net_websocket_new(take_message, rt);
    pthread_mutex_init(&rt->lock, NULL);
    cond_init(&rt->changed);
    return rt;
}

int hosted_realtime_open(const struct hosted_realtime_config *c, struct hosted_realtime **ret, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct hosted_realtime *rt;
    struct url to;
    int r = url_parse(a, c->url, &to, e);

    if (r < 0)
        return r;
    rt = make(c);
    r = thread_start(&rt->thread, "hosted-realtime", run, rt);
    if (r < 0) {
        clear(rt);
        return err_errno(e, -r, "cannot start the thread of the hosted backend's events");
    }
    *ret = rt;
    return 0;
}

struct hosted_realtime *hosted_realtime_close(struct hosted_realtime *rt)
{
    if (!rt)
        return NULL;
    pthread_mutex_lock(&rt->lock);
    atomic_store(&rt->is_stopping, true);
    unlock_and_wake(rt);
    pthread_join(rt->thread, NULL);
    return clear(rt);
}

/* ---- what is wanted ---- */

int hosted_realtime_watch(struct hosted_realtime *rt, const char *table, const char *filter, struct err *e)
{
    int r;

    pthread_mutex_lock(&rt->lock);
    r = hosted_session_watch(rt->session, table, filter, e);
    unlock_and_wake(rt);
    return r;
}

void hosted_realtime_unwatch(struct hosted_realtime *rt, const char *table, const char *filter)
{
    pthread_mutex_lock(&rt->lock);
    hosted_session_unwatch(rt->session, table, filter);
    unlock_and_wake(rt);
}

int hosted_realtime_listen(struct hosted_realtime *rt, const char *topic, bool is_private, struct err *e)
{
    int r;

    pthread_mutex_lock(&rt->lock);
    r = hosted_session_listen(rt->session, topic, is_private, e);
    unlock_and_wake(rt);
    return r;
}

void hosted_realtime_unlisten(struct hosted_realtime *rt, const char *topic)
{
    pthread_mutex_lock(&rt->lock);
    hosted_session_unlisten(rt->session, topic);
    unlock_and_wake(rt);
}

int hosted_realtime_track(struct hosted_realtime *rt, const struct backend_presence *p, struct err *e)
{
    int r;

    pthread_mutex_lock(&rt->lock);
    r = hosted_session_track(rt->session, p, e);
    unlock_and_wake(rt);
    return r;
}

void hosted_realtime_untrack(struct hosted_realtime *rt)
{
    pthread_mutex_lock(&rt->lock);
    hosted_session_untrack(rt->session);
    unlock_and_wake(rt);
}

void hosted_realtime_renew(struct hosted_realtime *rt)
{
    pthread_mutex_lock(&rt->lock);
    rt->must_renew = true;
    unlock_and_wake(rt);
}

/* ---- what is there ---- */

int hosted_realtime_presences(struct hosted_realtime *rt, struct arena *a, struct backend_presences *ret, struct err *e)
{
    int r;

    pthread_mutex_lock(&rt->lock);
    r = hosted_session_presences(rt->session, a, ret, e);
    pthread_mutex_unlock(&rt->lock);
    return r;
}

void hosted_realtime_monitor(struct hosted_realtime *rt, struct arena *a, struct backend_monitor *ret)
{
    pthread_mutex_lock(&rt->lock);
    hosted_session_monitor(rt->session, a, ret);
    pthread_mutex_unlock(&rt->lock);
}

int hosted_realtime_settle(struct hosted_realtime *rt, const struct net_wait *wait, struct err *e)
{
    int r = 0;

    pthread_mutex_lock(&rt->lock);
    while (r == 0 && (rt->is_delivering || !hosted_session_is_settled(rt->session))) {
        int64_t left_ms = net_wait_left(wait, e);

        if (left_ms < 0)
            r = (int)left_ms;
        else
            (void)!cond_wait_until(&rt->changed, &rt->lock, (clock_mono_ms() + MIN(left_ms, (int64_t)LOOK_MS)) * 1000);
    }
    pthread_mutex_unlock(&rt->lock);
    return r;
}

/* ---- broadcasts without a joined channel ---- */

static char *request_body(struct arena *a, const struct hosted_broadcast *b)
{
    struct json_writer w;
    struct buf out;

    buf_init(&out, LIMIT_SOCKET_MESSAGE);
    json_write_init(&w, &out);
    json_begin_object(&w);
    json_begin_array_as(&w, "messages");
    json_begin_object(&w);
    json_add_string(&w, "topic", b->topic);
    json_add_string(&w, "event", b->event);
    json_add_raw(&w, "payload", b->payload_json);
    json_add_bool(&w, "private", b->is_private);
    json_end(&w);
    json_end(&w);
    json_end(&w);
    return buf_to_arena(&out, a);
}

/* "Bearer ", and the user's token or the key. */
static const char *authorization(struct hosted_realtime *rt, struct arena *a)
{
    const char *text;

    pthread_mutex_lock(&rt->lock);
    text = arena_printf(a, "Bearer %s", rt->token ? rt->token : rt->key);
    pthread_mutex_unlock(&rt->lock);
    return text;
}

static int broadcast_by_request(struct hosted_realtime *rt, const struct hosted_broadcast *b, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    const struct http_call_header headers[] = { { "apikey", rt->key },
                                                { "Authorization", authorization(rt, a) },
                                                { "Content-Type", "application/json" } };
    struct http_call_request request = { .method = "POST",
                                         .headers = headers,
                                         .n_headers = ARRAY_SIZE(headers),
                                         .body = slice_of(request_body(a, b)),
                                         .total_ms = REQUEST_MS,
                                         .max_reply = KIB(64),
                                         .guard = rt->config.guard };
    struct http_answer answer = { 0 };
    char *url = NULL;
    int r = url_join(a, rt->url, "realtime/v1/api/broadcast", &url, e);

    request.url = url;
    if (r == 0)
        r = http_call(&request, a, &rt->is_stopping, &answer, e);
    if (r < 0 || answer.status == ACCEPTED)
        return r;
    return err_set(e, -EBADMSG, "UPSTREAM_INVALID", "The hosted backend refused a broadcast with the status %d.",
                   answer.status);
}

int hosted_realtime_broadcast(struct hosted_realtime *rt, const struct hosted_broadcast *b, struct err *e)
{
    int r;

    pthread_mutex_lock(&rt->lock);
    r = hosted_session_broadcast(rt->session, b, e);
    unlock_and_wake(rt);
    return r == -ENOTCONN ? broadcast_by_request(rt, b, e) : r;
}
