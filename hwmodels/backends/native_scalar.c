/* Kernels for any processor, and the choice of a set. */
#include "hwmodels/backends/backend.h"
#include "hwmodels/backends/native_kernels.h"
#include "hwmodels/kernel_numbers.h"

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
    return half_to_float(*p);
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
    /* The processor's features decide, not the compiler's options, so one binary measures any
     * processor. */
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw")) {
        return with_avx512;
    }
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) { /* and so F16C */
        return with_avx512 + 1;
    }
#endif
    return with_avx512 + 2;
}

const struct native_kernels *native_kernels_best(void)
{
    return native_kernels_usable()[0];
}
