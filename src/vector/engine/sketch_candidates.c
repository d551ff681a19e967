#include "vector/engine/sketch_scan_private.h"
#include <math.h>
#include <stdlib.h>

enum {
    FIRST_SCORED = 32, /* of the first candidates, those with the highest bounds */
    PREFETCHED = 12,   /* candidates whose codes are fetched before they are scored */
};

/* Scores by codes have errors. A row that belongs into the answer is at most so many deviations below the last one. */
#define SLACK_DEVIATIONS 9.0F

/* --- thresholds --- */

/* Rows that score at most this need not be scored, as far as this thread knows. */
static float own_cut(const struct sketch_scan *s)
{
    float floor = s->request->best->floor, nearest = s->nearest.floor - s->slack;

    return s->request->nearest && nearest > floor ? nearest : floor;
}

static float common_cut(const struct sketch_scan *s)
{
    const _Atomic float *common = s->request->common_cut;

    return common ? atomic_load_explicit(common, memory_order_relaxed) : -INFINITY;
}

float sketch_cut(const struct sketch_scan *s)
{
    float common = common_cut(s), own = own_cut(s);

    return MAX(common, own);
}

void sketch_raise_common_cut(const struct sketch_scan *s)
{
    _Atomic float *common = s->request->common_cut;
    float cut = own_cut(s), known;

    if (!common)
        return;
    known = atomic_load_explicit(common, memory_order_relaxed);
    while (cut > known &&
           !atomic_compare_exchange_weak_explicit(common, &known, cut, memory_order_relaxed, memory_order_relaxed))
        ;
}

/* Each of the two codes of a product is rounded: uniform errors within one unit of its scale. */
float sketch_slack(const struct sketch_scan *s)
{
    float scale = 0;

    for (size_t i = 0; i < s->request->n_sketched; i++)
        scale = fmaxf(scale, sketch_unit_of(s->slab->sketches, i)->most_scale);
    return SLACK_DEVIATIONS * sqrtf((scale * scale + s->request->query->scale * s->request->query->scale) / 12);
}

/* The deviation of a sketch's error is a share of the distance between query and centre. Of rows that score more than
 * `cut`, only the part of that distance counts that is not in the row's own direction: with the least cosine between
 * both of any such row of the unit. */
float sketch_distance(const struct sketch_scan *s, const struct sketch_unit *u, float centre_dot, float cut)
{
    float square = fmaxf(0, s->query.square + u->centre_square - 2 * centre_dot), radius = u->least_radius, cosine;
    float missing = cut - centre_dot - (u->most_square - u->centre_square) / 2;

    if (missing > 0)
        radius = fminf(fmaxf(sqrtf(2 * missing), u->least_radius), u->most_radius);
    if (radius <= 0 || square <= 0)
        return sqrtf(square);
    cosine = (missing / radius + radius / 2) / sqrtf(square);
    return cosine <= 0 ? sqrtf(square) : cosine >= 1 ? 0 : sqrtf(square * (1 - cosine * cosine));
}

/* --- candidates --- */

void sketch_score(struct sketch_scan *s, const struct candidate *list, size_t n)
{
    float cut = own_cut(s);
    size_t fetched = 0;

    for (size_t i = 0; i < n; i++) {
        for (; fetched < n && fetched < i + PREFETCHED; fetched++)
            scan_prefetch(s->slab, list[fetched].slot);
        if (list[i].bound <= cut || list[i].bound <= common_cut(s))
            continue;
        scan_row(s->kernel, s->slab, s->request, list[i].slot);
        s->request->n_scored++;
        cut = own_cut(s);
    }
    sketch_raise_common_cut(s);
}

/* Removes the candidates whose bounds are not above the cut. */
static void drop_waiting(struct sketch_scan *s)
{
    float cut = sketch_cut(s);
    size_t n = 0;

    for (size_t i = 0; i < s->n_waiting; i++)
        if (s->waiting[i].bound > cut)
            s->waiting[n++] = s->waiting[i];
    s->n_waiting = n;
}

/* Scores the candidates with the highest bounds, so that there is a cut. */
static void score_first(struct sketch_scan *s)
{
    size_t n = MIN(sketch_n_first(s, FIRST_SCORED), s->n_waiting);
    struct candidate *chosen = xcalloc(n, sizeof(*chosen));
    struct best first;

    best_init(&first, n);
    for (size_t i = 0; i < s->n_waiting; i++)
        best_offer(&first, s->waiting[i].bound, (uint32_t)i);
    for (size_t i = 0; i < first.n; i++) {
        chosen[i] = s->waiting[first.items[i].slot];
        s->waiting[first.items[i].slot].bound = -INFINITY;
    }
    sketch_score(s, chosen, first.n);
    best_clear(&first);
    free(chosen);
}

static void score_probable(struct sketch_scan *s)
{
    sketch_score(s, s->probable, s->n_probable);
    s->n_probable = 0;
}

/* Makes room. Candidates that remain above the cut go on waiting, unless they are many or the pass is over. */
static void empty_waiting(struct sketch_scan *s, bool is_over)
{
    score_probable(s);
    if (isinf(sketch_cut(s)) && s->n_waiting > 0)
        score_first(s);
    drop_waiting(s);
    s->waiting_max = SKETCH_WAITING_MAX;
    if (!is_over && s->n_waiting <= SKETCH_WAITING_MAX / 2)
        return;
    sketch_score(s, s->waiting, s->n_waiting);
    s->n_waiting = 0;
}

void sketch_settle(struct sketch_scan *s)
{
    if (s->n_waiting >= s->waiting_max)
        empty_waiting(s, false);
    else
        score_probable(s);
}

void sketch_finish(struct sketch_scan *s)
{
    empty_waiting(s, true);
}

void sketch_candidates_add_few(struct sketch_scan *s, size_t base, uint64_t bits)
{
    for (; bits; bits &= bits - 1)
        s->waiting[s->n_waiting++] = (struct candidate){ INFINITY, (uint32_t)(base + (size_t)__builtin_ctzll(bits)) };
}

void sketch_candidates_add(struct sketch_scan *s, const struct sight *sight, size_t base, uint64_t bits,
                           const float *bounds)
{
    s->cost += s->found_cost * (size_t)__builtin_popcountll(bits);
    for (; bits; bits &= bits - 1) {
        size_t row = (size_t)__builtin_ctzll(bits);
        float bound = bounds[sketch_lane(row)];
        struct candidate c = { bound + sight->centre_dot, (uint32_t)(base + row) };

        if (bound > sight->probable)
            s->probable[s->n_probable++] = c;
        else
            s->waiting[s->n_waiting++] = c;
    }
}
