/* Sums of products of bytes: the inner loop of every scan, using this processor's vector instructions. Any thread.
 *
 * A row is `stride` codes of one byte, each its value plus 128; stride and address are multiples of KERNEL_ALIGN. The
 * query is signed. Every kernel gives exactly the same integers.
 *
 *     kernel_best()->dots(rows, stride, n_rows, query, out);
 */
#pragma once

#include "base/util.h"

enum { KERNEL_ALIGN = 64, KERNEL_ZERO = 128 /* the code that stands for 0 */ };

struct kernel {
    const char *name;
    bool (*is_supported)(void);
    /* out[i] = sum over j of rows[i * stride + j] * query[j] */
    void (*dots)(const uint8_t *rows, size_t stride, size_t n_rows, const int8_t *query, int32_t *out);
    /* The same for rows that were just read for another query. */
    void (*dots_again)(const uint8_t *rows, size_t stride, size_t n_rows, const int8_t *query, int32_t *out);
};

extern const struct kernel kernels[];   /* best first; ended by name NULL, before it the portable one */
const struct kernel *kernel_best(void); /* the first that this processor supports */
