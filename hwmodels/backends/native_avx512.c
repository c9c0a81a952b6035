/* Kernels for processors with AVX-512 F and BW. */
#include "hwmodels/backends/backend.h"
#include "hwmodels/backends/native_kernels.h"

#if defined(__x86_64__)
#include <immintrin.h>

#define TARGET __attribute__((target("avx512f,avx512bw,avx2,fma,f16c")))
#define V_WIDTH 16u
typedef __m512 vec; /* a template parameter, not a hidden pointer */

#define v_zero _mm512_setzero_ps
#define v_set _mm512_set1_ps
#define v_load _mm512_loadu_ps
#define v_store _mm512_storeu_ps
#define v_add _mm512_add_ps
#define v_fma _mm512_fmadd_ps
#define v_load_half(p) _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(p)))
#define v_load_i8(p) _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i *)(p))))
#define v_sum _mm512_reduce_add_ps

#include "hwmodels/backends/native_template.inc"

const struct native_kernels native_avx512 = {"avx512",    read_sum,   knob,     product_f32,
                                             product_f16, product_i8, attention};
#else
const struct native_kernels native_avx512 = {"avx512", NULL, NULL, NULL, NULL, NULL, NULL};
#endif
