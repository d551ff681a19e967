#include "backend/postgres/postgres_outbox.h"
#include "backend/postgres/postgres_event_row.h"
#include "backend/postgres/postgres_outbox_schema.h"
#include "backend/sql_template.h"
#include "base/limits.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { PRUNE_BATCH = 1000, POSITION_BYTES = 1 << 20 };

struct postgres_outbox {
    struct pg_link *link; /* borrowed */
    char *abbr;           /* owned */
    struct sql_texts texts;
};

/* --- texts --- */

static void put_outbox(struct buf *out, const void *of)
{
    buf_printf(out, "\"public\".\"%s_outbox\"", ((const struct postgres_outbox *)of)->abbr);
}

static void put_mark(struct buf *out, const void *of)
{
    buf_printf(out, "\"public\".\"%s_outbox_mark\"", ((const struct postgres_outbox *)of)->abbr);
}

static void put_lock(struct buf *out, const void *of)
{
    int32_t key[2];

    postgres_outbox_lock_key(((const struct postgres_outbox *)of)->abbr, key);
    buf_printf(out, "%d, %d", key[0], key[1]);
}

static void put_range(struct buf *out, const void *of)
{
    buf_printf(out, "%d", LIMIT_EVENT_RANGE + 1);
}

static void put_batch(struct buf *out, const void *of)
{
    buf_printf(out, "%d", PRUNE_BATCH);
}

static const char *text(struct postgres_outbox *o, const char *template)
{
    static const struct sql_word words[] = {
        { "{outbox}", put_outbox }, { "{mark}", put_mark },   { "{lock}", put_lock },
        { "{range}", put_range },   { "{batch}", put_batch }, { NULL, NULL },
    };

    return sql_text_of(&o->texts, template, words, o);
}

struct postgres_outbox *postgres_outbox_open(struct pg_link *link, const char *abbr)
{
    struct postgres_outbox *o = xcalloc(1, sizeof(*o));

    o->link = link;
    o->abbr = xstrdup(abbr);
    sql_texts_init(&o->texts);
    pg_link_allow(link, LIMIT_EVENT_MESSAGE);
    return o;
}

struct postgres_outbox *postgres_outbox_close(struct postgres_outbox *o)
{
    if (!o)
        return NULL;
    sql_texts_clear(&o->texts);
    free(o->abbr);
    free(o);
    return NULL;
}

static int run(struct postgres_outbox *o, const struct net_wait *wait, struct pg_statement *st, struct err *e)
{
    st->sql = text(o, st->sql);
    st->is_prepared = true;
    pg_link_settle(o->link);
    return pg_link_run(o->link, wait, st, e);
}

/* --- looking --- */

/* The first row is the snapshot. A snapshot of the future belongs to another server. */
static const char look_sql[] =
    "WITH o AS (SELECT seq, xid FROM {outbox} WHERE xid >= pg_snapshot_xmax($1::pg_snapshot)"
    " UNION ALL SELECT seq, xid FROM {outbox} WHERE xid = ANY (ARRAY(SELECT pg_snapshot_xip($1::pg_snapshot)))),"
    " c AS (SELECT seq, max(seq) OVER (PARTITION BY xid) AS last FROM o ORDER BY 2, 1 LIMIT {range}),"
    " m AS (SELECT pg_snapshot_xmax($1::pg_snapshot) > pg_snapshot_xmax(pg_current_snapshot())"
    "  OR (pg_snapshot_xmax(pruned) <= pg_snapshot_xmax(pg_current_snapshot())"
    "   AND (pg_snapshot_xmax($1::pg_snapshot) < pg_snapshot_xmax(pruned)"
    "    OR EXISTS (SELECT 1 FROM pg_snapshot_xip($1::pg_snapshot) x WHERE pg_visible_in_snapshot(x, pruned))))"
    "  AS is_lost FROM {mark})"
    " SELECT 0 AS seq, 0 AS last, pg_current_snapshot()::text, coalesce((SELECT is_lost FROM m), false)::int"
    " UNION ALL SELECT seq, last, NULL, 0 FROM c ORDER BY 2, 1";

struct looking {
    struct postgres_outbox_range *range;
    size_t capacity;
};

/* "oldest:newest:open,..." */
static int read_position(const struct pg_row *row, struct postgres_outbox_range *range, struct err *e)
{
    struct slice position = SLICE_LIT("");
    int r = pg_row_text(row, 2, POSITION_BYTES, &position, e);
    char *end;

    if (r < 0)
        return r;
    errno = 0;
    range->oldest = strtoull(position.p, &end, 10);
    range->newest = *end == ':' ? strtoull(end + 1, &end, 10) : 0;
    if (errno || *end != ':' || range->oldest > range->newest)
        return pg_fault(e, "a snapshot is none");
    range->position = xstrdup(position.p);
    return 0;
}

static void add_seq(struct looking *looking, int64_t seq)
{
    struct postgres_outbox_range *range = looking->range;

    if (range->n == looking->capacity) {
        looking->capacity = looking->capacity ? 2 * looking->capacity : 64;
        range->seqs = xrealloc(range->seqs, looking->capacity * sizeof(*range->seqs));
    }
    range->seqs[range->n++] = seq;
}

static int take_look(void *arg, const struct pg_row *row, struct err *e)
{
    struct looking *looking = arg;
    int64_t seq = 0, is_lost = 0;
    int r = pg_row_int(row, 0, 0, INT64_MAX, &seq, e);

    if (r == 0)
        r = pg_row_int(row, 3, 0, 1, &is_lost, e);
    if (r < 0)
        return r;
    looking->range->is_lost = looking->range->is_lost || is_lost;
    if (seq > 0)
        add_seq(looking, seq);
    return seq > 0 || looking->range->position ? 0 : read_position(row, looking->range, e);
}

void postgres_outbox_range_clear(struct postgres_outbox_range *range)
{
    free(range->position);
    free(range->seqs);
    *range = (struct postgres_outbox_range){ 0 };
}

int postgres_outbox_look(struct postgres_outbox *o, const struct net_wait *wait, const char *position,
                         struct postgres_outbox_range *ret, struct err *e)
{
    struct postgres_outbox_range range = { 0 };
    struct looking looking = { .range = &range };
    struct pg_statement st = { .sql = position ? look_sql : "SELECT 0, 0, pg_current_snapshot()::text, 0",
                               .params = &position,
                               .n_params = position ? 1 : 0,
                               .n_columns = 4,
                               .max_rows = LIMIT_EVENT_RANGE + 2,
                               .on_row = take_look,
                               .arg = &looking };
    int r = run(o, wait, &st, e);

    if (r == 0 && !range.position)
        r = pg_fault(e, "a look at the outbox has no snapshot");
    if (range.n > LIMIT_EVENT_RANGE) {
        range.is_lost = true;
        range.n = 0;
    }
    if (r < 0)
        postgres_outbox_range_clear(&range);
    else
        *ret = range;
    return r;
}

/* --- fetching --- */

static const char fetch_sql[] =
    "SELECT o.seq, o.op, o.is_lease_only::int, o.is_cut::int, o.name, o.old, o.new, o.work"
    " FROM unnest($1::bigint[]) WITH ORDINALITY AS w(seq, n) JOIN {outbox} o ON o.seq = w.seq ORDER BY w.n";

struct fetching {
    const struct postgres_outbox_sink *sink;
    const char *deletions;
    size_t n;
};

/* *ret stays NULL when the column is NULL. -EINVAL: the row cannot be read. */
static int read_side(const struct pg_row *row, int column, const char *table, struct arena *a,
                     const struct backend_row **ret, struct err *e)
{
    struct slice image = SLICE_LIT("");
    struct backend_row *side;
    int r;

    if (pg_row_is_null(row, column))
        return 0;
    r = pg_row_text(row, column, LIMIT_EVENT_MESSAGE, &image, e);
    if (r < 0)
        return r;
    side = ARENA_NEW(a, struct backend_row);
    *ret = side;
    return postgres_event_row_read(a, image, table, side, e);
}

static int read_head(const struct pg_row *row, struct arena *a, struct backend_event *event, int64_t *ret_is_cut,
                     struct err *e)
{
    int64_t op = 0, is_lease_only = 0;
    struct slice name = SLICE_LIT("");
    int r = pg_row_int(row, 0, 1, INT64_MAX, &event->sequence, e);

    if (r == 0)
        r = pg_row_int(row, 1, 0, BACKEND_DELETE, &op, e);
    if (r == 0)
        r = pg_row_int(row, 2, 0, 1, &is_lease_only, e);
    if (r == 0)
        r = pg_row_int(row, 3, 0, 1, ret_is_cut, e);
    if (r == 0)
        r = pg_row_text(row, 4, LIMIT_SETTING_BYTES, &name, e);
    event->op = (enum backend_op)op;
    event->is_lease_only = is_lease_only != 0;
    event->table = arena_slicedup(a, name);
    return r;
}

/* An event has the rows that its kind needs. */
static bool is_whole(const struct backend_event *event)
{
    return (event->op == BACKEND_INSERT && event->new_row) || (event->op == BACKEND_DELETE && event->old_row) ||
           (event->op == BACKEND_UPDATE && event->old_row && event->new_row);
}

static int take_change(void *arg, const struct pg_row *row, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct fetching *f = arg;
    struct backend_event event = { 0 };
    int64_t is_cut = 0;
    int r = read_head(row, a, &event, &is_cut, e), sides = 0;

    if (r < 0)
        return r;
    f->n++;
    if (!is_cut)
        sides = read_side(row, 5, event.table, a, &event.old_row, NULL);
    if (!is_cut && sides == 0)
        sides = read_side(row, 6, event.table, a, &event.new_row, NULL);
    if (!is_cut && sides == 0)
        sides = read_side(row, 7, f->deletions, a, &event.work, NULL);
    if (is_cut || sides < 0 || !is_whole(&event))
        f->sink->on_gap(f->sink->arg);
    else
        f->sink->on_event(f->sink->arg, &event);
    return 0;
}

static const char *list_of(struct arena *a, const int64_t *seqs, size_t n)
{
    struct buf out;

    buf_init(&out, KIB(16));
    for (size_t i = 0; i < n; i++)
        buf_printf(&out, "%c%lld", i ? ',' : '{', (long long)seqs[i]);
    buf_add_char(&out, '}');
    return buf_to_arena(&out, a);
}

int postgres_outbox_fetch(struct postgres_outbox *o, const struct net_wait *wait, const int64_t *seqs, size_t n,
                          const struct postgres_outbox_sink *sink, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct fetching f = { .sink = sink, .deletions = arena_printf(a, "%s_deletions", o->abbr) };
    const char *const params[] = { list_of(a, seqs, n) };
    struct pg_statement st = { .sql = fetch_sql,
                               .params = params,
                               .n_params = 1,
                               .n_columns = 8,
                               .max_rows = n,
                               .max_bytes = SIZE_MAX,
                               .on_row = take_change,
                               .arg = &f };
    int r;

    assert(n > 0 && n <= POSTGRES_OUTBOX_PAGE);
    r = run(o, wait, &st, e);
    if (r == 0 && f.n < n)
        sink->on_gap(sink->arg); /* pruned in between */
    return r;
}

/* --- resting --- */

static int take_number(void *arg, const struct pg_row *row, struct err *e)
{
    return pg_row_int(row, 0, INT64_MIN, INT64_MAX, arg, e);
}

static int number(struct postgres_outbox *o, const struct net_wait *wait, const char *sql, int64_t *ret, struct err *e)
{
    struct pg_statement st = { .sql = sql, .n_columns = 1, .max_rows = 1, .on_row = take_number, .arg = ret };

    return run(o, wait, &st, e);
}

int postgres_outbox_rest(struct postgres_outbox *o, const struct net_wait *wait, bool *ret_is_so, struct err *e)
{
    int64_t is_so = 0;
    int r = number(o, wait, "SELECT pg_try_advisory_lock_shared({lock})::int", &is_so, e);

    if (r == 0)
        *ret_is_so = is_so != 0;
    return r;
}

int postgres_outbox_wake(struct postgres_outbox *o, const struct net_wait *wait, struct err *e)
{
    int64_t is_so = 0;

    return number(o, wait, "SELECT pg_advisory_unlock_shared({lock})::int", &is_so, e);
}

/* --- pruning --- */

/* What the mark sees was committed when the mark was set. A mark of the future is that of another server. */
static const char mark_sql[] =
    "UPDATE {mark} SET marked_at = clock_timestamp(), mark = pg_current_snapshot(),"
    " pruned = CASE WHEN pg_snapshot_xmax(mark) <= pg_snapshot_xmax(pg_current_snapshot()) THEN mark END"
    " WHERE marked_at NOT BETWEEN clock_timestamp() - interval '30 seconds' AND clock_timestamp()"
    " OR pg_snapshot_xmax(mark) > pg_snapshot_xmax(pg_current_snapshot())";

static const char prune_sql[] = "DELETE FROM {outbox} WHERE seq IN (SELECT o.seq FROM {outbox} o, {mark} m"
                                " WHERE o.xid < pg_snapshot_xmax(m.pruned) AND pg_visible_in_snapshot(o.xid, m.pruned)"
                                " AND pg_snapshot_xmax(m.pruned) <= pg_snapshot_xmax(pg_current_snapshot())"
                                " ORDER BY o.xid LIMIT {batch})";

int postgres_outbox_prune(struct postgres_outbox *o, const struct net_wait *wait, bool *ret_is_more, struct err *e)
{
    struct pg_statement mark = { .sql = mark_sql }, prune = { .sql = prune_sql };
    int64_t n = 0;
    int r;

    prune.ret_changes = &n;
    r = run(o, wait, &mark, e);
    if (r == 0)
        r = run(o, wait, &prune, e);
    if (r == 0)
        *ret_is_more = n == PRUNE_BATCH;
    return r;
}
