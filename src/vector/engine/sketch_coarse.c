#include "vector/engine/sketch_scan_private.h"
#include <math.h>
#include <stdlib.h>

enum { FIRST_SCORED = 16 /* of a group, at least so many of those with the highest bounds */ };

/* What one query asks of the coarse parts of a unit. */
static struct sketch_probe probe_of(const struct sketch_scan *s, const struct sketch_unit *u, float centre_dot)
{
    const struct sketch_set *set = s->slab->sketches;
    float distance = sketch_distance(s, u, centre_dot, sketch_cut(s));

    return (struct sketch_probe){ .tables = s->query.tables,
                                  .n_signs = set->n_signs,
                                  .n_coarse = set->n_coarse,
                                  .delta = s->query.delta,
                                  .add =
                                      s->request->deviations * set->coarse_spread * distance - s->query.coarse_least };
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
    const struct sketch_unit *u = sketch_unit_of(s->slab->sketches, from / SKETCH_UNIT_ROWS);
    float centre_dot = sketch_dot(u->centre, s->query.numbers, s->slab->sketches->rotation.width);
    struct sketch_probe probe = probe_of(s, u, centre_dot);
    size_t base = from - from % SKETCH_BLOCK_ROWS;
    float *most = s->group.most + (base - s->group.base) / SKETCH_BLOCK_ROWS;

    for (; base < to; base += SKETCH_BLOCK_ROWS, most++) {
        _Alignas(64) float bounds[SKETCH_BLOCK_ROWS];
        struct sketch_block block = sketch_block_of(s->slab->sketches, u, base % SKETCH_UNIT_ROWS / SKETCH_BLOCK_ROWS);
        uint64_t bits;

        probe.threshold = first->floor - centre_dot;
        bits = s->request->sketch_kernel->coarse(&probe, block.coarse, s->is_far, bounds, most);
        *most += centre_dot;
        if (bits)
            offer(first, base, bits & scan_bits(s->request, base, from, to), bounds, centre_dot);
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
        end = MIN(g->to, (from / SKETCH_UNIT_ROWS + 1) * SKETCH_UNIT_ROWS);
        pass_unit(s, from, end, &first);
    }
    score_first(s, &first);
    best_clear(&first);
}
