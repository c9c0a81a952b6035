/* Memory of a process, computed a second time: fits of toolchains, their mean and range, and which
 * numbers a row is predicted by. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "experiments/validation/footprint_fit.h"
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

static struct point point_of(const char *model, double ms)
{
    struct point p = {.source = "",
                      .soc = "core-ultra-7-155h",
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

static struct point memory_points[64];
static struct points memory = {.v = memory_points};

/* Rows of three toolchains, made from numbers of theirs with an error that each row has its own. */
static void make_memory(void)
{
    static const char *const names_of[] = {"llama-2-7b", "phi-2",    "gemma-2b",
                                           "qwen2-0.5b", "qwen2-7b", "tiny-llama-1.1b"};
    static const struct {
        const char *runtime, *device;
        double fixed, frac;
    } tools[] = {{"openvino-2025.0", "igpu", 1.5e9, 0.9},
                 {"ipex-2.1", "igpu", 0.5e9, 1.2},
                 {"openvino-2025.1", "cpu", 1e9, 1.0}};
    memory.n = 0;
    for (int i = 0; i < 36; i++) {
        struct point *p = &memory_points[memory.n++];
        *p = point_of(names_of[i / 3 % 6], 1);
        p->metric = POINT_MEMORY_MIB;
        p->input_tokens = i < 18 ? 32 : 2048;
        p->runtime = xkeep(xstrdup(tools[i % 3].runtime));
        p->device = xkeep(xstrdup(tools[i % 3].device));
        p->source = xkeep(xformat("table %d (x)", i / 3 % 3));
        struct footprint_row r = {.point = p};
        predict_bind(&c, p, &r.k);
        ck_assert_ptr_null(r.k.reason);
        struct soc_memory m = {.fixed_bytes = tools[i % 3].fixed,
                               .weights_frac = tools[i % 3].frac,
                               .tokenizer_bytes = 2e3,
                               .activation_bytes = 100};
        p->value = footprint_row_bytes(&r, &m) / 1048576 * (1 + 0.01 * (i * 7 % 5 - 2));
    }
    memory_points[memory.n] = memory_points[0]; /* not of this metric */
    memory_points[memory.n++].metric = POINT_TPOT_MS;
}

/* A toolchain that nobody measured has the mean of the others, number by number. The table names
 * each once, in the order of its first row, with the range of the fits that lack a source. */
START_TEST(memory_of_toolchains_is_their_mean_and_range)
{
    make_memory();
    struct footprint_rows r;
    footprint_collect(&c, &memory, &r);
    ck_assert_uint_eq(r.n, 36);
    struct soc_memory fits[3];
    for (int t = 0; t < 3; t++) {
        ck_assert(footprint_fit(&r, &r.v[t], &fits[t]));
    }
    ck_assert_str_eq(fits[0].runtime, "openvino-2025");
    ck_assert_str_eq(fits[1].runtime, "ipex-2");
    for (int t = 0; t < 3; t++) {
        const struct soc_memory *a = &fits[(t + 1) % 3];
        const struct soc_memory *b = &fits[(t + 2) % 3];
        struct soc_memory m;
        memset(&m, 0x55, sizeof m);
        ck_assert(footprint_fit_others(&r, &r.v[t + 30], &m));
        is_near(m.fixed_bytes, (a->fixed_bytes + b->fixed_bytes) / 2);
        is_near(m.weights_frac, (a->weights_frac + b->weights_frac) / 2);
        is_near(m.tokenizer_bytes, (a->tokenizer_bytes + b->tokenizer_bytes) / 2);
        is_near(m.activation_bytes, (a->activation_bytes + b->activation_bytes) / 2);
        ck_assert_str_eq(m.runtime, "other");
    }
    SCOPED(text_fini) struct text want = {0};
    for (int t = 0; t < 3; t++) {
        double low[4];
        double high[4];
        for (int s = -1; s < 3; s++) { /* all, then without one source */
            for (size_t k = 0; k < r.n; k++) {
                r.v[k].left_out = s >= 0 && (int)k / 3 % 3 == s;
            }
            struct soc_memory m;
            ck_assert(footprint_fit(&r, &r.v[t], &m));
            const double v[4] = {m.fixed_bytes / 1e9, m.weights_frac, m.tokenizer_bytes / 1e3,
                                 m.activation_bytes};
            for (int k = 0; k < 4; k++) {
                low[k] = s < 0 || v[k] < low[k] ? v[k] : low[k];
                high[k] = s < 0 || v[k] > high[k] ? v[k] : high[k];
            }
        }
        text_format(&want,
                    "%-16s %-4s  fixed %.3f [%.3f, %.3f] GB  weights %.3f [%.3f, %.3f]  tokenizer "
                    "%.2f [%.2f, %.2f] kB  activations %.0f [%.0f, %.0f] B\n",
                    fits[t].runtime, t == 2 ? "cpu" : "igpu", fits[t].fixed_bytes / 1e9, low[0],
                    high[0], fits[t].weights_frac, low[1], high[1], fits[t].tokenizer_bytes / 1e3,
                    low[2], high[2], fits[t].activation_bytes, low[3], high[3]);
    }
    const char *path = tempfile_make(".txt");
    FILE *f = fopen(path, "w+");
    footprint_print(&c, &memory, f);
    long n = ftell(f);
    rewind(f);
    OWNED char *is = xcalloc((size_t)n + 1, 1);
    ck_assert_uint_eq(fread(is, 1, (size_t)n, f), (size_t)n);
    (void)fclose(f);
    tempfile_remove();
    ck_assert_str_eq(is, text_end(&want));
}
END_TEST

/* By the numbers of the machine's file where they are of the row's toolchain; else by the mean of
 * what files state, each toolchain once. */
START_TEST(memory_of_a_row_is_by_its_file_or_the_mean)
{
    static struct soc machines[3];
    static struct soc *list[3];
    for (int i = 0; i < 3; i++) {
        machines[i] = *catalog_soc(&c, "core-ultra-7-155h");
        (void)snprintf(machines[i].machine.name, sizeof machines[i].machine.name, "m%d", i);
        for (int d = 0; d < 3; d++) {
            machines[i].devices[d].memory = (struct soc_memory){.runtime = ""};
        }
        list[i] = &machines[i];
    }
    c.socs = list;
    c.n_socs = 3;
    int igpu = machine_find(&machines[0].machine, DEVICE_KIND_IGPU);
    struct soc_memory a = {.runtime = "tool-1",
                           .fixed_bytes = 1e9,
                           .weights_frac = 1,
                           .tokenizer_bytes = 1000,
                           .activation_bytes = 10};
    struct soc_memory b = {.runtime = "else",
                           .fixed_bytes = 3e9,
                           .weights_frac = 2,
                           .tokenizer_bytes = 3000,
                           .activation_bytes = 30};
    machines[0].devices[igpu].memory = a;
    machines[1].devices[(igpu + 1) % 3].memory = b;
    machines[1].devices[(igpu + 2) % 3].memory = a; /* the same toolchain again counts once */
    machines[2].devices[(igpu + 1) % 3].memory = (struct soc_memory){.runtime = "other",
                                                                     .fixed_bytes = 9e9,
                                                                     .weights_frac = 9,
                                                                     .tokenizer_bytes = 9,
                                                                     .activation_bytes = 9};
    struct soc_memory mean = {.runtime = "",
                              .fixed_bytes = 2e9,
                              .weights_frac = 1.5,
                              .tokenizer_bytes = 2000,
                              .activation_bytes = 20};
    static const struct {
        const char *soc, *runtime;
        bool exact;
    } all[] = {{"m0", "tool-1.5", true},   {"m0", "tool-1-x", true}, {"m0", "tool-1", true},
               {"m0", "tool-12.1", false}, {"m0", "tool", false},    {"m1", "tool-1.5", false},
               {"m2", "other.1", false}};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        struct point p = point_of("llama-2-7b", 1);
        p.metric = POINT_MEMORY_MIB;
        p.soc = xkeep(xstrdup(all[i].soc));
        p.runtime = xkeep(xstrdup(all[i].runtime));
        struct footprint_row r = {.point = &p};
        predict_bind(&c, &p, &r.k);
        struct prediction q = predict_memory(&c, &p);
        ck_assert_msg(q.runtime_default == !all[i].exact, "%s", all[i].runtime);
        is_near(q.value, footprint_row_bytes(&r, all[i].exact ? &a : &mean) / 1048576);
        struct prediction x = {.value = 1};
        r.k.match = all[i].exact ? SOC_MATCH_EXACT : SOC_MATCH_OTHER;
        predict_interval(&c, &p, &r.k, 1.0, &x);
        is_near(q.low, x.low * q.value);
        is_near(q.high, x.high * q.value);
        ck_assert(q.unseen == x.unseen);
    }
    machines[0].devices[igpu].memory = machines[1].devices[(igpu + 1) % 3].memory =
        machines[1].devices[(igpu + 2) % 3].memory = (struct soc_memory){.runtime = ""};
    struct point p = point_of("llama-2-7b", 1);
    p.metric = POINT_MEMORY_MIB;
    p.soc = "m0";
    ck_assert_str_eq(predict_memory(&c, &p).reason,
                     "no SoC file states what its runtime needs next to the weights");
}
END_TEST

static const struct suite_row suite[] = {
    CASE("memory anew", .once = once),
    TEST(memory_of_toolchains_is_their_mean_and_range),
    TEST(memory_of_a_row_is_by_its_file_or_the_mean),
};
SUITE_MAIN("memory anew", suite)
