/* Vectors as bytes: normalised, then each number as a share of the largest, in 1/127. Any thread; no state.
 *
 * The cosine of a row and a query is nearly (dot - query.bias) * scale of the row * query.scale, where dot is a
 * kernel's sum. A zero vector has the scale 0.
 */
#pragma once

#include "vector/engine/kernel.h"

struct quant_query {
    int8_t *codes; /* owned; stride of them */
    int32_t bias;  /* the amount that the rows' KERNEL_ZERO adds to every dot */
    float scale;
};

size_t quant_stride(size_t n_dimensions);
/* The length of a vector; NaN or infinite when one of its numbers is NaN or infinite. vector need not be aligned. */
double quant_norm(const void *vector, size_t n_dimensions);
/* Cosine similarity in double, within [-1, 1]; 0 when one of the two is zero. row need not be aligned. */
double quant_cosine(const void *row, const float *query, double query_norm, size_t n_dimensions);
/* Writes the codes of a row, quant_stride() of them, and returns its scale. */
float quant_encode(const void *vector, size_t n_dimensions, uint8_t *codes);

void quant_query_init(struct quant_query *q, const float *vector, size_t n_dimensions);
/* Makes a query from a row's codes. */
void quant_query_of_row(struct quant_query *q, const uint8_t *codes, float scale, size_t stride);
void quant_query_clear(struct quant_query *q);
