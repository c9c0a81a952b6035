/* The time of a measured kernel, alone and beside others: the form that kernel_fit estimates.
 *
 *   alone     T = t + (a^p + b^p)^(1/p),  a = W/P, b = Q/B       form `p-norm` of roofline.h, m0 =
 * 0 together  T' = t + (a^p + (s b)^p)^(1/p) + lambda u T
 *
 * W flop, Q DDR bytes, P and B what the device reaches, t its launch cost, p the sharpness of the
 * knee (infinite: the plain roofline). Contention of kernels with solo draws d = Q/T under one
 * shared cap C with sharpness q, D the draws of all, F(x) = (1 + (x/C)^q)^(1/q):
 *   s = F(D) / F(d)         how much longer the memory part takes; 1 when alone
 *   u = (D - d) / (C F(D))  how busy the others keep the memory, at most about 1
 * s leaves compute-bound kernels alone and, for large q, lets memory-bound ones share the cap in
 * proportion to what they draw. lambda is a kernel's sensitivity to loaded memory latency, felt
 * below the cap too (fraction of T added when others use the whole memory). */
#pragma once

struct kernel_curve {
    double flop_per_s;  /* P; infinite where a kernel computes nothing */
    double bytes_per_s; /* B */
    double launch_s;    /* t */
    double knee;        /* p > 0 */
};

struct kernel_contention {
    double cap_bytes_per_s; /* C > 0; infinite: no contention */
    double sharpness;       /* q > 0 */
};

/* Alone on the machine, in seconds. */
double kernel_model_seconds(const struct kernel_curve *c, double flop, double bytes);

/* T'/T beside kernels that draw others_bytes_per_s when alone; at least 1 for lambda >= 0. */
double kernel_model_slowdown(const struct kernel_curve *c, double flop, double bytes,
                             double others_bytes_per_s, const struct kernel_contention *m,
                             double lambda);
