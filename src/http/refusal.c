#include "http/refusal.h"
#include "base/json_write.h"

#include <assert.h>

#define ROW(status, code, text)                                                                                        \
    {                                                                                                                  \
        status, code, text                                                                                             \
    }

static const struct http_refusal_row rows[REFUSALS] = {
    [REFUSE_REQUEST_LINE] = ROW(
        400, "BAD_REQUEST", "The request line must be a method, a target and HTTP/1.1, with one space between them."),
    [REFUSE_LINE_END] = ROW(400, "BAD_REQUEST", "Each line of the request head must end with CR and LF."),
    [REFUSE_TARGET] = ROW(
        400, "BAD_REQUEST",
        "The request target must be a path that starts with '/', or an http:// URL, without spaces, control characters or '#'."),
    [REFUSE_TARGET_LENGTH] = ROW(414, "URI_TOO_LONG", "The request target is longer than the 8192 bytes allowed."),
    [REFUSE_PATH] =
        ROW(400, "BAD_PATH",
            "The path must be percent-encoded UTF-8 without '.' or '..' segments, backslashes or control characters."),
    [REFUSE_VERSION] = ROW(505, "VERSION_NOT_SUPPORTED", "The protocol version must be HTTP/1.1 or HTTP/1.0."),
    [REFUSE_METHOD] = ROW(501, "NOT_IMPLEMENTED", "The method must be GET, HEAD, POST, PUT, PATCH, DELETE or OPTIONS."),
    [REFUSE_HEADER_NAME] =
        ROW(400, "BAD_REQUEST", "A header line must be a name, a colon directly after it, and a value."),
    [REFUSE_HEADER_VALUE] = ROW(400, "BAD_REQUEST", "A header value must not contain control characters."),
    [REFUSE_HEADER_FOLDED] = ROW(400, "BAD_REQUEST", "A header must not be continued on a second line."),
    [REFUSE_HEADER_BYTES] = ROW(431, "HEADERS_TOO_LARGE", "The request head is larger than the 32768 bytes allowed."),
    [REFUSE_HEADER_COUNT] = ROW(431, "HEADERS_TOO_LARGE", "The request has more than the 100 header lines allowed."),
    [REFUSE_HOST_MISSING] = ROW(400, "BAD_REQUEST", "An HTTP/1.1 request must have a Host header."),
    [REFUSE_HOST_TWICE] = ROW(400, "BAD_REQUEST", "A request must have only one Host header."),
    [REFUSE_HOST] = ROW(400, "BAD_REQUEST", "The Host header must be a host name or address with an optional port."),
    [REFUSE_HOST_DIFFERS] = ROW(400, "BAD_REQUEST", "The host of the request target must equal the Host header."),
    [REFUSE_LENGTH] = ROW(400, "BAD_REQUEST", "Content-Length must be a decimal number without sign."),
    [REFUSE_LENGTH_TWICE] = ROW(400, "BAD_REQUEST", "A request must have only one Content-Length header."),
    [REFUSE_LENGTH_AND_CODING] =
        ROW(400, "BAD_REQUEST", "A request must not have both Content-Length and Transfer-Encoding."),
    [REFUSE_CODING] = ROW(501, "NOT_IMPLEMENTED", "The only Transfer-Encoding understood is chunked."),
    [REFUSE_CODING_TWICE] = ROW(400, "BAD_REQUEST", "A request must have only one Transfer-Encoding header."),
    [REFUSE_CODING_VERSION] = ROW(400, "BAD_REQUEST", "Transfer-Encoding needs HTTP/1.1."),
    [REFUSE_CHUNK] = ROW(400, "BAD_REQUEST", "The chunked body is malformed."),
    [REFUSE_TRAILER] = ROW(400, "BAD_REQUEST", "The trailer after the chunked body is malformed or too large."),
    [REFUSE_BODY_BYTES] = ROW(413, "BODY_TOO_LARGE", "The request body is larger than this route allows."),
    [REFUSE_EXPECTATION] = ROW(417, "EXPECTATION_FAILED", "The only expectation understood is 100-continue."),
    [REFUSE_HEAD_SLOW] = ROW(408, "REQUEST_TIMEOUT", "The request head did not arrive in time."),
    [REFUSE_BODY_SLOW] = ROW(408, "REQUEST_TIMEOUT", "The request body did not arrive in time, or too slowly."),
    [REFUSE_CONNECTIONS] = ROW(
        503, "OVERLOADED",
        "The budget `connections` of the service is used up: it has as many as the setting http.max_connections allows; try again soon."),
    [REFUSE_MEMORY] =
        ROW(503, "OUT_OF_MEMORY",
            "The service has no memory for this request now: try again in a moment, or send less at a time."),
};

const struct http_refusal_row *http_refusal_row(enum http_refusal why)
{
    assert(why > REFUSE_NONE && why < REFUSALS);
    return &rows[why];
}

static void write_envelope(const struct http_refusal_row *row, struct buf *out)
{
    struct json_writer w;

    json_write_init(&w, out);
    json_begin_object(&w);
    json_add_bool(&w, "success", false);
    json_add_string(&w, "error", row->text);
    json_add_string(&w, "code", row->code);
    json_end(&w);
}

void http_refusal_write(const struct http_refusal_row *row, const char *request_id, bool is_head,
                        struct http_reply *out)
{
    struct http_reply_head head = { .status = row->status,
                                    .content_type = "application/json",
                                    .request_id = request_id };

    if (out->body.n == 0)
        write_envelope(row, &out->body);
    head.content_length = out->body.n;
    head.retry_after_s = row->status == 503 || row->status == 429 ? 1 : 0;
    http_reply_write_head(&out->head, &head);
    if (is_head)
        buf_clear(&out->body);
}
