/* What a POST is answered with. */
#include "base/visible.h"
#include "mcp/http_private.h"

#include <string.h>
#include <strings.h>

enum {
    REFUSAL_BYTES = 64 << 10, /* of the body of a refusal that are read */
    SHOWN_BYTES = 200,        /* of it in the error's text */
    MOST_RESUMPTIONS = 5,     /* in a row without a new event */
    USUAL_RETRY_MS = 1000
};

static struct json_rpc_id id_of(struct arena *a, struct slice frame)
{
    struct json_value v;

    if (json_parse(a, frame, &v, NULL) < 0)
        return (struct json_rpc_id){ .kind = JSON_RPC_ID_ABSENT };
    return json_rpc_id_of(v);
}

static int err_no_answer(const char *why, struct err *e)
{
    return err_set(e, -EPROTO, "MCP_NO_ANSWER", "The MCP server %s.", why);
}

/* ---- a response ---- */

static int take_body(struct mcp_http *h, struct mcp_flight *f, const struct net_wait *wait, struct err *e)
{
    struct buf body;
    int r;

    buf_init(&body, LIMIT_MCP_FRAME);
    r = http_pull_read_all(f->pull, wait, &body, e);
    if (r == -EMSGSIZE)
        r = err_set(e, -E2BIG, "MCP_FRAME_TOO_LARGE", "The MCP server sent a message of more than %d bytes.",
                    LIMIT_MCP_FRAME);
    else if (r == 0 && body.n == 0)
        r = err_no_answer("answered a request with an empty body", e);
    else if (r == 0)
        h->on.on_frame(h->on.arg, buf_slice(&body), NULL);
    buf_clear(&body);
    return r;
}

static int64_t retry_ms(const struct mcp_events *s)
{
    return s->retry_ms < 0 ? USUAL_RETRY_MS : MAX(s->retry_ms, (int64_t)MCP_LEAST_RETRY_MS);
}

/* 2025-11-25, "Resumability and Redelivery": a GET with the id of the last event goes on with the stream. */
static int resume(struct mcp_http *h, struct mcp_flight *f, const struct mcp_send *s, struct mcp_events *events,
                  struct arena *a, struct err *e)
{
    struct mcp_http_request q = { .method = "GET",
                                  .url = mcp_http_target(h, a),
                                  .version = s->version,
                                  .last_event = arena_strdup(a, events->last_event),
                                  .accept = "text/event-stream",
                                  .wait = s->wait };
    int r;

    mcp_flight_end(h, f);
    r = mcp_http_pause(h, retry_ms(events), s->wait, e);
    if (r == 0)
        r = mcp_flight_begin(h, &q, f, a, e);
    if (r < 0)
        return r;
    if (http_pull_head(f->pull)->status != 200 || !mcp_http_is_events(http_pull_head(f->pull)))
        return err_no_answer("broke off its answer and does not go on with it", e);
    return mcp_events_read(events, f->pull, s->wait, e);
}

/* Whether a stream that ended like this may go on; other errors are final. */
static bool is_break(int r)
{
    return r == 0 || r == -ECONNRESET || r == -EBADMSG || r == -ECONNREFUSED;
}

static bool may_resume(const struct mcp_events *events, const struct mcp_send *s, int r, unsigned n_vain)
{
    return is_break(r) && *events->last_event && !mcp_version_is_stateless(s->version) && n_vain < MOST_RESUMPTIONS;
}

static int take_events(struct mcp_http *h, struct mcp_flight *f, const struct mcp_send *s, struct arena *a,
                       struct err *e)
{
    struct mcp_events events = { .http = h, .awaited = id_of(a, s->frame), .retry_ms = -1 };
    int r = mcp_events_read(&events, f->pull, s->wait, e);
    unsigned n_vain = 0; /* resumptions without a new event */

    while (!events.is_done && may_resume(&events, s, r, n_vain)) {
        size_t n_before = events.n_events;

        r = resume(h, f, s, &events, a, e);
        n_vain = events.n_events > n_before ? 0 : n_vain + 1;
    }
    if (r == 0 && !events.is_done && !events.has_batch)
        r = err_set(e, -ECONNRESET, "UPSTREAM_CLOSED", "The MCP server ended its answer before it was complete.");
    return events.is_done ? 0 : r;
}

int mcp_http_take_answer(struct mcp_http *h, struct mcp_flight *f, const struct mcp_send *s, struct arena *a,
                         struct err *e)
{
    const struct http_answer *head = http_pull_head(f->pull);

    if (head->status == 202 || head->status == 204)
        return err_no_answer("accepted a request and sent no answer", e);
    return mcp_http_is_events(head) ? take_events(h, f, s, a, e) : take_body(h, f, s->wait, e);
}

/* ---- a refusal ---- */

/* The first bytes of the body; what is longer or breaks is cut. */
static void read_refusal(struct mcp_flight *f, const struct net_wait *wait, struct arena *a, struct slice *ret)
{
    struct slice bytes = { NULL, 1 };
    struct buf body;

    buf_init(&body, REFUSAL_BYTES);
    while (bytes.n > 0 && !body.overflowed && http_pull_read(f->pull, wait, &bytes, NULL) == 0)
        buf_add_slice(&body, bytes);
    ret->n = body.n;
    ret->p = buf_to_arena(&body, a);
}

static const char *shown(struct arena *a, struct slice text)
{
    struct buf out;

    buf_init(&out, 8 * SHOWN_BYTES);
    visible_add(&out, (struct slice){ text.p, MIN(text.n, (size_t)SHOWN_BYTES) }, VISIBLE_LINE);
    return buf_to_arena(&out, a);
}

/* An error without id (the server could not read ours, or refused before it) gets the id of the request. */
static void deliver_error(struct mcp_http *h, const struct json_rpc_id *id, const struct json_rpc_error *error,
                          struct arena *a)
{
    struct buf out;

    buf_init(&out, 2 * REFUSAL_BYTES * 6);
    json_rpc_write_error(&out, id, (int)error->code, arena_slicedup(a, error->message), error->data);
    h->on.on_frame(h->on.arg, buf_slice(&out), NULL);
    buf_clear(&out);
}

static int err_status(int status, const char *text, struct err *e)
{
    return err_set(e, -EPROTO, "MCP_NO_ANSWER", "The MCP server answered with the HTTP status %d%s%s.", status,
                   *text ? ": " : "", text);
}

static int err_session(struct err *e)
{
    return err_set(e, -ENOTCONN, "MCP_SESSION_LOST",
                   "The MCP server has ended this session; the request was not handled.");
}

int mcp_http_take_refusal(struct mcp_http *h, struct mcp_flight *f, const struct mcp_send *s, bool had_session,
                          struct arena *a, struct err *e)
{
    const struct json_rpc_id own = s->is_request ? id_of(a, s->frame) : (struct json_rpc_id){ 0 };
    int status = http_pull_head(f->pull)->status;
    struct json_rpc_frame frame;
    struct slice body;
    bool is_error, is_ours;

    read_refusal(f, s->wait, a, &body);
    is_error = json_rpc_read(a, body, REFUSAL_BYTES, &frame, NULL) == 0 && frame.kind == JSON_RPC_ERROR;
    is_ours = is_error && s->is_request && json_rpc_id_eq(&frame.id, &own);
    if (had_session && !is_ours && (status == 404 || status == 400))
        return err_session(e);
    if (is_error && s->is_request && (is_ours || frame.id.kind == JSON_RPC_ID_ABSENT)) {
        deliver_error(h, &own, &frame.error, a);
        return 0;
    }
    return err_status(status, shown(a, is_error ? frame.error.message : body), e);
}
