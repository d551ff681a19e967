#include "vector/engine/lists.h"
#include "vector/engine/scan.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    LISTS_SAMPLE_QUERIES = 256,
    LISTS_SAMPLE_TOP = 10,
    LISTS_STEP_ROWS = 8, /* between two looks at the pace */
    LISTS_WORTH = 4,     /* a query scans at most one list in LISTS_WORTH */
    LISTS_CHEAP = 64,    /* up to one list in LISTS_CHEAP is scanned for a recall above the wanted one */
};

/* A margin for other queries, as the sample's rows helped to place the centres. */
#define PROBES_MARGIN 1.25
#define CHEAP_RECALL 0.9995

struct lists *lists_free(struct lists *l)
{
    if (!l)
        return NULL;
    codes_clear(&l->centres);
    free(l->starts);
    free(l);
    return NULL;
}

/* --- centres and order --- */

static size_t n_lists_for(size_t n_rows)
{
    return MAX((size_t)(1.6 * sqrt((double)n_rows)), (size_t)1);
}

/* Slots of the live rows. */
static uint32_t *live_slots(const struct slab_view *view)
{
    uint32_t *slots = xcalloc(view->n_live, sizeof(*slots));
    size_t n = 0;

    for (size_t slot = 0; slot < view->n; slot++)
        if (slab_view_is_live(view, slot))
            slots[n++] = (uint32_t)slot;
    return slots;
}

/* Takes as many evenly spaced rows as n_centres centres need. */
static int take_samples(const struct slab_view *view, const uint32_t *slots, size_t n_centres, struct codes *ret)
{
    size_t n = MIN(view->n_live, n_centres * KMEANS_SAMPLES);
    int r;

    r = codes_init(ret, n, view->slab->n_dimensions);
    for (size_t i = 0; r == 0 && i < n; i++) {
        size_t slot = slots[i * view->n_live / n];

        memcpy(ret->codes + i * ret->stride, slab_codes(view->slab, slot), ret->stride);
        ret->scales[i] = slab_scale(view->slab, slot);
    }
    return r;
}

/* Assigns each live slot to a list. */
static int assign(const struct kernel *kernel, const struct slab_view *view, const uint32_t *slots,
                  const struct codes *centres, struct pace *pace, uint32_t *list_of)
{
    int32_t *scratch = xcalloc(centres->n, sizeof(*scratch));
    size_t i;

    for (i = 0; i < view->n_live; i++) {
        if (i % LISTS_STEP_ROWS == 0 && !pace_goes_on(pace))
            break;
        list_of[i] = (uint32_t)kmeans_nearest(kernel, centres, slab_codes(view->slab, slots[i]), scratch);
    }
    free(scratch);
    return i < view->n_live ? -ECANCELED : 0;
}

/* Sorts the slots by list (counting sort); within a list they keep their order. */
static uint32_t *sort_by_list(struct lists *l, const uint32_t *slots, const uint32_t *list_of, size_t n)
{
    uint32_t *order = xcalloc(n, sizeof(*order));
    size_t *at = xcalloc(l->centres.n + 1, sizeof(*at));

    l->starts = xcalloc(l->centres.n + 1, sizeof(*l->starts));
    for (size_t i = 0; i < n; i++)
        l->starts[list_of[i] + 1]++;
    for (size_t i = 0; i < l->centres.n; i++)
        l->starts[i + 1] += l->starts[i];
    memcpy(at, l->starts, (l->centres.n + 1) * sizeof(*at));
    for (size_t i = 0; i < n; i++)
        order[at[list_of[i]]++] = slots[i];
    free(at);
    return order;
}

/* --- choosing lists --- */

static void score_centres(const struct lists *l, const struct kernel *kernel, const struct quant_query *query,
                          float *scores)
{
    int32_t *dots = xcalloc(l->centres.n, sizeof(*dots));

    kernel->dots_again(l->centres.codes, l->centres.stride, l->centres.n, query->codes, dots);
    for (size_t i = 0; i < l->centres.n; i++)
        scores[i] = (float)(dots[i] - query->bias) * l->centres.scales[i];
    free(dots);
}

static int by_score(const void *a, const void *b)
{
    const struct best_slot *x = a, *y = b;

    return x->score > y->score ? -1 : x->score < y->score;
}

void lists_choose(const struct lists *l, const struct kernel *kernel, const struct quant_query *query,
                  uint32_t *numbers)
{
    float *scores = xcalloc(l->centres.n, sizeof(*scores));
    struct best best;

    score_centres(l, kernel, query, scores);
    best_init(&best, l->n_probes);
    for (size_t i = 0; i < l->centres.n; i++)
        best_offer(&best, scores[i], (uint32_t)i);
    qsort(best.items, best.n, sizeof(*best.items), by_score);
    for (size_t i = 0; i < l->n_probes; i++)
        numbers[i] = i < best.n ? best.items[i].slot : 0;
    best_clear(&best);
    free(scores);
}

/* --- the number of lists to scan --- */

/* Rows that serve as queries; a scan of all rows finds their nearest rows. */
struct sample {
    struct quant_query queries[SCAN_BATCH];
    struct best bests[SCAN_BATCH];
    uint32_t slots[SCAN_BATCH];
    size_t n;
};

static void answer(const struct kernel *kernel, const struct slab_view *view, struct sample *s, struct pace *pace)
{
    struct scan_request requests[SCAN_BATCH], *pointers[SCAN_BATCH];

    for (size_t i = 0; i < s->n; i++) {
        quant_query_of_row(&s->queries[i], slab_codes(view->slab, s->slots[i]), slab_scale(view->slab, s->slots[i]),
                           view->slab->stride);
        best_init(&s->bests[i], LISTS_SAMPLE_TOP + 1);
        requests[i] =
            (struct scan_request){ .query = &s->queries[i], .mask = view->live, .n = view->n, .best = &s->bests[i] };
        pointers[i] = &requests[i];
    }
    for (size_t i = 0; i < view->n && pace_goes_on(pace); i += SLAB_BLOCK_ROWS)
        scan_range(kernel, view->slab, pointers, s->n, i, MIN(i + SLAB_BLOCK_ROWS, view->n));
}

static void sample_clear(struct sample *s)
{
    for (size_t i = 0; i < s->n; i++) {
        quant_query_clear(&s->queries[i]);
        best_clear(&s->bests[i]);
    }
}

/* The rank of the list in the order of scanning. */
static uint32_t rank_of(const float *scores, size_t n, size_t list)
{
    uint32_t rank = 0;

    for (size_t i = 0; i < n; i++)
        rank += scores[i] > scores[list];
    return rank;
}

/* Adds the ranks of the lists that will contain the nearest rows of one query, except the query's own row. */
static size_t note_ranks(const struct lists *l, const struct kernel *kernel, const struct slab *slab,
                         const struct sample *s, size_t i, uint32_t *ranks)
{
    float *scores = xcalloc(l->centres.n, sizeof(*scores));
    int32_t *scratch = xcalloc(l->centres.n, sizeof(*scratch));
    size_t n = 0;

    score_centres(l, kernel, &s->queries[i], scores);
    for (size_t j = 0; j < s->bests[i].n && n < LISTS_SAMPLE_TOP; j++) {
        uint32_t slot = s->bests[i].items[j].slot;

        if (slot != s->slots[i])
            ranks[n++] =
                rank_of(scores, l->centres.n, kmeans_nearest(kernel, &l->centres, slab_codes(slab, slot), scratch));
    }
    free(scratch);
    free(scores);
    return n;
}

static int by_number(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

    return x < y ? -1 : x > y;
}

/* The number of lists that have such a share of the ranks, which are sorted. */
static size_t n_probes_for(const struct lists *l, const uint32_t *ranks, size_t n, double share)
{
    size_t wanted = MIN((size_t)ceil(share * (double)n), n);

    if (wanted == 0)
        return 1;
    return MIN((size_t)((ranks[wanted - 1] + 1) * PROBES_MARGIN + 0.5), l->centres.n);
}

/* Sets n_probes and recall. */
static void settle_probes(struct lists *l, uint32_t *ranks, size_t n, double target_recall)
{
    size_t n_found = 0, n_cheap;

    qsort(ranks, n, sizeof(*ranks), by_number);
    n_cheap = MIN(n_probes_for(l, ranks, n, CHEAP_RECALL), l->centres.n / LISTS_CHEAP);
    l->n_probes = MAX(n_probes_for(l, ranks, n, target_recall), n_cheap);
    while (n_found < n && ranks[n_found] < l->n_probes)
        n_found++;
    l->recall = n > 0 ? (double)n_found / (double)n : 1;
}

static int measure(struct lists *l, const struct kernel *kernel, const struct slab_view *view, const uint32_t *slots,
                   double target_recall, struct pace *pace)
{
    size_t n_queries = MIN(view->n_live, (size_t)LISTS_SAMPLE_QUERIES), n_ranks = 0, next = 0;
    uint32_t *ranks = xcalloc(n_queries * LISTS_SAMPLE_TOP, sizeof(*ranks));

    while (next < n_queries && pace_goes_on(pace)) {
        struct sample s = { .n = MIN(n_queries - next, (size_t)SCAN_BATCH) };

        for (size_t i = 0; i < s.n; i++)
            s.slots[i] = slots[(next + i) * view->n_live / n_queries];
        answer(kernel, view, &s, pace);
        for (size_t i = 0; i < s.n; i++)
            n_ranks += note_ranks(l, kernel, view->slab, &s, i, ranks + n_ranks);
        sample_clear(&s);
        next += s.n;
    }
    if (next >= n_queries)
        settle_probes(l, ranks, n_ranks, target_recall);
    free(ranks);
    return next < n_queries || !pace_goes_on(pace) ? -ECANCELED : 0;
}

/* --- building --- */

static int place_centres(const struct kernel *kernel, const struct slab_view *view, const uint32_t *slots,
                         struct pace *pace, struct codes *ret)
{
    size_t n_centres = n_lists_for(view->n_live);
    struct codes samples;
    int r;

    r = take_samples(view, slots, n_centres, &samples);
    if (r < 0)
        return r;
    r = kmeans_run(kernel, &samples, n_centres, pace, ret);
    codes_clear(&samples);
    return r;
}

static bool are_of_use(const struct lists *l, const struct lists_goal *goal)
{
    bool are_sure = l->recall >= CHEAP_RECALL && l->n_probes * LISTS_CHEAP <= l->centres.n;

    return are_sure || (!goal->must_be_sure && l->n_probes * LISTS_WORTH <= l->centres.n);
}

/* Whether the lists are of use shows before all rows are assigned to them. */
static int build(const struct kernel *kernel, const struct slab_view *view, const struct lists_goal *goal,
                 struct pace *pace, struct lists *l, uint32_t **ret_order)
{
    uint32_t *slots = live_slots(view), *list_of = xcalloc(view->n_live, sizeof(*list_of));
    int r = place_centres(kernel, view, slots, pace, &l->centres);

    if (r == 0)
        r = measure(l, kernel, view, slots, goal->recall, pace);
    if (r == 0 && !are_of_use(l, goal))
        r = -EDOM;
    if (r == 0)
        r = assign(kernel, view, slots, &l->centres, pace, list_of);
    if (r == 0)
        *ret_order = sort_by_list(l, slots, list_of, view->n_live);
    free(list_of);
    free(slots);
    return r;
}

int lists_build(const struct kernel *kernel, const struct slab_view *view, const struct lists_goal *goal,
                struct pace *pace, struct lists **ret, uint32_t **ret_order)
{
    struct lists *l = xcalloc(1, sizeof(*l));
    int r = build(kernel, view, goal, pace, l, ret_order);

    if (r == 0)
        *ret = l;
    else
        lists_free(l);
    return r;
}
