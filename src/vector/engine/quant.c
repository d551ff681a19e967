#include "vector/engine/quant.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { QUANT_MAX = 127, QUANT_LANES = 8 /* parallel sums, which a compiler may keep in one register */ };

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

/* The next numbers of a vector, which may be inside a database page, with zeros after the vector's end. Loops thus have
 * a fixed length, so that a compiler can use vector instructions. */
struct lanes {
    float values[QUANT_LANES];
};

static inline struct lanes lanes_at(const void *vector, size_t i, size_t n_dimensions)
{
    struct lanes lanes = { { 0 } };

    if (i + QUANT_LANES <= n_dimensions)
        memcpy(lanes.values, (const char *)vector + i * sizeof(float), sizeof(lanes.values));
    else
        memcpy(lanes.values, (const char *)vector + i * sizeof(float), (n_dimensions - i) * sizeof(float));
    return lanes;
}

double quant_norm(const void *vector, size_t n_dimensions)
{
    double squares[QUANT_LANES] = { 0 };

    for (size_t i = 0; i < n_dimensions; i += QUANT_LANES) {
        struct lanes lanes = lanes_at(vector, i, n_dimensions);

        for (size_t j = 0; j < QUANT_LANES; j++)
            squares[j] += (double)lanes.values[j] * (double)lanes.values[j];
    }
    return sqrt(add_lanes(squares));
}

double quant_cosine(const void *row, const float *query, double query_norm, size_t n_dimensions)
{
    double dots[QUANT_LANES] = { 0 }, squares[QUANT_LANES] = { 0 };
    double norm, cosine;

    for (size_t i = 0; i < n_dimensions; i += QUANT_LANES) {
        struct lanes a = lanes_at(row, i, n_dimensions), b = lanes_at(query, i, n_dimensions);

        for (size_t j = 0; j < QUANT_LANES; j++) {
            dots[j] += (double)a.values[j] * (double)b.values[j];
            squares[j] += (double)a.values[j] * (double)a.values[j];
        }
    }
    norm = sqrt(add_lanes(squares)) * query_norm;
    if (norm == 0)
        return 0;
    cosine = add_lanes(dots) / norm;
    return fmax(-1, fmin(1, cosine));
}

static float largest_of(const void *vector, size_t n_dimensions)
{
    float largest[QUANT_LANES] = { 0 };

    for (size_t i = 0; i < n_dimensions; i += QUANT_LANES) {
        struct lanes lanes = lanes_at(vector, i, n_dimensions);

        for (size_t j = 0; j < QUANT_LANES; j++)
            largest[j] = fabsf(lanes.values[j]) > largest[j] ? fabsf(lanes.values[j]) : largest[j];
    }
    for (size_t j = 1; j < QUANT_LANES; j++)
        largest[0] = largest[j] > largest[0] ? largest[j] : largest[0];
    return largest[0];
}

/* Writes the nearest integers in -127..127 as codes; the number of codes is n_dimensions rounded up to whole lanes. */
static void write_codes(const void *vector, size_t n_dimensions, double factor, uint8_t *codes)
{
    for (size_t i = 0; i < n_dimensions; i += QUANT_LANES) {
        struct lanes lanes = lanes_at(vector, i, n_dimensions);

        for (size_t j = 0; j < QUANT_LANES; j++) {
            double share = (double)lanes.values[j] * factor;

            codes[i + j] = (uint8_t)((int)(share + copysign(0.5, share)) + KERNEL_ZERO);
        }
    }
}

float quant_encode(const void *vector, size_t n_dimensions, uint8_t *codes)
{
    double norm = quant_norm(vector, n_dimensions), largest = (double)largest_of(vector, n_dimensions);
    double factor = largest > 0 ? QUANT_MAX / largest : 0;

    write_codes(vector, n_dimensions, factor, codes);
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
