/* The columns of a table as the logical stream needs them: the key and the types, which its messages do not tell.
 *
 *     r = postgres_columns_read(link, relation->id, &wait, arena, &columns, e);
 */
#pragma once

#include "pg/pg_link.h"

struct postgres_column {
    const char *name;
    uint32_t type;  /* id of pg_type: below domains and arrays */
    bool is_array;  /* of values of that type, of any number of dimensions */
    char delimiter; /* between the elements of an array */
    bool is_key;    /* of the primary key */
};

struct postgres_columns {
    struct postgres_column *items;
    size_t n;
};

/* Of the table with this id, in their order, as the catalog has them now; none when there is no such table. `link` is
 * an ordinary connection. The errors of pg_link_run(). */
int postgres_columns_read(struct pg_link *link, uint32_t relation, const struct net_wait *wait, struct arena *a,
                          struct postgres_columns *ret, struct err *e) MUST_CHECK;
