#include "http/websocket.h"
#include "base/base64.h"
#include "base/websocket_key.h"
#include "http/list.h"

#include <string.h>

/* The lists of several headers of one name count as one list (RFC 9110 section 5.3). */
static bool lists(const struct http_request *req, const char *name, const char *wanted)
{
    for (size_t i = 0; i < req->n_headers; i++) {
        struct slice rest = slice_of(req->headers[i].value);

        if (strcmp(req->headers[i].name, name) != 0)
            continue;
        while (rest.n > 0)
            if (http_list_item_is(http_list_next(&rest, ','), wanted))
                return true;
    }
    return false;
}

/* NULL: absent, or there several times. */
static const char *only(const struct http_request *req, const char *name)
{
    const char *value = NULL;

    for (size_t i = 0; i < req->n_headers; i++) {
        if (strcmp(req->headers[i].name, name) != 0)
            continue;
        if (value)
            return NULL;
        value = req->headers[i].value;
    }
    return value;
}

static bool is_key(const char *key)
{
    struct buf bytes;
    bool is_one;

    if (!key || !base64_is_padded(key))
        return false;
    buf_init(&bytes, WEBSOCKET_KEY_BYTES);
    is_one = base64_decode(&bytes, slice_of(key)) == 0 && bytes.n == WEBSOCKET_KEY_BYTES;
    buf_clear(&bytes);
    return is_one;
}

static int refuse(struct err *e, const char *what)
{
    return err_set(e, -EINVAL, "BAD_HANDSHAKE", "The WebSocket handshake %s (RFC 6455 section 4.2.1).", what);
}

static int add_accept(struct http_exchange *x, const char *key, struct err *e)
{
    struct buf out;
    int r;

    buf_init(&out, 64);
    r = websocket_accept(&out, key, e);
    if (r == 0) {
        http_response_header(x, "sec-websocket-accept", buf_str(&out));
        http_response_header(x, "upgrade", "websocket");
        http_response_header(x, "connection", "Upgrade");
    }
    buf_clear(&out);
    return r;
}

int http_websocket_check(struct http_exchange *x, struct err *e)
{
    const struct http_request *req = &x->request;
    const char *version = only(req, "sec-websocket-version"), *key = only(req, "sec-websocket-key");

    if (req->method != HTTP_GET || req->is_head)
        return refuse(e, "must be a GET request");
    if (!lists(req, "connection", "upgrade") || !lists(req, "upgrade", "websocket")) {
        http_response_header(x, "upgrade", "websocket");
        return err_set(e, -EPROTO, "UPGRADE_REQUIRED",
                       "This path speaks WebSocket only: send Connection: Upgrade and Upgrade: websocket.");
    }
    if (!version || strcmp(version, "13") != 0) {
        http_response_header(x, "sec-websocket-version", "13");
        return err_set(e, -EPROTO, "UPGRADE_REQUIRED", "The header Sec-WebSocket-Version must be 13.");
    }
    if (!is_key(key))
        return refuse(e, "must have one header Sec-WebSocket-Key, the base64 of 16 bytes");
    if (req->body.n > 0)
        return refuse(e, "must have no body");
    return add_accept(x, key, e);
}
