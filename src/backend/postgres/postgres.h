/* The internals of the PostgreSQL backend, for the postgres_*.c files only.
 *
 * Every change is one conditional statement with the attempt as fence and the database's clock; it commits by itself,
 * so that nothing depends on which server of a pooler runs the next one. Statements go through the pool of connections
 * (postgres_pool.h); a statement whose connection broke is repeated only where a repetition changes nothing, and always
 * when the server has rolled it back. Every call has a deadline and ends when the backend closes.
 */
#pragma once

#include "backend/backend.h"
#include "backend/postgres/postgres_batch.h"
#include "backend/postgres/postgres_events.h"
#include "backend/postgres/postgres_pool.h"
#include "backend/postgres/postgres_shapes.h"
#include "backend/postgres/postgres_table.h"

struct postgres {
    struct backend backend;                      /* first: callers hold a pointer to it */
    char *abbr;                                  /* owned */
    struct postgres_pool *pool;                  /* owned */
    struct postgres_place place;                 /* borrowed from the pool */
    struct postgres_tables *tables;              /* owned */
    struct postgres_events *events;              /* owned */
    struct postgres_batch *claims, *completions; /* owned */
    struct postgres_shapes *shapes;              /* owned; of tables with columns of their own */
    enum postgres_events_mode mode;              /* of the events */
    atomic_bool is_closing;
    atomic_bool is_fit;         /* the database has the schema of this program */
    int64_t call_ms;            /* a call waits so long, in all */
    _Atomic int64_t trim_at_ms; /* clock_mono_ms(): tombstones are not looked through before */
};

static inline struct postgres *postgres_of(struct backend *b)
{
    return CONTAINER_OF(b, struct postgres, backend);
}

/* postgres_call.c: one statement. */
enum { POSTGRES_PARAMS = 8 };

enum postgres_repeat {
    POSTGRES_ONCE,      /* a broken connection leaves its fate unknown */
    POSTGRES_REPEATABLE /* running it twice has the effect of running it once */
};

struct postgres_call {
    const char *sql;
    const char *params[POSTGRES_PARAMS];
    const char *const *many_params; /* instead of params; NULL: those */
    size_t n_params;
    const char *table; /* whose statement it is, for words of refusals; NULL: none */
    enum postgres_repeat repeat;
    int64_t most_ms; /* deadline; 0: the one of all calls */
    bool takes_any;  /* also while it is unknown whether the schema is that of this program */
    int n_columns;
    size_t max_rows;
    int (*on_row)(void *arg, const struct pg_row *row, struct err *e);
    void (*on_begin)(void *arg); /* before each attempt: forgets the rows of the one before; NULL */
    void *arg;
    int64_t n_changed; /* set: rows changed */
    bool is_one_off;   /* a text that hardly comes again: the server keeps no plan */
    /* Words of its own for a refusal; NULL: refusals_sqlstate(). */
    int (*refuse)(const struct postgres_call *c, const char *sqlstate, const struct err *why, struct err *e);
    const void *refuse_arg;
};

int postgres_call(struct postgres *pg, struct postgres_call *c, struct err *e) MUST_CHECK;
/* postgres.c: looks once whether the schema is that of this program. most_ms as in struct postgres_call. */
int postgres_check_fit(struct postgres *pg, int64_t most_ms, struct err *e) MUST_CHECK;
struct postgres_table;
/* The same with the statement that postgres_sql() makes of the template for this table. Sets c->sql and c->table. */
int postgres_call_on(struct postgres *pg, struct postgres_table *t, const char *template, struct postgres_call *c,
                     struct err *e) MUST_CHECK;
/* Repeatable statements without rows, in one round trip. ret[i]: 0, or -EIO when the server refused that one. */
int postgres_call_all(struct postgres *pg, const struct pg_statement *statements, size_t n, int *ret,
                      struct err *e) MUST_CHECK;
/* A number as a parameter. */
const char *postgres_number(struct arena *a, int64_t n);
const char *postgres_ms(struct arena *a, int64_t ms);
/* An array of texts as a parameter. An item may be NULL. */
const char *postgres_array(struct arena *a, const char *const *items, size_t n);

/* postgres_read.c: rows of a statement that selects {columns}. */
struct postgres_reader {
    const char *table;
    struct arena *arena;
    struct backend_rows rows;
    size_t capacity, n_bytes;
    bool is_full; /* rows beyond LIMIT_REPLY were left out */
};

/* Makes the call read into the reader. */
void postgres_read_into(struct postgres_call *c, struct postgres_reader *reader, const char *table, struct arena *a,
                        size_t max_rows);
/* One row of {columns}, into the reader's arena. */
int postgres_read_one(struct postgres_reader *reader, const struct pg_row *row, struct backend_row *ret,
                      struct err *e) MUST_CHECK;
/* JSON without the blanks between its parts; "null" for what is no JSON. */
char *postgres_compact_json(struct arena *a, struct slice json);

/* The first column of a statement's rows, each at most max_bytes. */
struct postgres_texts {
    struct arena *arena;
    const char **items; /* room for n_before + max_rows is the caller's */
    size_t n, n_before; /* n_before: that were there already; a repeated statement adds its rows once */
    size_t max_bytes;
};
/* Makes the call read into texts. */
void postgres_read_texts(struct postgres_call *c, struct postgres_texts *texts, size_t max_rows);

/* postgres_oversize.c: of these rows, those that are too large to be read become failed, as work that no machine may
 * try again. */
int postgres_set_oversize_aside(struct postgres *pg, struct postgres_table *t, const struct backend_claim *as,
                                const struct postgres_texts *ids, struct arena *a, size_t *ret_n,
                                struct err *e) MUST_CHECK;
/* Which of these rows are too large to be read, the first LIMIT_BACKEND_SET_ASIDE of them. */
int postgres_find_oversize(struct postgres *pg, struct postgres_table *t, const struct postgres_texts *ids,
                           struct postgres_texts *ret, struct err *e) MUST_CHECK;

/* postgres_rows.c. app_id NULL: rows of any app. */
/* -ENOENT UNKNOWN_TABLE when the table was never set up. */
int postgres_find_table(struct postgres *pg, const char *name, struct postgres_table **ret, struct err *e) MUST_CHECK;
int postgres_table_names(struct postgres *pg, struct arena *a, const char ***ret, size_t *ret_n,
                         struct err *e) MUST_CHECK;
/* Adds the names that a template of a query without parameters gives (postgres_table.h), at most LIMIT_ITEMS_DEFAULT.
 * table: what is missing when there is no such table; NULL: any. */
int postgres_read_names(struct postgres *pg, const char *sql, const char *table, struct postgres_texts *names,
                        struct err *e) MUST_CHECK;
int postgres_read_row(struct postgres *pg, struct postgres_table *t, const char *id, const char *app_id,
                      struct arena *a, struct backend_row *ret, struct err *e) MUST_CHECK;
int postgres_insert(struct backend *b, const struct backend_new_row *in, struct arena *a, struct backend_row *ret,
                    struct err *e);
int postgres_get(struct backend *b, const char *table, const char *id, const char *app_id, struct arena *a,
                 struct backend_row *ret, struct err *e);
int postgres_list(struct backend *b, const struct backend_query *q, struct arena *a, struct backend_rows *ret,
                  struct err *e);
int postgres_update(struct backend *b, const struct backend_update_request *request, struct arena *a,
                    struct backend_row *ret, struct err *e);
int postgres_remove(struct backend *b, const char *table, const char *id, const char *app_id, struct err *e);

/* postgres_lease.c */
int postgres_claim(struct backend *b, const struct backend_claim *c, struct arena *a, struct backend_row *ret,
                   struct backend_lease *ret_lease, struct err *e);
int postgres_heartbeat(struct backend *b, const struct backend_lease *l, struct err *e);
int postgres_heartbeats(struct backend *b, const struct backend_lease *leases, size_t n, int *ret, struct err *e);
int postgres_complete(struct backend *b, const struct backend_lease *l, const char *result_json, struct err *e);
int postgres_fail(struct backend *b, const struct backend_lease *l, const char *message, struct err *e);
int postgres_release(struct backend *b, const struct backend_lease *l, struct err *e);
/* By a statement of its own. */
int postgres_claim_alone(struct postgres *pg, struct postgres_table *t, const struct backend_claim *in, struct arena *a,
                         struct backend_row *ret, struct err *e) MUST_CHECK;
int postgres_complete_alone(struct postgres *pg, const struct backend_lease *l, const char *result_json,
                            struct err *e) MUST_CHECK;

/* postgres_together.c: with what other threads do at the same time. The ids have been checked. */
int postgres_claim_joined(struct postgres *pg, struct postgres_table *t, const struct backend_claim *in,
                          struct arena *a, struct backend_row *ret, struct err *e) MUST_CHECK;
int postgres_complete_joined(struct postgres *pg, struct postgres_table *t, const struct backend_lease *l,
                             const char *result_json, struct err *e) MUST_CHECK;
bool postgres_claims_alike(const struct postgres_batched *a, const struct postgres_batched *b);
bool postgres_completions_alike(const struct postgres_batched *a, const struct postgres_batched *b);

/* postgres_recovery.c */
int postgres_release_machine(struct backend *b, const char *table, const char *machine_id, size_t *ret_n,
                             struct err *e);
int postgres_rearm(struct backend *b, const char *table, const char *id, struct err *e);
int postgres_replay(struct backend *b, const char *table, const char *id, struct err *e);
int postgres_recover_stale(struct backend *b, const char *table, int64_t stale_after_ms, struct arena *a,
                           struct backend_rows *ret, struct err *e);
int postgres_claimable(struct backend *b, const char *table, const struct backend_claim *as,
                       const struct backend_position *before, int64_t limit, struct arena *a, struct backend_rows *ret,
                       struct err *e);
int postgres_owners(struct backend *b, int64_t max_machines, struct arena *a, struct backend_owners *ret,
                    struct err *e);

/* postgres_trim.c: removes the oldest work of deletions that nobody has taken up for a week, if it is time. */
int postgres_trim(struct postgres *pg, struct err *e) MUST_CHECK;

/* postgres_presence.c */
int postgres_presence_put(struct backend *b, const struct backend_presence *p, int64_t fresh_ms, struct err *e);
int postgres_presence_remove(struct backend *b, const char *machine_id, const char *instance, struct err *e);
int postgres_presence_list(struct backend *b, int64_t fresh_ms, struct arena *a, struct backend_presences *ret,
                           struct err *e);

/* postgres_monitor.c */
void postgres_monitor(struct backend *b, struct arena *a, struct backend_monitor *ret);
