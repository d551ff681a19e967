#include "api/answer.h"

#include "api/errors.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"

static void log_answer(const struct trace *t, int status, int64_t took_us, const struct err *e)
{
    static const char *const callers[] = {
        [CALLER_NOBODY] = "nobody", [CALLER_KEY] = "key",     [CALLER_APP] = "app",
        [CALLER_ADMIN] = "admin",   [CALLER_AGENT] = "agent", [CALLER_LOCAL] = "local"
    };
    enum log_level level = status >= 500 ? LOG_WARN : t->is_quiet && status < 400 ? LOG_DEBUG : LOG_INFO;

    if (!log_enabled(level))
        return;
    if (status < 400)
        log_write(level, "api", t->request_id, "%s %s %d %.1f ms, %s", t->method, t->path, status,
                  (double)took_us / 1e3, callers[t->caller]);
    else
        log_write(level, "api", t->request_id, "%s %s %d %.1f ms, %s: %s %s", t->method, t->path, status,
                  (double)took_us / 1e3, callers[t->caller], e->code, LOG_Q(e->text));
}

void trace_end(const struct trace *t, int status, const struct err *e)
{
    int64_t took_us = clock_mono_us() - t->arrived_us;

    tally_add(t->tally, status, took_us);
    log_answer(t, status, took_us, e);
}

void answer_send(struct http_exchange *x, const struct trace *t, int status, const struct err *e)
{
    int64_t took_us = clock_mono_us() - t->arrived_us;

    tally_add(t->tally, status, took_us);
    http_exchange_send(x);
    log_answer(t, status, took_us, e);
}

void answer_begin(const struct route *route, struct response *res)
{
    res->exchange->response.status = route->status ? route->status : 200;
    json_write_init(&res->json, &res->exchange->response.body);
    json_begin_object(&res->json);
    if (!route->is_bare)
        json_add_bool(&res->json, "success", true);
}

int answer_end(struct response *res, struct err *e)
{
    if (!res->is_raw)
        json_end(&res->json);
    if (res->exchange->response.body.is_starved)
        return memory_refuse(e);
    if (res->exchange->response.body.overflowed)
        return err_set(e, -EFBIG, "REPLY_TOO_LARGE", "The answer is larger than the service allows; ask for less.");
    return 0;
}

/* The official clients of OpenAI and Anthropic retry after any 503 unless x-should-retry is false. */
static void add_retry_headers(struct http_exchange *x, int r, const struct err *e)
{
    char seconds[24];

    if (r != -EBUSY && !api_error_passes(r)) {
        http_response_header(x, "x-should-retry", "false");
        return;
    }
    if (http_has_response_header(x, "retry-after"))
        return;
    snprintf(seconds, sizeof(seconds), "%lld", (long long)(MAX(e->retry_after_ms, (int64_t)1) + 999) / 1000);
    http_response_header(x, "retry-after", seconds);
}

int answer_write_error(struct http_exchange *x, const struct trace *t, int r, const struct err *e)
{
    static const struct err inside = {
        .code = "INTERNAL_ERROR",
        .text = "The service failed to answer; its log names the reason under this request id."
    };
    int status = api_error_status(r, e);
    bool is_inside = status == 500 && strcmp(e->code, "REPLY_TOO_LARGE") != 0;
    struct err shown = is_inside ? inside : *e;
    struct json_writer w;

    if (t->caller != CALLER_ADMIN)
        err_strip_hidden(&shown);
    x->response.content_type = "application/json";
    buf_reset(&x->response.body);
    json_write_init(&w, &x->response.body);
    json_begin_object(&w);
    status = t->error_form->write(&w, x, status, &shown);
    json_end(&w);
    x->response.status = status;
    if (status == 503 || status == 429)
        add_retry_headers(x, r, e);
    if (status == 401)
        http_response_header(x, "www-authenticate", "Bearer");
    return status;
}

/* An answer may hold secrets (no-store), and its content type is not to be guessed (nosniff). The answers of the loop
 * hold no secrets. */
void answer_add_safety_headers(struct http_exchange *x, const struct trace *t)
{
    if (t->is_quiet)
        return;
    if (!http_has_response_header(x, "cache-control"))
        http_response_header(x, "cache-control", "no-store");
    if (!http_has_response_header(x, "x-content-type-options"))
        http_response_header(x, "x-content-type-options", "nosniff");
}

void answer_send_error(struct http_exchange *x, const struct trace *t, int r, const struct err *e)
{
    int status = answer_write_error(x, t, r, e);

    answer_add_safety_headers(x, t);
    answer_send(x, t, status, e);
}
