/* The n best of many scored slots: a heap with the worst on top. One thread at a time.
 *
 * Slots are offered in any order; of equal scores the lower slot stays. A floor set beforehand excludes scores that are
 * not above it.
 */
#pragma once

#include "base/util.h"

struct best_slot {
    float score;
    uint32_t slot;
};

struct best {
    struct best_slot *items; /* owned; a heap */
    size_t n, max;
    float floor; /* only scores above it are added */
};

void best_init(struct best *b, size_t max);
void best_clear(struct best *b);
void best_add(struct best *b, float score, uint32_t slot);

static inline void best_offer(struct best *b, float score, uint32_t slot)
{
    if (score > b->floor || (score == b->floor && b->n == b->max && slot < b->items[0].slot))
        best_add(b, score, slot);
}
