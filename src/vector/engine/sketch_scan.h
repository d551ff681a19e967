/* A pass over a slab in which the sketches of its units decide which rows are scored by their codes. Any thread.
 *
 * Rows whose bound is above the score of the last row wanted so far are candidates. Probable ones are scored at once,
 * which raises that score; the others wait and are mostly left out in the end. When more than a third of the rows
 * become candidates, as with data without any structure, the next units are scored by their codes alone.
 *
 *     sketch_scan_all(kernel, slab, requests, n, view.n);                  as scan_range(), up to 16 requests
 *
 *     struct sketch_scan *scan = sketch_scan_begin(kernel, slab, &request);
 *     sketch_scan_rows(scan, from, to);                                    any ranges
 *     sketch_scan_end(scan);                                               sets the results of the request
 */
#pragma once

#include "vector/engine/scan.h"

struct sketch_scan;

void sketch_scan_all(const struct kernel *kernel, const struct slab *slab, struct scan_request *const *requests,
                     size_t n_requests, size_t to);

struct sketch_scan *sketch_scan_begin(const struct kernel *kernel, const struct slab *slab,
                                      struct scan_request *request) MUST_CHECK;
void sketch_scan_rows(struct sketch_scan *s, size_t from, size_t to);
struct sketch_scan *sketch_scan_end(struct sketch_scan *s); /* NULL is fine */
