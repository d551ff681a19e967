#include "mcp/http.h"

#include "base/clock.h"
#include "base/cond.h"
#include "base/thread.h"
#include "mcp/http_private.h"
#include "net/url.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum {
    BYE_MS = 2000, /* for ending the session at the server */
    FIRST_PAUSE_MS = 1000,
    LONGEST_PAUSE_MS = 60000,
    LISTEN_HEAD_MS = 1000,
};

#define FOREVER_MS (INT64_C(1) << 40)

static const char answer_types[] = "application/json, text/event-stream";

/* ---- a connection, as both transports have it ---- */

static int copy_headers(struct mcp_http *h, const struct mcp_http_config *c, struct err *e)
{
    struct http_call_header *headers = arena_array(h->arena, c->n_headers + 1, sizeof(*headers));

    if (c->n_headers > LIMIT_MCP_HEADERS)
        return err_set(e, -EINVAL, "BAD_HEADER", "At most %d headers can be given.", LIMIT_MCP_HEADERS);
    for (size_t i = 0; i < c->n_headers; i++) {
        int r = mcp_http_check_header(c->headers[i].name, c->headers[i].value, e);

        if (r < 0)
            return r;
        headers[i].name = arena_strdup(h->arena, c->headers[i].name);
        headers[i].value = arena_strdup(h->arena, c->headers[i].value);
        h->has_authorization = h->has_authorization || strcasecmp(headers[i].name, "Authorization") == 0;
    }
    h->headers = headers;
    h->n_headers = c->n_headers;
    return 0;
}

int mcp_http_init(struct mcp_http *h, const struct mcp_link_ops *ops, const struct mcp_http_config *c, struct err *e)
{
    struct url url;
    int r;

    h->link.ops = ops;
    pthread_mutex_init(&h->lock, NULL);
    cond_init(&h->changed);
    h->arena = arena_new();
    h->url = arena_strdup(h->arena, c->url);
    h->guard = c->guard;
    if (c->authorizer)
        h->authorizer = *c->authorizer;
    r = url_parse(h->arena, h->url, &url, e);
    if (r == 0)
        r = copy_headers(h, c, e);
    h->has_authorizer = c->authorizer && !h->has_authorization;
    return r;
}

void mcp_http_clear(struct mcp_http *h)
{
    if (h->authorizer.release)
        h->authorizer.release(h->authorizer.arg);
    free(h->target);
    arena_free(h->arena);
    pthread_cond_destroy(&h->changed);
    pthread_mutex_destroy(&h->lock);
}

void mcp_http_report_closed(struct mcp_http *h, const struct err *why)
{
    bool had_reported;

    pthread_mutex_lock(&h->lock);
    had_reported = h->has_reported;
    h->has_reported = true;
    pthread_mutex_unlock(&h->lock);
    if (!had_reported && h->on.on_closed)
        h->on.on_closed(h->on.arg, why);
}

void mcp_http_end(struct mcp_http *h)
{
    bool has_listener;

    pthread_mutex_lock(&h->lock);
    h->is_closing = true;
    for (struct mcp_flight *f = h->flights; f; f = f->next)
        http_pull_cancel(f->pull);
    pthread_cond_broadcast(&h->changed);
    while (h->n_senders > 0)
        pthread_cond_wait(&h->changed, &h->lock);
    has_listener = h->has_listener;
    h->has_listener = false;
    pthread_mutex_unlock(&h->lock);
    if (has_listener)
        pthread_join(h->listener, NULL);
}

bool mcp_http_session(struct mcp_http *h, char ret[LIMIT_MCP_SESSION_BYTES + 1])
{
    pthread_mutex_lock(&h->lock);
    memcpy(ret, h->session, sizeof(h->session));
    pthread_mutex_unlock(&h->lock);
    return *ret != '\0';
}

static struct mcp_http *of(struct mcp_link *l)
{
    return CONTAINER_OF(l, struct mcp_http, link);
}

static int start(struct mcp_link *l, const struct mcp_link_events *on, struct err *e)
{
    of(l)->on = *on;
    return 0;
}

/* ---- one frame ---- */

static bool is_session_id(const char *id)
{
    size_t n = strlen(id);

    for (size_t i = 0; i < n; i++)
        if (id[i] < 0x21 || id[i] > 0x7e)
            return false;
    return n > 0 && n <= LIMIT_MCP_SESSION_BYTES;
}

/* 2025-11-25, "Session Management". */
static int keep_session(struct mcp_http *h, const struct http_answer *head, struct err *e)
{
    const char *id = http_answer_header(head, "mcp-session-id");

    if (!id)
        return 0;
    if (!is_session_id(id))
        return err_set(e, -EPROTO, "MCP_NO_ANSWER",
                       "The MCP server gave a session id that is not 1 to %d visible characters.",
                       LIMIT_MCP_SESSION_BYTES);
    pthread_mutex_lock(&h->lock);
    snprintf(h->session, sizeof(h->session), "%s", id);
    pthread_mutex_unlock(&h->lock);
    return 0;
}

static bool is_method(const struct mcp_send *s, const char *method)
{
    return s->method && strcmp(s->method, method) == 0;
}

static int take_response(struct mcp_http *h, struct mcp_flight *f, const struct mcp_send *s, bool had_session,
                         struct arena *a, struct err *e)
{
    const struct http_answer *head = http_pull_head(f->pull);
    int r = 0;

    if (head->status >= 300)
        return mcp_http_take_refusal(h, f, s, had_session, a, e);
    if (is_method(s, "initialize"))
        r = keep_session(h, head, e);
    return r == 0 && s->is_request ? mcp_http_take_answer(h, f, s, a, e) : r;
}

static void keep_version(struct mcp_http *h, const char *version)
{
    pthread_mutex_lock(&h->lock);
    if (version)
        snprintf(h->version, sizeof(h->version), "%s", version);
    pthread_mutex_unlock(&h->lock);
}

static const char *version_of(struct mcp_http *h, struct arena *a)
{
    const char *version;

    pthread_mutex_lock(&h->lock);
    version = arena_strdup(a, h->version);
    pthread_mutex_unlock(&h->lock);
    return version;
}

/* Our responses carry the version of the connection. */
static int post(struct mcp_http *h, const struct mcp_send *s, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct mcp_http_request q = { .method = "POST",
                                  .url = mcp_http_target(h, a),
                                  .body = s->frame,
                                  .version = s->method ? s->version : version_of(h, a),
                                  .rpc_method = s->method,
                                  .rpc_name = s->name,
                                  .params = s->params,
                                  .n_params = s->n_params,
                                  .accept = answer_types,
                                  .wait = s->wait };
    char session[LIMIT_MCP_SESSION_BYTES + 1];
    bool had_session = mcp_http_session(h, session) && !mcp_version_is_stateless(s->version);
    struct mcp_flight f = { 0 };
    int r = mcp_flight_begin(h, &q, &f, a, e);

    if (r == 0)
        r = take_response(h, &f, s, had_session, a, e);
    mcp_flight_end(h, &f);
    return mcp_http_error(h, r, e);
}

static int send_frame(struct mcp_link *l, const struct mcp_send *s, struct err *e)
{
    struct mcp_http *h = of(l);
    int r;

    if (mcp_version_is_stateless(s->version) && is_method(s, "notifications/cancelled"))
        return 0; /* closing the request's stream cancels it there */
    r = mcp_http_enter(h, e);
    if (r < 0)
        return r;
    keep_version(h, s->version);
    r = post(h, s, e);
    mcp_http_leave(h);
    return r;
}

/* ---- what the server sends unasked ---- */

enum listen_end { LISTEN_AGAIN, LISTEN_NEVER };

/* What a server sends unasked while it has no stream for it is lost, so the first calls wait for the stream. A stream
 * that opens later is reported. A server may send again what came after the last event that was read, but need not. */
static void note_stream(struct mcp_http *h, bool is_open)
{
    bool had_gap;

    pthread_mutex_lock(&h->lock);
    had_gap = h->has_gap;
    h->has_gap = !is_open;
    h->has_listened = true;
    pthread_cond_broadcast(&h->changed);
    pthread_mutex_unlock(&h->lock);
    if (is_open && had_gap && h->on.on_gap)
        h->on.on_gap(h->on.arg);
}

/* Not for long: some servers send the head of the stream with its first event only. Under the lock. */
static void await_listening(struct mcp_http *h)
{
    int64_t until_us = clock_mono_us() + LISTEN_HEAD_MS * INT64_C(1000);

    while (h->has_listener && !h->has_listened && !h->is_closing && clock_mono_us() < until_us)
        (void)cond_wait_until(&h->changed, &h->lock, until_us);
    h->has_gap = h->has_gap || !h->has_listened;
}

static enum listen_end judge_listen(struct mcp_http *h, int status, struct err *e)
{
    char session[LIMIT_MCP_SESSION_BYTES + 1];

    if (status == 404 || status == 400) {
        err_set(e, -ENOTCONN, "MCP_SESSION_LOST", "The MCP server has ended this session.");
        if (mcp_http_session(h, session) && status == 404)
            mcp_http_report_closed(h, e);
        return LISTEN_NEVER;
    }
    return status >= 500 || status == 408 || status == 429 ? LISTEN_AGAIN : LISTEN_NEVER;
}

static bool is_stream(const struct mcp_flight *f)
{
    const struct http_answer *head = http_pull_head(f->pull);

    return head->status == 200 && mcp_http_is_events(head);
}

/* One GET and its stream. */
static enum listen_end listen_once(struct mcp_http *h, struct mcp_events *events, const struct net_wait *wait)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct mcp_http_request q = { .method = "GET",
                                  .url = mcp_http_target(h, a),
                                  .version = version_of(h, a),
                                  .last_event = events->last_event,
                                  .accept = "text/event-stream",
                                  .wait = wait };
    enum listen_end end = LISTEN_AGAIN;
    struct mcp_flight f = { 0 };
    struct err e;
    int r;

    err_init(&e);
    r = mcp_flight_begin(h, &q, &f, a, &e);
    note_stream(h, r == 0 && is_stream(&f));
    if (r == 0 && !is_stream(&f))
        end = judge_listen(h, http_pull_head(f.pull)->status, &e);
    else if (r == 0)
        r = mcp_events_read(events, f.pull, wait, &e);
    mcp_flight_end(h, &f);
    note_stream(h, false);
    if (r == -E2BIG)
        mcp_http_report_closed(h, &e);
    return r == -EPIPE || r == -ECANCELED || r == -EACCES || r == -E2BIG || r == -EPERM ? LISTEN_NEVER : end;
}

/* The pause that the server asked for; after a stream without events the own one, which doubles. */
static int64_t pause_before(const struct mcp_events *events, size_t n_before, int64_t *own_ms)
{
    if (events->n_events == n_before) {
        *own_ms = MIN(2 * *own_ms, (int64_t)LONGEST_PAUSE_MS);
        return MAX(*own_ms, events->retry_ms);
    }
    *own_ms = FIRST_PAUSE_MS;
    return events->retry_ms < 0 ? FIRST_PAUSE_MS : MAX(events->retry_ms, (int64_t)MCP_LEAST_RETRY_MS);
}

static void *listen_main(void *arg)
{
    struct mcp_http *h = arg;
    struct mcp_events events = { .http = h, .retry_ms = -1 };
    const struct net_wait wait = net_wait_of(FOREVER_MS, NULL, NULL);
    int64_t own_ms = FIRST_PAUSE_MS;
    size_t n_before = 0;

    while (listen_once(h, &events, &wait) == LISTEN_AGAIN) {
        if (mcp_http_pause(h, pause_before(&events, n_before, &own_ms), &wait, NULL) < 0)
            break;
        n_before = events.n_events;
    }
    return NULL;
}

static int listen_to(struct mcp_link *l, const char *version, struct err *e)
{
    struct mcp_http *h = of(l);
    int r = 0;

    keep_version(h, version);
    pthread_mutex_lock(&h->lock);
    if (!h->is_closing && !h->has_listener)
        r = thread_start(&h->listener, "mcp-listen", listen_main, h);
    h->has_listener = h->has_listener || (!h->is_closing && r == 0);
    await_listening(h);
    pthread_mutex_unlock(&h->lock);
    return r < 0 ? err_errno(e, -r, "The thread of an MCP connection cannot be started") : 0;
}

/* ---- the end ---- */

/* Best effort: a server that does not answer has no session to end. */
static void end_session(struct mcp_http *h)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    const struct net_wait wait = net_wait_of(BYE_MS, NULL, NULL);
    const struct mcp_http_request q = { .version = h->version };
    struct http_call_request request = { .method = "DELETE", .url = mcp_http_target(h, a), .guard = h->guard };
    const char *authorization = NULL;
    struct http_pull *pull;

    if (!*h->session)
        return;
    if (h->has_authorizer && h->authorizer.value(h->authorizer.arg, &wait, a, &authorization, NULL) < 0)
        return;
    request.headers = mcp_http_headers(a, h, &q, h->session, authorization, &request.n_headers);
    pull = http_pull_new();
    (void)!http_pull_open(pull, &request, &wait, NULL);
    http_pull_free(pull);
}

static struct mcp_link *close_link(struct mcp_link *l)
{
    struct mcp_http *h = of(l);
    struct err why;

    err_init(&why);
    err_set(&why, -EPIPE, "MCP_CLOSED", "The connection to the MCP server was closed.");
    mcp_http_end(h);
    mcp_http_report_closed(h, &why);
    end_session(h);
    mcp_http_clear(h);
    free(h);
    return NULL;
}

static const struct mcp_link_ops http_ops = {
    .name = "http",
    .start = start,
    .send = send_frame,
    .listen = listen_to,
    .close = close_link,
};

int mcp_http_open(const struct mcp_http_config *c, struct mcp_link **ret, struct err *e)
{
    struct mcp_http *h = xcalloc(1, sizeof(*h));
    int r = mcp_http_init(h, &http_ops, c, e);

    if (r < 0) {
        mcp_http_clear(h);
        free(h);
        return r;
    }
    *ret = &h->link;
    return 0;
}
