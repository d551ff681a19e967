#include "vector/engine/space.h"
#include "vector/engine/quant.h"
#include <stdlib.h>

/* The end of a load waits for running changes, and later changes wait for it, so it cannot starve. */
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
    pthread_mutex_init(&s->load_lock, NULL);
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
    pthread_mutex_destroy(&s->load_lock);
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

/* s->slab and s->is_loaded are changed only by the applying thread, and by the end of a load, which holds the gate
 * exclusively; so they are read here without the lock. */
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
    if (op->change->found.id == 0)
        return;
    if (!s->is_loaded)
        space_note_missed(s, op->change);
    else if (op->change->is_dropped)
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

/* --- state --- */

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
