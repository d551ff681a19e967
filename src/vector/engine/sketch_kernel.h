/* The inner loop of a pass over sketches (sketch.h): what 64 rows can score at most, using this processor's vector
 * instructions. Any thread.
 *
 * A block holds 64 rows: byte b of row i is at b * 64 + i. After the n_signs / 8 * 64 bytes are the rows' factors as
 * floats, first those of the even rows, then those of the odd rows, and their offsets in the same order. A query is a
 * table for each few signs, which gives their part of its inner product with a row; entries are whole numbers.
 *
 *     rows = kernel->above(&probe, block, true, bounds);       bit i: row i; its bound: bounds[sketch_lane(i)]
 */
#pragma once

#include "base/util.h"

enum {
    SKETCH_BLOCK_ROWS = 64,
    SKETCH_TABLE_BYTES = 64, /* a table of 16 entries is repeated, as registers want it */
    SKETCH_AHEAD_BYTES = 8192,
};

/* Tables for four signs each: bits 0-3 and 4-7 of each byte. Or for six, which the last three bytes' spare bits fill:
 * bits 0-5 of three bytes, then bits 6 and 7 of all three. */
enum sketch_tables { SKETCH_TABLES_OF_16, SKETCH_TABLES_OF_64 };

/* What one query asks of the blocks of a unit. The bound of a row is
 * offset + factor * (delta * (sum of its entries) + add); the multiplications and additions are not fused. */
struct sketch_probe {
    const uint8_t *tables; /* borrowed; SKETCH_TABLE_BYTES each, aligned to them */
    size_t n_signs;        /* a multiple of 24 */
    float delta, add, threshold;
};

/* The place of a row's factor, offset and bound: even rows come first. */
static inline size_t sketch_lane(size_t row)
{
    return row % 2 * (SKETCH_BLOCK_ROWS / 2) + row / 2;
}

static inline size_t sketch_code_bytes(size_t n_signs)
{
    return n_signs / 8 * SKETCH_BLOCK_ROWS;
}

typedef uint64_t sketch_above_fn(const struct sketch_probe *probe, const uint8_t *block, bool is_far, float *bounds);

struct sketch_kernel {
    const char *name;
    bool (*is_supported)(void);
    enum sketch_tables tables;
    /* The rows whose bounds are above the threshold; bounds (64, aligned to 64 bytes) is written when there are any.
     * is_far: the following blocks are read next, from memory. */
    sketch_above_fn *above;
};

extern const struct sketch_kernel sketch_kernels[];   /* best first; ended by name NULL, before it the portable one */
const struct sketch_kernel *sketch_kernel_best(void); /* the first that this processor supports */

/* --- for sketch_kernel*.c --- */

bool sketch_supports_vbmi(void);
bool sketch_supports_avx512(void);
bool sketch_supports_avx2(void);
sketch_above_fn sketch_above_vbmi, sketch_above_avx512, sketch_above_avx2;
