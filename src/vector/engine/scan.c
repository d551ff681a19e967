#include "vector/engine/scan.h"
#include "base/metrics.h"
#include "vector/engine/sketch_scan.h"
#include "vector/engine/split_pass.h"
#include <unistd.h>

enum { SCAN_FEW = 20 /* up to this many of a block's 64 rows are scored one by one */ };

/* The bits of the rows [from, to) in the block that begins at row `base`. */
static uint64_t range_bits(size_t base, size_t from, size_t to)
{
    uint64_t bits = ~UINT64_C(0);

    if (from > base)
        bits &= from - base < SLAB_BLOCK_ROWS ? ~UINT64_C(0) << (from - base) : 0;
    if (to < base + SLAB_BLOCK_ROWS)
        bits &= to > base ? ~UINT64_C(0) >> (SLAB_BLOCK_ROWS - (to - base)) : 0;
    return bits;
}

uint64_t scan_bits(const struct scan_request *request, size_t base, size_t from, size_t to)
{
    uint64_t bits = range_bits(base, from, MIN(to, request->n));

    return bits && request->mask ? bits & request->mask[base / SLAB_BLOCK_ROWS] : bits;
}

static void offer(struct scan_request *request, float score, uint32_t slot)
{
    best_offer(request->best, score, slot);
    if (request->nearest)
        best_offer(request->nearest, score, slot);
}

void scan_row(const struct kernel *kernel, const struct slab *slab, struct scan_request *request, uint32_t slot)
{
    int32_t dot;

    kernel->dots_again(slab_codes(slab, slot), slab->stride, 1, request->query->codes, &dot);
    offer(request, (float)(dot - request->query->bias) * slab_scale(slab, slot) * request->query->scale, slot);
}

void scan_prefetch(const struct slab *slab, size_t slot)
{
    const uint8_t *codes = slab_codes(slab, slot);

    for (size_t i = 0; i < slab->stride; i += 64)
        __builtin_prefetch(codes + i);
}

/* Rows of a block that is next, if they are scored one by one. */
static void prefetch_few(const struct slab *slab, size_t base, uint64_t bits)
{
    if (__builtin_popcountll(bits) > SCAN_FEW)
        return;
    for (; bits; bits &= bits - 1)
        scan_prefetch(slab, base + (size_t)__builtin_ctzll(bits));
}

static void score_few(const struct kernel *kernel, const struct slab *slab, struct scan_request *request, size_t base,
                      uint64_t bits)
{
    for (; bits; bits &= bits - 1)
        scan_row(kernel, slab, request, (uint32_t)(base + (size_t)__builtin_ctzll(bits)));
}

static void score_block(const struct kernel *kernel, const struct slab *slab, struct scan_request *request, size_t base,
                        uint64_t bits, bool is_first)
{
    size_t first = (size_t)__builtin_ctzll(bits), n = SLAB_BLOCK_ROWS - (size_t)__builtin_clzll(bits) - first;
    const struct slab_chunk *chunk = &slab->chunks[base / SLAB_CHUNK_ROWS];
    const float *scales = chunk->scales + base % SLAB_CHUNK_ROWS + first;
    int32_t dots[SLAB_BLOCK_ROWS];
    float scores[SLAB_BLOCK_ROWS];
    uint64_t above = 0;

    if (is_first)
        kernel->dots(slab_codes(slab, base + first), slab->stride, n, request->query->codes, dots);
    else
        kernel->dots_again(slab_codes(slab, base + first), slab->stride, n, request->query->codes, dots);
    for (size_t i = 0; i < n; i++)
        scores[i] = (float)(dots[i] - request->query->bias) * scales[i] * request->query->scale;
    for (size_t i = 0; i < n; i++)
        above |= (uint64_t)(scores[i] >= request->best->floor) << i;
    for (above &= bits >> first; above; above &= above - 1)
        offer(request, scores[__builtin_ctzll(above)], (uint32_t)(base + first + (size_t)__builtin_ctzll(above)));
}

void scan_range(const struct kernel *kernel, const struct slab *slab, struct scan_request *const *requests,
                size_t n_requests, size_t from, size_t to)
{
    for (size_t base = from - from % SLAB_BLOCK_ROWS; base < to; base += SLAB_BLOCK_ROWS)
        for (size_t i = 0; i < n_requests; i++) {
            struct scan_request *request = requests[i];
            uint64_t bits = scan_bits(request, base, from, to);

            if (__builtin_popcountll(bits) > SCAN_FEW) {
                score_block(kernel, slab, request, base, bits, i == 0);
                continue;
            }
            prefetch_few(slab, base + SLAB_BLOCK_ROWS, scan_bits(request, base + SLAB_BLOCK_ROWS, from, to));
            score_few(kernel, slab, request, base, bits);
        }
}

/* --- shared passes --- */

/* A waiting request; it is on the stack of the thread that waits. */
struct scan_visit {
    struct scan_visit *next;
    const struct slab *slab;
    struct scan_request *request;
    pthread_cond_t is_called; /* done, or the first in line with room for a pass */
    bool is_done;
};

void scan_batcher_init(struct scan_batcher *d)
{
    static const double sizes[] = { 1, 2, 4, 8, 16 };
    long n = sysconf(_SC_NPROCESSORS_ONLN);

    *d = (struct scan_batcher){ .max_running = n > 0 ? (size_t)n : 1 };
    d->pass_queries = metric_histogram_of("hearth_vector_pass_queries", "Queries that shared a pass over the rows.", "",
                                          sizes, ARRAY_SIZE(sizes));
    pthread_mutex_init(&d->lock, NULL);
}

void scan_batcher_clear(struct scan_batcher *d)
{
    pthread_mutex_destroy(&d->lock);
}

static void join_line(struct scan_batcher *d, struct scan_visit *visit)
{
    if (d->last)
        d->last->next = visit;
    else
        d->first = visit;
    d->last = visit;
    d->n_waiting++;
}

/* Takes the requests for the same rows from the front of the line. */
static size_t take_batch(struct scan_batcher *d, struct scan_visit *ret[SCAN_BATCH])
{
    size_t n = 0;

    while (d->first && n < SCAN_BATCH && (n == 0 || d->first->slab == ret[0]->slab)) {
        ret[n++] = d->first;
        d->first = d->first->next;
    }
    if (!d->first)
        d->last = NULL;
    d->n_waiting -= n;
    return n;
}

static void run_pass(const struct kernel *kernel, struct scan_visit *const *visits, size_t n)
{
    struct scan_request *requests[SCAN_BATCH];
    size_t to = 0;

    for (size_t i = 0; i < n; i++) {
        requests[i] = visits[i]->request;
        to = MAX(to, requests[i]->n);
    }
    if (n == 1 && split_pass_fits(visits[0]->slab, requests[0], to))
        split_pass_run(kernel, visits[0]->slab, requests[0], to);
    else
        sketch_scan_all(kernel, visits[0]->slab, requests, n, to);
}

static void call_first(struct scan_batcher *d)
{
    if (d->first && d->n_running < d->max_running)
        pthread_cond_signal(&d->first->is_called);
}

/* Runs one pass for the first request in line; releases the lock during the pass. */
static void serve(struct scan_batcher *d, const struct kernel *kernel)
{
    struct scan_visit *visits[SCAN_BATCH];
    size_t n = take_batch(d, visits);

    d->n_running++;
    call_first(d); /* further requests may wait, and another pass may be allowed to run */
    pthread_mutex_unlock(&d->lock);
    run_pass(kernel, visits, n);
    metric_observe(d->pass_queries, (double)n);
    pthread_mutex_lock(&d->lock);
    d->n_running--;
    for (size_t i = 0; i < n; i++) {
        visits[i]->is_done = true;
        pthread_cond_signal(&visits[i]->is_called);
    }
    call_first(d);
}

void scan_batcher_run(struct scan_batcher *d, const struct kernel *kernel, const struct slab *slab,
                      struct scan_request *request)
{
    struct scan_visit visit = { .slab = slab, .request = request };

    pthread_cond_init(&visit.is_called, NULL);
    pthread_mutex_lock(&d->lock);
    join_line(d, &visit);
    while (!visit.is_done) {
        if (d->first && d->n_running < d->max_running)
            serve(d, kernel);
        else
            pthread_cond_wait(&visit.is_called, &d->lock);
    }
    pthread_mutex_unlock(&d->lock);
    pthread_cond_destroy(&visit.is_called);
}
