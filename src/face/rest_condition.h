/* Conditions of PostgREST's query language: filters and the groups and, or, not. For the files of rest_*.c only. */
#pragma once

#include "face/rest_text.h"

/* Counts of one request. */
struct rest_counts {
    size_t n_conditions, n_values;
};

/* "eq.5" of the parameter that t->param names, which is a column or path. -EINVAL BAD_REST_QUERY. */
int rest_read_filter(struct rest_text *t, struct rest_counts *counts, struct query_condition *ret,
                     struct err *e) MUST_CHECK;
/* "(a.eq.1,or(b.gt.2,c.is.null))" of the parameters and, or, not.and, not.or. */
int rest_read_logic(struct rest_text *t, struct rest_counts *counts, struct query_condition *ret,
                    struct err *e) MUST_CHECK;
/* Is this the name of a parameter with logic? */
bool rest_is_logic(const char *param);
