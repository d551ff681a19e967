/* The connection's internals, for pg_link.c and pg_pipeline.c only. */
#pragma once

#include "pg/pg_link.h"

#include <libpq-fe.h>

enum {
    PG_NAME_SIZE = 32,
    TEXT_OID = 25,
    ROW_OVERHEAD = 7,
    COLUMN_OVERHEAD = 4,
    NOTICE_OVERHEAD = 11,
    MESSAGE_OVERHEAD = 5,
    TLS_SHARE = 32,
    PREPARED_MAX = 128
};

struct pg_link {
    PGconn *conn;         /* owned */
    uint64_t n_row_bytes; /* bytes of the received rows, as messages */
    size_t max_loose;
    char sqlstate[PG_SQLSTATE_SIZE]; /* of the last refusal; "": none */
    bool is_broken;
    bool is_flooded;                 /* broken by more than max_loose bytes that are no whole row */
    bool is_pooled;                  /* a pooler passes statements to changing servers: nothing is prepared */
    uint64_t prepared[PREPARED_MAX]; /* hashes of the texts that the server has */
    size_t n_prepared;
};

/* Of n parameters, all texts; free() it. */
Oid *pg_text_types(size_t n) MUST_CHECK;

/* -EIO STORE_FAILED with the first line. */
int pg_notify_error(const char *message, struct err *e);
int pg_flush(struct pg_link *l, const struct net_wait *wait, bool is_sent, struct err *e) MUST_CHECK;
/* *ret NULL: the statement has ended. */
int pg_next_result(struct pg_link *l, const struct net_wait *wait, PGresult **ret, struct err *e) MUST_CHECK;
int pg_take_results(struct pg_link *l, const struct net_wait *wait, const struct pg_statement *st, struct err *refusal,
                    struct err *e) MUST_CHECK;
/* The name under which the server has the statement, prepared now if it was not; "": it runs from its text. */
int pg_find_name(struct pg_link *l, const struct net_wait *wait, const struct pg_statement *st, char name[PG_NAME_SIZE],
                 struct err *e) MUST_CHECK;
