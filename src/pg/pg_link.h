/* One connection to a PostgreSQL server, for a worker: libpq in non-blocking mode.
 *
 * Opening and running a statement send, then wait in poll() until the operation's deadline, or until the operation is
 * cancelled (net/wait.h); rows are taken one by one and limited in number and bytes, so that no server can block a
 * thread or fill the memory. A call that fails for another reason than a refusal by the server leaves the connection
 * broken: close it. Closing does not wait; a statement that still runs ends by the server's statement_timeout. One
 * thread at a time.
 *
 * A statement with is_prepared is prepared once a connection, under the hash of its text. Behind a pooler that changes
 * servers between transactions, the first refused name makes the connection send texts only: nothing then depends on a
 * server's state.
 *
 *     r = pg_link_open(names, values, &wait, &link, e);
 *     r = pg_link_run(link, &wait, &(struct pg_statement){ .sql = "SELECT id FROM t", .n_columns = 1, .max_rows = 10,
 * .on_row = take }, e);
 */
#pragma once

#include "net/wait.h"
#include "pg/pg_row.h"

struct pg_link;

struct pg_statement {
    const char *sql;
    const char *const *params; /* text */
    size_t n_params;
    int n_columns;   /* the columns each row must have, all in text format */
    size_t max_rows; /* more rows are an error */
    int (*on_row)(void *arg, const struct pg_row *row, struct err *e); /* NULL: rows are ignored */
    void *arg;
    int64_t *ret_changes; /* rows inserted, changed or deleted; NULL */
    size_t max_bytes;     /* of all rows together; 0: LIMIT_STORE_REPLY */
    bool is_prepared;     /* the server keeps the plan, unless a pooler between us changes servers */
    bool is_script;       /* several statements without parameters, each committed with all others or none */
};

/* Names and values of PQconnectStartParams(), the addresses as hostaddr. -EAGAIN STORE_UNAVAILABLE when no
 * connection can be made, -EIO STORE_FAILED with a message, -ECANCELED SHUTTING_DOWN. sqlstate, when not NULL: set by
 * a server that refuses the connection, else "". */
enum { PG_SQLSTATE_SIZE = 6 };
int pg_link_open(const char *const *names, const char *const *values, const struct net_wait *wait,
                 char sqlstate[PG_SQLSTATE_SIZE], struct pg_link **ret, struct err *e) MUST_CHECK;
struct pg_link *pg_link_close(struct pg_link *l); /* NULL is fine; returns NULL */
/* The same errors; -EIO with is_broken false: the server refused the statement. */
int pg_link_run(struct pg_link *l, const struct net_wait *wait, const struct pg_statement *st,
                struct err *e) MUST_CHECK;
/* Statements that return no rows, in one round trip (libpq's pipeline mode), each a transaction of its own. ret[i]: 0,
 * or -EIO when the server refused that statement. An error: the connection is of no use any more, and it is unknown
 * which statements have run. */
int pg_link_run_all(struct pg_link *l, const struct net_wait *wait, const struct pg_statement *statements, size_t n,
                    int *ret, struct err *e) MUST_CHECK;
/* The process id of the server as it told it at the start of the connection; a pooler tells a number of its own. */
int pg_link_pid(const struct pg_link *l);
bool pg_link_is_broken(const struct pg_link *l);
bool pg_link_is_dead(const struct pg_link *l); /* broken because the server is gone */
/* Broken because a row, or what is no row, was larger than this connection may read. */
bool pg_link_is_flooded(const struct pg_link *l);
/* Whether an idle connection still has its server: reads, without waiting, what the server sent meanwhile. */
bool pg_link_is_alive(struct pg_link *l);
/* One row may have this many bytes; before: LIMIT_STORE_LOOSE_BYTES. */
void pg_link_allow(struct pg_link *l, size_t max_row_bytes);
/* Of the last statement's refusal; "": it was not refused. */
const char *pg_link_sqlstate(const struct pg_link *l);
/* Outside a transaction and below the limit of data from the server, so the next operation may use it. */
bool pg_link_is_reusable(const struct pg_link *l);

/* A long-lived connection: what the server has sent so far does not count against the limit of bytes that are no row.
 * Between two operations only. */
void pg_link_settle(struct pg_link *l);

typedef void pg_notice_fn(void *arg, const char *channel, const char *payload);
/* Calls fn for each notification that has been read. Returns how many there were. */
int pg_link_take_notices(struct pg_link *l, pg_notice_fn *fn, void *arg);
/* Calls fn for each notification that is there; when there is none, waits for one. Returns how many there were, 0 at
 * the deadline; the errors of pg_link_run(). */
int pg_link_listen(struct pg_link *l, const struct net_wait *wait, pg_notice_fn *fn, void *arg,
                   struct err *e) MUST_CHECK;

enum { PG_LINK_AWAIT_MAX = 2 };
/* Waits until one of the connections has sent something, and reads it. 1, or 0 at the deadline; the errors of
 * pg_link_run(). */
int pg_link_await(struct pg_link *const *links, size_t n, const struct net_wait *wait, struct err *e) MUST_CHECK;

/* A stream of messages (PostgreSQL 15, section 55.4: COPY BOTH), as START_REPLICATION begins one. -EIO with
 * pg_link_sqlstate(): the server refused. */
int pg_link_stream(struct pg_link *l, const struct net_wait *wait, const char *command, struct err *e) MUST_CHECK;
typedef int pg_message_fn(void *arg, struct slice message, struct err *e);
/* Calls fn for at most `max` messages that have been read, without waiting. Returns how many; the errors of
 * pg_link_run() and of fn. */
int pg_link_stream_take(struct pg_link *l, size_t max, pg_message_fn *fn, void *arg, struct err *e) MUST_CHECK;
int pg_link_stream_write(struct pg_link *l, const struct net_wait *wait, struct slice message,
                         struct err *e) MUST_CHECK;
