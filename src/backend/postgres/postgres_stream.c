#include "backend/postgres/postgres_stream.h"
#include "backend/backend_columns.h"
#include "backend/postgres/postgres.h"
#include "backend/postgres/postgres_json.h"
#include "backend/postgres/postgres_record.h"
#include "backend/query_sql.h"
#include "base/hash.h"
#include "base/limits.h"

#include <stdlib.h>
#include <string.h>

/* Columns that are no part of struct backend_row, after those of backend_columns. */
enum { COLUMN_REVISION = BACKEND_N_COLUMNS, COLUMN_HANDLED_REVISION, COLUMN_DELETED_ID, N_COLUMNS };
enum { BUCKETS = 4096 };

struct relation {
    uint32_t id;
    char *table; /* owned: as events report it */
    bool is_deletions;
    struct postgres_record_shape *record; /* owned: of a table with columns of its own; NULL: it has those of work */
    int at[N_COLUMNS];                    /* places in a row; -1: the table has no such column */
    struct relation *next;
};

struct change {
    struct backend_event event;
    struct change *next;
    struct change *next_deleted; /* of the same bucket */
};

struct postgres_stream {
    struct postgres_outbox_sink sink;
    struct postgres_stream_catalog catalog;
    char *deletions;            /* owned: <abbr>_deletions */
    struct relation *relations; /* owned */
    size_t n_relations;

    struct arena *arena; /* owned: of the transaction; NULL: none is open */
    struct change *first, **last;
    struct change **deleted; /* BUCKETS of deletions whose work has not come yet; NULL: there was none */
    size_t n;
    bool is_lost;
};

/* --- relations --- */

static struct relation *find_relation(const struct postgres_stream *s, uint32_t id)
{
    struct relation *rel = s->relations;

    while (rel && rel->id != id)
        rel = rel->next;
    return rel;
}

static int place_of(const struct pgoutput_relation *rel, const char *column)
{
    for (size_t i = 0; i < rel->n_columns; i++)
        if (strcmp(rel->columns[i], column) == 0)
            return (int)i;
    return -1;
}

static size_t column_of(const char *name)
{
    return (size_t)(backend_column_find(slice_of(name)) - backend_columns);
}

static void set_places(struct relation *rel, const struct pgoutput_relation *in)
{
    static const char *const more[] = { "revision", "handled_revision", "deleted_id" };

    for (size_t i = 0; i < BACKEND_N_COLUMNS; i++)
        rel->at[i] = place_of(in, backend_columns[i].name);
    for (size_t i = 0; i < ARRAY_SIZE(more); i++)
        rel->at[BACKEND_N_COLUMNS + i] = place_of(in, more[i]);
}

/* Tables with work have all of these. */
static bool has_work(const struct relation *rel)
{
    return rel->at[column_of("id")] >= 0 && rel->at[column_of("status")] >= 0 && rel->at[column_of("raw_data")] >= 0 &&
           rel->at[COLUMN_REVISION] >= 0 && rel->at[COLUMN_HANDLED_REVISION] >= 0;
}

/* As backend_table_name() returns it. */
static char *table_name(const struct pgoutput_relation *in)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct buf quoted;
    char *name = NULL;

    buf_init(&quoted, KIB(1));
    query_sql_quote(&quoted, in->schema);
    buf_add_char(&quoted, '.');
    query_sql_quote(&quoted, in->name);
    if (backend_table_name(a, buf_str(&quoted), &name, NULL) < 0)
        name = arena_strdup(a, in->name); /* empty */
    buf_clear(&quoted);
    return xstrdup(name);
}

/* The catalog is asked for a table with columns of its own. */
static int set_record(struct postgres_stream *s, struct relation *rel, const struct pgoutput_relation *in,
                      struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct postgres_columns columns = { 0 };
    int r = has_work(rel) ? 0 : s->catalog.read_columns(s->catalog.arg, in->id, a, &columns, e);

    rel->record = postgres_record_shape_free(rel->record);
    if (r == 0 && !has_work(rel))
        rel->record = postgres_record_shape_new(in, &columns);
    return r;
}

static int take_relation(struct postgres_stream *s, const struct pgoutput_relation *in, struct err *e)
{
    struct relation *rel = find_relation(s, in->id);

    if (!rel) {
        if (s->n_relations == LIMIT_EVENT_RELATIONS)
            return pg_fault(e, "the stream has more than %d tables", LIMIT_EVENT_RELATIONS);
        rel = xcalloc(1, sizeof(*rel));
        rel->id = in->id;
        rel->next = s->relations;
        s->relations = rel;
        s->n_relations++;
    }
    free(rel->table);
    rel->table = table_name(in);
    rel->is_deletions = strcmp(rel->table, s->deletions) == 0;
    set_places(rel, in);
    return set_record(s, rel, in, e);
}

/* --- values --- */

/* What the server did not send again is in the old row. */
static const struct pgoutput_value *value_of(const struct relation *rel, size_t column,
                                             const struct pgoutput_tuple *tuple, const struct pgoutput_tuple *old)
{
    int at = rel->at[column];
    const struct pgoutput_value *value = at >= 0 && (size_t)at < tuple->n ? &tuple->values[at] : NULL;

    if (value && value->kind == PGOUTPUT_UNCHANGED)
        value = old && (size_t)at < old->n && old->values[at].kind != PGOUTPUT_UNCHANGED ? &old->values[at] : NULL;
    return value && value->kind == PGOUTPUT_TEXT ? value : NULL;
}

static bool is_same(const struct relation *rel, size_t column, const struct pgoutput_change *c)
{
    const struct pgoutput_value *old = value_of(rel, column, &c->old, NULL),
                                *new = value_of(rel, column, &c->new, &c->old);

    return (!old && !new) || (old && new &&slice_eq(old->text, new->text));
}

static bool is_same_named(const struct relation *rel, const char *name, const struct pgoutput_change *c)
{
    return is_same(rel, column_of(name), c);
}

/* 2026-11-20 09:30:18.1+00 -> 2026-11-20T09:30:18.100000Z; any other text stays. */
static char *time_of(struct arena *a, struct slice text)
{
    enum { SECONDS = 19, ZONE = 3, DIGITS = 6 };
    int n_digits = (int)text.n - SECONDS - ZONE - 1;
    char *out = arena_slicedup(a, text);

    if (text.n < SECONDS + ZONE || text.p[10] != ' ' || memcmp(text.p + text.n - ZONE, "+00", ZONE) != 0 ||
        n_digits > DIGITS)
        return out;
    out[10] = 'T';
    return arena_printf(a, "%.*s.%.*s%.*sZ", SECONDS, out, MAX(n_digits, 0), out + SECONDS + 1,
                        DIGITS - MAX(n_digits, 0), "000000");
}

/* {a,"b c",NULL} -> ["a","b c",null] */
static char *array_of(struct arena *a, struct slice text)
{
    static const struct postgres_column texts = { .is_array = true, .delimiter = ',' };
    struct json_writer w;
    struct buf out;

    buf_init(&out, LIMIT_BACKEND_ROW_BYTES);
    json_write_init(&w, &out);
    postgres_json_add(&w, NULL, &texts, text);
    return buf_to_arena(&out, a);
}

static int64_t number_of(const struct pgoutput_value *value)
{
    char text[24];

    snprintf(text, sizeof(text), "%.*s", value ? (int)MIN(value->text.n, sizeof(text) - 1) : 0,
             value ? value->text.p : "");
    return strtoll(text, NULL, 10);
}

/* --- rows --- */

static void set_column(struct arena *a, size_t i, const struct pgoutput_value *value, struct backend_row *row)
{
    const struct backend_column *c = &backend_columns[i];

    if (c->kind == COLUMN_INT)
        backend_row_set_int(row, c, number_of(value));
    else if (c->kind == COLUMN_TIME)
        backend_row_set_text(row, c, time_of(a, value->text));
    else if (strcmp(c->name, "attempted_by") == 0)
        backend_row_set_text(row, c, array_of(a, value->text));
    else if (c->kind == COLUMN_JSON)
        backend_row_set_text(row, c, postgres_compact_json(a, value->text));
    else
        backend_row_set_text(row, c, arena_slicedup(a, value->text));
}

static bool is_dirty(const struct relation *rel, const struct pgoutput_tuple *tuple, const struct pgoutput_tuple *old,
                     const struct backend_row *row)
{
    return number_of(value_of(rel, COLUMN_HANDLED_REVISION, tuple, old)) <
               number_of(value_of(rel, COLUMN_REVISION, tuple, old)) &&
           row->status && strcmp(row->status, "pending") != 0;
}

static size_t bytes_of(const struct pgoutput_tuple *tuple, const struct pgoutput_tuple *old)
{
    size_t n = 0;

    for (size_t i = 0; i < tuple->n; i++)
        n += tuple->values[i].kind == PGOUTPUT_UNCHANGED && old && i < old->n ? old->values[i].text.n
                                                                              : tuple->values[i].text.n;
    return n;
}

/* NULL: the row lacks what every row has, or is too large for an event. */
static const struct backend_row *row_of(struct postgres_stream *s, const struct relation *rel,
                                        const struct pgoutput_tuple *tuple, const struct pgoutput_tuple *old,
                                        bool is_slim)
{
    struct backend_row *row = ARENA_NEW(s->arena, struct backend_row);

    if (!is_slim && bytes_of(tuple, old) > LIMIT_EVENT_IMAGE)
        return NULL;
    row->table = arena_strdup(s->arena, rel->table);
    for (size_t i = 0; i < BACKEND_N_COLUMNS; i++) {
        const struct pgoutput_value *value = value_of(rel, i, tuple, old);

        if (value && (!is_slim || backend_columns[i].is_slim))
            set_column(s->arena, i, value, row);
    }
    row->is_dirty = is_dirty(rel, tuple, old, row);
    return row->id && row->status ? row : NULL;
}

/* --- changes --- */

static struct change *add_change(struct postgres_stream *s, const struct relation *rel, enum backend_op op)
{
    struct change *change = ARENA_NEW(s->arena, struct change);

    change->event = (struct backend_event){ .op = op, .table = arena_strdup(s->arena, rel->table) };
    *s->last = change;
    s->last = &change->next;
    s->n++;
    return change;
}

static struct change **bucket_of(struct postgres_stream *s, struct slice id)
{
    if (!s->deleted)
        s->deleted = arena_array(s->arena, BUCKETS, sizeof(struct change *));
    return &s->deleted[hash_fast(id) % BUCKETS];
}

static bool is_work_of(const struct change *change, const struct pgoutput_value *id,
                       const struct pgoutput_value *source)
{
    return slice_eq_str(id->text, change->event.old_row->id) && slice_eq_str(source->text, change->event.table);
}

/* The work of a deletion comes after it, in the same transaction, in any order. */
static void add_work(struct postgres_stream *s, const struct relation *rel, const struct pgoutput_tuple *tuple)
{
    const struct pgoutput_value *id = value_of(rel, COLUMN_DELETED_ID, tuple, NULL);
    const struct pgoutput_value *source = value_of(rel, column_of("source_table"), tuple, NULL);
    struct change **at = id && source ? bucket_of(s, id->text) : NULL, *of;

    while (at && *at && !is_work_of(*at, id, source))
        at = &(*at)->next_deleted;
    if (!at || !*at)
        return;
    of = *at;
    *at = of->next_deleted;
    of->event.work = row_of(s, rel, tuple, NULL, false);
    s->is_lost = s->is_lost || !of->event.work;
}

static void take_insert(struct postgres_stream *s, const struct relation *rel, const struct pgoutput_change *c)
{
    const struct backend_row *row;

    if (rel->is_deletions) {
        add_work(s, rel, &c->new);
        return;
    }
    row = row_of(s, rel, &c->new, NULL, false);
    if (row)
        add_change(s, rel, BACKEND_INSERT)->event.new_row = row;
    s->is_lost = s->is_lost || !row;
}

/* A sign of life sets only locked_at, so it is no event. */
static bool is_sign_of_life(const struct relation *rel, const struct pgoutput_change *c)
{
    static const char *const columns[] = { "status",      "locked_by", "completed_at", "error_message", "attempted_by",
                                           "retry_count", "attempt",   "event_type",   "result" };

    for (size_t i = 0; i < ARRAY_SIZE(columns); i++)
        if (!is_same_named(rel, columns[i], c))
            return false;
    return !is_same_named(rel, "locked_at", c);
}

static void take_update(struct postgres_stream *s, const struct relation *rel, const struct pgoutput_change *c)
{
    bool is_slim =
        is_same(rel, COLUMN_REVISION, c) && is_same_named(rel, "app_id", c) && is_same_named(rel, "user_id", c);
    const struct backend_row *old, *new;
    struct change *change;

    if (!c->old.values || !c->is_old_whole) {
        s->is_lost = true;
        return;
    }
    if (is_slim && is_sign_of_life(rel, c))
        return;
    old = row_of(s, rel, &c->old, NULL, is_slim);
    new = row_of(s, rel, &c->new, &c->old, is_slim);
    s->is_lost = s->is_lost || !old || !new;
    if (!old || !new)
        return;
    change = add_change(s, rel, BACKEND_UPDATE);
    change->event.is_lease_only = is_slim;
    change->event.old_row = old;
    change->event.new_row = new;
}

static void take_delete(struct postgres_stream *s, const struct relation *rel, const struct pgoutput_change *c)
{
    const struct backend_row *old;
    struct change *change, **bucket;

    if (rel->is_deletions)
        return;
    old = c->is_old_whole ? row_of(s, rel, &c->old, NULL, false) : NULL;
    s->is_lost = s->is_lost || !old;
    if (!old)
        return;
    change = add_change(s, rel, BACKEND_DELETE);
    change->event.old_row = old;
    bucket = bucket_of(s, slice_of(old->id));
    change->next_deleted = *bucket;
    *bucket = change;
}

/* --- tables with columns of their own --- */

/* Without a whole old row it has the key, which the new row has unless it changed. */
static const struct backend_row *old_record(struct postgres_stream *s, const struct relation *rel,
                                            const struct pgoutput_change *c)
{
    const struct postgres_record_image image = { .tuple = c->old.values ? &c->old : &c->new,
                                                 .is_key_only = !c->is_old_whole };

    return postgres_record_row(rel->record, s->arena, rel->table, &image);
}

static const struct backend_row *new_record(struct postgres_stream *s, const struct relation *rel,
                                            const struct pgoutput_change *c)
{
    const struct postgres_record_image image = { .tuple = &c->new, .old = c->is_old_whole ? &c->old : NULL };

    return postgres_record_row(rel->record, s->arena, rel->table, &image);
}

static void take_record(struct postgres_stream *s, const struct relation *rel, const struct pgoutput_change *c)
{
    enum backend_op op = c->kind == PGOUTPUT_INSERT   ? BACKEND_INSERT
                         : c->kind == PGOUTPUT_UPDATE ? BACKEND_UPDATE
                                                      : BACKEND_DELETE;
    const struct backend_row *old = op == BACKEND_INSERT ? NULL : old_record(s, rel, c),
                             *new = op == BACKEND_DELETE ? NULL : new_record(s, rel, c);
    struct change *change;

    if ((op != BACKEND_INSERT && !old) || (op != BACKEND_DELETE && !new)) {
        s->is_lost = true;
        return;
    }
    change = add_change(s, rel, op);
    change->event.old_row = old;
    change->event.new_row = new;
}

/* --- transactions --- */

static void end_transaction(struct postgres_stream *s)
{
    s->arena = arena_free(s->arena);
    s->first = NULL;
    s->deleted = NULL;
    s->last = &s->first;
    s->n = 0;
    s->is_lost = false;
}

static void take_begin(struct postgres_stream *s)
{
    end_transaction(s);
    s->arena = arena_new();
}

static void take_commit(struct postgres_stream *s, uint64_t end, uint64_t after)
{
    for (const struct change *change = end > after ? s->first : NULL; change; change = change->next)
        s->sink.on_event(s->sink.arg, &change->event);
    if (end > after && s->is_lost)
        s->sink.on_gap(s->sink.arg);
    end_transaction(s);
}

/* What has been gathered is dropped, and the rest is passed over. */
static void check_size(struct postgres_stream *s)
{
    if (s->n <= LIMIT_EVENT_RANGE && arena_bytes(s->arena) <= LIMIT_EVENT_TRANSACTION)
        return;
    end_transaction(s);
    s->arena = arena_new();
    s->is_lost = true;
    s->n = LIMIT_EVENT_RANGE + 1;
}

static int take_change(struct postgres_stream *s, const struct pgoutput_change *c, struct err *e)
{
    const struct relation *rel = find_relation(s, c->relation.id);

    if (!rel || !s->arena)
        return pg_fault(e, "a change of the stream has no %s", rel ? "transaction" : "table");
    if (s->n > LIMIT_EVENT_RANGE)
        return 0;
    if (rel->record)
        take_record(s, rel, c);
    else if (c->kind == PGOUTPUT_INSERT)
        take_insert(s, rel, c);
    else if (c->kind == PGOUTPUT_UPDATE)
        take_update(s, rel, c);
    else
        take_delete(s, rel, c);
    check_size(s);
    return 0;
}

static int take(struct postgres_stream *s, const struct pgoutput_change *c, uint64_t after, struct err *e)
{
    switch (c->kind) {
    case PGOUTPUT_BEGIN:
        take_begin(s);
        return 0;
    case PGOUTPUT_COMMIT:
        take_commit(s, c->end, after);
        return 0;
    case PGOUTPUT_RELATION:
        return take_relation(s, &c->relation, e);
    case PGOUTPUT_TRUNCATE:
        s->is_lost = true;
        return 0;
    case PGOUTPUT_OTHER:
        return 0;
    default:
        return take_change(s, c, e);
    }
}

bool postgres_stream_is_open(const struct postgres_stream *s)
{
    return s->arena != NULL;
}

int postgres_stream_take(struct postgres_stream *s, struct slice body, uint64_t after, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct pgoutput_change change = { 0 };
    int r = pgoutput_read(body, a, &change, e);

    return r < 0 ? r : take(s, &change, after, e);
}

struct postgres_stream *postgres_stream_new(const char *abbr, const struct postgres_outbox_sink *sink,
                                            const struct postgres_stream_catalog *catalog)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct postgres_stream *s = xcalloc(1, sizeof(*s));

    s->sink = *sink;
    s->catalog = *catalog;
    s->deletions = xstrdup(arena_printf(a, "%s_deletions", abbr));
    end_transaction(s);
    return s;
}

struct postgres_stream *postgres_stream_free(struct postgres_stream *s)
{
    if (!s)
        return NULL;
    end_transaction(s);
    for (struct relation *rel = s->relations, *next; rel; rel = next) {
        next = rel->next;
        postgres_record_shape_free(rel->record);
        free(rel->table);
        free(rel);
    }
    free(s->deletions);
    free(s);
    return NULL;
}
