/* The parts of a pass by sketches (sketch_scan.h), which one thread uses.
 *
 *     sketch_scan.c        units and groups of them, the choice between sketches and codes, queries that share a pass
 *     sketch_coarse.c      blocks that the coarse parts of sketches leave out
 *     sketch_candidates.c  rows that their sketches do not leave out
 */
#pragma once

#include "vector/engine/sketch.h"
#include "vector/engine/sketch_scan.h"

enum {
    SKETCH_WAITING_MAX = 4096,   /* candidates that wait */
    SKETCH_WAITING_FIRST = 1024, /* the same before the first are scored */
    SKETCH_PROBABLE_MAX = 16,    /* probable candidates that are scored together */
    SKETCH_GROUP_UNITS = 8, /* whose coarse parts are read before their fine ones, and stay in a processor's cache */
    SKETCH_GROUP_BLOCKS = SKETCH_GROUP_UNITS * SKETCH_UNIT_BLOCKS,
};

struct candidate {
    float bound;
    uint32_t slot;
};

/* A unit as one query sees it. */
struct sight {
    const struct sketch_unit *unit;
    struct sketch_probe probe;
    float centre_dot, cut;
    float probable; /* bounds above it are those of probable candidates */
};

/* Up to SKETCH_GROUP_UNITS units that follow each other, or a part of them. */
struct sketch_group {
    size_t from, to; /* rows */
    size_t base;     /* the first row of the block of `from` */
    struct sight sights[SKETCH_GROUP_UNITS];
    bool has_coarse;                      /* of each of its blocks: */
    float most[SKETCH_GROUP_BLOCKS];      /* what its rows score at most by their coarse parts */
    uint64_t scored[SKETCH_GROUP_BLOCKS]; /* rows that are scored already */
};

/* As struct sketch_shared_tries. */
struct sketch_tries {
    size_t n_in_vain, rows_to_skip;
};

struct sketch_scan {
    const struct kernel *kernel;
    const struct slab *slab;
    struct scan_request *request; /* borrowed */
    struct sketch_query query;
    struct best nearest;
    float slack;
    size_t n_waiting, waiting_max, n_probable;
    size_t n_sharing;                     /* queries of the pass */
    size_t group_units;                   /* of the next group */
    size_t n_passed;                      /* rows since the last decision to skip */
    size_t cost, codes_cost;              /* of these rows: by their sketches, and by their codes instead */
    size_t found_cost;                    /* of a candidate */
    struct sketch_tries sketches, coarse; /* of sketches at all, of their coarse parts */
    bool is_far;
    struct sketch_group group;
    struct candidate waiting[SKETCH_WAITING_MAX + SKETCH_BLOCK_ROWS];
    struct candidate probable[SKETCH_PROBABLE_MAX + SKETCH_BLOCK_ROWS];
};

/* The end of the rows of a range that are in the same unit as `from`. */
static inline size_t sketch_end_in_unit(size_t from, size_t to)
{
    return MIN(to, (from / SKETCH_UNIT_ROWS + 1) * SKETCH_UNIT_ROWS);
}

/* The place of a block in its group. */
static inline size_t sketch_place_of(const struct sketch_group *g, size_t base)
{
    return (base - g->base) / SKETCH_BLOCK_ROWS;
}

static inline struct sight *sketch_sight_of(struct sketch_group *g, size_t row)
{
    return &g->sights[row / SKETCH_UNIT_ROWS - g->from / SKETCH_UNIT_ROWS];
}

/* The block of the unit that begins at row `base`. */
static inline struct sketch_block sketch_block_at(const struct sketch_set *set, const struct sketch_unit *u,
                                                  size_t base)
{
    return sketch_block_of(set, u, base % SKETCH_UNIT_ROWS / SKETCH_BLOCK_ROWS);
}

/* --- sketch_candidates.c --- */

/* Rows that score at most this need not be scored. */
float sketch_cut(const struct sketch_scan *s);
float sketch_slack(const struct sketch_scan *s);
/* How far a row of the unit that scores more than `cut` may be from the centre in directions that its sketch does not
 * tell; times deviations, spread and factor, it is what the row may score above its sketch. */
float sketch_distance(const struct sketch_scan *s, const struct sketch_unit *u, float centre_dot, float cut);
/* Scores the candidates whose bounds are above the cut, which rises meanwhile. */
void sketch_score(struct sketch_scan *s, const struct candidate *list, size_t n);
void sketch_candidates_add_few(struct sketch_scan *s, size_t base, uint64_t bits);
void sketch_candidates_add(struct sketch_scan *s, const struct sight *sight, size_t base, uint64_t bits,
                           const float *bounds);
/* How many of the highest bounds are scored first, so that there is a cut. */
static inline size_t sketch_n_first(const struct sketch_scan *s, size_t least)
{
    return MAX(least, s->request->n_wanted + s->request->n_wanted / 2);
}

static inline bool sketch_has_many(const struct sketch_scan *s)
{
    return s->n_waiting >= s->waiting_max || s->n_probable >= SKETCH_PROBABLE_MAX;
}

/* Scores candidates, of which there are many: the cut may rise. */
void sketch_settle(struct sketch_scan *s);
/* Scores all that may belong to the answer. */
void sketch_finish(struct sketch_scan *s);
/* Tells the other threads. */
void sketch_raise_common_cut(const struct sketch_scan *s);

/* --- sketch_coarse.c --- */

/* Reads the coarse parts of the group's rows, and scores the best of them. */
void sketch_coarse_pass(struct sketch_scan *s);
