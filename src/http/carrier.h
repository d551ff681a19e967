/* Who brings an exchange and takes its answer away: the server's connections, or local calls (http/local.h).
 *
 * The public calls of http.h go through these tables. Contracts (thread, waiting) are those of http.h.
 */
#pragma once

#include "http/http.h"

struct http_carrier {
    void (*send)(struct http_exchange *x);
    void (*on_gone)(struct http_exchange *x, void (*fn)(struct http_exchange *x, void *arg), void *arg);
    struct http_stream *(*start_stream)(struct http_exchange *x);
    void (*forget_body)(struct http_exchange *x);       /* the bytes that request.body pointed at */
    int (*charge)(struct http_exchange *x, struct budget_holder *holder, struct err *e);
};

struct http_stream_carrier {
    int (*push)(struct http_stream *s, struct slice bytes);
    void (*on_change)(struct http_stream *s, void (*fn)(struct http_stream *s, void *arg), void *arg);
    bool (*is_gone)(const struct http_stream *s);
    size_t (*unsent)(const struct http_stream *s);
    void (*end)(struct http_stream *s);         /* nobody holds it any more; frees it in its own time */
};

/* Embedded first in the carrier's own struct. */
struct http_stream {
    const struct http_stream_carrier *carrier;
    atomic_int n_refs;
};

static inline void http_stream_init(struct http_stream *s, const struct http_stream_carrier *carrier)
{
    s->carrier = carrier;
    atomic_init(&s->n_refs, 1);
}
