/* Analyses of published points, computed a second time: what no form can know, groups by length,
 * and powers with their rows left out in turn. */
#include <gsl/gsl_cdf.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "experiments/validation/energy.h"
#include "experiments/validation/noise_floor.h"
#include "experiments/validation/points_score.h"
#include "experiments/validation/predict_impl.h"
#include "tests/helpers/suite.h"
#include "tests/helpers/tempfile.h"

static struct catalog c;
static struct err err;

static void once(void)
{
    err = (struct err)ERR_INIT;
    ck_assert_int_eq(catalog_open(&c, &err), 0);
}

/* ---- twins and versions ---- */

static struct point point_of(const char *model, double ms)
{
    struct point p = {.soc = "core-ultra-7-155h",
                      .device = "igpu",
                      .runtime = "openvino-2025.0",
                      .weight_bits = 8,
                      .act_bits = 16,
                      .input_tokens = 1000,
                      .batch = 1,
                      .metric = POINT_TPOT_MS,
                      .value = ms};
    p.model = xkeep(xstrdup(model));
    return p;
}

static struct llm models[2];
static struct catalog_llm names[2] = {{"one", &models[0], false}, {"two", &models[1], false}};

static struct noise_floor floor_of(struct point *p, size_t n, enum conformal_phase phase)
{
    struct points points = {.v = p, .n = n};
    return noise_floor_of(&c, &points, DEVICE_KIND_IGPU, phase);
}

/* Two rows that are the same but for one thing: twins only where it does not matter, in either
 * order. */
START_TEST(twins_are_the_same_in_everything_that_counts)
{
    static const struct {
        const char *what;
        bool twins, versions;
    } all[] = {
        {"nothing", true, false},      {"layers", false, false},     {"hidden", false, false},
        {"heads", false, false},       {"kv", false, false},         {"head_dim", false, false},
        {"ffn", false, false},         {"gated", false, false},      {"experts", false, false},
        {"vocab 1.09", true, false},   {"vocab 1.11", false, false}, {"bits", false, false},
        {"act", false, false},         {"batch", false, false},      {"tokens 1019", true, false},
        {"tokens 1021", false, false}, {"version", false, true},     {"toolchain", false, false},
        {"longer", false, false},      {"soc", false, false},        {"device", false, false},
        {"metric", true, false},       {"phase", false, false},      {"model", true, false},
    };
    c.names = names;
    c.n_names = 2;
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        for (int turn = 0; turn < 2; turn++) {
            const char *w = all[i].what;
            struct llm base = {.n_layers = 32,
                               .hidden = 4096,
                               .heads = 32,
                               .kv_heads = 8,
                               .head_dim = 128,
                               .ffn_hidden = 11008,
                               .gated_ffn = true,
                               .n_experts = 0,
                               .vocab = 10000,
                               .weight_bits = 8,
                               .act_bits = 16};
            models[0] = models[1] = base;
            (void)snprintf(models[0].name, sizeof models[0].name, "one");
            (void)snprintf(models[1].name, sizeof models[1].name, "%s",
                           strcmp(w, "model") == 0 ? "two" : "one");
            struct llm *m = &models[1];
            struct point p[2] = {point_of("one", 100), point_of("two", 121)};
            struct point *q = &p[1];
            m->n_layers += strcmp(w, "layers") == 0;
            m->hidden += strcmp(w, "hidden") == 0;
            m->heads += strcmp(w, "heads") == 0;
            m->kv_heads += strcmp(w, "kv") == 0;
            m->head_dim += strcmp(w, "head_dim") == 0;
            m->ffn_hidden += strcmp(w, "ffn") == 0;
            m->gated_ffn = strcmp(w, "gated") != 0;
            m->n_experts += strcmp(w, "experts") == 0 ? 4 : 0;
            m->vocab = strcmp(w, "vocab 1.09") == 0   ? 10900
                       : strcmp(w, "vocab 1.11") == 0 ? 11100
                                                      : 10000;
            q->weight_bits = strcmp(w, "bits") == 0 ? 4 : 8;
            q->act_bits = strcmp(w, "act") == 0 ? 8 : 16;
            q->batch = strcmp(w, "batch") == 0 ? 2 : 1;
            q->input_tokens = strcmp(w, "tokens 1019") == 0   ? 1020
                              : strcmp(w, "tokens 1021") == 0 ? 1022
                                                              : 1000;
            q->runtime = xkeep(xformat("%s", strcmp(w, "version") == 0     ? "openvino-2024.1"
                                             : strcmp(w, "toolchain") == 0 ? "ipex-2025.0"
                                             : strcmp(w, "longer") == 0    ? "openvinos-2025.0"
                                                                           : "openvino-2025.0"));
            q->soc = xkeep(
                xformat("%s", strcmp(w, "soc") == 0 ? "core-ultra-5-125h" : "core-ultra-7-155h"));
            q->device = xkeep(xformat("%s", strcmp(w, "device") == 0 ? "npu" : "igpu"));
            if (strcmp(w, "metric") == 0) { /* one step of one stream: 1000 / 121 a second */
                q->metric = POINT_DECODE_TOK_S;
                q->value = 1000.0 / 121;
            } else if (strcmp(w, "phase") == 0) {
                q->metric = POINT_TTFT_MS;
            }
            if (turn == 1) {
                struct point first = p[0];
                p[0] = p[1];
                p[1] = first;
            }
            struct noise_floor x = floor_of(p, 2, CONFORMAL_DECODE);
            ck_assert_msg(x.twins == (all[i].twins ? 2 : 0), "%s: %zu twins", w, x.twins);
            ck_assert_msg(x.twin_groups == all[i].twins, "%s: groups", w);
            ck_assert_msg(x.versions == (size_t)all[i].versions, "%s: versions", w);
            /* 100 and 121 are around 110. */
            is_near(x.twin_median_frac, all[i].twins ? 1.0 / 11 : (double)NAN);
            is_near(x.twin_p90_frac, all[i].twins ? 0.1 : (double)NAN);
            is_near(x.version_median, all[i].versions ? 1.21 : (double)NAN);
            is_near(x.version_p90, all[i].versions ? 1.21 : (double)NAN);
        }
    }
}
END_TEST

/* Twins of three and of two, alone, and versions of each pair; rows of another phase, kind, model
 * or metric have no part, wherever they are. */
START_TEST(the_floor_is_of_all_groups)
{
    struct point p[12];
    size_t n = 0;
    p[n++] = point_of("llama-2-7b", 1000); /* no decode of the phase that is asked for */
    p[n - 1].metric = POINT_TTFT_MS;
    p[n++] = point_of("llama-2-7b", 100);
    p[n++] = point_of("no-such-model", 5);
    p[n++] = point_of("llama-2-7b", 125);
    p[n++] = point_of("phi-2", 30);
    p[n++] = point_of("llama-2-7b", 80);
    p[n++] = point_of("llama-2-7b", 5);
    p[n - 1].metric = POINT_BANDWIDTH_GBS;
    p[n++] = point_of("phi-2", 40);
    p[n - 1].runtime = "openvino-2024.6";
    p[n++] = point_of("phi-2", 90);
    p[n - 1].runtime = "openvino-2023.6";
    p[n++] = point_of("llama-2-7b", 64);
    p[n - 1].device = "npu";
    p[n++] = point_of("phi-2", 50);
    p[n - 1].runtime = "openvino-2024.6";
    struct noise_floor x = floor_of(p, n, CONFORMAL_DECODE);
    /* 100, 125 and 80 are around 100: 0, 0.25, 0.2. 40 and 50 are around sqrt 2000. */
    double middle = sqrt(2000);
    double e[5] = {0, 40 / middle - 1, 0.2, 50 / middle - 1, 0.25};
    e[1] = fabs(e[1]);
    ck_assert(x.twins == 5 && x.twin_groups == 2);
    is_near(x.twin_median_frac, fabs(e[3])); /* 0 .1056 .1180 .2 .25: the third */
    is_near(x.twin_p90_frac, 0.25);
    /* Pairs of 30, 40, 90, 50 of three versions, and 40 and 50 of one, have 4/3 3 5/3 9/4 9/5. */
    ck_assert_uint_eq(x.versions, 5);
    is_near(x.version_median, 1.8);
    is_near(x.version_p90, 3);
    x = floor_of(p, n, CONFORMAL_SHORT_PREFILL);
    ck_assert(x.twins == 0 && x.versions == 0);
}
END_TEST

/* ---- groups by length ---- */

START_TEST(prompts_are_grouped_at_their_limits)
{
    static const struct {
        uint32_t tokens;
        const char *group;
    } all[] = {{0, "not stated"},         {1, "1 to 64 tokens"},       {64, "1 to 64 tokens"},
               {65, "65 to 1500 tokens"}, {1500, "65 to 1500 tokens"}, {1501, "over 1500 tokens"}};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        struct point p = point_of("llama-2-7b", 100);
        p.input_tokens = all[i].tokens;
        p.metric_name = "tpot_ms";
        struct points points = {.v = &p, .n = 1};
        struct prediction q = predict_known(110);
        struct points_scores s;
        points_score(&points, &q, &s);
        static const char *const by[] = {"all",    "soc",        "device", "metric",
                                         "prompt", "parameters", "model"};
        const char *const keys[] = {"latency rows", "core-ultra-7-155h", "igpu",      "tpot_ms",
                                    all[i].group,   "the runtime's own", "llama-2-7b"};
        ck_assert_uint_eq(s.n, 7);
        for (int k = 0; k < 7; k++) {
            ck_assert_str_eq(s.v[k].by, by[k]);
            ck_assert_str_eq(s.v[k].key, keys[k]);
            is_near(s.v[k].median, 0.1);
            is_near(s.v[k].bias, 0.1);
            ck_assert(s.v[k].n == 1 && s.v[k].predicted == 1 && isnan(s.v[k].pearson));
        }
    }
}
END_TEST

/* ---- powers ---- */

enum { POWERS = 24 };
static struct energy_row powers[POWERS];
static struct energy_rows rows = {powers, POWERS};

/* Machines with several publications, meters, toolchains and models; one has no prediction. */
static void make_powers(void)
{
    for (int i = 0; i < POWERS; i++) {
        static const char *const runtimes[] = {"ov-2025", "ov.2024", "ipex", "ovx-1"};
        struct energy_row *r = &powers[i];
        *r = (struct energy_row){.kind = i % 3 == 0   ? DEVICE_KIND_NPU
                                         : i % 3 == 1 ? DEVICE_KIND_IGPU
                                                      : DEVICE_KIND_CPU,
                                 .gbs = 10.0 + 7 * (i % 5),
                                 .rate_tok_s = i % 7 == 3 ? (double)NAN : 8.0 + i % 4,
                                 .rate_gbs = i % 7 == 3 ? (double)NAN : 12.0 + 5 * (i % 6),
                                 .rate_half = i % 7 == 3 ? (double)NAN : 0.1 + 0.01 * (i % 5),
                                 .reason = i == 5 || i == 12 ? "no file for this model" : NULL};
        r->p.meter = i % 8 == 7 ? SOC_METER_BOARD : i == 3 ? SOC_METER_WALL : SOC_METER_PACKAGE;
        r->p.idle_watts = i % 4 == 0 ? 2.5 : -1.0;
        r->p.watts = 9.0 + (i % 3) * 4.0 + 0.15 * r->gbs + 0.7 * (i * 7 % 11);
        r->p.tok_s = 5.0 + i % 9;
        r->p.soc = xkeep(xformat("soc-%d", i % 5));
        r->p.source = xkeep(xformat("source %d @%d", i % 6, i));
        r->p.model = xkeep(xformat("m%d", i % 4));
        r->p.runtime = xkeep(xstrdup(runtimes[i % 4]));
    }
}

static double plain(const struct energy_watts *w, const struct energy_row *r, double gbs)
{
    return (r->p.idle_watts < 0 ? 0 : r->p.idle_watts) + w->device[r->kind] * 1e9 * gbs;
}

static bool one_name(const char *a, const char *b)
{
    char x[64];
    char y[64];
    (void)snprintf(x, sizeof x, "%s", a);
    (void)snprintf(y, sizeof y, "%s", b);
    x[strcspn(x, "-.")] = y[strcspn(y, "-.")] = '\0';
    return strcmp(x, y) == 0;
}

static bool is_own(const struct energy_row *q, const struct energy_row *of)
{
    return q->reason == NULL && !q->left_out && q->p.meter == of->p.meter && q->kind == of->kind &&
           strcmp(q->p.soc, of->p.soc) == 0;
}

static bool was_read(const struct energy_row *of)
{
    bool read = false;
    for (int i = 0; i < POWERS; i++) {
        read = read || is_own(&powers[i], of);
    }
    return read;
}

static double of_own(const struct energy_watts *w, const struct energy_row *of, double gbs)
{
    for (int exact = 1; exact >= 0; exact--) {
        double sum = 0;
        double n = 0;
        for (int i = 0; i < POWERS; i++) {
            const struct energy_row *q = &powers[i];
            if (is_own(q, of) && (!exact || one_name(q->p.runtime, of->p.runtime))) {
                sum += log(q->p.watts / plain(w, q, q->gbs));
                n++;
            }
        }
        if (n > 0 || !exact) {
            return plain(w, of, gbs) * exp(sum / (n + 1));
        }
    }
    return 0;
}

static bool same_source(int i, int k)
{
    return i % 6 == k % 6 && i % 5 == k % 5;
}

static bool same_group(int i, int k, int left)
{
    return left == ENERGY_SOURCE ? same_source(i, k) : i % 5 == k % 5;
}

START_TEST(each_power_is_predicted_without_its_own)
{
    make_powers();
    double watts[ENERGY_LEFTS][POWERS];
    double joules[ENERGY_LEFTS][POWERS];
    double share[ENERGY_LEFTS][POWERS]; /* idle of all: what the rate's error leaves in joules */
    bool read[ENERGY_LEFTS][POWERS];
    for (int left = 0; left < ENERGY_LEFTS; left++) {
        for (int i = 0; i < POWERS; i++) {
            struct energy_row *r = &powers[i];
            for (int k = 0; k < POWERS; k++) {
                powers[k].left_out =
                    left == ENERGY_SOURCE ? same_source(i, k) : i % 5 == k % 5 && i % 4 == k % 4;
            }
            struct energy_watts w = energy_fit(&rows, r->p.meter);
            if (w.n < 2) { /* a meter without rows has a package's numbers */
                w = energy_fit(&rows, SOC_METER_PACKAGE);
            }
            bool known = r->reason == NULL;
            watts[left][i] = known ? of_own(&w, r, r->gbs) : (double)NAN;
            joules[left][i] = known ? of_own(&w, r, r->rate_gbs) / r->rate_tok_s : (double)NAN;
            share[left][i] = fmax(r->p.idle_watts, 0) / plain(&w, r, r->rate_gbs);
            read[left][i] = was_read(r);
        }
    }
    for (int k = 0; k < POWERS; k++) {
        powers[k].left_out = false;
    }
    energy_leave_out(&rows);
    for (int left = 0; left < ENERGY_LEFTS; left++) {
        for (int i = 0; i < POWERS; i++) {
            is_near(powers[i].left[left].watts, watts[left][i]);
            is_near(powers[i].left[left].joules, joules[left][i]);
            double sum = 0;
            double groups = 0;
            for (int k = 0; k < POWERS; k++) {
                if (same_group(i, k, left) || isnan(watts[left][k]) ||
                    read[left][k] != read[left][i]) {
                    continue;
                }
                double squares = 0;
                double n = 0;
                bool first = true;
                for (int j = 0; j < POWERS; j++) {
                    if (same_group(j, k, left) && !isnan(watts[left][j]) &&
                        read[left][j] == read[left][i]) {
                        first = first && j >= k;
                        squares += pow(log(watts[left][j] / powers[j].p.watts), 2);
                        n++;
                    }
                }
                sum += first ? squares / n : 0;
                groups += first;
            }
            double half = groups > 1 ? gsl_cdf_tdist_Pinv(0.975, groups - 1) * sqrt(sum / groups)
                                     : (double)NAN;
            double rate = share[left][i] * powers[i].rate_half;
            is_near(powers[i].left[left].watts_half, half);
            is_near(powers[i].left[left].joules_half, sqrt(half * half + rate * rate));
        }
    }
    for (int i = 0; i < POWERS; i++) {
        ck_assert(!powers[i].left_out);
        struct energy_watts w = energy_fit(&rows, SOC_METER_PACKAGE);
        if (powers[i].p.meter == SOC_METER_PACKAGE) {
            is_near(energy_factor(&rows, &w, &powers[i]),
                    of_own(&w, &powers[i], 3.0) / plain(&w, &powers[i], 3.0));
        }
    }
}
END_TEST

#define HEAD                                                                                       \
    "soc,device,runtime,model,weight_bits,input_tokens,phase,meter,idle_watts,watts,tok_s,"        \
    "source\n"

/* Kinds without rows have the geometric mean of those with some, whichever these are. */
START_TEST(kinds_that_nobody_measured_have_the_mean)
{
    for (unsigned set = 1; set < 1u << DEVICE_KIND_COUNT; set++) {
        size_t n = 0;
        for (int i = 0; i < POWERS; i++) {
            int kind = i % DEVICE_KIND_COUNT;
            if ((set >> kind & 1u) != 0) {
                powers[n] = (struct energy_row){.kind = (enum device_kind)kind, .gbs = 5.0 + i};
                powers[n].p.meter = SOC_METER_PACKAGE;
                powers[n].p.idle_watts = 1.0;
                powers[n].p.soc = powers[n].p.source = "s";
                powers[n++].p.watts = 1.0 + 0.25 * (kind + 1) * (5.0 + i);
            }
        }
        struct energy_rows some = {powers, n};
        struct energy_watts w = energy_fit(&some, SOC_METER_PACKAGE);
        double product = 1;
        double kinds = 0;
        for (int k = 0; k < DEVICE_KIND_COUNT; k++) {
            if ((set >> k & 1u) != 0) {
                is_near(1e9 * w.device[k], 0.25 * (k + 1));
                product *= 0.25 * (k + 1);
                kinds++;
            }
        }
        for (int k = 0; k < DEVICE_KIND_COUNT; k++) {
            if ((set >> k & 1u) == 0) {
                is_near(1e9 * w.device[k], pow(product, 1 / kinds));
            }
        }
    }
}
END_TEST

/* Why a row is not predicted, and whose idle watts it has: those of its machine's file from a
 * package on, but not at the wall, and none that are above its watts. */
START_TEST(a_power_is_bound_to_its_machine)
{
    const struct soc *soc = catalog_soc(&c, "core-ultra-7-155h");
    const struct {
        const char *row, *why;
        double idle;
        enum device_kind kind;
    } all[] = {
        {"core-ultra-7-155h,igpu,ov-1,llama-2-7b,8,100,decode,package,,20,5,s", NULL,
         soc->machine.idle_watts, DEVICE_KIND_IGPU},
        {"core-ultra-7-155h,npu,ov-1,llama-2-7b,8,100,decode,package,0,20,5,s", NULL, 0,
         DEVICE_KIND_NPU},
        {"core-ultra-7-155h,cpu,ov-1,llama-2-7b,8,100,decode,rail,,20,5,s", NULL, -1,
         DEVICE_KIND_CPU},
        {"core-ultra-7-155h,cpu,ov-1,llama-2-7b,8,100,decode,wall,,20,5,s", NULL, -1,
         DEVICE_KIND_CPU},
        {"core-ultra-7-155h,igpu,ov-1,llama-2-7b,8,100,decode,battery,,90,5,s", NULL,
         soc->machine.idle_watts, DEVICE_KIND_IGPU},
        {"core-ultra-7-155h,igpu,ov-1,llama-2-7b,8,100,decode,package,,0.1,5,s", NULL, -1,
         DEVICE_KIND_IGPU}, /* it was at rest with less than the file says */
        {"core-ultra-7-155h,cpu+npu,ov-1,llama-2-7b,8,100,decode,package,1,20,5,s",
         "the work of several devices", 1, DEVICE_KIND_IGPU},
        {"core-ultra-7-155h,igpu,ov-1,no-such-model,8,100,decode,package,1,20,5,s",
         "no file for this model", 1, DEVICE_KIND_IGPU},
        {"nobody's,igpu,ov-1,llama-2-7b,8,100,prefill,package,,20,5,s",
         "a prefill whose machine has no file", -1, DEVICE_KIND_IGPU},
        {"nobody's,igpu,ov-1,llama-2-7b,8,100,decode,package,,20,5,s", NULL, -1, DEVICE_KIND_IGPU},
    };
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        const char *path = tempfile_make(".csv");
        OWNED char *text = xformat("%s%s\n", HEAD, all[i].row);
        tempfile_put(text);
        struct energy_rows r;
        ck_assert_msg(energy_read(&c, path, &r, &err) == 0, "%s: %s", all[i].row,
                      err.n > 0 ? err.lines[0] : "");
        tempfile_remove();
        ck_assert_uint_eq(r.n, 1);
        ck_assert_pstr_eq(r.v[0].reason, all[i].why);
        ck_assert_int_eq(r.v[0].kind, all[i].kind);
        ck_assert_double_eq(r.v[0].p.idle_watts, all[i].idle);
        ck_assert_uint_eq(r.v[0].p.line, 2);
        if (all[i].why == NULL) {
            /* a step of one stream moves its bytes as often as it makes a token */
            struct point p = point_of("llama-2-7b", 1);
            p.soc = "w1-reference";
            p.device =
                xkeep(xformat("%s", catalog_soc(&c, "w1-reference")->machine.devices[0].name));
            p.input_tokens = 100;
            struct predict_case k;
            p.runtime = "ov-1";
            p.metric = POINT_DECODE_TOK_S;
            p.value = 5;
            predict_bind(&c, &p, &k);
            double bytes = predict_price(&k, &p, NULL).bytes;
            is_near(r.v[0].gbs, bytes * 5 / 1e9);
            bool file = strncmp(all[i].row, "core", 4) == 0;
            ck_assert(isnan(r.v[0].rate_tok_s) == !file);
            if (file) {
                p.soc = "core-ultra-7-155h";
                p.device = xkeep(xstrdup(r.v[0].p.device));
                struct prediction q = predict_row(&c, &p);
                is_near(r.v[0].rate_tok_s, q.value);
                is_near(r.v[0].rate_gbs, q.value * bytes / 1e9);
                is_near(r.v[0].rate_half, log(q.high / q.low) / 2);
            }
        }
    }
}
END_TEST

static const struct suite_row suite[] = {
    CASE("validation anew", .once = once),
    TEST(twins_are_the_same_in_everything_that_counts),
    TEST(the_floor_is_of_all_groups),
    TEST(prompts_are_grouped_at_their_limits),
    TEST(each_power_is_predicted_without_its_own),
    TEST(kinds_that_nobody_measured_have_the_mean),
    TEST(a_power_is_bound_to_its_machine),
};
SUITE_MAIN("validation anew", suite)
