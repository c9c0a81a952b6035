/* Settings that must decide equally, on random loads. Two policies differ only in something that a
 * load does not have, or one has a rule about it and the other none. Then every token must come at
 * the same instant. Such loads have one key in all orders, no request of a class that a rule is
 * about, memory that is never short, or one request at a time. A condition that is dropped,
 * reversed or taken from its neighbour shows here, for any rule. */
#include <stdio.h>
#include <string.h>

#include "experiments/conformance/randomload.h"
#include "policies/registry.h"
#include "sim/base/hash.h"
#include "tests/helpers/suite.h"

enum { LOADS = 8, MAX_REQUESTS = 24 };

/* Restrictions of a load, as bits. */
enum {
    ANY,
    ROOMY = 1,     /* memory for all requests */
    REACTIVE = 2,  /* all requests are reactive */
    PROACTIVE = 4, /* all requests are proactive */
    FLAT = 8,      /* each request is a session of its own */
    ALONE = 16,    /* never two requests in the system at once */
};

#define ONE_AT_A_TIME "max_num_seqs=1,max_num_batched_tokens=1000000"
#define ONE_OF_ANY_CLASS "max_batch=1,token_budget=1000000,class=blind"

static const struct {
    const char *policy, *params, *other, *other_params;
    unsigned when;
} rows[] = {
    /* One request at a time, in order of arrival. The plug-ins' skeleton is no policy of the
     * list. */
    {"fcfs", "", "skeleton", "", ANY},
    {"fcfs", "device=cpu", "skeleton", "device=cpu", ANY},
    {"fcfs", "", "orca", "max_num_seqs=1", ROOMY},
    {"fcfs", "", "vllm-v0", ONE_AT_A_TIME, ROOMY},
    {"fcfs", "", "vllm-v1", ONE_AT_A_TIME, ROOMY},
    {"fcfs", "", "sarathi", ONE_AT_A_TIME, ROOMY},
    {"fcfs", "device=cpu", "llama-cpp", "slots=1,n_batch=1000000,n_ubatch=1000000", ROOMY | FLAT},
    {"fcfs", "device=cpu", "llama-cpp", "form=ps,slots=1", ROOMY},
    {"fcfs", "", "time-share", "max_requests=1,efficiency=1", ROOMY},
    {"fcfs", "", "program-fcfs", ONE_OF_ANY_CLASS, ROOMY | FLAT},
    {"fcfs", "", "recompute-preempt", "kill=never", ROOMY | REACTIVE},
    {"fcfs", "", "recompute-preempt", "", ROOMY | PROACTIVE},
    /* All policies on one device serve a lone request as fcfs does. */
    {"fcfs", "", "orca", "", ALONE},
    {"fcfs", "", "vllm-v0", "max_num_batched_tokens=1000000", ALONE},
    {"fcfs", "", "vllm-v1", "max_num_batched_tokens=1000000", ALONE},
    {"fcfs", "", "sarathi", "max_num_batched_tokens=1000000", ALONE},
    {"fcfs", "", "openvino-cb", "variant=whole", ALONE},
    {"fcfs", "", "openvino-cb", "variant=vllm", ALONE},
    {"fcfs", "", "conserve-like", "max_num_batched_tokens=1000000", ALONE},
    {"fcfs", "", "hygen-like", "max_num_batched_tokens=1000000,offline=always", ALONE},
    {"fcfs", "", "sglang-lpm", "max_num_batched_tokens=1000000", ALONE},
    {"fcfs", "", "vllm-priority", "max_num_batched_tokens=1000000,interrupt=true", ALONE},
    {"fcfs", "", "vllm-priority", "max_num_batched_tokens=1000000,mode=v0", ALONE},
    {"fcfs", "", "recompute-preempt", "", ALONE},
    {"fcfs", "", "edf", "token_budget=1000000,preempt=kernel", ALONE},
    {"fcfs", "", "srpt", "token_budget=1000000,preempt=kernel", ALONE},
    {"fcfs", "", "llf", "token_budget=1000000,preempt=layer", ALONE},
    {"fcfs", "", "autellix-like", "token_budget=1000000", ALONE},
    {"fcfs", "", "mlfq", "token_budget=1000000", ALONE},
    {"pd-static", "", "pd-static", "yield=iteration", ALONE},
    {"pd-static", "", "hpf", "inflight=1", ALONE},
    {"pd-static", "", "agent-xpu-v2", "elastic=off,warmup=false", ALONE},
    {"pd-static", "", "npu-serial", "margin=igpu", ALONE},
    {"pd-static", "margin=npu", "npu-serial", "", ALONE},
    {"llm-npu", "", "llm-npu", "in_progress=1", ALONE},
    {"sd-npu", "speculate=false", "sd-npu", "speculate=true", ANY},
    {"hetero-split", "", "hetero-split", "decode=igpu", ALONE},
    /* Rules for short memory have no effect where there is room for all. */
    {"agent-xpu-v1", "", "agent-xpu-v1", "flash=always", ROOMY},
    {"agent-xpu-v2", "", "agent-xpu-v2", "flash=always", ROOMY},
    {"vllm-v1", "", "vllm-v1", "requeue=back,admit_after_preemption=true", ROOMY},
    {"vllm-v1", "", "vllm-v1", "reserve_full_isl=false", ROOMY},
    {"vllm-v0", "", "vllm-v0", "watermark_frac=0.4,requeue=back", ROOMY},
    {"orca", "", "orca", "reserve=false", ROOMY},
    {"sglang-lpm", "new_token_ratio=0", "sglang-lpm", "", ROOMY},
    /* Rules for a session's KV while a tool runs have no effect without sessions. */
    {"edf", "", "edf", "gap_kv=discard", FLAT},
    {"edf", "", "edf", "gap_kv=preserve", FLAT},
    {"srpt", "", "srpt", "gap_kv=infercept", FLAT},
    {"agent-xpu-v1", "", "agent-xpu-v1", "gap_kv=swap", FLAT},
    {"agent-xpu-v2", "", "agent-xpu-v2", "gap_kv=ttl", FLAT},
    {"sglang-lpm", "schedule_policy=fcfs", "sglang-lpm", "", FLAT},
    {"autellix-like", "mode=plas", "autellix-like", "mode=atlas", FLAT},
    {"critical-path", "", "critical-path", "jobs=false,slack=false,waits=false", FLAT},
    /* Rules for how a stop is made, and what it keeps, have no effect where nothing is stopped. */
    {"edf", "kv=recompute", "edf", "kv=swap", ANY},
    {"edf", "inflight=1", "edf", "inflight=8,level=1", ANY},
    {"program-fcfs", "preempt=kernel,kv=swap", "program-fcfs", "", FLAT | REACTIVE},
    {"program-fcfs", "preempt=layer,kv=recompute", "program-fcfs", "", FLAT | PROACTIVE},
    {"recompute-preempt", "keep_context=true", "recompute-preempt", "kill=never", ROOMY | REACTIVE},
    {"vllm-priority", "interrupt=true", "vllm-priority", "", REACTIVE},
    {"sarathi-hetero", "parallel=true", "sarathi-hetero", "parallel=false", ALONE},
    /* These orders have one key, or that of arrival. */
    {"program-fcfs", "", "edf", "", FLAT | REACTIVE},
    {"program-fcfs", "", "edf", "", FLAT | PROACTIVE},
    {"program-fcfs", "", "sjf-input", "", FLAT | ALONE},
    {"program-fcfs", "", "srpt", "", FLAT | ALONE},
    {"program-fcfs", "", "mlfq", "", FLAT | ALONE},
    {"program-fcfs", "", "prema", "", FLAT | ALONE},
    {"program-fcfs", "", "vtc", "", FLAT | ALONE},
    {"program-fcfs", "", "llf", "", FLAT | ALONE},
    {"program-fcfs", "", "andes", "", FLAT | ALONE},
    {"program-fcfs", "", "autellix-like", "", FLAT | ALONE},
    {"program-fcfs", "", "critical-path", "", FLAT | ALONE},
    {"program-fcfs", "", "pantheon", "", FLAT | ALONE},
    {"hpf", "", "hhpf", "", REACTIVE},
    {"hpf", "", "hhpf", "", PROACTIVE},
    {"pd-static", "", "pd-mixed", "limit_tokens=1000000000", ANY},
    {"vllm-priority", "mode=v0,by_priority=false,force_preempt=false", "vllm-v0", "", ANY},
    {"vllm-priority", "by_priority=false", "vllm-v1", "", ANY},
    {"vllm-priority", "", "vllm-v1", "", ROOMY | REACTIVE},
    {"vllm-priority", "interrupt=true", "vllm-v1", "", ROOMY | PROACTIVE},
    {"vllm-priority", "mode=v0", "vllm-v0", "", ROOMY | PROACTIVE},
    /* Rules about classes have no effect where there is one class. */
    {"edf", "class=blind", "edf", "class=rt_first,preempt=kernel", FLAT | REACTIVE},
    {"program-fcfs", "class=blind", "program-fcfs", "class=rt_first", PROACTIVE},
    {"program-fcfs", "class=rt_first", "program-fcfs", "class=rt_alone", REACTIVE},
    {"conserve-like", "", "conserve-like", "offline=always,safepoint=false", REACTIVE},
    {"conserve-like", "", "conserve-like", "offline=alone", REACTIVE},
    {"hygen-like", "", "hygen-like", "offline=always,utility=0", REACTIVE},
    {"hygen-like", "", "hygen-like", "offline=alone,latency_budget_ms=0", REACTIVE},
    {"hygen-like", "", "conserve-like", "", ROOMY | REACTIVE},
    {"vtc", "", "vtc", "reactive_weight=4", PROACTIVE},
    {"prema", "reactive_priority=9", "prema", "reactive_priority=2", PROACTIVE},
    {"edf", "", "edf", "ttft_slo_s=0.1", PROACTIVE},
    {"llf", "", "llf", "proactive_s=1", REACTIVE},
    {"recompute-preempt", "kill=kernel", "recompute-preempt", "kill=never", ROOMY | REACTIVE},
    {"recompute-preempt", "kill=kernel,keep_context=true", "recompute-preempt", "kill=never",
     ROOMY | PROACTIVE},
    {"agent-xpu-v1", "", "agent-xpu-v1",
     "preempt=false,intra_backfill=false,epsilon=5,batch_cap=2,duration=false,gap_ms=1", PROACTIVE},
    {"agent-xpu-v1", "", "agent-xpu-v1", "affinity=strict,elastic=false", PROACTIVE},
    {"agent-xpu-v1", "", "agent-xpu-v1",
     "resume=fifo,t_starve_s=0.001,contexts=1,ageing=false,inter_backfill=false", REACTIVE},
    {"agent-xpu-v1", "", "agent-xpu-v1", "yield=iteration,tie=longest,shed=true,shed_queue=0",
     REACTIVE},
    {"agent-xpu-v2", "", "agent-xpu-v2",
     "elastic=off,split=balance,beta=1,b_rf=1,length_bucket=1,piggyback=long,cap=marginal",
     PROACTIVE},
    {"agent-xpu-v2", "", "agent-xpu-v2",
     "guard=true,preempt=none,suspended=0,memory_rule=off,aged_chunks=false", PROACTIVE},
    {"agent-xpu-v2", "", "agent-xpu-v2", "shortest=reactive,t_age_s=0.01,aged_max=0", PROACTIVE},
    {"agent-xpu-v2", "", "agent-xpu-v2",
     "warmup=false,ageing=false,t_age_s=0,aged_max=5,suspended=4,preempt=layer", REACTIVE},
    {"agent-xpu-v2", "", "agent-xpu-v2",
     "b_rf=1,cap=open,epsilon=0.1,piggyback=long,guard=true,warm_s=1,cache_entries=1", REACTIVE},
    {"agent-xpu-v2", "elastic=class", "agent-xpu-v2", "elastic=on", REACTIVE},
};

static struct scenario sc;
static struct scenario_request q[MAX_REQUESTS];

static const struct policy_ops *find(const char *name)
{
    return strcmp(name, "skeleton") == 0 ? xpusim_policy() : policy_find(name);
}

/* Returns a hash of the instants of all tokens. */
static uint64_t fate(const char *policy, const char *params, uint64_t seed, unsigned when)
{
    uint32_t n = randomload_make(&sc, q, MAX_REQUESTS, 300 + seed);
    for (uint32_t i = 0; i < n; i++) {
        q[i].cls = when & REACTIVE    ? REQUEST_CLASS_REACTIVE
                   : when & PROACTIVE ? REQUEST_CLASS_PROACTIVE
                                      : q[i].cls;
        q[i].session_id = when & (FLAT | ALONE) ? 0 : q[i].session_id;
        q[i].prefix_tokens = when & (FLAT | ALONE) ? 0 : q[i].prefix_tokens;
        if (when & (FLAT | ALONE)) { /* the arrival of a later turn is its gap */
            double gap_s = i == 0 ? 0.0 : q[i].arrival_s - q[i - 1].arrival_s;
            q[i].arrival_s = when & ALONE            ? 100.0 * i
                             : i == 0 || gap_s > 0.0 ? q[i].arrival_s
                                                     : q[i - 1].arrival_s;
        }
    }
    if (strcmp(policy, "sd-npu") == 0) {
        sc.machine.devices[NPU].static_attention = false; /* its graphs hold the attention */
        sc.llm.n_layers = 6;
    }
    sc.setup.kv_capacity_tokens = when & ROOMY ? 0 : sc.setup.kv_capacity_tokens;
    scenario_policy(&sc, find(policy), params);
    ck_assert_msg(scenario_run(&sc, q, n, false) == 0, "%s:%s, load %u: %s", policy, params,
                  (unsigned)seed, sc.result.message);
    uint64_t h = HASH_INIT;
    for (uint32_t i = 0; i < n; i++) {
        const struct scenario_record *r = &sc.records[i];
        h = hash_u64(hash_u64(h, (uint64_t)r->arrival_ns), (uint64_t)r->start_ns);
        for (uint32_t k = 0; k < r->tokens_n; k++) {
            h = hash_u64(h, (uint64_t)r->token_ns[k]);
        }
        h = hash_u64(h, (uint64_t)r->finish_ns);
    }
    scenario_fini(&sc);
    return h;
}

START_TEST(what_a_load_has_not_makes_no_difference)
{
    for (size_t i = (size_t)_i; i < sizeof rows / sizeof rows[0]; i += 4) {
        for (uint64_t seed = 0; seed < LOADS; seed++) {
            uint64_t one = fate(rows[i].policy, rows[i].params, seed, rows[i].when);
            uint64_t two = fate(rows[i].other, rows[i].other_params, seed, rows[i].when);
            ck_assert_msg(one == two, "%s:%s and %s:%s, load %u", rows[i].policy, rows[i].params,
                          rows[i].other, rows[i].other_params, (unsigned)seed);
        }
    }
}
END_TEST

static const struct suite_row suite[] = {
    LOOP(what_a_load_has_not_makes_no_difference, 4),
};
SUITE_MAIN("coincide", suite)
