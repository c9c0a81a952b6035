/* Every parser of inputs against thousands of damaged ones: it may accept or refuse, with a
 * message, but never crash, hang or leak (the sanitizer builds run this too): tests/helpers/fuzz.h.
 */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "experiments/claims/claims.h"
#include "experiments/run/config.h"
#include "experiments/sweep/spec.h"
#include "experiments/validation/points.h"
#include "hwmodels/soc.h"
#include "policies/replay.h"
#include "sim/base/arena.h"
#include "sim/base/datadir.h"
#include "sim/base/json.h"
#include "sim/base/rng.h"
#include "tests/helpers/fuzz.h"
#include "traces/measured.h"
#include "traces/traces.h"

static int parse_trace(struct err *e)
{
    struct trace t;
    int rc = trace_read(fuzz_path, &t, e);
    trace_fini(&t);
    return rc;
}

static int parse_plain(struct err *e)
{
    struct trace t;
    int rc = trace_import("azure", fuzz_path, &t, e);
    trace_fini(&t);
    return rc;
}

static int parse_dataset(struct err *e)
{
    struct dataset d;
    int rc = dataset_load(fuzz_path, &d, e);
    dataset_fini(&d);
    return rc;
}

static int parse_soc(struct err *e)
{
    static struct soc soc;
    cJSON *root = json_read_file(fuzz_path, e);
    int rc = root == NULL ? -1 : soc_parse(root, fuzz_path, &soc, e);
    cJSON_Delete(root);
    return rc;
}

static int parse_llm(struct err *e)
{
    struct llm llm;
    cJSON *root = json_read_file(fuzz_path, e);
    int rc = root == NULL ? -1 : llm_parse(root, fuzz_path, &llm, e);
    cJSON_Delete(root);
    return rc;
}

static int parse_points(struct err *e)
{
    struct points p;
    int rc = points_read(fuzz_path, &p, e);
    points_fini(&p);
    return rc;
}

static int parse_measured(struct err *e)
{
    struct measured_run r = {0};
    int rc = measured_run_read(fuzz_path, &r, e);
    measured_run_fini(&r);
    return rc;
}

static int parse_claims(struct err *e)
{
    struct claims c = {0};
    int rc = claims_read(&c, fuzz_path, e);
    claims_fini(&c);
    return rc;
}

static int parse_experiment(struct err *e)
{
    struct spec s;
    struct spec_point p = {0};
    int rc = spec_load(&s, fuzz_path, false, e);
    if (rc == 0) { /* what a point asks for may still be refused */
        struct err own = ERR_INIT;
        (void)spec_point(&s, s.n_points - 1, &p, &own);
        cJSON_Delete(spec_point_settings(&s, s.n_points - 1));
        err_fini(&own);
    }
    spec_point_fini(&p);
    spec_fini(&s);
    return rc;
}

static int parse_log(struct err *e)
{
    struct replay *r = replay_read(fuzz_path, e);
    replay_free(r);
    return r == NULL ? -1 : 0;
}

START_TEST(traces_survive_damage)
{
    static const char text[] =
        "# xpusim-trace v1\n"
        "request_id,session_id,turn,class,arrival_s,gap_s,input_tokens,output_tokens,prefix_tokens,"
        "max_output_tokens,gap_kind,priority,ttft_slo_ms,cancel_s\n"
        "0,0,0,reactive,0.5,,100,20,0,256,,1,500,\n"
        "1,0,1,reactive,,3.25,180,10,120,256,tool,,,\n"
        "2,1,0,proactive,1e-3,,\"300\",5,0,,,,,60\n"
        "3,2,0,proactive,2,,300,5,0,512,think,-2,,\n";
    fuzz(text, sizeof text - 1, parse_trace, 1);
}
END_TEST

START_TEST(importers_survive_damage)
{
    static const char text[] = "TIMESTAMP,ContextTokens,GeneratedTokens\n"
                               "2023-11-16 18:15:46.6805900,374,44\n"
                               "2023-11-16 18:15:50.9951690,396,109\n"
                               "2023-11-16T18:16:00Z,55,1\n";
    fuzz(text, sizeof text - 1, parse_plain, 2);
}
END_TEST

START_TEST(datasets_survive_damage)
{
    fuzz_shipped("traces/datasets/bfcl_multiturn.csv", parse_dataset, 3, 1500);
}
END_TEST

START_TEST(soc_files_survive_damage)
{
    fuzz_shipped("hwmodels/soc/core-ultra-5-125h.json", parse_soc, 4, 1 << 20);
}
END_TEST

START_TEST(llm_files_survive_damage)
{
    fuzz_shipped("hwmodels/llm/llama-3.2-3b.json", parse_llm, 5, 1 << 20);
}
END_TEST

START_TEST(decision_logs_survive_damage)
{
    static const char text[] =
        "policy x flags=2\n1 100 form fused=0 0:0:256 1:1:1 = 0\n"
        "1 100 launch pass=1 device=1 ops=0 rows=0 yield=3 chunk=0 graph=0 block=0 inflight=0 = 0\n"
        "2 200 preempt launch=1 mode=0 = 0\n";
    fuzz(text, sizeof text - 1, parse_log, 6);
}
END_TEST

START_TEST(claims_survive_damage)
{
    static const char text[] =
        "{\"paper\":\"p\",\"source\":\"s\",\"quantities\":{\"m\":{\"machine\":{\"field\":"
        "\"npu.prefill_watts\"}},\"r\":{\"run\":{\"policy\":\"fcfs\",\"workload\":\"w1:n=2\","
        "\"set\":[\"sim.contention=none\"]}},\"s\":{\"sustained\":{\"policy\":\"fcfs\","
        "\"workload\":\"w1:n={rate}\",\"rates\":[1,2],\"metric\":\"all.arrived\",\"at_most\":1}}},"
        "\"claims\":[{\"id\":\"X\",\"where\":\"1\",\"statement\":\"t\",\"checks\":[{\"name\":"
        "\"a\",\"value\":\"max(m, -s) / (r:all.arrived + 1)\",\"published_low\":1,"
        "\"published_high\":2,\"neutral\":0},{\"name\":\"b\",\"value\":\"m\",\"above\":1}]}]}";
    fuzz(text, sizeof text - 1, parse_claims, 7);
}
END_TEST

START_TEST(experiments_survive_damage)
{
    static const char text[] =
        "{\"name\":\"n\",\"base\":{\"policy\":\"fcfs\",\"workload\":\"w1:n=2\"},"
        "\"axes\":{\"params.k\":[1,true],\"rate\":{\"from\":0.5,\"to\":2,\"step\":0.5}},"
        "\"zip\":[{\"soc\":[\"a\",\"b\"],\"workload.n\":[3,4]}],\"rows\":[{\"seed\":1},"
        "{\"sim.truth_sigma\":0.1}],\"replications\":3,\"max_replications\":9,"
        "\"metrics\":[\"a*\"],\"until\":{\"ab\":{\"half_width\":1}},\"warmup_s\":1,"
        "\"horizon_s\":5}";
    fuzz(text, sizeof text - 1, parse_experiment, 10);
}
END_TEST

START_TEST(measurements_survive_damage)
{
    fuzz_shipped("hwmodels/points/reference.csv", parse_points, 8, 3000);
    fuzz_shipped("hwmodels/runs/vllm-rtx-pro-6000-llama-3.1-8b.csv", parse_measured, 9, 3000);
}
END_TEST

/* Short texts that come from the command line. */
START_TEST(specs_survive_damage)
{
    static const char *const specs[] = {
        "mixed:reactive_per_min=3,proactive_per_min=6,duration_s=5,arrival=gamma,cv=2", "w1:n=10",
        "mixed:sessions=1,reactive=mtrag,burst=2,active_share=0.3,duration_s=3"};
    static const char *const policies[] = {"agent-xpu-v2:b_rf=3,elastic=on,t_age_s=60", "edf"};
    struct rng r;
    rng_init(&r, 7);
    for (uint32_t i = 0; i < fuzz_rounds() / 5; i++) {
        const char *s = i % 2 == 0 ? specs[i / 2 % 3] : policies[i / 2 % 2];
        size_t n;
        char *bad = fuzz_mutate(&r, s, strlen(s), &n);
        bad[n] = '\0';
        struct err e = ERR_INIT;
        if (i % 2 == 0) {
            struct trace t;
            /* a damaged duration may ask for hours of arrivals; small ones only */
            if (strlen(bad) == n && strstr(bad, "duration_s=") != NULL) {
                (void)trace_generate(bad, 1, 1e-3, &t, &e);
                trace_fini(&t);
            }
        } else {
            static struct config_policy p;
            int rc = config_policy_parse(&p, bad, &e);
            ck_assert_msg((rc == 0) == (e.n == 0), "%s", bad);
        }
        err_fini(&e);
        free(bad);
    }
}
END_TEST

START_TEST(overrides_survive_damage)
{
    char file[4096];
    struct rng r;
    rng_init(&r, 8);
    static const char *const sets[] = {"devices.npu.runtimes.0.rate.value",
                                       "host.sync",
                                       "devices[0].x",
                                       "name",
                                       "devices.9",
                                       "..",
                                       ""};
    for (uint32_t i = 0; i < fuzz_rounds() / 10; i++) {
        struct err e = ERR_INIT;
        cJSON *root = json_read_file(soc_path("core-ultra-5-125h", file, sizeof file), &e);
        ck_assert_ptr_nonnull(root);
        const char *s = sets[i % 7];
        size_t n;
        char *bad = fuzz_mutate(&r, s, strlen(s), &n);
        bad[n] = '\0';
        int rc = json_set_path(root, bad, fuzz_pieces[rng_below(&r, FUZZ_PIECES)], &e);
        ck_assert((rc == 0) == (e.n == 0));
        cJSON_Delete(root);
        err_fini(&e);
        free(bad);
    }
}
END_TEST

int main(void)
{
    Suite *s = suite_create("fuzz");
    TCase *t = tcase_create("parsers");
    tcase_set_timeout(t, 300);
    tcase_add_test(t, traces_survive_damage);
    tcase_add_test(t, importers_survive_damage);
    tcase_add_test(t, datasets_survive_damage);
    tcase_add_test(t, soc_files_survive_damage);
    tcase_add_test(t, llm_files_survive_damage);
    tcase_add_test(t, decision_logs_survive_damage);
    tcase_add_test(t, claims_survive_damage);
    tcase_add_test(t, experiments_survive_damage);
    tcase_add_test(t, measurements_survive_damage);
    tcase_add_test(t, specs_survive_damage);
    tcase_add_test(t, overrides_survive_damage);
    suite_add_tcase(s, t);
    SRunner *runner = srunner_create(s);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
