/* Requests over plain HTTP to servers of this machine, without libcurl: a model server on loopback is the most frequent
 * provider, and libcurl costs more there than everything else of a whole chat together. Private to src/net.
 *
 * A connection is watched once for its life, not once for each request, and serves the next request to the same
 * address when its answer was complete. The pool belongs to one loop; all calls on its thread, except plain_serves(),
 * plain_init(), and plain_clear() of a request that has ended. plain_start() and plain_stop() call no callback.
 *
 *     if (plain_serves(&request))
 *         r = plain_init(&p, &transfer, &request, e);
 *     plain_start(pool, &p);          then the transfer's on_head and on_bytes, and on_end last
 */
#pragma once

#include "net/plain_place.h"
#include "net/plain_reader.h"

struct plain_pool;
struct plain_connection;

struct plain {                 /* one request */
    struct transfer *transfer; /* borrowed */
    struct plain_reader reader;
    struct plain_pool *pool;             /* NULL: not started */
    struct plain_connection *connection; /* NULL: none, or ended */
    struct plain *next, *previous;       /* of the pool */
    struct plain_address addresses[PLAIN_ADDRESSES];
    size_t n_addresses, at; /* at: of the address in use */
    struct buf head;        /* owned; request line and headers */
    struct buf rest;        /* owned; bytes that arrived before a pause and are not yet read */
    struct slice body;      /* borrowed until plain_has_sent() */
    size_t n_sent;          /* of head and body */
    int64_t connect_ms, total_ms;
    int64_t connecting_ms; /* clock_mono_ms() of the start of the connections */
    bool is_reused;        /* the connection has served another request, and this one got no byte yet */
    bool is_broken;        /* the peer takes no more bytes of the request */
    bool has_failed;       /* no connection came about: on_end is on its way */

    void (*on_end)(struct plain *p, int r, const struct err *e);
};

struct plain_pool *plain_pool_new(struct loop *l);
struct plain_pool *plain_pool_free(struct plain_pool *pool); /* no request may run */

/* Whether the request can do without libcurl: its URL has a place, no guard is to be asked, and all its headers are
 * plain ones. */
bool plain_serves(const struct http_call_request *request);
/* Request line and headers, as libcurl writes them. -EINVAL BAD_HEADER. */
int plain_write_head(struct buf *head, const struct http_call_request *request, const char *after_method,
                     struct err *e) MUST_CHECK;
/* p is zeroed but for on_end. -EINVAL BAD_HEADER. */
int plain_init(struct plain *p, struct transfer *t, const struct http_call_request *request, struct err *e) MUST_CHECK;
void plain_clear(struct plain *p);

void plain_start(struct plain_pool *pool, struct plain *p);
/* The caller has set transfer.is_paused to false. The request may be gone afterwards. */
void plain_resume(struct plain *p);
void plain_stop(struct plain *p); /* on_end is not called any more */
bool plain_has_sent(const struct plain *p);
