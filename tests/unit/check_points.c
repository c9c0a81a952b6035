/* Tables of published measurements: reading, what a row measures, and errors by hand. */
#include <errno.h>
#include <glob.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "experiments/validation/catalog.h"
#include "experiments/validation/noise_floor.h"
#include "experiments/validation/points_score.h"
#include "experiments/validation/predict_impl.h"
#include "sim/base/datadir.h"
#include "sim/base/json.h"
#include "tests/helpers/suite.h"
#include "tests/helpers/tempfile.h"

#define HEAD                                                                                       \
    "soc,device,runtime,model,weight_bits,act_bits,input_tokens,batch,metric,value,source\n"

static char path[64];
static struct err err;
static struct points points;

static void setup(void)
{
    err = (struct err)ERR_INIT;
    memset(&points, 0, sizeof points);
    (void)snprintf(path, sizeof path, "/tmp/xpusim-points-%ld.tmp.csv", (long)getpid());
}

static void teardown(void)
{
    err_fini(&err);
    (void)remove(path);
}

static int read_text(const char *text)
{
    FILE *f = fopen(path, "w");
    ck_assert_ptr_nonnull(f);
    fputs(text, f);
    ck_assert_int_eq(fclose(f), 0);
    return points_read(path, &points, &err);
}

START_TEST(a_row_is_read_with_its_line_and_empty_widths)
{
    ck_assert_int_eq(read_text("# note\n" HEAD "s,npu,r-1,m,,,0,1,bandwidth_gbs,59.5,x\n"
                               "s,igpu,r-1,\"m, chat\",4,16,1024,2,ttft_ms,500,x\n"),
                     0);
    ck_assert_uint_eq(points.n, 2);
    ck_assert_uint_eq(points.v[0].weight_bits, 0);
    ck_assert_int_eq((int)points.v[0].metric, POINT_BANDWIDTH_GBS);
    ck_assert_str_eq(points.v[1].model, "m, chat");
    ck_assert_uint_eq(points.v[1].line, 4);
    ck_assert(point_is_latency(&points.v[1]) && point_is_prefill(&points.v[1]));
    ck_assert(!point_is_latency(&points.v[0]));
}
END_TEST

/* A run's name of the model has the width, which the column may leave out or repeat. */
START_TEST(a_model_may_have_its_width)
{
    ck_assert_int_eq(read_text(HEAD "s,npu,r,m:bits=4,,,8,1,tpot_ms,7,x\n"
                                    "s,npu,r,m:bits=16,16,,8,1,tpot_ms,7,x\n"),
                     0);
    for (int i = 0; i < 2; i++) {
        ck_assert_str_eq(points.v[i].model, "m");
        ck_assert_uint_eq(points.v[i].weight_bits, i == 0 ? 4 : 16);
    }
    static const char *const bad[] = {"m:bits=4,8", "m:bits=0,", "m:bits=33,", "m:bits=,",
                                      "m:bits=4x,"};
    for (int i = 0; i < 5; i++) {
        OWNED char *text = xformat(HEAD "s,npu,r,%s,,8,1,tpot_ms,7,x\n", bad[i]);
        ck_assert_int_eq(read_text(text), -EINVAL);
        ck_assert_uint_eq(err.n, (size_t)i + 1);
        ck_assert_ptr_nonnull(strstr(err.lines[i], ":2: column model: "));
    }
}
END_TEST

/* The column may be missing, or empty in a row. */
START_TEST(a_row_may_state_the_bytes_of_its_file)
{
    ck_assert_int_eq(read_text("soc,device,runtime,model,weight_bits,act_bits,input_tokens,batch,"
                               "metric,value,source,bytes_per_weight\n"
                               "s,igpu,r,m,4,16,0,1,tpot_ms,50,x,0.625\n"
                               "s,igpu,r,m,4,16,0,1,tpot_ms,50,x,\n"),
                     0);
    ck_assert_double_eq(points.v[0].bytes_per_weight, 0.625);
    ck_assert_double_eq(points.v[1].bytes_per_weight, 0.0);
    ck_assert_int_eq(read_text("soc,device,runtime,model,weight_bits,act_bits,input_tokens,batch,"
                               "metric,value,source,bytes_per_weight,dense_bytes_per_weight\n"
                               "s,igpu,r,m,4,16,0,1,tpot_ms,50,x,0.625,1.75\n"
                               "s,igpu,r,m,4,16,0,1,tpot_ms,50,x,,1.75\n"),
                     -EINVAL);
    ck_assert_ptr_nonnull(strstr(err.lines[0], "dense_bytes_per_weight"));
    ck_assert_uint_eq(err.n, 1);
    ck_assert_int_eq(read_text(HEAD "s,igpu,r-1,m,4,16,1024,2,ttft_ms,500,x\n"), 0);
    ck_assert_double_eq(points.v[0].bytes_per_weight, 0.0);
}
END_TEST

/* Rows 3 and 5 of the file have no value, because a user asks for a prediction by them. */
START_TEST(rows_without_a_value_come_last_and_only_where_they_are_asked_for)
{
    ck_assert_int_eq(read_text(HEAD "s,npu,r-1,a,4,16,8,1,tpot_ms,7,x\n"
                                    "s,npu,r-1,b,4,16,8,1,tpot_ms,,x\n"
                                    "s,npu,r-1,c,4,16,8,1,tpot_ms,9,x\n"
                                    "s,npu,r-1,d,4,16,8,1,tpot_ms,,x\n"),
                     -EINVAL);
    ck_assert_uint_eq(err.n, 2);
    ck_assert_ptr_nonnull(strstr(err.lines[0], "csv:3: column value: is empty"));
    ck_assert_ptr_nonnull(strstr(err.lines[1], "csv:5: column value: is empty"));
    ck_assert_int_eq(points_read_asked(path, &points, &err), 0);
    ck_assert_uint_eq(points.n, 2);
    ck_assert_uint_eq(points.n_asked, 2);
    for (int i = 0; i < 4; i++) {
        ck_assert_int_eq(points.v[i].model[0], "acbd"[i]);
        ck_assert_int_eq(isnan(points.v[i].value) != 0, i >= 2);
    }
}
END_TEST

/* 500 ms; 1024 tokens at 2048 tokens/s take 0.5 s; four streams that make 40 tokens a second
 * together take 0.1 s a step. */
START_TEST(rates_are_turned_into_the_time_of_a_pass_and_back)
{
    struct point p = {
        .source = "", .metric = POINT_TTFT_MS, .value = 500, .input_tokens = 1024, .batch = 1};
    ck_assert_double_eq_tol(point_pass_seconds(&p), 0.5, 1e-12);
    p.metric = POINT_PREFILL_TOK_S;
    p.value = 2048;
    ck_assert_double_eq_tol(point_pass_seconds(&p), 0.5, 1e-12);
    ck_assert_double_eq_tol(point_value_of_seconds(&p, 0.25), 4096, 1e-9);
    p.metric = POINT_DECODE_TOK_S;
    p.batch = 4;
    p.value = 40;
    ck_assert_double_eq_tol(point_pass_seconds(&p), 0.1, 1e-12);
}
END_TEST

/* Qwen-7B has 0.6 at 4 bits with a 16-bit scale for 128 weights, 0.6 (0.5 + 2/128), and the rest at
 * 8 bits, 0.4 x 1.01: 0.713375 bytes. One without a recipe of its own has the general default, all
 * at 4 bits with a zero point too: 0.5 + 2.5/128. */
START_TEST(a_tables_4_bit_file_weighs_what_its_recipe_says)
{
    struct catalog catalog;
    ck_assert_int_eq(catalog_open(&catalog, &err), 0);
    ck_assert_double_eq_tol(catalog_recipe_bytes(&catalog, "qwen-7b-chat"), 0.713375, 1e-12);
    ck_assert_double_eq_tol(catalog_recipe_bytes(&catalog, "ChatGLM3-6B"), 0.51953125, 1e-12);
    ck_assert_double_eq(catalog_recipe_bytes(&catalog, "nonesuch"), 0.0);
    struct point p = {.source = "",
                      .soc = "core-ultra-7-155h",
                      .device = "igpu",
                      .runtime = "openvino-2025.0",
                      .model = "qwen-7b-chat",
                      .weight_bits = 4,
                      .act_bits = 16,
                      .input_tokens = 1024,
                      .batch = 1,
                      .metric = POINT_TPOT_MS,
                      .value = 80};
    struct predict_case k;
    predict_bind(&catalog, &p, &k);
    ck_assert_double_eq_tol(k.llm.body_bytes_per_weight, 0.713375, 1e-12);
    p.weight_bits = 8; /* another width, or anybody else's conversion, has the runtime's format */
    predict_bind(&catalog, &p, &k);
    ck_assert_double_eq_tol(k.llm.body_bytes_per_weight, 1.01, 1e-12);
    p.weight_bits = 4;
    p.runtime = "openvino-genai-2025.4";
    predict_bind(&catalog, &p, &k);
    ck_assert_double_eq_tol(k.llm.body_bytes_per_weight, 0.56, 1e-12);
}
END_TEST

/* Jais 6.7B has 32 layers and 32 KV heads of 128 at 8 bits: 8192 B for a key and layer. Genie's
 * file states a window of 4096 keys, and Jais' graphs have 2048. So a token reads 32 x 2048 x 8192
 * B = 536870912 B less. Without a window in the entry none counts. */
START_TEST(a_rows_graphs_have_the_window_that_they_were_compiled_for)
{
    struct catalog catalog;
    ck_assert_int_eq(catalog_open(&catalog, &err), 0);
    ck_assert_uint_eq(catalog_window(&catalog, "genie-2024.10", "llama-2-7b"), 1024);
    ck_assert_uint_eq(catalog_window(&catalog, "genie", "llama-3-8b"), 0);
    ck_assert_uint_eq(catalog_window(&catalog, "qnn-2024.07", "baichuan2-7b"), 1024);
    ck_assert_uint_eq(catalog_window(&catalog, "mllm-qnn", "llama-2-7b"), 0);
    struct point p = {.source = "",
                      .soc = "snapdragon-8elite",
                      .device = "npu",
                      .runtime = "genie",
                      .model = "jais-6.7b",
                      .weight_bits = 4,
                      .act_bits = 16,
                      .input_tokens = 128,
                      .batch = 1,
                      .metric = POINT_DECODE_TOK_S,
                      .value = 13};
    struct predict_case k;
    predict_bind(&catalog, &p, &k);
    ck_assert_ptr_null(k.reason);
    ck_assert_uint_eq(k.window, 2048);
    struct soc_runtime entry = k.soc->devices[k.device].runtimes[k.runtime];
    ck_assert_uint_eq(entry.window, 4096);
    struct price own = predict_price(&k, &p, &entry);
    k.window = 0;
    struct price file = predict_price(&k, &p, &entry);
    ck_assert_double_eq_tol(file.bytes - own.bytes, 536870912.0, 1.0);
    entry.window = 0;
    struct price none = predict_price(&k, &p, &entry);
    k.window = 2048;
    ck_assert_double_eq(predict_price(&k, &p, &entry).seconds, none.seconds);
    ck_assert_double_gt(own.bytes, none.bytes);
}
END_TEST

/* The file's powers are means of such rows, and its 43.3 GB/s are the row itself. A row that
 * differs from the file is a prediction, good or bad. */
START_TEST(what_a_file_took_from_a_row_is_no_prediction_of_it)
{
    struct catalog catalog;
    ck_assert_int_eq(catalog_open(&catalog, &err), 0);
    struct point p = {.source = "",
                      .soc = "snapdragon-8gen3",
                      .device = "gpu",
                      .runtime = "microbench",
                      .model = "decode stream solo",
                      .metric = POINT_BANDWIDTH_GBS,
                      .value = 43.3};
    struct prediction q = predict_row(&catalog, &p);
    ck_assert(isnan(q.value) && strstr(q.reason, "took this number from the row") != NULL);
    p.value = 50.0;
    ck_assert_double_eq_tol(predict_row(&catalog, &p).value, 43.3, 1e-9);
    p = (struct point){.source = "",
                       .soc = "ryzen-ai-xdna2",
                       .device = "npu",
                       .runtime = "fastflowlm",
                       .model = "llama-3.2-1b decode",
                       .metric = POINT_POWER_W,
                       .value = 1.64};
    q = predict_row(&catalog, &p);
    ck_assert(isnan(q.value) && strstr(q.reason, "comes from such rows") != NULL);
}
END_TEST

/* Two engines stream a and b GB/s next to each other, with capacity c < a + b and b > c / 2. By
 * max-min the GPU gets min(a, c / 2), and by `none` a. `latency` slows that of max-min by 1 + its
 * strength x the other's share of c. */
START_TEST(a_co_run_row_is_shared_by_the_contention_model_that_is_asked_for)
{
    struct catalog catalog;
    ck_assert_int_eq(catalog_open(&catalog, &err), 0);
    struct point p = {.source = "",
                      .soc = "snapdragon-8-elite-gen5",
                      .device = "gpu",
                      .runtime = "microbench",
                      .model = "add-u8 corun",
                      .weight_bits = 8,
                      .metric = POINT_BANDWIDTH_GBS};
    const struct soc *soc = catalog_soc(&catalog, p.soc);
    double capacity = soc->machine.ddr_peak_bytes_per_s * soc->machine.ddr_cap_frac / 1e9;
    ck_assert_str_eq(catalog.contention->name, "latency"); /* as of a run without options */
    ck_assert(isnan(predict_row(&catalog, &p).low));       /* nothing says how far off a share is */
    double by_latency = predict_row(&catalog, &p).value;
    catalog.contention = contention_find("none");
    double a = predict_row(&catalog, &p).value;
    p.device = "npu";
    double b = predict_row(&catalog, &p).value;
    ck_assert_double_gt(a + b, capacity * 1.01);
    ck_assert_double_gt(b, capacity / 2.0);
    p.device = "gpu";
    catalog.contention = contention_find("max-min");
    double fair = predict_row(&catalog, &p).value;
    ck_assert_double_eq_tol(fair, fmin(a, capacity / 2.0), 1e-9);
    double others = (capacity - fair) / capacity;
    ck_assert_double_eq_tol(by_latency, fair / (1.0 + soc->queueing_frac * others), 1e-9);
}
END_TEST

/* Twins are rows of one model: stable-zephyr is a stablelm. 100 and 121 ms lie 100/110 - 1 = -9.09
 * % and 10 % from their centre, sqrt(100 x 121) = 110. The rows of another width and of another
 * version do not join them. Versions are llama-2-7b in 80 and in 100 ms under two of OpenVINO: a
 * factor of 1.25. */
START_TEST(what_no_form_can_know_is_in_the_rows_that_say_the_same)
{
    ck_assert_int_eq(
        read_text(
            HEAD
            "core-ultra-7-155h,igpu,openvino-2025.0,stablelm-3b-4e1t,8,16,1024,1,tpot_ms,100,x\n"
            "core-ultra-7-155h,igpu,openvino-2025.0,stable-zephyr-3b,8,16,1024,1,tpot_ms,121,x\n"
            "core-ultra-7-155h,igpu,openvino-2025.0,stablelm-3b-4e1t,4,16,1024,1,tpot_ms,70,x\n"
            "core-ultra-7-155h,igpu,openvino-2025.0,llama-2-7b,8,16,1024,1,tpot_ms,80,x\n"
            "core-ultra-7-155h,igpu,openvino-2025.3,llama-2-7b,8,16,1024,1,tpot_ms,100,x\n"
            "core-ultra-7-155h,igpu,openvino-2025.3,llama-2-7b,8,16,1024,1,ttft_ms,3000,x\n"),
        0);
    struct catalog catalog;
    ck_assert_int_eq(catalog_open(&catalog, &err), 0);
    struct noise_floor x = noise_floor_of(&catalog, &points, DEVICE_KIND_IGPU, CONFORMAL_DECODE);
    ck_assert_uint_eq(x.twins, 2);
    ck_assert_uint_eq(x.twin_groups, 1);
    ck_assert_double_eq_tol(x.twin_median_frac, 1.0 / 11.0, 1e-9);
    ck_assert_double_eq_tol(x.twin_p90_frac, 0.1, 1e-9);
    ck_assert_uint_eq(x.versions, 1);
    ck_assert_double_eq_tol(x.version_median, 1.25, 1e-9);
    ck_assert_uint_eq(noise_floor_of(&catalog, &points, DEVICE_KIND_IGPU, CONFORMAL_PREFILL).twins,
                      0);
}
END_TEST

static void refused(const char *row, const char *why)
{
    char text[512];
    (void)snprintf(text, sizeof text, HEAD "s,igpu,r,m,4,16,1,1,tpot_ms,5,x\n%s\n", row);
    ck_assert_int_eq(read_text(text), -EINVAL);
    ck_assert_uint_eq(points.n, 0);
    ck_assert_msg(err.n > 0 && strstr(err.lines[0], why) != NULL &&
                      strstr(err.lines[0], ":3") != NULL,
                  "%s: %s", row, err.n > 0 ? err.lines[0] : "taken");
    teardown();
    setup();
}

START_TEST(malformed_and_impossible_rows_are_refused_with_line_and_column)
{
    refused("s,igpu,r,m,4,16,1,1,tpot_ms,-5,x", "value");
    refused("s,igpu,r,m,4,16,1,1,tpot_ms,0,x", "value");
    refused("s,igpu,r,m,4,16,1,1,tpot_ms,fast,x", "value");
    refused("s,igpu,r,m,4,16,1,0,tpot_ms,5,x", "batch");
    refused("s,igpu,r,m,4,16,-1,1,tpot_ms,5,x", "input_tokens");
    refused("s,igpu,r,m,99,16,1,1,tpot_ms,5,x", "weight_bits");
    refused(",igpu,r,m,4,16,1,1,tpot_ms,5,x", "soc");
    ck_assert_int_eq(read_text("soc,device\ns,igpu\n"), -EINVAL);
    teardown();
    setup();
    ck_assert_int_eq(read_text(HEAD), -EINVAL);
    ck_assert_ptr_nonnull(strstr(err.lines[0], "no points"));
}
END_TEST

/* Four rows were measured at 100 and predicted as 110, 80, 100 and not at all. |Errors| are 10, 20,
 * 0 %, so by nearest rank the median is 10 and P90 20. The bias is (1.1 x 0.8 x 1)^(1/3) - 1. With
 * the fourth as 100 % the median of (0, 10, 20, 100) is the second, 10, and P90 the fourth, 100. */
START_TEST(errors_are_those_of_hand_computation)
{
    struct point v[4];
    struct prediction q[4] = {{.value = 110}, {.value = 80}, {.value = 100}, {.reason = "no"}};
    for (int i = 0; i < 4; i++) {
        v[i] = (struct point){.source = "",
                              .soc = "s",
                              .device = "igpu",
                              .model = "m",
                              .metric_name = "tpot_ms",
                              .metric = POINT_TPOT_MS,
                              .batch = 1,
                              .value = 100};
    }
    struct points p = {.v = v, .n = 4};
    struct points_scores s;
    points_score(&p, q, &s);
    ck_assert_str_eq(s.v[0].by, "all");
    ck_assert_uint_eq(s.v[0].n, 4);
    ck_assert_uint_eq(s.v[0].predicted, 3);
    ck_assert_double_eq_tol(s.v[0].median, 0.10, 1e-12);
    ck_assert_double_eq_tol(s.v[0].p90, 0.20, 1e-12);
    ck_assert_double_eq_tol(s.v[0].bias, cbrt(1.1 * 0.8) - 1.0, 1e-12);
    ck_assert_double_eq_tol(s.v[0].median_all, 0.10, 1e-12);
    ck_assert_double_eq_tol(s.v[0].p90_all, 1.0, 1e-12);
}
END_TEST

/* A latency predicted at 1.25 times and a rate at 0.8 times are the same error: a pass that takes
 * 1.25 times as long. Milliseconds do not correlate with tokens per second. */
START_TEST(bias_is_one_of_time_whatever_the_metric)
{
    struct point v[2] = {{.soc = "s",
                          .device = "d",
                          .model = "m",
                          .metric_name = "tpot_ms",
                          .metric = POINT_TPOT_MS,
                          .batch = 1,
                          .value = 100},
                         {.soc = "s",
                          .device = "d",
                          .model = "m",
                          .metric_name = "decode_tok_s",
                          .metric = POINT_DECODE_TOK_S,
                          .batch = 1,
                          .value = 10}};
    struct prediction q[2] = {{.value = 125}, {.value = 8}};
    struct points p = {.v = v, .n = 2};
    struct points_scores s;
    points_score(&p, q, &s);
    ck_assert_double_eq_tol(s.v[0].bias, 0.25, 1e-12);
    ck_assert(isnan(s.v[0].pearson));
}
END_TEST

/* 80 letters are equal, and the last one differs. An earlier key of 63 letters made them one
 * model. */
START_TEST(names_are_one_but_for_case_and_punctuation_however_long)
{
    char a[100];
    char b[100];
    ck_assert(catalog_same("Qwen2.5-0.5B", "qwen2_5 0.5b"));
    ck_assert(!catalog_same("qwen2.5-0.5b", "qwen2.5-0.5b-x"));
    (void)snprintf(a, sizeof a, "%080d-A", 0);
    (void)snprintf(b, sizeof b, "%080d-b", 0);
    ck_assert(!catalog_same(a, b));
}
END_TEST

static bool same_row(const struct point *a, const struct point *b)
{
    return strcmp(a->soc, b->soc) == 0 && strcmp(a->device, b->device) == 0 &&
           strcmp(a->runtime, b->runtime) == 0 && strcmp(a->model, b->model) == 0 &&
           strcmp(a->metric_name, b->metric_name) == 0 && a->weight_bits == b->weight_bits &&
           a->act_bits == b->act_bits && a->input_tokens == b->input_tokens &&
           a->batch == b->batch && a->value == b->value && strcmp(a->source, b->source) == 0;
}

/* Tables with other columns (energy, co-runs, recipes ...) have readers and tests of their own. */
START_TEST(each_row_of_a_shipped_table_is_there_once_and_has_a_source)
{
    glob_t files;
    size_t n_tables = 0;
    ck_assert_int_eq(glob(datadir_path("hwmodels/points/*.csv"), 0, NULL, &files), 0);
    for (size_t f = 0; f < files.gl_pathc; f++) {
        char text[4096];
        FILE *in = fopen(files.gl_pathv[f], "r");
        do {
            ck_assert_ptr_nonnull(fgets(text, sizeof text, in));
        } while (text[0] == '#');
        ck_assert_int_eq(fclose(in), 0);
        if (strcmp(text, HEAD) != 0) {
            continue;
        }
        n_tables++;
        ck_assert_int_eq(points_read(files.gl_pathv[f], &points, &err), 0);
        for (size_t i = 0; i < points.n; i++) {
            const struct point *p = &points.v[i];
            ck_assert_msg(p->source[0] != '\0', "%s:%llu: no source", files.gl_pathv[f],
                          (unsigned long long)p->line);
            for (size_t j = 0; j < i; j++) {
                ck_assert_msg(!same_row(p, &points.v[j]), "%s:%llu: there twice", files.gl_pathv[f],
                              (unsigned long long)p->line);
            }
        }
    }
    globfree(&files);
    ck_assert_uint_ge(n_tables, 8);
}
END_TEST

/* A GGUF file of Qwen3 30B-A3B has 4 bits in its experts, 8 outside and 6 in its head. The
 * runtime's 0.5625 bytes do not replace them, nor does the size of the file, and the head is not
 * widened. Each of 48 layers has 128 experts of 3 x 2048 x 768, 32 queries and 4 keys of 128
 * elements. Rows of 8 bits are of another file. */
START_TEST(a_file_with_the_bytes_of_its_tensors_keeps_them)
{
    SCOPED(json_drop) cJSON *tree = json_read_file("hwmodels/llm/qwen3-30b-a3b.json", &err);
    (void)cJSON_SetNumberValue(json_member(tree, "weight_bits"), 4);
    const struct {
        const char *key;
        double bytes;
    } own[] = {{"body_bytes_per_weight", 0.62},
               {"dense_bytes_per_weight", 1.0625},
               {"head_bytes_per_weight", 0.8203}};
    for (int i = 0; i < 3; i++) {
        json_put_quantity(
            tree, own[i].key,
            (struct quantity){own[i].bytes, own[i].bytes, own[i].bytes, QUANTITY_DATASHEET, true},
            "B", "tensors");
    }
    OWNED char *text = cJSON_Print(tree);
    const char *model = tempfile_make(".json");
    tempfile_put(text);
    const double experts = 48.0 * 128.0 * 3.0 * 2048.0 * 768.0;
    const double attention = 48.0 * 2048.0 * (2.0 * 4096.0 + 2.0 * 512.0);
    const double heads = 2.0 * 2048.0 * 151936.0;
    static struct catalog catalog;
    ck_assert_int_eq(catalog_open(&catalog, &err), 0);
    struct point p = {.soc = "core-ultra-5-125h",
                      .device = "igpu",
                      .runtime = "openvino-2025",
                      .model = model,
                      .batch = 1,
                      .metric = POINT_TPOT_MS,
                      .value = 1.0};
    struct predict_case k;
    ck_assert_int_eq(catalog_add_models(&catalog, &(struct points){.v = &p, .n = 1}, &err), 0);
    p.weight_bits = 4;
    p.bytes_per_weight = 0.7;
    predict_bind(&catalog, &p, &k);
    ck_assert_double_eq_tol(k.llm.weight_bytes,
                            experts * 0.62 + attention * 1.0625 + heads * 0.8203, 1.0);
    p.weight_bits = 8;
    p.bytes_per_weight = 0.0;
    predict_bind(&catalog, &p, &k);
    ck_assert_double_eq_tol(k.llm.weight_bytes, experts * 1.01 + (attention + heads) * 1.0625, 1.0);
    tempfile_remove();
}
END_TEST

/* A file of Qwen3 30B-A3B has 0.7 bytes for each weight and 2 for each outside its experts. The 128
 * experts of 48 layers, of 3 x 2048 x 768 each, have the rest. gpt-oss-20b states 1.0625 for those
 * outside itself. With 0.9 outside the head has as many. 0.1 leaves no byte for experts, 3 leaves
 * them more than those outside, and Llama 2 has none. */
START_TEST(experts_have_what_others_leave)
{
    const double experts = 48.0 * 128.0 * 3.0 * 2048.0 * 768.0;
    static struct catalog c;
    ck_assert_int_eq(catalog_open(&c, &err), 0);
    struct point p = {.soc = "core-ultra-5-125h",
                      .device = "igpu",
                      .runtime = "openvino-2025",
                      .model = "qwen3-30b-a3b",
                      .source = "",
                      .weight_bits = 4,
                      .bytes_per_weight = 0.7,
                      .dense_bytes_per_weight = 2.0,
                      .batch = 1,
                      .metric = POINT_TPOT_MS,
                      .value = 1.0};
    struct predict_case k;
    predict_bind(&c, &p, &k);
    ck_assert_ptr_null(k.reason);
    double stored = llm_stored_weights(&k.llm);
    ck_assert_double_eq_tol(llm_expert_weights(&k.llm), experts, 1e-12 * (experts));
    ck_assert_double_eq_tol(k.llm.weight_bytes, 0.7 * stored, 1e-12 * (0.7 * stored));
    ck_assert_double_eq(k.llm.head_bytes_per_weight, 2.0);
    ck_assert_double_eq(k.llm.dense_bytes_per_weight, 2.0);
    ck_assert_double_eq_tol(k.llm.body_bytes_per_weight,
                            (0.7 * stored - 2.0 * (stored - experts)) / experts,
                            1e-12 * ((0.7 * stored - 2.0 * (stored - experts)) / experts));
    p.dense_bytes_per_weight = 0.9;
    predict_bind(&c, &p, &k);
    ck_assert_double_eq(k.llm.head_bytes_per_weight, 0.9);
    p.dense_bytes_per_weight = 2.0;
    p.bytes_per_weight = 0.1;
    predict_bind(&c, &p, &k);
    ck_assert_ptr_nonnull(k.reason);
    p.bytes_per_weight = 2.0 * (stored - experts) / stored; /* exactly none for experts */
    predict_bind(&c, &p, &k);
    ck_assert_ptr_nonnull(k.reason);
    p.bytes_per_weight = 3.0;
    predict_bind(&c, &p, &k);
    ck_assert_ptr_nonnull(k.reason);
    p.bytes_per_weight = 0.7;
    p.model = "llama-2-7b";
    predict_bind(&c, &p, &k);
    ck_assert_ptr_nonnull(k.reason);
    p.model = "gpt-oss-20b";
    p.dense_bytes_per_weight = 0.0;
    predict_bind(&c, &p, &k);
    ck_assert_double_eq(k.llm.head_bytes_per_weight, 1.0625);
    ck_assert_double_eq_tol(k.llm.weight_bytes, 0.7 * llm_stored_weights(&k.llm),
                            1e-12 * (0.7 * llm_stored_weights(&k.llm)));
    p.bytes_per_weight = 0.0; /* not stated */
    predict_bind(&c, &p, &k);
    ck_assert_ptr_null(k.reason);
}
END_TEST

/* DeepSeek V2 Lite has 64 experts, of 3 x 2048 x 1408 each, in 26 of its 27 layers. */
START_TEST(a_layer_without_experts_has_none)
{
    static struct catalog c;
    ck_assert_int_eq(catalog_open(&c, &err), 0);
    double experts = llm_expert_weights(catalog_llm(&c, "deepseek-v2-lite"));
    ck_assert_double_eq(experts, 26.0 * 64.0 * 3.0 * 2048.0 * 1408.0);
}
END_TEST

static const struct suite_row suite[] = {
    CASE("points", .setup = setup, .teardown = teardown),
    TEST(a_row_is_read_with_its_line_and_empty_widths),
    TEST(a_model_may_have_its_width),
    TEST(a_row_may_state_the_bytes_of_its_file),
    TEST(rows_without_a_value_come_last_and_only_where_they_are_asked_for),
    TEST(rates_are_turned_into_the_time_of_a_pass_and_back),
    TEST(a_tables_4_bit_file_weighs_what_its_recipe_says),
    TEST(a_file_with_the_bytes_of_its_tensors_keeps_them),
    TEST(experts_have_what_others_leave),
    TEST(a_rows_graphs_have_the_window_that_they_were_compiled_for),
    TEST(what_a_file_took_from_a_row_is_no_prediction_of_it),
    TEST(a_co_run_row_is_shared_by_the_contention_model_that_is_asked_for),
    TEST(what_no_form_can_know_is_in_the_rows_that_say_the_same),
    TEST(malformed_and_impossible_rows_are_refused_with_line_and_column),
    TEST(errors_are_those_of_hand_computation),
    TEST(bias_is_one_of_time_whatever_the_metric),
    TEST(names_are_one_but_for_case_and_punctuation_however_long),
    TEST(each_row_of_a_shipped_table_is_there_once_and_has_a_source),
    TEST(a_layer_without_experts_has_none),
};
SUITE_MAIN("points", suite)
