/* openvino-cb: continuous batching on one device as OpenVINO GenAI's public scheduler does it
 * (clauses.md C.2), compared with the library step by step (tests/originals). It has no classes;
 * groups have priority by arrival. Two modes:
 *
 *   split fuse  first the groups that generate, then prompts in order, in chunks, until the token
 *               budget is used up. Prompts take what KV is free and never take any from others.
 *   vllm        a step is whole prompts if there are any that fit, else as the first half above
 *
 * The parameter `variant` chooses mode and budget:
 *
 *   sf256   split fuse with the library's default budget of 256 tokens
 *   whole   split fuse without budget: what the plain pipeline (LLMPipeline) gives
 *   vllm    split fuse off
 *
 * A generating group without KV takes it from the last group that has any, if that is a later one.
 * The victim skips the step and loses as many blocks from its end as the other group needs in total
 * (not only the missing ones), or everything if it has no more. It recomputes the lost tokens as a
 * generating group: as many as the budget allows, or none without KV for all of these. These steps
 * yield no new token. With split fuse off a victim that would lose part of its prompt loses all. On
 * a GPU every victim loses all, and is a prompt again.
 *
 * The first group can always continue, because every request fits by itself. Deviation: with split
 * fuse off the library refuses prompts longer than the budget; here they run by themselves.
 */
#include "policies/common/blocks.h"
#include "policies/common/iteration.h"
#include "policies/common/reqq.h"

enum { PARAM_VARIANT, PARAM_BUDGET, PARAM_MAX_SEQS, PARAM_DEVICE };
enum variant { VARIANT_SF256, VARIANT_WHOLE, VARIANT_VLLM };

static const char *const variants[] = {"sf256", "whole", "vllm", NULL};
static const char *const presets[] = {"", "max_num_batched_tokens=1000000000",
                                      "max_num_batched_tokens=1000000000"};
static const struct policy_param params[] = {
    POLICY_CHOICE("variant", VARIANT_SF256, variants, "batching rule, see the file's head"),
    POLICY_INT(
        "max_num_batched_tokens", 256, 1, 1e9,
        "token budget of an iteration; default of openvino.genai; whole, vllm: none (LLMPipeline)"),
    POLICY_INT("max_num_seqs", 256, 1, 1e6,
               "vllm: generating groups beyond which no prompt starts; split fuse has no limit"),
    POLICY_CHOICE("device", 0, place_choices, "device that runs everything; auto: the iGPU"),
    {.name = NULL},
};

struct openvino {
    struct iteration it;
    struct reqq waiting;  /* not begun, in arrival order */
    struct reqq running;  /* begun, in arrival order */
    uint64_t step;        /* number of the present step, from 1 */
    uint64_t free_blocks; /* free blocks that the batch under construction leaves */
    uint32_t budget;
    bool split_fuse;
    bool partial; /* victims may keep a part of their KV */
};

struct group {
    struct reqq_node node;
    uint64_t sits_out; /* the step in which it was last a victim */
};

static void openvino_joins(struct sched *s, const struct request *r)
{
    struct openvino *o = s->state;
    reqq_push(&o->waiting, r);
}

/* ---- one step ---- */

static bool sits_out(const struct openvino *o, const struct request *r)
{
    return ((const struct group *)r->own)->sits_out == o->step;
}

/* Tokens that r can process next. After a loss of KV it first computes all tokens but the last.
 * That one yields the next token, in another step. */
static uint32_t available_tokens(const struct request *r)
{
    uint32_t left = request_prefill_left(r);
    return r->generated_tokens == 0 ? left : left > 1 ? left - 1 : 1;
}

static uint32_t budget_left(const struct openvino *o)
{
    return o->budget - o->it.batch.tokens;
}

/* Adds n tokens of a request that the batch takes. blocks: blocks for them. */
static inline void add(struct openvino *o, const struct request *r, uint32_t n, uint64_t blocks)
{
    o->free_blocks -= blocks;
    batch_put(&o->it.batch, r, r->state == REQUEST_STATE_DECODE ? SEGMENT_DECODE : SEGMENT_PREFILL,
              n);
}

/* Takes KV from a victim for a group that needs `wanted` blocks. */
static bool preempt(struct sched *s, struct openvino *o, const struct request *victim,
                    uint64_t wanted)
{
    uint64_t held = blocks_held(s, victim);
    uint64_t keep = o->partial && held > wanted ? (held - wanted) * s->kv_block_tokens : 0;
    if (!o->split_fuse && keep < victim->input_tokens) {
        keep = 0;
    }
    ((struct group *)victim->own)->sits_out = o->step;
    struct kv_part rest = {.request = victim, .from_token = (uint32_t)keep};
    uint64_t before = blocks_free(s);
    bool taken = sched_kv_move(s, rest, KV_NOWHERE) == 0;
    o->free_blocks += blocks_free(s) - before;
    return taken;
}

/* The last group with KV, if it is behind r, or NULL. */
static const struct request *last_holder_after(struct sched *s, const struct openvino *o,
                                               const struct request *r)
{
    for (const struct request *v = o->running.tail; v != NULL && v != r; v = reqq_prev(v)) {
        if (blocks_held(s, v) > 0) {
            return v;
        }
    }
    return NULL;
}

/* Takes KV from groups behind r until `wanted` blocks are free. False: impossible. */
static bool take_for(struct sched *s, struct openvino *o, const struct request *r, uint64_t wanted)
{
    while (wanted > o->free_blocks) {
        const struct request *victim = last_holder_after(s, o, r);
        if (victim == NULL || !preempt(s, o, victim, wanted)) {
            break;
        }
    }
    return wanted <= o->free_blocks;
}

static void add_generating(struct sched *s, struct openvino *o)
{
    for (const struct request *r = o->running.head; r != NULL && budget_left(o) > 0;
         r = reqq_next(r)) {
        if (r->generated_tokens == 0 || sits_out(o, r) || !batch_takes(&o->it.batch, r)) {
            continue;
        }
        uint32_t n = available_tokens(r);
        n = n < budget_left(o) ? n : budget_left(o);
        uint64_t wanted = blocks_needed(s, r, n);
        if (wanted <= o->free_blocks || take_for(s, o, r, wanted)) {
            add(o, r, n, wanted);
        }
    }
}

/* Adds as much of a prompt as budget and KV allow. Returns the tokens. */
static uint32_t add_chunk(struct sched *s, struct openvino *o, const struct request *r)
{
    uint64_t cached = blocks_cached(s, r); /* its own blocks that count as free */
    uint64_t held = blocks_of(s, r->kv_tokens) - cached;
    uint64_t states = r->kv_state_tokens / s->kv_block_tokens;
    uint64_t free = o->free_blocks;
    if (free < cached + states || !batch_takes(&o->it.batch, r)) {
        return 0;
    }
    uint64_t slots = (held + free - states) * s->kv_block_tokens - r->kv_tokens;
    uint32_t n = available_tokens(r);
    n = n < budget_left(o) ? n : budget_left(o);
    n = n < slots ? n : (uint32_t)slots;
    if (n > 0) {
        add(o, r, n, blocks_needed(s, r, n));
    }
    return n;
}

static void add_prompt_chunks(struct sched *s, struct openvino *o)
{
    bool all_decode = o->it.batch.n == o->running.n; /* no unfinished prompt among them */
    for (const struct request *r = o->running.head; r != NULL && budget_left(o) > 0 && !all_decode;
         r = reqq_next(r)) {
        if (r->generated_tokens == 0 && !sits_out(o, r)) {
            (void)add_chunk(s, o, r);
        }
    }
    while (!reqq_empty(&o->waiting) && budget_left(o) > 0 && add_chunk(s, o, o->waiting.head) > 0) {
        reqq_push(&o->running, reqq_pop(&o->waiting));
    }
}

static bool add_whole(struct sched *s, struct openvino *o, const struct request *r)
{
    uint32_t n = available_tokens(r);
    bool alone = n > o->budget && o->it.batch.n == 0;
    uint64_t wanted = blocks_needed(s, r, n);
    if ((n > budget_left(o) && !alone) || wanted > o->free_blocks ||
        !batch_takes(&o->it.batch, r)) {
        return false;
    }
    add(o, r, n, wanted);
    return o->it.batch.tokens < o->budget;
}

/* Whole prompts in arrival order up to the first that does not fit. */
static void add_whole_prompts(struct sched *s, struct openvino *o)
{
    uint32_t most = (uint32_t)param_int(s, PARAM_MAX_SEQS);
    uint32_t generating = 0;
    for (const struct request *r = o->running.head; r != NULL; r = reqq_next(r)) {
        generating += r->generated_tokens > 0;
    }
    for (const struct request *r = o->running.head; r != NULL && !o->partial; r = reqq_next(r)) {
        if (r->kv_tokens == 0 && !sits_out(o, r)) {
            if (generating >= most || !add_whole(s, o, r)) {
                return;
            }
            generating++;
        }
    }
    while (!reqq_empty(&o->waiting) && generating < most) {
        const struct request *r = o->waiting.head;
        uint32_t n = o->it.batch.n;
        bool more = add_whole(s, o, r);
        if (o->it.batch.n > n) {
            reqq_push(&o->running, reqq_pop(&o->waiting));
            generating++;
        }
        if (!more) {
            return;
        }
    }
}

static void openvino_compose(struct sched *s)
{
    struct openvino *o = s->state;
    o->step++;
    o->free_blocks = blocks_free(s);
    batch_clear(&o->it.batch);
    if (!o->split_fuse) {
        add_whole_prompts(s, o);
    }
    if (o->it.batch.n == 0) {
        add_generating(s, o);
    }
    if (o->split_fuse) {
        add_prompt_chunks(s, o);
    }
}

static const struct iteration_rules rules = {
    .joins = openvino_joins, .leaves = reqq_leave, .compose = openvino_compose};

static int openvino_init(struct sched *s)
{
    struct openvino *o = s->state;
    int rc = iteration_init(s, &rules, param_int(s, PARAM_DEVICE));
    o->budget = (uint32_t)param_int(s, PARAM_BUDGET);
    o->split_fuse = param_int(s, PARAM_VARIANT) != VARIANT_VLLM;
    o->partial =
        o->split_fuse || (rc == 0 && s->machine->devices[o->it.device].kind == DEVICE_KIND_CPU);
    sched_steady(s, TIME_NEVER_NS, 0);
    return rc;
}

const struct policy_ops policy_openvino_cb_ops = {
    .name = "openvino-cb",
    .summary = "continuous batching on one device, OpenVINO GenAI's rules (openvino.genai)",
    .contract = POLICY_CONTRACT,
    .needs = CAP_KV_MOVE,
    .state_size_bytes = sizeof(struct openvino),
    .request_state_size_bytes = sizeof(struct group),
    .params = params,
    .presets = presets,
    .init = openvino_init,
    .exit = iteration_exit,
    ITERATION_HOOKS,
};
