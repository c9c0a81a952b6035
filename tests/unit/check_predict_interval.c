/* The class and the ends of a prediction's interval: what was not seen, whose rows it rests on, and
 * a token's energy. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "experiments/validation/predict_impl.h"
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
    struct point p = {.source = "", .soc = "here", .batch = 1, .metric = metric, .value = 1e9};
    p.device = xkeep(xstrdup(device));
    p.runtime = xkeep(xstrdup(runtime));
    p.model = xkeep(xstrdup(model));
    return p;
}

/* ---- the class of an interval ---- */

/* An entry without a version was of some version of its runtime. A row that states its own is of
 * that one only where rows of it were fitted. */
START_TEST(a_scaled_entry_without_a_version_is_not_the_rows_version)
{
    struct soc_device *d = &soc->devices[machine_find(&soc->machine, DEVICE_KIND_IGPU)];
    struct soc_runtime *r = &d->runtimes[d->fallback];
    struct soc_runtime was = *r;
    memset(r->error_sd, 0, sizeof r->error_sd);
    static const struct {
        const char *entry, *row;
        bool fitted;
        enum conformal_left left;
    } all[] = {
        {"tool", "tool-7", false, CONFORMAL_RUNTIME}, {"tool", "tool", false, CONFORMAL_SOC},
        {"tool", "tool-fast", false, CONFORMAL_SOC},  {"tool-7", "tool-7.2", false, CONFORMAL_SOC},
        {"tool", "tool-7", true, CONFORMAL_MODEL},
    };
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        struct point p = row("igpu", all[i].row, "llama-2-7b", POINT_TPOT_MS);
        p.weight_bits = r->weight_bits;
        p.input_tokens = 512;
        p.source = "";
        (void)snprintf(r->runtime, sizeof r->runtime, "%s", all[i].entry);
        r->start.given = all[i].fitted;
        struct prediction q = predict_row(&c, &p);
        ck_assert_msg(q.unseen == all[i].left, "%zu: %s", i, conformal_left_names[q.unseen]);
        ck_assert(!q.runtime_default);
    }
    *r = was;
}
END_TEST

/* Its own entry, fitted or not; of a publication that the fits know or do not; of another runtime.
 */
START_TEST(an_interval_is_of_the_class_that_was_not_seen)
{
    struct soc_device *d = &soc->devices[machine_find(&soc->machine, DEVICE_KIND_IGPU)];
    struct soc_runtime *r = &d->runtimes[d->fallback];
    memset(r->error_sd, 0, sizeof r->error_sd);
    static struct conformal_row known[3];
    known[0] = (struct conformal_row){.soc = "here", .kind = DEVICE_KIND_IGPU, .source = "paper"};
    known[1] = (struct conformal_row){
        .soc = "here", .kind = DEVICE_KIND_IGPU, .source = "other", .left = CONFORMAL_SOURCE};
    known[2] = (struct conformal_row){.soc = "here", .kind = DEVICE_KIND_IGPU, .source = "last"};
    static const struct {
        const char *source;
        bool exact, fitted, table;
        enum conformal_left left;
    } all[] = {
        {"paper @2", true, true, true, CONFORMAL_MODEL},
        {"last", true, true, true, CONFORMAL_MODEL},
        {"", true, true, true, CONFORMAL_MODEL},
        {"", true, true, false, CONFORMAL_MODEL},
        {"pape", true, true, true, CONFORMAL_SOURCE},
        {"papers", true, true, true, CONFORMAL_SOURCE},
        {"other", true, true, true, CONFORMAL_SOURCE},
        {"paper", true, false, true, CONFORMAL_SOC},
        {"paper", false, true, true, CONFORMAL_RUNTIME},
        {"paper", false, false, true, CONFORMAL_RUNTIME},
    };
    struct conformal real = c.residuals;
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        struct point p = row("igpu", all[i].exact ? r->runtime : "nobody's runtime", "llama-2-7b",
                             POINT_TPOT_MS);
        p.weight_bits = r->weight_bits;
        p.input_tokens = 512;
        p.source = xkeep(xstrdup(all[i].source));
        r->start.given = all[i].fitted;
        c.residuals = all[i].table ? (struct conformal){.v = known, .n = 3} : (struct conformal){0};
        struct prediction q = predict_row(&c, &p);
        ck_assert_msg(q.unseen == all[i].left, "%zu: %s", i, conformal_left_names[q.unseen]);
        ck_assert(q.runtime_default != all[i].exact);
        c.residuals = real;
    }
    /* another SoC's row, or another device's, makes nobody known */
    r->start.given = true;
    c.residuals = (struct conformal){.v = known, .n = 3};
    struct point p = row("igpu", r->runtime, "llama-2-7b", POINT_TPOT_MS);
    p.weight_bits = r->weight_bits;
    p.source = "paper";
    known[0].soc = "there";
    ck_assert_int_eq(predict_row(&c, &p).unseen, CONFORMAL_SOURCE);
    known[0].soc = "here";
    known[0].kind = DEVICE_KIND_NPU;
    ck_assert_int_eq(predict_row(&c, &p).unseen, CONFORMAL_SOURCE);
    c.residuals = real;
}
END_TEST

/* Times and rates: the ends change places. The spread of the entry's own rows comes first, where
 * the entry is the row's. */
START_TEST(an_interval_is_of_the_passs_time)
{
    struct soc_device *d = &soc->devices[machine_find(&soc->machine, DEVICE_KIND_IGPU)];
    struct soc_runtime *r = &d->runtimes[d->fallback];
    static const enum point_metric metrics[] = {POINT_TTFT_MS, POINT_TPOT_MS, POINT_PREFILL_TOK_S,
                                                POINT_DECODE_TOK_S};
    static const struct {
        uint32_t tokens;
        enum conformal_phase prefill, decode;
    } lengths[] = {{64, CONFORMAL_SHORT_PREFILL, CONFORMAL_DECODE},
                   {1024, CONFORMAL_PREFILL, CONFORMAL_DECODE}};
    int told = 0;
    r->measured_rows = 9;
    r->start.given = true;
    for (int own = 0; own < 2; own++) {
        for (int small = 0; small < 2; small++) {
            for (int phase = 0; phase < 3; phase++) {
                r->error_sd[small][phase] = own ? 0.1 + 0.2 * small + 0.05 * phase : 0.0;
            }
        }
        for (int i = 0; i < 32; i++) {
            const uint32_t batch = 1 + (uint32_t)(i / 8 % 2);
            const char *name = i / 16 == 0 ? "llama-2-7b" : "tinyllama-1.1b";
            const bool exact = i % 3 != 2;
            struct point p =
                row("igpu", exact ? r->runtime : "nobody's runtime", name, metrics[i % 4]);
            p.weight_bits = r->weight_bits;
            p.input_tokens = lengths[i / 4 % 2].tokens;
            p.batch = batch;
            struct predict_case k;
            predict_bind(&c, &p, &k);
            ck_assert_ptr_null(k.reason);
            double s = predict_price(&k, &p, NULL).seconds;
            double per = i % 4 == 2 ? p.input_tokens * (double)batch : i % 4 == 3 ? batch : 1e3;
            double scale[3] = {1.0};
            enum conformal_phase phase =
                i % 2 == 0 ? lengths[i / 4 % 2].prefill : lengths[i / 4 % 2].decode;
            struct conformal_query asked = {.soc = "here",
                                            .family = "",
                                            .kind = DEVICE_KIND_IGPU,
                                            .phase = phase,
                                            .weights = k.llm.body_weights + k.llm.head_weights,
                                            .tokens = p.input_tokens,
                                            .left = exact ? CONFORMAL_MODEL : CONFORMAL_RUNTIME,
                                            .without_model = k.llm.name};
            if (own && exact) {
                double sd = 0.1 + 0.2 * (i / 16) + 0.05 * phase;
                scale[1] = exp(-1.959964 * sd);
                scale[2] = exp(1.959964 * sd);
            } else {
                struct conformal_interval x = conformal_of(&c.residuals, &asked, 0.95);
                scale[1] = x.n > 0 ? x.low_factor : (double)NAN;
                scale[2] = x.n > 0 ? x.high_factor : (double)NAN;
            }
            double v[3];
            for (int e = 0; e < 3; e++) {
                v[e] = i % 4 < 2 ? per * s * scale[e] : per / (s * scale[e]);
            }
            struct prediction q = predict_row(&c, &p);
            ck_assert_double_eq_tol(q.value, v[0], 1e-9 * v[0]);
            if (isnan(scale[1])) { /* no row of the table says anything */
                ck_assert(isnan(q.low) && isnan(q.high));
            } else {
                ck_assert_double_eq_tol(q.low, fmin(v[1], v[2]), 1e-6 * v[0]);
                ck_assert_double_eq_tol(q.high, fmax(v[1], v[2]), 1e-6 * v[0]);
                told++;
            }
            ck_assert(q.entry == &d->runtimes[k.runtime]);
        }
    }
    ck_assert_int_ge(told, 48);
}
END_TEST

/* A token's energy is the device's watts, and beyond a rail those of the idle machine, times its
 * time. */
START_TEST(a_tokens_energy_is_watts_over_its_time)
{
    int igpu = machine_find(&soc->machine, DEVICE_KIND_IGPU);
    struct device *d = &soc->machine.devices[igpu];
    d->prefill_watts = 30;
    d->decode_watts = 20;
    soc->machine.idle_watts = 5;
    for (int i = 0; i < 8; i++) {
        bool prefill = i % 2 == 0;
        bool rail = i / 2 % 2 == 0;
        uint32_t batch = 1 + 3 * (uint32_t)(i / 4);
        soc->devices[igpu].meter = rail ? SOC_METER_RAIL : SOC_METER_BATTERY;
        struct point p = row("igpu", "nobody's runtime",
                             prefill ? "llama-2-7b prefill per token (x)"
                                     : "llama-2-7b at 512, decode per token",
                             POINT_ENERGY_J);
        p.weight_bits = 8;
        p.input_tokens = 512;
        p.batch = batch;
        struct point time = p;
        time.model = "llama-2-7b";
        time.metric = prefill ? POINT_TTFT_MS : POINT_TPOT_MS;
        struct prediction t = predict_row(&c, &time);
        double per = (prefill ? 30.0 : 20.0) + (rail ? 0.0 : 5.0);
        per /= 1e3 * batch * (prefill ? 512.0 : 1.0);
        struct prediction q = predict_other(&c, &p);
        is_near(q.value, per * t.value);
        is_near(q.low, per * t.low);
        is_near(q.high, per * t.high);
        ck_assert(q.unseen == t.unseen && q.runtime_default && q.reason == NULL);
    }
    struct point p = row("igpu", "x", "no-such-model decode per token", POINT_ENERGY_J);
    ck_assert_str_eq(predict_other(&c, &p).reason, "no file for this model");
}
END_TEST

static const struct suite_row suite[] = {
    CASE("intervals of predictions", .once = once),
    TEST(a_scaled_entry_without_a_version_is_not_the_rows_version),
    TEST(an_interval_is_of_the_class_that_was_not_seen),
    TEST(an_interval_is_of_the_passs_time),
    TEST(a_tokens_energy_is_watts_over_its_time),
};
SUITE_MAIN("intervals of predictions", suite)
