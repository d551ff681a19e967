#include "vector/engine/best.h"
#include <math.h>
#include <stdlib.h>

void best_init(struct best *b, size_t max)
{
    *b = (struct best){ .items = xcalloc(max, sizeof(*b->items)), .max = max, .floor = -INFINITY };
}

void best_clear(struct best *b)
{
    free(b->items);
    b->items = NULL;
}

/* Is slot a dropped before slot b? */
static bool is_worse(struct best_slot a, struct best_slot b)
{
    return a.score < b.score || (a.score == b.score && a.slot > b.slot);
}

static void sift_up(struct best_slot *items, size_t at)
{
    struct best_slot moved = items[at];

    while (at > 0 && is_worse(moved, items[(at - 1) / 2])) {
        items[at] = items[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    items[at] = moved;
}

static void sift_down(struct best_slot *items, size_t n, struct best_slot moved)
{
    size_t at = 0, child;

    while ((child = 2 * at + 1) < n) {
        if (child + 1 < n && is_worse(items[child + 1], items[child]))
            child++;
        if (!is_worse(items[child], moved))
            break;
        items[at] = items[child];
        at = child;
    }
    items[at] = moved;
}

void best_add(struct best *b, float score, uint32_t slot)
{
    struct best_slot item = { score, slot };

    if (b->n < b->max) {
        b->items[b->n++] = item;
        sift_up(b->items, b->n - 1);
    } else {
        sift_down(b->items, b->n, item);
    }
    if (b->n == b->max)
        b->floor = b->items[0].score;
}
