/* Events from the messages of a logical stream: transactions are gathered and reported whole, in the order of their
 * commits. One thread at a time.
 *
 *     s = postgres_stream_new("svc", &sink);
 *     r = postgres_stream_take(s, frame.body, 0, e);
 *     s = postgres_stream_free(s);
 */
#pragma once

#include "backend/postgres/postgres_outbox.h"

struct postgres_stream;

/* The sink is copied. */
struct postgres_stream *postgres_stream_new(const char *abbr, const struct postgres_outbox_sink *sink) MUST_CHECK;
struct postgres_stream *postgres_stream_free(struct postgres_stream *s); /* NULL is fine; returns NULL */

/* One message of pgoutput. Transactions whose commit ends at or before `after` are not reported. A transaction with
 * more rows than LIMIT_EVENT_TRANSACTION bytes or LIMIT_EVENT_RANGE changes, a change without its whole old row and a
 * row beyond LIMIT_EVENT_IMAGE are a gap. A table whose rows have no id or no status has no events. -EIO STORE_FAILED:
 * the stream cannot be read on. */
int postgres_stream_take(struct postgres_stream *s, struct slice body, uint64_t after, struct err *e) MUST_CHECK;
/* Whether a transaction has begun and its commit has not come. */
bool postgres_stream_is_open(const struct postgres_stream *s);
