/* Rows that a user measured are read by hand: keys of the command line, and the files of
 * benchmarks. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "experiments/commands/measure_print.h"
#include "experiments/shell/cli.h"
#include "experiments/validation/measured.h"
#include "tests/helpers/suite.h"

static struct err err;
static struct measured m;
static char path[64];

static void setup(void)
{
    err = (struct err)ERR_INIT;
    memset(&m, 0, sizeof m);
    (void)snprintf(path, sizeof path, "/tmp/xpusim-measured-%ld.tmp", (long)getpid());
}

static void teardown(void)
{
    err_fini(&err);
    (void)remove(path);
}

static int read_file(const char *text)
{
    FILE *f = fopen(path, "w");
    ck_assert_ptr_nonnull(f);
    fputs(text, f);
    ck_assert_int_eq(fclose(f), 0);
    return measured_read(path, "mine", &m, &err);
}

static void expect(size_t i, const char *metric, const char *model, uint32_t bits, uint32_t tokens,
                   double value)
{
    ck_assert_uint_lt(i, m.points.n);
    const struct point *p = &m.points.v[i];
    ck_assert_str_eq(p->metric_name, metric);
    ck_assert_str_eq(p->model, model);
    ck_assert_str_eq(p->soc, "mine");
    ck_assert_uint_eq(p->weight_bits, bits);
    ck_assert_uint_eq(p->input_tokens, tokens);
    ck_assert_double_eq_tol(p->value, value, 1e-9 * value);
}

static void refused(const char *why)
{
    ck_assert_uint_gt(err.n, 0);
    ck_assert_msg(strstr(err.lines[0], why) != NULL, "%s", err.lines[0]);
}

START_TEST(keys_make_a_row_for_each_time)
{
    ck_assert_int_eq(measured_read("model=phi-2,bits=4,runtime=r-1,ttft_ms@1024=812,tpot_ms@0=61.5",
                                   "mine", &m, &err),
                     0);
    ck_assert_uint_eq(m.points.n, 2);
    expect(0, "ttft_ms", "phi-2", 4, 1024, 812);
    expect(1, "tpot_ms", "phi-2", 4, 0, 61.5);
    ck_assert_str_eq(m.points.v[0].device, "igpu");
    ck_assert_str_eq(m.points.v[0].runtime, "r-1");
    ck_assert_uint_eq(m.points.v[0].batch, 1);
}
END_TEST

/* The place of a key in the list does not matter. */
START_TEST(keys_hold_for_times_before_them)
{
    ck_assert_int_eq(
        measured_read("decode_tok_s@64=20,device=npu,bits=8,model=m,batch=2", "mine", &m, &err), 0);
    expect(0, "decode_tok_s", "m", 8, 64, 20);
    ck_assert_str_eq(m.points.v[0].device, "npu");
    ck_assert_uint_eq(m.points.v[0].batch, 2);
}
END_TEST

START_TEST(bad_keys_name_the_option)
{
    static const char *const bad[][2] = {
        {"model=m,bits=4", "states no time"},
        {"bits=4,ttft_ms@32=1", "needs model and bits"},
        {"model=m,ttft_ms@32=1", "needs model and bits"},
        {"model=m,bits=4,ttft_ms=1", "needs the number of tokens"},
        {"model=m,bits=4,ttft_ms@0=1", "measured"},
        {"model=m,bits=4,ttft_ms@32=-1", "measured"},
        {"model=m,bits=four,ttft_ms@32=1", "bits"},
        {"model=m,bits=4,ttft@32=1", "'ttft@32' is none of"},
        {"model=m,bits=4,quick", "'quick' is not key=value"},
        {"nonesuch.csv", "nonesuch.csv"},
        {"file=nonesuch.json,bits=4", "nonesuch.json"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        ck_assert_int_ne(measured_read(bad[i][0], "mine", &m, &err), 0);
        refused(bad[i][1]);
        err_fini(&err);
    }
}
END_TEST

START_TEST(a_width_is_read_from_a_formats_name)
{
    ck_assert_uint_eq(measured_bits("INT4"), 4);
    ck_assert_uint_eq(measured_bits("OV_FP16-INT8_ASYM"), 8);
    ck_assert_uint_eq(measured_bits("OV_FP16-4BIT_DEFAULT"), 4);
    ck_assert_uint_eq(measured_bits("FP16"), 16);
    ck_assert_uint_eq(measured_bits("BF16"), 16);
    ck_assert_uint_eq(measured_bits("Q4_K_M"), 4);
    ck_assert_uint_eq(measured_bits("IQ3_XS"), 3);
    ck_assert_uint_eq(measured_bits("all F32"), 32);
    ck_assert_uint_eq(measured_bits("7B"), 0);
    ck_assert_uint_eq(measured_bits("unknown"), 0);
}
END_TEST

#define POINTS "soc,device,runtime,model,weight_bits,act_bits,input_tokens,batch,metric,value\n"

START_TEST(of_points_the_machines_rows_count)
{
    ck_assert_int_eq(read_file(POINTS "mine,igpu,r-1,phi-2,4,16,32,1,ttft_ms,9\n"
                                      "other,igpu,r-1,phi-2,4,16,32,1,ttft_ms,8\n"),
                     0);
    ck_assert_uint_eq(m.points.n, 1);
    expect(0, "ttft_ms", "phi-2", 4, 32, 9);
    ck_assert(strstr(m.place[0], ":2") != NULL);
    ck_assert_int_ne(read_file(POINTS "other,igpu,r-1,phi-2,4,16,32,1,ttft_ms,8\n"), 0);
    refused("no row is about mine");
}
END_TEST

/* Iteration 0 warms up: the prompt of 32 tokens takes (50 + 52)/2 and (20 + 22)/2 ms. The second
 * prompt has one iteration, and that counts. */
static const char llm_bench_json[] =
    "{\"metadata\": {\"model\": \"llama-2-7b-chat\", \"framework\": \"ov\", \"device\": \"GPU\","
    " \"precision\": \"OV_FP16-INT4_SYM\", \"num_beams\": 1, \"batch_size\": 1},\n"
    " \"perfdata\": {\"compile_time\": 3.1, \"results\": [\n"
    "  {\"iteration\": 0, \"input_size\": 32, \"first_latency\": 900, \"second_avg_latency\": 90,"
    "   \"prompt_idx\": 0},\n"
    "  {\"iteration\": 0, \"input_size\": 1024, \"first_latency\": 812, \"second_avg_latency\": 25,"
    "   \"prompt_idx\": 1},\n"
    "  {\"iteration\": 1, \"input_size\": 32, \"first_latency\": 50, \"second_avg_latency\": 20,"
    "   \"prompt_idx\": 0},\n"
    "  {\"iteration\": 2, \"input_size\": 32, \"first_latency\": 52, \"second_avg_latency\": 22,"
    "   \"prompt_idx\": 0}]}}\n";

START_TEST(llm_bench_json_is_averaged_without_its_warm_up)
{
    ck_assert_int_eq(read_file(llm_bench_json), 0);
    ck_assert_uint_eq(m.points.n, 4);
    expect(0, "ttft_ms", "llama-2-7b-chat", 4, 32, 51);
    expect(1, "tpot_ms", "llama-2-7b-chat", 4, 32, 21);
    expect(2, "ttft_ms", "llama-2-7b-chat", 4, 1024, 812);
    expect(3, "tpot_ms", "llama-2-7b-chat", 4, 1024, 25);
    ck_assert_str_eq(m.points.v[0].device, "igpu");
    ck_assert_str_eq(m.points.v[0].runtime, "");
}
END_TEST

START_TEST(keys_replace_what_a_file_says)
{
    ck_assert_int_eq(read_file(llm_bench_json), 0);
    char text[128];
    (void)snprintf(text, sizeof text, "file=%s,runtime=openvino-2025.3,bits=8,model=x", path);
    ck_assert_int_eq(measured_read(text, "mine", &m, &err), 0);
    ck_assert_uint_eq(m.points.n, 8);
    expect(4, "ttft_ms", "x", 8, 32, 51);
    ck_assert_str_eq(m.points.v[4].runtime, "openvino-2025.3");
}
END_TEST

/* A key or a file states each number of a row. A file's number of weights is its own model's, so a
 * user who names another model has none; every other key leaves it. */
START_TEST(a_named_model_has_its_own_weights)
{
    static const struct {
        const char *keys, *model;
        double weights;
    } all[] = {{"", "llama-2-7b", 7e9},           {",bits=4", "llama-2-7b", 7e9},
               {",runtime=r", "llama-2-7b", 7e9}, {",device=npu", "llama-2-7b", 7e9},
               {",batch=2", "llama-2-7b", 7e9},   {",model=x", "x", 0.0},
               {",model=x,bits=4", "x", 0.0}};
    FILE *f = fopen(path, "w");
    ck_assert_ptr_nonnull(f);
    (void)fputs("build_number,backends,model_filename,model_type,model_n_params,n_prompt,n_gen,"
                "n_depth,avg_ts\n9,CPU,llama-2-7b.Q8_0.gguf,llama 7B Q8_0,7000000000,512,0,0,80\n",
                f);
    ck_assert_int_eq(fclose(f), 0);
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        char text[128];
        (void)snprintf(text, sizeof text, "file=%s%s", path, all[i].keys);
        ck_assert_msg(measured_read(text, "mine", &m, &err) == 0, "%s: %s", text, err.lines[0]);
        ck_assert_uint_eq(m.points.n, i + 1);
        ck_assert_str_eq(m.points.v[i].model, all[i].model);
        ck_assert_double_eq(m.points.v[i].weights, all[i].weights);
    }
}
END_TEST

/* The last lines are averages and the legend, as llm_bench writes them. */
START_TEST(llm_bench_csv_is_the_same)
{
    ck_assert_int_eq(read_file("iteration,model,framework,device,input_size,1st_latency(ms),"
                               "2nd_avg_latency(ms),precision,prompt_idx,num_beams,batch_size\n"
                               "0,phi-2,ov,NPU,32,900,90,INT8,0,1,1\n"
                               "1,phi-2,ov,NPU,32,50,20,INT8,0,1,1\n"
                               "2,phi-2,ov,NPU,32,52,NA,INT8,0,1,1\n"
                               "avg,phi-2,ov,NPU,32,51,20,INT8,0,1,1\n"
                               ",,,,,,,,,,\n"
                               "input_size: Input token size,,,,,,,,,,\n"),
                     0);
    ck_assert_uint_eq(m.points.n, 2);
    expect(0, "ttft_ms", "phi-2", 8, 32, 51);
    expect(1, "tpot_ms", "phi-2", 8, 32, 20); /* of the one iteration with a second token */
    ck_assert_str_eq(m.points.v[0].device, "npu");
}
END_TEST

#define LLM_BENCH_HEAD                                                                             \
    "iteration,model,framework,device,input_size,1st_latency(ms),2nd_avg_latency(ms),precision,"   \
    "prompt_idx,num_beams,batch_size\n"

/* Reports that were joined to one file: those of one model have a prompt 0 each, of 32 and of 1024
 * tokens. Those of two models would be rows of one. */
START_TEST(joined_reports_of_llm_bench_are_kept_apart)
{
    ck_assert_int_eq(read_file(LLM_BENCH_HEAD "0,phi-2,ov,GPU,32,90,9,INT8,0,1,1\n"
                                              "1,phi-2,ov,GPU,32,50,20,INT8,0,1,1\n" LLM_BENCH_HEAD
                                              "0,phi-2,ov,GPU,1024,900,9,INT8,0,1,1\n"
                                              "1,phi-2,ov,GPU,1024,700,22,INT8,0,1,1\n"),
                     0);
    ck_assert_uint_eq(m.points.n, 4);
    expect(0, "ttft_ms", "phi-2", 8, 32, 50);
    expect(1, "tpot_ms", "phi-2", 8, 32, 20);
    expect(2, "ttft_ms", "phi-2", 8, 1024, 700);
    expect(3, "tpot_ms", "phi-2", 8, 1024, 22);
    ck_assert_int_ne(read_file(LLM_BENCH_HEAD "0,phi-2,ov,GPU,32,90,9,INT8,0,1,1\n" LLM_BENCH_HEAD
                                              "0,qwen3-8b,ov,GPU,32,900,90,INT8,0,1,1\n"),
                     0);
    refused(".tmp:4: another model, device, precision or batch_size than in the rows before");
}
END_TEST

/* llm_bench multiplies the tokens of a prompt by the batch: 4 prompts of 1024 tokens are 4096. In
 * its JSON -1 is an answer without a second token. */
START_TEST(llm_bench_counts_the_tokens_of_a_whole_batch)
{
    static const char rows[] = "{\"iteration\": 0, \"input_size\": 4096, \"first_latency\": 900, "
                               "\"second_avg_latency\": 90, \"prompt_idx\": 0},"
                               "{\"iteration\": 1, \"input_size\": 4096, \"first_latency\": 50, "
                               "\"second_avg_latency\": 20, \"prompt_idx\": 0},"
                               "{\"iteration\": 2, \"input_size\": 4096, \"first_latency\": 52, "
                               "\"second_avg_latency\": -1, \"prompt_idx\": 0}";
    OWNED char *text = xformat("{\"metadata\": {\"model\": \"m\", \"device\": \"GPU\", "
                               "\"precision\": \"INT4\", \"num_beams\": 1, \"batch_size\": 4},"
                               "\"perfdata\": {\"results\": [%s]}}",
                               rows);
    ck_assert_int_eq(read_file(text), 0);
    ck_assert_uint_eq(m.points.n, 2);
    expect(0, "ttft_ms", "m", 4, 1024, 51);
    expect(1, "tpot_ms", "m", 4, 1024, 20);
    ck_assert_uint_eq(m.points.v[0].batch, 4);
}
END_TEST

START_TEST(bad_reports_name_their_place)
{
    ck_assert_int_ne(read_file("{\"metadata\": {\"model\": \"m\", \"device\": \"GPU\", "
                               "\"precision\": \"INT4\", \"num_beams\": 1, \"batch_size\": 1},"
                               "\"perfdata\": {\"results\": [{\"iteration\": 0, \"input_size\": 32,"
                               "\"prompt_idx\": 0, \"first_latency\": \"slow\","
                               "\"second_avg_latency\": 1}]}}"),
                     0);
    refused("perfdata.results[0].first_latency");
    err_fini(&err);
    ck_assert_int_ne(read_file("{\"a\": 1}"), 0);
    refused("neither a report");
    err_fini(&err);
    ck_assert_int_ne(read_file("iteration,1st_latency(ms)\n1,2\n"), 0);
    refused("model");
    err_fini(&err);
    ck_assert_int_ne(read_file("| model | backend | test |\n| --- | --- | --- |\n"), 0);
    refused(".tmp:1: no column 't/s'");
    err_fini(&err);
    ck_assert_int_ne(read_file("| model | backend | test | t/s |\n| --- | --- | --- | --- |\n"
                               "| llama 7B Q4_0 | CPU | pp512 | fast |\n"),
                     0);
    refused(".tmp:3: column t/s: 'fast'");
}
END_TEST

/* Prompts alone and generations alone count; pp512+tg128 is of both phases. */
START_TEST(llama_bench_markdown_is_read)
{
    ck_assert_int_eq(
        read_file("ggml_vulkan: Found 1 Vulkan devices:\n"
                  "| model                          |       size |     params | backend    | ngl |"
                  "          test |                  t/s |\n"
                  "| ------------------------------ | ---------: | ---------: | ---------- | --: |"
                  " ------------: | -------------------: |\n"
                  "| llama 7B Q4_0                  |   3.56 GiB |     6.74 B | Vulkan     |  99 |"
                  "         pp512 |        512.34 \xc2\xb1 1.20 |\n"
                  "| llama 7B Q4_0                  |   3.56 GiB |     6.74 B | Vulkan     |  99 |"
                  " tg128 @ d4096 |         15.50 \xc2\xb1 0.10 |\n"
                  "| llama 7B Q4_0                  |   3.56 GiB |     6.74 B | Vulkan     |  99 |"
                  "   pp512+tg128 |         60.00 \xc2\xb1 0.10 |\n"
                  "\nbuild: 1234 (5678)\n"),
        0);
    ck_assert_uint_eq(m.points.n, 2);
    expect(0, "prefill_tok_s", "llama 7B", 4, 512, 512.34);
    expect(1, "decode_tok_s", "llama 7B", 4, 4096, 15.5);
    ck_assert_str_eq(m.points.v[0].runtime, "llama.cpp-vulkan-5678");
    ck_assert_str_eq(m.points.v[1].runtime, "llama.cpp-vulkan-5678");
    ck_assert_str_eq(m.points.v[0].device, "igpu");
}
END_TEST

/* The file's name says more of the model than its type. */
START_TEST(llama_bench_csv_and_json_are_read)
{
    ck_assert_int_eq(
        read_file("build_commit,build_number,backends,model_filename,model_type,n_prompt,n_gen,"
                  "n_depth,avg_ts\n"
                  "\"a\",\"78\",\"CPU\",\"m/llama-2-7b.Q8_0.gguf\",\"llama 7B Q8_0\",\"512\","
                  "\"0\",\"0\",\"80.5\"\n"
                  "\"a\",\"0\",\"CPU\",\"m/llama-2-7b.Q8_0.gguf\",\"llama 7B Q8_0\",\"0\","
                  "\"128\",\"0\",\"9.25\"\n"),
        0);
    expect(0, "prefill_tok_s", "llama-2-7b", 8, 512, 80.5);
    expect(1, "decode_tok_s", "llama-2-7b", 8, 0, 9.25);
    ck_assert_str_eq(m.points.v[0].runtime, "llama.cpp-78");
    ck_assert_str_eq(m.points.v[1].runtime, "llama.cpp");
    ck_assert_str_eq(m.points.v[0].device, "cpu");
    ck_assert_int_eq(
        read_file("[{\"build_number\": 9, \"backends\": \"Metal,BLAS\", \"model_filename\": "
                  "\"phi-2-q4_k_m.gguf\","
                  "\"model_type\": \"phi2 3B Q4_K - Medium\", \"n_prompt\": 512, \"n_gen\": 0,"
                  "\"avg_ts\": 700}]"),
        0);
    ck_assert_uint_eq(m.points.n, 3);
    expect(2, "prefill_tok_s", "phi-2", 4, 512, 700);
    ck_assert_str_eq(m.points.v[2].runtime, "llama.cpp-metal-9");
}
END_TEST

/* Every reason that a row may state. Rows of other metrics are no times. */
static const char *const flags[] = {"foreign_cpu",  "steal",      "lost_core", "spikes",
                                    "few_samples",  "unscreened", "in_cache",  "deadline",
                                    "not_prepared", "failed"};
#define N_FLAGS (sizeof flags / sizeof flags[0])

static void row(FILE *f, const char *metric, const char *partner, const char *flag)
{
    (void)fprintf(f, "m,cpu,sim,k,8,16,2,1,%s,1,s,cpu,gemm,2,100,100,%s,0,9,1,1,,,fit,%s\n", metric,
                  partner, flag);
}

/* The exit status for so many trusted times, and what is printed. */
static int summary(size_t trusted, const size_t n[N_FLAGS], char **text)
{
    FILE *f = fopen(path, "w");
    ck_assert_ptr_nonnull(f);
    (void)fputs("# xpusim-kernels v1 memory_bytes=0\nsoc,device,runtime,model,weight_bits,act_bits,"
                "input_tokens,batch,metric,value,source,kind,op,rows,flop,bytes,partner,repetition,"
                "samples,p10,p90,foreign_frac,steal_frac,set,flag\n",
                f);
    for (size_t k = 0; k < N_FLAGS; k++) {
        for (size_t i = 0; i < n[k]; i++) {
            row(f, "kernel_ms", "", flags[k]);
        }
    }
    for (size_t i = 0; i < trusted; i++) {
        row(f, "kernel_ms", "", "");
    }
    row(f, "first_ms", "", "");
    row(f, "compile_ms", "", "steal");
    row(f, "busy_frac", "", "");
    ck_assert_int_eq(fclose(f), 0);
    size_t bytes;
    FILE *out = open_memstream(text, &bytes);
    int status = measure_summary(path, out, &err);
    ck_assert_int_eq(fclose(out), 0);
    return status;
}

static size_t count_before(const char *text, const char *word)
{
    const char *at = strstr(text, word);
    ck_assert_msg(at != NULL, "%s is not in %s", word, text);
    while (at > text && at[-1] != '\n') {
        at--;
    }
    return strtoul(at, NULL, 10);
}

START_TEST(a_summary_counts_each_time_under_its_reason)
{
    size_t n[N_FLAGS];
    size_t sum = 0;
    for (size_t k = 0; k < N_FLAGS; k++) {
        n[k] = k + 1;
        sum += n[k]; /* 55 */
    }
    char *text;
    ck_assert_int_eq(summary(sum, n, &text), EXIT_OK); /* half of them is enough */
    OWNED char *head = xformat("%s: %zu of %zu times can be trusted\n", path, sum, 2 * sum);
    ck_assert_msg(strncmp(text, head, strlen(head)) == 0, "%s", text);
    ck_assert_ptr_null(strstr(text, "too few"));
    for (size_t k = 0; k < N_FLAGS; k++) {
        ck_assert_uint_eq(count_before(text, flags[k]), n[k]);
    }
    free(text);
    ck_assert_int_eq(summary(sum - 1, n, &text), EXIT_CHECK_FAILED);
    ck_assert_ptr_nonnull(strstr(text, "too few"));
    free(text);
    memset(n, 0, sizeof n);
    n[3] = 1;
    ck_assert_int_eq(summary(2, n, &text), EXIT_OK); /* what did not happen has no line */
    ck_assert_uint_eq(count_before(text, flags[3]), 1);
    for (size_t k = 0; k < N_FLAGS; k++) {
        ck_assert(k == 3 || strstr(text, flags[k]) == NULL);
    }
    free(text);
}
END_TEST

static const struct suite_row tests[] = {
    CASE("measured rows", .setup = setup, .teardown = teardown),
    TEST(keys_make_a_row_for_each_time),
    TEST(keys_hold_for_times_before_them),
    TEST(bad_keys_name_the_option),
    TEST(a_width_is_read_from_a_formats_name),
    TEST(of_points_the_machines_rows_count),
    TEST(llm_bench_json_is_averaged_without_its_warm_up),
    TEST(keys_replace_what_a_file_says),
    TEST(a_named_model_has_its_own_weights),
    TEST(llm_bench_csv_is_the_same),
    TEST(joined_reports_of_llm_bench_are_kept_apart),
    TEST(llm_bench_counts_the_tokens_of_a_whole_batch),
    TEST(bad_reports_name_their_place),
    TEST(llama_bench_markdown_is_read),
    TEST(llama_bench_csv_and_json_are_read),
    TEST(a_summary_counts_each_time_under_its_reason),
};
SUITE_MAIN("measured rows", tests)
