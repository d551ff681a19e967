#include "face/realtime_private.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/secret.h"
#include "base/thread.h"

#include <assert.h>
#include <stdarg.h>
#include <stdlib.h>

enum { TICK_MS = 1000, MS_A_SECOND = 1000 };

int64_t rt_now_s(void)
{
    return clock_wall_ms() / MS_A_SECOND;
}

/* ---- keys ---- */

int realtime_keys(struct realtime *rt, const struct face_keys **ret, struct err *e)
{
    int r = 0;

    pthread_mutex_lock(&rt->lock);
    if (!rt->keys)
        r = face_keys_open(rt->config.store, rt->config.identity, &rt->keys, e);
    *ret = rt->keys;
    pthread_mutex_unlock(&rt->lock);
    return r;
}

/* ---- sending ---- */

/* A client that does not read is closed by the push; its end comes as an item of its own. */
void rt_send_frame(struct rt_socket *s, struct slice frame)
{
    (void)!http_websocket_push(s->ws, frame);
}

void rt_send_bytes(struct rt_socket *s, bool is_binary, struct slice message)
{
    struct buf frame;

    buf_init(&frame, LIMIT_SOCKET_WAITING);
    websocket_write_message(&frame, WEBSOCKET_SERVER, is_binary, message);
    if (frame.overflowed)
        http_websocket_close(s->ws, WEBSOCKET_TOO_BIG, "A message for this client is too large.");
    else
        rt_send_frame(s, buf_slice(&frame));
    buf_clear(&frame);
}

void rt_send(struct rt_socket *s, const struct rt_message *m)
{
    struct buf text;

    buf_init(&text, LIMIT_SOCKET_WAITING);
    rt_wire_write(&text, s->is_v2, m);
    rt_send_bytes(s, false, buf_slice(&text));
    buf_clear(&text);
}

void rt_reply(struct rt_socket *s, const struct rt_message *to, bool is_ok, struct slice response)
{
    struct rt_message m = {
        .join_ref = to->join_ref, .ref = to->ref, .topic = to->topic, .event = SLICE_LIT("phx_reply")
    };
    struct buf text;

    buf_init(&text, LIMIT_SOCKET_WAITING);
    buf_add_str(&text, is_ok ? "{\"status\":\"ok\",\"response\":" : "{\"status\":\"error\",\"response\":");
    buf_add_slice(&text, response);
    buf_add_char(&text, '}');
    m.text = buf_slice(&text);
    rt_send(s, &m);
    buf_clear(&text);
}

void rt_reply_error(struct rt_socket *s, const struct rt_message *to, const char *fmt, ...)
{
    char reason[512];
    struct json_writer w;
    struct buf text;
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(reason, sizeof(reason), fmt, ap);
    va_end(ap);
    buf_init(&text, KIB(8));
    json_write_init(&w, &text);
    json_begin_object(&w);
    json_add_string(&w, "reason", reason);
    json_end(&w);
    rt_reply(s, to, false, buf_slice(&text));
    buf_clear(&text);
}

/* ---- the hub ---- */

static void socket_free(struct rt_socket *s)
{
    while (!TAILQ_EMPTY(&s->channels))
        rt_channel_leave(TAILQ_FIRST(&s->channels));
    TAILQ_REMOVE(&s->rt->sockets, s, links);
    http_websocket_unref(s->ws);
    free(s);
}

static void open_socket(struct realtime *rt, struct rt_socket *s)
{
    TAILQ_INSERT_TAIL(&rt->sockets, s, links);
    if (atomic_load(&rt->is_ending))
        http_websocket_close(s->ws, WEBSOCKET_GOING_AWAY, "The service is stopping.");
}

static void give_back(struct rt_socket *s, size_t n)
{
    budget_give(http_websocket_holder(s->ws), BUDGET_BODY, (int64_t)n);
    atomic_fetch_sub(&s->n_pending_bytes, n);
    if (atomic_fetch_sub(&s->n_pending, 1) == 1 && atomic_exchange(&s->is_held, false))
        http_websocket_resume(s->ws);
}

static void handle_message(struct rt_socket *s, struct rt_item *item)
{
    struct rt_message m;
    struct err e = { 0 };

    if (rt_wire_read(item->arena, s->is_v2, item->is_binary, item->bytes, &m, &e) < 0)
        http_websocket_close(s->ws, WEBSOCKET_BAD_DATA, e.text);
    else
        rt_handle(s, item->arena, &m);
    give_back(s, item->bytes.n);
}

static void end_all(struct realtime *rt)
{
    struct rt_socket *s;

    TAILQ_FOREACH(s, &rt->sockets, links)
    http_websocket_close(s->ws, WEBSOCKET_GOING_AWAY, "The service is stopping.");
}

static void handle_change(struct realtime *rt, struct rt_item *item)
{
    rt_deliver_change(rt, item->change);
    atomic_fetch_sub(&rt->n_changes, 1);
    atomic_fetch_sub(&rt->n_change_bytes, item->change->n_bytes);
}

/* A broadcast over HTTP: its channel may have no member here. */
static void pass_on(struct realtime *rt, struct rt_item *item)
{
    const struct realtime_broadcast *b = &item->broadcast;
    const struct rt_topic t = { .name = arena_printf(item->arena, "realtime:%.*s", (int)b->topic.n, b->topic.p),
                                .is_private = b->is_private };

    if (rt_is_bridged(&t) && !b->is_bytes)
        rt_bridge_send(rt, t.name, b->event, b->payload);
}

static void handle(struct realtime *rt, struct rt_item *item)
{
    switch (item->kind) {
    case RT_OPENED:
        open_socket(rt, item->socket);
        break;
    case RT_MESSAGE:
        handle_message(item->socket, item);
        break;
    case RT_CLOSED:
        socket_free(item->socket);
        break;
    case RT_CHANGE:
        handle_change(rt, item);
        break;
    case RT_TABLES:
        rt_tables_known(rt, item);
        break;
    case RT_GAP:
        rt_deliver_gap(rt);
        break;
    case RT_BROADCAST:
        rt_deliver_broadcast(rt, item->arena, &item->broadcast);
        pass_on(rt, item);
        atomic_fetch_sub(&rt->n_broadcasts, 1);
        break;
    case RT_REMOTE:
        rt_bridge_deliver(rt, item->arena, &item->broadcast);
        atomic_fetch_sub(&rt->n_broadcasts, 1);
        break;
    case RT_MACHINES:
        rt_machines_known(rt, item);
        break;
    case RT_LISTEN: /* of the rows' thread */
    case RT_UNLISTEN:
    case RT_BRIDGE:
        break;
    case RT_END:
        end_all(rt);
        break;
    }
}

static void *run_hub(void *arg)
{
    struct realtime *rt = arg;
    bool is_closed = false;

    while (!is_closed) {
        struct rt_item *item = rt_queue_pop(&rt->hub, TICK_MS, &is_closed);

        if (item)
            handle(rt, item);
        rt_item_free(item);
        if (clock_mono_ms() >= rt->tick_ms) {
            rt_expire(rt);
            rt_machines_tick(rt, false);
            rt->tick_ms = clock_mono_ms() + TICK_MS;
        }
    }
    return NULL;
}

/* ---- metrics ---- */

static double gauge(void *count)
{
    return (double)atomic_load((atomic_size_t *)count);
}

static void show_metrics(struct realtime *rt)
{
    rt->delivered = metric_counter("hearth_realtime_delivered_total", "Changes sent to channels of apps", "");
    rt->dropped = metric_counter("hearth_realtime_dropped_total", "Changes that no channel was told of", "");
    metric_gauge_fn("hearth_realtime_subscribers", "Channels of apps that receive changes", "", gauge, &rt->n_watching);
    metric_gauge_fn("hearth_realtime_waiting", "Changes not yet delivered", "", gauge, &rt->n_changes);
}

static void hide_metrics(struct realtime *rt)
{
    metric_gauge_fn_forget(&rt->n_watching);
    metric_gauge_fn_forget(&rt->n_changes);
}

/* ---- life ---- */

int realtime_start(const struct realtime_config *c, struct realtime **ret, struct err *e)
{
    struct realtime *rt = xcalloc(1, sizeof(*rt));
    int r;

    rt->config = *c;
    pthread_mutex_init(&rt->lock, NULL);
    rt_queue_init(&rt->hub);
    rt_queue_init(&rt->rows);
    TAILQ_INIT(&rt->sockets);
    TAILQ_INIT(&rt->watching);
    show_metrics(rt);
    r = thread_start(&rt->hub_thread, "realtime", run_hub, rt);
    rt->has_hub = r == 0;
    if (r < 0)
        err_set(e, r, "INTERNAL_ERROR", "A thread for the realtime protocol could not be started.");
    else
        r = rt_rows_start(rt, e);
    if (r < 0) {
        realtime_stop(rt);
        realtime_free(rt);
        return r;
    }
    *ret = rt;
    return 0;
}

void realtime_end(struct realtime *rt)
{
    if (rt && !atomic_exchange(&rt->is_ending, true))
        rt_queue_push(&rt->hub, rt_item_new(RT_END), 0);
}

void realtime_stop(struct realtime *rt)
{
    if (!rt)
        return;
    rt_rows_stop(rt);
    rt_queue_close(&rt->hub);
    if (rt->has_hub)
        pthread_join(rt->hub_thread, NULL);
    rt->has_hub = false;
}

/* Sockets whose opening the hub has not seen are freed as well. */
static void free_sockets(struct realtime *rt)
{
    struct rt_item *item;

    STAILQ_FOREACH(item, &rt->hub.items, links)
    if (item->kind == RT_OPENED)
        TAILQ_INSERT_TAIL(&rt->sockets, item->socket, links);
    while (!TAILQ_EMPTY(&rt->sockets))
        socket_free(TAILQ_FIRST(&rt->sockets));
}

struct realtime *realtime_free(struct realtime *rt)
{
    if (!rt)
        return NULL;
    hide_metrics(rt);
    free_sockets(rt);
    rt_queue_clear(&rt->hub);
    rt_queue_clear(&rt->rows);
    secret_free(rt->keys);
    pthread_mutex_destroy(&rt->lock);
    free(rt->columns);
    free(rt);
    return NULL;
}

/* ---- a new client ---- */

/* Loop thread. The hub gives back what is charged here. */
static bool on_message(void *arg, bool is_binary, struct slice message)
{
    struct rt_socket *s = arg;
    struct err ignored;
    struct rt_item *item;
    bool is_full;

    err_init(&ignored);
    if (budget_take(http_websocket_holder(s->ws), BUDGET_BODY, (int64_t)message.n, &ignored) < 0) {
        http_websocket_close(s->ws, WEBSOCKET_POLICY, "The budget of unread messages is used up.");
        return false;
    }
    is_full = atomic_fetch_add(&s->n_pending, 1) + 1 >= LIMIT_REALTIME_PENDING;
    is_full |= atomic_fetch_add(&s->n_pending_bytes, message.n) + message.n >= LIMIT_REALTIME_PENDING_BYTES;
    if (is_full)
        atomic_store(&s->is_held, true);
    item = rt_item_new(RT_MESSAGE);
    item->arena = arena_new_sized(KIB(2));
    item->socket = s;
    item->is_binary = is_binary;
    item->bytes = (struct slice){ arena_slicedup(item->arena, message), message.n };
    rt_queue_push(&s->rt->hub, item, 0);
    return !is_full;
}

static void on_closed(void *arg)
{
    struct rt_socket *s = arg;
    struct rt_item *item = rt_item_new(RT_CLOSED);

    item->socket = s;
    rt_queue_push(&s->rt->hub, item, 0);
}

static int read_vsn(const char *vsn, bool *ret_is_v2, struct err *e)
{
    if (vsn && strcmp(vsn, "1.0.0") != 0 && strcmp(vsn, "2.0.0") != 0)
        return err_set(e, -EINVAL, "UNKNOWN_VSN", "The parameter vsn must be 1.0.0 or 2.0.0, not \"%.20s\".", vsn);
    *ret_is_v2 = vsn && strcmp(vsn, "2.0.0") == 0;
    return 0;
}

static int make_socket(struct realtime *rt, struct http_exchange *x, const struct rt_socket *as, struct rt_socket **ret,
                       struct err *e)
{
    struct rt_socket *s = xcalloc(1, sizeof(*s));
    const struct http_websocket_user user = { .on_message = on_message, .on_closed = on_closed, .arg = s };
    int r = http_websocket_new(x, &user, &s->ws, e);

    if (r < 0) {
        free(s);
        return r;
    }
    s->rt = rt;
    s->is_v2 = as->is_v2;
    s->caller = as->caller;
    TAILQ_INIT(&s->channels);
    *ret = s;
    return 0;
}

int realtime_connect(struct realtime *rt, struct http_exchange *x, const char *apikey, const char *vsn, struct err *e)
{
    const struct face_keys *keys = NULL;
    struct rt_socket wanted = { 0 }, *s = NULL;
    struct rt_item *item;
    int r = http_websocket_check(x, e);

    if (r == 0 && atomic_load(&rt->is_ending))
        r = err_set(e, -EAGAIN, "SHUTTING_DOWN", "The service is stopping.");
    if (r == 0)
        r = read_vsn(vsn, &wanted.is_v2, e);
    if (r == 0)
        r = realtime_keys(rt, &keys, e);
    if (r == 0)
        r = face_caller_of_key(keys, apikey, rt_now_s(), &wanted.caller, e);
    if (r == 0)
        r = make_socket(rt, x, &wanted, &s, e);
    if (r < 0)
        return r;
    assert(s);
    item = rt_item_new(RT_OPENED);
    item->socket = s;
    rt_queue_push(&rt->hub, item, 0);
    http_websocket_begin(s->ws);
    return 0;
}

int rt_queue_broadcast(struct realtime *rt, enum rt_kind kind, const struct realtime_broadcast *b, struct err *e)
{
    struct rt_item *item;

    if (atomic_fetch_add(&rt->n_broadcasts, 1) >= LIMIT_REALTIME_BROADCASTS) {
        atomic_fetch_sub(&rt->n_broadcasts, 1);
        return err_set(e, -EBUSY, "TOO_MANY_BROADCASTS",
                       "%d broadcasts wait to be delivered already; try again in a second.", LIMIT_REALTIME_BROADCASTS);
    }
    item = rt_item_new(kind);
    item->arena = arena_new();
    item->broadcast = *b;
    item->broadcast.topic = (struct slice){ arena_slicedup(item->arena, b->topic), b->topic.n };
    item->broadcast.event = (struct slice){ arena_slicedup(item->arena, b->event), b->event.n };
    item->broadcast.payload = (struct slice){ arena_slicedup(item->arena, b->payload), b->payload.n };
    rt_queue_push(&rt->hub, item, 0);
    return 0;
}

int realtime_broadcast(struct realtime *rt, const struct realtime_broadcast *b, struct err *e)
{
    return rt_queue_broadcast(rt, RT_BROADCAST, b, e);
}
