#include "vector/engine/sketch_scan.h"
#include "vector/engine/sketch.h"
#include <math.h>
#include <stdlib.h>

enum {
    WAITING_MAX = 4096,   /* candidates that wait */
    WAITING_FIRST = 1024, /* the same before the first are scored */
    PROBABLE_MAX = 16,    /* probable candidates that are scored together */
    FIRST_SCORED = 32,    /* of the first candidates, those with the highest bounds */
    PREFETCHED = 12,      /* candidates whose codes are fetched before they are scored */
    IN_VAIN_MAX = 6       /* after so many tries of sketches in a row, 16 units are scored by their codes */
};

/* Times, in tenths of that of a row which is scored alone. */
enum {
    ROW_COST = 10,
    FOUND_COST = 13,         /* a candidate, whether it is scored in the end or not */
    FOUND_OF_MANY_COST = 20, /* the same when more than MANY are wanted: more are scored, and heaps are larger */
    MANY = 16,
    BLOCK_COST = 45,        /* the sketches of a block */
    CODES_COST = 380,       /* all codes of a block, one after the other: as long as memory takes */
    SHARED_CODES_COST = 180 /* the part of it that is computing, which each query does that shares them */
};

/* Scores by codes have errors. A row that belongs into the answer is at most so many deviations below the last one. */
#define SLACK_DEVIATIONS 9.0F

struct candidate {
    float bound;
    uint32_t slot;
};

struct sketch_scan {
    const struct kernel *kernel;
    const struct slab *slab;
    struct scan_request *request; /* borrowed */
    struct sketch_query query;
    struct best nearest;
    float slack;
    size_t n_waiting, waiting_max, n_probable;
    size_t n_sharing;               /* queries of the pass */
    size_t n_passed;                /* rows since the last decision to skip */
    size_t cost, codes_cost;        /* of these rows: by their sketches, and by their codes instead */
    size_t found_cost;              /* of a candidate */
    size_t n_in_vain, rows_to_skip; /* tries of sketches in a row; rows until the next one */
    bool is_far;
    struct candidate waiting[WAITING_MAX + SKETCH_BLOCK_ROWS], probable[PROBABLE_MAX + SKETCH_BLOCK_ROWS];
};

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

static float cut_of(const struct sketch_scan *s)
{
    float common = common_cut(s), own = own_cut(s);

    return MAX(common, own);
}

/* Tells the other threads. */
static void raise_common_cut(const struct sketch_scan *s)
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
static float slack_of(const struct sketch_scan *s)
{
    float scale = 0;

    for (size_t i = 0; i < s->request->n_sketched; i++)
        scale = fmaxf(scale, sketch_unit_of(s->slab->sketches, i)->most_scale);
    return SLACK_DEVIATIONS * sqrtf((scale * scale + s->request->query->scale * s->request->query->scale) / 12);
}

/* The deviation of a sketch's error is a share of the distance between query and centre. Of rows that score more than
 * `cut`, only the part of that distance counts that is not in the row's own direction: with the least cosine between
 * both of any such row of the unit. */
static float distance_of(const struct sketch_scan *s, const struct sketch_unit *u, float centre_dot, float cut)
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

/* A unit as one query sees it. */
struct sight {
    const struct sketch_unit *unit;
    struct sketch_probe probe;
    float centre_dot;
    float probable; /* bounds above it are those of probable candidates */
};

static void set_thresholds(const struct sketch_scan *s, struct sight *sight)
{
    float cut = cut_of(s), error;

    error = s->request->deviations * s->slab->sketches->spread * distance_of(s, sight->unit, sight->centre_dot, cut);
    sight->probe.add = error - s->query.least;
    sight->probe.threshold = cut - sight->centre_dot;
    sight->probable = isinf(cut) ? INFINITY : sight->probe.threshold + error * sight->unit->mean_factor;
}

/* --- candidates --- */

/* Scores the candidates whose bounds are above the cut, which rises meanwhile. */
static void score(struct sketch_scan *s, const struct candidate *list, size_t n)
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
    raise_common_cut(s);
}

/* Removes the candidates whose bounds are not above the cut. */
static void drop_waiting(struct sketch_scan *s)
{
    float cut = cut_of(s);
    size_t n = 0;

    for (size_t i = 0; i < s->n_waiting; i++)
        if (s->waiting[i].bound > cut)
            s->waiting[n++] = s->waiting[i];
    s->n_waiting = n;
}

/* Scores the candidates with the highest bounds, so that there is a cut. */
static void score_first(struct sketch_scan *s)
{
    size_t n = MIN(MAX((size_t)FIRST_SCORED, s->request->n_wanted + s->request->n_wanted / 2), s->n_waiting);
    struct candidate *chosen = xcalloc(n, sizeof(*chosen));
    struct best first;

    best_init(&first, n);
    for (size_t i = 0; i < s->n_waiting; i++)
        best_offer(&first, s->waiting[i].bound, (uint32_t)i);
    for (size_t i = 0; i < first.n; i++) {
        chosen[i] = s->waiting[first.items[i].slot];
        s->waiting[first.items[i].slot].bound = -INFINITY;
    }
    score(s, chosen, first.n);
    best_clear(&first);
    free(chosen);
}

static void score_probable(struct sketch_scan *s)
{
    score(s, s->probable, s->n_probable);
    s->n_probable = 0;
}

/* Makes room. Candidates that remain above the cut go on waiting, unless they are many or the pass is over. */
static void empty_waiting(struct sketch_scan *s, bool is_over)
{
    score_probable(s);
    if (isinf(cut_of(s)) && s->n_waiting > 0)
        score_first(s);
    drop_waiting(s);
    s->waiting_max = WAITING_MAX;
    if (!is_over && s->n_waiting <= WAITING_MAX / 2)
        return;
    score(s, s->waiting, s->n_waiting);
    s->n_waiting = 0;
}

static void add_few(struct sketch_scan *s, size_t base, uint64_t bits)
{
    for (; bits; bits &= bits - 1)
        s->waiting[s->n_waiting++] = (struct candidate){ INFINITY, (uint32_t)(base + (size_t)__builtin_ctzll(bits)) };
}

static void add(struct sketch_scan *s, const struct sight *sight, size_t base, uint64_t bits, const float *bounds)
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

/* --- units --- */

static const uint8_t *block_at(const struct sketch_scan *s, const struct sketch_unit *u, size_t base)
{
    return u->blocks + base % SKETCH_UNIT_ROWS / SKETCH_BLOCK_ROWS * s->slab->sketches->block_bytes;
}

/* Of a block of which so many rows are wanted, and whose sketches are read. */
static void note_block(struct sketch_scan *s, size_t n_rows)
{
    size_t whole = SHARED_CODES_COST + (CODES_COST - SHARED_CODES_COST) / s->n_sharing;

    s->cost += BLOCK_COST;
    s->codes_cost += MIN(n_rows * ROW_COST, whole);
}

static void scan_block(struct sketch_scan *s, const struct sight *sight, size_t base, uint64_t bits)
{
    _Alignas(64) float bounds[SKETCH_BLOCK_ROWS];
    const uint8_t *block = block_at(s, sight->unit, base);

    if (~bits && __builtin_popcountll(bits) <= SKETCH_FEW) {
        add_few(s, base, bits);
        return;
    }
    note_block(s, (size_t)__builtin_popcountll(bits));
    for (size_t at = sketch_code_bytes(sight->probe.n_signs); s->is_far && at < s->slab->sketches->block_bytes;
         at += 64)
        __builtin_prefetch(block + at + SKETCH_AHEAD_BYTES);
    bits &= s->request->sketch_kernel->above(&sight->probe, block, s->is_far, bounds);
    if (bits)
        add(s, sight, base, bits, bounds);
}

static void look_at(const struct sketch_scan *s, size_t unit, struct sight *sight)
{
    const struct sketch_set *set = s->slab->sketches;

    sight->unit = sketch_unit_of(set, unit);
    sight->centre_dot = sketch_dot(sight->unit->centre, s->query.numbers, set->rotation.width);
    sight->probe = (struct sketch_probe){ .tables = s->query.tables, .n_signs = set->n_signs, .delta = s->query.delta };
    set_thresholds(s, sight);
}

/* Rows of one unit. */
static void scan_unit(struct sketch_scan *s, size_t from, size_t to)
{
    struct sight sight;

    look_at(s, from / SKETCH_UNIT_ROWS, &sight);
    for (size_t base = from - from % SKETCH_BLOCK_ROWS; base < to; base += SKETCH_BLOCK_ROWS) {
        scan_block(s, &sight, base, scan_bits(s->request, base, from, to));
        if (s->n_waiting >= s->waiting_max)
            empty_waiting(s, false);
        else if (s->n_probable >= PROBABLE_MAX)
            score_probable(s);
        else
            continue;
        set_thresholds(s, &sight);
    }
}

/* Shall the next units be scored by their codes? After the second try in vain one, then 2, 4 and so on of them. */
static void decide(struct sketch_scan *s)
{
    s->n_in_vain = s->cost > s->codes_cost ? MIN(s->n_in_vain + 1, (size_t)IN_VAIN_MAX) : 0;
    s->rows_to_skip = s->n_in_vain > 1 ? SKETCH_UNIT_ROWS << (s->n_in_vain - 2) : 0;
}

/* Decides after every 4,096 rows. Rows that were passed without a cut do not count. */
static void note_passed(struct sketch_scan *s, size_t n, bool had_cut)
{
    s->n_passed += n;
    if (had_cut && s->n_passed < SKETCH_UNIT_ROWS)
        return;
    if (had_cut)
        decide(s);
    s->n_passed = s->cost = s->codes_cost = 0;
}

static void count_skipped(struct sketch_scan *s, size_t n)
{
    s->request->n_scored += n;
    s->rows_to_skip -= MIN(n, s->rows_to_skip);
}

static void sketch_unit_rows(struct sketch_scan *s, size_t from, size_t to)
{
    bool had_cut = !isinf(cut_of(s));

    scan_unit(s, from, to);
    s->request->n_passed += to - from;
    note_passed(s, to - from, had_cut);
}

/* Rows of one unit, if it is one. */
static void pass_unit(struct sketch_scan *s, size_t from, size_t to)
{
    bool is_sketched = from / SKETCH_UNIT_ROWS < s->request->n_sketched;

    if (is_sketched && s->rows_to_skip == 0) {
        sketch_unit_rows(s, from, to);
        return;
    }
    scan_range(s->kernel, s->slab, &s->request, 1, from, to);
    raise_common_cut(s);
    if (is_sketched)
        count_skipped(s, to - from);
}

/* --- the interface --- */

/* Whether data is dense is remembered from query to query, except from filtered ones. NULL: it is not. */
static struct sketch_density *density_of(const struct slab *slab, const struct scan_request *request)
{
    bool is_typical = request->n_sketched > 0 && request->n_wanted > 0 && !request->is_filtered;

    return is_typical ? sketch_density_of(slab->sketches, request->n_wanted) : NULL;
}

size_t sketch_scan_n_scored(const struct slab *slab, const struct scan_request *request)
{
    struct sketch_density *density = density_of(slab, request);

    return density ? atomic_load_explicit(&density->n_scored, memory_order_relaxed) : 0;
}

void sketch_scan_note_scored(const struct slab *slab, const struct scan_request *request)
{
    struct sketch_density *density = density_of(slab, request);

    if (density)
        atomic_store_explicit(&density->n_scored, request->n_scored, memory_order_relaxed);
}

static void recall_density(struct sketch_scan *s)
{
    struct sketch_density *density = density_of(s->slab, s->request);

    if (!density)
        return;
    s->n_in_vain = atomic_load(&density->n_in_vain);
    s->rows_to_skip = atomic_load(&density->rows_to_skip);
}

static void note_density(const struct sketch_scan *s)
{
    struct sketch_density *density = density_of(s->slab, s->request);

    if (!density)
        return;
    atomic_store(&density->n_in_vain, s->n_in_vain);
    atomic_store(&density->rows_to_skip, s->rows_to_skip);
}

static struct sketch_scan *begin(const struct kernel *kernel, const struct slab *slab, struct scan_request *request)
{
    struct sketch_scan *s = xcalloc(1, sizeof(*s));

    s->kernel = kernel;
    s->slab = slab;
    s->request = request;
    s->n_sharing = 1;
    s->found_cost = request->n_wanted > MANY ? FOUND_OF_MANY_COST : FOUND_COST;
    s->waiting_max = WAITING_FIRST;
    s->is_far = true;
    if (request->n_wanted > 0) {
        best_init(&s->nearest, request->n_wanted);
        request->nearest = &s->nearest;
    }
    return s;
}

struct sketch_scan *sketch_scan_begin(const struct kernel *kernel, const struct slab *slab,
                                      struct scan_request *request)
{
    struct sketch_scan *s = begin(kernel, slab, request);

    if (request->n_sketched == 0)
        return s;
    sketch_query_init(&s->query, slab->sketches, request->sketch_kernel->tables, request->query);
    s->slack = slack_of(s);
    recall_density(s);
    return s;
}

void sketch_scan_rows(struct sketch_scan *s, size_t from, size_t to)
{
    to = MIN(to, s->request->n);
    while (from < to) {
        size_t end = MIN(to, (from / SKETCH_UNIT_ROWS + 1) * SKETCH_UNIT_ROWS);

        pass_unit(s, from, end);
        from = end;
    }
}

struct sketch_scan *sketch_scan_end(struct sketch_scan *s)
{
    struct scan_request *request;

    if (!s)
        return NULL;
    request = s->request;
    empty_waiting(s, true);
    request->cut = request->n_sketched > 0 ? cut_of(s) : -INFINITY;
    note_density(s);
    if (!request->common_cut)
        sketch_scan_note_scored(s->slab, request);
    request->nearest = NULL;
    best_clear(&s->nearest);
    sketch_query_clear(&s->query);
    free(s);
    return NULL;
}

/* --- requests that share a pass --- */

/* Queries of the same kind try sketches again one for all: what it found holds for the others too. */
static void take_over(struct sketch_scan *s, const struct sketch_scan *tried)
{
    const struct sketch_density *density = density_of(s->slab, s->request);

    if (!tried || !density || s->n_in_vain < 2 || density != density_of(s->slab, tried->request))
        return;
    s->n_in_vain = tried->n_in_vain;
    s->rows_to_skip = tried->rows_to_skip + SKETCH_UNIT_ROWS;
}

/* One unit: the first query that looks at its sketches reads them from memory. Queries that skip them share the codes.
 */
static void pass_together(struct sketch_scan *const *scans, size_t n, size_t from, size_t to)
{
    struct scan_request *skipping[SCAN_BATCH];
    const struct sketch_scan *tried = NULL; /* in vain */
    size_t n_skipping = 0;
    bool is_far = true;

    for (size_t i = 0; i < n; i++) {
        struct sketch_scan *s = scans[i];

        if (s->rows_to_skip == 0)
            take_over(s, tried);
        if (s->rows_to_skip > 0) {
            skipping[n_skipping++] = s->request;
            count_skipped(s, to - from);
            continue;
        }
        s->is_far = is_far;
        is_far = false;
        sketch_unit_rows(s, from, to);
        tried = s->rows_to_skip > 0 ? s : tried;
    }
    if (n_skipping > 0)
        scan_range(scans[0]->kernel, scans[0]->slab, skipping, n_skipping, from, to);
}

/* Newer rows come first, so that there may be a cut when the first unit is reached. */
static void scan_sketched(const struct kernel *kernel, const struct slab *slab, struct scan_request *const *requests,
                          size_t n, size_t to)
{
    struct sketch_scan *scans[SCAN_BATCH];
    size_t n_units = SIZE_MAX;

    for (size_t i = 0; i < n; i++) {
        scans[i] = sketch_scan_begin(kernel, slab, requests[i]);
        scans[i]->n_sharing = n;
        n_units = MIN(n_units, requests[i]->n_sketched);
    }
    scan_range(kernel, slab, requests, n, n_units * SKETCH_UNIT_ROWS, to);
    for (size_t i = 0; i < n_units; i++)
        pass_together(scans, n, i * SKETCH_UNIT_ROWS, (i + 1) * SKETCH_UNIT_ROWS);
    for (size_t i = 0; i < n; i++)
        sketch_scan_end(scans[i]);
}

void sketch_scan_all(const struct kernel *kernel, const struct slab *slab, struct scan_request *const *requests,
                     size_t n_requests, size_t to)
{
    struct scan_request *sketched[SCAN_BATCH], *others[SCAN_BATCH];
    size_t n_sketched = 0, n_others = 0;

    for (size_t i = 0; i < n_requests; i++)
        if (requests[i]->n_sketched > 0) {
            sketched[n_sketched++] = requests[i];
        } else {
            requests[i]->cut = -INFINITY;
            others[n_others++] = requests[i];
        }
    if (n_others > 0)
        scan_range(kernel, slab, others, n_others, 0, to);
    if (n_sketched > 0)
        scan_sketched(kernel, slab, sketched, n_sketched, to);
}
