/* Begin and end of a run: checks the policy's contract and needs, the machine and the models, finds
 * the memory left for KV, and calls the policy's init and exit. */
#define _DEFAULT_SOURCE /* getrandom */
#include <sys/random.h>

#include "sim/base/hash.h"
#include "sim/base/rng.h"
#include "sim/core/joins.h"
#include "sim/core/kv.h"
#include "sim/core/memory.h"

/* ---- memory that a policy sees, separate from the core's own (core.h, full_request) ---- */

uintptr_t core_way;

/* Allocates the memory that the policy reads and writes, and its handle. */
static void memory_init(struct core *c)
{
    const struct core_memory *m = c->setup->memory;
    while (core_way == 0) {
        if (getrandom(&core_way, sizeof core_way, 0) < 0) {
            core_way = (uintptr_t)&core_way; /* no getrandom: use ASLR */
        }
    }
    arena_init(&c->shown, m != NULL ? &m->shown : &arena_fenced);
    arena_init(&c->policys, m != NULL ? &m->policys : &arena_fenced);
    c->sched = arena_alloc(&c->shown, sizeof *c->sched);
    c->sched->core = (uintptr_t)c ^ core_way;
}

/* Copies an object to memory that the policy may read: what is next to it is hidden. NULL stays
 * NULL. */
static const void *show(struct core *c, const void *of, size_t bytes)
{
    return of == NULL ? NULL : memcpy(arena_alloc(&c->shown, bytes), of, bytes);
}

/* Returns a seed for a policy that draws, equal in equal runs. It is not the run's own seed, with
 * which a policy could generate the trace. JSON numbers hold it exactly. */
static uint64_t policy_seed(const struct sim_setup *setup)
{
    uint64_t name = hash_string(HASH_INIT, setup->policy->name);
    return rng_seed(rng_key(setup->seed, RNG_POLICY, name, 0));
}

/* ---- begin ---- */

static double usable_bytes(const struct sim_setup *s)
{
    return s->machine->memory_bytes * s->machine->memory_usable_frac;
}

/* KV bytes per token of the model with most. */
static double kv_token_bytes(const struct core *c)
{
    return c->kv_unit_bytes * c->kv_units_most;
}

/* KV tokens that the weights leave room for. */
static uint64_t kv_capacity(const struct core *c)
{
    const struct sim_setup *s = c->setup;
    if (s->kv_capacity_tokens != 0) {
        return s->kv_capacity_tokens;
    }
    double left = usable_bytes(s) - resident_weight_bytes(c) - s->runtime_bytes;
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
    uint32_t have = c->caps | (machine_caps(c->setup->machine) & c->setup->caps);
    uint32_t missing = c->setup->policy->needs & ~have;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        FAIL_IF(c, (missing & names[i].bit) != 0, -EINVAL,
                "needs %s, which machine %s on this executor lacks", names[i].name,
                c->setup->machine->name);
    }
    return 0;
}

/* Explains an error of init (sim/api/policy.h, errors). */
static const char *init_failure(int rc)
{
    switch (-rc) {
    case ENODEV:
        return "the machine lacks a device that it is to use";
    case EPERM:
        return "a device that it is to use cannot do its work (static attention, or it cannot stop "
               "as asked)";
    case ENOMEM:
        return "what it needs from the start does not fit into memory next to the weights";
    case EINVAL:
        return "a parameter does not suit this machine or model";
    default:
        return strerror(-rc);
    }
}

static int init_failed(struct core *c, int rc)
{
    const struct machine *m = c->setup->machine;
    SCOPED(text_fini) struct text has = {0};
    for (uint32_t i = 0; rc == -ENODEV && i < m->n_devices; i++) {
        text_string(&has, i == 0 ? "; it has " : ", ");
        text_string(&has, m->devices[i].name);
    }
    return core_fail(c, rc, "init failed: %s%.*s", init_failure(rc), (int)has.n,
                     has.n > 0 ? has.p : "");
}

/* Sets the KV capacity, or fails the run if there is none. */
static int find_capacity(struct core *c)
{
    const struct sim_setup *setup = c->setup;
    const uint64_t tokens = kv_capacity(c);
    const bool stated = setup->kv_capacity_tokens > 0;
    c->result->kv_capacity_tokens = tokens;
    FAIL_IF(c, tokens == 0, -EINVAL,
            "model %s does not fit: its weights, %u x %.2f GB, leave no room for KV in %.0f %% of "
            "%.1f GB",
            setup->llm->name, setup->weight_copies, setup->llm->weight_bytes / 1e9,
            setup->machine->memory_usable_frac * 100.0, setup->machine->memory_bytes / 1e9);
    FAIL_IF(c, tokens < setup->kv_block_tokens, -EINVAL,
            "no room for KV: %s %" PRIu64 " tokens, and one block holds %u",
            stated ? "sim.kv_capacity_tokens is" : "the weights leave", tokens,
            setup->kv_block_tokens);
    c->kv_blocks_total = tokens / setup->kv_block_tokens * c->kv_units_most;
    c->kv_blocks_free = c->kv_blocks_total;
    return 0;
}

static void models_init(struct core *c)
{
    const struct sim_setup *s = c->setup;
    SIM_REQUIRE(s->n_more < SIM_MAX_MODELS, "%u models", s->n_more + 1);
    c->n_models = 1 + s->n_more;
    const struct llm *llms[SIM_MAX_MODELS] = {0};
    for (uint32_t i = 0; i < c->n_models; i++) {
        const struct sim_model m = i == 0 ? (struct sim_model){s->llm, s->truth} : s->more[i - 1];
        SIM_REQUIRE(m.llm->layer.n > 0 && m.llm->layer.n <= LAYER_MAX_OPS,
                    "model %s has no ops in its layers", m.llm->name);
        c->models[i] = (struct core_model){.llm = m.llm, .truth = m.truth};
        llms[i] = show(c, m.llm, sizeof *m.llm);
    }
    c->sched->models = show(c, llms, sizeof llms);
    c->sched->llm = llms[0];
    c->sched->n_models = c->n_models;
    c->sched->draft_model = s->draft_model;
    SIM_REQUIRE(s->draft_model < c->n_models, "no model %u drafts", s->draft_model);
    kv_models(c);
}

int core_init(struct core *c, const struct sim_setup *setup, const struct executor_ops *ops,
              void *exec, struct sim_result *result)
{
    *result = (struct sim_result){0};
    *c = (struct core){.setup = setup,
                       .result = result,
                       .exec_ops = ops,
                       .exec = exec,
                       .caps = ops->caps & setup->caps};
    arena_init(&c->arena, NULL);
    memory_init(c);
    c->sched->api = &core_sched_api;
    c->sched->machine = show(c, setup->machine, sizeof *setup->machine);
    c->sched->params = show(c, setup->params, sizeof *setup->params);
    c->sched->seed = policy_seed(setup);
    c->sched->kv_block_tokens = setup->kv_block_tokens;
    c->sched->context = setup->policy_context;
    c->sched->policy = setup->policy;
    SIM_REQUIRE(setup->kv_block_tokens > 0, "KV blocks of no tokens");
    const struct policy_ops *p = setup->policy;
    char why[256];
    /* First, because other members are valid only if the contract is equal. */
    FAIL_IF(c, contract_mismatch(&p->contract, why, sizeof why) != NULL, -EINVAL, "built for %s",
            why);
    FAIL_IF(c, p->request_arrived == NULL || p->schedule == NULL, -EINVAL, "lacks a required hook");
    models_init(c);
    FAIL_IF(c, c->n_models > 1 && (c->caps & CAP_LOAD) == 0, -EINVAL,
            "this executor runs one model, and the run has %u", c->n_models);
    if (setup->decision_log != NULL) {
        bool drafts = setup->drafter != NULL;
        fprintf(setup->decision_log, "policy %s flags=%u%s%s\n", p->name, p->flags,
                drafts ? " drafter=" : "", drafts ? setup->drafter : "");
    }
    /* Before init, which needs devices and memory. */
    if (check_needs(c) != 0 || find_capacity(c) != 0) {
        return result->status;
    }
    c->joins = joins_new(c);
    c->prefixes = prefixes_new(c);
    c->conditions.background_window = true;
    FAIL_IF(c, setup->trace->n_machine > 0 && ops->battery_frac == NULL, -EINVAL,
            "the trace has events of the machine, which this executor cannot make");
    FAIL_IF(c, setup->drafts_on_texts && setup->trace->texts == NULL, -EINVAL,
            "its drafter drafts on token texts, which the workload has not (--workload "
            "texts:file=FILE.jsonl)");
    for (uint32_t i = 0; setup->drafts_calibrated && i < setup->trace->texts->n; i++) {
        FAIL_IF(c, setup->trace->texts->texts[i].calibration == NULL, -EINVAL,
                "its drafter is calibrated, and text %u has no `next` (a file that drive --topk "
                "writes has it)",
                i + 1);
    }
    /* A stated capacity may exceed what the machine's memory leaves. */
    c->memory_bytes =
        fmax(usable_bytes(setup), resident_weight_bytes(c) + setup->runtime_bytes +
                                      (double)result->kv_capacity_tokens * kv_token_bytes(c));
    core_memory_note(c);
    if (p->state_size_bytes > 0) {
        c->sched->state = arena_alloc(&c->policys, p->state_size_bytes);
    }
    c->begun = true;
    c->hook = HOOK_init;
    int rc = p->init == NULL ? 0 : p->init(c->sched);
    c->hook = HOOK_outside;
    weights_init(c);
    FAIL_IF(c, rc == 0 && setup->draft_model > 0 && c->models[setup->draft_model].weights == NULL,
            -ENOMEM, "model %s, which drafts, does not fit next to the others",
            c->models[setup->draft_model].llm->name);
    return rc == 0 ? 0 : init_failed(c, rc);
}

void core_fini(struct core *c)
{
    if (c->begun) { /* also after an init that failed, so that the policy frees its memory */
        CORE_HOOK(c, exit, c->sched);
    }
    map_fini(&c->residents);
    map_fini(&c->cold);
    arena_fini(&c->policys);
    arena_fini(&c->shown);
    arena_fini(&c->arena);
}

/* Above the size of any policy_ops, and below any pointer: before version 2 the table began with
 * one. */
#define MAX_OPS_BYTES 65536

#define NAME(name) "struct " #name,

static const struct policy_contract own = POLICY_CONTRACT;
static const char *const struct_names[] = {POLICY_CONTRACT_STRUCTS(NAME)};

const char *contract_mismatch(const struct policy_contract *other, char *why, size_t why_size)
{
    if (other->size > MAX_OPS_BYTES || other->size < sizeof own) {
        (void)snprintf(why, why_size, "policy API version 1 or older; this xpusim has version %u",
                       own.version);
        return why;
    }
    if (other->version != own.version) {
        (void)snprintf(why, why_size, "policy API version %u; this xpusim has version %u",
                       other->version, own.version);
        return why;
    }
    size_t n = sizeof struct_names / sizeof struct_names[0];
    for (size_t i = 0; i <= n; i++) {
        size_t theirs = i < n ? other->struct_bytes[i] : other->size;
        size_t ours = i < n ? own.struct_bytes[i] : own.size;
        if (theirs != ours) {
            (void)snprintf(why, why_size,
                           "other headers of policy API version %u: its %s has %zu bytes, here %zu",
                           own.version, i < n ? struct_names[i] : "struct policy_ops", theirs,
                           ours);
            return why;
        }
    }
    if (other->layout != own.layout) {
        (void)snprintf(why, why_size, "other headers of policy API version %u: layout %u, here %u",
                       own.version, other->layout, own.layout);
        return why;
    }
    return NULL;
}
