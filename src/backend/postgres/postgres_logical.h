/* The logical stream of a PostgreSQL database (PostgreSQL 15, chapter 49 and section 55.4): what the server's log says
 * of the tables of the publication <abbr>_events, decoded by pgoutput from a slot that lives as long as the connection.
 *
 * Nothing waits but postgres_logical_open(): the caller waits for the connection and takes what has come. The server is
 * told how far the stream was read, and asked for a sign of life, at least every 10 s. One thread at a time.
 *
 *     r = postgres_logical_open(link, catalog, "svc", &sink, &wait, &logical, e);
 *     while (r >= 0) {
 *         r = postgres_logical_take(logical, after, &wait, e);
 *         r = r == 0 ? pg_link_await(&link, 1, &wait, e) : r;
 *     }
 */
#pragma once

#include "backend/postgres/postgres_outbox.h"

struct postgres_logical;

/* Why this database and role cannot have a stream, in words, in the arena; NULL: they can. `link` is an ordinary
 * connection. *ret_has_all: every table with work is in the publication, with its whole old rows; *ret_table names one
 * that is not. The errors of pg_link_run(). */
int postgres_logical_lack(struct pg_link *link, const char *abbr, const struct net_wait *wait, struct arena *a,
                          const char **ret_lack, const char **ret_table, struct err *e) MUST_CHECK;

/* `link` is a connection with replication=database, `catalog` an ordinary one for questions about tables; both
 * borrowed. Every change that commits after the return is reported. A transaction that is open when the call begins,
 * and does not end within LIMIT_LOGICAL_SLOT_MS, is a refusal. The errors of pg_link_run(). */
int postgres_logical_open(struct pg_link *link, struct pg_link *catalog, const char *abbr,
                          const struct postgres_outbox_sink *sink, const struct net_wait *wait,
                          struct postgres_logical **ret, struct err *e) MUST_CHECK;
struct postgres_logical *postgres_logical_close(struct postgres_logical *l); /* NULL is fine; returns NULL */
/* Takes a batch of what has come, and tells the server. Transactions whose commit ends at or before `after` are not
 * reported. Returns the number of messages; -EIO STORE_FAILED when the stream has ended, cannot be read on, or was
 * silent for LIMIT_LOGICAL_SILENT_MS; the errors of pg_link_run(). */
int postgres_logical_take(struct postgres_logical *l, uint64_t after, const struct net_wait *wait,
                          struct err *e) MUST_CHECK;
