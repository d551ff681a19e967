#include "vector/engine/rerank.h"
#include "vector/engine/quant.h"
#include <math.h>
#include <stdlib.h>

/* The errors of codes are nearly normal, with a deviation that follows from their scales. Where they are not, as with
 * rows of a few equal numbers, the largest error of all rows is about twice the largest known one. */
#define MARGIN_DEVIATIONS 5.0
#define MARGIN_FACTOR 2.0
#define MARGIN_LEAST 1e-6 /* the error of the float arithmetic on codes */

struct reading {
    struct rerank *x;
    const struct slab_view *view;
    const struct best_slot *slots;
    size_t n, at;
    bool keeps_text;
};

void rerank_init(struct rerank *x, const float *query, const struct quant_query *codes, size_t n_dimensions,
                 size_t n_wanted, struct arena *a)
{
    *x = (struct rerank){ .query = query,
                          .n_dimensions = n_dimensions,
                          .n_wanted = n_wanted,
                          .arena = a,
                          .query_norm = quant_norm(query, n_dimensions),
                          .query_scale = codes->scale };
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

static int by_score_of_codes(const void *a, const void *b)
{
    const struct best_slot *x = a, *y = b;

    return x->score > y->score ? -1 : x->score < y->score;
}

static int by_slot(const void *a, const void *b)
{
    const struct best_slot *x = a, *y = b;

    return x->slot < y->slot ? -1 : x->slot > y->slot;
}

static const struct vectors_db_item *keep_text(struct rerank *x, const struct vectors_db_item *text)
{
    struct vectors_db_item *kept;

    if (strnlen(text->metadata, RERANK_TEXT_BYTES + 1) > RERANK_TEXT_BYTES)
        return NULL;
    kept = arena_alloc(x->arena, sizeof(*kept));
    *kept = (struct vectors_db_item){ .id = arena_strdup(x->arena, text->id),
                                      .metadata = arena_strdup(x->arena, text->metadata) };
    return kept;
}

static int score_row(void *arg, int64_t row, const struct vectors_db_item *text, const void *vector, struct err *e)
{
    struct reading *reading = arg;
    struct rerank *x = reading->x;
    const struct best_slot *seen = &reading->slots[reading->at++];
    double score;

    if (slab_row(reading->view->slab, seen->slot) != row)
        return -ESTALE;
    score = quant_cosine(vector, x->query, x->query_norm, x->n_dimensions);
    x->worst_error = fmax(x->worst_error, fabs(score - (double)seen->score));
    x->items[x->n++] = (struct rerank_item){ score, row, reading->keeps_text ? keep_text(x, text) : NULL };
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

static int read_slots(struct reading *reading, struct vectors_db *db, const struct vectors_db_space *of, struct err *e)
{
    int64_t *rows = xcalloc(reading->n, sizeof(*rows));
    int r;

    for (size_t i = 0; i < reading->n; i++)
        rows[i] = slab_row(reading->view->slab, reading->slots[i].slot);
    r = vectors_db_each(db, of, rows, reading->n, score_row, reading, e);
    free(rows);
    return r == 0 && reading->at < reading->n ? -ESTALE : r;
}

/* Each code is rounded: a uniform error within one unit of its scale. */
static double deviation_of(const struct rerank *x, const struct slab *slab, const struct best *best)
{
    double scale = 0;

    for (size_t i = 0; i < best->n; i++)
        scale = fmax(scale, (double)slab_scale(slab, best->items[i].slot));
    return sqrt((scale * scale + (double)x->query_scale * (double)x->query_scale) / 12);
}

double rerank_floor(const struct rerank *x)
{
    double margin = fmax(MARGIN_FACTOR * x->worst_error, MARGIN_DEVIATIONS * x->deviation) + MARGIN_LEAST;

    return x->n > 0 ? x->items[MIN(x->n_wanted, x->n) - 1].score - margin : -INFINITY;
}

/* The end of the slots that may belong to the answer, given the rows scored so far. */
static size_t end_of_needed(const struct rerank *x, const struct best *best, size_t from)
{
    double floor = rerank_floor(x);

    while (from < best->n && !((double)best->items[from].score < floor))
        from++;
    return from;
}

int rerank_run(struct rerank *x, struct vectors_db *db, const struct slab_view *view, const struct vectors_db_space *of,
               struct best *best, struct err *e)
{
    size_t from = 0, to = MIN(x->n_wanted, best->n);
    int r = 0;

    qsort(best->items, best->n, sizeof(*best->items), by_score_of_codes);
    x->deviation = fmax(x->deviation, deviation_of(x, view->slab, best));
    x->items = xrealloc(x->items, (x->n + best->n) * sizeof(*x->items));
    while (r == 0 && from < to) {
        struct reading reading = {
            .x = x, .view = view, .slots = best->items + from, .n = to - from, .keeps_text = x->n_read < x->n_wanted
        };

        qsort(best->items + from, to - from, sizeof(*best->items), by_slot); /* adjacent rows share pages of the file */
        r = read_slots(&reading, db, of, e);
        x->n_read += to - from;
        qsort(x->items, x->n, sizeof(*x->items), by_score);
        drop_doubles(x);
        from = to;
        to = end_of_needed(x, best, from);
    }
    return r;
}

void rerank_add(struct rerank *x, int64_t row, double score)
{
    x->items = xrealloc(x->items, (x->n + 1) * sizeof(*x->items));
    x->items[x->n++] = (struct rerank_item){ .score = score, .row = row };
}
