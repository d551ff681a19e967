/* Tables with columns of their own: the project is asked whether it has the table as declared; what is missing is made
 * by the set-up, because the REST interface makes none. */
#include "backend/hosted/hosted_query.h"
#include "backend/query_declare.h"
#include "base/limits.h"
#include "net/wait.h"

#include <string.h>

static int check_name(struct hosted *h, const char *name, struct err *e)
{
    static const char *const own[] = {
        "deletions", "tables", "presence", "schema", "outbox", "outbox_mark", "declared"
    };
    AUTO(arena_freep) struct arena *a = arena_new_sized(512);
    bool is_own = name[0] == '_';

    for (size_t i = 0; i < ARRAY_SIZE(own); i++)
        is_own = is_own || strcmp(name, arena_printf(a, "%s_%s", h->abbr, own[i])) == 0;
    return is_own ? err_set(e, -EINVAL, "VALIDATION_ERROR", "Table name %s is reserved", name) : 0;
}

static bool has_every_column(const struct table_shape *declared, const struct table_shape *existing)
{
    for (size_t i = 0; i < declared->n_columns; i++)
        if (!table_shape_column(existing, slice_of(declared->columns[i].name)))
            return false;
    return existing->n_columns > 0;
}

static int make(struct hosted *h, const struct table_shape *declared, const struct table_shape *existing, struct err *e)
{
    const struct net_wait wait = net_wait_of(LIMIT_HOSTED_CALL_MS, NULL, &h->is_closing);
    struct err why = { 0 };
    int r = h->config.declare ? h->config.declare(h->config.arg, declared, existing, &wait, &why)
                              : err_set(&why, -ENOENT, "UNKNOWN_TABLE", "no account can be asked to");

    if (r >= 0)
        return 0;
    return err_set(
        e, r, why.code,
        "The project has no table %.130s as it is declared, and its REST interface cannot make one (%.300s): log in with "
        "`hearth backend login`, or make it in the project's SQL editor, with a row in %s_declared",
        declared->table, why.text, h->abbr);
}

/* The columns are read anew: another program may have made the table since. */
static int make_what_lacks(struct hosted *h, const struct table_shape *declared, struct arena *a, struct err *e)
{
    struct table_shape existing = { 0 };
    bool is_listed = false;
    int r = hosted_shape_any(h, declared->table, a, &existing, &is_listed, e);

    if (r < 0)
        return r;
    if (existing.n_columns && !existing.has_own_columns)
        return err_set(e, -EEXIST, "TABLE_DIFFERS", "Table %.130s has the columns of the Activities table",
                       declared->table);
    if (existing.n_columns)
        r = query_declare_compare(declared, &existing, e);
    if (r < 0 || (is_listed && existing.is_published && has_every_column(declared, &existing)))
        return r;
    r = make(h, declared, &existing, e);
    hosted_shape_forget(h, declared->table);
    return r;
}

int hosted_declare(struct backend *b, const struct table_shape *declared, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct table_shape named = *declared, shape = { 0 };
    struct hosted *h = hosted_of(b);
    char *name = NULL;
    int r = backend_table_name(a, declared->table, &name, e);

    if (r == 0)
        r = check_name(h, name, e);
    if (r == 0)
        r = query_declare_check(declared, e);
    named.table = name;
    if (r == 0)
        r = make_what_lacks(h, &named, a, e);
    if (r == 0)
        r = hosted_shape(b, name, a, &shape, e);
    return r < 0 ? r : hosted_events_watch(h, name, e);
}
