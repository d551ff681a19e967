#include "backend/backend_columns.h"

#define COLUMN(column, member, column_kind, ...)                                                                       \
    {                                                                                                                  \
        .name = (column), .kind = (column_kind), .offset = offsetof(struct backend_row, member), __VA_ARGS__           \
    }

/* clang-format off */
const struct backend_column backend_columns[BACKEND_N_COLUMNS] = {
    COLUMN("id",            id,            COLUMN_TEXT, .is_slim = true),
    COLUMN("app_id",        app_id,        COLUMN_TEXT, .is_slim = true),
    COLUMN("user_id",       user_id,       COLUMN_TEXT),
    COLUMN("raw_data",      raw_data,      COLUMN_JSON),
    COLUMN("old_data",      old_data,      COLUMN_JSON),
    COLUMN("status",        status,        COLUMN_TEXT, .is_slim = true),
    COLUMN("locked_by",     locked_by,     COLUMN_TEXT, .is_slim = true),
    COLUMN("locked_at",     locked_at,     COLUMN_TIME),
    COLUMN("completed_at",  completed_at,  COLUMN_TIME),
    COLUMN("error_message", error_message, COLUMN_TEXT),
    COLUMN("attempted_by",  attempted_by,  COLUMN_JSON),
    COLUMN("retry_count",   retry_count,   COLUMN_INT,  .is_slim = true),
    COLUMN("result",        result,        COLUMN_JSON),
    COLUMN("created_at",    created_at,    COLUMN_TIME),
    COLUMN("attempt",       attempt,       COLUMN_INT,  .is_slim = true),
    COLUMN("event_type",    event,         COLUMN_EVENT, .is_slim = true),
    COLUMN("source_table",  source_table,  COLUMN_TEXT, .is_slim = true),
    COLUMN("is_dirty",      is_dirty,      COLUMN_BOOL, .is_slim = true),
};
/* clang-format on */

const struct backend_column *backend_column_find(struct slice name)
{
    for (size_t i = 0; i < BACKEND_N_COLUMNS; i++)
        if (slice_eq_str(name, backend_columns[i].name))
            return &backend_columns[i];
    return NULL;
}

bool backend_column_is_text(const struct backend_column *c)
{
    return c->kind == COLUMN_TEXT || c->kind == COLUMN_TIME || c->kind == COLUMN_JSON;
}

static const void *member_of(const struct backend_row *row, const struct backend_column *c)
{
    return (const char *)row + c->offset;
}

const char *backend_row_text(const struct backend_row *row, const struct backend_column *c)
{
    if (c->kind == COLUMN_EVENT)
        return backend_op_name(row->event);
    return *(const char *const *)member_of(row, c);
}

int64_t backend_row_int(const struct backend_row *row, const struct backend_column *c)
{
    if (c->kind == COLUMN_BOOL)
        return *(const bool *)member_of(row, c);
    return *(const int64_t *)member_of(row, c);
}

void backend_row_set_text(struct backend_row *row, const struct backend_column *c, const char *text)
{
    if (c->kind == COLUMN_EVENT)
        row->event = backend_op_of_name(text);
    else
        *(const char **)((char *)row + c->offset) = text;
}

void backend_row_set_int(struct backend_row *row, const struct backend_column *c, int64_t value)
{
    if (c->kind == COLUMN_BOOL)
        *(bool *)((char *)row + c->offset) = value != 0;
    else
        *(int64_t *)((char *)row + c->offset) = value;
}

void backend_row_copy(struct arena *a, const struct backend_row *from, struct backend_row *to)
{
    *to = *from;
    to->table = arena_strdup(a, from->table);
    for (size_t i = 0; i < BACKEND_N_COLUMNS; i++)
        if (backend_column_is_text(&backend_columns[i]))
            backend_row_set_text(to, &backend_columns[i], arena_strdup(a, backend_row_text(from, &backend_columns[i])));
}
