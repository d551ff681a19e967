#include "base/clock.h"
#include "base/metrics.h"
#include "vector/engine/space.h"
#include "vector/engine/sketch.h"
#include <stdlib.h>
#include <string.h>

enum {
    SIDE_STEP_CHUNKS = 8,       /* written before the mark is noted */
    SIDE_BACKLOG_ROWS = 262144, /* beyond it, rows are saved without a quiet moment */
    SIDE_STALE_SHARE = 4,       /* a file is made anew when one of its rows in this many is gone */
    SIDE_WAIT_ROWS = SIDE_STEP_CHUNKS * SIDE_CHUNK_ROWS, /* after a failure the next try waits for as many rows */
};

static struct side_place place_of(const struct space_source *from, int64_t space_id, size_t n_dimensions)
{
    struct side_place place = { .folder = from->side_folder, .space_id = space_id, .n_dimensions = n_dimensions };

    vectors_db_row_range(space_id, &place.first_row, &place.last_row);
    return place;
}

/* --- loading --- */

/* Sketches that follow those of the chunks before. */
static int take_sketch(struct slab *slab, const struct side_chunk *chunk, size_t i)
{
    int r;

    if (!slab->sketches)
        slab->sketches = sketch_set_new(slab->n_dimensions, slab->account);
    if (slab->sketches->n < i)
        return 0;
    r = sketch_restore(slab->sketches, chunk->sketch);
    if (r == 0)
        slab->n_sketched = slab->sketches->n;
    return r;
}

static int take_chunk(struct slab *slab, const struct side_chunk *chunk, size_t i, bool has_sketches, struct err *e)
{
    size_t at = slab->n;
    int r = 0;

    if (chunk->sketch && has_sketches && sketch_fits(slab->n_dimensions))
        r = take_sketch(slab, chunk, i);
    if (r == 0)
        r = slab_write_rows(slab, at, chunk->codes, chunk->scales, chunk->rows, SIDE_CHUNK_ROWS, e);
    if (r == 0)
        slab_publish(slab, at + SIDE_CHUNK_ROWS);
    return r;
}

/* Adds the chunks before the first damaged one. */
static int take_chunks(struct slab *slab, struct side *side, bool has_sketches, struct side_state *ret, struct err *e)
{
    struct side_state state = { 0 };
    struct side_chunk chunk;
    int r = 0;

    for (size_t i = 0; r == 0 && i < side->state.n_chunks; i++) {
        r = side_read(side, i, &chunk);
        if (r == 0)
            r = take_chunk(slab, &chunk, i, has_sketches, e);
        if (r == 0)
            state = (struct side_state){ chunk.mark, i + 1, side->before_row };
    }
    *ret = state;
    return r;
}

int space_side_load(const struct space_source *from, const struct vectors_db_space *of, struct slab *slab,
                    struct side_state *ret, struct err *e)
{
    struct side_place place = place_of(from, of->id, (size_t)of->n_dimensions);
    struct side *side = NULL;
    int r;

    *ret = (struct side_state){ 0 };
    if (from->side_folder < 0 || of->side_mark == 0)
        return 0;
    r = side_open(&place, (uint64_t)of->side_mark, &side);
    if (r == 0)
        r = take_chunks(slab, side, from->has_sketches, ret, e);
    side_close(side);
    if (r == -EBADMSG || r == -ENOENT) {
        metric_add(from->n_refused, 1);
        r = 0;
    }
    return r;
}

/* --- rows that were removed since --- */

struct presence {
    struct slab_view view; /* of the slab, all rows live */
    uint64_t *seen;
    size_t next; /* ids are often stored in the order of their rows */
};

static int note_row(void *arg, int64_t row, struct err *e)
{
    struct presence *p = arg;
    size_t slot = p->next;

    if ((slot >= p->view.n || slab_row(p->view.slab, slot) != row) && !slab_view_find(&p->view, row, &slot))
        return -ESTALE;
    p->seen[slot / SLAB_BLOCK_ROWS] |= UINT64_C(1) << slot % SLAB_BLOCK_ROWS;
    p->next = slot + 1;
    return 0;
}

static void kill_unseen(struct slab *slab, const uint64_t *seen)
{
    for (size_t slot = 0; slot < slab->n; slot++)
        if (!(seen[slot / SLAB_BLOCK_ROWS] >> slot % SLAB_BLOCK_ROWS & 1))
            slab_kill(slab, slab_row(slab, slot));
}

int space_side_settle(const struct space_source *from, const struct vectors_db_space *of, struct slab *slab,
                      struct err *e)
{
    struct presence p = { .view = { .slab = slab, .n = slab->n, .n_live = slab->n } };
    int r;

    if ((int64_t)slab->n == of->n_rows)
        return 0; /* all rows of the file are there, so none was removed */
    p.seen = xcalloc(slab_n_words(slab->n) + 1, sizeof(*p.seen));
    r = vectors_db_each_row(from->db, of->id, note_row, &p, e);
    if (r == 0)
        kill_unseen(slab, p.seen);
    free(p.seen);
    return r;
}

/* --- saving --- */

/* What the next step writes. */
struct saving {
    const struct slab_view *view;
    size_t from; /* in the order of rows */
};

static void fill_chunk(void *arg, size_t i, struct side_draft *d)
{
    const struct saving *saving = arg;
    const struct slab *slab = saving->view->slab;
    size_t from = saving->from + i * SIDE_CHUNK_ROWS, unit = from / SKETCH_UNIT_ROWS;

    for (size_t j = 0; j < SIDE_CHUNK_ROWS; j++) {
        size_t slot = slab_slot_in_order(slab, from + j);

        memcpy(d->codes + j * slab->stride, slab_codes(slab, slot), slab->stride);
        d->scales[j] = slab_scale(slab, slot);
        d->rows[j] = slab_row(slab, slot);
    }
    d->has_sketch = slab->n_listed == 0 && from % SKETCH_UNIT_ROWS == 0 && unit < saving->view->n_sketched;
    if (d->has_sketch)
        sketch_save(slab->sketches, unit, d->sketch);
}

/* Compaction has removed so many of the file's rows from memory that a new file is worth its writing. */
static bool is_stale(const struct side_state *state, size_t n_in_memory)
{
    size_t n_rows = state->n_chunks * SIDE_CHUNK_ROWS;

    return n_rows > n_in_memory + MAX((size_t)SIDE_CHUNK_ROWS / SIDE_STALE_SHARE, n_in_memory / SIDE_STALE_SHARE);
}

bool space_side_is_due(const struct space *s, const struct space_source *from)
{
    size_t n_in_memory, n_wanted = SIDE_BACKLOG_ROWS;

    if (!s->slab || s->slab->n < s->side_wait_n)
        return false;
    if (space_is_quiet(from))
        n_wanted = SIDE_CHUNK_ROWS;
    n_in_memory = s->side.n_chunks > 0 ? slab_n_up_to(s->slab, s->slab->n, s->side.last_row) : 0;
    return s->slab->n - n_in_memory >= n_wanted || is_stale(&s->side, n_in_memory);
}

bool space_is_quiet(const struct space_source *from)
{
    return atomic_load(&from->is_hurried) || clock_mono_ms() >= atomic_load(&from->changed_at_ms) + SPACE_QUIET_MS;
}

static struct side_state state_now(struct space *s)
{
    struct side_state state;

    pthread_mutex_lock(&s->lock);
    state = s->side;
    pthread_mutex_unlock(&s->lock);
    return state;
}

/* After a failure a new file is made: at once when the file was damaged, later when none could be made. */
static void note_state(struct space *s, int64_t space_id, const struct side_state *state, size_t n, int r)
{
    bool must_wait = r < 0 && state->n_chunks == 0;

    pthread_mutex_lock(&s->lock);
    if (s->id == space_id) {
        s->side = r == 0 ? *state : (struct side_state){ 0 };
        s->side_wait_n = must_wait ? n + SIDE_WAIT_ROWS : 0;
    }
    pthread_mutex_unlock(&s->lock);
}

static int write_and_note(const struct space_source *from, const struct side_place *place, struct side_state *state,
                          struct saving *saving, size_t n)
{
    int r = 0;

    if (n > 0)
        r = side_append(place, state, n, fill_chunk, saving);
    if (r == 0)
        r = vectors_db_note_side(from->db, place->space_id, (int64_t)state->mark, NULL);
    if (r < 0 || n == 0)
        side_remove(place->folder, place->space_id);
    return r;
}

int space_save_side(struct space *s, const struct space_source *from, const struct slab_view *view,
                    const struct vectors_db_space *of)
{
    struct side_place place = place_of(from, of->id, (size_t)of->n_dimensions);
    struct side_state state = state_now(s);
    struct saving saving = { .view = view };
    size_t n_chunks;
    int r;

    if (!view->slab)
        return -ENOENT;
    if (state.n_chunks > 0)
        saving.from = slab_n_up_to(view->slab, view->n, state.last_row);
    if (is_stale(&state, saving.from)) {
        state = (struct side_state){ 0 };
        saving.from = 0;
    }
    n_chunks = MIN((view->n - saving.from) / SIDE_CHUNK_ROWS, (size_t)SIDE_STEP_CHUNKS);
    r = write_and_note(from, &place, &state, &saving, n_chunks);
    note_state(s, of->id, &state, view->n, r);
    return r;
}
