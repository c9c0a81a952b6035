/* hhpf: XSched's heterogeneous highest priority first: reactive work on any device stops proactive
 * work on every device (clauses.md E.4). A comparison with it shows the value of piggybacking. */
#include "policies/common/priority.h"

static int hhpf_init(struct sched *s)
{
    return priority_init(s, true);
}

const struct policy_ops policy_hhpf_ops = {
    .name = "hhpf",
    .summary = "XSched's highest priority first over all devices together",
    .contract = POLICY_CONTRACT,
    .init = hhpf_init,
    PRIORITY_HOOKS,
};
