#include "mcp/http.h"

#include "../net/upstream.h"
#include "base/limits.h"
#include "base/thread.h"
#include "mcp/http_private.h"

/* A server that acts by the path, and notes what it was asked. */
struct server {
    struct rig rig;
    pthread_mutex_t lock;
    char heard[4096];         /* "POST /path version=… session=…|body\n", one line a request */
    struct http_stream *open; /* of /hang and /quiet */
    atomic_int n_requests;
    char frames[4096]; /* what came in, one line a frame */
    char closed[64];   /* the code of on_closed */
    atomic_int n_frames, n_closed;
};

static void note_request(struct server *s, const struct http_request *q)
{
    static const char *const names[] = { "mcp-protocol-version", "mcp-session-id", "mcp-method", "mcp-name",
                                         "last-event-id",        "authorization",  "mcp-param-a" };
    size_t n;

    pthread_mutex_lock(&s->lock);
    n = strlen(s->heard);
    n += (size_t)snprintf(s->heard + n, sizeof(s->heard) - n, "%s %s", http_method_name(q->method), q->path);
    for (size_t i = 0; i < ARRAY_SIZE(names); i++)
        if (http_header(q, names[i]))
            n += (size_t)snprintf(s->heard + n, sizeof(s->heard) - n, " %s=%s", names[i], http_header(q, names[i]));
    snprintf(s->heard + n, sizeof(s->heard) - n, "\n");
    pthread_mutex_unlock(&s->lock);
    atomic_fetch_add(&s->n_requests, 1);
}

static void say(struct http_exchange *x, int status, const char *type, const char *body)
{
    x->response.status = status;
    if (type)
        x->response.content_type = type;
    buf_add_str(&x->response.body, body);
    http_exchange_send(x);
}

static struct http_stream *say_events(struct http_exchange *x, const char *text)
{
    struct http_stream *s;

    s = sse_start(x);
    assert_int_equal(http_stream_push(s, slice_of(text)), 0);
    return s;
}

#define RESULT "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}"
#define NOTICE "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\"}"

static void answer_get(struct server *s, struct http_exchange *x)
{
    const char *path = x->request.path, *last = http_header(&x->request, "last-event-id");

    if (strcmp(path, "/broken") == 0 && last)
        http_stream_end(say_events(x, "id: e2\ndata: " RESULT "\n\n"));
    else if (strcmp(path, "/listens") == 0)
        s->open = say_events(x, "data: " NOTICE "\n\n");
    else if (strcmp(path, "/sse") == 0)
        s->open = say_events(x, "event: endpoint\ndata: /messages?id=1\n\n");
    else if (strcmp(path, "/sse_away") == 0)
        s->open = say_events(x, "event: endpoint\ndata: http://127.0.0.1:1/messages\n\n");
    else if (strcmp(path, "/sse_none") == 0)
        http_stream_end(say_events(x, "data: " NOTICE "\n\n"));
    else
        say(x, 405, NULL, "");
}

static void answer_post(struct server *s, struct http_exchange *x)
{
    const char *path = x->request.path, *authorization = http_header(&x->request, "authorization");

    if (strcmp(path, "/messages") == 0) {
        assert_int_equal(http_stream_push(s->open, SLICE_LIT("data: " RESULT "\n\n")), 0);
        say(x, 202, NULL, "Accepted");
    } else if (strcmp(path, "/json") == 0 || strcmp(path, "/listens") == 0) {
        http_response_header(x, "mcp-session-id", "s-1");
        say(x, 200, "application/json", RESULT);
    } else if (strcmp(path, "/events") == 0) /* stays open after the response */
        s->open =
            say_events(x, "data: " NOTICE "\n\n: comment\n\nevent: other\ndata: x\n\ndata:\n\ndata: " RESULT "\n\n");
    else if (strcmp(path, "/broken") == 0)
        http_stream_end(say_events(x, "id: e1\nretry: 100\ndata:\n\nid: e9\ndata: half"));
    else if (strcmp(path, "/short") == 0)
        http_stream_end(say_events(x, "data: " NOTICE "\n\n"));
    else if (strcmp(path, "/hang") == 0)
        s->open = say_events(x, ":\n\n");
    else if (strcmp(path, "/202") == 0)
        say(x, 202, NULL, "");
    else if (strcmp(path, "/405") == 0)
        say(x, 405, "text/plain", "not \x1b[1m here");
    else if (strcmp(path, "/400") == 0)
        say(x, 400, "application/json",
            "{\"jsonrpc\":\"2.0\",\"error\":{\"code\":-32022,\"message\":\"m\",\"data\":{\"supported\":[\"2026-07-28\"]}},\"id\":null}");
    else if (strcmp(path, "/session") == 0 && http_header(&x->request, "mcp-session-id"))
        say(x, 404, NULL, "");
    else if (strcmp(path, "/session") == 0) {
        http_response_header(x, "mcp-session-id", "s-2");
        say(x, 200, "application/json", RESULT);
    } else if (strcmp(path, "/login") == 0 && (!authorization || strcmp(authorization, "Bearer good") != 0)) {
        http_response_header(x, "www-authenticate", "Bearer realm=\"x\"");
        http_response_header(x, "www-authenticate", "Basic");
        say(x, 401, NULL, "");
    } else if (strcmp(path, "/login") == 0)
        say(x, 200, "application/json", RESULT);
    else if (strcmp(path, "/moved") == 0) {
        http_response_header(x, "location", "json");
        say(x, 307, NULL, "");
    } else if (strcmp(path, "/away") == 0) {
        http_response_header(x, "location", "http://127.0.0.2:1/json");
        say(x, 308, NULL, "");
    } else if (strcmp(path, "/circle") == 0) {
        http_response_header(x, "location", "/circle");
        say(x, 308, NULL, "");
    } else if (strcmp(path, "/large") == 0) {
        memset(buf_reserve(&x->response.body, LIMIT_MCP_FRAME + 1), ' ', LIMIT_MCP_FRAME + 1);
        x->response.body.n = LIMIT_MCP_FRAME + 1;
        say(x, 200, "application/json", "");
    } else
        say(x, 404, NULL, "");
}

static void serve(void *arg, struct http_exchange *x)
{
    struct server *s = arg;

    note_request(s, &x->request);
    if (x->request.method == HTTP_GET)
        answer_get(s, x);
    else if (x->request.method == HTTP_POST)
        answer_post(s, x);
    else
        say(x, 200, NULL, "");
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
}

static void note_frame(void *arg, struct slice frame, const struct json_rpc_id *request)
{
    struct server *s = arg;
    size_t n;

    pthread_mutex_lock(&s->lock);
    n = strlen(s->frames);
    snprintf(s->frames + n, sizeof(s->frames) - n, "%.*s\n", (int)MIN(frame.n, (size_t)300), frame.p);
    pthread_mutex_unlock(&s->lock);
    atomic_fetch_add(&s->n_frames, 1);
}

static void note_closed(void *arg, const struct err *why)
{
    struct server *s = arg;

    snprintf(s->closed, sizeof(s->closed), "%s", why->code);
    atomic_fetch_add(&s->n_closed, 1);
}

static struct mcp_link *link_to(struct server *s, const char *path, const struct mcp_authorizer *authorizer)
{
    const struct mcp_link_events on = { .on_frame = note_frame, .on_closed = note_closed, .arg = s };
    const struct mcp_http_config c = { .url = rig_url(&s->rig, path), .authorizer = authorizer };
    struct mcp_link *l = NULL;

    assert_int_equal(strncmp(path, "/sse", 4) == 0 ? mcp_sse_open(&c, &l, NULL) : mcp_http_open(&c, &l, NULL), 0);
    assert_int_equal(l->ops->start(l, &on, NULL), 0);
    return l;
}

static int request_as(struct mcp_link *l, const char *method, const char *name, const char *version, struct err *e)
{
    const struct net_wait wait = net_wait_of(WAIT_MS, NULL, NULL);
    const struct http_call_header param = { "Mcp-Param-A", "1" };

    return l->ops->send(l,
                        &(struct mcp_send){ .frame = SLICE_LIT("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"x\"}"),
                                            .method = method,
                                            .name = name,
                                            .version = version,
                                            .is_request = true,
                                            .params = &param,
                                            .n_params = 1,
                                            .wait = &wait },
                        e);
}

static int request(struct mcp_link *l, struct err *e)
{
    return request_as(l, "x", NULL, "2025-11-25", e);
}

static void a_session_begins_with_initialize_and_ends_at_the_close(void **state)
{
    struct server s;
    struct mcp_link *l;

    server_open(&s);
    l = link_to(&s, "/json", NULL);
    assert_int_equal(request_as(l, "initialize", NULL, NULL, NULL), 0);
    assert_int_equal(request_as(l, "tools/call", "a", "2025-11-25", NULL), 0);
    assert_null(l->ops->close(l));
    assert_string_equal(s.frames, RESULT "\n" RESULT "\n");
    assert_string_equal(s.heard, "POST /json\n"
                                 "POST /json mcp-protocol-version=2025-11-25 mcp-session-id=s-1\n"
                                 "DELETE /json mcp-protocol-version=2025-11-25 mcp-session-id=s-1\n");
    assert_int_equal(s.n_closed, 1);
    assert_string_equal(s.closed, "MCP_CLOSED");
    server_close(&s);
}

static void the_stateless_era_names_method_and_target_in_headers(void **state)
{
    struct server s;
    struct mcp_link *l;

    server_open(&s);
    l = link_to(&s, "/json", NULL);
    assert_int_equal(request_as(l, "initialize", NULL, NULL, NULL), 0);
    assert_int_equal(request_as(l, "tools/call", "caf\xc3\xa9", "2026-07-28", NULL), 0);
    assert_int_equal(l->ops->send(l,
                                  &(struct mcp_send){ .frame = SLICE_LIT("{}"),
                                                      .method = "notifications/cancelled",
                                                      .version = "2026-07-28",
                                                      .wait = &(struct net_wait){ 0 } },
                                  NULL),
                     0);
    assert_non_null(strstr(s.heard, "\nPOST /json mcp-protocol-version=2026-07-28 mcp-method=tools/call "
                                    "mcp-name==?base64?Y2Fmw6k=?= mcp-param-a=1\n"));
    assert_int_equal(s.n_requests, 2);
    l->ops->close(l);
    server_close(&s);
}

static void values_of_headers_are_encoded_where_they_must(void **state)
{
    static const struct {
        const char *text, *value;
    } cases[] = {
        { "us-west1", "us-west1" },
        { "", "" },
        { "a b\tc", "a b\tc" },
        { " padded ", "=?base64?IHBhZGRlZCA=?=" },
        { "line1\nline2", "=?base64?bGluZTEKbGluZTI=?=" },
        { "Hello, \xe4\xb8\x96\xe7\x95\x8c", "=?base64?SGVsbG8sIOS4lueVjA==?=" },
        { "=?base64?literal?=", "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?=" },
        { "=?base64?", "=?base64?" },
    };
    AUTO(arena_freep) struct arena *a = arena_new();

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        assert_string_equal(mcp_http_value(a, cases[i].text), cases[i].value);
}

static void a_stream_is_read_up_to_the_response(void **state)
{
    struct server s;
    struct mcp_link *l;

    server_open(&s);
    l = link_to(&s, "/events", NULL);
    assert_int_equal(request(l, NULL), 0);
    assert_string_equal(s.frames, NOTICE "\n" RESULT "\n");
    l->ops->close(l);
    server_close(&s);
}

static void a_broken_stream_is_resumed_after_its_last_whole_event(void **state)
{
    struct server s;
    struct mcp_link *l;

    server_open(&s);
    l = link_to(&s, "/broken", NULL);
    assert_int_equal(request(l, NULL), 0);
    assert_string_equal(s.frames, RESULT "\n");
    assert_non_null(strstr(s.heard, "\nGET /broken mcp-protocol-version=2025-11-25 last-event-id=e1\n"));
    l->ops->close(l);
    server_close(&s);
}

static void the_stateless_era_resumes_nothing(void **state)
{
    struct server s;
    struct mcp_link *l;

    server_open(&s);
    l = link_to(&s, "/broken", NULL);
    assert_int_equal(request_as(l, "x", NULL, "2026-07-28", NULL), -ECONNRESET);
    assert_int_equal(s.n_requests, 1);
    l->ops->close(l);
    server_close(&s);
}

static void what_is_no_response_is_an_error(void **state)
{
    static const struct {
        const char *path;
        int r;
        const char *code, *text;
    } cases[] = {
        { "/short", -ECONNRESET, "UPSTREAM_CLOSED", "before it was complete" },
        { "/202", -EPROTO, "MCP_NO_ANSWER", "accepted a request" },
        { "/405", -EPROTO, "MCP_NO_ANSWER", "status 405: not \\u001b[1m here" },
        { "/404", -EPROTO, "MCP_NO_ANSWER", "status 404." },
        { "/login", -EACCES, "MCP_LOGIN_REQUIRED", "login" },
        { "/away", -EPROTO, "MCP_NO_ANSWER", "redirects to another server, http://127.0.0.2:1/json" },
        { "/circle", -EPROTO, "MCP_NO_ANSWER", "more than 3 times" },
        { "/large", -E2BIG, "MCP_FRAME_TOO_LARGE", "16777216 bytes" },
    };
    struct server s;

    server_open(&s);
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct mcp_link *l = link_to(&s, cases[i].path, NULL);
        struct err e = { 0 };

        assert_int_equal(request(l, &e), cases[i].r);
        assert_string_equal(e.code, cases[i].code);
        assert_non_null(strstr(e.text, cases[i].text));
        l->ops->close(l);
    }
    server_close(&s);
}

static void an_error_without_id_gets_the_id_of_the_request(void **state)
{
    struct server s;
    struct mcp_link *l;

    server_open(&s);
    l = link_to(&s, "/400", NULL);
    assert_int_equal(request(l, NULL), 0);
    assert_string_equal(s.frames,
                        "{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":-32022,\"message\":\"m\",\"data\":{"
                        "\"supported\":[\"2026-07-28\"]}}}\n");
    l->ops->close(l);
    server_close(&s);
}

static void a_forgotten_session_is_told(void **state)
{
    struct server s;
    struct mcp_link *l;
    struct err e = { 0 };

    server_open(&s);
    l = link_to(&s, "/session", NULL);
    assert_int_equal(request_as(l, "initialize", NULL, NULL, NULL), 0);
    assert_int_equal(request(l, &e), -ENOTCONN);
    assert_string_equal(e.code, "MCP_SESSION_LOST");
    l->ops->close(l);
    server_close(&s);
}

static void a_redirect_within_the_origin_is_followed_and_kept(void **state)
{
    struct server s;
    struct mcp_link *l;

    server_open(&s);
    l = link_to(&s, "/moved", NULL);
    assert_int_equal(request(l, NULL), 0);
    assert_int_equal(request(l, NULL), 0);
    assert_int_equal(s.n_requests, 3);
    l->ops->close(l);
    server_close(&s);
}

struct login {
    const char *value, *next;
    char challenge[100], used[40];
    int n_refused;
};

static int give_value(void *arg, const struct net_wait *wait, struct arena *a, const char **ret, struct err *e)
{
    *ret = ((struct login *)arg)->value;
    return 0;
}

static int note_refusal(void *arg, const struct mcp_refusal *refusal, const struct net_wait *wait, struct err *e)
{
    struct login *login = arg;

    login->n_refused++;
    snprintf(login->challenge, sizeof(login->challenge), "%s", refusal->challenge);
    snprintf(login->used, sizeof(login->used), "%s", refusal->used ? refusal->used : "-");
    login->value = login->next;
    return 0;
}

static void a_refused_login_is_told_to_the_authorizer(void **state)
{
    struct login login = { .value = "Bearer old", .next = "Bearer good" }, bad = { .next = "Bearer bad" };
    const struct mcp_authorizer good_one = { .value = give_value, .refused = note_refusal, .arg = &login },
                                bad_one = { .value = give_value, .refused = note_refusal, .arg = &bad };
    struct server s;
    struct mcp_link *l;

    server_open(&s);
    l = link_to(&s, "/login", &good_one);
    assert_int_equal(request(l, NULL), 0);
    assert_string_equal(login.challenge, "Bearer realm=\"x\", Basic");
    assert_string_equal(login.used, "Bearer old");
    l->ops->close(l);
    l = link_to(&s, "/login", &bad_one);
    assert_int_equal(request(l, NULL), -EACCES);
    assert_int_equal(bad.n_refused, 2);
    l->ops->close(l);
    server_close(&s);
}

static bool has_frame(void *arg)
{
    return atomic_load(&((struct server *)arg)->n_frames) > 0;
}

static bool has_heard_get(void *arg)
{
    struct server *s = arg;
    bool has;

    pthread_mutex_lock(&s->lock);
    has = strstr(s->heard, "GET /json") != NULL;
    pthread_mutex_unlock(&s->lock);
    return has;
}

static void unasked_frames_come_by_the_stream_of_listen(void **state)
{
    struct server s;
    struct mcp_link *l;

    server_open(&s);
    l = link_to(&s, "/listens", NULL);
    assert_int_equal(l->ops->listen(l, "2025-11-25", NULL), 0);
    assert_true(wait_until(has_frame, &s));
    assert_string_equal(s.frames, NOTICE "\n");
    l->ops->close(l);
    l = link_to(&s, "/json", NULL); /* 405: there is none */
    assert_int_equal(l->ops->listen(l, "2025-11-25", NULL), 0);
    assert_true(wait_until(has_heard_get, &s));
    l->ops->close(l);
    server_close(&s);
}

static void *ask_and_hang(void *arg)
{
    struct err e = { 0 };

    assert_int_equal(request(arg, &e), -EPIPE);
    assert_string_equal(e.code, "MCP_CLOSED");
    return NULL;
}

static bool is_asked(void *arg)
{
    return atomic_load(&((struct server *)arg)->n_requests) > 0;
}

static void closing_ends_what_is_in_flight(void **state)
{
    struct server s;
    struct mcp_link *l;
    pthread_t thread;

    server_open(&s);
    l = link_to(&s, "/hang", NULL);
    assert_int_equal(thread_start(&thread, "ask", ask_and_hang, l), 0);
    assert_true(wait_until(is_asked, &s));
    l->ops->close(l);
    pthread_join(thread, NULL);
    server_close(&s);
}

static void over_sse_frames_go_to_the_endpoint_and_come_by_the_stream(void **state)
{
    struct server s;
    struct mcp_link *l;

    server_open(&s);
    l = link_to(&s, "/sse", NULL);
    assert_int_equal(request(l, NULL), 0);
    assert_true(wait_until(has_frame, &s));
    assert_string_equal(s.frames, RESULT "\n");
    assert_string_equal(s.heard, "GET /sse\nPOST /messages mcp-protocol-version=2025-11-25\n");
    l->ops->close(l);
    assert_int_equal(s.n_closed, 1);
    server_close(&s);
}

static bool is_closed(void *arg)
{
    return atomic_load(&((struct server *)arg)->n_closed) > 0;
}

static void an_sse_server_without_endpoint_of_its_origin_is_closed(void **state)
{
    static const struct {
        const char *path, *code, *text;
    } cases[] = {
        { "/sse_away", "MCP_NO_ANSWER", "another server, http://127.0.0.1:1/messages" },
        { "/sse_none", "MCP_CLOSED", "ended the connection" },
        { "/sse_405", "MCP_NO_ANSWER", "HTTP status 405" },
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct err e = { 0 };
        struct server s;
        struct mcp_link *l;

        server_open(&s);
        l = link_to(&s, cases[i].path, NULL);
        assert_int_equal(request(l, &e), -EPIPE);
        assert_string_equal(e.code, cases[i].code);
        assert_non_null(strstr(e.text, cases[i].text));
        assert_true(wait_until(is_closed, &s));
        assert_string_equal(s.closed, cases[i].code);
        l->ops->close(l);
        assert_int_equal(s.n_closed, 1);
        server_close(&s);
    }
}

static void headers_of_the_transport_cannot_be_configured(void **state)
{
    static const struct {
        const char *name, *value;
        int r;
    } cases[] = {
        { "X-Api-Key", "secret", 0 },
        { "Authorization", "Bearer x", 0 },
        { "content-type", "x", -EINVAL },
        { "Mcp-Param-X", "x", -EINVAL },
        { "Host", "x", -EINVAL },
        { "a b", "x", -EINVAL },
        { "", "x", -EINVAL },
        { "X-A", "one\ntwo", -EINVAL },
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        assert_int_equal(mcp_http_check_header(cases[i].name, cases[i].value, NULL), cases[i].r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_session_begins_with_initialize_and_ends_at_the_close),
        cmocka_unit_test(the_stateless_era_names_method_and_target_in_headers),
        cmocka_unit_test(values_of_headers_are_encoded_where_they_must),
        cmocka_unit_test(a_stream_is_read_up_to_the_response),
        cmocka_unit_test(a_broken_stream_is_resumed_after_its_last_whole_event),
        cmocka_unit_test(the_stateless_era_resumes_nothing),
        cmocka_unit_test(what_is_no_response_is_an_error),
        cmocka_unit_test(an_error_without_id_gets_the_id_of_the_request),
        cmocka_unit_test(a_forgotten_session_is_told),
        cmocka_unit_test(a_redirect_within_the_origin_is_followed_and_kept),
        cmocka_unit_test(a_refused_login_is_told_to_the_authorizer),
        cmocka_unit_test(unasked_frames_come_by_the_stream_of_listen),
        cmocka_unit_test(closing_ends_what_is_in_flight),
        cmocka_unit_test(over_sse_frames_go_to_the_endpoint_and_come_by_the_stream),
        cmocka_unit_test(an_sse_server_without_endpoint_of_its_origin_is_closed),
        cmocka_unit_test(headers_of_the_transport_cannot_be_configured),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
