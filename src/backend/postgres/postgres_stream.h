/* Events from the messages of a logical stream: transactions are gathered and reported whole, in the order of their
 * commits. One thread at a time.
 *
 *     s = postgres_stream_new("svc", &sink, &catalog);
 *     r = postgres_stream_take(s, frame.body, 0, e);
 *     s = postgres_stream_free(s);
 */
#pragma once

#include "backend/postgres/postgres_columns.h"
#include "backend/postgres/postgres_outbox.h"

struct postgres_stream;

/* As postgres_columns_read() answers. Called for each table with columns of its own, and again after it was altered. */
struct postgres_stream_catalog {
    int (*read_columns)(void *arg, uint32_t relation, struct arena *a, struct postgres_columns *ret, struct err *e);
    void *arg;
};

/* Sink and catalog are copied. */
struct postgres_stream *postgres_stream_new(const char *abbr, const struct postgres_outbox_sink *sink,
                                            const struct postgres_stream_catalog *catalog) MUST_CHECK;
struct postgres_stream *postgres_stream_free(struct postgres_stream *s); /* NULL is fine; returns NULL */

/* One message of pgoutput. Transactions whose commit ends at or before `after` are not reported. A transaction with
 * more rows than LIMIT_EVENT_TRANSACTION bytes or LIMIT_EVENT_RANGE changes, a change without its whole old row and a
 * row beyond LIMIT_EVENT_IMAGE are a gap. Of a table with columns of its own, the old row has only the key where the
 * server sends no more (REPLICA IDENTITY DEFAULT), and an unchanged large value without an old row is a gap. -EIO
 * STORE_FAILED: the stream cannot be read on; the errors of read_columns. */
int postgres_stream_take(struct postgres_stream *s, struct slice body, uint64_t after, struct err *e) MUST_CHECK;
/* Whether a transaction has begun and its commit has not come. */
bool postgres_stream_is_open(const struct postgres_stream *s);
