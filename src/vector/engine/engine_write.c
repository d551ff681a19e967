#include "vector/engine/engine.h"
#include "vector/vector_check.h"

/* A change together with its place in memory. */
struct write {
    struct vectors_db_change change;
    struct space *space;
    struct space_op op;
};

static void on_stored(struct vectors_db_change *c)
{
    struct write *write = c->arg;

    space_expect(write->space, &write->op);
}

typedef int change_fn(struct vectors_db *db, struct vectors_db_change *c, struct err *e);

/* Makes the change in the file, then in memory. */
static int run(struct engine *engine, const char *ns, struct write *write, change_fn *fn, struct err *e)
{
    int r;

    write->change.space = ns;
    write->change.on_stored = on_stored;
    write->change.arg = write;
    write->space = engine_take(engine, ns);
    pthread_rwlock_rdlock(&write->space->gate);
    r = fn(engine->db, &write->change, e);
    space_settle(write->space, &write->op, r == 0);
    pthread_rwlock_unlock(&write->space->gate);
    if (r == 0 && write->change.is_dropped)
        side_remove(engine->source.side_folder, write->change.found.id);
    keeper_note_change(engine->keeper);
    if (write->change.is_dropped || engine_need(engine, write->space) != SPACE_NEEDS_NOTHING)
        keeper_wake(engine->keeper);
    engine_evict(engine, write->space);
    engine_give_back(engine, write->space);
    return r;
}

static void clear(struct write *write)
{
    space_op_clear(&write->op);
    vectors_db_change_clear(&write->change);
}

/* --- upsert --- */

/* The documentId; NULL unless it is a string without zero bytes. The metadata was checked to be an object before. */
static const char *document_of(const char *metadata, struct arena *a)
{
    AUTO(arena_freep) struct arena *own = arena_new();
    struct json_value value = { 0 };

    if (!metadata || json_parse(own, slice_of(metadata), &value, NULL) < 0)
        return NULL;
    return arena_strdup(a, json_cstr(json_get(value, "documentId")));
}

static struct vectors_db_put *make_puts(const struct vector_batch *b, struct arena *a)
{
    struct vectors_db_put *puts = arena_array(a, b->n, sizeof(*puts));

    for (size_t i = 0; i < b->n; i++)
        puts[i] = (struct vectors_db_put){ .id = b->items[i].id,
                                           .metadata = b->items[i].metadata ? b->items[i].metadata : "{}",
                                           .document_id = document_of(b->items[i].metadata, a),
                                           .vector = b->items[i].vector };
    return puts;
}

int engine_upsert(struct vectors *v, const struct net_wait *wait, const char *ns, const struct vector_batch *b,
                  struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct write write = { 0 };
    int r;

    r = vector_check_namespace(ns, e);
    if (r == 0)
        r = vector_check_batch(b, e);
    if (r < 0 || b->n == 0)
        return r;
    write.change =
        (struct vectors_db_change){ .n_dimensions = b->n_dimensions, .puts = make_puts(b, a), .n_puts = b->n };
    space_op_init(&write.op, &write.change);
    r = run(engine_of(v), ns, &write, vectors_db_put, e);
    clear(&write);
    return r;
}

/* --- removal --- */

static int remove_all(struct engine *engine, const char *ns, int64_t *ret_n, struct err *e)
{
    struct write write = { 0 };
    int r;

    write.op.change = &write.change;
    r = run(engine, ns, &write, vectors_db_drop, e);
    if (r == 0)
        *ret_n = write.change.found.n_rows;
    clear(&write);
    return r;
}

static int remove_some(struct engine *engine, const char *ns, const struct vectors_db_change *what, int64_t *ret_n,
                       struct err *e)
{
    struct write write = { .change = *what };
    int r;

    space_op_init(&write.op, &write.change);
    r = run(engine, ns, &write, vectors_db_remove, e);
    if (r == 0)
        *ret_n = (int64_t)write.change.n_removed;
    clear(&write);
    return r;
}

static int find_matching(struct engine *engine, const char *ns, struct json_value filter, struct buf *rows,
                         struct err *e)
{
    struct vectors_db_space of = { 0 };
    int r;

    r = vectors_db_begin(engine->db, e);
    if (r < 0)
        return r;
    r = vectors_db_find(engine->db, ns, &of, e);
    if (r == 0 && of.id != 0)
        r = engine_match_rows(engine, &of, filter, rows, e);
    vectors_db_end(engine->db);
    return r;
}

static int remove_matching(struct engine *engine, const char *ns, struct json_value filter, int64_t *ret_n,
                           struct err *e)
{
    struct buf rows;
    int r;

    buf_init(&rows, LIMIT_VECTOR_ROWS * sizeof(int64_t));
    r = find_matching(engine, ns, filter, &rows, e);
    if (r == 0)
        r = remove_some(engine, ns,
                        &(struct vectors_db_change){ .rows = (const int64_t *)rows.p,
                                                     .n_rows = rows.n / sizeof(int64_t) },
                        ret_n, e);
    buf_clear(&rows);
    return r;
}

int engine_remove(struct vectors *v, const struct net_wait *wait, const char *ns, const struct vector_removal *removal,
                  int64_t *ret_n, struct err *e)
{
    struct vectors_db_change by_ids = { .ids = removal->ids, .n_ids = removal->n_ids };
    int r;

    r = vector_check_namespace(ns, e);
    if (r == 0)
        r = vector_check_removal(removal, e);
    if (r < 0)
        return r;
    if (removal->all)
        return remove_all(engine_of(v), ns, ret_n, e);
    if (removal->ids)
        return remove_some(engine_of(v), ns, &by_ids, ret_n, e);
    return remove_matching(engine_of(v), ns, removal->filter, ret_n, e);
}
