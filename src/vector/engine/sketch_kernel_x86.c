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

static inline const uint16_t *fine_factors(const struct sketch_probe *probe, const struct sketch_block *block)
{
    return sketch_factors(block->fine, probe->n_signs - probe->n_coarse);
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

/* As add_vectors() of sketch_kernel.c. */
TARGET_AVX2 static inline void add_signs_avx2(struct half halves[2], const uint8_t *table, const uint8_t *codes,
                                              size_t n_signs, bool is_far)
{
    for (size_t j = 0; j < n_signs; j += 24) {
        __m256i v = _mm256_setzero_si256(), w = v;

        for (int k = 0; k < 3; k++, codes += SKETCH_BLOCK_ROWS, table += 2 * SKETCH_TABLE_BYTES) {
            if (is_far)
                PREFETCH_AHEAD(codes);
            v = _mm256_add_epi8(v, look_up_avx2(table, _mm256_load_si256((const __m256i *)codes)));
            w = _mm256_add_epi8(w, look_up_avx2(table, _mm256_load_si256((const __m256i *)(codes + 32))));
        }
        add_avx2(&halves[0], v);
        add_avx2(&halves[1], w);
    }
}

TARGET_AVX2 static inline __m256i even_of(const struct half *h)
{
    return _mm256_sub_epi16(h->even, _mm256_slli_epi16(h->odd, 8));
}

TARGET_AVX2 static inline __m256 eight_floats(const uint16_t *upper)
{
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(_mm_load_si128((const __m128i *)upper)), 16));
}

TARGET_AVX2 static inline __m256 eight_bounds(const struct sketch_probe *probe, __m128i sums, const uint16_t *factors)
{
    __m256 sum = _mm256_cvtepi32_ps(_mm256_cvtepu16_epi32(sums));
    __m256 guess = _mm256_add_ps(_mm256_mul_ps(sum, _mm256_set1_ps(probe->delta)), _mm256_set1_ps(probe->add));

    return _mm256_add_ps(eight_floats(factors + SKETCH_BLOCK_ROWS), _mm256_mul_ps(eight_floats(factors), guess));
}

/* Writes the bounds of 16 lanes. Returns the higher ones of each eight. */
TARGET_AVX2 static inline __m256 sixteen_bounds_avx2(const struct sketch_probe *probe, __m256i sums,
                                                     const uint16_t *factors, float *bounds)
{
    __m256 first = eight_bounds(probe, _mm256_castsi256_si128(sums), factors);
    __m256 second = eight_bounds(probe, _mm256_extracti128_si256(sums, 1), factors + 8);

    _mm256_store_ps(bounds, first);
    _mm256_store_ps(bounds + 8, second);
    return _mm256_max_ps(first, second);
}

/* Writes the bounds of 64 lanes. Returns the highest of each eighth. */
TARGET_AVX2 static inline __m256 all_bounds_avx2(const struct sketch_probe *probe, const struct half halves[2],
                                                 const uint16_t *factors, float *bounds)
{
    __m256 a = sixteen_bounds_avx2(probe, even_of(&halves[0]), factors, bounds);
    __m256 b = sixteen_bounds_avx2(probe, even_of(&halves[1]), factors + 16, bounds + 16);
    __m256 c = sixteen_bounds_avx2(probe, halves[0].odd, factors + 32, bounds + 32);
    __m256 d = sixteen_bounds_avx2(probe, halves[1].odd, factors + 48, bounds + 48);

    return _mm256_max_ps(_mm256_max_ps(a, b), _mm256_max_ps(c, d));
}

/* The bits of 32 lanes whose bounds are above the threshold. */
TARGET_AVX2 static inline uint64_t bits_avx2(const float *bounds, __m256 threshold)
{
    uint64_t bits = 0;

    for (int i = 0; i < 4; i++)
        bits |= (uint64_t)(uint32_t)_mm256_movemask_ps(
                    _mm256_cmp_ps(_mm256_load_ps(bounds + 8 * (size_t)i), threshold, _CMP_GT_OQ))
                << 8 * i;
    return bits;
}

TARGET_AVX2 static inline uint64_t above_avx2(const struct sketch_probe *probe, const struct sketch_block *block,
                                              bool is_far, float *bounds)
{
    __m256 threshold = _mm256_set1_ps(probe->threshold), most;
    struct half halves[2] = { { _mm256_setzero_si256(), _mm256_setzero_si256() },
                              { _mm256_setzero_si256(), _mm256_setzero_si256() } };

    add_signs_avx2(halves, probe->tables, block->coarse, probe->n_coarse, is_far);
    add_signs_avx2(halves, sketch_fine_tables(probe, SKETCH_TABLES_OF_16), block->fine,
                   probe->n_signs - probe->n_coarse, is_far);
    most = all_bounds_avx2(probe, halves, fine_factors(probe, block), bounds);
    if (_mm256_movemask_ps(_mm256_cmp_ps(most, threshold, _CMP_GT_OQ)) == 0)
        return 0;
    return in_order(bits_avx2(bounds, threshold), bits_avx2(bounds + SKETCH_BLOCK_ROWS / 2, threshold));
}

TARGET_AVX2 uint64_t sketch_above_avx2(const struct sketch_probe *probe, const struct sketch_block *block, bool is_far,
                                       float *bounds)
{
    return is_far ? above_avx2(probe, block, true, bounds) : above_avx2(probe, block, false, bounds);
}

TARGET_AVX2 static inline float highest_avx2(__m256 v)
{
    __m128 four = _mm_max_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));

    return _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)));
}

TARGET_AVX2 static inline uint64_t coarse_avx2(const struct sketch_probe *probe, const uint8_t *coarse, bool is_far,
                                               float *bounds, float *ret_most)
{
    __m256 threshold = _mm256_set1_ps(probe->threshold);
    struct half halves[2] = { { _mm256_setzero_si256(), _mm256_setzero_si256() },
                              { _mm256_setzero_si256(), _mm256_setzero_si256() } };

    add_signs_avx2(halves, probe->tables, coarse, probe->n_coarse, is_far);
    *ret_most = highest_avx2(all_bounds_avx2(probe, halves, sketch_factors(coarse, probe->n_coarse), bounds));
    if (!(*ret_most > probe->threshold))
        return 0;
    return in_order(bits_avx2(bounds, threshold), bits_avx2(bounds + SKETCH_BLOCK_ROWS / 2, threshold));
}

TARGET_AVX2 uint64_t sketch_coarse_avx2(const struct sketch_probe *probe, const uint8_t *coarse, bool is_far,
                                        float *bounds, float *ret_most)
{
    return is_far ? coarse_avx2(probe, coarse, true, bounds, ret_most)
                  : coarse_avx2(probe, coarse, false, bounds, ret_most);
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

TARGET_AVX512 static inline void add_signs_avx512(struct whole *s, const uint8_t *table, const uint8_t *codes,
                                                  size_t n_signs, bool is_far)
{
    for (size_t j = 0; j < n_signs; j += 24) {
        __m512i v = _mm512_setzero_si512();

        for (int k = 0; k < 3; k++, codes += SKETCH_BLOCK_ROWS, table += 2 * SKETCH_TABLE_BYTES) {
            if (is_far)
                PREFETCH_AHEAD(codes);
            v = _mm512_add_epi8(v, look_up_avx512(table, _mm512_load_si512(codes)));
        }
        add_avx512(s, v);
    }
}

TARGET_AVX512 static inline __m512 sixteen_floats(const uint16_t *upper)
{
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_load_si256((const __m256i *)upper)), 16));
}

TARGET_AVX512 static inline __m512 sixteen_bounds(const struct sketch_probe *probe, __m256i sums,
                                                  const uint16_t *factors)
{
    __m512 sum = _mm512_cvtepi32_ps(_mm512_cvtepu16_epi32(sums));
    __m512 guess = _mm512_add_ps(_mm512_mul_ps(sum, _mm512_set1_ps(probe->delta)), _mm512_set1_ps(probe->add));

    return _mm512_add_ps(sixteen_floats(factors + SKETCH_BLOCK_ROWS), _mm512_mul_ps(sixteen_floats(factors), guess));
}

/* The bounds of 64 rows, even rows first. */
struct bounds {
    __m512 a, b, c, d;
};

TARGET_AVX512 static inline struct bounds bounds_of_whole(const struct sketch_probe *probe, const struct whole *s,
                                                          const uint16_t *factors)
{
    __m512i even = _mm512_sub_epi16(s->even, _mm512_slli_epi16(s->odd, 8));

    return (struct bounds){ sixteen_bounds(probe, _mm512_castsi512_si256(even), factors),
                            sixteen_bounds(probe, _mm512_extracti64x4_epi64(even, 1), factors + 16),
                            sixteen_bounds(probe, _mm512_castsi512_si256(s->odd), factors + 32),
                            sixteen_bounds(probe, _mm512_extracti64x4_epi64(s->odd, 1), factors + 48) };
}

TARGET_AVX512 static inline void store(const struct bounds *from, float *bounds)
{
    _mm512_store_ps(bounds, from->a);
    _mm512_store_ps(bounds + 16, from->b);
    _mm512_store_ps(bounds + 32, from->c);
    _mm512_store_ps(bounds + 48, from->d);
}

/* The rows whose bounds are above the threshold; these are written when there are any. */
TARGET_AVX512 static inline uint64_t rows_above(const struct bounds *v, float threshold, float *bounds)
{
    __m512 wide = _mm512_set1_ps(threshold);
    uint64_t even = _mm512_cmp_ps_mask(v->a, wide, _CMP_GT_OQ) | (uint64_t)_mm512_cmp_ps_mask(v->b, wide, _CMP_GT_OQ)
                                                                     << 16;
    uint64_t odd = _mm512_cmp_ps_mask(v->c, wide, _CMP_GT_OQ) | (uint64_t)_mm512_cmp_ps_mask(v->d, wide, _CMP_GT_OQ)
                                                                    << 16;

    if (!(even | odd))
        return 0;
    store(v, bounds);
    return in_order(even, odd);
}

TARGET_AVX512 static inline uint64_t above_of_whole(const struct sketch_probe *probe, const struct sketch_block *block,
                                                    const struct whole *s, float *bounds)
{
    struct bounds v = bounds_of_whole(probe, s, fine_factors(probe, block));

    return rows_above(&v, probe->threshold, bounds);
}

TARGET_AVX512 static inline uint64_t coarse_of_whole(const struct sketch_probe *probe, const uint8_t *coarse,
                                                     const struct whole *s, float *bounds, float *ret_most)
{
    struct bounds v = bounds_of_whole(probe, s, sketch_factors(coarse, probe->n_coarse));

    *ret_most = _mm512_reduce_max_ps(_mm512_max_ps(_mm512_max_ps(v.a, v.b), _mm512_max_ps(v.c, v.d)));
    return *ret_most > probe->threshold ? rows_above(&v, probe->threshold, bounds) : 0;
}

TARGET_AVX512 static inline uint64_t above_avx512(const struct sketch_probe *probe, const struct sketch_block *block,
                                                  bool is_far, float *bounds)
{
    struct whole s = { _mm512_setzero_si512(), _mm512_setzero_si512() };

    add_signs_avx512(&s, probe->tables, block->coarse, probe->n_coarse, is_far);
    add_signs_avx512(&s, sketch_fine_tables(probe, SKETCH_TABLES_OF_16), block->fine, probe->n_signs - probe->n_coarse,
                     is_far);
    return above_of_whole(probe, block, &s, bounds);
}

TARGET_AVX512 uint64_t sketch_above_avx512(const struct sketch_probe *probe, const struct sketch_block *block,
                                           bool is_far, float *bounds)
{
    return is_far ? above_avx512(probe, block, true, bounds) : above_avx512(probe, block, false, bounds);
}

TARGET_AVX512 uint64_t sketch_coarse_avx512(const struct sketch_probe *probe, const uint8_t *coarse, bool is_far,
                                            float *bounds, float *ret_most)
{
    struct whole s = { _mm512_setzero_si512(), _mm512_setzero_si512() };

    if (is_far)
        add_signs_avx512(&s, probe->tables, coarse, probe->n_coarse, true);
    else
        add_signs_avx512(&s, probe->tables, coarse, probe->n_coarse, false);
    return coarse_of_whole(probe, coarse, &s, bounds, ret_most);
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

TARGET_VBMI static inline void add_signs_vbmi(struct whole *s, const uint8_t *table, const uint8_t *codes,
                                              size_t n_signs, bool is_far)
{
    for (size_t j = 0; j < n_signs; j += 24) {
        if (is_far) {
            PREFETCH_AHEAD(codes);
            PREFETCH_AHEAD(codes + SKETCH_BLOCK_ROWS);
            PREFETCH_AHEAD(codes + (size_t)2 * SKETCH_BLOCK_ROWS);
        }
        add_avx512(s, look_up_vbmi(table, codes));
        codes += (size_t)3 * SKETCH_BLOCK_ROWS;
        table += (size_t)4 * SKETCH_TABLE_BYTES;
    }
}

TARGET_VBMI static inline uint64_t above_vbmi(const struct sketch_probe *probe, const struct sketch_block *block,
                                              bool is_far, float *bounds)
{
    struct whole s = { _mm512_setzero_si512(), _mm512_setzero_si512() };

    add_signs_vbmi(&s, probe->tables, block->coarse, probe->n_coarse, is_far);
    add_signs_vbmi(&s, sketch_fine_tables(probe, SKETCH_TABLES_OF_64), block->fine, probe->n_signs - probe->n_coarse,
                   is_far);
    return above_of_whole(probe, block, &s, bounds);
}

TARGET_VBMI uint64_t sketch_above_vbmi(const struct sketch_probe *probe, const struct sketch_block *block, bool is_far,
                                       float *bounds)
{
    return is_far ? above_vbmi(probe, block, true, bounds) : above_vbmi(probe, block, false, bounds);
}

TARGET_VBMI uint64_t sketch_coarse_vbmi(const struct sketch_probe *probe, const uint8_t *coarse, bool is_far,
                                        float *bounds, float *ret_most)
{
    struct whole s = { _mm512_setzero_si512(), _mm512_setzero_si512() };

    if (is_far)
        add_signs_vbmi(&s, probe->tables, coarse, probe->n_coarse, true);
    else
        add_signs_vbmi(&s, probe->tables, coarse, probe->n_coarse, false);
    return coarse_of_whole(probe, coarse, &s, bounds, ret_most);
}
#endif
