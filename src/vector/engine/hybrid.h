/* Hybrid search: fuses the nearest by vector and the best by full text into one ranking, by reciprocal rank (Cormack,
 * Clarke and Buettcher 2009): a row's score is the sum of 1 / (60 + rank) over the rankings that contain it. One
 * thread; no state. */
#pragma once

#include "vector/engine/rerank.h"

enum { HYBRID_CONSTANT = 60, HYBRID_DEPTH = 50 /* of each ranking at least */ };

/* Sorts the items (given best score first) into the fused order. The first n_nearest items form the vector ranking;
 * text_rows is the text ranking, best first. */
void hybrid_fuse(struct rerank *x, size_t n_nearest, const int64_t *text_rows, size_t n_text_rows);
/* The score of the rank-th row (from 0) of a single ranking: 1 for the first. */
double hybrid_worth_alone(size_t rank);
