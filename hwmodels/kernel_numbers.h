/* Numbers for kernels: IEEE half precision, and data without special values. Inline, because the
 * shared objects of backends call no function of the program. */
#pragma once

#include "sim/base/base.h"

static inline float half_to_float(uint16_t h)
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

/* To nearest even. */
static inline uint16_t half_from_float(float f)
{
    uint32_t u;
    memcpy(&u, &f, sizeof u);
    uint32_t sign = (u >> 16) & 0x8000u;
    u &= 0x7fffffffu;
    if (u >= (127u + 16u) << 23) { /* above every half, or NaN */
        return (uint16_t)(sign | (u > 0x7f800000u ? 0x7e00u : 0x7c00u));
    }
    if (u < (127u - 14u) << 23) { /* subnormal: an addition rounds to multiples of 2^-24 */
        float sum;
        memcpy(&sum, &u, sizeof sum);
        sum += 0.5f;
        memcpy(&u, &sum, sizeof u);
        return (uint16_t)(sign | (u - 0x3f000000u));
    }
    /* A carry of rounding into the exponent is correct in this encoding. */
    u += 0xfffu + ((u >> 13) & 1u);
    return (uint16_t)(sign | ((u - ((127u - 15u) << 23)) >> 13));
}

/* Every 16 bits are +-2^-4 to 2^-3 as half precision; two of them are a normal float near 1e-12;
 * each byte is an integer. So one pool serves all widths, without special values. */
static inline void kernel_fill(uint8_t *to, size_t bytes)
{
    uint64_t x = 0x9E3779B97F4A7C15ULL;
    for (size_t i = 0; i < bytes; i += sizeof x) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17; /* xorshift64 */
        uint64_t v = (x & 0x83ff83ff83ff83ffULL) | 0x2c002c002c002c00ULL;
        memcpy(to + i, &v, bytes - i < sizeof v ? bytes - i : sizeof v);
    }
}
