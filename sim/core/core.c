/* Life of a run and of its requests. */
#include "sim/core/core.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "sim/base/text.h"
#include "sim/core/consistent.h"
#include "sim/core/contract.h"
#include "sim/core/joins.h"

int core_fail(struct core *c, int status, const char *fmt, ...)
{
    struct sim_result *res = c->result;
    SIM_ASSERT(status < 0);
    if (res->status != 0) {
        return res->status; /* what failed first is the reason of what failed then */
    }
    res->status = status;
    int n = snprintf(res->message, sizeof res->message,
                     "policy %s, seed %" PRIu64 ", t=%" PRId64 " ns, event %" PRIu64 ": ",
                     c->setup->policy->name, c->setup->seed, c->sched->now_ns, res->events);
    if (n > 0 && (size_t)n < sizeof res->message) {
        va_list ap;
        va_start(ap, fmt);
        (void)vsnprintf(res->message + n, sizeof res->message - (size_t)n, fmt, ap);
        va_end(ap);
        (void)text_visible(res->message, "");
    }
    return status;
}

static double usable_bytes(const struct sim_setup *s)
{
    return s->machine->memory_bytes * s->machine->memory_usable_frac;
}

/* Of the largest model: others are loaded where KV leaves room (weights.c). */
static double weight_bytes(const struct core *c)
{
    double most = 0.0;
    for (uint32_t i = 0; i < c->n_models; i++) {
        most = fmax(most, c->models[i].llm->weight_bytes);
    }
    return (double)c->setup->weight_copies * most;
}

/* Bytes of a token of the model that needs most KV. */
static double kv_token_bytes(const struct core *c)
{
    return c->kv_unit_bytes * c->kv_units_most;
}

/* Largest KV that memory leaves after the weights. */
static uint64_t kv_capacity(const struct core *c)
{
    const struct sim_setup *s = c->setup;
    if (s->kv_capacity_tokens != 0) {
        return s->kv_capacity_tokens;
    }
    double left = usable_bytes(s) - weight_bytes(c) - s->runtime_bytes;
    return left <= 0.0 ? 0 : (uint64_t)(left / kv_token_bytes(c));
}

static uint32_t machine_caps(const struct machine *m)
{
    uint32_t caps = 0;
    for (uint32_t i = 0; i < m->n_devices; i++) {
        caps |= CAP_DEVICE(m->devices[i].kind);
        caps |= m->devices[i].can_reset ? CAP_RESET : 0;
    }
    return caps;
}

#define DEVICE_NEED(id, name, one) {CAP_DEVICE(DEVICE_KIND_##id), one},

static int check_needs(struct core *c)
{
    static const struct {
        uint32_t bit;
        const char *name;
    } names[] = {{CAP_SPANS, "spans"},
                 {CAP_ROW_SPLIT, "row splits"},
                 {CAP_YIELD_KERNEL, "kernel yields"},
                 {CAP_COMPILE, "kernel compilation"},
                 {CAP_LOAD, "graph loads"},
                 {CAP_KV_MOVE, "moving KV"},
                 {CAP_RESET, "device reset"},
                 {CAP_VERIFY, "verification"},
                 DEVICE_KINDS(DEVICE_NEED)};
    uint32_t have = (c->exec_ops->caps | machine_caps(c->setup->machine)) & c->setup->caps;
    uint32_t missing = c->setup->policy->needs & ~have;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if ((missing & names[i].bit) != 0) {
            return core_fail(c, -EINVAL, "needs %s, which machine %s on this executor lacks",
                             names[i].name, c->setup->machine->name);
        }
    }
    return 0;
}

/* What an init that failed means (sim/api/policy.h, errors). */
static const char *init_failure(int rc)
{
    switch (-rc) {
    case ENODEV:
        return "the machine lacks a device that it is to use";
    case EPERM:
        return "a device that it is to use cannot do its work (static attention, or it cannot stop "
               "as asked)";
    case ENOMEM:
        return "what it needs from the start does not fit into memory beside the weights";
    case EINVAL:
        return "a parameter does not suit this machine or model";
    default:
        return strerror(-rc);
    }
}

/* Finds the room that the weights leave for KV. */
static int find_capacity(struct core *c)
{
    const struct sim_setup *setup = c->setup;
    struct sim_result *result = c->result;
    result->kv_capacity_tokens = kv_capacity(c);
    if (result->kv_capacity_tokens < setup->kv_block_tokens && result->kv_capacity_tokens > 0) {
        return core_fail(
            c, -EINVAL, "no room for KV: %s %" PRIu64 " tokens, and one block holds %u",
            setup->kv_capacity_tokens > 0 ? "sim.kv_capacity_tokens is" : "the weights leave",
            result->kv_capacity_tokens, setup->kv_block_tokens);
    }
    if (result->kv_capacity_tokens == 0) {
        return core_fail(c, -EINVAL,
                         "model %s does not fit: %u copies of its weights (%.2f GB each) leave no "
                         "room for KV in %.0f %% of %.1f GB",
                         setup->llm->name, setup->weight_copies, setup->llm->weight_bytes / 1e9,
                         setup->machine->memory_usable_frac * 100.0,
                         setup->machine->memory_bytes / 1e9);
    }
    return 0;
}

static void models_init(struct core *c)
{
    const struct sim_setup *s = c->setup;
    SIM_REQUIRE(s->n_more < SIM_MAX_MODELS, "%u models", s->n_more + 1);
    c->n_models = 1 + s->n_more;
    for (uint32_t i = 0; i < c->n_models; i++) {
        const struct sim_model m = i == 0 ? (struct sim_model){s->llm, s->truth} : s->more[i - 1];
        SIM_REQUIRE(m.llm->layer.n > 0 && m.llm->layer.n <= LAYER_MAX_OPS,
                    "model %s has no ops in its layers", m.llm->name);
        c->models[i] = (struct core_model){.llm = m.llm, .truth = m.truth};
        c->llms[i] = core_shown(c, m.llm, sizeof *m.llm);
    }
    c->sched->models = core_shown(c, c->llms, sizeof c->llms);
    c->sched->llm = c->llms[0];
    c->sched->n_models = c->n_models;
    c->sched->draft_model = s->draft_model;
    SIM_REQUIRE(s->draft_model < c->n_models, "no model %u drafts", s->draft_model);
    kv_models(c);
}

int core_init(struct core *c, const struct sim_setup *setup, const struct executor_ops *ops,
              void *exec, struct sim_result *result)
{
    /* Runs share nothing: whatever the one before left here is gone. */
    memset(c, 0, sizeof *c);
    memset(result, 0, sizeof *result);
    c->setup = setup;
    c->result = result;
    c->exec_ops = ops;
    c->exec = exec;
    arena_init(&c->arena);
    core_memory_init(c);
    c->sched->api = &core_sched_api;
    c->sched->machine = core_shown(c, setup->machine, sizeof *setup->machine);
    c->sched->params = core_shown(c, setup->params, sizeof *setup->params);
    c->sched->seed = core_policy_seed(setup);
    c->sched->kv_block_tokens = setup->kv_block_tokens;
    c->sched->context = setup->policy_context;
    c->sched->policy = setup->policy;
    SIM_REQUIRE(setup->kv_block_tokens > 0, "KV blocks of no tokens");
    const struct policy_ops *p = setup->policy;
    char why[256];
    /* First of all: of a policy of another contract no other member means anything. */
    if (contract_mismatch(&p->contract, why, sizeof why) != NULL) {
        return core_fail(c, -EINVAL, "built for %s", why);
    }
    if (p->request_arrived == NULL || p->schedule == NULL) {
        return core_fail(c, -EINVAL, "lacks a required hook");
    }
    models_init(c);
    if (c->n_models > 1 && (ops->caps & setup->caps & CAP_LOAD) == 0) {
        return core_fail(c, -EINVAL, "this executor runs one model, and the run has %u",
                         c->n_models);
    }
    if (setup->decision_log != NULL) {
        fprintf(setup->decision_log, "policy %s flags=%u\n", p->name, p->flags);
    }
    int rc = check_needs(c); /* before the policy has said anything that needs them */
    if (rc != 0) {
        return rc;
    }
    rc = find_capacity(c);
    if (rc != 0) {
        return rc;
    }
    kv_init(c);
    c->joins = joins_new(c);
    c->prefixes = prefixes_new(c);
    c->conditions.background_window = true;
    if (setup->trace->n_machine > 0 && ops->battery_frac == NULL) {
        return core_fail(c, -EINVAL,
                         "the trace has events of the machine, which this executor cannot make");
    }
    if (setup->drafts_on_texts && setup->trace->texts == NULL) {
        return core_fail(c, -EINVAL,
                         "its drafter drafts on token texts, which the workload has not "
                         "(--workload texts:file=FILE.jsonl)");
    }
    /* A capacity that was stated may be more than the machine's memory leaves. */
    c->memory_bytes =
        fmax(usable_bytes(setup), weight_bytes(c) + setup->runtime_bytes +
                                      (double)result->kv_capacity_tokens * kv_token_bytes(c));
    core_memory_note(c);
    if (p->state_size_bytes > 0) {
        c->sched->state = arena_alloc(&c->policys, p->state_size_bytes);
    }
    c->hook = HOOK_INIT;
    rc = p->init == NULL ? 0 : p->init(c->sched);
    c->hook = HOOK_NONE;
    weights_init(c);
    if (rc == 0 && setup->draft_model > 0 && c->models[setup->draft_model].weights == NULL) {
        return core_fail(c, -ENOMEM, "model %s, which drafts, does not fit next to the others",
                         c->models[setup->draft_model].llm->name);
    }
    return rc == 0 ? 0 : core_fail(c, rc, "init failed: %s", init_failure(rc));
}

void core_fini(struct core *c)
{
    if (c->sched != NULL) { /* also after an init that failed: a policy gives back what it has */
        CORE_HOOK(c, HOOK_EXIT, exit, c->sched);
    }
    free(c->residents.buckets);
    free(c->cold);
    joins_free(c->joins);
    prefixes_free(c->prefixes);
    arena_fini(&c->policys);
    arena_fini(&c->shown);
    arena_fini(&c->arena);
}

/* Brings the integral of requests in system up to now (Little's law). */
static void area_update(struct core *c)
{
    int64_t dt = c->sched->now_ns - c->area_from_ns;
    SIM_ASSERT(dt >= 0);
    c->area_request_ns += (double)c->n_live * (double)dt;
    c->area_from_ns = c->sched->now_ns;
}

static struct full_request *request_new(struct core *c)
{
    struct full_request *r = core_request_new(c);
    r->alive = true;
    /* In front: the newest is the first that gives its idle prefix away (kv.c). */
    r->next_live = c->live_head;
    if (c->live_head != NULL) {
        c->live_head->prev_live = r;
    }
    c->live_head = r;
    return r;
}

static int64_t after(int64_t now_ns, int64_t delay_ns)
{
    return delay_ns >= TIME_NEVER_NS - now_ns ? TIME_NEVER_NS : now_ns + delay_ns;
}

static void request_fill(struct core *c, struct full_request *r, uint32_t row,
                         const struct trace_row *t)
{
    r->row = row;
    r->output_tokens = t->output_tokens;
    r->pub->id = t->request_id;
    r->pub->session_id = t->session_id;
    r->pub->turn = t->turn;
    r->pub->cls = (enum request_class)t->cls;
    r->pub->arrival_ns = c->sched->now_ns;
    r->pub->input_tokens = t->input_tokens;
    r->pub->max_output_tokens = t->max_output_tokens;
    r->pub->ttft_slo_ns = TIME_NEVER_NS;
    r->pub->tbt_slo_ns = TIME_NEVER_NS;
    r->pub->deadline_ns = TIME_NEVER_NS;
    r->pub->client_id = t->session_id;
    r->pub->job_id = t->session_id;
    r->pub->depth = t->turn;
    r->pub->model = trace_graph_model(c->setup->trace->graph, row);
    SIM_ASSERT(r->pub->model < c->n_models);
    r->kv_units = c->models[r->pub->model].kv_units;
    r->pub->first_service_ns = TIME_NEVER_NS;
    r->pub->first_token_ns = TIME_NEVER_NS;
    r->pub->last_token_ns = TIME_NEVER_NS;
    if (c->setup->trace->extras != NULL) {
        const struct trace_extra *x = &c->setup->trace->extras[row];
        r->pub->ttft_slo_ns = x->ttft_slo_ns;
        r->pub->tbt_slo_ns = x->tbt_slo_ns;
        r->pub->deadline_ns = after(c->sched->now_ns, x->deadline_ns);
        r->pub->client_id = x->client_id;
        r->pub->priority = x->priority;
        if (x->cancel_ns != TIME_NEVER_NS) {
            c->exec_ops->cancel_later(c->exec, after(c->sched->now_ns, x->cancel_ns), r);
        }
    }
}

void core_request_arrives(struct core *c, uint32_t row, uint32_t cold)
{
    SIM_ASSERT(row < c->setup->trace->n);
    if (c->joins != NULL && !joins_may_arrive(c, row)) {
        return;
    }
    c->result->events++;
    area_update(c); /* with as many as there were until now */
    struct full_request *r = request_new(c);
    const struct trace_row t = trace_row_at(c->setup->trace, row);
    SIM_ASSERT(t.input_tokens > 0 && t.output_tokens > 0);
    request_fill(c, r, row, &t);
    if (c->joins != NULL) {
        joins_arrived(c, row, r);
    }
    if (cold != KV_NO_COLD) {
        /* At least one prompt token is computed afresh: its logits start the answer. */
        uint32_t want = t.prefix_tokens < t.input_tokens ? t.prefix_tokens : t.input_tokens - 1;
        r->pub->reused_tokens = kv_take_cold(c, cold, r, want);
        r->pub->kv_tokens = r->pub->reused_tokens;
        SIM_ASSERT(r->pub->reused_tokens <= want);
        kv_prefix_rest(c, r);
    }
    if (c->prefixes != NULL) {
        prefix_match(c, r);
    }
    c->n_live++;
    c->result->audit.arrived++;
    CORE_OBSERVE(c, request_arrived, c->sched->now_ns, r->pub);
    /* Such a request would wait for ever, and all that come after it in many orders. */
    bool fits = core_request_fits(c, r);
    if (!fits && c->conditions.memory_taken_bytes <= 0.0) {
        core_fail(c, -ENOMEM,
                  "request %u needs %u KV tokens, the machine holds %" PRIu64
                  "%s (model, memory or kv_capacity_tokens too small for this trace)",
                  r->pub->id, t.input_tokens + t.output_tokens, kv_most_tokens_of(c, r->pub->model),
                  c->kv_blocks_mapped > 0 ? " beside the graphs mapped at the start" : "");
    }
    if (c->n_models > 1) {
        weights_hold(c, r);
    } else {
        CORE_HOOK(c, HOOK_REQUEST_ARRIVED, request_arrived, c->sched, r->pub);
    }
    if (!fits) {
        core_count(c, COUNTER_MEMORY_SHED);
        core_request_cancel(c, r);
    }
}

/* The session's next turn and when it is due; TRACE_NO_ROW when it would come after its session's
 * last instant. */
static uint32_t next_turn(const struct core *c, const struct trace_row *t, int64_t *due_ns)
{
    const struct trace *trace = c->setup->trace;
    if (t->next == TRACE_NO_ROW) {
        return TRACE_NO_ROW;
    }
    if (c->joins != NULL) {
        return t->next; /* it may wait for others, too */
    }
    *due_ns = c->sched->now_ns + trace_row_at(trace, t->next).arrival_ns;
    bool late = trace->extras != NULL && *due_ns >= trace->extras[t->next].until_ns;
    return late ? TRACE_NO_ROW : t->next;
}

void core_request_leave(struct core *c, struct full_request *r, enum request_state state)
{
    c->result->events++;
    area_update(c);
    const struct trace_row t = trace_row_at(c->setup->trace, r->row);
    int64_t now = c->sched->now_ns;
    int64_t due_ns = now;
    uint32_t next = next_turn(c, &t, &due_ns);
    SIM_ASSERT(state == REQUEST_STATE_FINISHED || state == REQUEST_STATE_SHED);
    SIM_ASSERT(request_may_become(r->pub->state, state));
    SIM_ASSERT(state != REQUEST_STATE_FINISHED || r->pub->generated_tokens == r->output_tokens);
    SIM_ASSERT(r->pub->arrival_ns <= now && due_ns >= now);
    r->pub->state = state;
    r->pub->calls_tool = state == REQUEST_STATE_FINISHED && next != TRACE_NO_ROW &&
                         trace_row_at(c->setup->trace, next).after_tool;
    /* From a pass nobody leaves: its segments point to him until it is over. */
    SIM_REQUIRE(r->alive && r->pub->pass == NULL && c->n_live > 0, "request %u leaves from a pass",
                r->pub->id);
    r->alive = false;
    c->n_live--;
    if (r->held) {
        weights_forget(c, r);
    } else if (c->n_models > 1) {
        weights_left(c, r->pub->model);
    }
    c->sojourn_ns += (double)(now - r->pub->arrival_ns);
    if (state == REQUEST_STATE_FINISHED) {
        c->result->audit.finished++;
        c->result->audit.tokens_expected += r->output_tokens;
        c->result->audit.tokens_produced += r->pub->generated_tokens;
        CORE_OBSERVE(c, request_finished, now, r->pub);
    } else {
        c->result->audit.shed++;
        CORE_OBSERVE(c, request_shed, now, r->pub);
    }
    /* A shed turn still ends: its user or agent goes on with the next one. */
    kv_prefix_used(c, r); /* its blocks become cold or free, and count as idle no more */
    uint32_t cold = KV_NO_COLD;
    if (c->prefixes != NULL) {
        prefix_share(c, r);
    }
    if (next != TRACE_NO_ROW && c->setup->prefix_reuse && r->kv_blocks > 0) {
        cold = kv_keep_cold(c, r, next);
    }
    kv_release(c, r);
    /* After its KV was put aside: the next turn is told where it lies. */
    if (c->joins != NULL) {
        joins_left(c, r->row, cold);
    } else if (next != TRACE_NO_ROW) {
        c->exec_ops->arrive_later(c->exec, due_ns, next, cold);
    }
    if (r->prev_live != NULL) {
        r->prev_live->next_live = r->next_live;
    } else {
        c->live_head = r->next_live;
    }
    if (r->next_live != NULL) {
        r->next_live->prev_live = r->prev_live;
    }
    SIM_ASSERT(r->kv_blocks == 0 && !r->prefix_idle);
    r->next_free = c->dead_requests;
    c->dead_requests = r;
}

void core_request_cancel(struct core *c, struct full_request *r)
{
    if (!r->alive) {
        return; /* its user gave up on what had just ended */
    }
    /* Kernels and the loader work on its KV: it leaves when they are done with it. */
    if (r->pub->pass != NULL || r->kv_moving) {
        r->cancel_pending = true;
        if (r->pub->pass != NULL) {
            struct full_pass *p = core_pass(r->pub->pass);
            p->steady = false; /* a request is to leave */
            p->loses = true;
        }
        return;
    }
    bool held = r->held;
    core_request_leave(c, r, REQUEST_STATE_SHED);
    if (!held) { /* else the policy never knew of it */
        CORE_HOOK(c, HOOK_REQUEST_CANCELLED, request_cancelled, c->sched, r->pub);
    }
}

void core_timer(struct core *c)
{
    c->result->events++;
}

void core_kv_moved(struct core *c, struct full_request *r, bool in)
{
    c->result->events++;
    SIM_ASSERT(r->alive && r->kv_moving && r->pub->pass == NULL);
    SIM_ASSERT(in == r->pub->kv_swapped);
    r->kv_moving = false;
    core_progress(c);
    if (!in) {
        kv_release(c, r);
        r->pub->kv_swapped = true;
    } else {
        r->pub->kv_swapped = false;
    }
    CORE_HOOK(c, HOOK_KV_MOVED, kv_moved, c->sched, r->pub);
    /* The policy hears first that the move is over, then that the request has gone: it never knows
     * of a move of nobody. */
    if (r->cancel_pending) {
        core_request_leave(c, r, REQUEST_STATE_SHED);
        CORE_HOOK(c, HOOK_REQUEST_CANCELLED, request_cancelled, c->sched, r->pub);
    }
}

/* Objects of the instant that ended can be reused now: the policy has seen them. */
static void bury_dead(struct core *c)
{
    c->done = NULL;
    while (c->dead_launches != NULL) {
        struct full_launch *l = c->dead_launches;
        SIM_ASSERT(l->pub->state == LAUNCH_STATE_ENDED);
        c->dead_launches = l->next_free;
        l->next_free = c->free_launches;
        c->free_launches = l;
    }
    while (c->dead_passes != NULL) {
        struct full_pass *p = c->dead_passes;
        SIM_ASSERT(p->pub->state == PASS_STATE_DONE || p->pub->state == PASS_STATE_CANCELLED);
        SIM_ASSERT(p->pub->n_launches == 0);
        c->dead_passes = p->next_free;
        p->next_free = c->free_passes;
        c->free_passes = p;
    }
    while (c->dead_requests != NULL) {
        struct full_request *r = c->dead_requests;
        SIM_ASSERT(!r->alive);
        c->dead_requests = r->next_free;
        r->next_free = c->free_requests;
        c->free_requests = r;
    }
}

/* Nothing is left to do at this instant: what the actions brought is no news, this call has seen
 * it. */
static void rest(struct core *c)
{
    c->events_seen = c->result->events;
    bury_dead(c);
    SIM_ASSERT(core_consistent(c));
}

/* A policy that says so wrongly would decide otherwise where it is not asked. */
static int steady_kept(struct core *c)
{
    const struct full_pass *p = c->expected;
    c->expected = NULL;
    return p == NULL ? 0
                     : core_fail(c, -EPROTO,
                                 "schedule declared that it is steady (sched_steady), and did not "
                                 "form pass %u again",
                                 p->pub->id);
}

int core_schedule(struct core *c)
{
    /* Else results would depend on which kernels the executor made events of: a policy whose answer
     * changes with time would be asked at more instants. */
    if (c->result->events == c->events_seen) {
        return 0;
    }
    SIM_ASSERT(core_consistent(c)); /* also after what the executor brought */
    if (c->held_head != NULL) {
        weights_let_in(c);
    }
    if (c->kv_blocks_owed > 0) {
        kv_collect(c, NULL);
    }
    if (c->prefixes != NULL) {
        prefix_match_waiting(c);
    }
    SIM_ASSERT(c->hook == HOOK_NONE);
    c->sched->epoch++;
    for (uint32_t round = 0; round < SCHEDULE_MAX_ROUNDS; round++) {
        c->again = false;
        c->actions = 0;
        core_count(c, COUNTER_SCHEDULE_ROUNDS);
        CORE_HOOK(c, HOOK_SCHEDULE, schedule, c->sched);
        if (c->result->status != 0) {
            return c->result->status;
        }
        if (!c->again || c->actions == 0) {
            rest(c);
            return steady_kept(c);
        }
    }
    return core_fail(c, -ELOOP, "schedule acted %d times in one instant and did not come to rest",
                     SCHEDULE_MAX_ROUNDS);
}
