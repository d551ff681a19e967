#include "vector/kernel.h"

static bool is_always_supported(void)
{
    return true;
}

/* Shaped so that a compiler makes vector instructions of it where it knows them (NEON, SSE2). */
static void dots_portable(const uint8_t *rows, size_t stride, size_t n_rows, const int8_t *query, int32_t *out)
{
    for (size_t i = 0; i < n_rows; i++, rows += stride) {
        int32_t sum = 0;

        for (size_t j = 0; j < stride; j++)
            sum += (int32_t)rows[j] * (int32_t)query[j];
        out[i] = sum;
    }
}

#ifdef __x86_64__
#include <immintrin.h>

#define TARGET_AVX512 __attribute__((target("avx512f,avx512bw,avx512vl,avx512vnni")))
#define TARGET_AVX2 __attribute__((target("avx2")))

static bool is_avx512_supported(void)
{
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
           __builtin_cpu_supports("avx512vnni");
}

/* The sums of four registers, in order. */
TARGET_AVX512 static inline __m128i sum_four_avx512(__m512i a, __m512i b, __m512i c, __m512i d)
{
    __m512i ab = _mm512_add_epi32(_mm512_unpacklo_epi32(a, b), _mm512_unpackhi_epi32(a, b));
    __m512i cd = _mm512_add_epi32(_mm512_unpacklo_epi32(c, d), _mm512_unpackhi_epi32(c, d));
    __m512i all = _mm512_add_epi32(_mm512_unpacklo_epi64(ab, cd), _mm512_unpackhi_epi64(ab, cd));
    __m256i half = _mm256_add_epi32(_mm512_castsi512_si256(all), _mm512_extracti64x4_epi64(all, 1));

    return _mm_add_epi32(_mm256_castsi256_si128(half), _mm256_extracti128_si256(half, 1));
}

TARGET_AVX512 static inline void four_rows_avx512(const uint8_t *rows, size_t stride, const int8_t *query, int32_t *out)
{
    __m512i a = _mm512_setzero_si512(), b = a, c = a, d = a;

    for (size_t j = 0; j < stride; j += 64) {
        __m512i q = _mm512_loadu_si512(query + j);

        a = _mm512_dpbusd_epi32(a, _mm512_load_si512(rows + j), q);
        b = _mm512_dpbusd_epi32(b, _mm512_load_si512(rows + stride + j), q);
        c = _mm512_dpbusd_epi32(c, _mm512_load_si512(rows + 2 * stride + j), q);
        d = _mm512_dpbusd_epi32(d, _mm512_load_si512(rows + 3 * stride + j), q);
    }
    _mm_storeu_si128((__m128i *)out, sum_four_avx512(a, b, c, d));
}

TARGET_AVX512 static void dots_avx512(const uint8_t *rows, size_t stride, size_t n_rows, const int8_t *query, int32_t *out)
{
    size_t i = 0;

    for (; i + 4 <= n_rows; i += 4)
        four_rows_avx512(rows + i * stride, stride, query, out + i);
    for (; i < n_rows; i++) {
        __m512i sum = _mm512_setzero_si512();

        for (size_t j = 0; j < stride; j += 64)
            sum = _mm512_dpbusd_epi32(sum, _mm512_load_si512(rows + i * stride + j), _mm512_loadu_si512(query + j));
        out[i] = _mm512_reduce_add_epi32(sum);
    }
}

static bool is_avx2_supported(void)
{
    return __builtin_cpu_supports("avx2");
}

/* Sixteen products, added in pairs. The instruction for bytes (vpmaddubsw) saturates; this one cannot. */
TARGET_AVX2 static inline __m256i add_sixteen_avx2(__m256i sum, const uint8_t *row, __m256i q)
{
    return _mm256_add_epi32(sum, _mm256_madd_epi16(_mm256_cvtepu8_epi16(_mm_load_si128((const __m128i *)row)), q));
}

TARGET_AVX2 static inline void four_rows_avx2(const uint8_t *rows, size_t stride, const int8_t *query, int32_t *out)
{
    __m256i a = _mm256_setzero_si256(), b = a, c = a, d = a, all;

    for (size_t j = 0; j < stride; j += 16) {
        __m256i q = _mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i *)(query + j)));

        a = add_sixteen_avx2(a, rows + j, q);
        b = add_sixteen_avx2(b, rows + stride + j, q);
        c = add_sixteen_avx2(c, rows + 2 * stride + j, q);
        d = add_sixteen_avx2(d, rows + 3 * stride + j, q);
    }
    all = _mm256_hadd_epi32(_mm256_hadd_epi32(a, b), _mm256_hadd_epi32(c, d));
    _mm_storeu_si128((__m128i *)out, _mm_add_epi32(_mm256_castsi256_si128(all), _mm256_extracti128_si256(all, 1)));
}

TARGET_AVX2 static void dots_avx2(const uint8_t *rows, size_t stride, size_t n_rows, const int8_t *query, int32_t *out)
{
    size_t i = 0;

    for (; i + 4 <= n_rows; i += 4)
        four_rows_avx2(rows + i * stride, stride, query, out + i);
    dots_portable(rows + i * stride, stride, n_rows - i, query, out + i);
}
#endif

const struct kernel kernels[] = {
#ifdef __x86_64__
    { "avx512vnni", is_avx512_supported, dots_avx512 },
    { "avx2", is_avx2_supported, dots_avx2 },
#endif
    { "portable", is_always_supported, dots_portable },
    { NULL },
};

const struct kernel *kernel_best(void)
{
    const struct kernel *kernel = kernels;

    while (!kernel->is_supported())
        kernel++;
    return kernel;
}
