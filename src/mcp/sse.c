/* The HTTP with SSE of revision 2024-11-05: frames come on the stream of one GET, whose first event names the address
 * that frames are posted to. The stream's end is the connection's. */
#include "base/cond.h"
#include "base/thread.h"
#include "mcp/http_private.h"
#include "net/url.h"

#include <stdlib.h>

enum { LOOK_MS = 10 }; /* interval at which a sender looks for the endpoint */

#define FOREVER_MS (INT64_C(1) << 40)

struct mcp_sse {
    struct mcp_http http; /* first; its `target` is the endpoint */
    bool has_ended;       /* under the lock: the stream is over, or never was */
    struct err *why;      /* owned; set with has_ended */
};

static struct mcp_sse *of(struct mcp_link *l)
{
    return CONTAINER_OF(CONTAINER_OF(l, struct mcp_http, link), struct mcp_sse, http);
}

/* ---- the stream ---- */

/* Frames carry the person's credentials: no other server gets them. */
static int take_endpoint(struct mcp_events *events, const struct sse_event *ev)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct mcp_http *h = events->http;
    char *to = NULL;

    if (!slice_eq_str(ev->event, "endpoint") || h->target)
        return 0;
    if (ev->data.n > LIMIT_MCP_ENDPOINT_BYTES ||
        url_follow(a, h->url, arena_slicedup(a, ev->data), &to, &events->why) < 0)
        return err_set(&events->why, -EPROTO, "MCP_NO_ANSWER", "The MCP server names no address to send messages to.");
    if (!mcp_http_is_same_origin(a, h->url, to))
        return err_set(&events->why, -EPROTO, "MCP_NO_ANSWER",
                       "The MCP server wants messages to be sent to another server, %.200s.", to);
    pthread_mutex_lock(&h->lock);
    h->target = xstrdup(to);
    pthread_cond_broadcast(&h->changed);
    pthread_mutex_unlock(&h->lock);
    return 0;
}

static int read_stream(struct mcp_sse *s, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    const struct net_wait wait = net_wait_of(FOREVER_MS, NULL, NULL);
    struct mcp_http *h = &s->http;
    const struct mcp_http_request q = { .method = "GET", .url = h->url, .accept = "text/event-stream", .wait = &wait };
    struct mcp_events events = { .http = h, .retry_ms = -1, .on_other = take_endpoint };
    struct mcp_flight f = { 0 };
    int r = mcp_flight_begin(h, &q, &f, a, e);

    if (r == 0 && (http_pull_head(f.pull)->status != 200 || !mcp_http_is_events(http_pull_head(f.pull))))
        r = err_set(e, -EPROTO, "MCP_NO_ANSWER", "The MCP server opened no stream of events (HTTP status %d).",
                    http_pull_head(f.pull)->status);
    if (r == 0)
        r = mcp_events_read(&events, f.pull, &wait, e);
    mcp_flight_end(h, &f);
    if (r == 0)
        r = err_set(e, -EPIPE, "MCP_CLOSED", "The MCP server ended the connection.");
    return mcp_http_error(h, r, e);
}

static void *listen_main(void *arg)
{
    struct mcp_sse *s = arg;
    struct err e;

    err_init(&e);
    (void)!read_stream(s, &e);
    pthread_mutex_lock(&s->http.lock);
    *err_place(&s->why) = e;
    s->has_ended = true;
    pthread_cond_broadcast(&s->http.changed);
    pthread_mutex_unlock(&s->http.lock);
    mcp_http_report_closed(&s->http, &e);
    return NULL;
}

static int start(struct mcp_link *l, const struct mcp_link_events *on, struct err *e)
{
    struct mcp_http *h = &of(l)->http;
    int r;

    h->on = *on;
    r = thread_start(&h->listener, "mcp-listen", listen_main, of(l));
    h->has_listener = r == 0;
    return r < 0 ? err_errno(e, -r, "The thread of an MCP connection cannot be started") : 0;
}

/* ---- frames ---- */

/* 1: there is an endpoint; 0: not yet; negative: there will be none. The caller holds the lock. */
static int has_endpoint(const struct mcp_sse *s, struct err *e)
{
    if (s->has_ended)
        return err_set(e, s->why && strcmp(s->why->code, "MCP_LOGIN_REQUIRED") == 0 ? -EACCES : -EPIPE, s->why->code,
                       "%s", s->why->text);
    return s->http.target != NULL;
}

static int await_endpoint(struct mcp_sse *s, const struct net_wait *wait, struct err *e)
{
    int r = 0;

    while (r == 0) {
        pthread_mutex_lock(&s->http.lock);
        r = has_endpoint(s, e);
        pthread_mutex_unlock(&s->http.lock);
        if (r == 0)
            r = mcp_http_pause(&s->http, LOOK_MS, wait, e);
    }
    return r < 0 ? r : 0;
}

static int post(struct mcp_sse *s, const struct mcp_send *frame, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct mcp_http *h = &s->http;
    struct mcp_http_request q = { .method = "POST", .body = frame->frame, .accept = "*/*", .wait = frame->wait };
    struct mcp_flight f = { 0 };
    int r = await_endpoint(s, frame->wait, e);

    if (r < 0)
        return r;
    q.url = mcp_http_target(h, a);
    q.version = frame->version;
    r = mcp_flight_begin(h, &q, &f, a, e);
    if (r == 0 && http_pull_head(f.pull)->status >= 300)
        r = mcp_http_take_refusal(h, &f, frame, false, a, e);
    mcp_flight_end(h, &f);
    return mcp_http_error(h, r, e);
}

/* The response of a request comes on the stream: sent is delivered. */
static int send_frame(struct mcp_link *l, const struct mcp_send *frame, struct err *e)
{
    struct mcp_sse *s = of(l);
    int r = mcp_http_enter(&s->http, e);

    if (r < 0)
        return r;
    r = post(s, frame, e);
    mcp_http_leave(&s->http);
    return r;
}

static struct mcp_link *close_link(struct mcp_link *l)
{
    struct mcp_sse *s = of(l);
    struct err why;

    err_init(&why);
    err_set(&why, -EPIPE, "MCP_CLOSED", "The connection to the MCP server was closed.");
    mcp_http_end(&s->http);
    mcp_http_report_closed(&s->http, &why);
    mcp_http_clear(&s->http);
    free(s->why);
    free(s);
    return NULL;
}

static const struct mcp_link_ops sse_ops = { .name = "sse", .start = start, .send = send_frame, .close = close_link };

int mcp_sse_open(const struct mcp_http_config *c, struct mcp_link **ret, struct err *e)
{
    struct mcp_sse *s = xcalloc(1, sizeof(*s));
    int r = mcp_http_init(&s->http, &sse_ops, c, e);

    if (r < 0) {
        mcp_http_clear(&s->http);
        free(s);
        return r;
    }
    *ret = &s->http.link;
    return 0;
}
