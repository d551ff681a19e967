/* Reads Server-Sent Events (WHATWG HTML section 9.2.6) from arriving bytes, in pieces of any size.
 *
 * Embedded in its owner. An event above LIMIT_SSE_EVENT, or above the maximum of sse_reader_limit(), is an error, it is
 * never cut. One thread.
 */
#pragma once

#include "base/buf.h"

struct sse_event {
    struct slice event; /* "message" when the event has no name */
    struct slice data, id;
};

struct sse_reader {
    struct buf line, data;
    struct slice first; /* borrowed from the bytes being fed: a single line of data, not copied to `data` yet */
    char event[64], id[128];
    int64_t retry_ms; /* the last `retry` of the stream; -1: none so far */
    bool has_data, had_cr, is_begun;
    int (*on_event)(void *arg, const struct sse_event *ev); /* negative stops and is returned by sse_reader_feed() */
    void *arg;
};

void sse_reader_init(struct sse_reader *r, int (*on_event)(void *arg, const struct sse_event *ev), void *arg);
/* Before the first bytes. */
void sse_reader_limit(struct sse_reader *r, size_t max_event);
void sse_reader_clear(struct sse_reader *r);
int sse_reader_feed(struct sse_reader *r, struct slice bytes, struct err *e) MUST_CHECK;
