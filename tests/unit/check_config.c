/* From options to a setup: overrides reach the simulation, errors name their place. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "experiments/run/config.h"
#include "experiments/run/config_notes.h"
#include "experiments/run/config_sim.h"
#include "experiments/shell/cli.h"
#include "sim/base/arena.h"
#include "sim/base/json.h"
#include "sim/base/units.h"
#include "tests/helpers/suite.h"
#include "tests/helpers/tempfile.h"
#include "traces/traces.h"

#define WORKLOAD "mixed:reactive_per_min=6,proactive_per_min=6,duration_s=120"

static struct config_options options;
static struct config config;
static struct err err;

static void setup(void)
{
    options = config_options_default();
    options.workload = WORKLOAD;
    memset(&config, 0, sizeof config);
    err = (struct err)ERR_INIT;
}

static void teardown(void)
{
    config_fini(&config);
    err_fini(&err);
    tempfile_remove();
}

/* Reads one option as on a command line; 0 or -EINVAL. */
static int take(const char *name, const char *arg)
{
    static const struct option_child children[] = {{&config_option_table, 0, NULL, true}, {0}};
    static const struct command c = {
        .name = "test", .usage = "", .children = children, .bytes = sizeof(struct config_options)};
    char option[64];
    (void)snprintf(option, sizeof option, "--%s", name);
    char *argv[] = {(char *)(uintptr_t) "test", option, (char *)(uintptr_t)arg, NULL};
    struct config_options read = {0};
    int rc = options_parse(&c, arg != NULL ? 3 : 2, argv, &read, &err);
    config_options_overlay(&options, &read);
    return rc;
}

static void expect_error(size_t line, const char *a, const char *b)
{
    ck_assert_uint_gt(err.n, line);
    ck_assert_msg(strstr(err.lines[line], a) != NULL && strstr(err.lines[line], b) != NULL, "%s",
                  err.lines[line]);
}

START_TEST(defaults_are_the_documented_ones)
{
    ck_assert_int_eq(config_load(&config, &options, &err), 0);
    ck_assert_str_eq(config.soc.machine.name, CONFIG_DEFAULT_SOC);
    ck_assert_str_eq(config.contention->name, "latency");
    ck_assert_str_eq(config.truth.model.ops->name, "extended");
    /* A normal's median |z| is 0.6745: 0.088 / 0.6745 = 0.1305, 0.048 / 0.6745 = 0.0712. */
    ck_assert_double_eq_tol(config.sim.annotation.sigma_prefill, 0.088 / 0.6745, 5e-4);
    ck_assert_double_eq_tol(config.sim.annotation.sigma_decode, 0.048 / 0.6745, 5e-4);
    struct config_policy p;
    struct trace t = {0};
    struct sim_setup s;
    ck_assert_int_eq(config_policy_parse(&p, "fcfs", &err), 0);
    config_setup(&config, &p, &t, 7, &s);
    ck_assert_int_eq(s.horizon_ns, TIME_NEVER_NS);
    ck_assert_uint_eq(s.seed, 7);
    ck_assert(s.prefix_reuse && s.collapse && s.truth_sigma == 0.0);
    ck_assert_uint_eq(s.weight_copies, 1);
    ck_assert_int_eq(s.stall_ns, 3600 * NS_PER_S);
}
END_TEST

START_TEST(options_and_overrides_reach_the_setup)
{
    ck_assert_int_eq(take("set", "sim.contention=none"), 0);
    ck_assert_int_eq(take("set", "sim.horizon_s=2.5"), 0);
    ck_assert_int_eq(take("set", "sim.kv_capacity_tokens=5000"), 0);
    ck_assert_int_eq(take("set", "sim.prefix_reuse=false"), 0);
    ck_assert_int_eq(take("set", "sim.collapse=false"), 0);
    ck_assert_int_eq(take("set", "sim.annotation.sigma_prefill=0.2"), 0);
    ck_assert_int_eq(take("set", "sim.annotation.sigma_decode=0.1"), 0);
    ck_assert_int_eq(take("set", "sim.truth_sigma=0.05"), 0);
    ck_assert_int_eq(take("set", "sim.annotation.bias_frac.ffn=-0.25"), 0);
    ck_assert_int_eq(take("set", "llm.layers=7"), 0);
    ck_assert_int_eq(take("set", "soc.ddr.peak=50"), 0);
    ck_assert_int_eq(take("set", "sim.contention=proportional"), 0); /* the last one counts */
    /* No engine may draw more than the DDR gives. */
    ck_assert_int_eq(config_load(&config, &options, &err), -EINVAL);
    config_fini(&config);
    err_fini(&err);
    err = (struct err)ERR_INIT;
    ck_assert_int_eq(take("set", "soc.ddr.peak=100"), 0);
    ck_assert_msg(config_load(&config, &options, &err) == 0, "%s", err.n > 0 ? err.lines[0] : "");
    struct config_policy p;
    struct trace t = {0};
    struct sim_setup s;
    ck_assert_int_eq(config_policy_parse(&p, "fcfs", &err), 0);
    config_setup(&config, &p, &t, 1, &s);
    ck_assert_str_eq(s.contention->name, "proportional");
    ck_assert_int_eq(s.horizon_ns, 2500 * NS_PER_MS);
    ck_assert_uint_eq(s.kv_capacity_tokens, 5000);
    ck_assert(!s.prefix_reuse && !s.collapse);
    ck_assert_double_eq(s.annotation.sigma_prefill, 0.2);
    ck_assert_double_eq(s.annotation.sigma_decode, 0.1);
    ck_assert_double_eq(s.annotation.bias_frac[OP_FFN], -0.25);
    ck_assert_double_eq(s.annotation.bias_frac[OP_QKV], 0.0);
    ck_assert_double_eq(s.truth_sigma, 0.05);
    ck_assert_uint_eq(s.llm->n_layers, 7);
    ck_assert_double_eq(s.machine->ddr_peak_bytes_per_s, 100e9);
}
END_TEST

static char notes[512];

static void collect(void *to, const char *text)
{
    (void)to;
    (void)snprintf(notes + strlen(notes), sizeof notes - strlen(notes), "%s\n", text);
}

/* A file of two-cores with measured kernels of random-256 and `models`, which it states. */
static const char *calibrated(const char *models)
{
    const char *path = tempfile_make(".json");
    static const char list[] = "[{\"rows\":1,\"us\":10,\"low\":9,\"high\":11}]";
    char *ops =
        xformat("{\"model\":\"random-256\",\"source\":\"test\",\"qkv\":%s,\"ffn\":%s,\"head\":%s,"
                "\"prefill\":{\"fixed_us\":1,\"pair_ns\":1,\"row_us\":1},"
                "\"decode\":{\"fixed_us\":1,\"key_ns\":1,\"row_us\":1},"
                "\"layer\":{\"fixed_us\":1,\"key_ns\":1}}",
                list, list, list);
    cJSON *soc = json_read_file(soc_path("two-cores"), &err);
    cJSON *stated = cJSON_Parse(models);
    cJSON *device = cJSON_GetObjectItem(soc, "devices")->child;
    cJSON_AddItemToObject(cJSON_GetObjectItem(device, "runtimes")->child, "ops", cJSON_Parse(ops));
    while (stated->child != NULL) {
        cJSON *one = cJSON_DetachItemViaPointer(stated, stated->child);
        cJSON_AddItemToObject(soc, one->string, one);
    }
    ck_assert_int_eq(json_write_file(path, soc, &err), 0);
    cJSON_Delete(stated);
    cJSON_Delete(soc);
    free(ops);
    return path;
}

static void load_notes(void)
{
    int rc = config_load(&config, &options, &err);
    ck_assert_msg(rc == 0, "%s", err.n > 0 ? err.lines[0] : "");
    notes[0] = '\0';
    config_notes(&config, collect, NULL);
}

/* A run uses the models that its file was calibrated with; each option that differs is one
 * sentence. */
START_TEST(a_file_runs_with_the_models_that_it_states)
{
    options.soc = calibrated("{\"hwmodel\":\"per-op\",\"contention\":\"beside\"}");
    options.llm = "random-256";
    load_notes();
    ck_assert_str_eq(config.sim.hwmodel, "per-op");
    ck_assert_str_eq(config.contention->name, "beside");
    ck_assert_str_eq(notes, "");
    config_fini(&config);
    take("set", "sim.hwmodel=extended");
    take("set", "sim.contention=none");
    load_notes();
    ck_assert_str_eq(
        notes,
        "the numbers of two-cores were fitted with sim.hwmodel=per-op; this run uses extended\n"
        "the numbers of two-cores were fitted with sim.contention=beside; this run uses none\n");
}
END_TEST

/* A file with measured kernels that states no model, as written before files did: the kernels lie
 * unused, and that is a sentence too. */
START_TEST(measured_kernels_that_are_not_used_are_named)
{
    options.soc = calibrated("{}");
    options.llm = "random-256";
    load_notes();
    ck_assert_str_eq(
        notes,
        "the numbers of two-cores were fitted with sim.hwmodel=per-op; this run uses extended\n");
    config_fini(&config);
    take("set", "sim.hwmodel=per-op");
    load_notes();
    ck_assert_str_eq(notes, "");
    config_fini(&config);
    options.llm = "random-1024";
    load_notes();
    ck_assert_str_eq(notes, "two-cores has measured kernels of random-256, none of random-1024: "
                            "kernel times come from its rates, which may be those of a data "
                            "sheet\n");
}
END_TEST

START_TEST(bad_options_are_refused_with_their_name)
{
    ck_assert_int_eq(take("seed", "12x"), -EINVAL);
    expect_error(0, "--seed", "12x");
    ck_assert_int_eq(take("seed", "99999999999999999999"), -EINVAL);
    ck_assert_int_eq(take("set", "nothing"), -EINVAL);
    expect_error(2, "--set nothing", "PATH=VALUE");
    ck_assert_int_eq(take("seed", "9007199254740992"), 0);
    ck_assert_uint_eq(options.seed, 9007199254740992);
    ck_assert_int_eq(take("seed", "9007199254740993"), -EINVAL);
    expect_error(3, "--seed 9007199254740993", "from 0 to 9007199254740992");
}
END_TEST

START_TEST(all_wrong_values_of_a_configuration_are_reported_at_once)
{
    ck_assert_int_eq(take("set", "sim.nonsense=1"), 0);
    ck_assert_int_eq(take("set", "sim.collapse=7"), 0);
    ck_assert_int_eq(config_load(&config, &options, &err), -EINVAL);
    ck_assert_uint_eq(err.n, 2);
    expect_error(0, "sim.nonsense", "nonsense");
    expect_error(1, "sim.collapse", "7");
}
END_TEST

/* 89.6 GB/s move 89.6 MB in 1 ms. */
START_TEST(a_frame_moves_no_more_than_the_ddr_can)
{
    ck_assert_int_eq(take("set", "sim.graphics.frames_per_s=10"), 0);
    ck_assert_int_eq(take("set", "sim.graphics.frame_s=0.001"), 0);
    ck_assert_int_eq(take("set", "sim.graphics.frame_bytes=89.7e6"), 0);
    ck_assert_int_eq(config_load(&config, &options, &err), -EINVAL);
    expect_error(0, "sim.graphics.frame_bytes", "ddr.peak");
}
END_TEST

START_TEST(unknown_names_list_what_there_is)
{
    options.soc = "no-such-soc";
    ck_assert_int_eq(config_load(&config, &options, &err), -EINVAL);
    expect_error(0, "no-such-soc", "list soc");
    config_fini(&config);
    options.soc = CONFIG_DEFAULT_SOC;
    ck_assert_int_eq(take("set", "sim.contention=magic"), 0);
    ck_assert_int_eq(take("set", "sim.hwmodel=oracle"), 0);
    ck_assert_int_eq(config_load(&config, &options, &err), -EINVAL);
    expect_error(1, "magic", "max-min");
    expect_error(2, "oracle", "extended");
    struct config_policy p;
    ck_assert_int_eq(config_policy_parse(&p, "no-such-policy:x=1", &err), -EINVAL);
    expect_error(3, "'no-such-policy'", "fcfs");
    ck_assert_int_eq(config_policy_parse(&p, "fcfs:device=moon", &err), -EINVAL);
    expect_error(4, "device=moon", "igpu");
}
END_TEST

/* Text behind 300 characters makes two labels and two sets of parameters different. */
START_TEST(labels_and_parameters_of_any_length_are_kept_whole)
{
    static const char *const spec =
        "agent-xpu-v2:prefill_first=true,yield=kernel,elastic=on,beta=0.25,warmup=true,"
        "warm_reactive=false,cache_entries=8,cache_ttl_s=60,memory_rule=igpu,max_batch=32,"
        "length_bucket=256,preempt=kernel,suspended=1,ageing=true,t_age_s=900,aged_chunks=true,"
        "cap=fixed,tbt_slo_ms=200,epsilon=0.1,speculate=none,verify_rows=32,draft_ms=3,b_rf=7";
    struct config_policy p;
    ck_assert_uint_gt(strlen(spec), 300);
    ck_assert_int_eq(config_policy_parse(&p, spec, &err), 0);
    ck_assert_str_eq(p.label, spec);
    ck_assert_ptr_nonnull(strstr(p.params_text, "b_rf=7"));
    ck_assert_ptr_nonnull(strstr(p.params_text, "draft_ms=3"));
}
END_TEST

START_TEST(fingerprints_differ_where_configuration_trace_or_parameters_do)
{
    struct config_policy p;
    struct config_policy q;
    struct trace t = {.hash = 1};
    struct trace u = {.hash = 2};
    ck_assert_int_eq(config_load(&config, &options, &err), 0);
    ck_assert_int_eq(config_policy_parse(&p, "fcfs", &err), 0);
    ck_assert_int_eq(config_policy_parse(&q, "fcfs:device=npu", &err), 0);
    const char *a = xkeep(config_fingerprint(&config, &p, &t, 1));
    ck_assert_str_eq(a, xkeep(config_fingerprint(&config, &p, &t, 1)));
    ck_assert_str_ne(a, xkeep(config_fingerprint(&config, &p, &t, 2)));
    ck_assert_str_ne(a, xkeep(config_fingerprint(&config, &p, &u, 1)));
    ck_assert_str_ne(a, xkeep(config_fingerprint(&config, &q, &t, 1)));
    uint64_t hash = config.hash;
    config_fini(&config);
    ck_assert_int_eq(take("set", "soc.ddr.peak=90"), 0);
    ck_assert_int_eq(config_load(&config, &options, &err), 0);
    ck_assert_uint_ne(config.hash, hash);
}
END_TEST

START_TEST(compressed_arrivals_are_the_same_requests_sooner)
{
    struct trace t;
    struct trace u;
    ck_assert_int_eq(config_trace(&options, 5, CONFIG_AS_WRITTEN, &t, &err), 0);
    ck_assert_int_eq(
        config_trace(&options, 5, (struct config_arrivals){1.0, 50.0, false}, &u, &err), 0);
    ck_assert_uint_gt(t.n, 5);
    ck_assert_uint_eq(t.n, u.n);
    for (size_t i = 0; i < t.n_first; i++) {
        ck_assert_uint_eq(t.rows[i].input_tokens, u.rows[i].input_tokens);
        /* Arrivals are rounded to a nanosecond. */
        ck_assert_double_eq_tol((double)u.rows[i].arrival_ns, (double)t.rows[i].arrival_ns / 50.0,
                                0.51);
    }
    ck_assert_uint_ne(t.hash, u.hash);
    trace_fini(&u);
    /* Four times the rate over the same time gives more of them (24 expected before, 96 after). */
    ck_assert_int_eq(config_trace(&options, 5, (struct config_arrivals){4.0, 1.0, false}, &u, &err),
                     0);
    ck_assert_uint_gt(u.n, t.n);
    ck_assert_int_le(u.rows[u.n_first - 1].arrival_ns, 120 * NS_PER_S);
    trace_fini(&t);
    trace_fini(&u);
    options.trace = "x.csv";
    ck_assert_int_eq(config_trace(&options, 5, CONFIG_AS_WRITTEN, &t, &err), -EINVAL);
    expect_error(0, "--trace", "--workload");
}
END_TEST

/* Every request has the other class, the first and the last too, and nothing else changes. */
START_TEST(swapped_classes_are_those_of_all_requests)
{
    struct trace t;
    struct trace u;
    ck_assert_int_eq(config_trace(&options, 5, CONFIG_AS_WRITTEN, &t, &err), 0);
    ck_assert_int_eq(config_trace(&options, 5, (struct config_arrivals){1.0, 1.0, true}, &u, &err),
                     0);
    ck_assert_uint_gt(t.n, 5);
    ck_assert_uint_eq(t.n, u.n);
    trace_unpack(&t);
    for (size_t i = 0; i < t.n; i++) {
        bool reactive = t.rows[i].cls == REQUEST_CLASS_REACTIVE;
        ck_assert_int_eq(u.rows[i].cls,
                         reactive ? REQUEST_CLASS_PROACTIVE : REQUEST_CLASS_REACTIVE);
        ck_assert_uint_eq(u.rows[i].input_tokens, t.rows[i].input_tokens);
        ck_assert_uint_eq(u.rows[i].output_tokens, t.rows[i].output_tokens);
        ck_assert_int_eq(u.rows[i].arrival_ns, t.rows[i].arrival_ns);
    }
    ck_assert_uint_ne(t.hash, u.hash);
    trace_fini(&t);
    trace_fini(&u);
}
END_TEST

START_TEST(numbers_on_the_command_line_are_strict)
{
    double x = 0.0;
    uint32_t n = 0;
    double list[3];
    ck_assert_int_eq(cli_number("a", "2.5e1", 0, 100, &x, &err), 0);
    ck_assert_double_eq(x, 25.0);
    ck_assert_int_eq(cli_number_list("l", "0.5,0.9,1.3", 0, 2, list, 3, &n, &err), 0);
    ck_assert_uint_eq(n, 3);
    ck_assert_double_eq(list[2], 1.3);
    ck_assert_int_eq(cli_count("c", "17", 1, 20, &n, &err), 0);
    ck_assert_uint_eq(n, 17);
    ck_assert_uint_eq(err.n, 0);
    const char *const bad[] = {"", "x", "1x", " 1", "nan", "inf", "101", "-1", "1,"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        ck_assert_int_eq(cli_number("a", bad[i], 0, 100, &x, &err), -EINVAL);
        ck_assert_int_eq(cli_count("a", bad[i], 0, 100, &n, &err), -EINVAL);
        ck_assert_int_eq(cli_number_list("a", bad[i], 0, 100, list, 3, &n, &err), -EINVAL);
    }
    ck_assert_int_eq(cli_count("a", "1.5", 0, 100, &n, &err), -EINVAL);
    ck_assert_int_eq(cli_number_list("a", "1,2,3,4", 0, 100, list, 3, &n, &err), -EINVAL);
}
END_TEST

/* The table holds for command lines: every member has one row, both ends of its range are taken,
 * and a value beyond is refused with its path. */
static size_t offsets[128];
static size_t n_offsets;

static void try_setting(void *to, const char *name, const struct json_field *f)
{
    (void)to;
    for (size_t k = 0; k < n_offsets && f->below == NULL; k++) {
        ck_assert_msg(offsets[k] != f->offset, "%s has another's member", name);
    }
    if (f->below == NULL) {
        offsets[n_offsets++] = f->offset;
    }
    if (f->kind != JSON_FIELD_NUMBER && f->kind != JSON_FIELD_COUNT) {
        return;
    }
    ck_assert_msg(f->min <= f->otherwise && f->otherwise <= f->max, "%s", name);
    double step = f->kind == JSON_FIELD_COUNT ? 1.0 : 1e-6 * (1.0 + fabs(f->max));
    const double tried[] = {f->min, f->max, f->min - step, f->max + step};
    for (size_t k = 0; k < 4; k++) {
        cJSON *tree = cJSON_CreateObject();
        struct config_sim read;
        char path[128];
        char value[64];
        cJSON_AddItemToObject(tree, "sim", config_sim_to_json());
        (void)snprintf(path, sizeof path, "sim.%s", name);
        (void)snprintf(value, sizeof value, "%.17g", tried[k]);
        ck_assert_int_eq(json_set_path(tree, path, value, &err), 0);
        config_sim_parse(json_root(cJSON_GetObjectItem(tree, "sim"), "sim", &err), &read);
        ck_assert_msg(err.n == (k < 2 ? 0u : 1u), "%s=%s: %zu errors", path, value, err.n);
        if (k >= 2) {
            expect_error(0, name, "must be");
        } else if (f->kind == JSON_FIELD_NUMBER) {
            ck_assert(*(double *)((char *)&read + f->offset) == tried[k]);
        } else {
            ck_assert(*(uint32_t *)((char *)&read + f->offset) == tried[k]);
        }
        err_fini(&err);
        err = (struct err)ERR_INIT;
        cJSON_Delete(tree);
    }
}

START_TEST(every_setting_takes_its_range_and_no_more)
{
    n_offsets = 0;
    json_fields_each(&config_sim_fields, try_setting, NULL);
    ck_assert_uint_gt(n_offsets, 40);
}
END_TEST

/* Llama 3.2 3B has 28 layers. Each has Q and an output projection of 3072 x 3072, K and V of 3072 x
 * 1024 and three FFN matrices of 3072 x 8192. One head of 3072 x 128256 is for input and output. */
START_TEST(a_model_takes_another_width_of_weights)
{
    const double body = 28.0 * 3072.0 * (2.0 * 3072.0 + 2.0 * 1024.0 + 3.0 * 8192.0);
    const double head = 3072.0 * 128256.0;
    static const struct {
        const char *llm, *name;
        double body_bytes, head_bytes, kv_bytes;
    } rows[] = {
        {"llama-3.2-3b", "llama-3.2-3b", 1.01, 1.01, 1.0},
        {"llama-3.2-3b:bits=8", "llama-3.2-3b", 1.01, 1.01, 1.0},
        {"llama-3.2-3b:bits=4", "llama-3.2-3b:bits=4", 0.56, 1.01, 1.0},
        {"llama-3.2-3b:bits=16", "llama-3.2-3b:bits=16", 2.0, 2.0, 2.0},
        {"hwmodels/llm/llama-3.2-3b.json:bits=4", "llama-3.2-3b:bits=4", 0.56, 1.01, 1.0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        options.llm = rows[i].llm;
        ck_assert_int_eq(config_load(&config, &options, &err), 0);
        ck_assert_str_eq(config.llm.name, rows[i].name);
        double bytes = body * rows[i].body_bytes + head * rows[i].head_bytes;
        ck_assert_double_eq_tol(config.llm.weight_bytes, bytes, 1.0);
        ck_assert_double_eq_tol(config.llm.kv_bytes_per_token,
                                2.0 * 28.0 * 1024.0 * rows[i].kv_bytes, 1e-6);
        config_fini(&config);
    }
    static const char *const bad[] = {"llama-3.2-3b:bits=", "llama-3.2-3b:bits=0",
                                      "llama-3.2-3b:bits=33", "llama-3.2-3b:bits=4x",
                                      "llama-3.2-3b:bits=-4"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        options.llm = bad[i];
        ck_assert_int_eq(config_load(&config, &options, &err), -EINVAL);
        ck_assert(strstr(err.lines[err.n - 1], "bits must be a whole number from 1 to 32") != NULL);
        config_fini(&config);
    }
    ck_assert_int_eq(
        config_load(&config,
                    &(struct config_options){.soc = CONFIG_DEFAULT_SOC, .llm = CONFIG_DEFAULT_LLM},
                    &err),
        0);
}
END_TEST

/* gpt-oss-20b has 24 layers of 2880, with 64 queries and 8 keys of 64 elements and 32 experts of
 * 2880, and 201088 words for input and output. Q4_0 has 0.5625 B a weight. Its head would be Q6_K
 * (0.8203 B), and is Q8_0 (1.0625 B) as all outside its experts. */
START_TEST(a_runtime_keeps_no_head_narrower_than_what_is_outside_the_experts)
{
    options.soc = "ryzen-ai-max-395";
    options.llm = "gpt-oss-20b:bits=4";
    ck_assert_int_eq(config_load(&config, &options, &err), 0);
    const double attention = 24.0 * 2880.0 * (2.0 * 4096.0 + 2.0 * 512.0);
    const double experts = 24.0 * 32.0 * 3.0 * 2880.0 * 2880.0;
    const double heads = 2.0 * 2880.0 * 201088.0;
    ck_assert_double_eq_tol(config.llm.weight_bytes,
                            experts * 0.5625 + (attention + heads) * 1.0625, 1.0);
}
END_TEST

#define IGPU "soc.devices.igpu.runtimes."
#define NPU "soc.devices.npu.runtimes."

/* An entry for the model's width says how its runtime stores weights and KV; one for another width,
 * or of another runtime than the run's, says nothing. A number that is set for the model itself is
 * stronger. */
START_TEST(a_runtime_stores_the_model_as_its_entry_says)
{
    const double kv_elements = 2.0 * 28.0 * 1024.0;
    static const struct {
        const char *llm, *set[3];
        double kv_bytes;
    } rows[] = {
        {"llama-3.2-3b", {IGPU "openvino-2025/8.kv_bytes=2"}, 2.0},
        {"llama-3.2-3b", {IGPU "openvino-2025/4.kv_bytes=2"}, 1.0},
        {"llama-3.2-3b:bits=4", {IGPU "openvino-2025/4.kv_bytes=2"}, 2.0},
        {"llama-3.2-3b", {IGPU "openvino-2025/8.kv_bytes=2", "llm.kv_bytes_per_element=1.5"}, 1.5},
        {"llama-3.2-3b", {"llm.kv_bytes_per_element=1.5", IGPU "openvino-2025/8.kv_bytes=2"}, 1.5},
        {"llama-3.2-3b:bits=4", {IGPU "openvino-2025/4.kv_bytes=2", NPU "0.kv_bytes=2"}, 2.0},
        {"llama-3.2-3b", {IGPU "openvino-2025/8.kv_bytes=2", NPU "0.kv_bytes=1"}, 2.0},
        {"a=llama-3.2-3b,b=llama-3.2-3b", {IGPU "openvino-2025/8.kv_bytes=2"}, 2.0},
    };
    options.soc = "core-ultra-7-258v";
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        options.llm = rows[i].llm;
        options.n_sets = 0;
        for (int k = 0; k < 3 && rows[i].set[k] != NULL; k++) {
            options.sets[options.n_sets++] = rows[i].set[k];
        }
        ck_assert_msg(config_load(&config, &options, &err) == 0, "%zu: %s", i,
                      err.n > 0 ? err.lines[0] : "");
        ck_assert_double_eq_tol(config.llm.kv_bytes_per_token, kv_elements * rows[i].kv_bytes,
                                1e-6);
        for (uint32_t k = 0; k < config.n_more; k++) {
            ck_assert_double_eq_tol(config.more[k].llm.kv_bytes_per_token,
                                    kv_elements * rows[i].kv_bytes, 1e-6);
        }
        config_fini(&config);
    }
    options.llm = "llama-3.2-3b";
    options.sets[0] = IGPU "openvino-2025/8.body_bytes=1.05";
    options.sets[1] = IGPU "openvino-2025/8.head_bytes=1.25";
    options.n_sets = 2;
    ck_assert_int_eq(config_load(&config, &options, &err), 0);
    double body = 28.0 * 3072.0 * (2.0 * 3072.0 + 2.0 * 1024.0 + 3.0 * 8192.0);
    ck_assert_double_eq_tol(config.llm.weight_bytes, 1.05 * body + 1.25 * 3072.0 * 128256.0, 1.0);
    config_fini(&config);
    /* A file that knows its own bytes keeps them. Its KV is the runtime's. */
    SCOPED(json_drop) cJSON *own = json_read_file("hwmodels/llm/llama-3.2-3b.json", &err);
    cJSON_DeleteItemFromObjectCaseSensitive(own, "body_bytes_per_weight");
    json_put_quantity(own, "body_bytes_per_weight",
                      (struct quantity){1.1, 1.1, 1.1, QUANTITY_DATASHEET, true}, "B", "tensors");
    const char *path = tempfile_make(".json");
    ck_assert_int_eq(json_write_file(path, own, &err), 0);
    options.llm = path;
    options.sets[2] = IGPU "openvino-2025/8.kv_bytes=2";
    options.n_sets = 3;
    ck_assert_int_eq(config_load(&config, &options, &err), 0);
    ck_assert_double_eq_tol(config.llm.weight_bytes, 1.1 * body + 1.25 * 3072.0 * 128256.0, 1.0);
    ck_assert_double_eq_tol(config.llm.kv_bytes_per_token, kv_elements * 2.0, 1e-6);
    config_fini(&config);
    tempfile_remove();
    options.n_sets = 2;
    options.llm = "llama-3.2-3b:bits=4";
    options.sets[0] = IGPU "openvino-2025/4.kv_bytes=2";
    options.sets[1] = NPU "0.kv_bytes=1";
    ck_assert_int_eq(config_load(&config, &options, &err), -EINVAL);
    ck_assert_str_eq(err.lines[0], "core-ultra-7-258v: devices store llama-3.2-3b:bits=4 with 1 "
                                   "and 2 bytes (kv_bytes of their runtimes); a run has one copy "
                                   "of it");
}
END_TEST

static const struct suite_row suite[] = {
    CASE("config", .setup = setup, .teardown = teardown),
    TEST(defaults_are_the_documented_ones),
    TEST(options_and_overrides_reach_the_setup),
    TEST(a_file_runs_with_the_models_that_it_states),
    TEST(measured_kernels_that_are_not_used_are_named),
    TEST(bad_options_are_refused_with_their_name),
    TEST(all_wrong_values_of_a_configuration_are_reported_at_once),
    TEST(a_frame_moves_no_more_than_the_ddr_can),
    TEST(unknown_names_list_what_there_is),
    TEST(labels_and_parameters_of_any_length_are_kept_whole),
    TEST(fingerprints_differ_where_configuration_trace_or_parameters_do),
    TEST(compressed_arrivals_are_the_same_requests_sooner),
    TEST(swapped_classes_are_those_of_all_requests),
    TEST(numbers_on_the_command_line_are_strict),
    TEST(every_setting_takes_its_range_and_no_more),
    TEST(a_model_takes_another_width_of_weights),
    TEST(a_runtime_keeps_no_head_narrower_than_what_is_outside_the_experts),
    TEST(a_runtime_stores_the_model_as_its_entry_says),
};
SUITE_MAIN("config", suite)
