/* One request alone. No parameter about others may change any of its instants: how requests share,
 * which is first, how many there may be, or what shields one from another. Costs of the toy machine
 * are drawn, so no two kernels take equally long. */
#include <stdlib.h>
#include <string.h>

#include "policies/registry.h"
#include "sim/base/rng.h"
#include "tests/helpers/scenario.h"
#include "tests/helpers/suite.h"

static struct scenario sc;
static struct scenario_record plain;

/* Parameters of a policy that are about other requests, each off its default. */
static const struct {
    const char *policy, *params;
} about_others[] = {
    {"time-share", "efficiency=0.3"},
    {"time-share", "quantum_ms=0.1"},
    {"time-share", "max_requests=1"},
    {"agent-xpu-v1", "preempt=false"},
    {"agent-xpu-v1", "resume=fifo,t_starve_s=0.001,contexts=1"},
    {"agent-xpu-v1", "intra_backfill=false,epsilon=0.9,batch_cap=1,max_batch=1"},
    {"agent-xpu-v1", "inter_backfill=false,duration=false,affinity=strict,gap_ms=0"},
    {"agent-xpu-v1", "tau_low=0.01,tau_high=9,tie=longest,reorder=false"},
    {"agent-xpu-v1", "ageing=false,balance=false"},
    {"agent-xpu-v1", "shed=true,shed_queue=1"},
    {"agent-xpu-v2", "max_batch=1,length_bucket=1,suspended=1,ageing=false"},
    {"agent-xpu-v2", "preempt=layer,cap=marginal,epsilon=0.01"},
    {"hpf", "max_batch=1,inflight=1"},
    {"hhpf", "max_batch=1"},
    {"srpt", "class=blind,sigma=0.5,limit=0.1"},
    {"mlfq", "q0_ms=0.01,starve_s=0.001,promote_every=1,class=blind"},
    {"prema", "proactive_priority=9,expected_output=1,class=blind"},
    {"vtc", "w_out=9,reactive_weight=7,lift=false,class=blind"},
    {"autellix-like", "mode=atlas,t0_s=0.001,beta=1.1,class=blind"},
    {"edf", "ttft_slo_s=0.001,proactive_s=0.001,class=blind,preempt=kernel"},
    {"llf", "tbt_slo_s=0.001,class=blind"},
    {"hygen-like", "utility=1"},
    {"orca", "max_num_seqs=1"},
    {"sarathi", "max_num_seqs=1,requeue=back"},
    {"vllm-v0", "max_num_seqs=1"},
    {"vllm-v1", "max_num_seqs=1,admit_after_preemption=false"},
    {"vllm-priority", "interrupt=true"},
    {"recompute-preempt", "kill=never,max_batch=8"},
    {"pd-static", "max_batch=1,yield=iteration"},
    {"pd-mixed", "max_batch=1,mixed_tokens=16"},
    {"hetero-split", "max_batch=1"},
    {"openvino-cb", "max_num_seqs=1"},
    {"llama-cpp", "slots=1"},
    {"npu-serial", ""},
};

static void run(const char *policy, const char *params, enum request_class cls, uint64_t seed)
{
    struct rng rng;
    rng_init(&rng, seed);
    scenario_init(&sc);
    sc.llm.n_layers = 3;
    for (int d = NPU; d <= CPU; d++) {
        for (int op = 0; op < OP_KIND_COUNT; op++) {
            scenario_cost(&sc, d, (enum op_kind)op, 1.0 + rng_uniform(&rng),
                          0.02 * rng_uniform(&rng), 5);
        }
    }
    struct scenario_request q[] = {{cls, 0.001, 600, 6, 0, 0}};
    scenario_policy(&sc, policy_find(policy), params);
    ck_assert_msg(scenario_run(&sc, q, 1, false) == 0, "%s:%s: %s", policy, params,
                  sc.result.message);
}

START_TEST(who_is_alone_knows_no_others)
{
    const char *policy = about_others[_i].policy;
    for (uint64_t seed = 1; seed <= 6; seed++) {
        enum request_class cls = seed % 2 == 0 ? RT : BE;
        run(policy, "", cls, seed);
        plain = sc.records[0];
        scenario_fini(&sc);
        run(policy, about_others[_i].params, cls, seed);
        ck_assert_uint_eq(plain.tokens_n, 6);
        for (uint32_t i = 0; i < plain.tokens_n; i++) {
            ck_assert_msg(sc.records[0].token_ns[i] == plain.token_ns[i],
                          "%s:%s, draw %d: token %u", policy, about_others[_i].params, (int)seed,
                          i);
        }
        ck_assert_int_eq(sc.records[0].finish_ns, plain.finish_ns);
        scenario_fini(&sc);
    }
}
END_TEST

static const struct suite_row suite[] = {
    LOOP(who_is_alone_knows_no_others, sizeof about_others / sizeof about_others[0]),
};
SUITE_MAIN("alone", suite)
