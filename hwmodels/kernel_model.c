#include "hwmodels/kernel_model.h"

#include "sim/base/base.h"

/* (x^p + y^p)^(1/p) without overflow; x, y >= 0. */
static double norm(double x, double y, double p)
{
    double big = fmax(x, y);
    double small = fmin(x, y);
    return big > 0.0 ? big * pow(1.0 + pow(small / big, p), 1.0 / p) : 0.0;
}

double kernel_model_seconds(const struct kernel_curve *c, double flop, double bytes)
{
    return c->launch_s + norm(flop / c->flop_per_s, bytes / c->bytes_per_s, c->knee);
}

double kernel_model_slowdown(const struct kernel_curve *c, double flop, double bytes,
                             double others_bytes_per_s, const struct kernel_contention *m,
                             double lambda)
{
    double alone_s = kernel_model_seconds(c, flop, bytes);
    double own = bytes / alone_s;
    double all = own + others_bytes_per_s;
    /* f is a soft maximum of 1 and the load over the cap. The higher the sharpness, the closer the
     * load comes to the cap before sharing slows a kernel. The isolated time contains f of the
     * kernel's own load, so memory time grows by the ratio of both. */
    double f_all = norm(1.0, all / m->cap_bytes_per_s, m->sharpness);
    double f_own = norm(1.0, own / m->cap_bytes_per_s, m->sharpness);
    double used_frac = others_bytes_per_s / (m->cap_bytes_per_s * f_all);
    double memory_s = bytes / c->bytes_per_s * f_all / f_own;
    double together_s =
        c->launch_s + norm(flop / c->flop_per_s, memory_s, c->knee) + lambda * used_frac * alone_s;
    return together_s / alone_s;
}
