#include "vector/engine/quant.h"
#include "vector/engine/space.h"
#include <stdlib.h>

/* --- rows of the file --- */

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
static int load_with_side(struct space_load *l, struct err *e)
{
    int r;

    r = space_side_load(l->from, &l->of, l->slab, &l->side, e);
    if (r == 0)
        r = load_rows(l->from, &l->of, l->slab, l->side.last_row, e);
    return r == 0 && l->side.n_chunks > 0 ? space_side_settle(l->from, &l->of, l->slab, e) : r;
}

static void begin_slab(struct space_load *l)
{
    slab_unref(l->slab);
    l->slab = slab_new((size_t)l->of.n_dimensions, l->space->account);
    l->side = (struct side_state){ 0 };
}

/* Between begin and end of vectors_db.h. */
static int load_found(struct space_load *l, struct err *e)
{
    int r;

    r = vectors_db_find(l->from->db, l->space->name, &l->of, e);
    if (r < 0 || l->of.id == 0)
        return r;
    begin_slab(l);
    r = load_with_side(l, e);
    if (r != -ESTALE)
        return r;
    begin_slab(l);
    return load_rows(l->from, &l->of, l->slab, 0, e);
}

static int load_all(struct space_load *l, struct err *e)
{
    int r = vectors_db_begin(l->from->db, e);

    if (r < 0)
        return r;
    r = load_found(l, e);
    vectors_db_end(l->from->db);
    return r;
}

/* --- what changes meanwhile --- */

void space_note_missed(struct space *s, const struct vectors_db_change *c)
{
    struct space_missed *missed;

    pthread_mutex_lock(&s->lock);
    missed = s->missed;
    if (missed && (c->is_dropped || missed->n + c->n_removed > missed->max))
        missed->is_lost = true;
    if (missed && !missed->is_lost && missed->n + c->n_removed > missed->cap) {
        missed->cap = MAX(missed->n + c->n_removed, 2 * missed->cap);
        missed->rows = xrealloc(missed->rows, missed->cap * sizeof(*missed->rows));
    }
    for (size_t i = 0; missed && !missed->is_lost && i < c->n_removed; i++)
        missed->rows[missed->n++] = c->removed[i];
    pthread_mutex_unlock(&s->lock);
}

/* Removed rows; those that the next look at the file lacks are among them, now or later. free() the rows. */
static struct space_missed take_missed(struct space_load *l)
{
    struct space_missed taken;

    pthread_mutex_lock(&l->space->lock);
    taken = l->missed;
    l->missed = (struct space_missed){ .max = taken.max };
    pthread_mutex_unlock(&l->space->lock);
    return taken;
}

static int64_t last_row(const struct slab *slab)
{
    return slab->n > 0 ? slab_row(slab, slab->n - 1) : 0;
}

static int read_later_rows(struct space_load *l, struct err *e)
{
    int64_t id = l->of.id;
    int r;

    r = vectors_db_begin(l->from->db, e);
    if (r < 0)
        return r;
    r = vectors_db_find(l->from->db, l->space->name, &l->of, e);
    if (r == 0 && l->of.id != id)
        r = -ESTALE;
    if (r == 0)
        r = load_rows(l->from, &l->of, l->slab, last_row(l->slab), e);
    vectors_db_end(l->from->db);
    return r;
}

/* *ret_n: how many rows have come and gone since the last look at the file. */
static int catch_up(struct space_load *l, size_t *ret_n, struct err *e)
{
    struct space_missed missed = take_missed(l);
    size_t n_before = l->slab->n;
    int r = missed.is_lost ? -ESTALE : read_later_rows(l, e);

    for (size_t i = 0; r == 0 && i < missed.n; i++)
        slab_kill(l->slab, missed.rows[i]);
    *ret_n = l->slab->n - n_before + missed.n;
    free(missed.rows);
    return r;
}

/* --- the end --- */

static void publish(struct space_load *l)
{
    struct space *s = l->space;

    pthread_mutex_lock(&s->lock);
    s->is_loaded = true;
    s->id = l->of.id;
    s->slab = TAKE(l->slab);
    s->side = l->side;
    s->side_wait_n = 0;
    pthread_mutex_unlock(&s->lock);
}

/* With the gate held exclusively, so no change is on its way. */
static int finish(struct space_load *l, struct err *e)
{
    size_t n = 0;
    int r;

    if (l->space->is_loaded)
        return 0; /* the namespace was dropped, and a change has made it anew */
    r = catch_up(l, &n, e);
    if (r == 0 && (int64_t)(l->slab->n - l->slab->n_dead) != l->of.n_rows)
        r = -ESTALE;
    if (r < 0)
        return r;
    l->space->most_waited_rows = MAX(l->space->most_waited_rows, n);
    publish(l);
    return 0;
}

static void note_changes_in(struct space *s, struct space_missed *missed)
{
    pthread_mutex_lock(&s->lock);
    s->missed = missed;
    pthread_mutex_unlock(&s->lock);
}

int space_load_begin(struct space_load *l, struct space *s, const struct space_source *from, struct err *e)
{
    *l = (struct space_load){ .space = s, .from = from, .missed = { .max = SPACE_MISSED_ROWS } };
    note_changes_in(s, &l->missed);
    return load_all(l, e);
}

int space_load_end(struct space_load *l, int r, struct err *e)
{
    struct space *s = l->space;
    size_t n = SIZE_MAX;

    while (r == 0 && l->slab && n > SPACE_STEP_ROWS)
        r = catch_up(l, &n, e);
    if (r == 0 && l->slab) {
        pthread_rwlock_wrlock(&s->gate);
        r = finish(l, e);
        pthread_rwlock_unlock(&s->gate);
    }
    note_changes_in(s, NULL);
    free(l->missed.rows);
    l->slab = slab_unref(l->slab);
    return r;
}

/* While no change is on its way. */
static int load_alone(struct space *s, const struct space_source *from, struct err *e)
{
    struct space_load l = { .space = s, .from = from };
    int r = 0;

    pthread_rwlock_wrlock(&s->gate);
    if (!s->is_loaded)
        r = load_all(&l, e);
    if (r == 0 && l.slab)
        publish(&l);
    pthread_rwlock_unlock(&s->gate);
    slab_unref(l.slab);
    return r;
}

int space_load(struct space *s, const struct space_source *from, struct err *e)
{
    struct space_load l;
    int r = 0;

    pthread_mutex_lock(&s->load_lock);
    if (!space_is_loaded(s)) {
        r = space_load_begin(&l, s, from, e);
        r = space_load_end(&l, r, e);
        if (r == -ESTALE)
            r = load_alone(s, from, e);
    }
    pthread_mutex_unlock(&s->load_lock);
    return r;
}
