#include "vector/engine/sketch_recall.h"
#include "vector/engine/sketch_scan.h"

enum { RECALL_PASSES = 4, RECALL_QUERIES = RECALL_PASSES * SCAN_BATCH, RECALL_TOP = 11 /* the query's row and ten */ };

/* The live row at or after a slot; the slot itself when there is none. */
static size_t live_from(const struct slab_view *view, size_t slot)
{
    size_t at = slot;

    while (at < view->n && !slab_view_is_live(view, at))
        at++;
    return at < view->n ? at : slot;
}

/* Fills the best of each query, by all codes or by sketches. */
static void pass(const struct sketch_recall_request *r, const struct quant_query *queries, size_t n_sketched,
                 struct best *ret)
{
    struct scan_request requests[SCAN_BATCH], *pointers[SCAN_BATCH];

    for (size_t i = 0; i < SCAN_BATCH; i++) {
        best_init(&ret[i], RECALL_TOP);
        requests[i] = (struct scan_request){ .query = &queries[i],
                                             .mask = r->view->live,
                                             .n = r->view->n,
                                             .best = &ret[i],
                                             .sketch_kernel = r->sketch_kernel,
                                             .deviations = r->deviations,
                                             .n_sketched = n_sketched,
                                             .n_wanted = RECALL_TOP,
                                             .is_filtered = true };
        pointers[i] = &requests[i];
    }
    for (size_t i = n_sketched > 0 ? r->view->n : 0; i < r->view->n && pace_goes_on(r->pace); i += SLAB_BLOCK_ROWS)
        scan_range(r->kernel, r->view->slab, pointers, SCAN_BATCH, i, MIN(i + SLAB_BLOCK_ROWS, r->view->n));
    if (n_sketched > 0)
        sketch_scan_all(r->kernel, r->view->slab, pointers, SCAN_BATCH, r->view->n);
}

/* The hits that score as much as the last of the true ones. */
static size_t count_found(const struct best *hits, const struct best *truth)
{
    size_t n = 0;

    for (size_t i = 0; i < hits->n; i++)
        n += hits->items[i].score >= truth->items[0].score; /* the worst is first */
    return n;
}

static void measure_pass(const struct sketch_recall_request *r, size_t first, size_t *n_found, size_t *n_all)
{
    struct best hits[SCAN_BATCH], truth[SCAN_BATCH];
    struct quant_query queries[SCAN_BATCH];
    const struct slab *slab = r->view->slab;

    for (size_t i = 0; i < SCAN_BATCH; i++) {
        size_t slot = live_from(r->view, (first + i) * r->view->n / RECALL_QUERIES);

        quant_query_of_row(&queries[i], slab_codes(slab, slot), slab_scale(slab, slot), slab->stride);
    }
    pass(r, queries, 0, truth);
    pass(r, queries, r->view->n_sketched, hits);
    for (size_t i = 0; i < SCAN_BATCH; i++) {
        *n_found += count_found(&hits[i], &truth[i]);
        *n_all += truth[i].n;
        best_clear(&hits[i]);
        best_clear(&truth[i]);
        quant_query_clear(&queries[i]);
    }
}

int sketch_recall_measure(const struct sketch_recall_request *request, double *ret)
{
    size_t n_found = 0, n_all = 0;

    for (size_t i = 0; i < RECALL_QUERIES; i += SCAN_BATCH) {
        if (!pace_goes_on(request->pace))
            return -ECANCELED;
        measure_pass(request, i, &n_found, &n_all);
    }
    if (!pace_goes_on(request->pace))
        return -ECANCELED;
    *ret = n_all > 0 ? (double)n_found / (double)n_all : 1;
    return 0;
}
