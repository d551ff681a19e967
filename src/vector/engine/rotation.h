/* A fixed random rotation of vectors, after which every dimension holds about the same share of them. Any thread; no
 * state changes.
 *
 * Signs, a Hadamard transform of the first or last 2^k dimensions and one step that mixes both halves, four times: it
 * costs d log d. Lengths and inner products remain.
 *
 *     rotation_init(&r, 384);  rotation_apply(&r, numbers);        numbers has r.width entries, zero after the vector's
 */
#pragma once

#include "base/util.h"

enum { ROTATION_MULTIPLE = 24 /* of the width */ };

struct rotation {
    size_t width, span; /* span: the largest power of two in width */
    float *signs;       /* owned */
};

size_t rotation_width(size_t n_dimensions);
void rotation_init(struct rotation *r, size_t n_dimensions);
void rotation_clear(struct rotation *r);
void rotation_apply(const struct rotation *r, float *x);
