/* Kernels for any processor, and the choice among the sets. */
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "hwmodels/backends/backend.h"
#include "hwmodels/backends/native_kernels.h"

float native_half_to_float(uint16_t h)
{
    uint32_t sign = (uint32_t)(h >> 15) << 31;
    uint32_t exponent = (h >> 10) & 31u;
    uint32_t mantissa = h & 1023u;
    if (exponent == 0) { /* zero and subnormals: mantissa * 2^-24, exact in a float */
        float f = (float)mantissa * 0x1p-24f;
        return sign != 0 ? -f : f;
    }
    uint32_t bits =
        sign | (mantissa << 13) | (exponent == 31 ? 0x7f800000u : (exponent - 15 + 127) << 23);
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

uint16_t native_float_to_half(float f)
{
    float m = fabsf(f);
    uint16_t sign = signbit(f) ? 0x8000u : 0u;
    if (isnan(f)) {
        return (uint16_t)(sign | 0x7e00u);
    }
    if (m >= 65520.0f) { /* halfway above the largest half */
        return (uint16_t)(sign | 0x7c00u);
    }
    int e = 0;
    (void)frexpf(m, &e);
    e = m < 0x1p-14f ? -14 : e - 1; /* subnormals, and zero, whose exponent frexpf calls 0 */
    /* Units in the last place of a half with this exponent; rounding may carry into the exponent,
     * which is what the encoding wants. */
    uint32_t ulps = (uint32_t)nearbyintf(ldexpf(m, 10 - e));
    uint32_t biased = (uint32_t)(e + 14);
    return (uint16_t)(sign | (uint16_t)(biased * 1024u + ulps));
}

#define TARGET
#define V_WIDTH 1u
typedef float vec; /* a template parameter, not a hidden pointer */

static inline vec v_zero(void)
{
    return 0.0f;
}
static inline vec v_set(float x)
{
    return x;
}
static inline vec v_load(const float *p)
{
    return *p;
}
static inline void v_store(float *p, vec v)
{
    *p = v;
}
static inline vec v_load_half(const uint16_t *p)
{
    return native_half_to_float(*p);
}
static inline vec v_load_i8(const int8_t *p)
{
    return (float)*p;
}
static inline vec v_add(vec a, vec b)
{
    return a + b;
}
static inline vec v_fma(vec a, vec b, vec c)
{
    return a * b + c;
}
static inline float v_sum(vec a)
{
    return a;
}

#include "hwmodels/backends/native_template.inc"

const struct native_kernels native_scalar = {"scalar",    read_sum,   knob,     product_f32,
                                             product_f16, product_i8, attention};

const struct native_kernels *const *native_kernels_usable(void)
{
    static const struct native_kernels *const with_avx512[] = {&native_avx512, &native_avx2,
                                                               &native_scalar, NULL};
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw")) {
        return with_avx512;
    }
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) { /* then F16C too */
        return with_avx512 + 1;
    }
#endif
    return with_avx512 + 2;
}

const struct native_kernels *native_kernels_best(void)
{
    return native_kernels_usable()[0];
}
