/* Every policy on the engines that are installed: ggml, OpenVINO, and both as one machine. */
#include <stdio.h>
#include <string.h>

#include "hwmodels/engines/engines.h"
#include "policies/registry.h"
#include "tests/helpers/plain_engine.h"
#include "tests/helpers/realrun.h"
#include "tests/helpers/suite.h"

/* ---- ggml ---- */

/* A narrower model, as thirty policies run it. Attention is wider than the model, as in some
 * models. */
static void narrow_model(void)
{
    realrun_ggml_model();
    real.llm.hidden = 64;
    real.llm.ffn_hidden = 128;
    real.llm.heads = 2;
    real.llm.kv_heads = 1;
    real.llm.vocab = 128;
}

/* Each of thirty policies runs all of the requests with WHOLE=yes, and else half of them. */
static void some_requests(void)
{
    realrun_requests_make(90);
    real_n = suite_whole() ? N_REQUESTS : N_REQUESTS / 2;
}

/* Attention's tiles depend on how many rows of a sequence come together. So policies that cut
 * prompts or attention in other ways may round differently, and fcfs prefills whole prompts. A
 * first token may differ only where the two are equally likely, up to a tenth. */
START_TEST(every_policy_gives_the_same_tokens_on_ggml)
{
    struct err e = ERR_INIT;
    const struct engine_ops *ggml = engine_find("ggml", &e);
    err_fini(&e);
    if (ggml == NULL) {
        printf("skipped: engine ggml is not there (make engines)\n");
        return;
    }
    size_t n;
    const struct policy_ops *const *all = policy_list(&n);
    struct tokens first;
    some_requests();
    realrun_machine_make(ggml, DRIVE_CLOCK_CPU);
    narrow_model();
    FILE *topk = tmpfile();
    ck_assert_ptr_nonnull(topk);
    real_options.topk = topk;
    ck_assert_msg(realrun_run(policy_find("fcfs"), "", &first) == 0, "%s", real.result.message);
    real_options.topk = NULL;
    for (uint32_t k = 0; k < real_n; k++) {
        ck_assert(realrun_may_begin_with(topk, k, first.t[k][0]));
        ck_assert(!realrun_may_begin_with(topk, k, -1));
    }
    uint32_t equal = 0;
    uint32_t policies = 0;
    char others[1024] = "";
    for (size_t i = 0; i < n; i++) {
        struct tokens t;
        if (realrun_refused(all[i]->name)) {
            continue;
        }
        realrun_machine_make(ggml, DRIVE_CLOCK_CPU);
        narrow_model();
        int rc = realrun_run(all[i], realrun_parameters_of(all[i]->name), &t);
        ck_assert_msg(rc == 0, "%s: %s", all[i]->name, real.result.message);
        realrun_whole(all[i]->name);
        policies++;
        if (realrun_alike(&first, &t) == real_n) {
            equal++;
            continue;
        }
        size_t at = strlen(others);
        (void)snprintf(others + at, sizeof others - at, " %s %u", all[i]->name,
                       realrun_alike(&first, &t));
        for (uint32_t k = 0; k < real_n; k++) {
            ck_assert_msg(first.t[k][0] == t.t[k][0] || realrun_may_begin_with(topk, k, t.t[k][0]),
                          "%s: request %u begins with %d, not %d", all[i]->name, k, t.t[k][0],
                          first.t[k][0]);
        }
        ck_assert_msg(28 * realrun_alike(&first, &t) >= 25 * real_n, "%s: %u of %u", all[i]->name,
                      realrun_alike(&first, &t), real_n);
    }
    fclose(topk);
    printf("note: ggml %s: %u of %u policies give equal tokens for all %u requests;%s\n",
           ggml->version, equal, policies, real_n, others);
}
END_TEST

/* ---- OpenVINO ---- */

/* Runs one device on OpenVINO alone, for policies that use no other. Every device compiles 6 to 11
 * kernels of 50 ms when it opens. */
static void openvino_machine_make(const struct engine_ops *openvino, int device)
{
    realrun_machine_make(&plain_engine, DRIVE_CLOCK_WALL);
    realrun_ggml_model();
    real_options.devices[device].engine = openvino;
}

/* OpenVINO's static and dynamic kernels round differently, and its int8 rows are not ggml's blocks
 * of 32. So tokens may differ after the first ones. The first case has all on OpenVINO, by the
 * processor's clock. The second has the NPU on it, next to ggml, by the wall clock, with attention
 * compiled for each prompt and kernels of 16 rows and of one. Half of the requests run (WHOLE=yes:
 * all), since a compilation takes 40 ms of a processor. */
START_TEST(openvino_runs_alone_and_beside_ggml)
{
    bool mixed = _i == 1;
    struct err e = ERR_INIT;
    const struct engine_ops *ggml = engine_find("ggml", &e);
    const struct engine_ops *openvino = realrun_openvino();
    err_fini(&e);
    if (ggml == NULL || openvino == NULL) {
        return;
    }
    struct tokens reference;
    struct tokens t;
    some_requests();
    realrun_machine_make(ggml, DRIVE_CLOCK_CPU);
    realrun_ggml_model();
    ck_assert_msg(realrun_run(policy_find("fcfs"), "", &reference) == 0, "%s", real.result.message);
    realrun_machine_make(ggml, mixed ? DRIVE_CLOCK_WALL : DRIVE_CLOCK_CPU);
    realrun_ggml_model();
    real.machine.devices[NPU].static_attention = true;
    for (int d = 0; d < 3; d++) {
        real_options.devices[d].engine = mixed && d != NPU ? ggml : openvino;
    }
    int rc = realrun_run(policy_find("agent-xpu-v2"), "", &t);
    ck_assert_msg(rc == 0, "%s", real.result.message);
    realrun_whole("agent-xpu-v2");
    ck_assert_uint_ge(real_report.n_residents,
                      real.result.counters[COUNTER_COMPILES] -
                          real.result.counters[COUNTER_COMPILES_CANCELLED]);
    printf("note: openvino %s%s: %u first tokens of %u are ggml's, %u requests whole\n",
           openvino->version, mixed ? " as the NPU" : "", realrun_alike_at_first(&reference, &t),
           real_n, realrun_alike(&reference, &t));
    ck_assert_uint_ge(28 * realrun_alike_at_first(&reference, &t), 25 * real_n);
}
END_TEST

/* An interrupted inference is run again, and the tokens are those of the undisturbed run. */
START_TEST(an_openvino_kernel_is_reset_and_run_again)
{
    const struct engine_ops *openvino = realrun_openvino();
    if (openvino == NULL) {
        return;
    }
    struct tokens t;
    struct tokens undisturbed;
    some_requests();
    /* Request 0 is proactive, with a prompt of half a second. A reactive one comes while it
     * runs. */
    real_q[0].input_tokens = 2000;
    for (uint32_t i = 1; i < real_n; i++) { /* first turns are sorted by arrival */
        real_q[i].arrival_s += i % 4 != 3 ? 0.05 : 0.0;
    }
    openvino_machine_make(openvino, IGPU);
    real_options.hang_s = 60.0;
    ck_assert_int_eq(realrun_run(policy_find("fcfs"), "", &undisturbed), 0);
    /* A host that sleeps through the whole prompt resets nothing, so there are more tries. */
    for (int tries = 0; tries == 0 || (tries < 50 && real_report.reset.n == 0); tries++) {
        int rc = realrun_run(policy_find("program-fcfs"),
                             "preempt=reset,class=rt_alone,max_batch=1", &t);
        ck_assert_msg(rc == 0, "%s", real.result.message);
        realrun_whole("program-fcfs");
    }
    ck_assert_uint_gt(real.result.counters[COUNTER_LAUNCH_RESET], 0);
    ck_assert_uint_gt(real_report.reset.n, 0);
    ck_assert_uint_ge(28 * realrun_alike_at_first(&undisturbed, &t), 25 * real_n);
}
END_TEST

/* sd-npu's blocks of graphs are exported to files before the run, and imported and dropped during
 * it. Prompts run in kernels of 32 rows and tokens in kernels of 8, so numbers round as static
 * kernels do. There are eight requests, since a load takes 25 ms of a processor (check_drive: all,
 * on both clocks). */
START_TEST(openvino_loads_and_drops_graph_blocks)
{
    const struct engine_ops *openvino = realrun_openvino();
    if (openvino == NULL) {
        return;
    }
    struct tokens t;
    struct tokens kept;
    realrun_requests_make(90);
    real_n = 8;
    openvino_machine_make(openvino, IGPU);
    ck_assert_int_eq(realrun_run(policy_find("fcfs"), "", &kept), 0);
    openvino_machine_make(openvino, NPU);
    int rc = realrun_run(policy_find("sd-npu"), "blocks=2,g1=32,g2=8", &t);
    ck_assert_msg(rc == 0, "%s", real.result.message);
    realrun_whole("sd-npu");
    ck_assert_uint_gt(real.result.counters[COUNTER_LOADS], 0);
    double ms[DRIVE_WORKS] = {0};
    uint64_t n[DRIVE_WORKS] = {0};
    for (size_t i = 0; i < real_report.n_residents; i++) {
        ms[real_report.residents[i].work] += (double)real_report.residents[i].ns / 1e6;
        n[real_report.residents[i].work]++;
    }
    /* The run may end before the last loads, which bring the prefill graphs back, have come. */
    ck_assert_uint_ge(n[DRIVE_LOAD] + 2, real.result.counters[COUNTER_LOADS]);
    printf("note: openvino: %llu loads of a graph block, %.1f ms mean; %llu evictions, %.2f ms; %u "
           "requests of %u as without graphs, %u first tokens\n",
           (unsigned long long)n[DRIVE_LOAD], ms[DRIVE_LOAD] / (double)n[DRIVE_LOAD],
           (unsigned long long)n[DRIVE_EVICT], ms[DRIVE_EVICT] / (double)n[DRIVE_EVICT],
           realrun_alike(&kept, &t), real_n, realrun_alike_at_first(&kept, &t));
    ck_assert_uint_ge(realrun_alike_at_first(&kept, &t), 7);
}
END_TEST

static const struct suite_row suite[] = {
    CASE("all", .timeout_s = 240),
    TEST(every_policy_gives_the_same_tokens_on_ggml),
    LOOP(openvino_runs_alone_and_beside_ggml, 2),
    TEST(an_openvino_kernel_is_reset_and_run_again),
    TEST(openvino_loads_and_drops_graph_blocks),
};
SUITE_MAIN("drive on engines", suite)
