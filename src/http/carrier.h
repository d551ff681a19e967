/* The transport of an exchange, which delivers the request and takes the answer: the server's connections, or local
 * calls (http/local.h).
 *
 * The public functions of http.h call these tables; their contracts (thread, waiting) are those of http.h.
 */
#pragma once

#include "http/http.h"

struct http_carrier {
    void (*send)(struct http_exchange *x);
    void (*on_gone)(struct http_exchange *x, void (*fn)(struct http_exchange *x, void *arg), void *arg);
    struct http_stream *(*start_stream)(struct http_exchange *x);
    void (*forget_body)(struct http_exchange *x); /* frees the bytes to which request.body pointed */
    int (*charge)(struct http_exchange *x, struct budget_holder *holder, struct err *e);
};

struct http_stream_carrier {
    int (*push)(struct http_stream *s, struct slice bytes);
    void (*on_change)(struct http_stream *s, void (*fn)(struct http_stream *s, void *arg), void *arg);
    bool (*is_gone)(const struct http_stream *s);
    bool (*is_full)(const struct http_stream *s);
    void (*end)(struct http_stream *s, bool is_complete); /* frees the stream when possible */
};

/* Embedded first in the carrier's own struct. */
struct http_stream {
    const struct http_stream_carrier *carrier;
};

static inline void http_stream_init(struct http_stream *s, const struct http_stream_carrier *carrier)
{
    s->carrier = carrier;
}
