#include "vector/engine/sketch_kernel.h"

#ifdef __x86_64__
#include <immintrin.h>

#define TARGET_AVX2 __attribute__((target("avx2,bmi2")))
#define TARGET_AVX512 __attribute__((target("avx512f,avx512bw,avx512vl,bmi2")))
#define TARGET_VBMI __attribute__((target("avx512f,avx512bw,avx512vl,avx512vbmi,bmi2")))

/* A macro: gcc 12 drops the calls of a function that only prefetches. */
#define PREFETCH_AHEAD(block) _mm_prefetch((const char *)(block) + SKETCH_AHEAD_BYTES, _MM_HINT_T0)

bool sketch_supports_avx2(void)
{
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi2");
}

bool sketch_supports_avx512(void)
{
    return sketch_supports_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512vl");
}

bool sketch_supports_vbmi(void)
{
    return sketch_supports_avx512() && __builtin_cpu_supports("avx512vbmi");
}

/* The bits of the even rows, then those of the odd rows, as bits of rows. */
TARGET_AVX2 static inline uint64_t in_order(uint64_t even, uint64_t odd)
{
    return _pdep_u64(even, UINT64_C(0x5555555555555555)) | _pdep_u64(odd, UINT64_C(0xaaaaaaaaaaaaaaaa));
}

/* The factors and offsets of a block are read after its codes. */
static inline const float *factors_of(const struct sketch_probe *probe, const uint8_t *block)
{
    return (const float *)(const void *)(block + sketch_code_bytes(probe->n_signs));
}

/* --- AVX2: halves of 32 rows --- */

/* The sums of 32 rows, as words. */
struct half {
    __m256i even, odd;
};

TARGET_AVX2 static inline __m256i look_up_avx2(const uint8_t *table, __m256i codes)
{
    const __m256i low = _mm256_set1_epi8(0x0f);
    __m256i first = _mm256_load_si256((const __m256i *)table);
    __m256i second = _mm256_load_si256((const __m256i *)(table + SKETCH_TABLE_BYTES));

    return _mm256_add_epi8(_mm256_shuffle_epi8(first, _mm256_and_si256(codes, low)),
                           _mm256_shuffle_epi8(second, _mm256_and_si256(_mm256_srli_epi16(codes, 4), low)));
}

TARGET_AVX2 static inline void add_avx2(struct half *h, __m256i v)
{
    h->even = _mm256_add_epi16(h->even, v);
    h->odd = _mm256_add_epi16(h->odd, _mm256_srli_epi16(v, 8));
}

/* As sum_vectors() of sketch_kernel.c. */
TARGET_AVX2 static inline void sum_avx2(const struct sketch_probe *probe, const uint8_t *block, bool is_far,
                                        struct half halves[2])
{
    struct half a = { _mm256_setzero_si256(), _mm256_setzero_si256() }, b = a;
    const uint8_t *table = probe->tables;

    for (size_t j = 0; j < probe->n_signs; j += 24) {
        __m256i v = _mm256_setzero_si256(), w = v;

        for (int k = 0; k < 3; k++, block += SKETCH_BLOCK_ROWS, table += 2 * SKETCH_TABLE_BYTES) {
            if (is_far)
                PREFETCH_AHEAD(block);
            v = _mm256_add_epi8(v, look_up_avx2(table, _mm256_load_si256((const __m256i *)block)));
            w = _mm256_add_epi8(w, look_up_avx2(table, _mm256_load_si256((const __m256i *)(block + 32))));
        }
        add_avx2(&a, v);
        add_avx2(&b, w);
    }
    a.even = _mm256_sub_epi16(a.even, _mm256_slli_epi16(a.odd, 8));
    b.even = _mm256_sub_epi16(b.even, _mm256_slli_epi16(b.odd, 8));
    halves[0] = a;
    halves[1] = b;
}

TARGET_AVX2 static inline __m256 eight_bounds(const struct sketch_probe *probe, __m128i sums, const float *factors)
{
    __m256 sum = _mm256_cvtepi32_ps(_mm256_cvtepu16_epi32(sums));
    __m256 guess = _mm256_add_ps(_mm256_mul_ps(sum, _mm256_set1_ps(probe->delta)), _mm256_set1_ps(probe->add));

    return _mm256_add_ps(_mm256_load_ps(factors + SKETCH_BLOCK_ROWS), _mm256_mul_ps(_mm256_load_ps(factors), guess));
}

/* The bits of 16 lanes, whose bounds are written. */
TARGET_AVX2 static inline uint64_t sixteen_above(const struct sketch_probe *probe, __m256i sums, const float *factors,
                                                 float *bounds)
{
    __m256 first = eight_bounds(probe, _mm256_castsi256_si128(sums), factors);
    __m256 second = eight_bounds(probe, _mm256_extracti128_si256(sums, 1), factors + 8);
    __m256 threshold = _mm256_set1_ps(probe->threshold);

    _mm256_store_ps(bounds, first);
    _mm256_store_ps(bounds + 8, second);
    return (uint64_t)(uint32_t)_mm256_movemask_ps(_mm256_cmp_ps(first, threshold, _CMP_GT_OQ)) |
           (uint64_t)(uint32_t)_mm256_movemask_ps(_mm256_cmp_ps(second, threshold, _CMP_GT_OQ)) << 8;
}

TARGET_AVX2 static inline uint64_t above_avx2(const struct sketch_probe *probe, const uint8_t *block, bool is_far,
                                              float *bounds)
{
    const float *factors = factors_of(probe, block);
    struct half halves[2];
    uint64_t even, odd;

    sum_avx2(probe, block, is_far, halves);
    even = sixteen_above(probe, halves[0].even, factors, bounds) |
           sixteen_above(probe, halves[1].even, factors + 16, bounds + 16) << 16;
    odd = sixteen_above(probe, halves[0].odd, factors + 32, bounds + 32) |
          sixteen_above(probe, halves[1].odd, factors + 48, bounds + 48) << 16;
    return even | odd ? in_order(even, odd) : 0;
}

TARGET_AVX2 uint64_t sketch_above_avx2(const struct sketch_probe *probe, const uint8_t *block, bool is_far,
                                       float *bounds)
{
    return is_far ? above_avx2(probe, block, true, bounds) : above_avx2(probe, block, false, bounds);
}

/* --- AVX-512: all 64 rows --- */

/* The sums of 64 rows, as words. */
struct whole {
    __m512i even, odd;
};

TARGET_AVX512 static inline void add_avx512(struct whole *s, __m512i v)
{
    s->even = _mm512_add_epi16(s->even, v);
    s->odd = _mm512_add_epi16(s->odd, _mm512_srli_epi16(v, 8));
}

TARGET_AVX512 static inline __m512i look_up_avx512(const uint8_t *table, __m512i codes)
{
    const __m512i low = _mm512_set1_epi8(0x0f);
    __m512i first = _mm512_load_si512(table), second = _mm512_load_si512(table + SKETCH_TABLE_BYTES);

    return _mm512_add_epi8(_mm512_shuffle_epi8(first, _mm512_and_si512(codes, low)),
                           _mm512_shuffle_epi8(second, _mm512_and_si512(_mm512_srli_epi16(codes, 4), low)));
}

TARGET_AVX512 static inline struct whole sum_avx512(const struct sketch_probe *probe, const uint8_t *block, bool is_far)
{
    struct whole s = { _mm512_setzero_si512(), _mm512_setzero_si512() };
    const uint8_t *table = probe->tables;

    for (size_t j = 0; j < probe->n_signs; j += 24) {
        __m512i v = _mm512_setzero_si512();

        for (int k = 0; k < 3; k++, block += SKETCH_BLOCK_ROWS, table += 2 * SKETCH_TABLE_BYTES) {
            if (is_far)
                PREFETCH_AHEAD(block);
            v = _mm512_add_epi8(v, look_up_avx512(table, _mm512_load_si512(block)));
        }
        add_avx512(&s, v);
    }
    s.even = _mm512_sub_epi16(s.even, _mm512_slli_epi16(s.odd, 8));
    return s;
}

TARGET_AVX512 static inline __m512 sixteen_bounds(const struct sketch_probe *probe, __m256i sums, const float *factors)
{
    __m512 sum = _mm512_cvtepi32_ps(_mm512_cvtepu16_epi32(sums));
    __m512 guess = _mm512_add_ps(_mm512_mul_ps(sum, _mm512_set1_ps(probe->delta)), _mm512_set1_ps(probe->add));

    return _mm512_add_ps(_mm512_load_ps(factors + SKETCH_BLOCK_ROWS), _mm512_mul_ps(_mm512_load_ps(factors), guess));
}

TARGET_AVX512 static inline uint64_t above_of_whole(const struct sketch_probe *probe, const uint8_t *block,
                                                    struct whole s, float *bounds)
{
    const float *factors = factors_of(probe, block);
    __m512 threshold = _mm512_set1_ps(probe->threshold);
    __m512 a = sixteen_bounds(probe, _mm512_castsi512_si256(s.even), factors);
    __m512 b = sixteen_bounds(probe, _mm512_extracti64x4_epi64(s.even, 1), factors + 16);
    __m512 c = sixteen_bounds(probe, _mm512_castsi512_si256(s.odd), factors + 32);
    __m512 d = sixteen_bounds(probe, _mm512_extracti64x4_epi64(s.odd, 1), factors + 48);
    uint64_t even =
        _mm512_cmp_ps_mask(a, threshold, _CMP_GT_OQ) | (uint64_t)_mm512_cmp_ps_mask(b, threshold, _CMP_GT_OQ) << 16;
    uint64_t odd = _mm512_cmp_ps_mask(c, threshold, _CMP_GT_OQ) | (uint64_t)_mm512_cmp_ps_mask(d, threshold, _CMP_GT_OQ)
                                                                      << 16;

    if (!(even | odd))
        return 0;
    _mm512_store_ps(bounds, a);
    _mm512_store_ps(bounds + 16, b);
    _mm512_store_ps(bounds + 32, c);
    _mm512_store_ps(bounds + 48, d);
    return in_order(even, odd);
}

TARGET_AVX512 uint64_t sketch_above_avx512(const struct sketch_probe *probe, const uint8_t *block, bool is_far,
                                           float *bounds)
{
    struct whole s = is_far ? sum_avx512(probe, block, true) : sum_avx512(probe, block, false);

    return above_of_whole(probe, block, s, bounds);
}

/* --- AVX-512 VBMI: tables of 64 entries, which are at most 63 --- */

/* The entries of three bytes and of their upper two bits. */
TARGET_VBMI static inline __m512i look_up_vbmi(const uint8_t *table, const uint8_t *block)
{
    const __m512i low2 = _mm512_set1_epi8(0x03), low4 = _mm512_set1_epi8(0x0f);
    enum { CHOOSE = 0xca /* of each bit: the first argument decides between the others */ };
    __m512i a = _mm512_load_si512(block), b = _mm512_load_si512(block + SKETCH_BLOCK_ROWS);
    __m512i c = _mm512_load_si512(block + (size_t)2 * SKETCH_BLOCK_ROWS);
    __m512i upper = _mm512_ternarylogic_epi32(low2, _mm512_srli_epi16(a, 6), _mm512_srli_epi16(b, 4), CHOOSE);

    upper = _mm512_ternarylogic_epi32(low4, upper, _mm512_srli_epi16(c, 2), CHOOSE);
    return _mm512_add_epi8(
        _mm512_add_epi8(_mm512_permutexvar_epi8(a, _mm512_load_si512(table)),
                        _mm512_permutexvar_epi8(b, _mm512_load_si512(table + SKETCH_TABLE_BYTES))),
        _mm512_add_epi8(_mm512_permutexvar_epi8(c, _mm512_load_si512(table + (size_t)2 * SKETCH_TABLE_BYTES)),
                        _mm512_permutexvar_epi8(upper, _mm512_load_si512(table + (size_t)3 * SKETCH_TABLE_BYTES))));
}

TARGET_VBMI static inline struct whole sum_vbmi(const struct sketch_probe *probe, const uint8_t *block, bool is_far)
{
    struct whole s = { _mm512_setzero_si512(), _mm512_setzero_si512() };
    const uint8_t *table = probe->tables;

    for (size_t j = 0; j < probe->n_signs; j += 24) {
        if (is_far) {
            PREFETCH_AHEAD(block);
            PREFETCH_AHEAD(block + SKETCH_BLOCK_ROWS);
            PREFETCH_AHEAD(block + (size_t)2 * SKETCH_BLOCK_ROWS);
        }
        add_avx512(&s, look_up_vbmi(table, block));
        block += (size_t)3 * SKETCH_BLOCK_ROWS;
        table += (size_t)4 * SKETCH_TABLE_BYTES;
    }
    s.even = _mm512_sub_epi16(s.even, _mm512_slli_epi16(s.odd, 8));
    return s;
}

TARGET_VBMI uint64_t sketch_above_vbmi(const struct sketch_probe *probe, const uint8_t *block, bool is_far,
                                       float *bounds)
{
    struct whole s = is_far ? sum_vbmi(probe, block, true) : sum_vbmi(probe, block, false);

    return above_of_whole(probe, block, s, bounds);
}
#endif
