#include "backend/backend_columns.h"
#include "backend/hosted/hosted.h"
#include "base/clock.h"
#include "base/uuid.h"

#include <string.h>
#include <strings.h>

enum { TIME_BYTES = 64 };

/* ---- one value ---- */

static int refuse_value(const struct backend_column *c, struct err *e)
{
    return hosted_fault(e, "%s of a row has a value of another type", c->name);
}

/* "2026-11-20 09:30:18.112761+00" becomes "2026-11-20T09:30:18.112761Z"; other zones stay, and so do the times that
 * only PostgreSQL knows (infinity, before Christ): any user may store them, and a list has the rows of all. */
static const char *read_time(const char *text, struct arena *a)
{
    char *copy = arena_strdup(a, text);
    size_t n = strlen(copy);

    if (n > 10 && copy[10] == ' ')
        copy[10] = 'T';
    if (n > 6 && strcmp(copy + n - 6, "+00:00") == 0)
        memcpy(copy + n - 6, "Z", sizeof("Z"));
    else if (n > 3 && strcmp(copy + n - 3, "+00") == 0)
        memcpy(copy + n - 3, "Z", sizeof("Z"));
    return copy;
}

static int read_text(const struct backend_column *c, struct json_value v, struct arena *a, const char **ret,
                     struct err *e)
{
    const char *text = json_cstr(v);

    if (c->kind == COLUMN_JSON) {
        *ret = json_to_str(a, v);
        return 0;
    }
    if (!text || (c->kind == COLUMN_TIME && strlen(text) > TIME_BYTES))
        return refuse_value(c, e);
    *ret = c->kind == COLUMN_TIME ? read_time(text, a) : arena_strdup(a, text);
    return 0;
}

/* SQLite has no booleans: a deleted row that the embedded backend has kept says 0 or 1. */
static bool is_truth(struct json_value v)
{
    return json_type(v) == JSON_BOOL || (json_type(v) == JSON_INT && (json_int(v) == 0 || json_int(v) == 1));
}

static int read_value(const struct backend_column *c, struct json_value v, struct arena *a, struct backend_row *ret,
                      struct err *e)
{
    const char *text = NULL;
    int r = 0;

    if (json_is_absent(v))
        return 0;
    if (c->kind == COLUMN_BOOL && !is_truth(v))
        return refuse_value(c, e);
    if (c->kind == COLUMN_INT && json_type(v) != JSON_INT)
        return refuse_value(c, e);
    if (c->kind == COLUMN_BOOL || c->kind == COLUMN_INT) {
        backend_row_set_int(ret, c, json_type(v) == JSON_BOOL ? json_bool(v) : json_int(v));
        return 0;
    }
    r = read_text(c, v, a, &text, e);
    if (r == 0)
        backend_row_set_text(ret, c, text);
    return r;
}

/* ---- one row ---- */

/* Whoever may write a row may store NULL among the names, and lists of lists. */
static int check_machines(struct json_value list, struct err *e)
{
    if (json_is_absent(list) || json_type(list) == JSON_ARRAY)
        return 0;
    return hosted_fault(e, "attempted_by of a row is no list");
}

/* What a table that another set-up made leaves out. The lease's time takes the place of its number. */
static void fill_in(struct json_value record, struct backend_row *row)
{
    int64_t ms;

    row->raw_data = row->raw_data ? row->raw_data : "{}";
    row->attempted_by = row->attempted_by ? row->attempted_by : "[]";
    row->status = row->status ? row->status : "pending";
    if (json_is_absent(json_get(record, "event_type")))
        row->event = row->old_data ? BACKEND_UPDATE : BACKEND_INSERT;
    if (json_is_absent(json_get(record, "attempt")) && row->locked_at &&
        clock_parse(slice_of(row->locked_at), &ms) == 0)
        row->attempt = ms;
}

int hosted_read_row(const char *table, struct json_value record, struct arena *a, struct hosted_row *ret, struct err *e)
{
    struct hosted_row row = { .row = { .table = table } };
    int r = json_type(record) == JSON_OBJECT ? 0 : hosted_fault(e, "a row is no object");

    for (size_t i = 0; r == 0 && i < BACKEND_N_COLUMNS; i++)
        r = read_value(&backend_columns[i], json_get(record, backend_columns[i].name), a, &row.row, e);
    if (r == 0)
        r = check_machines(json_get(record, "attempted_by"), e);
    if (r == 0 && (!row.row.id || !uuid_is_valid(slice_of(row.row.id)) || !row.row.created_at))
        r = hosted_fault(e, "a row has no valid id or no time of creation");
    if (r < 0)
        return r;
    fill_in(record, &row.row);
    row.claimed_by = arena_strdup(a, json_cstr(json_get(record, "claimed_by")));
    row.revision = json_int(json_get(record, "revision"));
    row.seq = json_int(json_get(record, "seq"));
    *ret = row;
    return 0;
}

/* ---- lists ---- */

static bool has_id(const struct hosted_rows *rows, const char *id)
{
    for (size_t i = 0; i < rows->n; i++)
        if (rows->items[i].row.id && strcasecmp(rows->items[i].row.id, id) == 0)
            return true;
    return false;
}

int hosted_read_rows(struct hosted_table *t, struct json_value list, size_t max_rows, struct arena *a,
                     struct hosted_rows *ret, struct err *e)
{
    size_t n = json_length(list);
    struct hosted_rows rows = { .items = arena_array(a, MIN(n, max_rows) + 1, sizeof(*rows.items)) };
    const char *table = arena_strdup(a, t->name);
    struct json_iter it = json_iter(list);
    struct json_value item;
    struct slice key;
    int r = json_type(list) == JSON_ARRAY ? 0 : hosted_fault(e, "it is no list of rows");

    if (r == 0 && n > max_rows)
        r = hosted_fault(e, "it has %zu rows where at most %zu were asked for", n, max_rows);
    while (r == 0 && json_next(&it, &key, &item)) {
        r = hosted_read_row(table, item, a, &rows.items[rows.n], e);
        if (r == 0 && has_id(&rows, rows.items[rows.n].row.id))
            r = hosted_fault(e, "the row %s is there twice", rows.items[rows.n].row.id);
        rows.n += r == 0;
    }
    if (r == 0)
        *ret = rows;
    return r;
}

struct backend_rows hosted_plain_rows(const struct hosted_rows *rows, struct arena *a)
{
    struct backend_rows ret = { arena_array(a, rows->n + 1, sizeof(*ret.items)), rows->n };

    for (size_t i = 0; i < rows->n; i++)
        ret.items[i] = rows->items[i].row;
    return ret;
}
