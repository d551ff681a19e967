/* The HTTP transports at the edges of their limits, to which request a frame belongs, and gaps in the stream of what a
 * server sends unasked. */
#include "mcp/http.h"

#include "../net/upstream.h"
#include "base/thread.h"
#include "mcp/http_private.h"

#define RESULT "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}"
#define QUESTION "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"roots/list\"}"

struct server {
    struct rig rig;
    pthread_mutex_t lock;
    char session[LIMIT_MCP_SESSION_BYTES + 2]; /* that it gives; "": none */
    char *endpoint;                            /* that it names */
    char *seen_header, *seen_target;           /* of the last request; owned */
    bool saw_session;
    char seen_version[32];
    struct http_stream *open;
    struct http_exchange *held; /* the GET of /late, which the next POST answers */
    char frames[512];           /* "1 <frame>" or "- <frame>", one line each */
    char closed[64];            /* the code of on_closed */
    atomic_int n_frames, n_gaps, n_closed, n_requests;
};

static void see(struct server *s, const struct http_request *q)
{
    const char *header = http_header(q, "x-long"), *version = http_header(q, "mcp-protocol-version");

    pthread_mutex_lock(&s->lock);
    free(s->seen_header);
    free(s->seen_target);
    s->seen_header = header ? xstrdup(header) : NULL;
    s->seen_target = xstrdup(q->path);
    s->saw_session = http_header(q, "mcp-session-id") != NULL;
    snprintf(s->seen_version, sizeof(s->seen_version), "%s", version ? version : "");
    pthread_mutex_unlock(&s->lock);
    atomic_fetch_add(&s->n_requests, 1);
}

static void say(struct http_exchange *x, int status, const char *type, const char *body)
{
    x->response.status = status;
    x->response.content_type = type;
    buf_add_str(&x->response.body, body);
    http_exchange_send(x);
}

static void say_events(struct server *s, struct http_exchange *x, const char *events)
{
    struct http_stream *stream = sse_start(x);

    assert_int_equal(http_stream_push(stream, slice_of(events)), 0);
    if (strcmp(x->request.path, "/events") != 0)
        s->open = stream;
    else
        http_stream_end(stream);
}

static void serve(void *arg, struct http_exchange *x)
{
    struct server *s = arg;
    const char *path = x->request.path;
    bool is_get = x->request.method == HTTP_GET;

    see(s, &x->request);
    if (*s->session)
        http_response_header(x, "mcp-session-id", s->session);
    if (is_get && strcmp(path, "/sse") == 0)
        say_events(s, x, arena_printf(x->arena, "event: endpoint\ndata: %s\n\n", s->endpoint));
    else if (is_get && strcmp(path, "/events") == 0)
        say_events(s, x, "data: " QUESTION "\n\ndata: " RESULT "\n\n");
    else if (is_get && strcmp(path, "/listens") == 0)
        say_events(s, x, "data: " QUESTION "\n\n");
    else if (is_get && strcmp(path, "/late") == 0)
        s->held = x;
    else if (strcmp(path, "/events") == 0)
        say_events(s, x, "id: e1\nretry: 100\ndata: " QUESTION "\n\n");
    else
        say(x, 200, "application/json", RESULT);
    if (!is_get && s->held)
        say_events(s, TAKE(s->held), ": open\n\n");
}

static void end_open(void *arg)
{
    struct server *s = arg;

    if (s->open)
        s->open = http_stream_end(s->open);
}

static void server_open(struct server *s)
{
    *s = (struct server){ .lock = PTHREAD_MUTEX_INITIALIZER };
    rig_open(&s->rig, serve, s);
}

static void server_close(struct server *s)
{
    loop_call(s->rig.loop, end_open, s);
    rig_close(&s->rig);
    free(s->seen_header);
    free(s->seen_target);
}

static void note_frame(void *arg, struct slice frame, const struct json_rpc_id *request)
{
    struct server *s = arg;
    size_t n;

    pthread_mutex_lock(&s->lock);
    n = strlen(s->frames);
    if (request)
        snprintf(s->frames + n, sizeof(s->frames) - n, "%lld %.*s\n", (long long)request->number, (int)frame.n,
                 frame.p);
    else
        snprintf(s->frames + n, sizeof(s->frames) - n, "- %.*s\n", (int)frame.n, frame.p);
    pthread_mutex_unlock(&s->lock);
    atomic_fetch_add(&s->n_frames, 1);
}

static void note_gap(void *arg)
{
    atomic_fetch_add(&((struct server *)arg)->n_gaps, 1);
}

static void note_closed(void *arg, const struct err *why)
{
    struct server *s = arg;

    snprintf(s->closed, sizeof(s->closed), "%s", why->code);
    atomic_fetch_add(&s->n_closed, 1);
}

static struct mcp_link *link_with(struct server *s, const char *path, const struct http_call_header *headers, size_t n)
{
    const struct mcp_link_events on = {
        .on_frame = note_frame, .on_gap = note_gap, .on_closed = note_closed, .arg = s
    };
    const struct mcp_http_config c = { .url = rig_url(&s->rig, path), .headers = headers, .n_headers = n };
    struct mcp_link *l = NULL;

    assert_int_equal(strcmp(path, "/sse") == 0 ? mcp_sse_open(&c, &l, NULL) : mcp_http_open(&c, &l, NULL), 0);
    assert_int_equal(l->ops->start(l, &on, NULL), 0);
    return l;
}

static int request(struct mcp_link *l, const char *method, struct err *e)
{
    const struct net_wait wait = net_wait_of(WAIT_MS, NULL, NULL);
    const struct mcp_send s = { .frame = SLICE_LIT("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"x\"}"),
                                .method = method,
                                .version = strcmp(method, "initialize") == 0 ? NULL : "2025-11-25",
                                .is_request = true,
                                .wait = &wait };

    return l->ops->send(l, &s, e);
}

static char *long_text(struct arena *a, const char *begin, size_t n)
{
    char *text = arena_alloc(a, n + 1);

    memset(text, 'x', n);
    memcpy(text, begin, strlen(begin));
    text[n] = '\0';
    return text;
}

/* ---- limits ---- */

static void a_session_id_has_at_most_the_limit(void **state)
{
    struct err e = { 0 };
    struct mcp_link *l;
    struct server s;

    server_open(&s);
    memset(s.session, 's', LIMIT_MCP_SESSION_BYTES);
    l = link_with(&s, "/json", NULL, 0);
    assert_int_equal(request(l, "initialize", NULL), 0);
    assert_int_equal(request(l, "x", NULL), 0);
    assert_true(s.saw_session);
    l->ops->close(l);

    s.session[LIMIT_MCP_SESSION_BYTES] = 's';
    l = link_with(&s, "/json", NULL, 0);
    assert_int_equal(request(l, "initialize", &e), -EPROTO);
    assert_string_equal(e.code, "MCP_NO_ANSWER");
    assert_non_null(strstr(e.text, "1 to 1024 visible characters"));
    assert_int_equal(request(l, "x", NULL), 0);
    assert_false(s.saw_session); /* nothing of it was kept */
    l->ops->close(l);
    server_close(&s);
}

static void the_value_of_a_header_has_at_most_the_limit(void **state)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct http_call_header header = { "X-Long", long_text(a, "", LIMIT_MCP_HEADER_BYTES) };
    struct mcp_http_config c = { .headers = &header, .n_headers = 1 };
    struct err e = { 0 };
    struct mcp_link *l;
    struct server s;

    server_open(&s);
    l = link_with(&s, "/json", &header, 1);
    assert_int_equal(request(l, "x", NULL), 0);
    assert_string_equal(s.seen_header, header.value);
    l->ops->close(l);

    c.url = rig_url(&s.rig, "/json");
    header.value = long_text(a, "", LIMIT_MCP_HEADER_BYTES + 1);
    assert_int_equal(mcp_http_open(&c, &l, &e), -EINVAL);
    assert_string_equal(e.code, "BAD_HEADER");
    assert_non_null(strstr(e.text, "X-Long must be one line of at most 8192 bytes"));
    server_close(&s);
}

static void so_many_headers_can_be_given_and_no_more(void **state)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct http_call_header headers[LIMIT_MCP_HEADERS + 1];
    const struct mcp_http_config c = { .url = "http://127.0.0.1:1/", .headers = headers, .n_headers = 33 };
    struct err e = { 0 };
    struct mcp_link *l;
    struct server s;

    assert_int_equal(ARRAY_SIZE(headers), c.n_headers);
    for (size_t i = 0; i < ARRAY_SIZE(headers); i++)
        headers[i] = (struct http_call_header){ arena_printf(a, "X-%zu", i), "v" };
    headers[LIMIT_MCP_HEADERS - 1].name = "X-Long";
    server_open(&s);
    l = link_with(&s, "/json", headers, LIMIT_MCP_HEADERS);
    assert_int_equal(request(l, "x", NULL), 0);
    assert_string_equal(s.seen_header, "v");
    l->ops->close(l);
    server_close(&s);
    assert_int_equal(mcp_http_open(&c, &l, &e), -EINVAL);
    assert_string_equal(e.code, "BAD_HEADER");
}

static bool is_closed(void *arg)
{
    return atomic_load(&((struct server *)arg)->n_closed) > 0;
}

static void the_endpoint_of_an_sse_server_has_at_most_the_limit(void **state)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct err e = { 0 };
    struct mcp_link *l;
    struct server s;

    server_open(&s);
    s.endpoint = long_text(a, "/messages/", LIMIT_MCP_ENDPOINT_BYTES);
    l = link_with(&s, "/sse", NULL, 0);
    assert_int_equal(request(l, "x", NULL), 0);
    assert_string_equal(s.seen_target, s.endpoint);
    assert_int_equal(atomic_load(&s.n_closed), 0);
    l->ops->close(l);
    server_close(&s);

    server_open(&s);
    s.endpoint = long_text(a, "/messages/", LIMIT_MCP_ENDPOINT_BYTES + 1);
    l = link_with(&s, "/sse", NULL, 0);
    assert_int_equal(request(l, "x", &e), -EPIPE);
    assert_string_equal(e.code, "MCP_NO_ANSWER");
    assert_true(wait_until(is_closed, &s));
    assert_string_equal(s.closed, "MCP_NO_ANSWER");
    assert_int_equal(atomic_load(&s.n_requests), 1); /* nothing was posted anywhere */
    l->ops->close(l);
    server_close(&s);
}

/* ---- frames ---- */

static void a_frame_in_the_stream_of_an_answer_comes_with_its_request(void **state)
{
    struct mcp_link *l;
    struct server s;

    server_open(&s);
    l = link_with(&s, "/events", NULL, 0);
    assert_int_equal(request(l, "x", NULL), 0); /* the stream breaks off, and a GET goes on with it */
    assert_string_equal(s.frames, "1 " QUESTION "\n1 " QUESTION "\n1 " RESULT "\n");
    l->ops->close(l);
    server_close(&s);
}

static bool has_frame(void *arg)
{
    return atomic_load(&((struct server *)arg)->n_frames) > 0;
}

static void other_frames_come_with_none(void **state)
{
    struct mcp_link *l;
    struct server s;

    server_open(&s);
    l = link_with(&s, "/listens", NULL, 0);
    assert_int_equal(l->ops->listen(l, "2025-11-25", NULL), 0);
    assert_true(wait_until(has_frame, &s));
    l->ops->close(l);
    assert_string_equal(s.frames, "- " QUESTION "\n");
    server_close(&s);

    server_open(&s);
    l = link_with(&s, "/json", NULL, 0);
    assert_int_equal(request(l, "x", NULL), 0);
    assert_string_equal(s.frames, "- " RESULT "\n");
    l->ops->close(l);
    server_close(&s);
}

/* 2025-11-25, "Protocol Version Header": on all requests after the first. */
static void an_answer_of_ours_says_the_version_too(void **state)
{
    const struct net_wait wait = net_wait_of(WAIT_MS, NULL, NULL);
    struct mcp_link *l;
    struct server s;

    server_open(&s);
    l = link_with(&s, "/json", NULL, 0);
    assert_int_equal(request(l, "initialize", NULL), 0);
    assert_string_equal(s.seen_version, "");
    assert_int_equal(request(l, "x", NULL), 0);
    assert_int_equal(l->ops->send(l, &(struct mcp_send){ .frame = SLICE_LIT(RESULT), .wait = &wait }, NULL), 0);
    assert_string_equal(s.seen_version, "2025-11-25");
    l->ops->close(l);
    server_close(&s);
}

/* ---- gaps ---- */

static bool has_gap(void *arg)
{
    return atomic_load(&((struct server *)arg)->n_gaps) > 0;
}

static void a_stream_that_is_opened_again_is_reported(void **state)
{
    struct mcp_link *l;
    struct server s;

    server_open(&s);
    l = link_with(&s, "/events", NULL, 0);
    assert_int_equal(l->ops->listen(l, "2025-11-25", NULL), 0);
    assert_true(wait_until(has_gap, &s));
    l->ops->close(l);
    server_close(&s);
}

static void a_stream_that_opens_after_the_first_request_is_reported(void **state)
{
    struct mcp_link *l;
    struct server s;

    server_open(&s);
    l = link_with(&s, "/late", NULL, 0);
    assert_int_equal(l->ops->listen(l, "2025-11-25", NULL), 0);
    assert_int_equal(atomic_load(&s.n_gaps), 0);
    assert_int_equal(request(l, "x", NULL), 0);
    assert_true(wait_until(has_gap, &s));
    l->ops->close(l);
    assert_int_equal(atomic_load(&s.n_gaps), 1);
    server_close(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_session_id_has_at_most_the_limit),
        cmocka_unit_test(the_value_of_a_header_has_at_most_the_limit),
        cmocka_unit_test(so_many_headers_can_be_given_and_no_more),
        cmocka_unit_test(the_endpoint_of_an_sse_server_has_at_most_the_limit),
        cmocka_unit_test(a_frame_in_the_stream_of_an_answer_comes_with_its_request),
        cmocka_unit_test(other_frames_come_with_none),
        cmocka_unit_test(an_answer_of_ours_says_the_version_too),
        cmocka_unit_test(a_stream_that_is_opened_again_is_reported),
        cmocka_unit_test(a_stream_that_opens_after_the_first_request_is_reported),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
