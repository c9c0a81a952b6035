#include "experiments/drive/speed.h"

#include "experiments/drive/fit_impl.h"

static double predicted_s(const struct config *c, const struct drive_kernel *k, double overlap)
{
    struct work_shape w = fit_shape(k);
    SIM_ASSERT(overlap >= 0.0 && overlap <= 1.0 && c->truth.runtime[k->device]->ops.given);
    struct kernel_query q = {
        .op = (enum op_kind)k->op, .rows = k->rows, .padded_rows = k->padded_rows, .shape = &w};
    double slow = fit_is_one_row(k) ? 1.0 + c->soc.devices[k->device].beside_frac * overlap : 1.0;
    return slow * soc_ops_seconds(&c->truth.runtime[k->device]->ops, &q);
}

/* The rule of the kernel-time models (hwmodels/roofline.c), for the kernel's longest sequence. */
static bool is_outside(const struct config *c, const struct fit_input *in,
                       const struct drive_kernel *k)
{
    const struct soc_runtime *r = c->truth.runtime[k->device];
    SIM_ASSERT(k->device < c->soc.machine.n_devices && !k->stopped);
    return (r->valid_rows_max > 0 && k->rows > r->valid_rows_max) ||
           (r->valid_context_max > 0 && fit_longest(in, k) > r->valid_context_max);
}

struct speed speed_of_run(const struct drive_report *r, enum drive_clock clock,
                          const struct config *c)
{
    struct speed out = {.all = (double)NAN};
    uint32_t n_devices = c->soc.machine.n_devices;
    double real[MACHINE_MAX_DEVICES] = {0}, predicted[MACHINE_MAX_DEVICES] = {0};
    double real_sum = 0.0, predicted_sum = 0.0, outside = 0.0;
    for (uint32_t d = 0; d < n_devices; d++) {
        const struct soc_ops *ops = &c->truth.runtime[d]->ops;
        if (!ops->given || strcmp(ops->model, c->llm.name) != 0) {
            return out;
        }
    }
    SCOPED(fit_input_fini) struct fit_input in;
    fit_input_init(&in, clock);
    fit_input_add(&in, r, 0.0, false);
    for (size_t i = 0; i < in.n; i++) {
        const struct drive_kernel *k = &in.kernels[i];
        /* A stopped kernel did part of its work. */
        if (!k->stopped) {
            double overlap = fit_is_one_row(k) ? fmin(1.0, fit_overlap(&in, i)) : 0.0;
            real[k->device] += (double)k->ns / 1e9;
            predicted[k->device] += predicted_s(c, k, overlap);
            outside += is_outside(c, &in, k) ? (double)k->ns / 1e9 : 0.0;
        }
    }
    for (uint32_t d = 0; d < n_devices; d++) {
        out.device[d] = real[d] > 0.0 ? predicted[d] / real[d] : 1.0;
        real_sum += real[d];
        predicted_sum += predicted[d];
    }
    /* A ratio of sums weights kernels by time, so short kernels, whose times are mostly noise,
     * hardly count. */
    out.all = predicted_sum / real_sum;
    out.outside_frac = outside / real_sum;
    SIM_ASSERT(!(out.outside_frac > 1.0 + 1e-9) && !(out.outside_frac < 0.0));
    return out;
}

static void scale_table(struct soc_ops_table *t, double by)
{
    SIM_ASSERT(by > 0.0 && isfinite(by) && t->n <= SOC_OPS_MAX_POINTS);
    for (uint32_t i = 0; i < t->n; i++) {
        t->s[i] *= by;
    }
}

void speed_apply(struct config *c, const struct speed *s)
{
    for (uint32_t d = 0; d < c->soc.machine.n_devices; d++) {
        struct soc_device *v = &c->soc.devices[d];
        double by = 1.0 / s->device[d];
        SIM_ASSERT(s->device[d] > 0.0); /* it is 1 if nothing ran */
        for (uint32_t i = 0; i < v->n_runtimes; i++) {
            struct soc_ops *o = &v->runtimes[i].ops;
            /* Only the entry that this model runs with was measured. */
            if (&v->runtimes[i] != c->truth.runtime[d]) {
                continue;
            }
            SIM_ASSERT(o->given);
            scale_table(&o->qkv, by);
            scale_table(&o->ffn, by);
            scale_table(&o->head, by);
            struct soc_ops_prefill *p = &o->prefill;
            double *const rates[] = {
                &p->s,        &p->many.pair_s,  &p->many.row_s,   &p->few.pair_s, &p->few.row_s,
                &o->decode_s, &o->decode_key_s, &o->decode_row_s, &o->layer_s,    &o->layer_key_s};
            for (size_t k = 0; k < sizeof rates / sizeof rates[0]; k++) {
                *rates[k] *= by;
            }
        }
    }
}
