/* Measures how many of the nearest rows a query by sketches finds: some rows serve as queries. One thread. */
#pragma once

#include "vector/engine/pace.h"
#include "vector/engine/scan.h"

struct sketch_recall_request {
    const struct kernel *kernel;
    const struct sketch_kernel *sketch_kernel;
    float deviations;
    const struct slab_view *view; /* with at least one unit of sketches */
    struct pace *pace;            /* borrowed; -ECANCELED when the store closes */
};
int sketch_recall_measure(const struct sketch_recall_request *request, double *ret) MUST_CHECK;
