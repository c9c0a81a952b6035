/* Memory of a runtime is tested by the closed form, and by numbers found again in rows made from
 * them. */
#include <math.h>
#include <stdio.h>
#include <unistd.h>

#include "experiments/run/config.h"
#include "experiments/run/models.h"
#include "experiments/validation/footprint_fit.h"
#include "hwmodels/footprint.h"
#include "tests/helpers/suite.h"
#include "traces/traces.h"

static const struct soc_memory known = {.runtime = "openvino-2025",
                                        .fixed_bytes = 1.5e9,
                                        .weights_frac = 0.9,
                                        .tokenizer_bytes = 2e3,
                                        .activation_bytes = 100.0};

static double extra(const struct soc_memory *m, const struct llm *llm, double tokens)
{
    return footprint_extra_bytes(m, &(struct footprint_model){llm, tokens}, 1);
}

/* A model has 10 GB of weights, 1000 entries, 100 columns, 50 bytes of KV a token and 10 tokens.
 * The process holds 1.5e9 + 9e9 + 2e6 + (100 x 100 + 50) x 10 = 10502100500. The ledger has 10 GB
 * and 500 bytes of that. It lacks 1.5e9 - 1e9 + 2e6 + 1e5 = 502100000. */
START_TEST(a_process_holds_weights_kv_and_what_the_runtime_adds)
{
    struct llm m = {.weight_bytes = 1e10, .vocab = 1000, .hidden = 100, .kv_bytes_per_token = 50};
    ck_assert_double_eq_tol(footprint_bytes(&known, &m, 10.0), 10502100500.0, 1.0);
    ck_assert_double_eq_tol(extra(&known, &m, 10.0), 502100000.0, 1.0);
}
END_TEST

/* Scores are of one layer, for any number of layers. With 3 heads, 10 tokens and 2 bytes, 3 x 10 x
 * 10 x 2 = 600 bytes more are in the process and beyond the ledger. Twice the tokens take four
 * times that. Activations and KV take 10 x (100 x 100 + 50) = 100500 more. */
START_TEST(scores_kept_whole_grow_with_the_square_of_the_prompt)
{
    struct llm m = {.weight_bytes = 1e10,
                    .vocab = 1000,
                    .hidden = 100,
                    .kv_bytes_per_token = 50,
                    .heads = 3,
                    .n_layers = 7};
    struct soc_memory whole = known;
    whole.score_bytes = 2.0;
    ck_assert_double_eq_tol(footprint_bytes(&whole, &m, 10.0), 10502100500.0 + 600.0, 1e-3);
    ck_assert_double_eq_tol(extra(&whole, &m, 10.0), 502100000.0 + 600.0, 1e-3);
    ck_assert_double_eq_tol(footprint_bytes(&whole, &m, 20.0), 10502100500.0 + 100500.0 + 2400.0,
                            1e-3);
}
END_TEST

/* A process has two models. The second has 1 GB of weights, 500 entries, 50 columns and prompts of
 * 30 tokens. So there are 1.5e9 - 1e9 - 1e8 + 2e6 + 1e6 for as long as it runs. One pass at a time
 * has activations. 50 x 100 x 30 = 150000 bytes of the second are more than 100 x 100 x 10. */
START_TEST(a_process_of_two_models_has_two_tokenizers_and_one_pass)
{
    struct llm a = {.weight_bytes = 1e10, .vocab = 1000, .hidden = 100};
    struct llm b = {.weight_bytes = 1e9, .vocab = 500, .hidden = 50};
    const struct footprint_model both[] = {{&a, 10.0}, {&b, 30.0}};
    ck_assert_double_eq_tol(footprint_extra_bytes(&known, both, 2), 403150000.0, 1.0);
}
END_TEST

/* Two machines differ in scores only, with one row each of 2048 tokens and 32 heads. By any numbers
 * of a runtime their predictions differ by 2 x 32 x 2048^2 = 268435456 bytes, 256 MiB. */
START_TEST(scores_are_of_the_device_not_of_the_fit)
{
    struct err e = ERR_INIT;
    struct catalog c;
    ck_assert_int_eq(catalog_open(&c, &e), 0);
    struct footprint_row r[2];
    struct point p[2];
    static const char *const socs[] = {"core-ultra-7-165h", "core-ultra-7-258v"};
    for (int i = 0; i < 2; i++) {
        p[i] = (struct point){.source = "",
                              .metric = POINT_MEMORY_MIB,
                              .device = "igpu",
                              .runtime = "openvino-2025.3",
                              .model = "llama-2-7b",
                              .weight_bits = 8,
                              .act_bits = 16,
                              .input_tokens = 2048,
                              .batch = 1,
                              .value = 9000.0};
        p[i].soc = xkeep(xstrdup(socs[i]));
        r[i] = (struct footprint_row){.point = &p[i]};
        predict_bind(&c, &p[i], &r[i].k);
        ck_assert_ptr_null(r[i].k.reason);
        ck_assert_uint_eq(r[i].k.llm.heads, 32);
    }
    double more = footprint_row_bytes(&r[0], &known) - footprint_row_bytes(&r[1], &known);
    ck_assert_double_eq_tol(more, 268435456.0, 1e-3);
    struct prediction with = predict_memory(&c, &p[0]);
    struct prediction without = predict_memory(&c, &p[1]);
    ck_assert_double_eq_tol(with.value - without.value, 256.0, 1e-6);
    err_fini(&e);
}
END_TEST

/* Weights that are mapped and not touched make the process smaller than the ledger. But the ledger
 * is never made smaller by it: 1e6 + (0.5 - 1) x 1e9 is below 0. */
START_TEST(a_runtime_never_takes_memory_away)
{
    struct llm m = {.weight_bytes = 1e9};
    struct soc_memory mapped = {.fixed_bytes = 1e6, .weights_frac = 0.5};
    ck_assert_double_eq(extra(&mapped, &m, 1000.0), 0.0);
}
END_TEST

#define HEAD                                                                                       \
    "soc,device,runtime,model,weight_bits,act_bits,input_tokens,batch,metric,value,source\n"

/* Rows of six models have two lengths, and the last one is 3 times too large. They are written to a
 * MiB. */
static void write_rows(const char *path, const struct catalog *c)
{
    static const char *const models[] = {"llama-2-7b", "phi-2",    "gemma-2b",
                                         "qwen2-0.5b", "qwen2-7b", "tiny-llama-1.1b"};
    FILE *f = fopen(path, "w");
    ck_assert_ptr_nonnull(f);
    (void)fputs(HEAD, f);
    for (int i = 0; i < 12; i++) {
        struct point p = {.source = "",
                          .metric = POINT_MEMORY_MIB,
                          .soc = "core-ultra-7-155h",
                          .device = "igpu",
                          .runtime = "openvino-2025.0",
                          .weight_bits = 8,
                          .act_bits = 16,
                          .input_tokens = i % 2 == 0 ? 32 : 2048,
                          .batch = 1,
                          .value = 1.0};
        p.model = xkeep(xstrdup(models[i / 2]));
        struct footprint_row r = {.point = &p};
        predict_bind(c, &p, &r.k);
        ck_assert_ptr_null(r.k.reason);
        double mib = footprint_row_bytes(&r, &known) / 1048576.0 * (i == 11 ? 3.0 : 1.0);
        (void)fprintf(f, "%s,igpu,%s,%s,8,16,%u,1,memory_mib,%.3f,table %d\n", p.soc, p.runtime,
                      p.model, p.input_tokens, mib, i % 3);
    }
    ck_assert_int_eq(fclose(f), 0);
}

START_TEST(a_fit_finds_the_numbers_again_despite_a_wrong_row)
{
    char path[64];
    (void)snprintf(path, sizeof path, "/tmp/xpusim-footprint-%ld.tmp.csv", (long)getpid());
    struct err e = ERR_INIT;
    struct catalog c;
    ck_assert_int_eq(catalog_open(&c, &e), 0);
    write_rows(path, &c);
    struct points points;
    ck_assert_int_eq(points_read(path, &points, &e), 0);
    (void)remove(path);
    struct footprint_rows rows;
    footprint_collect(&c, &points, &rows);
    ck_assert_uint_eq(rows.n, 12);
    struct soc_memory m;
    ck_assert(footprint_fit(&rows, &rows.v[0], &m));
    ck_assert_str_eq(m.runtime, "openvino-2025");
    ck_assert_double_eq_tol(m.fixed_bytes / 1.5e9, 1.0, 0.02);
    ck_assert_double_eq_tol(m.weights_frac, 0.9, 0.01);
    ck_assert_double_eq_tol(m.tokenizer_bytes / 2e3, 1.0, 0.05);
    ck_assert_double_eq_tol(m.activation_bytes / 100.0, 1.0, 0.02);
    struct soc_memory none;
    ck_assert(!footprint_fit_others(&rows, &rows.v[0], &none)); /* one toolchain alone */
    for (size_t i = 3; i < rows.n; i++) {
        rows.v[i].left_out = true;
    }
    ck_assert(!footprint_fit(&rows, &rows.v[0], &m)); /* three rows do not give four numbers */
    err_fini(&e);
}
END_TEST

/* Two models, 1536 and 896 wide, have a longest prompt each. A pass has no more rows than a chunk
 * of the device. The larger of both passes counts, with 10 bytes of each row and column. */
START_TEST(memory_of_a_pass_is_by_the_prompts_of_its_own_model)
{
    static const uint32_t prompts[][2] = {{1000, 100}, {100, 1000}, {100, 200}};
    static struct config config;
    struct err err = ERR_INIT;
    struct config_options options = config_options_default();
    options.llm = _i % 2 == 0 ? "qwen2-1.5b,qwen2-0.5b" : "qwen2-0.5b,qwen2-1.5b";
    options.no_notes = true;
    ck_assert_msg(config_load(&config, &options, &err) == 0, "%s", err.n > 0 ? err.lines[0] : "");
    const double hidden[] = {_i % 2 == 0 ? 1536 : 896, _i % 2 == 0 ? 896 : 1536};
    struct trace_model names[] = {{.name = "other", .is = 1}};
    struct trace_graph g = {.model = (uint32_t[]){0, 1}, .models = names, .n_models = 1};
    for (size_t i = 0; i < sizeof prompts / sizeof prompts[0]; i++) {
        struct trace_row rows[] = {{.input_tokens = prompts[i][0]},
                                   {.input_tokens = prompts[i][1]}};
        struct trace t = {.rows = rows, .n = 2, .graph = &g};
        for (uint32_t chunk = 0; chunk <= 256; chunk += 256) {
            double most = 0.0;
            for (int k = 0; k < 2; k++) {
                uint32_t tokens = chunk > 0 && prompts[i][k] > chunk ? chunk : prompts[i][k];
                most = fmax(most, 10.0 * hidden[k] * tokens);
            }
            for (uint32_t d = 0; d < config.soc.machine.n_devices; d++) {
                config.soc.machine.devices[d].chunk_rows = chunk;
                config.soc.devices[d].kernels.budget_bytes = 0.0;
                config.soc.devices[d].memory = (struct soc_memory){
                    .counted = d == 1, .weights_frac = 1.0, .activation_bytes = 10.0};
            }
            ck_assert_double_eq(models_runtime_bytes(&config, &t), most);
        }
    }
    config_fini(&config);
    err_fini(&err);
}
END_TEST

static const struct suite_row suite[] = {
    CASE("footprint"),
    TEST(a_process_holds_weights_kv_and_what_the_runtime_adds),
    TEST(a_process_of_two_models_has_two_tokenizers_and_one_pass),
    LOOP(memory_of_a_pass_is_by_the_prompts_of_its_own_model, 2),
    TEST(scores_kept_whole_grow_with_the_square_of_the_prompt),
    TEST(scores_are_of_the_device_not_of_the_fit),
    TEST(a_runtime_never_takes_memory_away),
    TEST(a_fit_finds_the_numbers_again_despite_a_wrong_row),
};
SUITE_MAIN("footprint", suite)
