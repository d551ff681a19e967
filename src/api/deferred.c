/* Answers that begin after their handler has returned. */
#include "api/answer.h"
#include "http/sse.h"

/* In the exchange's arena. */
struct deferred {
    struct http_exchange *x;
    const struct route *route;
    struct trace trace;
};

struct deferred *request_defer(struct request *req, struct response *res)
{
    struct deferred *d = ARENA_NEW(req->arena, struct deferred);

    buf_clear(&req->exchange->response.body);
    *d = (struct deferred){ .x = req->exchange, .route = req->route, .trace = *req->trace };
    d->trace.caller = req->caller->kind;
    res->is_streamed = res->is_deferred = true;
    return d;
}

struct http_stream *deferred_stream(struct deferred *d, const char *content_type)
{
    struct http_stream *stream = content_type ? stream_start_as(d->x, content_type) : sse_start(d->x);

    trace_end(&d->trace, 200, NULL);
    return stream;
}

void deferred_fail(struct deferred *d, int r, const struct err *e)
{
    struct trace trace = d->trace; /* d ends with the exchange */

    answer_send_error(d->x, &trace, r, e);
}

void deferred_answer(struct deferred *d, void (*write)(struct json_writer *w, const void *arg), const void *arg)
{
    struct response res = { .exchange = d->x };
    struct trace trace = d->trace;
    struct err e;
    int r;

    err_init(&e);
    answer_begin(d->route, &res);
    write(&res.json, arg);
    r = answer_end(&res, &e);
    if (r < 0) {
        answer_send_error(d->x, &trace, r, &e);
        return;
    }
    answer_add_safety_headers(d->x, &trace);
    answer_send(d->x, &trace, d->x->response.status, &e);
}
