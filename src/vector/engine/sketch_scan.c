#include "vector/engine/sketch_scan_private.h"
#include <assert.h>
#include <math.h>
#include <stdlib.h>

enum {
    IN_VAIN_MAX = 6,        /* after so many tries of sketches in a row, 16 units are scored by their codes */
    COARSE_IN_VAIN_MAX = 4, /* tries of coarse parts in a row */
    SHARED_UNITS = 2        /* of a group that queries share: they find its sketches in the processor's cache */
};

/* Times, in tenths of that of a row which is scored alone. */
enum {
    ROW_COST = 10,
    FOUND_COST = 13,         /* a candidate, whether it is scored in the end or not */
    FOUND_OF_MANY_COST = 20, /* the same when more than MANY are wanted: more are scored, and heaps are larger */
    MANY = 16,
    BLOCK_COST = 45,        /* the sketches of a block */
    COARSE_COST = 15,       /* the coarse parts of a block */
    CODES_COST = 380,       /* all codes of a block, one after the other: as long as memory takes */
    SHARED_CODES_COST = 180 /* the part of it that is computing, which each query does that shares them */
};

static void set_thresholds(const struct sketch_scan *s, struct sight *sight)
{
    float error;

    sight->cut = sketch_cut(s);
    error = s->request->deviations * s->slab->sketches->spread *
            sketch_distance(s, sight->unit, sight->centre_dot, sight->cut);
    sight->probe.add = error - s->query.least;
    sight->probe.threshold = sight->cut - sight->centre_dot;
    sight->probable = isinf(sight->cut) ? INFINITY : sight->probe.threshold + error * sight->unit->mean_factor;
}

/* --- groups --- */

static size_t n_rows_of(uint64_t bits)
{
    return ~bits ? (size_t)__builtin_popcountll(bits) : SKETCH_BLOCK_ROWS;
}

/* Of a block of which so many rows are wanted. */
static void note_block(struct sketch_scan *s, size_t n_rows)
{
    size_t whole = SHARED_CODES_COST + (CODES_COST - SHARED_CODES_COST) / s->n_sharing;

    s->codes_cost += MIN(n_rows * ROW_COST, whole);
}

static void fetch_part(const uint8_t *part, size_t from, size_t to)
{
    for (; from < to; from += 64)
        __builtin_prefetch(part + from);
}

static void scan_block(struct sketch_scan *s, const struct sight *sight, size_t base, uint64_t bits, bool is_far)
{
    _Alignas(64) float bounds[SKETCH_BLOCK_ROWS];
    const struct sketch_set *set = s->slab->sketches;
    struct sketch_block block = sketch_block_at(set, sight->unit, base);

    s->cost += BLOCK_COST;
    if (is_far)
        fetch_part(block.fine + SKETCH_AHEAD_BYTES, sketch_code_bytes(set->n_signs - set->n_coarse), set->fine_bytes);
    bits &= s->request->sketch_kernel->above(&sight->probe, &block, is_far, bounds);
    if (bits)
        sketch_candidates_add(s, sight, base, bits, bounds);
}

/* Without thresholds. */
static struct sight look_at(const struct sketch_scan *s, size_t unit)
{
    const struct sketch_set *set = s->slab->sketches;
    struct sight sight = { .unit = sketch_unit_of(set, unit) };

    sight.centre_dot = sketch_dot(sight.unit->centre, s->query.numbers, set->rotation.width);
    sight.probe = (struct sketch_probe){
        .tables = s->query.tables, .n_signs = set->n_signs, .n_coarse = set->n_coarse, .delta = s->query.delta
    };
    return sight;
}

/* Asks for the fine part of the next block of the unit that the coarse parts do not leave out. */
static void fetch_next(const struct sketch_scan *s, const struct sight *sight, size_t base, size_t to)
{
    const struct sketch_group *g = &s->group;
    const struct sketch_set *set = s->slab->sketches;

    for (base += SKETCH_BLOCK_ROWS; base < to; base += SKETCH_BLOCK_ROWS)
        if (g->most[sketch_place_of(g, base)] > sight->cut) {
            fetch_part(sketch_block_at(set, sight->unit, base).fine, 0, set->fine_bytes);
            return;
        }
}

/* The wanted rows of a block. */
static void pass_block(struct sketch_scan *s, const struct sight *sight, size_t base, uint64_t bits)
{
    if (n_rows_of(bits) <= SKETCH_FEW) {
        s->cost += n_rows_of(bits) * ROW_COST;
        sketch_candidates_add_few(s, base, bits);
    } else {
        scan_block(s, sight, base, bits, s->is_far && !s->group.has_coarse);
    }
}

/* Rows of one unit. Returns how many blocks the coarse parts left out. */
static size_t scan_unit(struct sketch_scan *s, size_t from, size_t to)
{
    struct sketch_group *g = &s->group;
    struct sight *sight = sketch_sight_of(g, from);
    size_t n_left_out = 0;

    set_thresholds(s, sight);
    for (size_t base = from - from % SKETCH_BLOCK_ROWS; base < to; base += SKETCH_BLOCK_ROWS) {
        uint64_t bits = scan_bits(s->request, base, from, to);

        note_block(s, n_rows_of(bits));
        if (g->has_coarse && g->most[sketch_place_of(g, base)] <= sight->cut) {
            s->request->n_left_out += MIN(to, base + SKETCH_BLOCK_ROWS) - MAX(from, base);
            n_left_out++;
            continue;
        }
        if (g->has_coarse) {
            bits &= ~g->scored[sketch_place_of(g, base)];
            fetch_next(s, sight, base, to);
        }
        pass_block(s, sight, base, bits);
        if (!sketch_has_many(s))
            continue;
        sketch_settle(s);
        set_thresholds(s, sight);
    }
    return n_left_out;
}

static bool tries(const struct sketch_tries *t)
{
    return t->rows_to_skip == 0;
}

static void note_try(struct sketch_tries *t, bool was_in_vain, size_t most)
{
    t->n_in_vain = was_in_vain ? MIN(t->n_in_vain + 1, most) : 0;
}

/* Shall the next rows be passed without coarse parts? After a try in vain as many, then 4, 16 and 64 times as many. */
static void note_coarse(struct sketch_scan *s, size_t n_rows, bool was_in_vain)
{
    note_try(&s->coarse, was_in_vain, COARSE_IN_VAIN_MAX);
    s->coarse.rows_to_skip = was_in_vain ? n_rows << 2 * (s->coarse.n_in_vain - 1) : 0;
}

static void count_rows(struct sketch_tries *t, size_t n)
{
    t->rows_to_skip -= MIN(n, t->rows_to_skip);
}

/* Coarse parts are not tried on rows of one unit, which may lack what the nearest rows are similar to, nor when a
 * filter leaves out most rows. */
static bool tries_coarse(const struct sketch_scan *s)
{
    const struct sketch_group *g = &s->group;
    size_t n = 0;

    if (!tries(&s->coarse) || g->to - g->from <= SKETCH_UNIT_ROWS)
        return false;
    for (size_t base = g->base; s->request->is_filtered && base < g->to; base += SKETCH_BLOCK_ROWS)
        n += n_rows_of(scan_bits(s->request, base, g->from, g->to));
    return !s->request->is_filtered || 2 * n >= g->to - g->from;
}

/* Returns what was spent on the coarse parts of the group. */
static size_t pass_coarse(struct sketch_scan *s, size_t n_blocks)
{
    size_t before = s->cost;

    s->cost += COARSE_COST * n_blocks;
    sketch_coarse_pass(s);
    return s->cost - before;
}

static void begin_group(struct sketch_scan *s, size_t from, size_t to)
{
    struct sketch_group *g = &s->group;

    g->base = from - from % SKETCH_BLOCK_ROWS;
    g->from = from;
    g->to = to;
    for (; from < to; from = sketch_end_in_unit(from, to))
        *sketch_sight_of(g, from) = look_at(s, from / SKETCH_UNIT_ROWS);
    g->has_coarse = tries_coarse(s);
}

/* Rows of one group. */
static void scan_group(struct sketch_scan *s, size_t from, size_t to)
{
    struct sketch_group *g = &s->group;
    size_t n_left_out = 0, spent = 0;

    begin_group(s, from, to);
    if (g->has_coarse)
        spent = pass_coarse(s, sketch_place_of(g, to + SKETCH_BLOCK_ROWS - 1));
    for (size_t end; from < to; from = end) {
        end = sketch_end_in_unit(from, to);
        n_left_out += scan_unit(s, from, end);
    }
    if (g->has_coarse)
        note_coarse(s, to - g->from, n_left_out * BLOCK_COST < spent);
    else
        count_rows(&s->coarse, to - g->from);
}

/* Shall the next units be scored by their codes? After the second try in vain one, then 2, 4 and so on of them. */
static void decide(struct sketch_scan *s)
{
    note_try(&s->sketches, s->cost > s->codes_cost, IN_VAIN_MAX);
    s->sketches.rows_to_skip = s->sketches.n_in_vain > 1 ? SKETCH_UNIT_ROWS << (s->sketches.n_in_vain - 2) : 0;
    s->group_units = s->sketches.n_in_vain > 0 ? 1 : MIN(2 * s->group_units, (size_t)SKETCH_GROUP_UNITS);
}

/* Decides after every 4,096 rows at least. Rows that were passed without a cut do not count. */
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
    count_rows(&s->sketches, n);
}

static void sketch_group_rows(struct sketch_scan *s, size_t from, size_t to)
{
    bool had_cut = !isinf(sketch_cut(s));

    scan_group(s, from, to);
    s->request->n_passed += to - from;
    note_passed(s, to - from, had_cut);
}

/* The end of the next rows that are passed in the same way. */
static size_t end_of_group(const struct sketch_scan *s, size_t from, size_t to)
{
    size_t unit = from / SKETCH_UNIT_ROWS, n = s->group_units;
    size_t end = unit < s->request->n_sketched ? MIN(unit + n, s->request->n_sketched) : unit + 1;

    return MIN(to, end * SKETCH_UNIT_ROWS);
}

static void pass_group(struct sketch_scan *s, size_t from, size_t to)
{
    bool is_sketched = from / SKETCH_UNIT_ROWS < s->request->n_sketched;

    if (is_sketched && tries(&s->sketches)) {
        sketch_group_rows(s, from, to);
        return;
    }
    scan_range(s->kernel, s->slab, &s->request, 1, from, to);
    sketch_raise_common_cut(s);
    if (is_sketched)
        count_skipped(s, to - from);
}

/* --- the interface --- */

/* What was found is remembered from query to query. NULL: it is not. */
static struct sketch_density *density_of(const struct slab *slab, const struct scan_request *request)
{
    return request->n_sketched > 0 && request->n_wanted > 0 ? sketch_density_of(slab->sketches, request->n_wanted)
                                                            : NULL;
}

/* Whether data is dense: not from filtered queries. */
static struct sketch_density *typical_density_of(const struct slab *slab, const struct scan_request *request)
{
    return request->is_filtered ? NULL : density_of(slab, request);
}

size_t sketch_scan_n_scored(const struct slab *slab, const struct scan_request *request)
{
    struct sketch_density *density = typical_density_of(slab, request);

    return density ? atomic_load_explicit(&density->n_scored, memory_order_relaxed) : 0;
}

void sketch_scan_note_scored(const struct slab *slab, const struct scan_request *request)
{
    struct sketch_density *density = typical_density_of(slab, request);

    if (density)
        atomic_store_explicit(&density->n_scored, request->n_scored, memory_order_relaxed);
}

static struct sketch_tries read_tries(const struct sketch_shared_tries *t)
{
    return (struct sketch_tries){ atomic_load_explicit(&t->n_in_vain, memory_order_relaxed),
                                  atomic_load_explicit(&t->rows_to_skip, memory_order_relaxed) };
}

static void write_tries(struct sketch_shared_tries *to, const struct sketch_tries *t)
{
    atomic_store_explicit(&to->n_in_vain, t->n_in_vain, memory_order_relaxed);
    atomic_store_explicit(&to->rows_to_skip, t->rows_to_skip, memory_order_relaxed);
}

static struct sketch_shared_tries *coarse_tries(struct sketch_density *density, const struct scan_request *request)
{
    return request->is_filtered ? &density->filtered_coarse : &density->coarse;
}

static void recall_density(struct sketch_scan *s)
{
    struct sketch_density *density = density_of(s->slab, s->request);

    if (!density)
        return;
    s->coarse = read_tries(coarse_tries(density, s->request));
    if (s->request->is_filtered)
        return;
    s->sketches = read_tries(&density->sketches);
    s->group_units = s->sketches.n_in_vain > 0 ? 1 : SKETCH_GROUP_UNITS;
}

static void note_density(const struct sketch_scan *s)
{
    struct sketch_density *density = density_of(s->slab, s->request);

    if (!density)
        return;
    write_tries(coarse_tries(density, s->request), &s->coarse);
    if (!s->request->is_filtered)
        write_tries(&density->sketches, &s->sketches);
}

static struct sketch_scan *begin(const struct kernel *kernel, const struct slab *slab, struct scan_request *request)
{
    struct sketch_scan *s = xcalloc(1, sizeof(*s));

    s->kernel = kernel;
    s->slab = slab;
    s->request = request;
    s->n_sharing = 1;
    s->found_cost = request->n_wanted > MANY ? FOUND_OF_MANY_COST : FOUND_COST;
    s->waiting_max = SKETCH_WAITING_FIRST;
    s->group_units = 1;
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
    s->slack = sketch_slack(s);
    recall_density(s);
    return s;
}

void sketch_scan_rows(struct sketch_scan *s, size_t from, size_t to)
{
    to = MIN(to, s->request->n);
    while (from < to) {
        size_t end = end_of_group(s, from, to);

        pass_group(s, from, end);
        from = end;
    }
}

struct sketch_scan *sketch_scan_end(struct sketch_scan *s)
{
    struct scan_request *request;

    if (!s)
        return NULL;
    request = s->request;
    sketch_finish(s);
    request->cut = request->n_sketched > 0 ? sketch_cut(s) : -INFINITY;
    note_density(s);
    request->nearest = NULL;
    best_clear(&s->nearest);
    sketch_query_clear(&s->query);
    free(s);
    return NULL;
}

/* --- requests that share a pass --- */

/* Queries of the same kind try sketches again one for all: what it found holds for the others too. */
static void take_over(struct sketch_scan *s, const struct sketch_scan *tried, size_t n_rows)
{
    const struct sketch_density *density = typical_density_of(s->slab, s->request);

    if (!tried || !density || s->sketches.n_in_vain < 2 || density != typical_density_of(s->slab, tried->request))
        return;
    s->sketches.n_in_vain = tried->sketches.n_in_vain;
    s->sketches.rows_to_skip = tried->sketches.rows_to_skip + n_rows;
}

/* One group: the first query that reads all of its sketches reads them from memory. Queries that skip them share the
 * codes.
 */
static void pass_together(struct sketch_scan *const *scans, size_t n, size_t from, size_t to)
{
    struct scan_request *skipping[SCAN_BATCH];
    const struct sketch_scan *tried = NULL; /* in vain */
    size_t n_skipping = 0;
    bool is_far = true;

    for (size_t i = 0; i < n; i++) {
        struct sketch_scan *s = scans[i];

        if (tries(&s->sketches))
            take_over(s, tried, to - from);
        if (!tries(&s->sketches)) {
            skipping[n_skipping++] = s->request;
            count_skipped(s, to - from);
            continue;
        }
        s->is_far = is_far;
        sketch_group_rows(s, from, to);
        is_far = is_far && s->group.has_coarse;
        tried = tries(&s->sketches) ? tried : s;
    }
    if (n_skipping > 0)
        scan_range(scans[0]->kernel, scans[0]->slab, skipping, n_skipping, from, to);
}

/* Does the first group need no cut? Its coarse parts, which were of use so far, lead to near rows at once. */
static bool begins_with_coarse(const struct sketch_scan *s)
{
    return MIN(s->group_units, s->request->n_sketched) > 1 && s->sketches.n_in_vain == 0 && s->coarse.n_in_vain == 0;
}

/* Newer rows, whose codes are all read, come first, so that there may be a cut when the first unit is reached; or last,
 * when few of them are above the cut. */
static void scan_alone(const struct kernel *kernel, const struct slab *slab, struct scan_request *request, size_t to)
{
    struct sketch_scan *scan = sketch_scan_begin(kernel, slab, request);
    size_t newer = request->n_sketched * SKETCH_UNIT_ROWS;
    bool newer_first = !begins_with_coarse(scan);

    if (newer_first)
        sketch_scan_rows(scan, newer, to);
    sketch_scan_rows(scan, 0, newer);
    if (!newer_first)
        sketch_scan_rows(scan, newer, to);
    sketch_scan_end(scan);
}

static void scan_together(const struct kernel *kernel, const struct slab *slab, struct scan_request *const *requests,
                          size_t n, size_t to)
{
    struct sketch_scan *scans[SCAN_BATCH];
    size_t n_units = SIZE_MAX;

    assert(n > 0);
    for (size_t i = 0; i < n; i++) {
        scans[i] = sketch_scan_begin(kernel, slab, requests[i]);
        scans[i]->n_sharing = n;
        n_units = MIN(n_units, requests[i]->n_sketched);
    }
    scan_range(kernel, slab, requests, n, n_units * SKETCH_UNIT_ROWS, to);
    for (size_t i = 0, end; i < n_units; i = end) {
        end = MIN(i + MIN(scans[0]->group_units, (size_t)SHARED_UNITS), n_units);
        pass_together(scans, n, i * SKETCH_UNIT_ROWS, end * SKETCH_UNIT_ROWS);
    }
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
    if (n_sketched == 1)
        scan_alone(kernel, slab, sketched[0], to);
    else if (n_sketched > 1)
        scan_together(kernel, slab, sketched, n_sketched, to);
}
