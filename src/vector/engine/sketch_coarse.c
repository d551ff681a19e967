#include "vector/engine/sketch_scan_private.h"
#include <math.h>
#include <stdlib.h>

enum { FIRST_SCORED = 16 /* of a group, at least so many of those with the highest bounds */ };

/* What one query asks of the coarse parts of a unit. */
static struct sketch_probe probe_of(const struct sketch_scan *s, const struct sight *sight)
{
    float distance = sketch_distance(s, sight->unit, sight->centre_dot, sketch_cut(s));
    struct sketch_probe probe = sight->probe;

    probe.add = s->request->deviations * s->slab->sketches->coarse_spread * distance - s->query.coarse_least;
    return probe;
}

static void offer(struct best *first, size_t base, uint64_t bits, const float *bounds, float centre_dot)
{
    for (; bits; bits &= bits - 1) {
        size_t row = (size_t)__builtin_ctzll(bits);

        best_offer(first, bounds[sketch_lane(row)] + centre_dot, (uint32_t)(base + row));
    }
}

/* Rows of one unit. `first` keeps those with the highest bounds. */
static void pass_unit(struct sketch_scan *s, size_t from, size_t to, struct best *first)
{
    const struct sight *sight = sketch_sight_of(&s->group, from);
    struct sketch_probe probe = probe_of(s, sight);
    size_t base = from - from % SKETCH_BLOCK_ROWS;
    float *most = s->group.most + sketch_place_of(&s->group, base);

    for (; base < to; base += SKETCH_BLOCK_ROWS, most++) {
        _Alignas(64) float bounds[SKETCH_BLOCK_ROWS];
        struct sketch_block block = sketch_block_at(s->slab->sketches, sight->unit, base);
        uint64_t bits;

        probe.threshold = first->floor - sight->centre_dot;
        bits = s->request->sketch_kernel->coarse(&probe, block.coarse, s->is_far, bounds, most);
        *most += sight->centre_dot;
        if (bits)
            offer(first, base, bits & scan_bits(s->request, base, from, to), bounds, sight->centre_dot);
    }
}

static void score_first(struct sketch_scan *s, const struct best *first)
{
    struct candidate *chosen = xcalloc(first->n, sizeof(*chosen));

    for (size_t i = 0; i < first->n; i++) {
        size_t at = first->items[i].slot - s->group.base;

        chosen[i] = (struct candidate){ first->items[i].score, first->items[i].slot };
        s->group.scored[at / SKETCH_BLOCK_ROWS] |= UINT64_C(1) << at % SKETCH_BLOCK_ROWS;
    }
    s->cost += s->found_cost * first->n;
    sketch_score(s, chosen, first->n);
    free(chosen);
}

void sketch_coarse_pass(struct sketch_scan *s)
{
    struct sketch_group *g = &s->group;
    struct best first;

    best_init(&first, sketch_n_first(s, FIRST_SCORED));
    first.floor = sketch_cut(s);
    memset(g->scored, 0, sizeof(g->scored));
    for (size_t from = g->from, end; from < g->to; from = end) {
        end = sketch_end_in_unit(from, g->to);
        pass_unit(s, from, end, &first);
    }
    score_first(s, &first);
    best_clear(&first);
}
