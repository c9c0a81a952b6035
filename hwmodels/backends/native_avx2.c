/* Kernels for processors with AVX2, FMA and F16C. */
#include "hwmodels/backends/backend.h"
#include "hwmodels/backends/native_kernels.h"

#if defined(__x86_64__)
#include <immintrin.h>

#define TARGET __attribute__((target("avx2,fma,f16c")))
#define V_WIDTH 8u
typedef __m256 vec; /* a template parameter, not a hidden pointer */

#define v_zero _mm256_setzero_ps
#define v_set _mm256_set1_ps
#define v_load _mm256_loadu_ps
#define v_store _mm256_storeu_ps
#define v_add _mm256_add_ps
#define v_fma _mm256_fmadd_ps
#define v_load_half(p) _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(p)))
#define v_load_i8(p) _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *)(p))))

TARGET static inline float v_sum(vec a)
{
    __m128 s = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    s = _mm_add_ps(s, _mm_movehl_ps(s, s));
    return _mm_cvtss_f32(_mm_add_ss(s, _mm_movehdup_ps(s)));
}

#include "hwmodels/backends/native_template.inc"

const struct native_kernels native_avx2 = {"avx2",      read_sum,   knob,     product_f32,
                                           product_f16, product_i8, attention};
#else
const struct native_kernels native_avx2 = {"avx2", NULL, NULL, NULL, NULL, NULL, NULL};
#endif
