/* A pass over a slab in which the sketches of its units decide which rows are scored by their codes. Any thread.
 *
 * Rows whose bound is above the score of the last row wanted so far are candidates. Probable ones are scored at once,
 * which raises that score; the others wait and are mostly left out in the end. When the codes would have cost less, as
 * with data without any structure, the next units are scored by their codes alone.
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

enum { SKETCH_FEW = 4 /* up to so many wanted rows of a block are candidates without a look at their sketches */ };

void sketch_scan_all(const struct kernel *kernel, const struct slab *slab, struct scan_request *const *requests,
                     size_t n_requests, size_t to);

struct sketch_scan *sketch_scan_begin(const struct kernel *kernel, const struct slab *slab,
                                      struct scan_request *request) MUST_CHECK;
void sketch_scan_rows(struct sketch_scan *s, size_t from, size_t to);
struct sketch_scan *sketch_scan_end(struct sketch_scan *s); /* NULL is fine */

/* The rows with sketches that the last query of this kind scored by their codes all the same; 0: not known, or the
 * query has a filter. Noted by who asks for the pass. */
size_t sketch_scan_n_scored(const struct slab *slab, const struct scan_request *request);
void sketch_scan_note_scored(const struct slab *slab, const struct scan_request *request);
