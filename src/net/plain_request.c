#include "net/plain.h"

#include <string.h>
#include <strings.h>

enum { MOST_BYTES = 64 << 10, USUAL_BYTES = 500 };

/* A header that changes how the request is delimited or the connection is used is a matter of libcurl. */
static bool is_plain_header(const char *name)
{
    static const char *const others[] = { "host",       "content-length", "transfer-encoding",
                                          "connection", "expect",         "upgrade",
                                          "te",         "trailer" };

    for (size_t i = 0; i < ARRAY_SIZE(others); i++)
        if (strcasecmp(name, others[i]) == 0)
            return false;
    return true;
}

static bool has_header(const struct http_call_request *request, const char *name)
{
    for (size_t i = 0; i < request->n_headers; i++)
        if (strcasecmp(request->headers[i].name, name) == 0)
            return true;
    return false;
}

bool plain_serves(const struct http_call_request *request)
{
    bool has_body = request->body.n > 0;

    if (request->guard || strcmp(request->method, has_body ? "POST" : "GET") != 0 || !plain_place_of(request->url))
        return false;
    for (size_t i = 0; i < request->n_headers; i++)
        if (!is_plain_header(request->headers[i].name))
            return false;
    return !has_body || has_header(request, "content-type"); /* libcurl adds one */
}

int plain_write_head(struct buf *head, const struct http_call_request *request, const char *after_method, struct err *e)
{
    char length[INT_TEXT_SIZE];

    buf_init(head, MOST_BYTES);
    buf_reserve(head, USUAL_BYTES);
    buf_add_str(head, request->method);
    buf_add_str(head, after_method);
    if (!has_header(request, "user-agent"))
        buf_add_slice(head, SLICE_LIT("User-Agent: hearth/" HEARTH_VERSION "\r\n"));
    if (!has_header(request, "accept"))
        buf_add_slice(head, SLICE_LIT("Accept: */*\r\n"));
    for (size_t i = 0; i < request->n_headers; i++) {
        int r = transfer_check_header(&request->headers[i], e);

        if (r < 0)
            return r;
        buf_add_str(head, request->headers[i].name);
        buf_add_slice(head, SLICE_LIT(": "));
        buf_add_str(head, request->headers[i].value);
        buf_add_slice(head, SLICE_LIT("\r\n"));
    }
    if (request->body.n > 0) {
        buf_add_slice(head, SLICE_LIT("Content-Length: "));
        buf_add(head, length, int_text(length, (int64_t)request->body.n));
        buf_add_slice(head, SLICE_LIT("\r\n"));
    }
    buf_add_slice(head, SLICE_LIT("\r\n"));
    return buf_check(head, e);
}
