/* To add a policy: write policies/NAME.c with `const struct policy_ops policy_NAME_ops`, add one
 * line here, in the order of the names. */
#include "policies/registry.h"

#include "sim/base/base.h"

#define POLICIES(X)                                                                                \
    X(agent_xpu_v1)                                                                                \
    X(agent_xpu_v2)                                                                                \
    X(andes)                                                                                       \
    X(autellix_like)                                                                               \
    X(conserve_like)                                                                               \
    X(critical_path)                                                                               \
    X(edf)                                                                                         \
    X(fcfs)                                                                                        \
    X(hetero_split)                                                                                \
    X(hhpf)                                                                                        \
    X(hpf)                                                                                         \
    X(hygen_like)                                                                                  \
    X(llama_cpp)                                                                                   \
    X(llf)                                                                                         \
    X(llm_npu)                                                                                     \
    X(mlfq)                                                                                        \
    X(npu_serial)                                                                                  \
    X(openvino_cb)                                                                                 \
    X(orca)                                                                                        \
    X(pantheon)                                                                                    \
    X(pd_mixed)                                                                                    \
    X(pd_static)                                                                                   \
    X(prema)                                                                                       \
    X(program_fcfs)                                                                                \
    X(recompute_preempt)                                                                           \
    X(sarathi)                                                                                     \
    X(sarathi_hetero)                                                                              \
    X(sd_npu)                                                                                      \
    X(sglang_lpm)                                                                                  \
    X(sjf_input)                                                                                   \
    X(srpt)                                                                                        \
    X(time_share)                                                                                  \
    X(vllm_priority)                                                                               \
    X(vllm_v0)                                                                                     \
    X(vllm_v1)                                                                                     \
    X(vtc)

#define DECLARE(name) extern const struct policy_ops policy_##name##_ops;
#define REFER(name) &policy_##name##_ops,

POLICIES(DECLARE)

static const struct policy_ops *const policies[] = {POLICIES(REFER)};

const struct policy_ops *const *policy_list(size_t *n)
{
    *n = sizeof policies / sizeof policies[0];
    return policies;
}

const struct policy_ops *policy_find(const char *name)
{
    for (size_t i = 0; i < sizeof policies / sizeof policies[0]; i++) {
        if (strcmp(policies[i]->name, name) == 0) {
            return policies[i];
        }
    }
    return NULL;
}

static const struct policy_alias aliases[] = {
    {"reef", "program-fcfs", "preempt=reset,class=rt_alone",
     "reactive requests reset the device (REEF, OSDI'22)"},
    {"agent-xpu-flows", "agent-xpu-v2", "split=balance,beta=0,length_bucket=1",
     "Agent.xpu by its public second text (arXiv 2506.24045v2, January 2026)"},
    {"guarded-xpu", "agent-xpu-v2",
     "elastic=class,guard=true,shortest=all,cap=open,b_rf=4,epsilon=0.15",
     "agent-xpu-v2 with reactive decodes guarded, shortest prompts first and an open batch (ours)"},
    {"warm-xpu", "agent-xpu-v2",
     "elastic=class,guard=true,shortest=all,cap=open,b_rf=4,epsilon=0.05,memory_rule=off,"
     "cache_entries=16,warm_s=0.01",
     "guarded-xpu whose proactive prompts with a compiled kernel are next while users wait (ours)"},
    {"balanced-xpu", "agent-xpu-v2",
     "elastic=class,shortest=all,cap=open,epsilon=0.13,cache_entries=16,margin=choose",
     "agent-xpu-v2 that pays for background work where reactive requests lose nothing (ours)"},
    {.name = NULL},
};

const struct policy_alias *policy_alias_find(const char *name)
{
    const struct policy_alias *a = aliases;
    while (name != NULL && a->name != NULL && strcmp(a->name, name) != 0) {
        a++;
    }
    return name == NULL || a->name != NULL ? a : NULL;
}
