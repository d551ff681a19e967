#include "vector/engine/lists.h"
#include "vector/engine/sketch.h"
#include "vector/engine/space.h"

enum {
    RENEW_LEAST_DEAD = 1024, /* fewer gaps are not worth a copy */
    RENEW_DEAD_SHARE = 4,    /* compaction when one row in RENEW_DEAD_SHARE is dead */
    RENEW_LATER_SHARE = 5,   /* new lists when there is one newer row to RENEW_LATER_SHARE rows in lists */
    RENEW_TRIED_SHARE = 2,   /* lists that were useless are tried again once there are half as many rows more */
    RENEW_AFTER = 4096,      /* about this many rows are left to copy while changes wait */
};

double space_recall(struct space *s)
{
    double recall = 1;

    pthread_mutex_lock(&s->lock);
    if (s->slab && s->slab->lists)
        recall = s->slab->lists->recall;
    pthread_mutex_unlock(&s->lock);
    return recall;
}

double space_sketch_recall(struct space *s)
{
    double recall = 1;

    pthread_mutex_lock(&s->lock);
    if (s->slab && s->slab->n_measured > 0)
        recall = s->slab->sketch_recall;
    pthread_mutex_unlock(&s->lock);
    return recall;
}

/* Under the lock. */
static bool wants_lists(const struct slab *slab, int64_t list_above_rows)
{
    size_t n_live = slab->n - slab->n_dead;

    if (list_above_rows < 0 || n_live <= (size_t)list_above_rows)
        return false;
    if (slab->lists)
        return slab->n - slab->n_listed > slab->n_listed / RENEW_LATER_SHARE;
    return n_live > slab->n_tried + slab->n_tried / RENEW_TRIED_SHARE;
}

static bool wants_compaction(const struct slab *slab)
{
    return slab->n_dead > MAX((size_t)RENEW_LEAST_DEAD, slab->n / RENEW_DEAD_SHARE);
}

static bool wants_sketches(const struct slab *slab)
{
    return sketch_fits(slab->n_dimensions) && slab->n / SKETCH_UNIT_ROWS > slab->n_sketched;
}

/* Compaction would undo the lists, so lists for many rows are rebuilt instead. */
static enum space_need need_of_order(const struct slab *slab, int64_t list_above_rows)
{
    bool is_large = list_above_rows >= 0 && slab->n - slab->n_dead > (size_t)list_above_rows;

    if (wants_lists(slab, list_above_rows) || (slab->lists && is_large && wants_compaction(slab)))
        return SPACE_NEEDS_LISTS;
    return wants_compaction(slab) ? SPACE_NEEDS_COMPACTION : SPACE_NEEDS_NOTHING;
}

/* Sketches take less time than lists, and compaction would undo them. The side file takes the sketches along. Their
 * recall is measured again when there are twice as many. */
static enum space_need need_of(const struct space *s, const struct space_source *from, int64_t list_above_rows)
{
    const struct slab *slab = s->slab;
    enum space_need order = need_of_order(slab, list_above_rows);

    if (order == SPACE_NEEDS_COMPACTION)
        return order;
    if (from->has_sketches && wants_sketches(slab))
        return SPACE_NEEDS_SKETCHES;
    if (from->side_folder >= 0 && space_side_is_due(s))
        return SPACE_NEEDS_SIDE;
    return slab->n_sketched > 0 && slab->n_sketched >= 2 * slab->n_measured ? SPACE_NEEDS_RECALL : order;
}

enum space_need space_need(struct space *s, const struct space_source *from, int64_t list_above_rows)
{
    enum space_need need = SPACE_NEEDS_NOTHING;

    pthread_mutex_lock(&s->lock);
    if (s->slab)
        need = need_of(s, from, list_above_rows);
    pthread_mutex_unlock(&s->lock);
    return need;
}

void space_note_recall(struct space *s, const struct slab_view *view, double recall)
{
    pthread_mutex_lock(&s->lock);
    view->slab->n_measured = view->n_sketched;
    view->slab->sketch_recall = recall;
    pthread_mutex_unlock(&s->lock);
}

void space_note_tried(struct space *s, const struct slab_view *view)
{
    pthread_mutex_lock(&s->lock);
    if (s->slab == view->slab)
        s->slab->n_tried = view->n_live;
    pthread_mutex_unlock(&s->lock);
}

/* Adds a unit, unless there is one too few rows or another unit was added since the view. */
int space_add_sketches(struct space *s, const struct slab_view *view)
{
    struct slab *slab = view->slab;
    int r;

    if (!slab || view->n / SKETCH_UNIT_ROWS <= view->n_sketched)
        return -ENOENT;
    if (!slab->sketches)
        slab->sketches = sketch_set_new(slab->n_dimensions, slab->account);
    r = sketch_add(slab->sketches, slab, NULL);
    if (r < 0)
        return r;
    pthread_mutex_lock(&s->lock);
    slab->n_sketched = slab->sketches->n;
    pthread_mutex_unlock(&s->lock);
    return 0;
}

/* --- the exchange --- */

/* Appends the slots [from, to) of the old slab. Dead slots are appended too, and killed afterwards. */
static int copy_slots(struct slab *fresh, const struct slab *old, size_t from, size_t to)
{
    size_t at = fresh->n;
    int r = 0;

    for (size_t slot = from; r == 0 && slot < to; slot++)
        r = slab_write(fresh, at++, slab_codes(old, slot), slab_scale(old, slot), slab_row(old, slot), NULL);
    if (r == 0)
        slab_publish(fresh, at);
    return r;
}

static size_t n_now(struct space *s, const struct slab *slab)
{
    size_t n;

    pthread_mutex_lock(&s->lock);
    n = s->slab == slab ? slab->n : 0;
    pthread_mutex_unlock(&s->lock);
    return n;
}

/* Copies the rows appended while the fresh slab was made, except the last few. */
static int catch_up(struct space *s, struct slab *fresh, const struct slab *old, size_t *at)
{
    size_t n;
    int r = 0;

    while (r == 0 && (n = n_now(s, old)) > *at + RENEW_AFTER) {
        r = copy_slots(fresh, old, *at, n);
        *at = n;
    }
    return r;
}

/* Kills the rows that died after the view was taken. */
static void kill_again(struct slab *fresh, const struct slab_view *view, const struct slab *old)
{
    for (size_t i = 0; i < slab_n_words(old->n); i++) {
        size_t base = i * SLAB_BLOCK_ROWS;
        uint64_t bits = old->dead[i];

        if (base < view->n && view->live)
            bits &= base + SLAB_BLOCK_ROWS <= view->n ? view->live[i]
                                                      : view->live[i] | ~UINT64_C(0) << view->n % SLAB_BLOCK_ROWS;
        for (; bits; bits &= bits - 1)
            slab_kill(fresh, slab_row(old, base + (size_t)__builtin_ctzll(bits)));
    }
}

/* No change is applied between begin and end, so the old slab does not change. */
static void begin_exchange(struct space *s)
{
    pthread_rwlock_rdlock(&s->gate);
    pthread_mutex_lock(&s->line_lock);
    while (s->is_applying)
        pthread_cond_wait(&s->line_moved, &s->line_lock);
    s->is_applying = true;
    pthread_mutex_unlock(&s->line_lock);
}

static void end_exchange(struct space *s)
{
    pthread_mutex_lock(&s->line_lock);
    s->is_applying = false;
    pthread_cond_broadcast(&s->line_moved);
    pthread_mutex_unlock(&s->line_lock);
    pthread_rwlock_unlock(&s->gate);
}

static int exchange(struct space *s, const struct slab_view *view, struct slab *fresh, size_t at)
{
    struct slab *old = view->slab;
    int r;

    if (n_now(s, old) == 0)
        return -ESTALE;
    r = copy_slots(fresh, old, at, old->n);
    if (r < 0)
        return r;
    kill_again(fresh, view, old);
    pthread_mutex_lock(&s->lock);
    slab_unref(s->slab);
    s->slab = slab_ref(fresh);
    pthread_mutex_unlock(&s->lock);
    columns_forget(&s->columns);
    return 0;
}

int space_replace(struct space *s, const struct slab_view *view, struct slab *fresh)
{
    size_t at = view->n;
    int r;

    r = catch_up(s, fresh, view->slab, &at);
    if (r == 0) {
        begin_exchange(s);
        r = exchange(s, view, fresh, at);
        end_exchange(s);
    }
    slab_unref(fresh);
    return r;
}
