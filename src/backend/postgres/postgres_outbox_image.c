#include "backend/postgres/postgres_outbox_image.h"
#include "backend/backend_columns.h"

#include <string.h>

struct field {
    const char *name, *type;
    const char *cast;      /* of the column of a table, whose type may be another one; "": none */
    const char *of_record; /* the value in a record as JSON, which `@` stands for */
};

#define ID_OF_RECORD                                                                                                   \
    "CASE WHEN TG_NARGS = 2 THEN @ ->> TG_ARGV[1] ELSE coalesce((SELECT jsonb_agg(@ -> k.name ORDER BY k.i)::text"     \
    " FROM unnest(TG_ARGV[1:TG_NARGS - 1]) WITH ORDINALITY k(name, i)), '') END"

static const struct field lease[] = {
    { "id", "text", "::pg_catalog.text", ID_OF_RECORD },
    { "app_id", "text", "", "NULL" },
    { "status", "text", "", "coalesce(@ ->> 'status', '')" },
    { "locked_by", "text", "", "@ ->> 'locked_by'" },
    { "retry_count", "integer", "", "0" },
    { "attempt", "bigint", "", "0" },
    { "event_type", "text", "", "NULL" },
    { "source_table", "text", "", "NULL" },
    { "revision", "bigint", "", "0" },
    { "handled_revision", "bigint", "", "0" },
    { NULL, NULL, NULL, NULL },
};

static const struct field rest[] = {
    { "user_id", "text", "::pg_catalog.text", "@ ->> 'user_id'" },
    { "raw_data", "jsonb", "", "@" },
    { "old_data", "jsonb", "", "NULL" },
    { "locked_at", "timestamptz", "", "NULL" },
    { "completed_at", "timestamptz", "", "NULL" },
    { "error_message", "text", "", "NULL" },
    { "attempted_by", "text[]", "", "NULL" },
    { "result", "jsonb", "", "NULL" },
    { "created_at", "timestamptz", "", "NULL" },
    { NULL, NULL, NULL, NULL },
};

static const struct field *fields_of(enum postgres_image_part part)
{
    return part == POSTGRES_IMAGE_LEASE ? lease : rest;
}

void postgres_image_put_fields(struct buf *out, enum postgres_image_part part)
{
    for (const struct field *f = fields_of(part); f->name; f++)
        buf_printf(out, "%s%s %s", f == fields_of(part) ? "" : ", ", f->name, f->type);
}

void postgres_image_put_row(struct buf *out, enum postgres_image_part part, char row)
{
    for (const struct field *f = fields_of(part); f->name; f++)
        buf_printf(out, "%s%c.%s%s", f == fields_of(part) ? "ROW(" : ", ", row, f->name, f->cast);
    buf_add_char(out, ')');
}

static void put_of_record(struct buf *out, const char *value, char record)
{
    for (; *value; value++)
        buf_add_char(out, *value == '@' ? record : *value);
}

void postgres_image_put_record(struct buf *out, enum postgres_image_part part, char record)
{
    for (const struct field *f = fields_of(part); f->name; f++) {
        buf_add_str(out, f == fields_of(part) ? "ROW(" : ", ");
        put_of_record(out, f->of_record, record);
    }
    buf_add_char(out, ')');
}

/* One element of an image: a text, or NULL. */
static void put_text(struct buf *out, const struct backend_column *c, const char *side)
{
    const char *suffix = c->is_slim ? "" : "_rest";

    if (c->kind == COLUMN_BOOL)
        buf_printf(out, "((o.%s).handled_revision < (o.%s).revision AND (o.%s).status <> 'pending')::int::text", side,
                   side, side);
    else if (c->kind == COLUMN_TIME)
        buf_printf(out, "to_char((o.%s%s).%s AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.US\"Z\"')", side, suffix,
                   c->name);
    else if (strcmp(c->name, "attempted_by") == 0)
        buf_printf(out, "to_jsonb((o.%s%s).%s)::text", side, suffix, c->name);
    else
        buf_printf(out, "(o.%s%s).%s::text", side, suffix, c->name);
}

/* The rest of a change of the lease alone is NULL, column by column. */
void postgres_image_put_texts(struct buf *out, const char *side)
{
    buf_printf(out, "CASE WHEN (o.%s).id IS NOT NULL AND (o.is_lease_only OR NOT o.%s_rest IS NULL) THEN", side, side);
    for (size_t i = 0; i < BACKEND_N_COLUMNS; i++) {
        buf_add_str(out, i == 0 ? " array_to_json(ARRAY[" : ", ");
        put_text(out, &backend_columns[i], side);
    }
    buf_add_str(out, "])::text END");
}
