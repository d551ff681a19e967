#include "vector/engine/lists.h"
#include "vector/engine/sketch.h"
#include "vector/engine/space.h"
#include <stdlib.h>
#include <string.h>

enum {
    RENEW_LEAST_DEAD = 1024, /* fewer gaps are not worth a copy */
    RENEW_DEAD_SHARE = 4,    /* compaction when one row in RENEW_DEAD_SHARE is dead */
    RENEW_LATER_SHARE = 5,   /* new lists when there is one newer row to RENEW_LATER_SHARE rows in lists */
    RENEW_TRIED_SHARE = 2,   /* lists that were useless are tried again once there are half as many rows more */
    RENEW_SURE_SHARE = 4,    /* lists that must be sure are tried above a quarter of the rows of others */
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
static bool may_have_lists(const struct slab *slab, int64_t list_above_rows)
{
    return list_above_rows >= 0 && slab->n - slab->n_dead > (size_t)list_above_rows / RENEW_SURE_SHARE;
}

/* Under the lock. */
static bool wants_lists(const struct slab *slab, int64_t list_above_rows)
{
    size_t n_live = slab->n - slab->n_dead;

    if (!may_have_lists(slab, list_above_rows))
        return false;
    if (slab->lists)
        return slab->n - slab->n_listed > slab->n_listed / RENEW_LATER_SHARE;
    if (n_live > (size_t)list_above_rows && slab->n_tried <= (size_t)list_above_rows)
        return true; /* they need not be sure any more */
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
    bool is_to_be_listed = slab->lists && may_have_lists(slab, list_above_rows) && wants_compaction(slab);

    if (wants_lists(slab, list_above_rows) || is_to_be_listed)
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
    if (from->side_folder >= 0 && space_side_is_due(s, from))
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
int space_add_sketches(struct space *s, const struct slab_view *view, struct pace *pace)
{
    struct slab *slab = view->slab;
    int r;

    if (!slab || view->n / SKETCH_UNIT_ROWS <= view->n_sketched)
        return -ENOENT;
    if (!slab->sketches)
        slab->sketches = sketch_set_new(slab->n_dimensions, slab->account);
    r = sketch_add(slab->sketches, slab, pace, NULL);
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

/* What of the old slab's changes since the view the fresh one has. */
struct carrying {
    struct space *space;
    struct slab *old, *fresh;
    size_t at;      /* slots of the old slab that are copied */
    uint64_t *done; /* owned; its dead rows that are dead in the fresh one, or not in it */
    size_t n_done;  /* words */
};

static void begin_carrying(struct carrying *c, struct space *s, const struct slab_view *view, struct slab *fresh)
{
    *c = (struct carrying){ .space = s, .old = view->slab, .fresh = fresh, .at = view->n };
    c->n_done = slab_n_words(view->n);
    c->done = xcalloc(c->n_done + 1, sizeof(*c->done));
    for (size_t i = 0; view->live && i < c->n_done; i++)
        c->done[i] = ~view->live[i];
    if (view->live && view->n % SLAB_BLOCK_ROWS)
        c->done[c->n_done - 1] &= ~(~UINT64_C(0) << view->n % SLAB_BLOCK_ROWS);
}

/* The old slab's dead rows of this moment, and how many rows it has; 0: the space has another slab by now. */
static size_t look(const struct carrying *c, uint64_t **ret_dead)
{
    struct space *s = c->space;
    size_t n = 0;

    pthread_mutex_lock(&s->lock);
    if (s->slab == c->old) {
        n = c->old->n;
        *ret_dead = xcalloc(slab_n_words(n) + 1, sizeof(uint64_t));
        memcpy(*ret_dead, c->old->dead, slab_n_words(n) * sizeof(uint64_t));
    }
    pthread_mutex_unlock(&s->lock);
    return n;
}

static size_t kill_word(const struct carrying *c, size_t word, uint64_t bits)
{
    size_t n = (size_t)__builtin_popcountll(bits);

    for (; bits; bits &= bits - 1)
        slab_kill(c->fresh, slab_row(c->old, word * SLAB_BLOCK_ROWS + (size_t)__builtin_ctzll(bits)));
    return n;
}

/* Kills the rows that have died, and takes ownership of `dead`. Returns how many. */
static size_t kill_again(struct carrying *c, uint64_t *dead, size_t n_words)
{
    size_t n = 0;

    for (size_t i = 0; i < n_words; i++)
        n += kill_word(c, i, i < c->n_done ? dead[i] & ~c->done[i] : dead[i]);
    free(c->done);
    c->done = dead;
    c->n_done = n_words;
    return n;
}

/* Copies and kills what has changed until now; *ret_n is how many rows that were. */
static int carry(struct carrying *c, size_t *ret_n)
{
    uint64_t *dead = NULL;
    size_t n = look(c, &dead);
    int r;

    if (n == 0)
        return -ESTALE;
    r = copy_slots(c->fresh, c->old, c->at, n);
    if (r < 0) {
        free(dead);
        return r;
    }
    *ret_n = n - c->at + kill_again(c, dead, slab_n_words(n));
    c->at = n;
    return 0;
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

/* Queries see the new slab and its columns at the same time. */
static void swap(struct space *s, struct slab *fresh, const struct columns_move *move)
{
    bool has_columns = move->order && columns_begin_move(&s->columns);
    struct slab *old;

    pthread_mutex_lock(&s->lock);
    old = s->slab;
    fresh->n_tried = old->n_tried;
    s->slab = slab_ref(fresh);
    pthread_mutex_unlock(&s->lock);
    if (has_columns)
        columns_end_move(&s->columns, move, fresh->serial);
    slab_unref(old); /* the view has another reference */
}

/* The last part, which changes wait for. */
static int exchange(struct space *s, struct carrying *c, const struct columns_move *move)
{
    size_t n = 0;
    int r;

    r = carry(c, &n);
    if (r < 0)
        return r;
    s->most_waited_rows = MAX(s->most_waited_rows, n);
    swap(s, c->fresh, move);
    return 0;
}

int space_replace(struct space *s, const struct slab_view *view, struct slab *fresh, const uint32_t *order)
{
    const struct columns_move move = { view, order };
    struct carrying c;
    size_t n = SIZE_MAX;
    int r = 0;

    if (order)
        columns_prepare_move(&s->columns, &move);
    begin_carrying(&c, s, view, fresh);
    while (r == 0 && n > SPACE_STEP_ROWS)
        r = carry(&c, &n);
    if (r == 0) {
        begin_exchange(s);
        r = exchange(s, &c, &move);
        end_exchange(s);
    }
    free(c.done);
    slab_unref(fresh);
    return r;
}
