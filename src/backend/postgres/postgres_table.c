#include "backend/postgres/postgres_table.h"
#include "backend/backend_columns.h"
#include "backend/postgres/postgres_schema.h"
#include "backend/postgres/postgres_outbox_schema.h"
#include "backend/sql_template.h"
#include "backend/status.h"
#include "base/hash.h"
#include "base/limits.h"

#include <stdlib.h>
#include <string.h>

struct postgres_table {
    char *name, *schema, *bare;        /* owned; the last two as the catalog has them */
    const struct postgres_tables *all; /* borrowed */
    bool is_made;
    struct sql_texts texts;
    struct postgres_table *next;
};

struct postgres_tables {
    char *abbr, *role, *activities, *deletions; /* owned */
    pthread_mutex_t lock;                       /* guards first and is_made */
    struct postgres_table *first;               /* owned */
};

/* --- quoting --- */

static void put_quoted(struct buf *out, struct slice text, char quote)
{
    buf_add_char(out, quote);
    for (size_t i = 0; i < text.n; i++) {
        if (text.p[i] == quote)
            buf_add_char(out, quote);
        buf_add_char(out, text.p[i]);
    }
    buf_add_char(out, quote);
}

static void put_named(struct buf *out, const char *abbr, const char *suffix)
{
    buf_printf(out, "\"public\".\"%s_%s\"", abbr, suffix);
}

/* --- words --- */

static void put_table(struct buf *out, const void *of)
{
    const struct postgres_table *t = of;

    put_quoted(out, slice_of(t->schema), '"');
    buf_add_char(out, '.');
    put_quoted(out, slice_of(t->bare), '"');
}

static void put_table_schema(struct buf *out, const void *of)
{
    const struct postgres_table *t = of;

    put_quoted(out, slice_of(t->schema), '"');
}

static void put_schema_literal(struct buf *out, const void *of)
{
    const struct postgres_table *t = of;

    put_quoted(out, slice_of(t->schema), '\'');
}

static void put_bare_literal(struct buf *out, const void *of)
{
    const struct postgres_table *t = of;

    put_quoted(out, slice_of(t->bare), '\'');
}

static void put_name(struct buf *out, const void *of)
{
    const struct postgres_table *t = of;

    put_quoted(out, slice_of(t->name), '\'');
}

/* A name of 63 bytes leaves no room for a suffix. */
static void put_index(struct buf *out, const void *of)
{
    const struct postgres_table *t = of;

    buf_printf(out, "hearth_%016llx", (unsigned long long)hash_fast(slice_of(t->name)));
}

static const char *abbr_of(const void *of)
{
    return ((const struct postgres_table *)of)->all->abbr;
}

#define NAMED(word)                                                                                                    \
    static void put_##word(struct buf *out, const void *of)                                                            \
    {                                                                                                                  \
        put_named(out, abbr_of(of), #word);                                                                            \
    }
NAMED(activities)
NAMED(deletions)
NAMED(tables)
NAMED(presence)
NAMED(schema)

static void put_fn(struct buf *out, const void *of)
{
    buf_printf(out, "\"public\".\"%s_fn_", abbr_of(of));
}

static void put_abbr(struct buf *out, const void *of)
{
    buf_add_str(out, abbr_of(of));
}

static void put_role(struct buf *out, const void *of)
{
    put_quoted(out, slice_of(((const struct postgres_table *)of)->all->role), '"');
}

static void put_role_literal(struct buf *out, const void *of)
{
    put_quoted(out, slice_of(((const struct postgres_table *)of)->all->role), '\'');
}

static void put_now(struct buf *out, const void *of)
{
    buf_add_str(out, "clock_timestamp()");
}

#define IS_DIRTY "(%shandled_revision < %srevision AND %sstatus <> 'pending')"

/* Microseconds, so that a row's created_at names its place in the order of creation. */
static void put_value(struct buf *out, const struct backend_column *c, const char *row)
{
    if (c->kind == COLUMN_TIME)
        buf_printf(out, "to_char(%s%s AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.US\"Z\"')", row, c->name);
    else if (c->kind == COLUMN_BOOL)
        buf_printf(out, IS_DIRTY, row, row, row);
    else if (strcmp(c->name, "attempted_by") == 0)
        buf_printf(out, "to_jsonb(%sattempted_by)", row);
    else
        buf_printf(out, "%s%s", row, c->name);
}

static void put_columns(struct buf *out, const void *of)
{
    for (size_t i = 0; i < BACKEND_N_COLUMNS; i++) {
        const struct backend_column *c = &backend_columns[i];

        buf_add_str(out, i ? ", " : "");
        put_value(out, c, "");
        if (c->kind == COLUMN_BOOL)
            buf_add_str(out, "::int");
    }
}

/* What no check of the table bounds, in a form that can always be read. */
static const struct {
    const char *column, *bounded;
} loose_columns[] = {
    { "app_id", "left(app_id, 100)" },
    { "old_data", "NULL" },
    { "status", "left(status, 100)" },
    { "locked_by", "left(locked_by, 100)" },
    { "error_message", "'" POSTGRES_OVERSIZE_WHY "'" },
    { "attempted_by", "'[]'::jsonb" },
    { "event_type", "left(event_type, 100)" },
    { "source_table", "left(source_table, 100)" },
};

static const char *bounded_of(const struct backend_column *c)
{
    for (size_t i = 0; i < ARRAY_SIZE(loose_columns); i++)
        if (strcmp(loose_columns[i].column, c->name) == 0)
            return loose_columns[i].bounded;
    return NULL;
}

static void put_bounded(struct buf *out, const void *of)
{
    for (size_t i = 0; i < BACKEND_N_COLUMNS; i++) {
        const struct backend_column *c = &backend_columns[i];
        const char *bounded = bounded_of(c);

        buf_add_str(out, i ? ", " : "");
        if (bounded)
            buf_printf(out, "CASE WHEN id = ANY ($6::uuid[]) THEN %s ELSE ", bounded);
        put_value(out, c, "");
        if (bounded || c->kind == COLUMN_BOOL)
            buf_add_str(out, bounded ? " END" : "::int");
    }
}

static void put_record(struct buf *out, const void *of)
{
    buf_add_str(out, "jsonb_build_object(");
    for (size_t i = 0; i < BACKEND_N_COLUMNS; i++) {
        buf_printf(out, "%s'%s', ", i ? ", " : "", backend_columns[i].name);
        put_value(out, &backend_columns[i], "o.");
    }
    buf_add_char(out, ')');
}

static void put_outbox(struct buf *out, const void *of)
{
    postgres_outbox_put(out, ((const struct postgres_table *)of)->all->abbr);
}

static void put_outbox_triggers(struct buf *out, const void *of)
{
    const struct postgres_table *t = of;
    struct buf quoted;

    buf_init(&quoted, SQL_TEXT_BYTES);
    put_table(&quoted, t);
    postgres_outbox_put_table(out, &(struct postgres_outbox_table){ t->all->abbr, buf_str(&quoted), t->name,
                                                                    strcmp(t->name, t->all->deletions) == 0 });
    buf_clear(&quoted);
}

static void put_statuses(struct buf *out, const void *of)
{
    status_add_list(out, STATUSES_ALL);
}

static void put_claimable(struct buf *out, const void *of)
{
    status_add_list(out, STATUSES_CLAIMABLE);
}

static void put_leased(struct buf *out, const void *of)
{
    status_add_list(out, STATUSES_LEASED);
}

static void put_max_json(struct buf *out, const void *of)
{
    buf_printf(out, "%d", LIMIT_BACKEND_JSON_BYTES);
}

static void put_max_error(struct buf *out, const void *of)
{
    buf_printf(out, "%d", LIMIT_STRING_DEFAULT);
}

static void put_max_machines(struct buf *out, const void *of)
{
    buf_printf(out, "%d", LIMIT_ATTEMPT_MACHINES);
}

static void put_version(struct buf *out, const void *of)
{
    buf_printf(out, "%d", POSTGRES_SCHEMA_VERSION);
}

static const struct sql_word words[] = {
    { "{table}", put_table },
    { "{table_schema}", put_table_schema },
    { "{schema_literal}", put_schema_literal },
    { "{bare_literal}", put_bare_literal },
    { "{name}", put_name },
    { "{index}", put_index },
    { "{activities}", put_activities },
    { "{deletions}", put_deletions },
    { "{tables}", put_tables },
    { "{presence}", put_presence },
    { "{schema}", put_schema },
    { "{outbox}", put_outbox },
    { "{outbox_triggers}", put_outbox_triggers },
    { "{fn}", put_fn },
    { "{abbr}", put_abbr },
    { "{role}", put_role },
    { "{role_literal}", put_role_literal },
    { "{max_machines}", put_max_machines },
    { "{version}", put_version },
    { "{now}", put_now },
    { "{columns}", put_columns },
    { "{bounded}", put_bounded },
    { "{record}", put_record },
    { "{statuses}", put_statuses },
    { "{claimable}", put_claimable },
    { "{leased}", put_leased },
    { "{max_json}", put_max_json },
    { "{max_error}", put_max_error },
    { NULL, NULL },
};

const char *postgres_sql(struct postgres_table *t, const char *template)
{
    return sql_text_of(&t->texts, template, words, t);
}

void postgres_sql_put(struct buf *out, const struct postgres_table *t, const char *template)
{
    sql_template_expand(out, template, words, t);
}

char *postgres_sql_once(struct arena *a, const struct postgres_table *t, const char *template)
{
    struct buf out;

    buf_init(&out, SQL_TEXT_BYTES);
    postgres_sql_put(&out, t, template);
    return buf_to_arena(&out, a);
}

/* --- the list --- */

const char *postgres_table_name(const struct postgres_table *t)
{
    return t->name;
}

static struct postgres_table *find(struct postgres_tables *ts, const char *name)
{
    struct postgres_table *t = ts->first;

    while (t && strcmp(t->name, name) != 0)
        t = t->next;
    return t;
}

static struct postgres_table *add_table(struct postgres_tables *ts, const char *name)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    const struct table_parts parts = backend_table_parts(a, name);
    struct postgres_table *t = xcalloc(1, sizeof(*t));

    t->name = xstrdup(name);
    t->schema = xstrdup(parts.schema);
    t->bare = xstrdup(parts.table);
    t->all = ts;
    sql_texts_init(&t->texts);
    t->next = ts->first;
    ts->first = t;
    return t;
}

struct postgres_table *postgres_table_of(struct postgres_tables *ts, const char *name)
{
    struct postgres_table *t;

    pthread_mutex_lock(&ts->lock);
    t = find(ts, name);
    if (!t)
        t = add_table(ts, name);
    pthread_mutex_unlock(&ts->lock);
    return t;
}

struct postgres_table *postgres_table_deletions(struct postgres_tables *ts)
{
    return postgres_table_of(ts, ts->deletions);
}

struct postgres_table *postgres_table_activities(struct postgres_tables *ts)
{
    return postgres_table_of(ts, ts->activities);
}

bool postgres_table_is_made(struct postgres_tables *ts, const char *name)
{
    const struct postgres_table *t;
    bool is_made;

    pthread_mutex_lock(&ts->lock);
    t = find(ts, name);
    is_made = t && t->is_made;
    pthread_mutex_unlock(&ts->lock);
    return is_made;
}

void postgres_table_set_made(struct postgres_tables *ts, struct postgres_table *t, bool is_made)
{
    pthread_mutex_lock(&ts->lock);
    t->is_made = is_made;
    pthread_mutex_unlock(&ts->lock);
}

struct postgres_tables *postgres_tables_new(const char *abbr, const char *role)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct postgres_tables *ts = xcalloc(1, sizeof(*ts));

    pthread_mutex_init(&ts->lock, NULL);
    ts->abbr = xstrdup(abbr);
    ts->role = xstrdup(role ? role : "");
    ts->activities = xstrdup(arena_printf(a, "%s_activities", abbr));
    ts->deletions = xstrdup(arena_printf(a, "%s_deletions", abbr));
    return ts;
}

struct postgres_tables *postgres_tables_free(struct postgres_tables *ts)
{
    if (!ts)
        return NULL;
    for (struct postgres_table *t = ts->first, *next; t; t = next) {
        next = t->next;
        sql_texts_clear(&t->texts);
        free(t->name);
        free(t->schema);
        free(t->bare);
        free(t);
    }
    pthread_mutex_destroy(&ts->lock);
    free(ts->abbr);
    free(ts->role);
    free(ts->activities);
    free(ts->deletions);
    free(ts);
    return NULL;
}
