/* Implements struct sched_api. Every action is validated, counted and logged here; form.c, pass.c,
 * launch.c, resident.c and kv_move.c do the work. */
#include "sim/base/hash.h"
#include "sim/base/rng.h"
#include "sim/core/core.h"
#include "sim/core/kernels.h"
#include "sim/core/kv.h"
#include "sim/core/memory.h"
#include "sim/record/action.h"

/* Actions are refused in hooks other than `schedule`. */
static bool may_act(struct core *c)
{
    if (c->hook != HOOK_schedule) {
        (void)core_refuse(c, COUNTER_OUTSIDE_SCHEDULE, -EPERM,
                          "hooks only record: actions belong in schedule");
    }
    return c->hook == HOOK_schedule;
}

/* Writes one line per action: epoch, instant, action, arguments, result. Tests compare these lines,
 * because two policies decide the same way if and only if they are equal. A refused action of
 * another hook names it: "in=pass_done". */
static void log_action(const struct core *c, const struct action *a, int rc)
{
    FILE *log = c->setup->decision_log;
    fprintf(log, "%" PRIu64 " %" PRId64 " ", c->sched->epoch, c->sched->now_ns);
    action_write(log, a);
    if (rc != 0 && c->hook != HOOK_schedule) {
        fprintf(log, " in=%s", core_hook_names[c->hook]);
    }
    fprintf(log, " = %d\n", rc);
}

/* Called at the end of every action. logged: the action, or NULL without a log. */
static inline int acted(struct core *c, int rc, enum action_kind kind, const struct action *logged)
{
    /* Not a timer, which a policy that uses sched_again may set in every call. */
    if (rc == 0 && kind != ACTION_TIMER) {
        c->actions++;
        c->result->decisions++;
    }
    if (rc == 0 && logged == NULL) { /* fast path */
        c->last[0] = (struct core_decision){action_forms[kind].log, c->sched->now_ns};
        return 0;
    }
    if (logged != NULL) {
        log_action(c, logged, rc);
    }
    return core_acted(c, action_forms[kind].log, rc);
}

#define ACTED(c, rc, what, ...)                                                                    \
    acted(c, rc, ACTION_##what,                                                                    \
          (c)->setup->decision_log == NULL ? NULL                                                  \
                                           : &(struct action){.kind = ACTION_##what, __VA_ARGS__})

/* Defines an action: its parameters, its result, and its line in the log. The line is made after
 * the action, because objects that ended exist until the end of the instant. */
#define WITH(...) (struct sched * s, __VA_ARGS__)
#define ACT_AS(name, parameters, result, what, ...)                                                \
    static int act_##name parameters                                                               \
    {                                                                                              \
        struct core *c = core_of(s);                                                               \
        int rc = (result);                                                                         \
        return ACTED(c, rc, what, __VA_ARGS__);                                                    \
    }
/* Defines an action that is refused outside of schedule. */
#define ACT(name, parameters, result, ...)                                                         \
    ACT_AS(name, parameters, may_act(c) ? (result) : -EPERM, __VA_ARGS__)

/* Noise of estimates, equal for equal arguments and for all policies. It depends on the work and
 * the device but not on `rows`, so that shares of one op stay comparable. Its mean is 1, so that
 * only the bias makes estimates wrong on average. */
static double annotation_noise(struct core *c, const struct work_shape *w, enum op_kind op,
                               uint8_t device, double sigma)
{
    struct core_noise *last = &c->noise[device][op];
    if (last->attn_pairs != w->attn_pairs || last->rows != w->rows ||
        last->prefill_rows != w->prefill_rows || last->model != w->model) {
        uint64_t h = hash_u64(HASH_INIT, ((uint64_t)w->rows << 32) | w->prefill_rows);
        h = hash_u64(h, w->attn_pairs);
        h = hash_u64(h, ((uint64_t)w->model << 32) | ((uint64_t)op << 8) | device);
        double z = rng_normal_of_key(rng_key(c->setup->seed, RNG_ANNOTATION, h, 0));
        *last = (struct core_noise){w->attn_pairs, w->rows, w->prefill_rows, w->model,
                                    exp(sigma * z - 0.5 * sigma * sigma)};
    }
    return last->factor;
}

static inline double annotation_factor(struct core *c, const struct work_shape *w, enum op_kind op,
                                       uint8_t device)
{
    const struct annotation_options *a = &c->setup->annotation;
    double sigma = w->prefill_rows > 0 ? a->sigma_prefill : a->sigma_decode;
    double factor = 1.0 + a->bias_frac[op];
    return sigma > 0.0 ? factor * annotation_noise(c, w, op, device, sigma) : factor;
}

static int act_estimate_graph(struct sched *s, const struct work_shape *w, enum op_kind op,
                              uint8_t device, uint32_t rows, uint32_t chunk_rows, uint8_t graph,
                              struct estimate *out)
{
    struct core *c = core_of(s);
    /* This is no action, so bad arguments do not count as a refusal. */
    if (device >= s->machine->n_devices || op >= OP_KIND_COUNT || w->rows == 0 ||
        w->model >= c->n_models) {
        return -EINVAL;
    }
    uint32_t all = op == OP_HEAD ? w->logit_rows : w->rows;
    if (rows > all) {
        return -EINVAL;
    }
    if (rows == 0) {
        rows = all;
    }
    if (rows == 0) { /* HEAD of a pass without logits */
        *out = (struct estimate){0};
        return 0;
    }
    const struct device *d = &s->machine->devices[device];
    struct kernel_run k;
    const struct hwmodel *truth = c->models[w->model].truth;
    kernel_run_fill(truth, w, op, device, graph, rows, chunk_rows, 0, &k);
    double bytes = kernel_run_total_bytes(&k);
    double t = (double)kernel_run_total_ns(&k) * annotation_factor(c, w, op, device);
    SIM_ASSERT(t >= 0.0 && isfinite(t));
    out->t_ns = t < 1.0 ? 1 : units_round(t); /* policies divide by it */
    out->bytes_per_s = bytes / units_s_from_ns(out->t_ns);
    out->flop_per_byte = bytes > 0.0 ? kernel_run_total_flop(&k) / bytes : 0.0;
    out->watts = w->prefill_rows > 0 ? d->prefill_watts : d->decode_watts;
    out->memory_bound = out->flop_per_byte < truth->ops->ridge_flop_per_byte(truth, device);
    return 0;
}

/* Defines a call without effect: its parameters and its result. */
#define ASK(type, name, parameters, answer)                                                        \
    static type act_##name parameters                                                              \
    {                                                                                              \
        struct core *c = core_of(s);                                                               \
        return answer;                                                                             \
    }

ASK(uint64_t, kv_free_tokens, (struct sched * s), kv_free_tokens(c))
ASK(uint64_t, kv_capacity_tokens, (struct sched * s), kv_most_tokens(c))
ASK(struct machine_state, machine_state, (struct sched * s), core_machine_state(c))
ASK(enum resident_state, resident_state, WITH(struct resident_key key),
    resident_find(c, key) != NULL ? resident_find(c, key)->state : RESIDENT_ABSENT)
ASK(uint64_t, kv_cached_tokens, WITH(const struct request *r),
    r != NULL && core_request(r)->alive ? kv_cached_tokens(c, core_request(r)) : 0)
ASK(uint32_t, device_free_slots, WITH(uint8_t device),
    device < s->machine->n_devices ? c->exec_ops->free_slots(c->exec, device) : 0)
ASK(uint64_t, prompt_hash, WITH(const struct request *r, uint32_t tokens),
    r != NULL && tokens > 0 && tokens <= r->input_tokens
        ? prefix_hash(c, core_request(r)->row, tokens)
        : 0)

static int64_t act_oracle_output_tokens(struct sched *s, const struct request *r)
{
    struct core *c = core_of(s);
    /* Reported like a refused action. A policy that uses hidden lengths must declare it, or its
     * results could be taken for those of a realisable policy. */
    if ((c->setup->policy->flags & POLICY_F_ORACLE) == 0) {
        return core_acted(c, "oracle_output_tokens",
                          core_refuse(c, COUNTER_ORACLE_REFUSED, -EPERM,
                                      "hidden lengths are for POLICY_F_ORACLE only"));
    }
    SIM_ASSERT(core_request(r)->output_tokens > 0);
    return core_request(r)->output_tokens;
}

static uint32_t act_draft_tokens(struct sched *s, const struct request *r)
{
    const struct core *c = core_of(s);
    if (c->setup->draft == NULL) {
        return 0;
    }
    const struct full_request *f = core_request(r);
    return c->setup->draft(c->setup->speculation_params, c->setup->seed, r,
                           trace_text_at(c->setup->trace, f->row), f->draw);
}

static int act_pass_form(struct sched *s, const struct pass_spec *spec, struct pass **out)
{
    struct core *c = core_of(s);
    int rc = may_act(c) ? core_pass_form(c, spec, out) : -EPERM;
    /* Log the segments of spec if the pass was refused, or if it has SEGMENT_AHEAD, which the
     * formed segment replaces by another role. */
    bool wanted = rc != 0 || core_pass(*out)->before != NULL;
    return ACTED(c, rc, FORM, .fused = spec->fused_layers,
                 .segments = wanted ? spec->segments : (*out)->segments,
                 .n_segments = wanted ? spec->n_segments : (*out)->n_segments);
}

ACT(pass_cancel, WITH(struct pass *p), core_pass_cancel(c, p), CANCEL,
    .pass = p == NULL ? 0 : p->id)
ACT(launch, WITH(const struct launch_spec *l, const struct launch **out), core_launch(c, l, out),
    LAUNCH, .pass = l->pass == NULL ? 0 : l->pass->id, .device = l->device, .span = *l)
ACT(preempt, WITH(const struct launch *l, struct preempt_spec how), core_preempt(c, l, how),
    PREEMPT, .launch = l == NULL ? 0 : l->id, .how = how)
ACT(compile, WITH(struct resident_key key), core_compile(c, key), COMPILE, .key = key)
ACT(load, WITH(struct resident_key key, double bytes), core_load(c, key, bytes), LOAD, .key = key,
    .bytes = bytes)
ACT(resident_evict, WITH(struct resident_key key), core_resident_evict(c, key), DROP, .key = key)
/* These two check themselves that they are called in `init`. */
ACT_AS(map, WITH(struct resident_key key, double bytes), core_map(c, key, bytes), MAP, .key = key,
       .bytes = bytes)
ACT_AS(graph, WITH(uint8_t version, struct graph_shape shape), core_graph(c, version, shape), GRAPH,
       .version = version, .graph = shape)

static int act_kv_move(struct sched *s, struct kv_part part, enum kv_place to)
{
    struct core *c = core_of(s);
    int rc = may_act(c) ? core_kv_move(c, part, to) : -EPERM;
    if (part.of_session) {
        return ACTED(c, rc, KV_SESSION, .session = part.session_id, .place = to);
    }
    return ACTED(c, rc, KV, .request = part.request == NULL ? UINT32_MAX : part.request->id,
                 .from_token = part.from_token, .place = to);
}

static int set_timer(struct core *c, int64_t at_ns)
{
    REFUSE_IF(c, at_ns < c->sched->now_ns, TIMER_REFUSED, -EINVAL, "the instant has passed");
    c->exec_ops->timer(c->exec, at_ns);
    return 0;
}

static int occupy(struct core *c, uint8_t device, int64_t until_ns)
{
    REFUSE_IF(c, device >= c->setup->machine->n_devices || until_ns <= c->sched->now_ns,
              LAUNCH_BAD_SPAN, -EINVAL,
              "the machine has no such device, or the instant has passed");
    REFUSE_IF(c, c->exec_ops->occupy == NULL, LAUNCH_UNSUPPORTED, -EPERM,
              "devices of this executor run passes only");
    int rc = c->exec_ops->occupy(c->exec, device, until_ns);
    return rc == 0 ? 0 : core_refuse(c, COUNTER_LAUNCH_DEVICE_BUSY, rc, "the device is not idle");
}

static int kv_rank(struct core *c, struct full_request *r, uint32_t rank)
{
    REFUSE_IF(c, r == NULL || !r->alive, EVICT_REFUSED, -EINVAL, "the request has left");
    r->kv_rank = rank;
    prefix_rank(r);
    return 0;
}

static int shed(struct core *c, struct full_request *r)
{
    REFUSE_IF(c, r == NULL || !r->alive || r->pub->pass != NULL || r->kv_moving, SHED_REFUSED,
              -EINVAL, "the request has left, is in a pass, or its KV is on its way");
    core_request_leave(c, r, REQUEST_STATE_SHED);
    return 0;
}

ACT(set_timer, WITH(int64_t at_ns), set_timer(c, at_ns), TIMER, .at_ns = at_ns)
ACT(occupy, WITH(uint8_t device, int64_t until_ns), occupy(c, device, until_ns), OCCUPY,
    .device = device, .at_ns = until_ns)
ACT(kv_rank, WITH(const struct request *r, uint32_t rank), kv_rank(c, core_request(r), rank),
    KV_RANK, .request = r == NULL ? UINT32_MAX : r->id, .rank = rank)
ACT(shed, WITH(const struct request *r), shed(c, core_request(r)), SHED,
    .request = r == NULL ? UINT32_MAX : r->id)

static int act_note(struct sched *s, const char *name, uint64_t add)
{
    struct sim_result *res = core_of(s)->result;
    for (uint32_t i = 0; i < res->n_policy_counters; i++) {
        if (strcmp(res->policy_counter_names[i], name) == 0) {
            res->policy_counters[i] += add;
            return 0;
        }
    }
    if (res->n_policy_counters == SIM_MAX_POLICY_COUNTERS ||
        strlen(name) >= sizeof res->policy_counter_names[0]) {
        return -ENOMEM;
    }
    strcpy(res->policy_counter_names[res->n_policy_counters], name);
    res->policy_counters[res->n_policy_counters++] = add;
    return 0;
}

static void act_again(struct sched *s)
{
    core_of(s)->again = true;
}

static void act_steady(struct sched *s, int64_t until_ns, uint64_t left_out)
{
    struct core *c = core_of(s);
    c->steady_until_ns = until_ns;
    c->steady_without = left_out;
}

static void act_give_up(struct sched *s, const char *why)
{
    /* The run ends when the present hook returns. */
    (void)core_fail(core_of(s), -EIO, "%s", why);
}

const struct sched_api core_sched_api = {
    .size = sizeof(struct sched_api),
#define CALL(result, name, parameters, arguments) .name = act_##name,
#define TELL(name, parameters, arguments) .name = act_##name,
#include "sim/api/calls.def"
};
