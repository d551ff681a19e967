#include "vector/engine/sketch_kernel.h"
#include <string.h>

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

static inline uint64_t above_of_sums(const struct sketch_probe *probe, const uint8_t *block, const uint16_t *sums,
                                     float *bounds)
{
    const float *factors = (const float *)(const void *)(block + sketch_code_bytes(probe->n_signs));
    const float *offsets = factors + SKETCH_BLOCK_ROWS;
    uint32_t any = 0;

    for (size_t i = 0; i < SKETCH_BLOCK_ROWS; i++)
        bounds[i] = offsets[i] + factors[i] * ((float)sums[i] * probe->delta + probe->add);
    for (size_t i = 0; i < SKETCH_BLOCK_ROWS; i++)
        any |= bounds[i] > probe->threshold;
    return any ? bits_above(bounds, probe->threshold) : 0;
}

/* --- for every processor --- */

static uint64_t above_portable(const struct sketch_probe *probe, const uint8_t *block, bool is_far, float *bounds)
{
    uint16_t sums[SKETCH_BLOCK_ROWS] = { 0 }, lanes[SKETCH_BLOCK_ROWS];
    const uint8_t *table = probe->tables;

    for (size_t b = 0; b < probe->n_signs / 8; b++, table += 2 * SKETCH_TABLE_BYTES)
        for (size_t i = 0; i < SKETCH_BLOCK_ROWS; i++) {
            uint8_t code = block[b * SKETCH_BLOCK_ROWS + i];

            sums[i] = (uint16_t)(sums[i] + table[code & 15] + table[SKETCH_TABLE_BYTES + (code >> 4)]);
        }
    for (size_t i = 0; i < SKETCH_BLOCK_ROWS; i++)
        lanes[sketch_lane(i)] = sums[i];
    return above_of_sums(probe, block, lanes, bounds);
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

/* Entries are at most 31, so the six look-ups of three bytes add up in one byte. Bytes are then added in pairs as
 * words: the sum of the odd row in the upper byte is subtracted at the end. */
TARGET_VECTORS static inline void sum_vectors(const struct sketch_probe *probe, const uint8_t *block, bool is_far,
                                              uint16_t *sums)
{
    words8 even[4] = { { 0 } }, odd[4] = { { 0 } };
    const uint8_t *table = probe->tables;

    for (size_t j = 0; j < probe->n_signs; j += 24) {
        bytes16 v[4] = { { 0 } };

        for (int k = 0; k < 3; k++, block += SKETCH_BLOCK_ROWS, table += 2 * SKETCH_TABLE_BYTES) {
            bytes16 low = *(const bytes16 *)(const void *)table;
            bytes16 high = *(const bytes16 *)(const void *)(table + SKETCH_TABLE_BYTES);

            if (is_far)
                __builtin_prefetch(block + SKETCH_AHEAD_BYTES);
            for (size_t g = 0; g < 4; g++) {
                bytes16 codes = *(const bytes16 *)(const void *)(block + 16 * g);

                v[g] += look_up(low, codes & 15) + look_up(high, codes >> 4);
            }
        }
        for (size_t g = 0; g < 4; g++) {
            even[g] += (words8)v[g];
            odd[g] += (words8)v[g] >> 8;
        }
    }
    for (size_t g = 0; g < 4; g++) {
        even[g] -= odd[g] << 8;
        memcpy(sums + 8 * g, &even[g], sizeof(even[g]));
        memcpy(sums + SKETCH_BLOCK_ROWS / 2 + 8 * g, &odd[g], sizeof(odd[g]));
    }
}

TARGET_VECTORS static uint64_t above_vectors(const struct sketch_probe *probe, const uint8_t *block, bool is_far,
                                             float *bounds)
{
    uint16_t sums[SKETCH_BLOCK_ROWS];

    sum_vectors(probe, block, is_far, sums);
    return above_of_sums(probe, block, sums, bounds);
}
#endif

/* --- the table --- */

const struct sketch_kernel sketch_kernels[] = {
#ifdef HAS_X86_KERNELS
    { "avx512vbmi", sketch_supports_vbmi, SKETCH_TABLES_OF_64, sketch_above_vbmi },
    { "avx512bw", sketch_supports_avx512, SKETCH_TABLES_OF_16, sketch_above_avx512 },
    { "avx2", sketch_supports_avx2, SKETCH_TABLES_OF_16, sketch_above_avx2 },
#endif
#if defined(HAS_X86_KERNELS) || defined(HAS_NEON_KERNEL)
    { "vectors", is_vectors_supported, SKETCH_TABLES_OF_16, above_vectors },
#endif
    { "portable", is_always_supported, SKETCH_TABLES_OF_16, above_portable },
    { NULL },
};

const struct sketch_kernel *sketch_kernel_best(void)
{
    const struct sketch_kernel *kernel = sketch_kernels;

    while (!kernel->is_supported())
        kernel++;
    return kernel;
}
