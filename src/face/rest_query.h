/* PostgREST's query language: what follows the question mark of a request to /rest/v1/<table>, as parts of a struct
 * query (backend/query.h). Pure; any thread. Texts are in the arena.
 *
 *     select=id,total:raw_data->>sum&status=in.(pending,failed)&or=(a.eq.1,b.is.null)&order=id.desc&limit=10
 */
#pragma once

#include "backend/query.h"

struct rest_param {
    const char *name, *value; /* decoded */
};

struct rest_query {
    const struct query_item *items;      /* select; path.column NULL: every column */
    size_t n_items;                      /* 0: no select, or select=* alone */
    const struct query_condition *where; /* NULL: none */
    const struct query_order *order;
    size_t n_order;
    int64_t limit, offset; /* limit < 0: none */
    const char *const *columns, *const *on_conflict;
    size_t n_columns, n_on_conflict;
};

/* The parameters in their order, without apikey. -EINVAL BAD_REST_QUERY for more than LIMIT_TARGET_BYTES or bad
 * percent-encoding. */
int rest_params_read(struct arena *a, const char *query, struct rest_param **ret, size_t *ret_n,
                     struct err *e) MUST_CHECK;
/* -EINVAL BAD_REST_QUERY names the parameter and the rule; -ERANGE BAD_RANGE for a negative limit or offset. Limits:
 * LIMIT_REST_... in base/limits.h. */
int rest_query_parse(struct arena *a, const char *query, struct rest_query *ret, struct err *e) MUST_CHECK;
