/* `sim`: the simulator's own models as devices, in virtual time. It is the oracle of the measuring
 * pipeline, because the fitted numbers can be compared with the true ones.
 *
 * A kernel's time is that of model `p-norm` of roofline.h for the SoC's numbers. Another model
 * tests whether a fit notices. Contention (kernel_model.h), drift, noise and now and then an
 * outlier multiply it. Devices run their queues in parallel. A kernel's pace changes when a kernel
 * on another device starts or stops. Deterministic in the seed. */
#pragma once

#include "hwmodels/backends/backend.h"
#include "hwmodels/kernel_model.h"
#include "hwmodels/soc.h"

enum simdev_form {
    SIMDEV_MODEL,  /* p-norm without row fill: what kernel_fit assumes */
    SIMDEV_FILL,   /* wrong: p-norm with the row fill below */
    SIMDEV_STEPS,  /* wrong: rows of products are padded to multiples of 48 */
    SIMDEV_PRIVATE /* wrong contention: a co-running device slows it, independent of its draw */
};

struct simdev_truth {
    struct soc soc;
    struct kernel_contention contention;
    double lambda[KERNEL_OP_COUNT]; /* latency sensitivity by op */
    enum simdev_form form;
    double noise_frac;                   /* standard deviation of log time of one launch */
    double drift_frac, drift_period_s;   /* slow wandering of all times, a sine */
    double outlier_frac, outlier_factor; /* how often a launch takes how many times longer */
    double foreign_frac;                 /* what the host account reports as others' load */
    double compile_s;                    /* of every first preparation */
    double hang_frac;                    /* launches that never end */
    uint64_t seed;
};

/* Quiet, exact, contention 0.9 x peak with sharpness 6, no sensitivity. */
void simdev_truth_init(struct simdev_truth *t);
/* "noise=0.01,form=steps,...": sets members by name. 0 or -EINVAL. */
int simdev_truth_set(struct simdev_truth *t, const char *text, struct err *e);

/* The curve a kernel of a device follows (for comparing with a fit): P is scaled for attention. */
void simdev_curve(const struct simdev_truth *t, uint32_t device, const struct kernel_spec *s,
                  struct kernel_curve *out);
/* Seconds that a kernel takes alone, without chance. */
double simdev_alone_s(const struct simdev_truth *t, uint32_t device, const struct kernel_spec *s);
