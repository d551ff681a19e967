/* Centres of a set of rows by spherical k-means: seeded by k-means++, then KMEANS_ROUNDS rounds of Lloyd. One thread.
 *
 * The run ends early when the store closes. Rows are codes and scales as in a slab; the same seed gives the
 * same centres.
 *
 *     r = kmeans_run(kernel, &samples, n_centres, pace, &centres);      -ECANCELED, -ENOMEM
 *     i = kmeans_nearest(kernel, &centres, codes);
 */
#pragma once

#include "vector/engine/kernel.h"
#include "vector/engine/pace.h"

enum { KMEANS_ROUNDS = 12, KMEANS_SAMPLES = 60 /* for each centre, if there are enough rows */ };

/* Rows of codes, one after the other. */
struct codes {
    size_t n, n_dimensions, stride;
    uint8_t *codes; /* owned; KERNEL_ALIGN */
    float *scales;  /* owned */
};

int codes_init(struct codes *c, size_t n, size_t n_dimensions) MUST_CHECK; /* -ENOMEM */
void codes_clear(struct codes *c);

int kmeans_run(const struct kernel *kernel, const struct codes *samples, size_t n_centres, struct pace *pace,
               struct codes *ret) MUST_CHECK;
/* The centre with the highest cosine to a row. scratch holds one integer for each centre. */
size_t kmeans_nearest(const struct kernel *kernel, const struct codes *centres, const uint8_t *row, int32_t *scratch);
