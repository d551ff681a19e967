#include "vector/engine/hybrid.h"
#include <stdlib.h>

struct worth {
    double worth;
    struct rerank_item item;
};

static double share(size_t rank)
{
    return 1.0 / (double)(HYBRID_CONSTANT + rank + 1);
}

double hybrid_worth_alone(size_t rank)
{
    return share(rank) / share(0);
}

static double text_share(int64_t row, const int64_t *text_rows, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (text_rows[i] == row)
            return share(i);
    return 0;
}

static int by_worth(const void *a, const void *b)
{
    const struct worth *x = a, *y = b;

    if (x->worth != y->worth)
        return x->worth > y->worth ? -1 : 1;
    return x->item.score > y->item.score ? -1 : x->item.score < y->item.score;
}

void hybrid_fuse(struct rerank *x, size_t n_nearest, const int64_t *text_rows, size_t n_text_rows)
{
    struct worth *worths = xcalloc(x->n, sizeof(*worths));

    for (size_t i = 0; i < x->n; i++)
        worths[i] =
            (struct worth){ (i < n_nearest ? share(i) : 0) + text_share(x->items[i].row, text_rows, n_text_rows),
                            x->items[i] };
    qsort(worths, x->n, sizeof(*worths), by_worth);
    for (size_t i = 0; i < x->n; i++)
        x->items[i] = worths[i].item;
    free(worths);
}
