/* Predicts rows of single kernels and of a token's energy. */
#include "experiments/validation/predict_impl.h"

#include "hwmodels/kernel_spec.h"

/* Parses "matmul ROWSxKxN" or "gemv NxK", as in published tables. */
static bool product_of(const struct point *p, struct kernel_spec *out)
{
    char rest[2] = "";
    *out = (struct kernel_spec){.op = KERNEL_GEMM,
                                .rows = 1,
                                .weight_bits = p->weight_bits > 0 ? p->weight_bits : 16,
                                .act_bits = p->act_bits > 0 ? p->act_bits : 16};
    bool read = sscanf(p->model, "matmul %ux%ux%u%1s", &out->rows, &out->k, &out->n, rest) == 3 ||
                (out->rows = 1, sscanf(p->model, "gemv %ux%u%1s", &out->n, &out->k, rest) == 2);
    out->op = out->rows == 1 ? KERNEL_GEMV : KERNEL_GEMM;
    return read && out->rows > 0 && out->n > 0 && out->k > 0;
}

/* Time of one product by model `extended` (hwmodels/roofline.h). */
static double product_s(const struct soc_runtime *r, const struct kernel_spec *s)
{
    bool one = s->rows == 1;
    const struct soc_curve *c = one ? &r->one : &r->many;
    double fill =
        one ? 1.0 : (1.0 + r->fill_rows / (double)s->rows) * (1.0 + r->width_fill / (double)s->k);
    return c->launch_s +
           fmax(kernel_spec_flop(s) / c->flop_per_s * fill, kernel_spec_bytes(s) / c->bytes_per_s);
}

/* A product runs in its own width. Models of another width are predicted by the default entry, and
 * the result says so. A product is refused, since an engine without units for a width takes another
 * path: FP16 products of a Hexagon take 300 to 800 times as long as INT8 ones. */
static bool has_width(const struct soc_device *d, uint32_t weight_bits)
{
    bool found = weight_bits == 0;
    for (uint32_t i = 0; i < d->n_runtimes; i++) {
        found = found || d->runtimes[i].weight_bits == weight_bits;
    }
    return found;
}

struct prediction predict_kernel(const struct catalog *c, const struct soc *soc,
                                 const struct point *p)
{
    struct kernel_spec s;
    if (!product_of(p, &s)) {
        return predict_unknown("a kernel that only its name describes");
    }
    int d = predict_device(soc, p->device);
    if (d < 0) {
        return predict_unknown("the SoC file has no such device");
    }
    enum soc_match match;
    const struct soc_device *dev = &soc->devices[d];
    if (!has_width(dev, p->weight_bits)) {
        return predict_unknown("a product of a width that no entry of the device has");
    }
    const struct soc_runtime *r =
        &dev->runtimes[soc_runtime_find(dev, p->runtime, p->weight_bits, &match)];
    double seconds = product_s(r, &s);
    struct conformal_query q = {.soc = soc->machine.name,
                                .family = soc->family,
                                .kind = soc->machine.devices[d].kind,
                                .phase = conformal_phase_of(s.rows > 1, s.rows),
                                .weights = (double)s.n * (double)s.k,
                                .tokens = s.rows,
                                .left = match != SOC_MATCH_EXACT ? CONFORMAL_RUNTIME
                                        : !r->start.given        ? CONFORMAL_SOC
                                                                 : CONFORMAL_MODEL};
    struct conformal_interval x = conformal_of(&c->residuals, &q, CONFORMAL_LEVEL);
    return (struct prediction){.value = seconds * 1e3,
                               .runtime_default = match != SOC_MATCH_EXACT,
                               .unseen = q.left,
                               .low = seconds * x.low_factor * 1e3,
                               .high = seconds * x.high_factor * 1e3};
}

/* Binds a row of the model at the beginning of the text, with another metric. `reason` of *k NULL:
 * it can be predicted. */
static void bind_named(const struct catalog *c, const struct point *p, enum point_metric metric,
                       struct point *as, struct predict_case *k)
{
    *as = *p;
    as->metric = metric;
    as->model = xkeep(xformat("%.*s", (int)strcspn(p->model, " "), p->model));
    predict_bind(c, as, k);
}

struct prediction predict_energy(const struct catalog *c, const struct soc *soc,
                                 const struct point *p)
{
    bool prefill = strstr(p->model, "prefill per token") != NULL;
    if (!prefill && strstr(p->model, "decode per token") == NULL) {
        return predict_unknown("energy of work that only its name describes");
    }
    struct point as;
    struct predict_case k;
    bind_named(c, p, prefill ? POINT_TTFT_MS : POINT_TPOT_MS, &as, &k);
    if (k.reason != NULL) {
        return predict_unknown(k.reason);
    }
    const struct device *d = &soc->machine.devices[k.device];
    bool all = soc->devices[k.device].meter != SOC_METER_RAIL;
    double watts =
        (prefill ? d->prefill_watts : d->decode_watts) + (all ? soc->machine.idle_watts : 0.0);
    double tokens = prefill ? as.input_tokens * (double)as.batch : as.batch;
    double seconds = predict_price(&k, &as, NULL).seconds;
    struct prediction out = predict_known(point_value_of_seconds(&as, seconds));
    predict_interval(c, &as, &k, seconds, &out);
    double joules_per_unit = watts * seconds / tokens / out.value;
    out.value *= joules_per_unit;
    out.low *= joules_per_unit;
    out.high *= joules_per_unit;
    out.runtime_default = k.match != SOC_MATCH_EXACT;
    return out;
}
