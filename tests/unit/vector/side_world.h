/* A namespace `ns` in an embedded store with side files, and what a naive search finds in it.
 *
 *     struct world *w = world_open();
 *     world_put(w, 0, N_ROWS);  world_settle(w);  world_reopen(w);       answers are right at every moment
 *     world_close(w);
 */
#pragma once

#include "vector/engine/engine.h"
#include "vector/engine/quant.h"
#include "rig.h"
#include "../metric.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

enum { N_DIMENSIONS = 64, N_ROWS = 2 * SIDE_CHUNK_ROWS + 300, MAX_IDS = 16000, TOP_K = 10, BATCH = 2000 };

/* What is stored, by the number in an id. */
struct world {
    struct rig *x;
    struct dice dice;
    float (*vectors)[N_DIMENSIONS];
    bool is_there[MAX_IDS];
};

static inline struct world *world_open(void)
{
    struct world *w = calloc(1, sizeof(*w));

    w->x = rig_open();
    w->x->config.sketch_deviations = 5;
    w->dice = (struct dice){ 4711 };
    w->vectors = calloc(MAX_IDS, sizeof(*w->vectors));
    rig_reopen(w->x);
    return w;
}

static inline void world_close(struct world *w)
{
    rig_close(w->x);
    free(w->vectors);
    free(w);
}

static inline void world_put(struct world *w, size_t from, size_t to)
{
    struct rig *x = w->x;

    for (size_t n; from < to; from += n) {
        AUTO(arena_freep) struct arena *a = arena_new();
        struct vector_record *records;

        n = MIN((size_t)BATCH, to - from);
        records = arena_array(a, n, sizeof(*records));
        for (size_t i = 0; i < n; i++) {
            dice_vector(&w->dice, w->vectors[from + i], N_DIMENSIONS);
            w->is_there[from + i] = true;
            records[i] = (struct vector_record){ arena_printf(a, "%zu", from + i), w->vectors[from + i], "{}" };
        }
        MUST(x->v->ops->upsert(x->v, NULL, "ns", &(struct vector_batch){ records, n, N_DIMENSIONS }, &x->e));
    }
}

static inline void world_take_away(struct world *w, size_t from, size_t to)
{
    struct rig *x = w->x;
    const char **ids = arena_array(x->a, to - from, sizeof(*ids));
    struct vector_removal removal = { .ids = ids, .n_ids = to - from };
    int64_t n;

    for (size_t i = from; i < to; i++) {
        ids[i - from] = arena_printf(x->a, "%zu", i);
        w->is_there[i] = false;
    }
    MUST(x->v->ops->remove(x->v, NULL, "ns", &removal, &n, &x->e));
    assert_int_equal(n, to - from);
}

static inline void world_settle(struct world *w)
{
    keeper_wake(engine_of(w->x->v)->keeper);
    keeper_wait(engine_of(w->x->v)->keeper);
}

static inline int by_score(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return x > y ? -1 : x < y;
}

static inline void world_check_query(struct world *w, bool exact)
{
    double *scores = calloc(MAX_IDS, sizeof(*scores));
    float vector[N_DIMENSIONS];
    struct vector_query q = {
        .vector = vector, .n_dimensions = N_DIMENSIONS, .top_k = TOP_K, .min_score = -2, .exact = exact
    };
    struct vector_hits hits;
    double norm;
    size_t n = 0;

    dice_vector(&w->dice, vector, N_DIMENSIONS);
    norm = quant_norm(vector, N_DIMENSIONS);
    for (size_t i = 0; i < MAX_IDS; i++)
        if (w->is_there[i])
            scores[n++] = quant_cosine(w->vectors[i], vector, norm, N_DIMENSIONS);
    qsort(scores, n, sizeof(*scores), by_score);
    hits = rig_query(w->x, "ns", &q);
    assert_int_equal(hits.n, MIN(n, (size_t)TOP_K));
    for (size_t i = 0; i < hits.n; i++)
        assert_true(fabs(hits.items[i].score - scores[i]) < 1e-9);
    free(scores);
}

static inline void world_check_answers(struct world *w)
{
    for (int i = 0; i < 4; i++)
        world_check_query(w, i % 2 == 0);
}

/* What of the side file counts, and how many rows are in memory with it. */
struct seen {
    size_t n_chunks, n, n_sketched;
};

static inline struct seen world_look(struct world *w)
{
    struct space *s = engine_take(engine_of(w->x->v), "ns");
    struct seen seen = { 0 };

    pthread_mutex_lock(&s->lock);
    if (s->slab)
        seen = (struct seen){ s->side.n_chunks, s->slab->n, s->slab->n_sketched };
    pthread_mutex_unlock(&s->lock);
    engine_give_back(engine_of(w->x->v), s);
    return seen;
}

static inline const char *side_path(struct world *w)
{
    struct vectors_db_space of = { 0 };
    struct rig *x = w->x;

    MUST(vectors_db_find(engine_of(x->v)->db, "ns", &of, &x->e));
    return arena_printf(x->a, "%s/%lld.side", x->folder.side, (long long)of.id);
}

static inline off_t file_size(const char *path)
{
    struct stat st;

    return stat(path, &st) < 0 ? -1 : st.st_size;
}

static inline void file_copy(const char *from, const char *to)
{
    char block[65536];
    int in = open(from, O_RDONLY), out = open(to, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    ssize_t n;

    assert_true(in >= 0 && out >= 0);
    while ((n = read(in, block, sizeof(block))) > 0)
        assert_int_equal(write(out, block, (size_t)n), n);
    close(in);
    close(out);
}

static inline double n_refused(void)
{
    return metric_of("hearth_vector_side_refused_total");
}

/* Answers are checked before the keeper has repaired anything, or while it does, and the file when it is done. */
static inline void world_reopen(struct world *w)
{
    rig_reopen(w->x);
    world_check_answers(w);
    world_settle(w);
}
