/* time-share: scheme (b) of the Agent.xpu papers' motivation (clauses.md C.4 b). All requests in
 * service share one device equally, regardless of their class; others wait in arrival order. Each
 * request in service would need its own activation buffers, which the simulator does not count. */
#include "policies/common/place.h"
#include "policies/common/share.h"

enum { PARAM_DEVICE, PARAM_MAX, PARAM_EFFICIENCY, PARAM_QUANTUM };

static const struct policy_param params[] = {
    [PARAM_DEVICE] = POLICY_CHOICE("device", 0, place_choices,
                                   "device that runs everything; auto: the iGPU (C.4)"),
    [PARAM_MAX] = POLICY_INT("max_requests", 4, 1, MACHINE_MAX_SHARED,
                             "requests in service at once (C.4 b [S])"),
    [PARAM_EFFICIENCY] =
        POLICY_NUMBER("efficiency", 0.95, 0.01, 1,
                      "total rate while several share a serial device (C.4 b [S]); a "
                      "time-shared device has its own"),
    [PARAM_QUANTUM] =
        POLICY_NUMBER("quantum_ms", 5, 0, 1e6,
                      "turn on a serial device, ms, rounded up to whole ops (ours); 0: one op"),
    {.name = NULL},
};

static int time_share_init(struct sched *s)
{
    int d = place_device(s->machine, param_int(s, PARAM_DEVICE));
    if (d < 0) {
        return d;
    }
    share_init(s, s->state, (uint8_t)d, (uint32_t)param_int(s, PARAM_MAX),
               units_ns_from_ms(param_number(s, PARAM_QUANTUM)), param_number(s, PARAM_EFFICIENCY));
    return 0;
}

static void time_share_request_arrived(struct sched *s, const struct request *r)
{
    struct share *sh = s->state;
    reqq_push(&sh->waiting, r);
}

static void time_share_launch_done(struct sched *s, const struct launch *l)
{
    share_launch_done(s->state, l);
}

static void time_share_pass_done(struct sched *s, const struct pass *p)
{
    share_pass_done(s->state, p);
}

static void time_share_request_cancelled(struct sched *s, const struct request *r)
{
    share_request_cancelled(s->state, r);
}

static void time_share_schedule(struct sched *s)
{
    share_schedule(s, s->state);
}

const struct policy_ops policy_time_share_ops = {
    .name = "time-share",
    .summary = "processor sharing on one device, class-blind (agent-xpu-v1 3.2, scheme b)",
    .contract = POLICY_CONTRACT,
    .needs = CAP_SPANS | CAP_KV_MOVE,
    .state_size_bytes = sizeof(struct share),
    .request_state_size_bytes = sizeof(struct reqq_node),
    .params = params,
    .init = time_share_init,
    .request_arrived = time_share_request_arrived,
    .launch_done = time_share_launch_done,
    .pass_done = time_share_pass_done,
    .request_cancelled = time_share_request_cancelled,
    .schedule = time_share_schedule,
};
