#include "http/reply.h"
#include "base/clock.h"
#include "base/json_write.h"
#include "base/limits.h"
#include "http/gzip.h"

#include <stdlib.h>
#include <string.h>

enum { HEAD_BYTES = 1 << 20 };

void http_reply_init(struct http_reply *r)
{
    *r = (struct http_reply){ 0 };
    buf_init(&r->head, HEAD_BYTES);
    buf_init(&r->body, LIMIT_REPLY);
}

void http_reply_clear(struct http_reply *r)
{
    buf_clear(&r->head);
    buf_clear(&r->body);
    r->sent = 0;
}

void http_reply_move(struct http_reply *to, struct http_reply *from)
{
    http_reply_clear(to);
    *to = *from;
    http_reply_init(from);
}

void http_date_write(time_t time_s, char out[HTTP_DATE_SIZE])
{
    struct tm tm;

    if (!gmtime_r(&time_s, &tm) || strftime(out, HTTP_DATE_SIZE, "%a, %d %b %Y %H:%M:%S GMT", &tm) == 0)
        out[0] = '\0'; /* a year of more than four digits */
}

/* Made once per second in each thread. */
static const char *date_text(void)
{
    static _Thread_local char text[HTTP_DATE_SIZE];
    static _Thread_local int64_t text_s = -1;
    time_t now_s = (time_t)(clock_wall_ms() / 1000);

    if (now_s != text_s) {
        http_date_write(now_s, text);
        text_s = now_s;
    }
    return text;
}

static void add_number(struct buf *out, size_t number)
{
    char text[INT_TEXT_SIZE];

    buf_add(out, text, int_text(text, (int64_t)number));
}

static void add_header(struct buf *out, struct slice name_and_colon, const char *value)
{
    buf_add_slice(out, name_and_colon);
    buf_add_str(out, value);
    buf_add(out, "\r\n", 2);
}

static void add_status_line(struct buf *out, int status)
{
    buf_add_slice(out, SLICE_LIT("HTTP/1.1 "));
    add_number(out, (size_t)status);
    buf_add_char(out, ' ');
    buf_add_str(out, http_status_text(status));
    buf_add(out, "\r\n", 2);
}

static bool has_no_body(int status)
{
    return status == 204 || status == 304 || status < 200;
}

static void add_framing(struct buf *out, const struct http_reply_head *head)
{
    if (!head->is_stream && !has_no_body(head->status)) {
        buf_add_slice(out, SLICE_LIT("content-length: "));
        add_number(out, head->content_length);
        buf_add(out, "\r\n", 2);
    }
    if (head->is_stream && !head->is_http10)
        buf_add_slice(out, SLICE_LIT("transfer-encoding: chunked\r\n"));
    if (!head->keep_alive)
        buf_add_slice(out, SLICE_LIT("connection: close\r\n"));
    else if (head->is_http10)
        buf_add_slice(out, SLICE_LIT("connection: keep-alive\r\n"));
}

void http_reply_write_head(struct buf *out, const struct http_reply_head *head)
{
    add_status_line(out, head->status);
    add_header(out, SLICE_LIT("date: "), date_text());
    if (!has_no_body(head->status))
        add_header(out, SLICE_LIT("content-type: "), head->content_type);
    add_header(out, SLICE_LIT("x-request-id: "), head->request_id);
    if (head->is_gzip)
        buf_add_slice(out, SLICE_LIT("content-encoding: gzip\r\n"));
    if (head->has_vary)
        buf_add_slice(out, SLICE_LIT("vary: accept-encoding\r\n"));
    if (head->retry_after_s > 0)
        buf_printf(out, "retry-after: %d\r\n", head->retry_after_s);
    for (size_t i = 0; i < head->n_headers; i++) {
        buf_add_str(out, head->headers[i].name);
        add_header(out, SLICE_LIT(": "), head->headers[i].value);
    }
    add_framing(out, head);
    buf_add(out, "\r\n", 2);
}

static struct http_reply_head head_of(const struct http_exchange *x, const struct http_reply_way *way)
{
    return (struct http_reply_head){
        .status = x->response.status,
        .content_type = x->response.content_type,
        .request_id = x->request.id,
        .headers = x->response.headers,
        .n_headers = x->response.n_headers,
        .keep_alive = way->keep_alive,
        .is_http10 = way->is_http10,
    };
}

static void replace_by_refusal(struct http_exchange *x)
{
    struct buf *body = &x->response.body;
    bool is_starved = body->is_starved;
    struct json_writer w;

    x->response.status = is_starved ? 503 : 500;
    x->response.content_type = "application/json";
    buf_reset(body);
    json_write_init(&w, body);
    json_begin_object(&w);
    json_add_bool(&w, "success", false);
    json_add_string(&w, "error",
                    is_starved
                        ? "The service has no memory for this answer now: try again in a moment, or ask for less."
                        : "The answer is larger than the service allows; ask for less.");
    json_add_string(&w, "code", is_starved ? "OUT_OF_MEMORY" : "REPLY_TOO_LARGE");
    json_end(&w);
}

/* Only JSON, because only JSON answers of this service are large. An answer that has an encoding is not compressed, nor
 * one whose ETag names these bytes. */
static bool is_worth_compressing(const struct http_exchange *x)
{
    const struct http_response *response = &x->response;

    if (response->body.n <= HTTP_GZIP_FROM_BYTES || strncmp(response->content_type, "application/json", 16) != 0)
        return false;
    return !http_has_response_header(x, "content-encoding") && !http_has_response_header(x, "etag");
}

void http_reply_write(struct http_reply *out, struct http_exchange *x, const struct http_reply_way *way)
{
    struct http_reply_head head;

    if (x->response.body.overflowed)
        replace_by_refusal(x);
    head = head_of(x, way);
    head.has_vary = way->may_compress && is_worth_compressing(x);
    if (head.has_vary && http_accepts_gzip(http_header(&x->request, "accept-encoding")))
        head.is_gzip = http_gzip(buf_slice(&x->response.body), &out->body);
    if (!head.is_gzip) {
        buf_clear(&out->body);
        out->body = x->response.body;
        buf_init_soft(&x->response.body, LIMIT_REPLY, 0);
    }
    head.content_length = out->body.n;
    http_reply_write_head(&out->head, &head);
    if (x->request.is_head || has_no_body(head.status))
        buf_clear(&out->body);
}

void http_reply_write_stream_head(struct buf *out, const struct http_exchange *x, const struct http_reply_way *way)
{
    struct http_reply_head head = head_of(x, way);

    head.is_stream = true;
    http_reply_write_head(out, &head);
}

void http_reply_write_upgrade_head(struct buf *out, const struct http_exchange *x, const struct http_reply_way *way)
{
    struct http_reply_head head = head_of(x, way);

    http_reply_write_head(out, &head);
}
