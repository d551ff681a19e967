#include "vector/engine/sketch_kernel.h"
#include <math.h>

#if defined(__x86_64__) && !defined(KERNEL_PORTABLE_ONLY) /* defined by tests */
#define HAS_X86_KERNELS 1
#include <immintrin.h>
#elif defined(__aarch64__) && !defined(KERNEL_PORTABLE_ONLY)
#define HAS_NEON_KERNEL 1
#include <arm_neon.h>
#endif

static bool is_always_supported(void)
{
    return true;
}

/* --- bounds from sums, even rows first --- */

static inline uint64_t bits_above(const float *bounds, float threshold)
{
    uint64_t bits = 0;

    for (size_t i = 0; i < SKETCH_BLOCK_ROWS; i++)
        bits |= (uint64_t)(bounds[sketch_lane(i)] > threshold) << i;
    return bits;
}

static inline void bounds_of_sums(const struct sketch_probe *probe, const uint16_t *factors, const uint16_t *sums,
                                  float *bounds)
{
    const uint16_t *offsets = factors + SKETCH_BLOCK_ROWS;

    for (size_t i = 0; i < SKETCH_BLOCK_ROWS; i++)
        bounds[i] = sketch_float(offsets[i]) + sketch_float(factors[i]) * ((float)sums[i] * probe->delta + probe->add);
}

static inline uint64_t rows_of_sums(const struct sketch_probe *probe, const uint16_t *factors, const uint16_t *sums,
                                    float *bounds, float *ret_most)
{
    float most = -INFINITY;

    bounds_of_sums(probe, factors, sums, bounds);
    for (size_t i = 0; i < SKETCH_BLOCK_ROWS; i++)
        most = bounds[i] > most ? bounds[i] : most;
    *ret_most = most;
    return most > probe->threshold ? bits_above(bounds, probe->threshold) : 0;
}

static inline uint64_t above_of_sums(const struct sketch_probe *probe, const struct sketch_block *block,
                                     const uint16_t *sums, float *bounds)
{
    float most;

    return rows_of_sums(probe, sketch_factors(block->fine, probe->n_signs - probe->n_coarse), sums, bounds, &most);
}

/* --- for every processor --- */

static void add_portable(const uint8_t *tables, const uint8_t *codes, size_t n_signs, uint16_t *sums)
{
    for (size_t b = 0; b < n_signs / 8; b++, tables += 2 * SKETCH_TABLE_BYTES)
        for (size_t i = 0; i < SKETCH_BLOCK_ROWS; i++) {
            uint8_t code = codes[b * SKETCH_BLOCK_ROWS + i];
            size_t lane = sketch_lane(i);

            sums[lane] = (uint16_t)(sums[lane] + tables[code & 15] + tables[SKETCH_TABLE_BYTES + (code >> 4)]);
        }
}

static uint64_t above_portable(const struct sketch_probe *probe, const struct sketch_block *block, bool is_far,
                               float *bounds)
{
    uint16_t sums[SKETCH_BLOCK_ROWS] = { 0 };

    add_portable(probe->tables, block->coarse, probe->n_coarse, sums);
    add_portable(sketch_fine_tables(probe, SKETCH_TABLES_OF_16), block->fine, probe->n_signs - probe->n_coarse, sums);
    return above_of_sums(probe, block, sums, bounds);
}

static uint64_t coarse_portable(const struct sketch_probe *probe, const uint8_t *coarse, bool is_far, float *bounds,
                                float *ret_most)
{
    uint16_t sums[SKETCH_BLOCK_ROWS] = { 0 };

    add_portable(probe->tables, coarse, probe->n_coarse, sums);
    return rows_of_sums(probe, sketch_factors(coarse, probe->n_coarse), sums, bounds, ret_most);
}

/* --- sixteen bytes at a time, in the compiler's vectors: SSSE3 and NEON --- */

#if defined(HAS_X86_KERNELS) || defined(HAS_NEON_KERNEL)
typedef uint8_t bytes16 __attribute__((vector_size(16)));
typedef uint16_t words8 __attribute__((vector_size(16)));

#ifdef HAS_X86_KERNELS
#define TARGET_VECTORS __attribute__((target("ssse3")))

static bool is_vectors_supported(void)
{
    return __builtin_cpu_supports("ssse3");
}

TARGET_VECTORS static inline bytes16 look_up(bytes16 table, bytes16 at)
{
    return (bytes16)_mm_shuffle_epi8((__m128i)table, (__m128i)at);
}
#else
#define TARGET_VECTORS

static bool is_vectors_supported(void)
{
    return true;
}

static inline bytes16 look_up(bytes16 table, bytes16 at)
{
    return (bytes16)vqtbl1q_u8((uint8x16_t)table, (uint8x16_t)at);
}
#endif

/* The sums of 64 rows in 32 pairs: those of even rows, to which 256 times those of odd rows are added. */
struct sums16 {
    words8 even[4], odd[4];
};

/* Entries are at most 31, so the six look-ups of three bytes add up in one byte. Bytes are then added in pairs as
 * words. */
TARGET_VECTORS static inline void add_vectors(struct sums16 *s, const uint8_t *table, const uint8_t *codes,
                                              size_t n_signs, bool is_far)
{
    for (size_t j = 0; j < n_signs; j += 24) {
        bytes16 v[4] = { { 0 } };

        for (int k = 0; k < 3; k++, codes += SKETCH_BLOCK_ROWS, table += 2 * SKETCH_TABLE_BYTES) {
            bytes16 low = *(const bytes16 *)(const void *)table;
            bytes16 high = *(const bytes16 *)(const void *)(table + SKETCH_TABLE_BYTES);

            if (is_far)
                __builtin_prefetch(codes + SKETCH_AHEAD_BYTES);
            for (size_t g = 0; g < 4; g++) {
                bytes16 code = *(const bytes16 *)(const void *)(codes + 16 * g);

                v[g] += look_up(low, code & 15) + look_up(high, code >> 4);
            }
        }
        for (size_t g = 0; g < 4; g++) {
            s->even[g] += (words8)v[g];
            s->odd[g] += (words8)v[g] >> 8;
        }
    }
}

TARGET_VECTORS static inline void write_sums(const struct sums16 *s, uint16_t *sums)
{
    for (size_t g = 0; g < 4; g++) {
        words8 even = s->even[g] - (s->odd[g] << 8);

        memcpy(sums + 8 * g, &even, sizeof(even));
        memcpy(sums + SKETCH_BLOCK_ROWS / 2 + 8 * g, &s->odd[g], sizeof(s->odd[g]));
    }
}

TARGET_VECTORS static uint64_t above_vectors(const struct sketch_probe *probe, const struct sketch_block *block,
                                             bool is_far, float *bounds)
{
    uint16_t sums[SKETCH_BLOCK_ROWS];
    struct sums16 s = { 0 };

    add_vectors(&s, probe->tables, block->coarse, probe->n_coarse, is_far);
    add_vectors(&s, sketch_fine_tables(probe, SKETCH_TABLES_OF_16), block->fine, probe->n_signs - probe->n_coarse,
                is_far);
    write_sums(&s, sums);
    return above_of_sums(probe, block, sums, bounds);
}

TARGET_VECTORS static uint64_t coarse_vectors(const struct sketch_probe *probe, const uint8_t *coarse, bool is_far,
                                              float *bounds, float *ret_most)
{
    uint16_t sums[SKETCH_BLOCK_ROWS];
    struct sums16 s = { 0 };

    add_vectors(&s, probe->tables, coarse, probe->n_coarse, is_far);
    write_sums(&s, sums);
    return rows_of_sums(probe, sketch_factors(coarse, probe->n_coarse), sums, bounds, ret_most);
}
#endif

/* --- the table --- */

const struct sketch_kernel sketch_kernels[] = {
#ifdef HAS_X86_KERNELS
    { "avx512vbmi", sketch_supports_vbmi, SKETCH_TABLES_OF_64, sketch_above_vbmi, sketch_coarse_vbmi },
    { "avx512bw", sketch_supports_avx512, SKETCH_TABLES_OF_16, sketch_above_avx512, sketch_coarse_avx512 },
    { "avx2", sketch_supports_avx2, SKETCH_TABLES_OF_16, sketch_above_avx2, sketch_coarse_avx2 },
#endif
#if defined(HAS_X86_KERNELS) || defined(HAS_NEON_KERNEL)
    { "vectors", is_vectors_supported, SKETCH_TABLES_OF_16, above_vectors, coarse_vectors },
#endif
    { "portable", is_always_supported, SKETCH_TABLES_OF_16, above_portable, coarse_portable },
    { NULL },
};

const struct sketch_kernel *sketch_kernel_best(void)
{
    const struct sketch_kernel *kernel = sketch_kernels;

    while (!kernel->is_supported())
        kernel++;
    return kernel;
}
