/* hpf: XSched's highest priority first, each device by itself (clauses.md E.4). A reactive decode
 * on the iGPU leaves the NPU to a proactive prompt, until that needs the iGPU. */
#include "policies/common/priority.h"

static int hpf_init(struct sched *s)
{
    return priority_init(s, false);
}

const struct policy_ops policy_hpf_ops = {
    .name = "hpf",
    .summary = "XSched's highest priority first, each device by itself",
    .contract = POLICY_CONTRACT,
    .init = hpf_init,
    PRIORITY_HOOKS,
};
