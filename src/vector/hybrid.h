/* Hybrid search: the nearest by vector and the best by full text as one ranking, by reciprocal rank (Cormack, Clarke and
 * Buettcher 2009): a row's worth is the sum of 1 / (60 + rank) over the rankings it stands in. One thread; no state. */
#pragma once

#include "vector/rerank.h"

enum { HYBRID_CONSTANT = 60, HYBRID_DEPTH = 50 /* of each ranking at least */ };

/* Puts the items, best score first, into the fused order. Of them the first n_nearest count as nearest; text_rows are in
 * their order. */
void hybrid_fuse(struct rerank *x, size_t n_nearest, const int64_t *text_rows, size_t n_text_rows);
/* What a row is worth as the rank-th (from 0) of one ranking that stands alone: 1 for the first. */
double hybrid_worth_alone(size_t rank);
