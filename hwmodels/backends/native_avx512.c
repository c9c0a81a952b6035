/* Kernels for processors with AVX-512 F and BW. */
#include <math.h>
#include <stdbool.h>
#include <stddef.h>

#include "hwmodels/backends/backend.h"
#include "hwmodels/backends/native_kernels.h"

#if defined(__x86_64__)
#include <immintrin.h>

#define TARGET __attribute__((target("avx512f,avx512bw,avx2,fma,f16c")))
#define V_WIDTH 16u
typedef __m512 vec; /* a template parameter, not a hidden pointer */

TARGET static inline vec v_zero(void)
{
    return _mm512_setzero_ps();
}
TARGET static inline vec v_set(float x)
{
    return _mm512_set1_ps(x);
}
TARGET static inline vec v_load(const float *p)
{
    return _mm512_loadu_ps(p);
}
TARGET static inline void v_store(float *p, vec v)
{
    _mm512_storeu_ps(p, v);
}
TARGET static inline vec v_load_half(const uint16_t *p)
{
    return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)p));
}
TARGET static inline vec v_load_i8(const int8_t *p)
{
    return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i *)p)));
}
TARGET static inline vec v_add(vec a, vec b)
{
    return _mm512_add_ps(a, b);
}
TARGET static inline vec v_fma(vec a, vec b, vec c)
{
    return _mm512_fmadd_ps(a, b, c);
}
TARGET static inline float v_sum(vec a)
{
    return _mm512_reduce_add_ps(a);
}

#include "hwmodels/backends/native_template.inc"

const struct native_kernels native_avx512 = {"avx512",    read_sum,   knob,     product_f32,
                                             product_f16, product_i8, attention};
#else
const struct native_kernels native_avx512 = {"avx512", NULL, NULL, NULL, NULL, NULL, NULL};
#endif
