#include "vector/quant.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { QUANT_MAX = 127, QUANT_LANES = 8 /* sums side by side, which a compiler may put into one register */ };

/* The bytes may stand in a database page. */
static inline float float_at(const void *vector, size_t i)
{
    float value;

    memcpy(&value, (const char *)vector + i * sizeof(value), sizeof(value));
    return value;
}

size_t quant_stride(size_t n_dimensions)
{
    return (n_dimensions + KERNEL_ALIGN - 1) / KERNEL_ALIGN * KERNEL_ALIGN;
}

static double add_lanes(const double lanes[QUANT_LANES])
{
    double sum = 0;

    for (size_t i = 0; i < QUANT_LANES; i++)
        sum += lanes[i];
    return sum;
}

double quant_norm(const void *vector, size_t n_dimensions)
{
    double lanes[QUANT_LANES] = { 0 };

    for (size_t i = 0; i < n_dimensions; i++) {
        double value = (double)float_at(vector, i);

        lanes[i % QUANT_LANES] += value * value;
    }
    return sqrt(add_lanes(lanes));
}

double quant_cosine(const void *row, const float *query, double query_norm, size_t n_dimensions)
{
    double dots[QUANT_LANES] = { 0 }, squares[QUANT_LANES] = { 0 };
    double norm, cosine;

    for (size_t i = 0; i < n_dimensions; i++) {
        double value = (double)float_at(row, i);

        dots[i % QUANT_LANES] += value * (double)query[i];
        squares[i % QUANT_LANES] += value * value;
    }
    norm = sqrt(add_lanes(squares)) * query_norm;
    if (norm == 0)
        return 0;
    cosine = add_lanes(dots) / norm;
    return fmax(-1, fmin(1, cosine));
}

static float largest_of(const void *vector, size_t n_dimensions)
{
    float largest = 0;

    for (size_t i = 0; i < n_dimensions; i++) {
        float value = fabsf(float_at(vector, i));

        largest = value > largest ? value : largest;
    }
    return largest;
}

/* Nearest whole number of -127..127. */
static inline int code_of(float value, double factor)
{
    double share = (double)value * factor;

    return (int)(share < 0 ? share - 0.5 : share + 0.5);
}

float quant_encode(const void *vector, size_t n_dimensions, uint8_t *codes)
{
    double norm = quant_norm(vector, n_dimensions), largest = (double)largest_of(vector, n_dimensions);
    double factor = largest > 0 ? QUANT_MAX / largest : 0;

    for (size_t i = 0; i < n_dimensions; i++)
        codes[i] = (uint8_t)(code_of(float_at(vector, i), factor) + KERNEL_ZERO);
    memset(codes + n_dimensions, KERNEL_ZERO, quant_stride(n_dimensions) - n_dimensions);
    return norm > 0 ? (float)(largest / QUANT_MAX / norm) : 0;
}

void quant_query_of_row(struct quant_query *q, const uint8_t *codes, float scale, size_t stride)
{
    int32_t sum = 0;

    q->codes = xcalloc(stride, 1);
    for (size_t i = 0; i < stride; i++) {
        q->codes[i] = (int8_t)(codes[i] - KERNEL_ZERO);
        sum += q->codes[i];
    }
    q->bias = sum * KERNEL_ZERO;
    q->scale = scale;
}

void quant_query_init(struct quant_query *q, const float *vector, size_t n_dimensions)
{
    uint8_t *codes = xcalloc(quant_stride(n_dimensions), 1);
    float scale = quant_encode(vector, n_dimensions, codes);

    quant_query_of_row(q, codes, scale, quant_stride(n_dimensions));
    free(codes);
}

void quant_query_clear(struct quant_query *q)
{
    free(q->codes);
    q->codes = NULL;
}
