/* Overlap of kernels with those of another device, and the slowdown that it causes. */
#include "experiments/drive/fit_impl.h"

#define MIN_BESIDE 30     /* least kernels for a slowdown, co-running and isolated ones each */
#define OVERLAP_MOST 0.9  /* least overlap of a co-running kernel */
#define OVERLAP_LEAST 0.1 /* most overlap of an isolated kernel */

/* Kernels of a run are in order of their launches' ends. A scan of the neighbourhood is enough,
 * because launches overlap few others. */
double fit_overlap(const struct fit_input *in, size_t at)
{
    const struct drive_kernel *k = &in->kernels[at];
    int64_t covered = 0;
    const size_t reach = 4000;
    size_t from = at > reach ? at - reach : 0;
    size_t to = at + reach < in->n ? at + reach : in->n;
    if (in->one_by_one) {
        return 0.0; /* kernels that overlap on a virtual clock did not co-run */
    }
    for (size_t i = from; i < to; i++) {
        const struct drive_kernel *o = &in->kernels[i];
        if (in->run[i] != in->run[at] || o->device == k->device) {
            continue;
        }
        int64_t begin = o->begin_ns > k->begin_ns ? o->begin_ns : k->begin_ns;
        int64_t end =
            o->begin_ns + o->ns < k->begin_ns + k->ns ? o->begin_ns + o->ns : k->begin_ns + k->ns;
        covered += end > begin ? end - begin : 0;
    }
    SIM_ASSERT(covered >= 0 && k->ns > 0); /* several other devices may cover more than all of it */
    return (double)covered / (double)k->ns;
}

bool fit_is_one_row(const struct drive_kernel *k)
{
    return k->padded_rows == 1 && !k->stopped && k->op != OP_MHA && k->op != OP_HEAD;
}

void fit_beside(const struct fit_input *in, const double *overlap, uint32_t device,
                struct fit_device *out)
{
    double ratio = 0.0, variance = 0.0, ops = 0.0;
    for (int op = OP_QKV; op < OP_KIND_COUNT; op++) {
        double n[2] = {0}, sum[2] = {0}, squares[2] = {0};
        for (size_t i = 0; i < in->n; i++) {
            const struct drive_kernel *k = &in->kernels[i];
            bool both = overlap[i] >= OVERLAP_MOST;
            if (k->device != device || k->op != op || !fit_is_one_row(k) ||
                (!both && overlap[i] > OVERLAP_LEAST)) {
                continue;
            }
            SIM_ASSERT(overlap[i] >= 0.0 && !(in->one_by_one && both)); /* no kernels co-ran */
            SIM_ASSERT(both || overlap[i] <= OVERLAP_LEAST); /* partial overlaps are left out */
            n[both] += 1.0;
            sum[both] += (double)k->ns;
            squares[both] += (double)k->ns * (double)k->ns;
        }
        /* A slowdown is a small difference of two means. From few kernels it would be noise, which
         * --compare would take for a property of the machine. */
        if (n[0] < MIN_BESIDE || n[1] < MIN_BESIDE) {
            continue;
        }
        double mean[2], relative = 0.0;
        for (int b = 0; b < 2; b++) {
            mean[b] = sum[b] / n[b];
            /* The relative variance of a mean; those of a ratio's two means add up. */
            relative += (squares[b] / n[b] / (mean[b] * mean[b]) - 1.0) / n[b];
            /* A variance is not negative. */
            SIM_ASSERT(squares[b] * n[b] >= sum[b] * sum[b] * (1.0 - 1e-9));
        }
        ratio += mean[1] / mean[0];
        variance += relative;
        ops += 1.0;
        out->n_beside += (uint32_t)n[1];
    }
    if (ops > 0.0) {
        double value = ratio / ops - 1.0;
        double sd = sqrt(variance) / ops;
        out->beside = (struct fit_number){fmax(0.0, value), fmax(0.0, value - Z95 * sd),
                                          fmax(0.0, value + Z95 * sd)};
        SIM_ASSERT(out->n_beside >= MIN_BESIDE && fit_number_ok(out->beside));
    }
}
