#include "backend/postgres/postgres_outbox.h"
#include "backend/postgres/postgres_event_row.h"
#include "backend/postgres/postgres_outbox_image.h"
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

static void put_attended(struct buf *out, const void *of)
{
    int32_t key[2];

    postgres_outbox_lock_key(((const struct postgres_outbox *)of)->abbr, key);
    buf_printf(out, "%d, %d", key[0] + 1, key[1]);
}

static void put_range(struct buf *out, const void *of)
{
    buf_printf(out, "%d", LIMIT_EVENT_RANGE + 1);
}

static void put_batch(struct buf *out, const void *of)
{
    buf_printf(out, "%d", PRUNE_BATCH);
}

static void put_max(struct buf *out, const void *of)
{
    buf_printf(out, "%d", LIMIT_EVENT_IMAGE);
}

static void put_old(struct buf *out, const void *of)
{
    postgres_image_put_texts(out, "old");
}

static void put_new(struct buf *out, const void *of)
{
    postgres_image_put_texts(out, "new");
}

static void put_work(struct buf *out, const void *of)
{
    postgres_image_put_texts(out, "work");
}

static const char *text(struct postgres_outbox *o, const char *template)
{
    static const struct sql_word words[] = {
        { "{outbox}", put_outbox },     { "{mark}", put_mark },   { "{lock}", put_lock },
        { "{range}", put_range },       { "{batch}", put_batch }, { "{max}", put_max },
        { "{attended}", put_attended }, { "{old}", put_old },     { "{new}", put_new },
        { "{work}", put_work },         { NULL, NULL },
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
    " c AS (SELECT seq, max(seq) OVER (PARTITION BY xid) AS last, xid FROM o ORDER BY 2, 1 LIMIT {range}),"
    " m AS (SELECT pg_snapshot_xmax($1::pg_snapshot) > pg_snapshot_xmax(pg_current_snapshot())"
    "  OR (pg_snapshot_xmax(pruned) <= pg_snapshot_xmax(pg_current_snapshot())"
    "   AND (pg_snapshot_xmax($1::pg_snapshot) < pg_snapshot_xmax(pruned)"
    "    OR EXISTS (SELECT 1 FROM pg_snapshot_xip($1::pg_snapshot) x WHERE pg_visible_in_snapshot(x, pruned))))"
    "  AS is_lost FROM {mark})"
    " SELECT 0 AS seq, 0 AS last, pg_current_snapshot()::text, coalesce((SELECT is_lost FROM m), false)::int, 0"
    " UNION ALL SELECT seq, last, NULL, 0, xid::text::bigint FROM c ORDER BY 2, 1";

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

static void add_key(struct looking *looking, struct postgres_outbox_key key)
{
    struct postgres_outbox_range *range = looking->range;

    if (range->n == looking->capacity) {
        looking->capacity = looking->capacity ? 2 * looking->capacity : 64;
        range->keys = xrealloc(range->keys, looking->capacity * sizeof(*range->keys));
    }
    range->keys[range->n++] = key;
}

static int take_look(void *arg, const struct pg_row *row, struct err *e)
{
    struct looking *looking = arg;
    struct postgres_outbox_key key = { 0, 0 };
    int64_t is_lost = 0;
    int r = pg_row_int(row, 0, 0, INT64_MAX, &key.seq, e);

    if (r == 0)
        r = pg_row_int(row, 3, 0, 1, &is_lost, e);
    if (r == 0)
        r = pg_row_int(row, 4, 0, INT64_MAX, &key.xid, e);
    if (r < 0)
        return r;
    looking->range->is_lost = looking->range->is_lost || is_lost;
    if (key.seq > 0)
        add_key(looking, key);
    return key.seq > 0 || looking->range->position ? 0 : read_position(row, looking->range, e);
}

void postgres_outbox_range_clear(struct postgres_outbox_range *range)
{
    free(range->position);
    free(range->keys);
    *range = (struct postgres_outbox_range){ 0 };
}

int postgres_outbox_look(struct postgres_outbox *o, const struct net_wait *wait, const char *position,
                         struct postgres_outbox_range *ret, struct err *e)
{
    struct postgres_outbox_range range = { 0 };
    struct looking looking = { .range = &range };
    struct pg_statement st = { .sql = position ? look_sql : "SELECT 0, 0, pg_current_snapshot()::text, 0, 0",
                               .params = &position,
                               .n_params = position ? 1 : 0,
                               .n_columns = 5,
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

/* An image beyond the limit is left out by the server. */
static const char fetch_sql[] =
    "SELECT o.seq, o.op, o.is_lease_only::int, o.is_cut::int, o.name,"
    " CASE WHEN octet_length(i.old) <= {max} THEN i.old END, CASE WHEN octet_length(i.new) <= {max} THEN i.new END,"
    " CASE WHEN octet_length(i.work) <= {max} THEN i.work END,"
    " ((o.work).id IS NOT NULL AND coalesce(octet_length(i.work) > {max}, true))::int"
    " FROM unnest($1::xid8[], $2::bigint[]) WITH ORDINALITY AS w(xid, seq, n)"
    " JOIN {outbox} o ON o.xid = w.xid AND o.seq = w.seq,"
    " LATERAL (SELECT {old} AS old, {new} AS new, {work} AS work OFFSET 0) i ORDER BY w.n";

struct fetching {
    const struct postgres_outbox_sink *sink;
    const char *deletions;
    size_t n;
};

/* *ret stays NULL when the column is NULL. -EINVAL: the row cannot be read. */
static int read_side(const struct pg_row *row, int column, struct postgres_event_image image, struct arena *a,
                     const struct backend_row **ret, struct err *e)
{
    struct backend_row *side;
    int r;

    if (pg_row_is_null(row, column))
        return 0;
    r = pg_row_text(row, column, LIMIT_EVENT_IMAGE, &image.json, e);
    if (r < 0)
        return r;
    side = ARENA_NEW(a, struct backend_row);
    *ret = side;
    return postgres_event_row_read(a, &image, side, e);
}

static int read_sides(const struct pg_row *row, const char *deletions, struct arena *a, struct backend_event *event,
                      struct err *e)
{
    const struct postgres_event_image image = { .table = event->table };
    int r = read_side(row, 5, image, a, &event->old_row, e);

    if (r == 0)
        r = read_side(row, 6, image, a, &event->new_row, e);
    return r < 0 ? r : read_side(row, 7, (struct postgres_event_image){ .table = deletions }, a, &event->work, e);
}

static int read_head(const struct pg_row *row, struct arena *a, struct backend_event *event, bool *ret_is_cut,
                     struct err *e)
{
    int64_t op = 0, is_lease_only = 0, is_cut = 0, is_work_cut = 0;
    struct slice name = SLICE_LIT("");
    int r = pg_row_int(row, 0, 1, INT64_MAX, &event->sequence, e);

    if (r == 0)
        r = pg_row_int(row, 1, 0, BACKEND_DELETE, &op, e);
    if (r == 0)
        r = pg_row_int(row, 2, 0, 1, &is_lease_only, e);
    if (r == 0)
        r = pg_row_int(row, 3, 0, 1, &is_cut, e);
    if (r == 0)
        r = pg_row_int(row, 8, 0, 1, &is_work_cut, e);
    if (r == 0)
        r = pg_row_text(row, 4, LIMIT_SETTING_BYTES, &name, e);
    event->op = (enum backend_op)op;
    event->is_lease_only = is_lease_only != 0;
    event->table = arena_slicedup(a, name);
    *ret_is_cut = is_cut || is_work_cut;
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
    bool is_cut = false;
    int r = read_head(row, a, &event, &is_cut, e);

    if (r < 0)
        return r;
    f->n++;
    if (is_cut || read_sides(row, f->deletions, a, &event, NULL) < 0 || !is_whole(&event))
        f->sink->on_gap(f->sink->arg);
    else
        f->sink->on_event(f->sink->arg, &event);
    return 0;
}

static const char *list_of(struct arena *a, const struct postgres_outbox_key *keys, size_t n, bool is_of_xids)
{
    struct buf out;

    buf_init(&out, KIB(16));
    for (size_t i = 0; i < n; i++)
        buf_printf(&out, "%c%lld", i ? ',' : '{', (long long)(is_of_xids ? keys[i].xid : keys[i].seq));
    buf_add_char(&out, '}');
    return buf_to_arena(&out, a);
}

/* What a program has written may have no text: a server refuses to print more than 1 GB. */
static bool is_unprintable(struct pg_link *link)
{
    static const char *const classes[] = { "22", "54", "XX", "53200" };
    bool is_so = false;

    for (size_t i = 0; !pg_link_is_dead(link) && i < ARRAY_SIZE(classes); i++)
        is_so = is_so || strncmp(pg_link_sqlstate(link), classes[i], strlen(classes[i])) == 0;
    return is_so;
}

int postgres_outbox_fetch(struct postgres_outbox *o, const struct net_wait *wait,
                          const struct postgres_outbox_key *keys, size_t n, const struct postgres_outbox_sink *sink,
                          struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct fetching f = { .sink = sink, .deletions = arena_printf(a, "%s_deletions", o->abbr) };
    const char *const params[] = { list_of(a, keys, n, true), list_of(a, keys, n, false) };
    struct pg_statement st = { .sql = fetch_sql,
                               .params = params,
                               .n_params = 2,
                               .n_columns = 9,
                               .max_rows = n,
                               .max_bytes = SIZE_MAX,
                               .on_row = take_change,
                               .arg = &f };
    int r;

    assert(n > 0 && n <= POSTGRES_OUTBOX_PAGE);
    r = run(o, wait, &st, e);
    if (r < 0 && is_unprintable(o->link))
        r = 0;
    if (r == 0 && f.n < n)
        sink->on_gap(sink->arg); /* pruned in between, or not readable */
    return r;
}

/* --- attending --- */

static int take_number(void *arg, const struct pg_row *row, struct err *e)
{
    return pg_row_int(row, 0, INT64_MIN, INT64_MAX, arg, e);
}

static int number(struct postgres_outbox *o, const struct net_wait *wait, const char *sql, int64_t *ret, struct err *e)
{
    struct pg_statement st = { .sql = sql, .n_columns = 1, .max_rows = 1, .on_row = take_number, .arg = ret };

    return run(o, wait, &st, e);
}

/* Two statements: the second one begins when the lock is held. */
int postgres_outbox_attend(struct postgres_outbox *o, const struct net_wait *wait, uint64_t *ret_from, struct err *e)
{
    struct pg_statement lock = { .sql = "SELECT pg_advisory_lock_shared({attended})" };
    int64_t from = 0;
    int r = run(o, wait, &lock, e);

    if (r == 0)
        r = postgres_outbox_want(o, wait, e);
    if (r == 0)
        r = number(o, wait, "SELECT coalesce(recorded_from::text::bigint, 0) FROM {mark}", &from, e);
    if (r == 0)
        *ret_from = (uint64_t)from;
    return r;
}

int postgres_outbox_want(struct postgres_outbox *o, const struct net_wait *wait, struct err *e)
{
    struct pg_statement st = { .sql = "UPDATE {mark} SET wanted_until = clock_timestamp() + interval '60 seconds',"
                                      " recorded_from = CASE WHEN wanted_until > clock_timestamp() THEN recorded_from"
                                      "  ELSE pg_current_xact_id() END"
                                      " WHERE wanted_until IS NULL OR wanted_until NOT BETWEEN"
                                      "  clock_timestamp() + interval '45 seconds' AND"
                                      "  clock_timestamp() + interval '90 seconds'" };

    return run(o, wait, &st, e);
}

/* --- resting --- */

/* The end of a snapshot is behind the last transaction that has ended, not behind the last that has begun: this one
 * begins after those that found no lock, and ends, so that the next snapshot counts them among the open ones. */
static const char rest_sql[] = "SELECT CASE WHEN pg_try_advisory_lock_shared({lock})"
                               " THEN (pg_current_xact_id() IS NOT NULL)::int ELSE 0 END";

int postgres_outbox_rest(struct postgres_outbox *o, const struct net_wait *wait, bool *ret_is_so, struct err *e)
{
    int64_t is_so = 0;
    int r = number(o, wait, rest_sql, &is_so, e);

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

static const char prune_sql[] =
    "DELETE FROM {outbox} WHERE (xid, seq) IN (SELECT o.xid, o.seq FROM {outbox} o, {mark} m"
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
