/* A pass over many rows for one query, whose parts idle helpers take too. The threads tell each other the score above
 * which rows are still wanted; the answer is that of one thread.
 *
 *     if (split_pass_fits(slab, &request, to))
 *         split_pass_run(kernel, slab, &request, to);          instead of sketch_scan_all()
 */
#pragma once

#include "vector/engine/scan.h"

/* Has the request helpers that are free, and rows enough for them? */
bool split_pass_fits(const struct slab *slab, const struct scan_request *request, size_t to);
void split_pass_run(const struct kernel *kernel, const struct slab *slab, struct scan_request *request, size_t to);
