/* Texts and JSON values as values of a column's type, for a database that does not have PostgreSQL's types: each is
 * checked as PostgreSQL checks it and brought into one form, so that equal values are equal texts and the order of
 * times is that of their texts. Pure; any thread.
 *
 *     uuid            lower case                        timestamptz   2026-11-20T09:32:05.68+00:00
 *     integers, bool  QUERY_VALUE_INT                   timestamp     2026-11-20T09:32:05.68
 *     floats          QUERY_VALUE_REAL                  date, time    2026-11-20, 09:32:05.68
 *     numeric         INT or REAL: 15 digits are kept   json, arrays  minified JSON
 *
 * Errors: -EINVAL BAD_VALUE with PostgreSQL's message, extra "sqlstate" when it is not 22P02.
 */
#pragma once

#include "backend/query.h"

enum query_value_kind { QUERY_VALUE_NULL, QUERY_VALUE_TEXT, QUERY_VALUE_INT, QUERY_VALUE_REAL };

struct query_value {
    enum query_value_kind kind;
    struct slice text; /* in the arena */
    int64_t i;
    double d;
};

int query_value_read(struct arena *a, enum table_type type, struct slice text, struct query_value *ret,
                     struct err *e) MUST_CHECK;
/* A member of a row, as PostgreSQL reads a record from jsonb: null is NULL, also in a column of JSON. */
int query_value_of_json(struct arena *a, enum table_type type, struct json_value v, struct query_value *ret,
                        struct err *e) MUST_CHECK;
int query_value_refuse(enum table_type type, struct slice text, struct err *e);

/* query_times.c: types from TABLE_TIMESTAMP to TABLE_TIME, years 1 to 9999. A time without a zone is UTC. */
int query_time_read(struct arena *a, enum table_type type, struct slice text, struct slice *ret,
                    struct err *e) MUST_CHECK;
