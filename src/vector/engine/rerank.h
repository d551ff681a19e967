/* Scores the rows that were best by their codes from their floats in the file, for the final answer: the n_wanted best
 * first, then only those that the errors of codes may have ranked below them. One thread.
 *
 *     rerank_init(&x, query, &codes, n_dimensions, n_wanted, a);
 *     r = rerank_run(&x, db, &view, &of, &best, e);              x.items: best first, no row twice
 */
#pragma once

#include "store/vectors/vectors_db.h"
#include "vector/engine/best.h"
#include "vector/engine/quant.h"
#include "vector/engine/slab.h"

enum { RERANK_TEXT_BYTES = 1024 /* metadata up to this length is read together with the vector */ };

struct rerank_item {
    double score;
    int64_t row;
    const struct vectors_db_item *text; /* id and metadata, in the arena of rerank_init(); NULL: not read yet */
};

struct rerank {
    const float *query; /* borrowed */
    size_t n_dimensions, n_wanted;
    struct arena *arena; /* borrowed */
    double query_norm;
    float query_scale;             /* of its codes */
    double worst_error, deviation; /* between a score by codes and by floats: the largest known; expected */
    struct rerank_item *items;     /* owned */
    size_t n, n_read;
};

void rerank_init(struct rerank *x, const float *query, const struct quant_query *codes, size_t n_dimensions,
                 size_t n_wanted, struct arena *a);
void rerank_clear(struct rerank *x);
/* Adds those slots of `best`, which it sorts, that may be among the n_wanted best; slots whose score is not a number
 * count as such. Inside vectors_db_begin/end. ENGINE_STALE (-ESTALE) when the file lacks a row. */
int rerank_run(struct rerank *x, struct vectors_db *db, const struct slab_view *view, const struct vectors_db_space *of,
               struct best *best, struct err *e) MUST_CHECK;
/* Appends a row with a given score. */
void rerank_add(struct rerank *x, int64_t row, double score);
/* A row whose codes score less does not belong to the n_wanted best. */
double rerank_floor(const struct rerank *x);
