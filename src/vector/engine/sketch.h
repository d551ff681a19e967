/* One-bit sketches of rows (RaBitQ, arXiv 2405.12497), by which a pass over the rows of a slab finds out which of them
 * may be among the nearest, reading a seventh of the memory.
 *
 * 4,096 rows of a slab form a unit, which is sketched once all of them are there and never changed: removed rows keep
 * their sketches. r is a row's rotated difference to the unit's mean c (rotated too), s the signs of r, v the rotated
 * query. With factor = |r|^2 / <s, r> and offset = <r, c> - factor * <s, c>,
 *
 *     <row, query> = <c, v> + offset + factor * <s, v>
 *
 * but for a nearly normal error with the deviation factor * `spread` * |v - c|. From 1,536 dimensions on, s are the
 * signs of half of r's numbers. The coarse part of a sketch is the same with three eighths of these signs, which alone
 * leave out most rows of clustered data.
 *
 * A set belongs to a slab. One thread at a time adds units; a unit's owner publishes it under its own lock. Others read
 * published units without a lock.
 *
 *     r = sketch_add(set, slab, NULL, e);  lock;  slab->n_sketched = set->n;  unlock;
 */
#pragma once

#include "vector/engine/pace.h"
#include "vector/engine/quant.h"
#include "vector/engine/rotation.h"
#include "vector/engine/sketch_kernel.h"
#include "vector/engine/slab.h"

enum {
    SKETCH_UNIT_ROWS = 4096,
    SKETCH_UNIT_BLOCKS = SKETCH_UNIT_ROWS / SKETCH_BLOCK_ROWS,
    SKETCH_LEAST_DIMENSIONS = 64,  /* rows of fewer dimensions are as small as their sketches */
    SKETCH_WIDE_DIMENSIONS = 1536, /* from here on half the signs */
    SKETCH_DENSITIES = 4,
    SKETCH_FORMAT = 2, /* of an image; raise it when the bytes of a unit change their meaning */
};

struct sketch_unit {
    const uint8_t *coarse, *fine;     /* parts of blocks of SKETCH_BLOCK_ROWS rows each */
    const float *centre;              /* c */
    float centre_square, most_square; /* |c|^2; the largest of |row|^2 */
    float least_radius, most_radius;  /* of |r| */
    float mean_factor, most_scale;    /* of the rows */
};

struct sketch_region;

/* Tries in a row that did not pay, and rows until the next one. */
struct sketch_shared_tries {
    atomic_size_t n_in_vain, rows_to_skip;
};

/* What the last query found: tries of sketches that had too many candidates, of coarse parts that left out too few
 * rows, apart for queries with a filter; rows that it scored by their codes. */
struct sketch_density {
    struct sketch_shared_tries sketches, coarse, filtered_coarse;
    atomic_size_t n_scored;
};

struct sketch_set {
    struct rotation rotation;
    size_t n_dimensions, n, n_signs, n_coarse;
    size_t coarse_bytes, fine_bytes; /* of a block */
    float spread, coarse_spread;
    struct sketch_region **regions;                    /* owned; a table of fixed size */
    atomic_size_t *account;                            /* borrowed */
    struct sketch_density densities[SKETCH_DENSITIES]; /* sketch_density_of() */
};

bool sketch_fits(size_t n_dimensions);
struct sketch_set *sketch_set_new(size_t n_dimensions, atomic_size_t *account) MUST_CHECK;
struct sketch_set *sketch_set_free(struct sketch_set *set);
/* Makes the unit after those that are there (set->n), from the codes of its rows. -ENOMEM; -ECANCELED: the
 * store closes, *e is untouched. */
int sketch_add(struct sketch_set *set, const struct slab *slab, struct pace *pace, struct err *e) MUST_CHECK;
const struct sketch_unit *sketch_unit_of(const struct sketch_set *set, size_t unit);

/* Of queries for about so many rows: more rows have more candidates. */
struct sketch_density *sketch_density_of(struct sketch_set *set, size_t n_wanted);

/* A unit as bytes, to keep it in a file; 0 bytes when the dimensions are too few for sketches. */
size_t sketch_image_bytes(size_t n_dimensions);
void sketch_save(const struct sketch_set *set, size_t unit, uint8_t *ret_image);
/* Adds the unit of an image after those that are there. -EBADMSG: it is none; -ENOMEM. */
int sketch_restore(struct sketch_set *set, const uint8_t *image) MUST_CHECK;

/* A query as the kernels read it. */
struct sketch_query {
    float *numbers;  /* owned; rotated */
    uint8_t *memory; /* owned; the tables, where they are aligned */
    uint8_t *tables;
    float square, delta;       /* |query|^2; <s, query> = delta * (sum of entries) - least */
    float least, coarse_least; /* of all signs, of the coarse ones */
};

static inline struct sketch_block sketch_block_of(const struct sketch_set *set, const struct sketch_unit *unit,
                                                  size_t i)
{
    return (struct sketch_block){ unit->coarse + i * set->coarse_bytes, unit->fine + i * set->fine_bytes };
}

void sketch_query_init(struct sketch_query *q, const struct sketch_set *set, enum sketch_tables tables,
                       const struct quant_query *query);
void sketch_query_clear(struct sketch_query *q);
float sketch_dot(const float *a, const float *b, size_t n); /* n: a multiple of 8 */
