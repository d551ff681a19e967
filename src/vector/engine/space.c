#include "vector/engine/space.h"
#include "vector/engine/quant.h"
#include <stdlib.h>

/* Loading waits for running changes, and later changes wait for loading, so loading cannot starve. */
static void init_gate(pthread_rwlock_t *gate)
{
    pthread_rwlockattr_t attributes;

    pthread_rwlockattr_init(&attributes);
    pthread_rwlockattr_setkind_np(&attributes, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
    pthread_rwlock_init(gate, &attributes);
    pthread_rwlockattr_destroy(&attributes);
}

struct space *space_new(const char *name, atomic_size_t *account)
{
    struct space *s = xcalloc(1, sizeof(*s));

    s->name = xstrdup(name);
    s->account = account;
    init_gate(&s->gate);
    pthread_mutex_init(&s->line_lock, NULL);
    pthread_cond_init(&s->line_moved, NULL);
    pthread_mutex_init(&s->lock, NULL);
    scan_batcher_init(&s->batcher);
    columns_init(&s->columns, account);
    return s;
}

struct space *space_free(struct space *s)
{
    if (!s)
        return NULL;
    slab_unref(s->slab);
    columns_clear(&s->columns);
    scan_batcher_clear(&s->batcher);
    pthread_mutex_destroy(&s->lock);
    pthread_cond_destroy(&s->line_moved);
    pthread_mutex_destroy(&s->line_lock);
    pthread_rwlock_destroy(&s->gate);
    free(s->name);
    free(s);
    return NULL;
}

/* --- changes --- */

/* The codes are made here, in the caller's thread and before the transaction. */
void space_op_init(struct space_op *op, struct vectors_db_change *change)
{
    size_t stride = quant_stride(change->n_dimensions);

    *op = (struct space_op){ .change = change };
    if (change->n_puts == 0)
        return;
    op->codes = xcalloc(change->n_puts, stride);
    op->scales = xcalloc(change->n_puts, sizeof(*op->scales));
    for (size_t i = 0; i < change->n_puts; i++)
        op->scales[i] = quant_encode(change->puts[i].vector, change->n_dimensions, op->codes + i * stride);
}

void space_op_clear(struct space_op *op)
{
    free(op->codes);
    free(op->scales);
    *op = (struct space_op){ 0 };
}

void space_expect(struct space *s, struct space_op *op)
{
    pthread_mutex_lock(&s->line_lock);
    op->is_expected = true;
    if (s->last)
        s->last->next = op;
    else
        s->first = op;
    s->last = op;
    pthread_mutex_unlock(&s->line_lock);
}

static int write_rows(struct slab *slab, size_t at, const struct space_op *op, struct err *e)
{
    const struct vectors_db_change *c = op->change;
    int r = 0;

    for (size_t i = 0; r == 0 && i < c->n_puts; i++)
        r = slab_write(slab, at + i, op->codes + i * slab->stride, op->scales[i], c->first_row + (int64_t)i, e);
    return r;
}

/* The slots of the change's removed rows, which may be among its own puts. They are searched without the lock, for
 * which queries wait. free() the array. */
static size_t find_removed(const struct slab *slab, const struct vectors_db_change *c, size_t **ret)
{
    size_t n = 0;

    *ret = xcalloc(c->n_removed + 1, sizeof(**ret));
    for (size_t i = 0; i < c->n_removed; i++)
        n += slab_find(slab, slab->n + c->n_puts, c->removed[i], &(*ret)[n]);
    return n;
}

/* s->slab and s->is_loaded are changed only by the applying thread, and by loading, which holds the gate exclusively;
 * so they are read here without the lock. */
static void apply_puts_and_removals(struct space *s, const struct space_op *op)
{
    const struct vectors_db_change *c = op->change;
    struct slab *slab = s->slab;
    size_t *removed = NULL, n_removed = 0;
    int r = 0;

    if (c->n_puts > 0 && !slab)
        slab = slab_new(c->n_dimensions, s->account);
    if (slab)
        r = write_rows(slab, slab->n, op, NULL);
    if (slab && r == 0)
        n_removed = find_removed(slab, c, &removed);
    pthread_mutex_lock(&s->lock);
    s->slab = slab;
    s->id = c->found.id;
    if (r == 0 && slab) {
        slab_publish(slab, slab->n + c->n_puts);
        for (size_t i = 0; i < n_removed; i++)
            slab_kill_slot(slab, removed[i]);
    }
    pthread_mutex_unlock(&s->lock);
    free(removed);
    if (r < 0)
        space_unload(s); /* no memory: the file has the change, and the next query reports the error */
}

/* Returning a slab's memory takes a while, so that is done without the lock. */
static void forget_slab(struct space *s, bool is_loaded)
{
    struct slab *slab;

    columns_forget(&s->columns);
    pthread_mutex_lock(&s->lock);
    slab = s->slab;
    s->slab = NULL;
    s->is_loaded = is_loaded;
    s->id = 0;
    s->side = (struct side_state){ 0 };
    s->side_wait_n = 0;
    pthread_mutex_unlock(&s->lock);
    slab_unref(slab);
}

static void apply(struct space *s, const struct space_op *op)
{
    if (!s->is_loaded && op->change->is_new) {
        pthread_mutex_lock(&s->lock);
        s->is_loaded = true;
        pthread_mutex_unlock(&s->lock);
    }
    if (!s->is_loaded || op->change->found.id == 0)
        return;
    if (op->change->is_dropped)
        forget_slab(s, true);
    else
        apply_puts_and_removals(s, op);
}

/* Applies the first change in line; releases the line's lock while the change is applied. */
static void apply_first(struct space *s)
{
    struct space_op *op = s->first;

    s->is_applying = true;
    pthread_mutex_unlock(&s->line_lock);
    if (op->is_stored)
        apply(s, op);
    pthread_mutex_lock(&s->line_lock);
    s->first = op->next;
    if (!s->first)
        s->last = NULL;
    s->is_applying = false;
    s->n_applied++;
    op->is_applied = true;
    pthread_cond_broadcast(&s->line_moved);
}

void space_settle(struct space *s, struct space_op *op, bool is_stored)
{
    if (!op->is_expected)
        return;
    pthread_mutex_lock(&s->line_lock);
    op->is_settled = true;
    op->is_stored = is_stored;
    pthread_cond_broadcast(&s->line_moved);
    while (!op->is_applied) {
        if (!s->is_applying && s->first->is_settled)
            apply_first(s);
        else
            pthread_cond_wait(&s->line_moved, &s->line_lock);
    }
    pthread_mutex_unlock(&s->line_lock);
}

uint64_t space_n_applied(struct space *s)
{
    uint64_t n;

    pthread_mutex_lock(&s->line_lock);
    n = s->n_applied;
    pthread_mutex_unlock(&s->line_lock);
    return n;
}

void space_await_change(struct space *s, uint64_t n_seen)
{
    pthread_mutex_lock(&s->line_lock);
    while (s->first && s->n_applied == n_seen)
        pthread_cond_wait(&s->line_moved, &s->line_lock);
    pthread_mutex_unlock(&s->line_lock);
}

/* --- loading --- */

struct loading {
    struct slab *slab;
    uint8_t *codes; /* owned; of one row */
};

static int load_row(void *arg, int64_t row, const void *vector, struct err *e)
{
    struct loading *l = arg;
    float scale = quant_encode(vector, l->slab->n_dimensions, l->codes);
    int r;

    r = slab_write(l->slab, l->slab->n, l->codes, scale, row, e);
    if (r == 0)
        slab_publish(l->slab, l->slab->n + 1);
    return r;
}

/* Rows above after_row, from their floats. */
static int load_rows(const struct space_source *from, const struct vectors_db_space *of, struct slab *slab,
                     int64_t after_row, struct err *e)
{
    struct loading l = { slab, xcalloc(slab->stride, 1) };
    int r;

    r = vectors_db_load(from->db, of, after_row, load_row, &l, e);
    free(l.codes);
    return r;
}

/* What the side file has, and what vectors.db has since. */
static int load_with_side(const struct space_source *from, const struct vectors_db_space *of, struct slab *slab,
                          struct side_state *ret, struct err *e)
{
    int r;

    r = space_side_load(from, of, slab, ret, e);
    if (r == 0)
        r = load_rows(from, of, slab, ret->last_row, e);
    return r == 0 && ret->n_chunks > 0 ? space_side_settle(from, of, slab, e) : r;
}

static int load_slab(const struct space_source *from, const struct vectors_db_space *of, atomic_size_t *account,
                     struct slab **ret, struct side_state *ret_side, struct err *e)
{
    struct slab *slab = slab_new((size_t)of->n_dimensions, account);
    int r;

    r = load_with_side(from, of, slab, ret_side, e);
    if (r == -ESTALE) {
        slab_unref(slab);
        slab = slab_new((size_t)of->n_dimensions, account);
        *ret_side = (struct side_state){ 0 };
        r = load_rows(from, of, slab, 0, e);
    }
    if (r == 0)
        *ret = TAKE(slab);
    slab_unref(slab);
    return r;
}

/* Between begin and end. *ret stays NULL when there is no such namespace. */
static int load_found(struct space *s, const struct space_source *from, struct vectors_db_space *ret_of,
                      struct slab **ret, struct side_state *ret_side, struct err *e)
{
    int r;

    r = vectors_db_find(from->db, s->name, ret_of, e);
    return r < 0 || ret_of->id == 0 ? r : load_slab(from, ret_of, s->account, ret, ret_side, e);
}

int space_load(struct space *s, const struct space_source *from, struct err *e)
{
    struct vectors_db_space of = { 0 };
    struct side_state side = { 0 };
    struct slab *slab = NULL;
    int r;

    if (s->is_loaded)
        return 0;
    r = vectors_db_begin(from->db, e);
    if (r < 0)
        return r;
    r = load_found(s, from, &of, &slab, &side, e);
    vectors_db_end(from->db);
    if (r < 0 || !slab)
        return r;
    pthread_mutex_lock(&s->lock);
    s->is_loaded = true;
    s->id = of.id;
    s->slab = slab;
    s->side = side;
    s->side_wait_n = 0;
    pthread_mutex_unlock(&s->lock);
    return 0;
}

void space_unload(struct space *s)
{
    forget_slab(s, false);
}

bool space_is_loaded(struct space *s)
{
    bool is_loaded;

    pthread_mutex_lock(&s->lock);
    is_loaded = s->is_loaded;
    pthread_mutex_unlock(&s->lock);
    return is_loaded;
}

bool space_has_rows(struct space *s)
{
    bool has_rows;

    pthread_mutex_lock(&s->lock);
    has_rows = s->slab != NULL;
    pthread_mutex_unlock(&s->lock);
    return has_rows;
}

bool space_view(struct space *s, struct slab_view *ret, struct vectors_db_space *ret_of)
{
    bool is_loaded;

    pthread_mutex_lock(&s->lock);
    is_loaded = s->is_loaded;
    slab_view_take(s->slab, ret);
    *ret_of = (struct vectors_db_space){ .id = s->id,
                                         .n_dimensions = s->slab ? (int64_t)s->slab->n_dimensions : 0,
                                         .n_rows = (int64_t)ret->n_live };
    pthread_mutex_unlock(&s->lock);
    return is_loaded;
}
