/* Predicts a row by its metric. Rows that are not the latency of a model ask the same parameters
 * other questions. The text in `model` says what such a row measured. This file looks for `corun`
 * in it; predict_kernel.c reads phases and shapes, and predict_load.c amounts. */
#include "experiments/validation/footprint_fit.h"
#include "experiments/validation/predict_impl.h"
#include "hwmodels/soc.h"
#include "sim/api/contention.h"

#define MAX_ENGINES 4
#define READ_BACK_FRAC 1e-3 /* rounding in files */

/* A number of the file. If it equals the row, it was taken from it and is no prediction. */
static struct prediction of_file(double value, const struct point *p)
{
    return fabs(value / p->value - 1.0) < READ_BACK_FRAC
               ? predict_unknown("the SoC file took this number from the row: nothing is predicted")
               : predict_known(value);
}

/* "gpu+npu" or "all" into devices; their number, 0 where one is not on the machine or they are
 * more. */
static uint32_t engines_of(const struct soc *soc, const char *text, uint8_t *out)
{
    uint32_t n = 0;
    if (strcmp(text, "all") == 0) {
        for (; n < soc->machine.n_devices && n < MAX_ENGINES; n++) {
            out[n] = (uint8_t)n;
        }
        return n == soc->machine.n_devices ? n : 0;
    }
    while (*text != '\0') {
        size_t len = strcspn(text, "+");
        char name[16];
        if (n == MAX_ENGINES || len == 0 || len >= sizeof name) {
            return 0;
        }
        memcpy(name, text, len);
        name[len] = '\0';
        int d = predict_device(soc, name);
        if (d < 0) {
            return 0;
        }
        out[n++] = (uint8_t)d;
        text += text[len] == '+' ? len + 1 : len;
    }
    return n;
}

/* Bandwidth of one isolated engine, by the runtime's rows or the default's. */
static double isolated_bytes_per_s(const struct soc *soc, uint8_t device, const struct point *p)
{
    enum soc_match match;
    const struct soc_device *d = &soc->devices[device];
    return d->runtimes[soc_runtime_find(d, p->runtime, p->weight_bits, &match)].many.bytes_per_s;
}

/* Fills the shares of streaming engines, by the contention model of a run on this machine. */
static void share(const struct catalog *c, const struct soc *soc, struct flow *f, uint32_t n,
                  double capacity)
{
    struct contention_params params = c->contention_params;
    params.latency = soc->queueing_frac;
    bool stated = !c->contention_given && soc->contention[0] != '\0';
    const struct contention_ops *model = stated ? contention_find(soc->contention) : c->contention;
    for (uint32_t i = 0; i < n; i++) {
        params.beside[f[i].device] = soc->devices[f[i].device].beside_frac;
        params.ceiling_bytes_per_s[f[i].device] = f[i].demand_bytes_per_s; /* all of a stream's */
    }
    model->share(f, n, capacity, &params);
}

/* A co-run row that names one engine has the GPU and the NPU at work; one that names several is
 * their total. */
static struct prediction bandwidth(const struct catalog *c, const struct soc *soc,
                                   const struct point *p)
{
    double cap = soc->machine.ddr_peak_bytes_per_s * soc->machine.ddr_cap_frac;
    uint8_t engines[MAX_ENGINES];
    uint32_t n = engines_of(soc, p->device, engines);
    if (n == 0) {
        return predict_unknown("the SoC file has no such device");
    }
    bool corun = strstr(p->model, "corun") != NULL;
    if (n == 1 && !corun) {
        return of_file(isolated_bytes_per_s(soc, engines[0], p) / 1e9, p);
    }
    bool one = n == 1;
    if (one) {
        bool is_npu = soc->machine.devices[engines[0]].kind == DEVICE_KIND_NPU;
        int other = is_npu ? predict_device(soc, "gpu") : predict_device(soc, "npu");
        if (other < 0) {
            return predict_unknown("a co-run whose other engine is not on the machine");
        }
        engines[n++] = (uint8_t)other;
    }
    struct flow f[MAX_ENGINES];
    double most = cap;
    for (uint32_t i = 0; i < n; i++) {
        f[i] = (struct flow){isolated_bytes_per_s(soc, engines[i], p),
                             soc->machine.devices[engines[i]].ddr_weight, engines[i], 0.0};
        most = fmax(most, f[i].demand_bytes_per_s);
    }
    share(c, soc, f, n, most);
    double total = 0.0;
    for (uint32_t i = 0; i < (one ? 1 : n); i++) {
        total += f[i].share_bytes_per_s;
    }
    return predict_known(total / 1e9);
}

struct prediction predict_other(const struct catalog *c, const struct point *p)
{
    const struct soc *soc = catalog_soc(c, p->soc);
    if (p->metric == POINT_LOAD_MS) {
        return predict_load(c, p);
    }
    if (soc == NULL) {
        return predict_unknown("no file for this SoC");
    }
    switch (p->metric) {
    case POINT_BANDWIDTH_GBS:
        return bandwidth(c, soc, p);
    case POINT_POWER_W:
        /* Powers of SoC files are such rows, or means of these. */
        return predict_unknown("the SoC file's power comes from such rows: nothing is predicted");
    case POINT_GEMM_TFLOPS: {
        int d = predict_device(soc, p->device);
        if (d < 0) {
            return predict_unknown("the SoC file has no such device");
        }
        enum soc_match match;
        const struct soc_device *dev = &soc->devices[d];
        uint32_t r = soc_runtime_find(dev, p->runtime, p->weight_bits, &match);
        return of_file(dev->runtimes[r].many.flop_per_s / 1e12, p);
    }
    case POINT_KERNEL_MS:
        return predict_kernel(c, soc, p);
    case POINT_MEMORY_MIB:
        return predict_memory(c, p);
    case POINT_ENERGY_J:
        return predict_energy(c, soc, p);
    default:
        return predict_unknown("this metric is not modelled");
    }
}

struct prediction predict_row(const struct catalog *c, const struct point *p)
{
    if (!point_is_latency(p)) {
        return predict_other(c, p);
    }
    struct predict_case k;
    predict_bind(c, p, &k);
    struct prediction out = {
        .value = (double)NAN, .reason = k.reason, .low = (double)NAN, .high = (double)NAN};
    if (k.reason == NULL) {
        struct price price = predict_price(&k, p, NULL);
        out.value = point_value_of_seconds(p, price.seconds);
        out.outside = price.outside;
        out.runtime_default = k.match != SOC_MATCH_EXACT;
        out.entry = &k.soc->devices[k.device].runtimes[k.runtime];
        predict_interval(c, p, &k, price.seconds, &out);
    }
    return out;
}
