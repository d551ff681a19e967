#include "backend/embedded/embedded_query.h"
#include "backend/refusals.h"
#include "base/limits.h"

enum made_as { NOT_MADE, AS_ACTIVITIES, AS_DECLARED };

static int find_made(struct sql_db *db, const char *name, enum made_as *ret, struct err *e)
{
    static const char sql[] = "SELECT 1 FROM _tables WHERE name = ?1 AND name = ?1 COLLATE BINARY UNION ALL"
                              " SELECT 2 FROM _declared WHERE name = ?1 AND name = ?1 COLLATE BINARY";
    AUTO(sql_rows_endp) struct sql_rows *rows = NULL;
    int r = sql_query(db, &rows, e, sql, "s", name);

    if (r == 0)
        r = sql_step(rows, e);
    if (r < 0)
        return r;
    *ret = r > 0 ? (enum made_as)sql_int(rows, 0) : NOT_MADE;
    return 0;
}

/* The first word of a declared type names it. */
static enum table_type type_of(const char *declared)
{
    enum table_type type = TABLE_OTHER;

    table_type_of((struct slice){ declared, strcspn(declared, " ") }, &type);
    return type;
}

/* Only what a query must know of a default: the rest is SQLite's affair. */
static const char *default_of(const char *sql)
{
    return sql && strcmp(sql, EMBEDDED_DEFAULT_USER) == 0 ? TABLE_DEFAULT_USER : sql;
}

static void read_column(struct sql_rows *rows, struct arena *a, struct table_column *ret)
{
    *ret = (struct table_column){ .name = sql_text(rows, a, 0),
                                  .is_nullable = sql_int(rows, 2) == 0,
                                  .default_text = default_of(sql_text(rows, a, 3)),
                                  .is_key = sql_int(rows, 4) != 0,
                                  .is_unique = sql_int(rows, 5) != 0 };
    ret->type = type_of(sql_text(rows, a, 1));
    ret->type_name = table_type_word(ret->type);
}

static int read_columns(struct sql_db *db, struct arena *a, struct table_shape *shape, struct err *e)
{
    static const char sql[] =
        "SELECT c.name, lower(c.type), c.\"notnull\", c.dflt_value, c.pk, EXISTS (SELECT 1 FROM pragma_index_list(?1) i"
        "  WHERE i.\"unique\" AND i.partial = 0 AND (SELECT count(*) FROM pragma_index_info(i.name)) = 1"
        "  AND (SELECT name FROM pragma_index_info(i.name)) = c.name), count(*) OVER ()"
        " FROM pragma_table_info(?1) c ORDER BY c.cid";
    AUTO(sql_rows_endp) struct sql_rows *rows = NULL;
    int r = sql_query(db, &rows, e, sql, "s", shape->table);

    while (r == 0 && (r = sql_step(rows, e)) > 0) {
        if (!shape->columns)
            shape->columns = arena_array(a, (size_t)sql_int(rows, 6), sizeof(*shape->columns));
        read_column(rows, a, &shape->columns[shape->n_columns++]);
        r = 0;
    }
    return r;
}

static void copy_activity_columns(struct arena *a, struct table_shape *shape)
{
    shape->n_columns = TABLE_N_ACTIVITY_COLUMNS;
    shape->columns = arena_array(a, TABLE_N_ACTIVITY_COLUMNS, sizeof(*shape->columns));
    memcpy(shape->columns, table_activity_columns, sizeof(table_activity_columns));
}

int embedded_shape_read(struct sql_db *db, const char *table, struct arena *a, struct table_shape *ret, struct err *e)
{
    struct table_shape shape = { .is_published = true, .has_full_identity = true };
    enum made_as made = NOT_MADE;
    char *name = NULL;
    int r = 0;

    if (backend_table_name(a, table, &name, NULL) < 0)
        return refusals_no_table(table, e);
    shape.table = name;
    r = find_made(db, name, &made, e);
    if (r == 0 && made == NOT_MADE)
        r = refusals_no_table(name, e);
    shape.has_own_columns = made == AS_DECLARED;
    if (r == 0 && made == AS_DECLARED)
        r = read_columns(db, a, &shape, e);
    else if (r == 0)
        copy_activity_columns(a, &shape);
    if (r == 0)
        *ret = shape;
    return r;
}

int embedded_shape_of(struct embedded *em, struct sql_db *db, const char *table, struct arena *a,
                      struct table_shape *ret, struct err *e)
{
    const char *deletions = embedded_table_name(embedded_table_deletions(em->tables));
    char *name = NULL;

    if (backend_table_name(a, table, &name, NULL) < 0 || strcmp(name, deletions) != 0)
        return embedded_shape_read(db, table, a, ret, e);
    table_deletions_shape(a, name, ret);
    return 0;
}

int embedded_shape(struct backend *b, const char *table, struct arena *a, struct table_shape *ret, struct err *e)
{
    struct embedded *em = embedded_of(b);

    return embedded_shape_of(em, readers_get(em->readers), table, a, ret, e);
}

int embedded_published_list(struct sql_db *db, struct arena *a, const char ***ret, size_t *ret_n, struct err *e)
{
    AUTO(sql_rows_endp) struct sql_rows *rows = NULL;
    int r = sql_query(db, &rows, e,
                      "SELECT name, count(*) OVER () FROM (SELECT name FROM _tables UNION SELECT name FROM _declared)"
                      " ORDER BY name",
                      NULL);

    *ret_n = 0;
    while (r == 0 && (r = sql_step(rows, e)) > 0) {
        if (*ret_n == 0)
            *ret = arena_array(a, (size_t)sql_int(rows, 1), sizeof(**ret));
        (*ret)[(*ret_n)++] = sql_text(rows, a, 0);
        r = 0;
    }
    return r;
}
