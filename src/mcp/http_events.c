/* Streams of events: the response of a POST, its resumption, and the stream of what a server sends unasked. */
#include "base/clock.h"
#include "base/cond.h"
#include "mcp/http_private.h"

#include <string.h>
#include <strings.h>

enum { EVENT_OVERHEAD = 64 /* "data: " before a frame */, STREAM_IS_DONE = -EALREADY };

bool mcp_http_is_events(const struct http_answer *head)
{
    const char *type = http_answer_header(head, "content-type");

    return type && strncasecmp(type, "text/event-stream", 17) == 0;
}

/* Whether this frame is the response that the stream is about. */
static void look_for_response(struct mcp_events *s, struct slice frame)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct json_rpc_frame read;
    struct json_value v;

    if (s->awaited.kind == JSON_RPC_ID_ABSENT || json_parse(a, frame, &v, NULL) < 0)
        return;
    if (json_type(v) == JSON_ARRAY)
        s->has_batch = true;
    else if (json_rpc_read_value(v, &read, NULL) == 0 &&
             (read.kind == JSON_RPC_RESULT || read.kind == JSON_RPC_ERROR) && json_rpc_id_eq(&read.id, &s->awaited))
        s->is_done = true;
}

static int take_event(void *arg, const struct sse_event *ev)
{
    struct mcp_events *s = arg;
    int r = 0;

    s->n_events++;
    if (ev->id.n < sizeof(s->last_event)) {
        if (ev->id.n > 0)
            memcpy(s->last_event, ev->id.p, ev->id.n);
        s->last_event[ev->id.n] = '\0';
    }
    if (!slice_eq_str(ev->event, "message"))
        r = s->on_other ? s->on_other(s, ev) : 0;
    else if (ev->data.n > LIMIT_MCP_FRAME)
        r = err_set(&s->why, -E2BIG, "MCP_FRAME_TOO_LARGE", "The MCP server sent a message of more than %d bytes.",
                    LIMIT_MCP_FRAME);
    else if (ev->data.n > 0) {
        s->http->on.on_frame(s->http->on.arg, ev->data, s->awaited.kind == JSON_RPC_ID_ABSENT ? NULL : &s->awaited);
        look_for_response(s, ev->data);
    }
    return s->is_done ? STREAM_IS_DONE : r;
}

static int feed(struct mcp_events *s, struct sse_reader *reader, struct slice bytes, struct err *e)
{
    int r = sse_reader_feed(reader, bytes, e);

    if (reader->retry_ms >= 0)
        s->retry_ms = reader->retry_ms;
    if (r < 0 && *s->why.code)
        return err_set(e, r, s->why.code, "%s", s->why.text);
    if (r == -EMSGSIZE)
        return err_set(e, -E2BIG, "MCP_FRAME_TOO_LARGE", "The MCP server sent a message of more than %d bytes.",
                       LIMIT_MCP_FRAME);
    return r;
}

int mcp_events_read(struct mcp_events *s, struct http_pull *pull, const struct net_wait *wait, struct err *e)
{
    struct slice bytes = { NULL, 1 };
    struct sse_reader reader;
    int r = 0;

    err_init(&s->why);
    sse_reader_init(&reader, take_event, s);
    sse_reader_limit(&reader, LIMIT_MCP_FRAME + EVENT_OVERHEAD);
    while (r == 0 && bytes.n > 0) {
        r = http_pull_read(pull, wait, &bytes, e);
        if (r == 0)
            r = feed(s, &reader, bytes, e);
    }
    sse_reader_clear(&reader);
    return r == STREAM_IS_DONE ? 0 : r;
}

int mcp_http_pause(struct mcp_http *h, int64_t ms, const struct net_wait *wait, struct err *e)
{
    int64_t until_ms = clock_mono_ms() + ms, left_ms;
    bool is_closing = false;

    while (!is_closing && clock_mono_ms() < until_ms) {
        left_ms = net_wait_left(wait, e);
        if (left_ms < 0)
            return (int)left_ms;
        left_ms = MIN(MIN(left_ms, until_ms - clock_mono_ms()), (int64_t)(wait->is_gone || wait->is_leaving ? 50 : ms));
        pthread_mutex_lock(&h->lock);
        if (!h->is_closing)
            cond_wait_until(&h->changed, &h->lock, clock_mono_us() + 1000 * left_ms);
        is_closing = h->is_closing;
        pthread_mutex_unlock(&h->lock);
    }
    return is_closing ? err_set(e, -EPIPE, "MCP_CLOSED", "The connection to the MCP server was closed.") : 0;
}
