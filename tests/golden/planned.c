/* The clairvoyant policy (policies/clairvoyant.h) as a plug-in whose plan is parameters, for
 * judged.sh. With `listed` above 0 the plan has an order of the first so many requests by id, which
 * an arithmetic makes of `order`. */
#include "policies/clairvoyant.h"
#include "sim/base/base.h"

#define MOST 64

enum { PREFILL, DECODE, BATCH, REACTIVE, LISTED, ORDER };

static const char *const kinds[] = {"npu", "igpu", "cpu", NULL};

static const struct policy_param params[] = {
    [PREFILL] = POLICY_CHOICE("prefill", 0, kinds, "device of prompts"),
    [DECODE] = POLICY_CHOICE("decode", 1, kinds, "device of decodes"),
    [BATCH] = POLICY_INT("max_batch", 1, 1, 1000, "decodes together"),
    [REACTIVE] = POLICY_BOOL("reactive_first", false, "before the order"),
    [LISTED] = POLICY_INT("listed", 0, 0, MOST, "requests in the order; 0: the shortest first"),
    [ORDER] = POLICY_INT("order", 0, 0, 1000, "which order"),
    {.name = NULL},
};

struct planned {
    struct clairvoyant_plan plan;
    uint32_t order[MOST];
    _Alignas(max_align_t) char own[]; /* of the policy */
};

static uint32_t place(struct sched *s, uint32_t id)
{
    return (id * 37 + (uint32_t)param_int(s, ORDER)) % 101;
}

/* The policy sees its own state and the plan. */
static struct sched as_planned(const struct sched *s)
{
    struct planned *x = s->state;
    struct sched own = *s;
    own.state = x->own;
    own.context = &x->plan;
    return own;
}

static int init(struct sched *s)
{
    static const enum device_kind of[] = {DEVICE_KIND_NPU, DEVICE_KIND_IGPU, DEVICE_KIND_CPU};
    struct planned *x = s->state;
    uint32_t n = (uint32_t)param_int(s, LISTED);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t at = i;
        for (; at > 0 && place(s, x->order[at - 1]) > place(s, i); at--) {
            x->order[at] = x->order[at - 1];
        }
        x->order[at] = i;
    }
    x->plan = (struct clairvoyant_plan){
        .order = n > 0 ? x->order : NULL,
        .n_order = n,
        .reactive_first = param_bool(s, REACTIVE),
        .prefill_device = (uint8_t)machine_find(s->machine, of[param_int(s, PREFILL)]),
        .decode_device = (uint8_t)machine_find(s->machine, of[param_int(s, DECODE)]),
        .max_batch = (uint32_t)param_int(s, BATCH)};
    struct sched own = as_planned(s);
    return policy_clairvoyant_ops.init(&own);
}

#define HOOK(hook, object, of)                                                                     \
    static void hook(struct sched *s, object of)                                                   \
    {                                                                                              \
        struct sched own = as_planned(s);                                                          \
        policy_clairvoyant_ops.hook(&own, of);                                                     \
    }
HOOK(request_arrived, const struct request *, r)
HOOK(request_cancelled, const struct request *, r)
HOOK(launch_done, const struct launch *, l)
HOOK(pass_done, const struct pass *, p)

static void schedule(struct sched *s)
{
    struct sched own = as_planned(s);
    policy_clairvoyant_ops.schedule(&own);
}

static void fini(struct sched *s)
{
    struct sched own = as_planned(s);
    policy_clairvoyant_ops.exit(&own);
}

const struct policy_ops *xpusim_policy(void)
{
    static struct policy_ops ops;
    ops = policy_clairvoyant_ops;
    ops.name = "planned";
    ops.params = params;
    ops.state_size_bytes += sizeof(struct planned);
    ops.init = init;
    ops.exit = fini;
    ops.request_arrived = request_arrived;
    ops.request_cancelled = request_cancelled;
    ops.launch_done = launch_done;
    ops.pass_done = pass_done;
    ops.schedule = schedule;
    return &ops;
}
