/* Output of llama-bench in its four forms, by hand: phases, models, widths, backends. */
#include <stdio.h>
#include <string.h>

#include "experiments/validation/measured.h"
#include "sim/base/scope.h"
#include "sim/base/text.h"
#include "tests/helpers/suite.h"
#include "tests/helpers/tempfile.h"

static struct err err;
static struct measured m;
static const char *path;

static void setup(void)
{
    err = (struct err)ERR_INIT;
    memset(&m, 0, sizeof m);
    path = tempfile_make("");
}

static void teardown(void)
{
    err_fini(&err);
    tempfile_remove();
}

static int read_text(const char *text)
{
    tempfile_put(text);
    return measured_read(path, "mine", &m, &err);
}

/* Prompt, generated, context behind: a test of one phase is a row at so many tokens. */
static const struct {
    int prompt, gen, depth;
    const char *metric; /* NULL: of no phase, or of two */
    uint32_t tokens;
} tests[] = {
    {512, 0, 0, "prefill_tok_s", 512},
    {0, 128, 0, "decode_tok_s", 0},
    {0, 128, 4096, "decode_tok_s", 4096},
    {512, 0, 4096, NULL, 0},
    {512, 128, 0, NULL, 0},
    {512, 128, 64, NULL, 0},
    {0, 0, 0, NULL, 0},
    {0, 0, 64, NULL, 0},
};
enum { TESTS = sizeof tests / sizeof tests[0] };

/* The rows in order, with rates 100, 101, ..; a file of a single test that is none is refused. */
static void compare(const char *form)
{
    size_t n = 0;
    for (int i = 0; i < TESTS; i++) {
        if (tests[i].metric != NULL) {
            ck_assert_msg(n < m.points.n, "%s: no row of test %d", form, i);
            const struct point *p = &m.points.v[n++];
            ck_assert_str_eq(p->metric_name, tests[i].metric);
            ck_assert_uint_eq(p->input_tokens, tests[i].tokens);
            ck_assert_double_eq(p->value, 100 + i);
            ck_assert_str_eq(p->model, "llama-2-7b");
            ck_assert_uint_eq(p->weight_bits, 4);
            ck_assert_str_eq(p->runtime, "llama.cpp-vulkan");
            ck_assert_str_eq(p->device, "igpu");
            ck_assert_str_eq(p->soc, "mine");
            ck_assert_uint_eq(p->batch, 1);
        }
    }
    ck_assert_msg(n == m.points.n, "%s: %zu rows", form, m.points.n);
}

START_TEST(a_test_is_of_one_phase)
{
    SCOPED(text_fini) struct text csv = {0};
    SCOPED(text_fini) struct text json = {0};
    text_string(&csv, "backends,model_filename,model_type,n_prompt,n_gen,n_depth,avg_ts\n");
    for (int i = 0; i < TESTS; i++) {
        text_format(&csv, "Vulkan,dir.Q8_0/llama-2-7b.Q4_0.gguf,llama 7B Q4_0,%d,%d,%d,%d\n",
                    tests[i].prompt, tests[i].gen, tests[i].depth, 100 + i);
        text_format(&json,
                    "%s{\"backends\":\"Vulkan\",\"model_filename\":\"llama-2-7b-Q4_0.gguf\","
                    "\"model_type\":\"llama 7B "
                    "Q4_0\",\"n_prompt\":%d,\"n_gen\":%d,\"n_depth\":%d,\"avg_ts\":%d}",
                    i > 0 ? "," : "[", tests[i].prompt, tests[i].gen, tests[i].depth, 100 + i);
    }
    text_string(&json, "]");
    ck_assert_msg(read_text(text_end(&csv)) == 0, "%s", err.n > 0 ? err.lines[0] : "");
    compare("CSV");
    memset(&m, 0, sizeof m);
    ck_assert_msg(read_text(text_end(&json)) == 0, "%s", err.n > 0 ? err.lines[0] : "");
    compare("JSON");
    memset(&m, 0, sizeof m); /* a test a line */
    OWNED char *lines = xstrdup(text_end(&json) + 1);
    for (char *p = lines; (p = strstr(p, "},{")) != NULL; p++) {
        p[1] = '\n';
    }
    *strrchr(lines, ']') = '\n';
    ck_assert_msg(read_text(lines) == 0, "%s", err.n > 0 ? err.lines[0] : "");
    compare("JSON lines");
}
END_TEST

/* A row has as many parameters as the file or the table says, and as many bytes for each. It has 0
 * where they say nothing. A size without parameters, or of over 8 bytes for each, does not count.
 */
START_TEST(a_row_has_its_models_parameters)
{
    static const struct {
        const char *text;
        double weights, bytes;
    } files[] = {
        {"[{\"model_type\":\"m\",\"model_filename\":\"f\",\"backends\":\"CPU\",\"n_prompt\":0,"
         "\"n_gen\":1,\"avg_ts\":1,\"model_n_params\":4000,\"model_size\":3000}]",
         4000.0, 0.75},
        {"model_type,model_filename,avg_ts,n_gen,n_prompt,backends,model_n_params,model_size\n"
         "m,f,5,1,0,CPU,8000,5000\n",
         8000.0, 0.625},
        {"model_type,model_filename,avg_ts,n_gen,n_prompt,backends,model_size\nm,f,5,1,0,CPU,"
         "5000\n",
         0.0, 0.0},
        {"| model | size | params | backend | test | t/s |\n"
         "| a | 3.50 GiB | 7.00 B | CPU | tg1 | 1 |\n",
         7e9, 3.5 * 1024 * 1024 * 1024 / 7e9},
        {"| model | size | params | backend | test | t/s |\n"
         "| a | 500.00 MiB | 500.00 M | CPU | tg1 | 1 |\n",
         5e8, 1.048576},
        {"| model | size | params | backend | test | t/s |\n"
         "| a | 500.00 GiB | 500.00 M | CPU | tg1 | 1 |\n",
         5e8, 0.0},
        {"[{\"model_type\":\"m\",\"model_filename\":\"f\",\"backends\":\"CPU\",\"n_prompt\":0,"
         "\"n_gen\":1,\"avg_ts\":1,\"model_n_params\":7241732096}]",
         7241732096.0, 0.0},
        {"model_type,model_filename,avg_ts,n_gen,n_prompt,backends,model_n_params\n"
         "m,f,5,1,0,CPU,494032768\n",
         494032768.0, 0.0},
        {"| model | params | backend | test | t/s |\n| a | 7.62 B | CPU | tg1 | 1 |\n", 7.62e9,
         0.0},
        {"| model | params | backend | test | t/s |\n| a | 494.03 M | CPU | tg1 | 1 |\n", 494.03e6,
         0.0},
        {"| model | params | backend | test | t/s |\n| a | ? | CPU | tg1 | 1 |\n", 0.0, 0.0},
        {"| model | backend | test | t/s |\n| a | CPU | tg1 | 1 |\n", 0.0, 0.0},
    };
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        memset(&m, 0, sizeof m);
        ck_assert_msg(read_text(files[i].text) == 0, "%s", err.n > 0 ? err.lines[0] : "");
        ck_assert_uint_eq(m.points.n, 1);
        ck_assert_double_eq_tol(m.points.v[0].weights, files[i].weights, 1.0);
        ck_assert_double_eq_tol(m.points.v[0].bytes_per_weight, files[i].bytes, 1e-12);
    }
}
END_TEST

START_TEST(a_table_names_its_tests)
{
    static const struct {
        const char *test, *metric;
        uint32_t tokens;
    } names[] = {{"pp512", "prefill_tok_s", 512},
                 {"tg128", "decode_tok_s", 0},
                 {"tg128 @ d4096", "decode_tok_s", 4096},
                 {"pp512 @ d4096", NULL, 0},
                 {"pp512+tg128", NULL, 0},
                 {"pp0", NULL, 0},
                 {"tg", NULL, 0},
                 {"xx512", NULL, 0},
                 {"tg128 @ d4x", NULL, 0},
                 {"pp16", "prefill_tok_s", 16}};
    enum { N = sizeof names / sizeof names[0] };
    SCOPED(text_fini) struct text t = {0};
    text_string(&t, "a line before\n| model | size | backend | test | t/s |\n| --- | ---: | :-- | "
                    "--: | --: |\n");
    for (int i = 0; i < N; i++) {
        text_format(&t, "  |llama 7B Q4_K - Medium | 4 GiB |\tCPU | %s | %d.5 \u00b1 0.25 |\n",
                    names[i].test, 100 + i);
    }
    ck_assert_msg(read_text(text_end(&t)) == 0, "%s", err.n > 0 ? err.lines[0] : "");
    size_t n = 0;
    for (int i = 0; i < N; i++) {
        if (names[i].metric != NULL) {
            ck_assert_uint_lt(n, m.points.n);
            const struct point *p = &m.points.v[n++];
            ck_assert_str_eq(p->metric_name, names[i].metric);
            ck_assert_uint_eq(p->input_tokens, names[i].tokens);
            ck_assert_double_eq(p->value, 100.5 + i);
            ck_assert_uint_eq(p->weight_bits, 4);
            ck_assert_str_eq(p->device, "cpu");
            ck_assert_str_eq(p->runtime, "llama.cpp");
            ck_assert_str_eq(p->model, "llama 7B");
        }
    }
    ck_assert_uint_eq(n, m.points.n);
}
END_TEST

/* Two runs may append to one file. Each table has its own head, and the build behind it. */
START_TEST(a_file_may_have_two_tables)
{
    ck_assert_int_eq(read_text("| model | backend | test | t/s |\n| -- | -- | -- | -- |\n"
                               "| a Q4_0 | Vulkan | pp512 | 10 |\n\nbuild: e6f3a1b (7210)\n"
                               "| model | backend | fa | test | t/s |\n| -- | -- | -- | -- | -- |\n"
                               "| a Q4_0 | CPU | 1 | tg128 | 20 |\n\nbuild: 0a1b2c3 (7300)\n"),
                     0);
    ck_assert_uint_eq(m.points.n, 2);
    ck_assert_str_eq(m.points.v[0].runtime, "llama.cpp-vulkan-7210");
    ck_assert_str_eq(m.points.v[1].runtime, "llama.cpp-7300");
    ck_assert_double_eq(m.points.v[0].value, 10.0);
    ck_assert_double_eq(m.points.v[1].value, 20.0);
}
END_TEST

/* The first backend decides; a processor's is llama.cpp alone. The format is the last part of the
 * file's name, or else of the type. */
START_TEST(files_say_model_width_and_backend)
{
    static const struct {
        const char *backends, *file, *type, *runtime, *device, *model;
        uint32_t bits;
    } rows[] = {
        {"Vulkan", "a/b/phi-2.Q8_0.gguf", "phi2 3B Q8_0", "llama.cpp-vulkan", "igpu", "phi-2", 8},
        {"\"Metal,BLAS\"", "phi-2-Q4_K_M.gguf", "phi2 3B Q4_K - Medium", "llama.cpp-metal", "igpu",
         "phi-2", 4},
        {"CPU", "phi-2.gguf", "phi2 3B F16", "llama.cpp", "cpu", "phi-2", 16},
        {"BLAS", "phi-2-F16", "phi2 3B F16", "llama.cpp", "cpu", "phi-2", 16},
        {"\"\"", "llama-3.2-1b.BF16.gguf", "llama 1B BF16", "llama.cpp", "cpu", "llama-3.2-1b", 16},
        {"SYCL", "x.gguf", "llama 1B Q6_K", "llama.cpp-sycl", "igpu", "x", 6},
    };
    enum { N = sizeof rows / sizeof rows[0] };
    SCOPED(text_fini) struct text t = {0};
    text_string(&t, "model_type,model_filename,avg_ts,n_gen,n_prompt,backends\n"); /* no depth */
    for (int i = 0; i < N; i++) {
        text_format(&t, "%s,%s,%d,128,0,%s\n", rows[i].type, rows[i].file, 10 + i,
                    rows[i].backends);
    }
    ck_assert_msg(read_text(text_end(&t)) == 0, "%s", err.n > 0 ? err.lines[0] : "");
    ck_assert_uint_eq(m.points.n, N);
    for (int i = 0; i < N; i++) {
        const struct point *p = &m.points.v[i];
        ck_assert_str_eq(p->runtime, rows[i].runtime);
        ck_assert_str_eq(p->device, rows[i].device);
        ck_assert_str_eq(p->model, rows[i].model);
        ck_assert_uint_eq(p->weight_bits, rows[i].bits);
        ck_assert_double_eq(p->value, 10 + i);
        ck_assert_uint_eq(p->input_tokens, 0);
        OWNED char *place = xformat("%s:%d", path, i + 2);
        ck_assert_str_eq(m.place[i], place);
    }
}
END_TEST

/* With no layer on the GPU the CPU decodes, and nothing says who computes the prompts. On a build
 * for the CPU alone nothing else is there. */
START_TEST(without_layers_on_the_gpu_the_cpu_decodes)
{
    static const char *const forms[] = {
        "model_type,model_filename,avg_ts,n_gen,n_prompt,backends,n_gpu_layers\n"
        "llama 7B Q4_0,x.gguf,90,0,512,Vulkan,0\nllama 7B Q4_0,x.gguf,8,128,0,Vulkan,0\n"
        "llama 7B Q4_0,x.gguf,9,128,0,Vulkan,99\nllama 7B Q4_0,x.gguf,70,0,512,CPU,0\n",
        "[{\"model_type\":\"llama 7B Q4_0\",\"model_filename\":\"x.gguf\",\"backends\":\"Vulkan\","
        "\"n_prompt\":512,\"n_gen\":0,\"avg_ts\":90,\"n_gpu_layers\":0},"
        "{\"model_type\":\"llama 7B Q4_0\",\"model_filename\":\"x.gguf\",\"backends\":\"Vulkan\","
        "\"n_prompt\":0,\"n_gen\":128,\"avg_ts\":8,\"n_gpu_layers\":0},"
        "{\"model_type\":\"llama 7B Q4_0\",\"model_filename\":\"x.gguf\",\"backends\":\"Vulkan\","
        "\"n_prompt\":0,\"n_gen\":128,\"avg_ts\":9,\"n_gpu_layers\":-1},"
        "{\"model_type\":\"llama 7B Q4_0\",\"model_filename\":\"x.gguf\",\"backends\":\"CPU\","
        "\"n_prompt\":512,\"n_gen\":0,\"avg_ts\":70,\"n_gpu_layers\":0}]",
        "| model | backend | ngl | test | t/s |\n| -- | -- | -- | -- | -- |\n"
        "| llama 7B Q4_0 | Vulkan | 0 | pp512 | 90 |\n| llama 7B Q4_0 | Vulkan | 0 | tg128 | 8 |\n"
        "| llama 7B Q4_0 | Vulkan | 99 | tg128 | 9 |\n| llama 7B Q4_0 | CPU | 0 | pp512 | 70 |\n"};
    static const struct {
        const char *device, *runtime;
        double value;
    } want[] = {{"cpu", "llama.cpp", 8}, {"igpu", "llama.cpp-vulkan", 9}, {"cpu", "llama.cpp", 70}};
    memset(&m, 0, sizeof m);
    ck_assert_msg(read_text(forms[_i]) == 0, "%s", err.n > 0 ? err.lines[0] : "");
    ck_assert_uint_eq(m.points.n, 3);
    for (int i = 0; i < 3; i++) {
        ck_assert_str_eq(m.points.v[i].device, want[i].device);
        ck_assert_str_eq(m.points.v[i].runtime, want[i].runtime);
        ck_assert_double_eq(m.points.v[i].value, want[i].value);
    }
}
END_TEST

static const struct {
    const char *text, *why;
} refusals[] = {
    {"model_type,model_filename,avg_ts,n_gen,n_prompt,backends\nm,f,5,0,0,CPU\n",
     ": holds no test of one phase"},
    {"model_type,model_filename,avg_ts,n_gen,n_prompt,backends\nm,f,0,128,0,CPU\n", ":2: "},
    {"model_type,model_filename,avg_ts,n_gen,n_prompt,backends\nm,f,5,1e9,0,CPU\n", ":2: "},
    {"[{\"model_type\":\"m\",\"model_filename\":\"f\",\"backends\":\"CPU\",\"n_prompt\":512,\"n_"
     "gen\":1,\"avg_ts\":1}]",
     ": holds no test of one phase"},
    {"[{\"model_type\":\"m\",\"model_filename\":\"f\",\"backends\":\"CPU\",\"n_prompt\":512,\"n_"
     "gen\":0,\"avg_ts\":0}]",
     ": [0].avg_ts: "},
    {"{\"model_type\":\"m\",\"model_filename\":\"f\",\"backends\":\"CPU\",\"n_prompt\":512,\"n_"
     "gen\":0,\"avg_ts\":1}\n{\"model_type\":\n",
     ":2: malformed JSON"},
    {"| model | backend | test | t/s |\n| a | CPU | pp1 | fast |\n",
     ":2: column t/s: 'fast' is not a rate"},
    {"| model | backend | test | t/s |\n| a | CPU | pp1 | 0.0 |\n",
     ":2: column t/s: '0.0' is not a rate"},
    {"| model | backend | test | t/s |\n| a | CPU | pp1 |\n", ":2: 3 cells where the head has 4"},
    {"| model | backend | test | rate |\n| a | CPU | pp1 | 1 |\n",
     ":1: no column 't/s': not a table of llama-bench"},
    {"| model | backend | test | t/s |\n| a | CPU | other | 1 |\n", ": holds no test of one phase"},
};

START_TEST(what_is_no_test_is_refused_with_its_place)
{
    ck_assert_int_eq(read_text(refusals[_i].text), -EINVAL);
    ck_assert_uint_ge(err.n, 1);
    OWNED char *want = xformat("%s%s", path, refusals[_i].why);
    ck_assert_msg(strncmp(err.lines[0], want, strlen(want)) == 0, "%s", err.lines[0]);
}
END_TEST

static const struct suite_row suite[] = {
    CASE("llama-bench", .setup = setup, .teardown = teardown),
    TEST(a_test_is_of_one_phase),
    TEST(a_row_has_its_models_parameters),
    TEST(a_table_names_its_tests),
    TEST(a_file_may_have_two_tables),
    TEST(files_say_model_width_and_backend),
    LOOP(without_layers_on_the_gpu_the_cpu_decodes, 3),
    LOOP(what_is_no_test_is_refused_with_its_place, sizeof refusals / sizeof refusals[0]),
};
SUITE_MAIN("llama-bench", suite)
