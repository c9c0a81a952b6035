/* Predictions of rows of every metric run on made-up tables and machines. Each number must follow
 * from its formula. Each reason is checked, and so are the class and the query on which an interval
 * rests. */
#include <gsl/gsl_cdf.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "experiments/validation/predict_impl.h"
#include "sim/api/contention.h"
#include "tests/helpers/suite.h"

static struct catalog c;
static struct soc *soc; /* "here": an NPU, an iGPU and a CPU */
static struct err err;

static struct soc *copy_of(const char *name, const char *as)
{
    struct soc *s = xkept(xmalloc(sizeof *s));
    *s = *catalog_soc(&c, name);
    (void)snprintf(s->machine.name, sizeof s->machine.name, "%s", as);
    s->family[0] = '\0';
    return s;
}

static void once(void)
{
    err = (struct err)ERR_INIT;
    ck_assert_int_eq(catalog_open(&c, &err), 0);
    soc = copy_of("core-ultra-5-125h", "here");
    catalog_add_soc(&c, soc);
}

static struct point row(const char *device, const char *runtime, const char *model,
                        enum point_metric metric)
{
    struct point p = {.soc = "here", .source = "", .batch = 1, .metric = metric, .value = 1e9};
    p.device = xkeep(xstrdup(device));
    p.runtime = xkeep(xstrdup(runtime));
    p.model = xkeep(xstrdup(model));
    return p;
}

/* ---- loads ---- */

static struct point reference[16];

static void add(const char *device, const char *runtime, const char *model, double ms,
                const char *source)
{
    struct point *p = &reference[c.reference.n++];
    *p = row(device, runtime, model, POINT_LOAD_MS);
    p->value = ms;
    p->source = xkeep(xstrdup(source));
}

/* The table, in which the first and the last row are of groups with others. Llama 3.2 3B has 28
 * layers, Llama 2 7B 32, TinyLlama 22. */
static void make_reference(void)
{
    c.reference = (struct points){.v = reference};
    add("igpu", "ov-2024.1", "llama-3.2-3b", 2800, "a @1");
    add("igpu", "ov-2025", "llama-2-7b compile", 6400, "b (x)");
    add("npu", "ov-2025", "llama-2-7b", 32000, "b");
    add("npu", "blobber", "blob-import-2.5GB", 2500, "c");
    add("npu", "ov-2025", "llama-2-7b graph build", 1, "d");
    add("npu", "ov-2025", "unheard-of-9b", 1, "d");
    add("igpu", "other-2025", "llama-3.2-3b", 1, "d");
    reference[c.reference.n] = row("igpu", "ov-2025", "llama-3.2-3b", POINT_TTFT_MS);
    reference[c.reference.n++].value = 1;
    add("npu", "ov-2026", "llama-3.2-3b", 7000, "d");
    add("cpu", "reader", "context binary read 0.5 GB", 1000, "e");
    add("igpu", "ov-2", "tinyllama-1.1b", 4400, "");
}

static struct prediction load(const char *device, const char *runtime, const char *model,
                              const char *source)
{
    struct point p = row(device, runtime, model, POINT_LOAD_MS);
    p.soc = "nobody's";
    p.source = xkeep(xstrdup(source));
    return predict_other(&c, &p);
}

/* The mean of ln of n values, and the sum of squares around it. */
static double spread(const double *x, int n, double *mean)
{
    *mean = 0.0;
    double squares = 0.0;
    for (int i = 0; i < n; i++) {
        *mean += log(x[i]) / n;
    }
    for (int i = 0; i < n; i++) {
        squares += (log(x[i]) - *mean) * (log(x[i]) - *mean);
    }
    return squares;
}

START_TEST(a_load_is_the_mean_of_its_group)
{
    make_reference();
    /* A layer takes 100, 200, 200 ms on iGPUs and 1000, 250 on the NPU, and a GB 1000, 2000 ms. */
    static const double igpu[] = {100, 200, 200};
    static const double npu[] = {1000, 250};
    static const double read[] = {1000, 2000};
    static const double alone[] = {1};
    double mean[3];
    double squares =
        spread(igpu, 3, &mean[0]) + spread(npu, 2, &mean[1]) + spread(read, 2, &mean[2]);
    double df = 2 + 1 + 1;
    double t = gsl_cdf_tdist_Pinv(0.975, df);
    struct prediction q = load("igpu", "ov-2030", "llama-2-7b", "");
    is_near(q.value, 32 * exp(mean[0]));
    is_near(log(q.high / q.value), t * sqrt(squares / df * (1.0 + 1.0 / 3.0)));
    is_near(log(q.value / q.low), t * sqrt(squares / df * (1.0 + 1.0 / 3.0)));
    ck_assert(q.reason == NULL && q.unseen == CONFORMAL_SOURCE);
    q = load("npu", "ov-9", "llama-3.2-3b compile", "nowhere");
    is_near(q.value, 28 * exp(mean[1]));
    is_near(log(q.high / q.value), t * sqrt(squares / df * 1.5));
    q = load("gpu", "whatever", "a blob of 4 GB", "");
    is_near(q.value, 4 * exp(mean[2]));
    /* one of its own group is left: the interval is that of the others */
    (void)alone;
    q = load("npu", "ov-9", "llama-3.2-3b", "d (again)");
    is_near(q.value, 28 * 1000);
    double less = spread(igpu, 3, &mean[0]) + spread(read, 2, &mean[2]);
    is_near(log(q.high / q.value), gsl_cdf_tdist_Pinv(0.975, 3) * sqrt(less / 3 * 2.0));
    /* Without the first 200 and 200 are left, and b has a row of the NPU as well. */
    q = load("igpu", "ov-9", "llama-3.2-3b", "a");
    is_near(q.value, 28 * 200);
    /* the last has no source, and so is left out of nothing */
    q = load("igpu", "ov-9", "llama-3.2-3b", "b");
    is_near(q.value, 28 * sqrt(100 * 200));
}
END_TEST

START_TEST(a_load_has_its_reason)
{
    make_reference();
    ck_assert_str_eq(load("npu", "ov-1", "no-such-model", "").reason, "no file for this model");
    ck_assert_str_eq(load("npu", "ov-1", "llama-2-7b of a phase", "").reason,
                     "a phase of loading that only its name describes");
    ck_assert_str_eq(load("cpu", "ov-1", "llama-2-7b", "").reason,
                     "no other load under this toolchain on this kind of device");
    ck_assert_str_eq(load("igpu", "ov2-1", "llama-2-7b", "").reason,
                     "no other load under this toolchain on this kind of device");
    ck_assert_str_eq(load("npu", "x", "3 GB of it", "").reason,
                     "a phase of loading that only its name describes");
    /* two groups of one row each say nothing of a spread */
    c.reference.n = 0;
    add("npu", "ov-2025", "llama-2-7b", 32000, "b");
    add("igpu", "ov-2025", "llama-2-7b", 32000, "b");
    struct prediction q = load("npu", "ov-1", "llama-2-7b", "");
    is_near(q.value, 32000);
    ck_assert(isnan(q.low) && isnan(q.high));
}
END_TEST

/* ---- devices ---- */

START_TEST(a_device_is_found_by_name_then_kind)
{
    struct soc *s = copy_of("core-ultra-5-125h", "named");
    int igpu = machine_find(&s->machine, DEVICE_KIND_IGPU);
    int npu = machine_find(&s->machine, DEVICE_KIND_NPU);
    int cpu = machine_find(&s->machine, DEVICE_KIND_CPU);
    ck_assert(igpu >= 0 && npu >= 0 && cpu >= 0);
    ck_assert_int_eq(predict_device(s, "npu"), npu);
    ck_assert_int_eq(predict_device(s, "igpu"), igpu);
    ck_assert_int_eq(predict_device(s, "gpu"), igpu);
    ck_assert_int_eq(predict_device(s, "cpu"), cpu);
    ck_assert_int_eq(predict_device(s, "dsp"), -1);
    (void)snprintf(s->machine.devices[cpu].name, sizeof s->machine.devices[cpu].name, "npu");
    (void)snprintf(s->machine.devices[npu].name, sizeof s->machine.devices[npu].name, "ane");
    ck_assert_int_eq(predict_device(s, "npu"), cpu < npu || true ? cpu : npu);
    ck_assert_int_eq(predict_device(s, "ane"), npu);
    ck_assert_int_eq(predict_device(s, "cpu"), cpu);
    s->machine.devices[igpu].kind = DEVICE_KIND_GPU;
    (void)snprintf(s->machine.devices[igpu].name, sizeof s->machine.devices[igpu].name, "card");
    ck_assert_int_eq(predict_device(s, "gpu"), igpu);
    ck_assert_int_eq(predict_device(s, "igpu"), -1);
}
END_TEST

/* ---- bandwidths, powers, products ---- */

static double demand(int device)
{
    const struct soc_device *d = &soc->devices[device];
    return d->runtimes[d->fallback].many.bytes_per_s;
}

/* The shares of devices, each at its default entry's bandwidth, at the machine's cap. */
static double shared(const int *devices, uint32_t n, uint32_t count,
                     const struct contention_ops *model)
{
    struct contention_params params = c.contention_params;
    struct flow f[4];
    double cap = soc->machine.ddr_peak_bytes_per_s * soc->machine.ddr_cap_frac;
    params.latency = soc->queueing_frac;
    for (uint32_t i = 0; i < n; i++) {
        f[i] = (struct flow){demand(devices[i]), soc->machine.devices[devices[i]].ddr_weight,
                             (uint8_t)devices[i], 0.0};
        cap = fmax(cap, f[i].demand_bytes_per_s);
        params.beside[devices[i]] = soc->devices[devices[i]].beside_frac;
        params.ceiling_bytes_per_s[devices[i]] = demand(devices[i]);
    }
    model->share(f, n, cap, &params);
    double sum = 0.0;
    for (uint32_t i = 0; i < count; i++) {
        sum += f[i].share_bytes_per_s / 1e9;
    }
    return sum;
}

static struct prediction rate(const char *device, const char *model)
{
    struct point p = row(device, "nobody's runtime", model, POINT_BANDWIDTH_GBS);
    return predict_other(&c, &p);
}

START_TEST(bandwidths_are_shared)
{
    int npu = machine_find(&soc->machine, DEVICE_KIND_NPU);
    int igpu = machine_find(&soc->machine, DEVICE_KIND_IGPU);
    int cpu = machine_find(&soc->machine, DEVICE_KIND_CPU);
    soc->machine.devices[npu].ddr_weight = 1.5;
    soc->machine.devices[igpu].ddr_weight = 0.75;
    soc->queueing_frac = 0.2;
    soc->devices[npu].beside_frac = 0.1;
    soc->devices[igpu].beside_frac = 0.3;
    static const char *const models[] = {"weighted", "max-min", "latency", "beside"};
    for (int stated = 0; stated < 2; stated++) {
        for (int i = 0; i < 4; i++) {
            const struct contention_ops *ops = contention_find(models[i]);
            /* the catalog's model holds, unless the file states its own and no user did */
            c.contention = stated ? contention_find("proportional") : ops;
            (void)snprintf(soc->contention, sizeof soc->contention, "%s", stated ? models[i] : "");
            const int pair[] = {igpu, npu};
            const int turned[] = {npu, igpu};
            const int all[] = {0, 1, 2};
            is_near(rate("gpu+npu", "stream").value, shared(pair, 2, 2, ops));
            is_near(rate("npu+igpu", "corun stream").value, shared(turned, 2, 2, ops));
            is_near(rate("all", "").value, shared(all, 3, 3, ops));
            is_near(rate("npu", "corun").value, shared(turned, 2, 1, ops));
            is_near(rate("igpu", "a corun of two").value, shared(pair, 2, 1, ops));
            const int with_npu[] = {cpu, npu};
            is_near(rate("cpu", "corun").value, shared(with_npu, 2, 1, ops));
            c.contention_given = stated;
            if (stated) { /* then it holds even so */
                is_near(rate("npu", "corun").value,
                        shared(turned, 2, 1, contention_find("proportional")));
            }
            c.contention_given = false;
        }
    }
    is_near(rate("npu", "stream").value, demand(npu) / 1e9);
    is_near(rate("cpu", "solo").value, demand(cpu) / 1e9);
    ck_assert(isnan(rate("cpu", "solo").low) && isnan(rate("gpu+npu", "").high));
    static const char *const none[] = {"dsp", "gpu+", "+gpu", "gpu+dsp", "gpu++npu", ""};
    for (int i = 0; i < 6; i++) {
        bool tail = strcmp(none[i], "gpu+") == 0; /* names one */
        const char *why = rate(none[i], "stream").reason;
        ck_assert_msg(tail ? why == NULL
                           : why != NULL && strcmp(why, "the SoC file has no such device") == 0,
                      "%s: %s", none[i], why != NULL ? why : "predicted");
    }
    ck_assert_ptr_null(rate("gpu+npu+cpu+npu", "stream").reason); /* four are not too many */
}
END_TEST

START_TEST(a_pair_needs_its_other_engine)
{
    struct soc *s = copy_of("core-ultra-5-125h", "no npu");
    int npu = machine_find(&s->machine, DEVICE_KIND_NPU);
    s->machine.devices[npu].kind = DEVICE_KIND_CPU;
    (void)snprintf(s->machine.devices[npu].name, sizeof s->machine.devices[npu].name, "cores");
    catalog_add_soc(&c, s);
    struct point p = row("igpu", "x", "corun", POINT_BANDWIDTH_GBS);
    p.soc = "No_NPU";
    ck_assert_str_eq(predict_other(&c, &p).reason,
                     "a co-run whose other engine is not on the machine");
}
END_TEST

/* A number equal to the row's within a thousandth was taken from it. */
START_TEST(what_was_read_from_a_row_predicts_nothing)
{
    int npu = machine_find(&soc->machine, DEVICE_KIND_NPU);
    const struct soc_device *d = &soc->devices[npu];
    double tflops = d->runtimes[d->fallback].many.flop_per_s / 1e12;
    static const char why[] = "the SoC file took this number from the row: nothing is predicted";
    for (int i = 0; i < 2; i++) {
        double number = i == 0 ? tflops : demand(npu) / 1e9;
        struct point p =
            row("npu", "nobody's runtime", "x", i == 0 ? POINT_GEMM_TFLOPS : POINT_BANDWIDTH_GBS);
        static const double off[] = {1.0, 1.0009, 0.9991, 1.0011, 0.9989};
        for (int k = 0; k < 5; k++) {
            p.value = number / off[k];
            struct prediction q = predict_other(&c, &p);
            if (k < 3) {
                ck_assert_str_eq(q.reason, why);
                ck_assert(isnan(q.value) && isnan(q.low) && isnan(q.high));
            } else {
                is_near(q.value, number);
                ck_assert_ptr_null(q.reason);
            }
        }
    }
}
END_TEST

START_TEST(every_metric_has_its_reason)
{
    static const struct {
        enum point_metric metric;
        const char *soc, *device, *why;
    } all[] = {
        {POINT_POWER_W, "here", "npu",
         "the SoC file's power comes from such rows: nothing is predicted"},
        {POINT_OTHER, "here", "npu", "this metric is not modelled"},
        {POINT_GEMM_TFLOPS, "here", "dsp", "the SoC file has no such device"},
        {POINT_KERNEL_MS, "here", "npu", "a kernel that only its name describes"},
        {POINT_ENERGY_J, "here", "npu", "energy of work that only its name describes"},
        {POINT_BANDWIDTH_GBS, "nowhere", "npu", "no file for this SoC"},
        {POINT_MEMORY_MIB, "nowhere", "npu", "no file for this SoC"},
        {POINT_TTFT_MS, "nowhere", "npu", "no file for this SoC"},
        {POINT_TTFT_MS, "here", "dsp", "the SoC file has no such device"},
        {POINT_TPOT_MS, "here", "npu", "no file for this model"},
    };
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        struct point p = row(all[i].device, "ov", "no-such-model", all[i].metric);
        p.soc = xkeep(xstrdup(all[i].soc));
        struct prediction q = predict_row(&c, &p);
        ck_assert_str_eq(q.reason, all[i].why);
        ck_assert(isnan(q.value) && isnan(q.low) && isnan(q.high) && q.entry == NULL);
    }
    struct point p = row("igpu", "ov", "llama-2-7b", POINT_TTFT_MS);
    ck_assert_str_eq(predict_row(&c, &p).reason, "the prompt's length is not stated");
    p.metric = POINT_TPOT_MS;
    ck_assert_ptr_null(predict_row(&c, &p).reason); /* a decode may begin with nothing */
    struct point kernel = row("dsp", "ov", "gemv 8x4", POINT_KERNEL_MS);
    ck_assert_str_eq(predict_other(&c, &kernel).reason, "the SoC file has no such device");
}
END_TEST

/* Weights and KV together, up to the usable share and not beyond. Ten layers of LFM2 have a state
 * of 4096 elements for each sequence, 4 bytes each. */
START_TEST(memory_holds_weights_and_keys)
{
    static const char *const models[] = {"llama-2-7b", "lfm2-1.2b"};
    static const double states[] = {0.0, 10.0 * 4096.0 * 4.0};
    struct point p = row("igpu", "ov", models[_i], POINT_TPOT_MS);
    p.weight_bits = 8;
    p.input_tokens = 1000;
    p.batch = 3;
    struct predict_case k;
    predict_bind(&c, &p, &k);
    double need = k.llm.weight_bytes + 3.0 * (1000.0 * k.llm.kv_bytes_per_token + states[_i]);
    soc->machine.memory_usable_frac = 0.5;
    soc->machine.memory_bytes = 2.0 * need * (1.0 + 1e-9);
    predict_bind(&c, &p, &k);
    ck_assert_ptr_null(k.reason);
    soc->machine.memory_bytes = 2.0 * need * (1.0 - 1e-9);
    predict_bind(&c, &p, &k);
    ck_assert_str_eq(k.reason, "weights and KV exceed the usable share of memory");
}
END_TEST

static void same_interval(const struct prediction *q, const struct conformal_query *asked,
                          double value)
{
    struct conformal_interval x = conformal_of(&c.residuals, asked, 0.95);
    is_near(q->low, value * x.low_factor);
    is_near(q->high, value * x.high_factor);
}

/* launch + max(flop / P, bytes / B), with what an entry's fill adds where there are several rows.
 * Widths that a row does not state are 16 bits. */
START_TEST(a_product_has_a_formula_and_an_interval)
{
    struct soc_device *d = &soc->devices[machine_find(&soc->machine, DEVICE_KIND_NPU)];
    struct soc_runtime *r = &d->runtimes[d->fallback];
    r->many = (struct soc_curve){.flop_per_s = 3e12, .bytes_per_s = 60e9, .launch_s = 1e-4};
    r->one = (struct soc_curve){.flop_per_s = 2e12, .bytes_per_s = 50e9, .launch_s = 2e-4};
    r->fill_rows = 7;
    r->width_fill = 11;
    static const struct {
        const char *text;
        double rows, k, n;
        uint32_t act;
    } all[] = {{"matmul 64x2048x8192", 64, 2048, 8192, 8},
               {"matmul 4x512x1024", 4, 512, 1024, 0},
               {"gemv 8192x2048", 1, 2048, 8192, 32},
               {"matmul 1x2048x8192", 1, 2048, 8192, 16},
               {"matmul 200x4096x4096", 200, 4096, 4096, 16}};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        struct point p = row("npu", "nobody's runtime", all[i].text, POINT_KERNEL_MS);
        p.act_bits = all[i].act;
        struct prediction q = predict_other(&c, &p);
        bool one = all[i].rows == 1;
        double weights = all[i].k * all[i].n;
        double act_bytes = (all[i].act > 0 ? all[i].act : 16) / 8.0;
        double fill = one ? 1.0 : (1.0 + 7.0 / all[i].rows) * (1.0 + 11.0 / all[i].k);
        double compute = 2.0 * all[i].rows * weights * fill / (one ? 2e12 : 3e12);
        double memory =
            (2.0 * weights + act_bytes * all[i].rows * (all[i].k + all[i].n)) / (one ? 50e9 : 60e9);
        double ms = 1e3 * ((one ? 2e-4 : 1e-4) + fmax(compute, memory));
        is_near(q.value, ms);
        ck_assert(q.runtime_default && q.unseen == CONFORMAL_RUNTIME && q.reason == NULL);
        struct conformal_query asked = {.soc = "here",
                                        .family = "",
                                        .kind = DEVICE_KIND_NPU,
                                        .phase = one                 ? CONFORMAL_DECODE
                                                 : all[i].rows < 100 ? CONFORMAL_SHORT_PREFILL
                                                                     : CONFORMAL_PREFILL,
                                        .weights = weights,
                                        .tokens = all[i].rows,
                                        .left = CONFORMAL_RUNTIME};
        same_interval(&q, &asked, ms);
        /* by its own entry, which has been fitted or not */
        p.runtime = xkeep(xstrdup(r->runtime));
        p.weight_bits = r->weight_bits;
        for (int fitted = 0; fitted < 2; fitted++) {
            r->start.given = fitted;
            q = predict_other(&c, &p);
            asked.left = fitted ? CONFORMAL_MODEL : CONFORMAL_SOC;
            ck_assert(!q.runtime_default && q.unseen == asked.left);
            same_interval(&q, &asked, q.value);
        }
    }
    static const char *const none[] = {"matmul 64x2048", "matmul 0x8x8",  "gemv 8x0",  "gemv 0x8",
                                       "gemv 8",         "matmul 8x8x8x", "gemv 8x8 ", "llama"};
    for (int i = 0; i < 8; i++) {
        struct point p = row("npu", "x", none[i], POINT_KERNEL_MS);
        bool blank = i == 6; /* a blank at the end is no word */
        ck_assert_msg((predict_other(&c, &p).reason == NULL) == blank, "%s", none[i]);
    }
}
END_TEST

/* ---- entries ---- */

/* A device has entries a-1 (4 and 8 bits, the default at 4) and b-1 (8). A row of a-1 is predicted
 * by b-1, as if a-1 were not there, in any order of the entries. */
START_TEST(the_entry_without_ones_own)
{
    struct soc_device *d = &soc->devices[machine_find(&soc->machine, DEVICE_KIND_IGPU)];
    struct soc_runtime base = d->runtimes[0];
    static const char *const names[] = {"a-1", "b-1", "a-1", "c-1"};
    static const uint32_t bits[] = {4, 8, 8, 16};
    d->n_runtimes = 4;
    for (uint32_t i = 0; i < 4; i++) {
        d->runtimes[i] = base;
        (void)snprintf(d->runtimes[i].runtime, sizeof d->runtimes[i].runtime, "%s", names[i]);
        d->runtimes[i].weight_bits = bits[i];
    }
    d->fallback = 1;
    struct point p = row("igpu", "a-1", "llama-2-7b", POINT_TPOT_MS);
    p.weight_bits = 8;
    struct predict_case k;
    predict_bind(&c, &p, &k);
    ck_assert(k.runtime == 2 && k.match == SOC_MATCH_EXACT);
    predict_bind_other(&c, &p, &k);
    ck_assert(k.runtime == 1 && k.match != SOC_MATCH_EXACT && k.reason == NULL);
    d->fallback = 3;
    p.weight_bits = 4;
    predict_bind_other(&c, &p, &k);
    ck_assert_msg(k.runtime == 3 && k.match == SOC_MATCH_OTHER, "%u %d %s", k.runtime, k.match,
                  k.reason);
    p.runtime = "z-1"; /* none of its own: as it is */
    predict_bind_other(&c, &p, &k);
    ck_assert(k.runtime == 0 && k.match == SOC_MATCH_OTHER);
    d->n_runtimes = 1;
    d->fallback = 0;
    p.runtime = "a-1";
    predict_bind_other(&c, &p, &k);
    ck_assert_str_eq(k.reason, "the device has no other runtime");
}
END_TEST

/* 4-bit files of OpenVINO's own tables have recipes: s weights at 4 bits with a scale, and perhaps
 * a zero point, in each group, the others at 8. Other widths and tools have none. */
START_TEST(a_recipe_decides_a_tables_weights)
{
    static struct catalog_recipe recipe = {"Llama 2-7B", 1.0, 8.0,
                                           0.0}; /* 4 bits and 16 of 8 weights */
    c.recipes = &recipe;
    c.n_recipes = 1;
    is_near(catalog_recipe_bytes(&c, "llama-2-7b"), 0.75);
    ck_assert_double_eq(catalog_recipe_bytes(&c, "llama-2-13b"), 0.0);
    struct point p = row("igpu", "openvino-2025.4", "llama-2-7b", POINT_TPOT_MS);
    struct predict_case with;
    struct predict_case without;
    for (int i = 0; i < 3; i++) { /* the table's; another tool's; another width */
        p.weight_bits = i == 2 ? 8 : 4;
        p.runtime = i == 1 ? "openvino-x" : "openvino-2025.4";
        c.n_recipes = 1;
        predict_bind(&c, &p, &with);
        c.n_recipes = 0;
        predict_bind(&c, &p, &without);
        double extra = with.llm.weight_bytes - without.llm.weight_bytes;
        double usual = soc_format_of_width(4).body_bytes;
        const struct soc_runtime *r = &soc->devices[with.device].runtimes[with.runtime];
        usual = r->weight_bits == 4 ? r->format.body_bytes : usual;
        if (i == 0) {
            is_near(extra, (0.75 - usual) * with.llm.body_weights);
        } else {
            ck_assert_double_eq(extra, 0.0);
        }
    }
}
END_TEST

/* A file of Llama 2 7B with 0.7 bytes for each of its weights, embedding included, has 0.7 times as
 * many bytes. Body and head stay as unlike as the format has them. Gemma 2's embedding is its head,
 * and counts once. */
START_TEST(a_file_decides_its_weights)
{
    static const char *const models[] = {"llama-2-7b", "gemma-2-2b"};
    for (int i = 0; i < 2; i++) {
        struct point p = row("igpu", "ov", models[i], POINT_TPOT_MS);
        struct predict_case usual, own;
        p.weight_bits = 4;
        predict_bind(&c, &p, &usual);
        p.bytes_per_weight = 0.7;
        predict_bind(&c, &p, &own);
        is_near(own.llm.weight_bytes, 0.7 * llm_stored_weights(&own.llm));
        is_near(own.llm.head_bytes_per_weight / own.llm.body_bytes_per_weight,
                usual.llm.head_bytes_per_weight / usual.llm.body_bytes_per_weight);
        ck_assert_double_eq(own.llm.kv_bytes_per_token, usual.llm.kv_bytes_per_token);
    }
}
END_TEST

/* An entry of 4 bits whose KV has 2 bytes says so of its runtime: a row of 8 bits has them, too. An
 * entry whose KV is usual of its width says nothing of another width. */
START_TEST(a_runtime_keeps_kv_alike_at_widths_it_lacks)
{
    struct soc_device *d = &soc->devices[predict_device(soc, "igpu")];
    struct point p = row("igpu", "x", "llama-2-7b", POINT_TPOT_MS);
    struct predict_case k;
    d->n_runtimes = 1;
    d->fallback = 0;
    for (int i = 0; i < 2; i++) {
        d->runtimes[0].weight_bits = 4;
        d->runtimes[0].format = soc_format_of_width(4);
        d->runtimes[0].format.kv_bytes = i == 0 ? 2.0 : soc_format_of_width(4).kv_bytes;
        p.weight_bits = 8;
        predict_bind(&c, &p, &k);
        is_near(k.llm.kv_bytes_per_element, i == 0 ? 2.0 : 1.0);
        is_near(k.llm.body_bytes_per_weight, soc_format_of_width(8).body_bytes);
        p.weight_bits = 16;
        predict_bind(&c, &p, &k);
        is_near(k.llm.kv_bytes_per_element, 2.0);
    }
}
END_TEST

/* The last machine of a name is the one that counts; names are the same in spite of case and signs.
 */
START_TEST(names_are_found_without_what_does_not_count)
{
    ck_assert_ptr_eq(catalog_soc(&c, "He re"), soc);
    struct soc *again = copy_of("core-ultra-5-125h", "HERE");
    catalog_add_soc(&c, again);
    ck_assert_ptr_eq(catalog_soc(&c, "here"), again);
    ck_assert_ptr_null(catalog_soc(&c, "heres"));
    ck_assert_ptr_null(catalog_soc(&c, "her"));
    const struct llm *m = catalog_llm(&c, "llama-2-7b");
    ck_assert_ptr_nonnull(m);
    static const char *const same[] = {"Llama_2_7B_chat", "llama-2-7b-chat", "llama 2/7b",
                                       "llama-2-7b-instruct-gptq"};
    for (int i = 0; i < 4; i++) {
        ck_assert_msg(catalog_llm(&c, same[i]) == m, "%s", same[i]);
    }
    ck_assert_ptr_null(catalog_llm(&c, "llama-2-7b-unheard"));
    ck_assert_ptr_null(catalog_llm(&c, "chat"));
}
END_TEST

static const struct suite_row suite[] = {
    CASE("predictions", .once = once),
    TEST(a_load_is_the_mean_of_its_group),
    TEST(a_load_has_its_reason),
    TEST(a_device_is_found_by_name_then_kind),
    TEST(bandwidths_are_shared),
    TEST(a_pair_needs_its_other_engine),
    TEST(what_was_read_from_a_row_predicts_nothing),
    TEST(every_metric_has_its_reason),
    LOOP(memory_holds_weights_and_keys, 2),
    TEST(a_product_has_a_formula_and_an_interval),
    TEST(the_entry_without_ones_own),
    TEST(a_recipe_decides_a_tables_weights),
    TEST(a_file_decides_its_weights),
    TEST(a_runtime_keeps_kv_alike_at_widths_it_lacks),
    TEST(names_are_found_without_what_does_not_count),
};
SUITE_MAIN("predictions", suite)
