#include "vector/engine/split_pass.h"
#include "vector/engine/helpers.h"
#include "vector/engine/sketch.h"
#include "vector/engine/sketch_scan.h"
#include <math.h>

enum {
    PART_ROWS =
        2 * SKETCH_UNIT_ROWS, /* the first rows of a part are not fetched ahead; at the end threads wait for one */
    LEAST_BYTES = 11 << 20,   /* of a pass for which waking a helper pays: 200,000 sketches of 384 dimensions */
};

struct split_pass {
    const struct kernel *kernel;
    const struct slab *slab;
    struct scan_request common; /* as each thread begins */
    size_t n_sketched, to;      /* rows */
    size_t n_newer, n_parts;    /* parts: of the rows after n_sketched, all */
    atomic_size_t next;         /* part */
    _Atomic float cut;          /* the highest of all threads */
    pthread_mutex_t lock;       /* of the result */
    struct scan_request *result;
};

static size_t n_sketched_rows(const struct scan_request *request, size_t to)
{
    return MIN(request->n_sketched * SKETCH_UNIT_ROWS, to);
}

/* What the pass reads: sketches, and codes of rows that have none or that are scored all the same, as many as lately.
 */
static size_t n_bytes(const struct slab *slab, const struct scan_request *request, size_t to)
{
    size_t n = n_sketched_rows(request, to), n_scored = MIN(n, sketch_scan_n_scored(slab, request));
    size_t n_codes = (to - n + n_scored) * slab->stride;

    return n > 0 ? n / SKETCH_BLOCK_ROWS * (slab->sketches->coarse_bytes + slab->sketches->fine_bytes) + n_codes
                 : n_codes;
}

bool split_pass_fits(const struct slab *slab, const struct scan_request *request, size_t to)
{
    return helpers_are_free(request->helpers) && n_bytes(slab, request, to) >= LEAST_BYTES;
}

static size_t n_parts_of(size_t n_rows)
{
    return (n_rows + PART_ROWS - 1) / PART_ROWS;
}

/* The newer rows come first, as in a pass by one thread. */
static void scan_part(const struct split_pass *p, struct sketch_scan *scan, size_t part)
{
    size_t from, to = p->to;

    if (part < p->n_newer) {
        from = p->n_sketched + part * PART_ROWS;
    } else {
        from = (part - p->n_newer) * PART_ROWS;
        to = p->n_sketched;
    }
    sketch_scan_rows(scan, from, MIN(from + PART_ROWS, to));
}

static void add_result(struct split_pass *p, const struct scan_request *mine, bool is_helper)
{
    struct scan_request *result = p->result;

    pthread_mutex_lock(&p->lock);
    for (size_t i = 0; i < mine->best->n; i++)
        best_offer(result->best, mine->best->items[i].score, mine->best->items[i].slot);
    result->cut = fmaxf(result->cut, mine->cut);
    result->n_passed += mine->n_passed;
    result->n_left_out += mine->n_left_out;
    result->n_scored += mine->n_scored;
    result->n_helpers += is_helper;
    pthread_mutex_unlock(&p->lock);
}

static void scan_parts(void *arg, bool is_helper)
{
    struct split_pass *p = arg;
    struct scan_request mine = p->common;
    struct sketch_scan *scan;
    struct best best;
    size_t part;

    best_init(&best, p->common.best->max);
    best.floor = p->common.best->floor;
    mine.best = &best;
    scan = sketch_scan_begin(p->kernel, p->slab, &mine);
    while ((!is_helper || helpers_are_free(mine.helpers)) && (part = atomic_fetch_add(&p->next, 1)) < p->n_parts)
        scan_part(p, scan, part);
    sketch_scan_end(scan);
    add_result(p, &mine, is_helper);
    best_clear(&best);
}

void split_pass_run(const struct kernel *kernel, const struct slab *slab, struct scan_request *request, size_t to)
{
    struct best none = { .max = request->best->max, .floor = request->best->floor };
    struct split_pass p = { .kernel = kernel,
                            .slab = slab,
                            .common = *request,
                            .n_sketched = n_sketched_rows(request, to),
                            .to = to,
                            .cut = request->common_cut ? atomic_load(request->common_cut) : -INFINITY,
                            .result = request };

    p.common.best = &none;
    p.common.common_cut = &p.cut;
    p.n_newer = n_parts_of(to - p.n_sketched);
    p.n_parts = p.n_newer + n_parts_of(p.n_sketched);
    request->cut = -INFINITY;
    pthread_mutex_init(&p.lock, NULL);
    helpers_run(request->helpers, scan_parts, &p);
    pthread_mutex_destroy(&p.lock);
}
