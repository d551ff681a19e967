/* Rows and queries for bench_vector: made up, embedded from texts, or read from a file. One thread.
 *
 *     struct vector_data d = { .n = 100000, .n_queries = 300, .n_dimensions = 384 };
 *     if (vector_data_make(&d, "clustered") < 0) ...                             no such kind, or too few texts
 *     vector_data_clear(&d);
 */
#pragma once

#include "base/util.h"

struct vector_data {
    size_t n, n_queries, n_dimensions;
    float *rows, *queries; /* owned; queries are made as rows are, and are not among them */
};

/* isotropic: no structure; clustered: 2,000 centres; low-rank: 24 directions and noise; text: a line of standard input
 * each, embedded with lexical-384. */
int vector_data_make(struct vector_data *d, const char *kind) MUST_CHECK;
/* A file of float32 numbers in this machine's byte order: all rows, then all queries. */
int vector_data_read(struct vector_data *d, const char *path) MUST_CHECK;
int vector_data_write(const struct vector_data *d, const char *path) MUST_CHECK;
void vector_data_clear(struct vector_data *d);
