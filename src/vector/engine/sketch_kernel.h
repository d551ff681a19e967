/* The inner loops of a pass over sketches (sketch.h): what 64 rows can score at most, using this processor's vector
 * instructions. Any thread.
 *
 * A block holds 64 rows, in two parts: the coarse one has the first n_coarse of a row's signs, the fine one the others.
 * Byte b of row i is at b * 64 + i of its part. After the bytes of a part are the rows' factors, first those of the
 * even rows, then those of the odd rows, and their offsets in the same order: numbers of 16 bits, the upper half of a
 * float (bfloat16). Those of the coarse part are of its signs, those of the fine part of all signs. A query is a table
 * for each few signs, which gives their part of its inner product with a row; entries are whole numbers.
 *
 *     rows = kernel->above(&probe, &block, true, bounds);       bit i: row i; its bound: bounds[sketch_lane(i)]
 */
#pragma once

#include "base/util.h"

#include <string.h>

enum {
    SKETCH_BLOCK_ROWS = 64,
    SKETCH_TABLE_BYTES = 64, /* a table of 16 entries is repeated, as registers want it */
    SKETCH_AHEAD_BYTES = 4096,
};

/* Tables for four signs each: bits 0-3 and 4-7 of each byte. Or for six, which the last three bytes' spare bits fill:
 * bits 0-5 of three bytes, then bits 6 and 7 of all three. */
enum sketch_tables { SKETCH_TABLES_OF_16, SKETCH_TABLES_OF_64 };

/* What one query asks of the blocks of a unit. The bound of a row is
 * offset + factor * (delta * (sum of its entries) + add); the multiplications and additions are not fused. */
struct sketch_probe {
    const uint8_t *tables;    /* borrowed; SKETCH_TABLE_BYTES each, aligned to them */
    size_t n_signs, n_coarse; /* multiples of 24 */
    float delta, add, threshold;
};

struct sketch_block {
    const uint8_t *coarse, *fine;
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

/* The tables of the signs of the fine part. */
static inline const uint8_t *sketch_fine_tables(const struct sketch_probe *probe, enum sketch_tables tables)
{
    return probe->tables + probe->n_coarse / (tables == SKETCH_TABLES_OF_64 ? 6 : 4) * SKETCH_TABLE_BYTES;
}

/* Of a part with so many signs. */
static inline size_t sketch_part_bytes(size_t n_signs)
{
    return sketch_code_bytes(n_signs) + 2 * SKETCH_BLOCK_ROWS * sizeof(uint16_t);
}

/* The factors of a part, before its offsets. */
static inline const uint16_t *sketch_factors(const uint8_t *part, size_t n_signs)
{
    return (const uint16_t *)(const void *)(part + sketch_code_bytes(n_signs));
}

static inline float sketch_float(uint16_t upper)
{
    uint32_t bits = (uint32_t)upper << 16;
    float f;

    memcpy(&f, &bits, sizeof(f));
    return f;
}

typedef uint64_t sketch_above_fn(const struct sketch_probe *probe, const struct sketch_block *block, bool is_far,
                                 float *bounds);
typedef uint64_t sketch_coarse_fn(const struct sketch_probe *probe, const uint8_t *coarse, bool is_far, float *bounds,
                                  float *ret_most);

struct sketch_kernel {
    const char *name;
    bool (*is_supported)(void);
    enum sketch_tables tables;
    /* The rows whose bounds are above the threshold; bounds (64, aligned to 64 bytes) is written when there are any.
     * is_far: the following blocks are read next, from memory. */
    sketch_above_fn *above;
    /* The same by the coarse signs alone, and the highest bound. */
    sketch_coarse_fn *coarse;
};

extern const struct sketch_kernel sketch_kernels[];   /* best first; ended by name NULL, before it the portable one */
const struct sketch_kernel *sketch_kernel_best(void); /* the first that this processor supports */

/* --- for sketch_kernel*.c --- */

bool sketch_supports_vbmi(void);
bool sketch_supports_avx512(void);
bool sketch_supports_avx2(void);
sketch_above_fn sketch_above_vbmi, sketch_above_avx512, sketch_above_avx2;
sketch_coarse_fn sketch_coarse_vbmi, sketch_coarse_avx512, sketch_coarse_avx2;
