#include "vector/engine/rerank.h"
#include "vector/engine/quant.h"
#include <math.h>
#include <stdlib.h>

/* An estimate from some dozen known errors: the largest error of all rows is about twice the largest known error. */
#define MARGIN_FACTOR 2.0
#define MARGIN_LEAST 1e-6 /* the error of the float arithmetic on codes */

struct reading {
    struct rerank *x;
    const struct slab_view *view;
    const struct best *best;
    size_t at; /* of best */
};

void rerank_init(struct rerank *x, const float *query, size_t n_dimensions)
{
    *x = (struct rerank){ .query = query, .n_dimensions = n_dimensions, .query_norm = quant_norm(query, n_dimensions) };
}

void rerank_clear(struct rerank *x)
{
    free(x->items);
    x->items = NULL;
    x->n = 0;
}

static int by_score(const void *a, const void *b)
{
    const struct rerank_item *x = a, *y = b;

    if (x->score != y->score)
        return x->score > y->score ? -1 : 1;
    return x->row < y->row ? -1 : x->row > y->row;
}

static int by_slot(const void *a, const void *b)
{
    const struct best_slot *x = a, *y = b;

    return x->slot < y->slot ? -1 : x->slot > y->slot;
}

static int score_row(void *arg, int64_t row, const void *vector, struct err *e)
{
    struct reading *reading = arg;
    struct rerank *x = reading->x;
    const struct best_slot *seen = &reading->best->items[reading->at++];
    double score;

    if (slab_row(reading->view->slab, seen->slot) != row)
        return -ESTALE;
    score = quant_cosine(vector, x->query, x->query_norm, x->n_dimensions);
    x->worst_error = fmax(x->worst_error, fabs(score - (double)seen->score));
    x->items[x->n++] = (struct rerank_item){ score, row };
    return 0;
}

/* A wider search finds the rows of the narrow one again. */
static void drop_doubles(struct rerank *x)
{
    size_t n = 0;

    for (size_t i = 0; i < x->n; i++)
        if (n == 0 || x->items[n - 1].row != x->items[i].row)
            x->items[n++] = x->items[i];
    x->n = n;
}

static int read_all(struct reading *reading, struct vectors_db *db, const struct vectors_db_space *of, struct err *e)
{
    const struct best *best = reading->best;
    int64_t *rows = xcalloc(best->n, sizeof(*rows));
    int r;

    for (size_t i = 0; i < best->n; i++)
        rows[i] = slab_row(reading->view->slab, best->items[i].slot);
    r = vectors_db_each(db, of, rows, best->n, score_row, reading, e);
    free(rows);
    return r == 0 && reading->at < best->n ? -ESTALE : r;
}

int rerank_run(struct rerank *x, struct vectors_db *db, const struct slab_view *view, const struct vectors_db_space *of,
               struct best *best, struct err *e)
{
    struct reading reading = { x, view, best, 0 };
    int r;

    qsort(best->items, best->n, sizeof(*best->items), by_slot); /* adjacent rows share pages of the file */
    x->items = xrealloc(x->items, (x->n + best->n) * sizeof(*x->items));
    r = read_all(&reading, db, of, e);
    if (r < 0)
        return r;
    qsort(x->items, x->n, sizeof(*x->items), by_score);
    drop_doubles(x);
    return 0;
}

void rerank_add(struct rerank *x, int64_t row, double score)
{
    x->items = xrealloc(x->items, (x->n + 1) * sizeof(*x->items));
    x->items[x->n++] = (struct rerank_item){ score, row };
}

double rerank_margin(const struct rerank *x)
{
    return MARGIN_FACTOR * x->worst_error + MARGIN_LEAST;
}
