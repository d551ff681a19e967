/* Reading the outbox of a database (postgres_outbox_schema.h) over one connection.
 *
 * A position is a snapshot of PostgreSQL as text: every transaction that it sees has been reported. A look finds the
 * changes of all transactions that the new snapshot sees and the old one does not, so none is missed or found twice,
 * however long a transaction was open and whatever numbers others took meanwhile. The changes of one transaction come
 * together, and transactions in the order of their last change: one that had to wait for the rows of another made its
 * last change after the other's commit. One thread at a time.
 *
 *     r = postgres_outbox_look(outbox, &wait, position, &range, e);
 *     r = postgres_outbox_fetch(outbox, &wait, range.keys, range.n, &sink, e);
 */
#pragma once

#include "backend/backend.h"
#include "pg/pg_link.h"

struct postgres_outbox;

struct postgres_outbox_range {
    char *position; /* owned: the new snapshot */
    struct postgres_outbox_key {
        int64_t xid, seq; /* of the transaction, of the change */
    } * keys;             /* owned */
    size_t n;
    bool is_lost;            /* changes were pruned before, or there are more than LIMIT_EVENT_RANGE (n is 0 then) */
    uint64_t oldest, newest; /* transactions before `oldest` have ended; none at or after `newest` had begun */
};

/* Called for each change in order. A change whose rows cannot be read is a gap. */
struct postgres_outbox_sink {
    void (*on_event)(void *arg, const struct backend_event *event);
    void (*on_gap)(void *arg);
    void *arg;
};

/* The connection is borrowed. */
struct postgres_outbox *postgres_outbox_open(struct pg_link *link, const char *abbr) MUST_CHECK;
struct postgres_outbox *postgres_outbox_close(struct postgres_outbox *o); /* NULL is fine; returns NULL */

/* position NULL: from now on. The errors of pg_link_run(). */
int postgres_outbox_look(struct postgres_outbox *o, const struct net_wait *wait, const char *position,
                         struct postgres_outbox_range *ret, struct err *e) MUST_CHECK;
void postgres_outbox_range_clear(struct postgres_outbox_range *range);
/* At most POSTGRES_OUTBOX_PAGE changes. */
enum { POSTGRES_OUTBOX_PAGE = 256 };
int postgres_outbox_fetch(struct postgres_outbox *o, const struct net_wait *wait,
                          const struct postgres_outbox_key *keys, size_t n, const struct postgres_outbox_sink *sink,
                          struct err *e) MUST_CHECK;

/* Writers record nothing while nobody reads. From postgres_outbox_attend() to the end of the connection they record,
 * and 45 seconds longer when postgres_outbox_want() is called every 10 seconds. *ret_from: transactions before it may
 * have changed rows when nobody read. */
int postgres_outbox_attend(struct postgres_outbox *o, const struct net_wait *wait, uint64_t *ret_from,
                           struct err *e) MUST_CHECK;
int postgres_outbox_want(struct postgres_outbox *o, const struct net_wait *wait, struct err *e) MUST_CHECK;

/* While a reader rests, writers send a notification. Transactions that wrote before it rested may still be open and
 * send none: look after resting, and again until all that were open then have ended. *ret_is_so: whether it rests. */
int postgres_outbox_rest(struct postgres_outbox *o, const struct net_wait *wait, bool *ret_is_so,
                         struct err *e) MUST_CHECK;
int postgres_outbox_wake(struct postgres_outbox *o, const struct net_wait *wait, struct err *e) MUST_CHECK;

/* Removes a batch of changes that were there for at least 30 seconds. *ret_is_more: call it again soon. */
int postgres_outbox_prune(struct postgres_outbox *o, const struct net_wait *wait, bool *ret_is_more,
                          struct err *e) MUST_CHECK;
