/* PostgreSQL with pgvector: the shared declarations of its files. Private to src/vector.
 *
 * pgvector.c has the store and its changes, pgvector_read.c reading, pgvector_filter.c filters as SQL,
 * pgvector_session.h the connections.
 */
#pragma once

#include "vector/pgvector/pgvector_session.h"
#include "vector/vector_filter.h"
#include "vector/vector.h"

enum { PGVECTOR_TABLE_CHARS = 40 };

struct pgvector {
    struct vectors vectors; /* first */
    struct pg_pool pool;
    char table[PGVECTOR_TABLE_CHARS + 1]; /* letters, digits and _ only */
};

extern const struct vectors_field pgvector_fields[];
int pgvector_open(const char *scope, struct json_value config, const struct guard *guard, struct vectors **ret,
                  struct err *e) MUST_CHECK;

/* The work of one call on a session; repeated on a fresh connection when an idle one turns out dead. All such work may
 * be repeated. */
typedef int pgvector_work(struct pgvector *pg, struct pg_session *s, void *arg, struct err *e);
int pgvector_with_session(struct vectors *v, const struct net_wait *wait, pgvector_work *work, void *arg,
                          struct err *e) MUST_CHECK;

/* 0: the namespace is empty. */
int pgvector_read_dimensions(struct pgvector *pg, struct pg_session *s, const char *ns, int64_t *ret,
                             struct err *e) MUST_CHECK;
int pgvector_query(struct vectors *v, const struct net_wait *wait, const char *ns, const struct vector_query *q,
                   struct arena *a, struct vector_hits *ret, struct err *e) MUST_CHECK;
int pgvector_list(struct vectors *v, const struct net_wait *wait, const char *ns,
                  const struct vector_list_request *request, struct arena *a, struct vector_hits *ret,
                  struct err *e) MUST_CHECK;
int pgvector_count(struct vectors *v, const struct net_wait *wait, const char *ns, int64_t *ret_n,
                   int64_t *ret_dimensions, struct err *e) MUST_CHECK;
int pgvector_namespaces(struct vectors *v, const struct net_wait *wait, const char *prefix, struct arena *a,
                        struct field_strings *ret, struct err *e) MUST_CHECK;

/* The filter's conditions as SQL, and the value of their parameter number `param`. */
char *pgvector_filter_sql(struct arena *a, const struct vector_filter *f, int param);
char *pgvector_filter_param(struct arena *a, const struct vector_filter *f);
