/* The parameters of a fit: their names, and their coordinates in the solver. */
#include "hwmodels/kernel_fit_impl.h"

#define MIN_INVERSE 1e-3 /* a knee of 1000 counts as a corner */

const char *kernel_param_name(enum kernel_param p)
{
    static const char *const names[KERNEL_PARAM_COUNT] = {"rate",
                                                          "bandwidth",
                                                          "one_row.bandwidth",
                                                          "knee",
                                                          "launch",
                                                          "attention_rate",
                                                          "read",
                                                          "copy",
                                                          "knob_rate",
                                                          "knob_knee",
                                                          "ddr.cap",
                                                          "ddr.sharpness",
                                                          "latency_sensitivity"};
    return names[p];
}

static bool is_inverse(enum kernel_param p)
{
    return p == KERNEL_PARAM_KNEE || p == KERNEL_PARAM_KNOB_KNEE || p == KERNEL_PARAM_SHARPNESS;
}

double fit_to_x(enum kernel_param p, double value)
{
    /* Logarithms keep rates positive and make errors relative. A knee is fitted as its inverse, so
     * that the roofline, a sharp corner, is at 0 and not at infinity. Launch costs and
     * sensitivities may be zero, so they are not transformed, and have units near 1. */
    return is_inverse(p)              ? 1.0 / value
           : p == KERNEL_PARAM_LAUNCH ? value * 1e6
           : p == KERNEL_PARAM_LAMBDA ? value
                                      : log(value);
}

double fit_from_x(enum kernel_param p, double x)
{
    return is_inverse(p)              ? 1.0 / fmax(fabs(x), MIN_INVERSE)
           : p == KERNEL_PARAM_LAUNCH ? x / 1e6
           : p == KERNEL_PARAM_LAMBDA ? x
                                      : exp(x);
}
