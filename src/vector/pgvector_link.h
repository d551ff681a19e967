/* One connection to a PostgreSQL server, for a worker: libpq without its waiting.
 *
 * Opening and running a statement send, then wait in poll() until the operation's deadline, or until nobody wants its result any more
 * (net/wait.h); rows are taken one by one and bounded in number and bytes, so that no server can hold a thread or the memory. A call that fails
 * but for a refusal of the server's leaves the connection broken: close it. Closing waits for nobody; what the server still does ends by
 * its statement_timeout. Knows nothing of vectors. One thread at a time.
 *
 *     r = pg_link_open(names, values, &wait, &link, e);
 *     r = pg_link_run(link, &wait, &(struct pg_statement){ .sql = "SELECT id FROM t", .n_columns = 1, .max_rows = 10, .on_row = take }, e);
 */
#pragma once

#include "net/wait.h"
#include "vector/pgvector_row.h"

struct pg_link;

struct pg_statement {
    const char *sql;
    const char *const *params;          /* text */
    size_t n_params;
    int n_columns;                      /* that each row must have; all of text format */
    size_t max_rows;                    /* more are an error */
    int (*on_row)(void *arg, const struct pg_row *row, struct err *e);  /* NULL: rows are passed over */
    void *arg;
    int64_t *ret_changes;               /* rows inserted, changed or deleted; NULL */
};

/* Names and values of PQconnectStartParams(), the addresses as hostaddr. -EIO VECTOR_STORE_FAILED in words, -ECANCELED SHUTTING_DOWN. */
int pg_link_open(const char *const *names, const char *const *values, const struct net_wait *wait, struct pg_link **ret, struct err *e) MUST_CHECK;
struct pg_link *pg_link_close(struct pg_link *l);       /* NULL is fine; returns NULL */
/* The same errors; -EIO with is_broken false: the server refused the statement. */
int pg_link_run(struct pg_link *l, const struct net_wait *wait, const struct pg_statement *st, struct err *e) MUST_CHECK;
bool pg_link_is_broken(const struct pg_link *l);
bool pg_link_is_dead(const struct pg_link *l);          /* broken because the server is gone */
/* Between transactions, and not worn out by what its server sent: the next operation may have it. */
bool pg_link_is_reusable(const struct pg_link *l);
