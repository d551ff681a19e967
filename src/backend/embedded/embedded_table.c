#include "backend/embedded/embedded_table.h"
#include "backend/backend_columns.h"
#include "backend/embedded/embedded_schema.h"
#include "backend/refusals.h"
#include "backend/sql_template.h"
#include "backend/status.h"
#include "base/limits.h"
#include <pthread.h>

struct embedded_table {
    char *name;            /* owned */
    const char *deletions; /* borrowed from embedded_tables */
    bool is_made;          /* the table exists in the file; under the lock of embedded_tables */
    struct sql_texts texts;
    struct embedded_table *next;
};

struct embedded_tables {
    char *activities, *deletions; /* owned: <abbr>_activities, <abbr>_deletions */
    pthread_mutex_t lock;         /* guards first */
    struct embedded_table *first; /* owned */
};

/* --- templates --- */

/* json_object('id', new.id, ...): JSON columns as text, or embedded as JSON. */
static void put_object(struct buf *out, const char *prefix, bool is_slim, bool is_embedded)
{
    const char *comma = "";

    buf_add_str(out, "json_object(");
    for (size_t i = 0; i < BACKEND_N_COLUMNS; i++) {
        const struct backend_column *c = &backend_columns[i];
        bool as_json = is_embedded && c->kind == COLUMN_JSON;

        if (is_slim && !c->is_slim)
            continue;
        buf_printf(out, as_json ? "%s'%s', json(%s%s)" : "%s'%s', %s%s", comma, c->name, prefix, c->name);
        comma = ", ";
    }
    buf_add_str(out, ")");
}

static void put_columns(struct buf *out, const void *of)
{
    for (size_t i = 0; i < BACKEND_N_COLUMNS; i++)
        buf_printf(out, "%s%s", i ? ", " : "", backend_columns[i].name);
}

/* Without the last quote. */
static void begin_quoted(struct buf *out, const struct embedded_table *t, char quote)
{
    buf_add_char(out, quote);
    for (const char *at = t->name; *at; at++) {
        if (*at == quote)
            buf_add_char(out, quote);
        buf_add_char(out, *at);
    }
}

static void put_table(struct buf *out, const void *of)
{
    begin_quoted(out, of, '"');
    buf_add_char(out, '"');
}

static void put_literal(struct buf *out, const void *of)
{
    begin_quoted(out, of, '\'');
    buf_add_char(out, '\'');
}

/* The beginning of the names of its indexes and triggers. */
static void put_prefix(struct buf *out, const void *of)
{
    begin_quoted(out, of, '"');
}

static void put_deletions(struct buf *out, const void *of)
{
    const struct embedded_table *t = of;

    buf_printf(out, "\"%s\"", t->deletions);
}

static void put_now(struct buf *out, const void *of)
{
    buf_add_str(out, EMBEDDED_NOW);
}

static void put_row(struct buf *out, const void *of)
{
    put_object(out, "", false, false);
}

static void put_new_row(struct buf *out, const void *of)
{
    put_object(out, "new.", false, false);
}

static void put_old_row(struct buf *out, const void *of)
{
    put_object(out, "old.", false, false);
}

static void put_new_slim(struct buf *out, const void *of)
{
    put_object(out, "new.", true, false);
}

static void put_old_slim(struct buf *out, const void *of)
{
    put_object(out, "old.", true, false);
}

static void put_old_record(struct buf *out, const void *of)
{
    put_object(out, "old.", false, true);
}

static void put_max_raw_data(struct buf *out, const void *of)
{
    buf_printf(out, "%d", LIMIT_BODY_ACTIVITY);
}

static void put_max_result(struct buf *out, const void *of)
{
    buf_printf(out, "%d", LIMIT_RESULT_BYTES);
}

static void put_max_error(struct buf *out, const void *of)
{
    buf_printf(out, "%d", LIMIT_STRING_DEFAULT);
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

static const struct sql_word words[] = {
    { "{table}", put_table },
    { "{literal}", put_literal },
    { "{prefix}", put_prefix },
    { "{deletions}", put_deletions },
    { "{now}", put_now },
    { "{columns}", put_columns },
    { "{row}", put_row },
    { "{new_row}", put_new_row },
    { "{old_row}", put_old_row },
    { "{new_slim}", put_new_slim },
    { "{old_slim}", put_old_slim },
    { "{old_record}", put_old_record },
    { "{max_raw_data}", put_max_raw_data },
    { "{max_result}", put_max_result },
    { "{max_error}", put_max_error },
    { "{statuses}", put_statuses },
    { "{claimable}", put_claimable },
    { "{leased}", put_leased },
    { NULL, NULL },
};

const char *embedded_sql(struct embedded_table *t, const char *template)
{
    return sql_text_of(&t->texts, template, words, t);
}

/* --- the list --- */

const char *embedded_table_name(const struct embedded_table *t)
{
    return t->name;
}

static struct embedded_table *table_free(struct embedded_table *t)
{
    sql_texts_clear(&t->texts);
    free(t->name);
    free(t);
    return NULL;
}

/* The entry with that name, made when it does not exist yet. */
static struct embedded_table *table_of(struct embedded_tables *ts, const char *name)
{
    struct embedded_table *t;

    pthread_mutex_lock(&ts->lock);
    for (t = ts->first; t && strcmp(t->name, name) != 0; t = t->next)
        ;
    if (!t) {
        t = xcalloc(1, sizeof(*t));
        sql_texts_init(&t->texts);
        t->name = xstrdup(name);
        t->deletions = ts->deletions;
        t->next = ts->first;
        ts->first = t;
    }
    pthread_mutex_unlock(&ts->lock);
    return t;
}

static void set_made(struct embedded_tables *ts, struct embedded_table *t)
{
    pthread_mutex_lock(&ts->lock);
    t->is_made = true;
    pthread_mutex_unlock(&ts->lock);
}

static struct embedded_table *known_table(struct embedded_tables *ts, const char *name)
{
    struct embedded_table *t;

    pthread_mutex_lock(&ts->lock);
    for (t = ts->first; t && (!t->is_made || strcmp(t->name, name) != 0); t = t->next)
        ;
    pthread_mutex_unlock(&ts->lock);
    return t;
}

struct embedded_table *embedded_table_deletions(struct embedded_tables *ts)
{
    return table_of(ts, ts->deletions);
}

/* *ret: the name as the file spells it; NULL when the file has no such name, regardless of case. */
static int stored_name(struct sql_db *db, const char *name, struct arena *a, char **ret, struct err *e)
{
    AUTO(sql_rows_endp) struct sql_rows *rows = NULL;
    int r = sql_query(db, &rows, e, "SELECT name FROM _tables WHERE name = ?", "s", name);

    if (r == 0)
        r = sql_step(rows, e);
    if (r < 0)
        return r;
    *ret = r > 0 ? sql_text(rows, a, 0) : NULL;
    return 0;
}

int embedded_table_find(struct embedded_tables *ts, struct readers *readers, const char *name,
                        struct embedded_table **ret, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct embedded_table *t = known_table(ts, name);
    char *stored = NULL;
    int r;

    if (!t) {
        r = stored_name(readers_get(readers), name, a, &stored, e);
        if (r < 0)
            return r;
        if (!stored || strcmp(stored, name) != 0)
            return refusals_no_table(name, e);
        t = table_of(ts, name);
        set_made(ts, t);
    }
    *ret = t;
    return 0;
}

/* --- making --- */

/* A table with that name that another program made may lack columns. */
static int check_columns(struct sql_db *db, struct embedded_table *t, struct err *e)
{
    AUTO(sql_rows_endp) struct sql_rows *rows = NULL;
    struct err why = { 0 };
    int r = sql_query(
        db, &rows, &why,
        embedded_sql(
            t, "SELECT {columns}, claimed_by, revision, handled_revision, lease_mark, lease_ms FROM {table} LIMIT 0"),
        NULL);

    if (r < 0)
        return err_set(e, -EINVAL, "TABLE_UNFIT", "Table %s lacks columns an activities table has: %s", t->name,
                       why.text);
    return 0;
}

/* Upgrades a table that an earlier version made. */
static int upgrade_table(struct sql_db *db, struct embedded_table *t, struct err *e)
{
    AUTO(sql_rows_endp) struct sql_rows *rows = NULL;
    int r = sql_query(db, &rows, e,
                      embedded_sql(t, "SELECT 1 FROM pragma_table_info({literal}) WHERE name = 'lease_ms'"), NULL);

    if (r == 0)
        r = sql_step(rows, e);
    return r == 0
               ? sql_script(
                     db,
                     embedded_sql(
                         t,
                         "ALTER TABLE {table} ADD COLUMN lease_mark TEXT; ALTER TABLE {table} ADD COLUMN lease_ms INTEGER"),
                     e)
               : MIN(r, 0);
}

static int make_table(struct sql_db *db, struct embedded_table *t, struct err *e)
{
    bool is_deletions = strcmp(t->name, t->deletions) == 0;
    int r;

    r = sql_script(db, embedded_sql(t, embedded_schema_table), e);
    if (r == 0)
        r = upgrade_table(db, t, e);
    if (r == 0)
        r = check_columns(db, t, e);
    if (r == 0)
        r = sql_script(db, embedded_sql(t, embedded_schema_indexes), e);
    if (r == 0)
        r = sql_script(db, embedded_sql(t, embedded_schema_lease_trigger), e);
    if (r == 0 && !is_deletions)
        r = sql_script(db, embedded_sql(t, embedded_schema_triggers), e);
    if (r == 0 && !is_deletions)
        r = sql_exec(db, e, "INSERT OR IGNORE INTO _tables (name) VALUES (?)", "s", t->name);
    return r;
}

static int make_user_table(struct sql_db *db, void *arg, struct err *e)
{
    struct embedded_table *t = arg;
    AUTO(arena_freep) struct arena *a = arena_new();
    char *stored = NULL;
    int r;

    r = stored_name(db, t->name, a, &stored, e);
    if (r < 0)
        return r;
    if (stored && strcmp(stored, t->name) != 0)
        return err_set(e, -EINVAL, "VALIDATION_ERROR", "Table %s exists already as %s: use that name", t->name, stored);
    return stored ? 0 : make_table(db, t, e);
}

bool embedded_table_is_reserved(const struct embedded_tables *ts, const char *name)
{
    return name[0] == '_' || strncasecmp(name, "sqlite_", 7) == 0 || strcasecmp(name, ts->deletions) == 0;
}

int embedded_table_ensure(struct embedded_tables *ts, struct readers *readers, struct writer *w, const char *declared,
                          struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct embedded_table *t = NULL;
    char *name = NULL;
    int r;

    r = backend_table_name(a, declared, &name, e);
    if (r < 0)
        return r;
    if (embedded_table_is_reserved(ts, name))
        return err_set(e, -EINVAL, "VALIDATION_ERROR", "Table name %s is reserved", name);
    if (embedded_table_find(ts, readers, name, &t, NULL) == 0)
        return 0;
    t = table_of(ts, name);
    r = writer_run(w, make_user_table, t, e);
    if (r == 0)
        set_made(ts, t);
    return r;
}

static int check_version(struct sql_db *db, struct err *e)
{
    AUTO(sql_rows_endp) struct sql_rows *rows = NULL;
    int r = sql_query(db, &rows, e, "PRAGMA user_version", NULL);

    if (r == 0)
        r = sql_step(rows, e);
    if (r < 0)
        return r;
    if (sql_int(rows, 0) > EMBEDDED_SCHEMA_VERSION)
        return err_set(e, -EPROTONOSUPPORT, "SCHEMA_TOO_NEW",
                       "The backend file was written by a newer version (schema %lld, this program knows %d)",
                       (long long)sql_int(rows, 0), EMBEDDED_SCHEMA_VERSION);
    return 0;
}

int embedded_tables_list(struct sql_db *db, struct arena *a, const char ***ret, size_t *ret_n, struct err *e)
{
    AUTO(sql_rows_endp) struct sql_rows *rows = NULL;
    int r = sql_query(db, &rows, e, "SELECT name, count(*) OVER () FROM _tables ORDER BY name", NULL);

    *ret_n = 0;
    while (r == 0 && (r = sql_step(rows, e)) > 0) {
        if (*ret_n == 0)
            *ret = arena_array(a, (size_t)sql_int(rows, 1), sizeof(**ret));
        (*ret)[(*ret_n)++] = sql_text(rows, a, 0);
        r = 0;
    }
    return r;
}

/* Adds the columns of this version to all tables of the file. */
static int upgrade_tables(struct sql_db *db, struct embedded_tables *ts, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    const char **names = NULL;
    size_t n;
    int r = embedded_tables_list(db, a, &names, &n, e);

    for (size_t i = 0; r == 0 && i < n; i++)
        r = upgrade_table(db, table_of(ts, names[i]), e);
    return r;
}

static int upgrade_presence(struct sql_db *db, struct err *e)
{
    AUTO(sql_rows_endp) struct sql_rows *rows = NULL;
    int r = sql_query(db, &rows, e, "SELECT 1 FROM pragma_table_info('_presence') WHERE name = 'instance'", NULL);

    if (r == 0)
        r = sql_step(rows, e);
    return r == 0 ? sql_script(db, embedded_schema_presence_columns, e) : MIN(r, 0);
}

static int make_schema(struct sql_db *db, void *arg, struct err *e)
{
    struct embedded_tables *ts = arg;
    int r;

    r = check_version(db, e);
    if (r == 0)
        r = sql_script(db, embedded_schema_common, e);
    if (r == 0)
        r = upgrade_presence(db, e);
    if (r == 0)
        r = upgrade_tables(db, ts, e);
    if (r == 0)
        r = make_table(db, table_of(ts, ts->deletions), e);
    if (r == 0)
        r = make_table(db, table_of(ts, ts->activities), e);
    return r;
}

int embedded_tables_expect(struct embedded_tables *ts, struct sql_db *found, struct sql_db *into, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    const char **names = NULL;
    size_t n = 0;
    int r = make_schema(into, ts, e);

    if (r == 0)
        r = embedded_tables_list(found, a, &names, &n, e);
    for (size_t i = 0; r == 0 && i < n; i++)
        r = make_table(into, table_of(ts, names[i]), e);
    return r;
}

struct embedded_tables *embedded_tables_new(const char *abbr)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct embedded_tables *ts = xcalloc(1, sizeof(*ts));

    pthread_mutex_init(&ts->lock, NULL);
    ts->activities = xstrdup(arena_printf(a, "%s_activities", abbr));
    ts->deletions = xstrdup(arena_printf(a, "%s_deletions", abbr));
    return ts;
}

int embedded_tables_make(struct embedded_tables *ts, struct writer *w, struct err *e)
{
    int r = writer_run(w, make_schema, ts, e);

    if (r < 0)
        return r;
    set_made(ts, table_of(ts, ts->deletions));
    set_made(ts, table_of(ts, ts->activities));
    return 0;
}

struct embedded_tables *embedded_tables_free(struct embedded_tables *ts)
{
    if (!ts)
        return NULL;
    for (struct embedded_table *t = ts->first, *next; t; t = next) {
        next = t->next;
        table_free(t);
    }
    pthread_mutex_destroy(&ts->lock);
    free(ts->deletions);
    free(ts->activities);
    free(ts);
    return NULL;
}
