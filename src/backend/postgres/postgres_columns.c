#include "backend/postgres/postgres_columns.h"
#include "base/limits.h"

#include <stdio.h>

enum { N_COLUMNS = 5, NAME_BYTES = 63 };

/* A true array has an element type and no array type of its own. */
#define IS_ARRAY "t.typcategory = 'A' AND t.typelem <> 0 AND t.typarray = 0"

static const char columns_sql[] =
    "WITH RECURSIVE c(place, name, type, depth, delimiter) AS ("
    "SELECT attnum, attname::text, atttypid, 0, ','::text FROM pg_catalog.pg_attribute"
    " WHERE attrelid = $1::oid AND attnum > 0 AND NOT attisdropped"
    " UNION ALL SELECT c.place, c.name, CASE t.typtype WHEN 'd' THEN t.typbasetype ELSE t.typelem END,"
    " c.depth + (t.typtype <> 'd')::int, CASE t.typtype WHEN 'd' THEN c.delimiter ELSE e.typdelim::text END"
    " FROM c JOIN pg_catalog.pg_type t ON t.oid = c.type LEFT JOIN pg_catalog.pg_type e ON e.oid = t.typelem"
    " WHERE t.typtype = 'd' OR " IS_ARRAY ")"
    " SELECT c.name, c.type::bigint, c.depth, c.delimiter, EXISTS (SELECT 1 FROM pg_catalog.pg_index i"
    "  WHERE i.indrelid = $1::oid AND i.indisprimary AND c.place = ANY (i.indkey))::int"
    " FROM c JOIN pg_catalog.pg_type t ON t.oid = c.type WHERE NOT (t.typtype = 'd' OR " IS_ARRAY ") ORDER BY c.place";

struct reading {
    struct arena *arena;
    struct postgres_columns columns;
};

static int take_numbers(const struct pg_row *row, struct postgres_column *c, struct err *e)
{
    int64_t type = 0, depth = 0, is_key = 0;
    int r = pg_row_int(row, 1, 0, UINT32_MAX, &type, e);

    if (r == 0)
        r = pg_row_int(row, 2, 0, INT32_MAX, &depth, e);
    if (r == 0)
        r = pg_row_int(row, 4, 0, 1, &is_key, e);
    c->type = (uint32_t)type;
    c->is_array = depth > 0;
    c->is_key = is_key != 0;
    return r;
}

static int take_column(void *arg, const struct pg_row *row, struct err *e)
{
    struct slice name = SLICE_LIT(""), delimiter = SLICE_LIT("");
    struct reading *reading = arg;
    struct postgres_column *c = &reading->columns.items[reading->columns.n];
    int r = pg_row_text(row, 0, NAME_BYTES, &name, e);

    if (r == 0)
        r = pg_row_text(row, 3, 1, &delimiter, e);
    if (r == 0)
        r = take_numbers(row, c, e);
    if (r < 0)
        return r;
    c->name = arena_slicedup(reading->arena, name);
    c->delimiter = delimiter.p[0];
    reading->columns.n++;
    return 0;
}

int postgres_columns_read(struct pg_link *link, uint32_t relation, const struct net_wait *wait, struct arena *a,
                          struct postgres_columns *ret, struct err *e)
{
    struct reading reading = { a, { arena_array(a, LIMIT_PG_COLUMNS, sizeof(struct postgres_column)), 0 } };
    char id[16];
    const char *const params[] = { id };
    const struct pg_statement st = { .sql = columns_sql,
                                     .params = params,
                                     .n_params = 1,
                                     .n_columns = N_COLUMNS,
                                     .max_rows = LIMIT_PG_COLUMNS,
                                     .on_row = take_column,
                                     .arg = &reading };
    int r;

    snprintf(id, sizeof(id), "%u", relation);
    r = pg_link_run(link, wait, &st, e);
    if (r == 0)
        *ret = reading.columns;
    return r;
}
