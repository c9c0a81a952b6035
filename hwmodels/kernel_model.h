/* The time of a measured kernel, isolated and co-running: the model that kernel_fit estimates.
 *
 *   isolated    T  = t + (a^p + b^p)^(1/p),  a = W/P, b = Q/B
 *   co-running  T' = t + (a^p + (s b)^p)^(1/p) + lambda u T
 *
 * The isolated time is model `p-norm` of roofline.h with m0 = 0. W is flop, Q is DDR bytes. P and B
 * are the device's rate and bandwidth, t its launch cost. The sharpness of the knee is p (infinite:
 * the plain roofline).
 *
 * Contention: kernels draw d = Q/T in isolation, D is the sum of all draws, and one shared cap C
 * has sharpness q. With F(x) = (1 + (x/C)^q)^(1/q):
 *
 *   s = F(D) / F(d)         factor of the memory part; 1 when isolated
 *   u = (D - d) / (C F(D))  share of the memory that the others keep busy, at most about 1
 *
 * Factor s does not change compute-bound kernels. For large q memory-bound ones share the cap in
 * proportion to their draws. A kernel's sensitivity to loaded memory latency is lambda: the
 * fraction of T that is added if others use the whole memory. It applies below the cap, too.
 */
#pragma once

struct kernel_curve {
    double flop_per_s;  /* P; infinite if a kernel computes nothing */
    double bytes_per_s; /* B */
    double launch_s;    /* t */
    double knee;        /* p > 0 */
};

struct kernel_contention {
    double cap_bytes_per_s; /* C > 0; infinite: no contention */
    double sharpness;       /* q > 0 */
};

/* Isolated time in seconds. */
double kernel_model_seconds(const struct kernel_curve *c, double flop, double bytes);

/* T'/T next to kernels that draw others_bytes_per_s in isolation; at least 1 for lambda >= 0. */
double kernel_model_slowdown(const struct kernel_curve *c, double flop, double bytes,
                             double others_bytes_per_s, const struct kernel_contention *m,
                             double lambda);
