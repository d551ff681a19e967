/* The service in front of the upstream of fixture.h: both on one loop; the clients are plain sockets.
 *
 *     AUTO(front_close) struct front f = { 0 };  front_open(&f, "/cut", NULL);   all = receive(&f, request(&f));
 */
#pragma once

#include "fixture.h"

#include "base/pool.h"
#include "llm/relay.h"

struct front {
    struct fixture fixture;
    struct http_server *server;
    struct pool *workers;
    struct llm_turns *turns;
    struct llm_relays *relays;
    uint16_t port;
    atomic_int n_started, n_failed, n_ended, n_whole;
    struct llm_usage used; /* by the last request that ended */
};

static inline void add_part(struct buf *out, const char *what, struct slice text)
{
    buf_printf(out, "data: %s %.*s\n\n", what, (int)text.n, text.p);
}

static inline void emit_text(struct buf *out, const struct llm_progress *t, struct slice text)
{
    add_part(out, "text", text);
}

static inline void emit_end(struct buf *out, const struct llm_progress *t)
{
    const struct llm_usage *usage = &t->answer->usage;

    buf_printf(out, "data: end %s %s %d+%d\n\n", t->provider, t->model, (int)usage->prompt_tokens,
               (int)usage->completion_tokens);
}

static inline void emit_error(struct buf *out, const struct llm_progress *t, const struct err *e)
{
    buf_printf(out, "event: error\ndata: %s %s\n\n", e->code, e->text);
}

static const struct llm_form form = { .text = emit_text, .end = emit_end, .error = emit_error };

/* A plain exchange of this server, in the form that api/resources/llm_stream.c uses. */
struct requesting {
    struct front *front;
    struct http_exchange *x;
    struct http_stream *stream;
    struct llm_relay *relay;
};

static inline bool is_gone(void *arg)
{
    return atomic_load(&((struct requesting *)arg)->x->is_gone);
}

static inline void on_gone(struct http_exchange *x, void *arg)
{
    llm_relay_on_gone(((struct requesting *)arg)->relay);
}

static inline void on_change(struct http_stream *s, void *arg)
{
    if (!http_stream_is_gone(s))
        llm_relay_on_room(((struct requesting *)arg)->relay);
}

static inline void watch(void *arg, struct llm_relay *relay)
{
    struct requesting *requesting = arg;

    requesting->relay = relay;
    http_exchange_on_gone(requesting->x, relay ? on_gone : NULL, requesting);
}

static inline void start(void *arg, const struct llm_progress *t)
{
    struct requesting *requesting = arg;

    http_exchange_on_gone(requesting->x, NULL, NULL);
    http_response_header(requesting->x, "x-provider", t->provider);
    requesting->stream = sse_start(requesting->x);
    http_exchange_forget_request(requesting->x);
    http_stream_on_change(requesting->stream, on_change, requesting);
    http_exchange_on_gone(requesting->x, on_gone, requesting);
}

static inline int push(void *arg, struct slice bytes)
{
    return http_stream_push(((struct requesting *)arg)->stream, bytes);
}

static inline void close_stream(void *arg)
{
    struct requesting *requesting = arg;

    http_exchange_on_gone(requesting->x, NULL, NULL);
    http_stream_on_change(requesting->stream, NULL, NULL);
    requesting->stream = http_stream_end(requesting->stream);
}

static inline void refuse_client(void *arg, int r, const struct err *e, int64_t retry_after_ms)
{
    struct requesting *requesting = arg;

    atomic_fetch_add(&requesting->front->n_failed, 1);
    requesting->x->response.status = 502;
    buf_printf(&requesting->x->response.body, "%s %lld %s", e->code, (long long)retry_after_ms, e->text);
    http_exchange_send(requesting->x);
}

static inline void count(void *arg, const struct llm_progress *t, bool is_whole)
{
    struct front *f = ((struct requesting *)arg)->front;

    f->used = t->answer->usage;
    atomic_fetch_add(&f->n_whole, is_whole);
    atomic_fetch_add(&f->n_ended, 1);
}

static const struct llm_client client = { is_gone, watch, start, push, close_stream, refuse_client, count };

/* "uuid:number:scope" of the test. */
static inline void on_return(struct front *f, struct http_exchange *x, const char *last_id, struct arena *a,
                             struct requesting *requesting)
{
    char *copy = arena_strdup(a, last_id);

    copy[36] = '\0';
    llm_relay_resume(f->relays, &(struct llm_resume){ .arena = a,
                                                      .uuid = copy,
                                                      .after = strtol(copy + 37, NULL, 10),
                                                      .scope = strchr(copy + 37, ':') + 1,
                                                      .client = &client,
                                                      .client_arg = requesting });
}

static inline void on_request(void *arg, struct http_exchange *x)
{
    struct front *f = arg;
    struct arena *a = arena_new();
    struct requesting *requesting = ARENA_NEW(a, struct requesting);
    struct llm_relay_start how = { .arena = a, .form = &form, .client = &client, .client_arg = requesting };

    *requesting = (struct requesting){ .front = f, .x = x };
    if (http_header(&x->request, "last-event-id")) {
        on_return(f, x, http_header(&x->request, "last-event-id"), a, requesting);
        return;
    }
    atomic_fetch_add(&f->n_started, 1);
    how.scope = http_header(&x->request, "x-scope") ? "mine" : NULL;
    how.plan = fixture_plan(&f->fixture, a, http_exchange_body_arena(x), true);
    http_exchange_forget_body(x);
    llm_relay_start(f->relays, &how);
}

static inline void open_front(void *arg)
{
    struct front *f = arg;
    const struct http_server_config c = { .on_request = on_request, .on_head = rig_head, .arg = f };

    assert_int_equal(llm_turns_new(f->fixture.rig.loop, f->fixture.settings, f->workers, &f->turns, NULL), 0);
    f->relays = llm_relays_new(f->turns, f->fixture.settings);
    assert_int_equal(http_server_start(f->fixture.rig.loop, &c, &f->server, NULL), 0);
    assert_int_equal(http_server_listen(f->server, "127.0.0.1", 0, &f->port, NULL), 0);
}

static inline void close_front(void *arg)
{
    struct front *f = arg;

    f->relays = llm_relays_free(f->relays);
    f->turns = llm_turns_free(f->turns);
}

static inline void front_open(struct front *f, const char *first, const char *fallback)
{
    const struct pool_config c = { .name = "readers", .n_min = 1, .n_max = 2, .max_waiting = 100 };

    fixture_open(&f->fixture, first, fallback);
    assert_int_equal(pool_start(&c, &f->workers, NULL), 0);
    loop_call(f->fixture.rig.loop, open_front, f);
}

static inline void stop_server(void *arg)
{
    struct front *f = arg;

    f->server = http_server_stop(f->server);
}

static inline void front_close(struct front *f)
{
    loop_call(f->fixture.rig.loop, stop_server, f);
    f->workers = pool_stop(f->workers);
    loop_call(f->fixture.rig.loop, close_front, f);
    fixture_close(&f->fixture);
    assert_int_equal(atomic_load(&f->n_ended), atomic_load(&f->n_started));
}

static inline int request_with(struct front *f, const char *header)
{
    struct sockaddr_in to = { .sin_family = AF_INET,
                              .sin_port = htons(f->port),
                              .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    const char *request =
        arena_printf(f->fixture.a, "POST /chat HTTP/1.0\r\nhost: x\r\n%scontent-length: 0\r\n\r\n", header);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &(int){ 4096 }, sizeof(int)), 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof(to)), 0);
    assert_int_equal(send(fd, request, strlen(request), MSG_NOSIGNAL), strlen(request));
    return fd;
}

static inline int request(struct front *f)
{
    return request_with(f, "");
}

static inline char *receive(struct front *f, int fd)
{
    size_t size = MIB(32), n = 0;
    char *all = arena_alloc(f->fixture.a, size);
    ssize_t got;

    while ((got = recv(fd, all + n, size - 1 - n, 0)) > 0)
        n += (size_t)got;
    close(fd);
    return all;
}

static inline void assert_has(const char *text, const char *part)
{
    if (!strstr(text, part))
        fail_msg("no %s in %.2000s", part, text);
}
