/* Connections to a PostgreSQL server with the extension pgvector, and statements on them. Private to src/vector.
 *
 * A pool keeps a few idle connections; a session borrows one. A statement that fails because an idle connection had died meanwhile is told by
 * pg_session_is_stale(): then the work is done again on a fresh one. Every value travels as a text parameter. Any thread; a session: one at a time.
 */
#pragma once

#include "base/arena.h"
#include "base/err.h"

#include <pthread.h>

struct guard;
struct pg_conn;
struct pg_result;

enum { PG_IDLE_MAX = 4 };

struct pg_pool {
    char *url;                          /* owned */
    const struct guard *guard;          /* borrowed */
    pthread_mutex_t lock;
    struct pg_conn *idle[PG_IDLE_MAX];
    size_t n_idle;
};

struct pg_session { struct pg_pool *pool; struct pg_conn *conn; bool was_idle; };

void pg_pool_init(struct pg_pool *p, const char *url, const struct guard *guard);
void pg_pool_clear(struct pg_pool *p);

int pg_session_open(struct pg_pool *p, bool must_be_fresh, struct pg_session *ret, struct err *e) MUST_CHECK;
void pg_session_close(struct pg_session *s);
bool pg_session_is_stale(const struct pg_session *s);

/* ret may be NULL. -EIO VECTOR_STORE_FAILED in the server's words. */
int pg_run(struct pg_session *s, struct pg_result **ret, struct err *e, const char *sql, const char *const *params, size_t n_params) MUST_CHECK;
size_t pg_rows(const struct pg_result *r);
size_t pg_bytes(const struct pg_result *r, size_t row);  /* of all columns as text */
char *pg_text(const struct pg_result *r, struct arena *a, size_t row, int column);      /* NULL for NULL */
int64_t pg_int(const struct pg_result *r, size_t row, int column);
double pg_double(const struct pg_result *r, size_t row, int column);
int64_t pg_changes(const struct pg_result *r);
void pg_result_freep(struct pg_result **r);
